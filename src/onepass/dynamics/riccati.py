"""Gains of linear-quadratic control, for known matrices and for the best matrices in a confidence set.

For a system with state x, input u and noise w, the optimal gain K follows from a Riccati equation:

    x' = A x + B u + w,   cost x^T Q x + u^T R u,   u = K x
    P = Q + A^T P A - A^T P B (R + B^T P B)^-1 B^T P A,   K = -(R + B^T P B)^-1 B^T P A

Optimism (OFU-LQ, Abbasi-Yadkori and Szepesvari 2011) takes the matrices of least cost in the confidence set. The set
says ||(Theta - Theta_hat) z|| <= beta ||z||_{V^-1}: the model's error acts as a second control v that has the same goal
as the first and is limited. Abeille and Lazaric 2020 therefore solve, for a multiplier mu,

    x' = A x + [B I] [u; v],   cost x^T Q x + u^T R u + mu (v^T v - beta^2 z^T V^-1 z),   z = [x; u]

by one Riccati equation, and search for the mu at which the limit holds on average. Its value is at most the least cost
in the set, and equal to it if there is one state.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_discrete_are, solve_discrete_lyapunov

STEPS = 24  # of the bisection: mu to 2e-6 of itself, and the value, which is largest there, to far less
RANGE = (1e-4, 1e8)  # where mu is looked for, in units of P


class Regulator(NamedTuple):
    """Regulator u = K x: gain K (m, n), and value P (n, n); the cost of a step is tr(P W) for noise of covariance W."""

    gain: np.ndarray
    value: np.ndarray


def solve_regulator(a: np.ndarray, b: np.ndarray, q: np.ndarray, r: np.ndarray) -> Regulator | None:
    """Return the optimal regulator of the system x' = a x + b u with the cost x^T q x + u^T r u.

    x has n numbers and u has m, so the shapes are a (n, n), b (n, m), q (n, n) and r (m, m).
    Returns None if no stabilizing gain is found.
    """
    found = _solve_riccati(a, b, q, r, np.zeros((a.shape[0], b.shape[1])))
    if found is None:
        return None
    gain, value = found
    return Regulator(gain, value)


def solve_optimistic(
    a: np.ndarray, b: np.ndarray, q: np.ndarray, r: np.ndarray, precision: np.ndarray, radius: float
) -> Regulator | None:
    """Return the regulator with the least cost over all systems in a confidence set around x' = a x + b u.

    The set holds all matrices Theta with ||(Theta - [a b]) z|| <= radius sqrt(z^T precision^-1 z) for all z (n + m,).
    The cost of a step is x^T q x + u^T r u. The shapes are a (n, n), b (n, m), q (n, n) and r (m, m). Returns None if
    no such regulator is found, for instance because the set is so large that the Riccati equations have no solution.
    """
    n, m = b.shape
    certain = solve_regulator(a, b, q, r)
    if radius == 0.0 or certain is None:
        return certain
    slack = radius * radius * np.linalg.inv(precision)
    both, scale = np.hstack([b, np.eye(n)]), float(np.linalg.norm(certain.value, 2))
    low, high = np.log(RANGE[0] * scale), np.log(RANGE[1] * scale)
    best = None
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        mu = float(np.exp(middle))
        costs = np.zeros((m + n, m + n))
        costs[:m, :m], costs[m:, m:] = r - mu * slack[n:, n:], mu * np.eye(n)
        cross = np.hstack([-mu * slack[:n, n:], np.zeros((n, n))])
        found = _solve_riccati(a, both, q - mu * slack[:n, :n], costs, cross)
        if found is None or _excess(a, both, found[0], slack, n, m) <= 0.0:
            high = middle  # the model may err more than it does, or pays for it without end
            continue
        low, best = middle, Regulator(found[0][:m], found[1])
    return best


def _solve_riccati(
    a: np.ndarray, b: np.ndarray, q: np.ndarray, r: np.ndarray, s: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the gain K (m, n) and value P (n, n) of the optimal regulator u = K x; None if no stable one is optimal.

    The system is x' = a x + b u, and the cost of a step is x^T q x + u^T r u + 2 x^T s u.
    """
    try:
        value = solve_discrete_are(a, b, q, r, s=s)
        inner = r + b.T @ value @ b
        np.linalg.cholesky(0.5 * (inner + inner.T))  # a minimum
        gain = -np.linalg.solve(inner, b.T @ value @ a + s.T)
    except (np.linalg.LinAlgError, ValueError):
        return None
    return (gain, value) if np.abs(np.linalg.eigvals(a + b @ gain)).max() < 1.0 else None


def _excess(a: np.ndarray, b: np.ndarray, gain: np.ndarray, slack: np.ndarray, n: int, m: int) -> float:
    """Return the long-run average of ||v||^2 - z^T slack z, for noise with covariance I.

    The system is x' = a x + b [u; v], with n states x, m inputs u and a second control v. The gain gives [u; v] from x,
    and z = [x; u]. The result is above 0 if v exceeds its limit.
    """
    closed = a + b @ gain
    covariance = solve_discrete_lyapunov(closed, np.eye(n))
    z, v = np.vstack([np.eye(n), gain[:m]]), gain[m:]
    return float(np.trace((v.T @ v - z.T @ slack @ z) @ covariance))
