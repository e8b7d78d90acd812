"""The OpenAPI document, made of the types of the messages."""

from functools import cache
from importlib import metadata
from typing import Any

import msgspec

from onepass.service import described, messages, steering
from onepass.service.personalizer import description as personalizer
from onepass.service.settings import LoopSettings

REFERENCE = "#/components/schemas/{name}"
JSON = "application/json"
LINES = "application/x-ndjson"
TEXT = "text/plain"
DRY_RUN = {"name": "dry_run", "in": "query", "schema": {"type": "boolean"}}
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
TYPES = (
    messages.DecideRequest,
    messages.RecordsRequest,
    messages.DecideAnswer,
    messages.OutcomeRequest,
    list[messages.OutcomeRequest],
    messages.OutcomeAnswer,
    messages.ActivateRequest,
    messages.ForgetRequest,
    messages.ForgetAnswer,
    LoopSettings,
    messages.SettingsAnswer,
    messages.ErrorAnswer,
    *steering.TYPES,
    *personalizer.TYPES,
)


@cache
def document() -> dict[str, Any]:
    """OpenAPI 3.1."""
    schemas, components = msgspec.json.schema_components(TYPES, ref_template=REFERENCE)
    (
        decide,
        records,
        decided,
        outcome,
        outcomes,
        paid,
        activate,
        forget,
        forgotten,
        settings,
        standing,
        error,
        *others,
    ) = schemas
    steered, theirs = others[: len(steering.TYPES)], others[len(steering.TYPES) :]
    return {
        "openapi": "3.1.0",
        "info": {"title": "onepass", "version": metadata.version("onepass"), "description": (messages.__doc__ or "")},
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"key": []}],
        "paths": {
            "/v1/{loop}/decide": {
                "post": operation("decide", "Decide among arms", error, decided, body={"anyOf": [decide, records]}),
            },
            "/v1/{loop}/outcome": {
                "post": operation(
                    "outcome", "Say what came of decisions", error, paid, body={"anyOf": [outcome, outcomes]}
                ),
            },
            "/v1/{loop}/activate": {
                "post": operation("activate", "Say that a deferred decision did happen", error, None, body=activate),
            },
            "/v1/{loop}/log": {
                "get": operation(
                    "log", "Records of the log, a line of JSON each", error, {"type": "string"}, media=LINES,
                    parameters=[query("since", 0), query("limit", 1)],
                ),
            },
            "/v1/{loop}/forget": {
                "post": operation("forget", "Delete what is about a subject", error, forgotten, body=forget),
            },
            "/v1/{loop}": {
                "get": operation("settings", "Settings in force", error, standing),
                "put": operation(
                    "change", "Go on by other settings, or ask what that would change", error, standing, body=settings,
                    parameters=[DRY_RUN],
                ),
                "patch": operation(
                    "patch", "Go on by other values of some settings (JSON merge patch), or ask what that would change",
                    error, standing, body={"type": "object"}, parameters=[DRY_RUN],
                ),
            },
            **steering.paths(operation, error, standing, *steered),
            **described.paths(operation, whole, refused, error),
            **service(error),
            **personalizer.paths(dict(zip(personalizer.TYPES, theirs, strict=True))),
        },
    }  # fmt: skip


def service(error: Any) -> dict[str, Any]:
    """What is asked of the service, not of a loop."""
    warnings = {"warnings": {"type": "array", "items": {"type": "string"}}}
    states = {"/healthz": ("health", "Whether it is alive", "alive", {}),
              "/readyz": ("ready", "Whether it can write and learns", "ready", warnings)}  # fmt: skip
    found: dict[str, Any] = {
        path: {"get": whole(name, summary, {"type": "object", "required": ["status"], "properties": {
            "status": {"const": state}, **more}})}
        for path, (name, summary, state, more) in states.items()
    }  # fmt: skip
    found["/readyz"]["get"]["responses"]["503"] = refused("503", error, "Why it is not ready.")
    found["/metrics"] = {"get": whole("metrics", "Measures, as Prometheus reads them", {"type": "string"}, TEXT)}
    found["/metrics"]["get"]["responses"]["401"] = refused("401", error)
    found["/openapi.json"] = {"get": whole("openapi", "This document", {"type": "object"})}
    for each in ("/healthz", "/readyz", "/openapi.json"):
        found[each]["get"]["security"] = []
    for each in found.values():
        each["get"]["responses"]["405"] = refused("405", error)
    return found


def whole(name: str, summary: str, answer: Any, media: str = JSON) -> dict[str, Any]:
    """An operation without a loop."""
    good = {"200": {"description": "Done.", "content": {media: {"schema": answer}}}}
    return {"operationId": name, "summary": summary, "responses": good}


def refused(code: str, error: Any, text: str | None = None) -> dict[str, Any]:
    """What a refusal looks like. text: what it says (default None: as everywhere)."""
    found = {"description": text or ERRORS[code], "content": {JSON: {"schema": error}}}
    if code in HEADERS:
        name, schema = HEADERS[code]
        found["headers"] = {name: {"schema": schema, "required": True}}
    return found


def operation(
    name: str,
    summary: str,
    error: Any,
    answer: Any,
    *,
    body: Any = None,
    media: str = JSON,
    parameters: list[Any] | None = None,
    good: str = "200",
) -> dict[str, Any]:
    """One operation. answer: the schema, None where there is no body; good: the code of an answer with one."""
    loop = {"name": "loop", "in": "path", "required": True, "schema": {"type": "string"}}
    done: dict[str, Any] = {"204": {"description": "Done."}}
    if answer is not None:
        done = {good: {"description": "Done.", "content": {media: {"schema": answer}}}}
    found: dict[str, Any] = {
        "operationId": name,
        "summary": summary,
        "parameters": [loop, *(parameters or ())],
        "responses": {**done, **{code: refused(code, error) for code in ERRORS}},
    }
    if body is not None:
        found["requestBody"] = {"required": True, "content": {JSON: {"schema": body}}}
    return found


def query(name: str, least: int) -> dict[str, Any]:
    """A whole number in the query."""
    return {"name": name, "in": "query", "schema": {"type": "integer", "minimum": least}}
