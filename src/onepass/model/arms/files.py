"""What is written of models per arm, and when what a file holds is one."""

from typing import Any, NamedTuple

import numpy as np

from onepass.arena.arena import NONE
from onepass.arena.stores import template
from onepass.foundation import files
from onepass.foundation.state import objects
from onepass.model.arms.arm_index import ArmIndex
from onepass.model.arms.parameters import Disjoint, Hybrid, Learned
from onepass.model.feature_pipeline import FeaturePipeline


class Saved(NamedTuple):
    """What is written: names, the record of each (NONE: never learned from), and all states, that of the feature map as
    far as it has learned; before: what the shared part knew before its first row, () for nothing."""

    names: np.ndarray
    records: np.ndarray
    direction: np.ndarray
    shared: Any
    store: Any
    features: Any
    before: Any


def saved(learned: Learned, roster: ArmIndex, front: FeaturePipeline, before: Any) -> Saved:
    """All of it, arrays as they are."""
    return Saved(
        names=objects(list(roster.names)),
        records=roster.records,
        direction=learned.direction,
        shared=learned.shared,
        store=learned.store.kept(),
        features=front.learned,
        before=before,
    )


def taken(held: files.Holds, learned: Learned, front: FeaturePipeline, estimator: Disjoint | Hybrid) -> Saved:
    """What a file or a copy holds; learned: as it begins. ValueError where the parts contradict each other."""
    begun = Saved(
        names=objects([]),
        records=np.zeros(0, np.int64),
        direction=learned.direction,
        shared=learned.shared,
        store=template(learned.store, held.arrays),
        features=front.learned,
        before=learned.shared if any(name.startswith("before.") for name in held.arrays) else (),
    )
    return held.take(begun, lambda found: _fits(found, learned, front, estimator))


def _fits(found: Saved, learned: Learned, front: FeaturePipeline, estimator: Disjoint | Hybrid) -> bool:
    shared: Any = estimator.shared
    taken = found.records[found.records != NONE]
    return (
        len(found.names) == len(set(found.names)) == len(found.records)
        and found.direction.shape[1:] == learned.direction.shape[1:]
        and (found.direction.shape[1] == 0 or len(found.direction) > taken.max(initial=NONE))
        and (learned.shared == () or shared.consistent(found.shared))
        and (found.before == () or shared.consistent(found.before))
        and front.fits(found.features)
        and learned.store.fits(found.store, taken)
    )
