"""Nystrom features multiply to the projected kernel, serve bandits, and are saved."""

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as sk

import dense_kernel as dense
import onepass as op
from kernel_games import (
    KERNELS,
    REGS,
    SMOOTH,
    are_equal,
    are_equal_runs,
    assert_close,
    breaking,
    history,
    learn,
    points,
    run,
    value,
)

# ---- Nystrom features ----


@pytest.mark.parametrize("kernel", KERNELS)
def test_nystrom_features_multiply_to_the_projected_kernel(kernel):
    function = op.features.kernels.as_kernel(KERNELS[kernel])
    chosen, X = points(12), points(20, 1)
    z = op.features.Nystrom(chosen, KERNELS[kernel]).transform(X)
    K = function(X, chosen)
    assert_close(z @ z.T, K @ np.linalg.pinv(function(chosen, chosen), rcond=1e-12, hermitian=True) @ K.T)
    features = op.features.Nystrom(X, KERNELS[kernel])
    z = features.transform(X)
    assert z.shape == (20, features.size)
    assert_close(z @ z.T, function(X, X))


def test_nystrom_features_drop_points_that_add_nothing():
    X = points(12)
    assert op.features.Nystrom(np.vstack([X, X]), SMOOTH).size == 12
    assert op.features.Nystrom(points(12, 0, 3), op.Linear()).size == 3
    assert op.features.Nystrom(points(12, 0, 3), op.Linear(0.5)).size == 4
    assert op.features.Nystrom(points(12), op.Polynomial(2)).size == 6
    assert op.features.Nystrom(np.zeros((3, 2)), op.RBF()).size == 1


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("kernel", ["rbf", "matern 3/2", "linear", "sum", "function"])
def test_ridge_regression_on_nystrom_features_has_the_dense_mean_and_width(kernel, reg):
    function = op.features.kernels.as_kernel(KERNELS[kernel])
    arms, chosen = points(), points(10, 1)
    plays, rewards = history(arms, 200)
    features = op.features.Nystrom(chosen, KERNELS[kernel])
    bandit = op.Bandit(op.Ridge(op.Exact(dim=features.size, reg=reg)), op.UCB(0.5), features=features)
    bandit.learn(arms[plays], rewards)
    decision = bandit.decide(arms)
    assert_close(decision.means, dense.dtc(function, chosen, arms[plays], rewards, arms, reg)[0])
    assert_close(decision.widths**2, dense.subset_of_regressors(function, chosen, arms[plays], arms, reg))


def test_the_nystrom_features_of_bkb_are_those_of_its_dictionary():
    arms = points()
    for sets in ("fixed", "rows"):
        bandit = op.BKB(arms if sets == "fixed" else None, SMOOTH, reg=0.37, oversampling=2.0)
        plays, rewards = history(arms, 100)
        learn(bandit, plays if sets == "fixed" else arms[plays], rewards)
        features, S = bandit.model.nystrom(), bandit.model.dictionary
        z = features.transform(arms)
        assert_close(z @ z.T, SMOOTH(arms, S) @ np.linalg.inv(SMOOTH(S, S)) @ SMOOTH(S, arms))
        ridge = op.Bandit(op.Ridge(op.Exact(dim=features.size, reg=0.37)), features=features)
        ridge.learn(arms[plays], rewards)
        assert_close(ridge.decide(arms).means, bandit.model.posterior(arms).means)


@pytest.mark.parametrize("design", [op.FrequentDirections, op.RobustFrequentDirections, op.Exact])
def test_sketched_bandits_run_on_nystrom_features_and_are_saved(design, tmp_path):
    arms = points(60)
    features = op.features.Nystrom(points(30, 1), SMOOTH)
    size = {} if design is op.Exact else {"size": 10}
    bandit = op.Bandit(op.Ridge(design(dim=features.size, reg=0.37, **size)), op.UCB(0.3), features=features, seed=1)
    sets = lambda rng: arms  # noqa: E731
    run(bandit, 60, sets=sets)
    bandit.save(tmp_path / "bandit")
    loaded, copy = op.load(tmp_path / "bandit"), bandit.copy()
    assert are_equal(loaded.decide(arms)[2:5], bandit.decide(arms)[2:5])
    runs = [run(b, 40, sets=sets) for b in (loaded, copy)]
    assert are_equal_runs(*runs)
    assert bandit.memory_usage() > 0
    recommended = bandit.recommend(arms[None], k=3)
    assert len(recommended.arms[0]) == 3


@pytest.mark.parametrize("kernel", [op.RBF(0.5), op.Matern(0.5, 1.0), op.Matern(1.5, 0.3), op.Linear()], ids=repr)
def test_a_saved_bandit_on_a_symmetric_grid_of_nystrom_points_predicts_the_same(kernel, tmp_path):
    """Where a pivoted factorization has ties, its order hangs on rounding."""
    for n in (5, 7, 9):
        grid = np.stack(np.meshgrid(np.linspace(-1, 1, n), np.linspace(-1, 1, n)), axis=-1).reshape(-1, 2)
        features = op.features.Nystrom(grid, kernel)
        bandit = op.Bandit(op.Ridge(op.Exact(dim=features.size, reg=0.37)), features=features)
        bandit.learn(grid, value(grid))
        bandit.save(tmp_path / "bandit")
        assert np.array_equal(op.load(tmp_path / "bandit").decide(points()).means, bandit.decide(points()).means)


@pytest.mark.parametrize(
    ("chosen", "kernel"),
    [
        (np.zeros((0, 2)), SMOOTH),
        (np.zeros(3), SMOOTH),
        ([[np.nan, 1.0]], SMOOTH),
        (points(3), "rbf"),
        (points(9), lambda X, Y: -X @ Y.T),
        (np.arange(3.0)[:, None], breaking),
        (points(3), sk.WhiteKernel()),
        (points(3), op.RBF((1.0, 2.0, 3.0))),
    ],
)
def test_bad_nystrom_points_and_kernels_are_refused(chosen, kernel):
    with pytest.raises(ValueError, match=r"points|kernel|length_scale"):
        op.features.Nystrom(chosen, kernel)


def test_nystrom_features_of_a_function_refuse_to_be_saved(tmp_path):
    features = op.features.Nystrom(points(), KERNELS["function"])
    bandit = op.Bandit(op.Ridge(op.Exact(dim=features.size)), features=features)
    with pytest.raises(ValueError, match="kernel"):
        bandit.save(tmp_path / "bandit")
