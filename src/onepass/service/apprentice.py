"""Apprentice mode: the first arm is shown, or with a small probability any arm.

    shown ~ q = (1 - exploring) 1{first eligible arm} + exploring / (number of eligible arms)

The model's own choice and q are in the record, so an apprentice with `exploring` above 0 can be evaluated. The split of
decisions between a model and a candidate is in log/canary_split.py.
"""

from collections.abc import Callable
from typing import Any

from onepass.bandit.decision import Decision
from onepass.exploration.random_split import hash_uniform, mix_probabilities
from onepass.log.canary_split import is_canary
from onepass.log.records import Canary
from onepass.service.learner import Copy
from onepass.service.messages import ApiError
from onepass.service.request_rows import Offer
from onepass.service.settings import LoopSettings

REQUEST = "request"  # where a decision keeps the fingerprint of its request (extra)


def override_shown(found: Decision, offered: Offer, settings: LoopSettings) -> dict[str, Any]:
    """Return fields for the record of a decision in which the service, not the model, chooses the arm to show.

    In apprentice and logging mode, the service shows the first eligible arm, or with the probability
    `settings.exploring` a random eligible arm. This may be the arm that the model chose. In other modes the result is
    {}. The fields are those of `onepass.log.records.Decision`:

    - "shown": indices of the arms that are shown.
    - "baseline": indices of the arms that are shown without exploring.
    - "showing": probabilities (K,) from which "shown" was drawn, if `settings.exploring` is above 0.

    `found` is the model's decision among the arms `offered`, and `settings` are the settings of the loop.
    """
    if settings.mode in ("online", "canary"):
        return {}
    places = {name: place for place, name in enumerate(offered.names)}
    allowed = list(range(len(offered.names))) if offered.eligible is None else [places[one] for one in offered.eligible]
    baseline = allowed[: len(found.arms)]
    if settings.exploring == 0.0:
        return {"shown": baseline, "baseline": baseline}
    if len(baseline) > 1:
        raise ApiError(400, "BadArgument", "slots must be 1 where an apprentice explores (exploring above 0)")
    chances = [0.0] * len(offered.names)
    for place in allowed:
        chances[place] = settings.exploring / len(allowed)
    chances[baseline[0]] += 1.0 - settings.exploring
    drawn = hash_uniform(f"{found.seed} {found.id}", b"showing")
    shown = baseline[0]
    if drawn < settings.exploring:
        shown = allowed[min(int(drawn / settings.exploring * len(allowed)), len(allowed) - 1)]
    return {"shown": [shown], "showing": chances, "baseline": baseline}


def share_with_candidate(
    found: Decision, other: Callable[[], Decision], candidate: Copy, settings: LoopSettings
) -> dict[str, Any]:
    """Return fields for the record of a decision that a candidate model makes with probability `settings.share`.

    The fields are "canary", the candidate's choice, "shown", the arm shown, and "showing", the probabilities with which
    it was drawn. The result is {} if the candidate cannot decide.

    `found` is the decision of the serving model, and `other` a function that returns the candidate's decision.
    `candidate` is the copy of the candidate that decides, and its number and position in the log are recorded.
    """
    try:
        would = other()
    except (ValueError, ArithmeticError):
        return {}  # whether it can does not depend on what is drawn: such requests are the present model's
    p, q = found.probabilities.tolist(), would.probabilities.tolist()
    share, mine, its = settings.share, int(found.places[0]), int(would.places[0])
    canary = Canary(line=candidate.line, share=share, through=candidate.through, place=its, probabilities=q)
    place = its if is_canary(found.seed, found.id, share) else mine
    return {"canary": canary, "shown": [place], "showing": mix_probabilities(p, q, share)}
