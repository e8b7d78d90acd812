"""Decisions by many processes, with Ray Serve: readers follow the checkpoints that one learner publishes.

    decide    a reader scores and draws with its copy of the newest checkpoint; the keeper, the only process with the
              log, writes the record; the answer is sent when the record is durable
    outcome   goes to the keeper, which joins it at its deadline and learns it; the next checkpoint contains it

The log stays the source of truth: an answer is a function of a record in it, and the model is a fold over it. A lost
reader loses nothing. A lost keeper starts again from its log, and requests without an answer are repeated by their id.
"""

import importlib
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from onepass.bandit.decision import new_id
from onepass.cluster.ray_transport import connect
from onepass.foundation import check
from onepass.log.records import Decision, decode, encode
from onepass.service import checkpoints
from onepass.service.accounting_settings import needs_ledger
from onepass.service.app import error_response
from onepass.service.apprentice import REQUEST
from onepass.service.arm_table_cache import fingerprint
from onepass.service.clock import Clock
from onepass.service.decision_record import make_record
from onepass.service.learner import Copies, Copy
from onepass.service.loop import Loop
from onepass.service.loop_state import LoopState
from onepass.service.messages import ApiError, DecideAnswer, DecideRequest, OutcomeAnswer, OutcomeRequest
from onepass.service.request_body import parse_body, read_body, wait_for_result
from onepass.service.responses import check_same_request, decision_answer
from onepass.service.server import hold_folder, open_log
from onepass.service.settings import read_file as settings_of
from onepass.service.writer import new_future

POLL_INTERVAL = 1.0  # seconds between two looks for a newer checkpoint
FIRST_POLL_INTERVAL = 0.05  # seconds between two looks for the first checkpoint

_encoder = msgspec.json.Encoder()
_request = msgspec.json.Decoder(DecideRequest)
_outcomes = msgspec.json.Decoder(OutcomeRequest | list[OutcomeRequest])


class Keeper:
    """The one process that writes the log of decisions, learns, and publishes checkpoints of the model.

    Parameters
    ----------
    settings : str
        Path of the loop's settings.
    data : str
        Folder of the log and the checkpoints, which the deciding processes can read.
    log : str or None
        Database of the log, None for a file in `data`.

    Raises
    ------
    ValueError
        If another process serves the folder.
    """

    def __init__(self, settings: str, data: str, log: str | None) -> None:
        found, _ = settings_of(settings)
        folder = Path(data)
        folder.mkdir(parents=True, exist_ok=True)
        self._stack = ExitStack()
        self._stack.enter_context(hold_folder(folder, None))
        store = self._stack.enter_context(open_log(found, folder, log))
        store.claim(found.name)
        self.loop = Loop(found, store, folder / f"{found.name}.models")
        self._stack.callback(self.loop.stop)
        learner = self.loop.learner
        learner.run_after_learning(
            lambda: learner.save_checkpoint(always=True)
        ).result()  # readers need a first checkpoint

    async def write_decision(self, data: bytes) -> bytes:
        """Write the record of a decision, and return the durable record of its id as JSON.

        `data` is the record as JSON. If the id has a record already, that record is returned. Raises ApiError if that
        record is of another request.
        """
        record, future = decode(data), new_future()
        assert isinstance(record, Decision)
        request = (record.extra or {})[REQUEST]

        def check_request(stored: Decision) -> Decision:
            check_same_request((stored.extra or {}).get(REQUEST), request, record.id)
            return stored

        self.loop.writer.submit([record], keep_times=True, reply=(future, check_request))
        return encode(await wait_for_result(future))

    async def write_outcomes(self, data: bytes) -> bytes:
        """Write outcomes, given as the JSON `data`, and return the answer as JSON once they are durable.

        Raises ApiError in the same cases as the service.
        """
        parsed = parse_body(_outcomes, data)
        records, future = self.loop.outcomes(parsed if isinstance(parsed, list) else [parsed])
        await wait_for_result(future)
        return _encoder.encode(OutcomeAnswer(accepted=len(records), new=sum(record.seq != 0 for record in records)))

    async def log_positions(self) -> tuple[int, int]:
        """Return the last position of the log, and the last one that the newest checkpoint has learned."""
        return self.loop.writer.last, self.loop.learner.saved

    def stop(self) -> None:
        """Learn and store what was accepted, write a checkpoint, and end."""
        self._stack.close()


class _KeeperHandle:
    """Handle of a keeper that is an actor of Ray; Ray repeats calls that were lost with the actor."""

    def __init__(self, actor: Any) -> None:
        self.actor = actor

    def __call__(self, method: str, data: bytes) -> Awaitable[bytes]:
        found: Awaitable[bytes] = getattr(self.actor, method).remote(data)
        return found


class Reader:
    """One of the processes that decide, each with the newest checkpoint of the model.

    Parameters
    ----------
    name : str
        Name of the loop.
    data : str
        Folder of the checkpoints.
    keeper : callable
        Calls a method of the `Keeper`, given the name of the method and its argument.
    poll_interval : float, default 1.0
        Seconds between two looks for a newer checkpoint.
    """

    def __init__(
        self,
        name: str,
        data: str,
        keeper: Callable[[str, bytes], Awaitable[bytes]],
        poll_interval: float = POLL_INTERVAL,
    ) -> None:
        self.name, self.folder, self.keeper = name, Path(data) / f"{name}.models", keeper
        self._poll_interval, self._known = poll_interval, ""
        self._present: tuple[Copy, LoopState] | None = None
        self._clock = Clock()
        self.load_newest()
        while not self._known:
            time.sleep(FIRST_POLL_INTERVAL)
            self.load_newest()
        threading.Thread(target=self._poll, name=f"reader of {name}", daemon=True).start()

    def _poll(self) -> None:
        while True:
            time.sleep(self._poll_interval)
            self.load_newest()

    def load_newest(self) -> None:
        """Load the newest checkpoint of the serving model, if it is newer than the present one."""
        for place in sorted(self.folder.glob("*.json"), reverse=True):
            if place.name == self._known:
                return
            try:
                kept = msgspec.json.decode(place.read_bytes(), type=checkpoints.CheckpointMeta)
            except (OSError, ValueError):
                continue  # the checkpoint was deleted meanwhile
            serves = kept.line == kept.loop_state.lines.serving and kept.loop_state.settings is not None
            found = checkpoints.load_checkpoint(self.folder, kept) if serves else None
            if found is not None:
                bandit = found.bandit
                self._present, self._known = (
                    (Copy(bandit.snapshot(), kept.line, bandit.needs_time, kept.through), kept.loop_state),
                    place.name,
                )
                return

    def n_learned(self) -> int:
        """Return the number of rows that the present model has learned."""
        assert self._present is not None
        return int(self._present[0].snapshot.n_learned)

    def make_decision(self, request: DecideRequest) -> Decision:
        """Decide a request with the present model, and return the record of the decision.

        Raises ApiError if the request cannot be decided, or if the settings test a candidate model on a share of the
        decisions.
        """
        assert self._present is not None
        copy, loop_state = self._present
        settings = loop_state.settings
        assert settings is not None
        if settings.mode == "canary":
            raise ApiError(409, "SettingsFixed", "mode must not be canary: readers have one model, not its candidate")
        if needs_ledger(settings):
            raise ApiError(
                409,
                "SettingsFixed",
                "budgets, shares and baseline must be left out: readers do not know what others spent",
            )
        identity, now = request.id or new_id(), self._clock()
        return make_record(Copies(copy), settings, loop_state.version, request, identity, fingerprint(request), now)

    async def decide(self, body: bytes) -> bytes:
        """Decide a request, given as JSON, and return the answer as JSON once its record is durable.

        Raises ApiError in the same cases as the service.
        """
        record = self.make_decision(parse_body(_request, body))
        stored = decode(await self.keeper("write_decision", encode(record)))
        assert isinstance(stored, Decision)
        answer: DecideAnswer = decision_answer(stored)
        return _encoder.encode(answer)

    async def outcome(self, body: bytes) -> bytes:
        """Pass outcomes, given as JSON, to the keeper, and return the answer as JSON when they are durable.

        An outcome without a key gets one, so that a repeated call of the keeper counts nothing twice.
        """
        parsed = parse_body(_outcomes, body)
        outcomes = parsed if isinstance(parsed, list) else [parsed]
        keyed = [msgspec.structs.replace(outcome, key=outcome.key or new_id()) for outcome in outcomes]
        return await self.keeper("write_outcomes", _encoder.encode(keyed))

    async def __call__(self, request: Any) -> Any:
        """Answer an HTTP request: POST .../decide or .../outcome."""
        from starlette.responses import Response

        try:
            assert self._present is not None
            settings = self._present[1].settings
            assert settings is not None
            act = {"decide": self.decide, "outcome": self.outcome}.get(request.url.path.rstrip("/").rpartition("/")[2])
            if act is None or request.method != "POST":
                raise ApiError(404, "NotFound", "POST .../decide or .../outcome")
            body = await read_body(request, settings.limits.body)
            return Response(await act(body), media_type="application/json")
        except Exception as error:
            return error_response(getattr(error, "cause", None) or error)


def _import_ray_serve() -> Any:
    """Import Ray Serve; a ModuleNotFoundError names the extra to install."""
    try:
        return importlib.import_module("ray.serve")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{error.name} is missing, which Ray Serve needs: pip install onepass[ray-serve]", name=error.name
        ) from None


def application(
    settings: str | Path,
    data: str | Path,
    *,
    log: str | None = None,
    readers: int = 2,
    poll_interval: float = POLL_INTERVAL,
    ray: str = "auto",
) -> Any:
    """Make the application for `ray.serve.run`: one process that learns, and `readers` processes that decide.

    The application checks no keys: put a proxy in front that does. Checkpoints are written every `operation.checkpoint`
    seconds of the settings; the deciding model is up to that old.

    Parameters
    ----------
    settings : str or Path
        The loop's file, as for `onepass serve`.
    data : str or Path
        Folder of the log and the checkpoints, on a disk that the machines of all processes see.
    log : str, default None
        Database of the log, postgresql://...; None for a file in `data`.
    readers : int, default 2
        Number of processes that decide, at least 1.
    poll_interval : float, default 1.0
        Seconds, above 0, between two looks for a newer checkpoint.
    ray : str, default "auto"
        Address of Ray, as for `ShardedBandit`.

    Returns
    -------
    ray.serve.Application
        The application.

    Raises
    ------
    ValueError
        If the settings cannot be served.
    ModuleNotFoundError
        If Ray Serve is missing.
    """
    count, wait = check.integer("readers", readers, 1), check.positive("poll_interval", poll_interval)
    found, _ = settings_of(settings)
    serve, engine = _import_ray_serve(), connect(ray)
    keeper = engine.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(Keeper)
    options = {"name": f"onepass keeper of {found.name}", "get_if_exists": True, "lifetime": "detached"}
    actor = keeper.options(**options).remote(str(Path(settings).resolve()), str(Path(data).resolve()), log)
    deployment = serve.deployment(Reader, name=f"reader of {found.name}", num_replicas=count)
    return deployment.bind(found.name, str(Path(data).resolve()), _KeeperHandle(actor), wait)
