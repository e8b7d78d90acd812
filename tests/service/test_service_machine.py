"""A service in any order of events, beside a plain model: decisions, the same again, outcomes early, in time, late and
twice, activations, other settings, time, restarts and crashes. Time is an argument; the log is a file of SQLite. Late
outcomes are counted alone, or correct what was learned."""

import math
import shutil
import sqlite3
import tempfile
from math import fsum
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import onepass as op
from counts import LONG, repetitions
from onepass.log.records import CORRECTION, SECOND
from onepass.log.replay import Fold
from onepass.log.sqlite import SqliteStore
from onepass.log.verification import verify
from onepass.service.loop import Loop
from onepass.service.messages import ApiError, DecideRequest, OutcomeRequest
from onepass.service.responses import decision_answer
from onepass.service.settings import make_bandit, parse_settings
from patience import PATIENCE, until, wait_until_learned

ARMS = ["a", "b", "c"]
EARLY = 120  # seconds for which outcomes wait for their decision
WAIT = 10.5  # seconds; times in the model are whole, so no outcome comes at a deadline
AGGREGATE = {"earliest": lambda values: values[0], "sum": lambda values: min(fsum(values), 1.0), "max": max}


def rules(late, aggregation="earliest", wait=WAIT):
    model = {"recipe": "OFUL", "seed": 2, "arguments": {"model": "disjoint", "reg": 0.5,
                                      "exploration": {"kind": "Thompson", "exploration": 0.4, "draws": 5}}}  # fmt: skip
    return parse_settings({
        "name": "news", "features": {"context": 2}, "arms": ARMS, "model": model,
        "operation": {"publish": 0.0, "checkpoint": 3600.0},
        "reward": {"wait": wait, "aggregation": aggregation, "default": 0.25, "late": late},
    })  # fmt: skip


class Model:
    """What a service should do, by what was asked of it, in seconds."""

    def __init__(self, late, aggregation):
        self.late, self.now, self.aggregation, self.wait = late, 0, aggregation, WAIT
        self.decisions, self.answers, self.joined = {}, {}, {}
        self.outcomes, self.keys = [], set()

    def decide(self, id, request):
        self.decisions[id] = {
            "request": request,
            "time": self.now,
            "due": self.now + self.wait,
            "active": not request.defer,
        }

    def pay(self, id, value, slot, key):
        """Whether this is new."""
        if key is not None and (id, key) in self.keys:
            return False
        self.keys.add((id, key))
        self.outcomes.append((id, self.now, value, slot))
        return True

    def activate(self, id):
        decision = self.decisions[id]
        decision["active"] = decision["active"] or self.now < decision["due"]

    def join(self):
        """What is due is joined, by the settings in force."""
        for id, one in self.decisions.items():
            if one["due"] < self.now and one["active"] and id not in self.joined:
                self.joined[id] = self.rewards(id, one["due"])

    def rewards(self, id, until):
        """Of each slot, by the outcomes up to then."""
        one = self.decisions[id]
        values = [[value for of, when, value, slot in self.outcomes
                   if of == id and one["time"] - EARLY < when < until and slot in (None, each)]
                  for each in range(one["request"].slots)]  # fmt: skip
        return [AGGREGATE[self.aggregation](each) if each else 0.25 for each in values]

    def corrected(self):
        """What was joined, with what late outcomes change of it."""
        return {id: self.rewards(id, math.inf) for id in self.joined} if self.late == "correct" else self.joined


def call(name, **given):
    return st.tuples(st.just(name), st.fixed_dictionaries(given))


DECIDE = call("decide", x=st.sampled_from([-1.0, 0.0, 0.5]), slots=st.integers(1, 2), defer=st.booleans(),
              exclude=st.sampled_from([[], ["b"]]))  # fmt: skip
PAY = call("pay", back=st.lists(st.integers(-1, 3), min_size=1, max_size=3), value=st.sampled_from([0.0, 0.7, 1.0]),
           slot=st.sampled_from([None, 0, 1]), key=st.sampled_from([None, "x", "y"]))  # fmt: skip
WAITING = call("wait", seconds=st.sampled_from([1, 2, 4, 9, 12, 119, 3600]))
SECONDS = st.sampled_from([0, 2, 12])
ACTS = st.one_of(  # of one rule: hypothesis leaves out rules, and most examples would decide nothing or know no time
    *[DECIDE] * 4, *[PAY] * 3, *[WAITING] * 2,
    call("decide_again", back=st.integers(1, 60)),
    call("decide_otherwise", back=st.integers(1, 60)),
    call("activate", back=st.integers(-1, 3)),
    call("change", aggregation=st.sampled_from([*AGGREGATE]), wait=st.sampled_from([WAIT, 3.5])),
    call("restart", seconds=SECONDS),
    call("crash", seconds=SECONDS),
)  # fmt: skip


@settings(max_examples=repetitions(4, 100), stateful_step_count=50, deadline=None,
          suppress_health_check=list(HealthCheck),
          derandomize=not LONG, database=None)  # fmt: skip
class Machine(RuleBasedStateMachine):
    @initialize(late=st.sampled_from(["count", "correct"]), aggregation=st.sampled_from([*AGGREGATE]))
    def begin(self, late, aggregation):
        self.whole, self.lives, self.ticks = tempfile.TemporaryDirectory(), 0, 0
        self.folder = Path(self.whole.name, "0")
        self.folder.mkdir()
        self.model, self.begun = Model(late, aggregation), aggregation
        self.start()

    def first(self):
        """As the loop began."""
        return rules(self.model.late, self.begun)

    def start(self):
        self.store = SqliteStore(self.folder / "news.sqlite", synced=False)
        self.loop = Loop(self.first(), self.store, self.folder / "models", lambda after: self.clock)

    def clock(self):
        """Microseconds, each given once: those of the model, and so few more that no second is full."""
        self.ticks += 1
        return self.model.now * SECOND + self.ticks

    def stop(self):
        self.loop.stop()
        self.store.close()

    def settle(self):
        """Wait until what is due is joined and learned, or has lapsed."""
        self.model.join()
        waiting = sum(one["due"] > self.model.now for one in self.model.decisions.values())
        until(lambda: len(self.loop.joiner) == waiting and len(self.joins()) >= len(self.model.joined))
        until(lambda: self.loop.learner.through >= max((one.seq for one in self.joins()), default=0))

    def joins(self, corrections=False):
        return [one for one in self.store.read(kinds=["join"]) if (one.how == CORRECTION) is corrections]

    def corrected(self):
        """Whether joins and corrections add up to what the model says."""
        sums = {one.id: [*one.rewards] for one in self.joins()}
        for one in self.joins(corrections=True):
            sums[one.id] = [a + (b or 0.0) for a, b in zip(sums[one.id], one.rewards, strict=True)]
        return sums == {id: pytest.approx(one) for id, one in self.model.corrected().items()}

    # ---- what may be asked ----

    @rule(act=ACTS)
    def ask(self, act):
        name, given = act
        getattr(self, name)(**given)

    def name(self, back):
        """One of the last decisions, or of the next two."""
        return f"{max(len(self.model.decisions) - back, 0)}"

    def decide(self, x, slots, defer, exclude):
        request = DecideRequest(context=[1.0, x], slots=slots, defer=defer, exclude=exclude, id=self.name(0))
        self.model.decide(request.id, request)
        found = decision_answer(self.loop.decide(request).result(PATIENCE))
        assert len(found.arms) == slots
        assert not {*exclude} & {*found.arms}
        assert abs(fsum(one.probability for one in found.ranking) - 1.0) < 1e-9
        self.model.answers[request.id] = found

    def decide_again(self, back):
        if self.name(back) in self.model.decisions:
            one = self.model.decisions[self.name(back)]["request"]
            assert decision_answer(self.loop.decide(one).result(PATIENCE)) == self.model.answers[one.id]

    def decide_otherwise(self, back):
        if self.name(back) in self.model.decisions:
            with pytest.raises(ApiError, match="was used by another request"):
                self.loop.decide(DecideRequest(context=[2.0, 2.0], id=self.name(back))).result(PATIENCE)

    def pay(self, back, value, slot, key):
        sent = [OutcomeRequest(id=self.name(one), value=value, slot=slot, key=key) for one in back]
        new = sum([self.model.pay(one.id, value, slot, key) for one in sent])
        records, future = self.loop.outcomes(sent)
        future.result(PATIENCE)
        assert sum(record.seq != 0 for record in records) == new

    def activate(self, back):
        if self.name(back) in self.model.decisions:
            self.model.activate(self.name(back))
            self.loop.activate(self.name(back)).result(PATIENCE)
        else:
            with pytest.raises(ApiError, match="there is no decision"):
                self.loop.activate(self.name(back))

    def change(self, aggregation, wait):
        self.model.wait = wait
        if self.model.late == "count":  # a correction is by the rule of its moment
            self.model.aggregation = aggregation
        self.loop.change_settings(rules(self.model.late, self.model.aggregation, wait))

    def wait(self, seconds):
        self.model.now += seconds
        self.settle()

    def restart(self, seconds):
        self.stop()
        self.model.now += seconds
        self.start()
        self.settle()

    def crash(self, seconds):
        """Go on from what is committed, as after the end of the process at this moment."""
        self.lives += 1
        old, self.folder = self.folder, self.folder.with_name(f"{self.lives}")
        self.folder.mkdir()
        if (old / "models").exists():
            shutil.copytree(old / "models", self.folder / "models")
        source, copy = (sqlite3.connect(each / "news.sqlite") for each in (old, self.folder))
        source.backup(copy)
        source.close()
        copy.close()
        self.stop()
        self.model.now += seconds
        self.start()
        self.settle()

    # ---- what must be so ----

    @invariant()
    def what_is_joined_is_what_the_model_says(self):
        if hasattr(self, "store"):
            joins = [(one.id, one.rewards) for one in self.joins()]
            assert len(dict(joins)) == len(joins)
            assert dict(joins) == self.model.joined
            until(self.corrected)
            assert self.loop.problem() is None
            assert {one.id for one in self.store.read(kinds=["decision"])} == self.model.decisions.keys()

    def teardown(self):
        if hasattr(self, "store"):
            self.model.now += 3600
            self.settle()
            self.what_is_joined_is_what_the_model_says()
            assert len(self.loop.joiner) == 0
            wait_until_learned(self.loop)  # corrections, too
            self.loop.stop()
            twin = Fold(self.store, "news", make_bandit(self.first()))
            twin.advance()
            assert op.to_bytes(self.loop.learner.fold.bandit) == op.to_bytes(twin.bandit)
            found = verify(Fold.resume(self.store, "news", first=True))
            assert (found.ok, found.equal, found.joins) == (
                True,
                len(self.model.decisions),
                len(self.joins()) + len(self.joins(True)),
            )
            self.store.close()
            self.whole.cleanup()


test_a_service_does_what_a_plain_model_says_in_any_order_of_events = Machine.TestCase
