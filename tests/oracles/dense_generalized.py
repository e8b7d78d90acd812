"""Generalized linear estimators written out naively, on dense matrices: what the compiled ones must agree with."""

import numpy as np
from scipy.optimize import minimize

MU = {"logistic": lambda z: 1.0 / (1.0 + np.exp(-z)), "poisson": np.exp, "identity": lambda z: z}
SLOPE = {
    "logistic": lambda z: np.exp(-z) / (1.0 + np.exp(-z)) ** 2,
    "poisson": np.exp,
    "identity": lambda z: np.ones_like(z),
}
POTENTIAL = {"logistic": lambda z: np.log1p(np.exp(z)), "poisson": np.exp, "identity": lambda z: z**2 / 2.0}
LAW = {
    "logistic": lambda rng, means: (rng.random(means.shape) < means).astype(float),
    "poisson": lambda rng, means: rng.poisson(means).astype(float),
    "identity": lambda rng, means: means + rng.standard_normal(means.shape),
}


def nearest_in_ball(matrix, theta, bound):
    """argmin over ||t|| <= bound of ||t - theta||_matrix, by bisection of the multiplier."""
    if np.linalg.norm(theta) <= bound:
        return theta
    solved = lambda mu: np.linalg.solve(matrix + mu * np.eye(len(theta)), matrix @ theta)  # noqa: E731
    low, high = 0.0, 1.0
    while np.linalg.norm(solved(high)) > bound:
        high *= 2.0
    for _ in range(200):
        middle = (low + high) / 2.0
        low, high = (middle, high) if np.linalg.norm(solved(middle)) > bound else (low, middle)
    return solved(high)


def glb_omd(family, rows, rewards, reg, eta, bound=np.inf, implicit=False, clip=np.inf):
    """theta and H after GLB-OMD."""
    theta, h = np.zeros(rows.shape[1]), reg * np.eye(rows.shape[1])
    for x, r in zip(rows, rewards, strict=True):
        z, q, tilted = x @ theta, x @ np.linalg.solve(h, x), h + eta * SLOPE[family](x @ theta) * np.outer(x, x)
        most = clip * np.sqrt(1.0 / q + SLOPE[family](z))
        r = MU[family](z) + np.clip(r - MU[family](z), -most, most)
        if implicit:
            loss = lambda t, old=theta, h=h, x=x, r=r: (  # noqa: E731
                POTENTIAL[family](x @ t) - r * (x @ t) + (t - old) @ h @ (t - old) / (2.0 * eta)
            )
            theta = minimize(loss, theta, method="BFGS", options={"gtol": 1e-9}).x
        else:
            theta = nearest_in_ball(tilted, theta + eta * np.linalg.solve(tilted, (r - MU[family](z)) * x), bound)
        h = h + SLOPE[family](x @ theta) * np.outer(x, x)
    return theta, h


def gloc(family, rows, rewards, reg, bound):
    """theta after GLOC with online Newton steps."""
    kappa = min(SLOPE[family](bound), SLOPE[family](-bound))
    online, a, b = np.zeros(rows.shape[1]), reg * np.eye(rows.shape[1]), np.zeros(rows.shape[1])
    for x, r in zip(rows, rewards, strict=True):
        z, a = x @ online, a + np.outer(x, x)
        b = b + z * x
        online = nearest_in_ball(a, online - np.linalg.solve(a, (MU[family](z) - r) * x) / kappa, bound)
    return np.linalg.solve(a, b)


def offline(family, rows, rewards, reg):
    """theta and H of regression on all rows."""
    loss = lambda t: POTENTIAL[family](rows @ t).sum() - rewards @ rows @ t + reg * t @ t / 2.0  # noqa: E731
    slopes = lambda t: rows.T @ (MU[family](rows @ t) - rewards) + reg * t  # noqa: E731
    theta = minimize(loss, np.zeros(rows.shape[1]), jac=slopes, method="BFGS", options={"gtol": 1e-10}).x
    return theta, reg * np.eye(len(theta)) + (rows.T * SLOPE[family](rows @ theta)) @ rows


def radius(family, state_gain, reg, eta, bound, theta_bound, row_bound, delta, noise=1.0):
    """beta of docs/clicks/radius.md, on an exact design."""
    curved = 0.0 if family == "identity" else 1.0
    steepest = {"logistic": 0.25, "poisson": np.exp(row_bound * bound), "identity": 1.0}[family]
    spread = noise**2 if family == "identity" else 1.0
    left = 1.0 - eta * curved * steepest * row_bound**3 * (bound + theta_bound) / reg
    u = curved**2 * eta * spread / left * row_bound**2 / (2.0 * reg)
    excess = np.expm1(u) / u if u > 0.0 else 1.0
    return np.sqrt(
        reg * theta_bound**2 + 2.0 * eta * spread * np.log(1.0 / delta) + excess * eta**2 * spread / left * state_gain
    )
