"""Promise to earn nearly what a baseline would have earned: its evidence, and the share of a bandit that it allows.

Decisions are drawn from the mixture m, and the promise holds for the sums of rewards r:

    m = (1 - q) pi + q p,     q = 0 while slack < 1 - loss, else slack / (slack + ROOM), ROOM = 3
    promise   sum r >= (1 - loss) sum r_b,     r_b: reward of the arm that the baseline would have shown
    slack     R - (1 - loss) (H + D - M),     R: sum of rewards;  H: of those where the baseline's arm was shown;
              D: number of other decisions, the misses;  M: lower limit of their sum of y = 1 - r_b

pi are the baseline's probabilities, p the bandit's, and q the share of the bandit. Rewards are scaled to [0, 1], so a
miss costs at most 1 - loss, and with M = 0 the promise is certain. r_b is seen if the baseline's arm is shown (a hit),
which has probability c. For every y in [0, 1] and every bet l > 0, the wealth of a game that multiplies by

    (1 - (1 - c) exp(-l y)) / c   after a hit,     exp(-l y)   after a miss

is a martingale, since the mean of both factors is 1. So with probability `certainty`, at all times together (Ville
1939, a union over J bets l),

    M = max over l of  (sum over hits of log(1 + (1 - c) (1 - exp(-l y)) / c) - log(J / (1 - certainty))) / l

No model has to be right: only the draw of the arm is random. Rewards that have not come count as 0 for the bandit and
as 1 for the baseline. Related: conservative bandits (Kazerouni, Ghavamzadeh, Abbasi-Yadkori and Van Roy 2017), which
trust a model. `Guarded` holds a promise beside its bandit. A service updates one with the records of its log.

By the model, the bandit gets its share faster. In the slack, the upper limit of r_b of a miss is then not 1 - y but

    u = min(1, mean + 2 s width),   s^2: mean of (r - mean)^2 over hits

with the bandit's mean and width of the baseline's arm. A test of the model bets on hits: its wealth is the mean over
bets of the product of 1 + l (r - u), a supermartingale while u is above the expected reward. Once the wealth is
1 / (1 - certainty), evidence alone decides. Until then evidence bounds the loss by twice `loss`.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from onepass.evaluation.harm_test import AtLeast, AtMost, HarmTest
from onepass.evaluation.reward_range import Range
from onepass.foundation import check
from onepass.foundation.check import quote

ROOM = 3.0  # slack, in rewards of 1, at which the bandit has half of the decisions
MOST = 0.98  # share of the bandit
BETS = 2.0 ** np.arange(2.0, -9.0, -1.0)  # l
PENDING = 100_000  # decisions whose rewards are awaited; older ones count as if none came
KINDS: dict[str, type[AtMost] | type[AtLeast]] = {"at most": AtMost, "at least": AtLeast}
REWARD = "reward"  # in the list of what is awaited
EVIDENCE, MODEL = "evidence", "model"
WIDTHS = 2.0  # of the model's upper limit
SPREAD = 0.25, 5.0  # squared residual before any is known, and the hits it counts for
STAKES = 2.0 ** -np.arange(1.0, 9.0)  # bets of the test of the model


class Expected(NamedTuple):
    """The bandit's prediction for the baseline's arm: the mean reward and an upper limit, both scaled to [0, 1]."""

    mean: float
    upper: float


class Shown(NamedTuple):
    """One decision whose reward or outcomes have not come yet.

    - hit: True if the arm that the baseline would choose was shown.
    - chance: probability with which that arm was shown.
    - policy_weight, baseline_weight: probability of the arm shown under the bandit, and under the baseline, divided by
      the probability with which it was shown.
    - share: probability with which the bandit decided instead of the baseline.
    - awaited: names of what has not come yet: the reward, and outcomes with a guardrail.
    - centres: mean of each outcome with a guardrail when the arm was drawn (`HarmTest.centre`), by outcome.
    - expected: prediction of the bandit for the baseline's arm, None if only evidence counts.
    """

    hit: bool
    chance: float
    policy_weight: float
    baseline_weight: float
    share: float
    awaited: tuple[str, ...]
    centres: dict[str, float]
    expected: Expected | None


class GuardReport(NamedTuple):
    """State of a `Guarded` bandit.

    Parameters
    ----------
    decisions : int
        Number of decisions.
    deviations : int
        Decisions in which another arm than the baseline's was shown.
    reward : float
        Sum of rewards, after the least possible reward was subtracted from each.
    baseline : float
        Upper limit of the same sum for the baseline, if it had made all decisions.
    slack : float
        Rewards that may still be lost: the sum of rewards minus (1 - loss) times the baseline's.
    share : float
        Probability with which the bandit, and not the baseline, makes the next decision.
    stopped : tuple of str
        Outcomes whose guardrail has been broken.
    is_model_rejected : bool
        True if the model was found to predict too little for the baseline.
    """

    decisions: int
    deviations: int
    reward: float
    baseline: float
    slack: float
    share: float
    stopped: tuple[str, ...]
    is_model_rejected: bool


class BaselinePromise:
    """Promise that a bandit loses at most a share of the rewards of a baseline, with the evidence so far.

    Parameters
    ----------
    loss, certainty : float
        Largest share of the baseline's rewards that may be lost, and probability that the promise holds.
    rewards : Range
        Least and largest possible reward.
    guardrails : dict of str to AtMost or AtLeast
        Limits of outcomes relative to the baseline, by the name of the outcome.
    alpha : float
        Probability that any guardrail is reported as broken although it is not. Guardrail j has alpha / (j (j + 1)).
    by : {"evidence", "model"}, default "evidence"
        Ground on which the bandit may decide more often: "evidence" is the rewards so far alone, "model" trusts the
        bandit's predictions until a test rejects them.
    """

    def __init__(
        self,
        loss: float,
        certainty: float,
        rewards: Range,
        guardrails: Mapping[str, AtMost | AtLeast],
        alpha: float,
        by: str = EVIDENCE,
    ) -> None:
        self.by = check.choice("by", by, (EVIDENCE, MODEL))
        self.loss, self.certainty = check_inner("loss", loss), check_inner("certainty", certainty)
        self.alpha, self.rewards = check_inner("alpha", alpha), rewards
        self.tests = {
            name: HarmTest(one, self.alpha / ((j + 1) * (j + 2))) for j, (name, one) in enumerate(guardrails.items())
        }
        self._shown: dict[str, Shown] = {}
        self._reserved: dict[str, Shown] = {}
        self._decisions = self._misses = 0
        self._earned = self._hits = 0.0  # sums of r, and of r in hits
        self._wealth = np.zeros(BETS.size)  # sums over hits of the logarithm in the formula of M
        self._uppers = 0.0  # sum of u over misses
        self._squares, self._counted = SPREAD[0] * SPREAD[1], SPREAD[1]
        self._stakes = np.zeros(STAKES.size)  # logarithms of the wealth of the test of the model
        self._is_rejected = False

    # ---- decisions ----

    def share(self, identity: str | None = None) -> float:
        """Return the probability with which the bandit, and not the baseline, makes the next decision.

        For the id of a decision that waits for its reward, return the probability with which the bandit made that
        decision.
        """
        known = None if identity is None else self._shown.get(identity)
        if known is not None:
            return known.share
        slack = self._slack()
        if self.by == MODEL and not self._is_rejected:
            slack = max(slack, self._model_slack())
        if slack < 1.0 - self.loss or self.stopped:
            return 0.0
        return min(slack / (slack + ROOM), MOST)

    def expect(self, mean: float, width: float) -> Expected | None:
        """Return the model's prediction for the baseline's arm; None if only evidence counts.

        `mean` is the expected reward of the arm, not scaled. `width` is the width of the arm, in units of the root mean
        square of the residuals.
        """
        if self.by != MODEL:
            return None
        scaled = (mean - self.rewards.least) / self.rewards.span
        upper = scaled + WIDTHS * width * math.sqrt(self._squares / self._counted)
        return Expected(scaled, min(max(upper, 0.0), 1.0))

    @property
    def stopped(self) -> tuple[str, ...]:
        """Names of the outcomes whose guardrail, a limit relative to the baseline, has been broken."""
        return tuple(name for name, one in self.tests.items() if one.is_harmful)

    @property
    def waiting(self) -> list[str]:
        """Ids of the decisions that are reserved, which are being made and are not counted yet."""
        return [*self._reserved]

    def add_decision(self, identity: str, mixture: Mapping[str, Any], index: int) -> None:
        """Add a decision that waits for its reward. A decision that was added before is ignored.

        `mixture` is the field "mixture" of the decision's record, and `index` the index of the arm shown.
        """
        self._reserved.pop(identity, None)
        if identity in self._shown:
            return
        shown = make_shown(mixture, index, self.tests)
        self._shown[identity] = shown
        self._decisions += 1
        self._misses += not shown.hit
        self._uppers += _upper_of_miss(shown)
        if len(self._shown) > PENDING:
            del self._shown[next(iter(self._shown))]

    def correct_decision(self, identity: str, mixture: Mapping[str, Any], index: int) -> None:
        """Replace the record of a decision whose id was repeated, if nothing of it has come yet.

        The second decision may show another arm, because rewards came in between. The arguments are those of
        `add_decision`, for the decision whose arm was shown.
        """
        before = self._shown.get(identity)
        if before is None:
            return
        shown = make_shown(mixture, index, self.tests)._replace(centres=before.centres)
        if shown == before or shown.awaited != before.awaited:
            return
        self._shown[identity] = shown
        self._misses += before.hit - shown.hit
        self._uppers += _upper_of_miss(shown) - _upper_of_miss(before)

    def reserve(self, identity: str, mixture: Mapping[str, Any], index: int) -> None:
        """Reserve a decision that is being made and not counted yet.

        It lowers the share of the bandit in other decisions until it is counted or released. `mixture` is the field
        "mixture" of the decision's record, and `index` the index of the arm shown.
        """
        if identity not in self._shown:
            self._reserved[identity] = make_shown(mixture, index, self.tests)

    def release(self, identity: str) -> None:
        """Forget a reserved decision that was not made."""
        self._reserved.pop(identity, None)

    # ---- rewards ----

    def check_reward(self, reward: Any) -> float:
        """Return a reward as a float. Raises ValueError if it is not in the range of rewards."""
        value = check.real("reward", reward)
        least, largest = self.rewards.least, self.rewards.largest
        if not least <= value <= largest:
            raise ValueError(f"reward must be from {least:g} to {largest:g}, got {quote(value)}; see reward_range")
        return value

    def check_outcomes(self, outcomes: Mapping[str, Any]) -> dict[str, float]:
        """Return the outcomes that have a guardrail (a limit) as floats; ValueError if one is out of its range."""
        return {
            name: one.check_value(outcomes[name]) for name, one in self.tests.items() if outcomes.get(name) is not None
        }

    def learn(self, identity: str, reward: float | None, outcomes: Mapping[str, float]) -> None:
        """Add the reward of a decision, if it is not None, and those of its outcomes that have a guardrail (a limit).

        Each of them counts once. Nothing is added for a decision that does not wait for its reward.
        """
        shown = self._shown.get(identity)
        if shown is None:
            return  # decided elsewhere, or all came before: no part of the promise
        came = [name for name in shown.awaited if name in outcomes]
        for name in came:
            self.tests[name].add(
                shown.policy_weight, shown.baseline_weight, shown.share, outcomes[name], shown.centres[name]
            )
        if reward is not None and REWARD in shown.awaited:
            came.append(REWARD)
            scaled = (reward - self.rewards.least) / self.rewards.span
            self._earned += scaled
            if shown.hit:
                self._hits += scaled
                self._wealth = self._wealth + _log_factor(shown.chance, 1.0 - scaled)
                if shown.expected is not None:
                    self._check_model(scaled, shown.expected)
        left = tuple(name for name in shown.awaited if name not in came)
        if left:
            self._shown[identity] = shown._replace(awaited=left)
        else:
            del self._shown[identity]

    def _check_model(self, reward: float, expected: Expected) -> None:
        """Add the reward of a decision that showed the baseline's arm to the test of the model, and to the residuals.

        `reward` is scaled to [0, 1], and `expected` is what the bandit predicted for this arm.
        """
        self._stakes = self._stakes + np.log1p(STAKES * (reward - expected.upper))
        most = float(self._stakes.max())
        wealth = math.exp(min(most, 700.0)) * float(np.exp(self._stakes - most).mean())
        self._is_rejected = self._is_rejected or wealth >= 1.0 / (1.0 - self.certainty)
        self._squares += (reward - expected.mean) ** 2
        self._counted += 1.0

    # ---- questions ----

    def _baseline_limit(self) -> float:
        """Return an upper limit of the baseline's sum of rewards, scaled to [0, 1]."""
        level = math.log(BETS.size / (1.0 - self.certainty))
        misses = self._misses + sum(not one.hit for one in self._reserved.values())
        lost = float(((self._wealth - level) / BETS).max())
        return self._hits + misses - max(lost, 0.0)

    def _slack(self) -> float:
        return self._earned - (1.0 - self.loss) * self._baseline_limit()

    def _model_slack(self) -> float:
        """Return the rewards that may still be lost, scaled to [0, 1] each, if the bandit's predictions are trusted.

        It is at most the slack that follows from the rewards so far, without any model, if twice the loss is allowed.
        """
        uppers = self._uppers + sum(_upper_of_miss(one) for one in self._reserved.values())
        by_model = self._earned - (1.0 - self.loss) * (self._hits + uppers)
        return min(by_model, self._earned - (1.0 - 2.0 * self.loss) * self._baseline_limit())

    def report(self) -> GuardReport:
        """Return the state of the promise: sums of rewards, the share of the bandit, and broken limits of outcomes."""
        span = self.rewards.span
        return GuardReport(
            self._decisions,
            self._misses,
            span * self._earned,
            span * self._baseline_limit(),
            span * self._slack(),
            self.share(),
            self.stopped,
            self._is_rejected,
        )

    def resume(self, name: str) -> None:
        """Restart the test of an outcome whose guardrail (limit) was broken; ValueError if the outcome has none."""
        if name not in self.tests:
            raise ValueError(f"name must be that of a guardrail, {quote(list(self.tests))}, got {quote(name)}")
        self.tests[name] = HarmTest(self.tests[name].guardrail, self.tests[name].alpha)

    # ---- files ----

    def to_dict(self) -> dict[str, Any]:
        """Return the state as data for JSON, without the arguments of the constructor."""
        return {
            "shown": {identity: list(one) for identity, one in self._shown.items()},
            "counts": [self._decisions, self._misses],
            "sums": [self._earned, self._hits],
            "wealth": self._wealth.tolist(),
            "model": [self._uppers, self._squares, self._counted, self._is_rejected, self._stakes.tolist()],
            "tests": {
                name: [one.log_wealth.tolist(), one.count, one.total, one.is_harmful]
                for name, one in self.tests.items()
            },
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Replace the state by one that `to_dict` returned."""
        self._shown = {
            identity: Shown(*one)._replace(
                awaited=tuple(one[5]), expected=None if one[7] is None else Expected(*one[7])
            )
            for identity, one in state["shown"].items()
        }
        self._decisions, self._misses = state["counts"]
        self._earned, self._hits = state["sums"]
        self._wealth = np.array(state["wealth"], np.float64)
        self._uppers, self._squares, self._counted, self._is_rejected, stakes = state["model"]
        self._stakes = np.array(stakes, np.float64)
        for name, (wealth, count, total, is_harmful) in state["tests"].items():
            if name in self.tests:
                self.tests[name] = HarmTest(self.tests[name].guardrail, self.tests[name].alpha, wealth, count, total)
                self.tests[name].is_harmful = is_harmful


def make_shown(mixture: Mapping[str, Any], index: int, guardrails: Mapping[str, HarmTest]) -> Shown:
    """Return the record of a decision whose reward has not come yet, and in which the arm at `index` was shown.

    `mixture` holds the probabilities of the bandit and of the baseline. `guardrails` are the tests by outcome.
    """
    share, place = float(mixture["share"]), int(mixture["place"])
    p, law = mixture["policy"], mixture["baseline"]
    m = (1.0 - share) * float(law[index]) + share * float(p[index])
    chance = 1.0 - share + share * float(p[place])
    awaited = (REWARD, *guardrails) if share > 0.0 else (REWARD,)
    centres = {name: one.centre for name, one in guardrails.items()}
    expected = mixture.get("expected")
    weights = float(p[index]) / m, float(law[index]) / m
    return Shown(
        index == place, chance, *weights, share, awaited, centres, None if expected is None else Expected(*expected)
    )


def _upper_of_miss(shown: Shown) -> float:
    """Return an upper limit, in [0, 1], of what the baseline's arm would have paid if another arm was shown, else 0."""
    return 0.0 if shown.hit else 1.0 if shown.expected is None else shown.expected.upper


def _log_factor(chance: float, lost: float) -> np.ndarray:
    """Return the logarithm (J,) of the factor by which each of J bets multiplies its wealth after a hit.

    A hit is a decision in which the baseline's arm is shown.

    `chance` is the probability with which that arm is shown, and `lost` is 1 minus its reward in [0, 1].
    """
    return np.log1p(-(1.0 - chance) / chance * np.expm1(-BETS * lost))


def check_inner(name: str, value: Any) -> float:
    """Return a number, or raise ValueError unless it is above 0 and below 1; `name` is the argument."""
    found = check.real(name, value)
    if not 0.0 < found < 1.0:
        raise ValueError(f"{name} must be above 0 and below 1, got {quote(value)}")
    return found
