from pathlib import Path

import pytest

from experiments import Scripted, Staircase, worst_and_best
from onepass.lab import ExperimentError, Policy, find, select, tuning
from onepass.lab.bandits.study import EXPLORATIONS, REGS
from onepass.lab.grid_best import mean_regrets, parameters_at_edge
from onepass.lab.report import keep_tuning
from onepass.lab.seeds import FIRST_TUNING_SEED
from onepass.lab.tuning import policy_grid, tune


class BestAtTwo(Scripted):
    """Plays the best arm where reg = 2 and the worst elsewhere; exploration does not matter."""

    def __init__(self, *, dim: int, seed: int, reg: float, exploration: float) -> None:
        super().__init__(dim=dim, seed=seed, arm=2 if reg == 2.0 else 0)


TUNABLE = worst_and_best(
    policies=(Policy("tunable", BestAtTwo, {"reg": 1.0, "exploration": 0.5}), Policy("fixed", Scripted))
)


def test_the_grid_is_that_of_the_paper_for_every_policy() -> None:
    assert tuple(10.0**power for power in range(-4, 1)) == EXPLORATIONS
    assert pytest.approx(REGS) == [2 * 10.0**power for power in range(-4, 5)]
    for policy in find("digits").policies:
        points = policy_grid(policy, find("digits"))
        assert len(points) == 45
        assert {(point.params["exploration"], point.params["reg"]) for point in points} == {
            (e, r) for e in EXPLORATIONS for r in REGS
        }
        assert all({**point.params, **policy.params} == {**policy.params} for point in points)


def test_tuning_finds_the_best_point_on_seeds_of_its_own(tmp_path: Path) -> None:
    results = tune(TUNABLE, seeds=2, quiet=True)
    assert {row["seed"] for row in results.rows} == {FIRST_TUNING_SEED, FIRST_TUNING_SEED + 1}
    assert not {row["seed"] for row in results.rows} & set(
        range(max(suite.seeds for suite in [TUNABLE, find("mnist")]))
    )
    table = keep_tuning(results, tmp_path)
    assert "tunable" in table
    tunable, fixed = tuning.apply_tuned_parameters(TUNABLE, TUNABLE.policies, tmp_path)
    assert tunable.params["reg"] == 2.0
    assert fixed.label == "fixed"
    assert tuning.apply_tuned_parameters(TUNABLE, TUNABLE.policies, tmp_path / "tuned.parquet") == (tunable, fixed)


def test_ties_go_to_the_inside_of_the_grid() -> None:
    best = mean_regrets(tune(TUNABLE, seeds=1, quiet=True).rows)["tunable"][0]
    assert best[0] == 0.0
    assert 1e-4 < best[1]["exploration"] < 1.0
    assert (
        parameters_at_edge(
            best[1], [point for _, point in mean_regrets(tune(TUNABLE, seeds=1, quiet=True).rows)["tunable"]]
        )
        == []
    )


def test_ctrl_c_keeps_the_policies_that_are_done() -> None:
    made = []

    def environment(seed: int) -> Staircase:
        made.append(seed)
        return Staircase(seed, interrupt=(FIRST_TUNING_SEED, 50) if made.count(FIRST_TUNING_SEED) == 2 else None)

    results = tune(worst_and_best(environment=environment), seeds=1, quiet=True)
    assert results.interrupted
    assert {row["policy"] for row in results.rows} == {"worst"}
    assert len(results.rows) == 45


def test_tuned_parameters_go_by_label_then_by_group_and_leave_fixed_ones_alone(tmp_path: Path) -> None:
    keep_tuning(tune(TUNABLE, seeds=1, quiet=True), tmp_path)
    member = Policy("tunable size=3", BestAtTwo, {"reg": 7.0, "exploration": 0.5}, "tunable")
    only_exploration = worst_and_best(grid={"exploration": EXPLORATIONS})
    assert tuning.apply_tuned_parameters(TUNABLE, [member], tmp_path)[0].params["reg"] == 2.0
    assert tuning.apply_tuned_parameters(only_exploration, [member], tmp_path)[0].params["reg"] == 7.0
    with pytest.raises(ExperimentError, match="no tuned parameters for OFUL, only for tunable, fixed"):
        tuning.apply_tuned_parameters(TUNABLE, select(find("digits"), ["OFUL"]), tmp_path)


class Plain(Scripted):
    """Knows neither reg nor exploration."""

    def __init__(self, *, dim: int, seed: int, arm: int = 0) -> None:
        super().__init__(dim=dim, seed=seed, arm=arm)


def test_a_policy_is_tuned_in_its_own_parameters_alone(tmp_path: Path) -> None:
    axes = {"reg": (2.0, 1.0, 2.0), "arm": (0, 1, 2), "clip": (0.1,)}
    experiment = worst_and_best(grid=axes, policies=(TUNABLE.policies[0], Policy("plain", Plain)))
    tunable, plain = (policy_grid(policy, experiment) for policy in experiment.policies)
    assert [point.params for point in tunable] == [{"exploration": 0.5, "reg": reg} for reg in (2.0, 1.0)]
    assert [point.params for point in plain] == [{"arm": arm} for arm in (0, 1, 2)]
    table = keep_tuning(tune(experiment, seeds=1, quiet=True), tmp_path)
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    assert lines[0][:3] == ["policy", "reg", "arm"]
    assert ["tunable", "2", ""] in [line[:3] for line in lines]
    assert ["plain", "", "2"] in [line[:3] for line in lines]
    assert [
        policy.params.get("arm") for policy in tuning.apply_tuned_parameters(experiment, experiment.policies, tmp_path)
    ] == [None, 2]


def test_tuning_leaves_a_policy_alone_that_is_not_to_be_tuned(tmp_path: Path) -> None:
    default = Policy("tunable defaults", BestAtTwo, {"reg": 7.0, "exploration": 0.5}, "tunable", tuned=False)
    experiment = worst_and_best(policies=(TUNABLE.policies[0], default))
    results = tune(experiment, seeds=1, quiet=True)
    assert {row["policy"] for row in results.rows} == {"tunable"}
    keep_tuning(results, tmp_path)
    tuned, kept = tuning.apply_tuned_parameters(experiment, experiment.policies, tmp_path)
    assert tuned.params["reg"] == 2.0
    assert kept == default
    with pytest.raises(ExperimentError, match="staircase has no policy to tune among those that were named"):
        tune(experiment, policies=[default], quiet=True)


def test_what_has_no_grid_is_refused() -> None:
    with pytest.raises(ExperimentError, match="matrix-approximation has nothing to tune"):
        tune(find("matrix-approximation"), quiet=True)
    with pytest.raises(ExperimentError, match="seeds must be at least 1, got 0"):
        tune(TUNABLE, seeds=0, quiet=True)
    with pytest.raises(ExperimentError, match="plain must have a parameter to tune, one of"):
        tune(TUNABLE, policies=[Policy("plain", lambda *, dim, seed: None)], quiet=True)
