"""`Bandit(...)`: the bandit for an estimator, one shared model, or for models per arm."""

from typing import Any

from onepass.bandit.arms import ArmBandit
from onepass.bandit.models import Disjoint, Hybrid
from onepass.bandit.shared import SharedBandit
from onepass.exploration.exploration import Exploration
from onepass.features.feature_map import FeatureMap


def Bandit(
    estimator: Any,
    exploration: Exploration | None = None,
    *,
    features: FeatureMap | None = None,
    seed: int = 0,
    name: str = "Bandit",
    half_life: Any = None,
) -> SharedBandit | ArmBandit:
    """A contextual bandit: a `SharedBandit` for an estimator, an `ArmBandit` for `Disjoint` or `Hybrid` models.

    estimator: one shared model, e.g. ``Ridge(FrequentDirections(dim=784, size=32))``, or `Disjoint` or `Hybrid` for
    models per arm; exploration: `UCB`, `Thompson`, `InverseGap`, ... (None: `UCB()`); features: a
    `FeatureMap`, its output_dim the width of the designs, or None: rows as they are; seed, at least 0: breaks ties and
    draws; name: shown by repr; half_life: after how many rounds, or after which time (a timedelta), a row counts half
    (default None: nothing is forgotten). ValueError for anything else.

    >>> import numpy as np, onepass as op
    >>> bandit = op.Bandit(op.Ridge(op.Exact(dim=2)), op.UCB(0.5))
    >>> bandit.learn(np.eye(2), [1.0, 0.0])
    >>> bandit.decide(np.eye(2), arms=["left", "right"]).arm
    'left'
    >>> bandit = op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=2))), op.UCB(0.5))
    >>> bandit.learn([1.0, 0.0], 1.0, arm="left")
    >>> bandit.decide([1.0, 0.0], arms=["left", "right"]).arm
    'left'
    """
    kind: Any = ArmBandit if isinstance(estimator, Disjoint | Hybrid) else SharedBandit
    return kind(estimator, exploration, features=features, seed=seed, name=name, half_life=half_life)
