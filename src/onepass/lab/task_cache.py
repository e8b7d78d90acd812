"""Files of finished tasks of an experiment, so that an interrupted run continues."""

import hashlib
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import onepass
from onepass.foundation.atomic_write import write_atomically
from onepass.lab.definition import Study
from onepass.lab.policy import ADDRESS, Policy
from onepass.lab.results import Results

DIGEST = 16  # bytes in the name of a finished task

Tasks = Sequence[tuple[tuple[Policy, ...], int, str]]  # policies side by side, seed, label


class TaskCache:
    """Results of finished tasks in a folder, one JSON file per task. If `folder` is None, nothing is stored.

    A task plays `rounds` rounds of `study`.
    """

    def __init__(self, folder: Path | None, study: Study, tasks: Tasks, rounds: int) -> None:
        self.folder = folder
        self.files = (
            []
            if folder is None
            else [folder / f"{_task_digest(study, policies, seed, rounds)}.json" for policies, seed, _ in tasks]
        )

    def load_results(self) -> dict[int, Results]:
        """Return the stored results by the index of the task. Damaged files are deleted."""
        out: dict[int, Results] = {}
        for place, file in enumerate(self.files):
            try:
                rows, curves = json.loads(file.read_bytes())
                out[place] = Results(rows=list(rows), curves=list(curves))
            except FileNotFoundError:
                continue
            except (ValueError, TypeError):
                file.unlink()
        return out

    def save(self, place: int, results: Results) -> None:
        """Save the results of the task with index `place`."""
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(
                self.files[place], json.dumps([results.rows, results.curves], default=_to_python_number).encode()
            )

    def clear(self) -> None:
        """Delete the files of all tasks, and the folder if it is then empty."""
        for file in self.files:
            file.unlink(missing_ok=True)
        if self.folder is not None:
            with suppress(OSError):  # the folder was never made, or has files of another run
                self.folder.rmdir()


def _task_digest(study: Study, policies: Sequence[Policy], seed: int, rounds: int) -> str:
    """Return a hash of all that the results of a task depend on: the arguments and the source code."""
    given = [study, *getattr(study, "__dict__", {}).values(), *(policy.make for policy in policies)]
    texts = sorted({text for text in map(_module_digest, given) if text})
    what = [
        ADDRESS.sub("", repr(study)),
        [policy.columns() for policy in policies],
        seed,
        rounds,
        _source_digest(),
        texts,
    ]
    text = json.dumps(what, default=lambda value: ADDRESS.sub("", repr(value)))
    return hashlib.blake2b(text.encode(), digest_size=DIGEST).hexdigest()


@cache
def _source_digest() -> str:
    """Return a hash of the source code of onepass."""
    whole = hashlib.blake2b(digest_size=DIGEST)
    for path in sorted(Path(onepass.__path__[0]).rglob("*.py")):
        whole.update(path.read_bytes())
    return whole.hexdigest()


def _module_digest(thing: Any) -> str:
    """Return a hash of the module that defines `thing`, a function or class, or the class of another object.

    The hash is empty if there is no source file, and for onepass itself.
    """
    name = thing.__module__ if hasattr(thing, "__qualname__") else type(thing).__module__
    place = getattr(sys.modules.get(name), "__file__", None)
    if place is None or name.partition(".")[0] == "onepass":
        return ""
    return hashlib.blake2b(Path(place).read_bytes(), digest_size=DIGEST).hexdigest()


def _to_python_number(value: Any) -> Any:
    """Convert a NumPy number to a Python number."""
    return value.item()
