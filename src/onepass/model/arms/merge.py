"""Merging models per arm, and moving single arms from one model to another.

An arm that only one of the two knows is moved as it is, bit for bit; the same arm of both is united as in merge.py.
Hybrid: what arm a has given to the shared design is

    Z^T Z - B_a^T A_a^-1 B_a     and     Z^T r - B_a^T A_a^-1 b_a

so for arms of both, with T = B^T A^-1 B and t = B^T A^-1 b of each of the two (1, 2), of the start (0) and of the arm
united, the shared design and moment change by T_1 + T_2 - T_0 - T and t_1 + t_2 - t_0 - t.
"""

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from onepass.arena.arena import NONE
from onepass.arena.stores import require_merge
from onepass.design import contract as designs
from onepass.estimator import contract as estimators
from onepass.estimator.ridge import RidgeState
from onepass.foundation import state as states
from onepass.foundation.check import shown
from onepass.foundation.generic import defined
from onepass.model.arms.arm_index import ArmIndex
from onepass.model.arms.parameters import Learned
from onepass.model.merge import shared_together

PARALLEL = 1e-6  # how far the unit vectors of one arm's factor may differ, as in features/factors.py


class Arms(NamedTuple):
    """Names and models of a bandit."""

    roster: ArmIndex
    learned: Learned


class Union(NamedTuple):
    """What the first of two bandits becomes: names to meet, arms (name, record of the other one) to carry over, arms
    (name, record or NONE, model, direction) that change, and the shared state."""

    names: list[Any]
    carried: list[tuple[Any, int]]
    changed: list[tuple[Any, int, Any, np.ndarray]]
    shared: Any


def direction_of(learned: Learned, record: int) -> np.ndarray:
    """The direction of an arm whose rows were reduced, (d_a,); zeros where it has none yet."""
    width = learned.direction.shape[1]
    return learned.direction[record].copy() if width and record != NONE else np.zeros(width)


def aligned(learned: Learned, other: Learned, record: int, its: int, name: Any) -> tuple[Any, np.ndarray]:
    """The arm of the other bandit, in the direction that it has here; and that direction. ValueError if it turned."""
    arm = other.store.export(its)
    mine, theirs = direction_of(learned, record), direction_of(other, its)
    if not mine.any() or not theirs.any():
        return arm, mine if mine.any() else theirs
    along = float(mine @ theirs)
    if abs(along) < 1.0 - PARALLEL:
        raise ValueError(f"other must know arm {shown(name)} by a factor of the same direction, but it has turned")
    return arm.turned() if along < 0.0 else arm, mine


def same_arm(learned: Learned, record: int, other: Learned, its: int) -> bool:
    """Whether an arm has learned the same in two bandits."""
    return states.equal(learned.store.export(record), other.store.export(its))


def news(mine: Arms, its: Arms, since: Arms | None) -> Iterator[tuple[Any, int, int, int]]:
    """Of every arm that the other one has learned more about: its name and records here, there and at the start."""
    for name, record in zip(its.roster.names, its.roster.records.tolist(), strict=True):
        before = NONE if since is None else since.roster.record(name)
        if record == NONE:
            continue
        if since is None or before == NONE or not same_arm(its.learned, record, since.learned, before):
            yield name, mine.roster.record(name), record, before


def arms_together(mine: Arms, its: Arms, since: Arms | None, estimator: Any, shared: Any) -> Union:
    """What the union of two bandits is; nothing changes. shared: of both, their arms apart, () where disjoint."""
    store, found = mine.learned.store, list(news(mine, its, since))
    carried = [(name, record) for name, own, record, before in found if own == before == NONE]
    both = [entry for entry in found if not entry[1] == entry[3] == NONE]
    if both:
        require_merge(estimator.arms, store.export(NONE), shared != () or any(before != NONE for *_, before in both))
    changed, corrections = [], []
    for name, own, record, before in both:
        arm, direction = aligned(mine.learned, its.learned, own, record, name)
        first, start = store.export(own), store.export(NONE)
        if before != NONE and since is not None:
            start, _ = aligned(mine.learned, since.learned, own, before, name)
        union = first.united(arm, start, estimator.arms)
        changed.append((name, own, union, direction))
        if shared != ():
            signs = ((1.0, first), (1.0, arm), (-1.0, start), (-1.0, union))
            corrections += [tuple(sign * term for term in part.eliminated()) for sign, part in signs]
    if corrections:
        shared = corrected(shared, corrections)
    return Union(names=list(its.roster.names), carried=carried, changed=changed, shared=shared)


def united(mine: Arms, its: Arms, since: Arms | None, estimator: Any, before: Any) -> Union:
    """The union of two bandits' models, the shared part of hybrid ones included; before: what that knew at first."""
    shared: Any = mine.learned.shared
    if shared != ():
        start = () if since is None else since.learned.shared
        shared = shared_together(estimator.shared, before, shared, its.learned.shared, start)
    return arms_together(mine, its, since, estimator, shared)


def corrected(shared: Any, corrections: list[Any]) -> Any:
    """The shared state of a hybrid model, A and b changed by the sums of (T, t). ValueError unless it is exact,
    TypeError unless it is ridge regression, which has a b."""
    if not isinstance(shared, RidgeState):
        raise estimators.path_dependent(f"{type(shared).__name__.removesuffix('State')} beside arms that both know")
    if not defined(designs.adjusted, shared.design):
        raise designs.not_removable(shared.design)
    change, gain = (sum(terms) for terms in zip(*corrections, strict=True))
    kind = shared.moment.dtype
    design = designs.adjusted(shared.design, np.asarray(change, kind))
    return shared._replace(design=design, moment=shared.moment + np.asarray(gain, kind))


def settled(mine: Arms, its: Learned, union: Union) -> Learned:
    """Let the first of two bandits become the union; what its models are then."""
    store, roster = mine.learned.store, mine.roster
    directions = []
    roster.meet(union.names)
    carried = ((name, NONE, its.store.export(record), direction_of(its, record)) for name, record in union.carried)
    for name, own, arm, direction in itertools.chain(carried, union.changed):
        if own == NONE:
            own = store.open()
            roster.settle(name, own)
        store.put(own, arm)
        directions.append((own, direction))
    return mine.learned._replace(shared=union.shared, direction=with_directions(mine.learned.direction, directions))


def with_directions(held: np.ndarray, directions: list[tuple[int, np.ndarray]]) -> np.ndarray:
    """The directions (records, d_a), with those of some records."""
    if not held.shape[1] or not directions:
        return held
    last = max(record for record, _ in directions)
    out = np.zeros((max(len(held), last + 1), held.shape[1]))
    out[: len(held)] = held
    for record, direction in directions:
        out[record] = direction
    return out
