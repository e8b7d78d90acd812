"""Plots of evaluations, comparisons and learning curves: on Matplotlib axes, or as PNG, PDF or SVG.

`draw_` functions return axes, `plot_` functions save a file. matplotlib is imported with the first plot. The colours
are those of Okabe and Ito, which colour-blind readers can tell apart.
"""

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from onepass.foundation.curve_labels import arrange_labels, label_curve

HEIGHT, WIDTH = 0.45, 7.0  # inches: of a row, of a picture
DOTS = 150  # an inch
BLUE, ORANGE, GREEN, RED, PINK, SKY, GREY, BLACK = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#888888", "#222222",
)  # fmt: skip
SEVERAL = (BLUE, ORANGE, GREEN, RED, PINK, SKY, GREY, BLACK)
DASHES = ("-", "--", ":", "-.")


def _make_axes(height: float, shown: bool) -> Any:
    """Return empty axes of a new figure, `height` inches high; notebooks display the figure if `shown` is True.

    Raises ModuleNotFoundError, with the package to install, if matplotlib is missing.
    """
    try:
        from matplotlib import pyplot
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "pictures need matplotlib: pip install onepass[experiment]", name="matplotlib"
        ) from None
    size = (WIDTH, height)
    axes = (pyplot.figure if shown else Figure)(figsize=size, layout="constrained").add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _write_value(axes: Any, value: float, limits: Any, place: int, sign: str = "") -> None:
    """Write a value and its limits above the line that shows them; `place` is the height of the line.

    With "+" for `sign`, positive numbers are written with a plus.
    """
    text = f"{value:{sign}.4g}  ({limits[0]:{sign}.4g} to {limits[1]:{sign}.4g})"
    axes.annotate(text, (value, place), (0, 5), textcoords="offset points", ha="center", fontsize="small")


def _save_figure(axes: Any, path: str | Path) -> Path:
    """Save the figure of axes and return its path."""
    axes.figure.savefig(path, dpi=DOTS)
    return Path(path)


def draw_values(found: Mapping[str, Any], axes: Any = None) -> Any:
    """Draw the estimated values of policies with confidence limits, and the mean reward of the logging policy.

    `found` maps the names of policies to their evaluations. The limits hold at any time. An evaluation whose verdict is
    "refused", because the log cannot tell the value, is drawn without its value. The value and its limits are written
    above each line. Returns Matplotlib axes: `axes`, or new ones if it is None.
    """
    axes = _make_axes(1.2 + HEIGHT * len(found), shown=True) if axes is None else axes
    for place, one in enumerate(found.values()):
        axes.plot(one.limits, [place, place], color=GREY if one.value is None else BLUE, linewidth=2)
        if one.value is not None:
            axes.plot(one.value, place, "o", color=BLUE)
            _write_value(axes, one.value, one.limits, place)
    logged = next(iter(found.values())).logged
    axes.axvline(logged, color="black", linestyle=":")
    axes.annotate(
        f"logged {logged:.4g}", (logged, 1.0), (0, 3), xycoords=axes.get_xaxis_transform(),
        textcoords="offset points", ha="center",
    )  # fmt: skip
    axes.set_yticks(
        range(len(found)), [name if one.value is not None else f"{name} (refused)" for name, one in found.items()]
    )
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.set_xlabel("reward a decision")
    return axes


def draw_differences(comparison: Any, axes: Any = None) -> Any:
    """Draw the gains of candidates over the present policy, with confidence limits.

    `comparison` is the `Comparison` that `compare` returns.

    Thin lines are limits that hold at any time, thick lines are limits for a planned number of decisions. The gain and
    its limits are written above each line. Returns Matplotlib axes: `axes`, or new ones if it is None.
    """
    differences = comparison.differences
    axes = _make_axes(1.2 + HEIGHT * len(differences), shown=True) if axes is None else axes
    for place, one in enumerate(differences):
        color = BLUE if one.better else GREY
        axes.plot(one.limits, [place, place], color=color, linewidth=2)
        if one.fixed_sample is not None:
            axes.plot(one.fixed_sample, [place, place], color=color, linewidth=5, alpha=0.4)
        axes.plot(one.gain, place, "o", color=color)
        _write_value(axes, one.gain, one.limits, place, "+")
    axes.axvline(0.0, color="black", linestyle=":")
    axes.set_yticks(range(len(differences)), [one.name for one in differences])
    axes.set_ylim(len(differences) - 0.5, -0.5)
    axes.set_xlabel("gain over the present policy, a decision")
    return axes


def draw_curves(found: Mapping[str, np.ndarray], axes: Any = None) -> Any:
    """Draw learning curves: the mean of importance weight times reward over all rows so far.

    `found` maps names to arrays (points, 2). A point is the number of rows so far, and the mean of weight times reward
    over the rows since the point before.

    Returns Matplotlib axes: `axes`, or new ones if it is None.
    """
    axes = _make_axes(4.0, shown=True) if axes is None else axes
    for (dash, color), (name, curve) in zip(product(DASHES, SEVERAL), found.items()):
        so_far = np.cumsum(curve[:, 1] * np.diff(curve[:, 0], prepend=0.0)) / curve[:, 0]
        axes.plot(curve[:, 0], so_far, color=color, linestyle=dash)
        label_curve(axes, name, (float(curve[-1, 0]), float(so_far[-1])), color)
    axes.set_xlabel("decisions")
    axes.set_ylabel("reward a decision so far")
    arrange_labels(axes.figure)
    return axes


def plot_values(found: Mapping[str, Any], path: str | Path) -> Path:
    """Save a picture of the evaluations `found` in the file `path`, and return its path.

    `found` maps the names of policies to their evaluations. The picture shows their estimated values with limits. The
    ending of `path` selects the type of file.
    """
    return _save_figure(draw_values(found, _make_axes(1.2 + HEIGHT * len(found), shown=False)), path)


def plot_differences(comparison: Any, path: str | Path) -> Path:
    """Save a picture of a comparison in the file `path`, and return its path.

    The picture shows the gains of candidates over the present policy, with confidence limits. The ending of `path`
    selects the type of file.
    """
    axes = _make_axes(1.2 + HEIGHT * len(comparison.differences), shown=False)
    return _save_figure(draw_differences(comparison, axes), path)


def plot_curves(found: Mapping[str, np.ndarray], path: str | Path) -> Path:
    """Save a picture of learning curves in the file `path`, and return its path.

    `found` maps names to arrays (points, 2). A point is the number of rows so far, and the mean of weight times reward
    over the rows since the point before. The ending of `path` selects the type of file.
    """
    return _save_figure(draw_curves(found, _make_axes(4.0, shown=False)), path)
