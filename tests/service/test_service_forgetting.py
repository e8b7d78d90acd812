"""Forgetting a subject while the service runs, and a limit of requests a second."""

import asyncio
import contextlib

import httpx
import numpy as np
import pytest
from msgspec.structs import replace

import onepass as op
from onepass.log.replay import Fold
from onepass.log.sqlite import SqliteStore
from onepass.log.store import StoreError
from onepass.log.verification import verify
from onepass.service.app import Service
from onepass.service.erasure import forget_subject
from onepass.service.keys import Keys, hash_key
from onepass.service.loop import Loop
from onepass.service.messages import ApiError, DecideRequest, OutcomeRequest
from onepass.service.rate_limit import KNOWN, RateLimiter
from onepass.service.settings import make_bandit, parse_settings, read_file
from patience import HeldClock, let_deadlines_pass, wait_until_learned
from service_process import write_settings

SUBJECT = "subject-to-be-forgotten"


GONE = [0, 3, 6, 9]  # of the first twelve


def request(t):
    context = np.random.default_rng(t).standard_normal(3).tolist()
    return DecideRequest(context=context, id=f"{t}", arms=[*"abc"], subject=SUBJECT if t in GONE else f"user {t}")


def played(loop, first, last):
    for t in range(first, last):
        loop.decide(request(t)).result()
        loop.outcomes([OutcomeRequest(id=f"{t}", value=1.0, key="k")])[1].result()


def joined(store):
    return sorted(int(one.id) for one in store.read(kinds=["join"]))


def test_decisions_about_a_subject_that_wait_are_forgotten_and_never_joined(tmp_path):
    settings, _ = read_file(write_settings(tmp_path, wait=3600.0))
    with SqliteStore(tmp_path / "log") as store:
        loop = Loop(settings, store, tmp_path / "models")
        played(loop, 0, 12)
        assert forget_subject(loop, SUBJECT).result() == 2 * len(GONE)  # decisions and outcomes
        assert len(loop.joiner) == 12 - len(GONE)
        assert loop.joiner.counts["forgotten"] == len(GONE)
        assert forget_subject(loop, SUBJECT).result() == 0
        loop.stop()
        again = Loop(settings, store, tmp_path / "models")
        assert len(again.joiner) == 12 - len(GONE)
        again.stop()
        with pytest.raises(StoreError, match="is stopping"):
            forget_subject(again, SUBJECT)


def test_a_subject_that_was_learned_is_forgotten_by_the_log_and_learning_and_restarts_go_on(tmp_path):
    settings, _ = read_file(write_settings(tmp_path, wait=0.02))
    with SqliteStore(tmp_path / "log") as store:
        loop = Loop(settings, store, tmp_path / "models")
        played(loop, 0, 12)
        wait_until_learned(loop)
        assert forget_subject(loop, SUBJECT).result() == 3 * len(GONE)
        loop.outcomes([OutcomeRequest(id="0", value=1.0, key="later")])[1].result()
        played(loop, 12, 14)
        wait_until_learned(loop)
        assert loop.problem() is None
        loop.stop()
        assert joined(store) == [t for t in range(14) if t not in GONE]
        again = Loop(settings, store, tmp_path / "models")  # from its checkpoint
        assert again.learner.fold.bandit.n_learned == 14
        assert op.to_bytes(again.learner.fold.bandit) == op.to_bytes(loop.learner.fold.bandit)
        again.stop()
        twin = Fold(store, "news", make_bandit(settings))
        assert twin.advance() == twin.bandit.n_learned == 14 - len(GONE)
        assert [*store.check()] == []
    assert all(SUBJECT.encode() not in path.read_bytes() for path in tmp_path.glob("log*"))


@pytest.mark.parametrize("outcomes", [None, {"clicks": 1.0}])
def test_an_id_that_was_forgotten_is_used_again_and_its_reward_is_learned(tmp_path, outcomes):
    more = {} if outcomes is None else {"outcomes": {"clicks": {}}}
    settings = parse_settings({
        "name": "news", "features": {"context": 3}, "arms": [*"abc"], "reward": {"wait": 0.02}, **more,
    })  # fmt: skip
    with SqliteStore(tmp_path / "log") as store:
        loop = Loop(settings, store, tmp_path / "models", HeldClock())  # the outcome is in time on any machine
        for n_learned in (1, 2):
            loop.decide(replace(request(0), arms=None)).result()
            loop.outcomes([OutcomeRequest(id="0", value=1.0, outcomes=outcomes)])[1].result()
            let_deadlines_pass(loop)
            assert loop.problem() is None
            assert loop.learner.fold.bandit.n_learned == n_learned
            if n_learned == 1:
                forget_subject(loop, SUBJECT).result()
        loop.stop()
        again = Loop(settings, store, tmp_path / "models")
        assert again.problem() is None
        assert op.to_bytes(again.learner.fold.bandit) == op.to_bytes(loop.learner.fold.bandit)
        again.stop()
        assert verify(Fold.resume(store, "news", first=True)).ok


def test_a_log_from_which_another_process_forgot_is_learned_without_it_or_goes_on_with_its_last_model(tmp_path):
    settings, _ = read_file(write_settings(tmp_path, wait=0.05))
    with SqliteStore(tmp_path / "log") as store:
        loop = Loop(settings, store, tmp_path / "models")
        played(loop, 0, 12)
        wait_until_learned(loop)
        with SqliteStore(tmp_path / "log") as other:
            other.forget(SUBJECT)
        played(loop, 12, 14)
        wait_until_learned(loop)
        assert loop.problem() is None
        loop.stop()
        twin = Fold(store, "news", make_bandit(settings))
        assert twin.advance() >= twin.bandit.n_learned == 14 - len(GONE)
        before = op.to_bytes(loop.learner.fold.bandit)
        loop = Loop(settings, store, tmp_path / "no models")
        assert loop.problem() is None
        assert op.to_bytes(loop.learner.fold.bandit) == before  # which the log's last checkpoint holds
        loop.stop()
        assert verify(Fold.resume(store, "news", first=True)).ok


# ---- how many requests a second ----


def test_a_client_may_send_as_many_requests_a_second_as_the_limit_says_and_others_too():
    now, rates, taken = [100.0], RateLimiter(lambda: now[0]), []
    for _ in range(3_000):  # 30 s of 100 requests a second each
        now[0] += 0.01
        for client in ("one", "two"):
            with contextlib.suppress(ApiError):
                rates.admit("news", client, 10.0)
                taken.append((now[0], client))
    for client in ("one", "two"):
        times = [at for at, who in taken if who == client]
        assert 295 <= len(times) <= 310  # 10 a second, and 10 at once
        assert max(sum(at <= other < at + 1.0 for other in times) for at in times) <= 20
    rates.admit("news", "one", 0.0)


def test_a_client_that_may_send_less_than_one_a_second_is_told_how_long_to_wait_and_all_are_not_remembered():
    now = [0.0]
    rates = RateLimiter(lambda: now[0])
    rates.admit("news", "one", 0.1)
    with pytest.raises(ApiError) as told:
        rates.admit("news", "one", 0.1)
    assert told.value.status == 429
    assert 9 <= told.value.wait <= 19
    now[0] += told.value.wait
    rates.admit("news", "one", 0.1)
    for client in range(2 * KNOWN):
        rates.admit("news", f"{client}", 1.0)
    assert len(rates._next) == KNOWN


class Fixed:
    """A clock that stands."""

    def __call__(self):
        return 0.0


@pytest.mark.parametrize("keyed", [False, True])
def test_too_many_requests_are_429_with_retry_after_and_forgetting_needs_an_admin(tmp_path, keyed):
    settings, _ = read_file(write_settings(tmp_path, wait=3600.0))
    settings = replace(settings, limits=replace(settings.limits, rate=4.0))
    with SqliteStore(tmp_path / "log") as store:
        loop = Loop(settings, store, tmp_path / "models")
        found = [{"sha256": hash_key(role), "roles": [role]} for role in ("decide", "admin")] if keyed else []
        service = Service({"news": loop}, {"news": Keys(found)})
        service.rates = RateLimiter(Fixed())

        async def asked():
            transport = httpx.ASGITransport(service)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                key = lambda role: {"authorization": f"Bearer {role}"}  # noqa: E731
                body = {"context": [0, 1, 2], "arms": ["a", "b"], "subject": SUBJECT}
                each = [await client.post("/v1/news/decide", json=body, headers=key("decide")) for _ in range(6)]
                service.rates = RateLimiter(Fixed())
                forgotten = [
                    await client.post("/v1/news/forget", json={"subject": SUBJECT}, headers=key(role))
                    for role in ("decide", "admin")
                ]
                nobody = [
                    await client.post("/v1/news/forget", json={"subject": subject}, headers=key("admin"))
                    for subject in ("", "\0", "x" * 257)
                ]
                return each, forgotten, nobody

        each, forgotten, nobody = asyncio.run(asked())
        loop.stop()
    assert [one.status_code for one in nobody] == [400, 400, 400 if keyed else 429]
    assert [one.status_code for one in each] == [200] * 4 + [429] * 2
    assert each[-1].json()["error"]["code"] == "TooManyRequests"
    assert each[-1].headers["retry-after"] == "1"
    assert [one.status_code for one in forgotten] == ([403, 200] if keyed else [200, 200])
    assert [one.json() for one in forgotten][0 if not keyed else 1] == {"forgotten": 4}
