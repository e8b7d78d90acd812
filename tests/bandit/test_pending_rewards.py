"""Decisions that wait for their rewards, which are learned at the deadline whenever they came."""

import contextlib
import copy
import pickle
import signal
from datetime import timedelta
from heapq import heappop, heappush
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onepass as op
from counts import repetitions

DIM, AFTER = 3, 10.0


def bandit(**more):
    return op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=DIM, reg=0.5))), op.Thompson(0.4, draws=5), seed=2, **more)


def store(**more):
    return op.PendingRewards(bandit(), after=AFTER, **more)


def rows(seed):
    return np.random.default_rng(seed).standard_normal((4, DIM))


def learned(pending):
    return op.to_bytes(pending.bandit)


class ByHand:
    """The naive store: all decisions in a list, learned at their deadline, each at its own time."""

    def __init__(self, model, default):
        self.bandit, self.default, self.waiting = model, default, []

    def until(self, now):
        while self.waiting and self.waiting[0][0] <= now:
            due, decision, paid = self.waiting.pop(0)
            every = [self.default if value is None else value for value in paid]
            if any(value is not None for value in every):
                self.bandit.learn(decision, every if len(every) > 1 else every[0], **self.when(due))

    def when(self, now):
        return {"time": now} if self.bandit.needs_time else {}

    def decide(self, context, arms, k, identity, now):
        self.until(now)
        decision = self.bandit.decide(context, arms, k, id=identity, **self.when(now))
        self.waiting.append((now + AFTER, decision, [None] * k))
        return decision

    def reward(self, identity, paid, now):
        self.until(now)
        for _, decision, held in self.waiting:
            if decision.id == identity:
                held[:] = [old if new is None else new for old, new in zip(held, paid, strict=True)]


@settings(max_examples=repetitions(25, 400))
@given(
    st.lists(
        st.tuples(st.sampled_from(["decide", "reward", "expire", "save"]), st.floats(0.0, 6.0), st.integers(0, 7)),
        max_size=40,
    ),
    st.sampled_from([0.0, -0.5, None]),
    st.booleans(),
)
def test_rewards_are_learned_at_the_deadline_of_their_decision_in_the_order_of_deadlines(steps, default, timed):
    forgets = {"half_life": timedelta(seconds=5)} if timed else {}
    pending = op.PendingRewards(bandit(**forgets), after=AFTER, default=default)
    by_hand, now, count = ByHand(bandit(**forgets), default), 1000.0, 0
    for what, wait, number in steps:
        now += wait
        if what == "decide":
            k, count = 1 + count % 2, count + 1
            one = pending.decide(rows(count), range(4), k, id=f"{count}", now=now)
            assert one.to_dict() == by_hand.decide(rows(count), range(4), k, f"{count}", now).to_dict()
        elif what == "reward" and pending.expire(now=now) >= 0 and pending.ids():
            identity = pending.ids()[number % len(pending)]
            k = 1 + (int(identity) - 1) % 2
            paid = [float(number)] if k == 1 else [None if number % 3 == 0 else 0.5 * number, None]
            pending.reward(identity, paid, now=now)
            by_hand.reward(identity, paid, now)
        elif what == "save":
            pending = op.from_bytes(op.to_bytes(pending))
        else:
            pending.expire(now=now)
    now += AFTER
    pending.expire(now=now)
    by_hand.until(now)
    assert len(pending) == 0
    assert learned(pending) == op.to_bytes(by_hand.bandit)


def test_a_reward_changes_the_model_at_the_deadline_and_not_before():
    pending = store()
    pending.decide(rows(0), range(4), id="0", now=0.0)
    before = learned(pending)
    pending.reward("0", 1.0, now=4.0)
    assert (len(pending), learned(pending)) == (1, before)
    pending.reward("0", 2.0, now=9.9)  # of several the last one counts
    assert pending.expire(now=9.95) == 0
    by_hand = bandit()
    by_hand.learn(by_hand.decide(rows(0), range(4), id="0"), 2.0)
    assert pending.expire(now=10.0) == 1
    assert learned(pending) == op.to_bytes(by_hand)
    with pytest.raises(KeyError, match=r"the id is unknown, or its deadline has passed.$"):
        pending.reward("0", 1.0, now=10.0)


def test_slots_without_a_reward_have_the_default():
    pending, by_hand = store(default=-0.5), bandit()
    made = pending.decide(rows(1), range(4), k=3, id="1", now=0.0)
    pending.reward("1", [1.0, None, None], now=1.0)
    pending.reward("1", [None, None, 0.2], now=2.0)
    pending.expire(now=10.0)
    by_hand.learn(made, [1.0, -0.5, 0.2])
    assert learned(pending) == op.to_bytes(by_hand)


def test_without_a_default_only_what_had_a_reward_is_learned():
    pending, by_hand = store(default=None), bandit()
    pending.decide(rows(0), range(4), id="nothing", now=0.0)
    made = pending.decide(rows(1), range(4), k=2, id="a slot", now=1.0)
    before = learned(pending)
    pending.reward("a slot", [None, 0.3], now=2.0)
    assert (pending.expire(now=10.9), learned(pending)) == (1, before)
    assert pending.expire(now=11.0) == 1
    by_hand.learn(made, [None, 0.3])
    assert learned(pending) == op.to_bytes(by_hand)


def test_deciding_learns_what_is_due_first():
    pending = store()
    pending.decide(rows(0), range(4), id="0", now=0.0)
    pending.reward("0", 5.0, now=1.0)
    assert pending.decide(rows(1), range(4), id="1", now=10.0).n_learned == 1
    assert pending.ids() == ["1"]


def test_an_id_that_waits_gets_the_decision_that_waits_whatever_was_learned_since():
    pending = store()
    pending.decide(rows(5), range(4), id="other", now=0.0)
    first = pending.decide(rows(0), range(4), id="0", now=9.0)
    pending.reward("other", 100.0, now=9.0)
    again = pending.decide(rows(0), range(4), id="0", now=11.0)
    assert (again.to_dict(), pending.bandit.n_learned) == (first.to_dict(), 1)
    assert (pending.expire(now=18.9), pending.expire(now=19.0)) == (0, 1)  # due as at first
    pending.decide(rows(0), range(4), id="0", now=20.0)
    with pytest.raises(ValueError, match="was decided with other arms"):
        pending.decide(rows(0)[:3], range(3), id="0", now=21.0)
    pending.expire(now=30.0)
    assert pending.bandit.n_learned == 3  # after its deadline an id is another decision


def test_an_id_that_waits_among_several_gets_the_decision_that_waits():
    pending = op.PendingRewards(op.OFUL(dim=DIM), after=AFTER)
    first = pending.decide(rows(0), id="0", now=0.0)
    several = pending.decide(np.stack([rows(0), rows(1)]), id=["0", "1"], now=5.0)
    assert [one.id for one in several.split()] == pending.ids() == ["0", "1"]
    assert several.split()[0].to_dict() == first.to_dict()
    assert (pending.expire(now=10.0), pending.expire(now=15.0)) == (1, 1)


def test_a_half_life_sees_the_time_of_each_deadline_even_where_the_process_was_stopped():
    asked, stopped = (op.PendingRewards(op.OFUL(dim=DIM, half_life=timedelta(seconds=5)), after=AFTER) for _ in "ab")
    for pending in (asked, stopped):
        for t in range(30):
            pending.decide(rows(t), id=f"{t}", now=float(t))
            pending.reward(f"{t}", float(t % 3), now=t + 0.5)
    for now in np.arange(30.0, 41.0, 0.25):
        asked.expire(now=now)
    stopped = op.from_bytes(op.to_bytes(stopped))
    assert stopped.expire(now=86_400.0) == 10
    assert learned(stopped) == learned(asked)


def test_at_arrival_a_reward_is_learned_at_once_and_the_decision_waits_no_more():
    pending, by_hand = store(default=None, learn_at="arrival"), bandit()
    made = [pending.decide(rows(t), range(4), k=1 + t % 2, id=f"{t}", now=float(t)) for t in range(4)]
    pending.reward("3", [0.2, None], now=8.0)
    pending.reward("0", 1.0, now=9.5)
    by_hand.learn(made[3], [0.2, None])
    by_hand.learn(made[0], 1.0)
    assert learned(pending) == op.to_bytes(by_hand)
    assert pending.ids() == ["1", "2"]
    with pytest.raises(KeyError, match="had its reward"):
        pending.reward("0", 1.0, now=9.6)
    twin = op.from_bytes(op.to_bytes(pending))
    assert (twin.learn_at, twin.expire(now=14.0), pending.expire(now=14.0)) == ("arrival", 2, 2)
    assert learned(twin) == learned(pending) == op.to_bytes(by_hand)


@pytest.mark.parametrize("way", ["file", "bytes", "copy", "deepcopy", "pickle"])
def test_what_waits_and_its_rewards_are_saved_with_the_bandit(way, tmp_path):
    pending = store()
    for t in range(5):
        pending.decide(rows(t), ["a", 1, ("b", 2), "c"], k=1 + t % 2, id=f"{t}", now=float(t))
    pending.reward("2", 0.7, now=5.0)
    pending.reward("1", [None, 0.1], now=5.0)
    if way == "file":
        pending.save(tmp_path / "pending")
        twin = op.load(tmp_path / "pending")
    else:
        ways = {"copy": lambda one: one.copy(), "deepcopy": copy.deepcopy,
                "bytes": lambda one: op.from_bytes(op.to_bytes(one)),
                "pickle": lambda one: pickle.loads(pickle.dumps(one))}  # fmt: skip
        twin = ways[way](pending)
    assert twin.ids() == pending.ids() == ["0", "1", "2", "3", "4"]
    twin.reward("0", 0.1, now=6.0)
    assert op.to_bytes(pending) != op.to_bytes(twin)
    pending.reward("0", 0.1, now=6.0)
    assert op.to_bytes(pending) == op.to_bytes(twin)
    assert twin.expire(now=13.5) == pending.expire(now=13.5) == 4
    assert learned(pending) == learned(twin)
    assert pending.ids() == twin.ids() == ["4"]


@pytest.mark.parametrize(("call", "error"), [
    (lambda p: p.reward("0", np.nan, now=1.0), ValueError),
    (lambda p: p.reward("0", 1e200, now=1.0), ValueError),
    (lambda p: p.reward("0", [1.0, 2.0], now=1.0), ValueError),
    (lambda p: p.reward("unknown", 1.0, now=1.0), KeyError),
    (lambda p: p.decide(rows(0), range(3), now=1.0), ValueError),
    (lambda p: p.expire(now=np.inf), ValueError),
])  # fmt: skip
def test_what_is_wrong_changes_nothing(call, error):
    pending = store()
    pending.decide(rows(0), range(4), id="0", now=0.0)
    before = op.to_bytes(pending)
    with pytest.raises(error):
        call(pending)
    assert op.to_bytes(pending) == before


def test_a_reward_that_the_family_does_not_have_is_refused_when_it_is_given():
    pending = op.PendingRewards(op.GLBOMD(dim=DIM), after=AFTER)
    pending.decide(rows(0), id="0", now=0.0)
    with pytest.raises(ValueError, match="from 0 to 1"):
        pending.reward("0", 2.0, now=1.0)
    with pytest.raises(ValueError, match="from 0 to 1"):
        op.PendingRewards(op.GLBOMD(dim=DIM), default=-1.0)
    crossed = op.PendingRewards(op.InteractionBandit(), after=AFTER)
    crossed.decide({"a": 1.0}, {"x": {"b": 1.0}}, id="0", now=0.0)
    with pytest.raises(ValueError, match="rewards must be finite"):
        crossed.reward("0", 1e200, now=1.0)


def test_a_decision_that_the_bandit_refuses_keeps_nothing_waiting():
    pending = op.PendingRewards(op.ContextualBandit(), after=AFTER)
    pending.decide([1.0, 2.0], ["a", "b"], id="rows", now=0.0)
    pending.decide({"country": "de"}, ["a", "b"], id="records", now=1.0)  # what is learned first decides which it takes
    pending.expire(now=10.0)
    with pytest.raises(ValueError, match="has no context") as found:
        pending.expire(now=12.0)
    assert "'records' waits no more" in found.value.__notes__[0]
    assert pending.decide([1.0, 2.0], ["a", "b"], id="rows", now=13.0).n_learned == 1
    assert pending.ids() == ["rows"]


OURS = (str(Path(op.__file__).parent), __file__)


class Interrupted(Exception):
    """As of Ctrl-C."""


def test_an_interruption_leaves_no_decision_that_waits_for_ever():
    pending, rng, came = op.PendingRewards(op.OFUL(dim=DIM), after=AFTER), np.random.default_rng(0), 0

    def interrupt(number, frame):
        if frame.f_code.co_filename.startswith(OURS):  # not in what others do while garbage is collected
            raise Interrupted

    usual = signal.signal(signal.SIGALRM, interrupt)
    try:
        for t in range(repetitions(200, 5_000)):
            with contextlib.suppress(Interrupted):
                signal.setitimer(signal.ITIMER_REAL, float(rng.uniform(1e-6, 1e-3)))
                try:
                    for step in range(100):
                        pending.decide(rows(0), id=f"{t} {step}", now=float(t))
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0.0)
                came -= 1
            came += 1
    finally:
        signal.signal(signal.SIGALRM, usual)
    assert came > 0
    assert pending.expire(now=1e9) > 0
    assert len(pending) == 0


@pytest.mark.parametrize("make", [
    lambda: op.PendingRewards("bandit"), lambda: op.PendingRewards(op.OFUL(dim=2), after=0.0),
    lambda: op.PendingRewards(op.OFUL(dim=2), default=np.nan),
    lambda: op.PendingRewards(op.OFUL(dim=2), learn_at="once"),
])  # fmt: skip
def test_arguments_out_of_range_are_refused(make):
    with pytest.raises(ValueError, match="must be"):
        make()


def test_what_a_part_of_the_bandit_knows_is_saved_with_it():
    crossed = op.InteractionBandit()
    crossed.learn(crossed.decide({"country": "de", "age": 3.0}, {"a": {"topic": "x"}}), 1.0)
    twin = op.from_bytes(op.to_bytes(op.PendingRewards(crossed)))
    assert twin.bandit.model.context.n_names == 2
    assert op.to_bytes(twin.bandit) == op.to_bytes(crossed)


def clicks_of_ten_offers(pending, seed, requests, rate, mean=120.0):
    """Probabilities of a click in the second half of a site where clicks come 120 requests later in the mean: of what
    was shown, by chance, and of the best offer."""
    rng, arms, on_the_way, found = np.random.default_rng(seed), [f"offer {i}" for i in range(10)], [], []
    rates = np.exp(rng.normal(np.log(rate), 0.5, (3, 10)))
    for t in range(requests):
        segment, lot, delay = int(rng.integers(3)), rng.random(), rng.exponential(mean)
        while on_the_way and on_the_way[0][0] <= t:
            when, identity = heappop(on_the_way)
            pending.reward(identity, 1.0, now=when)
        one = pending.decide({"segment": f"s{segment}"}, arms, id=f"{t}", now=float(t))
        found.append((rates[segment, one.index], rates[segment].mean(), rates[segment].max()))
        if lot < found[-1][0] and delay < pending.after:
            heappush(on_the_way, (t + delay, f"{t}"))
    return np.mean(found[requests // 2 :], axis=0)


@pytest.mark.parametrize("seed", range(repetitions(1, 5)))
def test_late_clicks_find_the_best_offers_at_the_deadline_and_nothing_at_arrival(seed):
    make = lambda at: op.PendingRewards(op.ContextualBandit(seed=0), after=400.0, learn_at=at)  # noqa: E731
    requests, rate, bar = repetitions((2_500, 0.12, 0.35), (8_000, 0.045, 0.6))
    shown, chance, best = clicks_of_ten_offers(make("deadline"), seed, requests, rate)
    assert shown - chance > bar * (best - chance)  # measured on five seeds: 0.72 to 0.99; with 2,500: 0.45 to 0.92
    astray, chance, best = clicks_of_ten_offers(make("arrival"), seed, requests, rate)
    assert astray - chance < 0.5 * (best - chance)  # measured on five seeds: 0.01 to 0.16; with 2,500: -0.05 to 0.18
