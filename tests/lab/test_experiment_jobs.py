"""Seeds in several processes: the same rows, one error, and Ctrl-C keeps what is done."""

import os
import pickle
import subprocess
import sys
from dataclasses import replace
from functools import partial
from multiprocessing import active_children
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pytest

from experiments import Breaking, Dying, Scripted, Staircase, worst_and_best
from onepass.lab import SUITES, Experiment, ExperimentError, Results, find, process_pool, run, select, tune
from patience import until

SECONDS = {"seconds", "microseconds_per_round", "train_seconds", "decide_seconds_per_user"}


def without_seconds(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in SECONDS} for row in rows]


@pytest.fixture
def start_workers_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Helpers are called after the first step, however little is left."""
    monkeypatch.setattr(process_pool, "START_SECONDS", 0.0)


@pytest.mark.usefixtures("start_workers_at_once")
def test_rows_and_curves_are_the_same_whatever_the_number_of_processes() -> None:
    study = find("digits")
    policies = select(study, ["OFUL", "LinTS", "SOFUL", "CBRAP"])
    one, two = (run(study, policies=policies, seeds=4, rounds=500, jobs=jobs, quiet=True) for jobs in (1, 2))
    assert without_seconds(one.rows) == without_seconds(two.rows)
    assert without_seconds(one.curves) == without_seconds(two.curves)
    assert [row["seed"] for row in two.rows] == [seed for seed in range(4) for _ in policies]
    assert not active_children()


@pytest.mark.usefixtures("start_workers_at_once")
def test_tuning_finds_the_same_whatever_the_number_of_processes() -> None:
    study = replace(find("digits"), grid={"exploration": (0.01, 0.1, 1.0)})
    policies = select(study, ["OFUL", "LinTS"])
    one, two = (tune(study, policies=policies, seeds=2, rounds=150, jobs=jobs, quiet=True) for jobs in (1, 2))
    assert without_seconds(one.rows) == without_seconds(two.rows)


@pytest.mark.usefixtures("start_workers_at_once")
def test_what_goes_wrong_in_a_helper_is_raised_here_and_no_process_is_left() -> None:
    study = worst_and_best(environment=partial(Breaking, at=1), seeds=3, rounds=5000)
    with pytest.raises(ExperimentError, match="seed 1 is broken"):
        run(study, jobs=2, quiet=True)
    assert not active_children()


@pytest.mark.usefixtures("start_workers_at_once")
def test_ctrl_c_ends_the_helpers_and_keeps_the_seeds_that_are_done() -> None:
    study = worst_and_best(environment=partial(Staircase, interrupt=(0, 4900)), seeds=3, rounds=5000)
    results = run(study, jobs=2, quiet=True)
    assert results.interrupted
    assert {row["rounds"] for row in results.rows} <= {4900, 5000}
    assert len({row["rounds"] for row in results.rows}) == 1  # whole seeds, or the one at hand where none is done
    assert not active_children()


def test_the_meter_counts_the_steps_of_helpers_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_pool, "START_SECONDS", 0.0)
    done = []
    plain = process_pool.Meter.__exit__

    def leave(meter: process_pool.Meter, *error: Any) -> None:
        done.append((meter.done, meter.total))
        plain(meter, *error)

    monkeypatch.setattr(process_pool.Meter, "__exit__", leave)
    run(worst_and_best(seeds=3, rounds=1000), jobs=2, quiet=True)
    assert all(steps == total for steps, total in done)


def test_a_small_run_and_one_about_seconds_stay_in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_pool.ProcessPool, "start_workers", lambda self: pytest.fail("helpers were called"))
    run(worst_and_best(seeds=3), jobs=2, quiet=True)
    monkeypatch.setattr(process_pool, "START_SECONDS", 0.0)
    run(worst_and_best(seeds=3, timed=True), jobs=None, quiet=True)


@pytest.mark.usefixtures("start_workers_at_once")
def test_what_pickle_refuses_can_be_sent_too() -> None:
    study = worst_and_best(environment=lambda seed: Staircase(seed), seeds=3)
    one, two = (run(study, jobs=jobs, quiet=True) for jobs in (1, 2))
    assert without_seconds(one.rows) == without_seconds(two.rows)


@pytest.mark.usefixtures("start_workers_at_once")
def test_what_cannot_be_sent_is_refused_if_asked_for_and_else_played_here(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_pool, "cpu_count", lambda: 2)
    lock = Lock()
    study = worst_and_best(environment=lambda seed: Staircase(seed if lock else 0))
    with pytest.raises(ExperimentError, match="jobs must be 1 for staircase, got 2: another process cannot be sent it"):
        run(study, jobs=2, quiet=True)
    assert len(run(study, jobs=None).rows) == 4
    assert "staircase is played in one process" in capsys.readouterr().err
    assert not active_children()


def test_a_helper_that_ends_too_early_is_an_error_that_says_whose_seed_it_played(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process_pool, "START_SECONDS", 0.0)
    study = worst_and_best(environment=partial(Dying, parent=os.getpid()), seeds=3, rounds=5000)
    with pytest.raises(ExperimentError, match="a process that played seed 1 ended too early"):
        run(study, jobs=2, quiet=True)
    assert not active_children()


SCRIPT = """
from experiments import Staircase, worst_and_best
from onepass.lab import process_pool, run
process_pool.START_SECONDS = 0.0
print(len(run(worst_and_best(environment=lambda seed: Staircase(seed), seeds=3), jobs=2, quiet=True).rows))
"""


def test_a_script_needs_no_guard_of_its_main_part(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    asked = [sys.executable, str(tmp_path / "script.py")]
    found = subprocess.run(asked, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True)
    assert found.stdout == "6\n"


KILLED = """
import sys
from functools import partial
from experiments import Telling, worst_and_best
from onepass.lab import process_pool, run
process_pool.START_SECONDS = 0.0
run(worst_and_best(environment=partial(Telling, folder=sys.argv[1]), seeds=3, rounds=200_000), jobs=2, quiet=True)
"""


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):  # it may end between opening and reading
        return False
    return "Z" not in stat.rpartition(")")[2].split()[0]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_helpers_end_when_their_run_is_killed(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], cwd=Path(__file__).parents[1])
    until(lambda: len(list(tmp_path.iterdir())) == 2 or process.poll() is not None)
    assert process.poll() is None
    process.kill()
    process.wait()
    helpers = [int(path.name) for path in tmp_path.iterdir()]
    until(lambda: not any(map(is_alive, helpers)))


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_every_suite_can_be_sent_to_another_process(suite: Experiment) -> None:
    assert pickle.dumps((suite, [process_pool.Task(suite.policies, 0, "seed 0")]))


def test_a_process_holds_its_policies_to_one_thread_of_the_blas() -> None:
    from threadpoolctl import threadpool_info

    threads: list[int] = []

    class Counting(Scripted):
        def play(self, contexts: np.ndarray, rewards: np.ndarray) -> np.ndarray:
            threads.extend([pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"])
            return super().play(contexts, rewards)

    from onepass.lab import Policy

    found = run(worst_and_best(policies=(Policy("counting", Counting),), seeds=1), quiet=True)
    assert isinstance(found, Results)
    assert set(threads) == {1}
