"""What the runner knows: policies by name, and an experiment through the narrow protocol `Study`.

An experiment is data: a problem, the policies that face it, how many rounds and seeds, and which figure tells it. Its
kinds: `bandits.Experiment` (contexts; cumulative regret), `kernels.KernelStudy` (fixed arms of kernel bandits),
`learners.LearnerStudy` (mistakes on a stream of examples), `recommender.RecommenderStudy` (interactions of users and
items), `matrices.MatrixStudy` and `tisvd.DecompositionStudy` (errors of sketched matrices) and
`starvation.StarvationStudy` (posteriors far from all evaluations).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any, Protocol

import onepass
from onepass.experiment.errors import ExperimentError


@dataclass(frozen=True)
class Policy:
    """A recipe of `onepass` (or a design, in a matrix study) with its parameters, under the name that tables show.

    group: what several labels have in common, say one recipe at several sizes; the label unless told otherwise.
    tuned: False for a policy whose parameters are the point of it (defaults, a paper's constants): tuning skips it.
    """

    label: str
    recipe: str | Callable[..., Any]
    params: Mapping[str, Any] = field(default_factory=dict)
    group: str = ""
    tuned: bool = True

    @property
    def name(self) -> str:
        return self.recipe if isinstance(self.recipe, str) else self.recipe.__name__

    def build(self, **where: Any) -> Any:
        """The bandit or design itself; `where` is what the problem decides: dim, or arms and kernel; bandits: seed."""
        return self.make(**where, **self.params)

    @property
    def make(self) -> Callable[..., Any]:
        return getattr(onepass, self.recipe) if isinstance(self.recipe, str) else self.recipe

    def accepts(self, name: str) -> bool:
        """Whether the recipe has a parameter of that name."""
        return name in signature(self.make).parameters

    def but(self, **params: Any) -> "Policy":
        """The same policy with some parameters changed."""
        return replace(self, params={**self.params, **params}, group=self.group or self.label)

    @property
    def kind(self) -> tuple[Any, ...]:
        """What decides which code is compiled: the recipe and every parameter that is not a number."""
        options = ((name, value) for name, value in self.params.items() if isinstance(value, bool | str))
        return (self.recipe, *sorted(options))

    def columns(self) -> dict[str, Any]:
        """What identifies the policy in a row of results."""
        return {
            "policy": self.label,
            "group": self.group or self.label,
            "recipe": self.name,
            "params": dict(self.params),
        }


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

    figure: which table and picture `report` makes; grid: the parameters that `tune` searches, and their values.
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
    def figure(self) -> str: ...
    @property
    def grid(self) -> Mapping[str, Sequence[float]]: ...

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
