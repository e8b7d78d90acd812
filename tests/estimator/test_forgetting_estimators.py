"""What stands beside A is forgotten with it: every estimator against its dense oracle, decayed by hand."""

import numpy as np
import pytest

import dense
import onepass as op
from counts import LONG
from onepass.design import contract
from onepass.estimator.contract import forget

DIM, REG, FACTOR = 3, 0.7, 2.0 ** (-4 / 64)  # a half-life of 16 rounds: four ticks a round


def decayed(oracle):
    """A <- reg I + f (A - reg I), and theta the minimizer of ||. - theta||_A^2 / 2 with the data part times f."""
    held, prior = oracle.matrix, REG * np.eye(DIM)
    oracle.matrix = prior + FACTOR * (held - prior)
    oracle.theta = np.linalg.solve(oracle.matrix, FACTOR * held @ oracle.theta)
    if hasattr(oracle, "t"):
        oracle.t = int(FACTOR * oracle.t)


def weighed(oracle):
    """The whole history: rows, rewards and marks times sqrt(f)."""
    root = np.sqrt(FACTOR)
    oracle.matrix = REG * np.eye(DIM) + FACTOR * (oracle.matrix - REG * np.eye(DIM))
    oracle.rows, oracle.values, oracle.marks = root * oracle.rows, root * oracle.values, root * oracle.marks
    oracle.theta = oracle.minimizer()


class Ridge:
    """Ridge regression on weighted rows: what MENU without repeats and TOFU that truncates nothing are."""

    def __init__(self):
        self.matrix, self.moment = REG * np.eye(DIM), np.zeros(DIM)

    def learn(self, x, reward):
        self.matrix, self.moment = self.matrix + np.outer(x, x), self.moment + reward * x

    def decay(self):
        self.matrix = REG * np.eye(DIM) + FACTOR * (self.matrix - REG * np.eye(DIM))
        self.moment = FACTOR * self.moment
        self.theta = np.linalg.solve(self.matrix, self.moment)


CASES = {
    "HvtUCB": (
        lambda d: op.OnePassHuber(d, nu=0.3, radius=1.0, clip=0.05, floor=0.5, step=1.0),
        lambda: dense.HvtUCB(DIM, REG, 1.0, nu=0.3, radius=1.0, clip=0.05, floor=0.5, step=1.0),
        decayed,
    ),
    "HEAVY-OFUL": (
        lambda d: op.estimator.AdaptiveHuber(d, nu=0.3, radius=1.0, clip=0.3, floor=0.5, horizon=10**8),
        lambda: dense.HeavyOFUL(DIM, REG, 1.0, nu=0.3, radius=1.0, clip=0.3, floor=0.5, horizon=10**8),
        weighed,
    ),
    "CRTM": (
        lambda d: op.estimator.OnePassTruncation(d, moment=50.0, horizon=2000),
        lambda: dense.CRTM(DIM, REG, 1.0, 50.0, 2000),
        decayed,
    ),
    "CRMM": (lambda d: op.estimator.OnePassMedian(d, repeats=1), lambda: dense.CRMM(DIM, REG, 1), decayed),
    "MENU": (lambda d: op.estimator.MedianOfMeans(d, repeats=1), Ridge, Ridge.decay),
    "TOFU": (lambda d: op.estimator.TruncatedRidge(d, moment=1e12), Ridge, Ridge.decay),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES if LONG else ("HvtUCB", "HEAVY-OFUL", "TOFU"))
def test_estimators_forget_as_their_oracles_do(name):
    make, oracle, decay = CASES[name]
    bandit, oracle = op.Bandit(make(op.Exact(dim=DIM, reg=REG)), half_life=16.0), oracle()
    rng = np.random.default_rng(0)
    for _ in range(40):
        row = rng.standard_normal(DIM)
        reward = float(row @ [1.0, -0.5, 0.2] + 0.3 * rng.standard_t(2.1))
        bandit.learn(row, reward)
        oracle.learn(row, reward)
        decay(oracle)
        close = (
            1e-3 if name == "HEAVY-OFUL" else 1e-7
        )  # whose minimizer is found to 1 / sqrt(horizon), in the norm of H
        assert np.abs(bandit.model.parameter - oracle.theta).max() <= close
        root = bandit.model.state.design.root
        assert np.abs(root @ root.T @ oracle.matrix - np.eye(DIM)).max() <= 1e-8
    before = bandit.model.parameter
    bandit.learn(np.zeros((16 * 40, DIM)), np.zeros(16 * 40))  # 40 half-lives of rows that say nothing
    assert np.linalg.norm(bandit.model.parameter) <= 1e-6 * np.linalg.norm(before)


SKETCHES = [op.FrequentDirections(dim=20, size=4, reg=0.1), op.ProjectorSplitting(dim=20, rank=4)]


@pytest.mark.parametrize("design", SKETCHES, ids=["fd", "psi"])
def test_newton_steps_forget_on_sketches_by_the_sketch_itself(design):
    """A' theta' = factor A theta for A as the sketch has it."""
    rng = np.random.default_rng(1)
    bandit = op.Bandit(op.OnlineNewton(design), half_life=8.0)
    bandit.learn(rng.standard_normal((100, 20)), rng.standard_normal(100))
    state = bandit.copy().model.state
    before, theta = contract.matrix(state.design), state.theta.copy()
    after = forget(state, 0.6)
    want = np.linalg.solve(contract.matrix(after.design), 0.6 * before @ theta)
    assert np.abs(after.theta - want).max() <= 1e-8 * np.abs(theta).max()
