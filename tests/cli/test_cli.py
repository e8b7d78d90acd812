import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from experiments import Staircase, worst_and_best
from onepass import cli
from onepass.lab import suites

KEYS = {
    "experiment",
    "policy",
    "params",
    "seed",
    "rounds",
    "cumulative_regret",
    "cumulative_reward",
    "microseconds_per_round",
    "memory_bytes",
}


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def onepass(*arguments: str) -> int:
    """The exit code of `onepass ARGUMENTS`."""
    with pytest.raises(SystemExit) as done:
        cli.main(arguments)
    return int(done.value.code or 0)


def test_list_names_every_experiment_and_its_policies(capsys: pytest.CaptureFixture[str]) -> None:
    assert onepass("list") == 0
    shown = capsys.readouterr().out
    for group, members in suites.GROUPS.items():
        own = shown.partition(f"# {group}\n")[2].partition("\n# ")[0]
        assert all(f"\n{suite.name}: " in own for suite in members)
    assert tuple(suite for members in suites.GROUPS.values() for suite in members) == suites.SUITES
    assert "DBSLinUCB-RFD" in shown
    assert onepass("list", "digits") == 0
    assert "exploration=0.1" in capsys.readouterr().out


def test_run_leaves_parquet_table_and_picture_in_results(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert onepass("run", "digits", "--rounds", "60", "--seeds", "2", "--policies", "OFUL,SOFUL") == 0
    files = {path.name for path in (tmp_path / "results" / "digits").iterdir()}
    assert files == {"results.parquet", "curves.parquet", "table.md", "figure.png"}
    captured = capsys.readouterr()
    assert captured.out.startswith("| policy")
    assert "written to" in captured.err


def test_json_puts_one_object_per_policy_and_seed_and_nothing_else_on_stdout(
    capsys: pytest.CaptureFixture[str],
) -> None:
    labels = ["OFUL", "SOFUL", "PSILinUCB"]
    assert onepass("run", "digits", "--rounds", "60", "--seeds", "2", "--policies", ",".join(labels), "--json") == 0
    captured = capsys.readouterr()
    rows = [json.loads(line, parse_constant=pytest.fail) for line in captured.out.splitlines()]
    assert [(row["policy"], row["seed"]) for row in rows] == [(label, seed) for seed in (0, 1) for label in labels]
    for row in rows:
        assert row.keys() >= KEYS
        assert row["experiment"] == "digits"
        assert row["rounds"] == 60
        assert row["cumulative_regret"] + row["cumulative_reward"] == pytest.approx(60)
        assert row["memory_bytes"] > 0
        assert isinstance(row["params"], dict)
    assert rows[2]["error_bound"] is None
    assert "| policy" in captured.err


def test_out_sets_the_folder_of_results_and_report_rebuilds_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert onepass("run", "digits", "--rounds", "50", "--seeds", "1", "--policies", "OFUL", "--out", "here/there") == 0
    first = capsys.readouterr().out
    (tmp_path / "here" / "there" / "figure.png").unlink()
    assert onepass("report", "here/there") == 0
    assert capsys.readouterr().out == first
    assert (tmp_path / "here" / "there" / "figure.png").is_file()
    assert not (tmp_path / "results").exists()


def test_tune_then_run_tuned(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert onepass("tune", "digits", "--rounds", "50", "--seeds", "1", "--policies", "OFUL") == 0
    assert (tmp_path / "results" / "digits-tuned" / "tuned.parquet").is_file()
    capsys.readouterr()
    tuned = ("--tuned", "results/digits-tuned")
    assert onepass("run", "digits", "--rounds", "50", "--seeds", "1", "--policies", "OFUL", "--json", *tuned) == 0
    (row,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert row["params"].keys() == {"reg", "exploration"}
    assert onepass("run", "digits", "--policies", "LinTS", *tuned) == 2
    assert "no tuned parameters for LinTS, only for OFUL" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "digit"], "there is no experiment 'digit': digits, optdigits"),
        (["list", "digit"], "there is no experiment 'digit': digits, optdigits"),
        (["tune", "digit"], "there is no experiment 'digit': digits, optdigits"),
        (["run", "digits", "--policies", "UCB"], "no policy 'UCB' in digits: choose among OFUL, LinTS"),
        (["run", "digits", "--policies", ","], "no policy was named in digits: choose among OFUL, LinTS"),
        (["run", "digits", "--rounds", "0"], "rounds must be at least 1, got 0"),
        (["run", "digits", "--rounds", "-5"], "rounds must be at least 1, got -5"),
        (["run", "digits", "--seeds", "0"], "seeds must be at least 1, got 0"),
        (["run", "digits", "--seeds", "-1"], "seeds must be at least 1, got -1"),
        (["run", "digits", "--tuned", "nowhere"], "there is no nowhere"),
        (["tune", "digits", "--seeds", "0"], "seeds must be at least 1, got 0"),
        (["tune", "matrix-approximation"], "matrix-approximation has nothing to tune"),
        (["report", "nowhere"], "there is no results.parquet in nowhere"),
    ],
)
def test_an_error_is_one_sentence_and_exit_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert onepass(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"onepass: {message}")
    assert captured.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_missing_data_set_is_one_sentence_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import pooch
    import requests

    from onepass.lab import datasets

    def refuse(*_: object, **__: object) -> None:
        raise requests.ConnectionError("no network")

    monkeypatch.delenv("ONEPASS_DATA", raising=False)
    monkeypatch.setattr(datasets, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(pooch, "retrieve", refuse)
    datasets.load.cache_clear()
    assert onepass("run", "spambase", "--rounds", "50") == 2
    assert "put openml/spambase.csv.xz or uci/spambase.data into the folder" in capsys.readouterr().err


def test_ctrl_c_keeps_finished_results(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stopped = worst_and_best(environment=lambda seed: Staircase(seed, interrupt=(1, 50)), seeds=3)
    monkeypatch.setattr(suites, "SUITES", (stopped,))
    assert onepass("run", "staircase", "--json") == 130
    captured = capsys.readouterr()
    assert [json.loads(line)["seed"] for line in captured.out.splitlines()] == [0, 0]
    assert "interrupted; what is done is kept (2 rows)" in captured.err
    assert (tmp_path / "results" / "staircase" / "figure.png").is_file()


def test_ctrl_c_before_any_result_is_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = worst_and_best(environment=lambda seed: Staircase(seed, interrupt=(0, 0)))
    monkeypatch.setattr(suites, "SUITES", (stopped,))
    assert onepass("run", "staircase") == 130
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "interrupted; nothing was finished" in captured.err


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_importing_onepass_imports_no_extra() -> None:
    done = python(f"import sys, onepass; print([name for name in {cli.EXTRAS} if name in sys.modules])")
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("extra", ["typer", "polars", "rich"])
def test_a_missing_extra_is_one_sentence_that_names_the_way_out(extra: str) -> None:
    hidden = f"import sys; sys.modules['{extra}'] = None\n"
    done = python(hidden + "from onepass.cli import main\nmain(['run', 'digits', '--rounds', '0'])")
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"{extra} is missing" in done.stderr
    assert done.stderr.endswith("pip install onepass[experiment]\n")
    assert done.stderr.count("\n") == 1


def test_python_m_onepass_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "onepass", "list"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("# Contextual bandits: regret\n\ndigits: ")
    assert done.stderr == ""


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert onepass("--version") == 0
    assert capsys.readouterr().out == f"onepass {metadata.version('onepass')}\n"
