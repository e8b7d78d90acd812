"""How much may be left to gain: the best that any settings may be, less the least that the best trial is worth.

    beta_t^2 = 2 log(N pi^2 t^2 / (6 delta)):    |f(x) - mean_t(x)| <= beta_t sigma_t(x) for all N points and all t

with probability 1 - delta where f is a draw of the kernel's Gaussian process and noise is normal: given what was told,
f(x) is normal with that mean and deviation, P(|z| > beta) <= exp(-beta^2 / 2), and 6 / (pi t)^2 sums to 1 (Srinivas et
al. 2010, lemma 5.1, for finitely many points).
"""

import numpy as np
from scipy.stats import qmc

from onepass.kernel.gp_ucb import GPUCB
from onepass.tuning.proposing import Allowed, Candidates
from onepass.tuning.space import LISTED, Space
from onepass.tuning.surrogate import moments

NET = 2_048  # points of a net over what cannot be listed, a power of 2


def net(space: Space, allowed: Allowed | None, tried: np.ndarray, seed: int) -> np.ndarray:
    """Rows of all settings, or of a net and of what was tried (n, coordinates)."""
    if space.count <= LISTED:
        every = [one for one in space.all() if allowed is None or allowed(one)]
        found = space.rows(np.array([space.shares(one) for one in every]).reshape(len(every), len(space.names)))
    else:
        rng = np.random.default_rng([seed, 2])
        drawn = qmc.Sobol(len(space.names), seed=rng).random(NET)
        found = space.rows(Candidates(space, allowed, rng).keep(drawn))
    return np.concatenate([found, tried])


def gain(bandit: GPUCB, points: np.ndarray, best: np.ndarray, told: int, delta: float) -> tuple[float, float]:
    """The least that `best` (1, coordinates) is worth, and the most that any of points (n, coordinates) is."""
    chances = len(points) * (np.pi * told) ** 2 / 6.0
    beta = float(np.sqrt(2.0 * np.log(chances / delta)))
    means, deviations = moments(bandit, points)
    (mean,), (deviation,) = moments(bandit, best)
    return float(mean - beta * deviation), float((means + beta * deviations).max())
