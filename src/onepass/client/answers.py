"""What is asked and what comes back, as types."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypedDict, TypeVar, cast

T = TypeVar("T")
Arms = Sequence[str | Mapping[str, Any]] | Mapping[str, Any]  # names, arms as JSON, or features by name


class Asked(TypedDict, total=False):
    """The rest of a decision. exclude: arms that must not be chosen; slots: how many to fill (default 1); id: of the
    decision (default: made); defer: it counts once it is activated (default False); subject: whom it is about; tail:
    how slots after the first are filled, "drawn" (default) or "greedy"."""

    exclude: Sequence[str]
    slots: int
    id: str
    defer: bool
    subject: str
    tail: str


class Outcome(TypedDict, total=False):
    """What came of a decision. id: of the decision, value: both must be there; slot: which one (default: all); key:
    what counts once (default: made)."""

    id: str
    value: float
    slot: int | None
    key: str | None


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """An arm that was offered. arm: its name; probability: of being drawn first; score: what the rule ranks by."""

    arm: str
    probability: float
    score: float


@dataclass(frozen=True, kw_only=True)
class Decided:
    """What to show. id: of the decision; arm: in the first slot, arms: in all; propensity, propensities: with which
    probability each was shown; ranking: all arms; mode: of the loop; rounds: rewards that the model had learned;
    settings: their version."""

    id: str
    arm: str
    arms: tuple[str, ...]
    propensity: float
    propensities: tuple[float, ...]
    ranking: tuple[Ranked, ...]
    mode: str
    rounds: int
    settings: str


@dataclass(frozen=True, kw_only=True)
class Counted:
    """taken: outcomes that were sent; stored: those of them that were new."""

    taken: int
    stored: int


@dataclass(frozen=True, kw_only=True)
class Standing:
    """settings: in force; version: theirs; changed: the names of those that differ from before."""

    settings: dict[str, Any]
    version: str
    changed: tuple[str, ...] = ()


def record(kind: type[T], found: Mapping[str, Any]) -> T:
    """A record of an answer; fields of a newer service are left out."""
    known = {field.name for field in fields(cast(Any, kind))}
    return kind(**{name: frozen(value) for name, value in found.items() if name in known})


def frozen(value: Any) -> Any:
    """Lists as tuples."""
    if isinstance(value, list):
        several: list[Any] = value
        return tuple(several)
    return value


def decided(found: Any) -> Decided:
    """The answer to a decision."""
    return record(Decided, {**found, "ranking": [record(Ranked, one) for one in found["ranking"]]})
