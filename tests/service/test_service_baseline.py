"""A baseline and guardrails in the service: the mixture that is logged, verified, and kept by a restart."""

import re
from base64 import b64encode

import numpy as np
import pytest

import onepass as op
from onepass.log.memory import MemoryStore
from onepass.log.records import Decision
from onepass.log.replay import Fold
from onepass.log.sqlite import SqliteStore
from onepass.log.verification import verify
from onepass.service.messages import ApiError, DecideRequest, OutcomeRequest, RecordsRequest
from onepass.service.settings import parse_settings, read_file
from onepass.service.share_verification import verify_shares
from patience import HeldClock, let_deadlines_pass
from service_process import RunningService, loops_in

REFUND = {"default": 0.0, "guardrail": {"at_most": 1.0, "upper": 1.0}}
SETTINGS = """
name = "safe"
arms = ["old", "new"]
[features]
context = 1
[reward]
wait = 0.1
[baseline]
arm = "old"
loss = 0.3
[outcomes.refund]
default = 0.0
guardrail = {at_most = 1.02}
[operation]
checkpoint = 0.3
publish = 0.0
"""


def rules(**more):
    return parse_settings({
        "name": "safe", "features": {"context": 1}, "arms": ["old", "new"], "reward": {"wait": 0.02},
        "baseline": {"arm": "old", "loss": 0.3}, "operation": {"publish": 0.0}, **more,
    })  # fmt: skip


@pytest.fixture
def started(tmp_path):
    with loops_in(tmp_path, HeldClock()) as start:
        yield start


def decided(loop, t, **more):
    return loop.decide(DecideRequest(context=[1.0], id=f"{t}", **more)).result()


def played(loop, begin, end, refunds=(0.0, 0.0)):
    """Play a game in which the new arm earns more: 0.9 instead of 0.5."""
    rng = np.random.default_rng(begin)
    for t in range(begin, end):
        arm = decided(loop, t).places[0]
        outcomes = {"refund": float(rng.random() < refunds[arm])} if loop.settings.outcomes else None
        loop.outcomes([OutcomeRequest(id=f"{t}", value=float(rng.random() < (0.5, 0.9)[arm]), outcomes=outcomes)])
        loop.clock.forward(0.006)
    let_deadlines_pass(loop)


def decisions_of(store):
    return [one for one in store.read(kinds=["decision"]) if isinstance(one, Decision)]


def test_the_loop_starts_as_the_baseline_and_opens_by_evidence(started):
    store = MemoryStore()
    loop = started(rules(), store)
    played(loop, 0, 150)
    records, state = decisions_of(store), loop.ledger.guard()
    assert (records[0].mixture["share"], records[0].probabilities) == (0.0, [1.0, 0.0])
    assert records[-1].mixture["share"] > 0.5
    assert state["decisions"] == 150
    assert state["deviations"] == sum(one.places[0] for one in records) > 5
    assert state["slack"] > 0.0
    assert all(one.baseline == [0] for one in records)


def test_verify_computes_the_mixture_again_and_finds_what_was_changed(started):
    store = MemoryStore()
    loop = started(rules(), store)
    played(loop, 0, 60)
    loop.stop()
    found = verify(Fold.resume(store, "safe", first=True))
    assert (found.ok, found.equal, found.wrong, found.left) == (True, 60, 0, {})
    for one in decisions_of(store):
        mixed = one.mixture
        m = [
            (1 - mixed["share"]) * b + mixed["share"] * p
            for b, p in zip(mixed["baseline"], mixed["policy"], strict=True)
        ]
        assert one.probabilities == m
        assert one.propensities == [m[one.places[0]]]


def changed(store, identity, change):
    """Return a copy of a log in which `change` has changed the record of one decision."""
    other = MemoryStore()
    for record in store.read():
        if isinstance(record, Decision) and record.id == identity:
            change(record)
        other.append([record])
    return other


def test_the_share_of_the_bandit_follows_from_the_log_in_every_bit(started):
    store = MemoryStore()
    loop = started(rules(outcomes={"refund": REFUND}), store)
    played(loop, 0, 60)
    with loop.writer.counting:  # nothing is written meanwhile, so these decisions are reserved
        futures = [loop.decide(DecideRequest(context=[1.0], id=f"together {t}")) for t in range(5)]
    assert [len(one.result().extra["evidence"]["waiting"]) for one in futures] == [0, 1, 2, 3, 4]
    loop.stop()
    again = started(loop.settings, store)  # from its checkpoint
    played(again, 60, 90)
    again.stop()
    assert verify_shares(store, "safe") == (95, 95, (), {})

    def raise_share(record):
        record.mixture["share"] = float(np.nextafter(record.mixture["share"], 1.0))

    found = verify_shares(changed(store, "80", raise_share), "safe")
    assert (found.equal, len(found.wrong), found.ok) == (94, 1, False)
    found = verify_shares(changed(store, "80", lambda record: record.extra.clear()), "safe")
    assert (found.equal, found.ok, [*found.left.values()]) == (94, True, [1])


@pytest.mark.parametrize("part", ["share", "policy", "baseline"])
def test_verify_notices_a_mixture_that_cannot_be(started, part):
    store = MemoryStore()
    loop = started(rules(), store)
    played(loop, 0, 60)
    loop.stop()
    # a policy that no model has: one that has learned nothing yet, as on a slow machine, has [0.5, 0.5]
    wrong = {"share": 0.25, "policy": [0.3, 0.7], "baseline": [0.5, 0.5]}[part]
    other = changed(store, "59", lambda record: record.mixture.update({part: wrong}))
    assert verify(Fold.resume(other, "safe", first=True)).wrong == 1


def test_a_broken_guardrail_leaves_the_baseline_alone_until_it_is_resumed(started):
    store = MemoryStore()
    loop = started(rules(outcomes={"refund": REFUND}, baseline={"arm": "old", "loss": 0.3, "alpha": 0.5}), store)
    played(loop, 0, 400, refunds=(0.0, 1.0))
    state = loop.ledger.guard()
    assert state["stopped"] == ("refund",)
    assert state["guardrails"]["refund"]["evidence"] >= state["guardrails"]["refund"]["needed"]
    assert decided(loop, 400).mixture["share"] == 0.0
    with pytest.raises(ApiError, match="there is no guardrail 'clicks'"):
        loop.resume("clicks")
    loop.resume("refund")
    assert loop.ledger.guard()["stopped"] == ()
    assert decided(loop, 401).mixture["share"] > 0.0
    played(loop, 402, 410, refunds=(0.0, 1.0))
    resumed = loop.ledger.guard()
    with pytest.raises(ApiError, match="guardrail 'refund' is not broken"):
        loop.resume("refund")  # the evidence since then stays
    assert loop.ledger.guard() == resumed
    loop.stop()
    assert started(loop.settings, store, "lost").ledger.guard() == loop.ledger.guard()


def test_a_restart_goes_on_with_the_same_promise_in_every_bit(started):
    store = MemoryStore()
    loop = started(rules(outcomes={"refund": REFUND}), store)
    played(loop, 0, 50)
    loop.learner.run_after_learning(lambda: loop.learner.save_checkpoint(always=True)).result()
    played(loop, 50, 90)
    loop.learner.stop()
    loop.writer.stop()
    for folder in ("models", "lost"):
        again = started(loop.settings, store, folder)
        assert again.ledger.to_dict() == loop.ledger.to_dict()
        again.stop()


def test_a_decision_that_is_not_written_yet_lessens_the_share_of_others(started):
    loop = started(rules(), MemoryStore())
    played(loop, 0, 100)
    futures = []
    with loop.writer.counting:
        for t in range(100, 130):
            futures.append(loop.decide(DecideRequest(context=[1.0], id=f"{t}")))
        promise = loop.ledger.promise
        assert len(promise._reserved) == 30
    records = [one.result() for one in futures]
    misses = np.cumsum([one.places[0] for one in records])
    shares = [one.mixture["share"] for one in records]
    assert all(b <= a for a, b, count in zip(shares, shares[1:], misses, strict=False) if count)
    assert loop.ledger.promise._reserved == {}


def test_the_baseline_is_the_first_arm_of_the_request_or_one_that_its_field_names(started):
    loop = started(rules(baseline={}), MemoryStore())
    assert decided(loop, 0, arms=["new", "old"]).places == [0]
    assert decided(loop, 1, arms=["new", "old"], exclude=["new"]).places == [1]
    records = rules(features={"records": True}, baseline={"field": "now"}, name="safer")
    loop = started(records, MemoryStore(), "others")
    asked = {"context": {"now": "new", "country": "de"}, "id": "0"}
    assert loop.decide(RecordsRequest(**asked)).result().places == [1]
    with pytest.raises(ApiError, match="context must have 'now'"):
        loop.decide(RecordsRequest(context={"country": "de"}))


def test_a_request_without_the_baselines_arm_is_refused(started):
    loop = started(rules(), MemoryStore())
    for more in ({"arms": ["new"]}, {"exclude": ["old"]}):
        with pytest.raises(ApiError, match="the baseline's arm 'old' must be among the arms on offer"):
            loop.decide(DecideRequest(context=[1.0], **more))
    assert loop.ledger.guard()["decisions"] == 0


def saved_bandit(seed=0):
    """Return a saved bandit for the loop's rows, which mostly shows the old arm."""
    bandit = op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=1))), op.EpsilonGreedy(0.4), seed=seed)
    bandit.learn([[1.0], [1.0]], [1.0, 0.0], arm=["old", "new"])
    return bandit


def test_a_saved_bandit_is_the_baseline_and_its_draws_are_in_the_log(started, tmp_path):
    saved_bandit().save(tmp_path / "rule")
    path = tmp_path / "safe.toml"
    path.write_text(SETTINGS.replace('arm = "old"\n', 'file = "rule"\n'))
    settings, _ = read_file(path)
    store = MemoryStore()
    loop = started(settings, store)
    played(loop, 0, 60)
    records = decisions_of(store)
    assert records[0].mixture["baseline"] == [0.8, 0.2]
    assert {one.mixture["place"] for one in records} == {0, 1}
    loop.stop()
    again = started(loop.settings, store, "lost")  # the bandit is in the log
    assert again.ledger.guard() == loop.ledger.guard()
    played(again, 60, 80)
    again.stop()
    found = verify(Fold.resume(store, "safe", first=True))
    assert (found.ok, found.equal) == (True, 80)
    assert verify_shares(store, "safe").equal == 80


@pytest.mark.parametrize(
    ("baseline", "sentence"),
    [
        ({"saved": "no bandit"}, "baseline.saved must be the bytes of a saved bandit"),
        ({"saved": b64encode(op.to_bytes(op.Exact(dim=1))).decode()}, "baseline.saved must be a saved"),
        ({"saved": "A" * (1 << 21)}, "baseline.saved must have at most"),
        ({"saved": "", "arm": "old"}, "baseline must have one of arm, field and file"),
    ],
)
def test_a_baseline_that_is_no_saved_bandit_is_refused(baseline, sentence):
    with pytest.raises(ValueError, match=sentence):
        rules(baseline=baseline)


def test_a_file_of_the_baseline_that_is_not_there_is_refused(tmp_path):
    path = tmp_path / "safe.toml"
    path.write_text(SETTINGS.replace('arm = "old"\n', 'file = "rule"\n'))
    with pytest.raises(ValueError, match=r"baseline\.file cannot be read"):
        read_file(path)


DOLLARS = {"prices": {"old": 1.0, "new": 3.0}, "default": 1.0}


def test_budgets_come_before_the_baseline_and_both_are_kept(started):
    budget = {"dollars": {**DOLLARS, "budget": {"amount": 2.5}}}
    store = MemoryStore()
    loop = started(rules(outcomes=budget), store)
    spent = []
    for t in range(200):
        arm = decided(loop, t).places[0]
        spent.append((1.0, 3.0)[arm])
        loop.outcomes([OutcomeRequest(id=f"{t}", value=(0.5, 1.0)[arm], outcomes={"dollars": spent[-1]})])
        loop.clock.forward(0.006)
    let_deadlines_pass(loop)
    records = decisions_of(store)
    assert records[-1].mixture["share"] > 0.5
    assert (np.cumsum(spent) <= 2.5 * np.arange(1, 201) + 2.0).all()
    assert loop.ledger.guard()["slack"] > 0.0
    loop.stop()
    again = started(loop.settings, store, "lost")
    assert (again.ledger.guard(), again.ledger.budgets()) == (loop.ledger.guard(), loop.ledger.budgets())
    again.stop()
    found = verify(Fold.resume(store, "safe", first=True))
    assert (found.ok, found.equal) == (True, 200)
    assert verify_shares(store, "safe").equal == 200


def test_a_budget_that_stops_the_baselines_arm_replaces_it_by_the_cheapest(started):
    budget = {"dollars": {**DOLLARS, "budget": {"amount": 1.5}}}
    loop = started(rules(outcomes=budget, baseline={"arm": "new", "loss": 0.3}), MemoryStore())
    spent = 0.0
    for t in range(60):
        record = decided(loop, t)
        spent += (1.0, 3.0)[record.places[0]]
        assert spent <= 1.5 * (t + 1) + 2.0
        assert record.mixture["baseline"][record.mixture["place"]] == 1.0
        loop.outcomes([OutcomeRequest(id=f"{t}", value=0.5, outcomes={"dollars": (1.0, 3.0)[record.places[0]]})])
        loop.clock.forward(0.006)
    places = [one.mixture["place"] for one in decisions_of(loop.store)]
    assert 0.1 < np.mean(places) < 0.5


def test_a_killed_service_keeps_its_promise_and_its_log_verifies(tmp_path):
    path = tmp_path / "safe.toml"
    path.write_text(SETTINGS)
    service = RunningService(tmp_path / "data", path)

    def play(client, begin, end):
        for t in range(begin, end):
            found = client.post("/v1/safe/decide", json={"context": [1.0], "id": f"{t}"}).json()
            assert 0.0 <= found["share"] < 1.0
            value = float(found["arm"] == "new" or t % 2)
            body = {"id": f"{t}", "value": value, "outcomes": {"refund": 0.0}, "key": "r"}
            assert client.post("/v1/safe/outcome", json=body).json() == {"accepted": 2, "new": 2}

    def gauges(text):
        return re.findall(r'^onepass_(?:baseline|guardrail)_\w+\{loop="safe".*\} \S+$', text, re.M)

    play(service.client, 0, 40)
    before = gauges(service.ready("safe"))
    assert len(before) == 5
    service.kill()
    service = RunningService(tmp_path / "data", path)
    assert gauges(service.client.get("/metrics").text) == before
    play(service.client, 40, 60)
    service.ready("safe")
    state = service.client.get("/v1/safe/overview").json()["baseline"]
    assert (state["decisions"], state["stopped"]) == (60, [])
    answer = service.client.post("/v1/safe/resume", json={"outcome": "refund"})
    assert answer.status_code == 409  # it is not broken
    assert service.client.post("/v1/safe/resume", json={"outcome": "clicks"}).status_code == 404
    assert service.stop() == 0
    with SqliteStore(tmp_path / "data" / "safe.sqlite") as store:
        found = verify(Fold.resume(store, "safe", first=True))
        assert (found.ok, found.equal, found.wrong) == (True, 60, 0)
        assert verify_shares(store, "safe") == (60, 60, (), {})
