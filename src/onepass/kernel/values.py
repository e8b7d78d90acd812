"""Kernel values of a bandit's points: finite and not too large, or a ValueError that names the kernel."""

import numpy as np

from onepass.features.kernels import JITTER, Kernel, indefinite
from onepass.foundation import check
from onepass.kernel.posterior import KernelState

LARGEST = check.LARGEST["d"]  # of kernel values


def bounded(kernel: Kernel, values: np.ndarray) -> np.ndarray:
    """The values of a kernel, if they can be worked with."""
    if not (np.abs(values) <= LARGEST).all():
        raise ValueError(f"kernel must be finite and at most {LARGEST:.0e} on the arms, got {kernel!r}; scale them")
    return values


def prior_of(kernel: Kernel, points: np.ndarray) -> np.ndarray:
    """k(x, x) of points (n, dim), shape (n,)."""
    return bounded(kernel, kernel.diagonal(points) if len(points) else np.zeros(0))


def priors_of(kernel: Kernel, state: KernelState) -> np.ndarray:
    """k(x, x) of the table, zeros where it has room."""
    prior = np.zeros_like(state.prior)
    prior[: state.size] = prior_of(kernel, state.points[: state.size])
    return prior


def gram_of(kernel: Kernel, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """k(x, y) of points (n, dim) and (m, dim), shape (n, m)."""
    return bounded(kernel, kernel.gram(x, y) if len(x) else np.empty((0, len(y))))


def row_of(kernel: Kernel, state: KernelState, place: int) -> np.ndarray:
    """k(x_place, table), shape (size,)."""
    return gram_of(kernel, state.points[place : place + 1], state.points[: state.size])[0]


def rounded(kernel: Kernel, state: KernelState, variance: float) -> float:
    """0.0 for a negative variance that rounding explains; else a ValueError."""
    if variance < -JITTER * float(state.prior[: state.size].max()) * (state.used + 1):
        raise indefinite(kernel)
    return 0.0
