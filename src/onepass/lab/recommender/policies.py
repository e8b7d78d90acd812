"""Policies of recommender studies beside the recipes, and where a policy differs from its study."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onepass import (
    UCB,
    Bandit,
    Disjoint,
    Factors,
    ItemModels,
    LinUCB,
    OuterProduct,
    ProjectorSplitting,
    Recommendation,
    Ridge,
)
from onepass.lab.policy import Policy


@dataclass(frozen=True)
class Recommender(Policy):
    """A policy for recommender studies, and where it differs from the study: None is the study's own.

    factors: features of users and arms; arms: only so many, the most frequent; batch: so many rows of an arm at most
    are learned in one call, 1 is row by row.
    """

    factors: int | None = None
    arms: int | None = None
    batch: int | None = None

    @property
    def overrides(self) -> dict[str, int | None]:
        return {"factors": self.factors, "arms": self.arms, "batch": self.batch}

    def columns(self) -> dict[str, Any]:
        columns = super().columns()
        return {
            **columns,
            "params": {**columns["params"], **{k: v for k, v in self.overrides.items() if v is not None}},
        }


def PSILinUCBFull(*, dim: Any, rank: int, reg: float = 1.0, exploration: float = 0.1, seed: int = 0) -> Bandit:
    """PSI-LinUCB per arm on the products, d_u d_a dimensions, as Shustova et al. have it: nothing is reduced."""
    left, right = dim if isinstance(dim, tuple) else (dim, 1)
    product = OuterProduct(left=left, right=right, reduce=False)
    design = ProjectorSplitting(dim=product.output_dim, rank=rank, reg=reg)
    return Bandit(Disjoint(Ridge(design)), UCB(exploration), features=product, seed=seed, name="PSILinUCB")


def PSILinUCBSplit(*, dim: Any, rank: int, reg: float = 1.0, exploration: float = 0.1, seed: int = 0) -> Bandit:
    """PSI-LinUCB per arm by Shustova et al.'s own integrator (two factors, one design an arm), in the r' dimensions of
    users.
    """
    left, right = dim if isinstance(dim, tuple) else (dim, 1)
    model = Disjoint(Ridge(ProjectorSplitting(dim=left, rank=min(rank, left), reg=reg)), compact=False)
    return Bandit(model, UCB(exploration), features=OuterProduct(left=left, right=right), seed=seed, name="PSILinUCB")


class CBRAP:
    """Exact models per arm on z = R vec(u v^T), R (size, d_u d_a) of N(0, 1 / size).

    The products are never formed: z = M_a u; the maps M_a (K, size, d_u), R contracted with v_a, count as memory.
    """

    def __init__(self, *, dim: Any, size: int, reg: float = 1.0, exploration: float = 0.1, seed: int = 0) -> None:
        left, right = dim if isinstance(dim, tuple) else (dim, 1)
        self.directions = np.random.default_rng(seed).standard_normal((size, left, right)) / size**0.5
        self.bandit = LinUCB(dim=size, reg=reg, exploration=exploration, model="disjoint", seed=seed)
        self.maps = np.empty((0, size, left))

    def learn(self, contexts: Factors, rewards: np.ndarray, arm: np.ndarray) -> None:
        rows = np.empty((len(rewards), len(self.directions)))
        for name in np.unique(arm):
            own = np.flatnonzero(arm == name)
            rows[own] = contexts.left[own] @ (self.directions @ contexts.right[own[0]]).T
        self.bandit.learn(rows, rewards, arm=arm)

    def recommend(self, contexts: Factors, k: int, arms: Any, exclude: Any = None) -> Recommendation:
        if len(self.maps) != len(contexts.right):
            self.maps = np.ascontiguousarray(np.moveaxis(self.directions @ contexts.right.T, 2, 0))
        arms, size, left = self.maps.shape
        found = Recommendation([], [])
        for start in range(0, len(contexts.left), 16):
            part = slice(start, start + 16)
            rows = (contexts.left[part] @ self.maps.reshape(-1, left).T).reshape(-1, arms, size)
            best = self.bandit.recommend(rows, k, arms=range(arms), exclude=exclude and exclude[part])
            found.arms.extend(best.arms)
            found.scores.extend(best.scores)
        return found

    def memory_usage(self) -> int:
        return self.bandit.memory_usage() + self.directions.nbytes + self.maps.nbytes

    def error_bound(self) -> float:
        return float("inf")


class ItemModelsPolicy:
    """`ItemModels` on users' features. Strangers, whose features nobody knows, are the row 0; what they have taken is
    learned, too, as if rated as by others (trial.py)."""

    def __init__(self, *, dim: Any, seed: int = 0, **options: Any) -> None:
        self.bandit = ItemModels(dim=dim[0] if isinstance(dim, tuple) else dim, seed=seed, **options)

    def learn(self, contexts: Factors, rewards: np.ndarray, arm: np.ndarray) -> None:
        self.bandit.learn(contexts.left, rewards, arm=arm)

    def recommend(self, contexts: Factors, k: int, arms: Any, exclude: Any = None) -> Recommendation:
        return self.bandit.recommend(contexts.left, k, arms=arms, exclude=exclude)

    def memory_usage(self) -> int:
        return self.bandit.memory_usage()

    def error_bound(self) -> float:
        return self.bandit.error_bound()


class Popularity:
    """The arms that everyone, cold users too, interacted with most often so far; ties go to the first arm."""

    def __init__(self, *, dim: Any, seed: int = 0) -> None:
        self.counts = np.zeros(0, np.int64)

    def learn(self, contexts: Factors, rewards: np.ndarray, arm: np.ndarray) -> None:
        counts = np.bincount(arm, minlength=len(self.counts))
        counts[: len(self.counts)] += self.counts
        self.counts = counts

    def recommend(
        self, contexts: Factors, k: int, arms: Sequence[int], exclude: Sequence[Collection[int]] | None = None
    ) -> Recommendation:
        counts = np.zeros(max(len(arms), len(self.counts)))
        counts[: len(self.counts)] = self.counts
        return _rank_arms(counts, len(contexts.left), k, exclude)

    def memory_usage(self) -> int:
        return self.counts.nbytes

    def error_bound(self) -> float:
        return float("inf")


class Random:
    """Any arms, others for every user."""

    def __init__(self, *, dim: Any, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)

    def learn(self, contexts: Factors, rewards: np.ndarray, arm: np.ndarray) -> None:
        pass

    def recommend(
        self, contexts: Factors, k: int, arms: Sequence[int], exclude: Sequence[Collection[int]] | None = None
    ) -> Recommendation:
        found = Recommendation([], [])
        for i in range(len(contexts.left)):
            one = _rank_arms(self.rng.random(len(arms)), 1, k, exclude and exclude[i : i + 1])
            found.arms.extend(one.arms)
            found.scores.extend(one.scores)
        return found

    def memory_usage(self) -> int:
        return 0

    def error_bound(self) -> float:
        return float("inf")


def _rank_arms(
    scores: np.ndarray, users: int, k: int, exclude: Sequence[Collection[int]] | None = None
) -> Recommendation:
    """The k best arms by the same scores (K,) for every user, without those excluded; ties go to the first arm."""
    order = np.argsort(-scores, kind="stable")
    most = k + max((len(own) for own in exclude), default=0) if exclude else k
    first = order[:most].tolist()
    arms = [[arm for arm in first if arm not in own][:k] for own in exclude or [()] * users]
    return Recommendation(arms, [scores[own] for own in arms])
