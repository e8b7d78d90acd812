"""Whether a learner's state that was read from a file fits: nothing that compiled code indexes by lies outside.

Arrays have the shapes, and scalars the values, of a state that has just begun; what differs is named here and has rules
of its own. Places of arrays and counters are paths as in onepass.foundation.state, like ``sketching.first.used``.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from onepass.features.landmarks import Landmarks
from onepass.foundation.state import leaves
from onepass.learner.bogd import BOGDState
from onepass.learner.bpas import BPASState
from onepass.learner.fogd import FOGDState
from onepass.learner.forks import FORKSState
from onepass.learner.kernel_newton import KernelNewtonState
from onepass.learner.kogd import KOGDState
from onepass.learner.nogd import NOGDState
from onepass.learner.projectron import ProjectronState
from onepass.learner.pros_n_kons import PROSNKONSState
from onepass.learner.rbp import RBPState
from onepass.learner.skegd import SkeGDState


def finite(state: Any) -> bool:
    """Whether all of its numbers are."""
    return all(bool(np.isfinite(value).all()) for _, value in leaves(state))


def as_begun(state: Any, begun: Any, besides: tuple[str, ...] = ()) -> bool:
    """Whether shapes and scalars are those of a state that has just begun, but for leaves whose path begins so."""
    return all(
        path.startswith(besides) or (value.shape == other.shape if isinstance(other, np.ndarray) else value == other)
        for (path, value), (_, other) in zip(leaves(state), leaves(begun), strict=True)
    )


def _on_a_budget(learner: Any, s: Any, begun: Any) -> bool:
    return (
        as_begun(s, begun, ("budget.used", "turn"))
        and 0 <= s.budget.used <= s.budget.weights.size
        and getattr(s, "turn", 0) >= 0
    )


def _kogd(learner: Any, s: Any, begun: Any) -> bool:
    room = s.budget.weights.size
    return (
        as_begun(s, begun, ("budget.points", "budget.weights", "budget.near", "budget.used"))
        and room >= 1
        and s.budget.points.shape == (room, learner.dim)
        and s.budget.near.shape == (room,)
        and 0 <= s.budget.used <= room
    )


def _fixed(learner: Any, s: Any, begun: Any) -> bool:
    return as_begun(s, begun)


def _buffered(first: Any, mapped: bool) -> bool:
    """A buffer is turned into a map as soon as it is full."""
    return 0 <= first.used <= first.weights.size and mapped == (first.used == first.weights.size)


def _nogd(learner: Any, s: Any, begun: Any) -> bool:
    return as_begun(s, begun, ("first.used", "mapped")) and _buffered(s.first, s.mapped)


def _sketch(sketch: Any, dim: int) -> bool:
    """The parts of a sketched Nystrom map that grow."""
    size, rank = sketch.pp.shape[0], sketch.features.z.shape[1]
    return (
        sketch.points.shape == (max(len(sketch.points), 1), dim)
        and 0 <= sketch.used <= len(sketch.points)
        and sketch.values.ndim == 1
        and sketch.values.size <= rank
        and sketch.vectors.shape == (sketch.values.size, size)
    )


GROWING = tuple(f"sketching.sketch.{name}" for name in ("points", "vectors", "values", "used"))
COUNTED = tuple(f"sketching.{name}" for name in ("first.used", "mapped"))


def _sketching(learner: Any, s: Any, begun: Any) -> bool:
    found = s.sketching
    return (
        as_begun(s, begun, GROWING + COUNTED)
        and _buffered(found.first, found.mapped)
        and np.array_equal(found.places, begun.sketching.places)
        and found.clock.tally.min() >= 0
        and _sketch(found.sketch, learner.dim)
    )


DICTIONARY = ("points", "scales", "whitening", "ridge", "near", "phi", "scaled", "half", "used")
STEP = ("newton.w", "newton.root", "newton.v", "newton.u")


def _pros_n_kons(learner: Any, s: Any, begun: Any) -> bool:
    d, room = s.dictionary, s.dictionary.scales.size
    flat = (d.near, d.phi, d.scaled, d.half, s.newton.w, s.newton.v, s.newton.u)
    return (
        as_begun(s, begun, (*(f"dictionary.{name}" for name in DICTIONARY), *STEP, "turn"))
        and room >= 1
        and d.points.shape == (room, learner.dim)
        and all(array.shape == (room,) for array in flat)
        and all(array.shape == (room, room) for array in (d.whitening, d.ridge, s.newton.root))
        and 0 <= d.used <= (min(room, s.most) if s.most else room)
        and s.turn >= 0
    )


def _landmarks(landmarks: Landmarks, dim: int, size: int, rank: int) -> bool:
    count = landmarks.near.size
    return 1 <= count <= size and landmarks.points.shape == (count, dim) and landmarks.z.shape == (count, rank)


def _kernel_newton(learner: Any, s: Any, begun: Any) -> bool:
    p, dim, rank = learner.params, learner.dim, s.phi.size - 2
    own: tuple[str, ...] = (
        "design.", "center", "spread", "last_target", "nearness", "early", "targets", "seen",
    )  # fmt: skip
    mapped = True
    if p["features"] == "nystrom":
        own, mapped = (*own, "map."), _landmarks(s.map, dim, p["size"], rank)
    if p["features"] == "sketched":
        count = s.map.features.near.size
        own = (*own, "map.features.", "map.points", "map.pm", "map.vectors", "map.values", "map.used")
        mapped = _landmarks(s.map.features, dim, p["size"], rank) and _sketch(s.map, dim)
        mapped = mapped and s.map.pm.shape == (p["size"], count)
    kept = p["warm_up"] if s.seen < p["warm_up"] else 0
    return (
        as_begun(s, begun, own)
        and mapped
        and s.seen >= 0
        and s.spread > 0.0
        and s.early.shape == (kept, dim)
        and s.targets.shape == (kept,)
        and learner.design.consistent(s.design)
    )


RULES: dict[type, Callable[[Any, Any, Any], bool]] = {
    RBPState: _on_a_budget,
    BPASState: _on_a_budget,
    BOGDState: _on_a_budget,
    ProjectronState: _on_a_budget,
    KOGDState: _kogd,
    FOGDState: _fixed,
    NOGDState: _nogd,
    SkeGDState: _sketching,
    FORKSState: _sketching,
    PROSNKONSState: _pros_n_kons,
    KernelNewtonState: _kernel_newton,
}


def consistent(learner: Any, state: Any, begun: Any) -> bool:
    """Whether a state read from a file fits this learner, whose state of the same width, just begun, is given."""
    return finite(state) and RULES.get(type(state), _fixed)(learner, state, begun)
