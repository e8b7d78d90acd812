"""Deciding by many processes, with Ray Serve: readers follow the checkpoints that the one learner publishes.

    decide    a reader scores and draws by its copy of the newest checkpoint; the keeper, the one process that has the
              log, writes the record; when it is durable it is the answer
    outcome   goes to the keeper: joined at its deadline, learned, in the next checkpoint

The log stays the truth: an answer is a function of a record in it, and the model is the fold of it. A reader that is
lost loses nothing; a keeper that is lost starts again from its log, and what had no answer is asked again by its id.
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
FIRST_POLL_INTERVAL = 0.05  # seconds between two looks for the first one

_encoder = msgspec.json.Encoder()
_request = msgspec.json.Decoder(DecideRequest)
_outcomes = msgspec.json.Decoder(OutcomeRequest | list[OutcomeRequest])


class Keeper:
    """The one process that writes the log, learns and publishes checkpoints.

    settings: the loop's file; data: the folder of its log and checkpoints, which readers see; log: a database instead
    of a file there. ValueError where another process serves the folder.
    """

    def __init__(self, settings: str, data: str, log: str | None):
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
        ).result()  # readers have something to begin with

    async def write_decision(self, data: bytes) -> bytes:
        """The record of a decision, durable: this one, or the one there is of its id. Refused for another request."""
        record, future = decode(data), new_future()
        assert isinstance(record, Decision)
        print_ = (record.extra or {})[REQUEST]

        def kept(found: Decision) -> Decision:
            check_same_request((found.extra or {}).get(REQUEST), print_, record.id)
            return found

        self.loop.writer.submit([record], keep_times=True, reply=(future, kept))
        return encode(await wait_for_result(future))

    async def write_outcomes(self, data: bytes) -> bytes:
        """Outcomes as JSON, durable; the answer as JSON. Refused as by the service."""
        found = parse_body(_outcomes, data)
        records, future = self.loop.outcomes(found if isinstance(found, list) else [found])
        await wait_for_result(future)
        return _encoder.encode(OutcomeAnswer(accepted=len(records), new=sum(record.seq != 0 for record in records)))

    async def log_positions(self) -> tuple[int, int]:
        """The last place of the log, and the last that the newest checkpoint has learned."""
        return self.loop.writer.last, self.loop.learner.saved

    def stop(self) -> None:
        """Write and learn what was taken, make a checkpoint, end."""
        self._stack.close()


class _KeeperHandle:
    """The keeper, where it is an actor of Ray, which does again what was lost with it."""

    def __init__(self, actor: Any):
        self.actor = actor

    def __call__(self, method: str, data: bytes) -> Awaitable[bytes]:
        found: Awaitable[bytes] = getattr(self.actor, method).remote(data)
        return found


class Reader:
    """Decides by the newest checkpoint.

    name: of the loop; data: the keeper's folder; keeper: lets it do one of its methods; poll_interval: seconds
    between two looks for a newer checkpoint.
    """

    def __init__(
        self,
        name: str,
        data: str,
        keeper: Callable[[str, bytes], Awaitable[bytes]],
        poll_interval: float = POLL_INTERVAL,
    ):
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
        """Take the newest checkpoint of the model that serves, if there is a newer one."""
        for place in sorted(self.folder.glob("*.json"), reverse=True):
            if place.name == self._known:
                return
            try:
                kept = msgspec.json.decode(place.read_bytes(), type=checkpoints.CheckpointMeta)
            except (OSError, ValueError):
                continue  # taken away meanwhile
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
        """Rows that the model has learned by which it decides."""
        assert self._present is not None
        return int(self._present[0].snapshot.n_learned)

    def make_decision(self, request: DecideRequest) -> Decision:
        """The record of a decision by the present copy. Refused for what cannot be decided, and for canaries."""
        assert self._present is not None
        copy, loop_state = self._present
        settings = loop_state.settings
        assert settings is not None
        if settings.mode == "canary":
            raise ApiError(409, "SettingsFixed", "mode must not be canary: readers have one model, not its candidate")
        identity, now = request.id or new_id(), self._clock()
        return make_record(Copies(copy), settings, loop_state.version, request, identity, fingerprint(request), now)

    async def decide(self, body: bytes) -> bytes:
        """The answer to a request, both JSON, once its record is durable. Refused as by the service."""
        record = self.make_decision(parse_body(_request, body))
        kept = decode(await self.keeper("write_decision", encode(record)))
        assert isinstance(kept, Decision)
        said: DecideAnswer = decision_answer(kept)
        return _encoder.encode(said)

    async def outcome(self, body: bytes) -> bytes:
        """The answer to outcomes, both JSON, once they are durable; each gets a key where it has none, so that asking
        the keeper again counts nothing twice."""
        found = parse_body(_outcomes, body)
        each = found if isinstance(found, list) else [found]
        keyed = [msgspec.structs.replace(one, key=one.key or new_id()) for one in each]
        return await self.keeper("write_outcomes", _encoder.encode(keyed))

    async def __call__(self, request: Any) -> Any:
        """HTTP: POST .../decide and .../outcome."""
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
    """Ray Serve; ModuleNotFoundError, which names the extra, where it is not there."""
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
    """What `ray.serve.run` takes: one keeper, and readers that decide.

    settings: the loop's file, as of `onepass serve`; data: the folder of its log and checkpoints, on a disk that all
    machines of the readers see; log: postgresql://... instead of a file there (default None); readers: how many, at
    least 1 (default 2); poll_interval: seconds, above 0, between two looks for a newer checkpoint (default 1); ray: the
    address, as of `ShardedBandit` (default "auto"). ValueError for settings that cannot be served, ModuleNotFoundError
    without Ray Serve.

    No keys are asked for: let a proxy that does stand before it. Checkpoints are made every `operation.checkpoint`
    seconds of the settings: that is how old the model is that decides.
    """
    count, wait = check.integer("readers", readers, 1), check.positive("poll_interval", poll_interval)
    found, _ = settings_of(settings)
    serve, engine = _import_ray_serve(), connect(ray)
    keeper = engine.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(Keeper)
    options = {"name": f"onepass keeper of {found.name}", "get_if_exists": True, "lifetime": "detached"}
    actor = keeper.options(**options).remote(str(Path(settings).resolve()), str(Path(data).resolve()), log)
    deployment = serve.deployment(Reader, name=f"reader of {found.name}", num_replicas=count)
    return deployment.bind(found.name, str(Path(data).resolve()), _KeeperHandle(actor), wait)
