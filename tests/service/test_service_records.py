"""A loop whose requests and arms are records: log, replay, verify and checkpoints are as exact as for rows."""

import msgspec
import numpy as np
import pytest

import onepass as op
from onepass.evaluation.events import event_rows
from onepass.log import Decision, Event
from onepass.log.memory import MemoryStore
from onepass.log.replay import Fold
from onepass.log.verification import verify
from onepass.service.arm_table_cache import fingerprint
from onepass.service.crossed_features import count_values
from onepass.service.messages import ApiError, OutcomeRequest, RecordsRequest
from onepass.service.page import event_json
from onepass.service.responses import decision_answer
from onepass.service.settings import Limits, make_bandit, parse_settings
from patience import HeldClock, let_deadlines_pass
from service_process import loops_in

TOPICS = ["sport", "news", "food"]
MOST = Limits().features
SMALL = {"kind": "Records", "size": 16, "standardize": True}


def rules(**more):
    return parse_settings({
        "name": "news",
        "model": {"recipe": "InteractionBandit", "arguments": {"context": SMALL, "item": SMALL}, "seed": 3},
        "reward": {"wait": 0.05, "range": [-1.0, 1.0]}, "operation": {"publish": 0.0}, **more,
    })  # fmt: skip


RECOMMENDED = {
    "model": {"recipe": "ContextualBandit", "arguments": {"context": SMALL, "item": SMALL, "warm_up": 8}, "seed": 3},
    "features": {"records": True},
}


def request(t, **fields):
    rng = np.random.default_rng(t)
    arms = [{"id": f"a{j}", "features": {"topic": TOPICS[j % 3], "n": {"long": j / 7}}} for j in range(t, t + 5)]
    context = {"country": "de" if rng.random() < 0.5 else "fr", "hour": int(rng.integers(24)), "none": None,
               "likes": ["sport", "food"], "device": {"os": "x", "new": True}}  # fmt: skip
    return msgspec.convert({"context": context, "arms": arms, "id": f"{t}", **fields}, RecordsRequest)


@pytest.fixture
def started(tmp_path):
    """Loops that end with their test."""
    with loops_in(tmp_path, HeldClock()) as start:
        yield start


@pytest.mark.parametrize("how", [{}, {"mode": "apprentice"}, {"mode": "apprentice", "exploring": 0.5}])
def test_a_loop_of_records_that_stops_and_starts_has_the_model_of_one_that_went_on(started, tmp_path, how):
    store = MemoryStore()
    for life in range(3):
        loop = started(rules(**how), store)
        for t in range(8 * life, 8 * life + 8):
            slots = 1 + (t % 3 == 0 and how.get("exploring", 0.0) == 0.0)
            record = loop.decide(request(t, slots=slots, exclude=[f"a{t + 4}"] if t % 2 else [])).result()
            loop.outcomes([OutcomeRequest(id=record.id, value=-0.5, key="k")])[1].result()
            loop.clock.forward(0.02)  # joins come while others decide
        let_deadlines_pass(loop)
        loop.stop()
        if life == 1:
            for file in (tmp_path / "models").iterdir():
                file.write_bytes(b"damaged")
    twin = Fold(store, "news", make_bandit(rules(**how)))
    assert twin.advance() == 24
    assert twin.bandit.model.context.n_names > 5
    assert op.to_bytes(loop.learner.fold.bandit) == op.to_bytes(twin.bandit)
    found = verify(Fold.resume(store, "news", first=True))
    assert (found.ok, found.equal, found.others) == (True, 24, ())
    assert found.checkpoints >= 2
    for record in store.read(kinds=["decision"]):
        for row in event_rows(Event(record), None, 0.0):
            assert row[2] > 0.0


@pytest.mark.parametrize("models", ["records", "interaction"])
def test_the_recommended_bandit_takes_records_too(started, models):
    store, settings = MemoryStore(), rules(**RECOMMENDED)
    loop = started(settings, store)
    for t in range(12):
        more = {"arms": ["tea", "soup"]} if models == "records" else {}
        record = loop.decide(request(t, **more)).result()
        loop.outcomes([OutcomeRequest(id=record.id, value=0.5)])[1].result()
        loop.clock.forward(0.02)
    let_deadlines_pass(loop)
    loop.stop()
    twin = Fold(store, "news", make_bandit(settings))
    assert twin.advance() == 12
    assert twin.bandit.choices()["model"] == models
    assert op.to_bytes(loop.learner.fold.bandit) == op.to_bytes(twin.bandit)
    found = verify(Fold.resume(store, "news", first=True))
    assert (found.ok, found.equal) == (True, 12)


def test_what_an_apprentice_shows_is_learned_by_its_terms(started):
    loop = started(rules(mode="apprentice"), MemoryStore())
    record = loop.decide(request(1)).result()
    let_deadlines_pass(loop)
    assert record.shown == [0]
    names = loop.learner.fold.bandit.model.item.feature_names()
    assert names[:2] == ("topic=news", "n.long")


def test_the_same_records_get_the_same_answer_after_a_restart_and_others_are_refused(started):
    store = MemoryStore()
    loop = started(rules(), store)
    first = decision_answer(loop.decide(request(7)).result())
    loop.stop()
    loop = started(rules(), store)
    assert decision_answer(loop.decide(request(7)).result()) == first
    with pytest.raises(ApiError, match="another request"):
        loop.decide(request(7, exclude=["a8"])).result()
    assert sum(isinstance(one, Decision) for one in store.read()) == 1


def nested(depth):
    return {"a": nested(depth - 1)} if depth else {"a": 1.0}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"a": [[1.0]]}, "a"),
        ({"a": ["x", 1.0]}, "among strings"),
        ({"a": 1e200}, "a"),
        ({"a": 10**400}, "a"),
        ({"a": [{"b": 1}]}, "a"),
        (nested(40), "nested"),
        ({"a": {"b": [1.0] * MOST}, "c": ["x"]}, f"at most {MOST} features each .limits.features., got {MOST + 1}"),
    ],
)
def test_records_without_terms_are_refused_before_anything_is_stored(started, wrong, says):
    loop = started(rules(), MemoryStore())
    before = loop.store.last
    for fields in ({"context": wrong}, {"arms": [{"id": "x", "features": wrong}, {"id": "y", "features": {}}]}):
        with pytest.raises(ApiError, match=says) as error:
            loop.decide(msgspec.structs.replace(request(1), **msgspec.to_builtins(fields)) if "arms" not in fields
                        else request(1, **fields))  # fmt: skip
        assert error.value.status == 400
    assert loop.store.last == before


def test_features_of_a_record_are_its_values_however_deep():
    assert count_values({"a": {"b": [1.0, 2.0, 3.0], "c": {}}, "d": ["x"], "e": None, "f": 1}) == 6


def test_large_whole_numbers_come_out_of_the_log_as_they_went_in(started):
    loop = started(rules(), MemoryStore())
    body = b'{"context": {"big": 123456789012345678901234567890, "small": -0.0}, "arms": ["a", "b"], "id": "big"}'
    asked = msgspec.json.decode(body, type=RecordsRequest)
    loop.decide(asked).result()
    let_deadlines_pass(loop)
    assert fingerprint(asked) == fingerprint(msgspec.json.decode(body, type=RecordsRequest))
    assert verify(Fold.resume(loop.store, "news", first=True)).equal == 1


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ({"arguments": {"width": 3}}, "InteractionBandit does not know"),
        ({"arguments": {"recent": 0}}, "recent"),
        ({"arguments": {"context": {"kind": "Records", "size": 1}}}, "size"),
        ({"arguments": {"context": {"kind": "Nobody"}}}, "not a registered class"),
    ],
)
def test_settings_of_a_bandit_of_records_are_checked(model, says):
    with pytest.raises(ValueError, match=says):
        rules(model={"recipe": "InteractionBandit", **model})
    with pytest.raises(ValueError, match="features must be left out"):
        rules(features={"context": 3})


def test_a_decision_by_records_is_found_by_its_id_and_explained_by_pairs_of_features(started):
    loop = started(rules(), MemoryStore())
    for t in range(12):
        record = loop.decide(request(t)).result()
        loop.outcomes([OutcomeRequest(id=record.id, value=float(t % 2), key="k")])[1].result()
    let_deadlines_pass(loop)
    asked = loop.decide(request(7, id="asked again")).result()
    loop.stop()  # nothing is learned between what follows
    found = msgspec.json.decode(event_json(loop, "asked again"))
    assert found["records"][0]["kind"] == "decision"
    why, arm = found["explanation"], decision_answer(asked).arm
    offered = dict(zip(asked.offered, asked.contexts["arms"], strict=True))
    expected = loop.learner.snapshot.explain(asked.contexts["context"], arm, arms=offered)
    assert (why["arm"], why["mean"]) == (arm, pytest.approx(expected.mean))
    names = {term["name"] for term in why["terms"]}
    assert any(" * " in name for name in names), names  # a feature of the request with one of the arm
    assert why["mean"] == pytest.approx(sum(term.contribution for term in expected.terms))
    assert abs(why["terms"][0]["contribution"]) == max(abs(term.contribution) for term in expected.terms)
