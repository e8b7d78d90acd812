"""Arms with names: in files, in frames, in Python, on the command line."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from onepass import cli
from onepass import evaluation as ev
from onepass.evaluation.files import evaluate_file
from onepass.log import formats
from onepass.log.formats import table

NAMES = ["control", "new page", "old page"]  # sorted


def visits(rows=600, seed=0):
    rng = np.random.default_rng(seed)
    arms = rng.integers(3, size=rows)
    return arms, (rng.random(rows) < np.array([0.2, 0.5, 0.3])[arms]) * 1.0


def file(folder, names=NAMES, ending="csv"):
    arms, rewards = visits()
    path = folder / f"visits.{ending}"
    rows = "".join(f"{names[arm]},{reward:g},{1 / 3}\n" for arm, reward in zip(arms, rewards, strict=True))
    if ending == "csv":
        path.write_text("arm,reward,propensity\n" + rows)
    else:
        import gzip

        path.write_bytes(gzip.compress(b"arm,reward,propensity\n" + rows.encode()))
    return path


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_a_file_with_named_arms_is_read_without_being_told_of_them(tmp_path, ending):
    arms, rewards = visits()
    (log,) = ev.logs_from_events(formats.read(file(tmp_path, ending=ending)))
    assert log.names == tuple(NAMES)
    assert np.array_equal(log.arms, arms)
    assert np.array_equal(log.rewards, rewards)
    told = next(formats.read(file(tmp_path, ending=ending), arms=NAMES[::-1])).decision
    assert (told.offered, told.offered[told.places[0]]) == (NAMES[::-1], NAMES[arms[0]])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, dict])
def test_frames_may_name_their_arms(make):
    arms, rewards = visits()
    columns = {"arm": [NAMES[arm] for arm in arms], "reward": rewards.tolist(), "propensity": [1 / 3] * len(arms)}
    (log,) = ev.logs_from_events(table.events_of(make(columns)))
    assert (log.names, log.n_arms) == (tuple(NAMES), 3)
    assert np.array_equal(log.arms, arms)


def test_names_work_in_python_as_places_do():
    arms, rewards = visits(2_000)
    columns = {"rewards": rewards, "propensities": np.full(len(arms), 1 / 3)}
    named = ev.Log(arms=[NAMES[arm] for arm in arms], **columns)
    assert (named.names, named[100:200].names) == (tuple(NAMES), tuple(NAMES))
    assert np.array_equal(named.arms, arms)
    one, two = (
        ev.evaluate(named, ev.ConstantPolicy("new page")),
        ev.evaluate(ev.Log(arms=arms, **columns), ev.ConstantPolicy(1)),
    )
    assert one.to_dict() == two.to_dict()
    assert ev.compare(named, {"b": ev.ConstantPolicy("new page")}, present=ev.ConstantPolicy("control")).best == "b"
    turned = ev.Log(arms=[NAMES[arm] for arm in arms], names=NAMES[::-1], **columns)
    assert np.array_equal(turned.arms, 2 - arms)
    assert ev.evaluate(turned, ev.ConstantPolicy("new page")).value == pytest.approx(one.value)
    many = ev.evaluate_many(named.blocks(200), {"b": ev.ConstantPolicy("new page")}, estimators=("ips",))
    assert many["b"].estimates["ips"].value == one.estimates["ips"].value
    digits = ev.Log(arms=np.where(arms == 0, "7", "0"), **columns)
    assert ev.ConstantPolicy("0").action_probabilities(digits)[0].tolist() == [
        1.0,
        0.0,
    ]  # a name comes before a place: "0" sorts first
    assert ev.ConstantPolicy("7").action_probabilities(digits)[0].tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda log: ev.evaluate(log, ev.ConstantPolicy("page")), "or the name of an arm, of control, new page"),
        (lambda log: ev.evaluate(ev.Log(arms=[0, 1], rewards=[0, 1], propensities=[0.5, 0.5]), ev.ConstantPolicy("a")),
         "arms of the log have none"),
        (lambda log: ev.Log(arms=["a", "b"], rewards=[0, 1], propensities=[0.5, 0.5], names=["a", "c"]),
         r"arms must be among names \(a, c\), got 'b'"),
        (lambda log: ev.Log(arms=[0, 1], rewards=[0, 1], propensities=[0.5, 0.5], names=["a", "a"]),
         "each of 2 arms once"),
    ],
)  # fmt: skip
def test_wrong_names_are_refused(call, said):
    arms, rewards = visits(50)
    log = ev.Log(arms=[NAMES[arm] for arm in arms], rewards=rewards, propensities=np.full(50, 1 / 3))
    with pytest.raises(ValueError, match=said):
        call(log)


def test_a_name_among_numbers_and_probabilities_without_an_order_are_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("arm,reward,propensity\n0,1,0.5\nhome,1,0.5\n")
    with pytest.raises(ValueError, match="line 3: arm must be a place from 0, as in the first row, got home"):
        list(formats.read(path))
    assert [one.decision.places for one in formats.read(path, arms=["home", "0"])] == [[1], [0]]
    path.write_text("arm,reward,propensity,p0,p1\nhome,1,0.5,0.5,0.5\n")
    with pytest.raises(ValueError, match="arms must name all arms in the order of probabilities"):
        list(formats.read(path, probabilities=["p0", "p1"]))


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        cli.main(arguments)
    return end.value.code or 0, capsys.readouterr()


def test_the_command_line_takes_named_arms(tmp_path, capsys):
    path = file(tmp_path)
    code, said = run(capsys, "evaluate", str(path), "--policy", "always:new page", "--policy", "uniform", "--json")
    assert code == 0, said.err
    one, even = map(json.loads, said.out.splitlines())
    arms, rewards = visits()
    assert one["estimates"]["snips"]["value"] == pytest.approx(rewards[arms == 1].mean())
    assert even["estimates"]["ips"]["value"] == pytest.approx(rewards.mean())
    assert one["estimator"] == "dr"
    code, said = run(capsys, "evaluate", str(path), "--policy", "always:1", "--arms", ",".join(NAMES[::-1]), "--json")
    assert json.loads(said.out)["estimates"]["snips"]["value"] == pytest.approx(rewards[arms == 1].mean())
    code, said = run(capsys, "evaluate", str(path), "--policy", "always:no page")
    assert (code, "or the name of an arm, of control, new page, old page" in said.err) == (2, True)
    code, said = run(capsys, "evaluate", str(path), "--policy", "always:control")
    assert said.out.splitlines()[0].split()[:4] == ["policy", "verdict", "value", "by"]
    assert said.out.splitlines()[1].split()[3] == "dr"


def test_a_store_keeps_the_names_of_a_file(tmp_path, capsys):
    path, store = file(tmp_path), str(tmp_path / "log.sqlite")
    code, said = run(capsys, "log", "import", store, str(path), "--json")
    assert code == 0, said.err
    arms, rewards = visits()
    found = evaluate_file(store, ["always:new page"])["always:new page"]
    assert found.estimates["snips"].value == pytest.approx(rewards[arms == 1].mean())
    assert found.estimator == "dr"
    assert f"value {found.value:.6g} by dr" in str(found)
