"""Rewards of decisions whose conversions may still come, learned before all of them are known.

    a conversion is learned when it comes;  a decision without one is learned as the default at a random age Z
    P(Z <= e) = F(e) (1 - p) / (1 - p F(e))          F: distribution of delays (delay_law.py), p: rate of conversions

A decision that converts with probability p has converted by age e with probability p F(e). With probability 1 - p F(e)
it has not, and it has then been learned as the default with probability (1 - p F(e)) P(Z <= e) = F(e) (1 - p). So at
every age e a decision has given F(e) rows on average, p F(e) of them conversions. Rates are therefore estimated without
bias, although conversions are still missing. If a conversion comes after its decision was learned as the default, the
difference is corrected:

    linear in rewards      b += (r' - r) x, exactly (late_correction.py)
    any other model        one more row, whose reward is the expected reward plus r' - r

Z is a function of the decision's id, so a replay draws the same ages. This is elapsed-time sampling (Yang et al., AAAI
2021) with the elapsed time drawn from the estimated law, and corrections in place of importance weights.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from onepass.bandit.bandit import Bandit
from onepass.bandit.decision import Decision
from onepass.bandit.delay_law import DelayLaw
from onepass.bandit.late_correction import is_linear, learn_correction
from onepass.exploration.random_split import hash_uniform
from onepass.exploration.rule import make_rule
from onepass.foundation import check

PURPOSE = b"censored"  # of the hash


@dataclass
class Progress:
    """State of a decision whose conversions may still come.

    Parameters
    ----------
    made : time of the decision in seconds.
    stage : index of the next age of the delay law's grid.
    drawn : True if the next visit is at the random age Z of the module, False if it is at an age of the grid.
    learned : reward of every slot as it was learned, None before.
    stages : index of the age of the grid at which every slot converted, -1 without a conversion.
    """

    made: float
    stage: int
    drawn: bool
    learned: list[float | None]
    stages: list[int]


class CensoredRewards:
    """Schedule by which decisions with delayed conversions are learned, and the estimated distribution of delays.

    Parameters
    ----------
    after : float
        Age at which all conversions are known, in seconds.
    default : float
        Reward without a conversion.
    """

    def __init__(self, after: float, default: float) -> None:
        self.law, self.default = DelayLaw(after), default
        self.n_learned = self.n_converted = 0

    def counts(self) -> dict[str, Any]:
        """Return everything that was counted as plain data for JSON."""
        return {"law": self.law.counts.tolist(), "n_learned": self.n_learned, "n_converted": self.n_converted}

    def restore(self, law: Any, n_learned: Any, n_converted: Any) -> None:
        """Restore the counts that `counts` returned. Raises ValueError if they do not belong to this object."""
        counts = np.array(law, np.float64)
        if counts.shape != self.law.counts.shape or not (np.isfinite(counts) & (counts >= 0.0)).all():
            raise ValueError(f"law must be counts of {len(self.law.ages)} ages, got {check.quote(law)}")
        self.law.counts = counts
        self.n_learned = check.integer("n_learned", n_learned, 0)
        self.n_converted = check.integer("n_converted", n_converted, 0)

    def begin(self, decision: Decision, now: float) -> tuple[Progress, float]:
        """Return the progress of a new decision, and the time when `visit` must first be called for it."""
        count = len(decision.arms)
        progress = Progress(now, 0, False, [None] * count, [-1] * count)
        return progress, self._next_visit(decision, progress, hash_uniform(decision.id, PURPOSE))

    def visit(self, bandit: Bandit, decision: Decision, progress: Progress, now: float) -> float | None:
        """Count or learn what is due for a decision at `now`.

        Returns the time of the next visit, or None if the decision is complete.
        """
        last, number = len(self.law.ages) - 1, hash_uniform(decision.id, PURPOSE)
        if progress.drawn:
            self._learn_default(bandit, decision, progress, now)
        else:
            k = progress.stage
            for stage in progress.stages:
                if 0 <= stage <= k:
                    self.law.add(k, stage)
            progress.stage = k + 1
            if k == last or number <= self._share(k):
                self._learn_default(bandit, decision, progress, now)
            if k == last:
                return None
        return self._next_visit(decision, progress, number)

    def pay(self, bandit: Bandit, decision: Decision, progress: Progress, paid: list[float | None], now: float) -> None:
        """Learn the rewards of slots, or correct the rewards already learned. None leaves a slot as it is."""
        stage = self.law.stage(now - progress.made)
        new, changes = list[float | None](), list[float | None]()
        for slot, value in enumerate(paid):
            learned = progress.learned[slot]
            fresh = value is not None and learned is None and value != self.default
            new.append(value if fresh else None)
            changes.append(value - learned if value is not None and learned is not None else None)
        if any(value is not None for value in new):
            learn_rewards(bandit, decision, new, now)
        if any(changes):
            correct_rewards(bandit, decision, progress.learned, changes, now)
        for slot, value in enumerate(paid):
            if value is not None and (new[slot] is not None or changes[slot]):
                self.n_learned += progress.learned[slot] is None
                if progress.stages[slot] < 0:
                    progress.stages[slot] = stage
                    self.n_converted += 1
                progress.learned[slot] = value

    def _learn_default(self, bandit: Bandit, decision: Decision, progress: Progress, now: float) -> None:
        missing = [slot for slot, value in enumerate(progress.learned) if value is None]
        if missing:
            learn_rewards(bandit, decision, [None if v is not None else self.default for v in progress.learned], now)
            for slot in missing:
                progress.learned[slot] = self.default
            self.n_learned += len(missing)

    def _share(self, k: int) -> float:
        """Return P(Z <= e_k)."""
        share, rate = self.law.shares[k], self.n_converted / (self.n_learned + 1.0)
        return share * (1.0 - rate) / (1.0 - rate * share)

    def _next_visit(self, decision: Decision, progress: Progress, number: float) -> float:
        """Return the time of the next visit: the next age of the grid, or the drawn age if it comes before."""
        k, ages = progress.stage, self.law.ages
        progress.drawn = None in progress.learned and number <= self._share(k)
        age = ages[k]
        if progress.drawn:
            low = self._share(k - 1) if k else 0.0
            part = max(number - low, 0.0) / max(self._share(k) - low, np.finfo(float).tiny)
            age *= min(part, 1.0) if k == 0 else (ages[k - 1] / ages[k]) ** (1.0 - min(part, 1.0))
        return progress.made + age


def learn_rewards(bandit: Bandit, decision: Decision, rewards: list[float | None], now: float) -> None:
    """Learn rewards of the slots of a decision, None for slots that are left as they are."""
    options = {"time": now} if bandit.needs_time else {}
    bandit.learn(decision, rewards[0] if len(rewards) == 1 else rewards, allow_repeat=True, **options)


def correct_rewards(
    bandit: Bandit, decision: Decision, learned: list[float | None], changes: list[float | None], now: float
) -> None:
    """Correct learned rewards by the differences `changes`, one for each slot; None leaves a slot as it is.

    A model that is linear in rewards is corrected exactly. Any other model learns a row whose reward is the expected
    reward plus the difference. If its family of rewards has no such reward, the row has the new reward.
    """
    if is_linear(bandit):
        learn_correction(bandit, decision, changes)
        return
    means, rewards = expected_rewards(bandit, decision, now), list[float | None]()
    for mean, old, change in zip(means, learned, changes, strict=True):
        value = None if not change or old is None else mean + change
        if value is not None and not is_possible(bandit, value):
            value = (old or 0.0) + (change or 0.0)
        rewards.append(value)
    learn_rewards(bandit, decision, rewards, now)


def is_possible(bandit: Bandit, reward: float) -> bool:
    """Return True if the bandit's reward family (such as logistic) allows this reward."""
    try:
        bandit.check_rewards([reward])
    except ValueError:
        return False
    return True


def expected_rewards(bandit: Bandit, decision: Decision, now: float) -> list[float]:
    """Return the expected rewards of the chosen arms, as the model predicts them now."""
    model = bandit.model.at(now) if bandit.needs_time else bandit.model
    request = model.encode_decision(decision)
    rule = model.active_rule(make_rule(bandit.exploration), request)
    seen = model.predict(request, 0, rule, np.random.default_rng(0), 0)
    return [float(value) for value in model.mean_rewards(np.asarray(seen.means))]


def progress_to_plain(progress: Progress) -> dict[str, Any]:
    """Return a progress as plain data for JSON."""
    return asdict(progress)


def progress_from_plain(found: Any, count: int, law: DelayLaw) -> Progress:
    """Rebuild the progress of a decision with `count` slots; ValueError if the data does not belong to it."""
    if not isinstance(found, dict) or found.keys() != Progress.__dataclass_fields__.keys():
        raise ValueError(f"progress must have its fields, got {check.quote(found)}")
    stages, learned = found["stages"], found["learned"]
    if len(stages) != count or len(learned) != count:
        raise ValueError(f"progress must have {count} slots, got {check.quote(found)}")
    last = len(law.ages) - 1
    return Progress(
        check.real("made", found["made"]),
        check.integer("stage", found["stage"], 0, last),
        bool(found["drawn"]),
        [None if value is None else check.real("learned", value) for value in learned],
        [check.integer("stages", value, -1, last) for value in stages],
    )
