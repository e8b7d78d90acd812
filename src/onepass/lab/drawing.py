"""Drawing helpers of all figures: curves with names at their ends, one style per policy (`line_styles`).

If more than MAX_BANDS curves share a panel, their bands would overlap: the uncertainty of the mean is then drawn once,
at the end of the curve. Equal curves share one label. Bars whose lengths differ by more than FLAT become points on a
log axis.

Importing matplotlib takes longer than a small run, so only functions that draw import it.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from onepass.foundation.curve_labels import ENDS, arrange_labels, label_curve, readable_color
from onepass.lab.figure import Figure, Picture, Row
from onepass.lab.line_styles import RC_PARAMS, SIZE, SMALL, WIDEST, assign_styles
from onepass.lab.tables import group_label, group_rows, policy_label, standard_error

MAX_BANDS = 3  # largest number of bands in a panel
FLAT = 15.0  # largest ratio of the longest to the shortest bar: beyond it, short bars cannot be read
CURVE_TOLERANCE = 1e-9  # curves with a smaller relative difference count as equal
INTERVAL_GAP = 0.016  # distance of intervals at the ends of curves, as a share of the panel's width
FAINT = 0.13  # opacity of a band
PANEL, LINE = (4.8, 3.2), 0.19  # inches: size of a separate panel, height of a line of text
LONG = 26  # most letters of names in one line

Band = Callable[[Sequence[float]], tuple[float, float, float]]
Styles = Mapping[str, dict[str, Any]]
Curve = tuple[list[float], list[float]]


def draw(figure: Figure, rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Return the picture of the results: a matplotlib figure that `figure.draw` makes from rows and curves.

    `rows` are the results at the end of a run, and `curves` the results over rounds, as dictionaries.
    """
    import matplotlib as mpl

    with mpl.rc_context(RC_PARAMS):
        picture = figure.draw(rows, curves)
        arrange_labels(picture)
    return picture


def save(figure: Figure, rows: Sequence[Row], curves: Sequence[Row], path: Path) -> None:
    """Draw the picture of the results into the file `path`; the suffix selects the format, for example .png.

    `figure` has the function that draws. `rows` are the results at the end of a run, and `curves` the results over
    rounds, as dictionaries.
    """
    import matplotlib as mpl

    with mpl.rc_context(RC_PARAMS):
        draw(figure, rows, curves).savefig(path, metadata=_undated_metadata(path))


def save_panels(figure: Figure, rows: Sequence[Row], curves: Sequence[Row], stem: Path) -> list[Path]:
    """Save each panel as a PDF of its own, `stem-NAME.pdf`, without the title, and return the paths.

    NAME is the label of the panel.

    `figure` has the function that draws. `rows` are the results at the end of a run, and `curves` the results over
    rounds, as dictionaries.
    """
    import matplotlib as mpl

    found = []
    with mpl.rc_context(RC_PARAMS):
        for place, name in enumerate(_panel_names(draw(figure, rows, curves))):
            picture = figure.draw(rows, curves)
            _isolate_panel(picture, place)
            arrange_labels(picture)
            found.append(stem.with_name(f"{stem.name}-{name}.pdf"))
            picture.savefig(found[-1], metadata=_undated_metadata(found[-1]))
    return found


def _panel_names(picture: Picture) -> list[str]:
    """Return the labels of a picture's panels in a form for file names, numbered if two are equal."""
    names = [re.sub(r"\W+", "-", str(axes.get_label())).strip("-").lower() or "panel" for axes in picture.axes]
    return [name if names.count(name) == 1 else f"{name}-{i + 1}" for i, name in enumerate(names)]


def _isolate_panel(picture: Picture, place: int) -> None:
    """Remove all panels of a picture but the one with index `place`, and let that one fill the picture."""
    for i, axes in enumerate(list(picture.axes)):
        if i != place:
            axes.remove()
    axes = picture.axes[0]
    axes.set_subplotspec(picture.add_gridspec(1, 1)[0])
    axes.tick_params(labelleft=True, labelbottom=True)
    picture.suptitle("")
    n_lines = sum(1 + text.get_text().count("\n") for text in axes.texts if text.get_gid() == ENDS)
    width, height = PANEL
    picture.set_size_inches(width, max(height, LINE * n_lines + 0.8, LINE * len(axes.get_yticklabels())))


def _undated_metadata(path: Path) -> dict[str, None]:
    """Return metadata with which matplotlib writes no date to `path`, so that equal pictures give equal files."""
    return {"CreationDate": None} if path.suffix == ".pdf" else {}


def canvas(width: float, height: float) -> Picture:
    """Return an empty matplotlib figure with this width and height in inches."""
    from matplotlib.figure import Figure as Empty

    return Empty(figsize=(min(width, WIDEST), height), layout="constrained")


def set_title(figure: Picture, rows: Sequence[Row], what: str) -> None:
    """Set the title of the picture `figure`: the name of the experiment, the text `what`, and the number of seeds.

    `rows` are the results of a run, as dictionaries.
    """
    seeds = len({row["seed"] for row in rows})
    figure.suptitle(
        f"{rows[0]['experiment']}: {what}, {seeds} seed{'s' if seeds > 1 else ''}",
        x=0.01,
        ha="left",
        fontsize=SIZE + 2,
        fontweight="bold",
    )


# ---- curves ----


def _standard_error_band(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean of the values minus one standard error, the mean, and the mean plus one standard error."""
    mean, off = fmean(values), standard_error(values) if len(values) > 1 else 0.0
    return mean - off, mean, mean + off


def plot_curves(
    axes: Any,
    rows: Sequence[Row],
    value: str,
    styles: Styles,
    *,
    x: str = "round",
    key: Callable[[Row], str] = policy_label,
    band: Band = _standard_error_band,
    show_names: bool = True,
    **look: Any,
) -> dict[str, Curve]:
    """Draw the mean of column `value` over seeds against column `x`, one curve per policy, and return the curves.

    Parameters
    ----------
    axes : matplotlib axes
        Panel to draw into.
    rows : sequence of dict
        Rows of the curves, one per policy, seed and checkpoint.
    value, x : str
        Columns of the vertical and of the horizontal axis.
    styles : dict
        Line style of every curve by name.
    key : callable
        Function from a row to the name of its curve.
    band : callable
        Function from the values of all seeds to lower limit, middle and upper limit. The default is one standard error.
    show_names : bool, default True
        True to write names at the ends of the curves and to draw bands.
    **look : object
        Options of matplotlib's `plot` that override the styles.
    """
    curves, ends = {}, {}
    groups = group_rows(rows, key)
    for name, own in groups.items():
        points = sorted(group_rows(own, lambda row: row[x]).items())
        xs, found = [at for at, _ in points], [band([row[value] for row in same]) for _, same in points]
        curves[name] = xs, [middle for _, middle, _ in found]
        dot = {"marker": "o"} if len(points) == 1 else {}
        axes.plot(*curves[name], label=name if show_names else "_", **{**styles[name], **dot, **look})
        low, high = [one[0] for one in found], [one[2] for one in found]
        if low != high and len(groups) <= MAX_BANDS and show_names:
            axes.fill_between(xs, low, high, color=styles[name]["color"], alpha=FAINT, linewidth=0)
        elif low != high and show_names:
            ends[name] = low[-1], high[-1]
    if show_names:
        name_ends(axes, curves, styles, intervals=ends)
    return curves


def name_ends(
    axes: Any, curves: Mapping[str, Curve], styles: Styles, intervals: Mapping[str, tuple[float, float]] | None = None
) -> None:
    """Write the name of every curve at its end into the panel `axes`.

    `intervals` maps names to (lower, upper) limits, which are drawn at the right edge. `styles` maps names to line
    styles.
    """
    for i, (name, (low, high)) in enumerate(sorted((intervals or {}).items(), key=lambda one: one[1])):
        at = 1.0 + INTERVAL_GAP * (i % (2 * MAX_BANDS) + 1)
        axes.plot(
            [at, at],
            [low, high],
            transform=axes.get_yaxis_transform(),
            clip_on=False,
            color=styles[name]["color"],
            linewidth=RC_PARAMS["lines.linewidth"],
            label="_",
        )
    room = INTERVAL_GAP * (2 + min(len(intervals or {}), 2 * MAX_BANDS))
    for same in group_equal_curves(curves):
        xs, ys = curves[same[0]]
        label_curve(axes, _join_names(same), (xs[-1], ys[-1]), styles[same[0]]["color"], away=room, fontsize=SMALL)


def group_equal_curves(curves: Mapping[str, Curve]) -> list[list[str]]:
    """Return the names of curves in lists, such that curves with equal points are in the same list."""
    found: list[list[str]] = []
    for name, curve in curves.items():
        group = next((group for group in found if _is_same_curve(curves[group[0]], curve)), None)
        if group is None:
            found.append([name])
        else:
            group.append(name)
    return found


def _is_same_curve(a: Curve, b: Curve) -> bool:
    """Return True if two curves, each a list of x and a list of y, have the same x, and the same y up to rounding."""
    return a[0] == b[0] and all(
        abs(p - q) <= CURVE_TOLERANCE * max(abs(p), abs(q)) for p, q in zip(a[1], b[1], strict=True)
    )


def _join_names(names: Sequence[str]) -> str:
    """Join the names of equal curves as "A = B", on several lines if they are long."""
    text = " = ".join(names)
    return text if len(text) <= LONG else " =\n".join(names)


def level_end(axes: Any, value: float) -> Curve:
    """Return the right end of a horizontal line at the height `value`, as a curve of one point for `name_ends`."""
    return [axes.get_xlim()[1]], [value]


# ---- axes ----


def _is_wide_range(values: Sequence[float]) -> bool:
    """Return True if all values are positive and the largest is above 4 times the smallest, as suits a log axis."""
    return min(values) > 0 and max(values) > 4 * min(values)


def start_axes_at_zero(axes: Any, curves: Mapping[str, Curve]) -> None:
    """Start both axes at 0; the vertical axis becomes logarithmic if the ends of the curves differ widely."""
    axes.set_xlim(0, max(xs[-1] for xs, _ in curves.values()))
    if _is_wide_range([ys[-1] for _, ys in curves.values()]):
        set_log_scale(axes, "y")
        axes.set_ylim(bottom=max(1.0, axes.get_ylim()[0]))
    else:
        axes.set_ylim(bottom=0)


def draw_regret_panel(axes: Any, curves: Sequence[Row], styles: Styles) -> None:
    """Draw the mean cumulative regret over rounds into the panel `axes`, with bands of one standard error.

    `curves` are rows of curves, and `styles` maps the name of a policy to its line style.
    """
    start_axes_at_zero(axes, plot_curves(axes, curves, "cumulative_regret", styles))
    axes.set(title="cumulative regret, mean and standard error", xlabel="round")


def set_log_scale(axes: Any, which: str, crowded: float = 1.0) -> None:
    """Make the axes named in `which` ("x", "y" or "xy") logarithmic, with ticks in plain numbers.

    Ticks are at 1, 2 and 5 in every decade, or fewer on wide ranges. `crowded` is the factor by which the panel is
    smaller than a whole picture.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for name in which:
        getattr(axes, f"set_{name}scale")("log")
        low, high = getattr(axes, f"get_{name}lim")()
        axis = getattr(axes, f"{name}axis")
        range_ = crowded * high / low
        subs = (1.0, 2.0, 5.0) if range_ < 50 else (1.0, 3.0) if range_ < 500 else (1.0,)
        axis.set_major_locator(LogLocator(subs=subs))
        axis.set_major_formatter(FuncFormatter(_format_tick))
        axis.set_minor_formatter(NullFormatter())


def _format_tick(value: float, _: Any = None) -> str:
    """Format a tick: 0.001 to below 10,000,000 in full, other numbers as a digit and a power of ten, such as 2e7."""
    return f"{value:,.10g}" if 1e-3 <= abs(value) < 1e7 else f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")


# ---- bars and points ----


def draw_bars(axes: Any, rows: Sequence[Row], value: str, unit: float, name: str, styles: Styles) -> None:
    """Draw the mean of column `value`, divided by `unit`, as one horizontal bar per policy with the title `name`.

    `axes` is the panel, and `styles` maps policies to line styles. `rows` are the results of a run, as dictionaries. If
    bars would be too short to see, points on a logarithmic axis are drawn instead.
    """
    means = {label: fmean(row[value] for row in own) / unit for label, own in group_rows(rows, policy_label).items()}
    labels, lengths = list(means), list(means.values())
    flat = min(lengths) > 0 and max(lengths) > FLAT * min(lengths)
    if flat:
        for label, length in means.items():
            axes.plot(length, label, "o", markersize=7, color=styles[label]["color"])
        set_log_scale(axes, "x", crowded=10.0)
        low, high = axes.get_xlim()
        axes.set_xlim(low, high * (high / low) ** 0.3)  # room for the figures
    else:
        axes.barh(
            labels,
            lengths,
            color=[styles[label]["color"] for label in labels],
            height=0.62,
            hatch=["" if styles[label]["linestyle"] == "-" else "////" for label in labels],
            edgecolor="white",
            linewidth=0,
        )
        axes.margins(x=0.25)
        axes.locator_params(axis="x", nbins=3)
    for label, length in means.items():
        text = f"{length:.2g}" if length < 1 else f"{length:,.1f}" if length < 10 else f"{length:,.0f}"
        axes.annotate(text, (length, label), (7 if flat else 4, 0), textcoords="offset points", va="center", size=SMALL)
    axes.invert_yaxis()
    axes.set_title(name)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    for tick, label in zip(axes.get_yticklabels(), labels, strict=True):
        tick.set_color(readable_color(styles[label]["color"]))


def bar_chart_height(rows: Sequence[Row]) -> float:
    """Return the height in inches of a bar chart with one bar for each policy in `rows`, dictionaries of results."""
    return 0.9 + 0.22 * len(group_rows(rows, policy_label))


def _means_over(rows: Sequence[Row], x: str, value: str) -> Iterator[tuple[float, float]]:
    """Yield pairs of a value of column `x` and the mean of column `value` over the rows that have it, in order.

    `rows` are results as dictionaries.
    """
    for at, same in sorted(group_rows(rows, lambda row: row[x]).items()):
        yield at, fmean(row[value] for row in same)


def draw_over_reg(rows: Sequence[Row], y: str, name: str, what: str, x: str = "reg", also: str = "reg") -> Picture:
    """Draw the mean of column `y` against the parameter `x` on logarithmic axes, one curve per group of policies.

    `rows` are the results of a run, as dictionaries. Policies that lack the parameter `x` are drawn at their parameter
    `also`. `name` is the label of the vertical axis, and `what` the title.
    """
    placed = [{**row, "x": row["params"].get(x, row["params"].get(also))} for row in rows]
    figure = canvas(8.5, 5.2)
    axes = figure.subplots()
    axes.set_label(y)
    styles, curves = assign_styles(rows, "group"), {}
    for group, own in group_rows(placed, group_label).items():
        points = list(_means_over(own, "x", y))
        curves[group] = [at for at, _ in points], [middle for _, middle in points]
        axes.plot(*curves[group], label=group, marker="o", markersize=4, **styles[group])
    set_log_scale(axes, "xy")
    axes.margins(x=0.02)
    axes.set(xlabel=x, ylabel=name)
    name_ends(axes, curves, styles)
    set_title(figure, rows, what)
    return figure
