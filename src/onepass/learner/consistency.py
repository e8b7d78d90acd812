"""Checks shared by the learners for states read from files: no index of compiled code may lie outside its array.

Arrays must have the shapes, and scalars the values, of a new state (`has_same_layout`). Each learner's own `fits`
checks the parts that may differ. Arrays and counters are named by paths, such as ``sketching.buffer.used``.
"""

from typing import Any

import numpy as np

from onepass.foundation.state import has_same_layout
from onepass.learner.sketching import draw_landmarks


def budget_fits(learner: Any, s: Any, begun: Any) -> bool:
    return (
        has_same_layout(s, begun, ("budget.used", "turn"))
        and 0 <= s.budget.used <= s.budget.weights.size
        and getattr(s, "turn", 0) >= 0
    )


def growing_budget_fits(learner: Any, s: Any, begun: Any) -> bool:
    room = s.budget.weights.size
    return (
        has_same_layout(s, begun, ("budget.points", "budget.weights", "budget.kernel_values", "budget.used"))
        and room >= 1
        and s.budget.points.shape == (room, learner.dim)
        and s.budget.kernel_values.shape == (room,)
        and 0 <= s.budget.used <= room
    )


def buffer_fits(buffer: Any, mapped: bool) -> bool:
    """Return True if the counters of a buffer of first examples, read from a file, are valid.

    `mapped` is True if a feature map has replaced the buffer, which happens when it is full. So a buffer must be full
    if `mapped` is True, and otherwise have free room.
    """
    return 0 <= buffer.used <= buffer.weights.size and mapped == (buffer.used == buffer.weights.size)


def sketch_fits(sketch: Any, dim: int) -> bool:
    """Return True if the arrays of a sketched Nystrom map that grow have consistent shapes, for rows of width `dim`."""
    size, rank = sketch.pp.shape[0], sketch.features.z.shape[1]
    return (
        sketch.points.shape == (max(len(sketch.points), 1), dim)
        and 0 <= sketch.used <= len(sketch.points)
        and sketch.values.ndim == 1
        and sketch.values.size <= rank
        and sketch.vectors.shape == (sketch.values.size, size)
    )


GROWING = tuple(f"sketching.sketch.{name}" for name in ("points", "vectors", "values", "used"))
COUNTED = tuple(f"sketching.{name}" for name in ("buffer.used", "mapped"))


def sketching_fits(learner: Any, s: Any, begun: Any) -> bool:
    found = s.sketching
    return (
        has_same_layout(s, begun, GROWING + COUNTED)
        and buffer_fits(found.buffer, found.mapped)
        and np.array_equal(found.landmark_indices, draw_landmarks(learner.params))
        and found.schedule.counts.min() >= 0
        and sketch_fits(found.sketch, learner.dim)
    )


def landmarks_fit(landmarks: Any, dim: int, size: int, rank: int) -> bool:
    count = landmarks.near.size
    shapes = landmarks.points.shape == (count, dim) and landmarks.z.shape == (count, rank)
    return 1 <= count <= size and shapes and landmarks.precision > 0.0
