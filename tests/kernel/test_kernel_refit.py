"""`refit`: plays so far under another kernel and reg, as if they had been learned so."""

from itertools import product

import numpy as np
import pytest

import onepass as op
from counts import repetitions
from kernel_games import are_equal as equal
from kernel_games import assert_posterior_close, history, learn, play, points, value

OLD, NEW = op.RBF(0.4), 1.7 * op.Matern(2.5, (0.3, 0.6))
KINDS = {
    "GPUCB": op.GPUCB,
    "BKB": op.BKB,
    "BKB, all": lambda *a, **b: op.BKB(*a, oversampling=1e12, redundancy=0.0, **b),
}


@pytest.mark.parametrize(
    ("kind", "sets", "reg"),
    repetitions(
        [("GPUCB", "fixed", 0.37), ("GPUCB", "rows", 0.01), ("BKB, all", "fixed", 0.37)],
        [*product(["GPUCB", "BKB, all"], ["fixed", "rows"], [0.01, 0.37])],
    ),
)
def test_a_refitted_posterior_is_that_of_a_bandit_that_knew_kernel_and_reg_all_along(kind, sets, reg):
    arms = points()
    plays, rewards = history(arms, 90)
    what = plays if sets == "fixed" else arms[plays]
    offered = arms if sets == "fixed" else None
    bandit, knew = KINDS[kind](offered, OLD, reg=4.0), KINDS[kind](offered, NEW, reg=reg)
    learn(bandit, what[:70], rewards[:70])
    bandit.model.refit(NEW, reg)
    learn(bandit, what[70:], rewards[70:])
    learn(knew, what, rewards)
    assert_posterior_close(bandit.model.posterior(arms), knew.model.posterior(arms)[:2])
    assert np.isclose(bandit.model.information_gain(), knew.model.information_gain())
    assert (bandit.model.kernel, bandit.model.reg, bandit.n_learned) == (NEW, reg, 90)


def test_before_the_first_play_the_new_kernel_is_what_is_known():
    arms = points()
    for kind in KINDS.values():
        bandit, knew = kind(arms, OLD, reg=4.0), kind(arms, NEW, reg=0.37)
        bandit.model.refit(NEW, 0.37)
        assert equal(bandit.model.posterior(), knew.model.posterior())


def test_a_refitted_bandit_does_not_fit_again_and_comes_back_from_a_file(tmp_path):
    arms = points()
    bandit = op.GPUCB(arms, OLD, fit_after=30)
    play(bandit, lambda arm: float(value(arms)[arm]), 20)
    bandit.model.refit(NEW, 0.37)
    bandit.save(tmp_path / "bandit")
    other = op.load(tmp_path / "bandit")
    for one in (bandit, other):
        play(one, lambda arm: float(value(arms)[arm]), 20)
    assert bandit.model.kernel == other.model.kernel == NEW
    assert equal(bandit.model.posterior(), other.model.posterior())


def test_what_cannot_be_refitted_changes_nothing():
    arms = points()
    bandit = op.GPUCB(arms, OLD)
    learn(bandit, *history(arms, 20))
    before = bandit.model.posterior()
    for kernel, reg in ((NEW, 0.0), (lambda x, y: -np.ones((len(x), len(y))), 1.0), ("rbf", 1.0)):
        with pytest.raises((ValueError, TypeError)):
            bandit.model.refit(kernel, reg)
        assert equal(bandit.model.posterior(), before)
        assert (bandit.model.kernel, bandit.model.reg) == (OLD, 0.01)
