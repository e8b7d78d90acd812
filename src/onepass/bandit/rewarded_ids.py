"""Ids of the last `LENGTH` rewarded decisions, stored as 64-bit hashes.

They detect a second reward of the same decision. With probability 1 / (2 10^15) a new id has the hash of another one,
and its reward is refused by mistake.
"""

import base64
import hashlib
from collections.abc import Iterable

import numpy as np

from onepass.foundation import check
from onepass.foundation.latest import Latest

LENGTH = 10_000  # identities kept: 107 kB in a file
BYTES = 8  # of each


def _bits(identity: str) -> int:
    text = identity.encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=BYTES).digest(), "little")


class RewardedIds:
    """Set of the ids of the latest rewarded decisions, in the order in which their rewards were learned."""

    def __init__(self, bits: Iterable[int] = ()) -> None:
        self._bits = Latest(LENGTH, dict.fromkeys(bits))

    def copy(self) -> "RewardedIds":
        twin = RewardedIds()
        twin._bits = self._bits.copy()
        return twin

    def __len__(self) -> int:
        return len(self._bits)

    def __contains__(self, identity: str) -> bool:
        return _bits(identity) in self._bits

    def check(self, identities: list[str], allow_repeat: bool) -> list[int]:
        """Return the 64-bit hashes of ids, to be given to `add`.

        Raises ValueError for an id that is in the set or appears twice, unless `allow_repeat` is True.
        """
        new = [_bits(identity) for identity in identities]
        for place, bits in enumerate(() if allow_repeat else new):
            if bits in self._bits or bits in new[:place]:
                raise ValueError(
                    f"decision {check.quote(identities[place])} has had its reward; "
                    "pass allow_repeat=True to learn another"
                )
        return new

    def add(self, new: list[int]) -> None:
        """Add hashes of ids as the latest ones, and drop the oldest beyond 10,000."""
        for bits in new:
            self._bits.put(bits, None)

    def join(self, other: "RewardedIds") -> None:
        """Add the ids of the set `other` after the ids of this set."""
        self.add(list(other._bits))

    def to_text(self) -> str:
        """Return the hashes of all ids as text for a file."""
        return base64.b64encode(np.fromiter(self._bits, np.dtype("<u8"), len(self._bits)).tobytes()).decode()

    @classmethod
    def from_text(cls, text: str) -> "RewardedIds":
        """Rebuild a set from the text of `to_text`; raise ValueError if the text is damaged."""
        held = np.frombuffer(base64.b64decode(text, validate=True), np.dtype("<u8")).tolist()
        if len(held) > LENGTH or len(set(held)) != len(held):
            raise ValueError(
                f"found {len(held):,} decisions with a reward, {len(set(held)):,} of them different, "
                f"expected up to {LENGTH:,}, each once"
            )
        return cls(held)
