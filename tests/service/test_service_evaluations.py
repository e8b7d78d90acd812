"""Evaluations of a loop's log in the background: beside plain arithmetic, honest about what a log cannot tell."""

import json

import msgspec
import numpy as np
import pytest

import onepass as op
from onepass.log import Decision, Join, Outcome
from onepass.log.memory import MemoryStore
from onepass.log.replay import Fold
from onepass.log.sqlite import SqliteStore
from onepass.service import policy_evaluation
from onepass.service.evaluations import EvaluationRequest, PolicyRequest, seq_before
from onepass.service.loop import Loop
from onepass.service.messages import ApiError
from onepass.service.settings import Model, make_bandit, parse_settings
from patience import until

ARMS = ["a", "b", "c"]
CHANCES = [0.5, 0.3, 0.2]
PAYS = [0.2, 0.5, 0.8]  # of an arm: how often it is rewarded
N = 600
EXPLORES = {"kind": "Thompson", "exploration": 0.4, "draws": 5}
LEARNS = Model(recipe="OFUL", arguments={"model": "disjoint", "reg": 0.5, "exploration": EXPLORES}, seed=2)
SETTINGS = parse_settings({"name": "news", "features": {"context": 2}, "arms": ARMS, "reward": {"wait": 1e5},
                    "model": {"recipe": "OFUL", "seed": 2, "arguments": LEARNS.arguments}})  # fmt: skip


def logged(store, n=N, known=True):
    """A log of a loop whose decisions were drawn from known chances: a third is never offered the last arm."""
    rng, bandit = np.random.default_rng(7), make_bandit(SETTINGS)
    store.append([Fold(store, "news", bandit).checkpoint(1)])
    for t in range(n):
        count = 2 if t % 3 == 0 else 3
        p = np.array(CHANCES[:count]) / sum(CHANCES[:count])
        place = int(rng.choice(count, p=p))
        context = [1.0, float(rng.standard_normal())]
        decision = bandit.decide(np.array(context), ARMS[:count], id=f"{t}")
        record = Decision.from_decision(
            decision, loop="news", time=10 * t + 10, contexts=context, shown=[place], mode="apprentice",
            showing=p.tolist() if known else None, extra={"due": 10 * t + 15},
        )  # fmt: skip
        reward = float(rng.random() < PAYS[place])
        join = Join(loop="news", time=10 * t + 15, id=f"{t}", rewards=[reward])
        store.append([record, Outcome(loop="news", time=10 * t + 11, id=f"{t}", value=reward), join])
    return store


@pytest.fixture(scope="module")
def log():
    return logged(MemoryStore())


@pytest.fixture
def started(tmp_path):
    loops = []

    def start(store):
        loops.append(Loop(SETTINGS, store, tmp_path / "models"))
        return loops[-1]

    yield start
    for loop in loops:
        if loop.writer.is_alive():
            loop.stop()


def done(loop, **fields):
    answer = loop.evaluations.start(EvaluationRequest(**fields))
    until(lambda: loop.evaluations.get(answer.id).status in ("done", "failed"))
    return loop.evaluations.get(answer.id)


def policies(*kinds, **fields):
    return tuple(PolicyRequest(name=kind, kind=kind, **fields) for kind in kinds)


def rows(store, since=0, until=None):
    joins = {one.id: one.rewards[0] for one in store.read(kinds=["join"])}
    return [(one, joins[one.id]) for one in store.read(since, until, ["decision"])]


def test_values_are_those_of_plain_arithmetic_and_limits_hold_them(started, log):
    found = done(started(log), policies=(*policies("uniform", "baseline", "logged"),
                                         PolicyRequest(name="b", kind="arm", arm="b")))  # fmt: skip
    each = rows(log)
    chances = {
        "uniform": lambda count: [1.0 / count] * count,
        "baseline": lambda count: [1.0] + [0.0] * (count - 1),
        "b": lambda count: [0.0, 1.0] + [0.0] * (count - 2),
    }
    truth = {"uniform": (0.35 + 2 * 0.5) / 3, "baseline": 0.2, "b": 0.5}
    assert (found.status, found.rows) == ("done", N)
    for one in found.policies:
        if one.name == "logged":
            assert one.value == pytest.approx(found.logged)
            assert (one.gain, one.better) == (0.0, False)
            continue
        w = np.array([chances[one.name](len(d.showing))[d.shown[0]] / d.showing[d.shown[0]] for d, _ in each])
        r = np.array([reward for _, reward in each])
        assert one.value == pytest.approx((w * r).sum() / w.sum())
        assert one.gain == pytest.approx(((w - 1.0) * r).mean())
        assert one.limits[0] < truth[one.name] < one.limits[1]
        assert one.verdict == "ok"
        assert one.effective == pytest.approx(w.sum() ** 2 / (w**2).sum())
    better, said = ({one.name: getattr(one, what) for one in found.policies} for what in ("better", "sentence"))
    assert better == {"uniform": True, "baseline": False, "logged": False, "b": False}
    assert said["uniform"].endswith("better.")
    assert said["baseline"].endswith("worse.")


def test_a_recipe_is_weighed_by_what_the_rows_before_taught_it(started, log):
    """The oracle: decide every decision again by a bandit that has learned those before it, one by one."""
    found = done(started(log), policies=(PolicyRequest(name="new", kind="recipe", model=LEARNS),), since=901)
    bandit, w, r = (
        op.OFUL(dim=2, seed=2, model="disjoint", reg=0.5, exploration=make_bandit(SETTINGS).exploration),
        [],
        [],
    )
    for decision, reward in rows(log, since=901):
        place, count = decision.shown[0], len(decision.showing)
        p = bandit.decide(np.array(decision.contexts), ARMS[:count], id=decision.id).probabilities
        w.append(p[place] / decision.showing[place])
        r.append(reward)
        bandit.learn(np.array(decision.contexts), reward, arm=ARMS[place])
    w, r = np.array(w), np.array(r)
    assert found.rows == len(r) == N - 300
    assert found.policies[0].value == pytest.approx((w * r).sum() / w.sum())


def test_a_frozen_model_has_learned_what_came_before_the_window_and_no_more(started, log):
    found = done(started(log), policies=(PolicyRequest(name="then", kind="frozen"),
                                         PolicyRequest(name="now", kind="frozen", through=902)), since=901)  # fmt: skip
    twin = Fold(log, "news", make_bandit(SETTINGS))
    twin.advance(901)
    w, r = [], []
    for decision, reward in rows(log, since=901):
        place, count = decision.shown[0], len(decision.showing)
        p = twin.bandit.decide(np.array(decision.contexts), ARMS[:count], id=decision.id).probabilities
        w.append(p[place] / decision.showing[place])
        r.append(reward)
    then, now = found.policies
    assert then.value == pytest.approx(np.dot(w, r) / sum(w))
    assert now.verdict == "failed"
    assert "would be judged by what it has learned" in now.sentence


def test_decisions_whose_joins_come_much_later_are_looked_up(log):
    late, window = MemoryStore(), policy_evaluation.Window(3, 9)
    decisions = [*log.read(kinds=["decision"])][:12]
    late.append([msgspec.structs.replace(one, seq=0) for one in decisions])
    late.append([Join(loop="news", time=10**6, id=one.id, rewards=[1.0], batch=1) for one in reversed(decisions)])
    (found,) = policy_evaluation.joined_groups(late, "news", window, most=2)
    assert [(one.seq, join.id) for one, join in found] == [(place, f"{place - 1}") for place in range(9, 3, -1)]


def test_a_log_of_the_first_arm_alone_is_refused_for_every_other_policy(started):
    found = done(started(logged(MemoryStore(), 150, known=False)), policies=policies("uniform", "logged"))
    uniform, same = found.policies
    assert (uniform.verdict, uniform.value, same.verdict) == ("refused", None, "ok")
    assert "never chose there" in uniform.sentence


def test_windows_are_places_or_times(started, log):
    loop = started(log)
    assert done(loop, since=901, until=1_201).rows == 100
    assert done(loop, begin=3_010e-6, end=4_010e-6).rows == 100
    assert done(loop, begin=1e9).why.startswith("the window has no decision")
    times = [one.time for one in log.read(until=1_801, loop="news")]
    for seconds in (0.0, 1e-6, 2_500e-6, 3_011e-6, 3_012e-6, 1.0):
        assert seq_before(log, "news", seconds) == sum(time < seconds * 1e6 for time in times)


def test_what_was_not_done_when_the_service_ended_is_done_by_the_next_one(started, tmp_path):
    with SqliteStore(tmp_path / "log", synced=False) as store:
        logged(store, 60)
        loop = started(store)
        first = done(loop, id="first")
        loop.stop()
        with pytest.raises(ApiError, match="stopping"):
            loop.evaluations.start(EvaluationRequest(id="late"))
        place = tmp_path / "news.evaluations" / "first.json"
        assert {path.stem for path in place.parent.glob("*.json")} <= {"first", "late"}
        plain = json.loads(place.read_text())
        place.write_text(json.dumps({**plain, "status": "running", "policies": []}))
        loop = started(store)
        until(lambda: loop.evaluations.get("first").status == "done")
        assert loop.evaluations.get("first") == first
        loop.evaluations.delete("first")
        assert not place.exists()
        loop.stop()


WRONG = {
    "id must be": {"id": "a/b"},
    "policies must be from 1": {"policies": ()},
    "with a name of its own": {"policies": policies("uniform", "uniform")},
    "level must be": {"level": 1.0},
    "since must be": {"since": 3, "until": 3},
    "arm must be given": {"policies": policies("arm")},
    "model must be given": {"policies": policies("frozen", model=LEARNS)},
    "model.recipe must be one of": {"policies": policies("recipe", model=Model(recipe="Nothing"))},
}


@pytest.mark.parametrize(("sentence", "fields"), WRONG.items(), ids=WRONG)
def test_what_cannot_be_evaluated_is_refused_in_a_sentence(started, log, sentence, fields):
    with pytest.raises(ApiError, match=sentence):
        started(log).evaluations.start(EvaluationRequest(**fields))
