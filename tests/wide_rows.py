"""Wide binary rows with a linear truth, pairwise terms and noise."""

import numpy as np


def wide(count=12_000, dim=300, seed=0):
    """Return binary rows (4 % ones) and labels (3 % positive): a linear truth with pairwise terms and noise."""
    rng = np.random.default_rng(seed)
    often = np.arange(1.0, dim + 1.0) ** -0.7
    often = np.minimum(12.0 * often / often.sum(), 0.5)
    rows = (rng.random((count, dim)) < often).astype(np.float64)
    f = rows @ rng.standard_t(3, dim)
    f = (f - f.mean()) / f.std()
    pairs = rng.choice(dim, size=(100, 2), p=often / often.sum())
    g = (rows[:, pairs[:, 0]] * rows[:, pairs[:, 1]]) @ rng.standard_normal(100)
    f += 0.3 * (g - g.mean()) / g.std() + 0.3 * rng.standard_normal(count)
    return rows, np.where(f > np.quantile(f, 0.97), 1.0, -1.0)
