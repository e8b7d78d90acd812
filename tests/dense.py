"""The naive dense truth: obvious, slow, independent of the package."""

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
    """Blocks of FrequentDirections by the rules of P0 algorithm 1 as corrected in ALGORITHMS section 2."""

    def __init__(self, dim, size, error):
        self.dim, self.size, self.error = dim, size, error
        self.frozen, self.exact = [], np.zeros((0, dim))
        self.block, self.mass, self.count = FrequentDirections(dim, size), 0.0, 0

    def append(self, row):
        light = self.mass + row @ row < self.error * self.size
        low = self.count + 1 >= self.block.size and rank(np.vstack([self.block.rows, row])) <= self.block.size - 1
        if not self.finished() and not light and not low:
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
