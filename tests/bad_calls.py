"""Random bad calls: arguments of any kind for every public name, and good arguments by name."""

import inspect
import warnings

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

import onepass as op
from saved_objects import DIM, NAMES, OBJECTS, REWARDS, ROWS, SIGNS


class Rows(np.ndarray):
    """A subclass of an array."""


class Loud:
    """Object that is neither a number nor a sequence, and has a negative length."""

    def __len__(self):
        return -1

    def __repr__(self):
        return "Loud()"


with warnings.catch_warnings():  # NumPy warns of it
    warnings.simplefilter("ignore", PendingDeprecationWarning)
    MATRIX = np.matrix(np.ones((3, DIM)))

BAD = [
    None, True, False, "", "x", "float16", b"bytes", 0, 1, -1, 2, 7, -(10**9), 10**7, 2**62, 2**63, 10**30, -(10**400),
    10**400, 0.0, -0.0, -1.5, 0.5, 1.5, 1e-320, 1e-200, 1e200, 1e308, float("nan"), float("inf"), -float("inf"), 1j,
    [], (),
    {}, set(), [[]], [[[]]], [1.0, "x"], [[1.0], [1.0, 2.0]], ["a", "a"], [None], [[None] * DIM], {"dim": 3}, {1, 2},
    np.zeros(0), np.zeros((0, DIM)), np.zeros((3, 0)), np.zeros((2, 2, 2, 2)), np.ones(DIM + 1), np.ones((3, DIM + 1)),
    np.ones((3, DIM), np.float32), np.ones((3, DIM), complex), np.ones((3, DIM), object), np.full((3, DIM), None),
    np.full((3, DIM), np.nan), np.full((3, DIM), np.inf), np.full((3, DIM), 1e200), np.full((3, DIM), 1e-320),
    np.full(DIM, -np.inf), np.ones((3, DIM), bool), np.ones((DIM, 3)).T, np.ones((3, 2 * DIM))[:, ::2], np.float32(0.5),
    np.int8(3), np.array(2.0), np.array(3), np.array("x"), np.array(["a", "b", "c"]), np.array([1, 2], object),
    np.array(["2020-01-01"] * 3, "datetime64[D]"), np.datetime64("2020-01-01"), np.timedelta64(3, "s"),
    np.ones(3, "V4"),
    np.ma.masked_all((3, DIM)), np.ma.masked_array(np.ones(DIM), mask=[1] + [0] * (DIM - 1)),
    np.ones((3, DIM)).view(Rows),
    MATRIX, np.broadcast_to(1.0, (3, DIM)), csr_array(np.ones((3, DIM))), csr_array((3, DIM + 1)),
    np.str_("x"), pd.Series([1.0, None]), pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), range(3), iter([1.0]),
    (x for x in (1.0, 2.0)), len, lambda *_: 0.0, lambda x, y: np.ones((len(x), len(y))), int, np, Ellipsis, object(),
    Loud(),
    memoryview(b"abc"), bytearray(b"abc"), np.recarray((2,), [("a", float)]), op.Exact, op.Exact(dim=DIM), op.RBF(1.0),
    op.Ridge(op.Exact(dim=DIM + 1)), op.UCB(0.5), op.Theory(), op.learner.FORKS(),
    op.Factors(np.ones(2), np.ones((3, 2))), op.Factors(None, None), op.features.Standardize(dim=DIM),
    op.features.GaussianProjection(dim=DIM + 1, size=1),
]  # fmt: skip

GOOD = {
    "dim": [DIM, 6], "size": [2, 4], "rank": [2], "reg": [0.5], "dtype": ["float64", "float32"], "error": [5.0],
    "compensation": [0.5], "base": ["fd", "rfd"], "compensate": [True], "design": [op.Exact(dim=DIM)],
    "estimator": [op.Ridge(op.Exact(dim=DIM)), op.Disjoint(op.Ridge(op.Exact(dim=DIM)))],
    "exploration": [0.3, op.UCB(0.3)],
    "features": [None, op.features.Standardize(dim=DIM)],
    "seed": [3], "name": ["mine"], "contexts": [ROWS[:3], ROWS[0]],
    "arms": [NAMES[:3], ROWS, None], "k": [1, 2], "rewards": [REWARDS[:3], 1.0], "arm": [NAMES[:3], "a", 2],
    "X": [ROWS[:5]], "y": [SIGNS[:5]], "x": [ROWS[0]], "rows": [ROWS[:3], ROWS[0]], "b": [ROWS[0]], "z": [ROWS[0]],
    "kernel": [op.RBF(1.0), op.Matern(1.5)], "points": [ROWS[:5]], "learner": [op.learner.RBP(budget=5)],
    "classes": [[-1.0, 1.0]],
    "reward": [1.0], "noise": [1.0], "left": [2, np.ones(2)], "right": [2, np.ones((3, 2))],
    "data": [b"", op.to_bytes(op.Exact(dim=2))],
    "owner": [op.Exact(dim=2)], "other": [op.Exact(dim=DIM, reg=0.37)], "model": ["shared", "disjoint", "hybrid"],
    "shared": [op.Ridge(op.Exact(dim=DIM))], "budget": [5], "first": [op.features.Standardize(dim=DIM)],
    "second": [op.features.Fourier(dim=DIM, size=4)], "names": [["a", "b", "c", "d"]], "rounds": [3], "width": [1.0],
    "user": ["u", [3, 5, 8]], "item": ["i", [1, 2, 3]], "time": [5e5, [5e5, 5e5, 6e5]], "items": [[1, 2]],
}  # fmt: skip

LEFT_OUT = {  # names without arguments that could be wrong
    "Design", "Estimator", "FeatureMap", "Kernel", "savable", "Decision", "Recommendation", "Posterior", "Validation",
    "Factors",
}  # fmt: skip
METHODS_LEFT_OUT = {  # methods that write files, or that only the library calls
    "save", "restore", "contents", "set_params", "set_fit_request", "get_metadata_routing", "consistent", "fits",
    "learn_checked", "attribute", "decide_checked", "decide_dense", "make_learners", "mutable_arrays",
    "begin_with_dim", "set_state", "learned", "started", "begin", "named",
}  # fmt: skip


def parameters(function):
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p for p in found if p.name not in ("self", "cls", "params", "_args", "_kwds")]


def arguments(rng, function):
    """Draw arguments for a call: at least one is bad, the others are good, left out or bad."""
    positional, named, accepted = [], {}, parameters(function)
    if not accepted:
        return positional, named
    bad = rng.integers(len(accepted))
    for i, parameter in enumerate(accepted):
        required = parameter.default is inspect.Parameter.empty
        chance = rng.random()
        if i == bad or chance < 0.1:
            value = BAD[rng.integers(len(BAD))]
        elif required or chance < 0.4:
            pool = GOOD.get(parameter.name)
            if pool is None:
                if not required:
                    continue
                pool = BAD
            value = pool[rng.integers(len(pool))]
        else:
            continue
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            positional.append(value)
        elif parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            named[parameter.name] = value
    return positional, named


PUBLIC = sorted(
    {name for name in op.__all__ if name not in LEFT_OUT and callable(getattr(op, name))}
    | {f"model.{name}" for name in op.model.__all__ if name not in LEFT_OUT | {"Model"}}
    | {f"learner.{name}" for name in op.learner.__all__}
    | {f"estimator.{name}" for name in op.estimator.__all__}
    | {f"features.{name}" for name in op.features.__all__}
    | {"explain.Term", "explain.Gap", "explain.Difference", "explain.Reason", "explain.Reasons", "extend.Exploration"}
)


def methods(owner):
    """Return the names of the public methods of an object."""
    found = []
    for name in dir(type(owner)):
        if not name.startswith("_") and name not in METHODS_LEFT_OUT:
            static = inspect.getattr_static(type(owner), name)
            if callable(static) or isinstance(static, staticmethod | classmethod):
                found.append(name)
    return found


__all__ = ["OBJECTS", "PUBLIC", "arguments", "methods"]
