"""Dispatch and its cache: third-party designs work in the same compiled loop, and stale code is never loaded."""

import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numba import typeof

import onepass as op
from onepass.design import contract
from onepass.design.design import Design, check_common
from onepass.foundation.generic import compiled, direct


class DiagonalState(NamedTuple):
    diagonal: np.ndarray
    reg: float


@contract.append.for_state(DiagonalState)
def append(state, row):
    state.diagonal[:] += row * row
    return state


@contract.solve.for_state(DiagonalState)
def solve(state, b):
    return b / state.diagonal


@contract.inverse_quadratic.for_state(DiagonalState)
def inverse_quadratic(state, rows):
    return np.sum(rows * rows / state.diagonal, axis=1)


@contract.root.for_state(DiagonalState)
def root(state, z):
    return z / np.sqrt(state.diagonal)


@contract.error_bound.for_state(DiagonalState)
def error_bound(state):
    return np.inf


class Diagonal(Design):
    """A design of somebody else: the diagonal of A only."""

    def __init__(self, *, dim, reg=1.0, dtype="float64"):
        self.params = check_common(dim, reg, dtype)

    def begin(self):
        return DiagonalState(np.full(self.dim, self.params["reg"]), self.params["reg"])


def test_a_third_party_design_plays_in_the_same_loop():
    rng = np.random.default_rng(0)
    contexts = rng.standard_normal((50, 4, 3))
    bandit = op.Bandit(op.Ridge(Diagonal(dim=3, reg=0.37)), op.UCB(0.2))
    diagonal, moment = np.full(3, 0.37), np.zeros(3)
    for rows, arm in zip(contexts, bandit.play(contexts, contexts[:, :, 0]), strict=True):
        scores = rows @ (moment / diagonal) + 0.2 * np.sqrt((rows**2 / diagonal).sum(axis=1))
        assert arm == np.argmax(scores)
        diagonal += rows[arm] ** 2
        moment += rows[arm, 0] * rows[arm]


@compiled
def one(x):
    return 1


def test_direct_calls_have_code_for_every_type_and_find_arguments_of_another_one():
    """Also where states of two classes have the same name and fields."""
    twins = [NamedTuple("Twin", [("x", np.ndarray), ("n", int)]) for _ in range(2)]
    rows = np.ones((4, 4))
    frozen = rows.copy()
    frozen.flags.writeable = False
    values = [rows, rows.T, rows[:, ::2], frozen, rows[0], rows.astype("float32"), 3, 2**63, 0.5, True]
    values += [twins[0](rows, 3), twins[1](rows, 3), twins[0](rows[0], 3), (3, 0.5)]
    assert [direct(one, value)(value) for value in values] == [1] * len(values)
    assert set(one.overloads) == {(typeof(value),) for value in values}
    assert len(one.overloads) == len(values)
    for value, other in itertools.pairwise(values):
        with pytest.raises(AssertionError, match="and is called with"):
            direct(one, value)(other)


def test_an_unregistered_state_is_a_clear_type_error():
    class Nothing(NamedTuple):
        x: int

    with pytest.raises(TypeError, match="solve is not defined for Nothing"):
        contract.solve(Nothing(1), np.zeros(2))


STATE = """
from typing import NamedTuple
from onepass.foundation.generic import generic
@generic
def size(state):
    return -1
class Thing(NamedTuple):
    x: int
@size.for_state(Thing)
def size_of_thing(state):
    return FACTOR * state.x
"""
LOOP = """
from onepass.foundation.generic import compiled
from state import Thing, size
@compiled
def loop(thing):
    return size(thing) + 0
print(loop(Thing(7)), sum(loop.stats.cache_hits.values()))
"""


def test_a_changed_source_is_never_answered_from_the_cache(tmp_path):
    (tmp_path / "loop.py").write_text(LOOP)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
    environment["PYTHONPATH"] += os.pathsep + str(Path(op.__file__).parent.parent)
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # Python's own cache takes a change in the same second for no change
    answers = []
    for factor in (2, 2, 3):  # the loop's own file never changes
        (tmp_path / "state.py").write_text(STATE.replace("FACTOR", str(factor)))
        run = subprocess.run(
            [sys.executable, "-c", "import loop"], env=environment, capture_output=True, text=True, check=True
        )
        answers.append(run.stdout.split())
    assert answers == [["14", "0"], ["14", "1"], ["21", "0"]]


SCRIPT = """
from typing import NamedTuple
import numpy as np
import onepass as op
from onepass.design import contract
from onepass.design.design import Design, check_common
class DiagonalState(NamedTuple):
    diagonal: np.ndarray
@contract.append.for_state(DiagonalState)
def append(state, row):
    state.diagonal[:] += row * row
    return state
@contract.solve.for_state(DiagonalState)
def solve(state, b):
    return FACTOR * b / state.diagonal
@contract.inverse_quadratic.for_state(DiagonalState)
def inverse_quadratic(state, rows):
    return np.sum(rows * rows / state.diagonal, axis=1)
@contract.root.for_state(DiagonalState)
def root(state, z):
    return z / np.sqrt(state.diagonal)
@contract.error_bound.for_state(DiagonalState)
def error_bound(state):
    return np.inf
class Diagonal(Design):
    def __init__(self, *, dim, reg=1.0, dtype="float64"):
        self.params = check_common(dim, reg, dtype)
    def begin(self):
        return DiagonalState(np.full(self.dim, self.params["reg"], self.dtype))
design = Diagonal(dim=2).append(np.ones(2))
print(type(design.state) is DiagonalState, design.solve(np.ones(2))[0], design.error_bound())
"""


def test_a_design_of_a_script_works_in_every_run_and_when_it_changes(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(Path(op.__file__).parent.parent)}
    for factor, mean in ((1.0, "0.5"), (1.0, "0.5"), (2.0, "1.0")):
        (tmp_path / "script.py").write_text(SCRIPT.replace("FACTOR", str(factor)))
        run = [sys.executable, str(tmp_path / "script.py")]
        out = subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout
        assert out.split() == ["True", mean, "inf"]
