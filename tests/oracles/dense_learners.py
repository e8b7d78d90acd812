"""Naive online kernel learners: dense inverses, no state reused, sketches from scratch at every update."""

import numpy as np

from onepass.features.sketched_nystrom import sjlt_row


def gaussian(x, y, width):
    return np.exp(-((x[:, None] - y[None]) ** 2).sum(axis=2) / (2.0 * width**2))


LOSSES = {  # name: (value, slope), of the decision f and the target y
    "hinge": (lambda f, y: max(0.0, 1.0 - y * f), lambda f, y: -y if y * f < 1.0 else 0.0),
    "squared_hinge": (lambda f, y: max(0.0, 1.0 - y * f) ** 2 / 2, lambda f, y: -y * max(0.0, 1.0 - y * f)),
    "logistic": (lambda f, y: np.log(1.0 + np.exp(-y * f)), lambda f, y: -y / (1.0 + np.exp(y * f))),
    "squared": (lambda f, y: (f - y) ** 2 / 2, lambda f, y: f - y),
    "huber": (
        lambda f, y: (f - y) ** 2 / 2 if abs(f - y) <= 0.3 else 0.3 * (abs(f - y) - 0.15),
        lambda f, y: float(np.clip(f - y, -0.3, 0.3)),
    ),
    "epsilon_insensitive": (
        lambda f, y: max(0.0, abs(f - y) - 0.3),
        lambda f, y: 0.0 if abs(f - y) <= 0.3 else float(np.sign(f - y)),
    ),
}


def kogd(X, y, width, loss, step, reg):
    """f = sum a_i k(x_i, x); a <- (1 - step reg) a; a_t = -step l'(f)."""
    weights, decisions, slope = np.zeros(len(X)), np.zeros(len(X)), LOSSES[loss][1]
    for t in range(len(X)):
        decisions[t] = weights[:t] @ gaussian(X[:t], X[t : t + 1], width)[:, 0]
        weights *= 1.0 - step * reg
        weights[t] = -step * slope(decisions[t], y[t])
    return decisions


def sketched_map(points, landmarks, size, rank, blocks, seed, width):
    """Z = pinv(S^T K S_m) V Sigma^(1/2) from S^T K S = V Sigma V^T, all of it from scratch."""
    hashes = np.stack([sjlt_row(n, size, blocks, seed) for n in range(len(points))])
    values, vectors = np.linalg.eigh(hashes.T @ gaussian(points, points, width) @ hashes)
    values, vectors = np.maximum(values[::-1][:rank], 0.0), vectors[:, ::-1][:, :rank]
    return np.linalg.pinv(hashes.T @ gaussian(points, landmarks, width), rcond=1e-8) @ (vectors * np.sqrt(values))


def forks(
    X, y, places, budget, rank, size, blocks, update_every, width, loss, step, alpha, curvature, bound, seed,
    decaying=0.0,
):  # fmt: skip
    """Wen, Zhang et al. algorithm 1 as in onepass.learner.forks, A inverted at every step, the map made anew at every
    update.

    A round of an update: the decision, then the new map and the reset, then the step on the new map.
    """
    slope, decisions = LOSSES[loss][1], np.zeros(len(X))
    buffer, weights, Z, losses = [], [], None, 0
    landmarks = A = w = np.empty(0)
    for t in range(len(X)):
        x = X[t : t + 1]
        if Z is None:
            f = sum(a * gaussian(X[i : i + 1], x, width)[0, 0] for i, a in zip(buffer, weights, strict=True))
        else:
            phi = Z.T @ gaussian(landmarks, x, width)[:, 0]
            f = w @ phi
        decisions[t] = f
        g = slope(f, y[t])
        if g == 0.0:
            continue
        losses += 1
        if Z is None or losses > update_every:
            buffer.append(t)
            weights.append(-step * g)
            if len(buffer) < 2 * budget:
                continue
            losses = 1
            landmarks = X[[buffer[p] for p in places]]
            Z = sketched_map(X[buffer], landmarks, size, rank, blocks, seed, width)
            A, w = alpha * np.eye(rank), np.zeros(rank)
            phi, g = Z.T @ gaussian(landmarks, x, width)[:, 0], slope(0.0, y[t])
        inverse = np.linalg.inv(A)
        w = w - step * g * inverse @ phi
        over = np.sign(w @ phi) * max(abs(w @ phi) - bound, 0.0)
        w = w - over / (phi @ inverse @ phi) * inverse @ phi
        A = A + (curvature + decaying / np.sqrt(losses)) * g**2 * np.outer(phi, phi)
    return decisions
