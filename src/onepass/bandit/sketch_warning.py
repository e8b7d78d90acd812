"""A warning, once a bandit, where a sketch has lost so much that its means cannot be trusted.

Looked at when 64, 128, 256, ... rows have been learned: 20 times in a stream of 60 million, so that learning a row pays
for one comparison of integers. Only for ridge regression, whose b holds what the sketch has lost (design/loss.py).
"""

import warnings
from abc import ABC, abstractmethod
from typing import Any

from onepass.design.loss import relative_loss
from onepass.estimator.estimator import Estimator
from onepass.estimator.ridge import Ridge

FIRST = 64  # rows before the first look
MOST = 100.0  # ridges that may be lost
NEVER = 2**63  # rows


class SketchWarning(UserWarning):
    """A sketch is too small for its `reg`, so scores may be far too large. Warned once per bandit.

    Choose a larger sketch or `reg`; a design that puts back what it cuts (`CBSCFD`, `PSILinUCB(compensate=True)`,
    `DBSLinUCB(base="rfd")`), an exact one, or `estimator="newton"`. To learn silently:
    `warnings.simplefilter("ignore", onepass.SketchWarning)`.
    """


class SketchWatch(ABC):
    """What a bandit that learns rows does to look at its sketches."""

    name: str
    rounds: int
    _learned: Any
    _next_look = FIRST

    @abstractmethod
    def _model_estimator(self) -> Estimator:
        """The estimator whose means are looked at."""

    def _look(self) -> None:
        """Warn if the sketch, or that of some arm, has lost more than MOST ridges; then never again."""
        while self._next_look <= self.rounds:
            self._next_look *= 2
        estimator, learned = self._model_estimator(), self._learned
        if isinstance(estimator, Ridge):
            reg = float(estimator.design.params["reg"])
            lost = learned.store.relative_loss() if hasattr(learned, "store") else relative_loss(learned.design, reg)
            if lost > MOST:
                self._next_look = NEVER
                warnings.warn(
                    f"{self.name}: a sketch has cut over {MOST:g} times its ridge (reg={reg:g}) by row "
                    f"{2 ** (self.rounds.bit_length() - 1)}, and means of ridge regression on it may be far too large; "
                    "take a larger size or reg, a design that puts back what it cuts, or estimator='newton'",
                    SketchWarning,
                    stacklevel=5,
                )
