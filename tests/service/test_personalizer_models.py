"""Models that are replaced and logs that are deleted: what is left goes on, replays and verifies as exactly."""

import pytest

import onepass as op
from onepass.log.memory import MemoryStore
from onepass.log.model_lineage import read_lineage
from onepass.log.replay import Fold
from onepass.log.sqlite import SqliteStore
from onepass.log.verification import verify
from onepass.service.clock import Clock
from onepass.service.loop import Loop
from onepass.service.messages import OutcomeRequest, RecordArm, RecordsRequest
from onepass.service.personalizer.configuration import follow_policy
from onepass.service.personalizer.counterfactuals import PolicyRun, weigh_policies
from onepass.service.personalizer.errors import Problem
from onepass.service.personalizer.model_and_logs import delete_old_records, install_model, parse_model
from onepass.service.personalizer.time_index import decision_times, has_decisions_between, seq_before
from onepass.service.settings import make_bandit, parse_settings
from patience import HeldClock, until, wait_until_learned

SMALL = {"kind": "Records", "size": 16, "standardize": True}


def rules(wait=0.05, publish=0.0):
    return parse_settings({
        "name": "shop", "model": {"recipe": "InteractionBandit", "arguments": {"context": SMALL, "item": SMALL}},
        "reward": {"wait": wait}, "operation": {"publish": publish},
    })  # fmt: skip


@pytest.fixture
def started(tmp_path):
    """Loops that end with their test."""
    loops = []

    def start(store, wait=0.05, publish=0.0, clock=Clock):
        loops.append(Loop(rules(wait, publish), store, tmp_path / "models", clock))
        return loops[-1]

    yield start
    for loop in loops:
        if loop.writer.is_alive():
            loop.stop()


def played(loop, begin, end):
    for t in range(begin, end):
        arms = [RecordArm(id=f"a{j}", features={"n": float(j)}) for j in range(3)]
        loop.decide(RecordsRequest(context={"t": float(t)}, arms=arms, id=f"{t}")).result()
        loop.outcomes([OutcomeRequest(id=f"{t}", value=0.5, key="k")])[1].result()


def all_verified(store):
    for line in read_lineage(store, "shop").each:
        if any(one.line == line and one.data for one in store.read(kinds=["checkpoint"])):
            found = verify(Fold.resume(store, "shop", first=True, line=line))
            assert (found.ok, found.equal, found.others) == (True, found.decisions, ())


@pytest.mark.parametrize("files", ["kept", "deleted"])
def test_after_its_log_was_deleted_a_loop_goes_on_with_its_model_and_what_waited(started, tmp_path, files):
    with SqliteStore(tmp_path / "shop.sqlite") as store:
        seldom = 3600.0  # so that what serves knows less than what has learned
        loop = started(store, publish=seldom)
        played(loop, 0, 10)
        wait_until_learned(loop)
        loop.change_settings(rules(wait=3600.0, publish=seldom))
        played(loop, 10, 13)
        begun_at = store.last
        delete_old_records(loop)
        assert store.first > begun_at - 10
        assert [one.id for one in store.read(kinds=["decision"])] == ["10", "11", "12"]
        assert loop.learner.snapshot.n_learned == 10
        played(loop, 13, 15)
        bits = op.to_bytes(loop.learner.fold.bandit)
        loop.stop()
        if files == "deleted":
            for file in (tmp_path / "models").iterdir():
                file.unlink()
        loop = started(store, wait=3600.0, publish=seldom)
        assert op.to_bytes(loop.learner.fold.bandit) == bits
        assert len(loop.joiner) == 5
        all_verified(store)
        loop.stop()


def test_another_policy_learns_what_is_left_of_a_log_that_was_deleted(started, tmp_path):
    with SqliteStore(tmp_path / "shop.sqlite") as store:
        loop = started(store, clock=HeldClock())
        loop.decide(RecordsRequest(context={}, arms=["a", "b"], id="first")).result()
        loop.change_settings(rules(wait=3600.0))
        loop.decide(RecordsRequest(context={}, arms=["a", "b"], id="waits")).result()
        loop.clock.forward(1.0)
        until(lambda: [*store.read(kinds=["join"])])
        loop.change_settings(rules())
        delete_old_records(loop)
        assert [(one.id, type(one).__name__) for one in store.read(kinds=["decision", "join"])] == [
            ("waits", "Decision"), ("first", "Join"),
        ]  # fmt: skip
        played(loop, 0, 3)
        loop.clock.forward(1.0)
        until(lambda: len(loop.joiner) <= 1 and not loop.learner.lag)
        follow_policy(loop, "other", "--cb_explore_adf --epsilon 0.5")
        until(lambda: loop.loop_state.lines.candidate is None)
        assert loop.settings.model.arguments["exploration"]["kind"] == "Greedy"
        until(lambda: loop.learner.copies.present.line != 1 and loop.learner.fold.bandit.n_learned >= 3)
        assert loop.learner.problem is None
        policies = [PolicyRun("other", "", "Custom", Fold(store, "shop", make_bandit(rules())))]
        assert weigh_policies(loop, policies, 0, 2**60) == 3
        loop.stop()
        all_verified(store)


def test_a_log_that_is_not_the_loops_alone_is_not_deleted(started):
    loop = started(MemoryStore())
    played(loop, 0, 1)
    with pytest.raises(Problem, match="database"):
        delete_old_records(loop)
    assert [one.id for one in loop.store.read(kinds=["decision"])] == ["0"]


def test_a_model_that_was_put_back_goes_on_and_so_after_a_restart(started):
    store = MemoryStore()
    loop = started(store)
    played(loop, 0, 5)
    wait_until_learned(loop)
    until(lambda: loop.learner.snapshot.n_learned >= 5)  # copies come at intervals
    data = op.to_bytes(loop.learner.snapshot.bandit())
    install_model(loop, make_bandit(loop.settings), "anew")
    played(loop, 5, 8)
    wait_until_learned(loop)
    assert loop.learner.fold.bandit.n_learned == 3
    install_model(loop, parse_model(loop, data), "back")
    played(loop, 8, 10)
    wait_until_learned(loop)
    assert loop.learner.fold.bandit.n_learned == 7
    bits = op.to_bytes(loop.learner.fold.bandit)
    loop.stop()
    loop = started(store)
    assert op.to_bytes(loop.learner.fold.bandit) == bits
    all_verified(store)


def test_a_model_of_other_settings_is_not_taken(started):
    loop = started(MemoryStore())
    for other in (op.InteractionBandit(), op.InteractionBandit(seed=4), op.OFUL(dim=3)):
        with pytest.raises(Problem, match="other settings"):
            parse_model(loop, op.to_bytes(other))


def test_places_are_found_by_time(started):
    store = MemoryStore()
    loop = started(store)
    played(loop, 0, 20)
    wait_until_learned(loop)
    times = [one.time for one in store.read(kinds=["decision"])]
    assert decision_times(store, "shop") == (times[0], times[-1])
    assert seq_before(store, times[3]) <= 3
    hour = 3_600_000_000
    assert seq_before(store, times[-1] + hour) == store.last
    assert has_decisions_between(store, "shop", times[3], times[3])
    assert not has_decisions_between(store, "shop", times[-1] + 1, times[-1] + hour)
    assert not has_decisions_between(store, "shop", times[0] - hour, times[0] - 1)
    assert decision_times(MemoryStore(), "shop") is None
