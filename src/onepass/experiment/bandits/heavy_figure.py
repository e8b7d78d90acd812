"""Table and picture under heavy tails: the few seeds that fail are shown beside the mean that hangs on them."""

from collections.abc import Sequence
from statistics import fmean, median

import numpy as np

from onepass.experiment.drawing import canvas, legend, logarithmic, styles, title, wide_range
from onepass.experiment.figure import Figure, Line, Picture, Row
from onepass.experiment.tables import by, cost, extent, policy_of


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


def draw_heavy(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Mean regret over rounds with a band from the 10% to the 90% quantile; seconds against rounds on log axes."""
    figure = canvas(12, 4.8)
    regret, seconds = figure.subplots(1, 2, width_ratios=[1.4, 1])
    looks, ends = styles(rows, "policy"), {}
    for label, own in by(curves, policy_of).items():
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


HEAVY = Figure("heavy", heavy_lines, draw_heavy)
