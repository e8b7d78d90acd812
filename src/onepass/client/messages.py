"""Types of the requests that the client sends and of the answers that it returns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypedDict, TypeVar, cast

T = TypeVar("T")
Arms = Sequence[str | Mapping[str, Any]] | Mapping[str, Any]  # names, arms as JSON, or features by name


class DecideOptions(TypedDict, total=False):
    """Optional arguments of `decide`.

    Attributes
    ----------
    exclude : sequence of str
        Arms that must not be chosen.
    slots : int
        Number of arms to choose, 1 if left out.
    id : str
        Id of the decision, made by the client if left out. A request with the id of an earlier one gets its answer.
    defer : bool
        If True, the decision counts only once it is activated. False if left out.
    subject : str
        User whom the decision is about. All records about a subject can be deleted.
    rest : {"sampled", "greedy"}
        How slots after the first are filled: by samples, or by the largest scores. "sampled" if left out.
    costs : dict of str to dict of str to float
        Usual costs, {arm: {outcome: cost above 0}}. The `prices` of the settings if left out.
    weights : dict of str to float
        Weights of the reward and of outcomes. If left out, only the reward counts.
    """

    exclude: Sequence[str]
    slots: int
    id: str
    defer: bool
    subject: str
    rest: str
    costs: Mapping[str, Mapping[str, float]]
    weights: Mapping[str, float]


class Outcome(TypedDict, total=False):
    """Outcome of a decision, as the method `outcomes` of a client takes it.

    Attributes
    ----------
    id : str
        Id of the decision.
    value : float or None
        Reward.
    outcomes : dict of str to float or None
        Other outcomes, by the names of the loop's settings.
    slot : int or None
        Index of the slot that the value belongs to, from 0. All slots if left out.
    key : str or None
        Key under which the outcome counts once, made by the client if left out.
    """

    id: str
    value: float | None
    outcomes: Mapping[str, float] | None
    slot: int | None
    key: str | None


@dataclass(frozen=True, kw_only=True)
class RankedArm:
    """Arm in the ranking of a decision.

    Parameters
    ----------
    arm : str
        Name of the arm.
    probability : float
        Probability that the arm is drawn for the first slot.
    score : float
        Score by which the exploration rule ranks the arm.
    """

    arm: str
    probability: float
    score: float


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Answer to `decide`: the arms to show, and their probabilities.

    Parameters
    ----------
    id : str
        Id of the decision.
    arm : str
        Arm in the first slot.
    arms : tuple of str
        Arms in all slots.
    propensity : float
        Probability with which `arm` was chosen.
    propensities : tuple of float
        Probability with which each of `arms` was chosen.
    ranking : tuple of RankedArm
        All arms on offer, those chosen first.
    mode : str
        Mode of the loop: "online", "apprentice", "logging" or "canary".
    rounds : int
        Number of rewards that the model had learned.
    settings : str
        Version of the settings.
    predicted : dict of str to float or None, default None
        Predicted outcomes of `arm`, in a loop with outcomes.
    prices : dict of str to float or None, default None
        Price of a unit of each outcome in units of reward, in a loop with budgets.
    share : float or None, default None
        Probability with which the bandit decided instead of the baseline, in a loop with a baseline.
    """

    id: str
    arm: str
    arms: tuple[str, ...]
    propensity: float
    propensities: tuple[float, ...]
    ranking: tuple[RankedArm, ...]
    mode: str
    rounds: int
    settings: str
    predicted: dict[str, float] | None = None
    prices: dict[str, float] | None = None
    share: float | None = None


@dataclass(frozen=True, kw_only=True)
class OutcomeCounts:
    """Answer to `outcome` and `outcomes`.

    Parameters
    ----------
    accepted : int
        Number of outcomes that were sent.
    new : int
        Number of those outcomes that the log did not hold before.
    """

    accepted: int
    new: int


@dataclass(frozen=True, kw_only=True)
class SettingsInfo:
    """Settings of a loop.

    Parameters
    ----------
    settings : dict
        Present settings.
    version : str
        Version of the settings.
    changed : tuple of str, default ()
        Names of the settings that a request changed.
    """

    settings: dict[str, Any]
    version: str
    changed: tuple[str, ...] = ()


def from_json(kind: type[T], fields_of_json: Mapping[str, Any]) -> T:
    """Make an object of class `kind` from a JSON object; fields of a newer service are left out."""
    known = {field.name for field in fields(cast(Any, kind))}
    return kind(**{name: _to_tuple(value) for name, value in fields_of_json.items() if name in known})


def parse_decision(answer: Any) -> Decision:
    """Return the `Decision` in the JSON answer of the service to a request for a decision."""
    return from_json(Decision, {**answer, "ranking": [from_json(RankedArm, arm) for arm in answer["ranking"]]})


def _to_tuple(value: Any) -> Any:
    """Turn a list into a tuple, and leave other values as they are."""
    if isinstance(value, list):
        items: list[Any] = value
        return tuple(items)
    return value
