from dataclasses import replace
from pathlib import Path
from time import sleep
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import onepass as op
from experiments import press_ctrl_c
from onepass.lab import ExperimentError, KernelStudy, Policy, find, report, run, select, tune
from onepass.lab.kernels import problems as kernel_problems
from onepass.lab.kernels.figures import kernel_lines
from onepass.lab.kernels.problems import (
    GaussianProcess,
    NegatedFunction,
    NoisyFunction,
    branin,
    gp_draw,
    grid_accuracies,
    hartmann6,
    line,
    mesh,
    sobol,
    split,
)
from onepass.lab.kernels.quadrature import QFFTS, fitting_features, quadrature_features
from onepass.lab.kernels.starvation import GRID, SEEN, exact_belief
from onepass.lab.kernels.study import KernelTrial, Uniform
from onepass.lab.kernels.suites import BKBTS, GPTS, SUITES, policies
from onepass.lab.results import CURVES, ROWS, read, write

ATTEMPTS = 50  # at a run in which the machine does nothing else
KERNEL_STUDIES = [suite for suite in SUITES if isinstance(suite, KernelStudy)]


class Stubborn:
    """A policy that always plays one arm and remembers what it was paid."""

    def __init__(self, *, arms: np.ndarray, kernel: op.extend.Kernel, seed: int, arm: int = 0) -> None:
        self.arms, self.arm, self.paid = arms, arm, []

    def decide(self) -> Any:
        return SimpleNamespace(arm=self.arm)

    def learn(self, context: None, reward: float, arm: int) -> None:
        assert context is None
        assert arm == self.arm
        self.paid.append(reward)

    def posterior(self) -> Any:
        return SimpleNamespace(means=np.eye(len(self.arms))[self.arm])

    def effective_dimension(self) -> float:
        return 1.5

    dictionary_size = 1

    def memory_usage(self) -> int:
        return 100 + 8 * len(self.paid)


def three_arms(seed: int) -> NoisyFunction:
    return NoisyFunction(line(3), np.array([0.0, 1.0, 3.0]), op.RBF(0.2), 0.5, seed)


def small_study(**changes: Any) -> KernelStudy:
    """Three arms that pay 0, 1 and 3, and two policies that always play the first or the last."""
    stubborn = (Policy("worst", Stubborn, {"arm": 0}), Policy("best", Stubborn, {"arm": 2}))
    return replace(KernelStudy("three", "", three_arms, stubborn, 100, 2), **changes)


def smooth_study(**changes: Any) -> KernelStudy:
    """60 arms in the plane, a draw from a GP, and every policy."""
    problem = GaussianProcess(lambda rng: rng.random((60, 2)), op.RBF(0.3))
    return replace(KernelStudy("smooth", "", problem, policies(), 80, 2), **changes)


# ---------------------------------------------------------------- problems


def test_rewards_are_the_mean_plus_noise_of_the_round() -> None:
    problem, n = three_arms(7), 4000
    drawn = np.array([[problem.reward(t, arm) for arm in range(3)] for t in range(n)])
    np.testing.assert_allclose(drawn - drawn[:, :1], np.tile([0.0, 1.0, 3.0], (n, 1)), atol=1e-12)
    noise = drawn[:, 0] / 0.5
    assert abs(noise.mean()) < 4.5 / n**0.5
    assert abs(noise.var() - 1.0) < 4.5 * (2 / n) ** 0.5
    assert three_arms(8).reward(0, 0) != problem.reward(0, 0) == three_arms(7).reward(0, 0)


def test_functions_are_draws_from_the_kernels_gp() -> None:
    kernel, rows, n = op.Matern(1.5, 0.4), np.array([[0.0], [0.2], [1.0]]), 4000
    draws = np.array([gp_draw(kernel, rows, np.random.default_rng(i)) for i in range(n)])
    gram = kernel(rows, rows)
    # var of a product of jointly normal variables is k_ii k_jj + k_ij^2 <= 2
    assert np.abs(draws.T @ draws / n - gram).max() < 4.5 * (2 / n) ** 0.5


def test_arms_and_functions_belong_to_the_seed() -> None:
    problem = find("gp-2d").problem
    one, again, other = problem(3), problem(3), problem(4)
    np.testing.assert_array_equal(one.arms, again.arms)
    np.testing.assert_array_equal(one.expected, again.expected)
    assert one.arms.shape == (1000, 2)
    assert not np.array_equal(one.arms, other.arms)
    assert not np.array_equal(find("gp-1d").problem(3).expected, find("gp-1d").problem(4).expected)


def test_branin_has_its_three_minima() -> None:
    minima = np.array([[-np.pi, 12.275], [np.pi, 2.275], [9.42478, 2.475]])
    np.testing.assert_allclose(branin((minima + np.array([5.0, 0.0])) / 15.0), 0.397887, atol=1e-6)
    values = branin(mesh(line(301)[:, 0], line(301)[:, 0]))
    assert 0.397887 <= values.min() < 0.41
    assert values.max() == pytest.approx(308.129, abs=1e-3)  # at (-5, 0)


def test_hartmann_has_its_minimum() -> None:
    minimum = np.array([[0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573]])
    assert hartmann6(minimum)[0] == pytest.approx(-3.32237, abs=1e-5)
    near = minimum + 0.01 * np.random.default_rng(0).standard_normal((500, 6))
    assert hartmann6(near).min() > -3.32237 - 1e-5


@pytest.mark.parametrize("name", ["branin", "hartmann6"])
def test_test_functions_are_negated_and_standardized(name: str) -> None:
    problem = find(name).problem(0)
    function = {"branin": branin, "hartmann6": hartmann6}[name]
    assert problem.expected.mean() == pytest.approx(0.0, abs=1e-12)
    assert problem.expected.std() == pytest.approx(1.0)
    assert problem.expected.argmax() == function(problem.arms).argmin()
    assert problem.arms.shape == {"branin": (2500, 2), "hartmann6": (2000, 6)}[name]
    assert problem.arms.min() >= 0.0
    assert problem.arms.max() <= 1.0


def test_sobol_points_cover_the_cube_more_evenly_than_chance() -> None:
    rows = sobol(np.random.default_rng(0), 2000, 6)
    counts = np.histogram2d(rows[:, 0], rows[:, 1], bins=8, range=[[0, 1], [0, 1]])[0]
    assert counts.std() < 0.5 * (2000 / 64) ** 0.5  # a Poisson count's standard deviation


# ---------------------------------------------------------------- digits


def test_accuracies_of_the_whole_grid_are_those_of_scikit_learn() -> None:
    from sklearn.kernel_ridge import KernelRidge

    (rows, labels), (held, truth) = split(np.random.default_rng(0))
    alphas, gammas, power = np.array([1e-6, 0.01, 3.0]), np.array([1e-3, 0.2, 10.0]), 0.7
    found = grid_accuracies((rows**power, labels), (held**power, truth), alphas, gammas)
    for i, alpha in enumerate(alphas):
        for j, gamma in enumerate(gammas):
            model = KernelRidge(alpha=alpha, kernel="rbf", gamma=gamma).fit(rows**power, np.eye(10)[labels])
            accuracy = (model.predict(held**power).argmax(axis=1) == truth).mean()
            assert abs(found[i, j] - accuracy) <= (0.004 if alpha < 1e-5 else 0.0)  # ill-conditioned: two rows of 500
    assert found.max() > 0.95 > 0.8 > found.min()


def test_splits_are_disjoint_and_random() -> None:
    (rows, labels), (held, truth) = split(np.random.default_rng(0))
    assert (rows.shape, labels.shape, held.shape, truth.shape) == ((300, 64), (300,), (500, 64), (500,))
    assert not {row.tobytes() for row in rows} & {row.tobytes() for row in held}
    assert (rows.min(), rows.max()) == (0.0, 1.0)
    assert not np.array_equal(split(np.random.default_rng(1))[0][1], labels)


def test_the_truth_of_a_setting_is_its_mean_over_the_fixed_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.kernel_ridge import KernelRidge

    alphas, gammas, powers = np.array([0.01, 1.0, 50.0]), np.array([0.001, 0.1]), np.array([0.5, 2.0])
    for name, value in {"ALPHAS": alphas, "GAMMAS": gammas, "POWERS": powers, "SPLITS": 2}.items():
        monkeypatch.setattr(kernel_problems, name, value)
    truth = kernel_problems._accuracies.__wrapped__()
    problem = kernel_problems.DigitsTuning(0)
    assert truth.shape == (12,)
    assert problem.arms.shape == problem.settings.shape == (12, 3)
    for arm in (0, 5, 10):
        alpha, gamma, power = problem.settings[arm]
        found = []
        for i in range(2):
            (rows, labels), (held, named) = split(kernel_problems.stream(kernel_problems.TRUTH_SEED, i))
            model = KernelRidge(alpha=alpha, kernel="rbf", gamma=gamma).fit(rows**power, np.eye(10)[labels])
            found.append((model.predict(held**power).argmax(axis=1) == named).mean())
        assert truth[arm] == pytest.approx(np.mean(found), abs=1e-12)
    many = np.array([problem.reward(t, 5) for t in range(20)])  # standard deviation of one about 0.01
    assert many.mean() == pytest.approx(truth[5], abs=4.5 * many.std(ddof=1) * (1 / 20 + 1 / 2) ** 0.5)
    assert problem.reward(0, 5) == many[0] != many[1]


def test_the_grid_of_settings_is_what_the_suite_says() -> None:
    problem = find("digits-tuning").problem(0)
    assert problem.arms.shape == (5000, 3)
    assert (problem.arms.min(), problem.arms.max()) == (0.0, 1.0)
    for i in range(3):  # arms are the settings' logarithms, rescaled
        logs = np.log(problem.settings[:, i])
        np.testing.assert_allclose(problem.arms[:, i], (logs - logs.min()) / np.ptp(logs), atol=1e-12)


# ---------------------------------------------------------------- the study


def test_regret_is_what_the_best_arm_would_have_paid_more_in_expectation() -> None:
    results = run(small_study(), quiet=True)
    assert [(row["policy"], row["seed"]) for row in results.rows] == [
        ("worst", 0), ("best", 0), ("worst", 1), ("best", 1),
    ]  # fmt: skip
    for row in results.rows:
        assert row["cumulative_regret"] == (300.0 if row["policy"] == "worst" else 0.0)
        assert row["simple_regret"] == (3.0 if row["policy"] == "worst" else 0.0)
        assert (row["rounds"], row["arms"], row["kernel"]) == (100, 3, "RBF(length_scale=0.2)")
        assert (row["dictionary_size"], row["effective_dimension"], row["memory_bytes"]) == (1, 1.5, 900)
    by_round = {point["round"]: point["cumulative_regret"] for point in results.curves if point["policy"] == "worst"}
    assert by_round == {t: 3.0 * t for t in [*range(3, 100, 3), 100]}


def test_policies_meet_the_same_noise_in_the_same_round() -> None:
    trial = small_study().trial(small_study().policies, seed=4)
    assert isinstance(trial, KernelTrial)
    for start, rounds in ((0, 30), (30, 5)):
        trial.step(start, rounds)
    worst, best = (np.array(bandit.paid) for bandit in trial.bandits)
    np.testing.assert_allclose(best - worst, 3.0)
    assert worst.size == 35
    assert trial.rows()[0]["cumulative_reward"] == pytest.approx(worst.sum())


def test_a_policy_is_not_changed_by_its_company_nor_by_where_checkpoints_lie() -> None:
    study = smooth_study()
    alone = run(study, policies=select(study, ["BKB-TS"]), seeds=[1], quiet=True).rows[0]
    among = run(study, seeds=[1], quiet=True).rows
    assert alone["cumulative_regret"] == next(r["cumulative_regret"] for r in among if r["policy"] == "BKB-TS")
    trial = study.trial(select(study, ["BKB-TS"]), 1)
    trial.step(0, 80)
    assert trial.rows()[0]["cumulative_regret"] == pytest.approx(alone["cumulative_regret"])


def test_every_policy_beats_a_random_choice_and_knows_what_it_holds() -> None:
    rows = run(smooth_study(), quiet=True).rows
    random = {row["seed"]: row for row in rows if row["policy"] == "Random"}
    assert {row["policy"] for row in rows} == {"GPUCB", "GP-TS", "BKB", "BKB every round", "BKB-TS", "Random"}
    for row in rows:
        if row["policy"] == "Random":
            assert row["dictionary_size"] is row["effective_dimension"] is None
        else:
            assert row["cumulative_regret"] < 0.5 * random[row["seed"]]["cumulative_regret"]
            assert 0 < row["dictionary_size"] <= 60
            assert 0 < row["effective_dimension"] < 60
            assert row["params"]["reg"] == 0.01


def test_time_holds_neither_the_problems_nor_compilation() -> None:
    class Slow(NoisyFunction):
        def reward(self, round: int, arm: int) -> float:
            sleep(0.005)
            return 0.0

    study = small_study(problem=lambda seed: Slow(line(3), np.zeros(3), op.RBF(0.2), 0.0, seed), rounds=20, seeds=1)

    def slowest() -> float:
        return max(row["microseconds_per_round"] for row in run(study, quiet=True).rows)

    assert any(slowest() < 500 for _ in range(ATTEMPTS))  # the system may leave a process out for a while


def test_rows_survive_parquet_and_carry_every_parameter(tmp_path: Path) -> None:
    results = run(smooth_study(), seeds=1, rounds=20, quiet=True)
    write(results.rows, tmp_path / ROWS)
    write(results.curves, tmp_path / CURVES)
    assert read(tmp_path / ROWS) == results.rows
    assert read(tmp_path / CURVES) == results.curves
    every = next(row for row in results.rows if row["policy"] == "BKB every round")
    assert every["params"] == {"reg": 0.01, "staleness": 1.0}


def test_ctrl_c_keeps_the_rounds_that_all_policies_played() -> None:
    class Interrupted(NoisyFunction):
        def reward(self, round: int, arm: int) -> float:
            if round == 50 and arm == 2:
                press_ctrl_c()
            return super().reward(round, arm)

    study = small_study(problem=lambda seed: Interrupted(line(3), np.array([0.0, 1.0, 3.0]), op.RBF(0.2), 0.5, seed))
    results = run(study, quiet=True)
    assert results.interrupted
    assert [(row["policy"], row["rounds"], row["cumulative_regret"]) for row in results.rows] == [
        ("worst", 48, 144.0),
        ("best", 48, 0.0),
    ]


def test_the_random_policy_recommends_what_paid_most_on_average() -> None:
    policy = Uniform(arms=line(4), seed=0)
    for arm, reward in ((0, 1.0), (0, 0.0), (2, 0.7), (1, -5.0)):
        policy.learn(None, reward, arm)
    assert policy.posterior().means.argmax() == 2
    counts = np.bincount([policy.decide().arm for _ in range(4000)], minlength=4)
    assert np.abs(counts - 1000).max() < 4.5 * (4000 * 0.25 * 0.75) ** 0.5


@pytest.mark.parametrize("suite", KERNEL_STUDIES, ids=lambda suite: suite.name)
def test_every_policy_of_every_kernel_suite_can_be_built(suite: KernelStudy) -> None:
    problem = suite.problem(0)
    assert len({policy.label for policy in suite.policies}) == len(suite.policies)
    for policy in suite.policies:
        policy.build(arms=problem.arms[::100], kernel=problem.kernel, seed=0)


def test_thompson_sampling_draws_from_the_posterior_itself_unless_told_otherwise() -> None:
    where: dict[str, Any] = {"arms": line(5), "kernel": op.RBF(0.2), "reg": 0.09}
    assert GPTS(**where).exploration == BKBTS(**where).exploration == op.SingleDrawThompson(0.3)
    assert BKBTS(**where, exploration=0.7).exploration == op.SingleDrawThompson(0.7)
    assert BKBTS(**where, fit_after=9, normalize=True).model.fit_after == 9


@pytest.mark.parametrize(("dim", "nodes", "length"), [(1, 20, 0.3), (2, 12, 0.5), (3, 6, 1.0)])
def test_quadrature_features_have_the_products_of_the_gaussian_kernel(dim: int, nodes: int, length: float) -> None:
    rows = np.random.default_rng(0).random((40, dim))
    phi = quadrature_features(rows, length, nodes)
    assert phi.shape == (40, nodes**dim)
    np.testing.assert_allclose(phi @ phi.T, op.RBF(length)(rows, rows), rtol=0.0, atol=1e-4)
    np.testing.assert_allclose((phi**2).sum(axis=1), 1.0, rtol=1e-12)
    fewest = fitting_features(rows, op.RBF(length))
    assert fewest.shape[1] <= nodes**dim
    assert np.abs(fewest @ fewest.T - op.RBF(length)(rows, rows)).max() <= 1e-3


def test_quadrature_needs_too_many_features_in_many_dimensions_and_knows_one_kernel() -> None:
    with pytest.raises(ValueError, match="more than 10000 features"):
        fitting_features(np.random.default_rng(0).random((40, 10)), op.RBF(0.5))
    with pytest.raises(ValueError, match="RBF with one length scale"):
        QFFTS(arms=line(5), kernel=op.Matern(), reg=0.1)


def test_fitted_policies_choose_their_kernel_after_fifty_plays() -> None:
    study = find("branin")
    (policy,) = select(study, ["BKB fitted"])
    coarse = replace(
        study, problem=NegatedFunction(branin, lambda rng: mesh(line(12)[:, 0], line(12)[:, 0]), op.Matern())
    )
    trial = coarse.trial([policy], 0)
    trial.step(0, 50)
    trial.step(50, 10)
    (bandit,) = trial.bandits
    assert bandit.model.kernel != op.Matern()
    assert trial.rows()[0]["kernel"] == repr(op.Matern())


def test_tuning_searches_what_a_recipe_accepts_and_leaves_the_random_policy_out() -> None:
    grid = {"exploration": (0.1, 0.4), "reg": (0.01, 0.1, 1.0), "oversampling": (3.0, 30.0)}
    study = smooth_study(grid=grid)
    rows = tune(study, policies=select(study, ["GPUCB", "BKB", "Random"]), seeds=1, rounds=5, quiet=True).rows
    assert [row["policy"] for row in rows] == ["GPUCB"] * 6 + ["BKB"] * 12
    with pytest.raises(ExperimentError, match="gp-2d-staleness has nothing to tune"):
        tune(find("gp-2d-staleness"), quiet=True)


# ---------------------------------------------------------------- starvation


@pytest.fixture(scope="module")
def starvation_results() -> Any:
    return run(find("variance-starvation"), seeds=3, quiet=True)


def test_the_subset_of_regressors_starves_and_bkb_does_not(starvation_results: Any) -> None:
    assert [row["rounds"] for row in starvation_results.rows[::3]] == 3 * [6, 63, 215]
    for row in starvation_results.rows:
        if row["policy"] == "subset of regressors":
            assert row["unseen_deviation"] < 0.6
            assert row["coverage"] < 0.95
        else:
            assert row["unseen_deviation"] == pytest.approx(1.0, abs=1e-6 if row["policy"] == "exact GP" else 0.05)
            assert row["coverage"] > 0.95
            assert row["seen_deviation"] == pytest.approx(1.0, abs=1e-6 if row["policy"] == "exact GP" else 0.2)
    end = {row["policy"]: row for row in starvation_results.rows if row["rounds"] == 215 and row["seed"] == 0}
    assert end["subset of regressors"]["seen_deviation"] == pytest.approx(1.0, abs=0.1)
    assert end["BKB"]["dictionary_size"] == end["subset of regressors"]["dictionary_size"] < 60


def test_evaluations_lie_in_the_first_half_and_are_the_same_for_all(starvation_results: Any) -> None:
    first = [row for row in starvation_results.curves if row["seed"] == 1]
    for row in first:
        assert len(row["evaluated"]) == len(row["values"]) == row["round"]
        assert 0.0 <= min(row["evaluated"]) <= max(row["evaluated"]) <= 0.5
        assert row["values"] == first[-1]["values"][: row["round"]]
        assert set(row["dictionary"]) <= set(row["evaluated"])
        assert row["function"] == first[0]["function"]
    assert SEEN.sum() == 501


def test_the_exact_belief_is_scikit_learns() -> None:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF

    rng = np.random.default_rng(0)
    rows, values = rng.random((12, 1)), rng.standard_normal(12)
    found = exact_belief(op.RBF(0.2), 0.3, rows, values, GRID[::40])
    model = GaussianProcessRegressor(RBF(0.2), alpha=0.3, optimizer=None).fit(rows, values)
    means, deviations = model.predict(GRID[::40], return_std=True)
    np.testing.assert_allclose(found.means, means, atol=1e-9)
    np.testing.assert_allclose(found.deviations, deviations, atol=1e-9)


@pytest.mark.parametrize(("rounds", "looked"), [(3, [3]), (63, [6, 63]), (100, [6, 63, 100])])
def test_beliefs_are_looked_at_where_asked_and_at_the_end(rounds: int, looked: list[int]) -> None:
    study = find("variance-starvation")
    rows = run(study, policies=select(study, ["BKB"]), seeds=1, rounds=rounds, quiet=True).rows
    assert [row["rounds"] for row in rows] == looked


# ---------------------------------------------------------------- tables and pictures


def is_picture(path: Path) -> bool:
    return path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and path.stat().st_size > 10_000


def test_a_kernel_study_is_reported_and_rebuilt(tmp_path: Path) -> None:
    table = report.keep(run(smooth_study(), quiet=True), tmp_path)
    assert report.rebuild(tmp_path) == table
    assert all(policy.label in table for policy in smooth_study().policies)
    assert is_picture(tmp_path / "figure.png")


def test_the_starvation_study_is_reported_and_rebuilt(tmp_path: Path, starvation_results: Any) -> None:
    table = report.keep(starvation_results, tmp_path)
    assert report.rebuild(tmp_path) == table
    assert len(table.splitlines()) == 2 + 9
    assert is_picture(tmp_path / "figure.png")


def test_one_policy_alone_is_drawn_too(tmp_path: Path) -> None:
    for study, label in ((smooth_study(), "Random"), (find("variance-starvation"), "BKB")):
        report.keep(run(study, policies=select(study, [label]), seeds=1, rounds=10, quiet=True), tmp_path)
        assert is_picture(tmp_path / "figure.png")


def test_tuning_of_a_kernel_study_is_drawn(tmp_path: Path) -> None:
    study = smooth_study()
    found = tune(study, policies=select(study, ["GPUCB", "BKB-TS"]), seeds=1, rounds=5, quiet=True)
    assert "at the grid's edge" in report.keep_tuning(found, tmp_path)
    assert is_picture(tmp_path / "figure.png")


def test_ratios_are_taken_seed_by_seed() -> None:
    rows = run(small_study(), quiet=True).rows
    for row, (label, regret) in zip(rows, [("GPUCB", 1.0), ("BKB", 2.0), ("GPUCB", 100.0), ("BKB", 50.0)]):
        row["policy"], row["cumulative_regret"] = label, regret
    exact, budgeted = kernel_lines(rows)
    assert (exact["ratio to GPUCB"], budgeted["ratio to GPUCB"]) == ("1.00", "1.25")
    assert budgeted["mean regret"] == "26.0"
    assert kernel_lines([row for row in rows if row["policy"] == "BKB"])[0]["ratio to GPUCB"] == ""
