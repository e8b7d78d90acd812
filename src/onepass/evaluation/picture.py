"""Pictures of evaluations, comparisons and learning curves; matplotlib is imported when one is asked for."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onepass.evaluation.comparing import Comparison
from onepass.evaluation.evaluate import Evaluation

HEIGHT, WIDTH = 0.45, 7.0  # inches: of a row, of a picture
DOTS = 150  # an inch


def drawn() -> tuple[Any, Any]:
    """An empty picture and its axes; ModuleNotFoundError says what to install."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "pictures need matplotlib: pip install onepass[experiment]", name="matplotlib"
        ) from None
    figure = Figure(figsize=(WIDTH, 4.0), layout="constrained")
    return figure, figure.add_subplot()


def kept(figure: Any, path: str | Path) -> Path:
    """Save a picture; returns where."""
    figure.savefig(path, dpi=DOTS)
    return Path(path)


def values(found: Mapping[str, Evaluation], path: str | Path) -> Path:
    """Values of policies, their limits that hold at any time, and the mean reward of the logger.

    found: evaluations by name; refused ones show their limits only. path: of the file, whose ending says its kind.
    """
    figure, axes = drawn()
    figure.set_figheight(1.2 + HEIGHT * len(found))
    for place, one in enumerate(found.values()):
        axes.plot(one.limits, [place, place], color="tab:gray" if one.value is None else "tab:blue", linewidth=2)
        if one.value is not None:
            axes.plot(one.value, place, "o", color="tab:blue")
    axes.axvline(next(iter(found.values())).logged, color="black", linestyle=":", label="logged")
    axes.set_yticks(
        range(len(found)), [name if one.value is not None else f"{name} (refused)" for name, one in found.items()]
    )
    axes.invert_yaxis()
    axes.set_xlabel("reward a decision")
    axes.legend(frameon=False)
    return kept(figure, path)


def differences(comparison: Comparison, path: str | Path) -> Path:
    """Gains of candidates over the present policy, and their limits. path: of the file, whose ending says its kind."""
    figure, axes = drawn()
    figure.set_figheight(1.2 + HEIGHT * len(comparison.differences))
    for place, one in enumerate(comparison.differences):
        color = "tab:green" if one.better else "tab:gray"
        axes.plot(one.limits, [place, place], color=color, linewidth=2)
        axes.plot(one.gain, place, "o", color=color)
    axes.axvline(0.0, color="black", linestyle=":")
    axes.set_yticks(range(len(comparison.differences)), [one.name for one in comparison.differences])
    axes.invert_yaxis()
    axes.set_xlabel("gain over the present policy, a decision")
    return kept(figure, path)


def curves(found: Mapping[str, np.ndarray], path: str | Path) -> Path:
    """Learning curves (points, 2), by name: mean w r over all rows so far. path: of the file, whose ending says its
    kind."""
    figure, axes = drawn()
    for name, curve in found.items():
        rows = np.diff(curve[:, 0], prepend=0.0)
        axes.plot(curve[:, 0], np.cumsum(curve[:, 1] * rows) / curve[:, 0], label=name)
    axes.set_xlabel("decisions")
    axes.set_ylabel("reward a decision so far")
    axes.legend(frameon=False)
    return kept(figure, path)
