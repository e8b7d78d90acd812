"""Tables and pictures of contextual bandits: regret, certified errors, regret over reg and against its price."""

from collections.abc import Sequence
from functools import partial
from math import isfinite, log
from statistics import fmean
from typing import Any

from onepass.experiment.drawing import (
    GREY,
    band,
    bars,
    canvas,
    draw_over_reg,
    legend,
    logarithmic,
    regret_panel,
    styles,
    title,
)
from onepass.experiment.figure import Figure, Picture, Row
from onepass.experiment.tables import by, group_of, lines_over_reg, policy_of, regret_lines


def draw_regret(rows: Sequence[Row], curves: Sequence[Row], bound: bool = False) -> Picture:
    """Regret over rounds with a band of one standard error; time a round and memory as bars."""
    figure = canvas(16 if bound else 12, 4.8)
    axes = figure.subplots(1, 4 if bound else 3, width_ratios=[2, 1.5, 0.8, 0.8] if bound else [2, 0.8, 0.8])
    looks = styles(rows, "policy")
    handles, labels = regret_panel(axes[0], curves, looks)
    if bound:
        for label, own in by(curves, policy_of).items():
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


def growth(axes: Any, rows: Sequence[Row], look: dict[str, Any]) -> None:
    """log(error bound) / log(round), where there is an error above 1 (Wen, Yin et al. figure 1 c)."""
    known = [
        {"round": row["round"], "growth": log(row["error_bound"]) / log(row["round"]), "seed": row["seed"]}
        for row in rows
        if isfinite(row["error_bound"]) and row["error_bound"] > 1
    ]
    if known:
        band(axes, known, "round", "growth", look, "")


def draw_bound(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """As `draw_regret`, with the growth of the certified error beside t^(1/3) (Wen, Yin et al. figure 1)."""
    return draw_regret(rows, curves, bound=True)


def draw_pareto(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Mean regret against time and memory; lines join the settings that no other of their group beats (Wen, Yin et al.
    figure 3).
    """
    figure = canvas(11, 5)
    panels = figure.subplots(1, 2, sharey=True)
    looks = styles(rows, "group")
    costs = (("microseconds_per_round", 1.0, "microseconds a round"), ("memory_bytes", 1000.0, "memory, kB"))
    for axes, (cost, unit, name) in zip(panels, costs):
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


def draw_reg(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Regret over reg."""
    return draw_over_reg(
        rows, "cumulative_regret", "cumulative regret", f"regret over reg, {rows[0]['rounds']:,} rounds"
    )


REGRET = Figure("regret", regret_lines, draw_regret)
BOUND = Figure("bound", regret_lines, draw_bound)
PARETO = Figure("pareto", regret_lines, draw_pareto)
REG = Figure("reg", partial(lines_over_reg, value="cumulative_regret", digits=",.1f"), draw_reg)
