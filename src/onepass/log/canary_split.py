"""Random split of decisions between the serving model and a candidate.

    shown ~ (1 - share) p + share q,      p of the serving model, q of the candidate

Both models draw an arm, and a hash of the decision's id selects which of the two is shown. So the probabilities of the
mixture are exact for the first slot. Both policies can be evaluated on the same rows, with weights of at most 1 / (1 -
share) and 1 / share.
"""

from onepass.exploration.random_split import hash_uniform, mix_probabilities
from onepass.log.records import Decision


def is_canary(seed: int | str, identity: str, share: float) -> bool:
    """Return True if the service shows the arm of the candidate model, and False for that of the serving model.

    The result is True with probability `share`. It is computed by a hash of the id of the decision and of the seed
    `seed` in the serving model's decision, so it can be repeated from the log.
    """
    return hash_uniform(f"{seed} {identity}", b"canary") < share


def display_from_canary(record: Decision) -> tuple[list[int], list[float]] | None:
    """Return the indices of the arms that were shown, and the probabilities (K,) of showing each arm.

    Returns None if no candidate model took part in the decision.
    """
    canary = record.canary
    if canary is None or record.probabilities is None:
        return None
    place = canary.place if is_canary(record.seed, record.id, canary.share) else record.places[0]
    return [place], mix_probabilities(record.probabilities, canary.probabilities, canary.share)
