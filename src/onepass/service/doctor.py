"""Checks of a service's files, while it runs or not: if it can start, and if its log is intact.

fine      no problem
soon      it works, but not as intended, or not for long
broken    it does not start, or something is lost
"""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

from onepass.foundation import cache, compilation
from onepass.log.open_store import open_store
from onepass.log.records import SECOND, Settings
from onepass.log.store import Store
from onepass.service import checkpoints
from onepass.service.settings import LoopSettings, immutable_settings, parse_logged_settings, read_file

State = Literal["fine", "soon", "broken"]

MEGABYTE = 1_000_000
LEAST, LITTLE = 100 * MEGABYTE, 1_000 * MEGABYTE  # free bytes: for some hours of decisions, for some weeks
SHOWN = 3  # damages that are told
MANY = 100_000  # joins that a restart learns in about a minute
SLACK = 1.0  # seconds by which clocks of two machines differ


class Finding(NamedTuple):
    """Result of one check.

    - loop: name of the loop, "" for the service.
    - what: name of the check.
    - state: "fine", "soon" (needs attention soon) or "broken".
    - sentence: explanation for people.
    """

    loop: str
    what: str
    state: State
    sentence: str


def examine(
    data: Path, paths: Sequence[Path] = (), log: str | None = None, quick: bool = False, now: float | None = None
) -> Iterator[Finding]:
    """Yield the results of all checks.

    - data: data folder of the service.
    - paths: settings files (default: loops are found by their logs in the folder).
    - log: postgresql://... for all loops (default None: SQLite files in the folder).
    - quick: True skips the records of the logs.
    - now: present time in seconds of Unix time (default None: the system's clock).
    """
    yield from examine_folder(data)
    yield check_compiled_code()
    known = dict[str, LoopSettings | None]()
    for path in paths:
        try:
            settings, _ = read_file(path)
        except ValueError as error:
            yield from (Finding("", "settings", "broken", line) for line in str(error).splitlines())
            continue
        twice = settings.name in known
        sentence = f"{path} is right" if not twice else f"{path}: another file has a loop of this name"
        yield Finding(settings.name, "settings", "broken" if twice else "fine", sentence)
        known[settings.name] = settings
    if not paths:
        known |= dict.fromkeys(sorted(path.stem for path in data.glob("*.sqlite")))
    for name, found in known.items():
        yield from examine_loop(name, found, data, log, quick, time.time() if now is None else now)


# ---- the machine ----


def examine_folder(data: Path) -> Iterator[Finding]:
    """Yield the results of checks of the folder: its disk, and whether a process serves it."""
    place = next(each for each in (data.absolute(), *data.absolute().parents) if each.is_dir())
    if data.exists() and not data.is_dir():
        yield Finding("", "folder", "broken", f"{data} is no folder")
    elif not os.access(place, os.W_OK | os.X_OK):
        yield Finding("", "folder", "broken", f"{place} cannot be written by this user")
    elif place != data.absolute():
        yield Finding("", "folder", "fine", f"{data} is not there yet: the first start makes it")
    else:
        yield Finding("", "folder", "fine", f"{data} is served now" if is_served(data) else f"{data} is not served now")
    free = shutil.disk_usage(place).free
    state: State = "broken" if free < LEAST else "soon" if free < LITTLE else "fine"
    yield Finding("", "disk", state, f"{free // MEGABYTE} MB are free; below {LEAST // MEGABYTE} make room at once")


def is_served(data: Path) -> bool:
    """Return True if a process serves the folder."""
    try:
        with open(data / "lock", "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def check_compiled_code() -> Finding:
    """Return a result that says if the next start of the service has to compile code."""
    if cache.count_entries(compilation.entry_suffix()) == 0:
        return Finding(
            "", "compiled", "soon", "nothing is compiled: the first start takes minutes, or `onepass compile`"
        )
    return Finding("", "compiled", "fine", "compiled code is kept from earlier starts")


# ---- a loop ----


def examine_loop(
    name: str, settings: LoopSettings | None, data: Path, log: str | None, quick: bool, now: float
) -> Iterator[Finding]:
    """Yield the results of all checks of one loop: log, clock, settings and checkpoint.

    - name: name of the loop.
    - settings: settings in the loop's file, None without a file.
    - data, log, quick, now: arguments of `examine`.
    """
    place = f"{data / f'{name}.sqlite'}" if log is None else log
    if log is None and not Path(place).exists():
        yield Finding(name, "log", "fine", "there is none yet: the first start makes it")
        return
    try:
        with open_store(place, readonly=True) as store:
            yield from check_records(name, store, quick)
            yield from check_clock(name, store, now)
            if settings is not None:
                yield from check_settings(name, settings, store)
            yield from check_checkpoint(name, store, data / f"{name}.models")
    except (OSError, ValueError) as error:
        yield Finding(name, "log", "broken", str(error))


def check_records(name: str, store: Store, quick: bool) -> Iterator[Finding]:
    """Yield results about missing or damaged records in the log `store` of the loop `name`; `quick` skips the check."""
    damages = [] if quick else [*islice(store.check(), SHOWN)]
    for one in damages:
        yield Finding(name, "log", "broken", one.reason)
    if not damages:
        yield Finding(name, "log", "fine", f"{len(store)} records{'' if quick else ', none damaged'}")


def check_clock(name: str, store: Store, now: float) -> Iterator[Finding]:
    """Yield a result that says if the system's clock, which shows `now`, is behind the last record of the log `store`.

    `now` is in seconds of Unix time, and `name` is the name of the loop.
    """
    last = next((row.time / SECOND for row in store.rows(store.last - 1, None, None, None)), 0.0)
    behind = last - now
    if behind > SLACK:
        sentence = f"the system's clock is {behind:.0f} s behind the last record: times go on from that one"
        yield Finding(name, "clock", "soon", sentence)
    else:
        yield Finding(name, "clock", "fine", f"the last record is {-behind:.0f} s old")


def check_settings(name: str, settings: LoopSettings, store: Store) -> Iterator[Finding]:
    """Yield a result if the settings in a loop's file contradict the loop's log."""
    before = None
    for record in store.read(kinds=["settings"], loop=name):
        if isinstance(record, Settings):
            before = record
    if before is None:
        return
    was, now = immutable_settings(parse_logged_settings(before)), immutable_settings(settings)
    other = [part for part, value in now.items() if was[part] != value]
    if other:
        yield Finding(name, "settings", "broken", f"{', '.join(other)} must be as the log has it")


def check_checkpoint(name: str, store: Store, folder: Path) -> Iterator[Finding]:
    """Yield results that say if a start can continue with the serving model, and how many rewards it must learn first.

    `name` is the name of the loop, `store` its log, and `folder` the folder of its checkpoints.
    """
    found = checkpoints.newest_checkpoint(folder, store, name)
    loop_state = checkpoints.current_state(store, name, found)
    line = loop_state.lines.each.get(loop_state.lines.serving)
    own = None if line is None else checkpoints.newest_checkpoint(folder, store, name, line.number)
    try:
        if line is None or loop_state.settings is None:
            checkpoints.refuse_remainder(folder, store, name)
        if line is None:
            yield Finding(name, "checkpoint", "fine", "there is none, and no model yet: a start begins one")
            return
        fold = checkpoints.load_fold(folder, store, name, line, own)
    except ValueError as error:
        yield Finding(name, "checkpoint", "broken", str(error))
        return
    left = sum(1 for _ in store.rows(fold.through, None, ["join"], name))
    state: State = "soon" if left > MANY else "fine"
    newer = checkpoints.count_unusable(folder, line.number, fold.through)
    if newer:
        yield Finding(
            name, "checkpoint", "soon", f"{newer} newer than the one that is used are damaged, or of another log"
        )
    where = "there is none" if own is None else f"through record {fold.through}, {fold.bandit.n_learned} rounds"
    yield Finding(name, "checkpoint", state, f"{where}; a start learns {left} rewards after it")
