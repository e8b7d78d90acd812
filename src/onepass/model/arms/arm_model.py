"""The model of one arm as an object of its own, which is exported by one bandit, saved, and imported by another."""

from collections.abc import Hashable
from typing import Any, NamedTuple, Self, final

import numpy as np

from onepass.arena.arena import NONE
from onepass.features.feature_map import FeatureMap
from onepass.foundation import files
from onepass.foundation import state as states
from onepass.foundation.check import quote
from onepass.foundation.registry import build, savable
from onepass.model.arms.arm_index import ArmIndex
from onepass.model.arms.merge import direction_of, set_directions
from onepass.model.arms.per_arm import ArmModelsState, Disjoint, Hybrid
from onepass.model.feature_pipeline import FeaturePipeline
from onepass.model.merge import Parts, check_mergeable


class ArmContents(NamedTuple):
    """Everything that one arm has learned.

    Parameters
    ----------
    rows : int
        Number of rows learned.
    arm, prior : Any
        State of the arm, and the state it began with, as a store exports them.
    direction : array of shape (d_a,)
        Unit vector of v, for contexts vec(u v^T) of which the arm learns only u times the length of v, because its v
        always has the same direction (rank_one.py). d_a is 0 for other arms.
    features : Any
        State of the feature map.
    """

    rows: int
    arm: Any
    prior: Any
    direction: np.ndarray
    features: tuple[Any, ...]


@final
@savable
class ArmModel(files.Owner):
    """Model of a single arm, exported by `ArmModels.export_arm` and imported by `ArmModels.import_arm`.

    It is saved, copied and sent like every other object: `save`, `onepass.to_bytes`, pickle.

    Parameters
    ----------
    estimator : Disjoint
        The estimator of its bandit.
    features : FeatureMap, default None
        The feature map of its bandit.

    Raises
    ------
    ValueError
        If the estimator is `Hybrid`: its shared part has learned from the arm as well.

    Examples
    --------
    >>> import onepass as op
    >>> here, there = (op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=2)))) for _ in range(2))
    >>> here.learn([1.0, 0.0], 1.0, arm="left")
    >>> there.model.import_arm("left", op.from_bytes(op.to_bytes(here.model.export_arm("left"))))
    >>> there.model.parameter_of("left").round(12).tolist(), there.model.rows_of("left")
    ([0.5, 0.0], 1)
    """

    estimator: Disjoint
    features: FeatureMap | None

    def __init__(self, estimator: Disjoint, features: FeatureMap | None = None) -> None:
        if not isinstance(estimator, Disjoint):
            raise ValueError(
                "estimator must be Disjoint: an arm of a hybrid model is known to its shared part too, "
                f"got {quote(estimator)}"
            )
        self.estimator, self.features = estimator, features
        store, pipeline = (
            estimator.store(),
            FeaturePipeline(features, estimator.arms.design.dim, estimator.arms.design.dtype),
        )
        factors = pipeline.factors
        reduced = factors.right if factors is not None and factors.reduce else 0
        initial = store.export_arm(NONE)
        self._state = ArmContents(0, initial, initial, states.zeros(reduced), pipeline.statistics)

    @property
    def rows(self) -> int:
        """Number of rows that the arm has learned."""
        return self._state.rows

    @property
    def state(self) -> Any:
        """Everything that the arm has learned, as nested arrays, which may look different in later versions."""
        return self._state

    def contents(self) -> files.Contents:
        params = {"estimator": self.estimator, "features": self.features}
        return files.Contents(params, {}, self._state)

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        model = cls(**{name: build(part) for name, part in params.items()})
        return model.set_state(held.take(model._state, model._fits))

    def set_state(self, held: Any) -> Self:
        """Set the state to what a store has exported, without a copy.

        Parameters
        ----------
        held : Any
            The exported state.

        Returns
        -------
        ArmModel
            The object itself.
        """
        self._state = held
        return self

    def _fits(self, held: ArmContents) -> bool:
        design, initial, estimator = self.estimator.arms.design, self._state.prior, self.estimator.arms
        pipeline = FeaturePipeline(self.features, design.dim, design.dtype)
        return (
            held.arm.fits(initial, estimator)
            and held.prior.fits(initial, estimator)
            and held.arm.rows == held.rows
            and held.prior.rows == 0
            and held.direction.shape == self._state.direction.shape
            and pipeline.fits(held.features)
        )

    def __repr__(self) -> str:
        parts = repr(self.estimator) if self.features is None else f"{self.estimator!r}, features={self.features!r}"
        return f"<ArmModel: {parts}; {self.rows} rows learned, {states.nbytes(self._state):,} bytes>"


def export_arm(
    estimator: Any, features: FeatureMap | None, learned: ArmModelsState, arm_id: int, moved: tuple[Any, ...]
) -> ArmModel:
    """Return the model of the arm with the id `arm_id`. The id NONE stands for an arm that has not learned.

    `estimator` and `features` are the estimator and the feature map of the bandit. `learned` is the state of all arms'
    models, and `moved` holds the statistics that the feature map has learned.
    """
    store = learned.store
    arm, prior = store.export_arm(arm_id), store.export_arm(NONE)
    held = ArmContents(arm.rows, arm, prior, direction_of(learned, arm_id), states.copy_arrays(moved))
    with states.abstract():
        return ArmModel(estimator, features).set_state(held)


def check_arm_model(
    estimator: Disjoint | Hybrid,
    features: FeatureMap | None,
    learned: ArmModelsState,
    moved: tuple[Any, ...],
    model: Any,
) -> ArmContents:
    """Return the contents of an arm model that is to be imported into a bandit with these parts.

    The parts are its `estimator` and its feature map `features`. `learned` is the state of the bandit's models, and
    `moved` the arrays that its feature map has learned. Raises ValueError if the model was made with other parts, and
    TypeError if it is not an `ArmModel`.
    """
    if not isinstance(model, ArmModel):
        raise TypeError(f"model must be an ArmModel, as export_arm gives it, got {type(model).__name__}")
    mine = Parts((estimator.arms, estimator.shared, estimator.compact), features, moved, learned.store.export_arm(NONE))
    held, theirs = model.state, model.estimator
    its = Parts((theirs.arms, theirs.shared, theirs.compact), model.features, held.features, held.prior)
    check_mergeable(mine, its, "model")
    return held


def import_arm(learned: ArmModelsState, index: ArmIndex, arm: Hashable, held: ArmContents) -> ArmModelsState:
    """Store the contents `held` as the model of an arm that has not learned before; return the state of all models.

    `learned` is the state of all models, and `index`, which is updated, maps names of arms to ids.
    """
    if not held.rows:  # an arm that has not learned has no record
        index.add_names([arm])
        return learned
    arm_id = learned.store.allocate()
    learned.store.write_arm(arm_id, states.copy_arrays(held.arm))
    index.assign(arm, arm_id)
    return learned._replace(direction=set_directions(learned.direction, [(arm_id, held.direction)]))
