"""Keys with roles, of which only hashes are stored.

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
    """Key in a settings file.

    `sha256` is the key's hash in hexadecimal digits, `roles` has at least one role, and `name` is for people.
    """

    sha256: str
    roles: list[Role]
    name: str = ""


class Keys:
    """Keys of a loop, which tell the roles of a request's key.

    `found` has a dictionary with the fields of `Key` for each table `keys` of the settings file. By default there are
    no keys. Raises ValueError for an invalid key.
    """

    def __init__(self, found: Any = ()) -> None:
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
        """Return the roles of the key `presented` by a request, with all roles for an administrator's key.

        The result is empty for an unknown key. If the loop has no keys, every request has all roles.
        """
        if not self._keys:
            return set(ROLES)
        digest, allowed = hash_key(presented or ""), set[str]()
        for key in self._keys:
            if hmac.compare_digest(digest, key.sha256):
                allowed |= set(ROLES) if "admin" in key.roles else set(key.roles)
        return allowed

    def require(self, presented: str | None, role: Role) -> None:
        """Raise ApiError unless `presented`, the key of a request, has the role `role`."""
        allowed = self.roles(presented)
        if not allowed:
            raise ApiError(401, "Unauthorized", UNAUTHORIZED)
        if role not in allowed:
            raise ApiError(403, "Forbidden", f"the key must have the role {role}, it has {', '.join(sorted(allowed))}")


def hash_key(key: str) -> str:
    """Return the SHA-256 hash of a key as hexadecimal digits."""
    return hashlib.sha256(key.encode()).hexdigest()


def make_key(roles: Iterable[str]) -> tuple[str, str]:
    """Return a new random key with these roles, and its lines for the settings file; ValueError for unknown roles."""
    wanted = list(roles)
    if not wanted or not set(wanted) <= set(ROLES):
        raise ValueError(f"roles must be among {', '.join(ROLES)}, got {quote(wanted)}")
    key = PREFIX + secrets.token_urlsafe(BYTES)
    quoted = ", ".join(f'"{role}"' for role in wanted)
    return key, f'[[keys]]\nroles = [{quoted}]\nsha256 = "{hash_key(key)}"'
