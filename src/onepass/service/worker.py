"""Worker process, which answers HTTP and decides by copies of the models, while the service writes and learns.

    decide    decided here by the newest state, sent to the service, answered when its record is durable
    outcome   sent to the service, answered when it is durable
    others    passed on to the service, whose answer is passed back

The service starts `python -m onepass.service.worker SOCKET CHANNEL` (workers.py) with two open sockets: one that
listens and is shared by all workers, one to the service. The worker ends when the service is gone.
"""

import asyncio
import itertools
import os
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from uvicorn.config import Config
from uvicorn.server import Server

from onepass.bandit.decision import new_id
from onepass.foundation import files
from onepass.log.records import Decision, decode, encode
from onepass.service.accounting_settings import needs_ledger
from onepass.service.admission import Admission
from onepass.service.app import error_response
from onepass.service.apprentice import REQUEST
from onepass.service.arm_table_cache import ArmTableCache, fingerprint
from onepass.service.channel import (
    Channel,
    Configuration,
    Kind,
    ModelBytes,
    Outcomes,
    Question,
    Refusal,
    Relayed,
    Served,
    Start,
    State,
    Submission,
)
from onepass.service.clock import Clock
from onepass.service.connections import ConnectionLimits
from onepass.service.decision_record import make_record
from onepass.service.keys import Keys
from onepass.service.learner import Copies, Copy
from onepass.service.loop import compile_paths
from onepass.service.messages import ApiError, DecideRequest, RecordsRequest
from onepass.service.personalizer.app import MODEL
from onepass.service.personalizer.requests import key_of
from onepass.service.request_body import JSONBytes, RawRequest, parse_body, read_body
from onepass.service.request_rows import make_table
from onepass.service.responses import check_same_request, decision_answer
from onepass.service.server import server_options, tune_runtime
from onepass.service.settings import BODY, LoopSettings, takes_records

REPORT = 0.25  # seconds between two reports of what was served

_records = msgspec.json.Decoder(RecordsRequest)
_encoder = msgspec.json.Encoder()


class ActiveState(NamedTuple):
    """Models and settings with which a worker process makes the decisions of a loop.

    - copies: copies of the serving model and of the candidate.
    - settings, version: settings of the loop, and their version.
    - number: number of the message from the service that brought them.
    """

    copies: Copies
    settings: LoopSettings
    version: int
    number: int


class FollowedLoop:
    """Loop in a worker process, with the latest models and settings that the service sent.

    `name` is the name of the loop, `clock` gives the times of its decisions, and `path` is the file in which the
    service writes models and settings.
    """

    present: ActiveState

    def __init__(self, name: str, clock: Clock, path: Path) -> None:
        self.name, self.clock, self._path = name, clock, path
        self._newer = asyncio.Condition()

    def load(self) -> ActiveState:
        """Read the settings and models that the service wrote last; this takes as long as loading a model."""
        state = msgspec.msgpack.decode(self._path.read_bytes(), type=State)
        settings = msgspec.convert(state.settings, LoopSettings)
        candidate = None if state.candidate is None else load_copy(state.candidate)
        return ActiveState(Copies(load_copy(state.present), candidate), settings, state.version, state.number)

    async def follow(self, present: ActiveState) -> None:
        """Replace the settings and models with which the worker decides by `present`."""
        if not hasattr(self, "present"):
            self.tables = ArmTableCache(lambda arms: make_table(arms, present.settings))
        async with self._newer:
            self.present = present
            self._newer.notify_all()

    async def wait_after(self, number: int) -> None:
        """Wait until the service has sent models and settings with a larger number than `number`."""
        async with self._newer:
            await self._newer.wait_for(lambda: self.present.number > number)

    def decoder(self) -> Any:
        """Return the decoder of requests: for records if the loop's settings take records, else for rows of numbers."""
        return _records if takes_records(self.present.settings) else self.tables


def load_copy(model: ModelBytes) -> Copy:
    """Return a copy of a model, with which the worker decides, from the bytes that the service sent."""
    bandit: Any = files.from_bytes(model.data)
    return Copy(bandit.snapshot(), model.line, bandit.needs_time, model.through)


class Worker:
    """ASGI application of a worker process, which answers requests and decides by copies of the models."""

    def __init__(self) -> None:
        self.channel = Channel(self._receive, self._on_lost)
        self.loops: dict[str, FollowedLoop] = {}
        self.lost = asyncio.Event()
        self._configuration: asyncio.Future[Configuration] = asyncio.get_running_loop().create_future()
        self._states: asyncio.Queue[str] = asyncio.Queue()  # names of loops
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[tuple[int, bytes]]] = {}
        self._relayed: dict[int, asyncio.Queue[tuple[int, bytes]]] = {}
        self._served: list[Served] = []
        self._operations: dict[tuple[str, str], Callable[[RawRequest], Awaitable[Any]]] = {}
        self._deciding: dict[str, FollowedLoop] = {}  # by the path of their decisions

    # ---- the channel ----

    def _receive(self, kind: int, number: int, payload: bytes) -> None:
        if kind == Kind.CONFIGURE:
            self._configuration.set_result(msgspec.msgpack.decode(payload, type=Configuration))
        elif kind == Kind.STATE:
            self._states.put_nowait(payload.decode())
        elif number in self._relayed:
            self._relayed[number].put_nowait((kind, payload))
        else:
            asked = self._asked.pop(number, None)
            if asked is not None and not asked.done():
                asked.set_result((kind, payload))

    def _on_lost(self) -> None:
        self.lost.set()
        gone = msgspec.msgpack.encode(Refusal(503, "LogUnavailable", "the service is stopping; send it again"))
        for number in [*self._asked]:
            self._receive(Kind.REFUSED, number, gone)
        for queue in self._relayed.values():
            queue.put_nowait((Kind.REFUSED, gone))

    async def ask(self, kind: Kind, message: Any) -> tuple[int, bytes]:
        """Send a request to the service, and return kind and payload of its answer; raise an error if it refuses."""
        number, answer = next(self._numbers), asyncio.get_running_loop().create_future()
        if self.lost.is_set():
            raise ApiError(503, "LogUnavailable", "the service is stopping; send it again")
        self._asked[number] = answer
        self.channel.send_message(kind, number, message)
        found, payload = await answer
        if found == Kind.REFUSED:
            raise msgspec.msgpack.decode(payload, type=Refusal).error()
        return found, payload

    async def start(self) -> Configuration:
        """Receive the configuration and the first state of every loop, and return the configuration."""
        configuration = await self._configuration
        self.admission = Admission({name: Keys(keys) for name, keys in configuration.keys.items()})
        for name, origin in configuration.clocks.items():
            self.loops[name] = FollowedLoop(name, Clock(origin=origin), Path(configuration.states[name]))
            self._deciding[f"/v1/{name}/decide"] = self.loops[name]
            for operation, handler in (("decide", self._decide), ("outcome", self._outcome)):
                self._operations[f"/v1/{name}/{operation}", "POST"] = self._measure(name, operation, handler)
        waiting = set(self.loops)
        while waiting:
            waiting.discard(await self._follow())
        for loop in self.loops.values():
            bandit = loop.present.copies.present.snapshot.bandit()
            await asyncio.to_thread(compile_paths, bandit, loop.present.settings)
        return configuration

    async def _follow(self) -> str:
        """Load the next state that the service announces, and return the name of its loop."""
        name = await self._states.get()
        loop = self.loops[name]
        present = await asyncio.to_thread(loop.load)
        await loop.follow(present)
        self.channel.send(Kind.FOLLOWED, present.number, name.encode())
        return name

    async def follow(self) -> None:
        """Load the models and settings that the service sends, one after the other."""
        while True:
            await self._follow()

    async def report(self) -> None:
        """Send reports to the service from time to time about the requests served."""
        while True:
            await asyncio.sleep(REPORT)
            self.send_report()

    def count_refused(self, status: int) -> None:
        """Count a request that was refused with an HTTP status before it was read."""
        self._served.append(Served("", "", status, 0.0))

    def send_report(self) -> None:
        """Send a report about the requests served since the last one."""
        if self._served:
            served, self._served = self._served, []
            self.channel.send_message(Kind.SERVED, 0, served)

    # ---- HTTP ----

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve a request, as an ASGI application."""
        handler = self._operations.get((scope.get("path"), scope.get("method")))
        if handler is None or self._is_accounted(scope["path"]):
            await self._relay(scope, receive, send)
            return
        response = await handler(RawRequest(scope, receive))
        await response(scope, receive, send)

    def _is_accounted(self, path: str) -> bool:
        """Return True for decisions that depend on a ledger: the service, which has the only one, makes them."""
        loop = self._deciding.get(path)
        return loop is not None and needs_ledger(loop.present.settings)

    def _measure(self, name: str, operation: str, handler: Any) -> Callable[[RawRequest], Awaitable[Any]]:
        loop = self.loops[name]

        async def answer(request: RawRequest) -> Any:
            begin = time.perf_counter()
            try:
                response = await handler(request, loop)
            except Exception as error:
                response = error_response(error)
            self._served.append(Served(name, operation, response.status_code, time.perf_counter() - begin))
            return response

        return answer

    async def _decide(self, request: RawRequest, loop: FollowedLoop) -> Any:
        self.admission.admit(request, loop.name, "decide")
        client = self.admission.client(request, loop.name)
        message = parse_body(loop.decoder(), await read_body(request, loop.present.settings.limits.body))
        digest, identity = fingerprint(message), message.id or new_id()
        while True:
            present = loop.present
            try:
                record = make_record(
                    present.copies, present.settings, present.version, message, identity, digest, loop.clock()
                )
            except ApiError:
                before = await self._find(loop, message)
                if before is None:
                    raise
                check_same_request((before.extra or {}).get(REQUEST), digest, identity)
                return encode_answer(before)
            submission = Submission(loop.name, client, present.number, encode(record))
            kind, stored = await self.ask(Kind.SUBMIT, submission)
            if kind == Kind.STORED:
                return encode_answer(stored or record)
            await loop.wait_after(present.number)

    async def _find(self, loop: FollowedLoop, message: DecideRequest) -> Decision | None:
        """Return the decision in the log with the id of the request `message`, or None."""
        if message.id is None:
            return None
        _, stored = await self.ask(Kind.FIND, Question(loop.name, message.id))
        found = decode(stored) if stored else None
        assert found is None or isinstance(found, Decision)
        return found

    async def _outcome(self, request: RawRequest, loop: FollowedLoop) -> Any:
        self.admission.admit(request, loop.name, "reward")
        body = await read_body(request, loop.present.settings.limits.body)
        outcomes = Outcomes(loop.name, self.admission.client(request, loop.name), body)
        return JSONBytes((await self.ask(Kind.OUTCOME, outcomes))[1])

    def _largest_body(self, scope: Any, request: Any) -> int:
        """Return the largest allowed size of a request's body in bytes.

        A key with role "admin" may upload a larger model.
        """
        roles = {role for keys in self.admission.keys.values() for role in keys.roles(key_of(request))}
        if scope["method"] == "PUT" and scope["path"].endswith("/model") and "admin" in roles:
            return MODEL
        return max(BODY, *(loop.present.settings.limits.body for loop in self.loops.values()))

    async def _relay(self, scope: Any, receive: Any, send: Any) -> None:
        """Let the service answer a request."""
        if scope["type"] != "http":
            return
        most = self._largest_body(scope, RawRequest(scope, receive))
        number, answers = next(self._numbers), asyncio.Queue[tuple[int, bytes]]()
        try:
            body = await read_any_body(RawRequest(scope, receive), most)
            if self.lost.is_set():
                raise ApiError(503, "LogUnavailable", "the service is stopping; send it again")
        except Exception as error:
            await error_response(error)(scope, receive, send)
            return
        self._relayed[number] = answers
        self.channel.send_message(Kind.RELAY, number, make_relayed(scope, body))
        gone = asyncio.ensure_future(wait_for_disconnect(receive))
        gone.add_done_callback(lambda _: self.channel.send(Kind.ABORT, number))
        begun, more = False, True
        try:
            while more:
                kind, payload = await answers.get()
                if kind == Kind.REFUSED:
                    if not begun:
                        await error_response(msgspec.msgpack.decode(payload, type=Refusal).error())(
                            scope, receive, send
                        )
                    return
                if kind == Kind.START:
                    start, begun = msgspec.msgpack.decode(payload, type=Start), True
                    await send({"type": "http.response.start", "status": start.status, "headers": start.headers})
                else:
                    more = kind == Kind.BODY
                    await send({"type": "http.response.body", "body": payload, "more_body": more})
        finally:
            del self._relayed[number]
            gone.cancel()


def encode_answer(record: Decision | bytes) -> JSONBytes:
    """Return the answer to a decision as JSON bytes, from the decision's record or the record's JSON."""
    found = decode(record) if isinstance(record, bytes) else record
    assert isinstance(found, Decision)
    return JSONBytes(_encoder.encode(decision_answer(found)))


def make_relayed(scope: Any, body: bytes) -> Relayed:
    """Make the message that hands an HTTP request, given by its ASGI scope and body, on to the service."""
    path = scope["path"]
    return Relayed(
        scope["method"], scope["scheme"], path, scope.get("raw_path") or path.encode(), scope["query_string"],
        [*scope["headers"]], scope.get("client"), scope.get("server"), body,
    )  # fmt: skip


async def read_any_body(request: RawRequest, most: int) -> bytes:
    """Return the body of a request of any type; raise ApiError if it is larger than `most` bytes."""
    parts, count = [], 0
    async for part in request.stream():
        count += len(part)
        if count > most:
            raise ApiError(413, "TooLarge", f"a body must have at most {most} bytes (limits.body)")
        parts.append(part)
    return b"".join(parts)


async def wait_for_disconnect(receive: Any) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def serve(listening: socket.socket, service: socket.socket) -> None:
    """Run a worker process, which answers requests until a signal comes or the service is gone.

    `listening` is the socket for clients, and `service` the socket to the service.
    """
    worker = Worker()
    await asyncio.get_running_loop().create_connection(lambda: worker.channel, sock=service)
    configuration = await worker.start()
    limits = ConnectionLimits(configuration.connections, worker.count_refused)
    config = Config(worker, **server_options(configuration.certificate, configuration.private_key, limits))
    server = Server(config)
    tasks = [asyncio.ensure_future(work) for work in (worker.follow(), worker.report())]
    worker.channel.send(Kind.READY)

    async def end_with_service() -> None:
        await worker.lost.wait()
        server.should_exit = True

    tasks.append(asyncio.ensure_future(end_with_service()))
    with tune_runtime():
        await server.serve(sockets=[listening])
    worker.send_report()
    worker.channel.close()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def main() -> None:
    """Run a worker process, with the two sockets inherited from the service."""
    if len(sys.argv) != 3:
        print("a worker is started by its service: onepass serve --workers N", file=sys.stderr)
        raise SystemExit(2)
    listening, service = (socket.socket(fileno=int(one)) for one in sys.argv[1:3])
    os.set_inheritable(listening.fileno(), False)
    runner = asyncio.Runner(loop_factory=Config(None, loop="auto").get_loop_factory())  # type: ignore[arg-type]
    with runner:
        runner.run(serve(listening, service))


if __name__ == "__main__":
    main()
