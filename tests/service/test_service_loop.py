"""A loop in this process: restarts, stores that fail, clocks that jump, apprentices; each beside what the log says."""

import threading
import time
from collections import deque

import numpy as np
import pytest

import onepass as op
from counts import repetitions
from onepass.evaluation.events import event_rows
from onepass.log import Decision, Event, Join
from onepass.log.memory import MemoryStore
from onepass.log.replay import Fold
from onepass.log.sqlite import SqliteStore
from onepass.log.store import StoreError
from onepass.log.verification import verify
from onepass.service import clock as clocks
from onepass.service.accounting_settings import LARGEST
from onepass.service.clock import Clock
from onepass.service.loop import Loop
from onepass.service.messages import ApiError, DecideRequest, OutcomeRequest
from onepass.service.responses import decision_answer
from onepass.service.settings import make_bandit, parse_settings
from patience import PATIENCE, HeldClock, wait_until_learned
from service_process import ATTEMPTS

ARMS = ["a", "b", "c"]
MODEL = {"recipe": "OFUL", "seed": 2, "arguments": {"model": "disjoint", "reg": 0.5,
                                  "exploration": {"kind": "Thompson", "exploration": 0.4, "draws": 5}}}  # fmt: skip


def rules(wait=0.05, **more):
    return parse_settings({
        "name": "news", "features": {"context": 3}, "arms": ARMS, "model": MODEL, "reward": {"wait": wait},
        "operation": {"publish": 0.0}, **more,
    })  # fmt: skip


def request(t, **fields):
    return DecideRequest(context=np.random.default_rng(t).standard_normal(3).tolist(), id=f"{t}", **fields)


def played(loop, begin, end):
    for t in range(begin, end):
        record = loop.decide(request(t)).result()
        if t % 2:
            loop.outcomes([OutcomeRequest(id=record.id, value=float(record.places[0] == t % 3), key="k")])[1].result()


@pytest.fixture
def started():
    """Loops that end with their test."""
    loops = []

    def start(settings, store, folder, clock=Clock):
        loops.append(Loop(settings, store, folder, clock))
        return loops[-1]

    yield start
    for loop in loops:
        if loop.writer.is_alive():
            loop.stop()


@pytest.mark.parametrize("leave", [60.0, 0.0], ids=["all is learned first", "nothing more is learned"])
def test_a_loop_that_stops_and_starts_has_the_model_of_one_that_went_on(started, tmp_path, monkeypatch, leave):
    monkeypatch.setattr("onepass.service.learner.LEAVE", leave)
    store, folder = MemoryStore(), tmp_path / "models"
    for life in range(4):
        loop = started(rules(), store, folder)
        played(loop, 10 * life, 10 * life + 10)
        if life == 1:
            wait_until_learned(loop)
        loop.stop()
        if life == 1:
            for file in folder.iterdir():
                file.write_bytes(b"damaged")
    loop = started(rules(), store, folder)
    wait_until_learned(loop)
    twin = Fold(store, "news", make_bandit(rules()))
    assert twin.advance() == 40
    assert op.to_bytes(loop.learner.fold.bandit) == op.to_bytes(twin.bandit)
    found = verify(Fold.resume(store, "news", first=True))
    assert (found.ok, found.equal, found.others) == (True, 40, ())


def test_requests_of_one_id_at_the_same_time_get_one_answer(started, tmp_path):
    loop = started(rules(), MemoryStore(), tmp_path / "models")
    answers, start = [], threading.Barrier(8)

    def ask():
        start.wait()
        answers.append(decision_answer(loop.decide(request(1)).result()))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(answers) == 8
    assert all(one == answers[0] for one in answers)
    assert sum(1 for _ in loop.store.read(kinds=["decision"])) == 1
    with pytest.raises(ApiError, match="was used by another request"):
        loop.decide(request(1, slots=2)).result()


def failing(store, how):
    """Let a store fail until it is told to go on: nothing of a batch is stored, or all of it and nobody is told.

    A look whether it can be written fails as well: else the loop has no problem any more a fifth of a second later.
    """
    put, probe, state = store.put, store.probe, {"failing": True}

    def probed():
        if state["failing"]:
            raise StoreError("the disk is full")
        probe()

    def failed(rows):
        if not state["failing"]:
            return put(rows)
        if how == "unknown":
            put(rows)
        raise StoreError("the disk is full")

    store.put, store.probe = failed, probed
    return lambda: state.update(failing=False)


@pytest.mark.parametrize("how", ["nothing", "unknown"])
def test_a_store_that_fails_is_told_and_what_it_holds_counts_once(started, tmp_path, how):
    store, clock = MemoryStore(), HeldClock()
    loop = started(rules(wait=0.3), store, tmp_path / "models", clock)
    played(loop, 0, 4)
    again = failing(store, how)
    with pytest.raises(StoreError, match="disk is full"):
        loop.decide(request(4)).result()
    paid = [OutcomeRequest(id="0", value=1.0, key="k")]
    with pytest.raises(StoreError, match="disk is full"):
        loop.outcomes(paid)[1].result()
    assert "the disk is full" in loop.problem()
    clock.forward(0.5)
    again()
    played(loop, 4, 8)
    loop.outcomes(paid)[1].result()
    clock.forward(0.5)
    wait_until_learned(loop)
    assert loop.problem() is None
    joins = {one.id: one for one in store.read(kinds=["join"])}
    assert len(joins) == sum(1 for _ in store.read(kinds=["join"])) == 8
    assert joins["0"].how == ("earliest" if how == "unknown" else "default")
    loop.stop()
    twin = Fold(store, "news", make_bandit(rules()))
    twin.advance()
    assert op.to_bytes(loop.learner.fold.bandit) == op.to_bytes(twin.bandit)


@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
def test_a_clock_that_is_set_an_hour_forth_or_back_moves_no_deadline(started, tmp_path, monkeypatch, jump):
    """Machines may be slow: outcomes are sent until one is in time by the log."""
    store, true = MemoryStore(), time.time_ns
    loop = started(rules(wait=0.2), store, tmp_path / "models")
    for t in range(ATTEMPTS):
        due = loop.decide(request(t)).result().extra["due"]
        monkeypatch.setattr(clocks.time, "time_ns", lambda: true() + int(jump * 1e9))
        (paid,), kept = loop.outcomes([OutcomeRequest(id=f"{t}", value=1.0)])
        kept.result()
        if paid.time <= due:
            break
        monkeypatch.setattr(clocks.time, "time_ns", true)
    loop.decide(request(t + 1)).result()
    wait_until_learned(loop)
    loop.stop()
    loop = started(rules(wait=0.2), store, tmp_path / "models")
    loop.decide(request(t + 2)).result()
    times = [one.time for one in store.read()]
    assert times == sorted(times)
    assert [one.rewards for one in store.read(kinds=["join"])][t : t + 2] == [[1.0], [0.0]]


def test_an_apprentice_shows_the_first_arm_and_learns_what_was_shown(started, tmp_path):
    store = MemoryStore()
    loop = started(rules(mode="apprentice"), store, tmp_path / "models")
    found = [decision_answer(loop.decide(request(t, exclude=["a"])).result()) for t in range(10)]
    assert {(one.arm, one.propensity) for one in found} == {("b", 1.0)}
    wait_until_learned(loop)
    assert loop.learner.fold.bandit.model.rows_of("b") == 10
    assert verify(Fold.resume(store, "news", first=True)).equal == 10


def test_an_apprentice_that_explores_logs_the_probability_of_what_it_shows(started, tmp_path):
    n, share = repetitions(300, 3_000), 0.3
    store = MemoryStore()
    loop = started(rules(mode="apprentice", exploring=share, wait=60.0), store, tmp_path / "models")
    waiting = [loop.decide(request(t)) for t in range(n)]
    records = [one.result() for one in waiting]
    answers = [decision_answer(one) for one in records]
    assert {one.propensity for one in answers} == {1.0 - share + share / 3, share / 3}
    counts = [sum(one.arm == arm for one in answers) for arm in ARMS]
    for count, p in zip(counts, (1.0 - share + share / 3, share / 3, share / 3), strict=True):
        assert abs(count - n * p) < 4.5 * np.sqrt(n * p * (1.0 - p))  # seeds are fixed; the margin is 7e-6
    place, _, propensity, chances, *_ = next(event_rows(Event(records[0]), None, 0.0))
    assert ARMS[place] == answers[0].arm
    assert propensity == chances[place] == answers[0].propensity


def test_a_loop_that_only_logs_learns_nothing(started, tmp_path):
    store = MemoryStore()
    loop = started(rules(mode="logging"), store, tmp_path / "models")
    played(loop, 0, 4)
    wait_until_learned(loop)
    assert loop.learner.fold.bandit.n_learned == 0
    assert [*store.read(kinds=["join"])] == []


def test_a_log_of_another_model_is_refused_and_other_settings_go_on(started, tmp_path):
    store = MemoryStore()
    loop = started(rules(), store, tmp_path / "models")
    played(loop, 0, 3)
    loop.stop()
    with pytest.raises(ValueError, match="features must be as the log has it"):
        Loop(rules(features={"context": 4}), store, tmp_path / "models")
    loop = started(rules(), store, tmp_path / "models")
    assert loop.change_settings(rules(wait=1.0)) == ["reward"]
    loop.stop()
    loop = started(rules(), store, tmp_path / "models")
    assert loop.settings.reward.wait == 1.0  # the file has not changed since
    wait_until_learned(loop)
    kinds = [type(one) for one in store.read() if isinstance(one, Decision | Join)]
    assert kinds.count(Join) == kinds.count(Decision) == 3


def test_verify_agrees_in_every_bit_with_a_run_that_decided_and_learned_at_once(started, tmp_path):
    """Decisions by models of every age, with 1 to 3 slots, excluded arms, and rewards that come while others decide."""
    n = repetitions(300, 100_000)
    with SqliteStore(tmp_path / "log", synced=False) as store:
        settings = rules(wait=0.2, operation={"publish": 0.01, "checkpoint": 5.0})
        loop = started(settings, store, tmp_path / "models")
        waiting = deque()
        for t in range(n):
            excluded = ARMS[t % 5 : t % 5 + 1]
            waiting.append(loop.decide(request(t, slots=1 + t % (3 - len(excluded)), exclude=excluded)))
            if len(waiting) > 20:
                record = waiting.popleft().result()
                loop.outcomes([OutcomeRequest(id=record.id, value=float(t % 3 == 0), key="k")])
        wait_until_learned(loop)
        loop.stop()
        found = verify(Fold.resume(store, "news", first=True))
        assert (found.ok, found.equal, found.joins, found.others) == (True, n, n, ())
        assert found.checkpoints >= 2


def test_a_client_that_goes_away_stops_nobody(started, tmp_path):
    clock = HeldClock()
    loop = started(rules(wait=0.3), MemoryStore(), tmp_path / "models", clock)
    for t in range(20):
        loop.decide(request(t)).cancel()
        loop.outcomes([OutcomeRequest(id=f"{t}", value=1.0, key="k")])[1].cancel()
    assert [loop.decide(request(t)).result(PATIENCE).id for t in range(20)] == [f"{t}" for t in range(20)]
    clock.forward(0.5)
    wait_until_learned(loop)
    assert loop.problem() is None
    assert [one.rewards for one in loop.store.read(kinds=["join"])] == [[1.0]] * 20


def test_sums_of_the_largest_values_are_limited_and_larger_ones_refused(started, tmp_path):
    clock = HeldClock()
    settings = rules(reward={"wait": 0.2, "aggregation": "sum"})
    loop = started(settings, MemoryStore(), tmp_path / "models", clock)
    loop.decide(request(1)).result()
    with pytest.raises(ApiError, match="must be a finite number up to"):
        loop.outcomes([OutcomeRequest(id="1", value=1.7e308)])
    loop.outcomes([OutcomeRequest(id="1", value=LARGEST)] * 100)[1].result()
    clock.forward(0.5)
    wait_until_learned(loop)
    assert [(one.rewards, one.how) for one in loop.store.read(kinds=["join"])] == [([1.0], "sum, limited")]


@pytest.mark.parametrize("budget", [{}, {"budget": {"amount": 1.0}}])
def test_after_outcomes_of_the_largest_size_the_loop_decides_and_larger_ones_are_refused(started, tmp_path, budget):
    clock = HeldClock()
    loop = started(rules(model={}, outcomes={"cost": budget}), MemoryStore(), tmp_path / "models", clock)
    for t in range(4):
        loop.decide(request(t)).result()
        with pytest.raises(ApiError, match=r"cost must be a finite number up to 1e\+30, got 1e\+50"):
            loop.outcomes([OutcomeRequest(id=f"{t}", outcomes={"cost": 1e50})])
        loop.outcomes([OutcomeRequest(id=f"{t}", value=1.0, outcomes={"cost": LARGEST})])[1].result()
        clock.forward(0.5)
        wait_until_learned(loop)
    assert np.isfinite(loop.decide(request(4)).result().predicted["cost"]).all()
    assert loop.problem() is None


def test_a_log_that_lost_its_end_and_went_on_is_not_taken_for_the_one_of_the_checkpoint(started, tmp_path):
    whole, cut, folder = MemoryStore(), MemoryStore(), tmp_path / "models"
    loop = started(rules(), whole, folder)
    played(loop, 0, 10)
    wait_until_learned(loop)
    loop.stop()
    cut.append([*whole.read(until=whole.last - 12)])
    loop = started(rules(), cut, tmp_path / "no models")
    played(loop, 100, 115)
    wait_until_learned(loop)
    loop.stop()
    assert cut.last > whole.last
    loop = started(rules(), cut, folder)
    twin = Fold(cut, "news", make_bandit(rules()))
    twin.advance()
    assert op.to_bytes(loop.learner.fold.bandit) == op.to_bytes(twin.bandit)
