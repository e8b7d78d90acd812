"""The multiplier beta of confidence widths, which is a number or the radius of a theorem."""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.foundation.registry import savable


@savable
@dataclass(frozen=True, kw_only=True)
class Theory:
    """Radius under which the papers prove their regret, times `scale`.

    Parameters
    ----------
    noise : float, default 1.0
        R: rewards are R-sub-Gaussian about their mean. Estimators for heavy tails use their `nu` or `moment` instead.
    parameter_bound : float, default 1.0
        H, at least ||theta_*||.
    row_bound : float, default 1.0
        L, at least ||x|| of every row.
    delta : float, default 0.01
        The confidence ellipsoid holds in all rounds with probability 1 - delta. An estimator whose theorem spends
        several deltas gets shares of this one.
    scale : float, default 1.0
        Factor of the radius. Its constants are large: tune it.

    Raises
    ------
    ValueError
        If a value is not positive (`scale`: not finite), or `delta` is not below 1.

    Notes
    -----
    Nothing proves the radius behind a random projection, nor for projector splitting once something was truncated. With
    models per arm the guarantee is about every arm by itself: the ellipsoids of K arms hold together with probability
    1 - K delta. To cover all arms at once, pass delta / K.
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
        """Return the arguments of the constructor as plain data.

        Returns
        -------
        dict
            The value of every argument by its name.
        """
        return asdict(self)


class Strength(NamedTuple):
    """Multiplier beta as compiled code reads it: `scale`, times the confidence radius if `theory` is not empty.

    `theory` holds (noise, parameter_bound, row_bound, delta), the arguments of `Theory`.
    """

    scale: float
    theory: np.ndarray


def check_multiplier(name: str, value: "float | Theory") -> "float | Theory":
    """Return a multiplier of widths, or raise ValueError unless it is a finite number or `Theory`."""
    hint = "use a number (negative for pessimism) or onepass.Theory(...)"
    return value if isinstance(value, Theory) else check.real(name, value, hint)


def make_strength(value: "float | Theory") -> Strength:
    """Convert a number or `Theory` to the multiplier that compiled code reads."""
    if isinstance(value, Theory):
        constants = np.array([value.noise, value.parameter_bound, value.row_bound, value.delta], np.float64)
        return Strength(scale=float(value.scale), theory=constants)
    return Strength(scale=float(value), theory=np.empty(0))
