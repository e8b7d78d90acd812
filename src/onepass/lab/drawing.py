"""Pictures of results, what all kinds share: names stand at the ends of curves, one look a policy (`looks`).

Where more than a FEW curves share a panel, bands would cover one another: how far the mean may be off is drawn once, at
the end of the curve. Curves that are equal in every number are named together. Bars of lengths that differ by more than
FLAT are points on a log axis.

Importing matplotlib takes longer than a small run: it is imported by what draws, and by nothing else.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from onepass.foundation.curve_labels import ENDS, arrange_labels, label_curve, readable_color
from onepass.lab.figure import Figure, Picture, Row
from onepass.lab.looks import LOOK, SIZE, SMALL, WIDEST, styles
from onepass.lab.tables import by, group_of, policy_of, standard_error

FEW = 3  # bands that a panel bears
FLAT = 15.0  # the longest bar over the shortest: more and the short ones say nothing
ALIKE = 1e-9  # relative: curves that differ by less are the same
BESIDE = 0.016  # of a panel's width: from one interval at the end to the next
FAINT = 0.13  # opacity of a band
PANEL, LINE = (4.8, 3.2), 0.19  # inches: of a panel that stands alone, of a line of words
LONG = 26  # letters of names that stand in one line

Sides = Callable[[Sequence[float]], tuple[float, float, float]]
Looks = Mapping[str, dict[str, Any]]
Curve = tuple[list[float], list[float]]


def draw(figure: Figure, rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """The picture of the rows."""
    import matplotlib as mpl

    with mpl.rc_context(LOOK):
        picture = figure.draw(rows, curves)
        arrange_labels(picture)
    return picture


def save(figure: Figure, rows: Sequence[Row], curves: Sequence[Row], path: Path) -> None:
    """Draw the picture into a file, whose ending says its kind."""
    import matplotlib as mpl

    with mpl.rc_context(LOOK):
        draw(figure, rows, curves).savefig(path, metadata=dateless(path))


def save_panels(figure: Figure, rows: Sequence[Row], curves: Sequence[Row], stem: Path) -> list[Path]:
    """Each panel of the picture in a PDF of its own, `stem-NAME.pdf`, without the title; returns them."""
    import matplotlib as mpl

    found = []
    with mpl.rc_context(LOOK):
        for place, name in enumerate(panel_names(draw(figure, rows, curves))):
            picture = figure.draw(rows, curves)
            alone(picture, place)
            arrange_labels(picture)
            found.append(stem.with_name(f"{stem.name}-{name}.pdf"))
            picture.savefig(found[-1], metadata=dateless(found[-1]))
    return found


def panel_names(picture: Picture) -> list[str]:
    """The names of a picture's panels, as file names; numbers where two share one."""
    names = [re.sub(r"\W+", "-", str(axes.get_label())).strip("-").lower() or "panel" for axes in picture.axes]
    return [name if names.count(name) == 1 else f"{name}-{i + 1}" for i, name in enumerate(names)]


def alone(picture: Picture, place: int) -> None:
    """Take all panels away but one, which then fills the picture."""
    for i, axes in enumerate(list(picture.axes)):
        if i != place:
            axes.remove()
    axes = picture.axes[0]
    axes.set_subplotspec(picture.add_gridspec(1, 1)[0])
    axes.tick_params(labelleft=True, labelbottom=True)
    picture.suptitle("")
    named = sum(1 + text.get_text().count("\n") for text in axes.texts if text.get_gid() == ENDS)
    width, height = PANEL
    picture.set_size_inches(width, max(height, LINE * named + 0.8, LINE * len(axes.get_yticklabels())))


def dateless(path: Path) -> dict[str, None]:
    """Metadata of a file that is the same whenever it is drawn."""
    return {"CreationDate": None} if path.suffix == ".pdf" else {}


def canvas(width: float, height: float) -> Picture:
    """An empty picture, in inches; `canvas(9, 5).subplots(1, 2)` gives its panels."""
    from matplotlib.figure import Figure as Empty

    return Empty(figsize=(min(width, WIDEST), height), layout="constrained")


def title(figure: Picture, rows: Sequence[Row], what: str) -> None:
    """What was played, and how often, over all panels."""
    seeds = len({row["seed"] for row in rows})
    figure.suptitle(
        f"{rows[0]['experiment']}: {what}, {seeds} seed{'s' if seeds > 1 else ''}",
        x=0.01,
        ha="left",
        fontsize=SIZE + 2,
        fontweight="bold",
    )


# ---- curves ----


def error(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean, and one standard error to both sides."""
    mean, off = fmean(values), standard_error(values) if len(values) > 1 else 0.0
    return mean - off, mean, mean + off


def plot(
    axes: Any,
    rows: Sequence[Row],
    value: str,
    looks: Looks,
    *,
    x: str = "round",
    key: Callable[[Row], str] = policy_of,
    sides: Sides = error,
    named: bool = True,
    **look: Any,
) -> dict[str, Curve]:
    """A curve a policy over seeds, with its name at the end and how far it may be off; returns the curves.

    named: False for a second kind of curve in the same panel. look: what differs from `looks`.
    """
    curves, ends = {}, {}
    groups = by(rows, key)
    for name, own in groups.items():
        points = sorted(by(own, lambda row: row[x]).items())
        xs, found = [at for at, _ in points], [sides([row[value] for row in same]) for _, same in points]
        curves[name] = xs, [middle for _, middle, _ in found]
        dot = {"marker": "o"} if len(points) == 1 else {}
        axes.plot(*curves[name], label=name if named else "_", **{**looks[name], **dot, **look})
        low, high = [one[0] for one in found], [one[2] for one in found]
        if low != high and len(groups) <= FEW and named:
            axes.fill_between(xs, low, high, color=looks[name]["color"], alpha=FAINT, linewidth=0)
        elif low != high and named:
            ends[name] = low[-1], high[-1]
    if named:
        name_ends(axes, curves, looks, intervals=ends)
    return curves


def name_ends(
    axes: Any, curves: Mapping[str, Curve], looks: Looks, intervals: Mapping[str, tuple[float, float]] | None = None
) -> None:
    """The names of curves at their ends; of `intervals` there, each beside the one before."""
    for i, (name, (low, high)) in enumerate(sorted((intervals or {}).items(), key=lambda one: one[1])):
        at = 1.0 + BESIDE * (i % (2 * FEW) + 1)
        axes.plot(
            [at, at],
            [low, high],
            transform=axes.get_yaxis_transform(),
            clip_on=False,
            color=looks[name]["color"],
            linewidth=LOOK["lines.linewidth"],
            label="_",
        )
    room = BESIDE * (2 + min(len(intervals or {}), 2 * FEW))
    for same in equal(curves):
        xs, ys = curves[same[0]]
        label_curve(axes, together(same), (xs[-1], ys[-1]), looks[same[0]]["color"], away=room, fontsize=SMALL)


def equal(curves: Mapping[str, Curve]) -> list[list[str]]:
    """Names of curves, those together that are the same in every number."""
    found: list[list[str]] = []
    for name, curve in curves.items():
        group = next((group for group in found if same_curve(curves[group[0]], curve)), None)
        if group is None:
            found.append([name])
        else:
            group.append(name)
    return found


def same_curve(a: Curve, b: Curve) -> bool:
    """Whether two curves agree to rounding."""
    return a[0] == b[0] and all(abs(p - q) <= ALIKE * max(abs(p), abs(q)) for p, q in zip(a[1], b[1], strict=True))


def together(names: Sequence[str]) -> str:
    """Names of equal curves: "A = B", over several lines where they are long."""
    text = " = ".join(names)
    return text if len(text) <= LONG else " =\n".join(names)


def level(axes: Any, value: float) -> Curve:
    """A level, for `name_ends`, at the right edge of the panel as it is."""
    return [axes.get_xlim()[1]], [value]


# ---- axes ----


def wide_range(values: Sequence[float]) -> bool:
    """Whether a log axis shows them better."""
    return min(values) > 0 and max(values) > 4 * min(values)


def from_zero(axes: Any, curves: Mapping[str, Curve]) -> None:
    """x from 0 to where the curves end; y too, or, where their ends differ widely, on a log axis from 1."""
    axes.set_xlim(0, max(xs[-1] for xs, _ in curves.values()))
    if wide_range([ys[-1] for _, ys in curves.values()]):
        logarithmic(axes, "y")
        axes.set_ylim(bottom=max(1.0, axes.get_ylim()[0]))
    else:
        axes.set_ylim(bottom=0)


def regret_panel(axes: Any, curves: Sequence[Row], looks: Looks) -> None:
    """Regret over rounds, with one standard error."""
    from_zero(axes, plot(axes, curves, "cumulative_regret", looks))
    axes.set(title="cumulative regret, mean and standard error", xlabel="round")


def logarithmic(axes: Any, which: str, crowded: float = 1.0) -> None:
    """Log scale with plain numbers: 1, 2 and 5 in every decade, or the decades alone where there are many.

    crowded: how many times less room there is than in a whole picture.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for name in which:
        getattr(axes, f"set_{name}scale")("log")
        low, high = getattr(axes, f"get_{name}lim")()
        axis = getattr(axes, f"{name}axis")
        range_ = crowded * high / low
        subs = (1.0, 2.0, 5.0) if range_ < 50 else (1.0, 3.0) if range_ < 500 else (1.0,)
        axis.set_major_locator(LogLocator(subs=subs))
        axis.set_major_formatter(FuncFormatter(plainly))
        axis.set_minor_formatter(NullFormatter())


def plainly(value: float, _: Any = None) -> str:
    """A number of an axis: 0.001 to 1,000,000 written out, others as powers of ten."""
    return f"{value:,.10g}" if 1e-3 <= abs(value) < 1e7 else f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")


# ---- bars and points ----


def bars(axes: Any, rows: Sequence[Row], value: str, unit: float, name: str, looks: Looks) -> None:
    """One horizontal bar per policy, with its figure beside it; points on a log axis where bars would be flat."""
    means = {label: fmean(row[value] for row in own) / unit for label, own in by(rows, policy_of).items()}
    labels, lengths = list(means), list(means.values())
    flat = min(lengths) > 0 and max(lengths) > FLAT * min(lengths)
    if flat:
        for label, length in means.items():
            axes.plot(length, label, "o", markersize=7, color=looks[label]["color"])
        logarithmic(axes, "x", crowded=10.0)
        low, high = axes.get_xlim()
        axes.set_xlim(low, high * (high / low) ** 0.3)  # room for the figures
    else:
        axes.barh(
            labels,
            lengths,
            color=[looks[label]["color"] for label in labels],
            height=0.62,
            hatch=["" if looks[label]["linestyle"] == "-" else "////" for label in labels],
            edgecolor="white",
            linewidth=0,
        )
        axes.margins(x=0.25)
        axes.locator_params(axis="x", nbins=3)
    for label, length in means.items():
        said = f"{length:.2g}" if length < 1 else f"{length:,.1f}" if length < 10 else f"{length:,.0f}"
        axes.annotate(said, (length, label), (7 if flat else 4, 0), textcoords="offset points", va="center", size=SMALL)
    axes.invert_yaxis()
    axes.set_title(name)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    for tick, label in zip(axes.get_yticklabels(), labels, strict=True):
        tick.set_color(readable_color(looks[label]["color"]))


def tall(rows: Sequence[Row]) -> float:
    """Inches that bars of these rows need."""
    return 0.9 + 0.22 * len(by(rows, policy_of))


def over(rows: Sequence[Row], x: str, value: str) -> Iterator[tuple[float, float]]:
    """Means of a value, in the order of x."""
    for at, same in sorted(by(rows, lambda row: row[x]).items()):
        yield at, fmean(row[value] for row in same)


def draw_over_reg(rows: Sequence[Row], y: str, name: str, what: str, x: str = "reg", also: str = "reg") -> Picture:
    """Mean of y over reg (or x, `also` where a policy calls it so), both on log axes.

    Without bands, since the same seeds stand behind every point.
    """
    placed = [{**row, "x": row["params"].get(x, row["params"].get(also))} for row in rows]
    figure = canvas(8.5, 5.2)
    axes = figure.subplots()
    axes.set_label(y)
    looks, curves = styles(rows, "group"), {}
    for group, own in by(placed, group_of).items():
        points = list(over(own, "x", y))
        curves[group] = [at for at, _ in points], [middle for _, middle in points]
        axes.plot(*curves[group], label=group, marker="o", markersize=4, **looks[group])
    logarithmic(axes, "xy")
    axes.margins(x=0.02)
    axes.set(xlabel=x, ylabel=name)
    name_ends(axes, curves, looks)
    title(figure, rows, what)
    return figure
