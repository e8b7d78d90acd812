"""Policies, problems, data sets and figures of users: the page of the documentation runs, and mistakes are answered."""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import onepass as op
from experiments import Scripted, Staircase
from onepass import cli
from onepass.lab import Dataset, ExperimentError, Policy, experiment_on, find, keep, plugins, run
from onepass.lab.results import read

PAGE = Path(__file__).parents[2] / "docs" / "experiments.md"


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))


def module(name: str, text: str) -> None:
    Path(f"{name}.py").write_text(text, encoding="utf-8")
    sys.modules.pop(name, None)


def onepass(*arguments: str) -> int:
    """The exit code of `onepass ARGUMENTS`."""
    with pytest.raises(SystemExit) as done:
        cli.main(arguments)
    return int(done.value.code or 0)


def test_everything_on_the_page_of_the_documentation_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    module("mine", "\n\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)))
    commands = [line for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) for line in block.splitlines()]
    shown = {}
    for command in commands:
        program, *arguments = shlex.split(command)
        if program == "python":
            done = subprocess.run(
                [sys.executable, *arguments], capture_output=True, text=True, check=True, env=dict(os.environ)
            )
            shown[command] = done.stdout
        else:
            assert onepass(*arguments) == 0, command
            shown[command] = capsys.readouterr().out
    digits, tuned, blobs, turning, script, report = shown.values()
    for label in ("OFUL", "Perceptron", "bold perceptron"):
        assert f"| {label} " in digits
    assert "exploration" in tuned
    assert "reg" not in tuned.splitlines()[0].split("mean regret")[0]
    assert "| SOFUL " in blobs
    assert "| bold perceptron " in turning
    assert "best in" in script
    assert "of 3 seeds" in script
    assert script.startswith(report)


def test_a_stepwise_policy_plays_what_a_recorded_one_plays() -> None:
    class Steps:
        def __init__(self, *, dim: int, seed: int, arm: int = 0) -> None:
            self.arm, self.learned = arm, 0.0

        def decide(self, contexts: np.ndarray) -> int:
            return self.arm

        def learn(self, context: np.ndarray, reward: float) -> None:
            self.learned += reward

        def memory_usage(self) -> int:
            return 8

    policies = [
        Policy(f"{recipe.__name__} {arm}", recipe, {"arm": arm}) for arm in range(3) for recipe in (Scripted, Steps)
    ]
    study = experiment_on(Staircase, policies=policies, rounds=120, seeds=2)
    rows = run(study, quiet=True).rows
    for recorded, steps in zip(rows[0::2], rows[1::2], strict=True):
        assert recorded["cumulative_regret"] == steps["cumulative_regret"]
        assert recorded["cumulative_reward"] == steps["cumulative_reward"]
    assert {row["memory_bytes"] for row in rows[1::2]} == {8}


class First:
    """Always the first arm; nothing here can be pickled."""

    def __init__(self, *, dim: int, seed: int, arm: object = 0, **other: object) -> None:
        self.arm, self.other = arm, lambda: other

    def decide(self, contexts: np.ndarray) -> object:
        return self.arm

    def learn(self, context: np.ndarray, reward: float) -> None: ...


class FirstInOneCall(First):
    """The same with `play`, but without the other optional methods."""

    def play(self, contexts: np.ndarray, rewards: np.ndarray) -> np.ndarray:
        return np.zeros(len(contexts), np.int64)


def test_parameters_of_any_kind_are_kept_and_optional_methods_may_be_missing(tmp_path: Path) -> None:
    policies = [
        Policy("number", First, {"other": 0.5}),
        Policy("object", First, {"other": op.InverseGap()}),
        Policy("array", FirstInOneCall, {"other": np.arange(2.0)}),
        Policy("single", First, {"other": np.float32(0.5), "arm": np.int64(0)}),
    ]
    folder = tmp_path / "finished"
    runs = [run(experiment_on(Staircase, rounds=64), policies=policies, seeds=2, quiet=True)]
    runs.append(run(experiment_on(Staircase, rounds=64), policies=policies, seeds=2, quiet=True, cache_folder=folder))
    for results in runs:
        keep(results, tmp_path)
        found = [row["params"].get("other") for row in read(tmp_path / "results.parquet")]
        assert found == [0.5, repr(op.InverseGap()), [0.0, 1.0], 0.5] * 2
    assert len({row["cumulative_regret"] for row in runs[0].rows if row["seed"] == 0}) == 1
    assert np.isnan(runs[0].rows[0]["memory_bytes"])


@pytest.mark.parametrize("arm", [-1, 10_000, 0.5, None])
def test_a_policy_that_chooses_no_row_is_named(arm: object) -> None:
    with pytest.raises(ExperimentError, match=r"decide of First must return the index of one of \d+ rows"):
        run(experiment_on(Staircase, rounds=4), policies=[Policy("p", First, {"arm": arm})], seeds=1, quiet=True)


def test_a_data_set_of_ones_own_plays_as_the_same_data_set_of_the_package() -> None:
    digits = find("digits").environment(0).dataset
    twin = Dataset.from_arrays("twin", digits.rows, np.array([f"class {label}" for label in digits.labels]))
    ours, theirs = experiment_on(twin, rounds=100, seeds=1), find("digits")
    regrets = [run(study, rounds=100, seeds=1, quiet=True).rows for study in (ours, theirs)]
    assert [r["cumulative_regret"] for r in regrets[0]] == [r["cumulative_regret"] for r in regrets[1]]


@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        (np.zeros((3, 2)), [0, 1], "one label each, got shapes"),
        (np.full((2, 2), np.nan), [0, 1], "rows that are not finite"),
        (np.zeros((2, 2)), [1, 1], "at least two classes"),
    ],
)
def test_a_data_set_that_cannot_be_played_is_refused(rows: np.ndarray, labels: list[int], message: str) -> None:
    with pytest.raises(ExperimentError, match=message):
        Dataset.from_arrays("bad", rows, labels)


def test_a_foreign_figure_is_given_as_an_object_and_never_looked_up_by_a_name_in_a_file(tmp_path: Path) -> None:
    known = "find('digits').figure"
    text = f"from onepass.lab import Figure, find\nLOOK = Figure('looks', {known}.lines, {known}.draw)\n"
    module("looks", text)
    base = experiment_on(Staircase, policies=[Policy("best", Scripted, {"arm": 2})], rounds=50, seeds=1)
    table = keep(run(replace(base, figure=plugins.load_figure("looks:LOOK")), quiet=True), tmp_path / "out")
    assert onepass("report", "out") == 2
    assert onepass("report", "out", "--figure", "looks:LOOK") == 0
    assert (tmp_path / "out" / "table.md").read_text(encoding="utf-8") == table + "\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policies", "nowhere:Name"], "there is no module 'nowhere' for nowhere:Name"),
        (["--policies", "some:Name"], "the module 'some' has no 'Name'"),
        (["--policies", ":Name"], "':Name' is not MODULE:NAME"),
        (["--policies", ".some:Name"], "'.some:Name' is not MODULE:NAME"),
        (["--policies", "some:"], "the module 'some' has no ''"),
        (["--policies", "some:NUMBER"], "some:NUMBER must be a Policy, several, or what makes one, not int"),
        (["--policies", "OFUL,some:OFUL"], "two policies are called OFUL"),
        (["--policies", "some:OFUL", "--jobs", "0"], "jobs must be at least 1, got 0"),
    ],
)
def test_a_name_that_stands_for_nothing_usable_is_refused_in_one_sentence(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    module("some", "from onepass import OFUL\nNUMBER = 3\n")
    assert onepass("run", "digits", "--rounds", "50", "--seeds", "1", *arguments) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith(f"onepass: {message}")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("some:NUMBER", "some:NUMBER must be an experiment, a Dataset or a problem, not int"),
        ("some:nothing", "nothing must be a problem, nothing(seed) with arms, dim and chunk"),
        ("nowhere:Name", "there is no module 'nowhere'"),
    ],
)
def test_a_problem_that_is_none_is_refused_in_one_sentence(
    name: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    module("some", "NUMBER = 3\ndef nothing(seed):\n    return None\n")
    assert onepass("run", name) == 2
    assert capsys.readouterr().err.startswith(f"onepass: {message}")
