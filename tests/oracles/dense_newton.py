"""Naive online Newton steps: dense A inverted every step, maps by np.linalg, implicit steps by root finding."""

import numpy as np
from scipy.optimize import brentq

from dense_learners import LOSSES, gaussian
from onepass.features.sketched_nystrom import sjlt_row


def implicit(loss, f, y, q):
    """argmin (z - f)^2 / (2 q) + l(z, y): where its slope, which only grows, changes sign (at a kink: jumps over 0)."""
    slope = LOSSES[loss][1]
    reach = 1.001 * q * abs(slope(f, y)) + 1e-15 * abs(f) + 1e-300
    return brentq(lambda z: (z - f) + q * slope(z, y), f - reach, f + reach, xtol=1e-300, rtol=1e-15, maxiter=2000)


def curvature(loss, z, y, gradient):
    """l'' at z where there is one, else l'^2; huber: that of the parabola that touches it."""
    if loss == "logistic":
        return 1.0 / (2.0 + np.exp(z) + np.exp(-z))
    if loss == "huber":
        return min(1.0, 0.3 / max(abs(z - y), 1e-300))
    return gradient**2 if loss in ("hinge", "epsilon_insensitive") else 1.0


def nystrom(points, size, rank, width, seed):
    """phi(x) = S^-1/2 V^T k(x) of the leading eigenpairs of K = V S V^T."""
    some = points[np.random.default_rng(seed).permutation(len(points))[:size]]
    values, vectors = np.linalg.eigh(gaussian(some, some, width))
    values, vectors = values[::-1][:rank], vectors[:, ::-1][:, :rank]
    kept = values > 1e-10 * values[0]
    return lambda X: gaussian(X, some, width) @ vectors[:, kept] / np.sqrt(values[kept])


def fourier(points, size, rank, width, seed):
    """phi(x) = sqrt(2 / D) [cos(W x), sin(W x)]."""
    W = np.random.default_rng(seed).standard_normal((size // 2, points.shape[1])) / width
    return lambda X: np.hstack([np.cos(X @ W.T), np.sin(X @ W.T)]) / np.sqrt(len(W))


def sketched(points, size, rank, width, seed):
    """phi(x) = Z^T k(x), Z = pinv(S^T K S_m) V Sigma^1/2 from S^T K S = V Sigma V^T."""
    some = points[np.random.default_rng(seed).permutation(len(points))[:size]]
    S = np.stack([sjlt_row(n, size, 1, seed) for n in range(len(points))])
    values, vectors = np.linalg.eigh(S.T @ gaussian(points, points, width) @ S)
    values, vectors = values[::-1][:rank], vectors[:, ::-1][:, :rank]
    kept = values > 1e-14 * values[0]
    root = vectors[:, kept] * np.sqrt(values[kept])
    Z = np.linalg.pinv(S.T @ gaussian(points, some, width), rcond=1e-8) @ root
    return lambda X: gaussian(X, some, width) @ Z


MAPS = {"nystrom": nystrom, "fourier": fourier, "sketched": sketched}


def linear(early):
    """Middle and slope of columns of length 1 together: sparse ones by what is not zero, others by their deviation."""
    middle, slope = np.zeros(early.shape[1]), np.zeros(early.shape[1])
    seen = []
    for j, column in enumerate(early.T):
        some = column[column != 0.0]
        if len(some) < 0.5 * len(column):
            if len(some):
                slope[j] = 1.0 / np.sqrt((some**2).mean())
                seen.append(1.0 / slope[j])
        elif column.std() > 1e-9 * np.abs(column).max():
            middle[j], slope[j] = column.mean(), 1.0 / column.std()
    unseen = ~early.any(axis=0) & (len(seen) > 0)
    common = np.median(seen) if seen else 0.0
    slope[unseen] = 1.0 / common if seen else 0.0
    length = np.sqrt((((early - middle) * slope) ** 2).sum(axis=1).mean())
    return middle, slope / (length if length > 0.0 else 1.0), unseen, 3.0 * common


def features(early, features, size, rank, width, width_factor, standardize, recent, seed, cut=False, gain=None):
    """All features of rows (n, d) that come one after the other, from the map of the early ones: (n, D + 2).

    Function of the rows and their targets: the last feature is the vote of the row before. cut: rows are held within
    the range of the early ones, widened by half of it on each side.
    """
    low, high = early.min(axis=0), early.max(axis=0)
    low, high = (low - (high - low) / 2, high + (high - low) / 2) if cut and standardize else (-np.inf, np.inf)
    spread = early.std(axis=0) if standardize else np.ones(early.shape[1])
    spread = np.where(spread > 1e-9 * np.abs(early).max(axis=0), spread, 1.0)
    middle, slope, unseen, reach = linear(early)
    scaled = early / spread
    if width is None:
        squares = ((scaled[:, None] - scaled[None]) ** 2).sum(axis=2)
        width = np.sqrt(np.median(squares[squares > 0.0])) if squares.any() else 1.0
    width *= width_factor
    phi = MAPS[features](scaled, size, rank, width, seed)

    def of(X, y):
        given, X = X, np.clip(X, low, high)
        votes = np.zeros(len(X))
        if recent:
            gaps = ((np.diff(X, axis=0) / spread) ** 2).sum(axis=1)
            votes[1:] = y[:-1] * np.exp(-16.0 * gaps / (2.0 * width**2))
        parts = [phi(X / spread), np.ones(len(X)), votes]
        if gain is not None and len(early) >= 8:
            held = np.where(unseen, np.clip(given, -reach, reach), X) if cut else X
            parts.insert(1, gain * slope * (held - middle))
        return np.column_stack(parts)

    return of


def kernel_newton(X, y, loss, reg, warm_up, memory, **options):
    """Decisions on a stream; after 1, 2, 4, ... and warm_up examples the map is made anew and all are learned again.

    A grows only where it knows a direction less well than `memory` examples would; None: always. Regression learns the
    targets in units of the early ones' deviation, from their mean on.
    """
    given = y
    decisions, known = np.zeros(len(X)), 0
    remakes = [1 << k for k in range(60) if 1 << k < warm_up] + [warm_up, len(X) + 1]
    for made, until in zip([0, *remakes], remakes, strict=False):
        last = min(until, len(X))
        mean, deviation = 0.0, 1.0
        if made and options["standardize"] and loss in ("squared", "huber", "epsilon_insensitive"):
            mean, deviation = given[:made].mean(), given[:made].std()
            deviation = deviation if deviation > 1e-9 * np.abs(given[:made]).max() else 1.0
        y = (given - mean) / deviation
        if made == 0:  # without a map all features but none are 0
            phi = np.zeros((last, 1))
        else:
            phi = features(X[:made], **options, cut=made == warm_up)(X[:last], y[:last])
        A, w = reg * np.eye(phi.shape[1]), np.zeros(phi.shape[1])
        for t in range(last):
            f, u = w @ phi[t], np.linalg.solve(A, phi[t])
            if t >= known:
                decisions[t] = mean + deviation * f
            q = phi[t] @ u
            if q > 0.0:
                z = implicit(loss, f, y[t], q)
                gradient = (f - z) / q
                if abs(gradient) > 1e-15:
                    w = w - gradient * u
                    if memory is None or q > 1.0 / memory:
                        A = A + curvature(loss, z, y[t], gradient) * np.outer(phi[t], phi[t])
        known = last
        if last == len(X):
            return decisions
    raise AssertionError("unreachable")


def several_newton(X, y, classes, loss, reg, warm_up, memory, **options):
    """Decisions (n, classes) on a stream: `kernel_newton` with one A, which grows by the mean curvature of the classes,
    and a number a in place of it for the vote of the example before.
    """
    decisions, known = np.zeros((len(X), classes)), 0
    remakes = [1 << k for k in range(60) if 1 << k < warm_up] + [warm_up, len(X) + 1]
    sides = np.where(y[:, None] == np.arange(classes), 1.0, -1.0)
    for made, until in zip([0, *remakes], remakes, strict=False):
        last = min(until, len(X))
        if made == 0:
            phi = np.zeros((classes, last, 2))
        else:
            of = features(X[:made], **options, cut=made == warm_up)
            phi = np.stack([of(X[:last], sides[:last, c]) for c in range(classes)])
        phi, votes = phi[:, :, :-1], phi[:, :, -1]
        A, a, w, v = reg * np.eye(phi.shape[2]), reg, np.zeros((classes, phi.shape[2])), np.zeros(classes)
        for t in range(last):
            row, vote = phi[0, t], votes[:, t]
            f, u = w @ row + v * vote, np.linalg.solve(A, row)
            if t >= known:
                decisions[t] = f
            q = row @ u + vote[0] ** 2 / a
            if q == 0.0:
                continue
            z = np.array([implicit(loss, f[c], sides[t, c], q) for c in range(classes)])
            slopes = (f - z) / q
            slopes[np.abs(slopes) <= 1e-15] = 0.0
            each = [curvature(loss, z[c], sides[t, c], slopes[c]) if slopes[c] else 0.0 for c in range(classes)]
            known_well = memory is not None and row @ u <= 1.0 / memory
            w, v = w - np.outer(slopes, u), v - slopes * vote / a
            if not known_well:
                A, a = A + np.mean(each) * np.outer(row, row), a + np.mean(each) * vote[0] ** 2
        known = last
        if last == len(X):
            return decisions
    raise AssertionError("unreachable")
