"""Conformance suite of online kernel learners."""

import pickle
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from onepass.foundation import state as states
from onepass.foundation.files import load
from onepass.foundation.registry import list_classes
from onepass.learner.learner import Learner, progressive_validation
from onepass.testing.shared import summary


def make_targets(learner: Learner, rows: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return targets of a nonlinear function with noise, for a classifier or a regressor.

    Parameters
    ----------
    learner : Learner
        Learner that decides the kind of targets.
    rows : array of shape (n, dim)
        Rows that the targets belong to.
    seed : int, default 0
        Seed of the noise, at least 0.

    Returns
    -------
    array of shape (n,)
        Labels -1 and 1 for a classifier, numbers for a regressor.
    """
    f = (
        np.sin(2.0 * rows[:, 0])
        + rows[:, -1] * rows[:, 0]
        + 0.2 * np.random.default_rng(seed).standard_normal(len(rows))
    )
    return np.where(f < 0.0, -1.0, 1.0) if learner.is_classifier else f


def check_learner(make: Callable[[], Learner], dim: int = 4, n_rows: int = 240) -> str:
    """Check that an online kernel learner satisfies its contract.

    Parameters
    ----------
    make : function
        Returns a new learner.
    dim : int, default 4
        Number of columns of the rows.
    n_rows : int, default 240
        Number of rows of a stream.

    Returns
    -------
    str
        A sentence that lists what was checked.

    Raises
    ------
    AssertionError
        At the first violation.

    Notes
    -----
    The suite checks that

    - a stream learned at once, in pieces, one by one or from a sparse array gives the same learner;
    - progressive validation decides before it learns, and deciding changes nothing;
    - bad input raises ValueError and changes nothing;
    - decisions are finite on degenerate streams (constant, zero, repeated, badly scaled rows, one class only);
    - copies and pickles are independent and continue alike, and memory is counted;
    - the learner is rebuilt from `get_params`, and `set_params` makes it forget what it learned;
    - a learner that is `onepass.extend.savable` is saved and loaded before, while and after it learns, and continues
      bit for bit.
    """
    rows = np.random.default_rng(1).standard_normal((n_rows, dim))
    queries = np.random.default_rng(2).standard_normal((20, dim))
    targets = make_targets(make(), rows)
    whole = make().partial_fit(rows, targets)
    where, want = repr(whole), whole.decision_function(queries)
    assert want.shape == (20,), f"{where}: decisions of 20 rows have shape {want.shape}"
    assert np.isfinite(want).all(), f"{where}: decisions are not finite"

    def check_same(name: str, learner: Any) -> None:
        assert np.array_equal(learner.decision_function(queries), want), f"{where}: {name} decides differently"

    check_same("asked a second time, it", whole)
    _check_ways_of_learning(make, check_same, rows, targets)
    _check_refusals(whole, rows, targets)
    check_same("after bad input, it", whole)
    _check_degenerate_streams(make, dim, n_rows)
    for learned in (0, 1, n_rows // 2):
        _check_copies(
            make().partial_fit(rows[:learned], targets[:learned]), check_same, rows[learned:], targets[learned:]
        )
    rebuilt = type(whole)(**whole.get_params())
    assert rebuilt.memory_usage() == 0, f"{where}: it holds memory before it has learned"
    check_same("built again from get_params()", rebuilt.partial_fit(rows, targets))
    assert rebuilt.memory_usage() == states.nbytes(rebuilt.states()), (
        f"{where}: memory_usage() is not that of its state"
    )
    for name, value in list(whole.get_params().items())[:1]:
        check_same("after set_params()", rebuilt.set_params(**{name: value}).partial_fit(rows, targets))
    return summary(
        whole, f"{n_rows} rows of {dim} numbers are learned alike whole, in pieces, one by one and sparse",
        "bad input is refused", "degenerate streams leave it finite", "copies, pickles and parameters make the same",
    )  # fmt: skip


def _check_ways_of_learning(
    make: Callable[[], Learner], check_same: Callable, rows: np.ndarray, targets: np.ndarray
) -> None:
    from scipy.sparse import csr_array

    third, singly, before = len(rows) // 3, make(), []
    check_same(
        "learning in pieces",
        make().partial_fit(rows[:third], targets[:third]).partial_fit(rows[third:], targets[third:]),
    )
    for x, y in zip(rows, targets, strict=True):
        before.append(float(singly.decision_function(x[None])[0]))
        singly.learn_one(x, y)
    check_same("learning one by one", singly)
    check_same("learning from a sparse array", make().partial_fit(csr_array(rows), targets))
    learner = make()
    validation = progressive_validation(learner, rows, targets)
    check_same("after progressive validation, it", learner)
    assert np.array_equal(validation.decisions, before), f"{learner!r}: progressive validation decides differently"


def _check_refusals(learner: Learner, rows: np.ndarray, targets: np.ndarray) -> None:
    bad = [
        (np.full_like(rows[:2], np.nan), targets[:2]),
        (np.full_like(rows[:2], np.inf), targets[:2]),
        (rows[:2, :-1], targets[:2]),
        (rows[0], targets[:1]),
        (rows[:2], targets[:1]),
        (rows[:2], np.full(2, np.nan)),
        ([["row"] * rows.shape[1]], targets[:1]),
    ]
    if learner.is_classifier:
        bad.append((rows[:1], np.zeros(1)))
    for X, y in bad:
        for learns in (learner.partial_fit, lambda X, y: progressive_validation(learner, X, y)):
            try:
                learns(X, y)
            except ValueError:
                continue
            raise AssertionError(f"{learner!r}: X={X!r}, y={y!r} was not refused with a ValueError")


def _check_degenerate_streams(make: Callable[[], Learner], dim: int, n_rows: int) -> None:
    random = np.random.default_rng(3).standard_normal((n_rows, dim))
    streams = {
        "zero": np.zeros((n_rows, dim)),
        "constant": np.ones((n_rows, dim)),
        "repeated": random[np.arange(n_rows) % 3],
        "huge": 1e9 * random,
        "tiny": 1e-9 * random,
        "badly scaled": random * 10.0 ** np.linspace(-6, 6, dim),
    }
    for kind, rows in streams.items():
        learner = make()
        for y in (np.where(np.arange(n_rows) % 3 == 0, -1.0, 1.0), np.ones(n_rows)):
            decisions = np.append(progressive_validation(learner, rows, y).decisions, learner.decision_function(random))
            assert np.isfinite(decisions).all(), f"{learner!r}: decisions on {kind} rows are not finite"


def _check_copies(learner: Learner, check_same: Callable, rows: np.ndarray, targets: np.ndarray) -> None:
    """Check that all copies of a learner learn further rows alike, and independently of each other.

    `check_same(name, learner)` asserts that a learner decides as expected after these rows.
    """
    before, copies = (
        learner.decision_function(rows),
        {"a copy": learner.copy(), "a pickle": pickle.loads(pickle.dumps(learner))},
    )
    if type(learner) in list_classes(Learner):
        with TemporaryDirectory() as folder:
            learner.save(Path(folder) / "learner")
            copies["a file"] = load(Path(folder) / "learner")
    for what, twin in copies.items():
        assert repr(twin) == repr(learner), f"{learner!r}: {what} has other parameters"
        check_same(what, twin.partial_fit(rows, targets))
        assert np.array_equal(learner.decision_function(rows), before), f"{learner!r}: {what} is not independent"
    check_same("after its copies, it", learner.partial_fit(rows, targets))
