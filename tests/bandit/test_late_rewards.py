"""Rewards come late and in any order: the model is the same to rounding; with other arms between, bit for bit."""

import numpy as np
import pytest

import onepass as op
from arm_games import DIM, NAMES, data, disjoint, hybrid, learn_in_batches
from onepass.design.contract import matrix
from onepass.foundation import state as states

DESIGNS = {
    "exact": op.Exact(dim=DIM, reg=0.37),
    "fd": op.FrequentDirections(dim=DIM, size=2, reg=0.37),
    "rfd": op.RobustFrequentDirections(dim=DIM, size=2, reg=0.05),
    "dyadic": op.Dyadic(dim=DIM, size=1, error=9.0, reg=0.37),
    "splitting": op.ProjectorSplitting(dim=DIM, rank=DIM, reg=0.37),
}
ADDITIVE = {
    "Ridge": op.Ridge,
    "OnlineNewton": op.OnlineNewton,
    "TruncatedRidge": lambda design: op.estimator.TruncatedRidge(design, moment=30.0),
}


def delayed(count, seed, longest=30):
    """The order in which rewards come that are up to `longest` rounds late."""
    return np.argsort(np.arange(count) + np.random.default_rng(seed).uniform(0, longest, count), kind="stable")


def in_order(bandit, rows, rewards, order, names=None):
    for i in order:
        bandit.learn(rows[i], float(rewards[i]), *([] if names is None else [names[i]]))
    return bandit


@pytest.mark.parametrize("reg", [0.02, 0.37, 5.0])
@pytest.mark.parametrize("kind", ADDITIVE)
def test_exact_shared_models_do_not_know_the_order_of_rewards(kind, reg):
    rows, rewards, _ = data(150)
    make = lambda: op.Bandit(ADDITIVE[kind](op.Exact(dim=DIM, reg=reg)))  # noqa: E731
    whole = in_order(make(), rows, rewards, range(150))
    for seed in range(3):
        late = in_order(make(), rows, rewards, delayed(150, seed))
        np.testing.assert_allclose(late.model.parameter, whole.model.parameter, rtol=0, atol=1e-9)
        np.testing.assert_allclose(late.score(rows), whole.score(rows), rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", ["exact", "splitting"])
def test_models_per_arm_do_not_know_the_order_of_rewards(kind):
    rows, rewards, names = data(150)
    whole = learn_in_batches(disjoint(DESIGNS[kind]), rows, rewards, names)
    late = in_order(disjoint(DESIGNS[kind]), rows, rewards, delayed(150, 1), names)
    scores = [np.stack([bandit.score(row, NAMES) for row in rows[:20]]) for bandit in (late, whole)]
    np.testing.assert_allclose(*scores, rtol=0, atol=1e-8)


def test_hybrid_models_do_not_know_the_order_of_rewards():
    rows, rewards, names = data(150)
    whole = learn_in_batches(hybrid(), rows, rewards, names)
    late = in_order(hybrid(), rows, rewards, delayed(150, 1), names)
    scores = [np.stack([bandit.score(row, NAMES) for row in rows[:20]]) for bandit in (late, whole)]
    np.testing.assert_allclose(*scores, rtol=0, atol=1e-9)


@pytest.mark.parametrize("compact", [None, False])
@pytest.mark.parametrize("kind", DESIGNS)
def test_an_arm_does_not_know_when_others_learned(kind, compact):
    """Rows of one arm in their order, those of others anywhere between: the same bits."""
    rows, rewards, names = data(150)
    order = sorted(range(150), key=lambda i: (NAMES.index(names[i]) % 3, i))
    one, other = (
        in_order(disjoint(DESIGNS[kind], compact=compact), rows, rewards, found, names) for found in (range(150), order)
    )
    for name in NAMES:
        assert states.equal(one.model.export_arm(name).state, other.model.export_arm(name).state)


@pytest.mark.parametrize("kind", ["fd", "rfd", "dyadic"])
def test_certificates_of_sketches_hold_in_any_order(kind):
    rows, rewards, _ = data(150)
    a = DESIGNS[kind].params["reg"] * np.eye(DIM) + rows.T @ rows
    for seed in range(5):
        bandit = in_order(op.Bandit(op.Ridge(DESIGNS[kind])), rows, rewards, delayed(150, seed, 150))
        assert np.linalg.norm(a - matrix(bandit.model.state.design), 2) <= bandit.error_bound()
        b = bandit.model.state.moment
        np.testing.assert_allclose(b, rows.T @ rewards, rtol=0, atol=1e-9 * np.abs(b).max())


def test_deciding_between_reward_and_decision_changes_no_model():
    rows, rewards, names = data(90)
    waited, at_once = disjoint(DESIGNS["rfd"]), disjoint(DESIGNS["rfd"])
    for row in rows:
        waited.decide(row, NAMES)
    in_order(waited, rows, rewards, range(90), names)
    for i, row in enumerate(rows):
        at_once.decide(row, NAMES)
        at_once.learn(row, float(rewards[i]), names[i])
    for name in NAMES:
        assert states.equal(waited.model.export_arm(name).state, at_once.model.export_arm(name).state)
