"""The multiplier beta of widths: a number, or the radius of a theorem."""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.foundation.registry import savable


@savable
@dataclass(frozen=True, kw_only=True)
class Theory:
    """The radius under which the papers prove their regret, times `scale` (its constants are large: tune it).

    Nothing proves it behind a random projection, nor for projector splitting once something was cut.

    noise R: rewards are R-sub-Gaussian about their mean (estimators for heavy tails go by their nu or moment instead);
    parameter_bound H >= ||theta_*||; row_bound L >= ||x||;
    delta: the confidence ellipsoid holds in all rounds with probability 1 - delta (an estimator whose theorem spends
    several deltas is given shares of this one). With models per arm this is said of every arm by itself: the ellipsoids
    of K arms hold together with probability 1 - K delta, so for all of them at once pass delta / K.
    ValueError for values that are not positive.
    """

    noise: float = 1.0
    parameter_bound: float = 1.0
    row_bound: float = 1.0
    delta: float = 0.01
    scale: float = 1.0

    def __post_init__(self) -> None:
        for name in ("noise", "parameter_bound", "row_bound", "delta"):
            object.__setattr__(self, name, check.positive(name, getattr(self, name)))
        if not self.delta < 1.0:
            raise ValueError(f"delta must be above 0 and below 1, got {quote(self.delta)}")
        object.__setattr__(self, "scale", check.real("scale", self.scale))

    def params(self) -> dict[str, Any]:
        """Return the arguments of the constructor, as plain data."""
        return asdict(self)


class Strength(NamedTuple):
    """beta = scale, times the radius where theory is (noise, parameter_bound, row_bound, delta) and not empty."""

    scale: float
    theory: np.ndarray


def check_multiplier(name: str, value: "float | Theory") -> "float | Theory":
    """A multiplier as the constructors of rules take it; ValueError for anything else."""
    hint = "use a number (negative for pessimism) or onepass.Theory(...)"
    return value if isinstance(value, Theory) else check.real(name, value, hint)


def make_strength(value: "float | Theory") -> Strength:
    """Make of an exploration's number, or `Theory`, the multiplier that compiled code reads."""
    if isinstance(value, Theory):
        constants = np.array([value.noise, value.parameter_bound, value.row_bound, value.delta], np.float64)
        return Strength(scale=float(value.scale), theory=constants)
    return Strength(scale=float(value), theory=np.empty(0))
