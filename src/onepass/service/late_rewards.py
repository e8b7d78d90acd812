"""Corrections for late outcomes: the reward of a decision by all its outcomes, minus the reward that was learned.

    difference = aggregate(outcomes in time and late) - (reward of the join + differences before)      of each slot

The result equals that of a later deadline. The aggregation `earliest` changes only if there was no outcome in time.
Slots without a reward were not learned, and stay so. The difference is a record of the log (Join, how = correction), so
a replay includes it. Censored rewards count until `reward.wait`, whenever their decision was joined
(drawn_deadline.py).
"""

import math
import statistics
from collections.abc import Callable, Iterable
from typing import Any

from onepass.log.records import SECOND, Decision, Join, Outcome
from onepass.service.settings import LoopSettings

EARLY = 120 * SECOND  # microseconds for which outcomes wait for their decision

AGGREGATE: dict[str, Callable[[list[float]], float]] = {
    "earliest": lambda values: values[0],
    "sum": math.fsum,
    "mean": lambda values: math.fsum(values) / len(values),
    "median": statistics.median,
    "min": min,
    "max": max,
}


def aggregate_named(
    values: Iterable[tuple[int | None, str, float]], slots: int, settings: LoopSettings, defaults: bool = True
) -> list[dict[str, float] | None] | None:
    """Return, for each slot, a dictionary of its outcomes beside the reward, or None; None alone if no slot has any.

    `values` are triples (slot, name, value) in order, with None as the slot for a value of all slots. `slots` is the
    number of slots. If `defaults` is True, outcomes without a value get the default value of the settings.
    """
    given, found = list(values), list[dict[str, float] | None]()
    for slot in range(slots):
        each: dict[str, float] = {}
        for name, one in settings.outcomes.items():
            known = [value for of, named, value in given if named == name and of in (None, slot)]
            if known:
                each[name] = AGGREGATE[one.aggregation](known)
            elif defaults and isinstance(one.default, float):
                each[name] = one.default
        found.append(each or None)
    return found if any(found) else None


def late_outcomes(about: Iterable[Any], settings: LoopSettings) -> tuple[list[dict[str, float] | None], int] | None:
    """Return the outcomes beside the reward that came too late to be learned, and the number of all outcomes.

    The first value has a dictionary of outcomes, or None, for each slot. The result is None if nothing came late.
    `about` holds all records of a decision in the order of the log. `settings` are the loop's settings.
    """
    records = list(about)
    decision = next((one for one in records if isinstance(one, Decision)), None)
    joins = [one for one in records if isinstance(one, Join)]
    if decision is None or not joins:
        return None
    came = [one for one in records if isinstance(one, Outcome) and one.time >= decision.time - EARLY]
    named = [(one.slot, one.name, one.value) for one in came if one.name is not None]
    found = aggregate_named(named, len(decision.places), settings, defaults=False)
    for slot, each in enumerate(found or ()):
        known = [join.outcomes[slot] or {} for join in joins if join.outcomes is not None]
        left = {name: value for name, value in (each or {}).items() if not any(name in one for one in known)}
        found[slot] = left or None  # type: ignore[index]
    return (found, len(came)) if found is not None and any(found) else None


def correct_rewards(about: Iterable[Any], settings: LoopSettings) -> tuple[list[float | None], int] | None:
    """Return by how much the learned reward of each slot must change after late outcomes, and the number of outcomes.

    A change is the reward computed from all outcomes minus the reward learned. It is None for a slot without outcomes.
    The result is None if nothing changes or nothing was learned. `about` holds all records of a decision in the order
    of the log. `settings` are the loop's settings.
    """
    records, rule = list(about), settings.reward
    decision = next((one for one in records if isinstance(one, Decision)), None)
    joins = [one for one in records if isinstance(one, Join)]
    if decision is None or not joins:
        return None
    outcomes = [
        one for one in records if isinstance(one, Outcome) and one.name is None and one.time >= decision.time - EARLY
    ]
    if rule.censored:
        last = decision.time + round(rule.wait * SECOND)
        outcomes = [one for one in outcomes if one.time <= last]
    differences = list[float | None]()
    for slot, learned in enumerate(joins[0].rewards):
        values = [one.value for one in outcomes if one.slot in (None, slot)]
        if learned is None or not values:
            differences.append(None)
            continue
        value = AGGREGATE[rule.aggregation](values)
        known = math.fsum(join.rewards[slot] or 0.0 for join in joins)
        differences.append(min(max(value, rule.range[0]), rule.range[1]) - known)
    return (differences, len(outcomes)) if any(differences) else None
