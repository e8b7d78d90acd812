"""OpenAPI document of the service, generated from the types of its messages."""

from functools import cache
from importlib import metadata
from typing import Any, Literal, NamedTuple, Required, TypedDict

import msgspec

from onepass.service import admin_routes, messages, openapi_page
from onepass.service.evaluations import EvaluationAnswer, EvaluationRequest
from onepass.service.personalizer import description as personalizer
from onepass.service.settings import LoopSettings

REFERENCE = "#/components/schemas/{name}"
JSON = "application/json"
LINES = "application/x-ndjson"
TEXT = "text/plain"
ERRORS = {
    "400": "The request does not fit.",
    "401": "There is no such key.",
    "403": "The key must not do this.",
    "404": "There is no such loop or decision.",
    "405": "Not by this method.",
    "409": "It contradicts what is there: an id with another request, settings of another model.",
    "413": "The body is too large.",
    "415": "The body must be application/json.",
    "421": "Without keys, only by a name of this machine.",
    "429": "Too many requests of this key, or of this address: wait as long as retry-after says.",
    "500": "An error of the service.",
    "503": "The log cannot be written, or the service stops: try again, with the same id or key.",
}
HEADERS = {
    "401": ("www-authenticate", {"const": "Bearer"}),
    "405": ("allow", {"type": "string"}),
    "503": ("retry-after", {"type": "integer"}),
}
ANY_LOOP = tuple(ERRORS)  # status codes of errors of any loop


def describe_parameter(name: str, place: str = "query", **schema: Any) -> dict[str, Any]:
    """Return the OpenAPI description of the parameter `name`; `place` is "path" or "query"."""
    found = {"name": name, "in": place, "schema": schema or {"type": "string"}}
    return {**found, "required": True} if place == "path" or "minLength" in schema else found


class Operation(NamedTuple):
    """One method of a path of the HTTP API.

    - path, method, name, summary: path, HTTP method, name and description.
    - answer: type of the response, or None without a body.
    - body: types of request that are accepted.
    - parameters: descriptions of the parameters in path and query.
    - good, media: status code and media type of a response with a body.
    - codes: status codes of errors.
    - free: True if no key is needed.
    """

    path: str
    method: str
    name: str
    summary: str
    answer: Any = None
    body: tuple[Any, ...] = ()
    parameters: tuple[dict[str, Any], ...] = ()
    good: str = "200"
    media: str = JSON
    codes: tuple[str, ...] = ANY_LOOP
    free: bool = False


class Alive(TypedDict):
    """Answer to a health check: the process is alive."""

    status: Literal["alive"]


class Ready(TypedDict, total=False):
    """Answer of a service that can write its log and learns; `warnings` lists what an operator should look at."""

    status: Required[Literal["ready"]]
    warnings: list[str]


LOOP = "/v1/{loop}"
ONE = f"{LOOP}/evaluations/{{id}}"
PATCH = "Go on by other values of some settings (JSON merge patch), or ask what that would change"
PROMOTE = "Let the candidate take over, or the recipe of an evaluation"
DRY_RUN = (describe_parameter("dry_run", type="boolean"),)
PORTION = (
    describe_parameter("since", type="integer", minimum=0),
    describe_parameter("limit", type="integer", minimum=1),
)
EVENT = (describe_parameter("id", type="string", minLength=1),)
IDENTITY = (describe_parameter("id", "path"),)
OUTCOMES = (messages.OutcomeRequest, list[messages.OutcomeRequest])
SETTINGS_ANSWER = messages.SettingsAnswer
OPERATIONS = (
    Operation(f"{LOOP}/decide", "post", "decide", "Decide among arms", messages.DecideAnswer,
              (messages.DecideRequest, messages.RecordsRequest)),
    Operation(f"{LOOP}/outcome", "post", "outcome", "Say what came of decisions", messages.OutcomeAnswer, OUTCOMES),
    Operation(f"{LOOP}/activate", "post", "activate", "Say that a deferred decision did happen", None,
              (messages.ActivateRequest,)),
    Operation(f"{LOOP}/log", "get", "log", "Records of the log, a line of JSON each", str, (), PORTION, media=LINES),
    Operation(f"{LOOP}/forget", "post", "forget", "Delete what is about a subject", messages.ForgetAnswer,
              (messages.ForgetRequest,)),
    Operation(LOOP, "get", "settings", "Settings in force", SETTINGS_ANSWER),
    Operation(LOOP, "put", "change", "Go on by other settings, or ask what that would change", SETTINGS_ANSWER,
              (LoopSettings,), DRY_RUN),
    Operation(LOOP, "patch", "patch", PATCH, SETTINGS_ANSWER, (dict,), DRY_RUN),
    Operation(f"{LOOP}/models", "get", "list_models", "Models, and checkpoints to go back to",
              admin_routes.ModelsAnswer),
    Operation(f"{LOOP}/candidate", "delete", "discard_candidate", "Give the candidate up"),
    Operation(f"{LOOP}/promote", "post", "promote", PROMOTE, SETTINGS_ANSWER, (admin_routes.PromoteRequest,)),
    Operation(f"{LOOP}/rollback", "post", "rollback", "Go back to a checkpoint", SETTINGS_ANSWER,
              (admin_routes.RollbackRequest,)),
    Operation(f"{LOOP}/resume", "post", "resume", "Test a broken guardrail anew", SETTINGS_ANSWER,
              (admin_routes.ResumeRequest,)),
    Operation(f"{LOOP}/evaluations", "get", "list_evaluations", "All evaluations", admin_routes.EvaluationsAnswer),
    Operation(f"{LOOP}/evaluations", "post", "evaluate", "What policies would have earned", EvaluationAnswer,
              (EvaluationRequest,), good="201"),
    Operation(ONE, "get", "get_evaluation", "One evaluation", EvaluationAnswer, (), IDENTITY),
    Operation(ONE, "delete", "delete_evaluation", "Delete an evaluation", None, (), IDENTITY),
    Operation("/v1", "get", "list_loops", "Loops that the key may read", openapi_page.Loops, codes=("405", "421")),
    Operation(f"{LOOP}/overview", "get", "overview", "What the page shows", openapi_page.Overview),
    Operation(f"{LOOP}/event", "get", "event", "All about one decision", openapi_page.Event, (), EVENT),
    Operation("/healthz", "get", "health", "Whether it is alive", Alive, codes=("405",), free=True),
    Operation("/readyz", "get", "ready", "Whether it can write and learns", Ready, codes=("405", "503"), free=True),
    Operation("/metrics", "get", "metrics", "Measures, as Prometheus reads them", str, media=TEXT,
              codes=("401", "405")),
    Operation("/openapi.json", "get", "openapi", "This document", dict, codes=("405",), free=True),
)  # fmt: skip


@cache
def document() -> dict[str, Any]:
    """Return the OpenAPI 3.1 document that describes the HTTP API."""
    told = [kind for one in OPERATIONS for kind in (one.answer, *one.body) if kind is not None]
    types = list(dict.fromkeys([*told, messages.ErrorAnswer, *personalizer.TYPES]))
    schemas, components = msgspec.json.schema_components(types, ref_template=REFERENCE)
    known = dict(zip(types, schemas, strict=True))
    paths: dict[str, Any] = {}
    for one in OPERATIONS:
        paths.setdefault(one.path, {})[one.method] = describe_operation(one, known)
    not_ready = describe_error("503", known[messages.ErrorAnswer], "Why it is not ready.")
    paths["/readyz"]["get"]["responses"]["503"] = not_ready
    return {
        "openapi": "3.1.0",
        "info": {"title": "onepass", "version": metadata.version("onepass"), "description": (messages.__doc__ or "")},
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"key": []}],
        "paths": {**paths, **personalizer.describe_paths(known)},
    }


def describe_error(code: str, error: Any, text: str | None = None) -> dict[str, Any]:
    """Return the OpenAPI description of an error response; `text` replaces the usual description."""
    found = {"description": text or ERRORS[code], "content": {JSON: {"schema": error}}}
    if code in HEADERS:
        name, schema = HEADERS[code]
        found["headers"] = {name: {"schema": schema, "required": True}}
    return found


def describe_operation(one: Operation, known: dict[Any, Any]) -> dict[str, Any]:
    """Return the OpenAPI description of the operation `one`; `known` maps each message type to its schema."""
    done: dict[str, Any] = {"204": {"description": "Done."}}
    if one.answer is not None:
        done = {one.good: {"description": "Done.", "content": {one.media: {"schema": known[one.answer]}}}}
    loop = (describe_parameter("loop", "path"),) if "{loop}" in one.path else ()
    found: dict[str, Any] = {
        "operationId": one.name,
        "summary": one.summary,
        "responses": {**done, **{code: describe_error(code, known[messages.ErrorAnswer]) for code in one.codes}},
    }
    if loop or one.parameters:
        found["parameters"] = [*loop, *one.parameters]
    if one.body:
        bodies = [known[kind] for kind in one.body]
        schema = bodies[0] if len(bodies) == 1 else {"anyOf": bodies}
        found["requestBody"] = {"required": True, "content": {JSON: {"schema": schema}}}
    return found | ({"security": []} if one.free else {})
