"""Who may do what: keys with roles, of which only hashes are kept.

    [[keys]]
    name = "shop"
    roles = ["decide", "reward"]
    sha256 = "..."                       # `onepass serve --new-key decide,reward` prints a key, and this

A key is 32 random bytes, so a plain hash of it tells nothing. All hashes of a loop are compared, each in constant time.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from typing import Any, Literal, get_args

import msgspec

from onepass.foundation.check import quote
from onepass.service.messages import ApiError

Role = Literal["decide", "reward", "read", "admin"]  # admin: everything
ROLES = get_args(Role)
BYTES = 32  # of a key
PREFIX = "onepass_"
UNAUTHORIZED = "send a key of this loop: Authorization: Bearer KEY"
HASH = re.compile("[0-9a-f]{64}")


class Key(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key as the settings file has it. sha256: hexadecimal digits; roles: one at least; name: for people."""

    sha256: str
    roles: list[Role]
    name: str = ""


class Keys:
    """The keys of a loop. found: as they stand in its file; ValueError for what is none."""

    def __init__(self, found: Any = ()):
        try:
            self._keys = msgspec.convert(list(found), list[Key])
        except (msgspec.ValidationError, TypeError) as error:
            raise ValueError(f"keys do not fit: {error}") from None
        for key in self._keys:
            if not HASH.fullmatch(key.sha256) or not key.roles:
                raise ValueError(
                    f"keys must have sha256, 64 small hexadecimal digits, and roles, got {quote(key.name)}"
                )

    def __len__(self) -> int:
        return len(self._keys)

    def roles(self, presented: str | None) -> set[str]:
        """What a presented key may do; every role where there are no keys."""
        if not self._keys:
            return set(ROLES)
        digest, allowed = hash_key(presented or ""), set[str]()
        for key in self._keys:
            if hmac.compare_digest(digest, key.sha256):
                allowed |= set(ROLES) if "admin" in key.roles else set(key.roles)
        return allowed

    def require(self, presented: str | None, role: Role) -> None:
        """Refused unless a presented key may do this."""
        allowed = self.roles(presented)
        if not allowed:
            raise ApiError(401, "Unauthorized", UNAUTHORIZED)
        if role not in allowed:
            raise ApiError(403, "Forbidden", f"the key must have the role {role}, it has {', '.join(sorted(allowed))}")


def hash_key(key: str) -> str:
    """What is kept of a key."""
    return hashlib.sha256(key.encode()).hexdigest()


def make_key(roles: Iterable[str]) -> tuple[str, str]:
    """A new key, and the lines for the settings file; ValueError for roles that there are not."""
    wanted = list(roles)
    if not wanted or not set(wanted) <= set(ROLES):
        raise ValueError(f"roles must be among {', '.join(ROLES)}, got {quote(wanted)}")
    key = PREFIX + secrets.token_urlsafe(BYTES)
    quoted = ", ".join(f'"{role}"' for role in wanted)
    return key, f'[[keys]]\nroles = [{quoted}]\nsha256 = "{hash_key(key)}"'
