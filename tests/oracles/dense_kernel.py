"""The naive dense truth of kernel bandits: obvious, slow, independent of the package. Variances are divided by reg."""

import numpy as np

# ---- kernels, one pair at a time ----


def rbf(x, y, length_scale=1.0):
    """exp(-r^2 / 2), r = ||(x - y) / l||."""
    return np.exp(-np.sum(((x - y) / length_scale) ** 2) / 2)


def matern(x, y, nu, length_scale=1.0):
    """exp(-s) times 1, 1 + s or 1 + s + s^2 / 3 for nu = 1/2, 3/2, 5/2; s = sqrt(2 nu) ||(x - y) / l||."""
    s = np.sqrt(2 * nu) * np.sqrt(np.sum(((x - y) / length_scale) ** 2))
    return np.exp(-s) * {0.5: 1.0, 1.5: 1 + s, 2.5: 1 + s + s**2 / 3}[nu]


def linear(x, y, bias=0.0):
    """x.y + bias."""
    return np.sum(x * y) + bias


def polynomial(x, y, degree=3, bias=1.0):
    """(x.y + bias)^degree."""
    return (np.sum(x * y) + bias) ** degree


def matrix(pair, X, Y):
    """K with K[i, j] = pair(X[i], Y[j])."""
    return np.array([[pair(x, y) for y in Y] for x in X])


# ---- posteriors ----


class GP:
    """Row a play: mean = k^T (K + reg I)^-1 y, variance = (k(x, x) - k^T (K + reg I)^-1 k) / reg (Calandriello et al.
    eq. 1 and 2).
    """

    def __init__(self, kernel, reg):
        self.kernel, self.reg, self.rows, self.rewards = kernel, reg, [], []

    def learn(self, row, reward):
        self.rows.append(row)
        self.rewards.append(reward)

    def posterior(self, rows):
        """means, variances."""
        prior = np.diag(self.kernel(rows, rows))
        if not self.rows:
            return np.zeros(len(rows)), prior / self.reg
        played = np.array(self.rows)
        inverse = np.linalg.inv(self.kernel(played, played) + self.reg * np.eye(len(played)))
        k = self.kernel(played, rows)
        return k.T @ inverse @ np.array(self.rewards), (prior - np.sum(k * (inverse @ k), axis=0)) / self.reg

    def covariance(self, rows):
        """(K(rows, rows) - k^T (K + reg I)^-1 k) / reg."""
        played = np.array(self.rows)
        k = self.kernel(played, rows)
        inverse = np.linalg.inv(self.kernel(played, played) + self.reg * np.eye(len(played)))
        return (self.kernel(rows, rows) - k.T @ inverse @ k) / self.reg


class RowAPlay:
    """Exact GP-UCB on fixed arms: K + reg I = L L^T; V = L^-1 K(plays, arms) and w = L^-1 y get one row a play.

    mean = V^T w, variance = (k(x, x) - sum_i V_ix^2) / reg; the next row of L is V[:, a] and its pivot.
    """

    def __init__(self, gram, reg):
        self.gram, self.reg, self.V, self.w = gram, reg, np.zeros((0, len(gram))), np.zeros(0)

    def learn(self, arm, reward):
        ahead = self.V[:, arm]
        pivot = np.sqrt(self.gram[arm, arm] + self.reg - ahead @ ahead)
        self.V = np.vstack([self.V, (self.gram[arm] - ahead @ self.V) / pivot])
        self.w = np.append(self.w, (reward - ahead @ self.w) / pivot)

    def posterior(self):
        """means, variances of all arms."""
        return self.V.T @ self.w, (np.diag(self.gram) - np.sum(self.V**2, axis=0)) / self.reg


def embedding(kernel, dictionary, rows):
    """z(x) = K_S^{+1/2} k_S(x), one row a point (Calandriello et al. section 3.1)."""
    values, vectors = np.linalg.eigh(kernel(dictionary, dictionary))
    kept = values > 1e-12 * values.max()
    return kernel(rows, dictionary) @ (vectors[:, kept] / np.sqrt(values[kept])) @ vectors[:, kept].T


def dtc(kernel, dictionary, played, rewards, rows, reg):
    """mean = z^T V^-1 Z^T y, variance = (k(x, x) - z^T Z^T Z V^-1 z) / reg, V = Z^T Z + reg I (Calandriello et al. eq.
    3 and 4).
    """
    Z, z = embedding(kernel, dictionary, played), embedding(kernel, dictionary, rows)
    inverse = np.linalg.inv(Z.T @ Z + reg * np.eye(Z.shape[1]))
    means = z @ inverse @ Z.T @ rewards
    return means, (np.diag(kernel(rows, rows)) - np.sum(z @ Z.T @ Z * (z @ inverse), axis=1)) / reg


def subset_of_regressors(kernel, dictionary, played, rows, reg):
    """variance = z^T V^-1 z: without k(x, x) - z^T z, so it starves far from the dictionary (Calandriello et al. figure
    2).
    """
    Z, z = embedding(kernel, dictionary, played), embedding(kernel, dictionary, rows)
    return np.sum(z * (z @ np.linalg.inv(Z.T @ Z + reg * np.eye(Z.shape[1]))), axis=1)


def inclusion(oversampling, variances, plays):
    """1 - (1 - p)^n, p = min(1, qbar variance): each of the n plays of an arm may bring it into the dictionary."""
    return 1 - (1 - np.minimum(1.0, oversampling * variances)) ** plays
