"""The random numbers of decisions: from a bandit's generator, or from the identity of a decision.

A round takes `pairs` x `size` standard normals for a rule that draws, then two uniform numbers a slot. Either all are
normals, uniforms as Phi(normal), or all are uniform: so a stream is the same in one call or in many.
"""

import hashlib
import threading
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence

from onepass.foundation.forks import open_at_fork

DRAWING = open_at_fork(threading.RLock())  # a generator's own lock may be held at a fork
KEY = 16  # bytes of a Philox key


@lru_cache(maxsize=64)
def empty_normals(size: int) -> np.ndarray:
    """Return normals (0, size) for a rule without draws."""
    return np.zeros((0, size))


def noise_once(pairs: int, size: int, rng: np.random.Generator, slots: int) -> tuple[np.ndarray, np.ndarray]:
    """`noise` of a single round: normals (pairs, size) and lots (2 slots,)."""
    if pairs == 0:
        return empty_normals(size), uniforms(rng, 2 * slots)
    every = normals(rng, pairs * size + 2 * slots)
    return every[: pairs * size].reshape(pairs, size), normal_cdf(every[pairs * size :])


def noise(
    pairs: int, size: int, rng: np.random.Generator, rounds: int = 1, slots: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Draw the random numbers of `rounds` rounds: normals (rounds, pairs, size) and uniforms (rounds, 2 slots).

    pairs is the number of draws +- d of a rule, 0 for none; size is that of the normal vector of a draw.
    """
    if pairs == 0:
        return np.zeros((rounds, 0, size)), uniforms(rng, (rounds, 2 * slots))
    every = normals(rng, (rounds, pairs * size + 2 * slots))
    return every[:, : pairs * size].reshape(rounds, pairs, size).copy(), normal_cdf(every[:, pairs * size :])


def normal_cdf(values: np.ndarray) -> np.ndarray:
    """Return Phi of every value; SciPy, a fifth of the time that importing a recipe takes, is imported at the first."""
    from scipy.special import ndtr

    found: np.ndarray = ndtr(values)
    return found


def normals(rng: np.random.Generator, shape: int | tuple[int, ...]) -> np.ndarray:
    """Draw standard normals; one thread at a time, so that no child is forked meanwhile."""
    with DRAWING:
        return rng.standard_normal(shape)


def uniforms(rng: np.random.Generator, shape: int | tuple[int, ...]) -> np.ndarray:
    """Uniform numbers in [0, 1), likewise."""
    with DRAWING:
        return rng.random(shape)


def uniform(rng: np.random.Generator) -> float:
    """Return the number of `uniforms(rng, 1)`, in half of its time."""
    with DRAWING:
        return rng.random()


def make_key(salt: int, identity: str) -> str:
    """Return the key of a decision's random numbers: a keyed hash of its identity, in hexadecimal digits."""
    return hashlib.blake2b(identity.encode(), key=str(salt).encode()[-64:], digest_size=KEY).hexdigest()


class Unseeded(ISeedSequence):
    """A seed for a bit generator whose state is set afterwards: the system is not asked for entropy."""

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> np.ndarray:
        return np.zeros(n_words, dtype)


UNSEEDED: Any = Unseeded()


def make_generator(key: str) -> np.random.Generator:
    """Return the generator of a key, bit for bit `Philox(key=...)`, without the 20 µs of entropy that Philox draws."""
    bits, words = np.random.Philox(UNSEEDED), np.frombuffer(bytes.fromhex(key)[::-1], "<u8")
    begun = bits.state
    begun["state"]["key"] = words
    bits.state = begun
    return np.random.Generator(bits)
