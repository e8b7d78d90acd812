"""Which seeds are whose, and the generator of one place of a seed.

Evaluation has the seeds 0, 1, ..., tuning those from `FIRST_TUNING_SEED`: no evaluation uses them.
"""

import numpy as np

FIRST_TUNING_SEED = 1000  # more seeds than an evaluation has


def stream(seed: int, *place: int) -> np.random.Generator:
    """The generator of one place of one seed, say a block, independent of all others."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=place))
