"""Conformance suite of feature maps."""

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
from onepass.testing.shared import REGS, assert_close, rows_of_all_kinds, summary


def check_feature_map(make: Callable[[], FeatureMap], n_rows: int = 40, tolerance: float = 1e-9) -> str:
    """Check that a feature map satisfies its contract.

    Parameters
    ----------
    make : function
        Returns a new feature map.
    n_rows : int, default 40
        Number of rows of each kind, at least 3.
    tolerance : float, default 1e-9
        Largest error, relative to the largest value.

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

    - features have the promised width and dtype, and are finite on rows of all kinds;
    - single rows give the same features as all rows at once;
    - `transform` changes nothing, and two maps of equal arguments agree;
    - bad rows raise ValueError and change nothing;
    - feature names are different strings, and attributions add up to the features;
    - copies, pickles and, if the class is `onepass.extend.savable`, files are independent and continue alike;
    - bandits with shared, disjoint and hybrid models score and learn with the map as bandits without a map do on
      its features, also after a save in between.
    """
    for kind, rows in rows_of_all_kinds(make().input_dim, n_rows):
        _check_map(make, kind, rows, tolerance)
    _check_map_input_and_copies(make(), next(rows_of_all_kinds(make().input_dim, n_rows))[1])
    for reg in REGS:
        for kind in ("shared", "disjoint", "hybrid"):
            _check_map_in_a_bandit(make, kind, reg, n_rows, tolerance)
    n_kinds = len(list(rows_of_all_kinds(make().input_dim, n_rows)))
    return summary(
        make(), f"{n_kinds} kinds of {n_rows} rows are mapped alike, one by one or at once",
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
    queries, row = maps.transform(state, rows[half:]), np.empty(width)
    maps.transform_row(state, rows[half], row)
    scale = np.abs(queries).max(axis=0)
    assert (np.abs(row - queries[0]) <= tolerance * scale).all(), f"{where}: transform_row and transform disagree"
    assert _equal(before, list_arrays(features.mutable_arrays(state))), f"{where}: transform has changed the map"
    _check_attribution(features, state, rows[half], tolerance, where)
    maps.update_and_transform(other, rows[:half])
    assert np.array_equal(maps.transform(other, rows[half:]), queries), (
        f"{where}: two maps of the same arguments differ"
    )
    short = maps.transform(features.begin(np.dtype(np.float32)), rows[half:].astype(np.float32))
    assert short.dtype == np.float32, f"{where}: features of float32 rows have dtype {short.dtype}"


def _check_attribution(features: FeatureMap, state: Any, x: np.ndarray, tolerance: float, where: str) -> None:
    z, names = maps.transform(state, x[None])[0], features.input_names()
    slopes = np.random.default_rng(4).standard_normal((2, z.size))
    attribution = attribute(features, state, x, z, slopes, names)
    shape = (2, len(attribution.names))
    assert len(set(attribution.names)) == len(attribution.values), f"{where}: terms are {attribution.names}"
    assert attribution.slopes.shape == attribution.parts.shape == shape, (
        f"{where}: {attribution.parts.shape} parts of {shape} terms"
    )
    off = np.abs(attribution.parts.sum(axis=1) - slopes @ z)
    largest = np.maximum(np.abs(attribution.parts).max(axis=1), np.abs(slopes * z).max(axis=1))
    assert (off <= tolerance * largest).all(), f"{where}: attributions do not add up to the features, off by {off}"


def _equal(first: list[np.ndarray], second: list[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def _check_map_input_and_copies(features: FeatureMap, rows: np.ndarray) -> None:
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
    make: Callable[[], FeatureMap], kind: str, reg: float, n_rows: int, tolerance: float
) -> None:
    features, rng = make(), np.random.default_rng(2)
    where, arms, state = f"{features!r}, {kind}", ["a", "b", "c"], features.begin(np.dtype(np.float64))
    arm_of_row, rows = rng.integers(0, 3, n_rows), rng.standard_normal((n_rows, features.input_dim))
    rewards = rng.random(n_rows)
    queries = rng.standard_normal((3, features.input_dim))
    if features.sides is not None:  # an arm's own columns are equal in all rows
        queries[:, features.sides[0] :] = rows[:3, features.sides[0] :]
        rows[:, features.sides[0] :] = queries[arm_of_row, features.sides[0] :]
    full = features.output_dim
    own = features.factors.left if features.factors is not None and features.factors.reduce else full

    def models(arm: int) -> Any:
        if kind == "shared":
            return Ridge(Exact(dim=full, reg=reg))
        if kind == "disjoint":
            return Disjoint(Ridge(Exact(dim=arm, reg=reg)))
        return Hybrid(shared=Ridge(Exact(dim=full, reg=reg)), arms=Ridge(Exact(dim=arm, reg=reg)))

    bandit: Any = Bandit(models(own), features=features)
    plain: Any = Bandit(models(full))
    parts = (slice(0, n_rows // 2), n_rows // 2, slice(n_rows // 2 + 1, n_rows))
    for part in parts:
        names: Any = None
        if kind != "shared":
            names = arms[arm_of_row[part]] if part == parts[1] else [arms[a] for a in arm_of_row[part]]
        reward = float(rewards[part]) if part == parts[1] else rewards[part]
        bandit.learn(rows[part], reward, names)
        z = maps.update_and_transform(state, np.atleast_2d(rows[part]))
        plain.learn(z[0] if part == parts[1] else z, reward, names)
        offered = None if kind == "shared" else arms
        _check_bandit_refusals(bandit, rows[0], arms[arm_of_row[0]] if offered else None, queries, where)
        want = plain.score(maps.transform(state, queries), offered)
        assert_close(f"{where}: scores", bandit.score(queries, offered), want, tolerance)
        decision = bandit.decide(queries, offered)
        assert_close(f"{where}: scores of a decision", decision.scores, want, tolerance)
        if features.sides is not None:
            left = features.sides[0]
            pairs = np.hstack([np.broadcast_to(queries[:1, :left], (3, left)), queries[:, left:]])
            got = bandit.score(Factors(queries[0, :left], queries[:, left:]), offered)
            assert_close(f"{where}: scores of Factors", got, bandit.score(pairs, offered), tolerance)
        if type(features) in list_classes(FeatureMap):
            with TemporaryDirectory() as folder:
                bandit.save(Path(folder) / "bandit")
                bandit = load(Path(folder) / "bandit")
            assert_close(f"{where}: scores after a save", bandit.score(queries, offered), want, tolerance)


def _check_bandit_refusals(bandit: Any, row: np.ndarray, arm: Any, queries: np.ndarray, where: str) -> None:
    """Check that bad rows and rewards are refused and change no count and no score of the rows `queries`.

    `row` is a good row and `arm` the name of its arm, None for a shared model. `where` begins the messages.
    """
    before, rounds = bandit.copy(), bandit.n_learned
    for bad, reward in ((np.full_like(row, np.nan), 1.0), (row, float("nan")), (row[:-1], 1.0)):
        try:
            bandit.learn(bad, reward, arm)
        except ValueError:
            continue
        raise AssertionError(f"{where}: learning {bad!r} and {reward} was not refused with a ValueError")
    offered = None if arm is None else ["a", "b", "c"]
    same = np.array_equal(bandit.score(queries, offered), before.score(queries, offered))
    assert same, f"{where}: what was refused has changed the scores"
    assert bandit.n_learned == rounds, f"{where}: what was refused was counted"
