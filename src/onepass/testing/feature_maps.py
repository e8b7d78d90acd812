"""The conformance suite of feature maps."""

import pickle
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from onepass.bandit.bandit import Bandit
from onepass.design.exact import Exact
from onepass.estimator.ridge import Ridge
from onepass.features import contract as maps
from onepass.features.attribution import attribute
from onepass.features.feature_map import FeatureMap, list_arrays
from onepass.features.outer_product import Factors
from onepass.foundation.files import load
from onepass.foundation.registry import list_classes
from onepass.model.arms.per_arm import Disjoint, Hybrid
from onepass.testing.shared import REGS, close, rows_of_all_kinds, summary


def check_feature_map(make: Callable[[], FeatureMap], count: int = 40, tolerance: float = 1e-9) -> str:
    """AssertionError unless `make()` keeps the contract of a feature map.

    z has the width and dtype that were promised and is finite on rows of all kinds; one row at a time gives what all
    at once give; `transform` changes nothing; two maps of the same arguments agree; bad rows are refused with a
    ValueError and change nothing; names of features are different strings; what `explained` says adds up; copies,
    pickles and, once the class is `onepass.extend.savable`, files are independent and continue alike; bandits with
    shared, disjoint and hybrid parameters score and learn as those without a map that are given z, also after a save in
    between. Returns a sentence that says what was checked.
    """
    for kind, rows in rows_of_all_kinds(make().input_dim, count):
        _check_map(make, kind, rows, tolerance)
    _check_map_manners(make(), next(rows_of_all_kinds(make().input_dim, count))[1])
    for reg in REGS:
        for parameters in ("shared", "disjoint", "hybrid"):
            _check_map_in_a_bandit(make, parameters, reg, count, tolerance)
    kinds_of_rows = len(list(rows_of_all_kinds(make().input_dim, count)))
    return summary(
        make(), f"{kinds_of_rows} kinds of {count} rows are mapped alike, one by one or at once",
        "bad rows are refused and copies are independent", "shared, disjoint and hybrid bandits score and learn by it",
    )  # fmt: skip


def _check_map(make: Callable[[], FeatureMap], kind: str, rows: np.ndarray, tolerance: float) -> None:
    features, half = make(), len(rows) // 2
    where, width, state = f"{features!r} on {kind} rows", features.output_dim, features.begin(rows.dtype)
    assert maps.output_dim(state) == width, f"{where}: output_dim is {maps.output_dim(state)}, promised {width}"
    z = maps.update_and_transform(state, rows[:half])
    singly, other = make().begin(rows.dtype), make().begin(rows.dtype)
    each = np.vstack([maps.update_and_transform(singly, row[None]) for row in rows[:half]])
    scale = np.abs(z).max(axis=0)
    assert z.shape == (half, width), f"{where}: features have shape {z.shape}"
    assert z.dtype == rows.dtype, f"{where}: features have dtype {z.dtype}"
    assert np.isfinite(z).all(), f"{where}: features are not finite"
    assert (np.abs(each - z) <= tolerance * scale).all(), f"{where}: learning one by one gives other features"
    before = [array.copy() for array in list_arrays(features.mutable_arrays(state))]
    asked, row = maps.transform(state, rows[half:]), np.empty(width)
    maps.transform_row(state, rows[half], row)
    scale = np.abs(asked).max(axis=0)
    assert (np.abs(row - asked[0]) <= tolerance * scale).all(), f"{where}: embed and transform disagree"
    assert _equal(before, list_arrays(features.mutable_arrays(state))), f"{where}: transform has changed the map"
    _check_explained(features, state, rows[half], tolerance, where)
    maps.update_and_transform(other, rows[:half])
    assert np.array_equal(maps.transform(other, rows[half:]), asked), f"{where}: two maps of the same arguments differ"
    short = maps.transform(features.begin(np.dtype(np.float32)), rows[half:].astype(np.float32))
    assert short.dtype == np.float32, f"{where}: features of float32 rows have dtype {short.dtype}"


def _check_explained(features: FeatureMap, state: Any, x: np.ndarray, tolerance: float, where: str) -> None:
    z, names = maps.transform(state, x[None])[0], features.input_names()
    slopes = np.random.default_rng(4).standard_normal((2, z.size))
    found = attribute(features, state, x, z, slopes, names)
    shape = (2, len(found.names))
    assert len(set(found.names)) == len(found.values), f"{where}: terms are {found.names}"
    assert found.slopes.shape == found.parts.shape == shape, f"{where}: {found.parts.shape} parts of {shape} terms"
    off = np.abs(found.parts.sum(axis=1) - slopes @ z)
    largest = np.maximum(np.abs(found.parts).max(axis=1), np.abs(slopes * z).max(axis=1))
    assert (off <= tolerance * largest).all(), f"{where}: what explains features does not add up to them, off by {off}"


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
    if type(features) in list_classes(FeatureMap):
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
        z = maps.update_and_transform(state, np.atleast_2d(rows[part]))
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
            got = bandit.score(Factors(asked[0, :left], asked[:, left:]), offered)
            close(f"{where}: scores of Factors", got, bandit.score(pairs, offered), tolerance)
        if type(features) in list_classes(FeatureMap):
            with TemporaryDirectory() as folder:
                bandit.save(Path(folder) / "bandit")
                bandit = load(Path(folder) / "bandit")
            close(f"{where}: scores after a save", bandit.score(asked, offered), want, tolerance)


def _check_nothing_moves(bandit: Any, row: np.ndarray, arm: Any, asked: np.ndarray, where: str) -> None:
    """Bad rows and rewards are refused, and the map has not moved."""
    before, rounds = bandit.copy(), bandit.n_learned
    for bad, reward in ((np.full_like(row, np.nan), 1.0), (row, float("nan")), (row[:-1], 1.0)):
        try:
            bandit.learn(bad, reward, arm)
        except ValueError:
            continue
        raise AssertionError(f"{where}: learning {bad!r} and {reward} was not refused with a ValueError")
    offered = None if arm is None else ["a", "b", "c"]
    same = np.array_equal(bandit.score(asked, offered), before.score(asked, offered))
    assert same, f"{where}: what was refused has changed the scores"
    assert bandit.n_learned == rounds, f"{where}: what was refused was counted"
