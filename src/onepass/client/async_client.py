"""The asynchronous client: the methods of `Client` as coroutines."""

from asyncio import sleep
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar, Unpack

import httpx

from onepass.client import requests
from onepass.client.errors import ServiceError
from onepass.client.messages import Arms, DecideOptions, Decision, Outcome, OutcomeCounts, SettingsInfo
from onepass.client.requests import Call, LogPages, Result, Retries

T = TypeVar("T")


class AsyncClient:
    """Asynchronous client of one loop of a service; its methods are those of `Client`, as coroutines.

    Every call is awaited, as in `await client.decide(context)`, except `log`, which is an asynchronous iterator. `async
    with` closes the client.

    Parameters
    ----------
    url : str
        Address of the service.
    loop : str
        Name of the loop.
    key : str or None, default None
        Key of the loop, None if the service has no keys.
    timeout : float, default 5.0
        Seconds within which a connection, and every part of an answer, must come; above 0.
    retries : int, default 3
        Largest number of times that a request is sent again, at least 0. It is sent again if no answer comes, or if
        the service refuses it for a transient reason.
    ca_file : str, Path or None, default None
        PEM file of certificate authorities to trust for TLS. None trusts the usual ones.
    transport : httpx.AsyncBaseTransport or None, default None
        Transport of httpx, None for its own.

    Raises
    ------
    ValueError
        If an argument is wrong, such as a `url` that is not an address.

    Notes
    -----
    Every call may raise a `ServiceError`, which has a code, a message, and the body that was sent.
    """

    def __init__(
        self, url: str, loop: str, key: str | None = None, *, timeout: float = requests.TIMEOUT,
        retries: int = requests.RETRIES, ca_file: str | Path | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:  # fmt: skip
        self._loop, self._retries = requests.quote_segment(loop), retries
        self._http = httpx.AsyncClient(
            **requests.httpx_options(url, key, timeout, retries, ca_file), transport=transport
        )

    # ---- decisions and outcomes ----

    async def decide(self, context: Any = None, arms: Arms | None = None, **options: Unpack[DecideOptions]) -> Decision:
        """Choose arms for one request.

        Parameters
        ----------
        context : array_like or dict, default None
            Context of the request: numbers in the order of the settings, or by name.
        arms : sequence of str or dict, or dict of name to features, default None
            Arms on offer. A dictionary in a sequence is an arm as JSON, such as {"id": "a1", "features": [0.5]}. None
            offers the arms of the settings.
        **options : DecideOptions
            Any of exclude, slots, id, defer, subject, rest, costs and weights, see `DecideOptions`.

        Returns
        -------
        Decision
            The chosen arms, their probabilities, and the id to send outcomes with.
        """
        return await self._send(requests.decide_call(context, arms, options))

    async def outcome(
        self,
        id: str,
        value: float | None = None,
        *,
        outcomes: Mapping[str, float] | None = None,
        slot: int | None = None,
        key: str | None = None,
    ) -> OutcomeCounts:
        """Send the reward of a decision, other outcomes of it, or both.

        Parameters
        ----------
        id : str
            Id of the decision.
        value : float or None, default None
            Reward, None for none.
        outcomes : dict of str to float or None, default None
            Other outcomes, by the names of the loop's settings.
        slot : int or None, default None
            Index of the slot that the value belongs to, from 0. None means all slots.
        key : str or None, default None
            Key under which the outcome counts once, however often it is sent. None makes a new key, so that every
            call counts.

        Returns
        -------
        OutcomeCounts
            Number of outcomes that were accepted, and that were new.
        """
        return await self._send(requests.outcomes_call([requests.make_outcome(id, value, outcomes, slot, key)]))

    async def outcomes(self, outcomes: Iterable[Outcome]) -> OutcomeCounts:
        """Send outcomes of many decisions; either all are accepted or none.

        Parameters
        ----------
        outcomes : iterable of Outcome
            Dictionaries with id, value and, if need be, slot and key, see `Outcome`.

        Returns
        -------
        OutcomeCounts
            Number of outcomes that were accepted, and that were new.
        """
        return await self._send(requests.outcomes_call(outcomes))

    async def activate(self, id: str) -> None:
        """Report that a deferred decision was shown, so that it counts. After its deadline this changes nothing.

        Parameters
        ----------
        id : str
            Id of the decision.

        Raises
        ------
        NotFound
            If there is no decision with this id.
        """
        await self._send(requests.activate_call(id))

    async def log(self, since: int = 0, limit: int | None = None) -> AsyncIterator[dict[str, Any]]:
        """Iterate over records of the log, as a stream.

        If a connection breaks, the next one continues after the last record received.

        Parameters
        ----------
        since : int, default 0
            Sequence number after which the records begin.
        limit : int or None, default None
            Number of records at most, at least 0; None for all.

        Yields
        ------
        dict
            Fields of a record, by name (`onepass.log.encode`). The field `kind` names its kind, such as "decision".

        Raises
        ------
        ValueError
            If `since` or `limit` is negative.
        """
        pages, retries = LogPages(since, limit), Retries(self._retries, True)
        while pages.has_more:
            call, before = pages.next_call(), pages.since
            result: Result
            try:
                async with self._http.stream(call.method, self._path(call), params=call.query) as result:
                    if result.is_success:
                        async for part in result.aiter_bytes():
                            for record in pages.parse_records(part):
                                yield record
                        pages.end_page()
                        continue
                    await result.aread()
            except httpx.RequestError as error:
                result = error
            if pages.since > before:
                retries = Retries(self._retries, True)
            pause = retries.next_pause(result)
            if pause is None:
                requests.parse_result(call, result)
            await sleep(pause or 0.0)

    # ---- settings and models ----

    async def settings(self) -> SettingsInfo:
        """Get the present settings.

        Returns
        -------
        SettingsInfo
            Settings and their version.
        """
        return await self._send(requests.SETTINGS)

    async def replace_settings(self, settings: Mapping[str, Any], *, dry_run: bool = False) -> SettingsInfo:
        """Replace all settings.

        Parameters
        ----------
        settings : mapping
            All settings of the loop.
        dry_run : bool, default False
            If True, only report what would change.

        Returns
        -------
        SettingsInfo
            Settings, their version, and the names of those that changed.
        """
        return await self._send(requests.replace_settings_call(settings, dry_run))

    async def patch_settings(self, part: Mapping[str, Any], *, dry_run: bool = False) -> SettingsInfo:
        """Change some settings.

        Parameters
        ----------
        part : mapping
            Settings that change. None as a value restores the default.
        dry_run : bool, default False
            If True, only report what would change.

        Returns
        -------
        SettingsInfo
            Settings, their version, and the names of those that changed.
        """
        return await self._send(requests.patch_settings_call(part, dry_run))

    async def evaluations(self) -> Any:
        """Get all evaluations of policies on the loop's log.

        Returns
        -------
        dict
            JSON of the service (docs/service_evaluations.md): "evaluations", a list with the newest first.
        """
        return await self._send(requests.get_call("evaluations"))

    async def evaluation(self, id: str) -> Any:
        """Get one evaluation.

        Parameters
        ----------
        id : str
            Id of the evaluation.

        Returns
        -------
        dict
            JSON of the service (docs/service_evaluations.md), with "status" and, once it is done, "policies".
        """
        return await self._send(requests.get_call(f"evaluations/{requests.quote_segment(id)}"))

    async def evaluate(self, **options: Any) -> Any:
        """Start an evaluation: the value of other policies, estimated from the log.

        Parameters
        ----------
        **options : object
            Fields of the request, such as policies, since and until (docs/service_evaluations.md). An id is made if
            none is given.

        Returns
        -------
        dict
            JSON of the service (docs/service_evaluations.md), with "id", the id of the evaluation, and "status".
        """
        return await self._send(requests.evaluate_call(options))

    async def delete_evaluation(self, id: str) -> None:
        """Delete an evaluation.

        Parameters
        ----------
        id : str
            Id of the evaluation.
        """
        await self._send(requests.action_call(f"evaluations/{requests.quote_segment(id)}", method="DELETE"))

    async def models(self) -> Any:
        """Get the models that the loop has had, and the checkpoints to roll back to.

        Returns
        -------
        dict
            JSON of the service (docs/service_changes.md): the lists "models" and "checkpoints".
        """
        return await self._send(requests.get_call("models"))

    async def promote(self, **options: Any) -> Any:
        """Let the candidate, or a policy of an evaluation, take over.

        Parameters
        ----------
        **options : object
            Any of evaluation, the id of an evaluation (str), policy, the name of its policy (str), and anyway, True to
            promote a policy that was not found better (bool, default False): docs/service_changes.md.

        Returns
        -------
        dict
            JSON of the service (docs/service_changes.md), with "settings", "model_number" and "candidate".
        """
        return await self._send(requests.action_call("promote", options))

    async def rollback(self, **options: Any) -> Any:
        """Replace the model by an earlier one.

        Parameters
        ----------
        **options : object
            Field checkpoint, the name of a saved model (str), and optionally learn, True to learn the rewards that came
            since it was saved (bool, default False): docs/service_changes.md.

        Returns
        -------
        dict
            JSON of the service (docs/service_changes.md), with "settings", "model_number" and "candidate".
        """
        return await self._send(requests.action_call("rollback", options))

    async def discard_candidate(self) -> None:
        """Discard the candidate.

        Raises
        ------
        Conflict
            If there is no candidate.
        """
        await self._send(requests.action_call("candidate", method="DELETE"))

    # ---- the service ----

    async def is_healthy(self) -> bool:
        """Return True if the service answers.

        Returns
        -------
        bool
            True if it answers.
        """
        try:
            await self._send(requests.HEALTH)
        except ServiceError:
            return False
        return True

    async def problem(self) -> str | None:
        """Return the reason why the service is not ready.

        Returns
        -------
        str or None
            A sentence, or None if the service is ready.
        """
        try:
            await self._send(requests.READY)
        except ServiceError as error:
            return error.message
        return None

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _path(self, call: Call[Any]) -> str:
        return call.path.replace("{loop}", self._loop)

    async def _send(self, call: Call[T]) -> T:
        body, retries = requests.encode_body(call.body), Retries(self._retries, call.repeatable)
        while True:
            result: Result
            try:
                result = await self._http.request(
                    call.method, self._path(call), content=body, params=call.query, headers=requests.body_headers(body)
                )
            except httpx.RequestError as error:
                result = error
            pause = retries.next_pause(result)
            if pause is None:
                return requests.parse_result(call, result)
            await sleep(pause)
