"""A candidate that has a share of the decisions: what is shown, and with which probability.

    shown ~ (1 - share) p + share q,      p of the model that serves, q of the candidate

Both draw; a lot that is a function of the event says whose arm is shown. So the mixture is exact for the first slot,
and both policies can be evaluated on the same rows, with weights of at most 1 / (1 - share) and 1 / share.
"""

import hashlib

from onepass.log.records import Decision

BITS = 53  # of a number from 0 to 1


def hash_uniform(text: str, purpose: bytes) -> float:
    """From 0 to 1, below 1: as good as random, the same for the same text and purpose."""
    digest = hashlib.blake2b(text.encode(), digest_size=8, person=purpose).digest()
    return (int.from_bytes(digest, "little") >> (64 - BITS)) / 2.0**BITS


def mix_probabilities(p: list[float], q: list[float], share: float) -> list[float]:
    """Probabilities (K,) of the mixture."""
    return [(1.0 - share) * one + share * other for one, other in zip(p, q, strict=True)]


def is_canary(seed: int | str, identity: str, share: float) -> bool:
    """Whether the arm of the candidate is shown. seed: of the decision of the model that serves."""
    return hash_uniform(f"{seed} {identity}", b"canary") < share


def display_from_canary(record: Decision) -> tuple[list[int], list[float]] | None:
    """What a decision with a canary must have shown, and with which probabilities (K,); None for one without."""
    canary = record.canary
    if canary is None or record.probabilities is None:
        return None
    place = canary.place if is_canary(record.seed, record.id, canary.share) else record.places[0]
    return [place], mix_probabilities(record.probabilities, canary.probabilities, canary.share)
