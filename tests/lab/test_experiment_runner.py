import json
from pathlib import Path
from time import sleep

import numpy as np
import polars as pl
import pytest

import onepass
from experiments import Scripted, Staircase, worst_and_best
from onepass.lab import (
    SUITES,
    DecompositionStudy,
    Experiment,
    ExperimentError,
    Figure,
    KernelStudy,
    LearnerStudy,
    MatrixStudy,
    Policy,
    Results,
    StarvationStudy,
    find,
    plugins,
    run,
    select,
)
from onepass.lab.ab_tests.study import ABTestStudy
from onepass.lab.bakeoff.study import BakeOff
from onepass.lab.bandits.environments import gaussian_rows
from onepass.lab.datasets import SOURCES
from onepass.lab.dynamics.study import DynamicsStudy
from onepass.lab.matrices.figures import ERROR, INVERSE
from onepass.lab.matrices.tails import Tail, TailStudy
from onepass.lab.news.study import NewsStudy
from onepass.lab.noisy.players import Units
from onepass.lab.noisy.study import NoisyBakeOff
from onepass.lab.results import CURVES, ROWS, json_line, read, write
from onepass.lab.tuners.problems import PROBLEMS
from onepass.lab.tuners.study import TunerStudy
from onepass.lab.whole_games import GameStudy

ATTEMPTS = 50  # at a run in which the machine does nothing else


def test_regret_is_what_the_best_arm_would_have_paid_more() -> None:
    rows = run(worst_and_best(), quiet=True).rows
    assert [(row["policy"], row["seed"]) for row in rows] == [("worst", 0), ("best", 0), ("worst", 1), ("best", 1)]
    for row in rows:
        assert row["rounds"] == 100
        assert row["cumulative_regret"] == (200.0 if row["policy"] == "worst" else 0.0)
        assert row["cumulative_reward"] == 200.0 - row["cumulative_regret"]


def test_regret_counts_expected_rewards_and_reward_those_paid() -> None:
    problem = Experiment(
        "noisy",
        "",
        lambda seed: onepass.lab.Linear(3, 4, seed, noise=50.0),
        (Policy("first", Scripted),),
        200,
        1,
    )
    row = run(problem, quiet=True).rows[0]
    _, expected, rewards = problem.environment(0).chunk(0, 200)
    assert row["cumulative_regret"] == pytest.approx((expected.max(axis=1) - expected[:, 0]).sum())
    assert row["cumulative_reward"] == pytest.approx(rewards[:, 0].sum())


def test_all_policies_meet_the_same_contexts() -> None:
    experiment = worst_and_best(rounds=170)
    trial = experiment.trial(experiment.policies, seed=4)
    for start, rounds in ((0, 100), (100, 70)):
        trial.step(start, rounds)
    worst, best = trial.bandits
    np.testing.assert_array_equal(np.concatenate(worst.offered), np.concatenate(best.offered))
    assert len(np.concatenate(worst.offered)) == 170


def test_a_policy_is_not_changed_by_its_company() -> None:
    def regrets(policies: tuple[Policy, ...], label: str) -> list[float]:
        rows = run(find("digits"), policies=policies, seeds=[0, 1], rounds=120, quiet=True).rows
        return [row["cumulative_regret"] for row in rows if row["policy"] == label]

    both = select(find("digits"), ["OFUL", "LinTS"])
    assert regrets(both, "LinTS") == regrets(both[1:], "LinTS")


def test_the_last_checkpoint_is_the_row_and_memory_its_peak() -> None:
    results = run(worst_and_best(rounds=230), seeds=[5], quiet=True)
    for row in results.rows:
        curve = [point for point in results.curves if point["policy"] == row["policy"]]
        assert [point["round"] for point in curve] == [50, 100, 150, 200, 230]
        assert curve[-1]["cumulative_regret"] == row["cumulative_regret"]
        assert row["memory_bytes"] == 330
        assert row["microseconds_per_round"] == pytest.approx(1e6 * curve[-1]["seconds"] / 230)


def test_time_contains_no_compilation() -> None:
    compiled = []

    class Slow(Scripted):
        def play(self, contexts: np.ndarray, rewards: np.ndarray) -> np.ndarray:
            if not compiled:
                sleep(0.3)
                compiled.append(True)
            return super().play(contexts, rewards)

    def spent() -> float:
        compiled.clear()
        row = run(worst_and_best(policies=(Policy("slow", Slow),), seeds=1), quiet=True).rows[0]
        return row["microseconds_per_round"]

    assert any(spent() < 1e6 * 0.3 / 100 / 3 for _ in range(ATTEMPTS))  # the system may leave a process out for a while


def test_ctrl_c_keeps_the_seeds_that_are_done() -> None:
    experiment = worst_and_best(environment=lambda seed: Staircase(seed, interrupt=(2, 50)), seeds=4)
    results = run(experiment, quiet=True)
    assert results.interrupted
    assert {(row["seed"], row["rounds"]) for row in results.rows} == {(0, 100), (1, 100)}


def test_ctrl_c_in_the_first_seed_keeps_the_rounds_that_all_policies_played() -> None:
    experiment = worst_and_best(environment=lambda seed: Staircase(seed, interrupt=(0, 100)), rounds=500)
    results = run(experiment, quiet=True)
    assert results.interrupted
    assert [(row["policy"], row["rounds"], row["cumulative_regret"]) for row in results.rows] == [
        ("worst", 100, 200.0),
        ("best", 100, 0.0),
    ]


def test_ctrl_c_before_the_first_round_leaves_no_row() -> None:
    results = run(worst_and_best(environment=lambda seed: Staircase(seed, interrupt=(0, 0))), quiet=True)
    assert results == Results(interrupted=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"rounds": 0}, "rounds must be at least 1, got 0"), ({"seeds": []}, "seeds must be at least 1, got 0")],
)
def test_nothing_to_do_is_refused(changes: dict, message: str) -> None:
    with pytest.raises(ExperimentError, match=message):
        run(worst_and_best(), quiet=True, **changes)


def test_policies_are_selected_by_label_or_group_in_the_experiments_order() -> None:
    experiment = find("digits-pareto")
    labels = [policy.label for policy in select(experiment, ["SOFUL size=8", "OFUL"])]
    assert labels == ["OFUL", "SOFUL size=8"]
    assert {policy.group for policy in select(experiment, ["DBSLinUCB"])} == {"DBSLinUCB"}
    with pytest.raises(ExperimentError, match="no policy 'UCB' in digits: choose among OFUL, LinTS, SOFUL"):
        select(find("digits"), ["OFUL", "UCB"])
    with pytest.raises(ExperimentError, match="no policy was named"):
        select(find("digits"), [])


def test_an_unknown_experiment_is_answered_with_the_names_most_like_it() -> None:
    with pytest.raises(ExperimentError, match=r"there is no experiment 'digit': digits, optdigits\? `onepass list`"):
        find("digit")


def test_rows_survive_parquet_and_carry_every_parameter(tmp_path: Path) -> None:
    results = run(worst_and_best(), quiet=True)
    results.rows[0]["params"]["reg"] = 0.37
    write(results.rows, tmp_path / ROWS)
    write(results.curves, tmp_path / CURVES)
    assert read(tmp_path / ROWS) == results.rows
    assert read(tmp_path / CURVES) == results.curves
    table = pl.read_parquet(tmp_path / ROWS)
    assert table["param_arm"].to_list() == [0, 2, 0, 2]
    assert table["param_reg"].to_list() == [0.37, None, None, None]
    assert sorted(path.name for path in tmp_path.iterdir()) == [CURVES, ROWS]


def test_foreign_and_damaged_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=r"there is no results.parquet"):
        read(tmp_path / ROWS)
    (tmp_path / ROWS).write_bytes(b"PAR1 but not really")
    with pytest.raises(ExperimentError, match="cannot be read"):
        read(tmp_path / ROWS)
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / ROWS)
    with pytest.raises(ExperimentError, match="was not written by onepass"):
        read(tmp_path / ROWS)


def test_json_lines_are_valid_json_even_where_nothing_is_certified() -> None:
    row = json.loads(json_line(run(worst_and_best(), quiet=True).rows[0]), parse_constant=pytest.fail)
    assert row["error_bound"] is None
    assert row["params"] == {"arm": 0}
    assert row["experiment"] == "staircase"


def small_study(figure: Figure) -> MatrixStudy:
    designs = (
        Policy("exact", "Exact", {"reg": 0.37}),
        Policy("FD", "FrequentDirections", {"reg": 0.37, "size": 4}),
        Policy("RFD", "RobustFrequentDirections", {"reg": 4.0, "size": 4, "compensation": 1.0}),
    )
    return MatrixStudy("small", "", lambda seed, n: gaussian_rows(seed, n, dim=12), designs, 60, 2, figure)


def test_measured_errors_stay_below_their_bounds_and_vanish_for_the_exact_design() -> None:
    results = run(small_study(ERROR), quiet=True)
    assert len(results.curves) == 3 * 2 * 30
    for point in results.curves:
        assert point["spectral_error"] <= point["error_bound"] + 1e-10
        assert point["policy"] != "exact" or point["spectral_error"] < 1e-10
    assert all(row["spectral_error"] > 0.1 for row in results.rows if row["policy"] != "exact")


def test_errors_of_the_inverse_are_relative_to_the_true_inverse() -> None:
    results = run(small_study(INVERSE), quiet=True)
    assert len(results.curves) == len(results.rows) == 6
    rows = gaussian_rows(0, 60, dim=12)
    truth = np.linalg.inv(0.37 * np.eye(12) + rows.T @ rows)
    sketch = onepass.FrequentDirections(dim=12, reg=0.37, size=4).append(rows)
    wanted = np.linalg.norm(np.linalg.inv(sketch.matrix()) - truth, 2) / np.linalg.norm(truth, 2)
    found = {(row["policy"], row["seed"]): row["inverse_error"] for row in results.rows}
    assert found["FD", 0] == pytest.approx(wanted, rel=1e-8)
    assert found["exact", 0] < 1e-10


def test_the_error_of_a_fixed_sketch_is_the_least_tail_over_the_ranks_below_its_size() -> None:
    rows = np.random.default_rng(0).standard_normal((30, 8)) * 0.6 ** np.arange(8)
    singular = np.linalg.svd(rows, compute_uv=False)
    for size in (1, 3, 8):
        wanted = min((singular[k:] ** 2).sum() / (size - k) for k in range(size))
        assert Tail(dim=8, size=size).error(singular**2) == pytest.approx(wanted)
    study = TailStudy(
        "t", "", lambda seed, n: rows[:n], tuple(Policy(f"{n}", Tail, {"size": n}) for n in (2, 40)), 30, 1
    )
    results = run(study, quiet=True)
    short, wide = results.rows
    final = [point for point in results.curves if point["policy"] == "2"]
    wanted = min((singular[k:] ** 2).sum() / (2 - k) for k in range(2))
    assert short["exponent"] == pytest.approx(np.log(wanted) / np.log(30))
    assert wide["exponent"] is None  # fewer rows than the sketch has
    assert wide["crossing"] is None
    after = [point["exponent"] for point in final if short["crossing"] and point["round"] >= short["crossing"]]
    assert all(value > 1 / 3 for value in after)


@pytest.mark.parametrize(
    "suite",
    [
        suite
        for suite in SUITES
        if suite.name != "mnist-pareto"
        and not isinstance(suite, KernelStudy | StarvationStudy | LearnerStudy | DecompositionStudy | DynamicsStudy)
    ],
    ids=lambda suite: suite.name,
)
def test_every_policy_of_every_suite_can_be_built(suite: Experiment | MatrixStudy | TailStudy) -> None:
    name = suite.name.split("-reg")[0].split("-pareto")[0]
    dim = SOURCES[name].dim if name in SOURCES else 64 if name == "digits" else 500
    assert len({policy.label for policy in suite.policies}) == len(suite.policies)
    where = {"dim": dim} if isinstance(suite, MatrixStudy | TailStudy) else {"dim": dim, "seed": 0}
    where = {NewsStudy: {"seed": 0}, BakeOff: {**where, "arms": 3}}.get(type(suite), where)
    if isinstance(suite, NoisyBakeOff):
        where = {**where, "arms": 3, "units": Units(0.0, 1.0, 0.5, 0.5)}
    if isinstance(suite, TunerStudy):
        where = {"settings": PROBLEMS[suite.problem]().settings, "seed": 0}
    if isinstance(suite, ABTestStudy):
        where = {"tolerance": suite.tolerance, "seed": 0}
    if isinstance(suite, GameStudy):
        where = {}
    for policy in suite.policies:
        policy.build(**where)


def test_a_label_with_a_comma_can_be_named_in_a_comma_separated_list() -> None:
    study = plugins.load_experiment("route-shock")
    chosen = plugins.load_policies(study, ["Budgeted", "Budgeted", "not told"])
    assert [policy.label for policy in chosen] == ["Budgeted", "Budgeted, not told"]
    with pytest.raises(ExperimentError, match="no policy 'not told'"):
        plugins.load_policies(study, ["ParetoBandit", "not told"])


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_results_of_every_policy_can_be_saved_as_json(suite: Experiment) -> None:
    json.dumps([policy.columns() for policy in suite.policies])
