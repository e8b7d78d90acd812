"""Pictures of results, what all kinds share: one legend each, colours safe for the colour-blind (Okabe and Ito).

Importing matplotlib takes longer than a small run: it is imported by what draws, and by nothing else.
"""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from onepass.experiment.figure import Figure, Picture, Row
from onepass.experiment.tables import by, group_of, policy_of, standard_error

BLACK, ORANGE, SKY, GREEN, BLUE, RED, PINK, GREY = (
    "#222222", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "#888888",
)  # fmt: skip
STYLES = {
    "OFUL": (BLACK, "-"),
    "LinUCB": (BLACK, "-"),
    "LinUCB row by row": (BLACK, "--"),
    "Popularity": (GREY, "-"),
    "Random": (GREY, (0, (1, 1.2))),
    "LinTS": (GREY, "--"),
    "SOFUL": (ORANGE, "-"),
    "SOFUL-TS": (ORANGE, "--"),
    "CBSCFD": (RED, "-"),
    "CBRAP": (PINK, "-"),
    "DBSLinUCB": (BLUE, "-"),
    "DBSLinUCB-RFD": (SKY, "-"),
    "PSILinUCB": (GREEN, "-"),
    "PSILinUCB-C": (GREEN, "--"),
    "HvtUCB": (BLUE, "-"),
    "HeavyOFUL": (ORANGE, "-"),
    "CRTM": (RED, "-"),
    "CRMM": (GREEN, "-"),
    "MENU": (PINK, "-"),
    "TOFU": (SKY, "-"),
    "GPUCB": (BLACK, "-"),
    "exact GP": (BLACK, "-"),
    "GP-TS": (ORANGE, "-"),
    "BKB": (BLUE, "-"),
    "BKB every round": (SKY, "-"),
    "BKB-TS": (PINK, "-"),
    "GPUCB fitted": (RED, "-"),
    "BKB fitted": (GREEN, "-"),
    "subset of regressors": (RED, "-"),
    "constant": (GREY, "-"),
    "repeat the last label": (GREY, (0, (1, 1.2))),
    "RBP": (PINK, (0, (1, 1.2))),
    "BPA-S": (PINK, "--"),
    "Projectron": (SKY, "--"),
    "Projectron++": (SKY, (0, (1, 1.2))),
    "BOGD": (PINK, "-"),
    "FOGD": (ORANGE, "-"),
    "NOGD": (SKY, "-"),
    "SkeGD": (ORANGE, "--"),
    "PROS-N-KONS": (RED, "-"),
    "PROS-N-KONS capped at 100": (RED, "--"),
    "PROS-N-KONS without resets": (RED, (0, (1, 1.2))),
    "KOGD": (BLACK, "-"),
    "FORKS": (BLUE, "-"),
    "FORKS 100/50/30": (BLUE, "--"),
    "FORKS 100/100/50": (BLUE, (0, (1, 1.2))),
    "KernelNewton": (GREEN, "-"),
    "KernelNewton Fourier 400": (GREEN, "--"),
    "KernelNewton FD 30": (GREEN, (0, (1, 1.2))),
    "TISVD": (BLUE, "-"),
    "full SVD": (BLACK, "-"),
    "randomized SVD": (ORANGE, "-"),
    "HvtUCB FD": (ORANGE, "-"),
    "HvtUCB RFD": (RED, "-"),
    "HvtUCB dyadic FD": (SKY, "-"),
    "HvtUCB dyadic RFD": (PINK, "-"),
    "HvtUCB PSI": (GREEN, "-"),
    "FD": (ORANGE, "-"),
    "FD size=50": (ORANGE, "-"),
    "RFD": (RED, "-"),
    "RFD half": (RED, "--"),
    "PSI": (GREEN, "-"),
    "PSI compensated": (GREEN, "--"),
}
SPARE = (BLUE, SKY, PINK, GREEN, RED, ORANGE, GREY, BLACK)
DASHES = ("-", (0, (1, 1.2)), (0, (5, 1.5)), (0, (4, 1.5, 1, 1.5)))
LOOK: Any = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#666666",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.8,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "figure.dpi": 150,
}


def draw(figure: Figure, rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """The picture of the rows."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    with mpl.rc_context(LOOK):
        picture = figure.draw(rows, curves)
        FigureCanvasAgg(picture).draw()
    return picture


def canvas(width: float, height: float) -> Picture:
    """An empty picture, in inches; `canvas(12, 5).subplots(1, 2)` gives its panels."""
    from matplotlib.figure import Figure as Empty

    return Empty(figsize=(width, height), layout="constrained")


def sample(**look: Any) -> Any:
    """A line for the legend alone."""
    from matplotlib.lines import Line2D

    return Line2D([], [], **look)


def styles(rows: Sequence[Row], key: str) -> dict[str, dict[str, Any]]:
    """Colour by group, dashes by the label's place within it, for every `key` ("policy" or "group") of the rows."""
    groups = by(rows, group_of)
    spare = iter(SPARE * len(groups))
    found: dict[str, dict[str, Any]] = {}
    for group, own in groups.items():
        color, dash = STYLES.get(group) or (next(spare), "-")
        for i, name in enumerate(by(own, lambda row: row[key])):
            found[name] = {"color": color, "linestyle": dash if i == 0 else DASHES[i % len(DASHES)]}
    return found


def title(figure: Picture, rows: Sequence[Row], what: str) -> None:
    seeds = len({row["seed"] for row in rows})
    figure.suptitle(
        f"{rows[0]['experiment']}: {what}, {seeds} seed{'s' if seeds > 1 else ''}",
        x=0.01,
        ha="left",
        fontsize=13,
        fontweight="bold",
    )


def legend(figure: Picture, handles: Sequence[Any], labels: Sequence[str]) -> None:
    figure.legend(handles, labels, loc="outside right center", handlelength=2.6)


def wide_range(values: Sequence[float]) -> bool:
    return min(values) > 0 and max(values) > 4 * min(values)


def regret_panel(axes: Any, curves: Sequence[Row], looks: dict[str, dict[str, Any]]) -> tuple[list[Any], list[str]]:
    """Draw regret over rounds with a band of one standard error; returns the legend, the largest regret first."""
    ends = {
        label: band(axes, own, "round", "cumulative_regret", looks[label], label)
        for label, own in by(curves, policy_of).items()
    }
    axes.set(title="cumulative regret, mean and standard error", xlabel="round")
    axes.set_xlim(left=0)
    if wide_range(list(ends.values())):
        logarithmic(axes, "y")
        axes.set_ylim(bottom=max(1.0, axes.get_ylim()[0]))
    else:
        axes.set_ylim(bottom=0)
    handles, labels = axes.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda i: -ends[labels[i]])
    return [handles[i] for i in order], [labels[i] for i in order]


def band(axes: Any, rows: Sequence[Row], x: str, y: str, look: dict[str, Any], label: str) -> float:
    """Draw the mean of y over seeds against x with one standard error to both sides; returns the last mean."""
    points = sorted(by(rows, lambda row: row[x]).items())
    xs = [point for point, _ in points]
    means = [fmean(row[y] for row in own) for _, own in points]
    axes.plot(xs, means, label=label, **look)
    if len(points[0][1]) > 1:
        errors = [standard_error([row[y] for row in own]) for _, own in points]
        low, high = [m - e for m, e in zip(means, errors)], [m + e for m, e in zip(means, errors)]
        axes.fill_between(xs, low, high, color=look["color"], alpha=0.12, linewidth=0)
    return means[-1]


def logarithmic(axes: Any, which: str) -> None:
    """Log scale with plain numbers: 1, 2 and 5 in every decade, or the decades alone where there are many."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for name in which:
        getattr(axes, f"set_{name}scale")("log")
        low, high = getattr(axes, f"get_{name}lim")()
        axis = getattr(axes, f"{name}axis")
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 500 * low else (1.0,)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axis.set_minor_formatter(NullFormatter())


def bars(axes: Any, rows: Sequence[Row], value: str, unit: float, name: str, looks: dict[str, dict[str, Any]]) -> None:
    """One horizontal bar per policy, with its figure written beside it."""
    means = {label: fmean(row[value] for row in own) / unit for label, own in by(rows, policy_of).items()}
    labels = list(means)
    drawn = axes.barh(
        labels,
        list(means.values()),
        color=[looks[label]["color"] for label in labels],
        height=0.62,
        hatch=["" if looks[label]["linestyle"] == "-" else "////" for label in labels],
        edgecolor="white",
        linewidth=0,
    )
    axes.bar_label(drawn, [f"{v:,.1f}" if v < 10 else f"{v:,.0f}" for v in means.values()], padding=3, fontsize=9)
    axes.invert_yaxis()
    axes.margins(x=0.28)
    axes.set_title(name)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    axes.locator_params(axis="x", nbins=3)


def draw_over_reg(rows: Sequence[Row], y: str, name: str, what: str, x: str = "reg", also: str = "reg") -> Picture:
    """Mean of y over reg (or x, `also` where a policy calls it so), both on log axes.

    Without bands, since the same seeds stand behind every point.
    """
    figure = canvas(8.5, 5)
    axes = figure.subplots()
    looks = styles(rows, "group")
    for group, own in by(rows, group_of).items():
        values = by(own, lambda row: row["params"].get(x, row["params"].get(also)))
        points = sorted((value, fmean(row[y] for row in same)) for value, same in values.items())
        axes.plot(*zip(*points), label=group, marker="o", markersize=4, **looks[group])
    logarithmic(axes, "xy")
    axes.set(xlabel=x, ylabel=name)
    legend(figure, *axes.get_legend_handles_labels())
    title(figure, rows, what)
    return figure
