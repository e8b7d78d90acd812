"""The naive dense truth: obvious, slow, independent of the package."""

from copy import deepcopy

import numpy as np


def inverse(rows, ridge):
    """(ridge I + S^T S)^-1 by an SVD of S, which keeps the small eigenvalues that forming S^T S would lose."""
    dim = rows.shape[1]
    _, singular, vectors = np.linalg.svd(np.vstack([rows, np.zeros((dim, dim))]), full_matrices=True)
    return (vectors.T / (singular[:dim] ** 2 + ridge)) @ vectors


def log_det(rows, ridge):
    """log det (ridge I + S^T S)."""
    singular = np.linalg.svd(np.vstack([rows, np.zeros((rows.shape[1],) * 2)]), compute_uv=False)
    return np.log(singular**2 + ridge).sum()


def rank(rows):
    """Number of directions, each row measured against its own length."""
    norms = np.linalg.norm(rows, axis=1)
    return np.linalg.matrix_rank(rows[norms > 0] / norms[norms > 0, None], tol=1e-9) if (norms > 0).any() else 0


class FrequentDirections:
    """S (any number of rows), shed; shrinks when S spans 2 size directions."""

    def __init__(self, dim, size):
        self.rows, self.size, self.shed = np.zeros((0, dim)), size, 0.0

    def append(self, row):
        self.rows = np.vstack([self.rows, row])
        if rank(self.rows) == 2 * self.size:
            self.shrink()

    def shrink(self):
        _, singular, vectors = np.linalg.svd(self.rows, full_matrices=False)
        if singular.size < self.size:
            return
        cut = singular[self.size - 1] ** 2
        keep = np.sqrt(np.maximum(singular[: self.size - 1] ** 2 - cut, 0.0))
        self.rows, self.shed = keep[:, None] * vectors[: self.size - 1], self.shed + cut


class Dyadic:
    """Blocks of FrequentDirections by the rules of Wen, Yin et al. algorithm 1 as corrected in ALGORITHMS section 2."""

    def __init__(self, dim, size, error):
        self.dim, self.size, self.error = dim, size, error
        self.frozen, self.exact = [], np.zeros((0, dim))
        self.block, self.mass, self.count = FrequentDirections(dim, size), 0.0, 0

    def append(self, row):
        light = self.mass + row @ row < self.error * self.size
        low = self.count + 1 >= self.block.size and rank(np.vstack([self.block.rows, row])) <= self.block.size - 1
        if not self.finished() and not light and not low:
            if self.block.shed > 0.0:
                self.block.shrink()
            self.frozen.append(self.block)
            self.block, self.mass, self.count = FrequentDirections(self.dim, 2 * self.block.size), 0.0, 0
        if self.finished():
            self.exact = np.vstack([self.exact, row])
        else:
            self.block.append(row)
            self.mass, self.count = self.mass + row @ row, self.count + 1

    def finished(self):
        return len(self.frozen) >= int(np.log2(self.dim / self.size + 1)) - 1

    @property
    def rows(self):
        return np.vstack([b.rows for b in self.frozen] + [self.block.rows, self.exact])

    @property
    def shed(self):
        return sum(b.shed for b in self.frozen) + self.block.shed


class DyadicSketches:
    """Blocks make(0), make(1), ... of sketches with `rows`, `raised` and `error`, which is <= error / 2^i in block i.

    A row is tried on a copy of the block. `sizes[i]` is the number of directions of block i.
    """

    def __init__(self, dim, error, make, sizes):
        self.dim, self.error, self.make, self.sizes = dim, error, make, sizes
        self.frozen, self.exact, self.block = [], np.zeros((0, dim)), make(0)

    def append(self, row):
        while not self.finished():
            trial = deepcopy(self.block)
            trial.append(row)
            if trial.error <= self.error / 2 ** len(self.frozen):
                self.block = trial
                return
            self.frozen.append(self.block)
            self.block = self.make(len(self.frozen))
        self.exact = np.vstack([self.exact, row])

    def finished(self):
        count = len(self.frozen)
        return sum(self.sizes[:count]) + 3 * self.sizes[count] > self.dim

    def matrix(self, reg):
        blocks = [*self.frozen, self.block]
        rows = np.vstack([*(block.rows for block in blocks), self.exact])
        return (reg + sum(block.raised for block in blocks)) * np.eye(self.dim) + rows.T @ rows


class OFUL:
    """Ridge regression and UCB with a fresh inverse every round."""

    def __init__(self, dim, reg, exploration):
        self.matrix, self.moment, self.exploration = reg * np.eye(dim), np.zeros(dim), exploration

    def scores(self, rows):
        inverse = np.linalg.inv(self.matrix)
        widths = np.sqrt(np.einsum("ij,jk,ik->i", rows, inverse, rows))
        return rows @ inverse @ self.moment + self.exploration * widths

    def learn(self, row, reward):
        self.matrix += np.outer(row, row)
        self.moment += reward * row


class Disjoint:
    """One OFUL per arm, made when the arm is first learned from; every other arm is scored by a fresh one."""

    def __init__(self, dim, reg, exploration):
        self.fresh, self.arms = lambda: OFUL(dim, reg, exploration), {}

    def learn(self, row, reward, arm):
        self.arms.setdefault(arm, self.fresh()).learn(row, reward)

    def remove(self, arm):
        self.arms.pop(arm, None)

    def scores(self, rows, arms):
        """One row per arm."""
        return np.array([self.arms.get(a, self.fresh()).scores(x[None])[0] for x, a in zip(rows, arms, strict=True)])


class Hybrid:
    """One ridge regression on [z, 0 .. x .. 0]: the shared features z, and x in the place of its arm."""

    def __init__(self, arms, dim, shared, reg, exploration):
        self.arms, self.dim, self.shared = list(arms), dim, shared
        self.joint = OFUL(shared + len(self.arms) * dim, reg, exploration)

    def augmented(self, row, arm, extra):
        out = np.zeros(len(self.joint.moment))
        place = self.shared + self.arms.index(arm) * self.dim
        out[: self.shared], out[place : place + self.dim] = extra, row
        return out

    def learn(self, row, reward, arm, extra=None):
        self.joint.learn(self.augmented(row, arm, row if extra is None else extra), reward)

    def scores(self, rows, arms, extra=None):
        """One row per arm."""
        extra = rows if extra is None else extra
        return self.joint.scores(np.stack([self.augmented(x, a, z) for x, a, z in zip(rows, arms, extra, strict=True)]))


class SpectralTruncation:
    """A cut to its `rank` largest eigenvalues at 2 rank directions and after every batch; moments stay exact."""

    def __init__(self, dim, rank, reg, compensate):
        self.matrix, self.moment, self.ridge, self.reg = reg * np.eye(dim), np.zeros(dim), reg, reg
        self.rank, self.compensate, self.mass, self.directions = rank, compensate, 0.0, np.zeros((0, dim))

    def learn(self, rows, rewards):
        for row, reward in zip(rows, rewards, strict=True):
            self.matrix, self.moment = self.matrix + np.outer(row, row), self.moment + reward * row
            self.mass += row @ row
            if rank(np.vstack([self.directions, row])) > len(self.directions):
                self.directions = np.vstack([self.directions, row])
            if len(self.directions) == 2 * self.rank:
                self.cut()
        if len(self.directions) > self.rank:
            self.cut()

    def cut(self):
        values, vectors = np.linalg.eigh(self.matrix)
        values, self.directions = values[-self.rank :], vectors[:, -self.rank :].T
        self.ridge = self.reg
        if self.compensate:
            self.ridge += (self.mass - (values - self.reg).sum()) / (len(self.matrix) - self.rank)
        above = np.maximum(values - self.ridge, 0.0)
        self.matrix = self.ridge * np.eye(len(self.matrix)) + (self.directions.T * above) @ self.directions


class ProjectorSplitting:
    """Shustova et al. algorithms 2 to 4 with dense matrices; a batch is added before the first SVD cuts anything."""

    def __init__(self, dim, rank, reg, cholesky=False):
        self.left = self.right = np.zeros((dim, 0))
        self.more, self.rank, self.reg, self.cholesky, self.lossy = np.zeros((dim, dim)), rank, reg, cholesky, False

    @property
    def lower(self):
        return np.eye(len(self.more)) - self.left @ self.right.T - self.more

    def add(self, rows):
        q, r = np.linalg.qr(self.lower @ rows.T / np.sqrt(self.reg))
        values, vectors = np.linalg.eigh(np.eye(len(r)) + r @ r.T)
        m = np.linalg.cholesky(np.eye(len(r)) + r @ r.T) if self.cholesky else (vectors * np.sqrt(values)) @ vectors.T
        self.more = self.more + q @ (m - np.eye(len(r))) @ np.linalg.inv(m) @ q.T @ self.lower

    def compress(self):
        if self.lossy:
            u, s = np.linalg.qr(self.left + self.more @ self.right)
            s = s - u.T @ self.more @ self.right
            v, s = np.linalg.qr(self.right @ s.T + self.more.T @ u)
            self.left, self.right = u @ s.T, v
        else:
            u, s, v = np.linalg.svd(self.left @ self.right.T + self.more)
            self.left, self.right = u[:, : self.rank] * s[: self.rank], v[: self.rank].T
            self.lossy = s[self.rank] > 1e-9
        self.more = np.zeros_like(self.more)

    def inverse(self):
        return self.lower.T @ self.lower / self.reg


# ---- heavy tails (ALGORITHMS section 4; Wang et al.) ----


def norm_in(matrix, x):
    """||x||_A."""
    return np.sqrt(x @ matrix @ x)


def width_in(matrix, x):
    """||x||_{A^-1}."""
    return np.sqrt(x @ np.linalg.solve(matrix, x))


def nearest_in_ball(matrix, point, bound):
    """argmin over ||theta|| <= bound of ||theta - point||_A, by projected gradient steps until they stand still."""
    if np.linalg.norm(point) <= bound:
        return point
    theta, step = point * bound / np.linalg.norm(point), 1.0 / np.linalg.eigvalsh(matrix)[-1]
    for _ in range(100_000):
        before = theta
        theta = theta - step * matrix @ (theta - point)
        theta = theta * min(1.0, bound / np.linalg.norm(theta))
        if np.abs(theta - before).max() <= 1e-15 * bound:
            return theta
    raise AssertionError("the projection has not converged")


class Scales:
    """p, kappa, tau_0 and the logarithm of Wang et al. in round t; T is t where no horizon was given."""

    def __init__(self, t, dim, reg, epsilon, horizon, step, row_bound=1.0, delta=None, sigma_min=None):
        self.horizon = T = t if horizon is None else horizon
        delta = 1 / (8 * T) if delta is None else delta
        self.p, self.sigma_min = (1 - epsilon) / (2 * (1 + epsilon)), sigma_min or 1 / np.sqrt(T)
        self.kappa = dim * np.log(1 + row_bound**2 * T / (self.sigma_min**2 * reg * step * dim))
        self.log = np.log(2 * T**2 / delta)
        self.tau = np.sqrt(2 * self.kappa) * np.log(3 * T) ** self.p / self.log ** (1 / (1 + epsilon))
        self.growth = t**self.p


class RunningNoise:
    """sigma: 1.4826 times a running median of |residual| of unusual rewards, or a tenth of their mean if larger; nu:
    the root mean square of all residuals over 1 + leverage, each at most 5 sigma.

    Rewards are usual while that very number has more than sqrt(t) votes of two candidates' (Misra and Gries).
    """

    def __init__(self):
        self.size = self.mean = self.square = self.first = 0.0
        self.unusual, self.votes = 0, {}

    @property
    def sigma(self):
        return 1.4826 * max(self.size, self.mean / 10)

    def seen(self, reward, residual, leverage, t):
        """Whether the reward is usual."""
        common = reward in self.votes and self.votes[reward] + 1 > np.sqrt(t)
        if reward in self.votes or len(self.votes) < 2:
            self.votes[reward] = self.votes.get(reward, 0) + 1
        else:
            self.votes = {value: votes - 1 for value, votes in self.votes.items() if votes > 1}
        if self.size == 0.0:
            self.first, self.size, self.square = residual, abs(residual), residual**2 / (1 + leverage) / t
            return common
        least, most = np.abs(residual) / np.sqrt(1 + leverage), 5 * self.sigma
        if not common:
            self.unusual += 1
            n = self.unusual + 1
            self.mean = self.mean * (n - 1) / n + min(abs(residual), most) / n
            self.size *= np.exp(np.sign(abs(residual) - self.size) / np.sqrt(n))
        self.square = self.square * (t - 1) / t + (least if common else min(least, most)) ** 2 / t
        self.square = min(self.square, (5 * self.sigma) ** 2)
        return common


class HvtUCB:
    """Wang et al. algorithm 1. radius None: the paper's beta; a number: the practical mode, V in units of rows."""

    def __init__(
        self, dim, reg, epsilon, *, nu=None, horizon=None, radius=None, clip=1.0, floor=0.0, step=4.0, bound=np.inf,
        row_bound=1.0, delta=None, sigma_min=None,
    ):  # fmt: skip
        self.matrix, self.theta, self.t, self.projections, self.clips = reg * np.eye(dim), np.zeros(dim), 0, 0, 0
        self.dim, self.reg, self.epsilon, self.horizon, self.row_bound = dim, reg, epsilon, horizon, row_bound
        self.nu, self.radius, self.clip, self.floor, self.step, self.bound = nu, radius, clip, floor, step, bound
        self.delta, self.sigma_min, self.noise = delta, sigma_min, RunningNoise()

    def scales(self, t):
        given = (self.epsilon, self.horizon, self.step, self.row_bound, self.delta, self.sigma_min)
        return Scales(t, self.dim, self.reg, *given)

    def beta(self):
        """Of eq. 10 after t rounds; t^p is 1 at t = 0."""
        if self.radius is not None:
            return self.radius
        s = self.scales(max(self.t, 1))
        return 107 * s.log * s.tau * s.growth + np.sqrt(self.reg * (2 + 4 * self.bound**2))

    def unit(self):
        """What a number for exploration is multiplied by."""
        nu = self.nu or np.sqrt(self.noise.square)
        return 1.0 if self.radius is None else nu or 1.0

    def scores(self, rows):
        return rows @ self.theta + self.beta() * np.array([width_in(self.matrix, x) for x in rows])

    def weigh(self, x, reward, told):
        """rho, w and how far the clipped reward may lie from the prediction, this round."""
        width = width_in(self.matrix, x)
        common = self.noise.seen(reward, reward - x @ self.theta, width**2, self.t + 1)
        s, nu = self.scales(self.t + 1), self.nu or np.sqrt(self.noise.square)
        tau = self.clip * s.tau * s.growth
        guard = np.sqrt(2 * self.beta() / (tau * np.sqrt(self.step))) * width
        if self.radius is None:
            sigma = rho = max(told or nu, s.sigma_min, guard)
        else:
            share = told / nu if told and nu else 1.0
            rho = max(share, s.sigma_min, guard)
            sigma = (told or self.nu or self.noise.sigma) * rho / share
        w = width / rho / np.sqrt(self.step)
        mark = max(tau * np.sqrt(1 + w**2) / w, self.floor * np.sqrt(1 + w**2)) * sigma
        return rho, w, np.inf if common and self.radius is not None else mark

    def take_back(self):
        """What was learned by a first residual that has proved an outlier."""
        usual = sum(self.noise.votes.values())
        if abs(self.noise.first) > 30 * self.noise.size and self.noise.unusual > usual:
            self.theta = self.theta - np.linalg.solve(self.matrix, self.start * self.noise.first)
            votes, self.noise = self.noise.votes, RunningNoise()
            self.noise.votes = votes

    def learn(self, x, reward, nu=None):
        if self.radius is not None and not self.nu and self.bound == np.inf:
            self.take_back()
        known = self.noise.first
        rho, _, mark = self.weigh(x, reward, nu)
        if self.noise.first != known:
            self.start = x / rho**2
        self.matrix = self.matrix + np.outer(x, x) / (self.step * rho**2)
        residual = reward - x @ self.theta
        moved = self.theta + np.linalg.solve(self.matrix, np.clip(residual, -mark, mark) * x / rho**2)
        self.theta = nearest_in_ball(self.matrix, moved, self.bound)
        self.projections += np.linalg.norm(moved) > self.bound
        self.clips += abs(residual) > mark
        self.t += 1


class HeavyOFUL:
    """Adaptive Huber regression: the rows with their rho and marks; the loss is minimized by scipy when asked for."""

    def __init__(
        self, dim, reg, epsilon, *, nu, horizon=None, radius=None, clip=1.0, floor=0.0, bound=np.inf, row_bound=1.0,
        delta=None,
    ):  # fmt: skip
        self.matrix, self.reg, self.dim, self.epsilon, self.horizon = reg * np.eye(dim), reg, dim, epsilon, horizon
        self.row_bound, self.delta = row_bound, delta
        self.nu, self.radius, self.clip, self.floor, self.bound = nu, radius, clip, floor, bound
        self.rows, self.values, self.marks = np.zeros((0, dim)), np.zeros(0), np.zeros(0)

    def learn(self, x, reward):
        t, one = len(self.values) + 1, 1 + self.epsilon
        s = Scales(t, self.dim, self.reg, self.epsilon, self.horizon, 1.0, self.row_bound, self.delta)
        width = width_in(self.matrix, x)
        tau = self.clip * s.tau * s.growth
        if self.radius is None:
            c0 = 1 / np.sqrt(23 * s.log)
            c1 = np.log(3 * s.horizon) ** ((1 - self.epsilon) / one) / (48 * s.log ** (2 / one))
            narrow = np.sqrt(self.row_bound * self.bound * width) / (2 * c1 * s.kappa) ** 0.25
            rho, unit = max(self.nu, s.sigma_min, width / c0, narrow), 1.0
        else:
            rho, unit = max(1.0, np.sqrt(2 * self.radius / tau) * width), self.nu
        w = width / rho
        self.matrix = self.matrix + np.outer(x, x) / rho**2
        self.rows = np.vstack([self.rows, x / rho])
        self.values = np.append(self.values, reward / rho)
        self.marks = np.append(self.marks, max(tau / w, self.floor) * np.sqrt(1 + w**2) * unit)

    def loss(self, theta):
        z = np.abs(self.values - self.rows @ theta)
        huber = np.where(z <= self.marks, z**2 / 2, self.marks * z - self.marks**2 / 2)
        return self.reg / 2 * theta @ theta + huber.sum()

    def slope(self, theta):
        return self.reg * theta - np.clip(self.values - self.rows @ theta, -self.marks, self.marks) @ self.rows

    def minimizer(self):
        from scipy.optimize import minimize

        ball = {"type": "ineq", "fun": lambda v: self.bound**2 - v @ v, "jac": lambda v: -2 * v}
        start, options = np.zeros(self.dim), {"ftol": 1e-14, "maxiter": 1000}
        constraints = [ball] if np.isfinite(self.bound) else []
        return minimize(self.loss, start, jac=self.slope, method="SLSQP", constraints=constraints, options=options).x


class NewtonStep:
    """One step of an estimator for generalized linear models with the identity link: CRTM and CRMM are made of it."""

    def __init__(self, dim, reg, bound=np.inf):
        self.matrix, self.theta, self.bound = reg * np.eye(dim), np.zeros(dim), bound

    def step(self, x, target):
        self.matrix = self.matrix + np.outer(x, x) / 2
        moved = self.theta - np.linalg.solve(self.matrix, (x @ self.theta - target) * x)
        self.theta = nearest_in_ball(self.matrix, moved, self.bound)


class CRTM(NewtonStep):
    """Rewards above the threshold count as 0."""

    def __init__(self, dim, reg, epsilon, moment, horizon=None, bound=np.inf):
        super().__init__(dim, reg, bound)
        self.epsilon, self.moment, self.horizon, self.t, self.cut = epsilon, moment, horizon, 0, 0

    def learn(self, x, reward):
        self.t += 1
        T = self.t if self.horizon is None else self.horizon
        p, one = (1 - self.epsilon) / (2 * (1 + self.epsilon)), 1 + self.epsilon
        kept = width_in(self.matrix, x) * abs(reward) <= (self.moment / np.log(4 * T * 8 * T)) ** (1 / one) * T**p
        self.cut += not kept
        self.step(x, reward if kept else 0.0)


class CRMM(NewtonStep):
    """One step an epoch, with the median of its rewards."""

    def __init__(self, dim, reg, repeats, bound=np.inf):
        super().__init__(dim, reg, bound)
        self.repeats, self.rewards = repeats, []

    def learn(self, x, reward):
        self.rewards.append(reward)
        if len(self.rewards) == self.repeats:
            self.step(x, np.median(self.rewards))
            self.rewards = []


class MENU:
    """r ridge estimates side by side; the one of least median distance to the others."""

    def __init__(self, dim, reg, repeats):
        self.matrix, self.theta, self.moments = reg * np.eye(dim), np.zeros(dim), np.zeros((repeats, dim))
        self.rewards = []

    def learn(self, x, reward):
        self.rewards.append(reward)
        if len(self.rewards) == len(self.moments):
            self.matrix = self.matrix + np.outer(x, x)
            self.moments += np.outer(self.rewards, x)
            found = np.linalg.solve(self.matrix, self.moments.T).T
            spread = []
            for k, a in enumerate(found):
                others = [norm_in(self.matrix, a - b) for b in np.delete(found, k, axis=0)]
                spread.append(np.median(others) if others else 0.0)
            self.found, self.spread = found, np.array(spread)
            self.theta, self.rewards = found[np.argmin(spread)], []


class TOFU:
    """Ridge regression on rewards truncated coordinate by coordinate, after whitening by the symmetric root."""

    def __init__(self, dim, reg, epsilon, moment, horizon=None, delta=None):
        self.delta = delta
        self.matrix, self.theta, self.rows, self.rewards = reg * np.eye(dim), np.zeros(dim), np.zeros((0, dim)), []
        self.epsilon, self.moment, self.horizon, self.cut = epsilon, moment, horizon, 0

    def learn(self, x, reward):
        self.matrix, self.rows = self.matrix + np.outer(x, x), np.vstack([self.rows, x])
        self.rewards.append(reward)
        t, dim = self.rows.shape
        T = t if self.horizon is None else self.horizon
        p, one = (1 - self.epsilon) / (2 * (1 + self.epsilon)), 1 + self.epsilon
        delta = 1 / (8 * T) if self.delta is None else self.delta
        threshold = (self.moment / np.log(2 * dim * T / delta)) ** (1 / one) * t**p
        values, vectors = np.linalg.eigh(self.matrix)
        root = vectors / np.sqrt(values) @ vectors.T
        parts = root @ self.rows.T * np.array(self.rewards)
        self.cut = int((np.abs(parts) > threshold).sum())
        self.theta = root @ np.where(np.abs(parts) <= threshold, parts, 0.0).sum(axis=1)
