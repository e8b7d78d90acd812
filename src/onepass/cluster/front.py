"""What stands before the shards, as one owner of state: a bandit whose store is on them, and `seq`, its changes."""

from typing import Any, Self, final

from onepass.bandit.arms import ArmBandit
from onepass.cluster.store import Store
from onepass.estimator.contract import unit
from onepass.foundation import check, files
from onepass.foundation.generic import defined
from onepass.foundation.registry import built, savable


def sharded(bandit: ArmBandit) -> ArmBandit:
    """A bandit built as this one, with arms on shards. ValueError for models whose arms know of one another."""
    if not isinstance(bandit, ArmBandit):
        raise ValueError(f"recipe must be a bandit with models per arm, Disjoint or Hybrid, got {check.shown(bandit)}")
    if bandit.half_life is not None:
        raise ValueError("recipe must have half_life=None: shards do not forget")
    if bandit.rounds or bandit.arms:
        raise ValueError(f"recipe must have learned nothing yet, but it has learned {bandit.rounds} rows")
    if defined(unit, bandit.estimator.arms.begin()):
        raise ValueError(
            f"recipe must have an estimator whose widths are an arm's own, got {check.shown(bandit.estimator)}: "
            "its exploration is measured by the noise of all arms together"
        )
    return ArmBandit(**with_shards(bandit.contents().params))


def with_shards(params: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a bandit, its arms on shards."""
    models = params["estimator"]
    return {**params, "estimator": models.kept_in(lambda: Store(models))}


@final
@savable
class Front(files.Owner):
    """bandit: one that `sharded` gave; seq: of its last change."""

    def __init__(self, bandit: ArmBandit, seq: int = 0):
        self.bandit, self.seq = bandit, seq

    def contents(self) -> files.Contents:
        held = self.bandit.contents()
        return files.Contents(held.params, {**held.extra, "seq": self.seq}, held.state)

    @classmethod
    def restored(cls, params: dict[str, Any], extra: dict[str, Any], held: files.Holds) -> Self:
        """From what a file holds, `params`, `extra` and `held`; ValueError where that does not fit."""
        arguments = with_shards({name: built(part) for name, part in params.items()})
        seq = check.integer("seq", extra.pop("seq"), 0)
        return cls(ArmBandit.restored(arguments, extra, held), seq)
