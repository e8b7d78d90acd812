"""Kernels, bandits, histories and comparisons for the tests of kernel bandits."""

import numpy as np
from sklearn.gaussian_process import kernels as sk

import onepass as op

REGS = (0.37, 4.0, 0.01)
ARMS = 40
KERNELS = {
    "rbf": op.RBF(0.15),
    "rbf per feature": op.RBF((0.1, 0.7)),
    "matern 1/2": op.Matern(0.5, 0.3),
    "matern 3/2": op.Matern(1.5, 0.3),
    "matern 5/2": op.Matern(2.5, (0.2, 0.4)),
    "linear": op.Linear(0.2),
    "polynomial": op.Polynomial(2, 0.5),
    "sum": 0.5 * op.Matern(1.5, 0.2) + op.Linear(),
    "product": 3.0 * op.Matern(2.5, 0.3) * op.Polynomial(1, 1.0),
    "scikit-learn": 2.0 * sk.Matern(0.3, nu=1.5) + sk.DotProduct(0.3),
    "function": lambda X, Y: 1.0 / (1.0 + 9.0 * ((X[:, None] - Y) ** 2).sum(2)) ** 2,
}
BANDITS = {
    "GPUCB": op.GPUCB,
    "BKB": op.BKB,
    "BKB with all": lambda *a, **k: op.BKB(*a, oversampling=1e12, redundancy=0.0, **k),
    "BKB with few": lambda *a, **k: op.BKB(*a, oversampling=1.0, staleness=1.0, **k),
}
SMOOTH = op.Matern(2.5, 0.3)


def points(count=ARMS, seed=0, dim=2):
    """Return points of the unit cube."""
    return np.random.default_rng(seed).random((count, dim))


def value(rows):
    """Return the function to maximize, between -1 and 1."""
    return np.sin(5.0 * rows[:, 0]) * np.cos(3.0 * rows[:, -1])


def history(arms, count=300, seed=1, noise=0.1):
    """Return plays, which repeat a few arms often, and noisy rewards."""
    rng = np.random.default_rng(seed)
    plays = np.minimum(rng.geometric(0.08, count) - 1, len(arms) - 1)
    return plays, value(arms)[plays] + noise * rng.standard_normal(count) + 0.5


def learn_rows(naive, rows, rewards):
    for row, reward in zip(rows, rewards, strict=True):
        naive.learn(row, reward)
    return naive


def assert_close(got, want, tolerance=1e-8):
    """Assert equality up to a tolerance relative to the largest entry, or to 1."""
    np.testing.assert_allclose(got, want, rtol=0.0, atol=tolerance * max(np.abs(want).max(), 1.0))


def assert_posterior_close(posterior, want, tolerance=1e-8):
    assert_close(posterior.means, want[0], tolerance)
    assert_close(posterior.variances, want[1], tolerance)


def are_equal(one, other):
    """Return True if all arrays are equal bit for bit."""
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def learn(bandit, arm, reward):
    """Learn rewards of arms, indices where they are fixed and rows where they change."""
    if getattr(bandit.model, "fixed", False):
        bandit.learn(None, reward, arm)
    else:
        bandit.learn(arm, reward)


def play(bandit, reward, rounds):
    """Decide and learn for some rounds on fixed arms, with the rewards reward(arm). Return the chosen arms."""
    arms = np.empty(rounds, np.int64)
    for t in range(rounds):
        arms[t] = arm = bandit.decide().arm
        learn(bandit, arm, reward(arm))
    return arms


def run(bandit, rounds, seed=5, sets=None):
    """Decide and learn for some rounds. Return the arms and scores."""
    rng, out = np.random.default_rng(seed), []
    for _ in range(rounds):
        rows = None if sets is None else sets(rng)
        decision = bandit.decide() if rows is None else bandit.decide(rows)
        out.append((decision.arm, decision.scores.copy()))
        if rows is None:
            learn(bandit, decision.arm, np.sin(decision.arm) + 0.1 * rng.standard_normal())
        else:
            learn(bandit, rows[decision.arm], value(rows)[decision.arm] + 0.1 * rng.standard_normal())
    return out


def are_equal_runs(one, other):
    return all(a == b and np.array_equal(s, t) for (a, s), (b, t) in zip(one, other, strict=True))


def draw_arm_set(rng):
    """Draw an arm set, some arms of which are always the same."""
    return np.vstack([rng.random((6, 2)), points(3)])


# ---- files and copies ----

SETS = {"fixed": None, "rows": draw_arm_set}


def breaking(X, Y):
    """Positive definite on two of three points of the grid, with eigenvalue -0.8 on all three."""
    return np.where(np.abs(X[:, :1] - Y[:, 0]) < 0.5, 1.0, -0.9)
