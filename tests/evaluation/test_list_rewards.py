"""Rewards of whole lists: the pseudo-inverse estimator against enumeration."""

from itertools import permutations

import numpy as np
import pytest

import onepass as op
from onepass.evaluation import evaluate_list_rewards
from onepass.evaluation.list_rewards import list_moments, list_probabilities

ARMS, K = 5, 3
LISTS = np.array(list(permutations(range(ARMS), K)))


def chance(first, places):
    """Probability of a list that is drawn without replacement."""
    out, left = 1.0, 1.0
    for arm in places:
        out, left = out * first[arm] / left, left - first[arm]
    return out


def test_probabilities_and_moments_are_those_of_all_lists():
    first = np.random.default_rng(0).dirichlet(np.ones(ARMS))
    table, moments = list_probabilities(first, K), np.zeros((K * ARMS, K * ARMS))
    for places in LISTS:
        np.testing.assert_allclose(table[tuple(places)], chance(first, places), rtol=1e-12)
        one = np.zeros(K * ARMS)
        one[places + ARMS * np.arange(K)] = 1.0
        moments += chance(first, places) * np.outer(one, one)
    np.testing.assert_allclose(table.sum(), 1.0, rtol=1e-12)
    np.testing.assert_allclose(list_moments(table), moments, atol=1e-14)


@pytest.mark.parametrize("kind", ["list", "probabilities"])
def test_the_estimate_is_unbiased_for_sums_over_positions(kind):
    rng = np.random.default_rng(1)
    first, terms = rng.dirichlet(np.ones(ARMS)), rng.standard_normal((K, ARMS))
    rewards = terms[np.arange(K), LISTS].sum(axis=1)
    goal = LISTS[7] if kind == "list" else rng.dirichlet(np.ones(ARMS))
    shares = np.eye(len(LISTS))[7] if kind == "list" else [chance(goal, places) for places in LISTS]
    expected = sum(
        chance(first, places) * evaluate_list_rewards(places[None], [reward], first, goal).value
        for places, reward in zip(LISTS, rewards, strict=True)
    )
    np.testing.assert_allclose(expected, np.dot(shares, rewards), rtol=1e-9)


def test_limits_cover_and_are_narrower_than_those_of_whole_lists():
    rng, goal, missed, ratios = np.random.default_rng(2), np.array([0, 1, 2]), 0, []
    terms = rng.uniform(size=(K, ARMS))
    for _ in range(100):
        first = np.full(ARMS, 1.0 / ARMS)
        places = np.array([rng.permutation(ARMS)[:K] for _ in range(400)])
        rewards = terms[np.arange(K), places].sum(axis=1) + 0.3 * rng.standard_normal(400)
        found = evaluate_list_rewards(places, rewards, first, goal)
        missed += not found.limits.lower <= terms[np.arange(K), goal].sum() <= found.limits.upper
        whole = (places == goal).all(axis=1) * 60.0 * rewards
        ratios.append(found.deviation / (whole.std() / 20.0))
    assert missed <= 12
    assert np.median(ratios) < 0.7


def test_lists_of_several_logging_policies_are_weighted_each_by_its_own():
    rng = np.random.default_rng(3)
    first, places = rng.dirichlet(np.ones(ARMS), 2)[rng.integers(0, 2, 50)], LISTS[rng.integers(0, len(LISTS), 50)]
    rewards = rng.uniform(size=50)
    together = evaluate_list_rewards(places, rewards, first, LISTS[:50])
    apart = [evaluate_list_rewards(places[[i]], rewards[[i]], first[i], LISTS[i]).value for i in range(50)]
    np.testing.assert_allclose(together.value, np.mean(apart), rtol=1e-9)
    assert str(together).startswith("50 lists: ")


def test_a_single_list_has_no_standard_error_and_says_nothing_about_the_limits():
    found = evaluate_list_rewards([[0, 1]], [1.0], np.full(ARMS, 1.0 / ARMS), [1, 0])
    assert np.isfinite(found.value)
    assert np.isnan(found.deviation)
    assert found.limits == (-np.inf, np.inf)
    assert str(found).endswith("+- nan, -inf to inf")


def test_bad_logs_of_lists_are_refused():
    even = np.full(ARMS, 1.0 / ARMS)
    for places, rewards, logging, target, match in (
        ([[0, 0]], [1.0], even, [0, 1], "once"),
        ([[0, 9]], [1.0], even, [0, 1], "places"),
        ([[0.5, 1.0]], [1.0], even, [0, 1], "places"),
        ([[0, 1]], [1.0, 2.0], even, [0, 1], "rewards"),
        ([[0, 1]], [float("nan")], even, [0, 1], "rewards"),
        ([[0, 1]], [1.0], 2.0 * even, [0, 1], "logging"),
        ([[0, 1]], [1.0], even, [0, 1, 2], "target"),
        ([[0, 1]], [1.0], even, [0, 7], "target"),
        ([[0, 1]], [1.0], even, [1.0, 0.0, 0.0, 0.0, 0.0], "at least 2 arms"),
        ([[0, 1]], [1.0], [0.5, 0.5, 0.0, 0.0, 0.0], [2, 1], "never shows"),
        ([[2, 1]], [1.0], [0.5, 0.5, 0.0, 0.0, 0.0], [0, 1], "probability 0"),
        ([[0, 1, 2]], [1.0], [0.5, 0.5], [0, 1, 2], "at most 2"),
        ([[0, 1, 2, 3]], [1.0], np.full(40, 1.0 / 40), [0, 1, 2, 3], "1,000,000"),
    ):
        with pytest.raises(ValueError, match=match):
            evaluate_list_rewards(np.array(places), rewards, np.array(logging), np.array(target))


@pytest.mark.parametrize(("rule", "fits"), [(op.Softmax(0.3, uniform_share=0.0), True), (op.EpsilonGreedy(0.3), False)])
def test_only_a_softmax_draws_lists_as_the_estimator_needs(rule, fits):
    bandit, rows = op.Bandit(op.Ridge(op.Exact(dim=4)), rule, seed=1), np.eye(4)
    bandit.learn(rows, [0.1, 0.5, 0.2, 0.4])
    decision = bandit.decide(rows, k=2)
    left = np.where(np.arange(4) == decision.places[0], 0.0, decision.slots[0])
    assert np.allclose(decision.slots[1], left / left.sum()) == fits
