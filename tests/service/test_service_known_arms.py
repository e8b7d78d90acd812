"""New names of arms cannot exhaust memory: a model forgets arms beyond a limit, at a place of the log, and every replay
forgets the same ones."""

import numpy as np
import pytest

import onepass as op
from onepass.log import Decision, Eviction, Join, decode, encode
from onepass.log.eviction import choose_evicted
from onepass.log.memory import MemoryStore
from onepass.log.records import CORRECTION
from onepass.log.replay import Fold
from onepass.log.sqlite import SqliteStore
from onepass.log.verification import verify
from onepass.service.messages import Arm, DecideRequest, OutcomeRequest
from onepass.service.settings import parse_settings
from patience import HeldClock, let_deadlines_pass, until
from service_process import loops_in

LIMIT = 20
CLICKED = ["a", "b", "c"]
ALWAYS = "always offered"
OFUL = {"recipe": "OFUL", "seed": 2, "arguments": {"model": "disjoint", "reg": 0.5}}
MODELS = {"OFUL": OFUL, "ContextualBandit": {"arguments": {"warm_up": 16, "n_landmarks": 4}}}


def rules(model, **changes):
    return parse_settings({
        "name": "news", "features": {"context": 3}, "arms": [ALWAYS], "mode": "canary", "share": 0.5, "model": model,
        "reward": {"wait": 0.02}, "operation": {"publish": 0.0}, "limits": {"known_arms": LIMIT}, **changes,
    })  # fmt: skip


def asked(loop, begin, end, names, dim=3):
    """Decisions between names, of which those of `CLICKED` are rewarded. dim: numbers of a context."""
    for t in range(begin, end):
        loop.clock.forward(0.006)
        context = np.random.default_rng(t).standard_normal(dim).tolist()
        record = loop.decide(DecideRequest(context=context, id=f"{t}", arms=names(t))).result()
        if record.offered[record.places[0]] in CLICKED:
            loop.outcomes([OutcomeRequest(id=f"{t}", value=1.0)])[1].result()


def known(loop):
    return loop.learner.fold.bandit.arms


def bounded(loop):
    """Wait until everything is learned and no model knows too many arms."""
    let_deadlines_pass(loop)
    until(lambda: len(known(loop)) <= LIMIT)
    let_deadlines_pass(loop)


def evictions(store):
    return [*store.read(kinds=["eviction"])]


@pytest.mark.parametrize("name", MODELS)
def test_new_names_push_out_new_names_and_a_restart_and_verify_know_the_same_model(tmp_path, name):
    with SqliteStore(tmp_path / "log") as store, loops_in(tmp_path, HeldClock()) as start:
        loop = start(rules(MODELS[name]), store)
        asked(loop, 0, 15, lambda t: [CLICKED[t % 3]])
        asked(loop, 15, 16, lambda t: [ALWAYS])
        asked(loop, 16, 120, lambda t: [f"new {t}", f"newer {t}"])
        bounded(loop)
        assert {*CLICKED, ALWAYS} <= {*known(loop)}
        written = evictions(store)
        assert sum(len(one.arms) for one in written) >= 104 + 4 - LIMIT, "each of 104 decisions brought a new name"
        assert not {arm for one in written for arm in one.arms} & {*CLICKED, ALWAYS}
        assert loop.numbers()["evicted"] == sum(len(one.arms) for one in written)
        loop.stop()
        data = op.to_bytes(loop.learner.fold.bandit)

        again = start(rules(MODELS[name]), store)
        assert op.to_bytes(again.learner.fold.bandit) == data
        asked(again, 120, 200, lambda t: [f"new {t}"])
        bounded(again)
        assert {*CLICKED, ALWAYS} <= {*known(again)}, "which arms were rewarded is known after a restart"
        again.stop()

        fold = Fold.resume(store, "news", first=True)
        found = verify(fold)
        assert found.ok, found
        assert not found.others
        assert found.checkpoints >= 2
        assert found.equal == 200
        assert op.to_bytes(fold.bandit) == op.to_bytes(again.learner.fold.bandit)
        other = Fold.resume(store, "news", first=True)
        for place in range(0, store.last, 7):
            other.advance(place)
        other.advance()
        assert op.to_bytes(other.bandit) == op.to_bytes(fold.bandit)


def test_candidates_forget_the_same_arms_and_a_model_that_came_back_forgets_too(tmp_path):
    with SqliteStore(tmp_path / "log") as store, loops_in(tmp_path, HeldClock()) as start:
        shared = {"recipe": "OFUL", "arguments": {"reg": 1.0}}
        features = {"context": 2, "arms": 1}
        loop = start(rules(OFUL, features=features, arms=[]), store)

        def play(begin, end):
            asked(
                loop,
                begin,
                end,
                lambda t: [Arm(id=f"new {t}", features=[1.0]), Arm(id=f"newer {t}", features=[2.0])],
                2,
            )
            let_deadlines_pass(loop)

        play(0, 60)
        loop.change_settings(rules(shared, features=features, arms=[]))
        until(lambda: loop.building is not None and loop.building.ready)
        play(60, 90)
        loop.promote()
        play(90, 150)
        count = len(evictions(store))
        loop.change_settings(rules(OFUL, features=features, arms=[]))
        until(lambda: loop.building is not None and loop.building.ready)
        play(150, 160)
        until(lambda: len(loop.learner.candidate.fold.bandit.arms) <= LIMIT)
        assert len(evictions(store)) > count
        loop.promote()
        play(160, 170)
        loop.stop()
        for line in range(3):
            found = verify(Fold.resume(store, "news", first=True, line=line))
            assert found.ok, found
            assert not found.others


def test_a_correction_of_an_arm_that_was_forgotten_changes_nothing_that_was_learned_since():
    def fold(store):
        return Fold(store, "news", op.recipes.OFUL(dim=1, model="disjoint", reg=1.0))

    store, bandit = MemoryStore(), op.recipes.OFUL(dim=1, model="disjoint", reg=1.0)
    for arm in ("a", "b"):
        bandit.add_arm(arm)
    for id in ("first", "second"):
        made = bandit.decide([1.0], ["a"], id=id)
        store.append([Decision.from_decision(made, loop="news", time=0, contexts=[1.0])])
    joined = {"loop": "news", "time": 0}
    store.append([
        Join(id="first", rewards=[0.0], **joined), Eviction(arms=["a", "unknown"], **joined),
        Join(id="second", rewards=[1.0], **joined),
        Join(id="first", rewards=[5.0], how=CORRECTION, again=True, **joined),
    ])  # fmt: skip
    whole = fold(store)
    whole.advance()
    assert whole.bandit.model.parameter_of("a").tolist() == pytest.approx([0.5])
    store.append([Join(id="second", rewards=[1.0], how=CORRECTION, again=True, **joined)])
    whole.advance()
    assert whole.bandit.model.parameter_of("a").tolist() == pytest.approx([1.0])


def test_arms_without_an_outcome_go_first_and_then_those_whose_last_is_the_oldest():
    bandit = op.recipes.OFUL(dim=1, model="disjoint")
    for arm in "abcdefghij":
        bandit.add_arm(arm)
    assert choose_evicted(bandit, 10, []) == []
    assert choose_evicted(bandit, 7, ["c", "a", "gone"]) == ["b", "d", "e"]
    assert choose_evicted(bandit, 7, ["c", "a"], kept={"b"}) == ["d", "e", "f"]
    assert choose_evicted(bandit, 1, ["c", "a"]) == ["b", "d", "e", "f", "g", "h", "i", "j", "c"]
    assert choose_evicted(op.recipes.OFUL(dim=1), 1, []) == []


def test_an_eviction_is_a_record_as_others_are():
    record = Eviction(loop="news", time=5, arms=["a", "b"])
    assert decode(encode(record)) == record
    with pytest.raises(ValueError, match="length >= 1"):
        decode(b'{"kind":"eviction","loop":"news","time":5,"arms":[""]}')


def test_arms_without_an_outcome_are_limited_by_their_memory_and_those_with_one_are_not(monkeypatch):
    bandit, rng = op.OFUL(dim=5, model="disjoint"), np.random.default_rng(0)
    names = [f"a{i}" for i in range(300)]
    for name in names:
        bandit.learn(rng.standard_normal(5), 0.0, arm=name)
    monkeypatch.setattr("onepass.log.eviction.BARE", bandit.memory_usage() // 3)
    assert choose_evicted(bandit, 1_000, names[:250]) == []
    assert choose_evicted(bandit, 1_000, names[200:]) == names[:110]
    assert choose_evicted(bandit, 1_000, [], kept=names[:10]) == names[10:220]
    monkeypatch.setattr("onepass.log.eviction.BARE", 0)
    assert choose_evicted(bandit, 1_000, []) == names[: 300 - 64 + 6], "64 always stay, less a tenth"
