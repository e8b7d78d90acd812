"""Table and picture of kernel bandits: regret beside exact GP-UCB's, dictionaries, and time."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

from onepass.lab.drawing import bars, canvas, logarithmic, plot, regret_panel, title
from onepass.lab.figure import Figure, Line, Picture, Row
from onepass.lab.looks import styles
from onepass.lab.tables import by, extent, mean_cell, policy_of, price, standard_error


def kernel_lines(rows: Sequence[Row]) -> list[Line]:
    """One line per policy; the ratio to exact GP-UCB is taken seed by seed, then averaged."""
    exact = {row["seed"]: row["cumulative_regret"] for row in rows if row["policy"] == "GPUCB"}
    lines = []
    for label, own in by(rows, policy_of).items():
        regrets = [row["cumulative_regret"] for row in own]
        ratios = [row["cumulative_regret"] / exact[row["seed"]] for row in own if exact.get(row["seed"])]
        lines.append(
            {
                "policy": label,
                "mean regret": f"{fmean(regrets):,.1f}",
                "std. error": f"{standard_error(regrets):,.1f}" if len(regrets) > 1 else "",
                "ratio to GPUCB": f"{fmean(ratios):.2f}" if ratios else "",
                "simple regret": mean_cell(own, "simple_regret", ".4f"),
                "dictionary": mean_cell(own, "dictionary_size", ",.1f"),
                "effective dimension": mean_cell(own, "effective_dimension", ",.1f"),
                **price(own),
                **extent(own),
            }
        )
    return lines


def draw_kernel(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Regret, dictionary beside effective dimension, and time, all over rounds; memory as bars."""
    figure = canvas(10, 7.6)
    axes = figure.subplot_mosaic([["regret", "dictionary"], ["time", "memory"]])
    looks = styles(rows, "policy")
    regret_panel(axes["regret"], curves, looks)
    held = [row for row in curves if row["dictionary_size"] is not None]
    if held:
        plot(axes["dictionary"], held, "dictionary_size", looks)
        plot(axes["dictionary"], held, "effective_dimension", looks, named=False, linestyle=(0, (4, 2)), linewidth=1.2)
    axes["dictionary"].set(title="dictionary; dashed: effective dimension", xlabel="round")
    spent = [row for own in by(curves, policy_of).values() for row in paces(own)]
    plot(axes["time"], spent, "microseconds", looks, sides=unsure)
    axes["time"].set(title="microseconds a round", xlabel="round")
    for name in ("dictionary", "time"):
        axes[name].set_xlim(0, max(row["round"] for row in curves))
    axes["dictionary"].set_ylim(bottom=0)
    logarithmic(axes["time"], "y")
    bars(axes["memory"], rows, "memory_bytes", 1000.0, "memory, kB", looks)
    title(figure, rows, f"{rows[0]['rounds']:,} rounds")
    return figure


def unsure(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean alone."""
    mean = fmean(values)
    return mean, mean, mean


def paces(curves: Sequence[Row]) -> list[Row]:
    """The rows of one policy with the microseconds a round since the checkpoint before."""
    found = []
    for own in by(curves, lambda row: row["seed"]).values():
        for before, after in pairwise([{"round": 0, "seconds": 0.0}, *sorted(own, key=lambda row: row["round"])]):
            seconds, rounds = after["seconds"] - before["seconds"], after["round"] - before["round"]
            found.append({**after, "microseconds": 1e6 * seconds / rounds})
    return found


KERNEL = Figure("kernel", kernel_lines, draw_kernel)
