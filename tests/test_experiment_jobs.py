"""Seeds in several processes: the same rows, one error, and Ctrl-C keeps what is done."""

from dataclasses import replace
from functools import partial
from multiprocessing import active_children
from typing import Any

import numpy as np
import pytest

from experiments import Breaking, Scripted, Staircase, worst_and_best
from onepass.experiment import SUITES, Experiment, ExperimentError, Results, crew, find, run, select, tune

SECONDS = {"seconds", "microseconds_per_round", "train_seconds", "decide_seconds_per_user"}


def untimed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in SECONDS} for row in rows]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Helpers are called after the first step, however little is left."""
    monkeypatch.setattr(crew, "START_SECONDS", 0.0)


@pytest.mark.usefixtures("at_once")
def test_rows_and_curves_are_the_same_whatever_the_number_of_processes() -> None:
    study = find("digits")
    policies = select(study, ["OFUL", "LinTS", "SOFUL", "CBRAP"])
    one, two = (run(study, policies=policies, seeds=4, rounds=500, jobs=jobs, quiet=True) for jobs in (1, 2))
    assert untimed(one.rows) == untimed(two.rows)
    assert untimed(one.curves) == untimed(two.curves)
    assert [row["seed"] for row in two.rows] == [seed for seed in range(4) for _ in policies]
    assert not active_children()


@pytest.mark.usefixtures("at_once")
def test_tuning_finds_the_same_whatever_the_number_of_processes() -> None:
    study = replace(find("digits"), grid={"exploration": (0.01, 0.1, 1.0)})
    policies = select(study, ["OFUL", "LinTS"])
    one, two = (tune(study, policies=policies, seeds=2, rounds=150, jobs=jobs, quiet=True) for jobs in (1, 2))
    assert untimed(one.rows) == untimed(two.rows)


@pytest.mark.usefixtures("at_once")
def test_what_goes_wrong_in_a_helper_is_raised_here_and_no_process_is_left() -> None:
    study = worst_and_best(environment=partial(Breaking, at=1), seeds=3, rounds=5000)
    with pytest.raises(ExperimentError, match="seed 1 is broken"):
        run(study, jobs=2, quiet=True)
    assert not active_children()


@pytest.mark.usefixtures("at_once")
def test_ctrl_c_ends_the_helpers_and_keeps_the_seeds_that_are_done() -> None:
    study = worst_and_best(environment=partial(Staircase, interrupt=(0, 4900)), seeds=3, rounds=5000)
    results = run(study, jobs=2, quiet=True)
    assert results.interrupted
    assert {row["rounds"] for row in results.rows} <= {4900, 5000}
    assert len({row["rounds"] for row in results.rows}) == 1  # whole seeds, or the one at hand where none is done
    assert not active_children()


def test_the_meter_counts_the_steps_of_helpers_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "START_SECONDS", 0.0)
    done = []
    plain = crew.Meter.__exit__

    def leave(meter: crew.Meter, *error: Any) -> None:
        done.append((meter.done, meter.total))
        plain(meter, *error)

    monkeypatch.setattr(crew.Meter, "__exit__", leave)
    run(worst_and_best(seeds=3, rounds=1000), jobs=2, quiet=True)
    assert all(steps == total for steps, total in done)


def test_a_small_run_and_one_about_seconds_stay_in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew.Crew, "start", lambda self: pytest.fail("helpers were called"))
    run(worst_and_best(seeds=3), jobs=2, quiet=True)
    monkeypatch.setattr(crew, "START_SECONDS", 0.0)
    run(worst_and_best(seeds=3, timed=True), jobs=None, quiet=True)


def test_what_cannot_be_sent_is_refused_if_asked_for_and_else_played_here(capsys: pytest.CaptureFixture[str]) -> None:
    study = worst_and_best(environment=lambda seed: Staircase(seed))
    with pytest.raises(ExperimentError, match="jobs must be 1 for staircase, got 2: another process cannot be sent it"):
        run(study, jobs=2, quiet=True)
    here = run(study, jobs=None)
    assert len(here.rows) == 4
    if crew.cores() > 1:
        assert "staircase is played in one process" in capsys.readouterr().err


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_every_suite_can_be_sent_to_another_process(suite: Experiment) -> None:
    tasks = [crew.Task(suite.policies, 0, "seed 0")]
    assert crew.not_sent(suite, tasks) == ""


def test_a_process_holds_its_policies_to_one_thread_of_the_blas() -> None:
    from threadpoolctl import threadpool_info

    threads: list[int] = []

    class Counting(Scripted):
        def play(self, contexts: np.ndarray, rewards: np.ndarray) -> np.ndarray:
            threads.extend([pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"])
            return super().play(contexts, rewards)

    from onepass.experiment import Policy

    found = run(worst_and_best(policies=(Policy("counting", Counting),), seeds=1), quiet=True)
    assert isinstance(found, Results)
    assert set(threads) == {1}
