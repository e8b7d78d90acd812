"""Decisions of a store with their learned rewards, as events that can be evaluated.

If a store holds joins (decisions matched with their outcomes), a decision's reward is the reward of its join. A
decision without a join is left out, because its outcomes may still come. If a store holds no joins, rewards are sums of
outcomes, as in files of other programs.
"""

from collections.abc import Iterator
from typing import Any


def events_from_store(store: Any, loop: str | None = None) -> Iterator[Any]:
    """Yield the decisions of a store with their learned rewards, as events; `loop` None takes all loops."""
    from onepass.log import Activation, Event, Join, Outcome
    from onepass.log.import_export import outcomes_from_join

    joined = next(iter(store.read(kinds=("join",), loop=loop)), None) is not None
    for decision in store.read(kinds=("decision",), loop=loop):
        about = store.find(decision.loop, decision.id)
        joins = [one for one in about if isinstance(one, Join)]
        if joined and not joins:
            continue
        outcomes = (
            [reward for one in joins for reward in outcomes_from_join(one)]
            if joined
            else [one for one in about if isinstance(one, Outcome)]
        )
        yield Event(decision, tuple(outcomes), next((one for one in about if isinstance(one, Activation)), None))
