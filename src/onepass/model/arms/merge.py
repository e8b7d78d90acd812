"""Merging of models per arm, and of single arms.

An arm that only one of the two models knows is copied bit for bit; an arm of both is merged as in
arena/arm_transfer.py. In a hybrid model (per_arm.py), arm a has added to the shared design and its moment

    Z^T Z - B_a^T A_a^-1 B_a     and     Z^T r - B_a^T A_a^-1 b_a

For an arm of both, let T = B^T A^-1 B and t = B^T A^-1 b, for the two models (1, 2), the start (0), and the merged arm
(no index). The shared design and moment then change by T_1 + T_2 - T_0 - T and t_1 + t_2 - t_0 - t.
"""

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from onepass.arena.arena import NONE
from onepass.arena.model_store import check_mergeable
from onepass.design import contract as designs
from onepass.estimator import contract as estimators
from onepass.estimator.ridge import RidgeState
from onepass.foundation import state as states
from onepass.foundation.check import quote
from onepass.foundation.generic import is_registered
from onepass.model.arms.arm_index import ArmIndex
from onepass.model.arms.per_arm import ArmModelsState
from onepass.model.merge import merge_shared

PARALLEL = 1e-6  # how far the unit vectors of one arm's factor may differ, as in features/outer_product.py


class NamedModels(NamedTuple):
    """Models of a bandit's arms: `arm_index` maps names of arms to ids, and `learned` is the state of the models."""

    arm_index: ArmIndex
    learned: ArmModelsState


class MergePlan(NamedTuple):
    """Changes by which the first of two models also learns what the second has learned.

    Parameters
    ----------
    names : list
        Names of arms to make known.
    carried : list of (name, id)
        Arms to copy from the second model, with their ids there.
    changed : list of (name, id or NONE, model, direction)
        Arms that both models have, with their ids in the first model, their merged models, and the unit vectors of v
        for contexts vec(u v^T) of which arms learn only u (rank_one.py).
    shared : Any
        The merged state of the part that all arms share.
    """

    names: list[Any]
    carried: list[tuple[Any, int]]
    changed: list[tuple[Any, int, Any, np.ndarray]]
    shared: Any


def direction_of(learned: ArmModelsState, arm_id: int) -> np.ndarray:
    """Return the unit vector (d_a,) of an arm's v, for contexts vec(u v^T) of which arms learn only u (rank_one.py).

    It is zero if the arm has not learned.
    """
    width = learned.direction.shape[1]
    return learned.direction[arm_id].copy() if width and arm_id != NONE else np.zeros(width)


def align_direction(
    learned: ArmModelsState, other: ArmModelsState, arm_id: int, its: int, name: Any
) -> tuple[Any, np.ndarray]:
    """Return an arm of the other model with the sign of its factor v as in this model, and the direction of v.

    Contexts are vec(u v^T), of which arms learn only u times the signed length of v (rank_one.py). `arm_id` is the
    arm's id in this model, and `its` in the other one. Raises ValueError if the directions of v differ.
    """
    arm = other.store.export_arm(its)
    mine, theirs = direction_of(learned, arm_id), direction_of(other, its)
    if not mine.any() or not theirs.any():
        return arm, mine if mine.any() else theirs
    along = float(mine @ theirs)
    if abs(along) < 1.0 - PARALLEL:
        raise ValueError(f"other must know arm {quote(name)} by a factor of the same direction, but it has turned")
    return arm.flip_sign() if along < 0.0 else arm, mine


def is_same_arm(learned: ArmModelsState, arm_id: int, other: ArmModelsState, its: int) -> bool:
    """Return True if an arm has learned the same rows in two models, where it has the ids `arm_id` and `its`."""
    return states.equal(learned.store.export_arm(arm_id), other.store.export_arm(its))


def iter_changed_arms(
    mine: NamedModels, its: NamedModels, since: NamedModels | None
) -> Iterator[tuple[Any, int, int, int]]:
    """Yield the arms that the models `its` have learned from since their start `since`.

    Each arm is given by its name and by its ids in `mine`, `its` and `since`, NONE in models without the arm.
    """
    for name, arm_id in zip(its.arm_index.names, its.arm_index.arm_ids.tolist(), strict=True):
        before = NONE if since is None else since.arm_index.find(name)
        if arm_id == NONE:
            continue
        if since is None or before == NONE or not is_same_arm(its.learned, arm_id, since.learned, before):
            yield name, mine.arm_index.find(name), arm_id, before


def plan_arm_merge(
    mine: NamedModels, its: NamedModels, since: NamedModels | None, estimator: Any, shared: Any
) -> MergePlan:
    """Return the changes by which the models `mine` learn what the arms of `its` have learned; nothing changes yet.

    Both began as `since`; None means that they began without rows. `estimator` is the `Disjoint` or `Hybrid` of both,
    and `shared` the merged state of the shared part, () for disjoint models.
    """
    store, found = mine.learned.store, list(iter_changed_arms(mine, its, since))
    carried = [(name, arm_id) for name, own, arm_id, before in found if own == before == NONE]
    both = [entry for entry in found if not entry[1] == entry[3] == NONE]
    if both:
        check_mergeable(
            estimator.arms, store.export_arm(NONE), shared != () or any(before != NONE for *_, before in both)
        )
    changed, corrections = [], []
    for name, own, arm_id, before in both:
        arm, direction = align_direction(mine.learned, its.learned, own, arm_id, name)
        first, start = store.export_arm(own), store.export_arm(NONE)
        if before != NONE and since is not None:
            if since.learned.store.export_arm(before).rows > arm.rows:
                raise ValueError(
                    f"since must be the bandit that both were copied from: other has learned fewer rows of arm "
                    f"{quote(name)} than since"
                )
            start, _ = align_direction(mine.learned, since.learned, own, before, name)
        union = first.merge(arm, start, estimator.arms)
        changed.append((name, own, union, direction))
        if shared != ():
            signs = ((1.0, first), (1.0, arm), (-1.0, start), (-1.0, union))
            corrections += [tuple(sign * term for term in part.schur_complement()) for sign, part in signs]
    if corrections:
        shared = correct_shared(shared, corrections)
    return MergePlan(names=list(its.arm_index.names), carried=carried, changed=changed, shared=shared)


def plan_merge(
    mine: NamedModels, its: NamedModels, since: NamedModels | None, estimator: Any, before: Any
) -> MergePlan:
    """Return the changes by which the models `mine` learn what `its` have learned, the shared part included.

    Both began as `since`. If it is None, `before` is the initial state of the shared part. `estimator` is the
    `Disjoint` or `Hybrid` of both.
    """
    shared: Any = mine.learned.shared
    if shared != ():
        start = () if since is None else since.learned.shared
        shared = merge_shared(estimator.shared, before, shared, its.learned.shared, start)
    return plan_arm_merge(mine, its, since, estimator, shared)


def correct_shared(shared: Any, corrections: list[Any]) -> Any:
    """Return the shared state of a hybrid model with corrections added to its design matrix A and its moment b.

    `corrections` holds pairs (T, t) of a matrix T that is added to A, and a vector t that is added to b. Raises
    ValueError unless the design is exact, and TypeError unless the estimator is ridge regression, which has a moment b.
    """
    if not isinstance(shared, RidgeState):
        raise estimators.path_dependence_error(
            f"{type(shared).__name__.removesuffix('State')} beside arms that both know"
        )
    if not is_registered(designs.add_matrix, shared.design):
        raise designs.removal_error(shared.design)
    change, gain = (sum(terms) for terms in zip(*corrections, strict=True))
    kind = shared.moment.dtype
    design = designs.add_matrix(shared.design, np.asarray(change, kind))
    return shared._replace(design=design, moment=shared.moment + np.asarray(gain, kind))


def apply_merge(mine: NamedModels, its: ArmModelsState, union: MergePlan) -> ArmModelsState:
    """Change the models `mine` by the planned changes `union`, and return the merged models.

    `its` is the state of the other models, from which arms are copied.
    """
    store, index = mine.learned.store, mine.arm_index
    directions = []
    index.add_names(union.names)
    carried = ((name, NONE, its.store.export_arm(arm_id), direction_of(its, arm_id)) for name, arm_id in union.carried)
    for name, own, arm, direction in itertools.chain(carried, union.changed):
        if own == NONE:
            own = store.allocate()
            index.assign(name, own)
        store.write_arm(own, arm)
        directions.append((own, direction))
    return mine.learned._replace(shared=union.shared, direction=set_directions(mine.learned.direction, directions))


def set_directions(held: np.ndarray, directions: list[tuple[int, np.ndarray]]) -> np.ndarray:
    """Return the arms' unit vectors `held` (ids, d_a) with new values for some ids.

    `directions` lists pairs (id, vector). The result has more rows if an id is larger than before.
    """
    if not held.shape[1] or not directions:
        return held
    last = max(arm_id for arm_id, _ in directions)
    out = np.zeros((max(len(held), last + 1), held.shape[1]))
    out[: len(held)] = held
    for arm_id, direction in directions:
        out[arm_id] = direction
    return out
