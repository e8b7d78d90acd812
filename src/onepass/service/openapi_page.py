"""Types of the monitoring page's JSON (page.py), for OpenAPI."""

from typing import Any, Required, TypedDict


class Loops(TypedDict):
    """Answer with the names of the loops that a key may read; `keys` is true if the service asks for keys."""

    loops: list[str]
    keys: bool


class ModelInfo(TypedDict, total=False):
    """Answer about a loop's model on the monitoring page: recipe, memory, error bound, trust in a warm start."""

    recipe: Required[Any]
    memory: Required[Any]
    error_bound: Required[Any]
    trust: Required[list[float] | None]


class Overview(TypedDict, total=False):
    """Answer with what the monitoring page shows about a loop: sums over its log, learning, and accuracy.

    `now` is the time in seconds of Unix time, `trouble` why the loop is not ready (null if it is), and `numbers` its
    counters. `budgets`, `baseline` and `ab_test` are null or empty without one. `Overview.to_dict` adds further fields.
    """

    loop: Required[str]
    now: Required[float]
    trouble: Required[str | None]
    numbers: Required[dict[str, float]]
    model: Required[ModelInfo]
    budgets: Required[dict[str, dict[str, Any]]]
    baseline: Required[dict[str, Any] | None]
    ab_test: Required[dict[str, Any] | None]


class Event(TypedDict):
    """Answer with all records of one decision."""

    id: str
    records: list[dict[str, Any]]
