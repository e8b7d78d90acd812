"""Data and bandits for the tests of models per arm."""

from functools import cache
from itertools import cycle, pairwise

import numpy as np

import onepass as op
from onepass.foundation import state as states

DIM, LEFT, RIGHT = 8, 4, 3
NAMES = ["a", 7, ("pair", 2), "d"]
CUTTING = [op.FrequentDirections(dim=DIM, size=s, reg=0.37, compensation=c) for s in (1, 2, 3) for c in (0.0, 0.5, 1.0)]


def data(count, rank=DIM, seed=0, names=NAMES):
    """Return rows (count, DIM) of a given rank, rewards (count,), and the arm of each row."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, rank)) @ (np.eye(DIM) if rank == DIM else rng.standard_normal((rank, DIM)))
    rewards = rows @ rng.standard_normal(DIM) + 0.1 * rng.standard_normal(count)
    return rows, rewards, [names[i] for i in rng.integers(0, len(names), count)]


def slices(count, sizes=(1, 1, 17, 2, 40, 1, 5)):
    """Return slices of uneven batches of `count` rows."""
    edges, step = [0], cycle(sizes)
    while edges[-1] < count:
        edges.append(min(edges[-1] + next(step), count))
    return [slice(a, b) for a, b in pairwise(edges)]


def disjoint(design, rule=None, seed=0, **options):
    return op.Bandit(op.Disjoint(op.Ridge(design), **options), op.UCB(0.5) if rule is None else rule, seed=seed)


def learn_in_batches(bandit, rows, rewards, names, sizes=(1, 1, 17, 2, 40, 1, 5)):
    for part in slices(len(rows), sizes):
        bandit.learn(rows[part], rewards[part], names[part])
    return bandit


def hybrid(reg=0.37, exploration=0.5, **options):
    parts = {"shared": op.Ridge(op.Exact(dim=DIM, reg=reg)), "arms": op.Ridge(op.Exact(dim=DIM, reg=reg))}
    return op.Bandit(op.Hybrid(**parts, **options), op.UCB(exploration))


def fingerprint(bandit):
    """Return everything that learning could change, as plain bytes."""
    leaves = [(name, np.asarray(value)) for name, value in states.leaves(bandit.copy().model.contents().state)]
    saved = [(name, value.tolist() if value.dtype == object else value.tobytes()) for name, value in leaves]
    return saved, bandit.arms, bandit.n_learned, bandit._rng.bit_generator.state


def assert_close(got, want, tolerance=1e-9):
    """Assert equality up to a tolerance relative to the largest entry."""
    np.testing.assert_allclose(got, want, rtol=0.0, atol=tolerance * np.abs(want).max())


# ---- factors ----


def factor_data(count, seed=0, signed=True):
    """Return left (count, LEFT), right (count, RIGHT), rewards, names, {name: factor}; `signed` scales rows."""
    rng = np.random.default_rng(seed)
    arms = {name: rng.standard_normal(RIGHT) for name in (*NAMES, "e", "zero")}
    arms["zero"] = np.zeros(RIGHT)
    left, names = rng.standard_normal((count, LEFT)), [list(arms)[i] for i in rng.integers(0, len(arms), count)]
    scales = rng.uniform(-2.0, 2.0, count) if signed else np.ones(count)
    right = np.stack([arms[name] for name in names]) * scales[:, None]
    return left, right, rng.standard_normal(count), names, arms


def outer(reduce, design=None, rule=None, **options):
    width = LEFT if reduce else LEFT * RIGHT
    design = op.Exact(dim=width, reg=options.pop("reg", 0.37)) if design is None else design
    features = op.features.OuterProduct(left=LEFT, right=RIGHT, reduce=reduce)
    return op.Bandit(op.Disjoint(op.Ridge(design), **options), op.UCB(0.5) if rule is None else rule, features=features)


# ---- files ----


KINDS = {
    "Exact": lambda: disjoint(op.Exact(dim=DIM), op.Thompson(0.3), seed=3),
    "float32": lambda: disjoint(op.Exact(dim=DIM, dtype="float32")),
    "FrequentDirections": lambda: disjoint(op.FrequentDirections(dim=DIM, size=2), op.EpsilonGreedy(0.3), threads=2),
    "ProjectorSplitting": lambda: disjoint(op.ProjectorSplitting(dim=DIM, rank=3), op.UCB(op.Theory(scale=0.1))),
    "Dyadic": lambda: disjoint(op.Dyadic(dim=DIM, size=1, error=8.0)),
    "separate": lambda: disjoint(op.Exact(dim=DIM), compact=False),
    "Hybrid": hybrid,
    "Hybrid, separate": lambda: hybrid(compact=False),
    "factors": lambda: outer(True),
}


@cache
def example_bandit(kind):
    """Return a bandit that has learned, lost an arm, and has an arm without data. Copy it before you change it."""
    bandit = KINDS[kind]()
    if kind == "factors":
        left, right, pays, who, _ = factor_data(120)
        bandit.learn(op.Factors(left, right), pays, who)
    else:
        learn_in_batches(bandit, *data(120))
    bandit.remove_arm(7)
    bandit.add_arm("waiting")
    return bandit


# ---- decisions ----


def make_experienced_bandit(rule=None, seed=0):
    rows, rewards, names = data(120)
    return learn_in_batches(disjoint(op.Exact(dim=DIM, reg=0.37), rule, seed), rows, rewards, names)
