"""Means and widths of models per arm, for contexts that are one row for all arms, a row for each arm, or factors."""

from collections.abc import Callable
from typing import Any

import numpy as np

from onepass.design import contract
from onepass.estimator.contract import parameter
from onepass.exploration.contract import ArmStatistics
from onepass.exploration.residual_scale import Tally, residual
from onepass.exploration.rule import Rule
from onepass.exploration.statistics import statistics
from onepass.features.outer_product import Factors
from onepass.model.arms.per_arm import ArmModelsState
from onepass.model.arms.rank_one import lengths_along
from onepass.model.feature_pipeline import FeaturePipeline, split_sides


def evaluate(
    learned: ArmModelsState, pipeline: FeaturePipeline, contexts: Any, arm_ids: np.ndarray
) -> tuple[bool, np.ndarray, np.ndarray, list[np.ndarray]]:
    """Return True for a single decision, predictions (n, K), x^T A^-1 x (n, K), and the rows of the shared part.

    `learned` is the state of the models, `pipeline` the feature map, and `contexts` the contexts of n decisions. The
    arms have the ids `arm_ids` (K,), and A is an arm's design. The last item is a list of n arrays of rows (K, k) for
    the shared part of a hybrid model.
    """
    store, shared, count = learned.store, learned.shared, len(arm_ids)
    if isinstance(contexts, Factors):
        left, right = pipeline.sides(contexts, False)
        single = np.ndim(contexts.left) == 1
        if len(right) != count or len(left) == 0:
            raise ValueError(f"contexts.right must have one row per arm ({count}), got {len(right)}")
        lengths = (
            lengths_along(learned.direction, arm_ids, right) if pipeline.reduced else np.ones(count, pipeline.dtype)
        )
        if shared == () and pipeline.factors:
            if pipeline.reduced:
                means, squares = store.evaluate_users(arm_ids, left)
                return single, means * lengths, squares * lengths**2, []
            return single, *store.evaluate_users(arm_ids, left, right), []
        each = []
        for user in left:
            full = pipeline.transform_pairs(user, right)
            each.append(evaluate_rows(learned, arm_ids, lengths[:, None] * user if pipeline.reduced else full, full))
    else:
        rows = pipeline.rows(contexts, (1, 2, 3))
        single, listed = rows.ndim < 3, rows.ndim == 2
        rows = rows.reshape(1, -1, pipeline.map.input_dim) if single else rows
        if rows.shape[1] != count and (rows.shape[1] != 1 or listed):
            raise ValueError(f"contexts must have one row, or one per arm ({count}), got shape {np.shape(contexts)}")
        full = pipeline.transform(rows)
        if pipeline.reduced:
            each = [evaluate_reduced_rows(learned, pipeline, arm_ids, x, z) for x, z in zip(rows, full, strict=True)]
        elif full.shape[1] == 1 and shared == ():
            return single, *store.evaluate_users(arm_ids, np.ascontiguousarray(full[:, 0])), []
        else:
            each = [evaluate_rows(learned, arm_ids, request, None) for request in full]
    columns = list(zip(*each, strict=True))
    return single, np.stack(columns[0]), np.stack(columns[1]), [] if shared == () else list(columns[2])


def evaluate_rows(
    learned: ArmModelsState, arm_ids: np.ndarray, rows: np.ndarray, extra: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return predictions (K,) and x^T A^-1 x (K,) of arms for rows x, and rows (K, k) of the shared part.

    A is an arm's design. `learned` is the state of the models, `arm_ids` (K,) are the arms' ids, and `rows` is (K,
    width), or (1, width) for all arms. Only a hybrid model has a shared part: its rows are computed from `extra` (K,
    k), or from `rows` if that is None.
    """
    if learned.shared == ():
        extra = np.empty((len(arm_ids), 0), rows.dtype)
    elif extra is None:
        extra = np.array(np.broadcast_to(rows, (len(arm_ids), rows.shape[1])), order="C")
    return learned.store.evaluate(arm_ids, np.ascontiguousarray(rows), extra)


def evaluate_reduced_rows(
    learned: ArmModelsState, pipeline: FeaturePipeline, arm_ids: np.ndarray, rows: np.ndarray, full: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return predictions (K,), x^T A^-1 x (K,) and rows (K, k) of the shared part, for arms that learn only a factor.

    Contexts are vec(u v^T), of which such an arm learns only u, times the signed length of v (rank_one.py). `learned`
    is the state of the models, `pipeline` the feature map, and `arm_ids` (K,) are the arms' ids. `rows` (K or 1, dim)
    holds the rows (u, v), and `full` their features vec(u v^T) for the shared part of a hybrid model. A is an arm's
    design.
    """
    left, right = split_sides(pipeline.map, rows)
    right = np.ascontiguousarray(np.broadcast_to(right, (len(arm_ids), right.shape[1])))
    lengths = lengths_along(learned.direction, arm_ids, right)
    extra = np.array(np.broadcast_to(full, (len(arm_ids), full.shape[1])), order="C")
    return evaluate_rows(learned, arm_ids, lengths[:, None] * left, extra)


def arm_statistics(
    learned: ArmModelsState,
    explores: Rule,
    tally: Tally,
    rounds: int,
    arm_ids: np.ndarray,
    means: np.ndarray,
    squares: np.ndarray,
    rows: np.ndarray | None,
    normals: np.ndarray,
) -> ArmStatistics:
    """Return the means, widths and draws of K arms that the exploration rule `explores` needs.

    - learned, arm_ids (K,): state of the models, and ids of the arms.
    - tally, rounds: sums of squared residuals, and number of rewards learned.
    - means (K,): predictions.
    - squares (K,): x^T A_a^-1 x for the design A_a of each arm a.
    - rows (K, k): rows of the shared part of a hybrid model, which adds its prediction to the means; None without it.
    - normals (pairs, K and more): standard normal numbers, one for each arm, then those of the shared part. Arms share
      no data, so draws from N(theta_a, A_a^-1) are independent, and one number for each arm is enough.
    """
    shared, count, wanted = learned.shared, len(arm_ids), explores.strength
    widths, shifts = np.sqrt(np.maximum(squares, 0.0)), normals
    if len(normals):
        shifts = normals[:, :count] * widths
    if rows is not None:
        means = means + rows @ parameter(shared)
        if explores.widths:
            widths = np.sqrt(np.maximum(squares + contract.inverse_quadratic(shared.design, rows), 0.0))
        if len(normals):
            shifts = shifts + contract.roots(shared.design, normals[:, count:].astype(rows.dtype)) @ rows.T
    beta = learned.store.exploration_scales(arm_ids, wanted.theory)
    return statistics(explores, means, widths, beta * wanted.scale, shifts, residual(tally), rounds)


def reward_residuals(
    learned: ArmModelsState,
    pipeline: FeaturePipeline,
    contexts: Any,
    values: np.ndarray,
    names: list[Any],
    record_of: Callable[[Any], int],
    expected: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """Return the rewards `values` (n,) minus their predicted means, for n contexts and the arms `names`.

    `learned` is the state of the models, and `pipeline` the feature map. `expected` is a function that turns scores x^T
    theta into means; scores of a hybrid model are means already. `record_of` is a function that maps a name to an arm's
    id.
    """
    if isinstance(contexts, Factors):
        contexts = np.hstack([np.atleast_2d(contexts.left), np.atleast_2d(contexts.right)])
    rows, out = pipeline.rows(contexts, (1, 2)).reshape(-1, pipeline.map.input_dim), values.astype(np.float64)
    places: dict[Any, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(name, []).append(place)
    for name, own in places.items():
        arm_id = np.array([record_of(name)])
        _, means, _, adjusted = evaluate(learned, pipeline, np.ascontiguousarray(rows[own][:, None]), arm_id)
        out[own] -= expected(means[:, 0])
        for place, z in zip(own, adjusted, strict=False):
            out[place] -= float(z[0] @ parameter(learned.shared))
    return out


def parameter_of(learned: ArmModelsState, pipeline: FeaturePipeline, arm_id: int, width: int) -> np.ndarray:
    """Return the parameter theta_a (width,) of the arm with the id `arm_id`, or beta + theta_a in a hybrid model.

    beta is the parameter of the part that all arms share. `width` is the number of features of a row, and `pipeline`
    makes the rows. Raises ValueError in a hybrid model whose contexts are factors.
    """
    shared = learned.shared
    if shared == ():
        return learned.store.export_arm(arm_id).parameter()
    if pipeline.factors:
        raise ValueError("parameter_of is defined for hybrid parameters of rows only, not of factors")
    each = [evaluate_rows(learned, np.array([arm_id]), row[None], None) for row in np.eye(width, dtype=pipeline.dtype)]
    return np.array([mean[0] + rows[0] @ parameter(shared) for mean, _, rows in each], pipeline.dtype)


def models_of(learned: ArmModelsState, arm_ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the parameters theta_a (K, width) and inverse designs A_a^-1 (K, width, width) of the arms with these ids.

    Raises ValueError in a hybrid model.
    """
    if learned.shared != ():
        raise ValueError("models_of is not defined for hybrid models: their widths are those of two models")
    arms = [learned.store.export_arm(arm_id) for arm_id in arm_ids.tolist()]
    return np.stack([arm.parameter() for arm in arms]), np.stack([arm.inverse() for arm in arms])
