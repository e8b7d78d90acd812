"""Linear bandits whose arms are all points of a sphere, on exact and sketched matrices.

Wen, Yin et al., observations 1 and 2.

On a sphere every bandit of low regret must explore all directions: the least eigenvalue of X^T X grows as T^q, with q
up to 1/2 (Banerjee et al. 2023). So the spectral error of a fixed sketch of l < d rows,

    Delta_T = sum of all but the l - 1 largest eigenvalues of X^T X >= (d - l) sigma_d^2,

exceeds T^(1/3), and the proved regret of the sketched bandit is linear. Measured are q, Delta_T, and the regret itself.

A bandit plays the optimistic point, the direction of the longest parameter in its confidence ellipsoid:

    x = theta / ||theta||,   theta = argmax ||theta|| over ||theta - theta_hat||_A <= beta
"""

from collections.abc import Mapping, Sequence

import numpy as np

from onepass.lab.bandits.environments import normalize_rows
from onepass.lab.bandits.noise import Noise
from onepass.lab.dynamics.figures import make_figure
from onepass.lab.dynamics.study import GAUSSIAN, DynamicsStudy
from onepass.lab.figure import Figure, Line, Row
from onepass.lab.policy import Policy
from onepass.lab.seeds import stream
from onepass.lab.tables import group_rows, mean_cell, policy_label, size_columns

DIM, REG = 20, 1.0
STEPS = 60  # halvings of an interval


def optimistic_point(center: np.ndarray, values: np.ndarray, vectors: np.ndarray, beta: float) -> np.ndarray:
    """Return the unit vector (d,) in the direction of the longest theta of a confidence ellipsoid.

    The ellipsoid has all theta with (theta - center)^T A (theta - center) <= beta^2. `values` (d,) are the eigenvalues
    of A in increasing order, and `vectors` (d, d) the eigenvectors as columns. With eigenvalues a_i and center
    coordinates c_i, theta_i = c_i m a_i / (m a_i - 1), where bisection finds the m > 1 / a_1 for which theta lies on
    the boundary. If there is none, the rest of the length goes into the first direction.
    """
    c, least = vectors.T @ center, values[0]
    high = (1.0 + np.sqrt(values.sum()) * np.abs(c).max() / beta) * 2.0 / least
    low = 1.0 / least
    for _ in range(STEPS):
        m = 0.5 * (low + high)
        reached = (values * (c / np.maximum(m * values - 1.0, 1e-100)) ** 2).sum()
        low, high = (m, high) if reached > beta**2 else (low, m)
    step = c / np.maximum(high * values - 1.0, 1e-100)
    missing = max(beta**2 - float((values * step**2).sum()), 0.0)
    step[0] += np.copysign(np.sqrt(missing / least), c[0])
    theta = vectors @ (c + step)
    return theta / np.linalg.norm(theta)


class SphereRun:
    """Simulation of an optimistic bandit whose arms are all points of the unit sphere.

    The reward of x is x^T theta + noise, with a parameter theta of length 1. The bandit uses ridge regression on an
    exact or sketched matrix, which `policy` makes; its parameter `exploration` is the radius of the confidence
    ellipsoid.
    """

    def __init__(self, policy: Policy, noise: Noise, seed: int, dim: int = DIM) -> None:
        params = dict(policy.params)
        self.beta = params.pop("exploration")
        self.design = Policy(policy.label, policy.recipe, params).build(dim=dim, reg=REG)
        self.size = dim if "error" in params else params.get("size", dim)  # l of a fixed sketch
        self.noise, self.rng = noise, stream(seed, 1)
        self.theta = normalize_rows(stream(seed, 0).standard_normal((1, dim)))[0]
        self.moment, self.gram, self.regret = np.zeros(dim), np.zeros((dim, dim)), 0.0

    def advance(self, rounds: int) -> Mapping[str, float]:
        for eta in self.noise.draw(self.rng, (rounds,)):
            values, vectors = np.linalg.eigh(self.design.matrix())
            x = optimistic_point(self.design.solve(self.moment), values, vectors, self.beta)
            mean = float(x @ self.theta)
            self.regret += 1.0 - mean
            self.design.append(x)
            self.moment += (mean + eta) * x
            self.gram += np.outer(x, x)
        spectrum = np.maximum(np.linalg.eigvalsh(self.gram), 0.0)
        return {
            "cumulative_regret": self.regret,
            "least": float(spectrum[0]),
            "delta": float(spectrum[: len(spectrum) - self.size + 1].sum()),
            "error_bound": self.design.error_bound(),
        }


def _growth(rows: Sequence[Row], column: str) -> str:
    """Return the mean over `rows` of log(value of the column) / log(rounds) as text, over values above 0.

    The text is empty if there is no such value.
    """
    known = [np.log(row[column]) / np.log(row["round"]) for row in rows if row[column] > 0.0]
    return f"{np.mean(known):.2f}" if known else ""


def _sphere_lines(rows: Sequence[Row]) -> list[Line]:
    """Return one line per policy: regret, and the exponents of the least eigenvalue and of Delta_T.

    Eigenvalues are those of the Gram matrix of the T plays. Delta_T is the sum of all but the l - 1 largest ones, for a
    sketch of l rows. An exponent is a logarithm divided by log T. `rows` are the results of a run, as dictionaries.
    """
    return [
        {
            "policy": label,
            "regret": mean_cell(own, "cumulative_regret", ",.0f"),
            "log least eigenvalue / log T": _growth(own, "least"),
            "log Delta / log T": _growth(own, "delta"),
            "error bound": mean_cell(own, "error_bound", ",.1f"),
            "µs a round": mean_cell(own, "microseconds_per_round", ",.0f"),
            **size_columns(own),
        }
        for label, own in group_rows(rows, policy_label).items()
    ]


POLICIES = (
    Policy("OFUL", "Exact", {"exploration": 2.0}),
    Policy("SOFUL size=9", "FrequentDirections", {"exploration": 2.0, "size": 9}),
    Policy("SOFUL size=4", "FrequentDirections", {"exploration": 2.0, "size": 4}),
    Policy("CBSCFD size=9", "RobustFrequentDirections", {"exploration": 2.0, "size": 9}),
    Policy("CBSCFD size=4", "RobustFrequentDirections", {"exploration": 2.0, "size": 4}),
    Policy("DBSLinUCB size=2 error=8", "Dyadic", {"exploration": 2.0, "size": 2, "error": 8.0}),
    Policy("DBSLinUCB-RFD size=2 error=8", "Dyadic", {"exploration": 2.0, "size": 2, "error": 8.0, "base": "rfd"}),
)
_REGRET = make_figure("sphere", "cumulative_regret", "regret", "round", ",.0f")

SUITE = DynamicsStudy(
    "sphere",
    "arms on a sphere: least eigenvalue, spectral error and regret of fixed and dyadic sketches (observations 1, 2)",
    SphereRun,
    POLICIES,
    rounds=4_000,
    seeds=3,
    figure=Figure("sphere", _sphere_lines, _REGRET.draw),
    grid={"exploration": (0.5, 1.0, 2.0, 4.0)},
    noise=GAUSSIAN,
)
