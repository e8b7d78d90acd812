"""Random split of decisions between two policies by a hash of their ids, a mixture with exact probabilities."""

import hashlib

BITS = 53  # of a number from 0 to 1


def hash_uniform(text: str, purpose: bytes) -> float:
    """Return a pseudo-random number in [0, 1), a hash of `text` that is keyed by `purpose`.

    Another purpose, of at most 16 bytes, gives an independent number for the same text.
    """
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8, person=purpose).digest()
    return (int.from_bytes(digest, "little") >> (64 - BITS)) / 2.0**BITS


def mix_probabilities(p: list[float], q: list[float], share: float) -> list[float]:
    """Return the action probabilities (K,) of a mixture of two policies, (1 - share) p + share q."""
    return [(1.0 - share) * one + share * other for one, other in zip(p, q, strict=True)]
