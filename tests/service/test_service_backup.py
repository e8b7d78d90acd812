"""A copy of the log that is made while the service runs, and what becomes of a service that goes on from it."""

import json
import threading
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

import onepass as op
from onepass import cli
from onepass.log import micros
from onepass.log.parquet import ParquetStore
from onepass.log.records import Outcome
from onepass.log.replay import Fold
from onepass.log.sqlite import SqliteStore
from onepass.log.verification import verify
from onepass.service.loop import Loop
from onepass.service.messages import DecideRequest, OutcomeRequest
from onepass.service.responses import decision_answer
from onepass.service.settings import make_bandit, read_file
from patience import until
from service_process import write_settings

COPIES = 5


def request(t):
    return DecideRequest(context=np.random.default_rng(t).standard_normal(3).tolist(), id=f"{t}", arms=[*"abc"])


def onepass(capsys, *arguments):
    """Exit code, and what `onepass ARGUMENTS --json` says."""
    with pytest.raises(SystemExit) as done:
        cli.main([*map(str, arguments), "--json"])
    said = capsys.readouterr()
    return int(done.value.code or 0), json.loads(said.out) if said.out else said.err


def test_a_copy_made_under_load_is_a_whole_log_from_which_a_service_goes_on(tmp_path, capsys):
    settings, _ = read_file(write_settings(tmp_path, wait=0.02))
    answers, ending, copies = {}, threading.Event(), []
    with SqliteStore(tmp_path / "log") as store:
        loop = Loop(settings, store, tmp_path / "models")

        def asking():
            while not ending.is_set():
                t = len(answers)
                answers[f"{t}"] = decision_answer(loop.decide(request(t)).result())
                loop.outcomes([OutcomeRequest(id=f"{t}", value=1.0, key="k")])[1].result()

        thread = threading.Thread(target=asking)
        thread.start()
        for number in range(COPIES):
            least = store.last + 5
            until(lambda least=least: store.last >= least or not thread.is_alive())
            code, found = onepass(capsys, "log", "backup", tmp_path / "log", tmp_path / f"copy {number}")
            assert (code, found["ok"]) == (0, True)
            copies.append(found["last"])
            assert found["last"] >= least
        ending.set()
        thread.join()
        loop.stop()
    assert sorted(set(copies)) == copies
    path = tmp_path / f"copy {COPIES - 1}"
    with SqliteStore(path) as store:
        assert (store.last, [*store.check()]) == (copies[-1], [])
        before = [one.id for one in store.read(kinds=["decision"])]
        again = Loop(settings, store, tmp_path / "models")  # whose last checkpoints this log does not reach
        assert [decision_answer(again.decide(request(int(id))).result()) for id in before] == [
            answers[id] for id in before
        ]
        again.stop()
        twin = Fold(store, "news", make_bandit(settings))
        twin.advance()
        assert op.to_bytes(again.learner.fold.bandit) == op.to_bytes(twin.bandit)
        assert verify(Fold.resume(store, "news", first=True)).ok
    code, said = onepass(capsys, "log", "backup", tmp_path / "log", path)
    assert (code, "must be of a new file" in said) == (2, True)


def test_sealing_keeps_what_is_young_and_moves_the_rest_to_an_archive(tmp_path, capsys):
    now = datetime.now(UTC)
    with SqliteStore(tmp_path / "log") as store:
        ages = (120, 80, 40, 20, 0)
        store.append([
            Outcome(loop="a", time=micros(now - timedelta(days=days)), id=f"{days}", value=1.0) for days in ages
        ])  # fmt: skip
        code, found = onepass(capsys, "log", "seal", tmp_path / "log", tmp_path / "archive", "--days", 60)
        assert (code, sum(found["months"].values())) == (0, 2)
        assert [one.id for one in store.read()] == ["40", "20", "0"]
        with ParquetStore(tmp_path / "archive") as archive:
            assert [(one.seq, one.id) for one in archive.read()] == [(1, "120"), (2, "80")]
        assert onepass(capsys, "log", "seal", tmp_path / "log", tmp_path / "archive", "--days", 0)[0] == 2
