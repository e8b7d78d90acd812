"""Seeds of evaluation and tuning, and independent random generators for the parts of a seed.

Evaluation has the seeds 0, 1, ..., tuning those from `FIRST_TUNING_SEED`: no evaluation uses them.
"""

import numpy as np

FIRST_TUNING_SEED = 1000  # larger than the number of seeds of any evaluation


def stream(seed: int, *place: int) -> np.random.Generator:
    """Return the random generator of one part of a seed; generators of different parts are independent.

    `place` is the number of the part, or several numbers.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=place))
