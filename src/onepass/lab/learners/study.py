"""Studies of online learners: all of them decide, then learn, every example of the same stream.

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
BUFFERED = ("FORKS", "SkeGD", "NOGD")  # whose first 2 B losses fill a buffer


@dataclass(frozen=True)
class LearnerStudy:
    """A stream of examples that every learner decides and learns, in order.

    buffering: also give the rates of Wen, Zhang et al.'s program, which for the learners in BUFFERED leaves out the
    mistakes made until the buffer is full, but divides by all examples. tuning: the study of the examples that
    parameters are chosen on; None: this one, on other seeds, which is fair where a seed makes examples of its own.
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
        return LearnerTrial(self, policies, seed)

    def warm_up(self, policy: Policy) -> None:
        stream = self.stream(0)
        build_learner(policy, stream, 0).partial_fit(*stream.examples(0, 500))

    def step_size(self, rounds: int) -> int:
        """Long enough that calls cost nothing beside learning, short enough for memory."""
        return min(max(1_000, -(-rounds // CHECKPOINTS)), 50_000)


def build_learner(policy: Policy, stream: Stream, seed: int) -> Any:
    """The learner; `seed` and `majority` are told to those that take them."""
    where = {"seed": seed, "majority": stream.majority}
    known = {name: value for name, value in where.items() if policy.accepts(name)}
    return policy.build(**known)


class LearnerTrial:
    """Mistakes on the examples that the stream counts, from the first on; they are the regret against who makes none.

    Seconds are those of deciding and learning; between the checkpoints of a step they are shared out evenly.
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
        """Mistakes that count, so far in this step, (n,), while the buffer was not yet full."""
        learner = self.learners[policy]
        if type(learner).__name__ not in BUFFERED:
            return np.zeros(len(labels))
        losses = self.losses[policy] + np.cumsum(labels * validation.decisions < 1.0)
        self.losses[policy] = int(losses[-1])
        return np.cumsum(validation.mistakes * counts * (losses <= 2 * learner.params["budget"]))

    def rows(self) -> list[dict[str, Any]]:
        return final_rows(self.policies, self.seed, self.points, self.rates)

    def rates(self, points: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The mistake rate, that of Wen, Zhang et al.'s program where it is asked for, and the seconds, all at the last
        point.
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
    """Always the label of most examples, which is known in hindsight only."""

    def __init__(self, *, majority: float = 1.0) -> None:
        self.params = {"majority": majority}
        self._state = None

    def begin(self, dim: int) -> np.ndarray:
        return np.empty(0)

    def _learn(self, rows: np.ndarray, targets: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        return np.full(len(rows), self.params["majority"])


class RepeatLast(Learner):
    """Always the label of the example before."""

    def __init__(self) -> None:
        self.params = {}
        self._state = None

    def begin(self, dim: int) -> np.ndarray:
        return np.ones(1)

    def _learn(self, rows: np.ndarray, targets: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        decisions = np.concatenate([self._state, targets[:-1]])
        self._state = targets[-1:].copy()
        return decisions
