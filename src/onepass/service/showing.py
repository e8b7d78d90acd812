"""What is shown where the model does not decide: the first arm, or, with a small probability, any.

    shown ~ q = (1 - exploring) 1{first eligible} + exploring / eligible arms

What the model would have done stays in the record beside it. q is logged: an exploring apprentice can be evaluated.
"""

import hashlib
from typing import Any

from onepass.bandit.decision import Decision
from onepass.service.messages import Refused
from onepass.service.rows import Offer
from onepass.service.settings import LoopSettings

REQUEST = "request"  # where a decision keeps the fingerprint of its request (extra)
BITS = 53  # of a number from 0 to 1


def shown_instead(found: Decision, offered: Offer, settings: LoopSettings) -> dict[str, Any]:
    """Fields of the record of a decision that say what is shown; none where it is what was drawn."""
    if settings.mode == "online":
        return {}
    places = {name: place for place, name in enumerate(offered.names)}
    allowed = list(range(len(offered.names))) if offered.eligible is None else [places[one] for one in offered.eligible]
    baseline = allowed[: len(found.arms)]
    if settings.exploring == 0.0:
        return {"shown": baseline, "baseline": baseline}
    if len(baseline) > 1:
        raise Refused(400, "BadArgument", "slots must be 1 where an apprentice explores (exploring above 0)")
    chances = [0.0] * len(offered.names)
    for place in allowed:
        chances[place] = settings.exploring / len(allowed)
    chances[baseline[0]] += 1.0 - settings.exploring
    lot = number(f"{found.seed} {found.id}")
    shown = baseline[0]
    if lot < settings.exploring:
        shown = allowed[min(int(lot / settings.exploring * len(allowed)), len(allowed) - 1)]
    return {"shown": [shown], "showing": chances, "baseline": baseline}


def number(text: str) -> float:
    """From 0 to 1, below 1: as good as random, the same for the same text."""
    digest = hashlib.blake2b(text.encode(), digest_size=8, person=b"showing").digest()
    return (int.from_bytes(digest, "little") >> (64 - BITS)) / 2.0**BITS
