"""Designs, and rows of every scale that a floating-point number has."""

import numpy as np

import onepass as op

DIM = 6
SCALES = {"float64": (-150, 148), "float32": (-18, 14)}  # powers of ten
DESIGNS = {
    "Exact": lambda **k: op.Exact(**k),
    "FrequentDirections": lambda **k: op.FrequentDirections(size=2, **k),
    "RobustFrequentDirections": lambda **k: op.RobustFrequentDirections(size=2, **k),
    "Dyadic": lambda **k: op.Dyadic(size=1, error=4.0, **k),
    "Dyadic, robust": lambda **k: op.Dyadic(size=1, error=4.0, base="rfd", **k),
    "Dyadic, one block": lambda **k: op.Dyadic(size=1, error=1e30, **k),
    "ProjectorSplitting": lambda **k: op.ProjectorSplitting(rank=2, **k),
    "ProjectorSplitting, compensated": lambda **k: op.ProjectorSplitting(rank=2, compensate=True, **k),
    "ProjectorSplitting, full": lambda **k: op.ProjectorSplitting(rank=DIM, **k),
}


def families(dtype, count, top=None):
    low, most = SCALES[dtype]
    top = most if top is None else top
    rng, tiny = np.random.default_rng(0), float(np.finfo(dtype).smallest_subnormal)
    random = rng.standard_normal((count, DIM))
    yield "of all scales", random * 10.0 ** rng.uniform(low, top, (count, 1))
    yield "rising", random * 10.0 ** np.linspace(low, top, count)[:, None]
    yield "falling", random * 10.0 ** np.linspace(top, low, count)[:, None]
    yield "huge", random * 10.0 ** (top - 1)
    yield "huge and constant", np.full((count, DIM), 10.0 ** (top - 1))
    yield "tiny", random * 10.0**low
    yield "columns of all scales", random * 10.0 ** np.linspace(low, top, DIM)
    yield "one huge column", random * np.append(10.0 ** (top - 1), np.ones(DIM - 1))
    yield "constant", np.ones((count, DIM))
    yield "zero", np.zeros((count, DIM))
    yield "flipping", np.ones((count, DIM)) * np.where(np.arange(count) % 2, 1.0, -1.0)[:, None]
    yield "repeated", random[np.arange(count) % 3]
    yield "subnormal", np.tile(tiny * np.arange(1.0, DIM + 1.0), (count, 1))
    yield "some subnormal", np.where(rng.random((count, 1)) < 0.5, random, tiny * np.ceil(np.abs(random)))
