"""What OpenAPI says of the page's JSON (page.py)."""

from typing import Any

NUMBERS = {"type": "object", "additionalProperties": {"type": "number"}}
OVERVIEW = {
    "type": "object",
    "required": ["loop", "now", "trouble", "numbers", "model"],
    "properties": {
        "loop": {"type": "string"},
        "now": {"type": "number"},
        "trouble": {"type": ["string", "null"]},
        "numbers": NUMBERS,
        "model": {"type": "object", "required": ["recipe", "memory", "error_bound"]},
    },
}
EVENT = {
    "type": "object",
    "required": ["id", "records"],
    "properties": {"id": {"type": "string"}, "records": {"type": "array", "items": {"type": "object"}}},
}
LOOPS = {
    "type": "object",
    "required": ["loops", "keys"],
    "properties": {"loops": {"type": "array", "items": {"type": "string"}}, "keys": {"type": "boolean"}},
}


def paths(operation: Any, whole: Any, refused: Any, error: Any) -> dict[str, Any]:
    """Paths. operation, whole: describe one, of a loop and of the service; refused: describes a refusal; error: its
    schema."""
    identity = {"name": "id", "in": "query", "required": True, "schema": {"type": "string", "minLength": 1}}
    listed = whole("listed", "Loops that the key may read", LOOPS)
    listed["responses"] |= {code: refused(code, error) for code in ("405", "421")}
    return {
        "/v1": {"get": listed},
        "/v1/{loop}/overview": {"get": operation("overview", "What the page shows", error, OVERVIEW)},
        "/v1/{loop}/event": {
            "get": operation("event", "All about one decision", error, EVENT, parameters=[identity]),
        },
    }
