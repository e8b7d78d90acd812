"""Rewards of decisions whose conversions may still come, learned before all of them are known.

    a conversion is learned when it comes;  a decision without one is learned as the default at a random age Z
    P(Z <= e) = F(e) (1 - p) / (1 - p F(e))          F: distribution function of delays, p: rate of conversions

F is estimated as in delay_law.py.

A decision that converts with probability p has converted by age e with probability p F(e). With probability 1 - p F(e)
it has not, and it has then been learned as the default with probability (1 - p F(e)) P(Z <= e) = F(e) (1 - p). So at
every age e a decision has given F(e) rows on average, p F(e) of them conversions. Rates are therefore estimated without
bias, although conversions are still missing. If a conversion comes after its decision was learned as the default, the
difference is corrected:

    linear in rewards      b += (r' - r) x, exactly (late_correction.py)
    any other model        one more row, whose reward is the expected reward plus r' - r

Z is a function of the decision's id, so a replay draws the same ages. This is elapsed-time sampling (Yang et al., AAAI
2021) with the elapsed time drawn from the estimated F, and corrections in place of importance weights.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import numpy as np

from onepass.bandit.bandit import Bandit
from onepass.bandit.decision import Decision
from onepass.bandit.delay_law import DelayLaw
from onepass.bandit.delay_laws import PER_DOUBLING, DelayLaws
from onepass.bandit.late_correction import is_linear, learn_correction
from onepass.exploration.random_split import hash_uniform
from onepass.exploration.rule import make_rule
from onepass.foundation import check
from onepass.model.interval.interval import interval_of
from onepass.model.interval.interval_model import count_sales

PURPOSE = b"censored"  # of the hash
SAVED = ("made", "stage", "learned", "stages")  # fields of `Progress`
TINY = float(np.finfo(float).tiny)


@dataclass
class Progress:
    """State of a decision whose conversions may still come.

    Parameters
    ----------
    made : time of the decision in Unix seconds.
    stage : index, in the grid of ages of `DelayLaw`, of the next age that the decision reaches.
    learned : reward that was learned for every slot, None for a slot that was not learned yet.
    stages : for every slot the index of the grid's age by which it converted, -1 without a conversion.
    names : name of every slot's arm, as `arm_names` returns them.
    """

    made: float
    stage: int
    learned: list[float | None]
    stages: list[int]
    names: list[Any]


class CensoredRewards:
    """Schedule by which decisions with delayed conversions are learned, and the estimated distributions of delays.

    Parameters
    ----------
    after : float
        Age at which all conversions are known, in seconds.
    default : float
        Reward without a conversion.
    law : DelayLaw, default None
        Estimated distribution of the delays to start from. None starts from a uniform distribution of log(delay).
    """

    def __init__(self, after: float, default: float, law: DelayLaw | None = None) -> None:
        self.laws, self.default = DelayLaws(after), default
        if law is not None:
            self.laws.common = law.resample(self.laws.common.ages)
        self.n_learned = self.n_converted = 0

    def counts(self) -> dict[str, Any]:
        """Return the counts of conversions and of learned rewards as plain data for JSON.

        "laws" holds the counts of the distributions of delays (`DelayLaws.plain`), and "n_learned" and "n_converted"
        are the numbers of decisions and of conversions.
        """
        return {"laws": self.laws.plain(), "n_learned": self.n_learned, "n_converted": self.n_converted}

    def restore(self, laws: Any, n_learned: Any, n_converted: Any) -> None:
        """Restore the numbers of decisions and of conversions, and the distributions of delays `laws`, from a file.

        The arguments are the entries of the dictionary that `counts` returned. Raises ValueError if they do not belong
        to this object.
        """
        self.laws.restore(**laws)
        self.n_learned = check.integer("n_learned", n_learned, 0)
        self.n_converted = check.integer("n_converted", n_converted, 0)

    def begin(self, decision: Decision, now: float) -> tuple[Progress, float]:
        """Return the progress of a decision made at time `now`, and the time at which to call `visit` for it first.

        Both times are in Unix seconds.
        """
        count = len(decision.arms)
        progress = Progress(now, 0, [None] * count, [-1] * count, arm_names(decision))
        return progress, self._next_visit(progress, self._default_times(decision, progress), now)

    def visit(self, bandit: Bandit, decision: Decision, progress: Progress, now: float) -> float | None:
        """Count a decision's conversions, and learn the default for slots without one, if this is due by `now`.

        Returns the time of the next visit in seconds, or None if the decision is complete.
        """
        ages, complete = self.laws.common.ages, False
        while not complete and progress.made + ages[k := progress.stage] <= now:
            for slot, stage in enumerate(progress.stages):
                if 0 <= stage <= k:
                    self.laws.add(progress.names[slot], k, stage)
            complete = k + 1 == len(ages)
            progress.stage = k if complete else k + 1
        times = self._default_times(decision, progress)
        due = [value is None and (complete or time <= now) for value, time in zip(progress.learned, times, strict=True)]
        self._learn_default(bandit, decision, progress, due, now)
        if complete:
            return None
        return self._next_visit(
            progress, [math.inf if one else time for one, time in zip(due, times, strict=True)], now
        )

    def pay(
        self, bandit: Bandit, decision: Decision, progress: Progress, paid: list[float | None], now: float
    ) -> float | None:
        """Learn the rewards `paid` of a decision's slots, or correct rewards already learned.

        A slot whose entry is None keeps its reward. Nothing is corrected for an arm that was removed after the
        decision, since what was learned is gone. `progress` is the progress that `begin` returned.

        `now`, the time at which the rewards came, and the result are Unix times in seconds. The result is the time of
        the next visit; None means that the time set before stays.
        """
        stage, converted = self.laws.common.stage(now - progress.made), False
        new, changes = list[float | None](), list[float | None]()
        for slot, value in enumerate(paid):
            learned = progress.learned[slot]
            fresh = value is not None and learned is None and value != self.default
            new.append(value if fresh else None)
            changes.append(value - learned if value is not None and learned is not None else None)
        if any(value is not None for value in new):
            learn_rewards(bandit, decision, new, now)
        gone = [bandit.has_removed(name, decision.n_learned) for name in progress.names]
        left = [None if away else change for away, change in zip(gone, changes, strict=True)]
        if any(left):
            correct_rewards(bandit, decision, progress.learned, left, now)
        for slot, value in enumerate(paid):
            if value is not None and (new[slot] is not None or changes[slot]):
                self.n_learned += progress.learned[slot] is None
                if progress.stages[slot] < 0:
                    progress.stages[slot], converted = stage, True
                    self.n_converted += 1
                progress.learned[slot] = value
        if not converted:
            return None
        progress.stage = max(progress.stage, stage)
        return self._next_visit(progress, self._default_times(decision, progress), now)

    def _learn_default(
        self, bandit: Bandit, decision: Decision, progress: Progress, due: list[bool], now: float
    ) -> None:
        if any(due):
            learn_rewards(bandit, decision, [self.default if one else None for one in due], now)
            progress.learned = [
                self.default if one else value for one, value in zip(due, progress.learned, strict=True)
            ]
            self.n_learned += sum(due)

    def _default_times(self, decision: Decision, progress: Progress) -> list[float]:
        """Return the Unix times at which the slots of a decision are learned as the default, `inf` for learned ones."""
        if None not in progress.learned:
            return [math.inf] * len(progress.learned)
        number, k, ages = hash_uniform(decision.id, PURPOSE), progress.stage, self.laws.common.ages
        share = share_at_draw(number, self.n_converted / (self.n_learned + 1.0))
        out = []
        for arm, value in zip(progress.names, progress.learned, strict=True):
            if value is not None:
                out.append(math.inf)
                continue
            shares = self.laws.find_law(arm).shares
            j = min(bisect_left(shares, share, k), len(ages) - 1)
            high, low = shares[j], shares[j - 1] if j else 0.0
            part = min(max(share - low, 0.0) / max(high - low, TINY), 1.0)
            age = ages[j] * (part if j == 0 else (ages[j - 1] / ages[j]) ** (1.0 - part))
            out.append(progress.made + age)
        return out

    def _next_visit(self, progress: Progress, times: list[float], now: float) -> float:
        """Return the time of the next visit: the first of the drawn `times`, or an age of the grid if one comes before.

        All times are in Unix seconds, also the present one, `now`. A visit is never before it.
        A decision with a conversion is visited at every age of the grid, so that its conversion is counted. One without
        is visited once in a doubling of its age, since the distributions of the delays change meanwhile, and after it
        was learned only at the end.
        """
        ages, k = self.laws.common.ages, progress.stage
        if any(stage >= 0 for stage in progress.stages):
            place = k
        elif None in progress.learned:
            place = min(k + PER_DOUBLING - 1, len(ages) - 1)
        else:
            place = len(ages) - 1
        return max(min(progress.made + ages[place], *times), now)


def share_at_draw(number: float, rate: float) -> float:
    """Return the share F(Z) of conversions with a delay of at most Z, the random age at which a default is learned.

    Z is drawn by the uniform random number `number`, as the age with F(Z) (1 - p) / (1 - p F(Z)) = `number`, where p is
    the probability `rate` of a conversion.
    """
    return number / (1.0 - rate * (1.0 - number))


def arm_names(decision: Decision) -> list[Any]:
    """Return the name of the arm of each slot; None for an arm without a name, and for an action of an interval."""
    named = decision.candidates is not None and decision.density is None
    return list(decision.arms) if named else [None] * len(decision.arms)


def learn_rewards(bandit: Bandit, decision: Decision, rewards: list[float | None], now: float) -> None:
    """Learn the rewards of the slots of a decision; a slot with None is left as it is.

    `now` is the present time in Unix seconds, at which the rows are learned. It is used if the bandit needs times.
    """
    options = {"time": now} if bandit.needs_time else {}
    bandit.learn(decision, rewards[0] if len(rewards) == 1 else rewards, allow_repeat=True, **options)


def correct_rewards(
    bandit: Bandit, decision: Decision, learned: list[float | None], changes: list[float | None], now: float
) -> None:
    """Correct learned rewards by the differences `changes`, one for each slot; None leaves a slot as it is.

    `learned` are the rewards learned before, and `now` is the present time in Unix seconds.

    A model that is linear in rewards is corrected exactly. Any other model learns a row whose reward is the expected
    reward plus the difference. If its family of rewards has no such reward, or the margin of a price does not allow it,
    the row has the new reward.
    """
    if is_linear(bandit):
        learn_correction(bandit, decision, changes)
        return
    means, rewards = predict_rewards(bandit, decision, now), list[float | None]()
    for mean, old, change in zip(means, learned, changes, strict=True):
        value = None if not change or old is None else mean + change
        if value is not None and not is_possible(bandit, decision, value):
            value = (old or 0.0) + (change or 0.0)
        rewards.append(value)
    learn_rewards(bandit, decision, rewards, now)


def is_possible(bandit: Bandit, decision: Decision, reward: float) -> bool:
    """Return True if `check_possible` accepts a reward."""
    try:
        check_possible(bandit, decision, [reward])
    except ValueError:
        return False
    return True


def check_possible(bandit: Bandit, decision: Decision, rewards: list[float | None]) -> None:
    """Raise ValueError if the bandit's reward family (such as logistic) or the margin of a price forbids a reward.

    `rewards` has an entry for each slot of the decision, None without a reward. The margin is the action minus the cost
    of a sale, for a decision over an `Interval` with `demand`.
    """
    values = [value for value in rewards if value is not None]
    bandit.check_rewards(values)
    if decision.density is not None:
        action, interval = interval_of(decision.context["arms"][0], decision.id)
        for value in values if interval.demand else []:
            count_sales(value, action - interval.cost)


def predict_rewards(bandit: Bandit, decision: Decision, now: float) -> list[float]:
    """Return the expected rewards of the chosen arms, as the model predicts them at the Unix time `now`, in seconds."""
    model = bandit.model.at(now) if bandit.needs_time else bandit.model
    request = model.encode_decision(decision)
    rule = model.active_rule(make_rule(bandit.exploration), request)
    seen = model.predict(request, 0, rule, np.random.default_rng(0), 0)
    return [float(value) for value in model.mean_rewards(np.asarray(seen.means))]


def progress_to_plain(progress: Progress) -> dict[str, Any]:
    """Return the `Progress` of a decision as plain data for JSON, without the names, which the decision holds."""
    return {name: getattr(progress, name) for name in SAVED}


def progress_from_plain(found: Any, decision: Decision, law: DelayLaw) -> Progress:
    """Rebuild the `Progress` of a decision from plain data; ValueError if they disagree."""
    if not isinstance(found, dict) or found.keys() != set(SAVED):
        raise ValueError(f"progress must have its fields, got {check.quote(found)}")
    stages, learned, count = found["stages"], found["learned"], len(decision.arms)
    if len(stages) != count or len(learned) != count:
        raise ValueError(f"progress must have {count} slots, got {check.quote(found)}")
    last = len(law.ages) - 1
    return Progress(
        check.real("made", found["made"]),
        check.integer("stage", found["stage"], 0, last),
        [None if value is None else check.real("learned", value) for value in learned],
        [check.integer("stages", value, -1, last) for value in stages],
        arm_names(decision),
    )
