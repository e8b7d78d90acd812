"""Tuning: every policy on the same grid of parameters (Wen, Yin et al. F.1), on seeds that no evaluation uses.

Where all seeds share one set of examples, a seed is but another order of them: such a study keeps some examples apart
and names the study of these, `tuning`, which is played instead.

A policy has the axes of the grid that its recipe accepts as parameters. Unless an experiment has a grid of its own,
exploration in {1e-4, 1e-3, ..., 1}, reg in {2e-4, 2e-3, ..., 2e4}; the best point of a policy has the smallest mean
regret. The rows of the whole grid are kept, so the regret over reg, with the best exploration at every reg, comes free.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from math import fsum
from pathlib import Path
from typing import Any

from onepass.experiment.definition import Policy, Study
from onepass.experiment.errors import ExperimentError
from onepass.experiment.progress import Meter
from onepass.experiment.results import Results, Row, read
from onepass.experiment.runner import check, check_horizons, play_seed, warm_up

FIRST_SEED = 1000
FILE = "tuned.parquet"


def tune(
    experiment: Study,
    *,
    policies: Sequence[Policy] | None = None,
    seeds: int = 10,
    rounds: int | None = None,
    quiet: bool = False,
) -> Results:
    """Rows of every policy at every point of the experiment's grid, on seeds 1000, 1001, ...

    Each policy meets the same contexts. Ctrl-C keeps the policies whose whole grid is done.
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
    results = Results()
    if not warm_up(problem, policies, quiet):
        results.interrupted = True
        return results
    step = problem.step_size(rounds)
    with Meter(f"tuning {experiment.name}", len(policies) * seeds * -(-rounds // step), quiet) as meter:
        for policy in policies:
            found = Results()
            points = grid(policy, experiment)
            meter.describe(policy.label)
            for seed in range(FIRST_SEED, FIRST_SEED + seeds):
                if not play_seed(problem, points, seed, rounds, step, found, meter):
                    results.interrupted = True
                    return results
            results.rows += [{**row, "figure": "tuning"} for row in found.rows]
    return results


def grid(policy: Policy, experiment: Study) -> list[Policy]:
    """The policy at every point of the experiment's grid, on the axes that its recipe has."""
    axes = {name: dict.fromkeys(values) for name, values in experiment.grid.items() if policy.accepts(name)}
    return [policy.but(**dict(zip(axes, point))) for point in product(*axes.values())]


def mean_regrets(rows: Sequence[Row]) -> dict[str, list[tuple[float, dict[str, Any]]]]:
    """For every policy label, its grid points as (mean regret, params), best first; ties go to the grid's inside."""
    regrets: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    params: dict[str, dict[str, Any]] = {}
    for row in rows:
        key = repr(row["params"])
        params[key] = row["params"]
        regrets[row["policy"]][key].append(row["cumulative_regret"])
    found = {}
    for label, points in regrets.items():
        rated = [(fsum(values) / len(values), params[key]) for key, values in points.items()]
        grid = [point for _, point in rated]
        found[label] = sorted(rated, key=lambda point: (point[0], len(edges(point[1], grid))))
    return found


def at_edges(rows: Sequence[Row]) -> str:
    """A sentence on the policies whose best point lies at an edge of the grid, or nothing."""
    found = {
        label: edges(points[0][1], [params for _, params in points]) for label, points in mean_regrets(rows).items()
    }
    named = "; ".join(f"{label}: {', '.join(names)}" for label, names in found.items() if names)
    return f"The best lies at the edge of the grid, which is to be widened: {named}." if named else ""


def edges(params: dict[str, Any], grid: Sequence[dict[str, Any]]) -> list[str]:
    """The searched parameters that lie at the smallest or largest value of the grid."""
    values = {name: [point[name] for point in grid] for name in params if isinstance(params[name], int | float)}
    return [name for name, own in values.items() if min(own) < max(own) and params[name] in (min(own), max(own))]


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
