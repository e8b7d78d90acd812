"""A run that was killed goes on with the seeds that it had finished, and has the rows of one that never was."""

import subprocess
import sys
from pathlib import Path

import pytest

from experiments import Scripted, Staircase, study
from onepass.lab import Experiment, Policy, run, tune
from onepass.lab.task_cache import TaskCache
from patience import until

KILLED = """
import sys
from experiments import study
from onepass.lab import run
from pathlib import Path
run(study(sys.argv[1]), cache_folder=Path(sys.argv[1], "kept"), quiet=True)
"""


def without_seconds(rows):
    return [{name: value for name, value in row.items() if "second" not in name} for row in rows]


def seeds_played(folder):
    """The seeds that were begun."""
    return sorted(path.name for path in Path(folder).glob("began-*"))


def test_a_run_that_was_killed_plays_only_what_it_had_not_finished(tmp_path):
    place = tmp_path / "killed"
    place.mkdir()
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(place)], cwd=Path(__file__).parents[1])
    until(lambda: (place / "began-1").exists() or process.poll() is not None)
    assert process.poll() is None
    process.kill()
    process.wait()
    assert seeds_played(place) == ["began-0", "began-1"]
    for path in place.glob("began-*"):
        path.unlink()

    (place / "now").touch()
    assert len(list((place / "kept").glob("*.json"))) == 1
    published = []
    again = run(
        study(place),
        cache_folder=place / "kept",
        quiet=True,
        callback=lambda _: published.append(len(list(place.glob("kept/*")))),
    )
    assert seeds_played(place) == ["began-1", "began-2"]  # what was finished is not played again
    assert published == [3]  # files are there until the results are
    assert not (place / "kept").exists()

    whole = run(study(place), quiet=True)
    assert without_seconds(again.rows) == without_seconds(whole.rows)
    assert without_seconds(again.curves) == without_seconds(whole.curves)


def test_what_was_played_otherwise_is_not_taken(tmp_path):
    """Other rounds, seeds, parameters or problems have files of their own; half a file is taken away."""
    (tmp_path / "now").touch()
    one = study(tmp_path)
    tasks = [(one.policies, seed, "") for seed in range(2)]
    cache = TaskCache(tmp_path / "kept", one, tasks, 100)
    results = run(one, seeds=1, quiet=True)
    cache.save(0, results)
    found = cache.load_results()
    assert (list(found), found[0].rows, found[0].curves) == ([0], results.rows, results.curves)
    other = (Policy("Up", Scripted, {"arm": 1}), one.policies[1])
    for changed in (
        TaskCache(tmp_path / "kept", one, tasks, 99),
        TaskCache(tmp_path / "kept", one, tasks[1:], 100),
        TaskCache(tmp_path / "kept", one, [(other, 0, "")], 100),
        TaskCache(tmp_path / "kept", study(tmp_path, grid={"reg": (1.0,)}), tasks, 100),
        TaskCache(None, one, tasks, 100),
    ):
        assert changed.load_results() == {}
    cache.files[0].write_text("[[{")
    assert cache.load_results() == {}
    assert not cache.files[0].exists()


def test_tuning_goes_on_too(tmp_path):
    first = Experiment("stairs", "", Staircase, (Policy("Up", Scripted),), 50, 2, grid={"exploration": (0.1, 1.0)})
    whole = tune(first, seeds=2, quiet=True)

    def stop(results):
        assert len(list((tmp_path / "kept").iterdir())) == 2
        raise OSError("no room for the table")

    with pytest.raises(OSError, match="no room"):
        tune(first, seeds=2, quiet=True, cache_folder=tmp_path / "kept", callback=stop)
    again = tune(first, seeds=2, quiet=True, cache_folder=tmp_path / "kept")
    assert again.rows == [{**row, "params": dict(row["params"])} for row in again.rows]
    assert without_seconds(again.rows) == without_seconds(whole.rows)
    assert not (tmp_path / "kept").exists()
