"""Models of a loop that follow one another: candidates by replay, canaries, promotion, ways back; in every bit."""

import json

import msgspec
import numpy as np
import pytest

import onepass as op
from counts import LONG, repetitions
from onepass import cli
from onepass.evaluation.events import event_rows
from onepass.log import Decision, Event, Join
from onepass.log.memory import MemoryStore
from onepass.log.model_lineage import RETIRED, read_lineage
from onepass.log.replay import Fold
from onepass.log.sqlite import SqliteStore
from onepass.log.verification import verify
from onepass.service.messages import ApiError, Arm, DecideRequest, OutcomeRequest
from onepass.service.responses import decision_answer
from onepass.service.settings import parse_settings
from patience import HeldClock, let_deadlines_pass, until
from service_process import loops_in

ARMS = ["a", "b", "c"]
PAUSE = 0.006  # seconds between two decisions: joins come while others decide


def model(reg=0.5, seed=2, **more):
    explores = {"kind": "Thompson", "exploration": 0.4, "draws": 5}
    arguments = {"model": "disjoint", "reg": reg, "exploration": explores, **more}
    return {"recipe": "OFUL", "seed": seed, "arguments": arguments}


def rules(reg=0.5, wait=0.02, **more):
    return parse_settings({
        "name": "news", "features": {"context": 3}, "arms": ARMS, "model": model(reg), "reward": {"wait": wait},
        "operation": {"publish": 0.0}, **more,
    })  # fmt: skip


def played(loop, begin, end, best="a", **fields):
    """Decisions, of which one arm is rewarded, in time."""
    for t in range(begin, end):
        loop.clock.forward(PAUSE)
        context = [1.0, *np.random.default_rng(t).standard_normal(2).tolist()]
        found = decision_answer(loop.decide(DecideRequest(context=context, id=f"{t}", **fields)).result())
        if found.arm == best:
            loop.outcomes([OutcomeRequest(id=f"{t}", value=1.0, key="k")])[1].result()


def took_over(loop, line):
    until(lambda: loop.learner.copies.present.line == line)


def waiting(loop):
    until(lambda: loop.building is not None and loop.building.ready)


def verified(store):
    """Every model of the log, verified: how many decisions and shares of candidates came out the same."""
    found = [verify(Fold.resume(store, "news", first=True, line=line)) for line in read_lineage(store, "news").each]
    assert all(one.ok and not one.others and not one.left for one in found)
    assert sum(one.decisions for one in found) == sum(1 for _ in store.read(kinds=["decision"]))
    return sum(one.equal for one in found)


def replayed(store):
    fold = Fold.resume(store, "news", first=True)
    fold.advance()
    return op.to_bytes(fold.bandit)


@pytest.fixture
def started(tmp_path):
    """Loops that end with their test."""
    with loops_in(tmp_path, HeldClock()) as start:
        yield start


def test_another_model_learns_the_log_and_takes_over_and_replay_agrees_across_the_change(started):
    store = MemoryStore()
    loop = started(rules(), store)
    played(loop, 0, 20)
    assert loop.change_settings(rules(reg=2.0, wait=0.03)) == ["model", "reward"]
    assert loop.settings.reward.wait == 0.03
    took_over(loop, 1)
    assert loop.settings.model.arguments["reg"] == 2.0
    played(loop, 20, 40)
    let_deadlines_pass(loop)
    loop.stop()
    assert {one.line for one in store.read(kinds=["decision"])} == {0, 1}
    assert verified(store) == 40
    twin = Fold(store, "news", op.OFUL(dim=3, **{**built(rules(reg=2.0))}))
    assert twin.advance() == 40
    assert replayed(store) == op.to_bytes(twin.bandit) == op.to_bytes(loop.learner.fold.bandit)


def built(settings):
    from onepass.service.settings import parse_argument

    return {"seed": 2, **{name: parse_argument(name, value) for name, value in settings.model.arguments.items()}}


def test_the_recommended_bandit_learns_the_log_of_another_one_and_goes_on(started):
    store = MemoryStore()
    loop = started(rules(), store)
    played(loop, 0, 150)
    loop.change_settings(
        parse_settings({**rules().to_dict(), "model": {"arguments": {"warm_up": 64, "n_landmarks": 20}}})
    )
    took_over(loop, 1)
    for t in range(150, 300, 10):  # what was learned decides the next ten, however slow the learner is
        played(loop, t, t + 10)
        let_deadlines_pass(loop)
    loop.stop()
    assert type(loop.learner.fold.bandit.model) is op.model.AveragedModels
    assert loop.learner.fold.bandit.n_learned == verified(store) == 300
    assert op.to_bytes(loop.learner.fold.bandit) == replayed(store)
    late = [one for one in store.read(kinds=["decision"]) if one.line == 1][-50:]
    assert np.mean([one.probabilities[0] for one in late]) > 0.6  # the best arm, of three


@pytest.mark.parametrize("files", ["kept", "lost"])
def test_a_restart_goes_on_with_the_model_that_took_over(started, tmp_path, files):
    store = MemoryStore()
    loop = started(rules(), store)
    played(loop, 0, 10)
    loop.change_settings(rules(reg=2.0))
    took_over(loop, 1)
    played(loop, 10, 20)
    loop.stop()
    for file in (tmp_path / "models").iterdir() if files == "lost" else ():
        file.write_bytes(b"damaged")
    loop = started(rules(), store)  # of the same file as before: what was asked for last counts
    assert (loop.loop_state.lines.serving, loop.learner.fold.line) == (1, 1)
    played(loop, 20, 30)
    let_deadlines_pass(loop)
    loop.stop()
    assert op.to_bytes(loop.learner.fold.bandit) == replayed(store)
    assert verified(store) == 30


def test_a_log_that_ends_anywhere_about_a_change_of_models_goes_on(started):
    """As a power cut leaves it, without a checkpoint in a file: each end is one start."""
    store = MemoryStore()
    loop = started(rules(), store)
    played(loop, 0, 6)
    loop.change_settings(rules(reg=2.0))
    took_over(loop, 1)
    played(loop, 6, 9)
    let_deadlines_pass(loop)
    loop.stop()
    (staged,) = [one.seq for one in store.read(kinds=["checkpoint"]) if one.state == "staged"]
    (serving,) = [one.seq for one in store.read(kinds=["checkpoint"]) if one.line == 1 and one.why]
    for end in {staged - 2, staged - 1, staged, serving - 2, serving - 1, serving, serving + 1, store.last}:
        cut = MemoryStore()
        cut.append([msgspec.structs.replace(one, seq=0) for one in store.read(until=end)])
        loop = started(rules(), cut, f"cut at {end}")
        if end >= staged:
            took_over(loop, 1)
        played(loop, 20, 23)
        let_deadlines_pass(loop)
        loop.stop()
        assert loop.problem() == "it is stopping"
        assert op.to_bytes(loop.learner.fold.bandit) == replayed(cut)
        assert verified(cut) == sum(1 for _ in cut.read(kinds=["decision"]))


def test_a_file_with_another_model_is_learned_at_the_start(started):
    store = MemoryStore()
    loop = started(rules(), store)
    played(loop, 0, 10)
    loop.stop()
    loop = started(rules(reg=3.0), store)
    took_over(loop, 1)
    let_deadlines_pass(loop)
    assert loop.learner.fold.bandit.n_learned == 10


def test_a_candidate_that_fails_says_why_and_changes_nothing(started):
    store = MemoryStore()
    loop = started(rules(), store)
    played(loop, 0, 5)
    let_deadlines_pass(loop)
    store.append([Join(loop="news", time=1, id="nobody", rewards=[1.0])])  # nobody told the learner
    played(loop, 5, 10)
    let_deadlines_pass(loop)
    before = op.to_bytes(loop.learner.fold.bandit)
    loop.change_settings(rules(reg=2.0))
    until(lambda: loop.building is None)
    (line,) = [one for one in read_lineage(store, "news").each.values() if one.number == 1]
    assert line.state == RETIRED
    assert "is not in the log any more" in line.why
    assert op.to_bytes(loop.learner.fold.bandit) == before
    assert loop.problem() is None
    loop.stop()
    assert started(rules(), store).building is None


def test_a_candidate_learns_what_a_log_still_holds_whose_beginning_was_dropped(started):
    store = MemoryStore()
    loop = started(rules(), store)
    played(loop, 0, 10)
    let_deadlines_pass(loop)
    played(loop, 10, 20)
    let_deadlines_pass(loop)
    place = next(one.seq for one in store.read(kinds=["decision"]) if one.id == "15")
    store.drop_before(place + 1)  # its join comes later
    whole = {one.id for one in store.read(kinds=["decision"])}
    loop.change_settings(rules(reg=2.0))
    took_over(loop, 1)
    let_deadlines_pass(loop)
    lost = max(one.seq for one in store.read(kinds=["join"]) if one.id not in whole)
    learned = [one for one in store.read(lost, kinds=["join"])]
    assert loop.learner.fold.bandit.n_learned == len(learned) <= len(whole)
    loop.stop()
    assert op.to_bytes(loop.learner.fold.bandit) == replayed(store)


def test_a_canary_shows_a_mixture_whose_probability_is_logged_and_verified(started):
    n, share = repetitions(200, 3_000), 0.3
    store = MemoryStore()
    loop = started(rules(mode="canary", share=share), store)
    played(loop, 0, 30)
    loop.change_settings(rules(reg=20.0, mode="canary", share=share))
    waiting(loop)
    played(loop, 30, 30 + n, exclude=["c"])
    loop.decide(DecideRequest(context=[1.0, 0.0, 0.0], id="list", slots=2)).result()
    let_deadlines_pass(loop)
    loop.stop()
    records = [one for one in store.read(kinds=["decision"]) if one.canary is not None]
    assert len(records) == n
    mine = 0
    for record in records:
        p, q = record.probabilities, record.canary.probabilities
        assert record.showing == [(1.0 - share) * a + share * b for a, b in zip(p, q, strict=True)]
        place, _, propensity, chances, *_ = next(event_rows(Event(record), None, 0.0))
        assert (place, propensity) == (record.shown[0], record.showing[record.shown[0]])
        assert (chances, decision_answer(record).propensity) == (record.showing, propensity)
        mine += record.shown == record.places
    drawn = np.array([record.shown[0] for record in records])
    for place in range(3):  # how often an arm was shown, against its logged probabilities: a sum of independent draws
        p = np.array([record.showing[place] for record in records])
        assert abs((drawn == place).sum() - p.sum()) <= 4.5 * np.sqrt((p * (1.0 - p)).sum())
    assert verified(store) == 30 + n + n + 1  # of both models


def test_a_reward_beyond_its_range_is_refused_and_one_that_the_log_has_stops_no_learner(started):
    store = MemoryStore()
    loop = started(rules(mode="canary", share=0.5), store)
    played(loop, 0, 30)
    loop.change_settings(rules(reg=20.0, wait=60.0, mode="canary", share=0.5))
    waiting(loop)
    for tries in range(1, 1_000):  # both draw, and may come to the same
        shown = loop.decide(DecideRequest(context=[1.0, 1.0, 1.0], id=f"low {tries}")).result()
        place = shown.shown[0]
        if shown.probabilities[place] != shown.canary.probabilities[place]:
            break
    with pytest.raises(ApiError, match=r"value must be from 0.0 to 1.0"):
        loop.outcomes([OutcomeRequest(id=shown.id, value=-1e6)])
    loop.writer.submit([Join(loop="news", time=0, id=shown.id, rewards=[-1e6])]).result()
    trial = loop.building.trial
    until(lambda: trial.gain().rows == 1)
    assert trial.gain().mean != 0.0
    loop.change_settings(rules(reg=20.0, mode="canary", share=0.5))
    played(loop, 30, 40)
    loop.clock.forward(1.0)
    until(lambda: loop.building.trial.gain().rows == 11)
    assert loop.problem() is None
    loop.stop()
    assert verified(store) == 40 + tries + 10 + tries


def test_the_command_verifies_every_model_of_a_loop(started, tmp_path, capsys):
    with SqliteStore(tmp_path / "log", synced=False) as store:
        loop = started(rules(mode="canary", share=0.5), store)
        played(loop, 0, 5)
        loop.change_settings(rules(reg=20.0, mode="canary", share=0.5))
        waiting(loop)
        played(loop, 5, 10)
        loop.promote()
        played(loop, 10, 15)
        let_deadlines_pass(loop)
        loop.stop()
    with pytest.raises(SystemExit) as done:
        cli.main(["log", "verify", str(tmp_path / "log"), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (done.value.code, found["ok"]) == (0, True)
    first, second = found["loops"]["news, model 0"], found["loops"]["news, model 1"]
    assert (first["decisions"], second["decisions"], second["canaries"]) == (10, 5, 5)
    assert (first["equal"], second["equal"], first["wrong"], second["wrong"]) == (10, 10, 0, 0)


@pytest.mark.parametrize("field", ["shown", "showing", "canary"])
def test_a_mixture_that_is_not_what_the_log_says_is_found(started, field):
    store = MemoryStore()
    loop = started(rules(mode="canary", share=0.5), store)
    played(loop, 0, 5)
    loop.change_settings(rules(reg=20.0, mode="canary", share=0.5))
    waiting(loop)
    played(loop, 5, 10)
    let_deadlines_pass(loop)
    loop.stop()
    forged = MemoryStore()
    for record in store.read():
        if isinstance(record, Decision) and record.id == "7":
            wrong = {
                "shown": [(record.shown[0] + 1) % 3],
                "showing": [1.0, 0.0, 0.0],
                "canary": msgspec.structs.replace(record.canary, probabilities=[0.2, 0.3, 0.5]),
            }
            record = msgspec.structs.replace(record, **{field: wrong[field]})
        forged.append([msgspec.structs.replace(record, seq=0)])
    found = [verify(Fold.resume(forged, "news", first=True, line=line)) for line in (0, 1)]
    assert not all(one.ok for one in found)
    assert {one.seq for each in found for one in each.mismatches} == {
        one.seq for one in forged.read(kinds=["decision"]) if one.id == "7"
    }


def test_a_candidate_waits_for_its_promotion_across_a_restart(started):
    store = MemoryStore()
    loop = started(rules(mode="canary"), store)
    played(loop, 0, 10)
    loop.change_settings(rules(reg=4.0, mode="canary"))
    waiting(loop)
    played(loop, 10, 20)
    loop.stop()
    loop = started(rules(mode="canary"), store)
    waiting(loop)
    assert loop.loop_state.lines.serving == 0
    played(loop, 20, 30)
    loop.promote()
    assert loop.loop_state.lines.serving == 1
    with pytest.raises(ApiError, match="there is no candidate"):
        loop.promote()
    played(loop, 30, 40)
    let_deadlines_pass(loop)
    loop.stop()
    assert op.to_bytes(loop.learner.fold.bandit) == replayed(store)
    assert verified(store) >= 40


def test_a_candidate_that_is_given_up_or_followed_by_another_one_ends(started):
    store = MemoryStore()
    loop = started(rules(mode="canary"), store)
    played(loop, 0, 10)
    loop.change_settings(rules(reg=4.0, mode="canary"))
    waiting(loop)
    played(loop, 10, 20)
    loop.change_settings(rules(reg=5.0, mode="canary"))
    waiting(loop)
    assert loop.building.line == 2
    loop.change_settings(rules(mode="canary", wait=0.03))  # its model is the present one: the candidate stays
    assert loop.building.line == 2
    loop.discard_candidate()
    with pytest.raises(ApiError, match="there is no candidate"):
        loop.discard_candidate()
    assert [one.why for one in read_lineage(store, "news").each.values()] == ["", "another candidate came", "given up"]
    played(loop, 20, 30)
    let_deadlines_pass(loop)
    loop.stop()
    assert verified(store) >= 30


@pytest.mark.parametrize("learn", [False, True])
def test_a_way_back_serves_the_model_as_it_was_and_goes_on_from_here(started, tmp_path, learn):
    store = MemoryStore()
    loop = started(rules(), store)
    played(loop, 0, 10)
    let_deadlines_pass(loop)
    loop.stop()
    (kept,) = (tmp_path / "models").glob("*.model")
    loop = started(rules(), store)
    played(loop, 10, 30)
    let_deadlines_pass(loop)
    loop.rollback(kept.stem, learn)
    took_over(loop, 1)
    assert loop.learner.fold.bandit.n_learned == (30 if learn else 10)
    with pytest.raises(ApiError, match="there is no checkpoint nothing"):
        loop.rollback("nothing")
    played(loop, 30, 40)
    let_deadlines_pass(loop)
    loop.stop()
    assert loop.learner.fold.bandit.n_learned == (40 if learn else 20)
    assert verified(store) == 40
    assert op.to_bytes(started(rules(), store).learner.fold.bandit) == replayed(store)


if LONG:  # another kind of model to compile, 20 s

    def test_a_model_that_stopped_learning_is_left_by_another_one(started):
        store = MemoryStore()
        short = {"recipe": "CRTM", "arguments": {"horizon": 4, "exploration": 1.0}}
        offers = [Arm(id=arm, features=[float(arm == "a")]) for arm in ARMS]
        rows = {"features": {"context": 3, "arms": 1}}
        loop = started(parse_settings({**rules(**rows).to_dict(), "model": short}), store)
        played(loop, 0, 40, arms=offers)
        let_deadlines_pass(loop)
        assert "learning stopped" in loop.problem()
        loop.change_settings(rules(**rows))
        took_over(loop, 1)
        assert loop.problem() is None
        played(loop, 40, 50, arms=offers)
        let_deadlines_pass(loop)
        assert loop.learner.fold.bandit.n_learned == 50


def test_a_better_candidate_takes_over_by_itself_and_a_worse_one_does_not(started):
    """The present model cannot learn (its penalty is too large), the candidate can; then the other way round."""
    store = MemoryStore()
    asked = {"mode": "canary", "share": 0.5, "promotion": {"automatic": True}}
    loop = started(rules(reg=1e9, **asked), store)
    played(loop, 0, 60)
    loop.change_settings(rules(reg=0.5, **asked))
    waiting(loop)
    end = 60
    while loop.loop_state.lines.serving == 0:
        played(loop, end, end + 50)
        let_deadlines_pass(loop)
        end += 50
        assert end < 1_000
    assert loop.loop_state.lines.each[1].why.startswith("better: gain +")
    loop.change_settings(rules(reg=1e9, **asked))
    waiting(loop)
    played(loop, end, end + 150)
    let_deadlines_pass(loop)
    assert loop.loop_state.lines.serving == 1
    assert loop.building.trial.known.upper < 0.0
    loop.stop()
    assert verified(store) >= end + 150
