"""Assignment of arms to shards by rendezvous hashing (Thaler and Ravishankar 1998).

    shard of arm a = the s with the largest hash(a, s)

With n shards, each has a share of about 1 / n of the arms. A new shard only takes over the arms it will keep, and a
shard that leaves only gives away its own: no other arm moves. Arms are numbered in the order in which they first
learned. The hash is the finalizer of SplitMix64 (Steele, Lea and Flood 2014), twice.
"""

from collections.abc import Sequence

import numpy as np

UNASSIGNED = -1  # the shard of an arm that was removed


def _splitmix64(values: np.ndarray) -> np.ndarray:
    """Hash 64-bit integers; every bit of a hash depends on all bits of its value."""
    with np.errstate(over="ignore"):
        z = values + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def assign_shards(arms: np.ndarray, shards: Sequence[int]) -> np.ndarray:
    """Return the number of the shard (n,) that each arm is assigned to.

    `arms` (n,) are numbers from 0. `shards` are the distinct numbers of all shards.
    """
    keys = _splitmix64(np.asarray(arms, np.int64).astype(np.uint64))
    best, out = np.zeros(len(keys), np.uint64), np.full(len(keys), shards[0], np.int64)
    for place, shard in enumerate(shards):
        weight = _splitmix64(keys ^ _splitmix64(np.array([shard], np.uint64)))
        taken = weight > best if place else np.ones(len(keys), np.bool_)
        best, out = np.where(taken, weight, best), np.where(taken, shard, out)
    return out
