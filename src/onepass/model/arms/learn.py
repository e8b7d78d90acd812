"""Learning of models per arm: rows are grouped by arm, each arm learns its rows in order, and arms run in parallel."""

from collections.abc import Hashable
from typing import Any

import numpy as np

from onepass.arena.arena import NONE
from onepass.estimator.contract import update_rows
from onepass.features.outer_product import Factors, row_products
from onepass.foundation import check
from onepass.model.arms.arm_index import ArmIndex
from onepass.model.arms.per_arm import ArmModelsState
from onepass.model.arms.rank_one import directions_for, lengths_along
from onepass.model.feature_pipeline import FeaturePipeline


def allocate_arm(learned: ArmModelsState, index: ArmIndex, name: Hashable) -> tuple[ArmModelsState, int]:
    """Return the models' state with room for the arm `name`, and the arm's id; `index` is updated."""
    arm_id = index.find(name)
    if arm_id == NONE:
        arm_id = learned.store.allocate()
        index.assign(name, arm_id)
        direction = learned.direction
        if direction.shape[1] and arm_id >= len(direction):
            grown = np.zeros((arm_id + 16 + arm_id // 8, direction.shape[1]))
            grown[: len(direction)] = direction
            learned = learned._replace(direction=grown)
    return learned, arm_id


def learn(
    learned: ArmModelsState,
    index: ArmIndex,
    pipeline: FeaturePipeline,
    rows: np.ndarray,
    right: np.ndarray,
    values: np.ndarray,
    names: Any,
) -> tuple[ArmModelsState, np.ndarray]:
    """Learn rows like `learn_rows`, with the same arguments and results, but faster for a single row."""
    if len(names) > 1 or learned.shared != () or right.shape[1]:
        return learn_rows(learned, index, pipeline, rows, right, values, names)
    rows = pipeline.advance(rows)
    learned, arm_id = allocate_arm(learned, index, names[0])
    learned.store.learn_one(arm_id, rows, float(values[0]))
    return learned, rows


def check_directions(learned: ArmModelsState, index: ArmIndex, right: np.ndarray, names: list[Any]) -> None:
    """Raise ValueError, before any row is learned, if an arm's factor has another direction than before.

    `learned` is the state of models that learn only one factor (rank_one.py), and `index` maps names of arms to ids.
    right (n, d_a) are the factors of the arms `names` in n rows.
    """
    codes: dict[Hashable, int] = {}
    group = np.array([codes.setdefault(name, len(codes)) for name in names], np.int64)
    directions = directions_for(learned.direction, [index.find(name) for name in codes], group, right)
    lengths_along(directions, group, right)


def check_pairs(pipeline: FeaturePipeline, contexts: Any) -> tuple[bool, np.ndarray, np.ndarray]:
    """Check contexts that are to be learned; return True for a single context, and the contexts as two arrays.

    The arrays are rows (n, dim) and an empty array, or factors (n, d_u) and (n, d_a).
    """
    if pipeline.factors:
        return np.ndim(contexts.left if isinstance(contexts, Factors) else contexts) == 1, *pipeline.sides(
            contexts, True
        )
    single, rows = pipeline.pairs(contexts, False)
    return single, rows, np.empty((len(rows), 0), pipeline.dtype)


def check_rounds(pipeline: FeaturePipeline, contexts: Any, rewards: Any, nu: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return checked contexts (T, K or 1, dim) and rewards (T, K) of recorded rounds.

    Raises ValueError if shapes or numbers are wrong, if the feature map `pipeline` takes factors, or if `nu` is not
    None.
    """
    if pipeline.factors:
        raise ValueError("play takes full contexts, not factors; use decide and learn")
    if nu is not None:
        raise ValueError("nu must be None for models per arm: give it to the estimator, or let it be estimated")
    dim = pipeline.map.input_dim
    rows = check.array("contexts", contexts, pipeline.dtype, (3,), dim)
    check.finite_rows("contexts", rows.reshape(-1, dim))
    values = check.finite("rewards", check.array("rewards", rewards, pipeline.dtype, (2,)))
    if len(values) != len(rows) or rows.shape[1] not in (1, values.shape[1]):
        raise ValueError(f"rewards must have shape (T, K) as contexts (T, K, dim) has, got {values.shape}")
    return rows, values


def learn_rows(
    learned: ArmModelsState,
    index: ArmIndex,
    pipeline: FeaturePipeline,
    rows: np.ndarray,
    right: np.ndarray,
    values: np.ndarray,
    names: list[Any],
) -> tuple[ArmModelsState, np.ndarray]:
    """Return the models' state after learning n checked contexts, and the rows that the arms' designs have learned.

    - learned: state of the models, whose arrays may change in place.
    - index: names of arms; new names are added in place.
    - pipeline: feature map.
    - rows, right: contexts, either rows (n, dim) and an empty array (n, 0), or factors (n, d_u) and (n, d_a).
    - values (n,): rewards.
    - names: the arm of each context.

    Raises ValueError, before anything has changed, if a feature is not finite, or if an arm's factor has another
    direction than before, and the arm's model is valid for one direction only (rank_one.py).
    """
    codes: dict[Hashable, int] = {}
    group = np.array([codes.setdefault(name, len(codes)) for name in names], np.int64)
    full: Any = row_products(rows, right) if right.shape[1] and learned.shared != () else None
    if pipeline.reduced:
        known = [index.find(name) for name in codes]
        directions = directions_for(learned.direction, known, group, right)
        lengths = lengths_along(directions, group, right)
        rows, right = np.ascontiguousarray(rows * lengths[:, None]), right[:, :0].copy()
    starts = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=len(codes)))])
    order = np.argsort(group, kind="stable")
    if not pipeline.factors:
        rows = full = pipeline.advance(rows)
    extra = np.empty((len(rows), 0), rows.dtype) if learned.shared == () else full
    arm_ids = np.empty(len(codes), np.int64)
    for place, name in enumerate(codes):
        learned, arm_ids[place] = allocate_arm(learned, index, name)
    if pipeline.reduced:
        learned.direction[arm_ids] = directions
    increments, targets = learned.store.learn(arm_ids, starts, order, rows, right, values, extra)
    if learned.shared != ():
        learned = learned._replace(shared=update_rows(learned.shared, increments, targets.astype(rows.dtype)))
    return learned, rows
