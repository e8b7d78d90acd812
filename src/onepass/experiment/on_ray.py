"""Seeds on the machines of Ray: the rows are those of one process, but for seconds.

Each task is one seed, played whole by one worker; one whose worker is lost is played again. Until all are finished,
those that are stay in a folder, if one is given, so that a run that was ended goes on where it was.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from onepass.cluster.working import Tasks
from onepass.experiment.crew import Task, play
from onepass.experiment.definition import Study
from onepass.experiment.progress import Meter
from onepass.experiment.results import Results
from onepass.foundation.disk import put

DIGEST = 16  # bytes in the name of a finished task


def play_on_ray(
    study: Study, tasks: Sequence[Task], rounds: int, step: int, address: str, meter: Meter, kept: Path | None = None
) -> tuple[dict[int, Results], bool]:
    """`play_all` by the workers at `address`; kept: the folder of what is finished, None for none."""
    files = [None if kept is None else kept / f"{digest(study, task, rounds)}.json" for task in tasks]
    found = {place: read(file) for place, file in enumerate(files) if file is not None and file.is_file()}
    steps = -(-rounds // step)
    meter.advance(steps * len(found))
    workers = Tasks(address)
    places = {
        workers.start(played, study, task, rounds, step): place
        for place, task in enumerate(tasks)
        if place not in found
    }
    failed: Exception | None = None
    try:
        for task in workers.finished(list(places)):
            place = places[task]
            try:
                found[place] = workers.answer(task)
            except Exception as error:
                failed = failed or error
                continue
            if (file := files[place]) is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
                put(file, json.dumps([found[place].rows, found[place].curves], default=number).encode())
            meter.advance(steps)
    except KeyboardInterrupt:
        workers.cancel(list(places))
        return found, True
    if failed is not None:  # once all others are kept
        raise failed
    for file in files:  # all is found: a later run plays anew
        if file is not None:
            file.unlink(missing_ok=True)
    return found, False


def played(study: Study, task: Task, rounds: int, step: int) -> Results:
    """What a worker does: load compiled code, then play."""
    with threadpool_limits(1):
        for policy in {policy.kind: policy for policy in task.policies}.values():
            study.warm_up(policy)
        return play(study, task, rounds, step, nothing)


def nothing() -> None:
    """After a step."""


def digest(study: Study, task: Task, rounds: int) -> str:
    """Of all that decides what is found: the same again has the same."""
    what = [study.name, [policy.columns() for policy in task.policies], task.seed, rounds]
    return hashlib.blake2b(json.dumps(what, default=repr).encode(), digest_size=DIGEST).hexdigest()


def number(value: Any) -> Any:
    """A number of NumPy as one of Python."""
    return value.item()


def read(file: Path) -> Results:
    """What was finished."""
    rows, curves = json.loads(file.read_bytes())
    return Results(rows=rows, curves=curves)
