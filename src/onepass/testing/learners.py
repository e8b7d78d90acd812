"""The conformance suite of online kernel learners."""

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


def targets_for(learner: Learner, rows: np.ndarray, seed: int = 0) -> np.ndarray:
    """Targets that no plane tells, some of them wrong, for rows (n, dim): -1 and 1, or numbers for regression."""
    f = (
        np.sin(2.0 * rows[:, 0])
        + rows[:, -1] * rows[:, 0]
        + 0.2 * np.random.default_rng(seed).standard_normal(len(rows))
    )
    return np.where(f < 0.0, -1.0, 1.0) if learner.is_classifier else f


def check_learner(make: Callable[[], Learner], dim: int = 4, count: int = 240) -> str:
    """AssertionError unless `make()` keeps the contract of an online kernel learner.

    A stream learned whole, in pieces, one by one or from a sparse array gives the same learner; progressive validation
    decides before it learns; deciding changes nothing; bad input is refused with a ValueError and changes nothing; no
    decision is NaN or infinite on degenerate streams (constant, zero, repeated, badly scaled rows; one class only);
    copies and pickles are independent and continue alike; memory is counted; the learner is built again from
    `get_params`, and by `set_params` without what it had learned; once it is `onepass.extend.savable`, it is saved and
    loaded, before, while and after it learns, and continues bit for bit. Returns a sentence that says what was checked.
    """
    rows = np.random.default_rng(1).standard_normal((count, dim))
    queries = np.random.default_rng(2).standard_normal((20, dim))
    targets = targets_for(make(), rows)
    whole = make().partial_fit(rows, targets)
    where, want = repr(whole), whole.decision_function(queries)
    assert want.shape == (20,), f"{where}: decisions of 20 rows have shape {want.shape}"
    assert np.isfinite(want).all(), f"{where}: decisions are not finite"

    def same(what: str, learner: Any) -> None:
        assert np.array_equal(learner.decision_function(queries), want), f"{where}: {what} decides differently"

    same("asked a second time, it", whole)
    _check_ways_of_learning(make, same, rows, targets)
    _check_refusals(whole, rows, targets)
    same("after bad input, it", whole)
    _check_degenerate_streams(make, dim, count)
    for learned in (0, 1, count // 2):
        _check_copies(make().partial_fit(rows[:learned], targets[:learned]), same, rows[learned:], targets[learned:])
    again = type(whole)(**whole.get_params())
    assert again.memory_usage() == 0, f"{where}: it holds memory before it has learned"
    same("built again from get_params()", again.partial_fit(rows, targets))
    assert again.memory_usage() == states.nbytes(again.states()), f"{where}: memory_usage() is not that of its state"
    for name, value in list(whole.get_params().items())[:1]:
        same("after set_params()", again.set_params(**{name: value}).partial_fit(rows, targets))
    return summary(
        whole, f"{count} rows of {dim} numbers are learned alike whole, in pieces, one by one and sparse",
        "bad input is refused", "degenerate streams leave it finite", "copies, pickles and parameters make the same",
    )  # fmt: skip


def _check_ways_of_learning(make: Callable[[], Learner], same: Callable, rows: np.ndarray, targets: np.ndarray) -> None:
    from scipy.sparse import csr_array

    third, singly, before = len(rows) // 3, make(), []
    same(
        "learning in pieces",
        make().partial_fit(rows[:third], targets[:third]).partial_fit(rows[third:], targets[third:]),
    )
    for x, y in zip(rows, targets, strict=True):
        before.append(float(singly.decision_function(x[None])[0]))
        singly.learn_one(x, y)
    same("learning one by one", singly)
    same("learning from a sparse array", make().partial_fit(csr_array(rows), targets))
    learner = make()
    found = progressive_validation(learner, rows, targets)
    same("after progressive validation, it", learner)
    assert np.array_equal(found.decisions, before), f"{learner!r}: progressive validation decides differently"


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


def _check_degenerate_streams(make: Callable[[], Learner], dim: int, count: int) -> None:
    random = np.random.default_rng(3).standard_normal((count, dim))
    streams = {
        "zero": np.zeros((count, dim)),
        "constant": np.ones((count, dim)),
        "repeated": random[np.arange(count) % 3],
        "huge": 1e9 * random,
        "tiny": 1e-9 * random,
        "badly scaled": random * 10.0 ** np.linspace(-6, 6, dim),
    }
    for kind, rows in streams.items():
        learner = make()
        for y in (np.where(np.arange(count) % 3 == 0, -1.0, 1.0), np.ones(count)):
            decisions = np.append(progressive_validation(learner, rows, y).decisions, learner.decision_function(random))
            assert np.isfinite(decisions).all(), f"{learner!r}: decisions on {kind} rows are not finite"


def _check_copies(learner: Learner, same: Callable, rows: np.ndarray, targets: np.ndarray) -> None:
    """A learner that has learned the examples before these: whatever is copied from it learns these alike, alone."""
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
        same(what, twin.partial_fit(rows, targets))
        assert np.array_equal(learner.decision_function(rows), before), f"{learner!r}: {what} is not independent"
    same("after its copies, it", learner.partial_fit(rows, targets))
