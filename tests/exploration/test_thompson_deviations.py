"""How far Thompson sampling of kernel bandits draws: 0.6 deviations of the posterior by default."""

from functools import partial

import numpy as np

import onepass as op
from onepass.lab.kernels.problems import NegatedFunction, hartmann6, sobol
from onepass.lab.kernels.study import play


def test_on_hartmann_6_whole_draws_lose_nearly_as_much_as_chance_and_half_ones_do_not():
    """A draw's best of many nearly independent arms is above all that the function has: no arm is ever good enough."""
    problem = NegatedFunction(hartmann6, partial(sobol, count=500, dim=6), 9.0 * op.Matern(2.5, (0.3,) * 6))(0)
    losses = problem.expected.max() - problem.expected
    lost = {}
    for share in (1.0, 0.5):
        bandit = op.BKB(problem.arms, problem.kernel, reg=0.01, exploration=op.SingleDrawThompson(share * 0.01**0.5))
        play(bandit, problem, 0, 250)
        lost[share] = float(bandit.model.state.plays @ losses) / (250 * float(np.mean(losses)))
    assert lost[1.0] > 0.55
    assert lost[0.5] < 0.5 * lost[1.0], lost


def test_where_no_strength_is_given_draws_are_0_6_deviations_of_the_posterior_whatever_reg():
    rng = np.random.default_rng(0)
    arms, rewards = rng.random((30, 2)), rng.random(12)
    for reg in (0.01, 1.0):
        for kind, rule in ((op.GPUCB, op.SingleDrawThompson), (op.BKB, op.Thompson)):
            usual, told = (
                kind(arms, op.RBF(0.5), reg=reg, exploration=given) for given in (rule(), rule(0.6 * reg**0.5))
            )
            for bandit in (usual, told):
                for arm, reward in enumerate(rewards):
                    bandit.learn(None, float(reward), arm)
            assert np.array_equal(usual.score(), told.score())


def test_without_a_strength_it_stays_0_6_deviations_when_reg_is_fitted_and_when_loaded(tmp_path):
    arms = np.linspace(0.0, 1.0, 40)[:, None]
    bandit = op.GPUCB(arms, op.RBF(0.3), exploration=op.SingleDrawThompson(), fit_after=10, seed=1)
    for arm in range(15):
        bandit.learn(None, float(np.sin(4.0 * arms[arm, 0])), arm)
    assert bandit.model.reg != 0.01
    bandit.save(tmp_path / "bandit")
    loaded = op.load(tmp_path / "bandit")
    assert loaded.exploration == op.SingleDrawThompson()
    assert np.array_equal(loaded.score(), bandit.score())
    told = bandit.copy()
    told.exploration = op.SingleDrawThompson(0.6 * 0.01**0.5)  # kept in standard deviations
    assert np.allclose(told.score(), bandit.score())


def test_of_linear_bandits_strengths_are_as_they_were():
    assert op.Thompson().rule().strength.scale == 0.03
    assert op.SingleDrawThompson().rule().strength.scale == 0.1
    assert op.SingleDrawThompson().params() == {"exploration": None}
