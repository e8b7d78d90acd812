"""A power cut, imitated: the log's last bytes never came to the disk. What is left is a log of a shorter life."""

import shutil

import numpy as np

import onepass as op
from counts import repetitions
from onepass.log import Checkpoint, Decision
from onepass.log.replay import Fold
from onepass.log.sqlite import SqliteStore
from onepass.service.loop import Loop
from onepass.service.messages import DecideRequest, OutcomeRequest
from onepass.service.responses import decision_answer
from onepass.service.settings import make_bandit, read_file
from patience import until
from service_process import write_settings

CUTS = repetitions(6, 200)
DECISIONS = 40


def request(t):
    return DecideRequest(context=np.random.default_rng(t).standard_normal(3).tolist(), id=f"{t}", arms=[*"abc"])


def played(loop, first, last):
    """Decisions and outcomes; answers by number."""
    found = {}
    for t in range(first, last):
        found[t] = decision_answer(loop.decide(request(t)).result())
        loop.outcomes([OutcomeRequest(id=f"{t}", value=float(t % 2), key="k")])[1].result()
    return found


def test_a_log_without_its_last_bytes_goes_on_with_the_model_and_the_answers_of_what_is_left(tmp_path):
    settings, _ = read_file(write_settings(tmp_path, wait=0.05))
    with SqliteStore(tmp_path / "log") as store, store.checkpointer.pause():  # all is in the write-ahead log alone
        loop = Loop(settings, store, tmp_path / "models")
        answers = played(loop, 0, DECISIONS)
        until(lambda: sum(1 for _ in store.read(kinds=["join"])) >= DECISIONS)
        loop.learner.stop()  # makes a checkpoint of what was joined
        played(loop, DECISIONS, DECISIONS + 5)
        for name in ("log", "log-wal", "models"):
            copied = shutil.copytree if name == "models" else shutil.copyfile
            copied(tmp_path / name, tmp_path / f"copy {name}")
        loop.writer.stop()
    whole, left, rng = (tmp_path / "copy log-wal").read_bytes(), [], np.random.default_rng(0)
    assert len(whole) > 1_000 * DECISIONS
    for cut in [0, len(whole) - 1, *rng.integers(0, len(whole), CUTS - 2)]:
        folder = tmp_path / f"cut {cut}"
        shutil.copytree(tmp_path / "copy models", folder / "models")
        shutil.copyfile(tmp_path / "copy log", folder / "log")
        (folder / "log-wal").write_bytes(whole[:cut])
        with SqliteStore(folder / "log") as store:
            assert [*store.check()] == []
            kept = {record.id for record in store.read(kinds=["decision"])}
            left.append(len(kept))
            loop = Loop(settings, store, folder / "models")
            again = played(loop, 0, DECISIONS)
            assert [t for t in answers if f"{t}" in kept and again[t] != answers[t]] == []
            loop.stop()
            assert loop.problem() == "it is stopping"
            twin = Fold(store, "news", make_bandit(settings))
            twin.advance()
            assert op.to_bytes(loop.learner.fold.bandit) == op.to_bytes(twin.bandit)
            assert sum(isinstance(one, Decision) for one in store.read()) >= DECISIONS
            assert any(isinstance(one, Checkpoint) and one.through == 0 for one in store.read())
            assert [*store.check()] == []
    assert left[0] == 0
    assert left[1] >= DECISIONS
    assert any(0 < count < DECISIONS for count in left)
