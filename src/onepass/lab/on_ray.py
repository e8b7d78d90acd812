"""Seeds on the machines of Ray: the rows are those of one process, but for seconds.

Each task is one seed, played whole by one worker; one whose worker is lost is played again. Until all are finished,
those that are stay in a folder, if one is given, so that a run that was ended goes on where it was.
"""

from collections.abc import Sequence

from threadpoolctl import threadpool_limits

from onepass.cluster.working import Tasks
from onepass.lab.crew import Task, play
from onepass.lab.definition import Study
from onepass.lab.kept import Kept
from onepass.lab.progress import Meter
from onepass.lab.results import Results


def play_on_ray(
    study: Study, tasks: Sequence[Task], rounds: int, step: int, address: str, meter: Meter, kept: Kept
) -> tuple[dict[int, Results], bool]:
    """`play_all` by the workers at `address`; what is kept as finished is not played again."""
    found, steps = kept.found(), -(-rounds // step)
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
            kept.keep(place, found[place])
            meter.advance(steps)
    except KeyboardInterrupt:
        workers.cancel(list(places))
        return found, True
    if failed is not None:  # once all others are kept
        raise failed
    return found, False


def played(study: Study, task: Task, rounds: int, step: int) -> Results:
    """What a worker does: load compiled code, then play."""
    with threadpool_limits(1):
        for policy in {policy.kind: policy for policy in task.policies}.values():
            study.warm_up(policy)
        return play(study, task, rounds, step, nothing)


def nothing() -> None:
    """After a step."""
