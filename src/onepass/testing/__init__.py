"""Conformance suites: what every member of a family must satisfy, ours and third parties' alike.

from onepass.testing import check_design, check_estimator, check_feature_map, check_learner
check_design(lambda dim, reg: MyDesign(dim=dim, reg=reg))
check_estimator(lambda design: MyEstimator(design))
check_feature_map(lambda: MyMap(dim=5))
check_learner(lambda: MyLearner(budget=20))
"""

import pickle
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from onepass.bandit.build import Bandit
from onepass.bandit.models import Disjoint, Hybrid
from onepass.design import contract
from onepass.design.design import Design
from onepass.design.exact import Exact
from onepass.estimator.ridge import Ridge
from onepass.features import contract as maps
from onepass.features.factors import Outer
from onepass.features.feature_map import FeatureMap, arrays
from onepass.foundation import state as states
from onepass.foundation.files import load
from onepass.foundation.registry import kinds
from onepass.learner.learner import Learner, progressive_validation
from onepass.testing.estimators import check_estimator
from onepass.testing.shared import REGS, close, rows_of_all_kinds

__all__ = [
    "REGS",
    "check_design",
    "check_estimator",
    "check_feature_map",
    "check_learner",
    "progressive_validation",
    "rows_of_all_kinds",
    "targets_for",
]


def check_design(make: Callable[[int, float], Design], dim: int = 12, count: int = 60, tolerance: float = 1e-8) -> None:
    """AssertionError unless `make(dim, reg)` keeps the contract of a design on rows of all kinds, at several reg.

    solve, inverse_quadratic, root and log_det agree with the dense inverse of `matrix()`, and `spectrum` with it;
    the certificate ||reg I + X^T X - matrix()|| <= error_bound() holds; bad input is refused and changes nothing;
    copies are independent. Relative to the largest entry; badly scaled rows by the backward error of `solve` (a dense
    inverse in double precision is no truth there).
    """
    rng = np.random.default_rng(1)
    for reg in REGS:
        for kind, rows in rows_of_all_kinds(dim, count):
            design = make(dim, reg)
            for row in rows[: count // 2]:
                design.append(row)
            design.append(rows[count // 2 :])
            where = f"{design!r} on {kind} rows"
            held, b = design.matrix(), rng.standard_normal(dim)
            assert held.shape == (dim, dim), f"{where}: matrix() has shape {held.shape}"
            gap = np.linalg.norm(reg * np.eye(dim) + rows.T @ rows - held, 2)
            slack = tolerance * max(float(np.linalg.norm(held, 2)), 1.0)
            assert gap <= design.error_bound() + slack, f"{where}: error {gap} above {design.error_bound()}"
            if kind == "badly scaled":
                x = design.solve(b)
                close(
                    f"{where}: A solve(b)", held @ x, b, tolerance, float(np.linalg.norm(held, 2) * np.linalg.norm(x))
                )
                continue
            inverse = np.linalg.inv(held)
            close(f"{where}: solve", design.solve(b), inverse @ b, tolerance)
            queries = rng.standard_normal((5, dim))
            want = np.einsum("ij,jk,ik->i", queries, inverse, queries)
            close(f"{where}: inverse_quadratic", design.inverse_quadratic(queries), want, tolerance)
            root = np.stack([design.root(e) for e in np.eye(dim)], axis=1)
            close(f"{where}: root", root @ root.T, inverse, tolerance)
            want = np.linalg.slogdet(held)[1]
            close(f"{where}: log_det", np.array(design.log_det()), np.array(want), tolerance, dim + abs(want))
            values, vectors, rest = contract.spectrum(design.state)
            assert vectors.shape == (len(values), dim), f"{where}: spectrum has vectors of shape {vectors.shape}"
            close(f"{where}: eigenvectors", vectors @ vectors.T, np.eye(len(values)), tolerance, 1.0)
            close(f"{where}: spectrum", (vectors.T * (values - rest)) @ vectors + rest * np.eye(dim), held, tolerance)
    _check_manners(make(dim, REGS[0]), dim)


def _check_manners(design: Design, dim: int) -> None:
    """Bad input is refused and changes nothing; a copy is independent."""
    design.append(np.ones((3, dim)))
    before, twin = design.matrix().copy(), design.copy()
    for bad in (np.full(dim, np.nan), np.full(dim, np.inf), np.ones(dim + 1), np.ones((2, dim - 1)), "rows"):
        try:
            design.append(bad)
        except ValueError:
            continue
        raise AssertionError(f"{design!r}: append({bad!r}) was not refused with a ValueError")
    assert np.array_equal(design.matrix(), before), f"{design!r}: a refused row has changed the state"
    twin.append(np.arange(float(dim)))
    assert np.array_equal(design.matrix(), before), f"{design!r}: a row given to a copy has changed the original"
    assert design.memory_usage() > 0


def targets_for(learner: Learner, rows: np.ndarray, seed: int = 0) -> np.ndarray:
    """Targets that no plane tells, some of them wrong, for rows (n, dim): -1 and 1, or numbers for regression."""
    f = (
        np.sin(2.0 * rows[:, 0])
        + rows[:, -1] * rows[:, 0]
        + 0.2 * np.random.default_rng(seed).standard_normal(len(rows))
    )
    return np.where(f < 0.0, -1.0, 1.0) if learner.classifies else f


def check_learner(make: Callable[[], Learner], dim: int = 4, count: int = 240) -> None:
    """AssertionError unless `make()` keeps the contract of an online kernel learner.

    A stream learned whole, in pieces, one by one or from a sparse array gives the same learner; progressive validation
    decides before it learns; deciding changes nothing; bad input is refused with a ValueError and changes nothing; no
    decision is NaN or infinite on degenerate streams (constant, zero, repeated, badly scaled rows; one class only);
    copies and pickles are independent and continue alike; memory is counted; the learner is built again from
    `get_params`, and by `set_params` without what it had learned; once it is `onepass.savable`, it is saved and
    loaded, before, while and after it learns, and continues bit for bit.
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
    if learner.classifies:
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
    if type(learner) in kinds(Learner):
        with TemporaryDirectory() as folder:
            learner.save(Path(folder) / "learner")
            copies["a file"] = load(Path(folder) / "learner")
    for what, twin in copies.items():
        assert repr(twin) == repr(learner), f"{learner!r}: {what} has other parameters"
        same(what, twin.partial_fit(rows, targets))
        assert np.array_equal(learner.decision_function(rows), before), f"{learner!r}: {what} is not independent"
    same("after its copies, it", learner.partial_fit(rows, targets))


def check_feature_map(make: Callable[[], FeatureMap], count: int = 40, tolerance: float = 1e-9) -> None:
    """AssertionError unless `make()` keeps the contract of a feature map.

    z has the width and dtype that were promised and is finite on rows of all kinds; one row at a time gives what all
    at once give; `transform` changes nothing; two maps of the same arguments agree; bad rows are refused with a
    ValueError and change nothing; names of features are different strings; copies, pickles and, once the class is
    `onepass.savable`, files are independent and continue alike; bandits with shared, disjoint and hybrid parameters
    score and learn as those without a map that are given z, also after a save in between.
    """
    for kind, rows in rows_of_all_kinds(make().input_dim, count):
        _check_map(make, kind, rows, tolerance)
    _check_map_manners(make(), next(rows_of_all_kinds(make().input_dim, count))[1])
    for reg in REGS:
        for parameters in ("shared", "disjoint", "hybrid"):
            _check_map_in_a_bandit(make, parameters, reg, count, tolerance)


def _check_map(make: Callable[[], FeatureMap], kind: str, rows: np.ndarray, tolerance: float) -> None:
    features, half = make(), len(rows) // 2
    where, width, state = f"{features!r} on {kind} rows", features.output_dim, features.begin(rows.dtype)
    assert maps.output_dim(state) == width, f"{where}: output_dim is {maps.output_dim(state)}, promised {width}"
    z = maps.advance(state, rows[:half])
    singly, other = make().begin(rows.dtype), make().begin(rows.dtype)
    each = np.vstack([maps.advance(singly, row[None]) for row in rows[:half]])
    scale = np.abs(z).max(axis=0)
    assert z.shape == (half, width), f"{where}: features have shape {z.shape}"
    assert z.dtype == rows.dtype, f"{where}: features have dtype {z.dtype}"
    assert np.isfinite(z).all(), f"{where}: features are not finite"
    assert (np.abs(each - z) <= tolerance * scale).all(), f"{where}: learning one by one gives other features"
    before = [array.copy() for array in arrays(features.learned(state))]
    asked, row = maps.transform(state, rows[half:]), np.empty(width)
    maps.embed(state, rows[half], row)
    scale = np.abs(asked).max(axis=0)
    assert (np.abs(row - asked[0]) <= tolerance * scale).all(), f"{where}: embed and transform disagree"
    assert _equal(before, arrays(features.learned(state))), f"{where}: transform has changed the map"
    maps.advance(other, rows[:half])
    assert np.array_equal(maps.transform(other, rows[half:]), asked), f"{where}: two maps of the same arguments differ"
    short = maps.transform(features.begin(np.dtype(np.float32)), rows[half:].astype(np.float32))
    assert short.dtype == np.float32, f"{where}: features of float32 rows have dtype {short.dtype}"


def _equal(some: list[np.ndarray], others: list[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(some, others, strict=True))


def _check_map_manners(features: FeatureMap, rows: np.ndarray) -> None:
    where, half, width = repr(features), len(rows) // 2, features.input_dim
    features.learn(rows[:half])
    want = features.transform(rows)
    assert features.transform(rows[0]).shape == want[0].shape, f"{where}: z of one row is not one row"
    for bad in (np.full(width, np.nan), np.full(width, np.inf), np.ones(width + 1), np.ones((1, 2, width)), "rows"):
        for call in (features.learn, features.transform):
            try:
                call(bad)
            except ValueError:
                continue
            raise AssertionError(f"{where}: {call.__name__}({bad!r}) was not refused with a ValueError")
    assert np.array_equal(features.transform(rows), want), f"{where}: a refused row has changed the map"
    for given in (None, [f"column {j}" for j in range(width)]):
        names = features.feature_names(given)
        assert len(set(names)) == len(names) == features.output_dim, f"{where}: feature_names() are {names}"
        assert all(type(name) is str for name in names), f"{where}: feature_names() are {names}"
    assert features.memory_usage() > 0, f"{where}: its memory is not counted"
    copies = {"a copy": features.copy(), "a pickle": pickle.loads(pickle.dumps(features))}
    if type(features) in kinds(FeatureMap):
        with TemporaryDirectory() as folder:
            features.save(Path(folder) / "features")
            copies["a file"] = load(Path(folder) / "features")
    for what, twin in copies.items():
        assert repr(twin) == where, f"{where}: {what} has other parameters"
        twin.learn(rows[half:])
        assert np.array_equal(features.transform(rows), want), f"{where}: {what} is not independent"
    features.learn(rows[half:])
    for what, twin in copies.items():
        assert np.array_equal(twin.transform(rows), features.transform(rows)), f"{where}: {what} continues differently"


def _check_map_in_a_bandit(
    make: Callable[[], FeatureMap], parameters: str, reg: float, count: int, tolerance: float
) -> None:
    features, rng = make(), np.random.default_rng(2)
    where, arms, state = f"{features!r}, {parameters}", ["a", "b", "c"], features.begin(np.dtype(np.float64))
    who, rows, rewards = rng.integers(0, 3, count), rng.standard_normal((count, features.input_dim)), rng.random(count)
    asked = rng.standard_normal((3, features.input_dim))
    if features.sides is not None:  # what an arm adds to a row stays the same
        asked[:, features.sides[0] :] = rows[:3, features.sides[0] :]
        rows[:, features.sides[0] :] = asked[who, features.sides[0] :]
    full = features.output_dim
    own = features.factors.left if features.factors is not None and features.factors.reduce else full

    def models(arm: int) -> Any:
        if parameters == "shared":
            return Ridge(Exact(dim=full, reg=reg))
        if parameters == "disjoint":
            return Disjoint(Ridge(Exact(dim=arm, reg=reg)))
        return Hybrid(shared=Ridge(Exact(dim=full, reg=reg)), arms=Ridge(Exact(dim=arm, reg=reg)))

    bandit: Any = Bandit(models(own), features=features)
    plain: Any = Bandit(models(full))
    parts = (slice(0, count // 2), count // 2, slice(count // 2 + 1, count))
    for part in parts:
        names = (
            None if parameters == "shared" else arms[who[part]] if part == parts[1] else [arms[a] for a in who[part]]
        )
        reward = float(rewards[part]) if part == parts[1] else rewards[part]
        bandit.learn(rows[part], reward, names)
        z = maps.advance(state, np.atleast_2d(rows[part]))
        plain.learn(z[0] if part == parts[1] else z, reward, names)
        offered = None if parameters == "shared" else arms
        _check_nothing_moves(bandit, rows[0], arms[who[0]] if offered else None, asked, where)
        want = plain.score(maps.transform(state, asked), offered)
        close(f"{where}: scores", bandit.score(asked, offered), want, tolerance)
        decision = bandit.decide(asked, offered)
        close(f"{where}: scores of a decision", decision.scores, want, tolerance)
        if features.sides is not None:
            left = features.sides[0]
            pairs = np.hstack([np.broadcast_to(asked[:1, :left], (3, left)), asked[:, left:]])
            got = bandit.score(Outer(asked[0, :left], asked[:, left:]), offered)
            close(f"{where}: scores of Outer", got, bandit.score(pairs, offered), tolerance)
        if type(features) in kinds(FeatureMap):
            with TemporaryDirectory() as folder:
                bandit.save(Path(folder) / "bandit")
                bandit = load(Path(folder) / "bandit")
            close(f"{where}: scores after a save", bandit.score(asked, offered), want, tolerance)


def _check_nothing_moves(bandit: Any, row: np.ndarray, arm: Any, asked: np.ndarray, where: str) -> None:
    """Bad rows and rewards are refused, and the map has not moved."""
    before, rounds = bandit.copy(), bandit.rounds
    for bad, reward in ((np.full_like(row, np.nan), 1.0), (row, float("nan")), (row[:-1], 1.0)):
        try:
            bandit.learn(bad, reward, arm)
        except ValueError:
            continue
        raise AssertionError(f"{where}: learning {bad!r} and {reward} was not refused with a ValueError")
    offered = None if arm is None else ["a", "b", "c"]
    same = np.array_equal(bandit.score(asked, offered), before.score(asked, offered))
    assert same, f"{where}: what was refused has changed the scores"
    assert bandit.rounds == rounds, f"{where}: what was refused was counted"
