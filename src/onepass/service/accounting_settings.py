"""Settings of what a loop accounts for: outcomes beside the reward, budgets, shares of arms, and a baseline.

[outcomes.dollars]
aggregation = "sum"                          # of several values of one decision; or "earliest"
prices = {small = 0.0002, large = 0.005}     # what arms usually cost; a request may say others
budget = {amount = 50.0, per = "day", zone = "Europe/Berlin"}

[outcomes.refund]
default = 0.0                                # of a decision without a value at its deadline
guardrail = {at_most = 1.02, upper = 1.0}    # times the baseline's mean

[shares]
least = 0.02                                 # of every arm; or arms = {large = {most = 0.1}}

[baseline]
arm = "old"                                  # or field = "current", file = "rule", or none: the first arm
loss = 0.05

[ab_test]
tolerance = 0.002                            # loss a decision, small enough not to matter
"""

from base64 import b64decode, b64encode
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from onepass.bandit.bandit import Bandit
from onepass.bandit.budget import Budget, Share
from onepass.bandit.outcomes import check_names
from onepass.bandit.pacing import check_price
from onepass.evaluation.ab_test import ABTest
from onepass.evaluation.baseline_promise import BaselinePromise
from onepass.evaluation.harm_test import AtLeast, AtMost
from onepass.evaluation.reward_range import Range
from onepass.foundation import check, files
from onepass.foundation.check import quote
from onepass.service.validation import suggest_name

LARGEST = 1e30  # reward, outcome: what a model keeps of them, powers and sums of powers, is finite
LARGEST_RULE = 1 << 20  # characters of a saved bandit
NONE = "none"  # the default of what nothing shall be learned of: TOML has no null


class BudgetSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a limit on what decisions spend, such as the cost of the arms shown.

    - amount: amount above 0 that may be spent, in the unit of the outcome.
    - per: period of the amount: "decision" (default), "day", which begins at local midnight, or "horizon".
    - horizon: number of decisions in the period "horizon" (default: none).
    - zone: time zone of a day (default "UTC").
    - window: number of consecutive decisions over which spending is limited (default 200).
    - leash: fraction by which the decisions of a window may exceed their part of the budget. With the period "day" it
      is the fraction by which spending may be ahead of the time of day (default 0.01).
    """

    amount: float
    per: Literal["decision", "day", "horizon"] = "decision"
    horizon: int | None = None
    zone: str = "UTC"
    window: int = 200
    leash: float = 0.01

    def budget(self) -> Budget:
        """Return these settings as a `Budget`. Raises ValueError for a wrong value."""
        return Budget(self.amount, self.per, self.horizon, self.zone, self.window, self.leash)


class Guardrail(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limit of the mean of an outcome, relative to its mean under the baseline.

    - at_most, at_least: largest or smallest ratio to the baseline's mean, above 0; one of the two is given.
    - upper: largest value of the outcome, above 0 (default 1.0); the smallest is 0.
    """

    at_most: float | None = None
    at_least: float | None = None
    upper: float = 1.0

    def claim(self) -> AtMost | AtLeast:
        """Return the guardrail as `AtMost` or `AtLeast` of `onepass.evaluation`; raise ValueError for a wrong value."""
        if (self.at_most is None) == (self.at_least is None):
            raise ValueError("give one of at_most and at_least")
        if self.at_most is not None:
            return AtMost(self.at_most, self.upper)
        return AtLeast(self.at_least, self.upper)  # type: ignore[arg-type]


class OutcomeSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of an outcome beside the reward, such as a cost or a latency.

    - aggregation: how several values of one decision become one, "earliest" (default) or "sum".
    - default: value, up to 1e30 in size, for a decision that has none at its deadline; with "none" (default) nothing is
      learned from it.
    - prices: usual cost of each arm, by name, above 0 (default: not known).
    - budget: limit on what decisions may spend (default: none).
    - guardrail: claim about the mean of the outcome (default: none).
    """

    aggregation: Literal["earliest", "sum"] = "earliest"
    default: float | str = NONE
    prices: dict[str, float] = {}
    budget: BudgetSettings | None = None
    guardrail: Guardrail | None = None


class ShareSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Smallest and largest share of the decisions that an arm may get.

    - least: smallest share, from 0 (default) to 1.
    - most: largest share, at least `least`, up to 1 (default).
    """

    least: float = 0.0
    most: float = 1.0


class Shares(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Smallest and largest shares of the decisions that arms may get.

    - least, most: smallest and largest share of every arm (defaults 0.0 and 1.0).
    - arms: shares of single arms by name, instead of `least` and `most`.
    """

    least: float = 0.0
    most: float = 1.0
    arms: dict[str, ShareSettings] = {}

    def shares(self) -> Share | dict[Hashable, Share]:
        """Return these settings as `Share`, one for all arms or by arm. Raises ValueError for a wrong value."""
        if self.arms:
            return {arm: Share(one.least, one.most) for arm, one in self.arms.items()}
        return Share(self.least, self.most)


class Baseline(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a baseline: the decision rule in use today, whose rewards the loop must nearly reach.

    - arm: name of the arm that the rule always shows.
    - field: field of the context, a record, that names the arm of the rule.
    - saved: a saved bandit that draws the arm of the rule and does not learn, as base64 text of its bytes, up to 1 MiB.
      A settings file has `file` instead, the path of the saved bandit relative to the settings file.
    - loss: largest fraction of the rule's rewards that may be lost (default 0.05).
    - by: "evidence" (default) counts rewards alone. "model" trusts the bandit's predictions until a test rejects them,
      so the bandit soon decides more often.
    - certainty: probability that no more is lost at any time (default 0.95).
    - alpha: probability that any guardrail is reported as broken although it is not (default 0.05).

    `loss`, `certainty` and `alpha` are above 0 and below 1. Without `arm`, `field` and `saved` the rule shows the first
    arm of the request that is not excluded.
    """

    arm: str | None = None
    field: str | None = None
    saved: str | None = None
    by: Literal["evidence", "model"] = "evidence"
    loss: float = 0.05
    certainty: float = 0.95
    alpha: float = 0.05


class ABTestSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the report on which arm is better, by how much, and whether the loop may stop comparing.

    - tolerance: loss of reward per decision that is small enough not to matter, at least 0.0 (default).
    - certainty: probability that all limits hold at all times, above 0 and below 1 (default 0.95).
    """

    tolerance: float = 0.0
    certainty: float = 0.95


def has_budgets(settings: Any) -> bool:
    """Return True if a loop has budgets or shares."""
    return settings.shares is not None or any(one.budget is not None for one in settings.outcomes.values())


def needs_ledger(settings: Any) -> bool:
    """Return True if decisions of a loop depend on what was decided and spent before, which a ledger records."""
    return settings.baseline is not None or has_budgets(settings)


def budgets_of(settings: Any) -> dict[str, Budget]:
    """Return the budgets in the settings of a loop, by the name of the outcome that each limits."""
    return {name: one.budget.budget() for name, one in settings.outcomes.items() if one.budget is not None}


def make_promise(settings: Any) -> BaselinePromise:
    """Return the object that keeps a loop's rewards near the baseline's rewards; it has counted no decisions yet.

    `settings` are the `LoopSettings` of a loop with a baseline.
    """
    rails = {name: one.guardrail.claim() for name, one in settings.outcomes.items() if one.guardrail is not None}
    base = settings.baseline
    return BaselinePromise(base.loss, base.certainty, Range(*settings.reward.range), rails, base.alpha, base.by)


def saved_rule(settings: Any) -> Bandit | None:
    """Return the saved bandit that is the baseline of a loop, None if there is none.

    Raises ValueError if it is damaged, or no bandit.
    """
    base = settings.baseline
    if base is None or base.saved is None:
        return None
    if len(base.saved) > LARGEST_RULE:
        raise ValueError(f"baseline.saved must have at most {LARGEST_RULE:,} characters, got {len(base.saved):,}")
    try:
        found = files.from_bytes(b64decode(base.saved, validate=True))
    except (ValueError, TypeError) as error:
        raise ValueError(f"baseline.saved must be the bytes of a saved bandit in base64: {error}") from None
    if not isinstance(found, Bandit):
        raise ValueError(f"baseline.saved must be a saved bandit, got {type(found).__name__}")
    return found


def read_rule(found: Any, folder: Path) -> None:
    """Replace the path `file` of the baseline in `found`, plain settings, by the field `saved` with the file's content.

    The file is a saved bandit, and its path is relative to `folder`. Raises ValueError if the file cannot be read.
    """
    base = found.get("baseline") if isinstance(found, dict) else None
    if isinstance(base, dict) and isinstance(base.get("file"), str):
        try:
            base["saved"] = b64encode((folder / base.pop("file")).read_bytes()).decode()
        except OSError as error:
            raise ValueError(f"baseline.file cannot be read: {error}") from None


def make_ab_test(settings: Any) -> ABTest:
    """Return a new A/B test with the settings of a loop. Raises ValueError for a wrong value."""
    wanted = settings.ab_test
    return ABTest(None, settings.arms, wanted.tolerance, wanted.certainty, reward_range=settings.reward.range)


# ---- errors ----


def errors(settings: Any, has_records: bool) -> Iterator[str]:
    """Yield a sentence for every wrong value in the settings of outcomes, budgets, shares, baseline and A/B test.

    `has_records` is True if contexts are records (dictionaries).
    """
    try:
        check_names([*settings.outcomes] or None)
    except ValueError as error:
        yield f"{error}"
    for name, one in settings.outcomes.items():
        if not 1 <= len(name) <= settings.limits.id:
            yield f"names of outcomes must have from 1 to {settings.limits.id} characters, got {quote(name)}"
        yield from _outcome_errors(f"outcomes.{name}", one, settings)
    if settings.shares is not None:
        yield from _share_errors(settings.shares, settings)
    if settings.baseline is not None:
        yield from _baseline_errors(settings.baseline, settings, has_records)
    if settings.ab_test is not None:
        yield from _ab_test_errors(settings)
    if needs_ledger(settings) and settings.mode != "online":
        yield f'mode must be "online" where there are budgets, shares or a baseline, got {quote(settings.mode)}'


def _ab_test_errors(settings: Any) -> Iterator[str]:
    if isinstance(settings.reward.default, str):
        yield "ab_test must be left out where reward.default is none: rewards that are missing would bias it"
    if not 2 <= len(settings.arms) <= 50:
        yield f"ab_test must be left out unless arms has from 2 to 50 names, got {len(settings.arms)}"
        return
    try:
        make_ab_test(settings)
    except ValueError as error:
        yield f"ab_test: {error}"


def _unknown_arms(where: str, names: Any, settings: Any) -> Iterator[str]:
    for name in names:
        if settings.arms and name not in settings.arms:
            yield f"{where} must name arms of arms, got {quote(name)}{suggest_name(name, settings.arms)}"


def _outcome_errors(where: str, one: OutcomeSettings, settings: Any) -> Iterator[str]:
    if isinstance(one.default, str) and one.default != NONE:
        yield f'{where}.default must be a number, or "{NONE}", got {quote(one.default)}'
    if isinstance(one.default, float) and not abs(one.default) <= LARGEST:
        yield f"{where}.default must be a finite number up to {LARGEST:.0e}, got {one.default}"
        return
    prices = [*one.prices.values()]
    yield from _unknown_arms(f"{where}.prices", one.prices, settings)
    for arm, price in one.prices.items():
        try:
            check.positive(f"{where}.prices.{arm}", price)
        except ValueError as error:
            yield f"{error}"
            return
    if one.budget is not None:
        try:
            budget = one.budget.budget()
        except ValueError as error:
            yield f"{where}.budget: {error}"
            return
        for arm, price in one.prices.items():
            try:
                check_price(f"{where}.prices.{arm}", price, budget)
            except ValueError as error:
                yield f"{error}"
                return
        if isinstance(one.default, float) and one.default < 0.0:
            yield f"{where}.default must be at least 0, for it is spent from a budget, got {one.default}"
        if settings.arms and all(arm in one.prices for arm in settings.arms) and min(prices) > budget.decision_amount:
            arm = min(one.prices, key=one.prices.__getitem__)
            yield (
                f"{where}.budget must be at least the price of the cheapest arm, {quote(arm)} at {one.prices[arm]:g}, "
                f"else no arm fits, got {budget.decision_amount:g}{' a day' if budget.is_daily else ' a decision'}"
            )
    if one.guardrail is not None:
        try:
            claim = one.guardrail.claim()
        except ValueError as error:
            yield f"{where}.guardrail: {error}"
            return
        if isinstance(one.default, float) and not 0.0 <= one.default <= claim.upper:
            yield f"{where}.default must be from 0 to guardrail.upper = {claim.upper:g}, got {one.default}"
        if settings.baseline is None:
            yield f"{where}.guardrail must be left out without a baseline: it compares with the baseline's mean"


def _share_errors(shares: Shares, settings: Any) -> Iterator[str]:
    if not settings.outcomes:
        yield "shares must be left out without outcomes: name one, such as [outcomes.dollars]"
    if shares.arms and (shares.least, shares.most) != (0.0, 1.0):
        yield "shares must have least and most of every arm, or arms, not both"
        return
    yield from _unknown_arms("shares.arms", shares.arms, settings)
    try:
        found = shares.shares()
    except ValueError as error:
        yield f"shares: {error}"
        return
    if isinstance(found, Share):
        each = [found] * len(settings.arms)
    else:
        each = [found.get(arm, Share()) for arm in settings.arms] or [*found.values(), Share()]
    least, most = sum(one.least for one in each), sum(one.most for one in each)
    if least > 1.0:
        yield f"shares.least of all arms must be at most 1 together, got {least:g}"
    if each and most < 1.0:
        yield f"shares.most of all arms must be at least 1 together, got {most:g}"


def _baseline_errors(baseline: Baseline, settings: Any, has_records: bool) -> Iterator[str]:
    if sum(one is not None for one in (baseline.arm, baseline.field, baseline.saved)) > 1:
        yield "baseline must have one of arm, field and file"
    if baseline.field is not None and not has_records:
        yield "baseline.field must be left out where contexts are numbers: it is of a record (features.records)"
    if baseline.arm is not None:
        yield from _unknown_arms("baseline.arm", [baseline.arm], settings)
    if settings.shares is not None:
        yield "baseline must be left out beside shares: they are of all decisions, and the baseline makes many of them"
    try:
        saved_rule(settings)
    except ValueError as error:
        yield f"{error}"
    try:
        BaselinePromise(baseline.loss, baseline.certainty, Range(0.0, 1.0), {}, baseline.alpha)
    except ValueError as error:
        yield f"baseline: {error}"
