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
    """Multiplier of widths for which regret bounds are proved (the radius), times `scale`.

    With this multiplier, the true mean of every arm is within multiplier * width of the estimate, in all rounds, with
    probability 1 - delta.

    Parameters
    ----------
    noise : float, default 1.0
        Size R of the noise, above 0: its tails are at most those of a normal distribution with standard deviation R
        (R-sub-Gaussian). Estimators for heavy tails use their `nu` or `moment` instead.
    parameter_bound : float, default 1.0
        Bound on the length ||theta_*|| of the true parameter, above 0.
    row_bound : float, default 1.0
        Bound on the length ||x|| of every row, above 0.
    delta : float, default 0.01
        Above 0 and below 1. The confidence ellipsoid holds in all rounds with probability 1 - delta. If the theorem of
        an estimator has several probabilities of failure, they add up to this one.
    scale : float, default 1.0
        Factor of the radius, any finite number. The constants of the theorems are large, so factors below 1 are better
        in practice.

    Raises
    ------
    ValueError
        If a value is not positive (`scale`: not finite), or `delta` is not below 1.

    Notes
    -----
    The radius is not proved for rows after a random projection, and not for the design of `PSILinUCB`
    (projector splitting) once it has dropped a direction. With one model for each arm, the guarantee is about every arm
    by itself. It holds for all K arms together with probability 1 - K delta. To cover all arms at once, pass delta / K.
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
    """Multiplier of the confidence widths as compiled code reads it.

    It is `scale`, times the confidence radius if `theory` is not empty. `theory` holds (noise, parameter_bound,
    row_bound, delta), the arguments of `Theory`.
    """

    scale: float
    theory: np.ndarray


def check_multiplier(name: str, value: "float | Theory") -> "float | Theory":
    """Return `value`, the argument `name`; raise ValueError unless it is a multiplier: a finite number or `Theory`."""
    hint = "use a number (negative for pessimism) or onepass.Theory(...)"
    return value if isinstance(value, Theory) else check.real(name, value, hint)


def make_strength(value: "float | Theory") -> Strength:
    """Convert a number or `Theory` to the multiplier that compiled code reads."""
    if isinstance(value, Theory):
        constants = np.array([value.noise, value.parameter_bound, value.row_bound, value.delta], np.float64)
        return Strength(scale=float(value.scale), theory=constants)
    return Strength(scale=float(value), theory=np.empty(0))
