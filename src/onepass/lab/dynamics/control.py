"""Adaptive control of a linear system, whose cost is compared with that of the regulator that knows A and B.

Both regulators meet the same noise. The system has three states, two inputs and spectral radius 0.9; Q and R are the
identity. No paper reports this experiment, but Wang et al. name the use in section 5.2.
"""

from collections.abc import Mapping

import numpy as np

from onepass.dynamics import AdaptiveLQR, SystemIdentification
from onepass.dynamics.riccati import solve_regulator
from onepass.lab.bandits.noise import Noise
from onepass.lab.dynamics.figures import make_figure
from onepass.lab.dynamics.study import DynamicsStudy
from onepass.lab.policy import Policy
from onepass.lab.seeds import stream

STATES, INPUTS, RADIUS = 3, 2, 0.9
SYSTEM, NOISE = 0, 1  # parts of a seed


def regulator(*, estimator: str, optimism: float, seed: int) -> AdaptiveLQR:
    return AdaptiveLQR(SystemIdentification(STATES, INPUTS, estimator=estimator), optimism=optimism, seed=seed)


def draw_system(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw a random linear system: a matrix A (3, 3) with spectral radius 0.9, and a matrix B (3, 2)."""
    a = rng.standard_normal((STATES, STATES))
    return a * RADIUS / np.abs(np.linalg.eigvals(a)).max(), rng.standard_normal((STATES, INPUTS))


class ControlRun:
    """Simulation of a learning regulator beside the optimal one, in two copies of a linear system with equal noise.

    `policy` makes the regulator, `noise` is the distribution of the noise, and `seed` the seed of system and noise.
    """

    def __init__(self, policy: Policy, noise: Noise, seed: int) -> None:
        self.a, self.b = draw_system(stream(seed, SYSTEM))
        best = solve_regulator(self.a, self.b, np.eye(STATES), np.eye(INPUTS))
        if best is None:
            raise ValueError("the system cannot be made stable")
        self.best, self.noise, self.rng = best.gain, noise, stream(seed, NOISE)
        self.regulator = policy.build(seed=seed)
        self.x, self.best_x = np.zeros(STATES), np.zeros(STATES)
        self.cost, self.best_cost = 0.0, 0.0

    def advance(self, rounds: int) -> Mapping[str, float]:
        for w in self.noise.draw(self.rng, (rounds, STATES)):
            x, u = self.x, self.regulator.act(self.x)
            self.cost += float(x @ x + u @ u)
            self.x = self.a @ x + self.b @ u + w
            self.regulator.learn(x, u, self.x)
            best_u = self.best @ self.best_x
            self.best_cost += float(self.best_x @ self.best_x + best_u @ best_u)
            self.best_x = self.a @ self.best_x + self.b @ best_u + w
        excess = self.cost / self.best_cost - 1.0 if self.best_cost > 0.0 else 0.0
        return {"cost": self.cost, "excess_cost": 100.0 * excess}


SUITE = DynamicsStudy(
    "lqr",
    "adaptive linear-quadratic control, A and B unknown: excess cost under Student t and Gaussian noise",
    ControlRun,
    tuple(
        Policy(f"{name}, {estimator}", regulator, {"estimator": estimator, "optimism": optimism}, group=estimator)
        for estimator in ("huber", "ridge")
        for name, optimism in (("certainty equivalence", 0.0), ("optimism", 0.3))
    ),
    rounds=5_000,
    seeds=20,
    figure=make_figure("lqr", "excess_cost", "excess cost, %", "step", ".2f"),
    grid={"optimism": (0.1, 0.3, 1.0)},
)
