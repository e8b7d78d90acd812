"""A drawing of BKB that would leave the dictionary as it is costs nothing but the draw."""

import numpy as np
import pytest

import onepass as op
from kernel_games import learn

ARMS = np.random.default_rng(0).random((60, 2))


def learned(bandit: op.BKB, plays: np.ndarray) -> op.BKB:
    for place in plays.tolist():
        learn(bandit, place, float(np.sin(5.0 * ARMS[place]).sum()))
    return bandit


@pytest.mark.parametrize("reg", [0.01, 0.5])
def test_where_all_points_are_drawn_nothing_is_made_anew_and_the_posterior_is_exact(reg):
    plays = np.random.default_rng(1).integers(12, size=80)
    bandit = op.BKB(ARMS, op.RBF(0.2), reg=reg, oversampling=1e12, staleness=1.0, redundancy=0.0)
    learned(bandit, np.arange(12))
    rows, exact = bandit.model.state.rows, op.GPUCB(ARMS, op.RBF(0.2), reg=reg)
    learned(bandit, plays)  # every play draws a dictionary
    learned(exact, np.concatenate([np.arange(12), plays]))
    assert bandit.model.state.rows is rows
    assert bandit.model.dictionary_size == 12
    ours, theirs = bandit.model.posterior(), exact.model.posterior()
    np.testing.assert_allclose(ours.means, theirs.means, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(ours.variances, theirs.variances, rtol=1e-6, atol=1e-9)


def test_a_drawing_that_leaves_points_out_is_carried_out():
    bandit = op.BKB(ARMS, op.RBF(0.2), reg=0.5, oversampling=0.2, staleness=1.0, redundancy=0.0, seed=3)
    learned(bandit, np.tile(np.arange(20), 4))
    assert bandit.model.dictionary_size < 20


@pytest.mark.parametrize("sets", ["fixed", "rows"])
def test_a_point_that_joins_after_it_was_played_brings_its_plays(sets):
    """Its variance fell below what is drawn surely, so it stays out for some plays and then comes in."""
    bandit = op.BKB(ARMS if sets == "fixed" else None, op.RBF(0.2), reg=0.3, oversampling=0.5, staleness=1e12, seed=5)
    plays = np.random.default_rng(2).integers(15, size=120)
    rewards = np.sin(5.0 * ARMS[plays]).sum(axis=1)
    late = 0
    for place, reward in zip(plays.tolist(), rewards.tolist(), strict=True):
        before = bandit.model.dictionary_size
        seen = bandit.model.state.plays[place] > 0 if sets == "fixed" else False
        learn(bandit, place if sets == "fixed" else ARMS[place], reward)
        late += seen and bandit.model.dictionary_size > before
    assert late > 0 or sets == "rows"
    gram = op.RBF(0.2)
    basis = bandit.model.dictionary
    z = np.linalg.solve(np.linalg.cholesky(gram(basis, basis)), gram(basis, ARMS))
    own = z[:, plays]
    inverse = np.linalg.inv(0.3 * np.eye(len(basis)) + own @ own.T)
    found = bandit.model.posterior(ARMS)
    np.testing.assert_allclose(found.means, z.T @ inverse @ own @ rewards, atol=1e-9)
    rest = 1.0 - (z**2).sum(axis=0)
    np.testing.assert_allclose(found.variances, rest / 0.3 + np.einsum("ia,ij,ja->a", z, inverse, z), atol=1e-8)
