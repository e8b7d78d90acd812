"""Identification of a linear system under heavy-tailed noise: the error of [A B] over time.

The system has three states, two inputs and spectral radius 0.9, and inputs are standard normal. All estimators learn
the same trajectory. Wang et al. name the use in section 5.2, and report no experiment.
"""

from collections.abc import Mapping

import numpy as np

from onepass.dynamics import SystemIdentification
from onepass.lab.bandits.noise import Noise
from onepass.lab.dynamics.control import INPUTS, NOISE, STATES, SYSTEM, draw_system
from onepass.lab.dynamics.figures import make_figure
from onepass.lab.dynamics.study import DynamicsStudy
from onepass.lab.policy import Policy
from onepass.lab.seeds import stream


def identification(*, estimator: str) -> SystemIdentification:
    return SystemIdentification(STATES, INPUTS, estimator=estimator)


class IdentificationRun:
    """Run of an estimator on the trajectory of a random linear system with random inputs.

    `policy` makes the estimator, and `noise` is the distribution of the noise that is added to every next state.
    """

    def __init__(self, policy: Policy, noise: Noise, seed: int) -> None:
        self.a, self.b = draw_system(stream(seed, SYSTEM))
        self.noise, self.rng = noise, stream(seed, NOISE)
        self.system, self.x = policy.build(), np.zeros(STATES)

    def advance(self, rounds: int) -> Mapping[str, float]:
        states, inputs = np.empty((rounds + 1, STATES)), self.rng.standard_normal((rounds, INPUTS))
        states[0] = self.x
        for t, w in enumerate(self.noise.draw(self.rng, (rounds, STATES))):
            states[t + 1] = self.a @ states[t] + self.b @ inputs[t] + w
        self.system.learn(states[:-1], inputs, states[1:])
        self.x = states[-1]
        found = np.hstack(self.system.matrices())
        return {"error": float(np.linalg.norm(found - np.hstack([self.a, self.b])))}


SUITE = DynamicsStudy(
    "identification",
    "identification of a linear system: error of [A B] under Student t and Gaussian noise",
    IdentificationRun,
    tuple(Policy(name, identification, {"estimator": name}) for name in ("huber", "ridge", "adaptive-huber")),
    rounds=2_000,
    seeds=20,
    figure=make_figure("identification", "error", "error of [A B]", "step", ".4f"),
)
