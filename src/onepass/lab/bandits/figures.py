"""Tables and pictures of contextual bandits: regret, certified errors, regret over reg and against its price."""

from collections.abc import Sequence
from functools import partial
from math import isfinite, log
from statistics import fmean
from typing import Any

from onepass.lab.drawing import (
    bars,
    canvas,
    draw_over_reg,
    logarithmic,
    name_ends,
    plot,
    regret_panel,
    tall,
    title,
)
from onepass.lab.figure import Figure, Picture, Row
from onepass.lab.looks import GREY, SMALL, styles
from onepass.lab.tables import by, group_of, lines_over_reg, policy_of, regret_lines


def draw_regret(rows: Sequence[Row], curves: Sequence[Row], bound: bool = False) -> Picture:
    """Regret over rounds with one standard error; below, time a round and memory as bars."""
    places: list[Any] = [["regret"] * 2, ["growth"] * 2, ["time", "memory"]]
    heights = [4.2, 2.8, tall(rows)]
    if not bound:
        del places[1], heights[1]
    figure = canvas(8.5, 0.4 + sum(heights))
    axes = figure.subplot_mosaic(places, height_ratios=heights)
    looks = styles(rows, "policy")
    regret_panel(axes["regret"], curves, looks)
    if bound:
        growth(axes["growth"], curves, looks)
    bars(axes["time"], rows, "microseconds_per_round", 1.0, "microseconds a round", looks)
    bars(axes["memory"], rows, "memory_bytes", 1000.0, "memory, kB", looks)
    axes["memory"].tick_params(labelleft=False)
    title(figure, rows, f"{rows[0]['rounds']:,} rounds")
    return figure


def growth(axes: Any, curves: Sequence[Row], looks: dict[str, dict[str, Any]]) -> None:
    """log(error bound) / log(round), where there is an error above 1 (Wen, Yin et al. figure 1 c)."""
    known = [
        {**row, "growth": log(row["error_bound"]) / log(row["round"])}
        for row in curves
        if isfinite(row["error_bound"]) and row["error_bound"] > 1
    ]
    plot(axes, known, "growth", looks)
    axes.set_xlim(0, max(row["round"] for row in curves))
    axes.axhline(1 / 3, color=GREY, linewidth=1)
    axes.annotate("1/3", (0, 1 / 3), (4, 3), textcoords="offset points", size=SMALL)
    axes.set(title="log(error bound) / log(round)", xlabel="round")


def draw_bound(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """As `draw_regret`, with the growth of the certified error beside t^(1/3) (Wen, Yin et al. figure 1)."""
    return draw_regret(rows, curves, bound=True)


def draw_pareto(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Mean regret against time and memory; lines join the settings that no other of their group beats (Wen, Yin et al.
    figure 3).
    """
    figure = canvas(10, 4.6)
    panels = figure.subplots(1, 2, sharey=True)
    looks = styles(rows, "group")
    costs = (("microseconds_per_round", 1.0, "microseconds a round"), ("memory_bytes", 1000.0, "memory, kB"))
    for axes, (cost, unit, name) in zip(panels, costs):
        axes.set_label(cost)
        fronts = {}
        for group, own in by(rows, group_of).items():
            points = sorted(
                (fmean(row[cost] for row in same) / unit, fmean(row["cumulative_regret"] for row in same))
                for same in by(own, policy_of).values()
            )
            best = frontier(points)
            beaten = [point for point in points if point not in best]
            mark = (
                {"marker": "o", "markersize": 5} if len(points) > 1 else {"marker": "*", "markersize": 13, "zorder": 4}
            )
            axes.plot(*zip(*best), label=group, **mark, **looks[group])
            fronts[group] = [x for x, _ in best], [y for _, y in best]
            if beaten:
                axes.plot(*zip(*beaten), "o", markersize=4, color=looks[group]["color"], alpha=0.3, linewidth=0)
        logarithmic(axes, "xy")
        axes.set_xlabel(name)
        axes.set_ylabel("cumulative regret")
        axes.label_outer()
        name_ends(axes, fronts, looks)
    title(figure, rows, f"regret and its price after {rows[0]['rounds']:,} rounds")
    return figure


def frontier(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points, sorted by cost, whose regret is below that of every cheaper one."""
    best: list[tuple[float, float]] = []
    for point in points:
        if not best or point[1] < best[-1][1]:
            best.append(point)
    return best


def draw_reg(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Regret over reg."""
    return draw_over_reg(
        rows, "cumulative_regret", "cumulative regret", f"regret over reg, {rows[0]['rounds']:,} rounds"
    )


REGRET = Figure("regret", regret_lines, draw_regret)
BOUND = Figure("bound", regret_lines, draw_bound)
PARETO = Figure("pareto", regret_lines, draw_pareto)
REG = Figure("reg", partial(lines_over_reg, value="cumulative_regret", digits=",.1f"), draw_reg)
