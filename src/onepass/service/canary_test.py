"""Test if a candidate is better than the serving model, by the decisions in which both had a share.

    D = (q(a) - p(a)) / ((1 - share) p(a) + share q(a)) (r - least),      from -span / (1 - share) to span / share

p and q are the probabilities of the shown arm under the serving model and the candidate. E[D | past] is the difference
of their values at that decision. Limits at all times are those of running averages (evaluation/running_averages.py),
because both models learn on the way. The candidate is better once the lower limit is above 0 at the level

    alpha_j = alpha / (j (j + 1)),      j = 1, 2, ... the number of the candidate in its loop;   sum of all = alpha

so that with probability 1 - alpha no candidate of the loop is ever called better that is not better.
"""

from typing import NamedTuple

import numpy as np

from onepass.evaluation.diagnosis import FEW
from onepass.evaluation.running_averages import RunningAverages
from onepass.log.records import Decision, Join
from onepass.log.store import Store

HELD = 100_000  # decisions whose joins are awaited
ROUNDED = 1e-9  # of a gain beyond its range


class CanaryResult(NamedTuple):
    """Result so far of comparing a candidate model with the serving model.

    - rows: number of decisions.
    - mean: estimated gain in reward per decision if the candidate served.
    - lower, upper: limits of the gain that hold at any time.
    - level: confidence level of the limits.
    - better: True if the lower limit shows that the candidate is better.
    """

    rows: int
    mean: float
    lower: float
    upper: float
    level: float
    better: bool

    def sentence(self) -> str:
        """Return a sentence for people that describes the result."""
        limits = f"from {self.lower:+.4g} to {self.upper:+.4g} at level {self.level:g}"
        return f"gain {self.mean:+.4g} a decision, {limits}, by {self.rows} decisions"


class CanaryTest:
    """Comparison of a candidate model with the serving model, by the decisions in which both had a share.

    - line: model number of the candidate, from 1.
    - rewards: (least, largest) possible reward.
    - share: probability, between 0 and 1, with which the candidate decides. Decisions with another share do not count.
    - alpha: probability that any candidate of the loop is called better although it is not.
    """

    def __init__(self, line: int, rewards: tuple[float, float], share: float, alpha: float) -> None:
        self.line, self.share, self._least = line, share, rewards[0]
        self.alpha = alpha / (line * (line + 1))
        span = rewards[1] - rewards[0]
        self._low, self._high, self._averages = span / (1.0 - share), span / share, RunningAverages(2)
        self._waiting: dict[str, float] = {}
        self._left = False
        self._rows, self._sum, self._through = 0, 0.0, 0
        self.known: CanaryResult | None = None

    def read_log(self, store: Store, loop: str, since: int, until: int) -> None:
        """Read the decisions of a loop after `since`, and their final rewards (joins) up to `until`.

        `store` is the log, and `loop` the loop's name. `since` and `until` are sequence numbers; `until` is included.
        """
        for record in store.read(since, None, ("decision", "join"), loop):
            if isinstance(record, Decision):
                self.add_decision(record)
            elif record.seq <= until:
                self.add_join(record)

    def add_decision(self, decision: Decision) -> None:
        """Add a decision to the comparison, if the candidate took part in it."""
        canary = decision.canary
        if canary is None or canary.line != self.line or canary.share != self.share:
            return
        assert decision.shown is not None
        assert decision.showing is not None
        assert decision.probabilities is not None
        place = decision.shown[0]
        weight = (canary.probabilities[place] - decision.probabilities[place]) / decision.showing[place]
        self._waiting[decision.id] = weight
        if len(self._waiting) > HELD:
            del self._waiting[next(iter(self._waiting))]

    def add_join(self, join: Join) -> None:
        """Add the final rewards of a decision to the comparison."""
        weight = self._waiting.pop(join.id, None)
        if weight is None or join.again or join.rewards[0] is None:
            return
        gain = weight * (join.rewards[0] - self._least)
        ends = np.array([[1.0 + gain / self._low, 1.0 - gain / self._high]])
        self._left = self._left or ends.min() < -ROUNDED  # a sum, or of other settings: limits hold no more
        self._averages.add(np.maximum(ends, 0.0))
        self._rows, self._sum = self._rows + 1, self._sum + gain

    def gain(self) -> CanaryResult:
        """Compute and return the result so far, also kept in `known`.

        Only the thread that adds rewards may call this; other threads read `known`.
        """
        if self.known is None or self.known.rows != self._rows:
            below, above = (self._averages.lower(which, self.alpha / 2.0) for which in (0, 1))
            lower, upper = (below - 1.0) * self._low, (1.0 - above) * self._high
            mean = self._sum / max(self._rows, 1)
            better = self._rows >= FEW and lower > 0.0 and not self._left
            self.known = CanaryResult(self._rows, mean, lower, upper, 1.0 - self.alpha, better)
        return self.known
