"""Exact kernel bandits merge: the posterior is that of all plays, whoever learned them."""

import numpy as np
import pytest

import onepass as op
from kernel_games import assert_posterior_close, history, learn, points

REGS = (0.01, 0.3)


def played(bandit, plays, rewards):
    for arm, reward in zip(plays, rewards, strict=True):
        learn(bandit, arm if np.ndim(arm) else int(arm), float(reward))
    return bandit


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("reg", REGS)
def test_merged_plays_of_fixed_arms_are_the_posterior_of_all(reg, normalize):
    arms = points()
    make = lambda: op.GPUCB(arms, op.RBF(0.4), reg=reg, normalize=normalize)  # noqa: E731
    plays, rewards = history(arms)
    parts = slice(0, 60), slice(60, 61), slice(61, 180)
    shards = [played(make(), plays[part], rewards[part]) for part in parts]
    merged, whole = op.merge_all(*shards), played(make(), plays[:180], rewards[:180])
    for _ in range(2):
        assert_posterior_close(merged.model.posterior(), whole.model.posterior())
        assert_posterior_close(merged.model.posterior(points(20, 9)), whole.model.posterior(points(20, 9)))
        assert (merged.n_learned, merged.model.dictionary_size) == (whole.n_learned, whole.model.dictionary_size)
        assert abs(merged.model.information_gain() - whole.model.information_gain()) < 1e-8
        assert_posterior_close(op.from_bytes(op.to_bytes(merged)).model.posterior(), whole.model.posterior())
        for bandit in (merged, whole):
            played(bandit, plays[180:], rewards[180:])
    assert make().merge(make()).n_learned == 0
    assert_posterior_close(make().merge(whole).model.posterior(), whole.model.posterior())


@pytest.mark.parametrize("reg", REGS)
def test_merged_plays_of_changing_arms_share_their_points(reg):
    make = lambda: op.GPUCB(kernel=op.RBF(0.4), reg=reg)  # noqa: E731
    rng, pool = np.random.default_rng(1), points(25, 3)
    rows = np.vstack([pool[rng.integers(0, 25, 50)], rng.random((30, 2)), -0.0 * pool[:1], 0.0 * pool[:1]])
    rewards = rng.standard_normal(len(rows))
    order = rng.permutation(len(rows))
    shards = [played(make(), rows[part], rewards[part]) for part in np.array_split(order, 3)]
    merged, whole = op.merge_all(make(), *shards, make()), played(make(), rows, rewards)
    for _ in range(2):
        assert_posterior_close(merged.model.posterior(points(20, 9)), whole.model.posterior(points(20, 9)))
        assert (merged.n_learned, merged.model.dictionary_size) == (whole.n_learned, whole.model.dictionary_size)
        merged, whole = (played(bandit, rows[:9], rewards[:9]) for bandit in (merged, whole))


def test_a_fitted_kernel_merges_with_its_copies():
    arms = points()
    plays, rewards = history(arms)
    fitted = op.GPUCB(arms, op.RBF(0.4), fit_after=20)
    with pytest.raises(ValueError, match="kernel and reg must have been chosen"):
        fitted.copy().merge(fitted)
    played(fitted, plays[:30], rewards[:30])
    twice = played(fitted.copy(), plays[:30], rewards[:30])
    assert_posterior_close(fitted.copy().merge(fitted).model.posterior(), twice.model.posterior())


def test_other_kernels_arms_and_units_are_refused_and_nothing_has_changed():
    arms = points()
    plays, rewards = history(arms)
    bandit = played(op.GPUCB(arms, op.RBF(0.4)), plays[:9], rewards[:9])
    held = op.to_bytes(bandit)
    others = {
        "kernel": op.GPUCB(arms, op.RBF(0.5)),
        "reg": op.GPUCB(arms, op.RBF(0.4), reg=0.5),
        "normalize": op.GPUCB(arms, op.RBF(0.4), normalize=True),
        "fixed": op.GPUCB(kernel=op.RBF(0.4)),
        "the same arms": op.GPUCB(arms[:7], op.RBF(0.4)),
    }
    for what, other in others.items():
        with pytest.raises(ValueError, match=what):
            bandit.merge(other)
    with pytest.raises(TypeError, match="with a budget cannot be merged"):
        bandit.merge(op.BKB(arms, op.RBF(0.4)))
    assert op.to_bytes(bandit) == held
