"""Corrections for late outcomes: the reward of a decision by all its outcomes, less the reward that was learned.

    difference = aggregate(outcomes in time and late) - (reward of the join + differences before)      of each slot

The result is that of a later deadline. `earliest` changes only if there was no outcome in time. Slots without a reward
were not learned, and stay so. The difference is a record of the log (Join, how = correction), so a replay knows it.
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


def correct_rewards(about: Iterable[Any], settings: LoopSettings) -> tuple[list[float | None], int] | None:
    """Return the difference of each slot and the number of outcomes; None if nothing changes or nothing was learned.

    about: all records of a decision, in the order of the log; settings: of the loop.
    """
    records, rule = list(about), settings.reward
    decision = next((one for one in records if isinstance(one, Decision)), None)
    joins = [one for one in records if isinstance(one, Join)]
    if decision is None or not joins:
        return None
    outcomes = [one for one in records if isinstance(one, Outcome) and one.time >= decision.time - EARLY]
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
