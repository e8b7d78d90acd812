"""Streams and games for the tests of heavy-tailed rewards."""

import numpy as np

import onepass as op
from onepass.estimator import contract
from onepass.foundation import state as states

DIM, ARMS = 4, 6
PRACTICE = {"radius": 0.0, "clip": 0.02, "floor": 3.0, "step": 1.0}
DESIGNS = {  # exact on rows of rank 3
    "Exact": lambda reg: op.Exact(dim=DIM, reg=reg),
    "FrequentDirections": lambda reg: op.FrequentDirections(dim=DIM, size=4, reg=reg),
    "RobustFrequentDirections": lambda reg: op.RobustFrequentDirections(dim=DIM, size=4, reg=reg),
    "Dyadic": lambda reg: op.Dyadic(dim=DIM, size=4, error=1e9, reg=reg),
    "ProjectorSplitting": lambda reg: op.ProjectorSplitting(dim=DIM, rank=3, reg=reg),
}
SIX = {
    "HvtUCB": lambda **k: op.HvtUCB(dim=DIM, epsilon=0.5, **k),
    "HeavyOFUL": lambda **k: op.HeavyOFUL(dim=DIM, epsilon=0.5, nu=0.4, **k),
    "CRTM": lambda **k: op.CRTM(dim=DIM, epsilon=0.5, moment=3.0, **k),
    "TOFU": lambda **k: op.TOFU(dim=DIM, epsilon=0.5, moment=3.0, **k),
    "CRMM": lambda **k: op.CRMM(dim=DIM, repeats=7, **k),
    "MENU": lambda **k: op.MENU(dim=DIM, repeats=7, **k),
}


def stream(count=1000, seed=0, rank=DIM):
    """Return rows (count, DIM) of lengths 0.2 to 1.5, and rewards with Student t noise of 1.5 degrees of freedom."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, rank)) @ (np.eye(DIM) if rank == DIM else rng.standard_normal((rank, DIM)))
    rows *= rng.uniform(0.2, 1.5, (count, 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, rows @ rng.standard_normal(DIM) + 0.5 * rng.standard_t(1.5, count)


def game(rounds=630, seed=0, arms=ARMS, dim=DIM, df=1.5):
    """Return contexts (rounds, arms, dim), equal in all rounds, rewards (rounds, arms), and mean regrets (arms,)."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((arms, dim))
    rows *= rng.uniform(0.8, 1.0, (arms, 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
    theta = rng.standard_normal(dim)
    means = rows @ theta / np.linalg.norm(theta)
    contexts = np.ascontiguousarray(np.broadcast_to(rows, (rounds, arms, dim)))
    return contexts, means + 0.5 * rng.standard_t(df, (rounds, arms)), means.max() - means


def state_after(state, rows, rewards, nus=None):
    """Return the state after all rows. `nus` are noise scales of the rows, NaN for none."""
    for i in range(len(rows)):
        if nus is not None and nus[i] > 0.0:
            state = contract.set_next_noise(state, float(nus[i]))
        state = contract.update(state, rows[i], float(rewards[i]))
    return state


def fingerprint(bandit):
    """Return everything that learning could change, as plain bytes."""
    leaves = [(name, np.asarray(value)) for name, value in states.leaves(bandit.copy().model.contents().state)]
    saved = [(name, value.tolist() if value.dtype == object else value.tobytes()) for name, value in leaves]
    return saved, bandit.n_learned, bandit._rng.bit_generator.state


def assert_close(got, want, tolerance=1e-8):
    """Assert equality up to a tolerance relative to the largest entry."""
    np.testing.assert_allclose(got, want, rtol=0.0, atol=tolerance * np.abs(want).max())


ROW, ROWS = np.array([0.3, -0.2, 0.5, 0.1]), stream(5, seed=20)[0]
