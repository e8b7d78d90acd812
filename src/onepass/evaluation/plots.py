"""Plots of evaluations, comparisons and learning curves, as PNG, PDF or SVG.

matplotlib is imported with the first plot. The colours are those of Okabe and Ito, which colour-blind readers can tell
apart.
"""

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from onepass.evaluation.comparison import Comparison
from onepass.evaluation.evaluate import Evaluation
from onepass.foundation.curve_labels import arrange_labels, label_curve

HEIGHT, WIDTH = 0.45, 7.0  # inches: of a row, of a picture
DOTS = 150  # an inch
BLUE, ORANGE, GREEN, RED, PINK, SKY, GREY, BLACK = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#888888", "#222222",
)  # fmt: skip
SEVERAL = (BLUE, ORANGE, GREEN, RED, PINK, SKY, GREY, BLACK)
DASHES = ("-", "--", ":", "-.")


def _make_figure() -> tuple[Any, Any]:
    """Return an empty figure and its axes. Raises ModuleNotFoundError with the package to install."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "pictures need matplotlib: pip install onepass[experiment]", name="matplotlib"
        ) from None
    figure = Figure(figsize=(WIDTH, 4.0), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _save_figure(figure: Any, path: str | Path) -> Path:
    """Save a figure and return its path."""
    figure.savefig(path, dpi=DOTS)
    return Path(path)


def plot_values(found: Mapping[str, Evaluation], path: str | Path) -> Path:
    """Plot values of policies, their limits that hold at any time, and the mean reward of the logger.

    `found` maps names to evaluations; refused ones show their limits only. The ending of `path` selects the file type.
    """
    figure, axes = _make_figure()
    figure.set_figheight(1.2 + HEIGHT * len(found))
    for place, one in enumerate(found.values()):
        axes.plot(one.limits, [place, place], color=GREY if one.value is None else BLUE, linewidth=2)
        if one.value is not None:
            axes.plot(one.value, place, "o", color=BLUE)
    logged = next(iter(found.values())).logged
    axes.axvline(logged, color="black", linestyle=":")
    axes.annotate(
        "logged", (logged, 1.0), (0, 3), xycoords=axes.get_xaxis_transform(), textcoords="offset points", ha="center"
    )
    axes.set_yticks(
        range(len(found)), [name if one.value is not None else f"{name} (refused)" for name, one in found.items()]
    )
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.set_xlabel("reward a decision")
    return _save_figure(figure, path)


def plot_differences(comparison: Comparison, path: str | Path) -> Path:
    """Plot gains of candidates over the present policy, with their limits.

    The ending of `path` selects the file type.
    """
    figure, axes = _make_figure()
    figure.set_figheight(1.2 + HEIGHT * len(comparison.differences))
    for place, one in enumerate(comparison.differences):
        color = BLUE if one.better else GREY
        axes.plot(one.limits, [place, place], color=color, linewidth=2)
        axes.plot(one.gain, place, "o", color=color)
    axes.axvline(0.0, color="black", linestyle=":")
    axes.set_yticks(range(len(comparison.differences)), [one.name for one in comparison.differences])
    axes.set_ylim(len(comparison.differences) - 0.5, -0.5)
    axes.set_xlabel("gain over the present policy, a decision")
    return _save_figure(figure, path)


def plot_curves(found: Mapping[str, np.ndarray], path: str | Path) -> Path:
    """Plot learning curves (points, 2) by name: mean w r over all rows so far.

    The ending of `path` selects the file type.
    """
    figure, axes = _make_figure()
    for (dash, color), (name, curve) in zip(product(DASHES, SEVERAL), found.items()):
        so_far = np.cumsum(curve[:, 1] * np.diff(curve[:, 0], prepend=0.0)) / curve[:, 0]
        axes.plot(curve[:, 0], so_far, color=color, linestyle=dash)
        label_curve(axes, name, (float(curve[-1, 0]), float(so_far[-1])), color)
    axes.set_xlabel("decisions")
    axes.set_ylabel("reward a decision so far")
    arrange_labels(figure)
    return _save_figure(figure, path)
