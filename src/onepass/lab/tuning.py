"""Tune every policy on the same parameter grid (Wen, Yin et al. F.1), on seeds that no evaluation uses.

Some studies share one set of examples among all seeds, which only differ in their order. Such a study keeps some
examples apart for tuning, as a study of its own in its attribute `tuning`.

A policy has the axes of the grid that its recipe accepts as parameters. The default grid is exploration in {1e-4,
1e-3, ..., 1} and reg in {2e-4, 2e-3, ..., 2e4}. The best point of a policy has the smallest mean regret. The rows of
the whole grid are kept, so that regret over reg, with the best exploration at every reg, needs no other run.
"""

from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

from onepass.lab.definition import Study
from onepass.lab.errors import ExperimentError
from onepass.lab.grid_best import TUNING, mean_regrets
from onepass.lab.policy import Policy
from onepass.lab.process_pool import Task, play_all
from onepass.lab.progress import Meter
from onepass.lab.ray_runner import play_on_ray
from onepass.lab.results import Results, read
from onepass.lab.runner import check_counts, check_horizons, warm_up
from onepass.lab.seeds import FIRST_TUNING_SEED
from onepass.lab.task_cache import TaskCache

TUNED_FILE = "tuned.parquet"


def tune(
    experiment: Study,
    *,
    policies: Sequence[Policy] | None = None,
    seeds: int = 10,
    rounds: int | None = None,
    jobs: int | None = 1,
    ray: str | None = None,
    cache_folder: Path | None = None,
    callback: Callable[[Results], object] | None = None,
    quiet: bool = False,
) -> Results:
    """Play every policy at every point of the experiment's grid, on seeds 1000, 1001, ...

    In every seed, all policies get the same contexts. Ctrl-C keeps the policies whose grid is complete.

    Parameters
    ----------
    experiment : Study
        Experiment with a grid.
    policies : sequence of Policy, default None
        Policies to tune; those with `tuned=False` are skipped. None takes the experiment's own.
    seeds : int, default 10
        Number of seeds, at least 1.
    rounds : int, default None
        Number of rounds of every seed. None takes the experiment's own.
    jobs : int or None, default 1
        As in `run`.
    ray : str, default None
        As in `run`.
    cache_folder : Path, default None
        As in `run`.
    callback : callable, default None
        As in `run`.
    quiet : bool, default False
        True shows no progress.

    Returns
    -------
    Results
        One row per policy, grid point and seed.

    Raises
    ------
    ExperimentError
        If there is nothing to tune, a count is below 1, or `rounds` exceeds a policy's horizon.
    """
    if not experiment.grid:
        raise ExperimentError(f"{experiment.name} has nothing to tune")
    policies = [policy for policy in (experiment.policies if policies is None else policies) if policy.tuned]
    if not policies:
        raise ExperimentError(f"{experiment.name} has no policy to tune among those that were named")
    if not any(policy.accepts(name) for policy in policies for name in experiment.grid):
        labels, axes = (", ".join(names) for names in ([policy.label for policy in policies], experiment.grid))
        raise ExperimentError(f"{labels} must have a parameter to tune, one of {axes}")
    problem: Study = getattr(experiment, "tuning", None) or experiment
    rounds = problem.rounds if rounds is None else rounds
    check_counts(rounds=rounds, seeds=seeds)
    check_horizons(policies, rounds)
    results = Results(figure=TUNING)
    if not warm_up(problem, policies, quiet):
        results.interrupted = True
        if callback is not None:
            callback(results)
        return results
    step = problem.step_size(rounds)
    tasks = [
        Task(tuple(policy_grid(policy, experiment)), seed, policy.label)
        for policy in policies
        for seed in range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + seeds)
    ]
    with Meter(f"tuning {experiment.name}", len(tasks) * -(-rounds // step), quiet) as meter:
        cache = TaskCache(cache_folder, problem, tasks, rounds)
        if ray is None:
            found, results.interrupted = play_all(problem, tasks, rounds, step, jobs, meter, cache)
        else:
            found, results.interrupted = play_on_ray(problem, tasks, rounds, step, ray, meter, cache)
    for first in range(0, len(tasks), seeds):
        own = [found[place] for place in range(first, first + seeds) if place in found]
        if len(own) == seeds and not any(part.interrupted for part in own):
            results.rows += [{**row, "figure": TUNING.name} for part in own for row in part.rows]
    if callback is not None:
        callback(results)
    if not results.interrupted:
        cache.clear()
    return results


def policy_grid(policy: Policy, experiment: Study) -> list[Policy]:
    """Return copies of `policy`, one for each combination of values in the grid of `experiment`.

    Parameters that the policy does not accept are left out.
    """
    axes = {name: dict.fromkeys(values) for name, values in experiment.grid.items() if policy.accepts(name)}
    return [policy.with_params(**dict(zip(axes, point))) for point in product(*axes.values())]


def apply_tuned_parameters(experiment: Study, policies: Sequence[Policy], path: Path) -> tuple[Policy, ...]:
    """Return the policies with the best parameters in `path`, a file or folder that `tune` wrote.

    The best parameters are looked up by a policy's label, or else by its group. Only parameters in the experiment's
    grid are changed. Policies with `tuned=False` stay as they are. Raises ExperimentError for a policy without tuned
    parameters.
    """
    best = {
        label: points[0][1]
        for label, points in mean_regrets(read(path / TUNED_FILE if path.is_dir() else path)).items()
    }
    tuned = []
    for policy in policies:
        if not policy.tuned:
            tuned.append(policy)
            continue
        params = best.get(policy.label, best.get(policy.group))
        if params is None:
            raise ExperimentError(f"{path} has no tuned parameters for {policy.label}, only for {', '.join(best)}")
        tuned.append(policy.with_params(**{name: params[name] for name in experiment.grid if name in params}))
    return tuple(tuned)
