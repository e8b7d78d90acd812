"""Reward families, which determine the mean of a reward r and its distribution from the score z = x^T theta.

A family is given by the function mu and its integral m:

    E r = mu(z),   loss(z) = m(z) - r z,   mu = m',   var r = mu'(z),   |mu''| <= R mu'

| family    | rewards | mu(z)             | m(z)            | R |
| --------- | ------- | ----------------- | --------------- | - |
| Logistic  | [0, 1]  | 1 / (1 + exp(-z)) | log(1 + exp(z)) | 1 |
| Poisson   | >= 0    | exp(z)            | exp(z)          | 1 |
| Identity  | any     | z                 | z^2 / 2         | 0 |

The loss is the negative log likelihood, up to terms without theta. A family is a `NamedTuple` and the functions below,
registered for its type. `mean`, `slope`, `potential` and `max_slope` are required; the others have defaults.

The radius of GLB-OMD (docs/clicks/radius.md) needs more of a family: mu' is log-concave, `concordance` is right, m' =
mu, and m(z + u) - m(z) >= log E exp(u r) for a reward r at z. All three families have these properties, `IdentityLink`
if rewards are sub-Gaussian. A family of your own declares them by `has_log_concave_slope`. `check_radius_conditions`
tests the first three on a grid of scores.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from onepass.exploration.contract import ArmStatistics
from onepass.foundation import check
from onepass.foundation.generic import compiled, generic, is_registered
from onepass.foundation.registry import savable

GRID = 30.0  # of |z|, as far as families are looked at; 1 - mu of clicks is 1e-13 there
FINE = 1e-4  # of z, over which the derivative of a potential is taken
ROUGH = 1e-9  # of log mu', relative: rounding
HALVINGS = 60  # of an interval of 1000: to the last digits
MOST = 500.0  # of |z| where it is an exponent: exp(500) is 1e217, and sums and products of a few such are finite


def _undefined(family: Any, name: str) -> TypeError:
    return TypeError(f"{name} is not defined for {type(family).__name__}; register it with {name}.for_state(...)")


@generic
def mean(family: Any, z: float) -> float:
    """Return mu(z), the mean reward at the score z."""
    raise _undefined(family, "mean")


@generic
def slope(family: Any, z: float) -> float:
    """Return mu'(z) >= 0, the derivative of the mean reward at the score z.

    It is the variance of a reward. For `IdentityLink` it is 1, and the variance is in units of the noise.
    """
    raise _undefined(family, "slope")


@generic
def potential(family: Any, z: float) -> float:
    """Return m(z), the function whose derivative is the mean reward mu(z)."""
    raise _undefined(family, "potential")


@generic
def max_slope(family: Any, bound: float) -> float:
    """Return the largest derivative mu'(z) of the mean function over all scores z with |z| <= bound."""
    raise _undefined(family, "max_slope")


@partial(generic, default=True)
def concordance(family: Any) -> float:
    """Return the constant R with |mu''(z)| <= R mu'(z) for all scores z, where mu is the mean function. Default: 1."""
    return 1.0


@partial(generic, default=True)
def has_log_concave_slope(family: Any) -> bool:
    """Return True if log mu' is concave everywhere, and the loss is a log likelihood (docs/clicks/radius.md).

    mu is the mean function. Confidence radii need both. Default: False.
    """
    return False


@partial(generic, default=True)
def dispersion(family: Any, noise: float) -> float:
    """Return the factor s for which rewards at the score z are sub-Gaussian with variance at most s mu'(z).

    Default: 1, for a family that determines its distribution. For rewards of any kind it is noise^2.
    """
    return 1.0


@partial(generic, default=True)
def reward_range(family: Any) -> tuple[float, float]:
    """Return the smallest and the largest possible reward. By default rewards may be any number."""
    return -np.inf, np.inf


@partial(generic, default=True)
def mean_of_scores(family: Any, values: np.ndarray) -> np.ndarray:
    """Return the mean reward mu(z) of every score z in values (K,). The default calls `mean` for each."""
    out = np.empty(values.size)
    for a in range(out.size):
        out[a] = mean(family, float(values[a]))
    return out


@partial(generic, default=True)
def to_reward_scale(family: Any, seen: ArmStatistics) -> ArmStatistics:
    """Return the arms' statistics on the scale of rewards, from statistics of scores z = x^T theta.

    mu is the mean function. For an arm with the multiplier beta, the confidence interval z +- beta width gives the
    half-width max(mu(z + beta width) - mu(z), mu(z) - mu(z - beta width)). An arm that is eliminated by these intervals
    would also be eliminated by the intervals of z. If beta is 0, the width becomes mu'(z) width.
    """
    means, widths, samples = mean_of_scores(family, seen.means), np.zeros(seen.widths.size), np.empty_like(seen.samples)
    for a in range(widths.size):
        z, beta = float(seen.means[a]), abs(float(seen.beta[a]))
        away = beta * seen.widths[a]
        if away > 0.0:
            widths[a] = max(mean(family, z + away) - means[a], means[a] - mean(family, z - away)) / beta
        else:
            widths[a] = slope(family, z) * seen.widths[a]
    for m in range(samples.shape[0]):
        for a in range(samples.shape[1]):
            samples[m, a] = mean(family, float(seen.samples[m, a]))
    return ArmStatistics(
        means=means, widths=widths, samples=samples, beta=seen.beta, residual=seen.residual, rounds=seen.rounds
    )


def mean_limits(family: Any, middle: float, upper: float) -> float:
    """Return a lower limit of the mean reward, given its estimate `middle` = mu(z) and upper limit `upper` = mu(z_up).

    The limits are symmetric in the score z: the result is mu(2 z - z_up), rounded down, where z and z_up are found by
    bisection.
    """
    low, high = -MOST, MOST
    for _ in range(HALVINGS):  # the largest z with a smaller mean
        half = 0.5 * (low + high)
        low, high = (half, high) if mean(family, half) < middle else (low, half)
    z, low, high = low, low, MOST
    for _ in range(HALVINGS):  # the smallest z_up with a larger mean
        half = 0.5 * (low + high)
        low, high = (low, half) if mean(family, half) > upper else (half, high)
    return float(mean(family, 2.0 * z - high))


class IdentityLink(NamedTuple):
    """Family for rewards of any kind, whose mean is the score itself: mu(z) = z."""

    def params(self) -> dict[str, Any]:
        """Return an empty dictionary, since this family has no parameters."""
        return {}


class Logistic(NamedTuple):
    """Family for clicks: rewards from 0 to 1, where z is the log odds of the mean."""

    def params(self) -> dict[str, Any]:
        """Return an empty dictionary, since this family has no parameters."""
        return {}


class Poisson(NamedTuple):
    """Family for counts: rewards of at least 0, where z is the logarithm of the mean."""

    def params(self) -> dict[str, Any]:
        """Return an empty dictionary, since this family has no parameters."""
        return {}


for _family in (IdentityLink, Logistic, Poisson):
    savable(_family)


@compiled
def clip_exponent(z: float) -> float:
    """Return z clipped to the range in which exp(z) neither overflows nor underflows."""
    return min(max(z, -MOST), MOST)


@mean.for_state(IdentityLink)
def mean_of_identity(family: IdentityLink, z: float) -> float:
    return z


@slope.for_state(IdentityLink)
def slope_of_identity(family: IdentityLink, z: float) -> float:
    return 1.0


@potential.for_state(IdentityLink)
def potential_of_identity(family: IdentityLink, z: float) -> float:
    return 0.5 * z * z


@has_log_concave_slope.for_state(IdentityLink)
def log_concave_identity(family: IdentityLink) -> bool:
    return True


@max_slope.for_state(IdentityLink)
def steepest_of_identity(family: IdentityLink, bound: float) -> float:
    return 1.0


@concordance.for_state(IdentityLink)
def concordance_of_identity(family: IdentityLink) -> float:
    return 0.0


@dispersion.for_state(IdentityLink)
def dispersion_of_identity(family: IdentityLink, noise: float) -> float:
    return noise * noise


@mean_of_scores.for_state(IdentityLink)
def mean_of_scores_of_identity(family: IdentityLink, values: np.ndarray) -> np.ndarray:
    return values


@to_reward_scale.for_state(IdentityLink)
def on_rewards_of_identity(family: IdentityLink, seen: ArmStatistics) -> ArmStatistics:
    return seen


@mean.for_state(Logistic)
def mean_of_logistic(family: Logistic, z: float) -> float:
    return 1.0 / (1.0 + np.exp(-clip_exponent(z)))


@slope.for_state(Logistic)
def slope_of_logistic(family: Logistic, z: float) -> float:
    low = np.exp(-abs(clip_exponent(z)))
    return low / ((1.0 + low) * (1.0 + low))


@potential.for_state(Logistic)
def potential_of_logistic(family: Logistic, z: float) -> float:
    return max(z, 0.0) + np.log1p(np.exp(-abs(clip_exponent(z))))


@has_log_concave_slope.for_state(Logistic)
def log_concave_logistic(family: Logistic) -> bool:
    return True


@max_slope.for_state(Logistic)
def steepest_of_logistic(family: Logistic, bound: float) -> float:
    return 0.25


@reward_range.for_state(Logistic)
def reward_range_of_logistic(family: Logistic) -> tuple[float, float]:
    return 0.0, 1.0


@mean.for_state(Poisson)
def mean_of_poisson(family: Poisson, z: float) -> float:
    return np.exp(clip_exponent(z))


@slope.for_state(Poisson)
def slope_of_poisson(family: Poisson, z: float) -> float:
    return np.exp(clip_exponent(z))


@potential.for_state(Poisson)
def potential_of_poisson(family: Poisson, z: float) -> float:
    return np.exp(clip_exponent(z))


@has_log_concave_slope.for_state(Poisson)
def log_concave_poisson(family: Poisson) -> bool:
    return True


@max_slope.for_state(Poisson)
def steepest_of_poisson(family: Poisson, bound: float) -> float:
    return np.exp(clip_exponent(bound))


@reward_range.for_state(Poisson)
def reward_range_of_poisson(family: Poisson) -> tuple[float, float]:
    return 0.0, np.inf


# ---- what bandits and constructors ask in Python ----

FAMILIES = {"logistic": Logistic(), "poisson": Poisson(), "identity": IdentityLink()}


def family_of(given: Any) -> Any:
    """Return the reward family named `given`, or `given` itself if it is a family; raise ValueError for others."""
    if isinstance(given, str) and given in FAMILIES:
        return FAMILIES[given]
    if isinstance(given, tuple) and is_registered(mean, given):
        return given
    names = ", ".join(map(repr, FAMILIES))
    raise ValueError(f"family must be one of {names}, or a family such as families.Poisson(), got {check.quote(given)}")


def name_of(family: Any) -> str:
    """Return the name of a reward family, such as "logistic"."""
    return next((name for name, known in FAMILIES.items() if type(known) is type(family)), type(family).__name__)


def family_argument(family: Any) -> Any:
    """Return the argument from which `family_of` makes this family.

    It is the name of a built-in family, else the family itself.
    """
    name = name_of(family)
    return name if name in FAMILIES else family


def check_radius_conditions(family: Any) -> None:
    """Raise ValueError unless GLB-OMD's confidence radius is proved for a family.

    The family must declare its properties, and a grid must not contradict them. In steps of 1/4 from -30 to 30, where
    slopes are positive, it checks that log mu' is concave and R-Lipschitz with R = `concordance`, and that m' = mu.
    These conditions are necessary; a grid cannot show what lies between and beyond its points.
    """
    name = name_of(family)
    if not has_log_concave_slope(family):
        raise ValueError(
            f"theory must be None beside family={name}: the radius is proved for families whose slope is log-concave, "
            "and this one does not say that its is; if so, register has_log_concave_slope (onepass.estimator.families)"
        )
    z = np.linspace(-GRID, GRID, int(8 * GRID) + 1)
    with np.errstate(divide="ignore"):
        logs = np.log([slope(family, float(one)) for one in z])
    curved, middle = concordance(family), logs[1:-1]
    rise = np.array([potential(family, one + FINE) - potential(family, one - FINE) for one in z[1:-1].tolist()])
    expectation = np.array([mean(family, one) for one in z[1:-1].tolist()])
    loose = ROUGH * (1.0 + np.abs(middle))
    with np.errstate(invalid="ignore"):
        claims = {
            "its slope is log-concave": logs[2:] + logs[:-2] - 2.0 * middle > loose,
            f"its concordance is {curved:g}": np.abs(logs[2:] - middle) > curved * (z[1] - z[0]) + loose,
            "its mean is the derivative of its potential": np.abs(rise / (2.0 * FINE) - expectation)
            > 1e-5 * (1.0 + np.abs(expectation) * (1.0 + curved)),
        }
    for claim, broken in claims.items():
        if (wrong := z[1:-1][np.isfinite(middle) & broken]).size:
            raise ValueError(
                f"theory must be None beside family={name}: the radius is proved where {claim}, and at "
                f"z = {wrong[np.abs(wrong).argmin()]:g} that is not so (onepass.estimator.families)"
            )


def check_rewards(family: Any, rewards: np.ndarray) -> None:
    """Raise ValueError if a reward lies outside the family's range."""
    low, high = reward_range(family)
    if rewards.size and not (low <= rewards.min() and rewards.max() <= high):
        wrong = rewards[(rewards < low) | (rewards > high)].ravel()
        limits = f"from {low:g} to {high:g}" if np.isfinite(high) else f"at least {low:g}"
        raise ValueError(
            f"rewards must be {limits} for the {name_of(family)} family, got {check.quote(float(wrong[0]))}; "
            "use family='identity', or ridge regression, for any reward"
        )
