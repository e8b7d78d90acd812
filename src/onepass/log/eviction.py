"""Eviction of arms, so that new names cannot exhaust memory.

A record of the log (`Eviction`) names the arms. Every model of the loop forgets them at the position of this record, so
a replay gives the same models. Names that come again are learned as new ones.
"""

from collections.abc import Collection
from typing import Any

MOST = 10_000  # names of one record
ROOM = 10  # a tenth of the limit is made free at once
BARE = 32 << 20  # bytes of a model that arms without an outcome may take: names cost nothing to those who send them
FEW = 64  # arms without an outcome that always stay


def arms_of(bandit: Any) -> tuple[Any, ...]:
    """Return the arms that a bandit knows and can forget: none if one model serves all arms."""
    return bandit.arms


def choose_evicted(bandit: Any, limit: int, rewarded: Collection[Any], kept: Collection[Any] = ()) -> list[str]:
    """Return the arms that a bandit must forget to stay within two limits; [] if it is within them.

    The first limit is `limit` arms, at least 1. The second is 32 MiB of memory for all arms that never had an
    outcome. Arms without an outcome are forgotten first, beginning with the one that was known first. Then come arms
    whose last outcome is oldest. At most 10,000 arms are returned, so many that a tenth of the exceeded limit becomes
    free.

    `rewarded` holds the arms that had an outcome, ordered by their last outcome, the oldest first. The arms in `kept`
    are never returned.
    """
    known = arms_of(bandit)
    if len(known) <= min(limit, FEW):
        return []
    never = [arm for arm in known if arm not in rewarded]
    bare = max(int(BARE * len(known) / bandit.memory_usage()), FEW)
    surplus = max(
        len(known) - limit + limit // ROOM if len(known) > limit else 0,
        len(never) - bare + bare // ROOM if len(never) > bare else 0,
    )
    since = {*known}
    order = [*never, *(arm for arm in rewarded if arm in since)]
    return [arm for arm in order if isinstance(arm, str) and arm not in kept][: min(surplus, MOST)]


def evict(bandit: Any, arms: Collection[Any]) -> None:
    """Let a bandit forget the given arms; arms that it does not know are ignored."""
    known = {*arms_of(bandit)}
    for arm in arms:
        if arm in known:
            bandit.remove_arm(arm)
