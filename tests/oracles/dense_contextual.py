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
    """A = reg I + sum phi phi^T, theta = A^-1 sum r phi, tau = A^-1 sum phi; with drift the Kalman filter."""

    def __init__(self, n, reg, drift):
        self.covariance, self.theta, self.tau = np.eye(n) / reg, np.zeros(n), np.zeros(n)
        self.reg, self.drift, self.last = reg, drift, None

    def at(self, now, level):
        """The parameter that is added to the level, and its covariance."""
        kept = 1.0 if self.last is None else (1.0 - self.drift) ** (now - self.last)
        prior = np.eye(self.theta.size) / self.reg
        return np.sqrt(kept) * (self.theta - level * self.tau), kept * self.covariance + (1.0 - kept) * prior

    def learn(self, phi, reward, now, level, bound):
        kept = 1.0 if self.last is None else (1.0 - self.drift) ** (now - self.last)
        theta, covariance = self.at(now, 0.0)
        tau = np.sqrt(kept) * self.tau
        left = 1.0 - phi @ tau
        h, e = phi @ covariance @ phi, reward - phi @ theta - level * left
        if bound > 0.0:
            e = np.clip(e, -bound * np.sqrt(1.0 + h), bound * np.sqrt(1.0 + h))
        self.covariance = np.linalg.inv(np.linalg.inv(covariance) + np.outer(phi, phi))
        self.theta, self.last = theta + self.covariance @ phi * (e + level * left), now
        self.tau = tau + self.covariance @ phi * left
        return e, h


class Mixture:
    """The models of every arm, on given views, from the first row on."""

    def __init__(self, views, models, arms, reg):
        self.views, self.models, self.count, self.reg = views, models, 0, reg
        self.arms = {(a, m): None for a in range(arms) for m in range(len(models))}
        self.volumes, self.noises, self.rewards = np.zeros(len(models)), np.zeros(len(models)), []
        self.learned, self.early = np.zeros(arms), [[] for _ in range(arms)]

    def phi(self, m, x):
        sees, part, _, reg, *_ = self.models[m]
        view, phi = self.views[sees], features(self.views[sees], x)
        own = phi[(-1, len(view.landmarks), 0)[part] :].copy()
        if reg is not None:
            own[-1] = np.sqrt(reg)
        return own

    def model(self, a, m, n):
        if self.arms[a, m] is None:
            _, _, drift, reg, *_ = self.models[m]
            self.arms[a, m] = Ridge(n, reg or self.reg, drift)
        return self.arms[a, m]

    def unit(self):
        """m and D of the last 1,024 rewards; after the first 64 they are taken anew for every 16th only."""
        known = len(self.rewards)
        last = np.array(self.rewards[: known if known <= 64 else known - (known - 1) % 16][-1024:])
        middle = np.median(last)
        apart = np.abs(last - middle)
        return middle, np.median(apart[apart > 0.0]) if apart.any() else 0.0

    def level(self):
        values = sorted(set(self.rewards))
        if len(values) < 3:
            return min(values[0], 0.0) if len(values) == 1 else values[0] if values else 0.0
        first = [reward for rewards in self.early for reward in rewards]
        return 0.0 if 2 * first.count(0.0) >= len(first) else np.mean([np.mean(one) for one in self.early if one])

    def paid(self, reward):
        self.rewards.append(reward)

    def learn(self, x, a, reward):
        """By the unit that is known, and the level with this reward."""
        self.early[a] = [*self.early[a], reward][:5]
        for m in range(len(self.models)):
            phi = self.phi(m, x)
            e, h = self.model(a, m, phi.size).learn(phi, reward, self.count, self.level(), 3.0 * self.unit()[1])
            self.noises[m] += e * e / (1.0 + h)
            self.volumes[m] += np.log(1.0 + h)
        self.count += 1
        self.learned[a] += 1

    def weights(self):
        tiny = (1e-4 * self.unit()[1]) ** 2
        losses = self.count / 2.0 * np.log((self.noises + tiny) / (self.count + 1.0)) + self.volumes / 2.0
        w = np.array([model[5] for model in self.models]) * np.exp(-0.1 * (losses - losses.min()))
        w[w < 0.05 * w.max()] = 0.0
        return w / w.sum()

    def survey(self, x):
        w, arms = self.weights(), len(self.arms) // len(self.models)
        v = np.where(w >= 0.3 * w.max(), w, 0.0) / w[w >= 0.3 * w.max()].sum()
        means, squares = np.full(arms, self.level()), np.zeros(arms)
        for a in range(arms):
            for m in range(len(w)):
                phi = self.phi(m, x)
                theta, covariance = self.model(a, m, phi.size).at(self.count, self.level())
                means[a] += w[m] * phi @ theta
                precision = 1.0 / (phi @ covariance @ phi) + 0.01 * self.learned[a] / (phi @ phi)
                squares[a] += v[m] * self.models[m][4] ** 2 / precision
        return means, np.sqrt(squares), max(w @ np.sqrt(self.noises / self.count), 0.1 * self.unit()[1])
