"""Decisions of a store with the rewards that were learned for them, as events to evaluate.

Where a store holds joins, a decision's reward is that of its joins, and one without a join is left out: its outcomes
may be yet to come. Where it holds none, rewards are the sums of outcomes, as in files of others.
"""

from collections.abc import Iterator
from typing import Any


def events_from_store(store: Any, loop: str | None = None) -> Iterator[Any]:
    """Events of a store, as a stream. store: of `onepass.log`; loop: only this one (default None: all)."""
    from onepass.log import Activation, Event, Join, Outcome
    from onepass.log.exchange import paid

    joined = next(iter(store.read(kinds=("join",), loop=loop)), None) is not None
    for decision in store.read(kinds=("decision",), loop=loop):
        about = store.find(decision.loop, decision.id)
        joins = [one for one in about if isinstance(one, Join)]
        if joined and not joins:
            continue
        outcomes = (
            [reward for one in joins for reward in paid(one)]
            if joined
            else [one for one in about if isinstance(one, Outcome)]
        )
        yield Event(decision, tuple(outcomes), next((one for one in about if isinstance(one, Activation)), None))
