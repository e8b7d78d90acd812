"""Problems with a fixed set of arms (A, d) whose mean reward is a nonlinear function of them.

A round's reward is drawn from the round's own stream of the seed, so policies meet equal noise whatever they play.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
import scipy.linalg

from onepass import Matern
from onepass.features.kernels import Kernel
from onepass.lab.datasets import Examples, load
from onepass.lab.progress import Meter
from onepass.lab.seeds import stream

ARMS, FUNCTION, NOISE = 0, 1, 2  # numbers of the random streams of a seed
JITTER = 1e-8


class Problem(Protocol):
    """Kernel-bandit problem with A arms.

    `arms` (A, d) are the features of the arms, `expected` (A,) their expected rewards, and `kernel` is the kernel that
    policies are given.
    """

    @property
    def arms(self) -> np.ndarray: ...
    @property
    def expected(self) -> np.ndarray: ...
    @property
    def kernel(self) -> Kernel: ...

    def reward(self, round: int, arm: int) -> float:
        """Return the reward of an arm in this round; it does not depend on the policy that plays."""
        ...


@dataclass(frozen=True)
class NoisyFunction:
    """Problem in which the reward is the arm's expected reward plus normal noise.

    `arms` (A, d) are the features of the arms, `expected` (A,) the expected rewards, `noise` is the standard deviation
    of the noise, and `kernel` the kernel that policies are given. In a round, all arms have the same noise.
    """

    arms: np.ndarray
    expected: np.ndarray
    kernel: Kernel
    noise: float
    seed: int

    def reward(self, round: int, arm: int) -> float:
        return float(self.expected[arm] + self.noise * stream(self.seed, NOISE, round).standard_normal())


@dataclass(frozen=True)
class GaussianProcess:
    """Maker of problems with expected rewards drawn from a Gaussian process; a call maps a seed to a problem.

    - arms: function from a random generator to the features (A, d) of the arms.
    - kernel: covariance of the process, which policies are given.
    - noise: standard deviation of the noise in rewards.
    """

    arms: Callable[[np.random.Generator], np.ndarray]
    kernel: Kernel
    noise: float = 0.1

    def __call__(self, seed: int) -> Problem:
        rows = self.arms(stream(seed, ARMS))
        drawn = gp_draw(self.kernel, rows, stream(seed, FUNCTION))
        return NoisyFunction(rows, drawn, self.kernel, self.noise, seed)


def gp_draw(kernel: Kernel, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return random values (n,) at rows (n, d) of a Gaussian process with mean 0 and this kernel."""
    gram = kernel(rows, rows)
    gram.flat[:: len(rows) + 1] += JITTER
    return np.linalg.cholesky(gram) @ rng.standard_normal(len(rows))


def line(count: int) -> np.ndarray:
    """Return `count` equidistant points of [0, 1], of shape (count, 1)."""
    return np.linspace(0.0, 1.0, count)[:, None]


def mesh(*axes: np.ndarray) -> np.ndarray:
    """Return all combinations of the values of the given axes, as an array (combinations, number of axes).

    The last column varies fastest.
    """
    return np.stack([part.ravel() for part in np.meshgrid(*axes, indexing="ij")], axis=1)


def grid(rng: np.random.Generator, count: int) -> np.ndarray:
    """Return `count` equidistant points of [0, 1], of shape (count, 1). The generator `rng` is not used."""
    return line(count)


def square(rng: np.random.Generator, count: int) -> np.ndarray:
    """Return a regular grid of `count` x `count` points of [0, 1]^2, of shape (count^2, 2); `rng` is not used."""
    return mesh(line(count)[:, 0], line(count)[:, 0])


def uniform(rng: np.random.Generator, count: int, dim: int) -> np.ndarray:
    """Return `count` random points of [0, 1]^dim, of shape (count, dim)."""
    return rng.random((count, dim))


def sobol(rng: np.random.Generator, count: int, dim: int) -> np.ndarray:
    """Return the first `count` points of a scrambled Sobol sequence in [0, 1]^dim, of shape (count, dim)."""
    from scipy.stats import qmc

    return qmc.Sobol(dim, seed=rng).random_base2((count - 1).bit_length())[:count]


@dataclass(frozen=True)
class NegatedFunction:
    """Maker of problems in which the best arm is the minimum of a known function; a call maps a seed to a problem.

    - function: the function; expected rewards are its negated values at the arms, shifted and scaled to mean 0 and
      variance 1.
    - arms: function from a random generator to the features (A, d) of the arms.
    - kernel: kernel that policies are given.
    - noise: standard deviation of the noise in rewards (default 0.1).
    """

    function: Callable[[np.ndarray], np.ndarray]
    arms: Callable[[np.random.Generator], np.ndarray]
    kernel: Kernel
    noise: float = 0.1

    def __call__(self, seed: int) -> Problem:
        rows = self.arms(stream(seed, ARMS))
        values = -self.function(rows)
        return NoisyFunction(rows, (values - values.mean()) / values.std(), self.kernel, self.noise, seed)


def branin(x: np.ndarray) -> np.ndarray:
    """Return the values (n,) of Branin's function at rows (n, 2) in [0, 1]^2, which stand for [-5, 10] x [0, 15].

    The least value is 0.397887.
    """
    u, v = 15.0 * x[:, 0] - 5.0, 15.0 * x[:, 1]
    bowl = v - 5.1 / (4.0 * np.pi**2) * u**2 + 5.0 / np.pi * u - 6.0
    return bowl**2 + 10.0 * (1.0 - 1.0 / (8.0 * np.pi)) * np.cos(u) + 10.0


HARTMANN_SCALES = np.array(
    [
        [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
        [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
        [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
        [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
    ]
)
HARTMANN_CENTRES = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def hartmann6(x: np.ndarray) -> np.ndarray:
    """Return the values (n,) of Hartmann's function at rows (n, 6) in [0, 1]^6; the least value is -3.32237."""
    distances = (HARTMANN_SCALES * (x[:, None, :] - HARTMANN_CENTRES) ** 2).sum(axis=2)
    return -np.exp(-distances) @ np.array([1.0, 1.2, 3.0, 3.2])


ALPHAS, GAMMAS, POWERS = np.logspace(-6, 2, 25), np.logspace(-4, 2, 20), 8.0 ** np.linspace(-1.0, 1.0, 10)
FITTED, HELD, SPLITS = 300, 500, 10
TRUTH_SEED = 2**32  # larger than the seed of any experiment


class DigitsTuning:
    """Problem of tuning a classifier: scikit-learn's KernelRidge with an RBF kernel on the data set digits.

    The 5,000 arms are settings of `alpha`, `gamma` and a power of the pixels on a grid; features are logarithms scaled
    to [0, 1]. The reward is the accuracy on 500 examples after a fit on 300, with a new random split in every round.
    The expected reward is approximated by the mean over 10 other splits.
    """

    kernel: Kernel = Matern(2.5, (0.3, 0.3, 0.3))

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.arms = mesh(*(np.linspace(0.0, 1.0, axis.size) for axis in (ALPHAS, GAMMAS, POWERS)))
        self.settings = mesh(ALPHAS, GAMMAS, POWERS)

    @property
    def expected(self) -> np.ndarray:
        return _accuracies()

    def reward(self, round: int, arm: int) -> float:
        from sklearn.kernel_ridge import KernelRidge

        alpha, gamma, power = (float(value) for value in self.settings[arm])
        (rows, labels), (held, held_labels) = split(stream(self.seed, NOISE, round))
        model = KernelRidge(alpha=alpha, kernel="rbf", gamma=gamma).fit(rows**power, np.eye(10)[labels])
        return float((model.predict(held**power).argmax(axis=1) == held_labels).mean())


def split(rng: np.random.Generator) -> tuple[Examples, Examples]:
    """Return random images of scikit-learn's digits to fit a model to, and others to test it on.

    Pixels are scaled to [0, 1].
    """
    digits = load("digits")
    order = rng.permutation(len(digits.rows))
    fitted, held = order[:FITTED], order[FITTED : FITTED + HELD]
    return (digits.rows[fitted] / 16.0, digits.labels[fitted]), (digits.rows[held] / 16.0, digits.labels[held])


@cache
def _accuracies() -> np.ndarray:
    """Return the mean accuracy (5000,) of every setting over ten splits; it takes 20 seconds once per process."""
    total = np.zeros((ALPHAS.size, GAMMAS.size, POWERS.size))
    meter = Meter("digits-tuning: the accuracy of every setting", SPLITS * POWERS.size)
    meter.bar.disable = True  # lines, since the bar of a run may be up
    with meter:
        for i in range(SPLITS):
            (rows, labels), (held, held_labels) = split(stream(TRUTH_SEED, i))
            for k, power in enumerate(POWERS):
                total[:, :, k] += grid_accuracies((rows**power, labels), (held**power, held_labels), ALPHAS, GAMMAS)
                meter.advance()
    total /= SPLITS
    total.flags.writeable = False
    return total.ravel()


def grid_accuracies(fitted: Examples, held: Examples, alphas: np.ndarray, gammas: np.ndarray) -> np.ndarray:
    """Return the test accuracy of KernelRidge at every pair of `alphas` and `gammas`, of shape (alphas, gammas).

    Models are fitted to the examples `fitted` and tested on `held`. One eigendecomposition K = Q diag(w) Q^T of the
    kernel matrix is used for all alphas: predictions are k(held, fitted) Q diag(1 / (w + alpha)) Q^T Y, with one-hot
    classes Y.
    """
    (rows, labels), (others, truth) = fitted, held
    targets = np.eye(10)[labels]
    own, across = _squared_distances(rows, rows), _squared_distances(others, rows)
    found = np.empty((alphas.size, gammas.size))
    for j, gamma in enumerate(gammas):
        spectrum, axes = scipy.linalg.eigh(np.exp(-gamma * own), driver="evd", check_finite=False)
        weights = (axes.T @ targets)[:, None, :] / (spectrum[:, None, None] + alphas[:, None])
        values = (np.exp(-gamma * across) @ axes) @ weights.reshape(len(rows), -1)
        named = values.reshape(len(others), alphas.size, 10).argmax(axis=2)
        found[:, j] = (named == truth[:, None]).mean(axis=0)
    return found


def _squared_distances(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the squared distances (n, m) between rows x (n, d) and rows y (m, d)."""
    from sklearn.metrics.pairwise import euclidean_distances

    return euclidean_distances(x, y, squared=True)
