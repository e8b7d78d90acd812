"""Table and picture under heavy tails: the few seeds that fail are shown beside the mean that hangs on them."""

from collections.abc import Sequence
from statistics import fmean, median

import numpy as np

from onepass.lab.drawing import canvas, from_zero, logarithmic, plot, title
from onepass.lab.figure import Figure, Line, Picture, Row
from onepass.lab.looks import styles
from onepass.lab.tables import by, cost, extent, policy_of


def heavy_lines(rows: Sequence[Row]) -> list[Line]:
    """One line per policy: means hang on the few seeds that fail, so median and 90% quantile stand beside them."""
    lines = []
    for label, own in by(rows, policy_of).items():
        regrets = [row["cumulative_regret"] for row in own]
        low, high = bootstrap(regrets)
        lines.append(
            {
                "policy": label,
                "mean regret": f"{fmean(regrets):,.1f}",
                "95% interval": f"{low:,.1f} to {high:,.1f}" if len(regrets) > 1 else "",
                "median": f"{median(regrets):,.1f}",
                "90% quantile": f"{np.quantile(regrets, 0.9):,.1f}",
                **cost(own),
                **extent(own),
            }
        )
    return lines


def bootstrap(values: Sequence[float], samples: int = 10_000) -> tuple[float, float]:
    """The bootstrap's 95% interval of the mean (percentiles of the means of resamples), the same in every call."""
    drawn = np.random.default_rng(0).integers(len(values), size=(samples, len(values)))
    low, high = np.quantile(np.asarray(values)[drawn].mean(axis=1), (0.025, 0.975))
    return float(low), float(high)


def tenths(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean between the 10% and the 90% quantile."""
    low, high = np.quantile(values, (0.1, 0.9))
    return float(low), fmean(values), float(high)


def draw_heavy(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Mean regret over rounds with the 10% and the 90% quantile; seconds against rounds on log axes."""
    figure = canvas(8.5, 7.2)
    axes = figure.subplot_mosaic([["regret"], ["seconds"]], height_ratios=[1.4, 1])
    looks = styles(rows, "policy")
    from_zero(axes["regret"], plot(axes["regret"], curves, "cumulative_regret", looks, sides=tenths))
    axes["regret"].set(title="cumulative regret, mean and 10% to 90% quantile", xlabel="round")
    plot(axes["seconds"], curves, "seconds", looks, sides=lambda values: (0.0, fmean(values), 0.0))
    axes["seconds"].set(title="seconds", xlabel="round")
    logarithmic(axes["seconds"], "xy")
    axes["seconds"].margins(x=0)
    title(figure, rows, f"{rows[0]['rounds']:,} rounds")
    return figure


HEAVY = Figure("heavy", heavy_lines, draw_heavy)
