"""Readers-writer lock for objects shared by threads: many threads may read at once, a writer is alone.

A reader registers in `readers`, then looks for a writer; if there is one, it withdraws and waits. A writer waits for
its turn, registers as `writer`, then waits until `readers` is empty. One of the two always sees the other. A writer
that leaves first admits all waiting readers, and then hands over to the writer that has waited longest, so neither a
fast learner nor many readers can starve the others.

Within one thread, for example in a signal handler, a reader may read again and a writer may read; updates that must not
be seen half done defer signals. A method decorated with `composite` may call other writing methods. Any other nested
write raises RuntimeError, because it would change the state that the thread is using.

A signal handler may raise anywhere. CPython runs handlers after calls and at backward jumps, but not between a store
and the `try` that follows, nor between the entry of a `with` written in C and its block; therefore a registration is
always undone. A wake-up lost in this way is made up for within PATIENCE seconds.

A fork waits until no other thread reads or writes. A reader may be inside the BLAS library, whose buffer lock would
stay locked in the child: without the wait, 3 of 3,000 children of threads that decide hung.

Without contention the lock costs about 0.2 µs a read and 0.3 µs a write, all of it Python (docs/threads.md).
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
from typing import Any, Self, TypeVar, cast

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
    """Readers-writer lock of one object: the threads that use it now, and those that wait."""

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
        """Wait until no thread writes, and register the thread with id `me` as a reader.

        It is called when the thread has registered and then found a writer.
        """
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
        """Wake the waiting writer, if no thread reads any more."""
        if not self.readers:
            _open(self.left)

    def wait_for_readers(self, end: float = math.inf) -> bool:
        """Wait, as the writer, until no thread reads, and return True; return False at the monotonic time `end`."""
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
        """Take the lock for the thread with id `me`, which is about to fork; its signal handlers may still write.

        Returns True, or False without the lock if other threads read or write for longer than 0.1 seconds.
        """
        end = time.monotonic() + LONG
        if not self.line_up(me, end, take=True):
            return False
        self.closed, self.composed, self.writer = True, True, me
        if not self.readers or self.wait_for_readers(end):
            return True
        self.reopen()
        return False

    def reopen(self) -> None:
        """Release the lock after a fork."""
        self.closed, self.composed, self.writer = False, False, NOBODY
        self.turn.release()
        if self.waiting or self.queue:
            self.pass_on()

    def line_up(self, me: int, end: float = math.inf, take: bool = False) -> bool:
        """Wait until the thread with id `me` may write next, and return True; return False at the monotonic time `end`.

        If `take` is True, the thread also keeps other threads from writing until it has registered.
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
        """Let all waiting readers read, and then wake the next writer."""
        admitted, self.waiting = self.waiting, {}
        self.readers.update(admitted)
        for gate in list(admitted.values()):
            _open(gate)
        for gate in list(self.queue.values())[:1]:
            _open(gate)

    def write_nested(self, me: int, method: Callable, parts: bool, owner: Any, args: Any, named: Any) -> Any:
        """Return the result of a writing method of `owner` that a thread calls while it already reads or writes it.

        `me` is the thread's id, `args` and `named` are the method's arguments, and `parts` is True for a `composite`
        method. Raises RuntimeError if the outer method does not allow nested writes.
        """
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
        """Remove all threads from the lock but the thread with id `me`, the only one in a forked child.

        `closed` is True if this thread took the lock for the fork.
        """
        for other in [one for one in self.readers if one != me]:
            del self.readers[other]
        self.waiting, self.queue, self.left = {}, {}, _make_closed_lock()
        if self.writer != me:
            self.writer = NOBODY
            self.turn = self.turn if closed else threading.RLock()


class SharedObject:
    """Object with a readers-writer lock `sharing`, its own or that of the object that it is `part_of`.

    Both are no part of the state: they are not copied, not pickled, and not in `__dict__`.
    """

    __slots__ = {
        "part_of": "Name of the class that owns this object and writes it; empty if nothing owns it.",
        "sharing": "Which threads use this object now (docs/threads.md); no part of its state.",
    }

    part_of: str
    sharing: RWLock

    def __new__(cls, *args: Any, **named: Any) -> Self:
        made = object.__new__(cls)
        made.part_of, made.sharing = "", RWLock()
        return made


def join_owner(part: SharedObject, owner: SharedObject) -> None:
    """Make an object a part of another one, `owner`, whose lock it uses from then on."""
    part.part_of, part.sharing = type(owner).__name__, owner.sharing


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
    """Decorate a method that changes nothing, so that many threads may run it at once.

    It also works for a function whose first argument is a `SharedObject`. Attributes that are computed on first use
    must have the same value whichever thread computes them.
    """
    return _add_lock(READING, method)


def writing(method: Method) -> Method:
    """Decorate a method that changes the object, so that only one thread runs it and no other thread reads.

    It must not be called by another writing method, unless that one is `composite`.
    """
    return _add_lock(WRITING, method)


def composite(method: Method) -> Method:
    """Decorate a writing method that calls other writing methods and leaves the state valid between them."""
    return _add_lock(COMPOSED, method)


def for_owner(method: Method) -> Method:
    """Decorate a method of a part, which only a writing method of its owner may call; anybody may if nothing owns it.

    Raises RuntimeError for other calls, because the owner would not know of them.
    """

    @functools.wraps(method)
    def checked(self: SharedObject, *args: Any, **named: Any) -> Any:
        if self.part_of and self.sharing.writer != get_ident():
            raise RuntimeError(
                f"{method.__name__} must be called on the {self.part_of} that owns this {type(self).__name__}, "
                "which keeps records of its own about it"
            )
        return method(self, *args, **named)

    return cast(Method, checked)


def _add_lock(template: str, method: Method) -> Method:
    """Return the method with the locking code of `template` around it, under the method's own signature.

    The code is generated, because a wrapper with *args and **kwargs would cost 0.1 µs more.
    """
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
    """Wait until no other thread reads or writes any object, and stop new ones; called before a fork."""
    closed: list[RWLock] = []
    _closed.append(closed)
    while not _close_all(closed, get_ident()):
        _open_all(closed)
        time.sleep(PATIENCE)


def _close_all(closed: list[RWLock], me: int) -> bool:
    """Take all locks for the thread `me` before a fork, append them to `closed`, and return True.

    Returns False if a thread reads or writes for longer than LONG seconds, because it may wait for a lock taken here.
    New locks appear until all are taken, because a reader may make a copy. Objects that this thread reads or writes
    itself are left out: no other thread can write them.
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
    """Return True if the thread `me` reads or writes any object other than that of the lock `one`."""
    return any(other is not one and (me in other.readers or other.writer == me) for other in _live_locks())


def _locks_to_close(closed: list[RWLock], me: int) -> list[RWLock]:
    """Return the locks that are not in `closed` and that the thread `me` does not use itself."""
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
