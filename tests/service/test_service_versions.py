"""A decision says through which place of the log its model had learned: every model verifies, whatever was corrected,
read in steps, given up or forgotten meanwhile."""

import threading

import msgspec
import numpy as np
import pytest

import onepass as op
from counts import repetitions
from onepass.log import Decision, Join, Outcome
from onepass.log.memory import MemoryStore
from onepass.log.model_lineage import read_lineage
from onepass.log.parallel import verify_all
from onepass.log.pieces import find_pieces, sum_results, verify_piece
from onepass.log.records import CORRECTION
from onepass.log.replay import Fold
from onepass.log.sqlite import SqliteStore
from onepass.log.verification import FORGOTTEN, verify
from onepass.service import candidate, checkpoints
from onepass.service.erasure import forget_subject
from onepass.service.messages import DecideRequest, OutcomeRequest
from onepass.service.responses import decision_answer
from onepass.service.settings import make_bandit, parse_settings
from patience import HeldClock, let_deadlines_pass, until
from service_process import loops_in

ARMS = ["a", "b", "c"]


def rules(reg=0.5, wait=0.02, mode="canary", aggregation="earliest", late="correct"):
    explores = {"kind": "Thompson", "exploration": 0.4, "draws": 5}
    arguments = {"model": "disjoint", "reg": reg, "exploration": explores}
    return parse_settings({
        "name": "news", "features": {"context": 3}, "arms": ARMS, "mode": mode, "share": 0.5,
        "reward": {"wait": wait, "late": late, "aggregation": aggregation}, "operation": {"publish": 0.0},
        "model": {"recipe": "OFUL", "seed": 2, "arguments": arguments},
    })  # fmt: skip


def played(loop, begin, end, subjects=7):
    for t in range(begin, end):
        loop.clock.forward(0.006)
        context = np.random.default_rng(t).standard_normal(3).tolist()
        decision_answer(loop.decide(DecideRequest(context=context, id=f"{t}", subject=f"user {t % subjects}")).result())
        if t % 3:
            paid(loop, t, "in time")
    let_deadlines_pass(loop)


def paid(loop, t, key, value=1.0):
    loop.outcomes([OutcomeRequest(id=f"{t}", value=value, key=key)])[1].result()


def corrections(store):
    return [one for one in store.read(kinds=["join"]) if one.how == CORRECTION]


def corrected(loop, *decisions):
    """Late outcomes, and wait until their corrections are in the log and learned."""
    count = len(corrections(loop.store))
    for t in decisions:
        paid(loop, t, "late")
    until(lambda: len(corrections(loop.store)) == count + len(decisions))
    until(lambda: loop.learner.seen >= corrections(loop.store)[-1].seq)


def caught_up(loop):
    until(lambda: loop.building is not None and loop.building.ready)


def verified(store):
    """Every model verified: how many decisions were left since something was forgotten."""
    left = 0
    for line in read_lineage(store, "news").each:
        found = verify(Fold.resume(store, "news", first=True, line=line))
        assert found.ok, found
        assert not found.others, found
        assert found.left.keys() <= {FORGOTTEN}, found
        left += found.left.get(FORGOTTEN, 0)
    return left


def replayed(store, line):
    fold = Fold.resume(store, "news", line=line)
    fold.advance()
    return op.to_bytes(fold.bandit)


@pytest.fixture
def started(tmp_path):
    """Loops that end with their test."""
    with loops_in(tmp_path, HeldClock()) as start:
        yield start


# ---- corrections ----


def test_a_correction_counts_once_in_however_many_steps_a_log_is_read():
    """One arm, one feature: theta = sum of rewards / (reg + rows), which was .36 for .12 where a step ended at it."""
    store, learns = MemoryStore(), lambda: op.Bandit(op.Ridge(op.Exact(dim=1, reg=1.0)), op.UCB(0.1))
    decided, rows = learns(), 24
    for t in range(rows):
        decision = decided.decide([[1.0]], id=f"{t}")
        store.append([Decision.from_decision(decision, loop="news", time=t, contexts=[[1.0]])])
        store.append([Join(loop="news", time=t, id=f"{t}", rewards=[0.0])])
    for t in (3, 4, 5):
        store.append([Outcome(loop="news", time=rows, id=f"{t}", value=1.0)])
        store.append([Join(loop="news", time=rows, id=f"{t}", rewards=[1.0], how=CORRECTION, again=True)])
    for size in range(1, store.last + 1):
        fold = Fold(store, "news", learns())
        for place in [*range(size, store.last, size), store.last, store.last]:
            fold.advance(place)
            assert fold.through == place
        np.testing.assert_allclose(fold.bandit.model.parameter, [3.0 / (1.0 + rows)], rtol=1e-12)


@pytest.mark.parametrize("step", [1, 7])
def test_a_candidate_that_reads_the_log_in_steps_learns_corrections_once(started, monkeypatch, step):
    monkeypatch.setattr(candidate, "NEAR", 0)
    monkeypatch.setattr(candidate, "STEP", step)
    store = MemoryStore()
    loop = started(rules(), store)
    played(loop, 0, 10)
    corrected(loop, 0, 3, 6)
    played(loop, 10, 12)
    corrected(loop, 9)
    loop.change_settings(rules(reg=2.0))
    caught_up(loop)
    twin = Fold(store, "news", make_bandit(rules(reg=2.0)))
    twin.advance()
    loop.learner.run_after_learning(lambda: None).result()
    assert op.to_bytes(loop.building.fold.bandit) == op.to_bytes(twin.bandit)
    played(loop, 12, 20)
    loop.stop()
    assert verified(store) == 0


def test_corrections_at_the_end_of_the_log_are_learned_at_a_start_and_by_later_candidates(started):
    store = MemoryStore()
    loop = started(rules(), store)
    played(loop, 0, 10)
    corrected(loop, 0, 3, 6)
    loop.stop()
    before = op.to_bytes(loop.learner.fold.bandit)
    loop = started(rules(), store)
    assert op.to_bytes(loop.learner.fold.bandit) == before
    assert loop.learner.fold.through >= corrections(store)[-1].seq
    loop.change_settings(rules(reg=2.0))
    caught_up(loop)
    twin = Fold(store, "news", make_bandit(rules(reg=2.0)))
    twin.advance()
    assert op.to_bytes(loop.building.fold.bandit) == op.to_bytes(twin.bandit)
    played(loop, 10, 15)
    loop.promote()
    played(loop, 15, 20)
    corrected(loop, 12, 15)
    played(loop, 20, 25)
    loop.stop()
    assert verified(store) == 0
    assert replayed(store, 1) == op.to_bytes(loop.learner.fold.bandit)


def test_decisions_between_a_correction_and_the_next_row_are_of_the_corrected_model(started):
    store = MemoryStore()
    loop = started(rules(mode="online"), store)
    played(loop, 0, 9)
    for t in (0, 3, 6):
        corrected(loop, t)
        until(lambda: loop.learner.copies.present.through == loop.learner.fold.through)
        loop.decide(DecideRequest(context=[1.0, 0.5, 0.2], id=f"after {t}")).result()
    probabilities = {tuple(one.means) for one in store.read(kinds=["decision"]) if one.id.startswith("after")}
    assert len(probabilities) == 3
    let_deadlines_pass(loop)
    loop.stop()
    assert verified(store) == 0


@pytest.mark.parametrize("restarts", [False, True])
def test_what_is_corrected_follows_the_settings_in_force_at_the_join_and_at_the_outcome(started, restarts):
    """Earliest at the join, sum later; late outcomes are counted only, and corrections later: with a restart, or not.
    One decision waits all the time, so that a start reads everything again."""
    store, last = MemoryStore(), rules(wait=0.03, aggregation="sum")
    loop = started(rules(wait=3600.0, late="count"), store)
    loop.decide(DecideRequest(context=[1.0, 0.0, 0.0], id="waits")).result()
    loop.change_settings(rules(late="count"))
    for t in (1, 2, 3):
        decide(loop, t)
    paid(loop, 1, "in time", 0.5)
    settled_but_one(loop)
    paid(loop, 2, "only counted", 0.7)
    loop.change_settings(rules())
    paid(loop, 1, "another", 0.25)  # earliest: nothing changes
    paid(loop, 3, "late", 0.8)
    until(lambda: len(corrections(store)) == 1)
    loop.change_settings(last)
    decide(loop, 4)
    paid(loop, 4, "in time", 0.5)
    settled_but_one(loop)
    if restarts:
        loop.stop()
        loop = started(last, store)
    paid(loop, 4, "late", 0.25)
    until(lambda: len(corrections(store)) == 2)
    for _ in range(2):  # the writer has looked at all that the log says
        loop.writer.run_between_commits(lambda: None).result()
    assert [(one.id, one.rewards) for one in corrections(store)] == [("3", [0.8]), ("4", [0.25])]


def decide(loop, t):
    loop.decide(DecideRequest(context=[1.0, 0.5, 0.0], id=f"{t}")).result()


def settled_but_one(loop):
    """Let deadlines pass; everything is joined but the decision that waits."""
    loop.clock.forward(1.0)
    until(lambda: len(loop.joiner) == 1 and not loop.learner.lag)


# ---- candidates that are given up ----


def test_a_canary_that_is_given_up_while_it_is_rebuilt_leaves_a_log_that_verifies(started, monkeypatch):
    store = MemoryStore()
    loop = started(rules(), store)
    played(loop, 0, 10)
    loop.change_settings(rules(reg=4.0))
    caught_up(loop)
    loop.learner.run_after_learning(lambda: loop.learner.save_checkpoint(always=True)).result()
    played(loop, 10, 30)
    loop.stop()
    for file in loop.folder.glob("*-1.*"):
        file.unlink()
    monkeypatch.setattr(candidate, "NEAR", 0)
    monkeypatch.setattr(candidate, "STEP", 0)  # it never catches up
    loop = started(rules(), store)
    until(lambda: loop.building is not None and loop.building.is_alive())
    loop.discard_candidate()
    played(loop, 30, 35)
    loop.stop()
    assert read_lineage(store, "news").each[1].end < max(
        one.canary.through for one in store.read(kinds=["decision"]) if one.canary is not None
    )
    assert verified(store) == 0


# ---- what was forgotten ----


@pytest.mark.parametrize("files", ["kept", "lost"])
def test_a_log_from_which_a_subject_was_forgotten_verifies_and_says_how_much_it_cannot(started, files):
    store = MemoryStore()
    loop = started(rules(), store)
    for t in range(0, 30, 10):  # so that some decisions are those of later models, however slow the learner is
        played(loop, t, t + 10)
    loop.change_settings(rules(reg=4.0))
    caught_up(loop)
    played(loop, 30, 40)
    assert verified(store) == 0
    assert forget_subject(loop, "user 3").result() > 10
    gone = max(one.seq for one in store.read(kinds=["forgotten"]) if one.was == "join")
    first = min(one.seq for one in store.read(kinds=["forgotten"]) if one.was == "join")
    rest = [one for one in store.read(kinds=["decision"]) if one.through >= first]
    canaries = [one for one in rest if one.canary is not None and one.canary.through >= first]
    assert verified(store) == len(rest) + len(canaries) > 20
    played(loop, 40, 60)
    corrected(loop, 42)
    played(loop, 60, 70)
    assert verified(store) == len(rest) + len(canaries)
    forget_subject(loop, "user 3").result()
    wholes = [one for one in store.read(kinds=["checkpoint"]) if one.data is not None and one.through >= gone]
    assert {one.line for one in wholes} == {0, 1}
    loop.stop()
    for file in [*loop.folder.iterdir()] if files == "lost" else ():
        file.unlink()
    loop = started(rules(), store)
    if files == "kept":
        assert replayed(store, 0) == op.to_bytes(loop.learner.fold.bandit)
    caught_up(loop)
    played(loop, 70, 80)
    loop.promote()
    played(loop, 80, 90)
    loop.stop()
    left = verified(store)
    assert left >= len(rest) + len(canaries)
    decisions = sum(1 for _ in store.read(kinds=["decision"]))
    assert decisions > 70


@pytest.mark.parametrize("running", [True, False])
def test_a_log_from_which_another_process_forgot_verifies_after_the_next_checkpoint(tmp_path, running):
    with SqliteStore(tmp_path / "log") as store, loops_in(tmp_path, HeldClock()) as start:
        loop = start(rules(), store)
        for t in (0, 10):  # so that the later ones are decisions of a model that has learned
            played(loop, t, t + 10)
        if not running:
            loop.stop()
        with SqliteStore(tmp_path / "log") as other:
            other.forget("user 3")
        if running:
            played(loop, 20, 25)
            loop.stop()
        loop = start(rules(), store)
        played(loop, 30, 40)
        loop.stop()
        left = verified(store)
        late = [one for one in store.read(kinds=["decision"]) if int(one.id) >= 30]
        assert 0 < left <= sum(1 for _ in store.read(kinds=["decision"])) - len(late)
        assert replayed(store, 0) == op.to_bytes(loop.learner.fold.bandit)


def test_forgetting_while_models_change_and_a_subject_decides_ends_and_verifies(started):
    """Orders of many threads at once, which once waited for one another for ever."""
    store = MemoryStore()
    loop = started(rules(mode="online"), store)
    played(loop, 0, 20)
    rounds, errors = repetitions(6, 60), []

    def decides():
        for t in range(20, 20 + 10 * rounds):
            loop.clock.forward(0.003)
            loop.decide(DecideRequest(context=[1.0, t % 2, 0.5], id=f"{t}", subject=f"user {t % 7}")).result()

    def forgets():
        for t in range(rounds):
            forget_subject(loop, f"user {t % 7}").result()

    def changes():
        for t in range(rounds):
            loop.change_settings(rules(reg=1.0 + t, mode="online"))

    def run(act):
        try:
            act()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(act,)) for act in (decides, forgets, changes)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert errors == []
    let_deadlines_pass(loop)
    loop.stop()
    verified(store)
    assert loop.learner.problem is None


# ---- in pieces ----


@pytest.mark.parametrize("window", [4, 1_000])
def test_the_pieces_of_every_model_of_a_log_find_together_what_one_pass_finds(started, monkeypatch, window):
    monkeypatch.setattr("onepass.service.whole_checkpoints.SPARSE", 0)
    monkeypatch.setattr("onepass.log.verification.WINDOW", window)
    store = MemoryStore()

    def often(**more):
        found = rules(**more)
        return msgspec.structs.replace(found, operation=msgspec.structs.replace(found.operation, whole=8))

    def played_by_tens(loop, begin, end):
        """A busy learner reads many decisions at once, and a checkpoint comes after them: one for every ten."""
        for t in range(begin, end, 10):
            played(loop, t, t + 10)

    loop = started(often(), store)
    played_by_tens(loop, 0, 40)
    corrected(loop, 6, 9)
    loop.change_settings(often(reg=4.0))
    caught_up(loop)
    played_by_tens(loop, 40, 80)
    corrected(loop, 42, 3)
    forget_subject(loop, "user 3").result()
    played_by_tens(loop, 80, 100)
    loop.promote()
    played_by_tens(loop, 100, 130)
    loop.stop()
    loop = started(often(reg=4.0), store)
    played_by_tens(loop, 130, 150)
    name = next(one.name for one in checkpoints.list_checkpoints(loop.folder, store, "news") if one.line == 0)
    loop.rollback(name)
    until(lambda: loop.building is None)
    played_by_tens(loop, 150, 200)
    loop.stop()
    verified(store)
    report = verify_all(store.open_view)
    lines = read_lineage(store, "news").each
    assert len(lines) == 3
    for line in lines:
        whole, pieces = verify(Fold.resume(store, "news", first=True, line=line)), find_pieces(store, "news", line)
        assert len(pieces) > 3
        assert sum_results(verify_piece(store, piece).found for piece in pieces) == whole
        assert report.loops["news"][line] == whole
    assert report.ok


def test_a_log_whose_beginning_was_dropped_is_verified_from_a_whole_checkpoint_with_corrections_of_what_came_before(
    started, monkeypatch
):
    monkeypatch.setattr("onepass.service.whole_checkpoints.SPARSE", 0)
    store, often = MemoryStore(), rules()
    often = msgspec.structs.replace(often, operation=msgspec.structs.replace(often.operation, whole=20))
    loop = started(often, store)
    played(loop, 0, 30)
    corrected(loop, 3)  # the model knows from here on where it began
    played(loop, 30, 90)
    wholes = [one for one in store.read(kinds=["checkpoint"]) if one.data is not None]
    joined = {one.id: one.seq for one in store.read(kinds=["join"])}
    store.drop_before(wholes[1].seq + 1)
    left = {one.id for one in store.read(kinds=["decision"])}
    early = [int(one) for one, seq in joined.items() if one in left and seq <= wholes[2].through]
    unpaid = [t for t in early if t % 3 == 0]
    assert unpaid
    corrected(loop, *unpaid)
    played(loop, 90, 110)
    loop.stop()
    found = verify(Fold.resume(store, "news", first=True))
    assert (found.ok, found.wrong, found.others) == (True, 0, ())
    assert found.equal > 10
    assert verify_all(store.open_view).loops["news"][0] == found
