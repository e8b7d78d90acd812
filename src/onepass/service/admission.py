"""Access checks of requests: the Host header if there are no keys, and the key if there are."""

from typing import Any

from onepass.foundation.check import quote
from onepass.service.keys import UNAUTHORIZED, Keys, Role
from onepass.service.messages import ApiError

LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")
BEARER = "bearer "


class Admission:
    """Access checks of a service. `keys` maps a loop's name to its keys; if no loop has keys, the service is open."""

    def __init__(self, keys: dict[str, Keys]) -> None:
        self.keys = keys
        self.open = not any(map(len, keys.values()))

    def check_host(self, request: Any) -> None:
        """Raise ApiError if there are no keys and the Host header does not name this machine.

        Otherwise a web page of another host could send requests to the service.
        """
        host = request.headers.get("host", "")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if self.open and name not in LOOPBACK:
            raise ApiError(421, "WrongHost", f"without keys the host must be one of this machine's, got {quote(host)}")

    def admit(self, request: Any, name: str, role: Role) -> None:
        """Raise ApiError unless a request may do what needs the role `role` in the loop `name`.

        If the loop has keys, the request must have one of them with this role. A request to a loop that does not exist
        is refused, too.
        """
        self.check_host(request)
        presented = key_of(request)
        if name in self.keys:
            self.keys[name].require(presented, role)
        elif self.open:
            raise ApiError(404, "LoopNotFound", f"there is no loop {quote(name)}")
        else:  # as for a key of another loop: nobody learns which loops there are
            raise ApiError(401, "Unauthorized", UNAUTHORIZED)

    def readable(self, presented: str | None) -> set[str]:
        """Return the names of the loops that the key `presented` of a request may read."""
        return {name for name, keys in self.keys.items() if "read" in keys.roles(presented)}

    def client(self, request: Any, name: str) -> str | None:
        """Return the identity by which a request's rate is limited: its key, or its address if the loop has no keys."""
        return key_of(request) if len(self.keys[name]) else address_of(request)


def key_of(request: Any) -> str | None:
    """Return the key in the headers of a request, or None."""
    given = request.headers.get("authorization", "")
    return given[len(BEARER) :].strip() if given[: len(BEARER)].lower() == BEARER else None


def address_of(request: Any) -> str:
    """Return the network address that a request comes from."""
    return "" if request.client is None else str(request.client.host)
