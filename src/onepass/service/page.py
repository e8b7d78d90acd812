"""Monitoring page `GET /`, and the JSON that it is made from.

/  /{loop}             the page: HTML, one CSS, modules of JavaScript; nothing of it comes from another address
/v1                    loops that the key may read
/v1/{loop}/overview    sums over the log (overview.py), the state of learning, and the accuracy of the model
/v1/{loop}/event?id=   the records about one decision, and the present explanation of the arm's mean
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from onepass.bandit.explanation import Explanation
from onepass.foundation import check
from onepass.log.records import SECOND, Decision, encode
from onepass.log.replay_decide import are_records
from onepass.service.keys import Keys, Role
from onepass.service.loop import Loop
from onepass.service.messages import ApiError
from onepass.service.overview_thread import OverviewThread
from onepass.service.responses import decision_answer
from onepass.service.settings import LoopSettings, Sizes, takes_records

FOLDER = Path(__file__).parent / "static"
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
JSON = "application/json"
TERMS = 12  # of an explanation
FEW = 2  # arms of an example
FRESH = 5.0  # seconds for which what the model says of itself is not asked again

_encoder = msgspec.json.Encoder()

Handler = Callable[[Request, Loop], Awaitable[Response]]
Router = Callable[[str, str, Role, Handler], Route]


def routes(
    route: Router,
    loops: dict[str, Loop],
    keys: dict[str, Keys],
    watchers: dict[str, OverviewThread],
    presented: Callable[[Request], str | None],
) -> list[Route]:
    """Return the HTTP routes of the monitoring page, which must be tried last.

    `route` makes the route of a loop, and `presented` returns the key of a request. `loops`, `keys` and `watchers` map
    a loop's name to the loop, its keys, and its overview thread.
    """
    files = {path.name: (path.read_bytes(), KINDS[path.suffix]) for path in FOLDER.iterdir()}
    keyed = any(map(len, keys.values()))
    selves: dict[str, tuple[float, dict[str, Any]]] = {}

    async def overview(request: Request, loop: Loop) -> Response:
        watcher = watchers.get(loop.name)
        if watcher is None:
            raise ApiError(404, "NotWatched", f"nobody watches loop {check.quote(loop.name)}")
        return Response(await asyncio.to_thread(overview_json, loop, watcher, selves), media_type=JSON)

    async def event(request: Request, loop: Loop) -> Response:
        identity = request.query_params.get("id", "")
        if not identity:
            raise ApiError(400, "BadArgument", "id must be given: the id of a decision")
        return Response(await asyncio.to_thread(event_json, loop, identity), media_type=JSON)

    async def list_loops(request: Request) -> Response:
        key = presented(request)
        found = [name for name in loops if "read" in keys[name].roles(key)]
        return Response(_encoder.encode({"loops": found, "keys": keyed}), media_type=JSON)

    async def page(request: Request) -> Response:
        name = request.path_params.get("loop")
        if name is not None and name not in loops and not keyed:  # keys keep names to themselves
            raise HTTPException(404)
        return file_response("index.html")

    async def static(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in files:
            raise HTTPException(404)
        return file_response(name)

    def file_response(name: str) -> Response:
        data, kind = files[name]
        return Response(data, headers=HEADERS, media_type=kind)

    return [
        route("/v1/{loop}/overview", "GET", "read", overview),
        route("/v1/{loop}/event", "GET", "read", event),
        Route("/v1", list_loops),
        Route("/page/{name}", static),
        Route("/", page),
        Route("/{loop}", page),
    ]


def overview_json(loop: Loop, watcher: OverviewThread, selves: dict[str, tuple[float, dict[str, Any]]]) -> bytes:
    """Return the overview of a loop for the monitoring page, as JSON bytes.

    `watcher` is the loop's overview thread. `selves` caches descriptions of models by loop name, with the times when
    they were made.
    """
    since, said = selves.get(loop.name, (0.0, {}))
    if not said or time.monotonic() - since >= FRESH:
        said = model_info(loop)
        selves[loop.name] = (time.monotonic(), said)
    counts = loop.joiner.counts
    numbers = {**loop.numbers(), "late": counts["late"], "corrected": counts["corrected"]}  # the overview is no older
    accounts = {"budgets": loop.ledger.budgets(), "baseline": loop.ledger.guard()}
    accounts["ab_test"] = loop.ledger.ab_test()
    found = {
        **watcher.to_dict(),
        **accounts,
        "loop": loop.name,
        "now": loop.clock() / SECOND,
        "trouble": loop.problem(),
    }
    if not found["counts"].get("decision"):
        found["example"] = {"path": f"/v1/{quote(loop.name)}/decide", "body": example_request(loop.settings)}
    return _encoder.encode({**found, "numbers": numbers, "model": said})


def example_request(settings: LoopSettings) -> dict[str, Any]:
    """Return an example of a request for a decision, as data for JSON with the keys "context" and "arms", if needed."""
    if takes_records(settings):
        context, features = {"country": "de"}, None
    else:
        context, features = [ones_like(sizes) for sizes in (settings.features.context, settings.features.arms)]
    found: dict[str, Any] = {"context": context} if context else {}
    names = settings.arms[:FEW] or ["first", "second"]
    if features:
        found["arms"] = [{"id": name, "features": features} for name in names]
    elif not settings.arms:
        found["arms"] = names
    return found


def ones_like(sizes: Sizes) -> Any:
    """Return example numbers of a request or an arm: every number is 1.

    The result is a list for a count of numbers, and a dictionary for names of numbers.
    """
    return [1.0] * sizes if isinstance(sizes, int) else dict.fromkeys(sizes, 1.0)


def model_info(loop: Loop) -> dict[str, Any]:
    """Return a description of a loop's model: recipe, bytes of memory, error bound of its sketch, and trust.

    The keys are "recipe", "memory", "error_bound" (None for a model without a sketch) and "trust". The last one has the
    smallest and the largest trust of an arm in a warm start, None without one.
    """
    bandit = loop.learner.fold.bandit
    trust = [*bandit.trust.values()]
    found = {
        "recipe": loop.settings.model.recipe,
        "memory": bandit.memory_usage(),
        "error_bound": None,
        "trust": [min(trust), max(trust)] if trust else None,
    }
    bound = getattr(bandit, "error_bound", None)
    if bound is not None:
        found["error_bound"] = float(bound())
    return found


def event_json(loop: Loop, identity: str) -> bytes:
    """Return the records about a decision and its explanation as JSON; raise ApiError if there are no records.

    The keys are "id" (`identity`), "records", "decision", the answer of the API, and "explanation". If there is no
    explanation, "unexplained" says why.
    """
    records = loop.store.find(loop.name, identity)
    if not records:
        raise ApiError(404, "EventNotFound", f"the log has nothing about {check.quote(identity)}")
    found: dict[str, Any] = {"id": identity, "records": [msgspec.Raw(encode(record)) for record in records]}
    decision = next((record for record in records if isinstance(record, Decision)), None)
    if decision is not None:
        found["decision"] = msgspec.to_builtins(decision_answer(decision))
        try:
            found["explanation"] = explanation_to_dict(explain_decision(loop, decision))
        except ValueError as error:
            found["unexplained"] = str(error)
    return _encoder.encode(found)


def explain_decision(loop: Loop, decision: Decision) -> Explanation:
    """Return an explanation of the arm that a decision showed, by the present serving model.

    Raises ValueError if that is not possible.
    """
    place, names, contexts = (decision.shown or decision.places)[0], decision.offered, decision.contexts
    arm, copy = place if names is None else names[place], loop.learner.copies.present
    if are_records(contexts):
        arms = contexts["arms"] if names is None else dict(zip(names, contexts["arms"], strict=True))
        found: Explanation = copy.snapshot.explain(contexts["context"], arm, arms=arms)
        return found
    if not isinstance(contexts, list):
        raise ValueError("the rows of this decision are not in the log")
    options: dict[str, Any] = {"arms": names, "names": column_names(loop.settings)}
    if copy.timed:
        options["time"] = loop.clock() / SECOND
    found = copy.snapshot.explain(contexts, arm, **options)
    return found


def column_names(settings: LoopSettings) -> list[str] | None:
    """Return the names of a row's numbers, or None if the settings name none."""
    parts = (settings.features.context, settings.features.arms)
    if all(isinstance(part, int) for part in parts):
        return None
    each = [
        [f"{kind}{j}" for j in range(part)] if isinstance(part, int) else part
        for kind, part in zip("xa", parts, strict=True)
    ]
    names = [*each[0], *each[1]]
    return names if len(set(names)) == len(names) else [*each[0], *(f"arm {name}" for name in each[1])]


def explanation_to_dict(found: Explanation) -> dict[str, Any]:
    """Return the explanation `found` as data for JSON, with the keys of its `to_dict`, but only the largest terms."""
    whole = found.to_dict()
    whole["terms"] = [term._asdict() for term in found.top(TERMS)]
    if found.difference is not None:
        kept = {(term.part, term.name) for term in found.difference.top(TERMS)}
        terms = whole["difference"]["terms"]
        whole["difference"]["terms"] = [term for term in terms if (term["part"], term["name"]) in kept]
    return whole
