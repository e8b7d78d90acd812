"""Bandits with a half-life, against all rows with the weights of their ticks."""

from datetime import UTC, datetime, timedelta
from math import floor

import numpy as np
import pytest

import onepass as op
from dense_forgetting import Weighted

DIM, REG = 4, 0.3


class Remembering:
    """One dense model that forgets by ticks, 64 to a half-life; position: rounds, or seconds."""

    def __init__(self, half_life):
        self.half_life, self.tick, self.model = half_life, 0, Weighted(DIM, REG)

    def go_to(self, position):
        tick = floor(position * 64 / self.half_life)
        if tick > self.tick:
            self.model.decay(2.0 ** (-(tick - self.tick) / 64))
            self.tick = tick

    def learn(self, row, reward, position):
        self.go_to(position)
        self.model.append(row, reward)


def stream(seed, count):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((count, DIM)), rng.standard_normal(count)


def agree(bandit, truth):
    want = truth.model.theta
    assert np.abs(bandit.model.parameter - want).max() <= 1e-9 * max(np.abs(want).max(), 1e-3)
    assert np.abs(bandit.model.state.design.settings.reg - REG) == 0.0


@pytest.mark.parametrize("half_life", [1.5, 10.0, 300.0])
@pytest.mark.parametrize("kind", [op.Ridge, op.OnlineNewton])
def test_a_row_counts_half_after_so_many_rounds(kind, half_life):
    """One by one, in batches and played, whatever the ticks are."""
    rows, rewards = stream(0, 200)
    one, many = (op.Bandit(kind(op.Exact(dim=DIM, reg=REG)), op.UCB(0.1), half_life=half_life) for _ in range(2))
    truth = Remembering(half_life)
    for t, (row, reward) in enumerate(zip(rows, rewards, strict=True)):
        truth.learn(row, reward, t)
        one.learn(row, reward)
        truth.go_to(t + 1)
        agree(one, truth)
    many.learn(rows[:70], rewards[:70])
    many.learn(rows[70], rewards[70])
    many.play(rows[71:, None], rewards[71:, None])
    agree(many, truth)


@pytest.mark.parametrize("exploration", [op.UCB(0.3), op.InverseGap(), op.Thompson(0.5)], ids=["ucb", "gap", "ts"])
@pytest.mark.parametrize("half_life", [6.0, 500.3])
def test_played_rounds_are_those_of_decisions_and_rewards(half_life, exploration):
    rng = np.random.default_rng(9)
    contexts, rewards = rng.standard_normal((150, 3, DIM)), rng.standard_normal((150, 3))
    whole, single = (op.OFUL(dim=DIM, reg=REG, exploration=exploration, half_life=half_life) for _ in range(2))
    arms = whole.play(contexts, rewards)
    for t in range(150):
        arm = single.decide(contexts[t]).arm
        single.learn(contexts[t, arm], rewards[t, arm])
        assert arm == arms[t]
    assert np.allclose(whole.model.parameter, single.model.parameter, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("parameters", ["shared", "disjoint"])
def test_a_half_life_in_seconds_asks_for_times(parameters):
    rows, rewards = stream(1, 60)
    times = 1.7e9 + np.cumsum(np.random.default_rng(2).exponential(40.0, 60))
    bandit = op.OFUL(dim=DIM, reg=REG, model=parameters, half_life=timedelta(minutes=5))
    plain = op.OFUL(dim=DIM, reg=REG, model=parameters)
    arm = None if parameters == "shared" else "a"
    truth = Remembering(300.0)
    for row, reward, time in zip(rows, rewards, times.tolist(), strict=True):
        with pytest.raises(ValueError, match="time must be given"):
            bandit.learn(row, reward, arm)
        with pytest.raises(ValueError, match="time must be None"):
            plain.learn(row, reward, arm, time=time)
        bandit.learn(row, reward, arm, time=time)
        truth.learn(row, reward, time)
    last = float(times[-1])
    request, arms = np.eye(DIM)[:, None], ["a"]
    before = op.to_bytes(bandit)
    for later in (0.0, 10.0, 1000.0, 1e9):
        truth.go_to(last + later)
        for time in (last + later, datetime.fromtimestamp(last + later, UTC)):
            decision = bandit.decide(request, arms, time=time, id=[str(i) for i in range(DIM)])
            assert np.abs(decision.means[:, 0] - truth.model.theta).max() <= 1e-9
            assert np.abs(decision.widths[:, 0] ** 2 - np.diag(truth.model.inverse)).max() <= 1e-9
            assert np.array_equal(bandit.score(request, arms, time=time), decision.scores)
    assert op.to_bytes(bandit) == before  # deciding changes nothing
    earlier, now = (bandit.score(request, arms, time=last - d) for d in (500.0, 0.0))
    assert np.array_equal(earlier, now)  # time never goes back
    for bad in ("now", np.nan, datetime(2026, 1, 1)):  # one without a time zone is refused
        with pytest.raises(ValueError, match="time"):
            bandit.decide(request, arms, time=bad)


def test_an_arm_that_nobody_touched_catches_up_in_one_step():
    """Deciding reads it aged; learning, saving and coming back are bit for bit what they are without reading."""
    rows, rewards = stream(3, 400)
    names = np.random.default_rng(4).choice(["a", "b", "rare"], p=[0.55, 0.44, 0.01], size=400).tolist()
    silent, asked = (op.OFUL(dim=DIM, reg=REG, model="disjoint", half_life=20.0) for _ in range(2))
    truth = {name: Remembering(20.0) for name in ["a", "b", "rare"]}
    for t, (row, reward, name) in enumerate(zip(rows, rewards, names, strict=True)):
        truth[name].learn(row, reward, t)
        for bandit in (silent, asked):
            bandit.learn(row, reward, name)
        for each in truth.values():
            each.go_to(t + 1)
        decision = asked.decide(np.eye(DIM)[:, None], list(truth), id=[f"{t}, {i}" for i in range(DIM)])
        for a, each in enumerate(truth.values()):
            assert np.abs(decision.means[:, a] - each.model.theta).max() <= 1e-9
        if t == 200:
            asked = op.from_bytes(op.to_bytes(asked))
    assert op.to_bytes(silent) == op.to_bytes(asked)
    for name in truth:
        assert np.abs(silent.model.parameter_of(name) - truth[name].model.theta).max() <= 1e-9


@pytest.mark.parametrize("seconds", [False, True])
def test_hybrid_models_forget_as_the_joint_regression_does(seconds):
    """All rows [z, 0 .. x .. 0] of the joint ridge regression with their weights."""
    rows, rewards = stream(5, 120)
    rng, arms, half_life = np.random.default_rng(6), 3, 15.0
    bandit = op.OFUL(dim=DIM, reg=REG, model="hybrid", half_life=timedelta(seconds=half_life) if seconds else half_life)
    joint, tick = Weighted(DIM * (arms + 1), REG), 0
    wide = lambda x, a: np.concatenate([x, *(x * (a == b) for b in range(arms))])  # noqa: E731
    for t, (row, reward) in enumerate(zip(rows, rewards, strict=True)):
        arm = int(rng.integers(arms))
        when = {"time": float(t)} if seconds else {}
        now = floor(t * 64 / half_life)
        joint.decay(2.0 ** (-(now - tick) / 64))
        joint.append(wide(row, arm), reward)
        bandit.learn(row, reward, arm, **when)
        if not seconds:
            tick = floor((t + 1) * 64 / half_life)
            joint.decay(2.0 ** (-(tick - now) / 64))
        else:
            tick = now
        decision = bandit.decide(rows[t - 1], range(arms), **when)
        for a in range(arms):
            x = wide(rows[t - 1], a)
            if a in bandit.arms:
                assert abs(decision.means[a] - x @ joint.theta) <= 1e-8
                assert abs(decision.widths[a] ** 2 - x @ joint.inverse @ x) <= 1e-8


@pytest.mark.parametrize("parameters", ["shared", "disjoint", "hybrid"])
def test_snapshots_answer_for_later_times_and_stay_as_they_are(parameters):
    rows, rewards = stream(10, 60)
    bandit = op.OFUL(dim=DIM, reg=REG, model=parameters, half_life=timedelta(seconds=20))
    names = None if parameters == "shared" else ["a", "b", "c"] * 10
    bandit.learn(rows[:30], rewards[:30], names, time=0.0)
    snapshot, request = bandit.snapshot(), rows[:3]
    arms = None if parameters == "shared" else ["a", "b", "c"]
    before = snapshot.score(request, arms, time=0.0)
    later = snapshot.score(request, arms, time=15.0)
    assert np.array_equal(later, bandit.score(request, arms, time=15.0))
    assert not np.allclose(later, before)
    bandit.learn(rows[30:], rewards[30:], names, time=30.0)
    bandit.snapshot().score(request, arms, time=40.0)
    assert np.array_equal(snapshot.score(request, arms, time=0.0), before)
    assert np.array_equal(snapshot.score(request, arms, time=15.0), later)


def test_clocks_are_saved_copied_and_carried():
    rows, rewards = stream(7, 50)
    for parameters, arm in (("shared", None), ("disjoint", ["a"] * 25)):
        kinds = [op.OFUL(dim=DIM, reg=REG, model=parameters, half_life=h) for h in (7.0, timedelta(hours=1))]
        for bandit, when in zip(kinds, ({}, {"time": 1e6}), strict=True):
            bandit.learn(rows[:25], rewards[:25], arm, **when)
            twins = [bandit.copy(), op.from_bytes(op.to_bytes(bandit)), bandit.snapshot().bandit()]
            later = {"time": 1e6 + 4000.0} if when else {}
            for one in (bandit, *twins):
                assert one.model.half_life == bandit.model.half_life
                one.learn(rows[25:], rewards[25:], arm, **later)
                assert op.to_bytes(one) == op.to_bytes(bandit)
    here, there = (op.OFUL(dim=DIM, reg=REG, model="disjoint", half_life=7.0) for _ in range(2))
    here.learn(rows[:25], rewards[:25], ["a"] * 25)
    there.learn(rows[25:], rewards[25:], ["b"] * 25)
    there.model.import_arm("a", here.model.export_arm("a"))
    assert np.array_equal(there.model.parameter_of("a"), here.model.parameter_of("a"))
    there.learn(np.zeros(DIM), 0.0, "b")  # one round later
    assert np.linalg.norm(there.model.parameter_of("a")) > 0.8 * np.linalg.norm(here.model.parameter_of("a"))


@pytest.mark.parametrize("parameters", ["shared", "disjoint"])
def test_bandits_of_one_time_merge_and_others_say_why_not(parameters):
    rows, rewards = stream(8, 40)
    make = lambda h: op.OFUL(dim=DIM, reg=REG, model=parameters, half_life=h)  # noqa: E731
    names = None if parameters == "shared" else ["a"] * 20
    one, two = make(timedelta(seconds=30)), make(timedelta(seconds=30))
    one.learn(rows[:20], rewards[:20], names, time=100.0)
    two.learn(rows[20:], rewards[20:], names, time=150.0)
    truth = Remembering(30.0)
    for row, reward in zip(rows[:20], rewards[:20], strict=True):
        truth.learn(row, reward, 100.0)
    for row, reward in zip(rows[20:], rewards[20:], strict=True):
        truth.learn(row, reward, 150.0)
    merged = op.merge_all(one, two)
    theta = merged.model.parameter if parameters == "shared" else merged.model.parameter_of("a")
    assert np.abs(theta - truth.model.theta).max() <= 1e-9
    with pytest.raises(ValueError, match="timedelta"):
        make(10.0).merge(make(10.0))
    with pytest.raises(ValueError, match="half_life"):
        one.merge(make(None))


@pytest.mark.parametrize("change", ["merge", "remove", "import"])
@pytest.mark.parametrize("parameters", ["shared", "disjoint", "hybrid"])
def test_a_later_time_that_was_asked_before_a_merge_or_another_arm_is_answered_anew(parameters, change):
    if change != "merge" and (parameters == "shared" or (change, parameters) == ("import", "hybrid")):
        return  # these have no arms to remove, or none to import
    one, two = (op.OFUL(dim=2, model=parameters, half_life=timedelta(hours=1)) for _ in range(2))
    names = [None] if parameters == "shared" else ["a", "b"]
    for bandit in (one, two):
        for name in names:
            bandit.learn([1.0, 0.5], 1.0 if bandit is one else 5.0, name, time=0.0)
    context = (np.eye(2),) if parameters == "shared" else ([1.0, 0.5], ["a", "b", "c"])
    one.score(*context, time=3600.0)
    if change == "merge":
        one.merge(two)
    elif change == "remove":
        one.remove_arm("a")
    else:
        one.model.import_arm("c", two.model.export_arm("a"))
    assert one.score(*context, time=3600.0).tolist() == one.copy().score(*context, time=3600.0).tolist()


@pytest.mark.parametrize("model", ["shared", "disjoint", "hybrid", "heads"])
def test_a_refused_merge_does_not_let_the_bandit_forget(model):
    """Sketches do not give rows back, and the second bandit is half a day ahead."""
    half_life, design = timedelta(hours=1), op.FrequentDirections(dim=2, size=2)
    first = (
        op.Bandit(op.model.ArmHeads(design, half_life=half_life))
        if model == "heads"
        else op.SOFUL(dim=2, size=2, half_life=half_life, model=model)
    )
    name = None if model == "shared" else "a"
    first.learn([1.0, 0.5], 1.0, name, time=0.0)
    start, second = first.copy(), first.copy()
    second.learn([1.0, 0.3], 0.0, name, time=50_000.0)
    before = op.to_bytes(first)
    with pytest.raises(ValueError, match="rows cannot be taken away"):
        first.merge(second, since=start)
    assert op.to_bytes(first) == before


@pytest.mark.parametrize("half_life", [4.0, timedelta(hours=1)])
@pytest.mark.parametrize("model", ["disjoint", "hybrid"])
def test_a_factor_that_has_turned_is_refused_before_anything_is_learned_or_forgotten(model, half_life):
    bandit, timed = op.OFUL(dim=(2, 2), model=model, half_life=half_life), isinstance(half_life, timedelta)
    bandit.learn(op.Factors([1.0, 0.0], [1.0, 0.0]), 1.0, "a", **({"time": 0.0} if timed else {}))
    before, right = op.to_bytes(bandit), np.array([[1.0, 0.0]] * 8 + [[0.0, 1.0]])
    with pytest.raises(ValueError, match="row 8 has turned"):
        bandit.learn(op.Factors(np.ones((9, 2)), right), np.ones(9), ["a"] * 9, **({"time": 90_000.0} if timed else {}))
    assert op.to_bytes(bandit) == before


@pytest.mark.parametrize("models", [op.Disjoint, lambda estimator: estimator, lambda estimator: op.model.ArmHeads])
@pytest.mark.parametrize(("half_life", "time"), [(timedelta(hours=1), None), (None, 5.0), (7.0, 5.0)])
def test_a_wrong_time_is_refused_before_the_feature_map_has_learned(models, half_life, time):
    features = op.features.Standardize(dim=2)
    model = models(op.Ridge(op.Exact(dim=2)))
    bandit = (
        op.Bandit(model(op.Exact(dim=2), features, half_life))
        if model is op.model.ArmHeads
        else op.Bandit(model, features=features, half_life=half_life)
    )
    name = "a" if bandit.model.has_named_arms else None
    for _ in range(2):
        before = op.to_bytes(bandit)
        with pytest.raises(ValueError, match="time must be"):
            bandit.learn([9.0, 7.0], 1.0, name, time=time)
        assert op.to_bytes(bandit) == before
        bandit.learn([1.0, 2.0], 1.0, name, time=None if time else 0.0)


def test_a_time_so_far_away_that_no_file_could_hold_it_is_refused():
    bandit = op.OFUL(dim=2, half_life=timedelta(hours=1))
    for time in (1.7e18, -1.7e18, 1e300):  # nanoseconds, say
        with pytest.raises(ValueError, match="time must be Unix seconds"):
            bandit.learn([1.0, 0.0], 1.0, time=time)
    bandit.learn([1.0, 0.0], 1.0, time=1.7e9)
    assert op.from_bytes(op.to_bytes(bandit)).n_learned == 1


def test_what_cannot_forget_says_so():
    for bad in (0.0, -1.0, np.inf, "long", timedelta(0)):
        with pytest.raises(ValueError, match="half_life"):
            op.OFUL(dim=DIM, half_life=bad)
    pending = op.PendingRewards(op.OFUL(dim=DIM, half_life=timedelta(seconds=1)), after=5.0)
    pending.decide(np.eye(DIM), id="r", now=1.0)
    pending.reward("r", 1.0, now=2.0)
    assert (pending.expire(now=6.0), pending.bandit.n_learned) == (1, 1)
