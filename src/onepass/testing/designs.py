"""Conformance suite of designs."""

from collections.abc import Callable

import numpy as np

from onepass.design import contract
from onepass.design.design import Design
from onepass.testing.shared import REGS, assert_close, rows_of_all_kinds, summary


def check_design(make: Callable[[int, float], Design], dim: int = 12, n_rows: int = 60, tolerance: float = 1e-8) -> str:
    """Check that a design satisfies its contract, on rows of all kinds and for several `reg`.

    Parameters
    ----------
    make : function
        Maps a dimension and `reg` to a new design.
    dim : int, default 12
        Number of columns of the rows, at least 1.
    n_rows : int, default 60
        Number of rows of each kind, at least 3.
    tolerance : float, default 1e-8
        Largest error, relative to the largest entry.

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

    - solve, inverse_quadratic, root and log_det agree with the dense inverse of `matrix()`, and `spectrum` with
      `matrix()`;
    - the error bound holds: ||reg I + X^T X - matrix()|| <= error_bound();
    - bad input is refused and changes nothing;
    - copies are independent.

    On badly scaled rows, the suite checks the backward error of `solve` instead, because a dense inverse in double
    precision is not accurate there.
    """
    rng = np.random.default_rng(1)
    for reg in REGS:
        for kind, rows in rows_of_all_kinds(dim, n_rows):
            design = make(dim, reg)
            for row in rows[: n_rows // 2]:
                design.append(row)
            design.append(rows[n_rows // 2 :])
            where = f"{design!r} on {kind} rows"
            matrix, b = design.matrix(), rng.standard_normal(dim)
            assert matrix.shape == (dim, dim), f"{where}: matrix() has shape {matrix.shape}"
            gap = np.linalg.norm(reg * np.eye(dim) + rows.T @ rows - matrix, 2)
            slack = tolerance * max(float(np.linalg.norm(matrix, 2)), 1.0)
            assert gap <= design.error_bound() + slack, f"{where}: error {gap} above {design.error_bound()}"
            if kind == "badly scaled":
                x = design.solve(b)
                assert_close(
                    f"{where}: A solve(b)",
                    matrix @ x,
                    b,
                    tolerance,
                    float(np.linalg.norm(matrix, 2) * np.linalg.norm(x)),
                )
                continue
            inverse = np.linalg.inv(matrix)
            assert_close(f"{where}: solve", design.solve(b), inverse @ b, tolerance)
            queries = rng.standard_normal((5, dim))
            want = np.einsum("ij,jk,ik->i", queries, inverse, queries)
            assert_close(f"{where}: inverse_quadratic", design.inverse_quadratic(queries), want, tolerance)
            root = np.stack([design.root(e) for e in np.eye(dim)], axis=1)
            assert_close(f"{where}: root", root @ root.T, inverse, tolerance)
            want = np.linalg.slogdet(matrix)[1]
            assert_close(f"{where}: log_det", np.array(design.log_det()), np.array(want), tolerance, dim + abs(want))
            values, vectors, rest = contract.spectrum(design.state)
            assert vectors.shape == (len(values), dim), f"{where}: spectrum has vectors of shape {vectors.shape}"
            assert_close(f"{where}: eigenvectors", vectors @ vectors.T, np.eye(len(values)), tolerance, 1.0)
            assert_close(
                f"{where}: spectrum", (vectors.T * (values - rest)) @ vectors + rest * np.eye(dim), matrix, tolerance
            )
    _check_input_and_copies(make(dim, REGS[0]), dim)
    return summary(
        design, "its certificate, solve, inverse_quadratic, root, log_det and spectrum agree with dense algebra",
        f"on {len(list(rows_of_all_kinds(dim, n_rows)))} kinds of {n_rows} rows of {dim} numbers at each reg of {REGS}",
        "bad rows are refused and copies are independent",
    )  # fmt: skip


def _check_input_and_copies(design: Design, dim: int) -> None:
    """Check that bad input is refused and changes nothing, and that a copy is independent."""
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
