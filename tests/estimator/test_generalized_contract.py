"""The estimators for clicks and counts keep the contract that third parties are held to, on every design."""

from typing import NamedTuple

import numpy as np
import pytest

import onepass as op
from counts import LONG
from onepass.estimator import families
from onepass.estimator.contract import link, update_rows
from onepass.testing import check_estimator

DESIGNS = {
    "Exact": lambda dim, reg: op.Exact(dim=dim, reg=reg),
    "FrequentDirections": lambda dim, reg: op.FrequentDirections(dim=dim, size=3, reg=reg),
    "RobustFrequentDirections": lambda dim, reg: op.RobustFrequentDirections(dim=dim, size=3, reg=reg),
    "Dyadic": lambda dim, reg: op.Dyadic(dim=dim, size=2, error=3.0, reg=reg),
    "ProjectorSplitting": lambda dim, reg: op.ProjectorSplitting(dim=dim, rank=3, reg=reg, compensate=True),
}
ESTIMATORS = {
    "GLB-OMD": lambda design: op.OnePassGLM(design),
    "GLB-OMD, ball": lambda design: op.OnePassGLM(design, parameter_bound=0.4, step=1.4),
    "GLB-OMD, counts": lambda design: op.OnePassGLM(design, family="poisson", clip=2.0),
    "GLOC": lambda design: op.estimator.RegressedGLM(design, parameter_bound=2.0),
    "offline": lambda design: op.estimator.OfflineGLM(design),
}
SHORT = [("GLB-OMD", "Exact")]
EVERY = [(name, design) for name in ESTIMATORS for design in DESIGNS if name != "offline" or design == "Exact"]


@pytest.mark.parametrize(("name", "design"), EVERY if LONG else SHORT)
def test_estimators_for_clicks_and_counts_keep_the_contract(name, design):
    check_estimator(ESTIMATORS[name], DESIGNS[design])


class Cloglog(NamedTuple):
    """Whether a count of mean exp(z) is above 0: a family of one's own is one class."""

    def params(self):
        return {}


@families.mean.for_state(Cloglog)
def mean(family, z):
    return -np.expm1(-np.exp(min(z, 30.0)))


@families.slope.for_state(Cloglog)
def slope(family, z):
    return np.exp(min(z, 30.0) - np.exp(min(z, 30.0)))


@families.potential.for_state(Cloglog)
def potential(family, z):
    return z


@families.max_slope.for_state(Cloglog)
def steepest(family, bound):
    return np.exp(-1.0)


class SteepCounts(NamedTuple):
    """A link whose slope is not log-concave: mu = sinh, |mu''| <= mu'."""

    says: bool

    def params(self):
        return {"says": self.says}


class Counts(NamedTuple):
    """Poisson counts as a family of one's own: wrong about its concordance, or its potential, by a factor."""

    curved: float
    scale: float

    def params(self):
        return {"curved": self.curved, "scale": self.scale}


families.mean.for_state(SteepCounts)(lambda family, z: np.sinh(z))
families.slope.for_state(SteepCounts)(lambda family, z: np.cosh(z))
families.potential.for_state(SteepCounts)(lambda family, z: np.cosh(z))
families.max_slope.for_state(SteepCounts)(lambda family, bound: np.cosh(bound))
families.has_log_concave_slope.for_state(SteepCounts)(lambda family: family.says)
families.mean.for_state(Counts)(lambda family, z: np.exp(z))
families.slope.for_state(Counts)(lambda family, z: np.exp(z))
families.potential.for_state(Counts)(lambda family, z: family.scale * np.exp(z))
families.max_slope.for_state(Counts)(lambda family, bound: np.exp(bound))
families.concordance.for_state(Counts)(lambda family: family.curved)
families.has_log_concave_slope.for_state(Counts)(lambda family: True)


def theoretical(family):
    return op.OnePassGLM(op.Exact(dim=2, reg=1e3), family=family, theory=op.Theory(parameter_bound=1.0))


@pytest.mark.parametrize("family", [*families.FAMILIES, Counts(curved=1.0, scale=1.0)])
def test_a_family_of_log_concave_slope_has_a_radius(family):
    assert theoretical(family).has_radius


@pytest.mark.parametrize(
    ("family", "reason"),
    [
        (Cloglog(), "register has_log_concave_slope"),
        (SteepCounts(says=False), "register has_log_concave_slope"),
        (SteepCounts(says=True), "slope is log-concave, and at z = "),
        (Counts(curved=0.5, scale=1.0), "concordance is 0.5, and at z = "),
        (Counts(curved=1.0, scale=2.0), "mean is the derivative of its potential, and at z = "),
    ],
)
def test_theory_refuses_families_that_its_proof_does_not_cover(family, reason):
    """Step 2 of the proof averages mu'(z + u) and mu'(z - u): bounded by cosh if mu' is log-concave."""
    with pytest.raises(ValueError, match=rf"theory must be None beside family=.*{reason}"):
        theoretical(family)
    assert not op.OnePassGLM(op.Exact(dim=2), family=family).has_radius


@pytest.mark.parametrize("family", families.FAMILIES.values())
def test_the_line_of_the_proof_that_needs_log_concavity_holds_on_a_grid(family):
    """mu'(z + u) + mu'(z - u) <= 2 mu'(z) cosh(R u)."""
    for z in np.linspace(-8.0, 8.0, 33).tolist():
        for u in np.linspace(0.0, 8.0, 17).tolist():
            both = families.slope(family, z + u) + families.slope(family, z - u)
            assert both <= 2.0 * families.slope(family, z) * np.cosh(families.concordance(family) * u) * (1.0 + 1e-12)


def test_a_family_of_ones_own_is_one_class():
    rng = np.random.default_rng(0)
    theta, rows = np.array([1.0, -2.0]), rng.standard_normal((2_000, 2))
    rewards = (rng.random(2_000) < -np.expm1(-np.exp(rows @ theta))).astype(float)
    state = update_rows(op.OnePassGLM(op.Exact(dim=2), family=Cloglog()).begin(), rows, rewards)
    assert np.abs(state.theta - theta).max() < 0.3
    assert families.mean_of_scores(link(state), rows[:5] @ state.theta) == pytest.approx(
        -np.expm1(-np.exp(rows[:5] @ state.theta))
    )
