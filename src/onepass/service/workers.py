"""Worker processes, seen from the service: it starts them, sends them models and stores their decisions.

    state     settings and models of a loop, sent to all workers; the next state waits until all have this one
    decision  a worker decides -> the writer stores it -> it is durable -> the worker answers
    other     the service's own application answers, and the worker passes the answer on

All workers decide with the same state, except while they change to the next one. A decision by a state that is too many
records old is returned to the worker, which decides again. So decisions are in the order of their models, up to the
window that `verify` allows.
"""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from onepass.foundation import files
from onepass.log.records import Decision, decode, encode
from onepass.service.app import Service, api_error_from
from onepass.service.apprentice import REQUEST
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
from onepass.service.learner import Copies, Copy
from onepass.service.loop import Loop
from onepass.service.loop_state import LoopState
from onepass.service.messages import ApiError
from onepass.service.request_body import Inbox
from onepass.service.responses import check_same_request

MODULE = "onepass.service.worker"
LOOK = 0.02  # seconds at least between two checks for a newer model
RARELY = 100.0  # pause between states, as a multiple of the time to publish one: so p99 latency is not affected
OLD = 500  # largest number of records since the next state was sent: half of the window of `verify`
SETTLE = 10.0  # seconds for workers to follow a change, before the request that made it is answered
AGAIN = 0.5  # seconds before a worker that ended is started again
FINISH = 8.0  # seconds for workers to end
CHANGING = ("PUT", "POST", "PATCH", "DELETE")

_decode: Any = msgspec.msgpack.decode


class Receipt:
    """Receiver of the writer's result that tells a worker whether its decision is durable; cheaper than a `Future`.

    `number` is the number of the worker's request, and `record` is the decision's record.
    """

    __slots__ = ("_number", "_record", "_worker")

    def __init__(self, worker: "WorkerHandle", number: int, record: Decision) -> None:
        self._worker, self._number, self._record = worker, number, record

    def set_result(self, found: Any, /) -> None:
        """Tell the worker that its decision is durable, or that `found`, an earlier record, has the same id."""
        self._worker.reply(Kind.STORED, self._number, b"" if found is self._record else encode(found))

    def set_exception(self, error: BaseException, /) -> None:
        """Tell the worker why its decision was not stored."""
        self._worker.refuse(self._number, error)


class WorkerHandle:
    """Handle of a worker process: the channel to the process, and its unanswered requests.

    `place` is the index of the worker among all `workers`.
    """

    def __init__(self, workers: "Workers", process: subprocess.Popen[bytes], place: int) -> None:
        self.workers, self.process, self.place = workers, process, place
        self.channel = Channel(workers.receiver(self), lambda: workers.on_lost(self))
        self.followed: dict[str, int] = {}
        self.ready = asyncio.Event()
        self.relays: dict[int, asyncio.Event] = {}
        self._replies = Inbox(lambda frame: self.channel.send(*frame))

    def reply(self, kind: Kind, number: int, payload: bytes) -> None:
        """Answer request `number` of the worker with a message of this kind and content. Any thread may call it."""
        self._replies.put((kind, number, payload))

    def refuse(self, number: int, error: BaseException) -> None:
        """Answer request `number` of the worker with an error. Any thread may call it."""
        refused = api_error_from(error) if isinstance(error, Exception) else ApiError(500, "InternalError", str(error))
        self.reply(Kind.REFUSED, number, msgspec.msgpack.encode(Refusal.from_error(refused)))


class PublishedState:
    """Settings and models of a loop that the service sent to the workers last.

    `number` counts them. `superseded` maps an earlier number to the last sequence number of the log at its replacement.
    """

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.lock = asyncio.Lock()
        self.number = 0
        self.path = state_path(loop)
        self.sent: tuple[Copies, LoopState] | None = None
        self.superseded: dict[int, int] = {}

    def is_too_old(self, number: int) -> bool:
        """Return True if too many records were written since the settings and models with this number were replaced."""
        place = self.superseded.get(number)
        return number < self.number and (place is None or self.loop.writer.last - place > OLD)


class Workers:
    """Worker processes of a service. `run` starts them.

    They serve the loops of `service`, and accept connections from the bound socket `listening`. `count` is their
    number. `configuration` is the first message to each.
    """

    def __init__(self, service: Service, listening: socket.socket, count: int, configuration: Configuration) -> None:
        self.service, self._listening, self._count = service, listening, count
        self._configuration = configuration
        self._published = {name: PublishedState(loop) for name, loop in service.loops.items()}
        self._workers: set[WorkerHandle] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._followed = asyncio.Condition()
        self._ending = asyncio.Event()
        self._handlers: dict[int, Callable[[WorkerHandle, int, bytes], None]] = {
            Kind.READY: lambda worker, number, payload: worker.ready.set(),
            Kind.FOLLOWED: self._note_followed,
            Kind.SUBMIT: self._submit,
            Kind.FIND: self._find,
            Kind.OUTCOME: self._outcome,
            Kind.RELAY: self._begin_relay,
            Kind.ABORT: self._abort,
            Kind.SERVED: self._count_served,
        }

    async def run(self, listening: Callable[[], object]) -> None:
        """Serve until SIGTERM or SIGINT. `listening` is called once all workers serve."""
        here = asyncio.get_running_loop()
        for one in (signal.SIGTERM, signal.SIGINT):
            here.add_signal_handler(one, self._ending.set)
        for published in self._published.values():
            await self._publish(published)
        for place in range(self._count):
            await self._begin(place)
        followers = [self._spawn(self._follow(published)) for published in self._published.values()]
        ready = asyncio.ensure_future(self._wait_until_ready())
        await asyncio.wait((ready, asyncio.ensure_future(self._ending.wait())), return_when=asyncio.FIRST_COMPLETED)
        if ready.done():
            listening()
        await self._ending.wait()
        ready.cancel()
        for worker in self._workers:
            worker.process.terminate()
        end = time.monotonic() + FINISH
        for process in [worker.process for worker in self._workers]:
            await asyncio.to_thread(stop_process, process, max(end - time.monotonic(), 0.1))
        for task in followers:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for published in self._published.values():
            published.path.unlink(missing_ok=True)

    async def _wait_until_ready(self) -> None:
        for worker in [*self._workers]:
            await worker.ready.wait()

    def _spawn(self, work: Any) -> "asyncio.Task[Any]":
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # ---- processes ----

    async def _begin(self, place: int) -> None:
        """Start the worker with this index."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        passed = (self._listening.fileno(), theirs.fileno())
        command = [sys.executable, "-m", MODULE, *map(str, passed)]
        process = subprocess.Popen(command, pass_fds=passed)
        theirs.close()
        worker = WorkerHandle(self, process, place)
        await asyncio.get_running_loop().create_connection(lambda: worker.channel, sock=ours)
        self._workers.add(worker)
        worker.channel.send_message(Kind.CONFIGURE, 0, self._configuration)
        for published in self._published.values():
            worker.channel.send(Kind.STATE, published.number, published.loop.name.encode())

    def receiver(self, worker: WorkerHandle) -> Callable[[int, int, bytes], None]:
        """Return the function that handles the messages of a worker process."""
        return lambda kind, number, payload: self._handlers[kind](worker, number, payload)

    def on_lost(self, worker: WorkerHandle) -> None:
        """End the requests that a lost worker had handed on, and start another worker in its place."""
        for gone in worker.relays.values():
            gone.set()
        self._workers.discard(worker)
        self._spawn(self._restart(worker))

    async def _restart(self, worker: WorkerHandle) -> None:
        await self._notify()
        code = await asyncio.to_thread(worker.process.wait)
        if self._ending.is_set():
            return
        print(f"onepass: worker {worker.place} ended with code {code}; it is started again", file=sys.stderr)
        await asyncio.sleep(AGAIN)
        if not self._ending.is_set():
            await self._begin(worker.place)

    # ---- states ----

    async def _follow(self, published: PublishedState) -> None:
        """Publish the states of a loop, one after the other, until the service ends."""
        while not self._ending.is_set():
            begin = time.monotonic()
            pause = max(published.loop.settings.operation.publish, LOOK)
            if await self._publish(published):
                pause = max(pause, RARELY * (time.monotonic() - begin))
            await asyncio.sleep(pause)

    async def _publish(self, published: PublishedState) -> bool:
        """Send the state of a loop if it is new, and wait until all workers use it. Return True if it was sent."""
        async with published.lock:
            loop = published.loop
            now = (loop.learner.copies, loop.loop_state)
            if published.sent is not None and now[0] is published.sent[0] and now[1] is published.sent[1]:
                return False
            number = published.number + 1
            await asyncio.to_thread(write_state, published.path, loop.name, number, *now)
            published.superseded = {published.number: loop.writer.last}
            published.number, published.sent = number, now
            for worker in self._workers:
                worker.channel.send(Kind.STATE, number, loop.name.encode())
            async with self._followed:
                await self._followed.wait_for(
                    lambda: all(worker.followed.get(loop.name, number) >= number for worker in self._workers)
                )
            return True

    async def wait_until_followed(self) -> None:
        """Wait until all workers decide with the present settings and models."""
        for published in self._published.values():
            await self._publish(published)

    def _note_followed(self, worker: WorkerHandle, number: int, payload: bytes) -> None:
        worker.followed[payload.decode()] = number
        self._spawn(self._notify())

    async def _notify(self) -> None:
        async with self._followed:
            self._followed.notify_all()

    # ---- what workers ask ----

    def _submit(self, worker: WorkerHandle, number: int, payload: bytes) -> None:
        submission = _decode(payload, type=Submission)
        published = self._published[submission.loop]
        loop = published.loop
        try:
            self.service.rates.admit(loop.name, submission.client, loop.settings.limits.rate)
            if published.is_too_old(submission.state):
                worker.reply(Kind.STALE, number, b"")
                return
            record = decode(submission.record)
            assert isinstance(record, Decision)
            digest = (record.extra or {})[REQUEST]

            def keep(found: Decision) -> Decision:
                check_same_request((found.extra or {}).get(REQUEST), digest, record.id)
                return found

            loop.writer.submit([record], keep_times=True, reply=(Receipt(worker, number, record), keep))
        except Exception as error:
            worker.refuse(number, error)

    def _find(self, worker: WorkerHandle, number: int, payload: bytes) -> None:
        question = _decode(payload, type=Question)
        self._spawn(self._answer(worker, number, asyncio.to_thread(self._find_decision, question)))

    def _find_decision(self, question: Question) -> bytes:
        found = self.service.loops[question.loop].store.find(question.loop, question.id)
        return next((encode(record) for record in found if isinstance(record, Decision)), b"")

    def _outcome(self, worker: WorkerHandle, number: int, payload: bytes) -> None:
        outcomes = _decode(payload, type=Outcomes)
        self._spawn(self._answer(worker, number, self._store_outcomes(outcomes)))

    async def _store_outcomes(self, outcomes: Outcomes) -> bytes:
        loop = self.service.loops[outcomes.loop]
        self.service.rates.admit(loop.name, outcomes.client, loop.settings.limits.rate)
        return await self.service.store_outcomes(loop, outcomes.body)

    async def _answer(self, worker: WorkerHandle, number: int, work: Any) -> None:
        try:
            worker.reply(Kind.ANSWER, number, await work)
        except Exception as error:
            worker.refuse(number, error)

    def _count_served(self, worker: WorkerHandle, number: int, payload: bytes) -> None:
        for one in _decode(payload, type=list[Served]):
            self.service.metrics.count_request(one.loop, one.operation, one.status, one.seconds)

    # ---- relayed requests ----

    def _begin_relay(self, worker: WorkerHandle, number: int, payload: bytes) -> None:
        self._spawn(self._relay(worker, number, payload))

    async def _relay(self, worker: WorkerHandle, number: int, payload: bytes) -> None:
        """Answer the relayed request in `payload`, which has this number, with the service's own application."""
        request = _decode(payload, type=Relayed)
        gone = worker.relays[number] = asyncio.Event()
        asked = False

        async def receive() -> dict[str, Any]:
            nonlocal asked
            if not asked:
                asked = True
                return {"type": "http.request", "body": request.body, "more_body": False}
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if gone.is_set():
                return
            if message["type"] == "http.response.start":
                if request.method in CHANGING:
                    with contextlib.suppress(TimeoutError):  # the change is made, whoever follows late
                        await asyncio.wait_for(self.wait_until_followed(), SETTLE)
                headers = [(bytes(name), bytes(value)) for name, value in message.get("headers", ())]
                worker.channel.send_message(Kind.START, number, Start(message["status"], headers))
            else:
                kind = Kind.BODY if message.get("more_body", False) else Kind.END
                worker.channel.send(kind, number, bytes(message.get("body", b"")))
            await worker.channel.drain()

        try:
            await self.service.respond(make_scope(request), receive, send)
        except Exception as error:
            worker.refuse(number, error)
        finally:
            del worker.relays[number]

    def _abort(self, worker: WorkerHandle, number: int, payload: bytes) -> None:
        gone = worker.relays.get(number)
        if gone is not None:
            gone.set()


def clock_origin(loop: Loop) -> tuple[int, int]:
    """Return the start of a loop's clock (`Clock.origin`), which the clocks of worker processes share."""
    assert isinstance(loop.clock, Clock)
    return loop.clock.origin


def state_path(loop: Loop) -> Path:
    """Return the path of the file that carries a loop's state to workers. It is deleted when the service ends."""
    return loop.folder.with_name(f"{loop.name}.state")


def write_state(path: Path, name: str, number: int, copies: Copies, loop_state: LoopState) -> None:
    """Write models and settings of a loop to the file `path`, for the worker processes.

    - name: name of the loop.
    - number: number of this state of the loop, counted from 1.
    - copies: copies of the models.
    - loop_state: settings of the loop.

    The file is replaced atomically, since workers may be reading the one before. It is not synced to disk, since nobody
    reads it after a crash. The time is linear in the size of the models.
    """
    assert loop_state.settings is not None
    candidate = None if copies.candidate is None else model_bytes(copies.candidate)
    state = State(
        name, number, loop_state.settings.to_dict(), loop_state.version, model_bytes(copies.present), candidate
    )
    partial = path.with_name(f"{path.name}.part")
    partial.write_bytes(msgspec.msgpack.encode(state))
    os.replace(partial, path)


def model_bytes(copy: Copy) -> ModelBytes:
    """Return the copy of a model as bytes, for a message to workers."""
    return ModelBytes(copy.line, copy.through, files.to_bytes(copy.snapshot.bandit()))


def make_scope(request: Relayed) -> dict[str, Any]:
    """Return the ASGI scope of an HTTP request that a worker has handed on."""
    return {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1",
        "method": request.method, "scheme": request.scheme, "path": request.path, "raw_path": request.raw_path,
        "query_string": request.query, "root_path": "", "headers": request.headers, "client": request.client,
        "server": request.server, "state": {},
    }  # fmt: skip


def stop_process(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Wait at most `seconds` for the end of a process, then kill it."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
