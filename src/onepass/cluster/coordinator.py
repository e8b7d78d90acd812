"""Coordinator of a sharded bandit: a bandit whose store is on shards, and the number of its last change."""

from functools import partial
from typing import Any, Self, final

from onepass.bandit.bandit import Bandit
from onepass.cluster.sharded_store import ShardedStore
from onepass.estimator.contract import noise_unit
from onepass.foundation import check, files
from onepass.foundation.generic import is_registered
from onepass.foundation.registry import build, savable
from onepass.model.arms.arm_models import ArmModels


def shard_recipe(bandit: Bandit) -> Bandit:
    """Return a bandit with the same model and exploration as `bandit`, but whose arms are kept on shards.

    Raises ValueError if `bandit` has learned something, or has a model that shards cannot hold.
    """
    if not (isinstance(bandit, Bandit) and isinstance(bandit.model, ArmModels)):
        raise ValueError(f"recipe must be a bandit with models per arm, Disjoint or Hybrid, got {check.quote(bandit)}")
    if bandit.model.half_life is not None:
        raise ValueError("recipe must have half_life=None: shards do not forget")
    if bandit.n_learned or bandit.arms:
        raise ValueError(f"recipe must have learned nothing yet, but it has learned {bandit.n_learned} rows")
    if is_registered(noise_unit, bandit.model.estimator.arms.begin()):
        raise ValueError(
            f"recipe must have an estimator whose widths are an arm's own, got {check.quote(bandit.model.estimator)}: "
            "its exploration is measured by the noise of all arms together"
        )
    own = bandit.contents().params
    return Bandit(_shard_model(bandit.model), own["exploration"], seed=bandit.seed, name=bandit.name)


def _shard_model(model: ArmModels) -> ArmModels:
    """Return a model with the estimator and the features of `model`, whose arms are kept on shards."""
    parts = model.params()
    return ArmModels(parts["estimator"].with_store(lambda: ShardedStore(parts["estimator"])), parts["features"])


@final
@savable
class Coordinator(files.Owner):
    """Bandit in front of the shards that hold the models of its arms, with the number of its last change.

    Parameters
    ----------
    bandit : a bandit made by `shard_recipe`.
    seq : sequence number of the last change, 0 before the first.
    """

    def __init__(self, bandit: Bandit, seq: int = 0) -> None:
        self.bandit, self.seq = bandit, seq

    def contents(self) -> files.Contents:
        model = self.bandit.model.contents()
        held = self.bandit.contents()
        params = {**model.params, "exploration": held.params["exploration"]}
        extra = {"model": model.extra, "bandit": held.extra, "seq": self.seq}
        return files.Contents({**params, "seed": self.bandit.seed, "name": self.bandit.name}, extra, model.state)

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        """Rebuild a coordinator from the parts of a saved file; raise ValueError if they disagree.

        `params` has the settings of the bandit by name. `extra` has its other values, such as `seq`, and `held` its
        arrays.
        """
        given = {name: build(part) for name, part in params.items()}
        estimator = given["estimator"].with_store(partial(ShardedStore, given["estimator"]))
        model = ArmModels.from_contents({"estimator": estimator, "features": given["features"]}, extra["model"], held)
        parts = {"model": model, **{name: given[name] for name in ("exploration", "seed", "name")}}
        return cls(Bandit.from_contents(parts, extra["bandit"], _NO_STATE), check.integer("seq", extra["seq"], 0))


_NO_STATE = files.InMemory(())
