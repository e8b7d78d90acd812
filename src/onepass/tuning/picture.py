"""The picture of a tuner: what trials paid, the best so far, and the posterior along each setting through the best."""

from pathlib import Path
from typing import Any

import numpy as np

from onepass.tuning.space import Category, Integer, Real

WIDTH, HEIGHT = 7.0, 2.2  # inches: of a picture, of a row of panels
DOTS = 150  # an inch
BLUE, GREY = "#0072B2", "#888888"
ACROSS = 3  # panels of settings in a row
FINE = 60  # points of a curve
DEVIATIONS = 2.0  # of the band
MARGIN = 0.05  # of the range of values, above and below


def drawn(tuner: Any, path: str | Path) -> Path:
    """Save the picture; returns where. ValueError before anything was told."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "pictures need matplotlib: pip install onepass[experiment]", name="matplotlib"
        ) from None
    best = tuner.best
    told = [trial for trial in tuner.trials if trial.value is not None]
    values = np.array([trial.value for trial in told], np.float64)
    names = list(best.settings)
    rows = 1 + -(-len(names) // ACROSS)
    figure: Any = Figure(figsize=(WIDTH, HEIGHT * rows), layout="constrained")
    grid = figure.add_gridspec(rows, ACROSS)
    above = figure.add_subplot(grid[0, :])
    above.plot([trial.number for trial in told], values, ".", color=GREY)
    so_far = (np.maximum if tuner.maximize else np.minimum).accumulate(values)
    above.step([trial.number for trial in told], so_far, where="post", color=BLUE)
    above.annotate("best so far", (told[-1].number, so_far[-1]), (-4, 4), textcoords="offset points", ha="right")
    above.margins(y=0.15)  # room for the words
    above.set_xlabel("trial")
    above.set_ylabel("value")
    for place, name in enumerate(names):
        axes = figure.add_subplot(grid[1 + place // ACROSS, place % ACROSS])
        slice_of(tuner, axes, name, best.settings)
    figure.savefig(path, dpi=DOTS)
    return Path(path)


def slice_of(tuner: Any, axes: Any, name: str, settings: dict[str, Any]) -> None:
    """The posterior along one setting, the others as in `settings`, with a band of two deviations."""
    one = tuner.space.dimensions[name]
    count = int(min(one.count, FINE))
    shares = np.tile(tuner.space.shares(settings), (count, 1))
    shares[:, tuner.space.names.index(name)] = (np.arange(count) + 0.5) / count
    means, low, high = tuner.expected([tuner.space.settings(row) for row in shares], DEVIATIONS)
    told = [trial.value for trial in tuner.trials if trial.value is not None]
    margin = MARGIN * (max(told) - min(told))
    axes.set_ylim(min(told) - margin, max(told) + margin)
    values = [one.value(share) for share in shares[:, tuner.space.names.index(name)].tolist()]
    if isinstance(one, Category):
        axes.errorbar(range(count), means, [means - low, high - means], fmt="o", color=BLUE)
        axes.set_xticks(range(count), [str(value) for value in values])
    else:
        axes.fill_between(values, low, high, color=BLUE, alpha=0.2, linewidth=0)
        axes.plot(values, means, color=BLUE)
        axes.axvline(settings[name], color="black", linestyle=":")
    if isinstance(one, Real | Integer) and one.log:
        axes.set_xscale("log")
    axes.set_title(name, fontsize="medium")
