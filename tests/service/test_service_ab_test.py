"""The answer of an A/B test about a loop: a fold of its log, which a restart keeps."""

import numpy as np
import pytest

import onepass as op
from onepass.log.memory import MemoryStore
from onepass.log.records import Decision, Join
from onepass.service.messages import DecideRequest, OutcomeRequest
from onepass.service.settings import parse_settings
from patience import HeldClock, let_deadlines_pass
from service_process import loops_in

ARMS = ["a", "b", "c"]
EXPLORES = {"kind": "Thompson", "exploration": 0.4, "draws": 5, "uniform_share": 0.3}
MODEL = {"recipe": "OFUL", "seed": 2, "arguments": {"model": "disjoint", "reg": 0.5, "exploration": EXPLORES}}


def rules(**more):
    return parse_settings({
        "name": "news", "features": {"context": 2}, "arms": ARMS, "model": MODEL, "reward": {"wait": 0.02},
        "ab_test": {"tolerance": 0.01}, "operation": {"publish": 0.0}, **more,
    })  # fmt: skip


@pytest.fixture
def started(tmp_path):
    with loops_in(tmp_path, HeldClock()) as start:
        yield start


def played(loop, begin, end, best=1):
    rng = np.random.default_rng(begin)
    for t in range(begin, end):
        arms = None if t % 2 else ["c", "a", "b"]  # the order of a request does not matter
        record = loop.decide(DecideRequest(context=[1.0, float(rng.random())], arms=arms, id=f"{t}")).result()
        chosen = ARMS.index(record.offered[record.places[0]])
        loop.outcomes([OutcomeRequest(id=f"{t}", value=float(rng.random() < (0.95 if chosen == best else 0.05)))])
        loop.clock.forward(0.006)
    let_deadlines_pass(loop)


def test_the_answer_is_that_of_an_ab_test_on_the_rows_of_the_log(started):
    store = MemoryStore()
    loop = started(rules(), store)
    assert loop.ledger.ab_test()["sentence"] == "no reward is known yet; go on."
    played(loop, 0, 150)
    loop.decide(DecideRequest(context=[1.0, 0.0], arms=["a", "b"], id="two")).result()  # not among all arms
    let_deadlines_pass(loop)
    study = op.ABTest(None, ARMS, 0.01)
    decisions = {one.id: one for one in store.read(kinds=["decision"]) if isinstance(one, Decision)}
    for join in store.read(kinds=["join"]):
        assert isinstance(join, Join)
        one = decisions[join.id]
        if len(one.offered) == 3:
            order = [one.offered.index(arm) for arm in ARMS]
            p, means = np.array(one.probabilities)[order], np.array([one.means])[:, order]
            study.learn_rows(np.array([order.index(one.places[0])]), np.array(join.rewards), p, means)
    found = loop.ledger.ab_test()
    assert (found["leader"], found["decisions"]) == ("b", 150)
    assert found["sentence"] == study.answer.sentence
    assert [one["limits"] for one in found["contrasts"]] == [[*one.limits] for one in study.answer.contrasts]


def test_a_restart_has_the_same_answer_and_another_tolerance_begins_anew(started):
    store = MemoryStore()
    loop = started(rules(), store)
    played(loop, 0, 60)
    loop.learner.run_after_learning(lambda: loop.learner.save_checkpoint(always=True)).result()
    played(loop, 60, 100)
    loop.learner.stop()
    loop.writer.stop()
    for folder in ("models", "lost"):
        again = started(rules(), store, folder)
        assert again.ledger.ab_test() == loop.ledger.ab_test()
        again.stop()
    again = started(rules(ab_test={"tolerance": 0.02}), store)
    assert again.ledger.ab_test()["decisions"] == 0
    again.change_settings(rules(ab_test=None))
    assert again.ledger.ab_test() is None


BAD = {
    "ab_test must be left out where reward.default is none": {"reward": {"default": "none"}},
    "ab_test must be left out unless arms has from 2 to 50 names": {"arms": []},
    "ab_test: certainty must be": {"ab_test": {"certainty": 1.0}},
    "ab_test: tolerance must be at least 0": {"ab_test": {"tolerance": -1.0}},
}


@pytest.mark.parametrize("sentence", BAD)
def test_settings_that_do_not_fit_are_refused(sentence):
    with pytest.raises(ValueError, match=sentence):
        rules(**BAD[sentence])
