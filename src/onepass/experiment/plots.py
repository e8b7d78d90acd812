"""Pictures of results: one function per figure, one legend each, colours safe for the colour-blind (Okabe and Ito)."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import isfinite, log
from statistics import fmean
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from onepass.experiment.results import Row
from onepass.experiment.tables import by, standard_error
from onepass.experiment.tuning import mean_regrets

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


def draw(rows: Sequence[Row], curves: Sequence[Row]) -> Figure:
    """The figure that belongs to the rows."""
    with mpl.rc_context(LOOK):
        figure = FIGURES.get(rows[0]["figure"], draw_regret)(rows, curves)
        FigureCanvasAgg(figure).draw()
    return figure


def styles(rows: Sequence[Row], key: str) -> dict[str, dict[str, Any]]:
    """Colour by group, dashes by the label's place within it, for every `key` ("policy" or "group") of the rows."""
    groups = by(rows, lambda row: row["group"])
    spare = iter(SPARE * len(groups))
    found: dict[str, dict[str, Any]] = {}
    for group, own in groups.items():
        color, dash = STYLES.get(group) or (next(spare), "-")
        for i, name in enumerate(by(own, lambda row: row[key])):
            found[name] = {"color": color, "linestyle": dash if i == 0 else DASHES[i % len(DASHES)]}
    return found


def title(figure: Figure, rows: Sequence[Row], what: str) -> None:
    seeds = len({row["seed"] for row in rows})
    figure.suptitle(
        f"{rows[0]['experiment']}: {what}, {seeds} seed{'s' if seeds > 1 else ''}",
        x=0.01,
        ha="left",
        fontsize=13,
        fontweight="bold",
    )


def wide_range(values: Sequence[float]) -> bool:
    return min(values) > 0 and max(values) > 4 * min(values)


def draw_regret(rows: Sequence[Row], curves: Sequence[Row], bound: bool = False) -> Figure:
    """Regret over rounds with a band of one standard error; time a round and memory as bars."""
    figure = Figure(figsize=(16 if bound else 12, 4.8), layout="constrained")
    axes = figure.subplots(1, 4 if bound else 3, width_ratios=[2, 1.5, 0.8, 0.8] if bound else [2, 0.8, 0.8])
    looks = styles(rows, "policy")
    handles, labels = regret_panel(axes[0], curves, looks)
    if bound:
        for label, own in by(curves, lambda row: row["policy"]).items():
            growth(axes[1], own, looks[label])
        axes[1].axhline(1 / 3, color=GREY, linewidth=1)
        axes[1].text(axes[1].get_xlim()[1], 1 / 3, "1/3", ha="right", va="bottom", color="#555555")
        axes[1].set(title="log(error bound) / log(round)", xlabel="round")
    bars(axes[-2], rows, "microseconds_per_round", 1.0, "microseconds a round", looks)
    bars(axes[-1], rows, "memory_bytes", 1000.0, "memory, kB", looks)
    axes[-1].tick_params(labelleft=False)
    legend(figure, handles, labels)
    title(figure, rows, f"{rows[0]['rounds']:,} rounds")
    return figure


def regret_panel(axes: Axes, curves: Sequence[Row], looks: dict[str, dict[str, Any]]) -> tuple[list[Any], list[str]]:
    """Draw regret over rounds with a band of one standard error; returns the legend, the largest regret first."""
    ends = {
        label: band(axes, own, "round", "cumulative_regret", looks[label], label)
        for label, own in by(curves, lambda row: row["policy"]).items()
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


def legend(figure: Figure, handles: Sequence[Any], labels: Sequence[str]) -> None:
    figure.legend(handles, labels, loc="outside right center", handlelength=2.6)


def band(axes: Axes, rows: Sequence[Row], x: str, y: str, look: dict[str, Any], label: str) -> float:
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


def logarithmic(axes: Axes, which: str) -> None:
    """Log scale with plain numbers: 1, 2 and 5 in every decade, or the decades alone where there are many."""
    for name in which:
        getattr(axes, f"set_{name}scale")("log")
        low, high = getattr(axes, f"get_{name}lim")()
        axis = getattr(axes, f"{name}axis")
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 500 * low else (1.0,)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axis.set_minor_formatter(NullFormatter())


def growth(axes: Axes, rows: Sequence[Row], look: dict[str, Any]) -> None:
    """log(error bound) / log(round), where there is an error above 1 (Wen, Yin et al. figure 1 c)."""
    known = [
        {"round": row["round"], "growth": log(row["error_bound"]) / log(row["round"]), "seed": row["seed"]}
        for row in rows
        if isfinite(row["error_bound"]) and row["error_bound"] > 1
    ]
    if known:
        band(axes, known, "round", "growth", look, "")


def bars(axes: Axes, rows: Sequence[Row], value: str, unit: float, name: str, looks: dict[str, dict[str, Any]]) -> None:
    """One horizontal bar per policy, with its figure written beside it."""
    means = {label: fmean(row[value] for row in own) / unit for label, own in by(rows, lambda r: r["policy"]).items()}
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


def draw_bound(rows: Sequence[Row], curves: Sequence[Row]) -> Figure:
    """As `draw_regret`, with the growth of the certified error beside t^(1/3) (Wen, Yin et al. figure 1)."""
    return draw_regret(rows, curves, bound=True)


def draw_heavy(rows: Sequence[Row], curves: Sequence[Row]) -> Figure:
    """Mean regret over rounds with a band from the 10% to the 90% quantile; seconds against rounds on log axes."""
    figure = Figure(figsize=(12, 4.8), layout="constrained")
    regret, seconds = figure.subplots(1, 2, width_ratios=[1.4, 1])
    looks, ends = styles(rows, "policy"), {}
    for label, own in by(curves, lambda row: row["policy"]).items():
        points = sorted(by(own, lambda row: row["round"]).items())
        xs = [x for x, _ in points]
        values = [[row["cumulative_regret"] for row in same] for _, same in points]
        means = [fmean(same) for same in values]
        regret.plot(xs, means, label=label, **looks[label])
        if len(values[0]) > 1:
            low, high = np.array([np.quantile(same, (0.1, 0.9)) for same in values]).T
            regret.fill_between(xs, low, high, color=looks[label]["color"], alpha=0.1, linewidth=0)
        seconds.plot(xs, [fmean(row["seconds"] for row in same) for _, same in points], **looks[label])
        ends[label] = means[-1]
    regret.set(title="cumulative regret, mean and 10% to 90% quantile", xlabel="round")
    regret.set_xlim(left=0)
    if wide_range(list(ends.values())):
        logarithmic(regret, "y")
        regret.set_ylim(bottom=max(1.0, regret.get_ylim()[0]))
    else:
        regret.set_ylim(bottom=0)
    seconds.set(title="seconds", xlabel="round")
    logarithmic(seconds, "xy")
    handles, labels = regret.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda i: -ends[labels[i]])
    legend(figure, [handles[i] for i in order], [labels[i] for i in order])
    title(figure, rows, f"{rows[0]['rounds']:,} rounds")
    return figure


def draw_kernel(rows: Sequence[Row], curves: Sequence[Row]) -> Figure:
    """Regret, dictionary beside effective dimension, and time, all over rounds; memory as bars."""
    figure = Figure(figsize=(18, 4.8), layout="constrained")
    regret, held, pace, memory = figure.subplots(1, 4, width_ratios=[1.5, 1.2, 1.2, 0.7])
    looks = styles(rows, "policy")
    dashed: dict[str, Any] = {"linestyle": (0, (4, 2)), "linewidth": 1.2}
    handles, labels = regret_panel(regret, curves, looks)
    for label, own in by(curves, lambda row: row["policy"]).items():
        if own[0]["dictionary_size"] is not None:
            band(held, own, "round", "dictionary_size", looks[label], "")
            band(held, own, "round", "effective_dimension", {**looks[label], **dashed}, "")
        band(pace, paces(own), "round", "microseconds", looks[label], "")
    held.set(title="dictionary, dashed effective dimension", xlabel="round")
    held.set_xlim(left=0)
    held.set_ylim(bottom=0)
    pace.set(title="microseconds a round", xlabel="round")
    pace.set_xlim(left=0)
    logarithmic(pace, "y")
    bars(memory, rows, "memory_bytes", 1000.0, "memory, kB", looks)
    legend(figure, [*handles, Line2D([], [], color=GREY, **dashed)], [*labels, "effective dimension"])
    title(figure, rows, f"{rows[0]['rounds']:,} rounds")
    return figure


def paces(curves: Sequence[Row]) -> list[Row]:
    """The rows of one policy with the microseconds a round since the checkpoint before."""
    found = []
    for own in by(curves, lambda row: row["seed"]).values():
        for before, after in pairwise([{"round": 0, "seconds": 0.0}, *sorted(own, key=lambda row: row["round"])]):
            seconds, rounds = after["seconds"] - before["seconds"], after["round"] - before["round"]
            found.append({**after, "microseconds": 1e6 * seconds / rounds})
    return found


def draw_starvation(rows: Sequence[Row], curves: Sequence[Row]) -> Figure:
    """The first seed's f and what each policy believes, mean and 3 deviations: a row per number of evaluations."""
    first = [row for row in curves if row["seed"] == curves[0]["seed"]]
    times, columns = by(first, lambda row: row["round"]), by(first, lambda row: row["policy"])
    figure = Figure(figsize=(2.0 + 4.0 * len(columns), 0.8 + 2.4 * len(times)), layout="constrained")
    panels = figure.subplots(len(times), len(columns), sharex=True, sharey=True, squeeze=False)
    looks = styles(rows, "policy")
    for axes, row in zip(panels.ravel(), (row for own in times.values() for row in own)):
        x, mean, deviation = (np.asarray(row[name]) for name in ("x", "mean", "deviation"))
        look = looks[row["policy"]]
        axes.fill_between(x, mean - 3 * deviation, mean + 3 * deviation, color=look["color"], alpha=0.2, linewidth=0)
        axes.plot(x, mean, label=row["policy"], **look)
        axes.plot(x, row["function"], color=GREY, linestyle=(0, (4, 1.5)), linewidth=1.4)
        axes.plot(row["evaluated"], row["values"], ".", color=BLACK, markersize=3, alpha=0.6)
        if row["recipe"] != "GPUCB":
            ground = axes.get_xaxis_transform()
            axes.plot(row["dictionary"], [0.03] * len(row["dictionary"]), "|", color=look["color"], transform=ground)
    for axes, label in zip(panels[0], columns):
        axes.set_title(label)
    for axes, evaluations in zip(panels[:, 0], times):
        axes.set_ylabel(f"{evaluations} evaluations")
    handles, labels = [Line2D([], [], **looks[label]) for label in columns], [f"{label}, 3 sd" for label in columns]
    handles += [
        Line2D([], [], color=GREY, linestyle=(0, (4, 1.5)), linewidth=1.4),
        Line2D([], [], color=BLACK, marker=".", linewidth=0),
        Line2D([], [], color=GREY, marker="|", linewidth=0),
    ]
    legend(figure, handles, [*labels, "f", "evaluation", "dictionary"])
    title(figure, first, "f and what is believed of it")
    return figure


def percent(rows: Sequence[Row]) -> list[Row]:
    return [{**row, "percent": 100.0 * row["mistake_rate"]} for row in rows]


def draw_learner(rows: Sequence[Row], curves: Sequence[Row]) -> Figure:
    """Mistake rate over examples, and at the end against seconds."""
    figure = Figure(figsize=(13, 5.2), layout="constrained")
    rates, seconds = figure.subplots(1, 2, sharey=True)
    looks = styles(rows, "policy")
    for label, own in by(percent(curves), lambda row: row["policy"]).items():
        band(rates, own, "round", "percent", looks[label], label)
    rates.set(xlabel="examples", ylabel="mistakes so far, %")
    against_seconds(seconds, rows, "policy", looks)
    ends = [fmean(row["percent"] for row in own) for own in by(percent(rows), lambda row: row["policy"]).values()]
    rates.set_ylim(0.8 * min(ends), 1.25 * max(ends))
    legend(figure, *rates.get_legend_handles_labels())
    title(figure, rows, f"{rows[0]['rounds']:,} examples, every one counted")
    return figure


def against_seconds(axes: Axes, rows: Sequence[Row], key: str, looks: dict[str, dict[str, Any]]) -> None:
    """Mistakes in % against seconds, joined within a `key`; left out is what took no time to speak of."""
    for name, own in by(percent(rows), lambda row: row[key]).items():
        points = [
            (fmean(row["seconds"] for row in same), fmean(row["percent"] for row in same))
            for same in by(own, lambda row: row["policy"]).values()
        ]
        if own[0]["recipe"] not in ("Constant", "RepeatLast"):
            axes.plot(*zip(*points), marker="o", markersize=5, **looks[name])
            if len(points) == 1:
                axes.annotate(name, points[0], xytext=(4, 4), textcoords="offset points", fontsize=7)
    logarithmic(axes, "x")
    axes.set_xlabel("seconds")


def draw_settings(parameter: str, name: str, scale: str) -> Callable[[Sequence[Row], Sequence[Row]], Figure]:
    """Mistakes and seconds against one parameter, and against each other; policies without it are levels."""

    def draw_it(rows: Sequence[Row], curves: Sequence[Row]) -> Figure:
        figure = Figure(figsize=(15, 4.8), layout="constrained")
        panels = figure.subplots(1, 3)
        looks = styles(rows, "group")
        for axes, value in zip(panels, ("percent", "seconds")):
            for group, own in by(percent(rows), lambda row: row["group"]).items():
                settings = sorted(by(own, lambda row: row["params"].get(parameter)).items()) if len(own) > 1 else []
                points = [(at, fmean(row[value] for row in same)) for at, same in settings]
                if len(points) > 1:
                    axes.plot(*zip(*points), label=group, marker="o", markersize=4, **looks[group])
                elif value == "percent" or own[0]["recipe"] not in ("Constant", "RepeatLast"):
                    axes.axhline(fmean(row[value] for row in own), label=group, **looks[group])
            axes.set_xlabel(name)
            logarithmic(axes, scale if value == "percent" else scale + "y")
        panels[0].set_ylabel("mistakes, %")
        panels[1].set_ylabel("seconds")
        against_seconds(panels[2], rows, "group", looks)
        legend(figure, *panels[0].get_legend_handles_labels())
        title(figure, rows, f"{rows[0]['rounds']:,} examples, every one counted")
        return figure

    return draw_it


def draw_decomposition(rows: Sequence[Row], curves: Sequence[Row]) -> Figure:
    """Relative spectral error and seconds over updates (Wen, Zhang et al. figure 4)."""
    figure = Figure(figsize=(12, 4.8), layout="constrained")
    looks = styles(rows, "policy")
    panels = figure.subplots(1, 2)
    for axes, (value, name) in zip(panels, (("spectral_error", "||M - M~|| / ||M||"), ("seconds", "seconds"))):
        for label, own in by(curves, lambda row: row["policy"]).items():
            band(axes, own, "round", value, looks[label], label)
        logarithmic(axes, "y")
        axes.set(xlabel="updates", ylabel=name)
    legend(figure, *panels[0].get_legend_handles_labels())
    title(figure, rows, "decompositions of the sketch")
    return figure


def draw_pareto(rows: Sequence[Row], curves: Sequence[Row]) -> Figure:
    """Mean regret against time and memory; lines join the settings that no other of their group beats (Wen, Yin et al.
    figure 3).
    """
    figure = Figure(figsize=(11, 5), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    looks = styles(rows, "group")
    costs = (("microseconds_per_round", 1.0, "microseconds a round"), ("memory_bytes", 1000.0, "memory, kB"))
    for axes, (cost, unit, name) in zip(panels, costs):
        for group, own in by(rows, lambda row: row["group"]).items():
            points = sorted(
                (fmean(row[cost] for row in same) / unit, fmean(row["cumulative_regret"] for row in same))
                for same in by(own, lambda row: row["policy"]).values()
            )
            best = frontier(points)
            beaten = [point for point in points if point not in best]
            mark = (
                {"marker": "o", "markersize": 5} if len(points) > 1 else {"marker": "*", "markersize": 13, "zorder": 4}
            )
            axes.plot(*zip(*best), label=group, **mark, **looks[group])
            if beaten:
                axes.plot(*zip(*beaten), "o", markersize=4, color=looks[group]["color"], alpha=0.3, linewidth=0)
        logarithmic(axes, "xy")
        axes.set_xlabel(name)
    panels[0].set_ylabel("cumulative regret")
    legend(figure, *panels[0].get_legend_handles_labels())
    title(figure, rows, f"regret and its price after {rows[0]['rounds']:,} rounds")
    return figure


def frontier(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points, sorted by cost, whose regret is below that of every cheaper one."""
    best: list[tuple[float, float]] = []
    for point in points:
        if not best or point[1] < best[-1][1]:
            best.append(point)
    return best


def draw_over_reg(rows: Sequence[Row], y: str, name: str, what: str, x: str = "reg") -> Figure:
    """Mean of y over reg (or x), both on log axes; without bands, since the same seeds stand behind every point."""
    figure = Figure(figsize=(8.5, 5), layout="constrained")
    axes = figure.subplots()
    looks = styles(rows, "group")
    for group, own in by(rows, lambda row: row["group"]).items():
        values = by(own, lambda row: row["params"][x])
        points = sorted((value, fmean(row[y] for row in same)) for value, same in values.items())
        axes.plot(*zip(*points), label=group, marker="o", markersize=4, **looks[group])
    logarithmic(axes, "xy")
    axes.set(xlabel=x, ylabel=name)
    legend(figure, *axes.get_legend_handles_labels())
    title(figure, rows, what)
    return figure


def draw_reg(rows: Sequence[Row], curves: Sequence[Row]) -> Figure:
    """Regret over reg."""
    return draw_over_reg(
        rows, "cumulative_regret", "cumulative regret", f"regret over reg, {rows[0]['rounds']:,} rounds"
    )


def draw_inverse(rows: Sequence[Row], curves: Sequence[Row]) -> Figure:
    """Relative error of the inverse over reg."""
    what = f"error of the inverse after {rows[0]['rounds']:,} rows"
    return draw_over_reg(rows, "inverse_error", "relative error of the inverse, spectral norm", what)


def draw_tuning(rows: Sequence[Row], curves: Sequence[Row]) -> Figure:
    """Regret over reg (width where kernels are tuned), at every value with the others that are best there."""
    axis = "width" if all("width" in row["params"] for row in rows) else "reg"
    best = set()
    for label, points in mean_regrets(rows).items():
        for value in {params.get(axis) for _, params in points}:
            best.add((label, repr(next(params for _, params in points if params.get(axis) == value))))
    kept = [row for row in rows if (row["policy"], repr(row["params"])) in best and axis in row["params"]]
    what = f"regret over {axis}, the rest at its best"
    return draw_over_reg(kept, "cumulative_regret", "cumulative regret", what, axis)


def draw_error(rows: Sequence[Row], curves: Sequence[Row]) -> Figure:
    """Spectral error along the stream, dashed its certified bound (Wen, Yin et al. figure 4)."""
    figure = Figure(figsize=(8.5, 5), layout="constrained")
    axes = figure.subplots()
    looks = styles(rows, "policy")
    for label, own in by(curves, lambda row: row["policy"]).items():
        band(axes, own, "round", "spectral_error", looks[label], label)
        known = [row for row in own if row["error_bound"] != float("inf")]
        if known:
            band(axes, known, "round", "error_bound", {**looks[label], "linestyle": (0, (2, 2)), "linewidth": 1.2}, "")
    axes.set(xlabel="rows", ylabel="spectral error")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    handles, labels = axes.get_legend_handles_labels()
    dashed = Line2D([], [], color=GREY, linestyle=(0, (2, 2)), linewidth=1.2)
    legend(figure, [*handles, dashed], [*labels, "certified bound"])
    title(figure, rows, "error of the sketch and its bound")
    return figure


def draw_recommender(rows: Sequence[Row], curves: Sequence[Row]) -> Figure:
    """Hit@10 of every step, as a share of LinUCB's up to then (Shustova et al. figure 3); time and memory as bars."""
    figure = Figure(figsize=(13, 4.8), layout="constrained")
    axes = figure.subplots(1, 3, width_ratios=[2, 0.8, 0.8])
    looks = styles(rows, "policy")
    known = [row for row in curves if row["users"] == "known"]
    totals = {label: running(own) for label, own in by(known, lambda row: row["policy"]).items()}
    base = totals.get("LinUCB")
    for label, own in totals.items():
        points = {step: hits / base[step] if base else hits / (i + 1) for i, (step, hits) in enumerate(own.items())
                  if not base or base.get(step)}  # fmt: skip
        axes[0].plot(list(points), list(points.values()), label=label, **looks[label])
    what = "Hit@10 up to the step, LinUCB = 1" if base else "Hit@10 up to the step"
    axes[0].set(title=what, xlabel="step")
    axes[0].set_ylim(bottom=0)
    whole = [row for row in rows if row["month"] == "all" and row["users"] == "known"]
    milliseconds = [{**row, "ms": 1e3 * row["decide_seconds_per_user"]} for row in whole]
    bars(axes[1], milliseconds, "ms", 1.0, "milliseconds a user", looks)
    bars(axes[2], whole, "memory_bytes", 1e6, "memory, MB", looks)
    axes[2].tick_params(labelleft=False)
    legend(figure, *axes[0].get_legend_handles_labels())
    title(figure, whole, f"{whole[0]['rounds']} steps")
    return figure


def running(rows: Sequence[Row]) -> dict[int, float]:
    """The sum of Hit@10, mean over seeds, up to every step."""
    total, found = 0.0, {}
    for step, own in sorted(by(rows, lambda row: row["round"]).items()):
        total += fmean(row["hit_at_10"] for row in own)
        found[step] = total
    return found


def draw_sweep(x: str, name: str, scale: str) -> Callable[[Sequence[Row], Sequence[Row]], Figure]:
    """Quality and costs against one column of the rows; policies without it are levels."""
    panels = (
        ("hit_at_10", 1.0, "Hit@10"),
        ("train_seconds", 1.0, "seconds to train"),
        ("decide_seconds_per_user", 1e-3, "milliseconds a user"),
        ("memory_bytes", 1e6, "memory, MB"),
    )

    def draw_it(rows: Sequence[Row], curves: Sequence[Row]) -> Figure:
        figure = Figure(figsize=(15, 4.4), layout="constrained")
        looks = styles(rows, "group")
        whole = [row for row in rows if row["month"] == "all" and row["users"] == "known"]
        for axes, (value, unit, label) in zip(figure.subplots(1, len(panels)), panels):
            for group, own in by(whole, lambda row: row["group"]).items():
                points = sorted(by([row for row in own if row[x]], lambda row: row[x]).items())
                means = [fmean(row[value] for row in same) / unit for _, same in points]
                if not points:
                    axes.axhline(fmean(row[value] for row in own) / unit, label=group, **looks[group])
                elif value == "hit_at_10":
                    errors = [fmean(row["hit_at_10_error"] for row in same) for _, same in points]
                    axes.errorbar([at for at, _ in points], means, errors, label=group, capsize=2, **looks[group])
                else:
                    axes.plot([at for at, _ in points], means, marker="o", markersize=4, label=group, **looks[group])
            logarithmic(axes, scale if value == "hit_at_10" else scale + "y")
            axes.set(title=label, xlabel=name)
            axes.tick_params(axis="x", labelsize=8)
        legend(figure, *axes.get_legend_handles_labels())
        title(figure, whole, f"against {name}")
        return figure

    return draw_it


FIGURES: dict[str, Callable[[Sequence[Row], Sequence[Row]], Figure]] = {
    "regret": draw_regret,
    "bound": draw_bound,
    "pareto": draw_pareto,
    "heavy": draw_heavy,
    "kernel": draw_kernel,
    "starvation": draw_starvation,
    "learner": draw_learner,
    "updates": draw_settings("update_every", "losses between updates of the sketch", "x"),
    "budget": draw_settings("budget", "budget", ""),
    "decomposition": draw_decomposition,
    "reg": draw_reg,
    "error": draw_error,
    "inverse": draw_inverse,
    "tuning": draw_tuning,
    "recommender": draw_recommender,
    "size": draw_sweep("size", "rank or size", "x"),
    "width": draw_sweep("context_dim", "dimension of contexts", "x"),
    "arms": draw_sweep("arms", "number of arms", "x"),
    "batch": draw_sweep("batch", "rows of an arm in a batch", "x"),
}
