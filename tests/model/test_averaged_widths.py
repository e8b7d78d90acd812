"""Widths of `ContextualBandit`: of the models that are believed most, and cut by the rows that an arm has learned."""

import numpy as np
import pytest

import onepass as op
from onepass.model.averaged.mixture import ANYWHERE, SHARE, SIZE, sigma_of, weights, weights_of_widths
from onepass.model.averaged.regression import length

KIND = {"n_landmarks": 5, "warm_up": 16}  # small, and of the other tests


def learned(rounds=60, dim=3):
    """A bandit of four arms, two of which learn twice as often, and rows."""
    rng = np.random.default_rng(1)
    rows, bandit = rng.standard_normal((rounds, dim)), op.ContextualBandit(**KIND)
    bandit.learn(rows, rng.random(rounds), (rng.integers(6, size=rounds) % 4).tolist())
    return bandit, rows


def test_no_direction_is_wider_than_an_arms_rows_leave_it():
    """width^2 <= ||phi||^2 / (ANYWHERE n_a), also of contexts unlike all that were seen; an unknown arm has more."""
    bandit, rows = learned()
    state = bandit.model.state
    for x in (rows[0], np.full(3, 100.0)):
        found = bandit.decide(x, [0, 1, 2, 3, "new"])
        norm = found.widths[4] ** 2 * state.settings[np.argmax(weights(state)), 0]  # ||phi||^2 / reg, and no rows
        slots = [bandit.model.index.find(arm) for arm in range(4)]
        assert (found.widths[:4] ** 2 < norm / (ANYWHERE * state.learned[slots])).all()
        assert found.widths[4] > found.widths[:4].max()


def test_rows_are_counted_by_arm_and_forgotten_with_it():
    rng, bandit = np.random.default_rng(2), op.ContextualBandit(**KIND)
    bandit.learn(rng.standard_normal((40, 3)), rng.random(40), np.repeat(range(4), [20, 10, 7, 3]).tolist())
    assert bandit.model.state.learned.tolist() == [20, 10, 7, 3]
    bandit.remove_arm(1)
    assert bandit.model.state.learned.tolist() == [20, 0, 7, 3]


def test_means_are_of_all_models_and_widths_of_those_believed_nearly_as_much_as_the_best():
    """Scaling an inverse moves the widths where its model has a weight among widths, and nowhere else."""
    bandit, rows = learned()
    state, before = bandit.model.state, bandit.decide(rows[0], range(4))
    w, ends = weights(state), length(state.plan[:, SIZE]).cumsum()
    v = weights_of_widths(w)
    assert np.count_nonzero(w) > np.count_nonzero(v) > 1
    for m, end in enumerate(ends):
        state.inverse[:, end - length(state.plan[m, SIZE]) : end] *= 4.0
        found = bandit.decide(rows[0], range(4))
        assert np.array_equal(found.means, before.means)
        assert np.array_equal(found.widths, before.widths) == (v[m] == 0.0)
        before = found


def test_widths_count_a_share_of_the_rewards_unit_where_nothing_errs():
    """Rewards that models predict without error still leave an arm unknown in what it has not met."""
    rng, bandit = np.random.default_rng(3), op.ContextualBandit(**KIND)
    rows = rng.standard_normal((500, 3))
    bandit.learn(rows, rows[:, 0], ["a"] * 500)
    unit, state = bandit.choices()["unit"], bandit.model.state
    assert sigma_of(state, weights(state)) < 0.5 * SHARE * unit
    found = bandit.decide(rows[0], ["a", "b"])
    assert found.scores - found.means == pytest.approx(SHARE * unit * np.asarray(found.widths))
    assert bandit.choices()["residual"] == sigma_of(state, weights(state))
