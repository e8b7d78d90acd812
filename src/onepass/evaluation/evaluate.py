"""Evaluation of a policy on a log: a diagnosis first, then estimates, then limits.

The importance weight of a row with context x and arm a, which was drawn with probability p, is

    w = policy(a | x) / p        in blocks, so that policies may be functions and logs streams

Estimates from weights alone come from sums (moments.py), the betting sequence from its own state. Memory does not grow
with the log, except for the columns of a sample (sample.py).
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
from onepass.evaluation.policies import has_arm, make_policy, policy_changes, refuse_missing_arm
from onepass.evaluation.reward_models import FOLDS, ProgressivePredictor, make_reward_model
from onepass.evaluation.reward_range import Interval, Range, check_rewards, make_range
from onepass.evaluation.sample import Sample, make_sample
from onepass.evaluation.slope import tune_estimator
from onepass.evaluation.support import Support
from onepass.evaluation.weight_bound import WeightBound
from onepass.foundation import check
from onepass.foundation.html import make_html

BLOCK = 10_000  # rows that are looked at together
TUNED = ("clipped", "switch", "dros", "subgaussian", "subgaussian-dr")
DEFAULT_ESTIMATORS = ("ips", "snips", "dm", "dr")
PREFERRED = ("dr", "snips", "ips")  # the first of them that was asked for gives the value


@dataclass(frozen=True)
class Estimate:
    """Estimate of a policy's value by one estimator.

    Parameters
    ----------
    name : str
        Name of the estimator.
    value : float
        Estimate, NaN if no row has a model that it needs.
    deviation : float
        Standard error on a fixed log. For "dm" it includes the mean error of the reward model, as "dr"
        estimates it. NaN if the estimator uses fewer than two rows.
    knob : float or None
        Parameter of the estimator, such as the weight at which "clipped" clips. None if it has none.
    normal : Interval
        Limits value +- z deviations; the whole range of rewards if the deviation is NaN. A logger that learns, or a
        look before the end, makes them invalid.
    """

    name: str
    value: float
    deviation: float
    knob: float | None
    normal: Interval


@dataclass(frozen=True)
class Evaluation:
    """Evaluation of a policy on a log.

    Parameters
    ----------
    diagnosis : Diagnosis
        Diagnosis of the policy's weights.
    value : float or None
        Estimate by "dr" if requested, else by "snips", else by "ips", else by the first estimator (see `estimator`).
        None if the log is refused.
    limits : Interval
        Intersection of the limits that hold at any time, whatever the logger learned.
    estimates : dict of str to Estimate
        Estimates by name.
    intervals : dict of str to Interval
        Intervals by name. "bernstein", "clopper-pearson" and "cressie-read" are for a fixed sample. "betting" and
        "doubly-robust" hold at all times, together. "average" are limits of the average value so far. They replace
        these two if the value changes, if the largest weight is not known, or if the betting sequence excludes every
        value.
    logged : float
        Mean reward of the logger itself.
    level : float
        Confidence level of all limits.
    bound : float
        Largest possible weight.
    bound_known : bool
        True if `bound` is known to hold for all possible weights. If False, it is the largest weight seen, and no
        limits use it.
    sample : Sample or None
        Columns of the sample, None for `evaluate_many`.
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
        """Name of the estimator of `value`, which is "dr" if requested, else "snips", "ips", or the first."""
        return next((name for name in PREFERRED if name in self.estimates), next(iter(self.estimates), None))

    @property
    def verdict(self) -> str:
        """Verdict ("ok", "wide" or "refused") on what the log can tell of the policy's value.

        "wide" means too little data.
        """
        return self.diagnosis.verdict

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, without the sample.

        Returns
        -------
        dict
            Numbers, strings, lists and dictionaries, as the command line writes them.

            - "verdict", "reasons": verdict, and sentences that explain it.
            - "value", "estimator", "limits", "level": estimate, its estimator, limits at any time and their level.
            - "logged": mean reward of the logger.
            - "rows", "mean_weight", "effective_rows", "largest_weight", "weight_bound": numbers on the weights.
            - "estimates": by name of the estimator, "value", "deviation" (its standard error), "knob" (the estimator's
              parameter, such as the weight at which "clipped" clips, or None) and "normal" (limits).
            - "intervals": limits by name of the interval.
        """
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

    def plot(self, axes: Any = None) -> Any:
        """Draw the value with its limits, and write the numbers beside them.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, default None
            Axes to draw on. None makes a figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.

        Raises
        ------
        ModuleNotFoundError
            If matplotlib is not installed.
        """
        from onepass.evaluation.plots import draw_values

        return draw_values({"policy": self}, axes)

    def _repr_html_(self) -> str:
        d, value = self.diagnosis, "no value" if self.value is None else f"{self.value:.6g} by {self.estimator}"
        title = f"{self.verdict}: {value}, limits at any time {self.limits.lower:.6g} to {self.limits.upper:.6g}"
        rows: list[tuple[str, Any, str]] = [
            (name, one.value, f"+- {one.deviation:.2g}") for name, one in self.estimates.items()
        ]
        rows += [(name, "", f"{one.lower:.6g} to {one.upper:.6g}") for name, one in self.intervals.items()]
        worth = f"{d.rows:,} rows, worth {d.effective:,.0f} of the policy; logged {self.logged:.6g}"
        return make_html(title, ("estimator or limits", "value", "deviation or limits"), rows, (*d.reasons, worth))

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
    """Estimate what a policy would have earned per decision, from the log of another policy.

    *Anytime* limits are valid however often you look; other limits only for a fixed number of rows. The cost is O(n)
    for the estimates and for the limits. The limits take about 0.05 us a row of a long log.

    Parameters
    ----------
    log : Log or iterable of Log
        A log, or its blocks in their order. With blocks, the reward model learns block by block, and the policy must be
        a function, a bandit, or an array of shape (K,).
    policy : array, callable, bandit or object with `action_probabilities`
        Policy to evaluate. An array holds the probabilities of the arms: (K,) for all rows or (n, K) for each row, and
        (K, L) or (n, K, L) in a log with L slots. A function takes the contexts and returns probabilities (n, K). A
        bandit is not changed. `LearningPolicy(bandit)` learns each decision after it was evaluated.
    reward_range : tuple of float, default (0.0, 1.0)
        Least and largest possible reward. Limits rest on it.
    estimators : iterable of str, default ("ips", "snips", "dm", "dr")
        Names of estimators, from `onepass.evaluation.ESTIMATORS`. Weights are probability under the policy divided by
        probability under the logger. "ips" is the mean of weight times reward, "snips" divides it by the mean weight,
        "dm" is the mean reward predicted by a model, and "dr" corrects "dm" by weighted prediction errors. The
        parameter of an estimator that has one (such as "switch") is chosen by the method SLOPE (Su, Srinath and
        Krishnamurthy 2020).
    model : regressor, default None
        Reward model for estimators that use one: a scikit-learn regressor, `RidgeModel(...)`, or None for
        `RidgeModel()`, ridge regression per arm. A block is predicted by the model of all earlier blocks. The first
        block is divided into `folds` parts, and each part is predicted by the model of the earlier parts. So rows of
        the first part have no prediction; DM and other estimators that weights do not correct leave them out.
    level : float, default 0.95
        Confidence level of all limits, above 0 and below 1.
    weight_bound : float, default None
        Largest possible weight, at least 1. None computes it for each row from the logger's distributions, or from
        propensities that are 1 / K for all of K arms. If the log has neither, the bound is not known, and anytime
        limits are those of the average value.
    folds : int, default 5
        Number of parts, at least 2, into which a log, or the first block of a stream, is divided for the reward model.
    bootstrap : int, default 0
        Number of resamples for an interval "bootstrap" of the first estimator. 0 makes no such interval.
    seed : int, default 0
        Seed of the bootstrap, at least 0.
    average : bool, default False
        True if anytime limits are to be limits of the value averaged over the rows so far, for a world in which the
        value changes. Otherwise they assume that it does not. They always are for a policy that learns
        (`LearningPolicy`) or wrote the log (`LoggingPolicy`).

    Returns
    -------
    Evaluation
        Diagnosis, estimates and limits.

    Raises
    ------
    ValueError
        If a reward is outside of the range, or an argument does not agree with the log.
    """
    rewards, names = make_range(reward_range), tuple(estimators)
    for name in names:
        check.choice("estimators", name, ESTIMATORS)
    alpha, folds = 1.0 - open_fraction("level", level), check.integer("folds", folds, 2)
    modelled = any(get_estimator(name).models for name in names)
    parts, max_weights, bounds, support = list[Sample](), [], WeightBound(weight_bound), Support()
    known_arm = False
    for block, p, q, known in _blocks(log, policy, make_reward_model(model) if modelled else None, folds):
        check_rewards(block.rewards, rewards, sum(part.rows for part in parts))
        chosen = np.arange(len(block)), block.arms
        q = None if q is None else np.clip(q, rewards.least, rewards.largest)
        w = p[chosen] / block.propensities
        parts.append(make_sample(w, block.rewards, *(() if q is None else (q[chosen], (p * q).sum(1), known))))
        max_weights.append(bounds.update(block, p, w))
        support.add(block, p)
        known_arm = known_arm or has_arm(policy, block)
    if not parts:
        raise ValueError("log must have at least one row")
    if not known_arm:
        refuse_missing_arm(policy)
    sample = Sample(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    average = bool(average) or policy_changes(policy)
    known_weights = [one for one in max_weights if one is not None]
    largest = np.concatenate(known_weights) if len(known_weights) == len(max_weights) else None
    return summarize_sample(
        sample, largest, rewards, names, alpha, bounds, support.mass / sample.rows, bootstrap, seed, average
    )


def _blocks(
    log: Log | Iterable[Log], policy: Any, model: Any, folds: int
) -> Iterator[tuple[Log, np.ndarray, np.ndarray | None, np.ndarray | None]]:
    """Yield blocks, each with the policy's probabilities (n, K), predicted rewards (n, K), and rows with a prediction.

    The model that predicts a block has learned only earlier blocks; the first block is predicted in `folds` parts. The
    last item is a mask (n,).
    """
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
    """Compute the diagnosis, estimates and limits of a sample.

    `max_weights` (n,) are the largest possible weights of the rows, None if not known. `missing` is the mean
    probability that the policy gives to arms that the logger never chose. `average` is True if the value changes.
    `rewards` is the range of rewards, `names` are the estimators, `alpha` is the error probability of the limits, and
    `bound` gives the largest possible weight. `bootstrap` is the number of resamples, and `seed` their seed.
    """
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
    """Return the estimator `name`; its knob, if it has one, is chosen by SLOPE on the rows in `sample`."""
    return tune_estimator(sample, name) if name in TUNED else get_estimator(name)


def _estimate(one: Estimator, sample: Sample, rewards: Range, alpha: float) -> Estimate:
    """Compute value, deviation and limits of estimator `one` on a sample.

    The limits are those of the normal distribution at level 1 - alpha, and `rewards` is the range of rewards.
    """
    knob = one.knob if one.name in TUNED else None
    value, deviation = one.value(sample), one.deviation(sample)
    return Estimate(one.name, value, deviation, knob, intervals.normal_interval(value, deviation, rewards, alpha))


def moment_intervals(m: Moments, rewards: Range, alpha: float) -> dict[str, Interval]:
    """Return confidence intervals at level 1 - `alpha` for a fixed number of rows, by name.

    The names are "bernstein", "clopper-pearson" and "cressie-read". `m` holds the moments of weights and rewards, and
    `rewards` is the range of possible rewards.
    """
    return {
        "bernstein": intervals.bernstein(m, rewards, alpha),
        "clopper-pearson": intervals.clopper_pearson(m, rewards, alpha),
        "cressie-read": intervals.cressie_read(m, rewards, alpha),
    }


def open_fraction(name: str, value: Any) -> float:
    """Return `value` as a float, or raise ValueError, which names the argument `name`, unless 0 < value < 1."""
    number = check.fraction(name, value)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name} must be above 0 and below 1, got {check.quote(value)}")
    return number
