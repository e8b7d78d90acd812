"""Streams and learners for the tests of learners on a budget."""

import numpy as np

import onepass as op
from onepass.learner.budget import free_or_random_index, make_budget

CLASSIFYING = ("hinge", "squared_hinge", "logistic")


def stream(count=400, dim=3, seed=0, loss="hinge"):
    """Return rows and targets: two classes that no plane separates, or a smooth function with noise."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, dim))
    f = np.sin(2.0 * rows[:, 0]) + rows[:, 1] * rows[:, 2] + 0.2 * rng.standard_normal(count)
    return rows, np.where(f < 0.0, -1.0, 1.0) if loss in CLASSIFYING else f


def repeating(count, distinct, seed=0, dim=3):
    """Return a stream drawn from `distinct` points, each with its class."""
    rows, targets = stream(distinct, dim, seed=seed)
    drawn = np.random.default_rng(seed + 1).integers(distinct, size=count)
    return rows[drawn], targets[drawn]


def decisions(learner, rows, targets):
    return op.progressive_validation(learner, rows, targets).decisions


def place(budget, seed):
    """Return a function from the turn to the library's random index in a full budget."""
    full = make_budget(budget, 1, 1.0)._replace(used=budget)
    return lambda turn: int(free_or_random_index(full, seed, turn))


def expansion(learner):
    """Return copies of the points in use and of their weights."""
    budget = learner._state.budget
    return budget.points[: budget.used].copy(), budget.weights[: budget.used].copy()


SKETCHES = {"budget": 15, "rank": 8, "sketch_size": 8, "sample_size": 8, "blocks": 2}


# --- theorems: PROS-N-KONS


def features(learner, rows):
    d, precision = learner._state.dictionary, learner._state.precision
    near = np.exp(-precision * ((rows[:, None] - d.points[None, : d.used]) ** 2).sum(axis=2))
    return near @ d.whitening[: d.used, : d.used]
