"""Online calibration of classifiers: probabilities from decision values f, by a logistic curve.

The probability of the second class is p = 1 / (1 + e^(-a f)), with one slope a for f >= 0 and another one for f < 0.
Every example updates its slope before the classifier learns it:

    log a <- log a - (p - t) a f / h,   h <- (1 - 1 / MEMORY) h + p (1 - p) (a f)^2

where t is 1 for the second class and 0 for the first, and h is the curvature. So p = 1/2 at f = 0, p grows with f, and
the predicted class has the largest p. This is Platt's sigmoid (1999) with two slopes instead of an offset. For more
than two classes, p_k is proportional to e^(a f_k), with one slope a. Early decisions of one pass come from a model that
knew less and err more often than later ones, so old decisions are forgotten.
"""

import math
from typing import Any

import numpy as np

MEMORY = 1000.0  # number of recent decisions that count
INITIAL_CURVATURE = 10.0  # initial h, equal to about 50 decisions near 1/2
MAX_STEP = 0.2  # of log a by one decision
MAX_EXPONENT = 50.0  # of a f: probabilities stay 2e-22 away from 0 and 1
MIN_PROBABILITY = 1e-6  # of the probabilities returned
# Slopes before the first decision: 2 p - 1 is near f for the hinge losses.
INITIAL_SLOPES = {"logistic": 1.0, "squared_hinge": 2.0, "hinge": 2.0}


def _sigmoid(z: float) -> float:
    return 1.0 / (1.0 + math.exp(-min(max(z, -MAX_EXPONENT), MAX_EXPONENT)))


class Calibration:
    """Slopes of the logistic curves that turn a classifier's decision values f into probabilities.

    The probability of the second class is 1 / (1 + exp(-a f)). `log_slopes` holds log a, and `curvatures` the curvature
    h that scales the next step: first for f >= 0, then for f < 0. More than two classes use the first entries only.
    `loss` is the name of the classifier's loss, on which the first slopes depend.
    """

    log_slopes: list[float]
    curvatures: list[float]

    def __init__(self, loss: str) -> None:
        self.log_slopes, self.curvatures = [math.log(INITIAL_SLOPES.get(loss, 1.0))] * 2, [INITIAL_CURVATURE] * 2

    def to_plain(self) -> dict[str, list[float]]:
        """Return {"logs": logarithms of slopes, "firm": curvatures}, for JSON."""
        return {"logs": list(self.log_slopes), "firm": list(self.curvatures)}

    @classmethod
    def from_plain(cls, data: Any) -> "Calibration":
        """Rebuild a calibration from the data of `to_plain`. Raises ValueError if the numbers are out of range."""
        logs, curvatures = [float(v) for v in data["logs"]], [float(v) for v in data["firm"]]
        if len(logs) != 2 or not all(math.isfinite(v) and abs(v) <= MAX_EXPONENT for v in logs):
            raise ValueError(f"calibration has slopes {logs}, expected 2 of at most {MAX_EXPONENT:g} in size")
        if len(curvatures) != 2 or not all(math.isfinite(v) and v > 0.0 for v in curvatures):
            raise ValueError(f"calibration has curvatures {curvatures}, expected 2 above 0")
        calibration = cls("logistic")
        calibration.log_slopes, calibration.curvatures = logs, curvatures
        return calibration

    def copy(self) -> "Calibration":
        return Calibration.from_plain(self.to_plain())

    def learn(self, decisions: np.ndarray, codes: np.ndarray, weights: np.ndarray | None, forgets: bool = True) -> None:
        """Update the slopes from the decision values of examples whose classes are `codes` (n,).

        `decisions` holds decision values, shape (n,) for two classes and (n, classes) for more. They must be computed
        before the classifier learned the examples. `weights` (n,) are the weights of the examples, 1 if None. Set
        `forgets` to False if all values come from one model, by leave-one-out; else old examples count less.
        """
        for i, code in enumerate(codes.tolist()):
            weight = 1.0 if weights is None else float(weights[i])
            if decisions.ndim == 1:
                f = float(decisions[i])
                side = 0 if f >= 0.0 else 1
                z = math.exp(self.log_slopes[side]) * f
                p = _sigmoid(z)
                self._step(side, weight * (p - code) * z, weight * p * (1.0 - p) * z * z, forgets)
            else:
                logits, probabilities = self._softmax(decisions[i])
                mean = float(probabilities @ logits)
                variance = float(probabilities @ (logits - mean) ** 2)
                self._step(0, weight * (mean - float(logits[code])), weight * variance, forgets)

    def _step(self, side: int, gradient: float, curvature: float, forgets: bool) -> None:
        self.curvatures[side] = (1.0 - 1.0 / MEMORY if forgets else 1.0) * self.curvatures[side] + curvature
        step = min(max(-gradient / max(self.curvatures[side], 1.0), -MAX_STEP), MAX_STEP)
        self.log_slopes[side] = min(max(self.log_slopes[side] + step, -math.log(MAX_EXPONENT)), math.log(MAX_EXPONENT))

    def _softmax(self, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the logits and the probabilities (classes,) of decisions f (classes,)."""
        z = np.maximum(math.exp(self.log_slopes[0]) * (f - f.max()), -MAX_EXPONENT)
        p = np.exp(z)
        return z, p / p.sum()

    def probabilities(self, decisions: np.ndarray) -> np.ndarray:
        """Return the probabilities (n, classes) for decision values (n,) of two classes, or (n, classes) of more."""
        if decisions.ndim == 1:
            slopes = np.exp(np.where(decisions >= 0.0, self.log_slopes[0], self.log_slopes[1]))
            second = 1.0 / (1.0 + np.exp(-np.clip(slopes * decisions, -MAX_EXPONENT, MAX_EXPONENT)))
            p = np.column_stack([1.0 - second, second])
        else:
            p = np.array([self._softmax(f)[1] for f in decisions]).reshape(decisions.shape)
        p = (1.0 - MIN_PROBABILITY * p.shape[1]) * p + MIN_PROBABILITY
        return p / p.sum(axis=1, keepdims=True)
