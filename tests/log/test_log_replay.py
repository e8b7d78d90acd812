"""A model is the fold of its log: bit for bit, from any checkpoint, in whatever batches it is read."""

import msgspec
import numpy as np
import pytest

import onepass as op
from counts import repetitions
from log_games import bandit, decide_round, make_join, play_game
from onepass.log import Checkpoint, Decision, Join, decode, encode
from onepass.log.memory import MemoryStore
from onepass.log.replay import NAME, Fold, bandit_from_checkpoint, decision_to_learn, group_joins
from onepass.log.store import StoreError
from onepass.log.verification import WINDOW, verify

ROUNDS = repetitions(30, 3_000)
KINDS = ("disjoint", "shared")


@pytest.fixture(scope="module", params=KINDS)
def game(request):
    """The kind, the log, and the model that learned it."""
    store = MemoryStore()
    fold = play_game(store, ROUNDS, request.param)
    return request.param, store, fold


def test_replay_from_nothing_gives_the_model_in_every_bit_whatever_is_read_at_a_time(game):
    kind, store, live = game
    for steps in ([None], range(1, store.last + 1), [7, 8, 23, None], [store.last // 2, None]):
        fold = Fold(store, "game", bandit(kind))
        count = sum(fold.advance(until) for until in steps)
        assert count == sum(1 for _ in store.read(kinds=["join"]))
        assert fold.through == store.last
        assert op.to_bytes(fold.bandit) == op.to_bytes(live.bandit)


def test_replay_from_any_checkpoint_gives_the_model_in_every_bit(game):
    kind, store, live = game
    for until in range(0, store.last, repetitions(11, 1_009)):
        fold = Fold(store, "game", bandit(kind))
        fold.advance(until)
        record = decode(encode(fold.checkpoint(0)))
        again = Fold(store, "game", bandit_from_checkpoint(record), record.through)
        again.advance()
        assert op.to_bytes(again.bandit) == op.to_bytes(live.bandit)


def test_the_last_checkpoint_of_the_log_is_where_replay_begins(game):
    kind, store, live = game
    copy = MemoryStore()
    copy.append(list(store.read(until=20)))
    with pytest.raises(ValueError, match="has no checkpoint with its model"):
        Fold.resume(copy, "game")
    fold = Fold.resume(copy, "game", bandit(kind))
    fold.advance()
    copy.append([fold.checkpoint(1)])
    copy.append(list(store.read(since=20)))
    again = Fold.resume(copy, "game")
    assert again.through == fold.through
    again.advance()
    assert op.to_bytes(again.bandit) == op.to_bytes(live.bandit)


def test_records_go_through_json_lines_and_back(game):
    _, store, _ = game
    lines = [encode(one) for one in store.read()]
    assert [encode(decode(line)) for line in lines] == lines
    for line in lines:
        record = decode(line)
        if isinstance(record, Decision):
            assert Decision.from_decision(record.to_decision(), loop="game", time=record.time, subject=record.subject,
                               contexts=record.contexts, seq=record.seq) == record  # fmt: skip


def test_verify_finds_every_decision_as_it_was_made(game):
    kind, store, _ = game
    found = verify(Fold(store, "game", bandit(kind)))
    assert found.ok
    assert (found.decisions, found.equal, found.left) == (ROUNDS, ROUNDS, {})


def test_verify_finds_one_bit_that_is_another(game):
    kind, store, _ = game
    other = MemoryStore()
    for one in store.read():
        if one.seq == 12:
            assert isinstance(one, Decision)
            p = [*one.probabilities]
            p[0] = float(np.nextafter(p[0], 1.0))
            one = msgspec.structs.replace(one, probabilities=p)
        if one.seq == 14:
            one = msgspec.structs.replace(one, contexts=None)
        other.append([one])
    found = verify(Fold(other, "game", bandit(kind)))
    assert [(one.seq, one.fields) for one in found.mismatches] == [(12, ("probabilities",))]
    assert (found.wrong, found.equal, found.left) == (1, ROUNDS - 2, {"the log does not hold what was offered": 1})


def test_verify_follows_models_that_lag_behind_the_log():
    """A server decides by the model as it was some joins ago, and two servers by models of different age."""
    store, models = MemoryStore(), [bandit()]
    for t in range(ROUNDS):
        record = decide_round(models[max(len(models) - 1 - t % 4, 0)], t)
        store.append([record])
        store.append([make_join(record, t)])
        fold = Fold(store, "game", models[-1].copy(), store.last - 2)
        fold.advance()
        models.append(fold.bandit)
    found = verify(Fold(store, "game", bandit()))
    assert (found.ok, found.equal) == (True, ROUNDS)


def test_decisions_without_an_id_are_verified_in_what_does_not_depend_on_chance():
    store, model = MemoryStore(), bandit()
    for t in range(5):
        contexts = np.random.default_rng(t).standard_normal((4, 3))
        decision = model.decide(contexts, ["a", "b", "c", "d"])
        store.append([Decision.from_decision(decision, loop="game", time=t, contexts=contexts)])
        store.append([Join(loop="game", time=t, id=decision.id, rewards=[1.0])])
        model.learn(decision, 1.0)
    found = verify(Fold(store, "game", bandit()))
    assert (found.ok, found.undrawn, found.joins) == (True, 5, 5)


def test_what_was_shown_is_learned_where_it_is_not_what_was_drawn():
    model = bandit()
    record = msgspec.structs.replace(decide_round(model, 1), shown=[3, 0])
    learned = decision_to_learn(record)
    assert learned.arms == ["arm 3", "arm 0"]
    assert np.array_equal(learned.context, np.array(record.contexts)[[3, 0]])


def test_a_join_whose_decision_is_gone_is_refused_and_forgotten_ones_are_passed_over(game):
    kind, store, _ = game
    copy = MemoryStore()
    copy.append(list(store.read()))
    copy.forget("user 3")
    fold = Fold(copy, "game", bandit(kind))
    joins = [one for one in copy.read(kinds=["join"])]
    assert fold.advance() == len(joins) < sum(1 for _ in store.read(kinds=["join"]))
    first = next(copy.read(kinds=["join"]))
    copy.drop_before(first.seq)
    with pytest.raises(StoreError, match=f"the decision of join {first.seq} is not in the log any more"):
        Fold(copy, "game", bandit(kind)).advance()


def test_a_checkpoint_that_was_altered_is_refused():
    record = Fold(MemoryStore(), "game", bandit()).checkpoint(0)
    assert isinstance(record, Checkpoint)
    with pytest.raises(StoreError, match="its digest is another"):
        bandit_from_checkpoint(msgspec.structs.replace(record, data=record.data[:-1] + b"x"))


def test_decisions_whose_models_the_log_does_not_explain_are_not_called_verified(game):
    """Joins are missing: their models know more than the log. The bandit knew more already: they are older than it."""
    kind, store, _ = game
    other = MemoryStore()
    other.append([one for one in store.read() if not isinstance(one, Join)])
    found = verify(Fold(other, "game", bandit(kind)))
    assert (found.ok, found.wrong, found.equal) == (False, 0, 4)
    assert found.left == {"made by a model that has learned more than the log holds": ROUNDS - 4}
    ahead = bandit(kind)
    ahead.learn(np.ones((1, 3)), [1.0], ["arm 0"] if kind == "disjoint" else None)
    found = verify(Fold(other, "game", ahead))
    assert found.left[f"made by a model that is more than {WINDOW:,} decisions old"] == 4
    assert not found.ok


class CountingStore(MemoryStore):
    """Store that counts how often its rows are read."""

    reads = 0

    def rows(self, *arguments):
        self.reads += 1
        return super().rows(*arguments)


@pytest.mark.parametrize("batch", [None, 1])
def test_a_replay_reads_a_log_as_often_if_it_has_more_joins(batch):
    reads = []
    for count in (4, 12):
        store = CountingStore()
        records = [decide_round(bandit(), t) for t in range(count)]
        store.append(records)
        for t, record in enumerate(records):
            store.append([make_join(record, t, batch and t)])
        fold = Fold(store, "game", bandit())
        learned = fold.advance(store.last - 1)
        assert (learned, fold.advance()) == (count - 1, 1)
        assert Fold(store, "game", bandit()).advance() == count
        reads.append(store.reads)
    assert reads[0] == reads[1]


def test_batches_matter_so_the_log_keeps_them(game):
    """The same joins one by one are another model, in some bits; so `batch` is not an ornament."""
    kind, store, live = game
    other = MemoryStore()
    for one in store.read():
        other.append([msgspec.structs.replace(one, batch=None) if isinstance(one, Join) else one])
    fold = Fold(other, "game", bandit(kind))
    fold.advance()
    assert fold.bandit.n_learned == live.bandit.n_learned
    assert op.to_bytes(fold.bandit) != op.to_bytes(live.bandit)
    assert not verify(Fold(other, "game", bandit(kind))).ok


def test_decisions_that_are_not_kept_are_read_once_for_each_batch(game, monkeypatch):
    kind, store, live = game
    monkeypatch.setattr("onepass.log.replay.HELD", 0)
    asked, find_all = [], type(store).find_all
    monkeypatch.setattr(type(store), "find_all", lambda store, *one: asked.append(one[1]) or find_all(store, *one))
    monkeypatch.setattr(type(store), "find", None)
    fold = Fold(store, "game", bandit(kind))
    fold.advance()
    assert op.to_bytes(fold.bandit) == op.to_bytes(live.bandit)
    batches = [*group_joins(store.read(kinds=["join"]))]
    assert asked == [[one.id for one in each] for each in batches]
    assert max(map(len, asked)) > 1


def test_what_is_kept_of_decisions_counts_their_names_once_for_each_list(monkeypatch):
    names = [f"arm {number}" for number in range(1_000)]
    with MemoryStore() as store:
        fold = Fold(store, "a", None)
        for number in range(5):
            fold.add_decision(offering(f"shared {number}", names))
        shared = fold._bytes
        for number in range(5):
            fold.add_decision(offering(f"own {number}", [*names]))
        assert shared < 2 * NAME * len(names)
        assert 6 * NAME * len(names) < fold._bytes < 7 * NAME * len(names)
        monkeypatch.setattr("onepass.log.replay.HELD", 3 * NAME * len(names))
        fold.add_decision(offering("last", names))
        assert fold._bytes <= 3 * NAME * len(names)
        for held in [*fold._decisions]:
            fold.release(held)
        assert (fold._bytes, fold._names) == (0, {})


def offering(id, names):
    return Decision(loop="a", time=0, id=id, places=[0], propensities=[1.0], offered=names, context=[1.0, 2.0])
