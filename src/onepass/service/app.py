"""Native API as an ASGI application, which reads, checks and answers requests; decisions are made elsewhere.

Errors have one shape, {"error": {"code", "message"}}. An answer to a decision, an outcome or an activation is sent when
its record is durable. Bodies must be application/json, so that no page of another origin can post them unasked.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Match, Route

from onepass.foundation.check import quote
from onepass.log.records import encode
from onepass.log.store import StoreError
from onepass.service import admin_routes, erasure, promotion
from onepass.service.admission import Admission, key_of
from onepass.service.first_model import refuse_new_source
from onepass.service.keys import Keys, Role
from onepass.service.loop import Loop
from onepass.service.messages import (
    ActivateRequest,
    ApiError,
    ErrorAnswer,
    ErrorBody,
    OutcomeAnswer,
    OutcomeRequest,
    RecordsRequest,
)
from onepass.service.metrics import Metrics
from onepass.service.openapi import document
from onepass.service.overview_thread import OverviewThread
from onepass.service.page import routes as page
from onepass.service.personalizer import app as personalizer
from onepass.service.rate_limit import RateLimiter
from onepass.service.request_body import JSON, JSONBytes, RawRequest, Results, parse_body, read_body, wait_for_result
from onepass.service.responses import decision_answer
from onepass.service.settings import BODY, LoopSettings, parse_settings, takes_records

LINES = "application/x-ndjson"
PAGE = 1_000  # records of the log in one answer, where it is not said how many
MOST = 100_000
FREQUENT = ("decide", "outcome")  # operations

_encoder = msgspec.json.Encoder()
_records = msgspec.json.Decoder(RecordsRequest)
_outcomes = msgspec.json.Decoder(OutcomeRequest | list[OutcomeRequest])
_activate = msgspec.json.Decoder(ActivateRequest)

Handler = Callable[[Any, Loop], Awaitable[Response]]


class Service:
    """ASGI application of the service, which answers the requests to all loops.

    `loops`, `keys` and `watchers` map a loop's name to the loop, its access keys, and its overview thread (default:
    none).
    """

    def __init__(
        self, loops: dict[str, Loop], keys: dict[str, Keys], watchers: dict[str, OverviewThread] | None = None
    ) -> None:
        self.loops, self.keys, self.admission = loops, keys, Admission(keys)
        watched = {} if watchers is None else watchers
        self.metrics = Metrics(loops, watched)
        self.rates = RateLimiter()
        self._results: Results | None = None
        self._frequent: dict[tuple[str, str], Callable[[RawRequest], Awaitable[Response]]] = {}
        self.app = Starlette(
            routes=[
                self._route("/v1/{loop}/decide", "POST", "decide", self._decide),
                self._route("/v1/{loop}/outcome", "POST", "reward", self._outcome),
                self._route("/v1/{loop}/activate", "POST", "decide", self._activate),
                self._route("/v1/{loop}/log", "GET", "read", self._log),
                self._route("/v1/{loop}", "GET", "read", self._settings),
                self._route("/v1/{loop}", "PUT", "admin", self._change),
                self._route("/v1/{loop}", "PATCH", "admin", self._patch),
                *(self._route(*each) for each in admin_routes.routes(read_message)),
                *personalizer.routes(self),
                *erasure.routes(self._route),
                Route("/healthz", self._health),
                Route("/readyz", self._ready),
                Route("/metrics", self._metrics),
                Route("/openapi.json", self._openapi),
                *page(self._route, loops, keys, watched, key_of),
            ],
            exception_handlers={
                Exception: respond_error,
                ApiError: respond_error,
                404: respond_not_found,
                405: respond_not_found,
            },
        )

    def _route(self, path: str, method: str, role: Role, handler: Handler) -> Route:
        operation = handler.__name__.strip("_")

        async def serve(request: Request | RawRequest, name: str) -> Response:
            begin, status = time.perf_counter(), 500
            known = name in self.loops
            try:
                loop = self._admit(request, name, role)
                response = await handler(request, loop)
                status = response.status_code
                return response
            except Exception as error:
                response = error_response(error)
                status = response.status_code
                return response
            finally:
                self.metrics.count_request(name if known else "", operation, status, time.perf_counter() - begin)

        async def route(request: Request) -> Response:
            return await serve(request, request.path_params["loop"])

        for name in self.loops if operation in FREQUENT else ():
            self._frequent[path.format(loop=name), method] = partial(serve, name=name)
        return Route(path, route, methods=[method], name=operation)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve a request; frequent operations skip the framework, which takes half of their time."""
        frequent = self._frequent.get((scope.get("path"), scope.get("method")))
        if frequent is None:
            await self.respond(scope, receive, send)
            return
        response = await frequent(RawRequest(scope, receive))
        await response(scope, receive, send)

    async def respond(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request that is not frequent, as an ASGI application."""
        try:
            self.admission.check_host(RawRequest(scope, receive))
        except ApiError as error:
            await error_response(error)(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def _admit(self, request: Request | RawRequest, name: str, role: Role) -> Loop:
        """Return the loop `name`; raise ApiError for a request without the role `role` or beyond the rate limit."""
        self.admission.admit(request, name, role)
        loop = self.loops[name]
        self.rates.admit(name, self.admission.client(request, name), loop.settings.limits.rate)
        return loop

    # ---- the loop's ----

    async def _decide(self, request: Request | RawRequest, loop: Loop) -> Response:
        body = await read_body(request, loop.settings.limits.body)
        decoder = _records if takes_records(loop.settings) else loop.tables
        if self._results is None or self._results.loop is not asyncio.get_running_loop():
            self._results = Results()
        result = self._results.promise()
        loop.decide_for(parse_body(decoder, body), result)
        return JSONBytes(_encoder.encode(decision_answer(await result.future)))

    async def _outcome(self, request: Request | RawRequest, loop: Loop) -> Response:
        return JSONBytes(await self.store_outcomes(loop, await read_body(request, loop.settings.limits.body)))

    async def store_outcomes(self, loop: Loop, body: bytes) -> bytes:
        """Store the outcomes in a request's body, and return the answer; raise ApiError if they cannot be stored."""
        found = parse_body(_outcomes, body)
        records, future = loop.outcomes(found if isinstance(found, list) else [found])
        await wait_for_result(future)
        new = sum(record.seq != 0 for record in records)
        return _encoder.encode(OutcomeAnswer(accepted=len(records), new=new))

    async def _activate(self, request: Request, loop: Loop) -> Response:
        found = parse_body(_activate, await read_body(request, loop.settings.limits.body))
        await wait_for_result(await asyncio.to_thread(loop.activate, found.id))
        return Response(status_code=204)

    async def _settings(self, request: Request, loop: Loop) -> Response:
        return Response(_encoder.encode(promotion.settings_answer(loop)), media_type=JSON)

    async def _change(self, request: Request, loop: Loop) -> Response:
        return await self._put(request, loop, lambda found, present: found)

    async def _patch(self, request: Request, loop: Loop) -> Response:
        return await self._put(request, loop, lambda found, present: merge_patch(present.to_dict(), found))

    async def _put(self, request: Request, loop: Loop, make: Callable[[Any, LoopSettings], Any]) -> Response:
        most = max(loop.settings.limits.body, BODY)  # a limit that is too small can be put right
        found = parse_body(msgspec.json.Decoder(), await read_body(request, most))
        dry = bool_argument(request, "dry_run")

        def new(present: LoopSettings) -> LoopSettings:
            try:
                settings = parse_settings(make(found, present))
                refuse_new_source(present.model, settings.model)
            except ValueError as error:
                raise ApiError(400, "InvalidSettings", str(error)) from None
            return settings

        settings, changed = await asyncio.to_thread(loop.update_settings, new, dry)
        said = promotion.settings_answer(loop, changed, settings if dry else None)
        return Response(_encoder.encode(said), media_type=JSON)

    async def _log(self, request: Request, loop: Loop) -> Response:
        since, limit = int_argument(request, "since", 0, 0, 2**53), int_argument(request, "limit", PAGE, 1, MOST)

        def lines() -> Iterator[bytes]:
            for count, record in enumerate(loop.store.read(since, None, None, loop.name), 1):
                yield encode(record) + b"\n"
                if count == limit:
                    return

        return StreamingResponse(lines(), media_type=LINES)

    # ---- the service's ----

    async def _health(self, request: Request) -> Response:
        return Response(b'{"status":"alive"}', media_type=JSON)

    async def _ready(self, request: Request) -> Response:
        troubles = {name: trouble for name, loop in self.loops.items() if (trouble := loop.problem()) is not None}
        if troubles:
            readable = self.admission.readable(key_of(request))
            told = [f"loop {name}: {trouble}" for name, trouble in troubles.items() if name in readable]
            return error_response(ApiError(503, "NotReady", "; ".join(told) or "the service is not ready"))
        readable = self.admission.readable(key_of(request))
        failures = {name: loop.learner.failure for name, loop in self.loops.items() if name in readable}
        warnings = [f"loop {name}: {failure}" for name, failure in failures.items() if failure is not None]
        return Response(
            _encoder.encode({"status": "ready", **({"warnings": warnings} if warnings else {})}), media_type=JSON
        )

    async def _metrics(self, request: Request) -> Response:
        readable = self.admission.readable(key_of(request))
        if not readable:
            return error_response(
                ApiError(401, "Unauthorized", "send a key with the role read: Authorization: Bearer KEY")
            )
        text = self.metrics.text(readable)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _openapi(self, request: Request) -> Response:
        return JSONResponse(document())


# ---- requests ----


def merge_patch(present: Any, patch: Any) -> Any:
    """Return the plain data `present` after a change by `patch`, a JSON merge patch (RFC 7396).

    null in the patch removes a value.
    """
    if not isinstance(patch, dict):
        return patch
    merged = dict(present) if isinstance(present, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


async def read_message(request: Request, loop: Loop, decoder: Any) -> Any:
    """Return the message that `decoder` reads from the body of a request; raise ApiError for an invalid one.

    The settings of `loop` limit the size of the body.
    """
    return parse_body(decoder, await read_body(request, loop.settings.limits.body))


def int_argument(request: Request, name: str, default: int, least: int, most: int) -> int:
    """Return the argument `name` of a request's query, an integer from `least` to `most`; `default` if it is missing.

    Raises ApiError for other values.
    """
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 20 and least <= int(text) <= most):
        raise ApiError(400, "BadArgument", f"{name} must be a whole number from {least} to {most}, got {quote(text)}")
    return int(text)


def bool_argument(request: Request, name: str) -> bool:
    """Return the argument `name` of a request's query, "true" or "false", as a bool; False if it is missing.

    Raises ApiError for other values.
    """
    text = request.query_params.get(name, "false")
    if text not in ("true", "false"):
        raise ApiError(400, "BadArgument", f"{name} must be true or false, got {quote(text)}")
    return text == "true"


# ---- refusals ----


def api_error_from(error: Exception) -> ApiError:
    """Return an ApiError that stands for any error, to be sent to the client."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, StoreError):
        return ApiError(503, "LogUnavailable", str(error))
    if isinstance(error, ArithmeticError):
        return ApiError(500, "ModelFailed", str(error))
    return ApiError(500, "InternalError", f"this is an error of the service: {type(error).__name__}")


def error_response(error: Exception) -> Response:
    """Return the HTTP response that tells a client of an error."""
    refused, headers = api_error_from(error), {}
    if refused.status in (429, 503):
        headers["retry-after"] = f"{refused.wait}"
    if refused.status == 401:
        headers["www-authenticate"] = "Bearer"
    said = ErrorAnswer(error=ErrorBody(code=refused.code, message=refused.message))
    return Response(_encoder.encode(said), refused.status, headers, JSON)


async def respond_not_found(request: Request, error: Exception) -> Response:
    """Return the response to a request for an unknown path, or with an unknown method of a path."""
    status = getattr(error, "status_code", 404)
    if status == 405:
        routes = [route for route in request.app.routes if route.matches(request.scope)[0] != Match.NONE]
        methods = ", ".join(sorted({method for route in routes for method in getattr(route, "methods", None) or ()}))
        answer = error_response(
            ApiError(405, "MethodNotAllowed", f"{request.method} is not served here, but {methods}")
        )
        answer.headers["allow"] = methods
        return answer
    return error_response(ApiError(404, "NotFound", f"nothing is served at {quote(request.url.path)}"))


async def respond_error(request: Request, error: Exception) -> Response:
    """Return the response to a request that failed with an unexpected error."""
    return error_response(error)
