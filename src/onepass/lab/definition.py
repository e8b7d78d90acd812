"""What the runner knows of an experiment: the narrow protocol `Study`, and what its kinds share.

An experiment is data: a problem, the policies that face it, how many rounds and seeds, and which figure tells it. Its
kinds, a folder each, bring their own tables and pictures: `Experiment` (contexts; cumulative regret), `KernelStudy`
(fixed arms of kernel bandits), `LearnerStudy` (mistakes on a stream of examples), `RecommenderStudy` (interactions of
users and items), `MatrixStudy` and `DecompositionStudy` (errors of sketched matrices) and `StarvationStudy` (posteriors
far from all evaluations).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from onepass.lab.errors import ExperimentError
from onepass.lab.figure import Figure
from onepass.lab.policy import Policy

CHECKPOINTS = 40  # of a run: enough for a smooth curve


class Trial(Protocol):
    """One seed of an experiment, all policies side by side; after any step `rows` and `curves` tell what was found."""

    def step(self, start: int, rounds: int) -> None:
        """Advance every policy by the rounds start .. start + rounds - 1."""
        ...

    def rows(self) -> list[dict[str, Any]]:
        """One row per policy that has played."""
        ...

    def curves(self) -> list[dict[str, Any]]:
        """One row per policy and step."""
        ...


class Study(Protocol):
    """An experiment of any kind: `trial(policies, seed)` puts all policies side by side before one seed of the problem.

    figure: the table and the picture of its results; grid: the parameters that `tune` searches, and their values;
    timed: seconds are what it is about, so that its seeds run one after the other unless told otherwise.
    To play its seeds on machines of Ray it must be one that `cloudpickle` takes.
    """

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def policies(self) -> tuple[Policy, ...]: ...
    @property
    def rounds(self) -> int: ...
    @property
    def seeds(self) -> int: ...
    @property
    def figure(self) -> Figure: ...
    @property
    def grid(self) -> Mapping[str, Sequence[float]]: ...
    @property
    def timed(self) -> bool: ...

    def trial(self, policies: Sequence[Policy], seed: int) -> Trial: ...

    def warm_up(self, policy: Policy) -> None:
        """Let a throw-away copy of the policy work a little, so that no time measured later contains compilation."""
        ...

    def step_size(self, rounds: int) -> int:
        """Rounds to a step of a run of `rounds`."""
        ...


def final_rows(
    policies: Sequence[Policy],
    seed: int,
    points: Sequence[Sequence[Mapping[str, Any]]],
    own: Callable[[Sequence[Mapping[str, Any]]], Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """One row per policy that has played: where it stands at its last point, and `own(points)`.

    A problem that knows no regret or reward has None there; memory, at its highest, only where the points tell it.
    """
    return [
        {
            **policy.columns(),
            "seed": seed,
            "rounds": passed[-1]["round"],
            "cumulative_regret": passed[-1].get("cumulative_regret"),
            "cumulative_reward": passed[-1].get("cumulative_reward"),
            "microseconds_per_round": 1e6 * passed[-1]["seconds"] / passed[-1]["round"],
            **(
                {"memory_bytes": max(point["memory_bytes"] for point in passed)} if "memory_bytes" in passed[-1] else {}
            ),
            **own(passed),
        }
        for policy, passed in zip(policies, points)
        if passed
    ]


def curve_rows(
    policies: Sequence[Policy], seed: int, points: Sequence[Sequence[Mapping[str, Any]]]
) -> list[dict[str, Any]]:
    """One row per policy and step, from the points that every policy has passed."""
    return [{**policy.columns(), "seed": seed, **point} for policy, own in zip(policies, points) for point in own]


def select(experiment: Study, names: Sequence[str] | None) -> tuple[Policy, ...]:
    """The policies whose label or group is in `names`, in the experiment's order; all of them for None."""
    if names is None:
        return experiment.policies
    known = {policy.label for policy in experiment.policies} | {policy.group for policy in experiment.policies} - {""}
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        offered = ", ".join(dict.fromkeys(policy.group or policy.label for policy in experiment.policies))
        said = f"no policy '{unknown[0]}'" if unknown else "no policy was named"
        raise ExperimentError(f"{said} in {experiment.name}: choose among {offered}")
    return tuple(policy for policy in experiment.policies if policy.label in names or policy.group in names)
