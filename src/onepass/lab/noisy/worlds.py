"""Make the noisy bandit problems by name."""

from functools import lru_cache

import numpy as np

from onepass.lab.errors import ExperimentError
from onepass.lab.noisy.game import Game
from onepass.lab.noisy.generated import GENERATED
from onepass.lab.noisy.names import NAMES
from onepass.lab.noisy.real import REAL


@lru_cache(maxsize=4)
def make_game(name: str, order: int) -> Game:
    """Return the rounds of the bandit problem `name` in the random order with the seed `order`.

    The last games are cached. Raises ExperimentError for another name.
    """
    if name not in NAMES:
        raise ExperimentError(f"there is no world '{name}': choose one of {', '.join(NAMES)}")
    if name in REAL:
        return REAL[name](order)
    return GENERATED[name](np.random.default_rng([order, NAMES.index(name)]))
