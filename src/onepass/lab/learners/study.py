"""Studies of online learners: each learner first decides and then learns every example of one stream.

The policies, and the experiments as data, are in suites.py. Source: Wen, Zhang et al. = the paper on FORKS.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onepass import progressive_validation
from onepass.lab.definition import CHECKPOINTS, Trial, curve_rows, final_rows
from onepass.lab.figure import Figure
from onepass.lab.learners.figures import LEARNER
from onepass.lab.learners.streams import Stream
from onepass.lab.policy import Policy
from onepass.learner.learner import Learner

GRID: Mapping[str, Sequence[float]] = {"width": tuple(2.0 ** (i / 2) for i in range(-14, 21))}
NOTHING = {"cumulative_regret": 0.0, "seconds": 0.0, "buffered": 0.0, "counted": 0}
BUFFERED = ("FORKS", "SkeGD", "NOGD")  # the first 2 B losses of these learners fill a buffer


@dataclass(frozen=True)
class LearnerStudy:
    """Study of online learners on a stream of examples, which they decide and learn in order.

    Parameters
    ----------
    name : str
        Name on the command line and in the rows.
    description : str
        One line for `onepass list`.
    stream : callable
        `stream(seed)` returns the `Stream` of a seed: an object with the methods `examples` and `evaluation_mask`, and
        the attribute `majority`, the more frequent label, -1 or 1.
    policies : tuple of Policy
        Learners that play unless others are given.
    rounds : int
        Number of examples unless another is given.
    seeds : int
        Number of seeds unless another is given.
    figure : Figure
        Table and picture of the results. The default is the figure of mistakes over examples.
    grid : dict of str -> sequence of float
        Parameters that `tune` searches, with their values. The default is a grid of kernel widths.
    buffering : bool, default False
        True to also report the rates of Wen, Zhang et al.'s program. For learners with a buffer it leaves out the
        mistakes made until the buffer is full, but divides by all examples.
    timed : bool, default False
        True if seconds are the result.
    tuning : LearnerStudy, default None
        Study on whose examples parameters are tuned. None tunes on other seeds of this study, which is fair if
        each seed makes its own examples.
    """

    name: str
    description: str
    stream: Callable[[int], Stream]
    policies: tuple[Policy, ...]
    rounds: int
    seeds: int
    figure: Figure = LEARNER
    grid: Mapping[str, Sequence[float]] = field(default_factory=lambda: GRID)
    buffering: bool = False
    timed: bool = False
    tuning: "LearnerStudy | None" = None

    def trial(self, policies: Sequence[Policy], seed: int) -> Trial:
        """Return the trial of one seed, in which all given policies learn the same stream.

        Parameters
        ----------
        policies : sequence of Policy
            Policies that learn.
        seed : int
            Seed of the problem and of the policies.

        Returns
        -------
        Trial
            The trial, which the runner advances step by step.
        """
        return LearnerTrial(self, policies, seed)

    def warm_up(self, policy: Policy) -> None:
        """Let a throw-away copy of the learner learn 500 examples, so that its code is compiled.

        Results do not change, and later timings contain no compilation.

        Parameters
        ----------
        policy : Policy
            Policy whose compiled code is needed.
        """
        stream = self.stream(0)
        build_learner(policy, stream, 0).partial_fit(*stream.examples(0, 500))

    def step_size(self, rounds: int) -> int:
        """Return the number of examples in a step of a run of `rounds`.

        A step is long enough that calls cost nothing beside learning, and short enough for memory.

        Parameters
        ----------
        rounds : int
            Number of examples of the run.

        Returns
        -------
        int
            Examples in one step, from 1,000 to 50,000.
        """
        return min(max(1_000, -(-rounds // CHECKPOINTS)), 50_000)


def build_learner(policy: Policy, stream: Stream, seed: int) -> Any:
    """Return a new learner of a policy.

    It is given `seed`, and the more frequent label of `stream` as `majority`, if it accepts them.
    """
    where = {"seed": seed, "majority": stream.majority}
    known = {name: value for name, value in where.items() if policy.accepts(name)}
    return policy.build(**known)


class LearnerTrial:
    """Trial of learners on one stream, whose regret is the number of mistakes.

    Only examples in the stream's `evaluation_mask` count. Seconds measure deciding and learning, and are divided evenly
    among the checkpoints of a step.
    """

    def __init__(self, study: LearnerStudy, policies: Sequence[Policy], seed: int) -> None:
        self.study, self.policies, self.seed = study, policies, seed
        self.stream = study.stream(seed)
        self.learners = [build_learner(policy, self.stream, seed) for policy in policies]
        self.losses = [0] * len(policies)
        self.points: list[list[dict[str, Any]]] = [[] for _ in policies]

    def step(self, start: int, rounds: int) -> None:
        rows, labels = self.stream.examples(start, rounds)
        counts = self.stream.evaluation_mask(start, rounds)
        found = [progressive_validation(learner, rows, labels) for learner in self.learners]
        for i, validation in enumerate(found):
            before = self.points[i][-1] if self.points[i] else NOTHING
            mistakes, counted = np.cumsum(validation.mistakes * counts), np.cumsum(counts)
            buffering_mistakes = self.buffering_mistakes(i, validation, labels, counts)
            memory, every = int(self.learners[i].memory_usage()), max(1, self.study.rounds // CHECKPOINTS)
            for t in sorted({*range(every - start % every, rounds, every), rounds}):
                regret = before["cumulative_regret"] + float(mistakes[t - 1])
                examples = before["counted"] + int(counted[t - 1])
                self.points[i].append(
                    {
                        "round": start + t,
                        "cumulative_regret": regret,
                        "mistake_rate": regret / max(examples, 1),
                        "counted": examples,
                        "buffered": before["buffered"] + float(buffering_mistakes[t - 1]),
                        "seconds": before["seconds"] + 1e-6 * validation.microseconds_per_example * t,
                        "memory_bytes": memory,
                    }
                )

    def buffering_mistakes(self, policy: int, validation: Any, labels: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return, after each of the n examples of one step, the mistakes of this step while the buffer was not full.

        The *buffer* of a learner is full after it had a loss on 2 B examples since the start of the trial, where B is
        its budget. Learners without a buffer get zeros. `policy` is the index of the learner, `validation` has its
        decisions and mistakes, and `labels` (n,) are the labels. `counts` (n,) is True for the examples that count.
        """
        learner = self.learners[policy]
        if type(learner).__name__ not in BUFFERED:
            return np.zeros(len(labels))
        losses = self.losses[policy] + np.cumsum(labels * validation.decisions < 1.0)
        self.losses[policy] = int(losses[-1])
        return np.cumsum(validation.mistakes * counts * (losses <= 2 * learner.params["budget"]))

    def rows(self) -> list[dict[str, Any]]:
        return final_rows(self.policies, self.seed, self.points, self.rates)

    def rates(self, points: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the mistake rate, the rate without mistakes before the buffer was full, and the seconds, by name.

        The names are "mistake_rate", "mistake_rate_after_buffering" and "seconds". Values are those at the last of the
        checkpoints `points`. The second rate is None unless the study asks for it.
        """
        last, after = points[-1], None
        if self.study.buffering:
            after = (last["cumulative_regret"] - last["buffered"]) / max(last["counted"], 1)
        return {
            "mistake_rate": last["mistake_rate"],
            "mistake_rate_after_buffering": after,
            "seconds": last["seconds"],
        }

    def curves(self) -> list[dict[str, Any]]:
        return curve_rows(self.policies, self.seed, self.points)


class Constant(Learner):
    """Learner that always predicts the more frequent label of the whole stream, which is only known in hindsight."""

    def __init__(self, *, majority: float = 1.0) -> None:
        self.params = {"majority": majority}
        self._state = None

    def begin(self, dim: int) -> np.ndarray:
        return np.empty(0)

    def _learn(self, rows: np.ndarray, targets: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        return np.full(len(rows), self.params["majority"])


class RepeatLast(Learner):
    """Learner that always predicts the label of the previous example."""

    def __init__(self) -> None:
        self.params = {}
        self._state = None

    def begin(self, dim: int) -> np.ndarray:
        return np.ones(1)

    def _learn(self, rows: np.ndarray, targets: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        decisions = np.concatenate([self._state, targets[:-1]])
        self._state = targets[-1:].copy()
        return decisions
