"""Arrays of Open Bandit Pipeline, `bandit_feedback`, and files of them (`.npz`, without pickles).

n_rounds, n_actions, action (n,), reward (n,), pscore (n,), position (n,) or None, context (n, d) or None

Their names and shapes are those of Open Bandit Pipeline; n is the number of rounds.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from onepass.foundation import check
from onepass.log.formats.lines import Report, open_atomic
from onepass.log.records import Decision, Event, Outcome

NAMES = ("action", "reward", "pscore")


def events_of(
    feedback: dict[str, Any], *, loop: str = "imported", bad: str = "refuse", report: Report | None = None
) -> Iterator[Event]:
    """Yield the events of a `bandit_feedback` of Open Bandit Pipeline, a dictionary of arrays, row by row.

    Parameters
    ----------
    feedback : dict
        The arrays `action`, `reward` and `pscore` (n,), the number `n_actions`, and, if known, `context` (n, dim) and
        `position` (n,), which is kept in the field `extra` of the decision. Other keys are ignored.
    loop : str, default "imported"
        Name of the loop for its records.
    bad : {"refuse", "skip"}, default "refuse"
        "refuse" raises ValueError with the number of a bad row, from 1. "skip" leaves it out.
    report : callable, default None
        Is called with the number of each row left out and the reason.

    Yields
    ------
    Event
        The next event.
    """
    check.choice("bad", bad, ("refuse", "skip"))
    missing = [name for name in (*NAMES, "n_actions") if feedback.get(name) is None]
    if missing:
        raise ValueError(f"feedback must have {', '.join(missing)}, got {sorted(feedback)}")
    columns = [np.asarray(feedback[name]) for name in NAMES]
    optional = [feedback.get(name) for name in ("position", "context")]
    position, context = (None if one is None or np.asarray(one).ndim == 0 else np.asarray(one) for one in optional)
    rows, count = len(columns[0]), int(np.asarray(feedback["n_actions"]))
    if any(len(one) != rows for one in (*columns, position, context) if one is not None):
        raise ValueError(f"feedback must have {rows} rows in every array")
    for row in range(rows):
        arm, reward, p = (column[row].item() for column in columns)
        if not (0 <= arm < count and int(arm) == arm and 0.0 < p <= 1.0 and np.isfinite(reward)):
            if bad == "refuse":
                raise ValueError(f"row {row + 1}: action {arm}, reward {reward}, pscore {p} cannot be")
            if report is not None:
                report(row + 1, f"action {arm}, reward {reward}, pscore {p} cannot be")
            continue
        name = f"row {row + 1}"
        decision = Decision(
            loop=loop, time=0, id=name, places=[int(arm)], propensities=[float(p)], offered=list(range(count)),
            contexts=None if context is None else context[row].tolist(),
            extra=None if position is None else {"position": int(position[row])},
        )  # fmt: skip
        yield Event(decision, (Outcome(loop=loop, time=0, id=name, value=float(reward)),))


def feedback_of(events: Iterable[Event]) -> dict[str, Any]:
    """Return the `bandit_feedback` of Open Bandit Pipeline for events with one slot each.

    It has the numbers `n_rounds` and `n_actions`, and the arrays `action`, `reward`, `pscore`, `position` and `context`
    of n_rounds rows; the last two are None if the events have none.

    A decision without an outcome has the reward 0. Raises ValueError for several slots, for a decision without its
    propensity or without the arms that were offered, and for contexts in some events only.
    """
    found: dict[str, list[Any]] = {name: [] for name in (*NAMES, "position", "context")}
    count = 0
    for event in events:
        decision = event.decision
        offered = next((one for one in (decision.offered, decision.probabilities) if one is not None), None)
        if len(decision.places) != 1 or decision.propensities is None or offered is None:
            raise ValueError(
                f"decision {decision.id} must have one slot, its propensity and the arms that were offered"
            )
        count = max(count, len(offered))
        numbers = isinstance(decision.contexts, list)
        found["action"].append(decision.places[0])
        found["pscore"].append(decision.propensities[0])
        found["reward"].append(sum(one.value for one in event.outcomes))
        found["position"] += [position] if (position := (decision.extra or {}).get("position")) is not None else []
        found["context"] += [decision.contexts] if numbers else []
    rows = len(found["action"])
    if any(len(found[name]) not in (0, rows) for name in ("position", "context")):
        raise ValueError("positions and contexts must be in all events or in none")
    feedback: dict[str, Any] = {"n_rounds": rows, "n_actions": count}
    return feedback | {name: np.array(column) if column else None for name, column in found.items()}


def read(path: str | Path, **options: Any) -> Iterator[Event]:
    """Yield the events of a `.npz` file with the arrays of a `bandit_feedback`; takes the options of `events_of`."""
    with np.load(path, allow_pickle=False) as file:
        yield from events_of({name: file[name] for name in file.files}, **options)


def write(path: str | Path, events: Iterable[Event]) -> int:
    """Write events to a `.npz` file, which appears when it is complete, and return their number."""
    feedback = feedback_of(events)
    with open_atomic(path) as file:
        np.savez_compressed(
            file, allow_pickle=False, **{name: one for name, one in feedback.items() if one is not None}
        )
    return int(feedback["n_rounds"])
