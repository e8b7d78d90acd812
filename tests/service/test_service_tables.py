"""What the service reads and writes once for many requests is what it would have read and written for each."""

import json

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onepass.bandit.decision import Decision as Decided
from onepass.log.memory import MemoryStore
from onepass.log.records import Activation, Decision, Join, Outcome
from onepass.log.replay import HELD, UNLEARNED, Fold, decision_to_learn, lesson_from_record
from onepass.log.store import make_row, row_from_record
from onepass.log.tables import DIGITS, MOST, WIDEST, insert_parts, padded_parts
from onepass.service import arm_table_cache as tables
from onepass.service.arm_table_cache import ArmTable, ArmTableCache, fingerprint
from onepass.service.messages import ApiError, Arm, DecideRequest
from onepass.service.request_rows import make_offer, make_table
from onepass.service.responses import decision_answer
from onepass.service.settings import parse_settings

SETTINGS = parse_settings({"name": "news", "features": {"context": 2, "arms": ["x", "y"]}})
ARMS = [{"id": "a", "features": [1.0, 2]}, {"id": "b", "features": {"y": 3}}]
READ = msgspec.json.Decoder(DecideRequest)


def made():
    return ArmTableCache(lambda arms: make_table(arms, SETTINGS))


def decision(number=0, k=1, offered=("a", "b", "c"), **fields):
    """One as the service makes it."""
    rng = np.random.default_rng(number)
    p = rng.dirichlet(np.ones(len(offered)))
    places = rng.permutation(len(offered))[:k]
    rows = rng.standard_normal((len(offered), 2))
    context = rows[places[0]] if k == 1 else rows[places]
    found = Decided(
        arm=offered[places[0]], arms=[offered[place] for place in places], scores=p + 1, means=p, widths=None,
        propensity=p[places[0]], probabilities=p, index=int(places[0]), places=places,
        slots=None if k == 1 else np.full((k, len(offered)), 1 / len(offered)), propensities=p[places], rest="sampled",
        id=f"d{number}", context=context, candidates=list(offered), n_learned=3, rule="UCB()", seed="ab",
    )  # fmt: skip
    return Decision.from_decision(found, loop="news", time=number, contexts=rows, eligible=None, **fields)


@pytest.mark.parametrize("more", [{}, {"exclude": ["b"]}, {"id": "e"}, {"slots": 2}])
def test_a_request_by_its_table_offers_what_it_offers_when_it_is_read_alone(more):
    body, kept = json.dumps({"context": [0.5, 1], "arms": ARMS, **more}).encode(), made()
    alone = READ.decode(body)
    for _ in range(2):  # the second time the table is there
        request = kept.decode(body)
        wanted, found = make_offer(alone, SETTINGS), make_offer(request, SETTINGS)
        assert found.contexts.tolist() == wanted.contexts.tolist() == [[0.5, 1.0, 1.0, 2.0], [0.5, 1.0, 0.0, 3.0]]
        assert (found.names, found.eligible) == (wanted.names, wanted.eligible)
        assert bytes(found.text) == msgspec.json.encode(wanted.contexts.tolist())
        assert fingerprint(request) == fingerprint(alone)


@given(st.integers(0, 3), st.integers(1, 3), st.integers(1, 4), st.data())
def test_the_text_of_contexts_is_the_json_that_they_are_written_as(left, width, count, data):
    numbers = st.floats(allow_nan=False, allow_infinity=False)
    begin = data.draw(st.lists(numbers, min_size=left, max_size=left))
    rows = data.draw(st.lists(st.lists(numbers, min_size=width, max_size=width), min_size=count, max_size=count))
    found = ArmTable([f"{n}" for n in range(count)], np.array(rows))
    assert bytes(found.text(begin)) == msgspec.json.encode(found.contexts(begin).tolist())
    assert ArmTable(["a"], None).text(begin) is None


@given(st.lists(st.sampled_from(["", " ", "  "]), min_size=3, max_size=3), st.booleans(), st.integers(0, 3))
def test_requests_have_the_same_fingerprint_if_and_only_if_they_say_the_same(spaces, same, part):
    kept = made()
    first = {"context": [0.5, 1.0], "arms": ARMS, "id": "e"}
    other = first if same else {**first, **[
        {"context": [0.5, 2.0]}, {"arms": ARMS[::-1]}, {"id": "f"}, {"arms": None}][part]}  # fmt: skip
    text = json.dumps(other, separators=(spaces[0] + ",", ":" + spaces[1])) + spaces[2]
    assert (fingerprint(kept.decode(json.dumps(first).encode())) == fingerprint(kept.decode(text.encode()))) == same


@pytest.mark.parametrize("arms", ['["a", 1]', '{"id": 1}', '[{"id": "a", "featurez": 1}]', '[{"id": "\\ud800"}]'])
def test_arms_that_do_not_fit_are_refused_with_their_place_in_the_body(arms):
    body = f'{{"context": [1, 2], "arms": {arms}}}'.encode()
    with pytest.raises(msgspec.DecodeError) as wanted:
        READ.decode(body)
    with pytest.raises(msgspec.DecodeError) as found:
        made().decode(body)
    assert str(found.value) == str(wanted.value)


def test_tables_that_are_wrong_are_not_kept_and_others_only_up_to_their_bytes(monkeypatch):
    kept = made()
    for _ in range(2):
        with pytest.raises(ApiError, match="every arm once"):
            kept.decode(b'{"context": [1, 2], "arms": [{"id": "a", "features": [1, 2]}, {"id": "a"}]}')
    monkeypatch.setattr(tables, "BYTES", 1_000)
    bodies = [json.dumps({"arms": [{"id": f"a{n}", "features": [n, n]}]}).encode() for n in range(100)]
    each = [kept.decode(body).arms for body in bodies]
    assert [one.names for one in each] == [[f"a{n}"] for n in range(100)]
    assert sum(map(len, kept._tables)) == kept._bytes <= 1_000 - len(bodies[0]) + 100
    assert kept.decode(bodies[-1]).arms is each[-1]
    assert kept.decode(bodies[0]).arms is not each[0]
    assert make_offer(DecideRequest(context=[1, 2], arms=[Arm(id="z", features=[1.0, 2.0])]), SETTINGS).names == ["z"]


RECORDS = [
    decision(1), decision(2, k=2), decision(3, deferred=True, subject="s", extra={"request": "f", "due": 7}),
    decision(4, shown=[1], showing=[0.25, 0.5, 0.25]), decision(5, offered=("null", "b")),
    Outcome(loop="news", time=1, id="d", value=-0.0, slot=1, request="k"), Activation(loop="news", time=2, id="d"),
    Join(loop="news", time=3, id="d", rewards=[1.0, None], batch=4, count=0),
]  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5]), st.sampled_from([-1.0, 0.0, -0.0, 2.0])), min_size=3))
def test_a_ranking_is_what_is_shown_then_the_likeliest_then_those_of_the_best_score(arms):
    chances, scores = map(list, zip(*arms, strict=True))
    names = [f"{n}" for n in range(len(arms))]
    found = decision_answer(msgspec.structs.replace(
        decision(k=2), places=[1, 0], offered=names, probabilities=chances, slots=[chances] * 2, scores=scores
    )).ranking  # fmt: skip
    rest = sorted(names[2:], key=lambda name: (-chances[int(name)], -scores[int(name)], int(name)))
    assert [(one.arm, one.probability, one.score) for one in found] == [
        (name, chances[int(name)], scores[int(name)]) for name in ("1", "0", *rest)
    ]


@pytest.mark.parametrize("record", RECORDS, ids=lambda one: f"{type(one).__name__} {one.id}")
def test_a_record_that_is_written_once_is_written_as_one_that_is_read_again(record):
    assert make_row(record) == row_from_record(record)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_are_not_finite_are_refused_wherever_they_hide(value):
    bad = [msgspec.structs.replace(decision(), **{name: [value, 1.0, 1.0]}) for name in ("scores", "means", "widths")]
    bad += [msgspec.structs.replace(decision(), contexts=[[1.0, value]] * 3, extra={"null": None})]
    for record in [*bad, Outcome(loop="news", time=1, id="null", value=value)]:
        with pytest.raises(ValueError, match="not finite"):
            make_row(record)


@pytest.mark.parametrize("record", [one for one in RECORDS if isinstance(one, Decision)], ids=lambda one: one.id)
def test_what_is_kept_of_a_decision_is_what_is_learned_of_it(record):
    kept, whole = lesson_from_record(record), decision_to_learn(record)
    for name in kept._fields:
        if name not in UNLEARNED:
            mine, wanted = getattr(kept, name), getattr(whole, name)
            assert type(mine) is type(wanted), name
            assert np.array_equal(mine, wanted), name


def test_decisions_are_kept_up_to_a_number_of_bytes_and_each_once():
    fold = Fold(MemoryStore(), "news", None)
    wide = msgspec.structs.replace(decision(), context=[0.5] * 100_000)
    for number in range(100):
        for _ in range(2):
            fold.add_decision(msgspec.structs.replace(wide, id=f"{number}"))
    kept = [f"{number}" for number in range(100) if fold.release(f"{number}") is not None]
    assert kept == [f"{number}" for number in range(100 - len(kept), 100)]
    assert 0.9 * HELD < 800_000 * len(kept) <= HELD
    assert fold._bytes == 0


@given(st.integers(0, 2_000))
def test_parts_of_a_list_are_the_list_and_their_lengths_are_few(count):
    found = [*range(count)]
    each = list(insert_parts(found))
    assert [one for part in each for one in part] == found
    assert all(len(part) <= WIDEST and len(part) % (1 << max(len(part).bit_length() - DIGITS, 0)) == 0 for part in each)


@given(st.integers(0, 2_000))
def test_names_repeated_are_the_names_and_their_numbers_are_powers_of_two(count):
    found = [f"{one}" for one in range(count)]
    each = list(padded_parts(found))
    assert [*dict.fromkeys(one for part in each for one in part)] == found
    assert all(len(part) <= MOST and len(part).bit_count() == 1 for part in each)
