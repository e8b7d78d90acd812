"""The command line: `onepass list | run | tune | report | evaluate | log | serve | simulate | doctor | bench`.

Every command imports the packages that it needs, so that `onepass --help` is fast. Tables go to standard output and
everything else to standard error. With --json, standard output holds one JSON object per policy and seed, and nothing
else. Exit codes: 0, 2 if the arguments are wrong or something is missing, 130 after Ctrl-C.
"""

import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Annotated

EXTRAS = (
    "httpx",
    "msgspec",
    "psycopg",
    "starlette",
    "uvicorn",
    "prometheus_client",
    "sklearn",
    "polars",
    "matplotlib",
    "typer",
    "rich",
    "pooch",
    "threadpoolctl",
    "ray",
    "optuna",
)
FINISHED = "finished"  # folder that keeps finished tasks until all are finished


def _install_hint(module: str) -> str:
    """Return the sentence that names a missing package and the extra that installs it."""
    package = module.partition(".")[0]
    served = dict.fromkeys(("starlette", "uvicorn", "prometheus_client"), "serve")
    extras = {"httpx": "client", "msgspec": "log", "psycopg": "postgres", "ray": "ray", "optuna": "optuna", **served}
    extra = extras.get(package, "experiment")
    return f"onepass: {package} is missing, which the command line needs: pip install onepass[{extra}]"


try:
    import typer

    from onepass.cli import logs
    from onepass.cli.doctor import doctor
    from onepass.cli.serve import serve
    from onepass.cli.simulate import simulate
except ModuleNotFoundError as missing:
    print(_install_hint(str(missing.name)), file=sys.stderr)
    raise SystemExit(2) from missing

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True)

app.add_typer(logs.app, name="log")
app.command()(serve)
app.command()(doctor)
app.command()(simulate)

Name = Annotated[
    str,
    typer.Argument(metavar="EXPERIMENT", help="Name that `onepass list` shows, or MODULE:NAME of your own experiment."),
]
Rounds = Annotated[int | None, typer.Option(help="Rounds per seed. Default: as the experiment has it.")]
Policies = Annotated[
    str | None, typer.Option(metavar="A,B", help="Only these policies, by label or group, or MODULE:NAME of your own.")
]
Out = Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for results.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        help="Processes that play seeds. Default: one per core, and a single one if the experiment measures time. "
        "DIR/finished keeps finished tasks until all are finished; a run that was stopped goes on from there."
    ),
]
Ray = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help='Use the workers of this Ray cluster: "auto", ray://HOST:10001, or "local" to start one here.',
    ),
]


def _show_version(requested: bool) -> None:
    if requested:
        print(f"onepass {metadata.version('onepass')}")
        raise typer.Exit


@app.callback()
def onepass(
    _: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Online learning of decisions: one pass over the data, bounded memory, regret guarantees."""


@app.command("list")
def list_command(name: Annotated[str | None, typer.Argument(metavar="[EXPERIMENT]")] = None) -> None:
    """List the experiments, or the policies of one experiment.

    Experiments are listed in groups, policies with their parameters.
    """
    from onepass.lab import plugins, suites, tables

    print(tables.experiment_list(suites.GROUPS) if name is None else tables.policy_table(plugins.load_experiment(name)))


@app.command()
def run(
    name: Name,
    rounds: Rounds = None,
    seeds: Annotated[
        int | None, typer.Option(help="Number of seeds: 0, 1, ... Default: as the experiment has it.")
    ] = None,
    policies: Policies = None,
    out: Out = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per policy and seed, and nothing else.")
    ] = False,
    tuned: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Use the parameters that `onepass tune` found.")
    ] = None,
    jobs: Jobs = None,
    ray: Ray = None,
) -> None:
    """Run an experiment.

    Writes Parquet files, a table and a picture to DIR (default: results/EXPERIMENT).
    """
    from onepass.lab import plugins, report, runner, tuning
    from onepass.lab.results import json_line

    experiment = plugins.load_experiment(name)
    selected = plugins.load_policies(experiment, _split_names(policies))
    if tuned is not None:
        selected = tuning.apply_tuned_parameters(experiment, selected, tuned)
    folder = out or Path("results", experiment.name)
    publish = lambda results: report.publish(results, folder, report.keep, sys.stderr if json else sys.stdout)  # noqa: E731
    results = runner.run(
        experiment,
        policies=selected,
        seeds=seeds,
        rounds=rounds,
        jobs=jobs,
        ray=ray,
        cache_folder=folder / FINISHED,
        callback=publish,
    )
    for row in results.rows if json else []:
        print(json_line(row))
    raise typer.Exit(130 if results.interrupted else 0)


@app.command()
def tune(
    name: Name,
    rounds: Rounds = None,
    seeds: Annotated[int, typer.Option(help="Number of seeds: 1000, 1001, ... No evaluation uses them.")] = 10,
    policies: Policies = None,
    out: Out = None,
    jobs: Jobs = None,
    ray: Ray = None,
) -> None:
    """Search the best parameters of every policy.

    All policies are searched on one grid. Writes to DIR (default: results/EXPERIMENT-tuned).
    """
    from onepass.lab import plugins, report, tuning

    experiment = plugins.load_experiment(name)
    selected = plugins.load_policies(experiment, _split_names(policies))
    folder = out or Path("results", f"{experiment.name}-tuned")
    publish = lambda results: report.publish(results, folder, report.keep_tuning, sys.stdout)  # noqa: E731
    results = tuning.tune(
        experiment,
        policies=selected,
        seeds=seeds,
        rounds=rounds,
        jobs=jobs,
        ray=ray,
        cache_folder=folder / FINISHED,
        callback=publish,
    )
    raise typer.Exit(130 if results.interrupted else 0)


@app.command("report")
def report_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder that run or tune wrote.")],
    figure: Annotated[
        str | None,
        typer.Option(metavar="MODULE:NAME", help="Function of your own that makes the table and the picture."),
    ] = None,
    pdf: Annotated[bool, typer.Option("--pdf", help="Also write the picture and each of its panels as PDF.")] = False,
    beside: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="Add the other policies and seeds of this folder of `run`. May be repeated."),
    ] = None,
) -> None:
    """Make the tables and pictures of results again."""
    from onepass.lab import plugins, report

    print(
        report.rebuild(
            folder, figure=None if figure is None else plugins.load_figure(figure), paper=pdf, beside=beside or ()
        )
    )


@app.command()
def bench(
    regret: Annotated[
        bool,
        typer.Option(
            "--regret",
            help="Compare regret with its targets instead (MNIST, heavy tails, kernels, learners; 20 minutes).",
        ),
    ] = False,
) -> None:
    """Print the speed of a round, as ratios.

    The ratios compare it with the least work that a round needs, and with plain NumPy.
    """
    from onepass.lab import benchmark

    print(benchmark.regret() if regret else benchmark.speed())


@app.command()
def evaluate(
    path: Annotated[
        str, typer.Argument(metavar="LOG", help="File (.dsjson, .vw, .csv, .npz, also with .gz), or a store.")
    ],
    policy: Annotated[
        list[str],
        typer.Option(
            help="uniform, logged, always:ARM, MODULE:NAME (also in the current folder), or the file of a saved "
            "bandit, which takes the features unchanged (rows of numbers, or JSON). May be repeated."
        ),
    ],
    form: Annotated[
        str | None, typer.Option("--format", help="dsjson, vw, csv or obp. Default: by the file's ending.")
    ] = None,
    features: Annotated[
        str | None, typer.Option(metavar="A,B", help="Columns of a CSV file, or MODULE:NAME of a function.")
    ] = None,
    arms: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Names of all arms of a CSV file. Default: all that its rows name."),
    ] = None,
    min_reward: Annotated[float, typer.Option(help="Smallest possible reward.")] = 0.0,
    max_reward: Annotated[float, typer.Option(help="Largest possible reward.")] = 1.0,
    level: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    weight_bound: Annotated[float | None, typer.Option(help="Largest possible importance weight.")] = None,
    skip: Annotated[
        bool,
        typer.Option("--skip", help="Leave out bad lines and decisions, and name them. Default: stop at the first."),
    ] = False,
    loop: Annotated[str | None, typer.Option(metavar="NAME", help="Only this loop of a store. Default: all.")] = None,
    keep_probability: Annotated[
        float | None, typer.Option(help="Thin lines that were logged with a higher probability (pdrop) to this one.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per policy, and nothing else.")] = False,
) -> None:
    """Estimate from a log what other policies would have earned.

    Prints values, confidence intervals, and whether they can be trusted.
    """
    from onepass.evaluation import files
    from onepass.lab.errors import ExperimentError
    from onepass.lab.progress import Meter

    try:
        with Meter(f"evaluate {Path(path).name}", files.count_decisions(path, form), quiet=json) as meter:
            estimates = files.evaluate_file(
                path, policy, format=form, features=features, arms=_split_names(arms),
                reward_range=(min_reward, max_reward), level=level,
                weight_bound=weight_bound, loop=loop, keep_probability=keep_probability,
                bad="skip" if skip else "refuse",
                report=lambda where, reason: print(f"{path}, {where}: {reason}", file=sys.stderr),
                progress=lambda rows: meter.advance(rows - meter.done),
            )  # fmt: skip
    except (ValueError, OSError) as error:
        raise ExperimentError(str(error)) from None
    print(files.to_json_lines(estimates) if json else files.format_table(estimates))


@app.command("compile")
def compile_command(
    names: Annotated[list[str] | None, typer.Argument(metavar="[RECIPE]...", help="Only these recipes.")] = None,
) -> None:
    """Compile all code of the recipes ahead of time.

    It compiles all functions and stores them in the cache, so that the first requests are fast. It takes some minutes,
    once per machine.
    """
    from onepass.precompile import main

    raise typer.Exit(main(names or ()))


def _split_names(names: str | None) -> list[str] | None:
    """Return the names of a comma-separated list."""
    return None if names is None else [name.strip() for name in names.split(",") if name.strip()]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. Errors that the user can correct are one sentence, with exit code 2."""
    try:
        app(arguments, prog_name="onepass")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in EXTRAS:
            raise
        print(_install_hint(str(error.name)), file=sys.stderr)
    except ValueError as error:
        from onepass.lab.errors import ExperimentError

        if not isinstance(error, ExperimentError):
            raise
        print(f"onepass: {error}", file=sys.stderr)
    sys.exit(2)
