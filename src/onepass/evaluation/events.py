"""Conversion of the events of a log, of onepass or of other programs, into the columns that evaluation reads.

A row is a decision, or one slot of it. A deferred decision that was never activated is left out. A decision without an
outcome earned the default reward. An arm that was shown without a draw has propensity 1. Arms are indices among those
offered. If decisions offer different numbers of arms, rows are padded with arms that were not offered and had no
chance.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from onepass.evaluation.log import Log
from onepass.exploration.random_split import hash_uniform
from onepass.foundation import check

ROUNDED = 1e-9  # of a probability: files give 1 less it

# place, reward, propensity, chances, features, slot, how many arms were offered, their names, the request
Row = tuple[int, float, float, Any, Any, int, int, list[Any] | None, Any]
Report = Callable[[str, str], object]  # the name of a decision that is left out, and why


def logs_from_events(
    events: Iterable[Any],
    *,
    n_arms: int | None = None,
    features: Callable[[Any], Any] | None = None,
    default: float = 0.0,
    size: int = 10_000,
    keep_probability: float | None = None,
    bad: str = "refuse",
    report: Report | None = None,
) -> Iterator[Log]:
    """Yield blocks of a log from a stream of events.

    Parameters
    ----------
    events : iterable of onepass.log.Event
        Decisions with their outcomes.
    n_arms : int, default None
        Number of arms K, at least 1. None takes the largest number offered so far, which may grow from block to block.
    features : callable, default None
        Function of a decision's `contexts` that returns its row (d,), or the rows of its arms (K, d). None takes the
        contexts if they are numbers. Contexts that are dictionaries become `requests` of the `Log`, except JSON that
        was read with `lazy`.
    default : float, default 0.0
        Reward of a decision without an outcome, finite.
    size : int, default 10_000
        Rows per block, at least 1.
    keep_probability : float, default None
        Probability with which all decisions are to have been kept, above 0 and at most 1. Decisions that were kept with
        a higher probability are thinned by a random draw that depends on the decision's id. None thins nothing.
    bad : str, default "refuse"
        "refuse" raises ValueError for a decision that cannot be evaluated, "skip" leaves it out.
    report : callable, default None
        Called with the id of each decision that is left out, and the reason.

    Yields
    ------
    Log
        Block of at most `size` rows.

    Raises
    ------
    ValueError
        With the decision's id, if a decision has no propensity or an outcome has no slot although there are several.
        Also if lines were kept with different probabilities and `keep_probability` is None.
    """
    size, default = check.integer("size", size, 1), check.real("default", default)
    most = 0 if n_arms is None else check.integer("n_arms", n_arms, 1)
    keep = None if keep_probability is None else check.fraction("keep_probability", keep_probability)
    events_filter = _EventFilter(keep)
    skip = check.choice("bad", bad, ("refuse", "skip")) == "skip"
    rows = (
        row for event in events_filter.select(events) for row in _rows_or_none(event, features, default, skip, report)
    )
    while block := list(islice(rows, size)):
        most = max(most, max(max(row[0] + 1, row[6]) for row in block))
        if n_arms is not None and most > n_arms:
            raise ValueError(f"n_arms must be at least {most}, the most that were offered, got {n_arms}")
        for row in block:
            events_filter.check_features(row[4])
        yield _log_from_rows(block, most)


class _EventFilter:
    """Filter that checks if decisions agree in features and keep probability, and thins them to one keep probability.

    The keep probability of a line is the probability with which it was kept when the log was written. If all lines were
    kept with one probability, they are a fair sample of the log, and estimates and limits hold for it. If clicks were
    kept more often than the rest, a line that was kept with probability k stays with probability keep_probability / k.
    With keep_probability None nothing is thinned.
    """

    def __init__(self, keep_probability: float | None = None) -> None:
        self.features: bool | None = None
        self.first_probability: float | None = None
        self.keep_probability = keep_probability

    def select(self, events: Iterable[Any]) -> Iterator[Any]:
        """Yield the events that stay.

        Raises ValueError if keep probabilities differ, or if one is below the requested probability.
        """
        for event in events:
            passed, identity = event.decision.passed, event.decision.id
            if self.keep_probability is not None:
                if passed < self.keep_probability * (1.0 - ROUNDED):
                    raise ValueError(
                        f"keep_probability must be at most {passed:g}, with which decision {identity} was kept"
                    )
                if hash_uniform(identity, b"kept") * passed < self.keep_probability:
                    yield event
                continue
            if self.first_probability not in (None, passed):
                raise ValueError(
                    f"decision {identity} was kept with probability {passed:g}, others with "
                    f"{self.first_probability:g}: a mean of such lines is not that of the log; "
                    "give keep_probability, the least of them"
                )
            self.first_probability = passed
            yield event

    def check_features(self, features: Any) -> None:
        """Raise ValueError if only some rows have features."""
        if self.features not in (None, features is not None):
            raise ValueError("features must be in all decisions or in none")
        self.features = features is not None


def _rows_or_none(
    event: Any, features: Callable[[Any], Any] | None, default: float, skip: bool, report: Report | None
) -> list[Row]:
    """Return the rows of an event, or no rows if it is left out.

    `features` maps a context to numbers, and `default` is the reward of a slot without one. If `skip` is True, an event
    that cannot be read is left out, and `report` is called with its id and the error.
    """
    try:
        return list(event_rows(event, features, default))
    except ValueError as error:
        if not skip:
            raise
        if report is not None:
            report(event.decision.id, str(error))
        return []


def event_rows(event: Any, features: Callable[[Any], Any] | None, default: float) -> Iterator[Row]:
    """Yield the rows of an event: one for each slot of the decision, with its arm, propensity, reward and features.

    `features` maps a decision's contexts to numbers; None takes contexts that are numbers. `default` is the reward of a
    slot without an outcome. Raises ValueError if the event cannot be evaluated.
    """
    decision = event.decision
    if decision.deferred and event.activation is None:
        return
    places = decision.places if decision.shown is None else decision.shown
    if decision.propensities is None and decision.shown is None:
        raise ValueError(f"decision {decision.id} was logged without a propensity and cannot be evaluated")
    chances = decision.slots if decision.slots is not None else [decision.probabilities]
    offered = next((len(one) for one in (chances[0], decision.offered, _actions(decision.contexts)) if one), 0)
    request = None if features is not None else _request(decision)
    rows = decision.contexts if request is None else request.context
    found = _numeric_contexts(rows) if features is None else np.asarray(features(decision.contexts), float)
    rewards: list[float | None] = [None] * len(places)
    for outcome in event.outcomes:
        if outcome.slot is None and len(places) > 1:
            raise ValueError(f"decision {decision.id} has several slots, and an outcome of none of them")
        rewards[outcome.slot or 0] = (rewards[outcome.slot or 0] or 0.0) + outcome.value
    for slot, place in enumerate(places):
        own = chances[slot] if slot < len(chances) else None
        propensity = decision.propensities[slot] if decision.shown is None else 1.0
        if decision.showing is not None:
            own, propensity = decision.showing, decision.showing[place]
        elif decision.shown is not None:
            own = None if own is None else [float(at == place) for at in range(len(own))]
        if not propensity > 0.0:
            raise ValueError(
                f"decision {decision.id} was logged with propensity {propensity}: what has none is not drawn"
            )
        reward = rewards[slot]
        paid = default if reward is None else reward
        yield place, paid, propensity, own, found, slot, offered, decision.offered, request


def _actions(contexts: Any) -> Any:
    """Return the list of actions, the field `_multi`, in features from another program; None if there is none."""
    return contexts.get("_multi") if isinstance(contexts, dict) else None


def _request(decision: Any) -> Any:
    """Return the request of a decision if its contexts are records or its arms have names.

    Returns None if there are only rows of numbers, and for JSON that was not parsed.
    """
    from onepass.log.formats.requests import request_with_rows

    if isinstance(decision.contexts, dict | list):
        return request_with_rows(decision)
    return None


def _numeric_contexts(contexts: Any) -> np.ndarray | None:
    """Return contexts as an array if they are rows of numbers, else None."""
    if isinstance(contexts, list):
        try:
            return np.asarray(contexts, float)
        except (TypeError, ValueError):
            return None
    return None


def _log_from_rows(block: list[Row], arms: int) -> Log:
    """Return the log of a block of rows; `arms` is the number of arms of the log."""
    places, rewards, propensities, chances, features, slots, offered, offers, requests = zip(*block, strict=True)
    distributions, eligible, names = None, None, offers[0]
    if names is not None and (len(names) != arms or any(one is not names and one != names for one in offers)):
        names = None  # places have other arms in other decisions
    if all(one is not None for one in chances):
        distributions = np.minimum([[*one, *[0.0] * (arms - len(one))] for one in chances], 1.0)
    if min(offered) != arms and min(offered) > 0:
        eligible = np.arange(arms) < np.array(offered)[:, None]
    contexts = None
    if features[0] is not None:
        contexts = np.array([_pad_rows(one, arms) for one in features])
    return Log(
        arms=np.array(places), rewards=np.array(rewards), propensities=np.minimum(propensities, 1.0), n_arms=arms,
        contexts=contexts, slots=np.array(slots) if max(slots) else None, distributions=distributions,
        eligible=eligible, names=names, requests=None if any(one is None for one in requests) else requests,
    )  # fmt: skip


def _pad_rows(rows: np.ndarray, arms: int) -> np.ndarray:
    """Pad rows of arms (K, d) with zeros to (arms, d); a single row (d,), which describes the decision, stays."""
    return rows if rows.ndim == 1 else np.vstack([rows, np.zeros((arms - len(rows), rows.shape[1]))])
