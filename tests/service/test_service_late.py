"""Outcomes after the deadline: kept, counted, and learned as corrections, which a replay of the log knows as well."""

import msgspec
import numpy as np
import pytest

import onepass as op
from onepass.evaluation.store_events import events_from_store
from onepass.log import Decision, Join, Outcome
from onepass.log.memory import MemoryStore
from onepass.log.records import CORRECTION
from onepass.log.replay import Fold
from onepass.log.verification import verify
from onepass.service.join import Joiner
from onepass.service.late_rewards import EARLY, correct_rewards
from onepass.service.messages import DecideRequest, OutcomeRequest
from onepass.service.overview import Overview
from onepass.service.settings import make_bandit, parse_settings
from patience import until
from service_process import loops_in

ARMS = ["a", "b", "c"]
MODEL = {"recipe": "OFUL", "seed": 2, "arguments": {"model": "disjoint", "reg": 0.5,
                                  "exploration": {"kind": "Thompson", "exploration": 0.4, "draws": 5}}}  # fmt: skip


def rules(model=MODEL, **reward):
    return parse_settings({
        "name": "news", "features": {"context": 3}, "arms": ARMS, "model": model, "operation": {"publish": 0.0},
        "reward": {"wait": 0.02, "late": "correct", **reward},
    })  # fmt: skip


def decided(loop, t, **fields):
    context = np.random.default_rng(t).standard_normal(3).tolist()
    return loop.decide(DecideRequest(context=context, id=f"{t}", **fields)).result()


def paid(loop, t, value=1.0, key="k"):
    loop.outcomes([OutcomeRequest(id=f"{t}", value=value, key=key)])[1].result()


def joined(loop):
    """Wait until every decision is joined and learned."""
    count = sum(1 for _ in loop.store.read(kinds=["decision"]))
    until(lambda: sum(not one.again for one in loop.store.read(kinds=["join"])) == count and not loop.learner.lag)
    until(lambda: loop.learner.seen >= max(one.seq for one in loop.store.read(kinds=["join"])))


def corrections(store):
    return [one for one in store.read(kinds=["join"]) if one.how == CORRECTION]


@pytest.fixture
def started(tmp_path):
    """Loops that end with their test."""
    with loops_in(tmp_path) as start:
        yield start


def late(loop, store, begin, end):
    """Decisions that have no outcome in time, and one afterwards."""
    for t in range(begin, end):
        decided(loop, t)
    joined(loop)
    before = len(corrections(store))
    for t in range(begin, end):
        paid(loop, t)
    until(lambda: len(corrections(store)) == before + end - begin)


def test_a_late_outcome_corrects_the_model_and_replay_and_verify_know_it_in_every_bit(started):
    store = MemoryStore()
    loop = started(rules(), store)
    late(loop, store, 0, 8)
    decided(loop, 8)
    joined(loop)
    loop.stop()
    assert {(*one.rewards, one.count, one.again) for one in corrections(store)} == {(1.0, 1, True)}
    twin, plain = Fold(store, "news", make_bandit(rules())), make_bandit(rules())
    assert twin.advance() == 9 + 8
    assert op.to_bytes(loop.learner.fold.bandit) == op.to_bytes(twin.bandit)
    rewards = {one.id: one.rewards[0] for one in store.read(kinds=["join"]) if one.how != CORRECTION}
    for record in store.read(kinds=["decision"]):  # an oracle: the right rewards, learned at once
        plain.learn(record.to_decision(), rewards[record.id] + float(int(record.id) < 8))
    for arm in ARMS:
        np.testing.assert_allclose(
            twin.bandit.model.parameter_of(arm), plain.model.parameter_of(arm), rtol=1e-9, atol=1e-12
        )
    assert any(np.abs(plain.model.parameter_of(arm)).max() > 0.01 for arm in ARMS)
    found = verify(Fold.resume(store, "news", first=True))
    assert (found.ok, found.equal, found.others) == (True, 9, ())


@pytest.mark.parametrize("files", ["kept", "lost"])
def test_a_restart_at_any_moment_goes_on_as_if_there_had_been_none(started, tmp_path, files):
    """Corrections before and after checkpoints, of decisions joined by the process before, and by two before."""
    store = MemoryStore()
    for life in range(3):
        loop = started(rules(), store)
        if life:
            paid(loop, 4 * life - 1, 0.5, "again")  # earliest: nothing changes
            paid(loop, 100 + life - 1)
            until(lambda many=5 * life: len(corrections(store)) == many)
        late(loop, store, 4 * life, 4 * life + 4)
        decided(loop, 100 + life)
        joined(loop)
        loop.stop()
        for file in (tmp_path / "models").iterdir() if files == "lost" else ():
            file.write_bytes(b"damaged")
    assert len(corrections(store)) == 3 * 4 + 2
    twin = Fold(store, "news", make_bandit(rules()))
    twin.advance()
    assert op.to_bytes(loop.learner.fold.bandit) == op.to_bytes(twin.bandit)
    assert verify(Fold.resume(store, "news", first=True)).equal == 15


def test_a_log_that_ends_anywhere_about_a_correction_goes_on_and_corrects_once(started):
    store = MemoryStore()
    loop = started(rules(), store)
    late(loop, store, 0, 2)
    loop.stop()
    (first, _) = [one.seq for one in store.read(kinds=["outcome"])]
    for end in range(first, store.last + 1):
        cut = MemoryStore()
        cut.append([msgspec.structs.replace(one, seq=0) for one in store.read(until=end)])
        loop = started(rules(), cut, f"cut at {end}")
        told = {one.id for one in cut.read(kinds=["outcome"])}
        until(lambda cut=cut, told=told: {one.id for one in corrections(cut)} == told)
        decided(loop, 9)
        joined(loop)
        loop.stop()
        assert len(corrections(cut)) == len(told)
        twin = Fold(cut, "news", make_bandit(rules()))
        twin.advance()
        assert op.to_bytes(loop.learner.fold.bandit) == op.to_bytes(twin.bandit)


def test_without_the_setting_late_outcomes_are_kept_and_counted_alone(started):
    store = MemoryStore()
    loop = started(rules(late="count"), store)
    decided(loop, 0)
    joined(loop)
    paid(loop, 0)
    decided(loop, 1)
    joined(loop)
    assert loop.joiner.counts["late"] == 1
    assert [one.value for one in store.read(kinds=["outcome"])] == [1.0]
    assert corrections(store) == []
    assert parse_settings({"name": "news", "features": {"context": 3}}).reward.late == "count"
    with pytest.raises(ValueError, match="late"):
        rules(late="never")


def test_a_model_that_is_not_linear_in_rewards_stays_as_it_is_and_the_log_knows_better(started):
    store, settings = MemoryStore(), rules({"arguments": {"warm_up": 64, "n_landmarks": 0}})
    loop = started(settings, store)
    late(loop, store, 0, 3)
    before = op.to_bytes(loop.learner.fold.bandit)
    joined(loop)
    assert op.to_bytes(loop.learner.fold.bandit) == before
    assert [sum(one.value for one in event.outcomes) for event in events_from_store(store, "news")] == [1.0] * 3
    overview = Overview(settings)
    for record in store.read():
        overview.add_record(record)
    assert overview.to_dict()["value"]["rewards"] == 3


def test_a_candidate_that_takes_over_corrects_what_it_has_learned_and_nothing_else(started):
    store = MemoryStore()
    loop = started(rules(), store)
    for t in range(4):
        decided(loop, t)
    joined(loop)
    loop.learner.run_after_learning(lambda: loop.learner.save_checkpoint(always=True)).result()
    name = next(loop.folder.glob("*.json")).stem
    loop.rollback(name)  # goes on from here: what follows is its own
    until(lambda: loop.learner.copies.present.line == 1)
    paid(loop, 0)
    until(lambda: len(corrections(store)) == 1)
    late(loop, store, 10, 12)
    decided(loop, 20)
    joined(loop)
    loop.stop()
    assert all(verify(Fold.resume(store, "news", first=True, line=line)).ok for line in (0, 1))
    twin = Fold.resume(store, "news", first=True, line=1)
    twin.advance()
    assert op.to_bytes(loop.learner.fold.bandit) == op.to_bytes(twin.bandit)


# ---- the difference, and who knows of it ----


def log_of(*values, rewards=(0.0,), slots=1, differences=()):
    """A decision, its join, and outcomes as (value, slot, time)."""
    records = [Decision(loop="news", time=0, id="e", places=list(range(slots))),
               Join(loop="news", time=9, id="e", rewards=[*rewards])]  # fmt: skip
    records += [Outcome(loop="news", time=time, id="e", value=value, slot=slot) for value, slot, time in values]
    return records + [
        Join(loop="news", time=9, id="e", rewards=[*each], how=CORRECTION, again=True) for each in differences
    ]


def test_the_difference_is_that_of_a_later_deadline():
    for aggregation, expected in (("earliest", None), ("sum", [0.3]), ("mean", [0.05]), ("max", [0.1]), ("min", None)):
        found = correct_rewards(log_of((0.2, None, 1), (0.3, None, 99), rewards=[0.2]), rules(aggregation=aggregation))
        assert (found and found[0]) == (expected and pytest.approx(expected))
    assert correct_rewards(log_of((1.0, None, 99)), rules()) == ([1.0], 1)
    assert correct_rewards(log_of((1.0, None, 99), differences=[[1.0]]), rules()) is None
    assert (
        correct_rewards(log_of((1.0, None, 99), (1.0, None, 99), differences=[[1.0]]), rules(aggregation="sum")) is None
    )
    assert correct_rewards(log_of((1.0, 1, 99), rewards=[0.0, 0.0], slots=2), rules()) == ([None, 1.0], 1)
    assert correct_rewards(log_of((1.0, None, 99), rewards=[None, 0.0], slots=2), rules()) == ([None, 1.0], 1)
    assert correct_rewards(log_of((1.0, None, -EARLY - 1)), rules()) is None
    assert correct_rewards(log_of((1.0, None, 99))[:1], rules()) is None
    assert correct_rewards([], rules()) is None


def test_a_join_that_cannot_look_at_the_log_corrects_nothing_and_one_that_fails_to_tries_again():
    log, failing = log_of((1.0, None, 99)), [True]

    class Failing(MemoryStore):
        def find(self, loop, identity):
            if failing[0]:
                raise OSError("the disk is gone")
            return log

    for one, expected in ((Joiner(rules()), 0), (Joiner(rules(), 0, Failing()), 1)):
        failing[0] = True
        for record in log:
            one.add_record(record)
        assert one.counts["late"] == 1
        assert one.corrections(100) == []
        failing[0] = False
        found = one.corrections(100)
        assert len(found) == expected
        assert one.corrections(101) == []  # each is given once
        for record in found:
            one.add_record(record)
            log.append(record)
        assert one.corrections(102) == []
        assert one.replay_start(7) == 7
