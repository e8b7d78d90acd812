"""Run an experiment: for every seed, chunk after chunk, all policies side by side; rows out."""

from collections.abc import Callable, Sequence
from pathlib import Path

from threadpoolctl import threadpool_limits

from onepass.lab.crew import Task, play_all
from onepass.lab.definition import Study
from onepass.lab.errors import ExperimentError
from onepass.lab.kept import Kept
from onepass.lab.on_ray import play_on_ray
from onepass.lab.policy import Policy
from onepass.lab.progress import Meter
from onepass.lab.results import Results


def run(
    experiment: Study,
    *,
    policies: Sequence[Policy] | None = None,
    seeds: Sequence[int] | int | None = None,
    rounds: int | None = None,
    jobs: int | None = 1,
    ray: str | None = None,
    kept: Path | None = None,
    then: Callable[[Results], object] | None = None,
    quiet: bool = False,
) -> Results:
    """Results of the policies over the seeds (a number n means 0 .. n - 1); what is not given is the experiment's own.

    jobs: how many processes play seeds; None: one for every core, but one in all for an experiment that is about
    seconds. Rows are the same whatever the number, but for seconds.
    ray: None: this machine; the address of a Ray, or "local": its workers play, `jobs` is not asked for.
    kept: a folder for the seeds that are finished, None for none: a run that was ended or killed goes on from there.
    then: called with the results before these files are taken away (default None): its files are there, or these are.
    Ctrl-C ends the run and keeps what is done: the finished seeds or, while there is none, the rounds played so far.
    """
    policies = experiment.policies if policies is None else policies
    seeds = experiment.seeds if seeds is None else seeds
    rounds = experiment.rounds if rounds is None else rounds
    check(rounds=rounds, seeds=seeds if isinstance(seeds, int) else len(seeds))
    check_horizons(policies, rounds)
    seeds = range(seeds) if isinstance(seeds, int) else seeds
    results = Results(figure=experiment.figure)
    if not warm_up(experiment, policies, quiet):
        results.interrupted = True
        if then is not None:
            then(results)
        return results
    step = experiment.step_size(rounds)
    tasks = [Task(tuple(policies), seed, f"seed {seed}") for seed in seeds]
    with Meter(experiment.name, len(tasks) * -(-rounds // step), quiet) as meter:
        held = Kept(kept, experiment, tasks, rounds)
        if ray is None:
            found, results.interrupted = play_all(experiment, tasks, rounds, step, jobs, meter, held)
        else:
            found, results.interrupted = play_on_ray(experiment, tasks, rounds, step, ray, meter, held)
    whole = [own for _, own in sorted(found.items()) if not own.interrupted]
    for own in whole or found.values():
        results.rows += own.rows
        results.curves += own.curves
    if then is not None:
        then(results)
    if not results.interrupted:
        held.clear()
    return results


def warm_up(experiment: Study, policies: Sequence[Policy], quiet: bool) -> bool:
    """Compile what the policies need; the code is cached on disk, later processes only load it. False on Ctrl-C."""
    kinds = {policy.kind: policy for policy in policies}.values()
    with threadpool_limits(1), Meter(f"{experiment.name}: compiling", len(kinds), quiet) as meter:
        try:
            for policy in kinds:
                meter.describe(policy.label)
                experiment.warm_up(policy)
                meter.advance()
        except KeyboardInterrupt:
            return False
    return True


def check(**counts: int) -> None:
    """Refuse counts below one."""
    for name, count in counts.items():
        if count < 1:
            raise ExperimentError(f"{name} must be at least 1, got {count}")


def check_horizons(policies: Sequence[Policy], rounds: int) -> None:
    """Refuse more rounds than a policy was told will come."""
    for policy in policies:
        horizon = policy.params.get("horizon")
        if horizon is not None and rounds > horizon:
            raise ExperimentError(f"rounds must be at most {horizon}, the horizon of {policy.label}, got {rounds}")
