"""Calls of Personalizer's API: their loop, their key and their content.

The endpoint `http://HOST/LOOP` names the loop. Otherwise the key, Ocp-Apim-Subscription-Key, selects the loop that has
this key. If no loop has keys, the header's value is taken as the name of a loop, and a single loop needs no header.
"""

from typing import Any, NamedTuple, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from onepass.foundation.check import quote
from onepass.service.keys import Keys, Role
from onepass.service.loop import Loop
from onepass.service.personalizer.errors import Problem
from onepass.service.personalizer.jobs import Jobs

JSON = "application/json"
KEY = "ocp-apim-subscription-key"
BEARER = "bearer "
REQUEST_ID = "x-ms-client-request-id"
Kind = TypeVar("Kind")


class Body(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base class of request bodies; unknown fields are ignored, as Personalizer does."""


class Call(NamedTuple):
    """One call of Personalizer's API.

    - first: True for version v1.0 of the API.
    - parts: variable segments of the path, decoded.
    - content: body of the request.
    - evaluations, importances: background jobs of the loop: evaluations, and feature importances.
    """

    request: Request
    loop: Loop
    first: bool
    parts: tuple[str, ...]
    content: bytes
    evaluations: Jobs
    importances: Jobs

    @property
    def idempotency_key(self) -> str | None:
        """Id that the client gave to the request, or None; a repeated request has the same id."""
        return self.request.headers.get(REQUEST_ID) or None

    def read(self, kind: type[Kind]) -> Kind:
        """Decode the body as a message of a type. Raises ValueError if it is not one."""
        try:
            return msgspec.json.decode(self.content, type=kind)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"the body does not fit: {error}") from None


def json_response(found: Any, status: int = 200, **headers: str) -> Response:
    """Return a response with the content `found` as JSON and this HTTP status."""
    return Response(msgspec.json.encode(found), status, headers, JSON)


def empty_response() -> Response:
    """Return an HTTP response with status 204 and without a body."""
    return Response(status_code=204)


def key_of(request: Request) -> str | None:
    """Return the key in the headers of a request, or None."""
    key = request.headers.get(KEY)
    if key is None:
        given = request.headers.get("authorization", "")
        key = given[len(BEARER) :].strip() if given[: len(BEARER)].lower() == BEARER else None
    return key


def find_loop(request: Request, loops: dict[str, Loop], keys: dict[str, Keys], name: str | None, role: Role) -> Loop:
    """Return the loop of a request, by the `name` in its path, or by its key if that is None.

    Raises ApiError if there is no such loop, or if the key lacks the role `role`.
    """
    presented, guarded = key_of(request), any(map(len, keys.values()))
    if name is None:
        if guarded:
            name = next((one for one, held in keys.items() if held.roles(presented)), None)
        else:
            name = presented if presented in loops else next(iter(loops)) if len(loops) == 1 else None
    if guarded and (name is None or not (name in keys and keys[name].roles(presented))):
        raise Problem(401, "401", "Access denied: send a key of the loop as Ocp-Apim-Subscription-Key")
    if name is None:
        raise Problem(404, "ResourceNotFound", "there are several loops: let the endpoint be http://HOST/LOOP")
    if name not in loops:
        raise Problem(404, "ResourceNotFound", f"there is no loop {quote(name)}")
    keys[name].require(presented, role)
    return loops[name]
