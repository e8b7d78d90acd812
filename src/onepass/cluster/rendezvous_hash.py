"""Which shard has an arm: rendezvous hashing (Thaler and Ravishankar 1998).

    shard of arm a = the s with the largest hash(a, s)

Every arm asks every shard for a number and takes the largest: with n shards each has a share 1 / n. A shard that comes
takes arms only for itself, one that goes leaves its own only: nobody else's arm moves. Arms are counted in the order in
which they first learned; the hash is the finalizer of SplitMix64 (Steele, Lea and Flood 2014), twice.
"""

from collections.abc import Sequence

import numpy as np

UNASSIGNED = -1  # the shard of an arm that is no more


def _splitmix64(values: np.ndarray) -> np.ndarray:
    """64 bits each, every one of which depends on all of the value's."""
    with np.errstate(over="ignore"):
        z = values + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def assign_shards(arms: np.ndarray, shards: Sequence[int]) -> np.ndarray:
    """The shard, of `shards` (numbers, each once), that has each of `arms` (n,), numbers from 0."""
    keys = _splitmix64(np.asarray(arms, np.int64).astype(np.uint64))
    best, out = np.zeros(len(keys), np.uint64), np.full(len(keys), shards[0], np.int64)
    for place, shard in enumerate(shards):
        weight = _splitmix64(keys ^ _splitmix64(np.array([shard], np.uint64)))
        taken = weight > best if place else np.ones(len(keys), np.bool_)
        best, out = np.where(taken, weight, best), np.where(taken, shard, out)
    return out
