"""Naive dense truth of `ContextualBandit`: formulas of its modules, one after the other, in float64."""

import numpy as np

from onepass.model.averaged.mixture import CLOCK, begun_mixture
from onepass.model.averaged.remake import STAGE, VIEWS_MADE, scaled, seen_further


def views_of(rows, landmarks, across=0, seed=0):
    """The three views of rows (n, d), by the steps that make them; across: directions that rows are mapped on."""
    state = begun_mixture(rows.shape[1], len(rows), 0.1)
    state.rows[:], state.counts[CLOCK] = rows, len(rows)
    remaking = scaled(rows, landmarks, across, 0, np.zeros((2, 0)))
    while remaking.progress[STAGE] < VIEWS_MADE:
        remaking = seen_further(state, remaking, seed)
    return remaking.views


def features(view, x):
    """[L^-1 k(z), scale z, 1 / sqrt(d + 1)]."""
    limit, scale, precision = view.numbers
    z = np.clip((x - view.center) * view.unit, -limit, limit)
    if view.knots.size:
        z = np.array([np.interp(*line) for line in zip(x, view.knots, view.heights, strict=True)])
    near = np.exp(-precision * ((view.landmarks.astype(float) - z) ** 2).sum(axis=1))
    return np.concatenate([view.half.astype(float) @ near, scale * z, [1.0 / np.sqrt(x.size + 1.0)]])


class Ridge:
    """A = reg I + sum phi phi^T, theta = A^-1 sum r phi; with drift the Kalman filter of a stationary parameter."""

    def __init__(self, n, reg, drift):
        self.covariance, self.theta, self.reg, self.drift, self.last = np.eye(n) / reg, np.zeros(n), reg, drift, None

    def at(self, now):
        kept = 1.0 if self.last is None else (1.0 - self.drift) ** (now - self.last)
        prior = np.eye(self.theta.size) / self.reg
        return np.sqrt(kept) * self.theta, kept * self.covariance + (1.0 - kept) * prior

    def learn(self, phi, reward, now, bound):
        theta, covariance = self.at(now)
        h, e = phi @ covariance @ phi, reward - phi @ theta
        if bound > 0.0:
            e = np.clip(e, -bound * np.sqrt(1.0 + h), bound * np.sqrt(1.0 + h))
        precision = np.linalg.inv(covariance) + np.outer(phi, phi)
        self.covariance = np.linalg.inv(precision)
        self.theta, self.last = theta + self.covariance @ phi * e, now
        return e, h


class Mixture:
    """The models of every arm, on given views, from the first row on."""

    def __init__(self, views, models, arms):
        self.views, self.models, self.count = views, models, 0
        self.arms = {(a, m): None for a in range(arms) for m in range(len(models))}
        self.losses, self.noises, self.rewards = np.zeros(len(models)), np.zeros(len(models)), []
        self.learned = np.zeros(arms)

    def phi(self, m, x):
        sees, start, *_ = self.models[m]
        return features(self.views[sees], x)[start:]

    def model(self, a, m, n):
        if self.arms[a, m] is None:
            self.arms[a, m] = Ridge(n, *self.models[m][2:4])
        return self.arms[a, m]

    def unit(self):
        """m and D of the last 1,024 rewards; after the first 64 they are taken anew for every 16th only."""
        known = len(self.rewards)
        last = np.array(self.rewards[: known if known <= 64 else known - (known - 1) % 16][-1024:])
        middle = np.median(last)
        apart = np.abs(last - middle)
        return middle, np.median(apart[apart > 0.0]) if apart.any() else 0.0

    def prior(self):
        middle, spread = self.unit()
        return 0.0 if abs(middle) <= 3.0 * spread else np.mean(self.rewards)

    def paid(self, reward):
        self.rewards.append(reward)

    def learn(self, x, a, reward):
        """By the unit and the prior that are known."""
        rest, (_, spread) = reward - self.prior(), self.unit()
        for m in range(len(self.models)):
            phi = self.phi(m, x)
            e, h = self.model(a, m, phi.size).learn(phi, rest, self.count, 3.0 * spread)
            self.losses[m] += e * e
            self.noises[m] += e * e / (1.0 + h)
        self.count += 1
        self.learned[a] += 1

    def weights(self):
        least = self.losses.min()
        w = np.exp(-0.2 * (self.losses - least) * self.count / (2.0 * least))
        w[w < 0.05] = 0.0
        return w / w.sum()

    def survey(self, x):
        w, arms = self.weights(), len(self.arms) // len(self.models)
        means, widths = np.full(arms, self.prior()), np.zeros(arms)
        for a in range(arms):
            for m, weight in enumerate(w):
                phi = self.phi(m, x)
                theta, covariance = self.model(a, m, phi.size).at(self.count)
                means[a] += weight * phi @ theta
                if weight == w.max():
                    precision = 1.0 / (phi @ covariance @ phi) + 0.01 * self.learned[a] / (phi @ phi)
                    widths[a] = self.models[m][4] / np.sqrt(precision)
        return means, widths, max(w @ np.sqrt(self.noises / self.count), 0.1 * self.unit()[1])
