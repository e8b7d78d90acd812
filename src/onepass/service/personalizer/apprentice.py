"""Metrics of apprentice mode: how often the model agrees with the caller's choice, and the rewards of those decisions.

A decision is imitated if the model's most probable action is the one that the caller showed.
"""

from typing import Any

import numpy as np

from onepass.log.records import Decision, Join
from onepass.service.loop import Loop
from onepass.service.personalizer.time_index import seq_before
from onepass.service.personalizer.times import format_time


def apprentice_metrics(loop: Loop, since: int) -> dict[str, Any]:
    """Return how often the model's best arm was shown, and the rewards of these decisions, in Personalizer's form.

    Only decisions since the time `since`, in microseconds, whose final rewards have come are counted. The keys are
    "startTime", "lastProcessedEventTime", "numberOfEvents", "numberOfImitatedEvents", "sumOfRewards" and
    "sumOfImitatedRewards".
    """
    events, imitated, rewards, earned, last = 0, 0, 0.0, 0.0, since
    waiting: dict[str, bool] = {}
    for record in loop.store.read(seq_before(loop.store, since), None, ("decision", "join"), loop.name):
        if isinstance(record, Decision) and record.shown is not None and record.probabilities is not None:
            waiting[record.id] = int(np.argmax(record.probabilities)) == record.shown[0]
        elif isinstance(record, Join) and record.id in waiting:
            value, same = sum(reward or 0.0 for reward in record.rewards), waiting.pop(record.id)
            events, imitated = events + 1, imitated + same
            rewards, earned, last = rewards + value, earned + same * value, record.time
    return {
        "startTime": format_time(since), "lastProcessedEventTime": format_time(last), "numberOfEvents": events,
        "numberOfImitatedEvents": imitated, "sumOfRewards": rewards, "sumOfImitatedRewards": earned,
    }  # fmt: skip
