"""File contents of models per arm, and the check of contents that were read."""

from typing import Any, NamedTuple

import numpy as np

from onepass.arena.arena import NONE
from onepass.arena.model_store import empty_state
from onepass.foundation import files
from onepass.foundation.state import object_array
from onepass.model.arms.arm_index import ArmIndex
from onepass.model.arms.per_arm import ArmModelsState, Disjoint, Hybrid
from onepass.model.feature_pipeline import FeaturePipeline


class SavedArmModels(NamedTuple):
    """Contents of a file of models per arm.

    Parameters
    ----------
    names : array of object
        Names of the arms.
    arm_ids : array of int
        Id of every arm's model; NONE if the arm has not learned.
    direction : array of shape (ids, d_a)
        Unit vector of each arm's v, for contexts vec(u v^T) of which arms learn only u (rank_one.py); d_a = 0
        otherwise.
    shared, store, features : Any
        States of the shared part, of the arms, and of the feature map.
    before : Any
        State with which the shared part began; () for A = reg I.
    """

    names: np.ndarray
    arm_ids: np.ndarray
    direction: np.ndarray
    shared: Any
    store: Any
    features: Any
    before: Any


def pack_state(learned: ArmModelsState, index: ArmIndex, pipeline: FeaturePipeline, before: Any) -> SavedArmModels:
    """Return everything that is written to a file; arrays are not copied.

    `learned` is the state of the models, `index` maps names of arms to ids, and `pipeline` is the feature map. `before`
    is the state with which the shared part began; () for A = reg I.
    """
    return SavedArmModels(
        names=object_array(list(index.names)),
        arm_ids=index.arm_ids,
        direction=learned.direction,
        shared=learned.shared,
        store=learned.store.to_state(),
        features=pipeline.statistics,
        before=before,
    )


def unpack_state(
    held: files.StateSource, learned: ArmModelsState, pipeline: FeaturePipeline, estimator: Disjoint | Hybrid
) -> SavedArmModels:
    """Return the contents `held` by a file or copy of models per arm; raise ValueError if they are inconsistent.

    `learned` is the state of a model that has not learned, `pipeline` its feature map, and `estimator` its estimator.
    """
    initial = SavedArmModels(
        names=object_array([]),
        arm_ids=np.zeros(0, np.int64),
        direction=learned.direction,
        shared=learned.shared,
        store=empty_state(learned.store, held.arrays),
        features=pipeline.statistics,
        before=learned.shared if any(name.startswith("before.") for name in held.arrays) else (),
    )
    return held.take(initial, lambda found: _fits(found, learned, pipeline, estimator))


def _fits(
    found: SavedArmModels, learned: ArmModelsState, pipeline: FeaturePipeline, estimator: Disjoint | Hybrid
) -> bool:
    shared: Any = estimator.shared
    taken = found.arm_ids[found.arm_ids != NONE]
    return (
        len(found.names) == len(set(found.names)) == len(found.arm_ids)
        and found.direction.shape[1:] == learned.direction.shape[1:]
        and (found.direction.shape[1] == 0 or len(found.direction) > taken.max(initial=NONE))
        and (learned.shared == () or shared.consistent(found.shared))
        and (found.before == () or shared.consistent(found.before))
        and pipeline.fits(found.features)
        and learned.store.fits(found.store, taken)
    )
