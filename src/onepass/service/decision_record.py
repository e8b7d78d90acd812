"""Decide one request and make its record.

The service's own process, its worker processes and the readers on Ray share these lines, so a record is the same
function of model, settings, request and time wherever it was made.
"""

from typing import Any

from onepass.bandit.decision import Decision as Decided
from onepass.log.asking import decided_on
from onepass.log.records import SECOND, Decision
from onepass.service.join import DUE
from onepass.service.learner import Copies, Copy
from onepass.service.messages import DecideRequest, wrong
from onepass.service.rows import offer
from onepass.service.settings import LoopSettings
from onepass.service.showing import REQUEST, shared, shown_instead


def make_record(
    copies: Copies,
    settings: LoopSettings,
    version: int,
    request: DecideRequest,
    identity: str,
    fingerprint: str,
    now: int,
) -> Decision:
    """Decide a request and return the record of the decision; Refused for what cannot be decided.

    copies: models that decide; settings, version: those in force; identity: of the event; fingerprint: of the request;
    now: microseconds.
    """
    present, candidate = copies
    offered = offer(request, settings)
    options: dict[str, Any] = {"id": identity, "tail": request.tail}
    if offered.eligible is not None:
        options["eligible"] = offered.eligible

    def decide_with(copy: Copy) -> Decided:
        time = {"time": now / SECOND} if copy.timed else {}
        found: Decided = decided_on(copy.snapshot, offered.contexts, offered.names, request.slots, **options, **time)
        return found

    try:
        decision = decide_with(present)
    except ValueError as error:
        raise wrong(str(error)) from None
    fields = shown_instead(decision, offered, settings)
    if settings.mode == "canary" and candidate is not None and request.slots == 1:
        fields = shared(decision, lambda: decide_with(candidate), candidate, settings)
    due = now + round(settings.reward.wait * SECOND)
    contexts = offered.contexts if fields or offered.text is None else offered.text
    return Decision.of(
        decision, loop=settings.name, time=now, contexts=contexts, eligible=offered.eligible, mode=settings.mode,
        model=f"{version}", line=present.line, through=present.through, deferred=request.defer, subject=request.subject,
        extra={REQUEST: fingerprint, DUE: due}, **fields,
    )  # fmt: skip
