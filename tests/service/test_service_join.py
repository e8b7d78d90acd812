"""The join beside a plain model that looks at the whole log for every decision: any order of events, any restart."""

import math
import statistics
import tempfile
import tracemalloc
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import force_setattr, replace

from counts import repetitions
from onepass.log import Activation, Decision, Join, Outcome
from onepass.log.memory import MemoryStore
from onepass.service.backlog import load_block, save_block
from onepass.service.join import EARLY, EARLY_OUTCOMES, POPPED, TOGETHER, Joiner
from onepass.service.settings import AGGREGATIONS, parse_settings

SECOND = 1_000_000
WAIT = 300 * SECOND
PLAIN = {
    "earliest": lambda values: values[0],
    "sum": math.fsum,
    "mean": lambda values: math.fsum(values) / len(values),
    "median": statistics.median,
    "min": min,
    "max": max,
}


def rules(aggregation="earliest", default=0.0, mode="online", wait=300.0, late="count"):
    reward = {"wait": wait, "default": default, "aggregation": aggregation, "range": [-1.0, 2.0], "late": late}
    return parse_settings({"name": "a", "features": {"context": 1, "arms": 1}, "mode": mode, "reward": reward})


def decision(id, time, slots=1, deferred=False):
    return Decision(loop="a", time=time, id=id, places=list(range(slots)), deferred=deferred)


def expected(log, one, aggregation, default):
    """The rewards of a decision by the whole log, None where nothing is learned."""
    due = one.time + WAIT
    about = [record for record in log if record.event == one.id and record.time <= due]
    if one.deferred and not any(isinstance(record, Activation) and record.seq > one.seq for record in about):
        return None
    outcomes = [record for record in about if isinstance(record, Outcome) and record.time >= one.time - EARLY]
    rewards = []
    for slot in range(len(one.places)):
        values = [record.value for record in outcomes if record.slot in (None, slot)]
        rewards.append(min(max(PLAIN[aggregation](values), -1.0), 2.0) if values else default)
    return None if all(value is None for value in rewards) else rewards


@settings(
    max_examples=repetitions(6, 100), stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
)
class Joins(RuleBasedStateMachine):
    """A log that grows, a joiner that follows it, and what is stored late, or not before the process ends."""

    @initialize(aggregation=st.sampled_from(AGGREGATIONS), default=st.sampled_from([0.5, None]))
    def begin(self, aggregation, default):
        self.rules = rules(aggregation, "none" if default is None else default)
        self.aggregation, self.default = aggregation, default
        self.held = MemoryStore()
        self.joiner, self.log, self.now, self.unstored = self.made(0), [], 0, []

    def made(self, batch):
        """A joiner that has read nothing."""
        return Joiner(self.rules, batch)

    def name(self, back):
        """The identity of one of the last decisions, or of one of the next two."""
        return f"{max(sum(isinstance(one, Decision) for one in self.log) - back, 0)}"

    def store(self, record):
        self.now += 1
        if record.time == 0:
            force_setattr(record, "time", self.now)
        if any(one.unique_key is not None and one.unique_key == record.unique_key for one in self.log):
            return
        self.held.append([record])
        force_setattr(record, "seq", len(self.log) + 1)
        self.log.append(record)
        self.joiner.add_record(record)

    @rule(slots=st.integers(1, 3), deferred=st.booleans())
    def decide(self, slots, deferred):
        self.store(decision(self.name(0), 0, slots, deferred))

    @rule(
        back=st.integers(-1, 3),
        value=st.sampled_from([-1.0, -0.25, 0.1, 0.2, 1.0, 2.0]),
        slot=st.sampled_from([None, 0, 1, 3]),
        key=st.sampled_from([None, "x", "y"]),
    )
    def pay(self, back, value, slot, key):
        self.store(Outcome(loop="a", time=0, id=self.name(back), value=value, slot=slot, request=key))

    @rule(back=st.integers(-1, 3))
    def activate(self, back):
        self.store(Activation(loop="a", time=0, id=self.name(back)))

    @rule(seconds=st.sampled_from([1, 100, 119, 121, 299, 301, 3600]))
    def wait(self, seconds):
        self.now += seconds * SECOND

    @rule()
    def join(self):
        self.unstored += self.joiner.assign_batches(self.joiner.pop_due(self.now))

    @rule()
    def commit(self):
        joins, self.unstored = self.unstored, []
        for one in joins:
            self.store(replace(one))

    @rule()
    def restart(self):
        since = self.joiner.replay_start(len(self.log))
        self.joiner, self.unstored = self.made(len(self.log)), []
        for record in self.log[since:]:
            self.joiner.add_record(record)

    @invariant()
    def what_is_joined_is_what_the_whole_log_says(self):
        decided = {one.id: one for one in getattr(self, "log", ()) if isinstance(one, Decision)}
        joins = [one for one in getattr(self, "log", ()) if isinstance(one, Join)]
        assert len({one.id for one in joins}) == len(joins)
        for one in joins:
            assert one.rewards == expected(self.log, decided[one.id], self.aggregation, self.default)
            assert one.time > decided[one.id].time + WAIT

    def teardown(self):
        """In the end all that should be joined is, and nothing waits."""
        self.now += WAIT + 1
        self.join()
        while self.unstored:
            self.commit()
            self.join()
        wanted = {
            one.id
            for one in self.log
            if isinstance(one, Decision) and expected(self.log, one, self.aggregation, self.default) is not None
        }
        assert {one.id for one in self.log if isinstance(one, Join)} == wanted
        assert len(self.joiner) == 0


class JoinsOfABacklog(Joins):
    """The same, where memory holds three decisions that wait at most, and restarts begin with files of a checkpoint."""

    def made(self, batch):
        return Joiner(self.rules, batch, self.held)

    @rule()
    def restart(self):
        known = len(self.log)
        scan, blocks = self.joiner.scan_start(known), self.joiner.blocks()
        with tempfile.TemporaryDirectory() as folder:
            names = [(save_block(Path(folder), block), done) for block, done in blocks]
            blocks = [load_block(Path(folder), *name) for name in names]
        self.joiner, self.unstored = self.made(known), []
        self.joiner.restore(blocks, known)
        for record in self.log[scan:]:
            self.joiner.add_record(record)

    def teardown(self):
        self.now += WAIT + 1
        for _ in range(len(self.joiner)):  # two are recalled at a time
            self.join()
            self.commit()
        super().teardown()


test_what_is_joined_is_what_the_whole_log_says_at_any_moment = Joins.TestCase


@pytest.fixture
def little_memory(monkeypatch):
    for name, value in (("HELD", 3), ("PARKED", 2), ("RECALLED", 2)):
        monkeypatch.setattr(f"onepass.service.join.{name}", value)


@pytest.mark.usefixtures("little_memory")
class TestWhatIsJoinedIsTheSameWhereMostOfWhatWaitsIsInTheBacklog(JoinsOfABacklog.TestCase):
    pass


def taken(joiner, *records):
    for seq, record in enumerate(records, 1):
        force_setattr(record, "seq", seq)
        joiner.add_record(record)
    return joiner


def outcome(id, time, value, slot=None):
    return Outcome(loop="a", time=time * SECOND, id=id, value=value, slot=slot)


def test_a_reward_at_the_deadline_counts_and_one_after_it_is_late():
    joiner = taken(Joiner(rules("sum")), decision("e", 0), outcome("e", 300, 0.25), outcome("e", 300.000001, 0.5))
    assert joiner.pop_due(WAIT) == []
    (join,) = joiner.pop_due(WAIT + 1)
    assert (join.rewards, join.how, join.count, joiner.counts["late"]) == ([0.25], "sum", 1, 1)
    assert joiner.pop_due(WAIT + 2) == []


def test_a_sum_beyond_the_range_is_limited_and_says_so():
    joiner = taken(Joiner(rules("sum")), decision("e", 0), outcome("e", 1, 2.0), outcome("e", 2, 2.0))
    (join,) = joiner.pop_due(WAIT + 1)
    assert (join.rewards, join.how) == ([2.0], "sum, limited")


def test_early_outcomes_wait_two_minutes_for_their_decision():
    in_time = taken(Joiner(rules()), outcome("e", 10, 1.0), decision("e", 130 * SECOND))
    too_early = taken(Joiner(rules()), outcome("e", 9, 1.0), decision("e", 130 * SECOND))
    assert [one.pop_due(10**9)[0].rewards for one in (in_time, too_early)] == [[1.0], [0.0]]
    lonely = taken(Joiner(rules()), outcome("e", 9, 1.0))
    lonely.pop_due(130 * SECOND)
    assert lonely.counts["without a decision"] == 1
    assert lonely.replay_start(1) == 1


def test_a_loop_that_only_logs_joins_nothing():
    joiner = taken(Joiner(rules(mode="logging")), decision("e", 0), outcome("e", 1, 1.0))
    assert joiner.pop_due(10**9) == []
    assert len(joiner) == 0


def test_joins_are_learned_in_calls_of_a_bounded_size_each_with_its_number():
    joiner = taken(Joiner(rules(), 7), *(decision(f"{i}", i) for i in range(2 * TOGETHER + 1)))
    joins = joiner.assign_batches(joiner.pop_due(10**9))
    assert [one.batch for one in joins] == [8] * TOGETHER + [9] * TOGETHER + [None]


def test_a_call_returns_a_bounded_number_of_joins_and_the_next_ones_the_others():
    joiner = taken(Joiner(rules()), *(decision(f"{i}", i) for i in range(POPPED + 3)))
    first, second = joiner.pop_due(10**9), joiner.pop_due(10**9)
    assert [one.id for one in first + second] == [f"{i}" for i in range(POPPED + 3)]
    assert (len(first), joiner.pop_due(10**9)) == (POPPED, [])


@pytest.mark.usefixtures("little_memory")
def test_no_later_deadline_overtakes_a_decision_that_is_not_read_from_the_log_now():
    store = MemoryStore()
    joiner = Joiner(rules(), 0, store)
    for place in range(9):
        store.append([decision(f"{place}", place)])
        joiner.add_record(next(store.read(place)))
    assert joiner.pop_due(10**9, recall=False) == []
    found = [one.id for _ in range(9) for one in joiner.pop_due(10**9)]
    assert found == [f"{place}" for place in range(9)]


def test_a_deadline_stays_as_the_decision_said_it_when_settings_change():
    joiner = Joiner(rules())
    taken(joiner, replace(decision("e", 0), extra={"due": 5 * SECOND}))
    joiner.settings = rules(wait=3_000.0)
    assert [one.id for one in joiner.pop_due(6 * SECOND)] == ["e"]


@pytest.mark.parametrize("slot", [1, 2])
def test_outcomes_of_slots_that_there_are_not_are_counted_and_not_joined(slot):
    joiner = taken(Joiner(rules()), decision("e", 0, slots=2), outcome("e", 1, 1.0, slot))
    (join,) = joiner.pop_due(10**9)
    assert (join.rewards, joiner.counts["of no slot"]) == ([0.0, 1.0 if slot == 1 else 0.0], int(slot == 2))


@pytest.mark.parametrize("ids", [["e"], ["e", "f", "g"]], ids=["one id", "three ids"])
def test_early_outcomes_are_the_latest_of_each_id_and_a_restart_keeps_the_same(ids):
    outcomes = [outcome(id, 10, float(number), None) for number in range(2 * EARLY_OUTCOMES) for id in ids]
    joiner = taken(Joiner(rules("sum", late="correct"), store=MemoryStore()), *outcomes)
    since = joiner.replay_start(len(outcomes))
    assert since == len(outcomes) - EARLY_OUTCOMES * len(ids) == joiner.counts["without a decision"]
    again = Joiner(rules("sum", late="correct"), store=MemoryStore())
    for record in outcomes[since:]:
        again.add_record(record)
    for one in (joiner, again):
        record = decision("e", 20 * SECOND)
        force_setattr(record, "seq", len(outcomes) + 1)
        one.add_record(record)
        (join,) = one.pop_due(20 * SECOND + WAIT + 1)
        assert join.count == EARLY_OUTCOMES


def test_outcomes_without_decisions_are_bounded_over_all_ids(monkeypatch):
    monkeypatch.setattr("onepass.service.join.EARLY_ALL", 50)
    joiner = taken(Joiner(rules()), *(outcome(f"{number}", 10, 1.0) for number in range(80)))
    assert (joiner.counts["without a decision"], joiner.replay_start(80)) == (30, 30)


def test_an_outcome_without_a_decision_takes_less_than_half_a_kilobyte():
    """Anybody who may pay may send 100,000 of them, each of an id of its own."""
    joiner, count = Joiner(rules()), 5_000
    records = (outcome(f"{number}", 10, 1.0) for number in range(count))
    tracemalloc.start()
    taken(joiner, *records)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert joiner.replay_start(count) == 0  # all are held
    assert held < 500 * count


def test_the_log_is_asked_once_for_an_id_whose_outcomes_come_too_late():
    asked = []

    class Asked(MemoryStore):
        def find(self, loop, id):
            asked.append(id)
            return [decision(id, 0)]

    late = [outcome("e", 400, 1.0) for _ in range(500)]
    for seq, record in enumerate(late, 5):
        force_setattr(record, "seq", seq)
    joiner = Joiner(rules(late="correct"), store=Asked())
    for record in late:
        joiner.add_record(record)
    assert (asked, joiner.counts["late"]) == (["e"], 500)
