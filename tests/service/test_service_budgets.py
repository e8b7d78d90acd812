"""Outcomes, budgets and shares in the service: charged as the log says, kept by a restart, verified bit for bit."""

import hashlib
import json
import math
import re

import pytest

from onepass.log.memory import MemoryStore
from onepass.log.records import OUTCOMES, Decision, Join
from onepass.log.replay import Fold
from onepass.log.sqlite import SqliteStore
from onepass.log.verification import verify
from onepass.service.arm_table_cache import fingerprint
from onepass.service.messages import ApiError, DecideRequest, OutcomeRequest
from onepass.service.metrics import Metrics
from onepass.service.settings import parse_settings
from patience import HeldClock, let_deadlines_pass
from service_process import RunningService, loops_in

PRICES = {"small": 0.25, "large": 5.0}
SETTINGS = """
name = "router"
arms = ["small", "large"]
[features]
context = 2
[reward]
wait = {wait}
[outcomes.dollars]
aggregation = "sum"
prices = {{small = 0.25, large = 5.0}}
budget = {{amount = 1.0, leash = 0.1}}
[outcomes.latency]
[operation]
checkpoint = 0.3
publish = 0.0
"""


def rules(**more):
    dollars = {"aggregation": "sum", "prices": PRICES, "budget": {"amount": 1.0, "leash": 0.1}}
    return parse_settings({
        "name": "router", "features": {"context": 2}, "arms": ["small", "large"], "reward": {"wait": 0.02},
        "outcomes": {"dollars": dollars, "latency": {}}, "operation": {"publish": 0.0}, **more,
    })  # fmt: skip


@pytest.fixture
def started(tmp_path):
    with loops_in(tmp_path, HeldClock()) as start:
        yield start


def asked(loop, t, **more):
    context = [math.sin(t), math.cos(3.0 * t)]
    return loop.decide(DecideRequest(context=context, id=f"{t}", **more)).result()


def paid(record, t):
    """Dollars of a decision: by its arm and the request."""
    return PRICES[record.offered[record.places[0]]] * (1.0 + 0.25 * math.sin(t))


def sent(loop, *requests):
    loop.outcomes([*requests])[1].result()


def played(loop, begin, end):
    """Play; dollars come with the reward, after it, in two parts, or never. Returns what the budget was charged."""
    spent = 0.0
    for t in range(begin, end):
        loop.clock.forward(0.006)
        record = asked(loop, t)
        reward, dollars = float(record.places[0] == 1 or t % 2), paid(record, t)
        if t % 4 == 0:
            sent(loop, OutcomeRequest(id=f"{t}", value=reward, outcomes={"dollars": dollars, "latency": 0.5}))
        elif t % 4 == 1:
            sent(loop, OutcomeRequest(id=f"{t}", value=reward, key="k"))
            sent(loop, OutcomeRequest(id=f"{t}", outcomes={"dollars": dollars}, key="k"))
        elif t % 4 == 2:
            for part in (0.5 * dollars, 0.5 * dollars):
                sent(loop, OutcomeRequest(id=f"{t}", outcomes={"dollars": part}))
        else:
            dollars = record.predicted["dollars"][record.places[0]]
        spent += dollars
    let_deadlines_pass(loop)
    return spent


def spending(loop):
    return loop.ledger.budgets()["dollars"]


def shown_metrics(loop):
    """Metrics of a loop by name."""
    return {one.name: one.samples[0].value for one in Metrics({"router": loop}, {})._ledgers() if one.samples}


def test_a_budget_is_charged_what_was_paid_and_else_what_was_predicted(started):
    loop = started(rules(), MemoryStore())
    spent = played(loop, 0, 120)
    state = spending(loop)
    assert state["spent"] == pytest.approx(spent, rel=1e-12)
    assert state["decisions"] == 120
    assert state["on_course"]
    assert spent <= 120 * 1.0 * 1.1
    arms = [one.places[0] for one in loop.store.read(kinds=["decision"])]
    assert 0 < sum(arms) < 120


def test_a_cost_that_would_hide_what_was_spent_is_refused_and_the_spending_stays(started):
    loop = started(rules(), MemoryStore())
    played(loop, 0, 8)
    before = spending(loop)
    with pytest.raises(ApiError, match=r"a price must be at most 1e\+09 times the budget's amount, 1e\+09, got 1e\+17"):
        asked(loop, 8, costs={"small": {"dollars": 1e17}, "large": {"dollars": 1e17}})
    assert spending(loop) == before
    assert before["spent"] > 0.0


def test_the_record_has_price_predictions_and_probabilities_and_verify_computes_them_again(started):
    store = MemoryStore()
    loop = started(rules(), store)
    played(loop, 0, 60)
    asked(loop, 60, weights={"reward": 1.0, "latency": -0.5})
    let_deadlines_pass(loop)
    loop.stop()
    records = [one for one in store.read(kinds=["decision"]) if isinstance(one, Decision)]
    assert all(one.prices.keys() == {"dollars"} for one in records)
    assert any(one.prices["dollars"] > 0.0 for one in records)
    for one in records[:-1]:
        assert one.weights == {"dollars": -one.prices["dollars"]}
        assert one.known_prices == {"dollars": PRICES[one.offered[one.places[0]]]}
    assert records[-1].weights == {"reward": 1.0, "latency": -0.5, "dollars": -records[-1].prices["dollars"]}
    found = verify(Fold.resume(store, "router", first=True))
    assert (found.ok, found.equal, found.wrong, found.left) == (True, 61, 0, {})


def test_outcomes_that_come_apart_are_joined_and_late_ones_are_learned_alone(started):
    store = MemoryStore()
    loop = started(rules(), store)
    asked(loop, 0)
    sent(loop, OutcomeRequest(id="0", outcomes={"latency": 0.75}))
    sent(loop, OutcomeRequest(id="0", value=1.0))
    sent(loop, OutcomeRequest(id="0", outcomes={"dollars": 0.25}))
    asked(loop, 1)
    sent(loop, OutcomeRequest(id="1", outcomes={"dollars": 3.0}))
    let_deadlines_pass(loop)
    sent(loop, OutcomeRequest(id="1", outcomes={"latency": 0.5, "dollars": 1.0}))
    let_deadlines_pass(loop)
    joins = [one for one in store.read(kinds=["join"]) if isinstance(one, Join)]
    each = [(one.id, one.rewards, one.outcomes, one.how) for one in joins]
    assert each == [
        ("0", [1.0], [{"dollars": 0.25, "latency": 0.75}], "earliest"),
        ("1", [0.0], [{"dollars": 3.0}], "default"),
        ("1", [None], [{"latency": 0.5}], OUTCOMES),
    ]  # fmt: skip
    assert spending(loop)["spent"] == 0.25 + 3.0 + 1.0  # what was learned is not learned twice, but it was paid
    assert loop.problem() is None


def test_an_outcome_before_its_decision_counts(started):
    loop = started(rules(), MemoryStore())
    sent(loop, OutcomeRequest(id="0", outcomes={"dollars": 0.75}))
    asked(loop, 0)
    let_deadlines_pass(loop)
    assert spending(loop)["spent"] == 0.75


def test_a_default_stands_for_an_outcome_that_never_came(started):
    store = MemoryStore()
    loop = started(rules(outcomes={"refund": {"default": 0.0}}), store)
    asked(loop, 0)
    let_deadlines_pass(loop)
    assert [one.outcomes for one in store.read(kinds=["join"])] == [[{"refund": 0.0}]]


def test_a_restart_goes_on_with_the_same_amounts_in_every_bit(started):
    store = MemoryStore()
    loop = started(rules(), store)
    played(loop, 0, 40)
    loop.learner.run_after_learning(lambda: loop.learner.save_checkpoint(always=True)).result()
    played(loop, 40, 75)
    before = spending(loop)
    loop.learner.stop()  # no checkpoint of the end
    loop.writer.stop()
    for folder in ("models", "lost"):  # by the checkpoint and the log, and by the log alone
        again = started(rules(), store, folder)
        assert spending(again) == before
        states = [one.ledger.to_dict() for one in (again, loop)]
        for one in states:
            del one["pacing"]["since"]  # when prices are solved next
        assert states[0] == states[1]
        again.stop()


def test_a_day_begins_anew_and_its_spending_is_of_the_day(started):
    day = {"dollars": {"prices": PRICES, "budget": {"amount": 40.0, "per": "day", "zone": "Europe/Berlin"}}}
    loop = started(rules(outcomes=day), MemoryStore())
    for t in range(6):
        asked(loop, t)
        sent(loop, OutcomeRequest(id=f"{t}", outcomes={"dollars": 1.5}))
    assert spending(loop)["spent"] == 9.0
    loop.clock.forward(24 * 3600.0)
    asked(loop, 6)
    sent(loop, OutcomeRequest(id="6", outcomes={"dollars": 0.5}))
    assert (spending(loop)["spent"], spending(loop)["decisions"]) == (0.5, 1)


def test_a_changed_budget_keeps_what_was_spent_and_counts_from_there(started):
    loop = started(rules(), MemoryStore())
    played(loop, 0, 20)
    dollars = {"aggregation": "sum", "prices": PRICES, "budget": {"amount": 3.0, "leash": 0.1}}
    before = spending(loop)["spent"]
    assert loop.change_settings(rules(outcomes={"dollars": dollars, "latency": {}})) == ["outcomes"]
    assert spending(loop)["left"] == 0.0
    paid_later = played(loop, 20, 30)
    state, shown = spending(loop), shown_metrics(loop)
    assert state["spent"] == pytest.approx(before + paid_later, rel=1e-12)
    assert state["left"] == pytest.approx(10 * 3.0 - paid_later)
    assert {key: shown[f"onepass_budget_{key}"] for key in ("spent", "left", "decisions")} == {
        "spent": state["spent"], "left": state["left"], "decisions": 30.0,
    }  # fmt: skip
    with pytest.raises(ApiError, match="outcomes must stay as the log has it"):
        loop.change_settings(rules(outcomes={"dollars": dollars}))
    loop.change_settings(rules(outcomes={"dollars": {}, "latency": {}}))
    assert loop.ledger.budgets() == {}
    assert asked(loop, 30).prices is None


def test_decisions_that_are_not_written_yet_count_for_those_beside_them(started):
    """Whoever asks at the same moment does not spend the same money."""
    loop = started(rules(), MemoryStore())
    played(loop, 0, 40)
    ledger, futures = loop.ledger, []
    with loop.writer.counting:  # the writer waits: none of them is charged
        for t in range(40, 60):
            futures.append(loop.decide(DecideRequest(context=[math.sin(t), math.cos(3.0 * t)], id=f"{t}")))
        reserved = ledger.pacing._present("dollars")
        assert reserved.decisions == 60
        assert reserved.total <= 60 * 1.0 * 1.1
    for one in futures:
        one.result()
    assert ledger.pacing._reserved == {}
    assert spending(loop)["decisions"] == 60
    again = loop.decide(DecideRequest(context=[math.sin(59), math.cos(177.0)], id="59")).result()
    assert again == futures[-1].result()
    assert spending(loop)["decisions"] == 60


def test_a_repeated_id_leaves_prices_and_reserves_as_they_were(started):
    loop = started(rules(), MemoryStore())
    played(loop, 0, 43)
    first = {t: asked(loop, t) for t in range(43, 60)}
    ledger = loop.ledger

    def state():
        return ledger.to_dict(), ledger.pacing.to_dict()

    before = state()
    for t, record in first.items():
        assert asked(loop, t) == record
    assert state() == before
    with loop.writer.counting:  # the writer waits: the repeated ones are not answered
        again = loop.decide(DecideRequest(context=[math.sin(59), math.cos(177.0)], id="59"))
        new = [loop.decide(DecideRequest(context=[0.5, 0.5], id="60")) for _ in range(2)]
        assert ledger.pacing._present("dollars").decisions == 61
    assert again.result() == first[59]
    assert new[0].result() == new[1].result()
    assert spending(loop)["decisions"] == 61
    assert ledger.pacing._reserved == {}


def test_shares_are_kept(started):
    outcomes = {"dollars": {"prices": PRICES}}
    loop = started(rules(outcomes=outcomes, shares={"arms": {"large": {"most": 0.1}}}), MemoryStore())
    for t in range(240):
        record = asked(loop, t)
        sent(loop, OutcomeRequest(id=f"{t}", value=float(record.places[0] == 1)))
        if t % 8 == 0:
            let_deadlines_pass(loop)
    arms = [one.places[0] for one in loop.store.read(kinds=["decision"])]
    assert sum(arms[120:]) <= 0.15 * 120


BAD_REQUESTS = {
    "slots": (DecideRequest(context=[0.0, 0.0], slots=2), "slots must be 1 in a loop with budgets"),
    "defer": (DecideRequest(context=[0.0, 0.0], defer=True), "defer must be false"),
    "price": (DecideRequest(context=[0.0, 0.0], costs={"small": {"dollars": 0.0}}), "above 0"),
    "arm": (DecideRequest(context=[0.0, 0.0], costs={"huge": {"dollars": 1.0}}), "costs must be of arms on offer"),
    "weight": (DecideRequest(context=[0.0, 0.0], weights={"euros": 1.0}), "weights must be of"),
}


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_a_request_that_does_not_fit_is_refused_and_reserves_nothing(started, name):
    loop = started(rules(), MemoryStore())
    request, sentence = BAD_REQUESTS[name]
    with pytest.raises(ApiError, match=sentence):
        loop.decide(request)
    assert loop.ledger.pacing._reserved == {}
    assert spending(loop)["decisions"] == 0


BAD_OUTCOMES = {
    "no value": (OutcomeRequest(id="0"), "value or outcomes must be given"),
    "unknown": (OutcomeRequest(id="0", outcomes={"euros": 1.0}), "outcomes must be of the settings"),
    "negative": (OutcomeRequest(id="0", outcomes={"dollars": -1.0}), "dollars must be at least 0"),
    "not finite": (OutcomeRequest(id="0", outcomes={"latency": math.inf}), "latency must be a finite number"),
}


@pytest.mark.parametrize("name", BAD_OUTCOMES)
def test_an_outcome_that_does_not_fit_is_refused(started, name):
    loop = started(rules(), MemoryStore())
    request, sentence = BAD_OUTCOMES[name]
    with pytest.raises(ApiError, match=sentence):
        loop.outcomes([request])


def test_a_request_without_prices_has_the_digest_that_earlier_versions_gave_it():
    text = (
        b'{"context":[1.0],"arms":null,"exclude":[],"slots":1,"id":"x","defer":false,"subject":null,"rest":"sampled"}'
    )
    arms = hashlib.blake2b(b"null", digest_size=16).digest()
    request = DecideRequest(context=[1.0], id="x")
    assert fingerprint(request) == hashlib.blake2b(text + arms, digest_size=16).hexdigest()
    assert fingerprint(DecideRequest(context=[1.0], id="x", weights={"reward": 1.0})) != fingerprint(request)


# ---- over HTTP ----


def gauge(text, name):
    return float(re.search(rf'^onepass_{name}\{{loop="router",outcome="dollars"\}} (\S+)$', text, re.M)[1])


@pytest.mark.parametrize("workers", [0, 2])
def test_a_killed_service_keeps_what_was_spent_to_the_last_cent(tmp_path, workers):
    path = tmp_path / "router.toml"
    path.write_text(SETTINGS.format(wait=0.1))
    options = ("--workers", f"{workers}")
    service, spent = RunningService(tmp_path / "data", path, options=options), 0.0

    def play(client, begin, end):
        total = 0.0
        for t in range(begin, end):
            body = {"context": [math.sin(t), math.cos(3.0 * t)], "id": f"{t}"}
            answer = client.post("/v1/router/decide", json=body)
            assert answer.status_code == 200, answer.text
            found = answer.json()
            assert found["prices"].keys() == {"dollars"}
            assert math.isclose(sum(one["probability"] for one in found["ranking"]), 1.0)
            dollars = PRICES[found["arm"]] * (1.0 + 0.25 * math.sin(t))
            said = client.post("/v1/router/outcome", json={"id": f"{t}", "value": 1.0, "key": "r"})
            assert said.json() == {"accepted": 1, "new": 1}
            for _ in range(2):
                outcomes = {"dollars": dollars, "latency": 0.5}
                said = client.post("/v1/router/outcome", json={"id": f"{t}", "outcomes": outcomes, "key": "o"})
            assert said.json() == {"accepted": 2, "new": 0}
            total += dollars
        return total

    spent += play(service.client, 0, 40)
    before = service.client.get("/metrics").text
    service.kill()
    service = RunningService(tmp_path / "data", path, options=options)
    after = service.client.get("/metrics").text
    assert gauge(after, "budget_spent") == gauge(before, "budget_spent") == pytest.approx(spent, rel=1e-12)
    assert gauge(after, "budget_decisions") == 40
    spent += play(service.client, 40, 60)
    text = service.ready("router")
    assert gauge(text, "budget_spent") == pytest.approx(spent, rel=1e-12)
    assert spent <= 60 * 1.0 * 1.1
    overview = service.client.get("/v1/router/overview").json()
    assert overview["budgets"]["dollars"]["spent"] == gauge(text, "budget_spent")
    assert overview["baseline"] is None
    lines = service.client.get("/v1/router/log", params={"limit": 10_000}).text.splitlines()
    joins = [one for one in map(json.loads, lines) if one["kind"] == "join" and one.get("count") == 3]
    assert all(one["outcomes"][0].keys() == {"dollars", "latency"} for one in joins)
    assert service.stop() == 0
    with SqliteStore(tmp_path / "data" / "router.sqlite") as store:
        found = verify(Fold.resume(store, "router", first=True))
        assert (found.ok, found.equal, found.wrong) == (True, 60, 0)
