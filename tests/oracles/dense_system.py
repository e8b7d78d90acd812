"""Naive system identification: a dense matrix for every coordinate, by the formulas of Wang et al. algorithm 1."""

import numpy as np


def project(theta, v, bound):
    """argmin over ||x|| <= bound of ||x - theta||_v, by bisection on the multiplier."""
    low, high = 0.0, 1e12
    for _ in range(200 if np.linalg.norm(theta) > bound else 0):
        middle = (low + high) / 2
        longer = np.linalg.norm(np.linalg.solve(v + middle * np.eye(len(v)), v @ theta)) > bound
        low, high = (middle, high) if longer else (low, middle)
    return np.linalg.solve(v + low * np.eye(len(v)), v @ theta)


def one_pass_huber(rows, targets, nus, reg, epsilon, horizon, bound, row_bound, delta):
    """Estimates (t, D), matrices (t, D, D) and radii (t,) after each row, for one coordinate."""
    dim, p, a = rows.shape[1], (1 - epsilon) / (2 * (1 + epsilon)), 4.0
    log = np.log(2 * horizon**2 / delta)
    kappa = dim * np.log(1 + row_bound**2 * horizon**2 / (reg * a * dim))
    tau0 = np.sqrt(2 * kappa) * np.log(3 * horizon) ** p / log ** (1 / (1 + epsilon))
    growth = np.maximum(np.arange(len(rows) + 1), 1.0) ** p
    betas = 107 * log * tau0 * growth + np.sqrt(reg * (2 + 4 * bound**2))
    v, theta, out = reg * np.eye(dim), np.zeros(dim), []
    for t, (z, y, nu) in enumerate(zip(rows, targets, nus, strict=True), start=1):
        width = np.sqrt(z @ np.linalg.solve(v, z))
        sigma = max(nu, 1 / np.sqrt(horizon), np.sqrt(2 * betas[t - 1] / (tau0 * np.sqrt(a) * t**p)) * width)
        w = width / (sigma * np.sqrt(a))
        tau = tau0 * np.sqrt(1 + w**2) / w * t**p
        v = v + np.outer(z, z) / (a * sigma**2)
        theta = theta + np.linalg.solve(v, z) * np.clip((y - z @ theta) / sigma, -tau, tau) / sigma
        theta = project(theta, v, bound)
        out.append((theta, v, betas[t]))
    return tuple(map(np.array, zip(*out, strict=True)))
