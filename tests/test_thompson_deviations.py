"""How far Thompson sampling of kernel bandits should draw: half a deviation of the posterior."""

from functools import partial

import numpy as np

import onepass as op
from onepass.experiment.kernels.problems import Maximised, hartmann6, sobol
from onepass.experiment.kernels.study import play


def test_on_hartmann_6_whole_draws_lose_nearly_as_much_as_chance_and_half_ones_do_not():
    """A draw's best of many nearly independent arms is above all that the function has: no arm is ever good enough."""
    problem = Maximised(hartmann6, partial(sobol, count=500, dim=6), 9.0 * op.Matern(2.5, (0.3,) * 6))(0)
    losses = problem.expected.max() - problem.expected
    lost = {}
    for share in (1.0, 0.5):
        bandit = op.BKB(problem.arms, problem.kernel, reg=0.01, exploration=op.PlainThompson(share * 0.01**0.5))
        play(bandit, problem, 0, 250)
        lost[share] = float(bandit._state.plays @ losses) / (250 * float(np.mean(losses)))
    assert lost[1.0] > 0.55
    assert lost[0.5] < 0.5 * lost[1.0], lost
