"""Limits of a value that hold at every time, even if the logger learns; several sequences share one alpha.

For a fixed value and weights with a known bound, they are the betting sequence and, with a reward model, the doubly
robust sequence. Each has half of alpha, so both hold together, and their intersection holds. For a value that changes,
or an unknown bound, they are limits of the average value so far, at alpha.

If the betting sequence excludes every value, or the two sequences do not overlap, an event of probability at most alpha
has happened. Any other limits may be returned in this case.
"""

import numpy as np

from onepass.evaluation.average_sequence import AverageSequence
from onepass.evaluation.betting import BettingSequence
from onepass.evaluation.diagnosis import Diagnosis
from onepass.evaluation.doubly_robust import DoublyRobustSequence
from onepass.evaluation.reward_range import Interval, Range
from onepass.evaluation.sample import Sample


class AnytimeLimits:
    """Confidence limits of a policy's value that hold after all rows together, so that you may look at any time.

    `rewards` is the range of possible rewards, and `alpha` the probability that any of the limits ever fails. `changes`
    is True if the value may change from row to row, and `models` if rows have predictions of a reward model.
    """

    def __init__(self, rewards: Range, alpha: float, changes: bool, models: bool) -> None:
        self.rewards, self.alpha = rewards, alpha
        self._part = alpha / 2.0 if models else alpha
        self._average: AverageSequence | None = None
        self._betting = None if changes else BettingSequence(rewards, 1.0)
        self._robust = DoublyRobustSequence(rewards, 1.0, self._part) if models and not changes else None

    def add(self, sample: Sample, max_weights: np.ndarray | None, ceiling: float | None = None) -> None:
        """Add the weights and rewards of rows, in the order of the log.

        `max_weights` (n,) are the largest possible weights of the rows, known before each arm was drawn, or None if
        unknown. `ceiling` is the largest weight that any policy could have in the first row, or None if unknown. It is
        the first bound on weights in the limits of the average value, and later rows may raise this bound.
        """
        if self._average is None:
            self._average = AverageSequence(self.rewards, None if max_weights is None else ceiling)
        if max_weights is None:
            self._average.forget_bound()
            self._betting = self._robust = None
        self._average.add(sample.weights, sample.rewards, max_weights)
        if self._betting is not None:
            self._betting.add(sample.weights, sample.rewards, max_weights)
        if self._robust is not None:
            self._robust.add(sample, max_weights)

    def concat(self, other: "AnytimeLimits") -> "AnytimeLimits":
        """Return the limits after these rows followed by the rows of `other`, which began without rows."""
        if self._average is None or other._average is None:
            return other if self._average is None else self
        found = AnytimeLimits(self.rewards, self.alpha, True, False)
        found._part, found._average = self._part, self._average.concat(other._average)
        if self._betting is not None and other._betting is not None:
            found._betting = self._betting.concat(other._betting)
        if self._robust is not None and other._robust is not None:
            found._robust = self._robust.concat(other._robust)
        return found

    @property
    def is_contradicted(self) -> bool:
        """True if the limits have excluded every value, which happens when the mean importance weight cannot be 1."""
        return self._betting is not None and not self._betting.interval(self._part).lower >= self.rewards.least

    def intervals(self) -> dict[str, Interval]:
        """Return the confidence limits of the policy's value, by name of the method.

        - "betting": limits of the value by importance weights.
        - "doubly-robust": limits of the value by importance weights and a reward model.
        - "average": limits of the average value over the rows so far, which hold even if the value changes.

        "betting" needs a value that does not change, and a bound of every row's weight (`max_weights`). "doubly-robust"
        also needs a reward model. An interval that is empty, because the method excludes every value, is left out.
        "average" is added only if no other interval is left, or if the two intervals do not overlap.
        """
        found = {}
        if self._betting is not None:
            found["betting"] = self._betting.interval(self._part)
        if self._robust is not None:
            found["doubly-robust"] = self._robust.interval()
        found = {name: one for name, one in found.items() if one.lower <= one.upper}
        if (not found or _intersection(found) is None) and self._average is not None:
            found["average"] = self._average.interval(self.alpha)
        return found

    def limits(self) -> Interval:
        """Return the intersection of all limits, or the limits of the average value so far if there are no others.

        The whole range of rewards is returned if no method leaves a value.
        """
        found = self.intervals()
        average = found.pop("average", Interval(*self.rewards))
        most = average if average.lower <= average.upper else Interval(*self.rewards)
        return (_intersection(found) if found else None) or most

    def add_warning(self, diagnosis: Diagnosis) -> Diagnosis:
        """Return the diagnosis, with one more reason if the limits have excluded every value."""
        if not self.is_contradicted:
            return diagnosis
        why = "no value agrees with all rows: propensities are wrong, or it is the rare log on which limits fail"
        verdict = "wide" if diagnosis.verdict == "ok" else diagnosis.verdict
        return diagnosis._replace(verdict=verdict, reasons=(*diagnosis.reasons, why))


def _intersection(intervals: dict[str, Interval]) -> Interval | None:
    """Return the intersection of all intervals, or None if it is empty."""
    lower, upper = max(one.lower for one in intervals.values()), min(one.upper for one in intervals.values())
    return Interval(lower, upper) if lower <= upper else None
