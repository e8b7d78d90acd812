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
    """Normals (0, size) of a rule without draws."""
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
    """The random numbers of `rounds` rounds: normals (rounds, pairs, size), and lots (rounds, 2 slots), uniform.

    pairs: of draws +- d that a rule takes, 0 where it takes none; size: of the normal vector behind a draw.
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
    """Standard normals; by one thread at a time, so that no child is forked meanwhile."""
    with DRAWING:
        return rng.standard_normal(shape)


def uniforms(rng: np.random.Generator, shape: int | tuple[int, ...]) -> np.ndarray:
    """Uniform numbers in [0, 1), likewise."""
    with DRAWING:
        return rng.random(shape)


def uniform(rng: np.random.Generator) -> float:
    """The one of `uniforms(rng, 1)`, in half of its time."""
    with DRAWING:
        return rng.random()


def make_key(salt: int, identity: str) -> str:
    """The key of a decision's random numbers: a keyed hash of its identity, in hexadecimal digits."""
    return hashlib.blake2b(identity.encode(), key=str(salt).encode()[-64:], digest_size=KEY).hexdigest()


class Unseeded(ISeedSequence):
    """What makes a bit generator whose state is set afterwards, without asking the system for entropy."""

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> np.ndarray:
        return np.zeros(n_words, dtype)


UNSEEDED: Any = Unseeded()


def make_generator(key: str) -> np.random.Generator:
    """The generator of a key: `Philox(key=...)`, which draws 20 µs of entropy that it does not use, bit for bit."""
    bits, words = np.random.Philox(UNSEEDED), np.frombuffer(bytes.fromhex(key)[::-1], "<u8")
    begun = bits.state
    begun["state"]["key"] = words
    bits.state = begun
    return np.random.Generator(bits)
