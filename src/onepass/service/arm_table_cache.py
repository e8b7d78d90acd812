"""Cache of the arms in requests, because most requests offer the same arms as earlier ones.

A request's body is split into {context, id, ...} and the bytes of its arms. The parsed arms of the same bytes are taken
from the cache, or parsed and added to it.
"""

import hashlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from onepass.service.duplicates import refuse_duplicates
from onepass.service.messages import Arm, DecideRequest

BYTES = 1 << 22  # of requests' arms of which tables are kept, which take about three times as much memory
NULL = b"null"
UNSAID = b',"costs":null,"weights":null}'  # the end of a request that says neither
BETWEEN = b"],["  # two rows in JSON

_whole = msgspec.json.Decoder(DecideRequest)
_arms = msgspec.json.Decoder(list[str | Arm])
_sent: Any = msgspec.json.Decoder(
    msgspec.defstruct(
        "SentRequest", [("arms", msgspec.Raw, msgspec.Raw(NULL))], bases=(DecideRequest,), frozen=True, kw_only=True
    )
)  # a request whose arms are not read yet


class ArmTable:
    """Arms on offer in a request, with their numbers.

    names (K,) are all different. rows (K, width) holds the arms' numbers, or is None if arms have none. digest
    identifies the arms, however the JSON was formatted (default: the digest of no arms).
    """

    __slots__ = ("digest", "longest", "names", "rows", "shortest", "texts")

    def __init__(self, names: list[str], rows: np.ndarray | None, digest: bytes = b"") -> None:
        self.names, self.rows, self.digest = names, rows, digest
        self.texts: list[bytes] = []  # of every row, its numbers as JSON
        if rows is not None:
            self.texts = msgspec.json.encode(rows.tolist())[2:-2].split(BETWEEN)
        self.shortest, self.longest = min(map(len, names), default=1), max(map(len, names), default=1)

    def __len__(self) -> int:
        return len(self.names)

    def contexts(self, left: list[float]) -> np.ndarray:
        """Return the contexts of a decision, from the request's numbers `left`.

        The shape is (dim,), or (K, dim) with each arm's numbers appended to the request's.
        """
        if self.rows is None:
            return np.array(left)
        found = np.empty((len(self.rows), len(left) + self.rows.shape[1]))
        found[:, : len(left)] = left
        found[:, len(left) :] = self.rows
        return found

    def text(self, left: list[float]) -> msgspec.Raw | None:
        """Return the contexts of a decision as JSON text; None if arms have no numbers.

        `left` holds the request's numbers, to which each arm's numbers are appended.
        """
        if self.rows is None:
            return None
        begin = msgspec.json.encode(left)[1:-1] + b"," if left else b""
        return msgspec.Raw(b"[[" + begin + (BETWEEN + begin).join(self.texts) + b"]]")


class ArmTableCache:
    """Cache of the arms in the latest requests to a loop, for up to 4 MiB of requests.

    `made` is a function that makes an `ArmTable` from a list of arms.
    """

    def __init__(self, made: Callable[[Sequence[str | Arm]], ArmTable]) -> None:
        self._made = made
        self._tables: dict[bytes, ArmTable] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def decode(self, body: bytes) -> DecideRequest:
        """Decode a request, with the table of its arms in place of the arms.

        Raises ValueError for an invalid request.
        """
        request = _sent.decode(body)
        sent = bytes(request.arms)
        refuse_duplicates(body.replace(sent, NULL, 1) if sent != NULL else body)
        table = None if sent == NULL else self._tables.get(sent) or self._new(sent, body)
        msgspec.structs.force_setattr(request, "arms", table)
        found: DecideRequest = request
        return found

    def _new(self, sent: bytes, body: bytes) -> ArmTable:
        try:
            arms = _arms.decode(sent)
            refuse_duplicates(sent)
        except ValueError:
            _whole.decode(body)  # says where in the body it does not fit
            raise
        table = self._made(arms)
        table.digest = digest(arms)
        if len(sent) <= BYTES:
            with self._lock:
                self._bytes += len(sent) if sent not in self._tables else 0
                self._tables[sent] = table
                while self._bytes > BYTES:
                    oldest = next(iter(self._tables))
                    del self._tables[oldest]
                    self._bytes -= len(oldest)
        return table


def digest(arms: Any) -> bytes:
    """Return a hash of 16 bytes that identifies the arms of a request, given as a list or as an `ArmTable`."""
    if isinstance(arms, ArmTable):
        return arms.digest
    return hashlib.blake2b(msgspec.json.encode(arms, order="deterministic"), digest_size=16).digest()


def fingerprint(request: DecideRequest) -> str:
    """Return a digest of a request, 32 hexadecimal digits, by which a repeated request is recognized.

    Fields that a request leaves out do not change the digest.
    """
    text = msgspec.json.encode(msgspec.structs.replace(request, arms=None), order="deterministic")
    if text.endswith(UNSAID):
        text = text.removesuffix(UNSAID) + b"}"
    return hashlib.blake2b(text + digest(request.arms), digest_size=16).hexdigest()
