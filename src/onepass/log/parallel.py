"""Verification of whole logs: rows first, then the pieces of every model of every loop, by one process or several.

    spans of rows  ->  damaged?  ->  pieces, without those verified earlier  ->  one result for each model

Every process opens the store for itself and reads only what its pieces need. There are more tasks than processes, and
each process takes the next task when it has finished one, so that all end at about the same time. The calling process
works, too, while the others start.
"""

import multiprocessing
import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from onepass.foundation import check
from onepass.log.earlier_verifications import EarlierVerifications
from onepass.log.pieces import CheckedPiece, Piece, find_pieces, merge_pieces, sum_results, verify_piece
from onepass.log.store import Damage, Store
from onepass.log.verification import Verified

TASKS = 8  # for each process
MOST = 64  # processes
STEP = 1_000  # places between two signs of progress

StoreOpener = Callable[[], AbstractContextManager[Store]]
Progress = Callable[[int], object]
Span = tuple[int, int | None]
Run = Callable[[Callable[..., Any], Sequence[Any]], list[Any]]


class RowCheck(NamedTuple):
    """Result of checking some rows of a log.

    `damages` lists the damage found, and `loops` the names of loops that have decisions there, in order of appearance.
    """

    damages: list[Damage]
    loops: list[str]


class VerificationReport(NamedTuple):
    """Result of verifying a log.

    Parameters
    ----------
    damages : list of Damage
        Damages of rows. If there are any, nothing else is verified.
    loops : dict
        Dictionaries {number of the model: `Verified`}, by the name of the loop.
    unplaced : list of str
        Loops that cannot be verified, because the log has no checkpoint of a model to begin with.
    earlier : int
        Number of decisions of `loops` that an earlier call had verified, and this one did not.
    """

    damages: list[Damage]
    loops: dict[str, dict[int, Verified]]
    unplaced: list[str]
    earlier: int

    @property
    def ok(self) -> bool:
        """True if no row is damaged and no verified decision or checkpoint differs."""
        return not self.damages and all(one.ok for each in self.loops.values() for one in each.values())


def verify_all(
    open_store: StoreOpener,
    loop: str | None = None,
    *,
    workers: int = 1,
    since: int = 0,
    until: int | None = None,
    again: bool = False,
    progress: Progress = lambda count: None,
) -> VerificationReport:
    """Verify a log: check its rows for damage, and repeat every decision.

    Parameters
    ----------
    open_store : callable
        Opens the store for reading: returns it, or a context manager that does. With several processes it must be
        picklable, as `functools.partial(open_store, path)`.
    loop : str, optional
        Only this loop. Defaults to all that have decisions.
    workers : int, default 1
        Processes, from 1 to 64.
    since : int, default 0
        Position from which to verify. Each model begins with its last checkpoint with data that has learned nothing
        after this position.
    until : int, optional
        Last position to verify. Defaults to the end of the log.
    again : bool, default False
        Verify sealed months again that were verified earlier.
    progress : callable, optional
        Called with the number of positions verified since the last call.

    Returns
    -------
    VerificationReport
        Damaged rows, and the result for every model of every loop.

    Raises
    ------
    ValueError
        If `workers` or a position is out of range.
    StoreError
        If the store cannot be read.
    """
    workers = check.integer("workers", workers, 1, MOST)
    with open_store() as store, _worker_pool(open_store, store, workers, progress) as run:
        earlier = EarlierVerifications.from_store(store, again)
        begin = max(since, 0 if earlier is None else earlier.through)
        end = store.last if until is None else min(until, store.last)
        spans = split_span(max(begin, store.first - 1), end, workers)
        if until is None and spans:
            spans[-1] = (spans[-1][0], None)  # what is there beyond the last place is damage
        rows: list[RowCheck] = run(_check_span, [None, *spans])
        damages = [one for each in rows for one in each.damages]
        if damages:
            return VerificationReport(damages, {}, [], 0)
        plan, found, before = [], dict[str, dict[int, list[Verified]]](), 0
        names = [loop] if loop is not None else _find_loops(store, [name for each in rows for name in each.loops])
        for name in names:
            for pieces in _group_by_model(find_pieces(store, name, until=until)):
                known, left = list[Verified](), _pieces_since(pieces, since)
                if earlier is not None:
                    left, known = earlier.skip_verified(left)
                before += sum(one.decisions for one in known)
                found.setdefault(name, {})[pieces[0].line] = known
                plan += group_pieces(left, store.last, workers, [] if earlier is None else earlier.months)
        checked: list[CheckedPiece] = run(_check_piece, [(piece, until) for piece in plan])
        for one in checked:
            found[one.piece.loop][one.piece.line].append(one.found)
        if earlier is not None and since == 0 and until is None:
            earlier.save(checked)
        sums = {name: {line: sum_results(each) for line, each in lines.items()} for name, lines in found.items()}
        return VerificationReport([], sums, [name for name in names if name not in found], before)


# ---- what a process does ----

_store: Store | None = None


def _open_in_process(open_store: StoreOpener) -> None:
    global _store
    _store = open_store().__enter__()


def _run_in_process(act: Callable[..., Any], task: Any) -> Any:
    assert _store is not None
    return act(_store, task, lambda count: None)


def _is_open() -> bool:
    return _store is not None


@contextmanager
def _worker_pool(open_store: StoreOpener, store: Store, workers: int, progress: Progress) -> Iterator[Run]:
    """Yield a function that distributes tasks over processes and returns their results in the order of the tasks.

    There are `workers` processes, and this one is one of them. The others start at once and open the log by
    `open_store`; each has a thread here that hands it tasks. `progress` is called with numbers of positions.
    """
    context, alone = multiprocessing.get_context("spawn"), threading.Lock()

    def tell(count: int) -> None:
        with alone:
            progress(count)

    with ExitStack() as stack:
        others = [
            stack.enter_context(ProcessPoolExecutor(1, context, _open_in_process, (open_store,)))
            for _ in range(workers - 1)
        ]
        for other in others:
            other.submit(_is_open)
        threads = stack.enter_context(ThreadPoolExecutor(max(len(others), 1)))

        def run(act: Callable[..., Any], tasks: Sequence[Any]) -> list[Any]:
            left, found = deque(enumerate(tasks)), dict[int, Any]()

            def work(act_on: Callable[[Any], Any]) -> None:
                try:
                    while (following := _next_task(left)) is not None:
                        place, task = following
                        found[place] = act_on(task)
                finally:
                    left.clear()  # an error ends the work of all

            def hand_over(other: ProcessPoolExecutor, task: Any) -> Any:
                given = other.submit(_run_in_process, act, task).result()
                tell(_task_size(task))
                return given

            handing = [threads.submit(work, partial(hand_over, other)) for other in others]
            work(lambda task: act(store, task, tell))
            for each in handing:
                each.result()
            return [found[place] for place in range(len(tasks))]

        yield run


def _next_task(tasks: deque[Any]) -> Any:
    """Take the next task; None if there is none left."""
    try:
        return tasks.popleft()
    except IndexError:
        return None


def _check_span(store: Store, span: Span | None, progress: Progress) -> RowCheck:
    """Check the rows at the positions since < seq <= until of a span (since, until).

    For a span of None, check the store below the level of rows. `progress` is called with the number of positions since
    the last call.
    """
    if span is None:
        return RowCheck([*store.inspect()], [])
    loops = dict[str, None]()

    def note(row: Any) -> None:
        if row.kind == "decision":
            loops.setdefault(row.loop)
        if row.seq % STEP == 0:
            progress(STEP)

    return RowCheck([*store.check_rows(*span, note)], [*loops])


def _check_piece(store: Store, task: tuple[Piece, int | None], progress: Progress) -> CheckedPiece:
    """Verify the piece in `task`, up to the position in it (None: as far as needed).

    `progress` is called with the number of positions since the last call.
    """
    piece, until = task
    before = piece.begin

    def note(place: int) -> None:
        nonlocal before
        if place - before >= STEP:
            progress(place - before)
            before = place

    return verify_piece(store, piece, until, note)


# ---- what is done ----


def split_span(since: int, until: int, workers: int) -> list[Span]:
    """Split the positions since < seq <= until of a log into consecutive ranges, to be checked in parallel.

    Returns pairs (since, until): one pair for one worker, and several for each worker otherwise.
    """
    count = 1 if workers == 1 else max(min(TASKS * workers, (until - since) // STEP), 1)
    ends = [since + (until - since) * part // count for part in range(count + 1)]
    return [(first, last) for first, last in pairwise(ends) if last > first or first == since]


def _task_size(task: Any) -> int:
    """Return the number of positions of a task, 0 for a task without an end."""
    if task is None:
        return 0
    if isinstance(task[0], Piece):
        piece = task[0]
        return 0 if piece.end is None else piece.end - piece.begin
    return 0 if task[1] is None else int(task[1] - task[0])


def _find_loops(store: Store, seen: Iterable[str]) -> list[str]:
    """Return the loops that have decisions or checkpoints, first those of `seen`.

    Rows that were verified earlier are not read again, but checkpoints are.
    """
    rest = sorted({row.loop for row in store.rows(0, None, ("checkpoint",), None)})
    return [*dict.fromkeys((*seen, *rest))]


def _group_by_model(pieces: Iterable[Piece]) -> list[list[Piece]]:
    """Group pieces by their models."""
    found = dict[int, list[Piece]]()
    for piece in pieces:
        found.setdefault(piece.line, []).append(piece)
    return [*found.values()]


def _pieces_since(pieces: list[Piece], since: int) -> list[Piece]:
    """Return a model's pieces from the last one that begins at or before `since`; none if the model ended before."""
    if pieces[0].ended is not None and pieces[0].ended <= since:
        return []
    begin = max((place for place, piece in enumerate(pieces) if piece.begin <= since), default=0)
    return pieces[begin:]


def group_pieces(pieces: list[Piece], last: int, workers: int, months: Sequence[int]) -> list[Piece]:
    """Return consecutive parts of a log, to be verified for one model, merged into fewer larger parts.

    The result has one part for one worker, else several for each. Parts that lie in the archive are merged only with
    parts whose next checkpoint is in the same archived month, so everything that they read is in the archive. `months`
    holds the last positions of the archived months, and `last` is the last position of the log.
    """
    found, apart = list[list[Piece]](), dict[int, int]()
    most = last if workers == 1 else max(last // (TASKS * workers), 1)
    for piece, follower in zip(pieces, [*pieces[1:], None], strict=True):
        until = None if follower is None else follower.end_seq
        apart[piece.seq] = len(months) if until is None else bisect_left(months, until)
        group = found[-1] if found and found[-1][-1].end_seq == piece.seq else []
        end = last if piece.end is None else piece.end
        if group and end - group[0].begin <= most and apart[group[0].seq] == apart[piece.seq]:
            group.append(piece)
        else:
            found.append([piece])
    return [merge_pieces(each) for each in found]
