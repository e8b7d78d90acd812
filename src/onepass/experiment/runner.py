"""Run an experiment: for every seed, chunk after chunk, all policies side by side; rows out."""

from collections.abc import Sequence

from onepass.experiment.definition import Policy, Study
from onepass.experiment.errors import ExperimentError
from onepass.experiment.progress import Meter
from onepass.experiment.results import Results


def run(
    experiment: Study,
    *,
    policies: Sequence[Policy] | None = None,
    seeds: Sequence[int] | int | None = None,
    rounds: int | None = None,
    quiet: bool = False,
) -> Results:
    """Results of the policies over the seeds (a number n means 0 .. n - 1); what is not given is the experiment's own.

    Ctrl-C ends the run and keeps what is done: the finished seeds or, while there is none, the rounds played so far.
    """
    policies = experiment.policies if policies is None else policies
    seeds = experiment.seeds if seeds is None else seeds
    rounds = experiment.rounds if rounds is None else rounds
    check(rounds=rounds, seeds=seeds if isinstance(seeds, int) else len(seeds))
    check_horizons(policies, rounds)
    seeds = range(seeds) if isinstance(seeds, int) else seeds
    results = Results()
    if not warm_up(experiment, policies, quiet):
        results.interrupted = True
        return results
    step = experiment.step_size(rounds)
    with Meter(experiment.name, len(seeds) * -(-rounds // step), quiet) as meter:
        for seed in seeds:
            meter.describe(f"seed {seed}")
            if not play_seed(experiment, policies, seed, rounds, step, results, meter):
                break
    return results


def warm_up(experiment: Study, policies: Sequence[Policy], quiet: bool) -> bool:
    """Compile what the policies need; the code is cached on disk, later processes only load it. False on Ctrl-C."""
    kinds = {policy.kind: policy for policy in policies}.values()
    with Meter(f"{experiment.name}: compiling", len(kinds), quiet) as meter:
        try:
            for policy in kinds:
                meter.describe(policy.label)
                experiment.warm_up(policy)
                meter.advance()
        except KeyboardInterrupt:
            return False
    return True


def play_seed(
    experiment: Study,
    policies: Sequence[Policy],
    seed: int,
    rounds: int,
    step: int,
    results: Results,
    meter: Meter,
) -> bool:
    """Play one seed to its end and add its rows to the results; False if Ctrl-C came first."""
    trial = None
    try:
        trial = experiment.trial(policies, seed)
        for start in range(0, rounds, step):
            trial.step(start, min(step, rounds - start))
            meter.advance()
    except KeyboardInterrupt:
        results.interrupted = True
    if trial is not None and not (results.interrupted and results.rows):
        label = {"experiment": experiment.name, "figure": experiment.figure}
        results.rows += [{**label, **row} for row in trial.rows()]
        results.curves += [{**label, **row} for row in trial.curves()]
    return not results.interrupted


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
