"""Learners are tuned on examples on which no mistake counts, all at as many settings; too small grids are reported."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import onepass as op
from onepass.lab import LearnerStudy, Policy, find, tune
from onepass.lab.grid_best import edge_note
from onepass.lab.learners.streams import InMemoryStream, load_binary, random_order_factory, tuning_mask
from onepass.lab.learners.study import LearnerTrial
from onepass.lab.learners.suites import DRIFT_LOSSES, SETS, SUITES
from onepass.lab.report import keep_tuning
from onepass.lab.seeds import FIRST_TUNING_SEED
from onepass.lab.tuning import policy_grid

ELSEWHERE = ("cod-rna", "w7a")  # sets that a user brings; KuaiRec has the losses of the drifting sets

HERE = bool(os.environ.get("ONEPASS_DATA")) and Path(os.environ["ONEPASS_DATA"], "libsvm").is_dir()
with_data = pytest.mark.skipif(not HERE, reason="the files of libsvm are not in $ONEPASS_DATA")


def as_set(rows: np.ndarray) -> set[tuple[float, ...]]:
    return {tuple(row) for row in rows}


@with_data
@pytest.mark.parametrize("name", ["german", "svmguide3"])
def test_no_example_that_is_tuned_on_is_counted_and_all_others_are(name: str) -> None:
    rows, labels = load_binary(name, standardized=False)
    chosen = tuning_mask(labels)
    for label in (-1.0, 1.0):
        assert chosen[labels == label].mean() == pytest.approx(0.3, abs=1e-3)
    for seed in (0, FIRST_TUNING_SEED):
        stream, other = (random_order_factory(name, False, part)(seed) for part in ("evaluated", "tuning"))
        counted, (known, _) = stream.evaluation_mask(0, len(rows)), stream.examples(0, len(rows))
        apart = other.examples(0, int(chosen.sum())).rows
        assert counted.sum() == len(rows) - len(apart)
        assert as_set(known) == as_set(rows)  # the others are learned, in their turn
        assert as_set(apart) == as_set(known[~counted]) == as_set(rows[chosen])
        assert other.evaluation_mask(0, len(apart)).all()


@with_data
def test_every_suite_on_a_set_is_tuned_apart() -> None:
    for name, (examples, _) in SETS.items():
        suite = find(f"learners-{name}")
        assert isinstance(suite, LearnerStudy)
        assert suite.tuning is not None
        assert suite.tuning.rounds == pytest.approx(0.3 * examples, abs=1)
        assert suite.tuning.policies == suite.policies
    played = tune(find("learners-german"), policies=find("learners-german").policies[:1], seeds=1, quiet=True)
    assert {row["rounds"] for row in played.rows} == {300}
    assert len({row["params"]["width"] for row in played.rows}) == 35


def test_all_learners_of_a_suite_are_tuned_at_as_many_settings() -> None:
    suites = [s for s in SUITES if isinstance(s, LearnerStudy) and s.grid and not s.name.endswith(("updates", "-1"))]
    assert len(suites) == len(SETS) + len(ELSEWHERE) + 2 * len(DRIFT_LOSSES)
    for suite in suites:
        tunable = [policy for policy in suite.policies if policy.tuned]
        assert len(tunable) > 5
        assert len({len(policy_grid(policy, suite)) for policy in tunable}) == 1
        for policy in tunable:  # and is within the grid, where something is tuned
            values = sorted(suite.grid["width"])
            assert values[0] < policy.params["width"] < values[-1]


def test_only_what_a_stream_counts_is_a_mistake() -> None:
    rng = np.random.default_rng(0)
    rows, counts = rng.standard_normal((400, 2)), rng.random(400) < 0.6
    labels = np.where(rows[:, 0] * rows[:, 1] > 0.0, 1.0, -1.0)
    policies = (Policy("FORKS", "FORKS", {"budget": 20}), Policy("RBP", "RBP", {"budget": 20}))
    study = LearnerStudy("s", "", lambda seed: InMemoryStream(rows, labels, counts), policies, 400, 1, buffering=True)
    whole, parts = (LearnerTrial(study, policies, 0) for _ in range(2))
    whole.step(0, 400)
    for start, count in ((0, 150), (150, 250)):
        parts.step(start, count)
    for trial in (whole, parts):
        forks, rbp = trial.rows()
        for row, policy in ((forks, policies[0]), (rbp, policies[1])):
            wrong = op.progressive_validation(policy.build(), rows, labels).mistakes
            assert row["cumulative_regret"] == wrong[counts].sum()
            assert row["mistake_rate"] == pytest.approx(wrong[counts].mean())
        assert rbp["mistake_rate_after_buffering"] == rbp["mistake_rate"]
        assert forks["mistake_rate_after_buffering"] < forks["mistake_rate"]
        assert trial.rows()[0]["mistake_rate_after_buffering"] == whole.rows()[0]["mistake_rate_after_buffering"]
    assert study.stream(0).majority == np.sign(labels[counts].sum())


def test_a_best_point_at_the_edge_of_the_grid_is_reported(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((500, 2))
    known = InMemoryStream(rows, np.where(rows[:, 0] * rows[:, 1] > 0.0, 1.0, -1.0))
    narrow, wide = (0.5, 1000.0, 2000.0), (0.01, 0.5, 1000.0)
    study = LearnerStudy("s", "", lambda seed: known, (Policy("KOGD", "KOGD"),), 500, 1, grid={"width": narrow})
    found = tune(study, seeds=1, quiet=True)
    assert edge_note(found.rows) == "The best lies at the edge of the grid, which is to be widened: KOGD: width."
    assert edge_note(found.rows) in keep_tuning(found, tmp_path)
    found = tune(replace(study, grid={"width": wide}), seeds=1, quiet=True)
    assert edge_note(found.rows) == ""
    assert "widened" not in keep_tuning(found, tmp_path)
