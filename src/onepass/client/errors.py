"""What can go wrong: an error a kind of refusal, with the service's code and sentence."""

from typing import Any


class ServiceError(Exception):
    """A request that was not served. status: of HTTP, 0 where there was no answer; code: a word for programs; message:
    a sentence for people; sent: the body, with the id and the keys that the client made, to be sent again."""

    status: int
    code: str
    message: str
    sent: Any

    def __init__(self, status: int, code: str, message: str, sent: Any = None) -> None:
        super().__init__(status, code, message, sent)
        self.status, self.code, self.message, self.sent = status, code, message, sent

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class BadRequest(ServiceError):
    """The request does not fit: it is the caller's to change."""


class Unauthorized(ServiceError):
    """There is no such key."""


class Forbidden(ServiceError):
    """The key has not the role that this takes."""


class NotFound(ServiceError):
    """There is no such loop, decision or evaluation."""


class Conflict(ServiceError):
    """It contradicts what is there: an id with another request, settings of another model."""


class TooMany(ServiceError):
    """More requests than the service takes."""


class Unavailable(ServiceError):
    """The log cannot be written, or the service stops: later, with what was `sent`."""


class NoAnswer(ServiceError):
    """Nobody knows whether it was served: what was `sent`, sent again, counts once."""


KINDS: dict[int, type[ServiceError]] = {
    400: BadRequest, 401: Unauthorized, 403: Forbidden, 404: NotFound, 405: BadRequest, 409: Conflict, 413: BadRequest,
    415: BadRequest, 421: BadRequest, 422: BadRequest, 429: TooMany, 502: Unavailable, 503: Unavailable,
    504: Unavailable,
}  # fmt: skip
