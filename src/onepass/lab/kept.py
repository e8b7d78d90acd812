"""Finished tasks in a folder, one file of JSON each: a run that was ended, or killed, goes on where it was.

A file is found again by what decides its numbers: study, policies, seed, rounds, and the text of onepass and of the
modules that study and policies come from. Once all tasks are finished the files go: a later run plays anew.
"""

import hashlib
import json
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import onepass
from onepass.foundation.atomic_write import write_atomically
from onepass.lab.definition import Study
from onepass.lab.policy import Policy
from onepass.lab.results import Results

DIGEST = 16  # bytes in the name of a finished task
PLACE = re.compile(r" at 0x[0-9a-f]+")  # in the text of an object: where it lies in memory

Tasks = Sequence[tuple[tuple[Policy, ...], int, str]]  # policies side by side, seed, label


class Kept:
    """What is finished of some tasks; folder None: nothing is kept."""

    def __init__(self, folder: Path | None, study: Study, tasks: Tasks, rounds: int):
        self.folder = folder
        self.files = (
            []
            if folder is None
            else [folder / f"{digest(study, policies, seed, rounds)}.json" for policies, seed, _ in tasks]
        )

    def found(self) -> dict[int, Results]:
        """What earlier runs have finished, by the task's place. A file that is no whole one is taken away."""
        out: dict[int, Results] = {}
        for place, file in enumerate(self.files):
            try:
                rows, curves = json.loads(file.read_bytes())
                out[place] = Results(rows=rows, curves=curves)
            except FileNotFoundError:
                continue
            except ValueError:
                file.unlink()
        return out

    def keep(self, place: int, results: Results) -> None:
        """A task is finished."""
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self.files[place], json.dumps([results.rows, results.curves], default=number).encode())

    def clear(self) -> None:
        """All are finished."""
        for file in self.files:
            file.unlink(missing_ok=True)
        if self.folder is not None:
            with suppress(OSError):  # never made, or another run's files are in it
                self.folder.rmdir()


def digest(study: Study, policies: Sequence[Policy], seed: int, rounds: int) -> str:
    """Of all that decides what is found: the same again has the same."""
    given = [study, *getattr(study, "__dict__", {}).values(), *(policy.make for policy in policies)]
    texts = sorted({text for text in map(text_of, given) if text})
    what = [PLACE.sub("", repr(study)), [policy.columns() for policy in policies], seed, rounds, own(), texts]
    told = json.dumps(what, default=lambda value: PLACE.sub("", repr(value)))
    return hashlib.blake2b(told.encode(), digest_size=DIGEST).hexdigest()


@cache
def own() -> str:
    """A hash of the text of onepass."""
    whole = hashlib.blake2b(digest_size=DIGEST)
    for path in sorted(Path(onepass.__path__[0]).rglob("*.py")):
        whole.update(path.read_bytes())
    return whole.hexdigest()


def text_of(thing: Any) -> str:
    """A hash of the text of the module that a function, or an object's class, comes from; nothing where it has none."""
    name = thing.__module__ if hasattr(thing, "__qualname__") else type(thing).__module__
    place = getattr(sys.modules.get(name), "__file__", None)
    if place is None or name.partition(".")[0] == "onepass":
        return ""
    return hashlib.blake2b(Path(place).read_bytes(), digest_size=DIGEST).hexdigest()


def number(value: Any) -> Any:
    """A number of NumPy as one of Python."""
    return value.item()
