"""One object, many threads: any number of them read it at once; who writes does so alone.

    reader    says so in `readers`, then looks for a writer: if there is one, it withdraws and waits
    writer    takes its turn, says so in `writer`, then waits until `readers` is empty

One of the two sees the other. A writer who leaves lets in all readers that wait before the next writer comes, and hands
its turn to the writer who waits longest: neither a learner at full speed nor many readers keep anybody out.

Same thread, as of a handler of signals: whoever reads may read, whoever writes may read (what must not be seen is done
with signals deferred), and a method that is `composed` of writes may write. Any other write would pull
the state away under the feet of what this thread is doing: RuntimeError.

A handler may raise anywhere. CPython calls handlers after calls and at jumps back, but not between a store and the
`try` that follows, nor between the entry of a `with` written in C and its block: what is said is always taken back. A
wake-up that is lost so is made up for within PATIENCE.

Whoever forks waits until no other thread writes or reads, for a reader may be within the BLAS, whose lock of its
buffers would stay closed in the child (3 of 3,000 children of threads that decide waited for ever).

Without contention a call costs about 0.2 µs read, 0.3 µs written, all of it Python (docs/threads.md).
"""

import functools
import inspect
import math
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from threading import get_ident
from typing import Any, Self, TypeVar

from onepass.foundation.forks import ForkHooks, register_fork_hooks

PATIENCE = 0.02  # seconds after which who waits looks again by himself
LONG = 0.1  # seconds after which whoever forks lets others go on, and begins again
NOBODY = 0  # no thread has this number

Method = TypeVar("Method", bound=Callable[..., Any])

_forking = threading.RLock()
_numbers = count()
_living: dict[int, weakref.ref["RWLock"]] = {}


def _make_closed_lock() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


def _open(lock: Any) -> None:
    with suppress(RuntimeError):  # it is open
        lock.release()


class RWLock:
    """Present users of one object, and those who wait for it."""

    __slots__ = ("__weakref__", "closed", "composed", "left", "queue", "readers", "turn", "waiting", "waits", "writer")

    def __init__(self) -> None:
        self.readers: dict[int, Any] = {}  # threads that read
        self.waiting: dict[int, Any] = {}  # threads that wait to read, and the gates at which they do
        self.queue: dict[int, Any] = {}  # threads that wait to write, in order
        self.turn: Any = threading.RLock()
        self.writer: int = NOBODY  # has the turn
        self.waits: bool = False  # for readers to leave
        self.composed: bool = False  # writes in parts, between which the state is whole
        self.closed: bool = False  # by one who forks
        self.left: threading.Lock = _make_closed_lock()  # opened by the last reader
        number = next(_numbers)
        with _forking:  # none is made while a thread forks
            _living[number] = weakref.ref(self, functools.partial(_living.pop, number))

    def admit(self, me: int) -> None:
        """Wait until this reader, who has said so and saw a writer, is among the readers while nobody writes."""
        while self.writer != NOBODY:
            if self.closed and _has_other_lock(me, self):  # of an object that cannot be closed until this one is read
                self.readers[me] = None
                return
            gates, gate = self.waiting, _make_closed_lock()
            gates[me] = gate
            try:
                self.readers.pop(me, None)
                self.rouse()
                if self.writer != NOBODY and self.waiting is gates:
                    gate.acquire(timeout=PATIENCE)
            finally:
                gates.pop(me, None)
            if me in self.readers:  # let in by the writer who left
                return
            self.readers[me] = None

    def rouse(self) -> None:
        """Let the writer go on who waits for the last reader."""
        if not self.readers:
            _open(self.left)

    def wait_for_readers(self, end: float = math.inf) -> bool:
        """Wait, as the writer, for the readers who came before; False where one reads at `end` still."""
        self.waits = True
        try:
            while self.readers:
                if time.monotonic() > end:
                    return False
                self.left.acquire(timeout=PATIENCE)
        finally:
            self.waits = False
        return True

    def close_for_fork(self, me: int) -> bool:
        """Take the turn as one who forks, who may write in handlers; False where others read or write for LONG."""
        end = time.monotonic() + LONG
        if not self.line_up(me, end, take=True):
            return False
        self.closed, self.composed, self.writer = True, True, me
        if not self.readers or self.wait_for_readers(end):
            return True
        self.reopen()
        return False

    def reopen(self) -> None:
        """Give the turn back after a fork."""
        self.closed, self.composed, self.writer = False, False, NOBODY
        self.turn.release()
        if self.waiting or self.queue:
            self.pass_on()

    def line_up(self, me: int, end: float = math.inf, take: bool = False) -> bool:
        """Wait, as a writer, for those who came before; False where it is not this one's turn at `end`.

        take: the turn, too, before others can see that nobody waits: a writer at full speed would take it again.
        """
        if me in self.queue:  # in a handler that interrupted the wait
            return not take or self.turn.acquire(timeout=LONG)
        gate = _make_closed_lock()
        self.queue[me] = gate
        try:
            while self.writer != NOBODY or list(self.queue)[:1] not in ([me], []):
                if time.monotonic() > end:
                    return False
                gate.acquire(timeout=PATIENCE)
            return not take or self.turn.acquire(timeout=LONG)
        finally:
            self.queue.pop(me, None)

    def pass_on(self) -> None:
        """Let in all readers that wait, and call the next writer."""
        admitted, self.waiting = self.waiting, {}
        self.readers.update(admitted)
        for gate in list(admitted.values()):
            _open(gate)
        for gate in list(self.queue.values())[:1]:
            _open(gate)

    def write_nested(self, me: int, method: Callable, parts: bool, owner: Any, args: Any, named: Any) -> Any:
        """Run a write that the same thread begins while it reads or writes."""
        waits, composed = self.waits, self.composed
        if self.writer != me or not (waits or composed):
            raise RuntimeError(
                f"{method.__name__} cannot change this {type(owner).__name__} from within another of its methods, as "
                "handlers of signals and functions that it was given may try: note what is to be done, and do it later"
            )
        if waits:  # a handler that interrupted the wait, before anything was written
            self.wait_for_readers()
        self.composed = parts
        try:
            return method(owner, *args, **named)
        finally:
            self.waits, self.composed = waits, composed

    def forget_others(self, me: int, closed: bool) -> None:
        """In a child, which has one thread only; closed: it had the turn at the fork."""
        for other in [one for one in self.readers if one != me]:
            del self.readers[other]
        self.waiting, self.queue, self.left = {}, {}, _make_closed_lock()
        if self.writer != me:
            self.writer = NOBODY
            self.turn = self.turn if closed else threading.RLock()


class SharedObject:
    """An object with a `sharing`, which is no part of its state: not copied, not pickled, not in its `__dict__`."""

    __slots__ = {"sharing": "Which threads use this object now (docs/threads.md); no part of its state."}

    sharing: RWLock

    def __new__(cls, *args: Any, **named: Any) -> Self:
        made = object.__new__(cls)
        made.sharing = RWLock()
        return made


# ---- methods ----

READING = """
def {name}{takes}:
    sharing_, me_ = {owner}.sharing, get_ident()
    readers_ = sharing_.readers
    if me_ in readers_ or sharing_.writer == me_:
        return method_({gives})
    readers_[me_] = None
    try:
        if sharing_.writer:
            sharing_.admit(me_)
        return method_({gives})
    finally:
        readers_.pop(me_, None)
        if sharing_.writer:
            sharing_.rouse()
"""

WRITING = """
def {name}{takes}:
    sharing_, me_ = {owner}.sharing, get_ident()
    if sharing_.writer == me_ or me_ in sharing_.readers:
        return sharing_.write_nested(me_, method_, parts_, {owner}, ({positional}), dict({keywords}))
    if sharing_.writer or sharing_.queue:
        sharing_.line_up(me_)
    with sharing_.turn:
        sharing_.writer = me_
        try:
            if sharing_.readers:
                sharing_.wait_for_readers()
            return method_({gives})
        finally:
            sharing_.writer = {nobody}
            if sharing_.waiting or sharing_.queue:
                sharing_.pass_on()
"""

COMPOSED = WRITING.replace(
    "            return method_({gives})\n        finally:\n",
    "            sharing_.composed = True\n"
    "            return method_({gives})\n        finally:\n            sharing_.composed = False\n",
)


def reading(method: Method) -> Method:
    """Decorate a method, or a function of a `Shared` object, that changes nothing: many threads may run it at once.

    Attributes that are computed when they are first asked for must be the same whoever computes them.
    """
    return _add_lock(READING, method)


def writing(method: Method) -> Method:
    """Decorate a method that changes the object: one thread at a time runs it, and nobody reads.

    Another such method must not call it, unless that one is `composite`.
    """
    return _add_lock(WRITING, method)


def composite(method: Method) -> Method:
    """Decorate a method that is `writing`, calls others that are, and leaves the state whole between them."""
    return _add_lock(COMPOSED, method)


def _add_lock(template: str, method: Method) -> Method:
    """Return the method in this frame, a function of the same signature: taking any arguments costs 0.1 µs more."""
    empty, kinds = inspect.Parameter.empty, inspect.Parameter
    signature = inspect.signature(method)
    bare = [
        one.replace(annotation=empty, default=empty if one.default is empty else None)
        for one in signature.parameters.values()
    ]
    owner = bare[0].name
    form: dict[Any, str] = {
        kinds.KEYWORD_ONLY: "{0}={0}, ",
        kinds.VAR_POSITIONAL: "*{0}, ",
        kinds.VAR_KEYWORD: "**{0}, ",
    }
    each = [form.get(one.kind, "{0}, ").format(one.name) for one in bare]
    named = [one.kind in (kinds.KEYWORD_ONLY, kinds.VAR_KEYWORD) for one in bare]
    text = template.format(
        name=method.__name__,
        takes=inspect.Signature(bare),
        owner=owner,
        gives="".join(each),
        positional="".join(one for one, is_named in zip(each[1:], named[1:], strict=True) if not is_named),
        keywords="".join(one for one, is_named in zip(each[1:], named[1:], strict=True) if is_named),
        nobody=NOBODY,
    )
    space: dict[str, Any] = {"method_": method, "get_ident": get_ident, "parts_": template is COMPOSED}
    exec(compile(text, f"<{method.__qualname__}, shared>", "exec"), space)
    made: Any = functools.update_wrapper(space[method.__name__], method)
    made.__defaults__, made.__kwdefaults__ = method.__defaults__, method.__kwdefaults__
    return made


# ---- forks ----

_closed: list[list[RWLock]] = []  # by the thread that forks, and by those forks that a handler does meanwhile


def _close() -> None:
    """Wait until no other thread reads or writes, and let none begin."""
    closed: list[RWLock] = []
    _closed.append(closed)
    while not _close_all(closed, get_ident()):
        _open_all(closed)
        time.sleep(PATIENCE)


def _close_all(closed: list[RWLock], me: int) -> bool:
    """Close all locks; return False if a thread reads or writes for LONG, for it may wait for a closed one.

    New ones are made until all are closed, for a copy is made by one who reads. While this thread reads or writes an
    object, no other one writes it.
    """
    while True:
        for sharing in _locks_to_close(closed, me):
            if not sharing.close_for_fork(me):
                return False
            closed.append(sharing)
        end = time.monotonic() + LONG
        if not all(sharing.wait_for_readers(end) for sharing in closed if sharing.readers):
            return False
        _forking.acquire()
        if not _locks_to_close(closed, me) and not any(sharing.readers for sharing in closed):
            return True
        _forking.release()


def _live_locks() -> list[RWLock]:
    """Return the locks of all objects that still exist."""
    return [found for found in [ref() for ref in list(_living.values())] if found is not None]


def _has_other_lock(me: int, one: RWLock) -> bool:
    """Return True if a thread reads or writes another object than this one."""
    return any(other is not one and (me in other.readers or other.writer == me) for other in _live_locks())


def _locks_to_close(closed: list[RWLock], me: int) -> list[RWLock]:
    """Return the locks that are not closed and not this thread's own."""
    known = {id(sharing) for sharing in closed}
    return [one for one in _live_locks() if not (id(one) in known or me in one.readers or one.writer == me)]


def _open_all(closed: list[RWLock]) -> None:
    while closed:
        closed.pop().reopen()


def _reopen() -> None:
    _open_all(_closed.pop())
    _forking.release()


def _reopen_in_child() -> None:
    closed, me = {id(sharing) for part in _closed for sharing in part}, get_ident()
    for sharing in _live_locks():
        sharing.forget_others(me, id(sharing) in closed)
    _reopen()


register_fork_hooks(ForkHooks(_close, _reopen, _reopen_in_child))
