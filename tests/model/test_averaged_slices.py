"""Views of `ContextualBandit` are made again a slice with every row: exactly, in bounded steps, saved at any time."""

import numpy as np
import pytest

import onepass as op
from counts import repetitions
from onepass.foundation import files, state
from onepass.model.averaged import remake as remaking
from onepass.model.averaged.arm_mixtures import Settings
from onepass.model.averaged.mixture import ALARMS, NEVER
from onepass.model.averaged.remake import AT_LEAST, FIELDS, LEARNING, NEXT, STAGE, WORK

SMALL = {"warm_up": 32, "n_landmarks": 8, "alarm_threshold": None}
LITTLE = 60_000  # work of a call, so that few small rows take many slices


def rows_of(kind, count, seed=0, dim=None):
    """Rows of each sort that has models of its own."""
    rng = np.random.default_rng(seed)
    if kind == "narrow":
        return rng.standard_normal((count, dim or 5))
    if kind == "wide":
        return rng.standard_normal((count, 6)) @ rng.standard_normal((6, dim or 310)) + rng.random((count, dim or 310))
    return np.array([rng.multinomial(15, rng.dirichlet(np.full(dim or 310, 0.1))) for _ in range(count)], float)


KINDS = ("narrow", "wide", "sparse")


def clicks(count, arms=3, seed=1):
    rng = np.random.default_rng(seed)
    return (rng.random(count) < 0.5).astype(float), rng.integers(arms, size=count).tolist()


def learned(rows, rewards, arms, bandit):
    for x, reward, arm in zip(rows, rewards, arms, strict=True):
        bandit.learn(x, reward, arm)
    return bandit


def remaking_of(bandit):
    return bandit.model._mixtures.remaking


def has_work(bandit):
    return bandit.n_learned > 0 and remaking_of(bandit) != ()


def stage_of(bandit):
    return int(remaking_of(bandit).progress[STAGE])


@pytest.mark.parametrize(("kind", "dim"), [("narrow", 64), ("narrow", 300), ("wide", 768), ("sparse", 768)])
def test_no_call_does_more_than_a_slice(kind, dim, monkeypatch):
    """At the defaults: what a call learns again and makes costs at most WORK, or is a single step."""
    slices, cost = [], remaking.step_cost

    def seen_further(*args):
        slices[-1].append(cost(args[1]))
        return make(*args)

    def learn_again(made, first, last):
        slices[-1].append(remaking.row_cost(made) * (last - first))
        return learn(made, first, last)

    make, learn = remaking.seen_further, remaking.learn_again
    monkeypatch.setattr(remaking, "seen_further", seen_further)
    monkeypatch.setattr(remaking, "learn_again", learn_again)
    bandit, (rewards, arms) = op.ContextualBandit(), clicks(320, arms=10)
    for x, reward, arm in zip(rows_of(kind, 320, dim=dim), rewards, arms, strict=True):
        slices.append([])
        bandit.learn(x, reward, arm)
    assert not has_work(bandit)
    slices = slices[AT_LEAST:]  # before, all is done at once
    most = max(sum(one) for one in slices)
    assert most <= WORK or all(len(one) == 1 for one in slices if sum(one) > WORK)
    assert most <= 2 * WORK
    if kind != "sparse":
        assert sum(len(one) > 0 for one in slices) > 20


@pytest.mark.parametrize("kind", KINDS)
def test_in_slices_it_learns_what_it_would_at_once(kind, monkeypatch):
    """Bit for bit, once the work is done, where the unit of rewards has not changed meanwhile."""
    rows, (rewards, arms) = rows_of(kind, 60), clicks(60)
    found = []
    for work in (np.inf, LITTLE):
        monkeypatch.setattr(remaking, "WORK", work)
        bandit = learned(rows, rewards, arms, op.ContextualBandit(**SMALL))
        assert not has_work(bandit)
        found.append(bandit.model.state)
    for name in FIELDS:
        one, other = ({"": getattr(each, name)} for each in found)
        assert state.equal(tuple(one.values()), tuple(other.values())), name


@pytest.mark.parametrize("kind", KINDS)
def test_until_the_work_is_done_it_decides_by_the_models_that_it_has(kind, monkeypatch):
    monkeypatch.setattr(remaking, "WORK", LITTLE)
    rows, (rewards, arms) = rows_of(kind, 40), clicks(40)
    bandit = learned(rows[:31], rewards[:31], arms[:31], op.ContextualBandit(**SMALL))
    while has_work(bandit):
        bandit.learn(rows[0], 1.0, 0)
    before = bandit.model.state.views
    bandit = op.from_bytes(op.to_bytes(bandit))
    bandit = learned(rows[31:32], rewards[31:32], arms[31:32], bandit)
    assert has_work(bandit)
    assert state.equal(bandit.model.state.views, before)


def events(bandit, t, kind):
    """Arms that come and go while the work is done, and an alarm."""
    if t % 7 == 3 and len(bandit.arms) > 2:
        bandit.remove_arm(bandit.arms[0])
    if t == 35:
        bandit.model.state.counts[ALARMS] += 1


@pytest.mark.parametrize("kind", KINDS)
def test_saved_in_the_middle_it_goes_on_bit_for_bit(kind, monkeypatch):
    """From bytes and as a copy, after every row, while arms come and go."""
    monkeypatch.setattr(remaking, "WORK", LITTLE)
    rows, (rewards, arms) = rows_of(kind, 60), clicks(60, arms=9)
    bandit, stages = op.ContextualBandit(**SMALL), set()
    twins = []
    for t in range(60):
        if has_work(bandit) and len(twins) < repetitions(6, 60) and t % repetitions(5, 1) == 0:
            stages.add(stage_of(bandit))
            twins += [op.from_bytes(op.to_bytes(bandit)), bandit.copy()]
        for one in (bandit, *twins):
            events(one, t, kind)
            one.learn(rows[t], rewards[t], arms[t])
    assert len(stages) > (kind != "sparse")
    data = op.to_bytes(bandit)
    assert all(op.to_bytes(one) == data for one in twins)


def test_snapshots_and_copies_share_no_work():
    rows, (rewards, arms) = rows_of("narrow", 280, dim=20), clicks(280)
    bandit = learned(rows[:258], rewards[:258], arms[:258], op.ContextualBandit())
    assert has_work(bandit)
    twin, before = bandit.copy(), op.to_bytes(bandit)
    learned(rows[258:], rewards[258:], arms[258:], twin)
    assert op.to_bytes(bandit) == before
    assert bandit.memory_usage() > state.nbytes(bandit.model.state)


def game_until_alarm(turn):
    """A bandit whose rewards turn bad at a row, right after its alarm; that row."""
    rng, bandit = np.random.default_rng(4), op.ContextualBandit(alarm_threshold=5.0, n_landmarks=20)
    rows = rng.standard_normal((300, 3))
    for t in range(300):
        bandit.learn(rows[t], 1.0 + 0.01 * rng.random() if t < turn else -1.0, t % 3)
        if bandit.model.state.counts[ALARMS]:
            break
    return bandit, t


def test_an_alarm_while_the_work_is_done_forgets_what_was_learned_again(monkeypatch):
    monkeypatch.setattr(remaking, "WORK", LITTLE)
    games = (game_until_alarm(turn) for turn in range(120, 160))
    bandit, t = next(one for one in games if has_work(one[0]) and stage_of(one[0]) == LEARNING)
    assert set(bandit.model.state.arms[: t + 1].tolist()) == {NEVER}
    while has_work(bandit):
        bandit.learn(np.ones(3), -1.0, 0)
    assert bandit.model.state.learned.tolist()[1:3] == [0, 0]
    found = bandit.decide(np.ones(3), [1, "new"])
    assert found.widths[0] == found.widths[1]


def test_columns_that_come_while_the_work_is_done_are_in_the_new_views(monkeypatch):
    """New words in every other record, in all stages; then as where all is made at once and widened, but for what the
    constant's feature, which shrinks as columns come, says before it has learned."""
    found, stages = [], set()
    for work in (np.inf, LITTLE):
        monkeypatch.setattr(remaking, "WORK", work)
        bandit = op.ContextualBandit(model="disjoint", **SMALL)
        rng = np.random.default_rng(5)
        for t in range(70):
            record = {"n": float(rng.random()), f"word {t // 2}": True}
            bandit.learn(record, float(rng.random() < 0.5), int(rng.integers(3)))
            if has_work(bandit):
                stages.add(stage_of(bandit))
        assert not has_work(bandit)
        assert op.to_bytes(op.from_bytes(op.to_bytes(bandit))) == op.to_bytes(bandit)
        found.append(bandit)
    assert stages >= {0, 1, 2, LEARNING}
    x = {"n": 0.5, "word 3": True, "word 34": True}
    one, other = (bandit.decide(x, [0, 1, 2], id="a") for bandit in found)
    assert np.allclose(one.means, other.means, atol=0.02)
    assert np.allclose(one.widths, other.widths, rtol=0.05)


def test_where_spare_rows_do_not_suffice_the_rest_is_done_at_once(monkeypatch):
    monkeypatch.setattr(remaking, "WORK", 1)
    monkeypatch.setattr(remaking, "AT_LEAST", 1)
    rows, (rewards, arms) = rows_of("narrow", 60), clicks(60)
    bandit = learned(rows[:55], rewards[:55], arms[:55], op.ContextualBandit(**SMALL))
    assert has_work(bandit)
    assert len(bandit.model.state.rows) == 56
    bandit.learn(rows[55], 1.0, 0)
    assert not has_work(bandit)


def test_rows_whose_spare_ones_do_not_fit_are_learned_again_at_once():
    settings = Settings(n_landmarks=150, reg=0.1, warm_up=256, memory_limit=64.0, alarm_threshold=None, seed=0)
    assert settings.rows_kept(768) == 256 + remaking.spare(256)
    assert settings.rows_kept(settings.columns_within(256)) == 256


@pytest.mark.parametrize("kind", KINDS)
def test_work_of_a_file_that_does_not_fit_is_refused(kind, monkeypatch):
    monkeypatch.setattr(remaking, "WORK", LITTLE)
    rows, (rewards, arms) = rows_of(kind, 60), clicks(60)
    bandit, seen = op.ContextualBandit(**SMALL), set()
    for t in range(60):
        bandit.learn(rows[t], rewards[t], arms[t])
        if not has_work(bandit):
            continue
        contents = bandit.model.contents()
        whole, stage = files.InMemory(contents.state).arrays, stage_of(bandit)
        if stage in seen:
            continue
        seen.add(stage)
        wrong = [("progress", place, value) for place in range(7) for value in (-1, 10**6)]
        wrong += [("progress", NEXT, t + 2), ("counts", 1, 10**6)]
        for name, place, value in wrong:
            array = whole[f"remaking.{name}"]
            kept = array[place]
            array[place] = value
            with pytest.raises(ValueError, match="fit"):
                op.from_bytes(files.pack("AveragedModels", contents))
            array[place] = kept
        for name in ("fold", "added", "plan", "views.0.center", "views.1.half", "last", "theta"):
            array = whole[f"remaking.{name}"]
            longer = {**whole, f"remaking.{name}": np.zeros((len(array) + 999, *array.shape[1:]), array.dtype)}
            with pytest.raises(ValueError, match="fit"):
                op.from_bytes(files.pack("AveragedModels", contents._replace(state=rebuilt(contents.state, longer))))
    assert LEARNING in seen


def rebuilt(held, arrays):
    return state.rebuild(held, arrays)


def test_zeros_that_are_cleared_late_are_zeros_of_their_own():
    for shape in ((3, 5), (1 << 10, 1 << 10), (0, 4)):
        one, other = (state.lazy_zeros(*shape, dtype=np.float32) for _ in range(2))
        assert one.shape == shape
        assert one.dtype == np.float32
        assert one.flags.carray
        one[...] = 1.0
        assert not other.any()
