"""Decision of one request, and its record.

The service's own process, its worker processes and the readers on Ray share this code. So a record is the same function
of model, settings, request and time in all of them.
"""

from functools import partial
from typing import Any

from onepass.bandit.decision import Decision as Decided
from onepass.log.records import SECOND, Decision
from onepass.log.replay_decide import decide_from_log
from onepass.service.apprentice import REQUEST, override_shown, share_with_candidate
from onepass.service.drawn_deadline import draw_deadline
from onepass.service.learner import Copies, Copy
from onepass.service.ledger import Ledger
from onepass.service.messages import ApiError, DecideRequest, bad_argument
from onepass.service.pending_decision import DUE
from onepass.service.request_rows import make_offer
from onepass.service.settings import RECOMMENDED, LoopSettings, takes_records

CLOSED = (
    "arms have features, and this loop has learned models of every arm by its name, which take none: send PATCH "
    '/v1/{name} {{"model": {{"arguments": {{"model": "interaction"}}}}}}, by which a model of features learns the log '
    "from its beginning and takes over; until then send names alone"
)


def make_record(
    copies: Copies,
    settings: LoopSettings,
    version: int,
    request: DecideRequest,
    identity: str,
    fingerprint: str,
    now: int,
    ledger: Ledger | None = None,
) -> Decision:
    """Decide a request, and return the record of the decision.

    - copies: models that decide.
    - settings, version: settings of the loop, and their version.
    - identity: id of the decision.
    - fingerprint: digest of the request.
    - now: time of the decision in microseconds of Unix time.
    - ledger: state of budgets and of the baseline, for a loop that needs one.

    Raises ApiError for a request that cannot be decided.
    """
    present, candidate = copies
    if request.defer and settings.reward.censored:
        raise bad_argument("defer must be false in a loop with censored rewards: a decision may be learned at any age")
    offered = make_offer(request, settings)
    options: dict[str, Any] = {"id": identity, "rest": request.rest}
    if offered.eligible is not None:
        options["eligible"] = offered.eligible

    costs = merge_costs(request, offered.names, settings)

    def decide_with(copy: Copy, **more: Any) -> Decided:
        time = {"time": now / SECOND} if copy.timed else {}
        given = {**options, **time, **more}
        found: Decided = decide_from_log(copy.snapshot, offered.contexts, offered.names, request.slots, **given)
        return found

    def ask(bandit: Any) -> Decided:
        time = {"time": now / SECOND} if bandit.needs_time else {}
        found: Decided = decide_from_log(bandit, offered.contexts, offered.names, 1, **options, **time)
        return found

    accounted: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    try:
        if ledger is not None and ledger.is_active:
            refuse_parts(request)
            decision, accounted, extra = ledger.decide(
                identity, partial(decide_with, present), ask, offered.names, request.context, offered.eligible, costs,
                request.weights, now / SECOND,
            )  # fmt: skip
        else:
            if costs is not None:
                options["costs"] = costs
            if request.weights is not None:
                options["weights"] = request.weights
            decision = decide_with(present)
    except ValueError as error:
        raise refuse_features(settings, request, error) from None
    fields = override_shown(decision, offered, settings)
    if settings.mode == "canary" and candidate is not None and request.slots == 1:
        fields = share_with_candidate(decision, lambda: decide_with(candidate), candidate, settings)
    due = draw_deadline(identity, now, settings)
    contexts = offered.contexts if fields or offered.text is None else offered.text
    return Decision.from_decision(
        decision, loop=settings.name, time=now, contexts=contexts, eligible=offered.eligible, mode=settings.mode,
        model=f"{version}", line=present.line, through=present.through, deferred=request.defer, subject=request.subject,
        extra={REQUEST: fingerprint, DUE: due, **extra}, **fields, **accounted,
    )  # fmt: skip


def merge_costs(request: DecideRequest, names: list[str], settings: LoopSettings) -> dict[str, dict[str, float]] | None:
    """Return the known prices of the arms on offer as {arm: {outcome: price}}; None without any.

    A price in the request counts, else the price in the settings. `names` are the arms on offer.
    """
    found: dict[str, dict[str, float]] = {}
    for outcome, one in settings.outcomes.items():
        for arm in names if one.prices else ():
            if arm in one.prices:
                found.setdefault(arm, {})[outcome] = one.prices[arm]
    for arm, each in (request.costs or {}).items():
        found[arm] = {**found.get(arm, {}), **each}
    return found or None


def refuse_parts(request: DecideRequest) -> None:
    """Raise ApiError for a request with parts that a loop with budgets or a baseline cannot handle."""
    if request.slots != 1:
        raise bad_argument(f"slots must be 1 in a loop with budgets or a baseline, got {request.slots}")
    if request.defer:
        raise bad_argument("defer must be false in a loop with budgets or a baseline: each decision counts at once")


def refuse_features(settings: LoopSettings, request: DecideRequest, error: ValueError) -> ApiError:
    """Convert a bandit's ValueError for a request to an ApiError.

    The error says what to do if arms have features and the model has learned from arm names alone.
    """
    arms = request.arms or ()
    closed = settings.model.recipe == RECOMMENDED and settings.model.arguments.get("model") is None
    if closed and takes_records(settings) and any(getattr(arm, "features", None) for arm in arms):
        return ApiError(409, "ModelOfNames", CLOSED.format(name=settings.name))
    return bad_argument(str(error))
