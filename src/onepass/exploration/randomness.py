"""Random numbers of decisions, from a bandit's generator or from the id of a decision.

For a rule that draws parameters, a round takes `pairs` x `size` standard normals, and then two uniform numbers for each
slot, which are computed from normals as Phi(normal). For other rules a round takes only the uniform numbers. So all
numbers of a rule are of one kind, and one call for many rounds gives the same numbers as many calls.
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
NO_UNIFORMS = np.zeros(0)


@lru_cache(maxsize=64)
def empty_normals(size: int) -> np.ndarray:
    """Return an array (0, size): no normal vectors, for a rule that draws no parameters."""
    return np.zeros((0, size))


def noise_once(pairs: int, size: int, rng: np.random.Generator, slots: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw the random numbers of a single round: normals (pairs, size) and uniforms (2 slots,).

    `pairs` is the number of antithetic pairs of draws that the rule uses; 0 if it draws no parameters. `size` is the
    length of the normal vector of a draw. `slots` is the number of arms to choose, with two uniform numbers for each.
    """
    if pairs == 0:
        return empty_normals(size), uniforms(rng, 2 * slots) if slots else NO_UNIFORMS
    every = normals(rng, pairs * size + 2 * slots)
    return every[: pairs * size].reshape(pairs, size), normal_cdf(every[pairs * size :])


def noise(
    pairs: int, size: int, rng: np.random.Generator, rounds: int = 1, slots: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Draw the random numbers of `rounds` rounds: normals (rounds, pairs, size) and uniforms (rounds, 2 slots).

    `pairs` is the number of antithetic pairs of draws that the rule uses; 0 if it draws no parameters. `size` is the
    length of the normal vector of a draw. `slots` is the number of arms to choose in a round, with two uniform numbers
    for each.
    """
    if pairs == 0:
        return np.zeros((rounds, 0, size)), uniforms(rng, (rounds, 2 * slots))
    every = normals(rng, (rounds, pairs * size + 2 * slots))
    return every[:, : pairs * size].reshape(rounds, pairs, size).copy(), normal_cdf(every[:, pairs * size :])


def normal_cdf(values: np.ndarray) -> np.ndarray:
    """Return the standard normal distribution function Phi of every value.

    SciPy is imported at the first call, because that takes a fifth of the time to import a recipe.
    """
    from scipy.special import ndtr

    found: np.ndarray = ndtr(values)
    return found


def normals(rng: np.random.Generator, shape: int | tuple[int, ...]) -> np.ndarray:
    """Draw standard normals of the given shape. A lock lets one thread draw at a time, and a fork waits for it."""
    with DRAWING:
        return rng.standard_normal(shape)


def uniforms(rng: np.random.Generator, shape: int | tuple[int, ...]) -> np.ndarray:
    """Draw uniform numbers in [0, 1) of the given shape, under the same lock as `normals`."""
    with DRAWING:
        return rng.random(shape)


def uniform(rng: np.random.Generator) -> float:
    """Draw one uniform number in [0, 1), equal to `uniforms(rng, 1)[0]` but in half the time."""
    with DRAWING:
        return rng.random()


def make_key(salt: int, identity: str) -> str:
    """Return the key of a decision's random numbers: a hash of its id `identity`, keyed by `salt`, as hexadecimal."""
    text = identity.encode(errors="surrogatepass")
    return hashlib.blake2b(text, key=str(salt).encode()[-64:], digest_size=KEY).hexdigest()


class FixedSeed(ISeedSequence):
    """Seed of a bit generator: the words that it asks for are given, so that no entropy is requested."""

    def __init__(self, words: np.ndarray) -> None:
        self._words = words

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> np.ndarray:
        """Return the words, whatever their number and `dtype` should be."""
        return self._words


def make_generator(key: str) -> np.random.Generator:
    """Return the random generator of a key from `make_key`, with the numbers of `Philox(key=int(key, 16))`.

    Philox takes its key from its seed. To set its state afterwards takes three times as long, and to request entropy
    from the system takes 20 µs.
    """
    words: Any = FixedSeed(np.frombuffer(bytes.fromhex(key)[::-1], "<u8"))
    return np.random.Generator(np.random.Philox(words))


def generator_of_seed(seed: int) -> np.random.Generator:
    """Return a generator with the numbers of `numpy.random.default_rng(seed)`, in a fifth of the time.

    Use it for a single call. It cannot spawn other generators.
    """
    words: Any = FixedSeed(_words_of_seed(seed))
    return np.random.Generator(np.random.PCG64(words))


@lru_cache(maxsize=256)
def _words_of_seed(seed: int) -> np.ndarray:
    words = np.random.SeedSequence(seed).generate_state(4, np.uint64)
    words.flags.writeable = False
    return words
