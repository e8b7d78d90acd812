"""Evaluate a policy on a log: a diagnosis first, then estimates, then limits.

    w = policy(a | x) / p        in blocks, so that policies may be functions and logs streams

Weights-only numbers come from sums that add (moments.py), the betting sequence from its own state; memory does not grow
with the log, but for the four columns of a sample (sample.py).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from onepass.evaluation import intervals
from onepass.evaluation.anytime import AnytimeLimits
from onepass.evaluation.diagnosis import Diagnosis, diagnose
from onepass.evaluation.estimators import ESTIMATORS, Estimator, get_estimator
from onepass.evaluation.log import Log
from onepass.evaluation.moments import Moments, compute_moments
from onepass.evaluation.policies import make_policy, policy_changes
from onepass.evaluation.reward_models import FOLDS, ProgressivePredictor, make_reward_model
from onepass.evaluation.reward_range import Interval, Range, check_rewards, make_range
from onepass.evaluation.sample import Sample, make_sample
from onepass.evaluation.slope import tune_estimator
from onepass.evaluation.weight_bound import WeightBound
from onepass.foundation import check

BLOCK = 10_000  # rows that are looked at together
TUNED = ("clipped", "switch", "dros", "subgaussian", "subgaussian-dr")
DEFAULT_ESTIMATORS = ("ips", "snips", "dm", "dr")
PREFERRED = ("dr", "snips", "ips")  # the first of them that was asked for gives the value


@dataclass(frozen=True)
class Estimate:
    """name of the estimator; value, NaN where no row has a model that it needs; deviation: its standard error on a
    fixed log, of DM the error that DR finds in it; knob: its number, if it has one; normal: limits value +- z
    deviations, which a logger that learns, or a look before the end, makes invalid."""

    name: str
    value: float
    deviation: float
    knob: float | None
    normal: Interval


@dataclass(frozen=True)
class Evaluation:
    """What a log tells of a policy.

    diagnosis: of its weights; value: the estimate by DR if that was asked for, else by SNIPS, IPS, or the first one
    (`estimator` says which), and None where the log was refused; limits: those that hold at any time, whatever the
    logger learned, where they overlap; estimates: by name; intervals: by name, of a fixed sample ("bernstein",
    "clopper-pearson", "cressie-read"), and of all times, which hold together ("betting", "doubly-robust"; "average", of
    the average value so far, in place of these where the value changes, where the largest weight is not known, or where
    bets leave no value); logged: the mean reward of the logger itself; level: of all limits; bound: the largest weight
    that there could be, and whether the log told it (`bound_known`) or it is the largest one seen, with which no limits
    count; sample: its columns, None of `evaluate_many`.
    """

    diagnosis: Diagnosis
    value: float | None
    limits: Interval
    estimates: dict[str, Estimate]
    intervals: dict[str, Interval]
    logged: float
    level: float
    bound: float
    bound_known: bool
    sample: Sample | None

    @property
    def estimator(self) -> str | None:
        """The name of the estimator that `value` is of: "dr" if it was asked for, else "snips", "ips", or the first;
        None where none was."""
        return next((name for name in PREFERRED if name in self.estimates), next(iter(self.estimates), None))

    @property
    def verdict(self) -> str:
        """ "ok", "wide" or "refused"."""
        return self.diagnosis.verdict

    def to_dict(self) -> dict[str, Any]:
        """Plain data, without the sample."""
        return {
            "verdict": self.verdict,
            "reasons": list(self.diagnosis.reasons),
            "value": self.value,
            "estimator": self.estimator,
            "limits": list(self.limits),
            "level": self.level,
            "logged": self.logged,
            "rows": self.diagnosis.rows,
            "mean_weight": self.diagnosis.mean_weight,
            "effective_rows": self.diagnosis.effective,
            "largest_weight": self.diagnosis.largest,
            "weight_bound": self.bound,
            "estimates": {
                name: {"value": one.value, "deviation": one.deviation, "knob": one.knob, "normal": list(one.normal)}
                for name, one in self.estimates.items()
            },
            "intervals": {name: list(one) for name, one in self.intervals.items()},
        }

    def __str__(self) -> str:
        d = self.diagnosis
        lines = [f"{self.verdict}: {'; '.join(d.reasons)}" if d.reasons else self.verdict]
        lines.append(
            f"{d.rows:,} rows, worth {d.effective:,.0f} of the policy; mean weight {d.mean_weight:.3f}, "
            f"largest {d.largest:.4g}; logged {self.logged:.6g}"
        )
        if self.value is not None:
            lines.append(f"value {self.value:.6g} by {self.estimator}")
        for one in self.estimates.values():
            known = f"{one.value:12.6g} +- {one.deviation:.2g}" if one.value == one.value else "no row has a model"
            lines.append(f"{one.name:<16}{known}")
        lines += [f"{name:<16}{one.lower:12.6g} to {one.upper:.6g}" for name, one in self.intervals.items()]
        return "\n".join(lines)


def evaluate(
    log: Log | Iterable[Log],
    policy: Any,
    *,
    reward_range: tuple[float, float] = (0.0, 1.0),
    estimators: Iterable[str] = DEFAULT_ESTIMATORS,
    model: Any = None,
    level: float = 0.95,
    weight_bound: float | None = None,
    folds: int = FOLDS,
    bootstrap: int = 0,
    seed: int = 0,
    average: bool = False,
) -> Evaluation:
    """The value of a policy: what it would have earned a decision, by the log of another one.

    log: a `Log`, or blocks of one in their order (then models learn block by block, and policies are functions,
        bandits, or (K,) arrays).
    policy: probabilities (K,), (n, K), with slots (K, L) or (n, K, L); a function of contexts to (n, K); a bandit,
        which is asked and not changed; or `Learning(bandit)`, which learns every decision after it was weighed.
    reward_range: (least, largest) reward that there can be (default (0.0, 1.0)); limits rest on it.
    estimators: names (default "ips", "snips", "dm", "dr"): of `onepass.evaluation.NAMES`; knobs are chosen by SLOPE.
    model: of rewards, for estimators that use one: a scikit-learn regressor, `Linear(...)` or None (default):
        `Linear()`, ridge regression per arm. It predicts a row from the blocks before it; rows of the first one have no
        prediction, and DM and others that weights do not correct leave them out.
    level: of all limits, above 0 and below 1 (default 0.95).
    weight_bound: the largest weight that there can be, at least 1; None (default): that of each row by the logger's
        distributions, or by propensities that are all those of an even choice; else it is not known, and limits at any
        time are those of the average value, which need none.
    folds: blocks that the model is fitted over, at least 2 (default 5): of a log that is given whole, else of its first
        block.
    bootstrap: how often rows are drawn again for an interval "bootstrap" of the first estimator; 0 (default): none.
    seed: of the bootstrap, at least 0 (default 0).
    average: whether limits at any time are those of the average value so far, for a world that changes (default False:
        of one value that stays); of a policy that learns (`Learning`), or wrote the log (`Logged`), they always are.
    Returns an `Evaluation`. ValueError for rewards outside the range, and for what does not fit. Cost O(n) estimates
    and O(n) of the betting sequence, about 0.05 us a row of long logs.
    """
    rewards, names = make_range(reward_range), tuple(estimators)
    for name in names:
        check.choice("estimators", name, ESTIMATORS)
    alpha, folds = 1.0 - open_fraction("level", level), check.integer("folds", folds, 2)
    modelled = any(get_estimator(name).models for name in names)
    parts, max_weights, bounds, missing = list[Sample](), [], WeightBound(weight_bound), 0.0
    for block, p, q, known in _blocks(log, policy, make_reward_model(model) if modelled else None, folds):
        check_rewards(block.rewards, rewards, sum(part.rows for part in parts))
        chosen = np.arange(len(block)), block.arms
        q = None if q is None else np.clip(q, rewards.least, rewards.largest)
        w = p[chosen] / block.propensities
        parts.append(make_sample(w, block.rewards, *(() if q is None else (q[chosen], (p * q).sum(1), known))))
        max_weights.append(bounds.update(block, p, w))
        missing += float((p * ~block.support).sum())
    if not parts:
        raise ValueError("log must have at least one row")
    sample = Sample(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    average = bool(average) or policy_changes(policy)
    known_weights = [one for one in max_weights if one is not None]
    largest = np.concatenate(known_weights) if len(known_weights) == len(max_weights) else None
    return summarize_sample(
        sample, largest, rewards, names, alpha, bounds, missing / sample.rows, bootstrap, seed, average
    )


def _blocks(
    log: Log | Iterable[Log], policy: Any, model: Any, folds: int
) -> Iterator[tuple[Log, np.ndarray, np.ndarray | None, np.ndarray | None]]:
    """Blocks, the policy's probabilities (n, K), rewards (n, K) by a model of what came before, and whether there was
    one (n,)."""
    ahead = None if model is None else ProgressivePredictor(model, folds)
    if isinstance(log, Log):
        chooses = make_policy(policy, log)
        q, known = (None, None) if ahead is None else ahead.predict(log)
        for place, block in enumerate(log.blocks(BLOCK)):
            rows = slice(place * BLOCK, place * BLOCK + len(block))
            part = (None, None) if q is None or known is None else (q[rows], known[rows])
            yield block, chooses(block, rows.start), *part
        return
    for block in log:
        found = (None, None) if ahead is None else ahead.predict(block)
        yield block, make_policy(policy, block)(block, 0), *found


def summarize_sample(
    sample: Sample,
    max_weights: np.ndarray | None,
    rewards: Range,
    names: tuple[str, ...],
    alpha: float,
    bound: WeightBound,
    missing: float,
    bootstrap: int,
    seed: int,
    average: bool = False,
) -> Evaluation:
    """All numbers of a sample; tops: (n,) the largest weights that rows could have had, None where these are not known;
    average: whether its value changes."""
    m, modelled = compute_moments(sample.weights, sample.rewards), any(get_estimator(name).models for name in names)
    anytime = AnytimeLimits(rewards, alpha, average, modelled)
    anytime.add(sample, max_weights, bound.ceiling)
    diagnosis = anytime.add_warning(diagnose(sample.weights, missing))
    estimates = {name: _estimate(_select_estimator(name, sample), sample, rewards, alpha) for name in names}
    found = {**moment_intervals(m, rewards, alpha), **anytime.intervals()}
    if check.integer("bootstrap", bootstrap, 0):
        rng = np.random.default_rng(check.integer("seed", seed, 0))
        found["bootstrap"] = intervals.bootstrap(
            _select_estimator(names[0], sample), sample, rewards, alpha, bootstrap, rng
        )
    best = next((name for name in PREFERRED if name in estimates), names[0] if names else None)
    value = None if diagnosis.verdict == "refused" or best is None else estimates[best].value
    return Evaluation(
        diagnosis=diagnosis,
        value=value,
        limits=anytime.limits(),
        estimates=estimates,
        intervals=found,
        logged=float(sample.rewards.mean()),
        level=1.0 - alpha,
        bound=bound.value,
        bound_known=bound.known,
        sample=sample,
    )


def _select_estimator(name: str, sample: Sample) -> Estimator:
    """The estimator of that name, with its knob chosen."""
    return tune_estimator(sample, name) if name in TUNED else get_estimator(name)


def _estimate(one: Estimator, sample: Sample, rewards: Range, alpha: float) -> Estimate:
    """Its numbers."""
    knob = one.knob if one.name in TUNED else None
    value, deviation = one.value(sample), one.deviation(sample)
    return Estimate(one.name, value, deviation, knob, intervals.normal_interval(value, deviation, rewards, alpha))


def moment_intervals(m: Moments, rewards: Range, alpha: float) -> dict[str, Interval]:
    """Intervals of a fixed sample, by name."""
    return {
        "bernstein": intervals.bernstein(m, rewards, alpha),
        "clopper-pearson": intervals.clopper_pearson(m, rewards, alpha),
        "cressie-read": intervals.cressie_read(m, rewards, alpha),
    }


def open_fraction(name: str, value: Any) -> float:
    """A float above 0 and below 1."""
    number = check.fraction(name, value)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name} must be above 0 and below 1, got {check.shown(value)}")
    return number
