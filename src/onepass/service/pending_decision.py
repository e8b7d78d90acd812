"""A decision that waits for its outcomes until its deadline."""

from collections.abc import Callable
from typing import Any

from onepass.log.records import CORRECTIONS, Activation, Decision, Join, Outcome
from onepass.service.drawn_deadline import draw_deadline, is_conversion
from onepass.service.late_rewards import EARLY
from onepass.service.settings import LoopSettings

OUTCOMES = 10_000  # of a decision that count; further ones stay in the log
EARLY_OUTCOMES = 1_000  # of an id without a decision that are kept
DUE = "due"  # where a decision says its deadline (extra)


class PendingDecision:
    """Decision that waits for outcomes.

    - first: sequence number of the first record about the decision.
    - subject: user whom the decision is about.
    - outcomes: pairs (slot, value) of rewards, in order.
    - made: time of the decision.
    - due: deadline; later outcomes do not count.
    - named: outcomes beside the reward, (slot, name, value).
    - parked: True if only its deadline is in memory, in the backlog (backlog.py).
    - sent: True if its final rewards were returned to be stored.
    - record: record of the decision if it was read from the log to be joined now, else None.
    """

    __slots__ = (
        "active", "due", "first", "made", "named", "outcomes", "parked", "record", "sent", "seq", "slots", "subject",
    )  # fmt: skip

    def __init__(self, record: Decision, due: int) -> None:
        self.seq = self.first = record.seq
        self.due, self.slots, self.active = due, len(record.places), not record.deferred
        self.subject, self.made = record.subject, record.time
        self.outcomes: list[tuple[int | None, float]] = []
        self.named: list[tuple[int | None, str, float]] = []
        self.parked = self.sent = False
        self.record: Decision | None = None

    def count(self, outcome: Outcome) -> str:
        """Add an outcome to the decision if it counts, and return the outcome's category.

        The category is "in time", "late", "of no slot" or "too many".
        """
        if outcome.time > self.due:
            return "late"
        if outcome.slot is not None and outcome.slot >= self.slots:
            return "of no slot"
        if len(self.outcomes) + len(self.named) >= OUTCOMES:
            return "too many"
        if outcome.name is not None:
            self.named.append((outcome.slot, outcome.name, outcome.value))
            return "in time"
        self.outcomes.append((outcome.slot, outcome.value))
        return "in time"

    def hasten(self, outcome: Outcome, settings: LoopSettings) -> bool:
        """Move the deadline to the time of an outcome that is a conversion in time; return True if it moved."""
        time = max(outcome.time, self.made)
        if not self.active or time >= self.due or not is_conversion(outcome.value, settings):
            return False
        self.due = time
        return True


def restore_decision(
    about: list[Any], settings_at: Callable[[int], LoopSettings], due: int | None = None
) -> PendingDecision | None:
    """Restore a waiting decision from its records, or return None if it no longer waits for outcomes.

    `about` are its records in order. `settings_at` returns the settings at a sequence number. `due` is its deadline
    (default None: computed by `deadline`).
    """
    decision = next((one for one in about if isinstance(one, Decision)), None)
    if decision is None or any(isinstance(one, Join) and one.how not in CORRECTIONS for one in about):
        return None
    waiting = PendingDecision(decision, deadline(decision, settings_at(decision.seq)) if due is None else due)
    outcomes = [one for one in about if isinstance(one, Outcome)]
    early = [one for one in outcomes if one.seq < decision.seq][-EARLY_OUTCOMES:]
    for outcome in (one for one in early if one.time >= decision.time - EARLY):
        waiting.first = min(waiting.first, outcome.seq)
        if waiting.count(outcome) == "in time":
            waiting.hasten(outcome, settings_at(outcome.seq))
    for outcome in (one for one in outcomes if one.seq > decision.seq):
        if waiting.count(outcome) == "in time":
            waiting.hasten(outcome, settings_at(outcome.seq))
    waiting.active |= any(
        isinstance(one, Activation) and one.seq > decision.seq and one.time <= waiting.due for one in about
    )
    return waiting


def deadline(record: Decision, settings: LoopSettings) -> int:
    """Return the time until which outcomes count for a decision, in microseconds."""
    said = (record.extra or {}).get(DUE)
    return said if isinstance(said, int) else draw_deadline(record.id, record.time, settings)
