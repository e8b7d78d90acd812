"""Probabilities from decisions, calibrated online: p = 1 / (1 + e^(-a f)), one a for f >= 0 and one below.

    log a <- log a - (p - t) a f / h,   h <- (1 - 1 / MEMORY) h + p (1 - p) (a f)^2

on every decision f before its example is learned, t = 1 for the second class, 0 for the first. So p = 1/2 where f = 0,
p grows with f, and classes are those of the largest p: Platt's sigmoid (1999) without its offset, in its place two
slopes. Several classes: p_k ~ e^(a f_k), one a. Decisions that are made in one pass are those of a model that knew
less; they err more often than later ones, so old ones are forgotten.
"""

import math
from typing import Any

import numpy as np

MEMORY = 1000.0  # decisions that count
FIRM = 10.0  # of h at the beginning: as much as some 50 decisions near 1/2
LARGEST_MOVE = 0.2  # of log a by one decision
STEEPEST = 50.0  # of a f: a probability within 2e-22 of 0 or 1 is none
LEAST = 1e-6  # of a probability that is told
SLOPES = {"logistic": 1.0, "squared_hinge": 2.0, "hinge": 2.0}  # before the first decision: 2 p - 1 is near f for these


def sigmoid(z: float) -> float:
    return 1.0 / (1.0 + math.exp(-min(max(z, -STEEPEST), STEEPEST)))


class Calibration:
    """logs, firm: lists of two, log a and h, of which several classes use the first."""

    logs: list[float]
    firm: list[float]

    def __init__(self, loss: str) -> None:
        self.logs, self.firm = [math.log(SLOPES.get(loss, 1.0))] * 2, [FIRM] * 2

    def plain(self) -> dict[str, list[float]]:
        """As plain data."""
        return {"logs": list(self.logs), "firm": list(self.firm)}

    @classmethod
    def of(cls, found: Any) -> "Calibration":
        """From plain data; ValueError where it makes no sense."""
        made = cls("logistic")
        made.logs, made.firm = [float(v) for v in found["logs"]], [float(v) for v in found["firm"]]
        if len(made.logs) != 2 or len(made.firm) != 2 or not all(map(math.isfinite, made.logs + made.firm)):
            raise ValueError(f"slopes {made.logs} and {made.firm}")
        if min(made.firm) <= 0.0 or max(map(abs, made.logs)) > STEEPEST:
            raise ValueError(f"slopes {made.logs} and {made.firm}")
        return made

    def copy(self) -> "Calibration":
        return Calibration.of(self.plain())

    def learn(self, decisions: np.ndarray, codes: np.ndarray, weights: np.ndarray | None, forgets: bool = True) -> None:
        """From decisions (n,) or (n, classes) on examples of these classes (n,), before they were learned.

        forgets: whether old ones are forgotten; not where all are of one model, each example left out.
        """
        for i, code in enumerate(codes.tolist()):
            times = 1.0 if weights is None else float(weights[i])
            if decisions.ndim == 1:
                f = float(decisions[i])
                side = 0 if f >= 0.0 else 1
                z = math.exp(self.logs[side]) * f
                p = sigmoid(z)
                self._move(side, times * (p - code) * z, times * p * (1.0 - p) * z * z, forgets)
            else:
                each, share = self._several(decisions[i])
                mean = float(share @ each)
                spread = float(share @ (each - mean) ** 2)
                self._move(0, times * (mean - float(each[code])), times * spread, forgets)

    def _move(self, side: int, gradient: float, curvature: float, forgets: bool) -> None:
        self.firm[side] = (1.0 - 1.0 / MEMORY if forgets else 1.0) * self.firm[side] + curvature
        move = min(max(-gradient / max(self.firm[side], 1.0), -LARGEST_MOVE), LARGEST_MOVE)
        self.logs[side] = min(max(self.logs[side] + move, -math.log(STEEPEST)), math.log(STEEPEST))

    def _several(self, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        z = np.maximum(math.exp(self.logs[0]) * (f - f.max()), -STEEPEST)
        p = np.exp(z)
        return z, p / p.sum()

    def probabilities(self, decisions: np.ndarray) -> np.ndarray:
        """Of the classes, (n, classes), from decisions (n,) for two or (n, classes) for more."""
        if decisions.ndim == 1:
            slopes = np.exp(np.where(decisions >= 0.0, self.logs[0], self.logs[1]))
            second = 1.0 / (1.0 + np.exp(-np.clip(slopes * decisions, -STEEPEST, STEEPEST)))
            found = np.column_stack([1.0 - second, second])
        else:
            found = np.array([self._several(f)[1] for f in decisions]).reshape(decisions.shape)
        floored = (1.0 - LEAST * found.shape[1]) * found + LEAST
        return floored / floored.sum(axis=1, keepdims=True)
