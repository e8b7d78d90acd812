"""The contract of a compiled feature map of the Gaussian kernel: phi(x)^T phi(y) approximates k(x, y).

Maps are states: Fourier, Landmarks and the sketched Nystrom map of FORKS; learners take any.
"""

import numpy as np

from onepass.foundation.generic import generic


@generic
def embed(state, x: np.ndarray, phi: np.ndarray):
    """phi(x), written into phi (size,), for one row x (dim,). Allocates nothing."""
    raise TypeError(f"embed is not defined for {type(state).__name__}; register it with embed.for_state(...)")
