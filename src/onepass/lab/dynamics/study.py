"""Studies of worlds with a state: every policy acts in its own copy of the same world, with equal noise."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Protocol

from onepass.lab.bandits.noise import Gaussian, Noise, StudentT
from onepass.lab.definition import CHECKPOINTS, Trial
from onepass.lab.figure import Figure
from onepass.lab.policy import Policy

GAUSSIAN = "Gaussian"


def noises(scale: float) -> Mapping[str, Noise]:
    """Return the three kinds of noise by name.

    Parameters
    ----------
    scale : float
        Factor of the noise; the Gaussian's standard deviation.

    Returns
    -------
    dict of str -> Noise
        Student t noise of 2.1 and of 1.5 degrees of freedom, and Gaussian noise.
    """
    return {
        "Student t, 2.1 degrees of freedom": StudentT(2.1, scale),
        "Student t, 1.5 degrees of freedom": StudentT(1.5, scale),
        GAUSSIAN: Gaussian(scale),
    }


class Run(Protocol):
    """Interface of the simulation of one policy in a world whose state the policy changes."""

    def advance(self, rounds: int) -> Mapping[str, float]:
        """Let the policy act for `rounds` rounds, and return the values that are measured after them, by name."""
        ...


@dataclass(frozen=True)
class DynamicsStudy:
    """Study of policies in a world with a state.

    Parameters
    ----------
    name : str
        Name on the command line and in the rows.
    description : str
        One line for `onepass list`.
    start : callable
        `start(policy, noise, seed)` returns the `Run` of a policy.
    policies : tuple of Policy
        Policies that play unless others are given.
    rounds : int
        Number of steps or episodes unless another is given.
    seeds : int
        Number of seeds unless another is given.
    figure : Figure
        Table and picture of the results.
    scale : float, default 1.0
        Factor of the noise.
    grid : dict of str -> sequence of float
        Parameters that `tune` searches. The default is empty.
    timed : bool, default False
        True if seconds are the result.
    noise : str, default ""
        Name of the only kind of noise. An empty string means all kinds.
    """

    name: str
    description: str
    start: Callable[[Policy, Noise, int], Run]
    policies: tuple[Policy, ...]
    rounds: int
    seeds: int
    figure: Figure
    scale: float = 1.0
    grid: Mapping[str, Sequence[float]] = field(default_factory=dict)
    timed: bool = False
    noise: str = ""

    @property
    def noises(self) -> Mapping[str, Noise]:
        """Noise distributions of the study, by name."""
        return {name: noise for name, noise in noises(self.scale).items() if self.noise in ("", name)}

    def trial(self, policies: Sequence[Policy], seed: int) -> Trial:
        return DynamicsTrial(self, policies, seed)

    def warm_up(self, policy: Policy) -> None:
        self.start(policy, Gaussian(), 0).advance(2)

    def step_size(self, rounds: int) -> int:
        return -(-rounds // CHECKPOINTS)


class DynamicsTrial:
    """Trial of one seed: every policy acts in the same world, under every kind of noise."""

    def __init__(self, study: DynamicsStudy, policies: Sequence[Policy], seed: int) -> None:
        self.runs: list[tuple[dict[str, Any], Run]] = [
            ({**policy.columns(), "noise": name, "seed": seed}, study.start(policy, noise, seed))
            for name, noise in study.noises.items()
            for policy in policies
        ]
        self.points: list[list[dict[str, Any]]] = [[] for _ in self.runs]

    def step(self, start: int, rounds: int) -> None:
        for (_, run), points in zip(self.runs, self.points):
            began = perf_counter()
            found = run.advance(rounds)
            seconds = perf_counter() - began + (points[-1]["seconds"] if points else 0.0)
            points.append({"round": start + rounds, "seconds": seconds, **found})

    def rows(self) -> list[dict[str, Any]]:
        return [
            {
                **label,
                **points[-1],
                "rounds": points[-1]["round"],
                "microseconds_per_round": 1e6 * points[-1]["seconds"] / points[-1]["round"],
            }
            for (label, _), points in zip(self.runs, self.points)
            if points
        ]

    def curves(self) -> list[dict[str, Any]]:
        return [{**label, **point} for (label, _), points in zip(self.runs, self.points) for point in points]
