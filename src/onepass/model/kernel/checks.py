"""Checks of a kernel model's points and kernel values, which must be finite and not too large."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from onepass.features.kernels import JITTER, Kernel, check_positive_definite, check_rows, indefinite_error
from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.model.kernel.state import KernelState

LARGEST = check.LARGEST["d"]  # of kernel values


def check_table(arms: Any) -> np.ndarray:
    """Return the rows (A, dim) of a fixed set of arms; (0, 0) for None, which stands for arms that change."""
    if arms is None:
        return np.empty((0, 0))
    if callable(arms):
        raise ValueError(f"arms must be rows (A, dim), got {quote(arms)}; the kernel is the second argument")
    points = check_rows("arms", arms).copy()
    if points.size == 0:
        raise ValueError(f"arms must have at least one row and one feature, got shape {points.shape}")
    return points


def check_points(name: str, rows: Any, dims: tuple[int, ...], width: int | None, kernel: Kernel) -> np.ndarray:
    """Return points (..., dim), or raise ValueError unless they are finite and have `width` columns.

    If `width` is None, any width that the kernel accepts is allowed. `dims` are the allowed numbers of axes.
    """
    rows = check.array(name, rows, np.dtype(np.float64), dims)
    if rows.size == 0:
        raise ValueError(f"{name} must have at least one row and one feature, got shape {rows.shape}")
    flat = check.finite_rows(name, rows.reshape(-1, rows.shape[-1]))
    if width is None:
        check_positive_definite(kernel, flat)
    elif rows.shape[-1] != width:
        raise ValueError(f"{name} must have {width} features, as those before, got shape {rows.shape}")
    return rows


def check_arm_indices(arm: Any, count: int) -> tuple[bool, list[Any]]:
    """Return True if several arms were given, and the list of arms as indices below `count`.

    `arm` is an index, or a sequence, array or series of indices. Raises ValueError for anything else.
    """
    if isinstance(arm, np.ndarray) and arm.ndim == 0:
        arm = arm.item()
    many = isinstance(arm, Sequence | np.ndarray) or hasattr(arm, "to_list")
    many = many and not isinstance(arm, str)
    return many, [check.integer("arm", a, 0, count - 1) for a in (arm if many else [arm])]


def check_kernel_values(kernel: Kernel, values: np.ndarray) -> np.ndarray:
    """Return `values` of a kernel, or raise ValueError, whose message names `kernel`, unless they are finite."""
    if not (np.abs(values) <= LARGEST).all():
        raise ValueError(
            f"kernel must be finite and at most {LARGEST:.0e} on the arms, got {quote(kernel)}; scale them"
        )
    return values


def prior_variances(kernel: Kernel, points: np.ndarray) -> np.ndarray:
    """Return the prior variances k(x, x) (n,) of points x (n, dim)."""
    return check_kernel_values(kernel, kernel.diagonal(points) if len(points) else np.zeros(0))


def table_variances(kernel: Kernel, state: KernelState) -> np.ndarray:
    """Return k(x, x) (n,) of the points in the n rows of the posterior's table, 0 for unused rows."""
    prior = np.zeros_like(state.prior)
    prior[: state.size] = prior_variances(kernel, state.points[: state.size])
    return prior


def kernel_matrix(kernel: Kernel, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return k(x, y) (n, m) of points x (n, dim) and y (m, dim). Raises ValueError unless all are finite."""
    return check_kernel_values(kernel, kernel.gram(x, y) if len(x) else np.empty((0, len(y))))


def kernel_row(kernel: Kernel, state: KernelState, place: int) -> np.ndarray:
    """Return the kernel values (size,) between the stored point with index `place` and all stored points."""
    return kernel_matrix(kernel, state.points[place : place + 1], state.points[: state.size])[0]


def round_variance(kernel: Kernel, state: KernelState, variance: float) -> float:
    """Return 0.0 for a negative variance that rounding explains; raise ValueError for one further below 0.

    The limit is in proportion to the largest k(x, x) in `state`. The message says that `kernel` is not positive
    definite.
    """
    if variance < -JITTER * float(state.prior[: state.size].max()) * (state.n_rows + 1):
        raise indefinite_error(kernel)
    return 0.0
