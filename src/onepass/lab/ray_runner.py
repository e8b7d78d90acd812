"""Run the seeds of an experiment on the machines of a Ray cluster.

The result rows are the same as in one process. Only the measured seconds differ. A task is one seed, played by one
worker. If a worker is lost, its task is played again. Finished tasks are cached in a folder, if one is given, so that
an interrupted run continues.
"""

from collections.abc import Sequence

from threadpoolctl import threadpool_limits

from onepass.cluster.task_pool import RayTaskPool
from onepass.lab.definition import Study
from onepass.lab.process_pool import Task, play
from onepass.lab.progress import Meter
from onepass.lab.results import Results
from onepass.lab.task_cache import TaskCache


def play_on_ray(
    study: Study, tasks: Sequence[Task], rounds: int, step: int, address: str, meter: Meter, cache: TaskCache
) -> tuple[dict[int, Results], bool]:
    """Play the tasks on the workers of the Ray cluster at `address`.

    `study` plays a task. Returns the results by the index of the task, and True if Ctrl-C came. `rounds` are played in
    steps of `step` rounds. The results of tasks in `cache` are taken from there. `meter` shows the progress.
    """
    found, steps = cache.load_results(), -(-rounds // step)
    meter.advance(steps * len(found))
    workers = RayTaskPool(address)
    places = {
        workers.start(_play_in_worker, study, task, rounds, step): place
        for place, task in enumerate(tasks)
        if place not in found
    }
    failed: Exception | None = None
    try:
        for task in workers.as_completed(list(places)):
            place = places[task]
            try:
                found[place] = workers.result(task)
            except Exception as error:
                failed = failed or error
                continue
            cache.save(place, found[place])
            meter.advance(steps)
    except KeyboardInterrupt:
        workers.cancel(list(places))
        return found, True
    if failed is not None:  # raised after all other results are saved
        raise failed
    return found, False


def _play_in_worker(study: Study, task: Task, rounds: int, step: int) -> Results:
    """Load compiled code, then play `rounds` rounds of the task in steps of `step` rounds, and return the results."""
    with threadpool_limits(1):
        for policy in {policy.compile_key: policy for policy in task.policies}.values():
            study.warm_up(policy)
        return play(study, task, rounds, step, _do_nothing)


def _do_nothing() -> None:
    """Ignore a step."""
