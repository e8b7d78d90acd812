"""Tables and pictures of contextual bandits: regret, certified errors, regret over reg and against its costs."""

from collections.abc import Sequence
from functools import partial
from math import isfinite, log
from statistics import fmean
from typing import Any

from onepass.lab.drawing import (
    bar_chart_height,
    canvas,
    draw_bars,
    draw_over_reg,
    draw_regret_panel,
    name_ends,
    plot_curves,
    set_log_scale,
    set_title,
)
from onepass.lab.figure import Figure, Picture, Row
from onepass.lab.line_styles import GREY, SMALL, assign_styles
from onepass.lab.tables import group_label, group_rows, lines_over_reg, policy_label, regret_lines


def _draw_regret(rows: Sequence[Row], curves: Sequence[Row], bound: bool = False) -> Picture:
    """Draw regret over rounds with one standard error, and below it time per round and memory as bars.

    `rows` are the results at the end of a run, and `curves` the results over rounds, as dictionaries. `bound` is True
    to also draw the growth of the certified error.
    """
    places: list[Any] = [["regret"] * 2, ["growth"] * 2, ["time", "memory"]]
    heights = [4.2, 2.8, bar_chart_height(rows)]
    if not bound:
        del places[1], heights[1]
    figure = canvas(8.5, 0.4 + sum(heights))
    axes = figure.subplot_mosaic(places, height_ratios=heights)
    styles = assign_styles(rows, "policy")
    draw_regret_panel(axes["regret"], curves, styles)
    if bound:
        _draw_growth(axes["growth"], curves, styles)
    draw_bars(axes["time"], rows, "microseconds_per_round", 1.0, "microseconds a round", styles)
    draw_bars(axes["memory"], rows, "memory_bytes", 1000.0, "memory, kB", styles)
    axes["memory"].tick_params(labelleft=False)
    set_title(figure, rows, f"{rows[0]['rounds']:,} rounds")
    return figure


def _draw_growth(axes: Any, curves: Sequence[Row], styles: dict[str, dict[str, Any]]) -> None:
    """Draw log(error bound) / log(round) over rounds into the panel `axes`, where the bound exceeds 1.

    `curves` are the results over rounds. `styles` maps the name of a policy to its line style. Source: Wen, Yin et al.
    figure 1 c.
    """
    known = [
        {**row, "growth": log(row["error_bound"]) / log(row["round"])}
        for row in curves
        if isfinite(row["error_bound"]) and row["error_bound"] > 1
    ]
    plot_curves(axes, known, "growth", styles)
    axes.set_xlim(0, max(row["round"] for row in curves))
    axes.axhline(1 / 3, color=GREY, linewidth=1)
    axes.annotate("1/3", (0, 1 / 3), (4, 3), textcoords="offset points", size=SMALL)
    axes.set(title="log(error bound) / log(round)", xlabel="round")


def _draw_bound(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Draw regret, and the growth of the certified error beside t^(1/3) (Wen, Yin et al. figure 1).

    `rows` are the results at the end of a run, and `curves` the results over rounds, as dictionaries.
    """
    return _draw_regret(rows, curves, bound=True)


def draw_pareto(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Draw mean regret against time and memory; lines join the settings on the Pareto front of their group.

    `rows` are the results of a run, as dictionaries. `curves`, the results over rounds, are not used. Source: Wen, Yin
    et al. figure 3.
    """
    figure = canvas(10, 4.6)
    panels = figure.subplots(1, 2, sharey=True)
    styles = assign_styles(rows, "group")
    costs = (("microseconds_per_round", 1.0, "microseconds a round"), ("memory_bytes", 1000.0, "memory, kB"))
    for axes, (cost, unit, name) in zip(panels, costs):
        axes.set_label(cost)
        fronts = {}
        for group, own in group_rows(rows, group_label).items():
            points = sorted(
                (fmean(row[cost] for row in same) / unit, fmean(row["cumulative_regret"] for row in same))
                for same in group_rows(own, policy_label).values()
            )
            best = frontier(points)
            beaten = [point for point in points if point not in best]
            mark = (
                {"marker": "o", "markersize": 5} if len(points) > 1 else {"marker": "*", "markersize": 13, "zorder": 4}
            )
            axes.plot(*zip(*best), label=group, **mark, **styles[group])
            fronts[group] = [x for x, _ in best], [y for _, y in best]
            if beaten:
                axes.plot(*zip(*beaten), "o", markersize=4, color=styles[group]["color"], alpha=0.3, linewidth=0)
        set_log_scale(axes, "xy")
        axes.set_xlabel(name)
        axes.set_ylabel("cumulative regret")
        axes.label_outer()
        name_ends(axes, fronts, styles)
    set_title(figure, rows, f"regret and its price after {rows[0]['rounds']:,} rounds")
    return figure


def frontier(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points (cost, regret) of the Pareto front: points whose regret is below that of all cheaper points.

    `points` is sorted by cost.
    """
    best: list[tuple[float, float]] = []
    for point in points:
        if not best or point[1] < best[-1][1]:
            best.append(point)
    return best


def _draw_reg(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Draw mean regret against the ridge penalty, one curve per group of policies.

    `rows` are the results of a run, as dictionaries. `curves`, the results over rounds, are not used.
    """
    return draw_over_reg(
        rows, "cumulative_regret", "cumulative regret", f"regret over reg, {rows[0]['rounds']:,} rounds"
    )


REGRET = Figure("regret", regret_lines, _draw_regret)
BOUND = Figure("bound", regret_lines, _draw_bound)
PARETO = Figure("pareto", regret_lines, draw_pareto)
REG = Figure("reg", partial(lines_over_reg, value="cumulative_regret", digits=",.1f"), _draw_reg)
