"""Merging bandits, and moving single arms from one to another: what shards and retraining need.

    A = A_1 + A_2 - A_start,   b = b_1 + b_2 - b_start

start: what both began with, counted once: A = reg I, the rows that their design held already, or a bandit (`since`)
that both are copies of and have learned beyond. Models per arm: an arm that only one of the two knows is moved as it
is, bit for bit; the same arm of both is united as above. Hybrid: what arm a has given to the shared design is

    Z^T Z - B_a^T A_a^-1 B_a     and     Z^T r - B_a^T A_a^-1 b_a

so for arms of both, with T = B^T A^-1 B and t = B^T A^-1 b of each of the two (1, 2), of the start (0) and of the arm
united, the shared design and moment change by T_1 + T_2 - T_0 - T and t_1 + t_2 - t_0 - t.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from onepass.arena.arena import NONE
from onepass.bandit.models import Learned
from onepass.bandit.roster import Roster
from onepass.design import contract as designs
from onepass.estimator import contract as estimators
from onepass.estimator.estimator import Estimator
from onepass.estimator.ridge import RidgeState
from onepass.foundation import check
from onepass.foundation import state as states
from onepass.foundation.check import shown
from onepass.foundation.generic import defined
from onepass.foundation.registry import alike

PARALLEL = 1e-6  # how far the unit vectors of one arm's factor may differ, as in features/factors.py


def known_before(estimator: Estimator) -> Any:
    """What a bandit of this estimator begins with, if its design holds rows already; () where A = reg I."""
    if states.is_abstract() or not estimator.design.knows:
        return ()
    begun = estimator.begin()
    return () if states.equal(begun.design, estimator.design.begin()) else begun


def beginning(estimator: Estimator, before: Any) -> Any:
    """The state that a bandit began with; before: what `known_before` said then."""
    if before != ():
        return before
    return estimator.begin()._replace(design=estimator.design.begin())


class Side(NamedTuple):
    """What two bandits must share to be merged: estimator, features, what these have learned, what they began with, and
    the clock by which they forget."""

    estimator: Any
    features: Any
    moved: tuple[Any, ...]
    before: Any
    clock: Any = None


def comparable(bandit: Any, other: Any, name: str = "other") -> None:
    """TypeError for another kind of bandit."""
    if type(other) is not type(bandit):
        raise TypeError(f"{name} must be another {type(bandit).__name__}, got {check.shown(other)}")


def agree(mine: Side, its: Side, name: str = "other") -> None:
    """ValueError where rows do not mean the same to both."""
    if not alike(mine.clock, its.clock):
        raise ValueError(f"{name} must forget as this one does, by the same half_life")
    if not alike(mine.estimator, its.estimator):
        raise ValueError(f"{name} must have the estimator {shown(mine.estimator)}, got {shown(its.estimator)}")
    if not alike(mine.features, its.features):
        raise ValueError(f"{name} must have the features {shown(mine.features)}, got {shown(its.features)}")
    if not states.equal(mine.moved, its.moved):
        raise ValueError(
            f"{name} must have features that have learned the same rows: maps that moved apart have put rows into "
            "different coordinates; let the map learn before the bandits are copied, or use one that stands still"
        )
    if not states.equal(mine.before, its.before):
        raise ValueError(f"{name} must have begun with the same rows in its design")


def shared_together(estimator: Estimator, before: Any, learned: Any, other: Any, since: Any) -> Any:
    """The state of the shared model; since: what both began with, () where nobody says so. `other` is used up."""
    start = beginning(estimator, before) if since == () else since
    return estimators.merge(states.copy(learned), other, start)


# ---- models per arm ----


class Arms(NamedTuple):
    """Names and models of a bandit."""

    roster: Roster
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
    return learned.store.turned(arm) if along < 0.0 else arm, mine


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


def arms_together(mine: Arms, its: Arms, since: Arms | None, shared: Any) -> Union:
    """What the union of two bandits is; nothing changes. shared: of both, their arms apart, () where disjoint."""
    store, found = mine.learned.store, list(news(mine, its, since))
    carried = [(name, record) for name, own, record, before in found if own == before == NONE]
    both = [entry for entry in found if not entry[1] == entry[3] == NONE]
    if both:
        store.mergeable(shared != () or any(before != NONE for *_, before in both))
    changed, corrections = [], []
    for name, own, record, before in both:
        arm, direction = aligned(mine.learned, its.learned, own, record, name)
        first, start = store.export(own), store.export(NONE)
        if before != NONE and since is not None:
            start, _ = aligned(mine.learned, since.learned, own, before, name)
        union = store.united(first, arm, start)
        changed.append((name, own, union, direction))
        if shared != ():
            signs = ((1.0, first), (1.0, arm), (-1.0, start), (-1.0, union))
            corrections += [tuple(sign * term for term in store.eliminated(part)) for sign, part in signs]
    if corrections:
        shared = corrected(shared, corrections)
    return Union(names=list(its.roster.names), carried=carried, changed=changed, shared=shared)


def united(mine: Arms, its: Arms, since: Arms | None, estimator: Any, before: Any) -> Union:
    """The union of two bandits' models, the shared part of hybrid ones included; before: what that knew at first."""
    shared: Any = mine.learned.shared
    if shared != ():
        start = () if since is None else since.learned.shared
        shared = shared_together(estimator, before, shared, its.learned.shared, start)
    return arms_together(mine, its, since, shared)


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
    records = store.carry(its.store, np.array([record for _, record in union.carried], np.int64))
    for (name, record), own in zip(union.carried, records, strict=True):
        roster.settle(name, own)
        directions.append((own, direction_of(its, record)))
    for name, own, arm, direction in union.changed:
        if own == NONE:
            (own,) = store.adopt([arm])
            roster.settle(name, own)
        else:
            store.replace(own, arm)
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
