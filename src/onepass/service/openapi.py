"""The OpenAPI document, made of the types of the messages."""

from functools import cache
from importlib import metadata
from typing import Any

import msgspec

from onepass.service import messages, steering
from onepass.service.settings import LoopSettings

REFERENCE = "#/components/schemas/{name}"
JSON = "application/json"
LINES = "application/x-ndjson"
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
    "500": "An error of the service.",
    "503": "The log cannot be written, or the service stops: try again, with the same id or key.",
}
TYPES = (
    messages.DecideRequest,
    messages.RecordsRequest,
    messages.DecideAnswer,
    messages.OutcomeRequest,
    list[messages.OutcomeRequest],
    messages.OutcomeAnswer,
    messages.ActivateRequest,
    LoopSettings,
    messages.SettingsAnswer,
    messages.ErrorAnswer,
    *steering.TYPES,
)


@cache
def document() -> dict[str, Any]:
    """OpenAPI 3.1."""
    schemas, components = msgspec.json.schema_components(TYPES, ref_template=REFERENCE)
    decide, records, decided, outcome, outcomes, paid, activate, settings, standing, error, *steered = schemas
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
            "/v1/{loop}": {
                "get": operation("settings", "Settings in force", error, standing),
                "put": operation(
                    "change", "Go on by other settings, or ask what that would change", error, standing, body=settings,
                    parameters=[{"name": "dry_run", "in": "query", "schema": {"type": "boolean"}}],
                ),
            },
            **steering.paths(operation, error, standing, *steered),
        },
    }  # fmt: skip


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
    refused = {code: {"description": text, "content": {JSON: {"schema": error}}} for code, text in ERRORS.items()}
    found: dict[str, Any] = {
        "operationId": name,
        "summary": summary,
        "parameters": [loop, *(parameters or ())],
        "responses": {**done, **refused},
    }
    if body is not None:
        found["requestBody"] = {"required": True, "content": {JSON: {"schema": body}}}
    return found


def query(name: str, least: int) -> dict[str, Any]:
    """A whole number in the query."""
    return {"name": name, "in": "query", "schema": {"type": "integer", "minimum": least}}
