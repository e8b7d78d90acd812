"""Readers that decide by checkpoints of one keeper: the log holds all that they answered, and replays it."""

import asyncio
import pickle
import sys

import msgspec
import pytest
from starlette.requests import Request

import onepass as op
from onepass.cluster.serving import Keeper, Reader, application
from onepass.log.records import Decision
from onepass.log.replay import Fold
from onepass.log.verification import verify
from onepass.service.messages import ApiError
from onepass.service.settings import make_bandit, read_file
from patience import until
from reader_games import RULES, request


@pytest.fixture
def rules(tmp_path):
    path = tmp_path / "news.toml"
    path.write_text(RULES)
    return path


def asked(keeper):
    """The keeper here."""
    return lambda method, data: getattr(keeper, method)(data)


def played(readers, begin, end):
    """Decisions in turns of the readers, each with an outcome; the answers by id."""
    answers = {}
    for t in range(begin, end):
        said = asyncio.run(readers[t % len(readers)].decide(request(t)))
        answers[f"{t}"] = said
        outcome = msgspec.json.encode({"id": f"{t}", "value": float(msgspec.json.decode(said)["arm"] == "b")})
        assert msgspec.json.decode(asyncio.run(readers[0].outcome(outcome))) == {"accepted": 1, "new": 1}
    return answers


async def posted(reader, act, body):
    """Status and answer, as HTTP has them."""
    scope = {
        "type": "http", "method": "POST", "path": f"/news/{act}", "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
    }  # fmt: skip

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    answer = await reader(Request(scope, receive))
    return answer.status_code, answer.body


def test_readers_follow_the_one_learner_and_the_log_is_the_truth(rules, tmp_path):
    data = tmp_path / "data"
    keeper = Keeper(str(rules), str(data), None)
    readers = [Reader("news", str(data), asked(keeper), poll_interval=0.02) for _ in range(2)]
    answers = played(readers, 0, 30)
    until(lambda: keeper.loop.learner.fold.bandit.n_learned == 30)
    until(lambda: all(reader.n_learned() == 30 for reader in readers))
    answers.update(played(readers, 30, 40))
    assert {msgspec.json.decode(answers[f"{t}"])["rounds"] for t in range(30, 40)} >= {30}

    # whoever asks again, whichever reader, gets the answer that is in the log; another request of the id is refused
    assert asyncio.run(readers[1].decide(request(4))) == answers["4"]
    with pytest.raises(ApiError, match="another request"):
        asyncio.run(readers[0].decide(request(4, exclude=["a"])))
    with pytest.raises(ApiError, match="arms"):
        asyncio.run(readers[0].decide(request(99, arms=[])))

    assert asyncio.run(posted(readers[0], "decide", request(5))) == (200, answers["5"])
    assert asyncio.run(posted(readers[0], "decide", request(5, exclude=["a"])))[0] == 409
    assert asyncio.run(posted(readers[0], "decide", b"["))[0] == 400
    assert asyncio.run(posted(readers[0], "nothing", b"{}"))[0] == 404

    until(lambda: keeper.loop.learner.fold.bandit.n_learned == 40)
    keeper.stop()
    keeper = Keeper(str(rules), str(data), None)  # it was lost: the next one goes on from the log
    reader = Reader("news", str(data), asked(keeper))
    assert asyncio.run(reader.decide(request(7))) == answers["7"]
    store = keeper.loop.store
    logged = {record.id: record for record in store.read(kinds=["decision"])}
    assert logged.keys() == answers.keys()
    assert all(isinstance(record, Decision) for record in logged.values())
    settings, _ = read_file(rules)
    fold = Fold(store, "news", make_bandit(settings))
    fold.advance()
    assert op.to_bytes(fold.bandit) == op.to_bytes(keeper.loop.learner.fold.bandit)
    found = verify(Fold.resume(store, "news", first=True))
    assert found.ok
    assert (found.equal, found.others) == (len(answers), ())
    keeper.stop()


def test_one_process_writes_and_refusals_cross_to_others(rules, tmp_path, monkeypatch):
    keeper = Keeper(str(rules), str(tmp_path / "data"), None)
    with pytest.raises(ValueError, match="another process serves"):
        Keeper(str(rules), str(tmp_path / "data"), None)
    keeper.stop()
    again = pickle.loads(pickle.dumps(ApiError(409, "EventConflict", "no", 3)))
    assert (again.status, again.code, again.message, again.wait) == (409, "EventConflict", "no", 3)
    with pytest.raises(ValueError, match="readers must be"):
        application(rules, tmp_path / "data", readers=0)
    monkeypatch.setitem(sys.modules, "ray.serve", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install onepass\[ray-serve\]"):
        application(rules, tmp_path / "data", ray="local")
