"""Foreign formats: what is written is read back, what is bad is told with its number."""

import gzip
import json

import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pytest

from foreign_logs import events
from onepass.log import Decision, Event, Outcome, formats
from onepass.log.formats import dsjson, lines, obp, table, vw

PERSONALIZER = (
    '{"_label_cost":-1.0,"_label_probability":0.8166667,"_label_Action":2,"_labelIndex":1,'
    '"o":[{"v":1.0,"EventId":"x","ActionTaken":false}],"Timestamp":"2026-11-01T00:00:00.1234567Z","Version":"1",'
    '"EventId":"x","a":[2,1,3],"c":{"GUser":{"id":"a","age":31},"_multi":[{"TAction":{"topic":"sport"}},{},{}]},'
    '"p":[0.816666663,0.0916667,0.0916667],"VWState":{"m":"modelid/1"},"pdrop":0.5,"_original_label_cost":-0.3}'
)
SLOTS = (
    '{"Timestamp":"2026-11-01T00:00:00Z","Version":"1","EventId":"y","c":{"_multi":[{},{},{}],"_slots":[{},{}]},'
    '"_outcomes":[{"_label_cost":-1,"_id":"s1","_a":[1,2,0],"_p":[0.9,0.1,0.0],"_o":[{"v":1}],'
    '"_original_label_cost":0},{"_label_cost":0,"_id":"s2","_a":[0],"_p":[1.0]}],"VWState":{"m":"m"}}'
)


def written(path, text):
    path.write_text(text)
    return path


def test_a_line_of_personalizer_is_read_whole(tmp_path):
    ((decision, outcomes, _),) = dsjson.read(written(tmp_path / "a.dsjson", PERSONALIZER + "\n"))
    assert (decision.id, decision.places, decision.propensities) == ("x", [1], [0.816666663])
    assert decision.probabilities == [0.0916667, 0.816666663, 0.0916667]
    assert (decision.ranking, decision.model, decision.passed) == ([1, 0, 2], "modelid/1", 0.5)
    assert decision.time == 1_793_491_200_123_457
    assert decision.contexts["_multi"][0] == {"TAction": {"topic": "sport"}}
    assert decision.extra["_original_label_cost"] == -0.3
    assert [(one.id, one.value) for one in outcomes] == [("x", 1.0)]


def test_a_line_of_slots_is_read_whole(tmp_path):
    ((decision, outcomes, _),) = dsjson.read(written(tmp_path / "a.dsjson", SLOTS))
    assert (decision.places, decision.propensities, decision.slot_names) == ([1, 0], [0.9, 1.0], ["s1", "s2"])
    assert decision.slots == [[0.0, 0.9, 0.1], [1.0, 0.0, 0.0]]
    assert [(one.slot, one.value) for one in outcomes] == [(0, 1.0), (1, 0.0)]


@pytest.mark.parametrize("line", [PERSONALIZER, SLOTS])
def test_a_foreign_line_that_is_written_again_says_the_same(tmp_path, line):
    first = list(dsjson.read(written(tmp_path / "a.dsjson", line)))
    assert dsjson.write(tmp_path / "b.dsjson", first) == 1
    assert list(dsjson.read(tmp_path / "b.dsjson")) == first
    old, new = json.loads(line), json.loads((tmp_path / "b.dsjson").read_text())
    for key in ("Timestamp", "_label_cost"):  # seven digits of a second, and which number 0 is
        old.pop(key, None), new.pop(key, None)
    assert new == old


@pytest.mark.parametrize("slots", [0, 2])
@pytest.mark.parametrize("ending", ["dsjson", "dsjson.gz"])
def test_dsjson_brings_back_every_bit(tmp_path, slots, ending):
    held = list(events(30, slots=slots))
    assert formats.write(tmp_path / f"a.{ending}", held) == 30
    assert list(formats.read(tmp_path / f"a.{ending}")) == held
    formats.write(tmp_path / f"b.{ending}", formats.read(tmp_path / f"a.{ending}", lazy=True))
    read = gzip.open if ending.endswith("gz") else open
    with read(tmp_path / f"a.{ending}") as one, read(tmp_path / f"b.{ending}") as two:
        assert one.read() == two.read()


def test_an_event_that_was_never_activated_is_one_again(tmp_path):
    (decision, outcomes, _), *_ = events(1)
    deferred = Event(msgspec.structs.replace(decision, deferred=True), outcomes)
    dsjson.write(tmp_path / "a.dsjson", [deferred])
    assert list(dsjson.read(tmp_path / "a.dsjson")) == [deferred]


@pytest.mark.parametrize("slots", [0, 3])
def test_text_brings_back_choices_chances_and_rewards(tmp_path, slots):
    held = list(events(20, slots=slots))
    vw.write(tmp_path / "a.vw", held)
    again = list(vw.read(tmp_path / "a.vw"))
    for (one, rewards, _), (two, found, _) in zip(held, again, strict=True):
        assert (two.id, two.places, two.propensities, two.slots) == (one.id, one.places, one.propensities, one.slots)
        assert [(each.slot, each.value) for each in found] == [(each.slot, each.value) for each in rewards]
        assert two.contexts["Hist"] == one.contexts["Hist"]
        assert two.contexts["hour"] == one.contexts["hour"]
        assert f"id{one.contexts['GUser']['id']}" in two.contexts["GUser"]
    vw.write(tmp_path / "b.vw", again)
    assert list(vw.read(tmp_path / "b.vw")) == again


def test_lines_without_features_of_actions_are_cb_lines(tmp_path):
    text = "2:-1:0.8 'n1 | user_a hour_9\n1:0:0.2 |User age:31 |Item:2 a b:0.5\n"
    one, two = vw.read(written(tmp_path / "a.vw", text), n_arms=2)
    assert (one.decision.id, one.decision.places, one.decision.propensities) == ("n1", [1], [0.8])
    assert (one.outcomes[0].value, one.decision.contexts) == (1.0, {"user_a": 1.0, "hour_9": 1.0})
    assert two.decision.contexts == {"User": {"age": 31.0}, "Item": {"a": 2.0, "b": 1.0}}
    vw.write(tmp_path / "b.vw", [one, two])
    assert [event.outcomes[0].value for event in vw.read(tmp_path / "b.vw", n_arms=2)] == [1.0, 0.0]


def feedback(rows=40, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(3), size=rows)
    arms = np.array([rng.choice(3, p=row) for row in p])
    return {
        "n_rounds": rows, "n_actions": 3, "action": arms, "reward": rng.integers(0, 2, rows) * 1.0,
        "pscore": p[np.arange(rows), arms], "position": rng.integers(0, 2, rows), "context": rng.normal(size=(rows, 2)),
    }  # fmt: skip


@pytest.mark.parametrize("left_out", [(), ("position",), ("position", "context")])
def test_arrays_of_obp_come_and_go(tmp_path, left_out):
    arrays = {**feedback(), **dict.fromkeys(left_out)}
    obp.write(tmp_path / "a.npz", obp.events_of(arrays))
    again = obp.feedback_of(formats.read(tmp_path / "a.npz"))
    assert all(np.array_equal(again[name], arrays[name]) for name in arrays if arrays[name] is not None)
    assert all(again[name] is None for name in left_out)


def test_csv_brings_back_every_bit(tmp_path):
    rng = np.random.default_rng(0)
    held = [
        Event(
            Decision(
                loop="imported", time=0, id=f"a,{t}", places=[int(t) % 3], propensities=[0.1 + 0.2],
                contexts=rng.normal(size=2).tolist(), probabilities=[1.0 / 3.0] * 3,
            ),
            (Outcome(loop="imported", time=0, id=f"a,{t}", value=float(rng.normal())),) if t % 4 else (),
        )
        for t in range(1, 20)
    ]  # fmt: skip
    columns = {"features": ("x0", "x1"), "probabilities": ("p0", "p1", "p2")}
    table.write(tmp_path / "a.csv", held)
    assert list(formats.read(tmp_path / "a.csv", **columns)) == held
    frame = pd.read_csv(tmp_path / "a.csv")
    assert list(table.events_of(frame, **columns)) == held
    assert list(table.events_of(pl.DataFrame(frame.to_dict("list")), **columns)) == held


def test_columns_may_have_any_names_and_arms_too(tmp_path):
    path = written(tmp_path / "a.csv", "what,clicked,p\nsport,1,0.25\nnews,,0.75\n")
    names = {"arm": "what", "reward": "clicked", "propensity": "p", "arms": ["news", "sport"]}
    one, two = table.read(path, **names)
    assert (one.decision.places, one.decision.offered, one.outcomes[0].value) == ([1], ["news", "sport"], 1.0)
    assert (two.decision.places, two.outcomes) == ([0], ())
    with pytest.raises(ValueError, match="columns must hold propensity, got what, clicked, p"):
        list(table.read(path, arm="what", reward="clicked"))


GOOD = {"dsjson": PERSONALIZER, "vw": "1:0:0.5 | a", "csv": "0,1,0.5"}


@pytest.mark.parametrize(
    ("name", "bad", "said"),
    [
        ("dsjson", '{"c": {', "truncated"),
        ("dsjson", '{"EventId": "x", "RewardValue": 1}', "the key c is missing"),
        ("dsjson", PERSONALIZER.replace('"a":[2,1,3]', '"a":[2,1,1]'), "a must be a ranking"),
        ("dsjson", PERSONALIZER.replace('"a":[2,1,3]', '"a":[2,1]'), "as many probabilities"),
        ("dsjson", PERSONALIZER.replace("0.0916667,0.0916667", "0.0916667"), "as many probabilities"),
        ("dsjson", PERSONALIZER.replace("0.8166667,", "0.5,"), "_label_probability and p disagree"),
        ("dsjson", PERSONALIZER.replace('"_labelIndex":1', '"_labelIndex":2'), "_labelIndex and _label_Action"),
        ("dsjson", PERSONALIZER.replace('"pdrop":0.5', '"pdrop":1.0'), "pdrop must be at least 0 and below 1"),
        ("dsjson", PERSONALIZER.replace("-1.0", "NaN"), "invalid"),
        ("dsjson", SLOTS.replace("[1,2,0]", "[1,1,0]"), "each once"),
        ("dsjson", SLOTS.replace("0.9,0.1,0.0", "0.9,0.1"), "as many _p as _a"),
        ("vw", "1:nan:0.5 | a", "not finite"),
        ("vw", "1:0:1.5 | a", r"must be in \[0, 1\]"),
        ("vw", "1:x:0.5 | a", "could not convert"),
        ("vw", "1:0:0.5 | a b:inf", "not finite"),
        ("csv", "0,1", "3 fields, got 2"),
        ("csv", "0,1,0", "above 0 and at most 1"),
        ("csv", "0,inf,0.5", "must be finite"),
        ("csv", "-1,1,0.5", "a place from 0"),
        ("csv", "0.5,1,0.5", "a place from 0"),
    ],
)
def test_a_bad_line_is_refused_with_its_number_or_left_out_and_told(tmp_path, name, bad, said):
    head = ["arm,reward,propensity"] if name == "csv" else []
    path = written(tmp_path / "a", "\n".join([*head, GOOD[name], bad, GOOD[name], ""]))
    number = len(head) + 2
    with pytest.raises(ValueError, match=rf"line {number}: .*{said}"):
        list(formats.read(path, name))
    found = []
    assert len(list(formats.read(path, name, bad="skip", report=lambda *line: found.append(line)))) == 2
    assert [at for at, _ in found] == [number]


def test_a_bad_row_of_arrays_or_a_frame_is_told_with_its_number():
    arrays, found = feedback(), []
    arrays["pscore"][4] = np.nan
    with pytest.raises(ValueError, match="row 5"):
        list(obp.events_of(arrays))
    assert len(list(obp.events_of(arrays, bad="skip", report=lambda *row: found.append(row[0])))) == 39
    frame = pl.DataFrame({"arm": arrays["action"], "reward": arrays["reward"], "propensity": arrays["pscore"]})
    with pytest.raises(ValueError, match="row 5: propensity must be above 0"):
        list(table.events_of(frame))
    assert len(list(table.events_of(frame, bad="skip", report=lambda *row: found.append(row[0])))) == 39
    assert found == [5, 5]


def test_a_file_appears_when_it_is_whole_and_nothing_is_left_of_one_that_failed(tmp_path):
    def broken():
        yield from events(3)
        raise RuntimeError("stop")

    for ending in ("dsjson", "vw"):
        with pytest.raises(RuntimeError, match="stop"):
            formats.write(tmp_path / f"a.{ending}", broken())
    assert list(tmp_path.iterdir()) == []


def test_what_a_format_cannot_hold_is_refused(tmp_path):
    bare = Event(Decision(loop="a", time=0, id="x", places=[0]))
    for module in (dsjson, vw, obp, table):
        with pytest.raises(ValueError, match="decision x"):
            module.write(tmp_path / "a", [bare])
    with pytest.raises(ValueError, match="path must end in one of"):
        formats.read(tmp_path / "a")
    with pytest.raises(ValueError, match="bad must be one of"):
        lines.Lines(tmp_path / "a", "ignore")
