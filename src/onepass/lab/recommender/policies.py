"""Policies of recommender studies beside the recipes, and policies that override parts of their study."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import onepass
from onepass import (
    UCB,
    Bandit,
    Disjoint,
    Exact,
    Factors,
    ItemHeads,
    ItemModels,
    LinUCB,
    ProjectorSplitting,
    Recommendation,
    Ridge,
)
from onepass.features import OuterProduct
from onepass.foundation import check
from onepass.lab.policy import Policy


@dataclass(frozen=True)
class Recommender(Policy):
    """Policy of a recommender study, which may override parts of the study.

    Parameters
    ----------
    label : str
        Name in tables and pictures.
    recipe : str or callable
        Name in `onepass`, or a function or class that makes the bandit.
    params : dict of str -> object
        Keyword arguments of the recipe. The default is an empty dict.
    group : str, default ""
        Common name of several labels. An empty string stands for the label.
    tuned : bool, default True
        False if tuning skips the policy.
    factors : int, default None
        Number of features of users and arms. By default that of the study.
    arms : int, default None
        Number of arms, of which the most frequent are taken. By default all arms of the study.
    batch : int, default None
        Largest number of rows of an arm in one call of `learn`. With 1, rows are learned one by one. By default there
        is no limit.
    """

    factors: int | None = None
    arms: int | None = None
    batch: int | None = None

    @property
    def overrides(self) -> dict[str, int | None]:
        """Values of factors, arms and batch by name; None if the policy does not override it."""
        return {"factors": self.factors, "arms": self.arms, "batch": self.batch}

    def columns(self) -> dict[str, Any]:
        columns = super().columns()
        return {
            **columns,
            "params": {**columns["params"], **{k: v for k, v in self.overrides.items() if v is not None}},
        }


def PSILinUCBFull(*, dim: Any, rank: int, reg: float = 1.0, exploration: float = 0.1, seed: int = 0) -> Bandit:
    """Return a bandit with projector splitting per arm on all products of user and arm features (Shustova et al.).

    - dim: (d_u, d_a), the numbers of user and of arm features, or d_u alone.
    - rank: rank of each arm's sketch.
    - reg: ridge penalty.
    - exploration: multiplier of the confidence width.
    """
    left, right = dim if isinstance(dim, tuple) else (dim, 1)
    product = OuterProduct(left=left, right=right, reduce=False)
    design = ProjectorSplitting(dim=product.output_dim, rank=rank, reg=reg)
    return Bandit(Disjoint(Ridge(design)), UCB(exploration), features=product, seed=seed, name="PSILinUCB")


class LinUCBFull:
    """LinUCB of Shustova et al.: an exact model per arm on all d = d_u d_a products of user and arm features.

    Parameters
    ----------
    dim : int or (int, int)
        Numbers of user and of arm features.
    reg : float, default 1.0
        Ridge penalty.
    exploration : float, default 0.1
        Multiplier of the confidence width.
    memory_limit : float, default 4e9
        Bytes that the models may take, above 0.
    seed : int, default 0
        Seed that decides ties.

    Raises
    ------
    ValueError
        If `learn` meets more arms than fit into the limit. Nothing is learned then.
    """

    def __init__(
        self,
        *,
        dim: Any,
        reg: float = 1.0,
        exploration: float = 0.1,
        memory_limit: float = 4e9,
        seed: int = 0,
    ) -> None:
        left, right = dim if isinstance(dim, tuple) else (dim, 1)
        product = OuterProduct(left=left, right=right, reduce=False)
        model = Disjoint(Ridge(Exact(dim=product.output_dim, reg=reg)), compact=False)
        self.bandit = Bandit(model, UCB(exploration), features=product, seed=seed, name="LinUCB")
        self.width, self.limit = product.output_dim, check.positive("memory_limit", memory_limit)
        self.known: set[int] = set()

    def learn(self, contexts: Factors, rewards: np.ndarray, arm: np.ndarray) -> None:
        arms = self.known | set(np.unique(arm).tolist())
        needed = 8.0 * len(arms) * self.width**2
        if needed > self.limit:
            raise ValueError(
                f"memory_limit must be at least {needed:.3g} bytes for {len(arms):,} arms of {self.width:,} x "
                f"{self.width:,} numbers, got {self.limit:.3g}; use fewer arms or factors, or LinUCB with model="
                "'disjoint', which is the same in d_u dimensions"
            )
        self.known = arms
        self.bandit.learn(contexts, rewards, arm=arm)

    def recommend(self, contexts: Factors, k: int, arms: Any, exclude: Any = None) -> Recommendation:
        return self.bandit.recommend(contexts, k, arms=arms, exclude=exclude)

    def memory_usage(self) -> int:
        return self.bandit.memory_usage()

    def error_bound(self) -> float:
        return self.bandit.error_bound()


class CBRAP:
    """Contextual bandit by random projection: LinUCB with one model per arm, on projected rows.

    A row holds the product of each number of a user u (d_u,) and each number of an arm v (d_a,). Its projection is z =
    R vec(u v^T), where R (size, d_u d_a) has normal entries of variance 1 / size. For each arm it is computed as z = M
    u with a matrix M (size, d_u), which counts as memory.

    `dim` is (d_u, d_a); d_u alone means d_a = 1. `size` is the number of columns after the projection, `reg` the ridge
    penalty, and `exploration` the multiplier of the confidence width.
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
    """Policy that plays `ItemModels` with the features of users as contexts.

    A user without features has the context 0. The interactions of such users are learned with the mean reward of the
    others. `dim` is the number of user features, or a pair whose first number it is. `options` are passed to the
    bandit.
    """

    recipe: Callable[..., Bandit] = staticmethod(ItemModels)

    def __init__(self, *, dim: Any, seed: int = 0, **options: Any) -> None:
        self.bandit = self.recipe(dim=dim[0] if isinstance(dim, tuple) else dim, seed=seed, **options)

    def learn(self, contexts: Factors, rewards: np.ndarray, arm: np.ndarray) -> None:
        self.bandit.learn(contexts.left, rewards, arm=arm)

    def recommend(self, contexts: Factors, k: int, arms: Any, exclude: Any = None) -> Recommendation:
        return self.bandit.recommend(contexts.left, k, arms=arms, exclude=exclude)

    def memory_usage(self) -> int:
        return self.bandit.memory_usage()

    def error_bound(self) -> float:
        return self.bandit.error_bound()


class ItemHeadsPolicy(ItemModelsPolicy):
    """Policy that plays `ItemHeads` with the features of users as contexts."""

    recipe = staticmethod(ItemHeads)


class Visitors(NamedTuple):
    """Users who ask for recommendations, or whose interactions are learned.

    Parameters
    ----------
    users : numbers (n,) of the users.
    times : times (n,) in seconds.
    """

    users: np.ndarray
    times: np.ndarray


class RecommenderPolicy:
    """Policy that plays `onepass.Recommender`, which learns from users, items and times alone, without features."""

    def __init__(self, *, dim: Any, seed: int = 0) -> None:
        self.recommender = onepass.Recommender(seed=seed)

    def learn(self, contexts: Any, rewards: np.ndarray, arm: np.ndarray) -> None:
        known = isinstance(contexts, Visitors)
        users, times = contexts if known else (np.arange(len(arm)), None)
        self.recommender.learn(users, arm, time=times)

    def recommend(
        self, contexts: Any, k: int, arms: Sequence[int], exclude: Sequence[Collection[int]] | None = None
    ) -> Recommendation:
        users = contexts.users if isinstance(contexts, Visitors) else np.arange(len(contexts.left))
        return self.recommender.recommend(users, k, exclude=exclude)

    def memory_usage(self) -> int:
        return self.recommender.memory_usage()

    def error_bound(self) -> float:
        return float("inf")


class SVDScores:
    """Policy that recommends the items with the largest values of a truncated SVD of the ratings; it does not learn."""

    def __init__(self, *, dim: Any, seed: int = 0) -> None:
        pass

    def learn(self, contexts: Factors, rewards: np.ndarray, arm: np.ndarray) -> None:
        pass

    def recommend(
        self, contexts: Factors, k: int, arms: Sequence[int], exclude: Sequence[Collection[int]] | None = None
    ) -> Recommendation:
        found = Recommendation([], [])
        for i, scores in enumerate(contexts.left @ contexts.right.T):
            one = _rank_arms(scores, 1, k, exclude and exclude[i : i + 1])
            found.arms.extend(one.arms)
            found.scores.extend(one.scores)
        return found

    def memory_usage(self) -> int:
        return 0

    def error_bound(self) -> float:
        return float("inf")


class Popularity:
    """Policy that recommends the items with most interactions so far; ties go to the first item.

    An interaction counts half after `half_life` later interactions. If `half_life` is None, all have the same weight.
    """

    def __init__(self, *, dim: Any, seed: int = 0, half_life: float | None = None) -> None:
        self.counts: np.ndarray = np.zeros(0)
        self.half_life = half_life

    def learn(self, contexts: Factors, rewards: np.ndarray, arm: np.ndarray) -> None:
        ages = np.arange(len(arm), 0, -1) / (np.inf if self.half_life is None else self.half_life)
        counts: Any = np.bincount(arm, 0.5**ages, minlength=len(self.counts))  # floats
        counts[: len(self.counts)] += self.counts * (0.5 ** ages[0] if len(arm) else 1.0)
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
    """Policy that recommends random items to every user."""

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
    """Return the k best arms for each of n = `users` users, by scores (K,) that are equal for all of them.

    `exclude` has the excluded arms of each user; None excludes nothing. The first of equal arms comes first.
    """
    order = np.argsort(-scores, kind="stable")
    most = k + max((len(own) for own in exclude), default=0) if exclude else k
    first = order[:most].tolist()
    arms = [[arm for arm in first if arm not in own][:k] for own in exclude or [()] * users]
    return Recommendation(arms, [scores[own] for own in arms])
