"""Errors in Personalizer's form and with its codes.

    {"error": {"code": "InvalidRankRequest", "message": "...", "target": "actions", "details": []}}

The header x-ms-error-code repeats the code. A request that a loop refuses gets the error code of its operation.
"""

import msgspec
from starlette.responses import Response

from onepass.log.store import StoreError
from onepass.service.messages import ApiError

JSON = "application/json"
ALWAYS = {  # codes of ours, by status and code of theirs, whatever the operation is
    "Unauthorized": (401, "401"),
    "Forbidden": (403, "InvalidApiAccess"),
    "TooLarge": (400, "PayloadSizeExceeded"),
    "UnsupportedMediaType": (415, "BadRequest"),
    "Disconnected": (400, "BadRequest"),
    "NotFound": (404, "ResourceNotFound"),
    "MethodNotAllowed": (405, "BadRequest"),
}
OTHERS = ("BadArgument", "EventConflict", "EventNotFound", "InvalidSettings", "SettingsFixed")


class Problem(ApiError):
    """Refusal of a request with a code of Personalizer's.

    `target` names the field that is wrong, if any. The other arguments are those of `ApiError`.
    """

    def __init__(self, status: int, code: str, message: str, target: str | None = None, wait: int = 1) -> None:
        super().__init__(status, code, message, wait)
        self.target = target


def problem_from(error: Exception, code: str) -> Problem:
    """Convert an error to Personalizer's form. `code` is the operation's code of an invalid request."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, StoreError):
        return Problem(503, "OperationNotAllowed", str(error))
    if isinstance(error, ApiError):
        if error.code in ALWAYS:
            status, known = ALWAYS[error.code]
            return Problem(status, known, error.message)
        if error.code in OTHERS:
            return Problem(400, code, error.message)
        return Problem(error.status, error.code, error.message, wait=error.wait)
    if isinstance(error, ValueError | RecursionError):
        return Problem(400, code, str(error))
    if isinstance(error, ArithmeticError):
        return Problem(409, "ModelRankingError", str(error))
    return Problem(500, "InternalServerError", f"this is an error of the service: {type(error).__name__}")


def problem_response(found: Problem) -> Response:
    """Return the HTTP response for the error `found`."""
    said = {"code": found.code, "message": found.message, "details": []}
    if found.target is not None:
        said["target"] = found.target
    headers = {"x-ms-error-code": found.code}
    if found.status in (429, 503):
        headers["retry-after"] = f"{found.wait}"
    if found.status == 401:
        headers["www-authenticate"] = "Bearer"
    return Response(msgspec.json.encode({"error": said}), found.status, headers, JSON)
