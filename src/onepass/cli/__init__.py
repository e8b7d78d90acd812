"""The command line: `onepass list | run | tune | report | evaluate | log | serve | simulate | doctor | bench`.

What a command needs is imported in it: `onepass --help` waits for no package that it does not use.
Tables go to standard output and everything else to standard error; with --json standard output holds nothing but one
JSON object per policy and seed. Exit codes: 0, 2 for what cannot be done as asked, 130 after Ctrl-C.
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
FINISHED = "finished"  # the folder of what is played, until all is


def needs(name: str) -> str:
    package = name.partition(".")[0]
    served = dict.fromkeys(("starlette", "uvicorn", "prometheus_client"), "serve")
    known = {"httpx": "client", "msgspec": "log", "psycopg": "postgres", "ray": "ray", "optuna": "optuna", **served}
    extra = known.get(package, "experiment")
    return f"onepass: {package} is missing, which the command line needs: pip install onepass[{extra}]"


try:
    import typer

    from onepass.cli import logs
    from onepass.cli.doctor import doctor
    from onepass.cli.serve import serve
    from onepass.cli.simulate import simulate
except ModuleNotFoundError as missing:
    print(needs(str(missing.name)), file=sys.stderr)
    raise SystemExit(2) from missing

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True)

app.add_typer(logs.app, name="log")
app.command()(serve)
app.command()(doctor)
app.command()(simulate)

Name = Annotated[
    str,
    typer.Argument(metavar="EXPERIMENT", help="A name that `onepass list` shows, or MODULE:NAME of your own."),
]
Rounds = Annotated[int | None, typer.Option(help="Rounds per seed, instead of the experiment's own.")]
Policies = Annotated[
    str | None, typer.Option(metavar="A,B", help="Only these, by label or group; MODULE:NAME is your own.")
]
Out = Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for results.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        help="Processes that play seeds. Default: one a core; one in all where seconds are the subject. What is "
        "finished is kept in DIR/finished until all is, and not played again after a run that was ended."
    ),
]
Ray = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help='Let the workers of this Ray play ("auto", ray://HOST:10001, or "local": one started here).',
    ),
]


def version(asked: bool) -> None:
    if asked:
        print(f"onepass {metadata.version('onepass')}")
        raise typer.Exit


@app.callback()
def onepass(
    _: Annotated[
        bool, typer.Option("--version", callback=version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Learn to decide, online: one pass over the data, bounded memory, regret guarantees."""


@app.command("list")
def list_command(name: Annotated[str | None, typer.Argument(metavar="[EXPERIMENT]")] = None) -> None:
    """List experiments, or the policies of one.

    Experiments in groups, policies with their parameters.
    """
    from onepass.lab import plugins, suites, tables

    print(tables.experiment_list(suites.GROUPS) if name is None else tables.policy_table(plugins.load_experiment(name)))


@app.command()
def run(
    name: Name,
    rounds: Rounds = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds: 0, 1, ... Default: the experiment's own.")] = None,
    policies: Policies = None,
    out: Out = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per policy and seed, nothing else.")] = False,
    tuned: Annotated[Path | None, typer.Option(metavar="FILE", help="Use the parameters `onepass tune` found.")] = None,
    jobs: Jobs = None,
    ray: Ray = None,
) -> None:
    """Run an experiment.

    Leaves Parquet files, a table and a picture in DIR (default: results/EXPERIMENT).
    """
    from onepass.lab import plugins, report, runner, tuning
    from onepass.lab.results import json_line

    experiment = plugins.load_experiment(name)
    chosen = plugins.load_policies(experiment, split(policies))
    if tuned is not None:
        chosen = tuning.apply_tuned_parameters(experiment, chosen, tuned)
    place = out or Path("results", experiment.name)
    publish = lambda results: report.publish(results, place, report.keep, sys.stderr if json else sys.stdout)  # noqa: E731
    results = runner.run(
        experiment,
        policies=chosen,
        seeds=seeds,
        rounds=rounds,
        jobs=jobs,
        ray=ray,
        cache_folder=place / FINISHED,
        callback=publish,
    )
    for row in results.rows if json else []:
        print(json_line(row))
    raise typer.Exit(130 if results.interrupted else 0)


@app.command()
def tune(
    name: Name,
    rounds: Rounds = None,
    seeds: Annotated[int, typer.Option(help="Number of seeds: 1000, 1001, ...; no evaluation uses them.")] = 10,
    policies: Policies = None,
    out: Out = None,
    jobs: Jobs = None,
    ray: Ray = None,
) -> None:
    """Search the parameters of every policy.

    All on one grid; default DIR: results/EXPERIMENT-tuned.
    """
    from onepass.lab import plugins, report, tuning

    experiment = plugins.load_experiment(name)
    chosen = plugins.load_policies(experiment, split(policies))
    place = out or Path("results", f"{experiment.name}-tuned")
    publish = lambda results: report.publish(results, place, report.keep_tuning, sys.stdout)  # noqa: E731
    results = tuning.tune(
        experiment,
        policies=chosen,
        seeds=seeds,
        rounds=rounds,
        jobs=jobs,
        ray=ray,
        cache_folder=place / FINISHED,
        callback=publish,
    )
    raise typer.Exit(130 if results.interrupted else 0)


@app.command("report")
def report_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that run or tune wrote.")],
    figure: Annotated[
        str | None, typer.Option(metavar="MODULE:NAME", help="Your own table and picture, where it has one.")
    ] = None,
    pdf: Annotated[bool, typer.Option("--pdf", help="The picture and each of its panels as PDF, too.")] = False,
) -> None:
    """Make tables and pictures of results again."""
    from onepass.lab import plugins, report

    print(report.rebuild(folder, figure=None if figure is None else plugins.load_figure(figure), paper=pdf))


@app.command()
def bench(
    regret: Annotated[
        bool,
        typer.Option(
            "--regret", help="Regret against its bars instead (MNIST, heavy tails, kernels, learners; 20 minutes)."
        ),
    ] = False,
) -> None:
    """Print the speed of a round, as ratios.

    To what it cannot do without, and to plain NumPy.
    """
    from onepass.lab import benchmark

    print(benchmark.regret() if regret else benchmark.speed())


@app.command()
def evaluate(
    path: Annotated[
        str, typer.Argument(metavar="LOG", help="A file (.dsjson, .vw, .csv, .npz, also with .gz), or a store.")
    ],
    policy: Annotated[
        list[str],
        typer.Option(
            help="uniform, logged, always:ARM, MODULE:NAME (in the current folder, too) or the file of a saved "
            "bandit, which takes features as they are: rows of numbers, or JSON; may be repeated."
        ),
    ],
    form: Annotated[
        str | None, typer.Option("--format", help="dsjson, vw, csv or obp. Default: by the ending.")
    ] = None,
    features: Annotated[
        str | None, typer.Option(metavar="A,B", help="Columns of a CSV file, or MODULE:NAME of a function.")
    ] = None,
    arms: Annotated[
        str | None, typer.Option(metavar="A,B", help="Names of all arms of a CSV file. Default: those of its rows.")
    ] = None,
    least: Annotated[float, typer.Option(help="The least reward that there can be.")] = 0.0,
    largest: Annotated[float, typer.Option(help="The largest reward that there can be.")] = 1.0,
    level: Annotated[float, typer.Option(help="Of all limits.")] = 0.95,
    weight_bound: Annotated[float | None, typer.Option(help="The largest weight that there can be.")] = None,
    skip: Annotated[
        bool,
        typer.Option("--skip", help="Leave out bad lines and decisions, and say which; else the first one ends it."),
    ] = False,
    loop: Annotated[str | None, typer.Option(metavar="NAME", help="Of a store: only this loop. Default: all.")] = None,
    keep_probability: Annotated[
        float | None, typer.Option(help="Lines kept with a higher probability (pdrop) are thinned to this one.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per policy, nothing else.")] = False,
) -> None:
    """Say what other policies would have earned.

    By a log: values, limits, and whether to believe them.
    """
    from onepass.evaluation import files
    from onepass.lab.errors import ExperimentError
    from onepass.lab.progress import Meter

    try:
        with Meter(f"evaluate {Path(path).name}", files.count_decisions(path, form), quiet=json) as meter:
            found = files.evaluate_file(
                path, policy, format=form, features=features, arms=split(arms),
                reward_range=(least, largest), level=level,
                weight_bound=weight_bound, loop=loop, keep_probability=keep_probability,
                bad="skip" if skip else "refuse",
                report=lambda where, reason: print(f"{path}, {where}: {reason}", file=sys.stderr),
                progress=lambda rows: meter.advance(rows - meter.done),
            )  # fmt: skip
    except (ValueError, OSError) as error:
        raise ExperimentError(str(error)) from None
    print(files.to_json_lines(found) if json else files.format_table(found))


@app.command("compile")
def compile_command(
    names: Annotated[list[str] | None, typer.Argument(metavar="[RECIPE]...", help="Only these.")] = None,
) -> None:
    """Compile ahead all that the recipes need.

    Fills the cache, for images and before first requests; some minutes, once on a machine.
    """
    from onepass.precompile import main

    raise typer.Exit(main(names or ()))


def split(names: str | None) -> list[str] | None:
    return None if names is None else [name.strip() for name in names.split(",") if name.strip()]


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point; what the user can put right is said in one sentence, with exit code 2."""
    try:
        app(arguments, prog_name="onepass")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in EXTRAS:
            raise
        print(needs(str(error.name)), file=sys.stderr)
    except ValueError as error:
        from onepass.lab.errors import ExperimentError

        if not isinstance(error, ExperimentError):
            raise
        print(f"onepass: {error}", file=sys.stderr)
    sys.exit(2)
