"""Table and picture under heavy tails: a mean depends on few failing seeds, so quantiles stand beside it."""

from collections.abc import Sequence
from statistics import fmean, median

import numpy as np

from onepass.lab.drawing import canvas, plot_curves, set_log_scale, set_title, start_axes_at_zero
from onepass.lab.figure import Figure, Line, Picture, Row
from onepass.lab.line_styles import assign_styles
from onepass.lab.tables import cost_and_error_columns, group_rows, policy_label, size_columns


def _heavy_lines(rows: Sequence[Row]) -> list[Line]:
    """Return one line per policy: mean, median and 90% quantile of the regret, and costs.

    `rows` are the results of a run, as dictionaries.
    """
    lines = []
    for label, own in group_rows(rows, policy_label).items():
        regrets = [row["cumulative_regret"] for row in own]
        low, high = bootstrap_interval(regrets)
        lines.append(
            {
                "policy": label,
                "mean regret": f"{fmean(regrets):,.1f}",
                "95% interval": f"{low:,.1f} to {high:,.1f}" if len(regrets) > 1 else "",
                "median": f"{median(regrets):,.1f}",
                "90% quantile": f"{np.quantile(regrets, 0.9):,.1f}",
                **cost_and_error_columns(own),
                **size_columns(own),
            }
        )
    return lines


def bootstrap_interval(values: Sequence[float], samples: int = 10_000) -> tuple[float, float]:
    """Return the lower and upper limit of a 95% bootstrap interval of the mean of `values`, by the percentile method.

    The `samples` resamples are the same in every call.
    """
    drawn = np.random.default_rng(0).integers(len(values), size=(samples, len(values)))
    low, high = np.quantile(np.asarray(values)[drawn].mean(axis=1), (0.025, 0.975))
    return float(low), float(high)


def _decile_band(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the 10% quantile, the mean and the 90% quantile of the values."""
    low, high = np.quantile(values, (0.1, 0.9))
    return float(low), fmean(values), float(high)


def _draw_heavy(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Draw mean regret with the 10% and 90% quantiles over rounds, and seconds over rounds on log axes.

    `rows` are the results at the end of a run, and `curves` the results over rounds, as dictionaries.
    """
    figure = canvas(8.5, 7.2)
    axes = figure.subplot_mosaic([["regret"], ["seconds"]], height_ratios=[1.4, 1])
    styles = assign_styles(rows, "policy")
    start_axes_at_zero(
        axes["regret"], plot_curves(axes["regret"], curves, "cumulative_regret", styles, band=_decile_band)
    )
    axes["regret"].set(title="cumulative regret, mean and 10% to 90% quantile", xlabel="round")
    plot_curves(axes["seconds"], curves, "seconds", styles, band=lambda values: (0.0, fmean(values), 0.0))
    axes["seconds"].set(title="seconds", xlabel="round")
    set_log_scale(axes["seconds"], "xy")
    axes["seconds"].margins(x=0)
    set_title(figure, rows, f"{rows[0]['rounds']:,} rounds")
    return figure


HEAVY = Figure("heavy", _heavy_lines, _draw_heavy)
