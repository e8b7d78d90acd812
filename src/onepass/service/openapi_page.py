"""Types of the page's JSON (page.py), for OpenAPI."""

from typing import Any, Required, TypedDict


class Loops(TypedDict):
    """The loops that a key may read; keys: True where the service asks for keys."""

    loops: list[str]
    keys: bool


class ModelInfo(TypedDict, total=False):
    """A model, as the page shows it."""

    recipe: Required[Any]
    memory: Required[Any]
    error_bound: Required[Any]


class Overview(TypedDict, total=False):
    """A loop, as the page shows it: sums, how learning is doing, and what the model is sure of."""

    loop: Required[str]
    now: Required[float]
    trouble: Required[str | None]
    numbers: Required[dict[str, float]]
    model: Required[ModelInfo]
    budgets: Required[dict[str, dict[str, Any]]]
    baseline: Required[dict[str, Any] | None]


class Event(TypedDict):
    """All records of one decision."""

    id: str
    records: list[dict[str, Any]]
