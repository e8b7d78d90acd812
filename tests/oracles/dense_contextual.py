"""Naive dense truth of `ContextualBandit`: formulas of its modules, one after the other, in float64."""

import itertools

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
        """The residual, as clipped; h; and what was cut of the residual."""
        kept = 1.0 if self.last is None else (1.0 - self.drift) ** (now - self.last)
        theta, covariance = self.at(now, 0.0)
        tau = np.sqrt(kept) * self.tau
        left = 1.0 - phi @ tau
        h, whole = phi @ covariance @ phi, reward - phi @ theta - level * left
        most = bound * np.sqrt(1.0 + h) if bound > 0.0 else np.inf
        e = np.clip(whole, -most, most)
        self.covariance = np.linalg.inv(np.linalg.inv(covariance) + np.outer(phi, phi))
        self.theta, self.last = theta + self.covariance @ phi * (e + level * left), now
        self.tau = tau + self.covariance @ phi * left
        return e, h, whole - e


class Mixture:
    """The models of every arm, on given views, from the first row on."""

    def __init__(self, views, models, arms, reg):
        self.views, self.models, self.count, self.reg = views, models, 0, reg
        self.arms = {(a, m): None for a in range(arms) for m in range(len(models))}
        self.volumes, self.noises, self.rewards = np.zeros(len(models)), np.zeros(len(models)), []
        self.learned, self.early = np.zeros(arms), [[] for _ in range(arms)]
        self.sizes, self.cuts = [[] for _ in range(arms)], [[] for _ in range(arms)]
        self.given = [[] for _ in range(arms)]

    def phi(self, m, x):
        sees, part, _, reg, _, _, counts = self.models[m]
        view, phi = self.views[sees], features(self.views[sees], x)
        own = phi[(-1, len(view.landmarks), 0)[part] :].copy()
        if reg is not None and counts > 0.0:
            own[-1] = np.sqrt(reg / counts)
        return own

    def fresh(self, m, n):
        _, _, drift, reg, *_ = self.models[m]
        return Ridge(n, reg or self.reg, drift)

    def model(self, a, m, n):
        if self.arms[a, m] is None:
            self.arms[a, m] = self.fresh(m, n)
        return self.arms[a, m]

    def unit(self):
        """m and D of the last 1,024 rewards; after the first 64 they are taken anew for every 16th only."""
        known = len(self.rewards)
        last = np.array(self.rewards[: known if known <= 64 else known - (known - 1) % 16][-1024:])
        middle = np.median(last)
        apart = np.abs(last - middle)
        return middle, np.median(apart[apart > 0.0]) if apart.any() else 0.0

    def two(self):
        """The commonest two of the first three values."""
        return sorted(list(dict.fromkeys(self.rewards))[:3], key=lambda value: -self.rewards.count(value))[:2]

    def has_many_values(self):
        two = self.two()
        return sum(reward not in two for reward in self.rewards) > 0.05 * len(self.rewards)

    def level(self):
        if not self.has_many_values():
            two = self.two()
            return min(*two, 0.0) if len(two) == 1 else min(two, default=0.0)
        middle, spread = self.unit()
        first = [reward for rewards in self.early for reward in rewards]
        held = [np.clip(one, middle - 10.0 * spread, middle + 10.0 * spread).mean() for one in self.early if one]
        return 0.0 if 2 * first.count(0.0) >= len(first) else np.mean(held)

    def size(self, reward):
        middle, spread = self.unit()
        return next((k for k in range(12) if abs(reward - middle) <= 3.0 * spread * 8.0**k), 12)

    def clip(self, a):
        sizes = np.array(self.sizes[a])
        cuts = np.array([*self.cuts[a], 0.0])  # of the last reward nothing is known yet
        signs = np.zeros(13)
        for k in range(1, 13):
            length = np.abs(cuts[sizes == k]).sum()
            signs[k] = (sizes == k).sum() * cuts[sizes == k].sum() / length if length > 0.0 else 0.0
        found = []
        for k in range(1, 13):
            count, n = (sizes >= k).sum(), len(sizes)
            often = count >= max(20, 0.2 * n)
            one_sided = k > 1 and count >= max(10, 0.04 * n) and abs(signs[k:].sum()) >= 0.8 * count
            near = ((sizes >= k) & (sizes <= 4)).sum()
            plausible = 1 < k < 5 and near >= max(5, 0.01 * n) and abs(signs[k:5].sum()) >= 0.8 * near
            found += [k] if often or one_sided or plausible else []
        return 3.0 * self.unit()[1] * 8.0 ** max(found, default=0)

    def tail(self, a):
        sizes, cuts, n = np.array(self.sizes[a]), np.array(self.cuts[a]), len(self.sizes[a])
        for k in range(12, 0, -1):
            count, counted = (sizes >= k).sum(), cuts[(sizes >= 1) & (sizes <= k)]
            total, length = counted.sum(), np.abs(counted).sum()
            near = ((sizes >= k) & (sizes <= 4)).sum()
            recurs = count >= max(1, 0.025 * n) or (k > 1 and near >= max(1, 0.005 * n))
            if length > 0.0 and recurs and (total > 0.0 or count >= max(5, 0.05 * n)):
                return total * abs(total) / length / n
        return 0.0

    def repeats(self, a):
        """How often the first value that came twice in a row has come since, itself included."""
        pairs = itertools.pairwise(self.given[a])
        first = next((place for place, (before, one) in enumerate(pairs) if one == before), None)
        return 0 if first is None else sum(one == self.given[a][first] for one in self.given[a][first:])

    def says_little(self, a):
        """Whether few rewards are known of an arm, all or often alike, where those of others are not alike."""
        own, n = self.given[a], self.count
        share = n / sum(map(bool, self.given))
        if not self.has_many_values() or len(own) >= share / 2:
            return False
        if len(set(own)) <= 1 and len(own) < min(30, share / 4):
            return True
        others = [b for b in range(len(self.given)) if b != a]
        unpaid = [b for b in others if max(self.sizes[b], default=0) < 2 and self.given[b]] or others
        common, rows = sum(map(self.repeats, unpaid)), sum(len(self.given[b]) for b in unpaid)
        rare = 0.1 * len(own) <= self.repeats(a) and common < 0.1 * rows
        return len(own) < 60 and rare and max(self.sizes[a]) < 2

    def paid(self, reward):
        self.rewards.append(reward)

    def learn(self, x, a, reward):
        """By the unit that is known, and the level with this reward."""
        self.early[a] = [*self.early[a], reward][:5]
        self.given[a].append(reward)
        self.sizes[a].append(self.size(reward))
        best = np.argmin(np.where([model[2] == 0.0 for model in self.models], self.noises, np.inf))
        clip = self.clip(a)
        for m in range(len(self.models)):
            phi = self.phi(m, x)
            e, h, cut = self.model(a, m, phi.size).learn(phi, reward, self.count, self.level(), clip)
            if m == best:
                self.cuts[a].append(cut)
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
            unknown = self.says_little(a)
            means[a] += 0.0 if unknown else self.tail(a)
            for m in range(len(w)):
                phi = self.phi(m, x)
                model = self.fresh(m, phi.size) if unknown else self.model(a, m, phi.size)
                theta, covariance = model.at(self.count, self.level())
                means[a] += w[m] * phi @ theta
                precision = 1.0 / (phi @ covariance @ phi) + 0.01 * (not unknown) * self.learned[a] / (phi @ phi)
                squares[a] += v[m] * self.models[m][4] ** 2 / precision
        return means, np.sqrt(squares), max(w @ np.sqrt(self.noises / self.count), 0.1 * self.unit()[1])
