"""Tuning: every policy on the same grid of parameters (Wen, Yin et al. F.1), on seeds that no evaluation uses.

Where all seeds share one set of examples, a seed is but another order of them: such a study keeps some examples apart
and names the study of these, `tuning`, which is played instead.

A policy has the axes of the grid that its recipe accepts as parameters. Unless an experiment has a grid of its own,
exploration in {1e-4, 1e-3, ..., 1}, reg in {2e-4, 2e-3, ..., 2e4}; the best point of a policy has the smallest mean
regret. The rows of the whole grid are kept, so the regret over reg, with the best exploration at every reg, comes free.
"""

from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

from onepass.lab.best import TUNING, mean_regrets
from onepass.lab.crew import Task, play_all
from onepass.lab.definition import Study
from onepass.lab.errors import ExperimentError
from onepass.lab.kept import Kept
from onepass.lab.on_ray import play_on_ray
from onepass.lab.policy import Policy
from onepass.lab.progress import Meter
from onepass.lab.results import Results, read
from onepass.lab.runner import check, check_horizons, warm_up
from onepass.lab.seeds import FIRST_TUNING_SEED

FILE = "tuned.parquet"


def tune(
    experiment: Study,
    *,
    policies: Sequence[Policy] | None = None,
    seeds: int = 10,
    rounds: int | None = None,
    jobs: int | None = 1,
    ray: str | None = None,
    kept: Path | None = None,
    then: Callable[[Results], object] | None = None,
    quiet: bool = False,
) -> Results:
    """Rows of every policy at every point of the experiment's grid, on seeds 1000, 1001, ...

    Each policy meets the same contexts; jobs, ray, kept, then: as in `run`. Ctrl-C keeps policies whose grid is done.
    """
    if not experiment.grid:
        raise ExperimentError(f"{experiment.name} has nothing to tune")
    policies = [policy for policy in (experiment.policies if policies is None else policies) if policy.tuned]
    if not policies:
        raise ExperimentError(f"{experiment.name} has no policy to tune among those that were named")
    problem: Study = getattr(experiment, "tuning", None) or experiment
    rounds = problem.rounds if rounds is None else rounds
    check(rounds=rounds, seeds=seeds)
    check_horizons(policies, rounds)
    results = Results(figure=TUNING)
    if not warm_up(problem, policies, quiet):
        results.interrupted = True
        if then is not None:
            then(results)
        return results
    step = problem.step_size(rounds)
    tasks = [
        Task(tuple(grid(policy, experiment)), seed, policy.label)
        for policy in policies
        for seed in range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + seeds)
    ]
    with Meter(f"tuning {experiment.name}", len(tasks) * -(-rounds // step), quiet) as meter:
        held = Kept(kept, problem, tasks, rounds)
        if ray is None:
            found, results.interrupted = play_all(problem, tasks, rounds, step, jobs, meter, held)
        else:
            found, results.interrupted = play_on_ray(problem, tasks, rounds, step, ray, meter, held)
    for first in range(0, len(tasks), seeds):
        own = [found[place] for place in range(first, first + seeds) if place in found]
        if len(own) == seeds and not any(part.interrupted for part in own):
            results.rows += [{**row, "figure": TUNING.name} for part in own for row in part.rows]
    if then is not None:
        then(results)
    if not results.interrupted:
        held.clear()
    return results


def grid(policy: Policy, experiment: Study) -> list[Policy]:
    """The policy at every point of the experiment's grid, on the axes that its recipe has."""
    axes = {name: dict.fromkeys(values) for name, values in experiment.grid.items() if policy.accepts(name)}
    return [policy.but(**dict(zip(axes, point))) for point in product(*axes.values())]


def apply(experiment: Study, policies: Sequence[Policy], path: Path) -> tuple[Policy, ...]:
    """The policies with the best parameters found in a file or folder that `tune` wrote: by label, else by group.

    Only what the experiment leaves open is taken: a study over reg keeps its regs, an untuned policy everything.
    """
    best = {label: points[0][1] for label, points in mean_regrets(read(path / FILE if path.is_dir() else path)).items()}
    tuned = []
    for policy in policies:
        if not policy.tuned:
            tuned.append(policy)
            continue
        params = best.get(policy.label, best.get(policy.group))
        if params is None:
            raise ExperimentError(f"{path} has no tuned parameters for {policy.label}, only for {', '.join(best)}")
        tuned.append(policy.but(**{name: params[name] for name in experiment.grid if name in params}))
    return tuple(tuned)
