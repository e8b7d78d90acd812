"""Detection of names that appear twice in one object of JSON, of which decoders silently keep the last.

    names in a body = colons outside of strings >= names in the decoded objects, and equal if no name appears twice

The decoded body is encoded again and colons are counted in both, which costs a tenth of deciding. If a body has
escapes, which may hide colons, it is parsed once more name by name.
"""

import json
from typing import Any

import msgspec

from onepass.foundation.check import quote

_decoder, _encoder = msgspec.json.Decoder(), msgspec.json.Encoder()


def refuse_duplicates(body: bytes) -> None:
    """Raise ValueError if an object in a valid JSON body has a name twice."""
    if body.count(b":") < 2:
        return
    if b"\\" not in body:
        try:
            if body.count(b":") == _encoder.encode(_decoder.decode(body)).count(b":"):
                return
        except OverflowError:  # integers that are too large to be written
            pass
    json.loads(body, object_pairs_hook=unique)


def unique(pairs: list[tuple[str, Any]]) -> None:
    """Raise ValueError if a name appears twice among the pairs of an object."""
    names = set[str]()
    for name, _ in pairs:
        if name in names:
            raise ValueError(f"every name must stand once in an object, but {quote(name)} stands twice")
        names.add(name)
