"""Table and picture of kernel bandits: regret beside exact GP-UCB's, dictionaries, and time."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

from onepass.experiment.drawing import (
    GREY,
    band,
    bars,
    canvas,
    legend,
    logarithmic,
    regret_panel,
    sample,
    styles,
    title,
)
from onepass.experiment.figure import Figure, Line, Picture, Row
from onepass.experiment.tables import by, extent, mean_cell, policy_of, price, standard_error


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
    figure = canvas(18, 4.8)
    regret, held, pace, memory = figure.subplots(1, 4, width_ratios=[1.5, 1.2, 1.2, 0.7])
    looks = styles(rows, "policy")
    dashed: dict[str, Any] = {"linestyle": (0, (4, 2)), "linewidth": 1.2}
    handles, labels = regret_panel(regret, curves, looks)
    for label, own in by(curves, policy_of).items():
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
    legend(figure, [*handles, sample(color=GREY, **dashed)], [*labels, "effective dimension"])
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


KERNEL = Figure("kernel", kernel_lines, draw_kernel)
