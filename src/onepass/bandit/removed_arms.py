"""Arms that were removed from a bandit, with the number of rows that it had learned by then.

A reward that came for an arm before its removal must not be corrected in the model of the same name that came later.
Names are stored as 64-bit hashes, so long names take no room.
"""

import hashlib
import json
from typing import Any, Self

from onepass.bandit.decision import plain_name
from onepass.foundation import check
from onepass.foundation.latest import Latest

LENGTH = 2_000  # arms kept, the latest removals: 60 kB in a file
BYTES = 8  # of the hash of a name


class RemovedArms:
    """Latest removal of each arm, for the 2,000 arms removed last."""

    def __init__(self) -> None:
        self._rows = Latest(LENGTH)  # by the hash of an arm's name, the latest removal at the end

    def copy(self) -> "RemovedArms":
        twin = RemovedArms()
        twin._rows = self._rows.copy()
        return twin

    def add(self, arm: Any, n_learned: int) -> None:
        """Note that an arm was removed after `n_learned` rows of the bandit."""
        self._rows.put(_key(arm), n_learned)

    def has(self, arm: Any, since: int) -> bool:
        """Return True if an arm was removed after the bandit had learned more than `since` rows."""
        return bool(self._rows) and self._rows.get(_key(arm), -1) > since

    def to_plain(self) -> dict[str, int]:
        """Return the removals as plain data for a file."""
        return dict(self._rows)

    @classmethod
    def from_plain(cls, found: Any) -> Self:
        """Rebuild the removals from the result of `to_plain`; ValueError for other data."""
        if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
            raise ValueError(f"removed must map hashes of arms to numbers of rows, got {check.quote(found)}")
        made = cls()
        made._rows = Latest(LENGTH, {key: check.integer("removed", rows, 0) for key, rows in found.items()})
        return made


def _key(arm: Any) -> str:
    """Return a hash of an arm's name, as text."""
    try:
        text = json.dumps(plain_name(arm))
    except ValueError:  # a name that files do not hold
        text = repr(arm)
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=BYTES).hexdigest()
