"""Table and picture of kernel bandits: regret relative to exact GP-UCB, dictionaries, and time."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

from onepass.lab.drawing import canvas, draw_bars, draw_regret_panel, plot_curves, set_log_scale, set_title
from onepass.lab.figure import Figure, Line, Picture, Row
from onepass.lab.line_styles import assign_styles
from onepass.lab.tables import cost_columns, group_rows, mean_cell, policy_label, size_columns, standard_error


def kernel_lines(rows: Sequence[Row]) -> list[Line]:
    """Return the table of kernel bandits as one line per policy: regret, dictionary size and costs.

    `rows` are the results of a run, as dictionaries. A policy's regret is divided by the regret of exact GP-UCB for
    every seed, and the ratios are averaged.
    """
    exact = {row["seed"]: row["cumulative_regret"] for row in rows if row["policy"] == "GPUCB"}
    lines = []
    for label, own in group_rows(rows, policy_label).items():
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
                **cost_columns(own),
                **size_columns(own),
            }
        )
    return lines


def _draw_kernel(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Draw regret, dictionary size with effective dimension, and time over rounds; memory is drawn as bars.

    `rows` are the results at the end of a run, and `curves` the results over rounds, as dictionaries.
    """
    figure = canvas(10, 7.6)
    axes = figure.subplot_mosaic([["regret", "dictionary"], ["time", "memory"]])
    styles = assign_styles(rows, "policy")
    draw_regret_panel(axes["regret"], curves, styles)
    held = [row for row in curves if row["dictionary_size"] is not None]
    if held:
        plot_curves(axes["dictionary"], held, "dictionary_size", styles)
        plot_curves(
            axes["dictionary"],
            held,
            "effective_dimension",
            styles,
            show_names=False,
            linestyle=(0, (4, 2)),
            linewidth=1.2,
        )
    axes["dictionary"].set(title="dictionary; dashed: effective dimension", xlabel="round")
    spent = [row for own in group_rows(curves, policy_label).values() for row in _round_times(own)]
    plot_curves(axes["time"], spent, "microseconds", styles, band=_mean_only)
    axes["time"].set(title="microseconds a round", xlabel="round")
    for name in ("dictionary", "time"):
        axes[name].set_xlim(0, max(row["round"] for row in curves))
    axes["dictionary"].set_ylim(bottom=0)
    set_log_scale(axes["time"], "y")
    draw_bars(axes["memory"], rows, "memory_bytes", 1000.0, "memory, kB", styles)
    set_title(figure, rows, f"{rows[0]['rounds']:,} rounds")
    return figure


def _mean_only(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean of values three times, as lower limit, middle and upper limit of a band of width zero."""
    mean = fmean(values)
    return mean, mean, mean


def _round_times(curves: Sequence[Row]) -> list[Row]:
    """Return the rows of one policy with the microseconds per round since the checkpoint before.

    `curves` are the policy's results over rounds, one dictionary for each seed and checkpoint.
    """
    found = []
    for own in group_rows(curves, lambda row: row["seed"]).values():
        for before, after in pairwise([{"round": 0, "seconds": 0.0}, *sorted(own, key=lambda row: row["round"])]):
            seconds, rounds = after["seconds"] - before["seconds"], after["round"] - before["round"]
            found.append({**after, "microseconds": 1e6 * seconds / rounds})
    return found


KERNEL = Figure("kernel", kernel_lines, _draw_kernel)
