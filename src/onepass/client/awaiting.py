"""The client for programs that await: the calls of `Client`, each awaited."""

from asyncio import sleep
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar, Unpack

import httpx

from onepass.client import calls
from onepass.client.answers import Arms, Asked, Counted, Decided, Outcome, Standing
from onepass.client.calls import Call, Came, Pages, Tries
from onepass.client.errors import ServiceError

T = TypeVar("T")


class AsyncClient:
    """Asks one loop of a service, as `Client` does; `async with` closes it.

    url, loop, key, timeout, retries, trusted: as for `Client`; transport: of httpx (default None: its own).
    """

    def __init__(
        self, url: str, loop: str, key: str | None = None, *, timeout: float = calls.TIMEOUT,
        retries: int = calls.RETRIES, trusted: str | Path | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ):  # fmt: skip
        self._loop, self._retries = calls.part(loop), retries
        self._http = httpx.AsyncClient(**calls.given(url, key, timeout, retries, trusted), transport=transport)

    # ---- decisions and what came of them ----

    async def decide(self, context: Any = None, arms: Arms | None = None, **asked: Unpack[Asked]) -> Decided:
        """Decide among arms. context: as the settings say, numbers in order or by name; arms: names, or features by
        name (default None: the arms of the settings); exclude, slots, id, defer, subject, tail: see `Asked`."""
        return await self._send(calls.deciding(context, arms, asked))

    async def outcome(self, id: str, value: float, *, slot: int | None = None, key: str | None = None) -> Counted:
        """Say what came of a decision. id: of it; value: what came; slot: which one (default None: all); key: what
        counts once, however often it is said (default None: this call does)."""
        return await self._send(calls.paying([{"id": id, "value": value, "slot": slot, "key": key}]))

    async def outcomes(self, outcomes: Iterable[Outcome]) -> Counted:
        """Say what came of many decisions: all are taken, or none. outcomes: see `Outcome`."""
        return await self._send(calls.paying(outcomes))

    async def activate(self, id: str) -> None:
        """Say that a deferred decision did happen. id: of it."""
        await self._send(calls.activating(id))

    async def log(self, since: int = 0, limit: int | None = None) -> AsyncIterator[dict[str, Any]]:
        """Records of the log, as they come. since: the place after which (default 0); limit: how many at most (default
        None: all). Where a connection breaks, the next one goes on after the last record that came."""
        pages, tries = Pages(since, limit), Tries(self._retries, True)
        while pages.more:
            call, before = pages.next(), pages.since
            came: Came
            try:
                async with self._http.stream(call.method, self._path(call), params=call.query) as came:
                    if came.is_success:
                        async for part in came.aiter_bytes():
                            for record in pages.taken(part):
                                yield record
                        pages.ended()
                        continue
                    await came.aread()
            except httpx.RequestError as error:
                came = error
            if pages.since > before:
                tries = Tries(self._retries, True)
            pause = tries.after(came)
            if pause is None:
                calls.read(call, came)
            await sleep(pause or 0.0)

    # ---- settings and models ----

    async def settings(self) -> Standing:
        """Settings in force."""
        return await self._send(calls.STANDING)

    async def change(self, settings: Mapping[str, Any], *, dry_run: bool = False) -> Standing:
        """Go on by other settings. settings: whole; dry_run: only say what would change (default False)."""
        return await self._send(calls.changing(settings, dry_run))

    async def patch(self, part: Mapping[str, Any], *, dry_run: bool = False) -> Standing:
        """Go on by other values of some settings. part: these alone, None for a default; dry_run: only say what would
        change (default False)."""
        return await self._send(calls.patching(part, dry_run))

    async def evaluations(self) -> Any:
        """All evaluations."""
        return await self._send(calls.asking("evaluations"))

    async def evaluation(self, id: str) -> Any:
        """One evaluation. id: of it."""
        return await self._send(calls.asking(f"evaluations/{calls.part(id)}"))

    async def evaluate(self, **asked: Any) -> Any:
        """Begin an evaluation. asked: policies, since, until, ... (docs/service.md); id: of it (default: made)."""
        return await self._send(calls.evaluating(asked))

    async def remove(self, id: str) -> None:
        """Delete an evaluation. id: of it."""
        await self._send(calls.doing(f"evaluations/{calls.part(id)}", method="DELETE"))

    async def models(self) -> Any:
        """The models that the loop has had, and the checkpoints to go back to."""
        return await self._send(calls.asking("models"))

    async def promote(self, **asked: Any) -> Any:
        """Let the candidate take over, or the policy of an evaluation. asked: evaluation, policy, anyway."""
        return await self._send(calls.doing("promote", asked))

    async def rollback(self, **asked: Any) -> Any:
        """Go back to a model of before. asked: checkpoint, learn."""
        return await self._send(calls.doing("rollback", asked))

    async def give_up(self) -> None:
        """Let there be no candidate any more."""
        await self._send(calls.doing("candidate", method="DELETE"))

    # ---- the service ----

    async def healthy(self) -> bool:
        """Whether the service answers."""
        try:
            await self._send(calls.ALIVE)
        except ServiceError:
            return False
        return True

    async def trouble(self) -> str | None:
        """Why the service is not ready, in a sentence; None where it is."""
        try:
            await self._send(calls.READY)
        except ServiceError as error:
            return error.message
        return None

    async def close(self) -> None:
        """Give the connections back."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _path(self, call: Call[Any]) -> str:
        return call.path.replace("{loop}", self._loop)

    async def _send(self, call: Call[T]) -> T:
        body, tries = calls.encoded(call.body), Tries(self._retries, call.again)
        while True:
            came: Came
            try:
                came = await self._http.request(
                    call.method, self._path(call), content=body, params=call.query, headers=calls.typed(body)
                )
            except httpx.RequestError as error:
                came = error
            pause = tries.after(came)
            if pause is None:
                return calls.read(call, came)
            await sleep(pause)
