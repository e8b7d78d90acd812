"""Gain of the loop over two baselines, always the first arm and a uniform choice, estimated while it runs.

    r_i in [0, 1]: rewards, scaled     w_i = policy(shown) / p(shown)      D_i = (1 - min(w_i, C)) r_i in [1 - C, 1]
    average E[D] - m <= gain <= average E[D]    m = average of sum over arms of (policy - C p)+: loss by the cut

Averages of expectations have limits that hold at every time, even if the loop learns (evaluation/running_averages.py).
Here `policy` and p are the probabilities of the baseline and of the loop, and weights are cut at C. Three values of C
share the error probability, so nobody has to choose one. An arm that the loop could not show counts in m with its whole
probability: it may have had the largest reward, and the lower limit accounts for that.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from onepass.evaluation.reward_range import Range
from onepass.evaluation.running_averages import RunningAverages

LEVEL = 0.95  # of each pair of limits
CUTS = (8.0, 64.0, 512.0)  # the narrow ones need few rows, the wide ones see arms that are hardly ever shown
POLICIES = 2  # to compare with: the first arm, all as likely
EXACT = 1000.0  # sums below have three digits
PER_CUT = 3  # averages: of D, of what is above it, of what is above the policy's value
PER_POLICY = 1 + PER_CUT * len(CUTS)
MUCH = 0.2  # of a policy without a chance of being seen: more of the same will not decide


class DecisionWeights(NamedTuple):
    """Importance weights of a decision for two policies: always the first arm, and a uniform choice.

    `weights` holds the weight of each policy for the arm shown. Weights are cut at several values. `cut` holds, for
    each policy and each of these values, the policy's probability that the cut removes; None if nothing is removed.
    """

    weights: tuple[float, float]
    cut: tuple[float, ...] | None


class Estimate(NamedTuple):
    """Value of a policy per decision, with its lower and upper limits."""

    value: float
    lower: float
    upper: float


class GainEstimate(NamedTuple):
    """Estimated gain in reward per decision of what was shown over another policy, with lower and upper limits.

    `unseen` is the fraction of the other policy's decisions on arms that were hardly ever shown, about which the log
    says nothing.
    """

    gain: float
    lower: float
    upper: float
    unseen: float


def decision_weights(
    chances: Sequence[float], shown: int, first: int, eligible: Sequence[int] | None = None
) -> DecisionWeights:
    """Return the importance weights of a decision for two policies: always the first arm, and a uniform choice.

    `chances` are the probabilities of all arms, `shown` and `first` the indices of the arm shown and of the first arm,
    and `eligible` the indices of eligible arms (default: all).
    """
    among = chances if eligible is None else [chances[place] for place in eligible]
    p, even, of_first = chances[shown], 1.0 / len(among), chances[first]
    weights = (1.0 / p if shown == first else 0.0, even / p)
    bare = min(among) * CUTS[0] < even
    if not bare and of_first * CUTS[0] >= 1.0:
        return DecisionWeights(weights, None)
    low = [one for one in among if one * CUTS[0] < even] if bare else ()
    of_even = [sum([even - c * one for one in low if c * one < even]) for c in CUTS]
    return DecisionWeights(weights, (*[max(0.0, 1.0 - c * of_first) for c in CUTS], *of_even))


class PolicyGain:
    """Estimates of the mean rewards of three policies: what a loop shows, always the first arm, a uniform choice.

    `rewards` is the range of rewards. `state` is what `to_dict` of an earlier object returned (default None: no rows).
    """

    def __init__(self, rewards: Range, state: Any = None) -> None:
        self.rewards = rewards
        count = 2 + POLICIES * PER_POLICY
        self._estimates: dict[tuple[str, int], Any] = {}  # what was asked since the last row
        found = None if state is None else np.array(state["sums"], float)
        self._averages = RunningAverages(count, found, 0 if state is None else state["rows"])
        self._cut = np.zeros(POLICIES * len(CUTS)) if state is None else np.array(state["cut"], float)
        self._weights = np.zeros(POLICIES) if state is None else np.array(state["weights"], float)

    def to_dict(self) -> dict[str, Any]:
        """Return the state of the estimates as data for JSON: "rows", "sums", "cut" and "weights"."""
        return {
            "rows": self.rows, "sums": self._averages.sums.tolist(), "cut": self._cut.tolist(),
            "weights": self._weights.tolist(),
        }  # fmt: skip

    @property
    def rows(self) -> int:
        """Number of rewards in the estimates."""
        return self._averages.rows

    @property
    def is_only_first(self) -> bool:
        """True if the first arm was the only one that could be shown at every decision."""
        return bool(self._weights[0] == self.rows)

    def add(self, chances: Sequence[DecisionWeights], rewards: Sequence[float]) -> None:
        """Add decisions with their importance weights `chances` and their rewards, in order."""
        r = (np.array(rewards, float) - self.rewards.least) / self.rewards.span
        np.clip(r, 0.0, 1.0, out=r)
        w = np.array([one.weights for one in chances])
        columns = [r, 1.0 - r]
        for policy in range(POLICIES):
            mine = w[:, policy]
            columns.append(mine * r)
            for c in CUTS:
                cut = np.minimum(mine, c) * r / c
                moved = r / c - cut + (c - 1.0) / c
                columns += [moved, 1.0 - moved, 1.0 - cut]
        self._averages.add(np.column_stack(columns))
        self._estimates.clear()
        self._weights += w.sum(axis=0)
        for one in chances:
            if one.cut is not None:
                self._cut += one.cut

    def shown_value(self) -> Estimate:
        """Return the mean reward of what the loop has shown, with limits."""
        return self._get_cached("shown", 0, self._estimate_shown)

    def policy_value(self, policy: int) -> Estimate:
        """Return the estimated value of a policy: 0 for the first arm, 1 for a uniform choice."""
        return self._get_cached("of", policy, lambda: self._estimate_policy(policy))

    def gain_over(self, policy: int) -> GainEstimate:
        """Return the estimated gain of what was shown over a policy: 0 for the first arm, 1 for a uniform choice."""
        return self._get_cached("over", policy, lambda: self._estimate_gain(policy))

    def _get_cached(self, what: str, policy: int, find: Callable[[], Any]) -> Any:
        if (what, policy) not in self._estimates:
            self._estimates[what, policy] = find()
        return self._estimates[what, policy]

    def _estimate_shown(self) -> Estimate:
        alpha = (1.0 - LEVEL) / 2.0
        lower, upper = self._averages.lower(0, alpha), 1.0 - self._averages.lower(1, alpha)
        return self._make_estimate(float(self._averages.means[0]), lower, upper)

    def _estimate_policy(self, policy: int) -> Estimate:
        start, alpha = 2 + policy * PER_POLICY, (1.0 - LEVEL) / 2.0
        value = float(self._averages.means[start]) * self.rows / max(float(self._weights[policy]), 1.0)
        upper = min(
            c * (1.0 - self._averages.lower(column + 2, alpha / len(CUTS))) + missing
            for column, c, missing in self._cuts(policy)
        )
        return self._make_estimate(value, self._averages.lower(start, alpha), upper)

    def _estimate_gain(self, policy: int) -> GainEstimate:
        alpha, span = (1.0 - LEVEL) / (2 * len(CUTS)), self.rewards.span
        lower, upper, unseen = -1.0, 1.0, 1.0
        for column, c, missing in self._cuts(policy):
            lower = max(lower, c * self._averages.lower(column, alpha) - (c - 1.0) - missing)
            upper = min(upper, c * (1.0 - self._averages.lower(column + 1, alpha)) - (c - 1.0))
            unseen = min(unseen, missing)
        gain = (self.shown_value().value - self.policy_value(policy).value) / span
        return GainEstimate(span * min(max(gain, lower), upper), span * lower, span * upper, unseen)

    def _cuts(self, policy: int) -> Iterator[tuple[int, float, float]]:
        """Yield for each cut the index of its first average, the cut, and the mean probability that it removes.

        A cut is a value at which importance weights are cut. The index is the column of the running averages where
        those of this cut begin. `policy` is 0 for the first arm, 1 for a uniform choice.
        """
        for place, c in enumerate(CUTS):
            missing = float(self._cut[policy * len(CUTS) + place]) / max(self.rows, 1)
            yield 3 + policy * PER_POLICY + PER_CUT * place, c, missing

    def _make_estimate(self, mean: float, lower: float, upper: float) -> Estimate:
        (least, _), span = self.rewards, self.rewards.span
        return Estimate(
            *(least + span * min(max(each, 0.0), 1.0) for each in (min(max(mean, lower), upper), lower, upper))
        )


def verdict(worth: PolicyGain, first: str | None) -> tuple[str, str]:
    """Return a word for programs and a sentence for people that compare a loop with always showing the first arm.

    - "none": no reward yet.
    - "same": the first arm was always shown.
    - "yes", "no": the loop earns more, or less.
    - "unknowable": the first arm was hardly ever shown.
    - "better": the loop is better than a uniform choice, and the comparison with the first arm is open.
    - "open": nothing is known yet.

    `worth` holds the estimates. `first` is the name of the first arm, or None if it was not always the same.
    """
    rival = "always showing the first arm" if first is None else f"always showing {first}"
    if worth.rows == 0:
        return "none", "No reward has been learned yet."
    if worth.is_only_first:
        return "same", "The first arm was shown every time: nothing tells what others would have earned."
    over, even = worth.gain_over(0), worth.gain_over(1)
    if over.lower > 0.0:
        whole = over.lower * worth.rows
        least = f"{whole:,.3g}" if whole < EXACT else f"{whole:,.0f}"
        return "yes", f"It earns more than {rival}: {format_limits(over)}, at least {least} more in all."
    if over.upper < 0.0:
        return "no", f"It has earned less than {rival} so far: {format_limits(over)}."
    better = f"It earns more than chance, {format_limits(even)}. " if even.lower > 0.0 else ""
    if over.unseen > MUCH:
        rest = f"In {over.unseen:.0%} of the decisions the first arm had no chance to show what it earns."
        return "unknowable", better + rest
    sentence = f"{better}Against {rival} it is {format_limits(over)}: too wide a span to tell."
    return "better" if better else "open", sentence


def format_limits(of: GainEstimate) -> str:
    """Return a text with the lower and the upper limit of a gain."""
    return f"between {format_signed(of.lower)} and {format_signed(of.upper)} a decision"


def format_signed(value: float) -> str:
    """Return a number as text with its sign, for which a typographic minus is used."""
    return f"{value:+.3g}".replace("-", "\N{MINUS SIGN}")
