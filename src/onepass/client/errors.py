"""Exceptions of the client, one for each kind of refusal, with the service's code and message."""

from typing import Any


class ServiceError(Exception):
    """Base class of all exceptions of the client: a request that was not served.

    Parameters
    ----------
    status : int
        HTTP status, 0 if there was no answer.
    code : str
        Name of the error, for programs.
    message : str
        Sentence about the error, for people.
    sent : object, default None
        Body of the request, with the id and the keys that the client made. It may be sent again.
    """

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
    """Request with a wrong value or shape, which the caller must change.

    Parameters
    ----------
    status : int
        HTTP status, 0 if there was no answer.
    code : str
        Name of the error, for programs.
    message : str
        Sentence about the error, for people.
    sent : object, default None
        Body of the request.
    """


class Unauthorized(ServiceError):
    """Request without a valid key.

    Parameters
    ----------
    status : int
        HTTP status, 0 if there was no answer.
    code : str
        Name of the error, for programs.
    message : str
        Sentence about the error, for people.
    sent : object, default None
        Body of the request.
    """


class Forbidden(ServiceError):
    """Request with a key that lacks the necessary role.

    Parameters
    ----------
    status : int
        HTTP status, 0 if there was no answer.
    code : str
        Name of the error, for programs.
    message : str
        Sentence about the error, for people.
    sent : object, default None
        Body of the request.
    """


class NotFound(ServiceError):
    """Request for a loop, decision or evaluation that does not exist.

    Parameters
    ----------
    status : int
        HTTP status, 0 if there was no answer.
    code : str
        Name of the error, for programs.
    message : str
        Sentence about the error, for people.
    sent : object, default None
        Body of the request.
    """


class Conflict(ServiceError):
    """Request that contradicts the state of the loop, such as an id that belongs to another request.

    Parameters
    ----------
    status : int
        HTTP status, 0 if there was no answer.
    code : str
        Name of the error, for programs.
    message : str
        Sentence about the error, for people.
    sent : object, default None
        Body of the request.
    """


class TooManyRequests(ServiceError):
    """Request beyond the rate limit.

    Parameters
    ----------
    status : int
        HTTP status, 0 if there was no answer.
    code : str
        Name of the error, for programs.
    message : str
        Sentence about the error, for people.
    sent : object, default None
        Body of the request.
    """


class Unavailable(ServiceError):
    """Request that the service cannot serve now: its log cannot be written, or it is stopping. Send `sent` later.

    Parameters
    ----------
    status : int
        HTTP status, 0 if there was no answer.
    code : str
        Name of the error, for programs.
    message : str
        Sentence about the error, for people.
    sent : object, default None
        Body of the request.
    """


class NoAnswer(ServiceError):
    """Request without an answer: it may have been served. If `sent` is sent again, it counts once.

    Parameters
    ----------
    status : int
        HTTP status, 0 if there was no answer.
    code : str
        Name of the error, for programs.
    message : str
        Sentence about the error, for people.
    sent : object, default None
        Body of the request.
    """


KINDS: dict[int, type[ServiceError]] = {
    400: BadRequest, 401: Unauthorized, 403: Forbidden, 404: NotFound, 405: BadRequest, 409: Conflict, 413: BadRequest,
    415: BadRequest, 421: BadRequest, 422: BadRequest, 429: TooManyRequests, 502: Unavailable, 503: Unavailable,
    504: Unavailable,
}  # fmt: skip
