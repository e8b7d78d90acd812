"""A ContextualBandit whose models are those of a CrossedBandit: what it is asked, in that one's words."""

from collections.abc import Collection, Hashable, Sequence
from typing import Any

import numpy as np

from onepass.bandit.crossed import CrossedBandit
from onepass.bandit.crossed_arms import arms_of
from onepass.bandit.deciding import asked
from onepass.bandit.decision import Decision, Recommendation, together
from onepass.bandit.explanation import Explanation
from onepass.bandit.recommending import recommendation
from onepass.contextual.kinds import are_records, features_of, of_row, requests_of
from onepass.foundation import check


def decide(inner: CrossedBandit, dim: int, contexts: Any, arms: Any, k: int, id: Any, **options: Any) -> Decision:
    """Decisions for rows of `dim` numbers (0: any) or records; options: eligible, tail."""
    single, requests = requests_of(contexts, dim)
    arms = features_of(arms)
    if single:
        return inner.decide(requests[0], arms, k, id=id, **options)
    given = asked(id, len(requests), inner.seed, np.random.default_rng(0))  # checks identities
    each = [
        inner.decide(request, arms, k, id=None if id is None else one.id, **options)
        for request, one in zip(requests, given, strict=True)
    ]
    return together(each)


def learn(inner: CrossedBandit, dim: int, contexts: Any, rewards: Any, arm: Any) -> None:
    """Learn a reward of a request, row (d,) or record, or n of them, and of the arms that were chosen."""
    if not are_records(contexts):
        rows = check.array("contexts", contexts, np.dtype(np.float64), (1, 2), dim or None)
        contexts = of_row(rows) if rows.ndim == 1 else [of_row(row) for row in rows]
    several = np.ndim(rewards) != 0 and isinstance(arm, list | tuple)
    inner.learn(contexts, rewards, [features_of(one) for one in arm] if several else features_of(arm))


def score(inner: CrossedBandit, dim: int, contexts: Any, arms: Any) -> np.ndarray:
    """Scores (K,), or (n, K)."""
    single, requests = requests_of(contexts, dim)
    found = [inner.score(request, features_of(arms)) for request in requests]
    return found[0] if single else np.stack(found)


def recommend(
    inner: CrossedBandit, dim: int, contexts: Any, k: int, arms: Any, exclude: Sequence[Collection[Hashable]] | None
) -> Recommendation:
    """The k best arms of every request, by scores; among equals in an order that the seed draws."""
    if not are_records(contexts):
        rows = check.array("contexts", contexts, np.dtype(np.float64), (2, 3), dim or None)
        contexts = rows[:, None, :] if rows.ndim == 2 else rows  # a row a user
    requests, arms = requests_of(contexts, dim)[1], features_of(arms)
    names, records = arms_of(arms)
    names = list(range(len(records))) if names is None else names
    k = min(check.integer("k", k, 1), len(names))
    order = np.random.default_rng(inner.seed).permutation(len(names))
    scores_of = lambda part: np.stack([inner.score(request, arms) for request in part])  # noqa: E731
    return recommendation(scores_of, requests, names, k, exclude, order)


def explain(inner: CrossedBandit, dim: int, contexts: Any, arms: Any, arm: Any) -> Explanation:
    """Why an arm has its score, by pairs of terms; of one request, or a decision."""
    if isinstance(contexts, Decision):
        return inner.explain(contexts, arms, arm)
    single, requests = requests_of(contexts, dim)
    if not single:
        raise ValueError(f"contexts must be those of one decision, got {len(requests)}")
    return inner.explain(requests[0], features_of(arms), arm)
