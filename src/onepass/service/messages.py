"""Messages of the HTTP API as types, by which JSON is checked and from which OpenAPI is generated."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from onepass.foundation.check import quote
from onepass.log.records import Name

Numbers = list[float] | dict[str, float]  # in order, or by name; names that are left out are 0
NUL = "\0"  # no text of PostgreSQL has it


class ApiError(Exception):
    """Error response to a request.

    `status` is the HTTP status, `code` the error's name for programs, and `message` a sentence for people. `wait` is
    the number of seconds after which the request may be sent again, if it may (default 1).
    """

    def __init__(self, status: int, code: str, message: str, wait: int = 1) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.wait = status, code, message, wait

    def __reduce__(self) -> tuple[type["ApiError"], tuple[int, str, str, int]]:
        return type(self), (self.status, self.code, self.message, self.wait)


def bad_argument(message: str) -> ApiError:
    """Return the error for a request with a wrong value; `message` says what is wrong."""
    return ApiError(400, "BadArgument", message)


def check_name(what: str, most: int, *names: str | None) -> None:
    """Raise ApiError if a name is empty, has more than `most` characters, or contains NUL.

    `what` describes the names in the message. A name of None is skipped.
    """
    for name in names:
        if name is not None and not (1 <= len(name) <= most and NUL not in name):
            raise bad_argument(f"{what} must have from 1 to {most} characters, none of them NUL, got {quote(name)}")


class Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base class of the requests of the HTTP API; a request with an unknown field is refused."""


class Arm(Message, frozen=True, kw_only=True):
    """Arm on offer: `id` is its name, and `features` are its numbers, as the settings define them."""

    id: str
    features: Numbers | None = None


class DecideRequest(Message, frozen=True, kw_only=True):
    """Request for a decision.

    - context: numbers that describe the request, in order or by name.
    - arms: names, or names with features (default: the arms of the settings).
    - exclude: names that must not be chosen.
    - slots: number of slots to fill (default 1).
    - id: id of the decision, unique in a loop (default: the service makes one).
    - defer: true if the decision counts only once a later message activates it (default false).
    - subject: user whom it is about, so that it can be erased.
    - rest: how slots after the first are filled, "sampled" (default) or "greedy".
    - costs: known prices, {arm: {outcome: price above 0}}, instead of those of the settings.
    - weights: weights of the reward and of outcomes, {"reward": 1, "latency": -0.2} (default: of the reward alone).
    """

    context: Numbers | None = None
    arms: Sequence[str | Arm] | None = None
    exclude: list[str] = []
    slots: int = 1
    id: Name | None = None
    defer: bool = False
    subject: Name | None = None
    rest: Literal["sampled", "greedy"] = "sampled"
    costs: dict[str, dict[str, float]] | None = None
    weights: dict[str, float] | None = None


class RecordArm(Arm, frozen=True, kw_only=True):
    """Arm on offer whose features are a record: a dictionary, which may be nested."""

    features: dict[str, Any] | None = None


class RecordsRequest(DecideRequest, frozen=True, kw_only=True):
    """Request for a decision in a loop of records: the context, and the features of arms, are records."""

    context: dict[str, Any] | None = None
    arms: Sequence[str | RecordArm] | None = None


class OutcomeRequest(Message, frozen=True, kw_only=True):
    """Reward of a decision, other outcomes of it, or both.

    - id: id of the decision.
    - value: its reward.
    - outcomes: other outcomes, by the names of the settings.
    - slot: slot that the values belong to, from 0 (default: all).
    - key: key under which a message counts once, however often it is sent (default: each message counts).
    """

    id: Name
    value: float | None = None
    outcomes: dict[str, float] | None = None
    slot: int | None = None
    key: Name | None = None


class ActivateRequest(Message, frozen=True, kw_only=True):
    """Request that activates a deferred decision, because it was shown.

    `id` is the id of the decision.
    """

    id: Name


class ForgetRequest(Message, frozen=True, kw_only=True):
    """Request that erases all records about `subject`, a user named in decisions."""

    subject: Name


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Base class of the answers of the HTTP API."""


class RankedArm(Answer, frozen=True, kw_only=True):
    """Arm in the ranking of a decision.

    `probability` is the probability that the arm is drawn for the first slot, and `score` is the number by which the
    exploration rule ranks the arm.
    """

    arm: str
    probability: float
    score: float


class DecideAnswer(Answer, frozen=True, kw_only=True, omit_defaults=True):
    """Answer to a request for a decision.

    - id: id of the decision.
    - arm, arms: arm in the first slot, and arms in all slots.
    - propensity, propensities: probability with which the arm in the first slot, and in each slot, was shown.
    - ranking: all arms: first the arms shown, then the others by probability.
    - mode: mode of the loop.
    - rounds: number of rewards that the model had learned.
    - settings: version of the settings.
    - predicted: predicted outcomes of the arm in the first slot, in a loop with outcomes.
    - prices: price of a unit of each outcome, in units of reward, in a loop with budgets.
    - share: probability with which the bandit, and not the baseline, decided, in a loop with a baseline.
    """

    id: str
    arm: str
    arms: list[str]
    propensity: float
    propensities: list[float]
    ranking: list[RankedArm]
    mode: str
    rounds: int
    settings: str
    predicted: dict[str, float] | None = None
    prices: dict[str, float] | None = None
    share: float | None = None


class OutcomeAnswer(Answer, frozen=True, kw_only=True):
    """Answer to outcomes.

    - accepted: number of rewards and outcomes in the request.
    - new: number of those that the log did not have before.
    """

    accepted: int
    new: int


class ForgetAnswer(Answer, frozen=True, kw_only=True):
    """Answer to a request for an erasure.

    `forgotten` is the number of records whose content was deleted; their sequence numbers stay in the log.
    """

    forgotten: int


class ModelAnswer(Answer, frozen=True, kw_only=True):
    """Model of a loop.

    - model_number: number of the model, from 0.
    - state: serving, building, waiting (for its promotion) or retired.
    - why: a sentence about the state.
    - model: settings of the model.
    - through: sequence number of the last record of rewards that the model learned.
    - gain: comparison with the serving model, for a candidate that has a share.
    """

    model_number: int
    state: str
    model: dict[str, Any]
    why: str = ""
    through: int | None = None
    gain: dict[str, Any] | None = None


class SettingsAnswer(Answer, frozen=True, kw_only=True):
    """Settings of a loop.

    - settings: the present settings, or those that a dry run would apply.
    - version: version of the settings.
    - changed: names of the settings that differ from before.
    - model_number: number of the serving model.
    - candidate: the model that is to take over; without one, the last candidate that did not, and why.
    """

    settings: dict[str, Any]
    version: str
    changed: list[str] = []
    model_number: int = 0
    candidate: ModelAnswer | None = None


class ErrorBody(Answer, frozen=True, kw_only=True):
    """Error: `code` is its name for programs, and `message` a sentence for people."""

    code: str
    message: str


class ErrorAnswer(Answer, frozen=True, kw_only=True):
    """Body of every error response."""

    error: ErrorBody
