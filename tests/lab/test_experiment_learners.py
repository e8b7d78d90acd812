import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onepass as op
from experiments import press_ctrl_c
from onepass.lab import DecompositionStudy, Figure, LearnerStudy, Policy, find, report, run, select, tune
from onepass.lab.benchmark import learners as bench
from onepass.lab.learners.figures import BUDGET, LEARNER, UPDATES, learner_lines, rate_in_paper
from onepass.lab.learners.streams import (
    InMemoryStream,
    WatchRatios,
    flipped_blocks_factory,
    load_binary,
    random_order_factory,
)
from onepass.lab.learners.study import Constant, LearnerTrial, RepeatLast
from onepass.lab.learners.suites import (
    BASELINES,
    SETS,
    SUITES,
    learner_policies,
    policies_at_best_width,
    policies_of_paper,
)
from onepass.lab.learners.tisvd import (
    FIRST,
    TISVD,
    DecompositionTrial,
    FullEigh,
    FullSVD,
    RandomizedSVD,
    SketchedKernel,
    SymmetricTISVD,
)
from onepass.lab.results import CURVES, ROWS, read

STUDIES = [suite for suite in SUITES if isinstance(suite, LearnerStudy)]
HERE = bool(os.environ.get("ONEPASS_DATA")) and Path(os.environ["ONEPASS_DATA"], "libsvm").is_dir()
with_data = pytest.mark.skipif(not HERE, reason="the files of libsvm are not in $ONEPASS_DATA")


def checkers(seed: int) -> InMemoryStream:
    """300 points of the plane, labelled by the sign of their product; 60% are positive."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((3000, 2))
    labels = np.where(rows[:, 0] * rows[:, 1] > 0.0, 1.0, -1.0)
    chosen = np.concatenate([np.flatnonzero(labels > 0)[:180], np.flatnonzero(labels < 0)[:120]])
    chosen = rng.permutation(chosen)
    return InMemoryStream(rows[chosen], labels[chosen])


FEW = (Policy("FORKS", "FORKS", {"budget": 20}), Policy("RBP", "RBP", {"budget": 20, "width": 1.0}), *BASELINES)


def small_study(**changes: Any) -> LearnerStudy:
    return replace(LearnerStudy("checkers", "", checkers, FEW, 300, 2), **changes)


# ---------------------------------------------------------------- streams


@with_data
@pytest.mark.parametrize("name", ["german", "svmguide3"])
def test_permuted_streams_hold_every_example_once_in_an_order_of_the_seed(name: str) -> None:
    rows, labels = load_binary(name, standardized=False)
    found = random_order_factory(name, standardized=False)(3).examples(0, len(rows))
    one, other = (np.column_stack(part) for part in ((rows, labels), found))
    np.testing.assert_array_equal(one[np.lexsort(one.T)], other[np.lexsort(other.T)])
    np.testing.assert_array_equal(
        found.rows, random_order_factory(name, standardized=False)(3).examples(0, len(rows)).rows
    )
    assert not np.array_equal(found.rows, random_order_factory(name, standardized=False)(4).examples(0, len(rows)).rows)
    assert random_order_factory(name)(0).majority == -1.0


@with_data
def test_standardized_features_have_the_deviations_of_the_whole_set_taken_off() -> None:
    rows = random_order_factory("german")(0).examples(0, 1000).rows
    np.testing.assert_allclose(rows.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(rows.std(axis=0), 1.0)


@with_data
def test_adversarial_blocks_repeat_one_example_and_every_other_is_flipped() -> None:
    rows, labels = flipped_blocks_factory("german", 10)(2).examples(0, 5000)
    blocks, kept = rows.reshape(500, 10, 24), labels.reshape(500, 10)
    assert (blocks == blocks[:, :1]).all()
    assert (kept == kept[:, :1]).all()
    truth = {(*row, label) for row, label in zip(*load_binary("german", standardized=False))}
    for number in range(500):
        assert (*blocks[number, 0], -kept[number, 0] if number % 2 else kept[number, 0]) in truth
    repeated = run(find("learners-german-1"), policies=BASELINES[1:], seeds=[2], quiet=True).rows[0]
    changes = 1 + (np.diff(kept[:, 0]) != 0).sum()
    assert abs(repeated["cumulative_regret"] - changes) <= 1


def test_a_stream_of_watch_ratios_is_the_same_whatever_its_parts() -> None:
    stream = WatchRatios(1, length=60_000)
    whole = stream.examples(0, 20_000)
    part = WatchRatios(1, length=60_000).examples(4_990, 5_020)
    np.testing.assert_array_equal(part.rows, whole.rows[4_990:10_010])
    np.testing.assert_array_equal(part.labels, whole.labels[4_990:10_010])
    assert set(whole.labels) == {-1.0, 1.0}
    assert whole.rows.shape == (20_000, 18)
    assert not np.array_equal(WatchRatios(2, 60_000).examples(0, 50).rows, whole.rows[:50])


def test_preferences_drift_from_their_start_to_their_opposite() -> None:
    stream = WatchRatios(0, length=400_000)

    def products(start: int) -> tuple[np.ndarray, np.ndarray]:
        rows, labels = stream.examples(start, 10_000)
        pairs = (rows[:, :8, None] * rows[:, None, 8:16]).reshape(len(rows), -1)
        return np.column_stack([pairs, rows[:, 16:], np.ones(len(rows))]), labels

    x, y = products(0)
    model = np.linalg.lstsq(x, y, rcond=None)[0]
    wrong = [float((np.sign(x @ model) != y).mean()) for x, y in map(products, (10_000, 100_000, 200_000, 390_000))]
    assert wrong[0] < 0.2 < 0.22 < wrong[1] < 0.4 < wrong[2] < 0.6 < wrong[3]
    assert abs(wrong[2] - 0.5) < 0.12


def test_the_majority_of_a_stream_is_the_label_of_most_examples() -> None:
    stream = WatchRatios(0, length=100_000)
    assert stream.majority == np.sign(stream.examples(0, 100_000).labels.sum())
    assert checkers(0).majority == 1.0


# ---------------------------------------------------------------- the study


def test_mistakes_of_every_example_are_counted_from_the_first_on() -> None:
    trial = small_study().trial(FEW, 0)
    trial.step(0, 300)
    rows, labels = checkers(0).examples(0, 300)
    for policy, row in zip(FEW[:2], trial.rows()):
        alone = op.progressive_validation(policy.build(seed=0), rows, labels)
        assert row["mistake_rate"] == alone.mistake_rate
        assert row["cumulative_regret"] == alone.mistakes.sum()
    constant, repeated = trial.rows()[2:]
    assert constant["mistake_rate"] == pytest.approx(0.4)
    assert abs(repeated["cumulative_regret"] - (np.diff(labels) != 0).sum()) <= 1


def test_checkpoints_do_not_depend_on_the_steps() -> None:
    whole, parts = small_study().trial(FEW, 1), small_study().trial(FEW, 1)
    whole.step(0, 300)
    for start in (0, 100, 250):
        parts.step(start, 150 if start == 100 else 100 if start == 0 else 50)
    one, other = ({(p["policy"], p["round"]): p for p in trial.curves()} for trial in (whole, parts))
    assert set(one) <= set(other)
    assert len(one) == 4 * 43  # every 7 examples, and the end
    for key, point in one.items():
        assert point["cumulative_regret"] == other[key]["cumulative_regret"]
        assert point["mistake_rate"] == point["cumulative_regret"] / point["round"]
    assert whole.rows()[0]["mistake_rate"] == parts.rows()[0]["mistake_rate"]


def test_the_published_way_leaves_out_mistakes_until_the_buffer_is_full() -> None:
    trial = small_study(buffering=True).trial(FEW, 0)
    assert isinstance(trial, LearnerTrial)
    for start in (0, 120):
        trial.step(start, 120 if start == 0 else 180)
    learner, mistakes, mapped = op.learner.FORKS(budget=20, seed=0), 0, 0
    for x, y in zip(*checkers(0).examples(0, 300)):
        before = bool(learner.dim) and learner._state.sketching.mapped
        mistakes += before and learner.predict_one(x) != y
        mapped += before
        learner.learn_one(x, y)
    forks, rbp = trial.rows()[:2]
    assert 0 < mapped < 300
    assert forks["mistake_rate_after_buffering"] == mistakes / 300 < forks["mistake_rate"]
    assert rbp["mistake_rate_after_buffering"] == rbp["mistake_rate"]
    assert all(row["mistake_rate_after_buffering"] is None for row in run(small_study(), seeds=1, quiet=True).rows)


def test_constant_and_repeat_know_nothing_of_the_example() -> None:
    rows = np.zeros((5, 1))
    labels = np.array([-1.0, 1.0, 1.0, -1.0, -1.0])
    assert op.progressive_validation(Constant(majority=-1.0), rows, labels).decisions.tolist() == [-1.0] * 5
    repeat = RepeatLast()
    assert op.progressive_validation(repeat, rows, labels).decisions.tolist() == [1.0, -1.0, 1.0, 1.0, -1.0]
    assert op.progressive_validation(repeat, rows[:1], labels[1:2]).decisions.tolist() == [-1.0]


def test_ctrl_c_keeps_the_examples_that_all_learners_saw() -> None:
    class InterruptedStream(InMemoryStream):
        def examples(self, start: int, count: int) -> Any:
            if start == 1_000:
                press_ctrl_c()
            return super().examples(start, count)

    known = checkers(0)
    results = run(
        small_study(stream=lambda seed: InterruptedStream(known.rows, known.labels), rounds=3_000), seeds=1, quiet=True
    )
    assert results.interrupted
    assert {row["rounds"] for row in results.rows} == {1_000}


@pytest.mark.parametrize("suite", STUDIES, ids=lambda suite: suite.name)
def test_every_learner_of_every_suite_can_be_built(suite: LearnerStudy) -> None:
    assert len({policy.label for policy in suite.policies}) == len(suite.policies)
    for policy in suite.policies:
        assert policy.build().memory_usage() == 0
    assert {"constant", "repeat the last label"} <= {policy.label for policy in suite.policies} or suite.grid == {}


def test_every_learner_of_the_forks_paper_has_one_width_per_set() -> None:
    for name, (examples, budget) in SETS.items():
        policies = policies_at_best_width(name, budget, examples)
        assert [policy.label for policy in policies[:16]] == list(learner_policies(budget))
        assert all("width" in policy.params for policy in policies[:16])
    forks, fogd = select(find("learners-german-published"), ["FORKS", "FOGD"])[::-1]
    assert forks.params == {"budget": 50, "width": 50.0, "update_every": 300}
    assert op.learner.FOGD(**fogd.params).params["features"] == 200  # Wen, Zhang et al.: 4 B features, a step of 0.2
    assert op.learner.FOGD(**fogd.params).params["step"] == 0.2
    assert {policy.params.get("width") for policy in policies_of_paper(50, 300, ("BOGD", "NOGD"))} == {8.0, None}


def test_only_widths_are_tuned_and_the_recommended_learner_is_left_alone() -> None:
    study = small_study(
        policies=(*FEW, Policy("KernelNewton", "KernelNewton", tuned=False)), grid={"width": (0.5, 1.0)}
    )
    rows = tune(study, policies=select(study, ["RBP", "constant", "KernelNewton"]), seeds=1, quiet=True).rows
    assert [(row["policy"], row["params"]["width"]) for row in rows] == [("RBP", 0.5), ("RBP", 1.0)]


# ---------------------------------------------------------------- decompositions


def test_the_sketch_is_that_of_the_kernel_matrix_and_its_changes_add_up() -> None:
    rows = np.random.default_rng(0).standard_normal((FIRST + 40, 3))
    stream = InMemoryStream(rows, np.ones(len(rows)))
    policies = (Policy("TISVD", TISVD, {"rank": 20}), Policy("TISVD of FORKS", SymmetricTISVD, {"rank": 20}),
                Policy("full SVD", FullSVD, {"rank": 20}), Policy("eigh", FullEigh, {"rank": 20}),
                Policy("randomized SVD", RandomizedSVD, {"rank": 20}))  # fmt: skip
    source = partial(SketchedKernel, lambda seed: stream, width=2.0)
    study = DecompositionStudy("d", "", source, policies, 40, 1, size=50)
    trial = study.trial(policies, 0)
    assert isinstance(trial, DecompositionTrial)
    trial.step(0, 40)
    kernel = np.exp(-((rows[:, None] - rows[None]) ** 2).sum(axis=2) / 8.0)
    sketch = trial.source
    np.testing.assert_allclose(sketch.matrix, sketch.hashes.T @ kernel @ sketch.hashes, atol=1e-9)
    errors = {row["policy"]: row["spectral_error"] for row in trial.rows()}
    singular = np.linalg.svd(sketch.matrix)[1]
    assert errors["full SVD"] == pytest.approx(singular[20] / singular[0])
    assert errors["eigh"] == pytest.approx(errors["full SVD"])
    assert errors["full SVD"] <= errors["TISVD"] < 0.2
    assert errors["TISVD of FORKS"] == pytest.approx(errors["TISVD"], rel=1e-6)
    assert (1.0 - 1e-9) * errors["full SVD"] <= errors["randomized SVD"] < 1.5 * errors["full SVD"]


# ---------------------------------------------------------------- tables, pictures, benchmark


def is_picture(path: Path) -> bool:
    return path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and path.stat().st_size > 10_000


@pytest.mark.parametrize("figure", [LEARNER, UPDATES, BUDGET], ids=lambda figure: figure.name)
def test_a_study_of_learners_is_reported_and_rebuilt(tmp_path: Path, figure: Figure) -> None:
    several = tuple(
        Policy(f"FORKS {n}", "FORKS", {"budget": n, "update_every": n}, "FORKS", tuned=False) for n in (10, 20, 40)
    )
    results = run(small_study(figure=figure, policies=(*several, *FEW[1:])), quiet=True)
    table = report.keep(results, tmp_path)
    assert report.rebuild(tmp_path) == table
    assert all(policy.label in table for policy in (*several, *FEW[1:]))
    assert is_picture(tmp_path / "figure.png")
    assert read(tmp_path / ROWS) == results.rows
    assert read(tmp_path / CURVES) == results.curves


def test_decompositions_and_tuning_are_drawn(tmp_path: Path) -> None:
    study = find("tisvd")
    assert "TISVD" in report.keep(run(study, rounds=40, seeds=1, quiet=True), tmp_path)
    assert is_picture(tmp_path / "figure.png")
    found = tune(small_study(grid={"width": (0.5, 1.0, 2.0)}), policies=FEW[:2], seeds=1, quiet=True)
    assert "at the grid's edge" in report.keep_tuning(found, tmp_path)
    assert is_picture(tmp_path / "figure.png")


def test_tables_show_the_rates_of_the_forks_paper_beside_ours() -> None:
    assert rate_in_paper("learners-german-published", "FORKS") == "26.4"
    assert rate_in_paper("learners-ijcnn1", "RBP") == "21.0"
    assert rate_in_paper("learners-german-2", "FORKS") == "3.0"
    assert rate_in_paper("learners-german-1", "RBP") == rate_in_paper("learners-drift", "FORKS") == ""
    rows = run(small_study(name="learners-german", buffering=True), quiet=True).rows
    forks, rbp, *_ = learner_lines(rows)
    assert (forks["Wen, Zhang et al., %"], rbp["Wen, Zhang et al., %"]) == ("26.4", "38.8")
    assert forks["without buffering, %"] < forks["mistakes, %"]
    assert forks["mistakes, %"] == f"{50 * (rows[0]['mistake_rate'] + rows[4]['mistake_rate']):.2f}"
    assert "without buffering, %" not in learner_lines(run(small_study(), seeds=1, quiet=True).rows)[0]


def test_every_part_of_the_benchmark_measures_something() -> None:
    stream = checkers(0)
    examples = stream.examples(0, 300)
    assert 0 < bench.microseconds(FEW[1], stream, examples) < 1e4
    ours, uncapped, capped = bench._forks_lines("checkers", 1.0, 20, stream, examples)
    assert ours[1] > 0
    assert "not capped" in uncapped[0]
    assert uncapped[3] == pytest.approx(uncapped[1] / ours[1])
    assert "at most 100" in capped[0]
    spent, memory = bench._long_stream_lines(examples=20_000, step=5_000)
    assert spent[1] > 0
    assert memory[3] == pytest.approx(1.0, abs=0.05)
    assert bench._format_line("a", 5.0, 4.0).endswith("MISSED")
    assert set(bench.ALLOWED) | set(bench.HONEST) <= set(learner_policies(50))
