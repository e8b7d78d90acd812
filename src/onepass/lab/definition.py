"""The protocol `Study` that the runner needs, and helpers that all kinds of studies share.

An experiment is data: a problem, its policies, the numbers of rounds and seeds, and a figure. Every kind of study has
a folder with its own tables and pictures:

- `Experiment`: contextual bandits, measured by cumulative regret
- `KernelStudy`: kernel bandits with fixed arms
- `LearnerStudy`: mistakes on a stream of examples
- `RecommenderStudy`: interactions of users with items
- `MatrixStudy` and `DecompositionStudy`: errors of sketched matrices
- `StarvationStudy`: posteriors far from all evaluations
- `GameStudy`: games that every player plays to their end, such as prompts routed within a budget
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from onepass.lab.errors import ExperimentError
from onepass.lab.figure import Figure
from onepass.lab.policy import Policy

CHECKPOINTS = 40  # number of checkpoints of a run: enough for a smooth curve


class Trial(Protocol):
    """Interface of one seed of an experiment, which all policies play side by side.

    The methods `rows` and `curves` return results. They may be called after any step.
    """

    def step(self, start: int, rounds: int) -> None:
        """Let every policy play the rounds start .. start + rounds - 1."""
        ...

    def rows(self) -> list[dict[str, Any]]:
        """Return one dictionary of results per policy that has played."""
        ...

    def curves(self) -> list[dict[str, Any]]:
        """Return one dictionary of results per policy and step."""
        ...


class Study(Protocol):
    """Experiment of any kind.

    A study that is played on the machines of a Ray cluster must be picklable by `cloudpickle`.

    Attributes
    ----------
    alone : bool, optional
        True if every policy plays alone, so that an interrupted run continues policy by policy.
    """

    @property
    def name(self) -> str:
        """Name on the command line and in the rows."""
        ...

    @property
    def description(self) -> str:
        """One line for `onepass list`."""
        ...

    @property
    def policies(self) -> tuple[Policy, ...]:
        """Policies that play unless others are given."""
        ...

    @property
    def rounds(self) -> int:
        """Number of rounds unless another is given."""
        ...

    @property
    def seeds(self) -> int:
        """Number of seeds unless another is given."""
        ...

    @property
    def figure(self) -> Figure:
        """Table and picture of the results."""
        ...

    @property
    def grid(self) -> Mapping[str, Sequence[float]]:
        """Parameters that `tune` searches, with their values."""
        ...

    @property
    def timed(self) -> bool:
        """True if seconds are the result. The seeds then run one after the other by default."""
        ...

    def trial(self, policies: Sequence[Policy], seed: int) -> Trial:
        """Return the trial of one seed, in which all given policies play the same problem.

        Parameters
        ----------
        policies : sequence of Policy
            Policies that play.
        seed : int
            Seed of the problem and of the policies.

        Returns
        -------
        Trial
            Object with the methods `step(start, rounds)`, which advances every policy, `rows()` with one dictionary for
            every policy that has played, and `curves()` with one for every policy and step.
        """
        ...

    def warm_up(self, policy: Policy) -> None:
        """Let a throw-away copy of the policy work a little, so that later timings contain no compilation.

        Parameters
        ----------
        policy : Policy
            Policy whose compiled code is needed.
        """
        ...

    def step_size(self, rounds: int) -> int:
        """Return the number of rounds in a step of a run of `rounds`.

        Parameters
        ----------
        rounds : int
            Number of rounds of the run.

        Returns
        -------
        int
            Rounds in one step, at least 1.
        """
        ...


def final_rows(
    policies: Sequence[Policy],
    seed: int,
    points: Sequence[Sequence[Mapping[str, Any]]],
    extra_columns: Callable[[Sequence[Mapping[str, Any]]], Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Return one row of results for each policy that has played: its last measurements and further columns.

    `points` has the checkpoints of every policy, each a dictionary of what was measured so far. `extra_columns` is a
    function from the checkpoints of a policy to the further columns. A missing regret or reward becomes None. The
    column of memory has the largest value over checkpoints, and exists only if memory was measured.
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
            **extra_columns(passed),
        }
        for policy, passed in zip(policies, points)
        if passed
    ]


def curve_rows(
    policies: Sequence[Policy], seed: int, points: Sequence[Sequence[Mapping[str, Any]]]
) -> list[dict[str, Any]]:
    """Return one row of results for each of the `policies` and its checkpoints, a point of the policy's curve.

    `points` has the checkpoints of every policy, each a dictionary of what was measured so far.
    """
    return [{**policy.columns(), "seed": seed, **point} for policy, own in zip(policies, points) for point in own]


def select(experiment: Study, names: Sequence[str] | None) -> tuple[Policy, ...]:
    """Return the policies of an experiment whose label or group is in `names`.

    Parameters
    ----------
    experiment : Study
        Experiment whose policies are filtered.
    names : sequence of str or None
        Labels or groups. None selects all policies.

    Returns
    -------
    tuple of Policy
        Selected policies, in the order of the experiment.

    Raises
    ------
    ExperimentError
        If `names` is empty or contains an unknown name.
    """
    if names is None:
        return experiment.policies
    known = {policy.label for policy in experiment.policies} | {policy.group for policy in experiment.policies} - {""}
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        offered = ", ".join(dict.fromkeys(policy.group or policy.label for policy in experiment.policies))
        problem = f"no policy '{unknown[0]}'" if unknown else "no policy was named"
        raise ExperimentError(f"{problem} in {experiment.name}: choose among {offered}")
    return tuple(policy for policy in experiment.policies if policy.label in names or policy.group in names)
