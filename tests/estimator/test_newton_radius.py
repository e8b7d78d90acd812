"""The radius of Newton steps on sketches: every line of its proof, its coverage, and what it is beside ridge's."""

import numpy as np
import pytest

import onepass as op
from onepass.design import contract as designs
from onepass.design.potential_growth import potential_growth
from onepass.estimator import contract

DIM, NOISE, BOUND, DELTA = 6, 0.5, 1.5, 0.2
SKETCHES = {
    "Exact": lambda reg: op.Exact(dim=DIM, reg=reg),
    "FrequentDirections": lambda reg: op.FrequentDirections(dim=DIM, size=2, reg=reg),
    "half compensated": lambda reg: op.RobustFrequentDirections(dim=DIM, size=2, reg=reg, compensation=0.5),
    "RobustFrequentDirections": lambda reg: op.RobustFrequentDirections(dim=DIM, size=2, reg=reg),
    "Dyadic": lambda reg: op.Dyadic(dim=DIM, size=1, error=4.0, reg=reg),
    "Dyadic, rfd": lambda reg: op.Dyadic(dim=DIM, size=1, error=4.0, reg=reg, base="rfd"),
}


def problem(count, seed, dim=DIM):
    """Rows of a decaying spectrum, theta of length `BOUND`, and Gaussian noise."""
    rng = np.random.default_rng(seed)
    rows, theta = rng.standard_normal((count, dim)) / np.sqrt(np.arange(1, dim + 1)), rng.standard_normal(dim)
    return rows, theta * BOUND / np.linalg.norm(theta), NOISE * rng.standard_normal(count)


def radius(state, count=0):
    return contract.radius(state, count, NOISE, BOUND, 4.0, DELTA)


def energy(state, theta):
    """V = (theta - theta_*)^T A_hat (theta - theta_*)."""
    gap = contract.parameter(state) - theta
    return gap @ designs.matrix(state.design) @ gap


@pytest.mark.parametrize("reg", [0.02, 0.37, 20.0])
@pytest.mark.parametrize("kind", SKETCHES)
def test_the_energy_grows_by_what_the_proof_allows_at_every_row_and_cut(kind, reg):
    rows, theta, noise = problem(150, 1)
    state = op.OnlineNewton(SKETCHES[kind](reg)).begin()
    for x, eta in zip(rows, noise, strict=True):
        before, old, known = energy(state, theta), contract.parameter(state), state.energy
        q = float(designs.inverse_quadratic(state.design, x[None])[0])
        reward = x @ theta + eta
        state = contract.update(state, x, float(reward))
        rise, length = state.energy.rise - known.rise, np.linalg.norm(contract.parameter(state))
        allowed = before + eta**2 - (reward - x @ old) ** 2 / (1 + q) + rise * (BOUND + length) ** 2
        assert energy(state, theta) <= allowed + 1e-9 * (1.0 + allowed)
        np.testing.assert_allclose(state.energy.gained - known.gained, np.log1p(q), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(state.energy.lift - known.lift, rise * length**2, rtol=1e-6, atol=1e-12)
        if kind in ("Exact", "FrequentDirections", "Dyadic"):
            assert rise == 0.0
    assert (designs.error_bound(state.design) > 0.0) == (kind != "Exact")  # it was cut


@pytest.mark.parametrize("kind", SKETCHES)
def test_no_row_raises_a_design_by_more_than_its_radii_count(kind):
    rows, _, _ = problem(150, 1)
    state = SKETCHES[kind](0.37).initial_state()
    for x in rows:
        before, held = designs.matrix(state), potential_growth(state)
        state = designs.append(state, x)
        risen = np.linalg.eigvalsh(designs.matrix(state) - before - np.outer(x, x)).max()
        assert risen <= potential_growth(state) - held + 1e-9


def test_projector_splitting_has_no_radius_once_it_truncates_for_a_row_may_raise_it_by_any_length():
    """Rows of squared length about 2.4, and directions that rise by more than that beside the row."""
    rows, _, _ = problem(150, 1)
    state, risen = op.ProjectorSplitting(dim=DIM, rank=2, reg=0.37).initial_state(), 0.0
    assert potential_growth(state) == 0.0
    for x in rows:
        before = designs.matrix(state)
        state = designs.append(state, x)
        risen = max(risen, np.linalg.eigvalsh(designs.matrix(state) - before - np.outer(x, x)).max())
    assert risen > 1.0
    assert potential_growth(state) == np.inf


@pytest.mark.parametrize("kind", ["Exact", "FrequentDirections", "RobustFrequentDirections", "Dyadic, rfd"])
def test_the_radius_holds_in_all_rounds_with_its_probability(kind):
    games, failed = 100, 0
    for seed in range(games):
        rows, theta, noise = problem(60, seed)
        state = op.OnlineNewton(SKETCHES[kind](0.37)).begin()
        outside = False
        for t, (x, eta) in enumerate(zip(rows, noise, strict=True)):
            state = contract.update(state, x, float(x @ theta + eta))
            outside |= energy(state, theta) > radius(state, t + 1) ** 2
        failed += outside
    assert failed <= games * DELTA + 3.0 * np.sqrt(games * DELTA * (1.0 - DELTA))


@pytest.mark.parametrize("reg", [0.02, 0.37, 20.0])
def test_on_an_exact_design_the_radius_is_below_that_of_oful(reg):
    rows, theta, noise = problem(100, 2)
    newton, ridge = (kind(op.Exact(dim=DIM, reg=reg)).begin() for kind in (op.OnlineNewton, op.Ridge))
    for x, eta in zip(rows, noise, strict=True):
        newton, ridge = (contract.update(state, x, float(x @ theta + eta)) for state in (newton, ridge))
        assert radius(newton) <= radius(ridge)
    gained = np.linalg.slogdet(reg * np.eye(DIM) + rows.T @ rows)[1] - DIM * np.log(reg)
    want = np.sqrt(NOISE**2 * (gained + 2 * np.log(1 / DELTA)) + reg * BOUND**2)
    np.testing.assert_allclose(radius(newton), want, rtol=1e-9)


def test_where_a_sketch_cuts_more_than_reg_ridge_errs_by_more_and_has_the_larger_radius():
    rows, theta, noise = problem(300, 3)
    newton, ridge = (make(SKETCHES["FrequentDirections"](0.05)).begin() for make in (op.OnlineNewton, op.Ridge))
    for x, eta in zip(rows, noise, strict=True):
        newton, ridge = (contract.update(state, x, float(x @ theta + eta)) for state in (newton, ridge))
    assert radius(newton, 300) < 0.5 * radius(ridge, 300)
    assert energy(newton, theta) < 0.5 * energy(ridge, theta)


def test_no_radius_is_told_for_other_steps_and_for_cuts_that_nothing_is_known_of():
    assert radius(op.OnlineNewton(op.Exact(dim=DIM), step=2.0).begin()) == np.inf
    with pytest.raises(ValueError, match=r"^exploration .*no theoretical radius"):
        op.Bandit(op.OnlineNewton(op.Exact(dim=DIM), step=0.5), op.UCB(op.Theory()))


@pytest.mark.parametrize("model", [lambda e: e, op.Disjoint, lambda e: op.Disjoint(e, compact=False)])
def test_rows_that_a_design_held_count_in_the_radius(model):
    rows, _, _ = problem(40, 4)
    theory = op.Theory(noise=NOISE, parameter_bound=BOUND, delta=DELTA)
    for kind in ("Exact", "RobustFrequentDirections"):
        design = SKETCHES[kind](0.37)
        began = design.append(rows)
        space = designs.prior(began.initial_state()).space
        bandit = op.Bandit(model(op.OnlineNewton(began)), op.UCB(theory))
        decision = bandit.decide(rows[:1], arms=["one"])
        gained = space.log_det - DIM * np.log(space.ridge)
        want = np.sqrt(NOISE**2 * (gained + 2 * np.log(1 / DELTA)) + space.ridge * BOUND**2)
        np.testing.assert_allclose(decision.scores, want * decision.widths, rtol=1e-9)
