"""BKB: epsilon of its theorems, drawing the dictionary again, and guesses of the norm that are doubled."""

from dataclasses import replace

import numpy as np
import pytest

import onepass as op

ARMS = np.linspace(0.0, 1.0, 40)[:, None]


def played(rounds=60, **given):
    """A bandit after random plays of a smooth function."""
    bandit, rng = op.BKB(ARMS, **{"kernel": op.RBF(0.15), "reg": 0.5, **given}), np.random.default_rng(0)
    for arm in rng.integers(len(ARMS), size=rounds):
        bandit.learn(None, float(np.sin(6.0 * ARMS[arm, 0]) + 0.1 * rng.standard_normal()), int(arm))
    return bandit


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 0.8])
def test_the_radius_is_that_of_theorem_4_1_at_the_epsilon_that_was_given(epsilon):
    bandit, theory = played(epsilon=epsilon), op.Theory(noise=0.3, parameter_bound=2.0, delta=0.05)
    growth = 1.0 + np.log1p(1.0 * 60 / 0.5)
    inside = growth * (1 + epsilon) / (1 - epsilon) * bandit.model.effective_dimension() + 2.0 * np.log(20.0)
    want = 0.3 * np.sqrt(inside) + (1.0 + 1.0 / np.sqrt(1.0 - epsilon)) * np.sqrt(0.5) * 2.0
    assert bandit.model._posterior.radius(theory) == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, float("nan")])
def test_an_epsilon_outside_0_to_1_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        op.BKB(ARMS, op.RBF(0.15), epsilon=epsilon)


@pytest.mark.parametrize("incremental", [False, True])
def test_a_dictionary_drawn_with_an_endless_oversampling_is_the_exact_posterior(incremental):
    bandit = played(oversampling=0.5, redundancy=0.0, incremental=incremental)
    exact = op.GPUCB(ARMS, op.RBF(0.15), reg=0.5)
    rng = np.random.default_rng(0)
    for arm in rng.integers(len(ARMS), size=60):
        exact.learn(None, float(np.sin(6.0 * ARMS[arm, 0]) + 0.1 * rng.standard_normal()), int(arm))
    before = bandit.model.dictionary_size
    bandit.model.redraw(oversampling=1e9)
    assert bandit.model.dictionary_size > before
    np.testing.assert_allclose(bandit.model.posterior().means, exact.model.posterior().means, atol=1e-6)
    np.testing.assert_allclose(bandit.model.posterior().variances, exact.model.posterior().variances, atol=1e-6)
    assert bandit.model.variance_factor() < 1.01
    assert bandit.model.budget.oversampling == 1e9


def test_points_are_drawn_by_their_present_variances():
    bandit, qbar = played(kernel=op.RBF(0.02), redundancy=0.0, oversampling=1.0), 2.0
    before = bandit.model.state
    seen = np.flatnonzero(before.plays)
    counts = np.zeros(len(ARMS))
    for _ in range(300):
        bandit.model._posterior.state = before
        bandit.model.redraw(qbar)
        state = bandit.model.state
        counts[state.members[: state.n_rows]] += 1.0
    want = 1.0 - (1.0 - np.minimum(1.0, qbar * before.variances[seen])) ** before.plays[seen]
    assert np.abs(counts[seen] / 300 - want).max() < 4.5 * 0.5 / np.sqrt(300)


def test_a_new_oversampling_comes_back_from_bytes_and_needs_a_budget():
    bandit = played()
    bandit.model.redraw(30.0)
    assert op.from_bytes(op.to_bytes(bandit)).model.budget == replace(op.model.Budget(), oversampling=30.0)
    with pytest.raises(ValueError, match="oversampling"):
        bandit.model.redraw(0.0)
    with pytest.raises(ValueError, match="with a budget"):
        op.GPUCB(ARMS, op.RBF(0.15)).model.redraw()


@pytest.mark.parametrize("recipe", [op.GPUCB, op.BKB])
def test_a_norm_is_doubled_until_no_arm_contradicts_it(recipe):
    bandit = recipe(ARMS, op.RBF(0.15), reg=0.5)
    for _ in range(50):
        bandit.learn(None, 5.0, 7)
    theory = op.Theory(noise=0.01, parameter_bound=0.3)
    found = bandit.model.double_norm(theory)
    assert found.parameter_bound == 0.3 * 2**4
    smaller = replace(found, parameter_bound=found.parameter_bound / 2)
    mean, deviation = bandit.model.posterior().means[7], np.sqrt(bandit.model.posterior().variances[7])
    assert mean <= found.parameter_bound + bandit.model._posterior.radius(found) * deviation
    assert mean > smaller.parameter_bound + bandit.model._posterior.radius(smaller) * deviation
    with pytest.raises(ValueError, match="normalize"):
        recipe(ARMS, op.RBF(0.15), normalize=True).model.double_norm(theory)


def test_a_true_norm_is_not_doubled_in_a_share_of_games_above_delta():
    doubled, delta = 0, 0.2
    for seed in range(60):
        rng = np.random.default_rng(seed)
        centers, weights = ARMS[rng.integers(40, size=5)], rng.standard_normal(5)
        gram = np.exp(-((centers - centers.T) ** 2) / (2 * 0.15**2))
        values = np.exp(-((ARMS - centers.T) ** 2) / (2 * 0.15**2)) @ weights
        theory = op.Theory(noise=0.5, parameter_bound=float(np.sqrt(weights @ gram @ weights)), delta=delta)
        bandit = op.GPUCB(ARMS, op.RBF(0.15), reg=0.25)
        for arm in rng.integers(40, size=12):
            bandit.learn(None, float(values[arm] + 0.5 * rng.standard_normal()), int(arm))
            if bandit.model.double_norm(theory) != theory:
                doubled += 1
                break
    assert doubled <= 60 * delta
