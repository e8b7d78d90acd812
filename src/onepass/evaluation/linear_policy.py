"""Fixed linear policy: softmax of linear scores, mixed with a uniform share.

For rows X of K arms, the probabilities are

    p = (1 - uniform_share) softmax(X theta / temperature) + uniform_share / K

Temperature 0 puts all probability on the best arms; ties share it. For contexts (n, d) every arm has its own theta, for
contexts (n, K, d) all arms share one.
"""

from typing import Any

import numpy as np

from onepass.evaluation.sample import row_maxima
from onepass.foundation import check

NUMBER = np.dtype(np.float64)


class LinearPolicy:
    """Policy that maps linear scores to probabilities of arms; call it with contexts.

    Parameters
    ----------
    theta : array of shape (K, d) or (d,)
        Parameters, finite: one row per arm for contexts (n, d), or one vector for contexts (n, K, d).
    temperature : float, default 0.0
        Temperature in units of scores, at least 0. Probabilities are proportional to exp(score / temperature). 0
        chooses the best arm.
    uniform_share : float, default 0.0
        Share that is spread over all arms, 0 to 1.

    Raises
    ------
    ValueError
        If a number is out of range or a shape does not fit.
    """

    temperature: float
    uniform_share: float

    def __init__(self, theta: Any, temperature: float = 0.0, uniform_share: float = 0.0) -> None:
        self.theta = check.finite("theta", check.array("theta", theta, NUMBER, (1, 2)))
        self.temperature, self.uniform_share = (
            check.real("temperature", temperature),
            check.fraction("uniform_share", uniform_share),
        )
        if self.temperature < 0.0:
            raise ValueError(f"temperature must be at least 0, got {check.quote(temperature)}")

    def __call__(self, contexts: np.ndarray) -> np.ndarray:
        """Return probabilities (n, K) for contexts (n, d) or (n, K, d). Raises ValueError for another shape."""
        theta = self.theta
        if contexts.ndim != 4 - theta.ndim or contexts.shape[-1] != theta.shape[-1]:
            raise ValueError(f"contexts must be rows of {theta.shape[-1]} numbers, got shape {contexts.shape}")
        scores = contexts @ theta.T
        scores -= row_maxima(scores)[:, None]
        if self.temperature > 0.0:
            scores /= self.temperature
            p = np.exp(scores, out=scores)
        else:
            p = (scores == 0.0) * 1.0
        p *= (1.0 - self.uniform_share) / np.einsum("ij->i", p)[:, None]
        p += self.uniform_share / p.shape[1]
        return p
