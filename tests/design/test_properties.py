"""Any dimension, size and order of zero, repeated, tiny and huge rows: nothing breaks, nothing is claimed wrongly."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import dense
import onepass as op


@st.composite
def streams(draw):
    """Rows (n, dim) made from a few directions, scaled by powers of ten, with zeros and repeats."""
    dim, count = draw(st.integers(1, 7)), draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    directions = rng.standard_normal((draw(st.integers(1, dim)), dim))
    weights = rng.standard_normal((count, len(directions))) * (rng.random((count, len(directions))) < 0.6)
    spread = draw(st.sampled_from([0, 1, 3]))
    return weights @ directions * 10.0 ** rng.integers(-spread, spread + 1, (count, 1))


@st.composite
def designs(draw, dim):
    reg = draw(st.sampled_from([1e-3, 0.37, 4.0, 1e3]))
    size = draw(st.integers(1, dim))
    return draw(
        st.sampled_from(
            [
                lambda: op.Exact(dim=dim, reg=reg),
                lambda: op.FrequentDirections(dim=dim, size=size, reg=reg),
                lambda: op.RobustFrequentDirections(dim=dim, size=size, reg=reg),
                lambda: op.Dyadic(dim=dim, size=size, error=0.5, reg=reg),
                lambda: op.Dyadic(dim=dim, size=size, error=20.0, reg=reg, base="rfd"),
                lambda: op.ProjectorSplitting(dim=dim, rank=size, reg=reg),
                lambda: op.ProjectorSplitting(dim=dim, rank=size, reg=reg, compensate=True),
            ]
        )
    )()


@given(st.data(), streams())
@settings(max_examples=150, deadline=None, derandomize=True)
def test_answers_are_consistent_and_certificates_hold(data, rows):
    dim = rows.shape[1]
    design = data.draw(designs(dim))
    reg, batches = design.params["reg"], data.draw(st.booleans())
    for part in np.array_split(rows, 3) if batches else rows:
        design.append(part)
    held = design.matrix()
    size = np.linalg.norm(held, 2)
    gap = np.linalg.norm(reg * np.eye(dim) + rows.T @ rows - held, 2)
    assert gap <= design.error_bound() + 1e-9 * (size + np.linalg.norm(rows) ** 2)
    solved = np.stack([design.solve(e) for e in np.eye(dim)])
    assert np.isfinite(solved).all()
    assert np.linalg.norm(held @ solved - np.eye(dim), 2) <= 1e-9 * np.linalg.norm(solved, 2) * size + 1e-12
    root = np.stack([design.root(e) for e in np.eye(dim)], axis=1)
    assert np.linalg.norm(root @ root.T - solved, 2) <= 1e-8 * np.linalg.norm(solved, 2)
    quadratic = design.inverse_quadratic(np.eye(dim))
    np.testing.assert_allclose(quadratic, np.diag(solved), atol=1e-8 * np.linalg.norm(solved, 2))
    if design.error_bound() == 0.0:
        truth = dense.inverse(rows, reg)
        assert np.linalg.norm(solved - truth, 2) <= 1e-8 * np.linalg.norm(truth, 2)
        assert abs(design.log_det() - dense.log_det(rows, reg)) <= 1e-7 * dim
