"""The sampler of Optuna on kernel bandits: what it hopes for, what it knows of failures, steps and running trials."""

import numpy as np
import pytest

import dense_kernel
import onepass as op
from onepass.tuning import surrogate
from onepass.tuning.acquisition import best_candidate, draw_neighbours, log_improvement

optuna = pytest.importorskip("optuna")

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution  # noqa: E402

from onepass.adapters import optuna as optuna_adapter  # noqa: E402
from onepass.adapters.optuna import BanditSampler  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.ERROR)
SPACE = {
    "float": FloatDistribution(-1.0, 2.0),
    "log": FloatDistribution(1e-3, 1e3, log=True),
    "steps": FloatDistribution(0.0, 1.0, step=0.25),
    "int": IntDistribution(-3, 3),
    "fives": IntDistribution(0, 20, step=5),
    "log int": IntDistribution(1, 20, log=True),
    "choice": CategoricalDistribution(["a", None, 3.5]),
}
SQUARE = {"x": FloatDistribution(0.0, 1.0), "y": FloatDistribution(0.0, 1.0)}


def run_study(sampler, space, value, trials, **options):
    """Ask a study for trials and tell it their values."""
    study = optuna.create_study(sampler=sampler, **options)
    for _ in range(trials):
        trial = study.ask(space)
        observed = value(trial.params)
        study.tell(trial, observed, state=None if observed is not None else optuna.trial.TrialState.FAIL)
    return study


def test_log_improvement_equals_quadrature_and_ranks_far_below_the_best():
    deviation, grid = 0.7, np.linspace(-12.0, 12.0, 400_001)
    density = np.exp(-0.5 * grid**2) / np.sqrt(2.0 * np.pi) * (grid[1] - grid[0])
    for mean in (-3.0, -0.8, -0.6, 0.0, 2.0):
        truth = np.log(np.sum(np.maximum(mean + deviation * grid, 0.0) * density))
        (found,) = log_improvement(np.array([mean]), np.array([deviation]), 0.0)
        assert found == pytest.approx(truth, abs=1e-5)
    far = log_improvement(np.array([-1e12, -1e8, -1e4, -100.0, -10.0]), np.ones(5), 0.0)
    assert np.isfinite(far).all()
    assert (np.diff(far) > 0.0).all()


def test_the_best_candidate_is_near_the_best_point():
    rng, peak = np.random.default_rng(0), np.array([0.3, 0.8])

    def moments(points):
        return -np.sum((points - peak) ** 2, axis=1), np.full(len(points), 1e-3)

    found = best_candidate(moments, -1.0, np.array([[0.5, 0.5]]), 1, np.array([False, False]), rng)
    np.testing.assert_allclose(found, peak, atol=0.02)


def test_neighbours_move_at_least_one_coordinate_and_stay_in_the_cube():
    rng, centres = np.random.default_rng(0), np.array([[0.0, 1.0, 0.5], [0.9, 0.1, 0.2]])
    found = draw_neighbours(centres, 1_000, 1.0, np.array([False, False, True]), rng)
    assert 0.0 <= found.min() <= found.max() <= 1.0
    assert (found != centres[np.arange(1_000) % 2]).any(axis=1).all()


def test_the_scale_compresses_bad_values_and_failures_get_the_median():
    scale = surrogate.value_scale(np.array([-100.0, 0.0, np.nan, 1.0, 3.0]))
    assert scale == (0.5, pytest.approx(np.sqrt((0.5**2 + 2.5**2) / 2.0)))
    values = np.array([-1e6, -3.0, 0.5, 0.6, 3.0, 50.0])
    found = scale.transform(values)
    assert (np.diff(found) > 0.0).all()
    np.testing.assert_allclose(found[2:], (values[2:] - 0.5) / scale.spread)
    np.testing.assert_allclose(found[:2], -np.log1p((0.5 - values[:2]) / scale.spread))
    assert scale.transform(np.array([np.nan]))[0] == 0.0


def test_a_fit_finds_the_relevant_setting_and_the_noise():
    rng = np.random.default_rng(0)
    rows = rng.random((60, 2))
    kernel, noise = surrogate.fit_kernel(rows, np.sin(6.0 * rows[:, 0]) + 0.1 * rng.standard_normal(60), [0, 60])
    assert kernel.kernel.length_scale[0] < 1.0 < kernel.kernel.length_scale[1]
    assert 0.003 < noise < 0.03


def test_points_tried_before_have_no_improvement():
    bandit, rows = op.GPUCB(None, op.Matern(2.5, 0.3), reg=0.04), np.array([[0.1], [0.5], [0.9]])
    for row, value in zip(rows, (0.0, 1.0, 0.5), strict=True):
        bandit.learn(row, value)
    at = np.array([[0.5], [0.7], [0.9]])
    means, deviations = surrogate.moments_without_repeats(bandit.model, {rows[1].tobytes()}, at)
    usual = surrogate.moments(bandit.model, at)
    assert means.tolist() == [-np.inf, *usual[0][1:]]
    assert np.array_equal(deviations, usual[1])
    assert log_improvement(means, deviations, 1.0)[0] == -np.inf


def test_widths_given_running_trials_equal_widths_after_them():
    rng = np.random.default_rng(0)
    model, rows = surrogate.Surrogate(4, 0), rng.random((12, 2))
    model.learn(rows, rows[:, 0])
    pending = rng.random((3, 2))
    known = model.condition_on_pending(pending)
    truth = dense_kernel.GP(known.kernel, known.reg)
    for row in np.concatenate([rows, pending]):
        truth.learn(row, 123.0)
    at = rng.random((5, 2))
    np.testing.assert_allclose(known.posterior(at).variances, truth.posterior(at)[1], rtol=1e-6)
    assert model.condition_on_pending(rng.random((0, 2))).n_learned == 12  # a copy has learned them


def surrogate_of(values, points):
    """A surrogate that has learned values at points of a line."""
    model = surrogate.Surrogate(8, 0)
    model.rows, model.values = np.array(points, np.float64)[:, None], np.asarray(values, np.float64)
    return model


def test_values_have_plateaus_if_a_tenth_of_them_is_repeated():
    rng = np.random.default_rng(0)
    smooth, steps = rng.random(50), np.round(rng.random(50), 1)
    apart = np.arange(80)
    assert surrogate_of(steps, apart[:50]).has_plateaus()
    assert not surrogate_of(smooth, apart[:50]).has_plateaus()
    assert not surrogate_of(
        np.concatenate([smooth, np.full(30, np.nan)]), apart
    ).has_plateaus()  # failures are no values


def test_different_values_of_one_setting_are_noise_and_no_plateau():
    steps = np.round(np.random.default_rng(0).random(50), 1)
    again = [*range(50), 0]
    assert surrogate_of([*steps, steps[0]], again).has_plateaus()
    assert not surrogate_of([*steps, steps[0] + 0.1], again).has_plateaus()
    assert surrogate_of([*steps, np.nan], again).has_plateaus()  # a failure is no value


@pytest.mark.parametrize("name", SPACE)
def test_shares_and_values_are_inverse_and_cover_all_values(name):
    one, at = SPACE[name], np.linspace(0.0, 1.0, 1_001)
    found = optuna_adapter.values_from_shares(one, at)
    assert all(one._contains(value) for value in found)
    np.testing.assert_allclose(
        optuna_adapter.values_from_shares(one, optuna_adapter.shares_from_values(one, found)), found, rtol=1e-12
    )
    assert (np.diff(found) >= 0.0).all()
    levels = {"steps": 5, "int": 7, "fives": 5, "log int": 20, "choice": 3}.get(name, 1_001)
    assert len(np.unique(found)) == levels


def test_two_choices_have_distance_one_and_rounded_values_coincide():
    rows = optuna_adapter.kernel_rows(
        {"choice": SPACE["choice"], "int": SPACE["int"]}, np.array([[0.1, 0.5], [0.5, 0.5]])
    )
    assert np.linalg.norm(rows[0] - rows[1]) == pytest.approx(1.0)
    near = optuna_adapter.kernel_rows({"int": SPACE["int"]}, np.array([[0.49], [0.51]]))
    np.testing.assert_array_equal(near[0], near[1])


def test_the_best_of_a_mixed_space_is_found_sequentially_and_in_parallel():
    def value_of(found):
        wrong = (found["choice"] is not None) + abs(found["fives"] - 10) / 20 + abs(found["steps"] - 0.5)
        return -wrong - (np.log10(found["log"]) / 3.0 - 0.3) ** 2

    space = {name: SPACE[name] for name in ("log", "steps", "fives", "choice")}
    alone = run_study(BanditSampler(seed=3), space, value_of, 48, direction="maximize")
    several = optuna.create_study(sampler=BanditSampler(seed=3), direction="maximize")
    for _ in range(12):
        trials = [several.ask(space) for _ in range(4)]
        for trial in trials:
            several.tell(trial, value_of(trial.params))
    for study in (alone, several):
        assert study.best_params["choice"] is None
        assert study.best_value > -0.02


def test_parallel_trials_are_spread_out():
    study = run_study(BanditSampler(seed=0, n_startup_trials=4), SQUARE, lambda one: one["x"], 8)
    several = [study.ask(SQUARE) for _ in range(4)]
    places = np.array([[one.params["x"], one.params["y"]] for one in several])
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)[np.triu_indices(4, 1)]
    assert apart.min() > 0.02


def test_failures_are_avoided():
    def value_of(found):  # what pays most crashes
        return None if found["x"] > 0.7 else found["x"]

    study = run_study(BanditSampler(seed=1), {"x": FloatDistribution(0.0, 1.0)}, value_of, 28, direction="maximize")
    assert 0.6 < study.best_params["x"] <= 0.7


def test_noise_does_not_flatter_the_best_trial():
    def truth(found):
        return -(((found["x"] - 0.5) / 0.3) ** 2) - ((found["y"] - 0.5) / 0.3) ** 2

    chosen, luckiest = [], []
    for seed in range(5):
        rng, sampler = np.random.default_rng(seed), BanditSampler(seed=seed)

        def noisy(one, rng=rng):
            return truth(one) + rng.standard_normal()

        study = run_study(sampler, SQUARE, noisy, 40, direction="maximize")
        chosen.append(truth(sampler.best_trial(study).params))
        luckiest.append(truth(study.best_params))
    assert np.mean(chosen) > np.mean(luckiest)


def test_the_best_trial_is_optunas_during_startup():
    sampler = BanditSampler(seed=0)
    study = optuna.create_study(sampler=sampler)
    with pytest.raises(ValueError, match="No trials are completed"):
        sampler.best_trial(study)
    for value in (2.0, 1.0, 3.0):
        study.tell(study.ask(SQUARE), value)
    assert sampler.best_trial(study).value == 1.0


def test_a_loaded_study_continues(tmp_path):
    def value_of(one):
        return (one["x"] - 0.3) ** 2 + (one["y"] - 0.6) ** 2

    storage = f"sqlite:///{tmp_path / 'study'}"
    run_study(BanditSampler(seed=0), SQUARE, value_of, 20, storage=storage, study_name="a")
    again = optuna.load_study(study_name="a", storage=storage, sampler=BanditSampler(seed=1))
    for _ in range(5):
        trial = again.ask(SQUARE)
        again.tell(trial, value_of(trial.params))
    assert again.best_value < 1e-3


@pytest.mark.parametrize("bad", [float("inf"), float("-inf")])
def test_values_that_are_all_infinite_are_failures(bad):
    study = run_study(BanditSampler(n_startup_trials=3), SQUARE, lambda _: bad, 6)
    assert study.sampler.best_trial(study).value == bad


def test_one_sampler_serves_one_study_after_another():
    sampler, fresh = BanditSampler(n_startup_trials=3), BanditSampler(n_startup_trials=3)
    run_study(sampler, SQUARE, lambda params: -params["x"], 6)
    found, expected = (run_study(one, SQUARE, lambda params: params["x"] + params["y"], 3) for one in (sampler, fresh))
    assert [trial.params for trial in found.trials[1:]] == [trial.params for trial in expected.trials[1:]]
    assert sampler.best_trial(found).number == fresh.best_trial(expected).number


def test_the_first_trial_may_be_the_last_to_name_its_settings():
    study = optuna.create_study(sampler=BanditSampler())
    first, second = study.ask(), study.ask()
    study.tell(second, second.suggest_float("x", 0.0, 1.0))
    assert 0.0 <= first.suggest_float("x", 0.0, 1.0) <= 1.0


def test_almost_every_setting_of_a_small_discrete_space_is_tried():
    space = {"c": CategoricalDistribution(["p", "q"]), "n": IntDistribution(1, 8)}
    study = run_study(BanditSampler(seed=0, n_startup_trials=8), space, lambda one: float(one["n"] // 3), 40)
    assert len({tuple(trial.params.items()) for trial in study.trials}) >= 15  # of 16


def jumping(settings):
    """Constant in bands of x, each as good as chance has it; y plays no part."""
    return float(np.random.default_rng([4, int(20 * settings["x"])]).standard_normal())


def test_the_best_of_twenty_plateaus_is_found():
    """35 of 40 seeds find it within 40 trials (measured), so fewer than 5 of 8 do with probability 0.01."""
    best = max(jumping({"x": (band + 0.5) / 20}) for band in range(20))
    studies = [run_study(BanditSampler(seed=seed), SQUARE, jumping, 40, direction="maximize") for seed in range(8)]
    assert sum(study.best_value == best for study in studies) >= 5


def test_bad_arguments_and_studies_are_refused():
    with pytest.raises(ValueError, match="n_startup_trials must be"):
        BanditSampler(n_startup_trials=1)
    with pytest.raises(ValueError, match="one objective"):
        optuna.create_study(directions=["minimize"] * 2, sampler=BanditSampler()).ask(SQUARE)
