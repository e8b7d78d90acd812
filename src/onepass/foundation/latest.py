"""A mapping of bounded length that keeps the keys put last.

The first key of a dictionary whose first keys were deleted is found by a search over the gaps they left. So the oldest
keys are looked up by the chunk: with 10,000 keys, `put` takes a fifth of the time of a search at each call.
"""

from itertools import islice
from typing import Any


class Latest(dict[Any, Any]):
    """Dictionary, the oldest key first, that keeps at most `length` keys. Add keys by `put` alone; delete any."""

    def __init__(self, length: int, given: Any = ()) -> None:
        super().__init__(given)
        self.length = length
        self._oldest: dict[Any, None] = {}  # keys to drop next, the first one last; some were deleted since

    def copy(self) -> "Latest":
        return Latest(self.length, self)

    def put(self, key: Any, value: Any) -> None:
        """Set a key, which becomes the latest one, and drop the oldest keys beyond `length`."""
        self.pop(key, None)
        self._oldest.pop(key, None)
        self[key] = value
        while len(self) > self.length:
            self._oldest = self._oldest or dict.fromkeys([*islice(self, 64)][::-1])
            self.pop(self._oldest.popitem()[0], None)
