"""Run an experiment: in every seed, all policies play the same rounds."""

from collections.abc import Callable, Sequence
from pathlib import Path

from threadpoolctl import threadpool_limits

from onepass.lab.definition import Study
from onepass.lab.errors import ExperimentError
from onepass.lab.policy import Policy
from onepass.lab.process_pool import Task, play_all
from onepass.lab.progress import Meter
from onepass.lab.ray_runner import play_on_ray
from onepass.lab.results import Results
from onepass.lab.task_cache import TaskCache


def run(
    experiment: Study,
    *,
    policies: Sequence[Policy] | None = None,
    seeds: Sequence[int] | int | None = None,
    rounds: int | None = None,
    jobs: int | None = 1,
    ray: str | None = None,
    cache_folder: Path | None = None,
    callback: Callable[[Results], object] | None = None,
    quiet: bool = False,
) -> Results:
    """Play an experiment, and return the results as rows and curves.

    For an argument that is None, the experiment's own value is used. Ctrl-C ends the run and returns what is done: the
    finished seeds or, if there are none, the rounds played so far.

    Parameters
    ----------
    experiment : Study
        Experiment to play.
    policies : sequence of Policy, default None
        Policies that play.
    seeds : sequence of int or int, default None
        Seeds; a number n means 0 .. n - 1.
    rounds : int, default None
        Number of rounds of every seed, at least 1.
    jobs : int or None, default 1
        Number of processes that play seeds. None means one per core, or one in all for a timed experiment. Rows do not
        depend on it, except for seconds.
    ray : str, default None
        Address of a Ray cluster, or "local", whose workers play; `jobs` is ignored then. None plays on this machine.
    cache_folder : Path, default None
        Folder for finished seeds, from which an interrupted run continues. None keeps nothing.
    callback : callable, default None
        Called with the results before the files of `cache_folder` are deleted.
    quiet : bool, default False
        True shows no progress.

    Returns
    -------
    Results
        One row per policy and seed, and the curves.

    Raises
    ------
    ExperimentError
        If a count is below 1, `rounds` exceeds a policy's horizon, or the experiment cannot be sent to other processes.
    """
    policies = experiment.policies if policies is None else policies
    seeds = experiment.seeds if seeds is None else seeds
    rounds = experiment.rounds if rounds is None else rounds
    check_counts(rounds=rounds, seeds=seeds if isinstance(seeds, int) else len(seeds))
    check_horizons(policies, rounds)
    seeds = range(seeds) if isinstance(seeds, int) else seeds
    results = Results(figure=experiment.figure)
    if not warm_up(experiment, policies, quiet):
        results.interrupted = True
        if callback is not None:
            callback(results)
        return results
    step = experiment.step_size(rounds)
    tasks = [Task(own, seed, f"seed {seed}") for seed in seeds for own in split_policies(experiment, policies)]
    with Meter(experiment.name, len(tasks) * -(-rounds // step), quiet) as meter:
        cache = TaskCache(cache_folder, experiment, tasks, rounds)
        if ray is None:
            found, results.interrupted = play_all(experiment, tasks, rounds, step, jobs, meter, cache)
        else:
            found, results.interrupted = play_on_ray(experiment, tasks, rounds, step, ray, meter, cache)
    whole = [own for _, own in sorted(found.items()) if not own.interrupted]
    for own in whole or found.values():
        results.rows += own.rows
        results.curves += own.curves
    if callback is not None:
        callback(results)
    if not results.interrupted:
        cache.clear()
    return results


def split_policies(experiment: Study, policies: Sequence[Policy]) -> list[tuple[Policy, ...]]:
    """Return groups of policies that play a seed side by side.

    All are in one group, or each is alone if the attribute `alone` of the experiment is True.
    """
    return [(policy,) for policy in policies] if getattr(experiment, "alone", False) else [tuple(policies)]


def warm_up(experiment: Study, policies: Sequence[Policy], quiet: bool) -> bool:
    """Compile the code that the policies of an experiment need, and return True, or False if Ctrl-C came.

    `quiet` hides the progress bar.
    """
    kinds = {policy.compile_key: policy for policy in policies}.values()
    with threadpool_limits(1), Meter(f"{experiment.name}: compiling", len(kinds), quiet) as meter:
        try:
            for policy in kinds:
                meter.describe(policy.label)
                experiment.warm_up(policy)
                meter.advance()
        except KeyboardInterrupt:
            return False
    return True


def check_counts(**counts: int) -> None:
    """Raise ExperimentError if one of the given counts is below 1."""
    for name, count in counts.items():
        if count < 1:
            raise ExperimentError(f"{name} must be at least 1, got {count}")


def check_horizons(policies: Sequence[Policy], rounds: int) -> None:
    """Raise ExperimentError if `rounds` is larger than the parameter `horizon` of a policy."""
    for policy in policies:
        horizon = policy.params.get("horizon")
        if horizon is not None and rounds > horizon:
            raise ExperimentError(f"rounds must be at most {horizon}, the horizon of {policy.label}, got {rounds}")
