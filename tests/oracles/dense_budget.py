"""Naive online kernel learners on a budget: Gram matrices of the whole stream, lists, inverses anew every round."""

import numpy as np

from dense_learners import LOSSES, gaussian, sketched_map


def rbp(X, y, width, budget, place):
    """Cavallanti et al. 2007: the kernel perceptron; with B examples one of them, place(mistakes), makes room."""
    K, kept, decisions, mistakes = gaussian(X, X, width), [], np.zeros(len(X)), 0
    for t in range(len(X)):
        decisions[t] = sum(a * K[i, t] for i, a in kept)
        if y[t] * decisions[t] <= 0.0:
            if len(kept) < budget:
                kept.append((t, y[t]))
            else:
                kept[place(mistakes)] = (t, y[t])
            mistakes += 1
    return decisions


def bogd(X, y, width, budget, loss, step, reg, cap, place):
    """Zhao et al. 2012: f - step (reg f + l' k(x, .)); of B examples the rest stands for all: B / (B - 1) of it."""
    K, kept, decisions, losses = gaussian(X, X, width), [], np.zeros(len(X)), 0
    for t in range(len(X)):
        decisions[t] = sum(a * K[i, t] for i, a in kept)
        gradient = LOSSES[loss][1](decisions[t], y[t])
        kept = [(i, a - step * reg * a) for i, a in kept]
        if gradient != 0.0 and len(kept) == budget:
            kept = [(i, a / (1.0 - 1.0 / budget)) for i, a in kept]
            kept[place(losses)] = (t, -step * gradient)
        elif gradient != 0.0:
            kept.append((t, -step * gradient))
        losses += gradient != 0.0
        kept = [(i, np.clip(a, -cap, cap)) for i, a in kept]
    return decisions


def passive_aggressive(f, y, C, a=0.0, k=0.0):
    """The least of ||b phi(x) - a phi(x_r)||^2 / 2 + C hinge after it over b, and that b; k = k(x_r, x).

    Convex, and quadratic on either side of its kink: the least is where one of the three is.
    """

    def objective(b):
        return (a * a - 2.0 * a * b * k + b * b) / 2.0 + C * max(0.0, 1.0 - y * (f - a * k + b))

    return min((objective(b), b) for b in (a * k + C * y, a * k, a * k + y - f))


def bpas(X, y, width, budget, C):
    """Wang and Vucetic 2010, BPA-S: of all changes that swap one example for the new one, the best."""
    K, kept, decisions = gaussian(X, X, width), [], np.zeros(len(X))
    for t in range(len(X)):
        f = decisions[t] = sum(a * K[i, t] for i, a in kept)
        if y[t] * f >= 1.0:
            continue
        if len(kept) < budget:
            kept.append((t, passive_aggressive(f, y[t], C)[1]))
        else:
            (_, b), r = min((passive_aggressive(f, y[t], C, kept[r][1], K[kept[r][0], t]), r) for r in range(budget))
            kept[r] = (t, b)
    return decisions


def projectron(X, y, width, budget, eta, margins):
    """Orabona et al. 2009: P k(x, .) = sum of c_i k(x_i, .) by least squares; delta = ||k(x, .) - P k(x, .)||."""
    K, kept, weights, decisions = gaussian(X, X, width), [], np.zeros(0), np.zeros(len(X))
    for t in range(len(X)):
        k = K[kept, t]
        f = decisions[t] = weights @ k
        c = np.linalg.lstsq(K[np.ix_(kept, kept)], k, rcond=None)[0] if kept else np.zeros(0)
        outside = 1.0 - k @ c
        delta, loss = (
            np.sqrt(outside) if outside > 1e-13 else 0.0,
            1.0 - y[t] * f,
        )  # less is rounding, which a root shows
        if loss >= 1.0 and (delta <= eta or len(kept) == budget):
            weights = weights + y[t] * c
        elif loss >= 1.0:
            kept, weights = [*kept, t], np.append(weights, y[t])
        elif margins and loss > max(0.0, delta / eta):
            weights = weights + y[t] * min(loss / (k @ c), 2.0 * (loss - delta / eta) / (k @ c), 1.0) * c
    return decisions


def perceptron(X, y, width):
    """The kernel perceptron without a budget."""
    return rbp(X, y, width, len(X), None)


def fogd(X, y, frequencies, loss, step):
    """phi(x) = sqrt(2 / D) [cos(W x), sin(W x)]; w <- w - step l'(f) phi."""
    angles = X @ frequencies.T
    features = np.hstack([np.cos(angles), np.sin(angles)]) / np.sqrt(len(frequencies))
    return descent(features, y, loss, step, np.zeros(features.shape[1]))


def descent(features, y, loss, step, w):
    """Gradient descent on features (n, D) from w: the decisions."""
    decisions = np.zeros(len(y))
    for t in range(len(y)):
        decisions[t] = w @ features[t]
        w = w - step * LOSSES[loss][1](decisions[t], y[t]) * features[t]
    return decisions


def buffered(X, y, width, count, loss, step):
    """Gradient descent in the expansion until `count` examples are kept: decisions so far, the kept, their weights."""
    K, kept, weights, decisions = gaussian(X, X, width), [], [], []
    while len(kept) < count and len(decisions) < len(X):
        t = len(decisions)
        decisions.append(float(np.dot(weights, K[kept, t])))
        gradient = LOSSES[loss][1](decisions[t], y[t])
        if gradient != 0.0:
            kept, weights = [*kept, t], [*weights, -step * gradient]
    return decisions, kept, np.array(weights)


def nogd(X, y, width, budget, rank, loss, step):
    """K = V S V^T of the first 2 B: phi(x) = S^-1/2 V^T k(x) of the leading pairs, w = S^1/2 V^T a."""
    decisions, kept, weights = buffered(X, y, width, 2 * budget, loss, step)
    values, vectors = np.linalg.eigh(gaussian(X[kept], X[kept], width))
    values, vectors = values[::-1][:rank], vectors[:, ::-1][:, :rank]
    now = len(decisions)
    features = gaussian(X[now:], X[kept], width) @ vectors / np.sqrt(values)
    return np.append(decisions, descent(features, y[now:], loss, step, np.sqrt(values) * (vectors.T @ weights)))


def sketched_anew(size, rank, blocks, seed, width):
    """The map of points and landmarks of FORKS and SkeGD, all of it from scratch."""
    return lambda points, landmarks: sketched_map(points, landmarks, size, rank, blocks, seed, width)


def is_due(update_every, losses, seen):
    """Whether the sketches are updated: after so many losses, or after losses of that share of the examples seen."""
    return losses >= (update_every if isinstance(update_every, int) else update_every * seen)


def skegd(X, y, places, budget, update_every, width, loss, step, made):
    """Gradient descent on the maps made(points, landmarks); where one changes, the fit of f at the landmarks."""
    decisions, kept, weights = buffered(X, y, width, 2 * budget, loss, step)
    landmarks = X[[kept[p] for p in places]]
    Z = made(X[kept], landmarks)
    near = gaussian(landmarks, landmarks, width)
    w, losses = np.linalg.lstsq(near @ Z, gaussian(landmarks, X[kept], width) @ weights, rcond=1e-8)[0], 0
    for t in range(len(decisions), len(X)):
        phi = Z.T @ gaussian(landmarks, X[t : t + 1], width)[:, 0]
        decisions.append(w @ phi)
        gradient = LOSSES[loss][1](decisions[t], y[t])
        w = w - step * gradient * phi
        losses += gradient != 0.0
        if gradient != 0.0 and is_due(update_every, losses, t + 1):
            kept, losses, values = [*kept, t], 0, near @ Z @ w
            Z = made(X[kept], landmarks)
            w = np.linalg.lstsq(near @ Z, values, rcond=1e-8)[0]
    return np.array(decisions)


def forks(
    X, y, places, budget, update_every, width, loss, step, alpha, curvature, bound, made, decaying=0.0, old_map=False,
    by_example=False, project_next=False
):  # fmt: skip
    """Wen, Zhang et al. algorithm 1 on the maps made(points, landmarks), A inverted every round, update_every as in
    `is_due`.

    A round of an update: the decision, the new map and the reset, the step on the new map; old_map: the step before.
    by_example: update_every counts examples; project_next: w is projected before it decides, not after a step.
    """
    decisions, kept, _ = buffered(X, y, width, 2 * budget, loss, step)
    landmarks = X[[kept[p] for p in places]]
    Z, since, examples = made(X[kept], landmarks), 0, 0
    A, w, most = alpha * np.eye(Z.shape[1]), np.zeros(Z.shape[1]), np.inf if project_next else bound

    def stepped(A, w, t, f):
        phi = Z.T @ gaussian(landmarks, X[t : t + 1], width)[:, 0]
        added = curvature + decaying / np.sqrt(1 + since)
        return newton(A, w, phi, LOSSES[loss][1](f, y[t]), step, added, most)

    if not old_map:
        A, w = stepped(A, w, len(decisions) - 1, 0.0)
    for t in range(len(decisions), len(X)):
        phi = Z.T @ gaussian(landmarks, X[t : t + 1], width)[:, 0]
        if project_next:
            w = projected(A, w, phi, bound)
        decisions.append(w @ phi)
        examples += 1
        loses = LOSSES[loss][1](decisions[t], y[t]) != 0.0
        since += loses
        due = is_due(update_every, examples if by_example else since, t + 1) and (loses or by_example)
        if loses and (old_map or not due):
            A, w = stepped(A, w, t, decisions[t])
        if due:
            kept, since, examples = [*kept, t], 0, 0
            Z = made(X[kept], landmarks)
            A, w = alpha * np.eye(Z.shape[1]), np.zeros(Z.shape[1])
            if not old_map:
                A, w = stepped(A, w, t, 0.0)
    return np.array(decisions)


def newton(A, w, phi, gradient, step, curvature, bound):
    """w - step g A^-1 phi; the nearest in the norm of A with |w^T phi| <= bound; then A + curvature g^2 phi phi^T."""
    w = projected(A, w - step * gradient * np.linalg.inv(A) @ phi, phi, bound)
    return A + curvature * gradient**2 * np.outer(phi, phi), w


def projected(A, w, phi, bound):
    """The nearest w in the norm of A with |w^T phi| <= bound."""
    if abs(w @ phi) <= bound:
        return w
    direction = np.linalg.inv(A) @ phi
    return w - (w @ phi - np.sign(w @ phi) * bound) / (phi @ direction) * direction


def pros_n_kons(
    X, y, budget, width, loss, step, alpha, curvature, bound, oversampling, epsilon, reg, coin,
    reset=True, old_map=False,
):  # fmt: skip
    """Calandriello et al. 2017: decisions and the dictionary, as (example, its probability).

    The decision is on the dictionary before x, the step on that with x; old_map: the step is before x joins, too.
    """
    K, kept, p, decisions = gaussian(X, X, width), [], [], np.zeros(len(X))
    A, w = np.zeros((0, 0)), np.zeros(0)

    def features(t):
        return np.linalg.solve(np.linalg.cholesky(K[np.ix_(kept, kept)]), K[kept, t]) if kept else np.zeros(0)

    def stepped(A, w, t):
        gradient = LOSSES[loss][1](w @ features(t), y[t])
        return newton(A, w, features(t), gradient, step, curvature, bound) if gradient != 0.0 and kept else (A, w)

    for t in range(len(X)):
        k, inside = K[kept, t], K[np.ix_(kept, kept)]
        decisions[t] = w @ features(t)
        if old_map:
            A, w = stepped(A, w, t)
        S = np.diag(1.0 / np.sqrt(p))
        residual = 1.0 - k @ S @ np.linalg.inv(S @ inside @ S + reg * np.eye(len(kept))) @ S @ k
        chance = min(1.0, oversampling * (1.0 + epsilon) * residual / (residual + reg))
        outside = 1.0 - k @ np.linalg.lstsq(inside, k, rcond=None)[0] if kept else 1.0
        if coin(t) < chance and outside > 1e-9 and (budget is None or len(kept) < budget):
            kept, p = [*kept, t], [*p, chance]
            if reset:
                A, w = alpha * np.eye(len(kept)), np.zeros(len(kept))
            else:
                A, w = np.block([[A, np.zeros((len(A), 1))], [np.zeros((1, len(A))), alpha]]), np.append(w, 0.0)
        if not old_map:
            A, w = stepped(A, w, t)
    return decisions, list(zip(kept, p, strict=True))
