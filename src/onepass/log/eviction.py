"""Arms that a model forgets, so that new names cannot exhaust memory: which, and how.

A record of the log (`Eviction`) names them. Every model of the loop forgets them at its place, so a replay knows what
the service knew. Names that come again are learned as new ones.
"""

from collections.abc import Collection
from typing import Any

MOST = 10_000  # names of one record
ROOM = 10  # a tenth of the limit is made free at once
BARE = 32 << 20  # bytes of a model that arms without an outcome may take: names cost nothing to those who send them
FEW = 64  # arms without an outcome that always stay


def arms_of(bandit: Any) -> tuple[Any, ...]:
    """Return the arms that a bandit knows and can forget: none of one that shares a model among all arms."""
    return bandit.arms


def choose_evicted(bandit: Any, limit: int, rewarded: Collection[Any], kept: Collection[Any] = ()) -> list[str]:
    """Return the arms to be forgotten where a bandit knows more than a limit, none where it does not.

    The arms that had no outcome go first, the one known longest ahead of the others; then those whose last outcome is
    the oldest. A tenth of the limit becomes free. Arms without an outcome are limited by their memory as well, to
    `BARE` bytes.

    limit: number of arms, at least 1; rewarded: arms that had an outcome, the one whose last is the oldest first; kept:
    arms that stay (default none).
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
    """Let a bandit forget those of some arms that it knows."""
    known = {*arms_of(bandit)}
    for arm in arms:
        if arm in known:
            bandit.remove_arm(arm)
