"""Commands `onepass log verify | import | export | replay | backup | seal | drop | forget`.

STORE is an SQLite file, a folder of Parquet files, postgresql://..., or a file of JSON lines (.jsonl), which is only
read. Exit codes: 0, 1 if the log is damaged or its decisions cannot be reproduced, 2 if the arguments are wrong.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

STEP = 1_000  # records between two updates of the progress bar

app = typer.Typer(
    help="Logs of decisions: verify, import, export, replay, backup, seal, drop, forget.", no_args_is_help=True
)

StorePath = Annotated[str, typer.Argument(metavar="STORE", help="FILE, FOLDER, FILE.jsonl or postgresql://...")]
Loop = Annotated[str | None, typer.Option(metavar="NAME", help="Only this loop. Default: all.")]
Model = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="File of the bandit that the log began with. Default: a checkpoint of the log."),
]
Form = Annotated[
    str | None,
    typer.Option(
        "--format", help="records, dsjson, vw, csv or obp. Default: by the file's ending; .jsonl holds records."
    ),
]
Until = Annotated[int | None, typer.Option(metavar="SEQ", help="Sequence number of the last record. Default: the end.")]
Data = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Folder of `onepass serve --data`. Default: the folder of STORE.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else.")]


@app.command()
def verify(
    store: StorePath,
    loop: Loop = None,
    model: Model = None,
    since: Annotated[
        str,
        typer.Option(metavar="SEQ|DATE", help="Begin with the last checkpoint before this that holds its model."),
    ] = "0",
    until: Until = None,
    workers: Annotated[int, typer.Option(metavar="N", help="Number of processes, each of which verifies pieces.")] = 1,
    again: Annotated[bool, typer.Option("--all", help="Also verify sealed months that were verified earlier.")] = False,
    as_json: Json = False,
) -> None:
    """Check a store for damage, and repeat all its decisions.

    Compares every probability to the last bit.
    """
    from functools import partial

    from onepass.log.parallel import verify_all
    from onepass.service.share_verification import verify_shares

    if model is not None:
        with _report_errors():
            if workers != 1 or since != "0":
                raise ValueError("--model verifies the whole log in one pass: leave out --workers and --since")
            _verify_from(store, loop, model, until, as_json)
    with _report_errors(), _open_store(store) as log:
        begin, records = _seq_before(log, since, "--since"), len(log)
        access = log.open_view if workers == 1 else partial(_open_store, store)
        with _progress_of_counts("verify", 2 * (log.last - begin), as_json) as progress:
            report = verify_all(access, loop, workers=workers, since=begin, until=until, again=again, progress=progress)
        shares = {name: verify_shares(log, name, until) for name in ([] if report.damages else report.loops)}
    results = {
        name if len(models) == 1 else f"{name}, model {line}": _plain_result(result)
        for name, models in report.loops.items()
        for line, result in models.items()
    }
    reasons = {
        name: {"reason": f"loop {name!r} has no checkpoint with its model: give the bandit it began with"}
        for name in report.unplaced
    }
    damages = [damage._asdict() for damage in report.damages]
    ok = report.ok and not (loop is not None and reasons) and all(one.ok for one in shares.values())
    parts: dict[str, Any] = {"ok": ok, "records": records, "damages": damages, "loops": {**results, **reasons}}
    if report.earlier:
        parts["decisions verified earlier"] = report.earlier
    if any(one.decisions for one in shares.values()):
        parts["shares beside a baseline"] = {name: one._asdict() for name, one in shares.items() if one.decisions}
    _show(parts, as_json)
    raise typer.Exit(0 if ok else 1)


def _verify_from(store: str, loop: str | None, model: Path, until: int | None, as_json: bool) -> None:
    """Verify the first model of each loop, starting from a saved bandit, and later models from their first checkpoints.

    `store` is the place of the store, `loop` the name of the only loop to verify (None: all), and `model` the file of
    the bandit. `until` is the last sequence number, None for the end.
    """
    from onepass.log.model_lineage import read_lineage
    from onepass.log.replay import Fold
    from onepass.log.verification import verify as verify_fold

    with _open_store(store) as log:
        damages = [damage._asdict() for damage in log.check()]
        results: dict[str, Any] = {}
        ok = not damages
        for name in [] if damages else [loop] if loop is not None else _loop_names(log):
            models = list(read_lineage(log, name).each) or [0]
            for line in models:
                first = line == models[0]
                fold = Fold(log, name, _load_bandit(model)) if first else Fold.resume(log, name, first=True, line=line)
                title = name if len(models) == 1 else f"{name}, model {line}"
                with _progress_of_seqs(f"verify {title}", log.last - fold.through, as_json) as report:
                    result = verify_fold(fold, until, report)
                results[title] = _plain_result(result)
                ok = ok and result.ok
        _show({"ok": ok, "records": len(log), "damages": damages, "loops": results}, as_json)
    raise typer.Exit(0 if ok else 1)


def _plain_result(result: Any) -> dict[str, Any]:
    """Return the result of a verification as plain data, for JSON."""
    return {**result._asdict(), "mismatches": [mismatch._asdict() for mismatch in result.mismatches]}


@app.command("import")
def import_command(
    store: StorePath,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="File to store.")],
    form: Form = None,
    loop: Annotated[str | None, typer.Option(metavar="NAME", help="Loop to store the records under.")] = None,
    skip: Annotated[
        bool, typer.Option("--skip", help="Leave out bad lines and name them. Default: stop at the first.")
    ] = False,
    default_reward: Annotated[
        float | None,
        typer.Option(
            metavar="REWARD",
            help="Join every decision of a file of events with its outcomes, or with this reward if it has none, so "
            "that a replay learns it. Default: leave it to a service to join them by its settings.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Store the records or the events of a file.

    Records that the store already has are not stored twice. Events that the loop's model cannot learn are refused.
    """
    from onepass.log.import_export import import_file

    bad: list[tuple[int, str]] = []
    with _report_errors():
        if not path.exists():  # before the store, which would be made
            raise ValueError(f"there is no file {path}")
    with _report_errors(), _open_store(store, readonly=False) as log:
        with _progress_of_seqs(f"import {path.name}", None, as_json) as progress:
            counts = import_file(
                log,
                path,
                form,
                loop=loop,
                bad="skip" if skip else "refuse",
                report=lambda number, reason: bad.append((number, reason)),
                progress=progress,
                default=default_reward,
            )
        _show({"counts": dict(counts), "bad": bad, "last": log.last}, as_json)


@app.command()
def export(
    store: StorePath,
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="File to write, also with .gz. It appears when it is complete.")
    ],
    form: Form = None,
    loop: Loop = None,
    since: Annotated[
        str,
        typer.Option(metavar="SEQ|DATE", help="Begin after this sequence number, or with this day in UTC: 2026-11-01."),
    ] = "0",
    until: Until = None,
    as_json: Json = False,
) -> None:
    """Write the records of a store to a file.

    In the formats of other programs, write its events.
    """
    from onepass.log.import_export import export_file

    with _report_errors(), _open_store(store) as log:
        if loop is not None and next(log.read(loop=loop), None) is None:
            raise ValueError(f"--loop must name a loop of the log, got {loop}")
        begin = _seq_before(log, since, "--since")
        with _progress_of_seqs(f"export {path.name}", log.last - begin, as_json) as progress:
            count = export_file(log, path, form, loop=loop, since=begin, until=until, progress=progress)
        _show({"written": count, "file": str(path)}, as_json)


@app.command()
def replay(
    store: StorePath,
    out: Annotated[Path, typer.Option(metavar="FILE", help="File to save the bandit in.")],
    loop: Loop = None,
    model: Model = None,
    until: Until = None,
    as_json: Json = False,
) -> None:
    """Learn a log again, and save the model.

    Learning starts from the last checkpoint of the log, or from the bandit of --model.
    """
    from onepass.log.replay import Fold

    with _report_errors(), _open_store(store) as log:
        names = [loop] if loop is not None else _loop_names(log)
        if len(names) != 1:
            raise ValueError(f"--loop must name one of the loops: {', '.join(names) or 'there are none'}")
        first = _load_bandit(model)
        fold = Fold.resume(log, names[0]) if first is None else Fold(log, names[0], first)
        begin, joins, end = fold.through, 0, log.last if until is None else until
        with _progress_of_seqs(f"replay {names[0]}", end - begin, as_json) as report:
            for seq in [*range(begin + STEP, end, STEP), end]:
                joins += fold.advance(seq)
                report(seq)
        fold.bandit.save(out)
        _show({"from": begin, "through": fold.through, "joins": joins, "saved": str(out)}, as_json)


@app.command()
def backup(
    store: StorePath, path: Annotated[Path, typer.Argument(metavar="FILE", help="New file.")], as_json: Json = False
) -> None:
    """Copy an SQLite store, even while it is in use.

    FILE holds the store as it was at one moment, and can replace it after a loss.
    """
    from onepass.log.sqlite import SqliteStore

    with _report_errors(), _open_store(store) as log:
        if not isinstance(log, SqliteStore):
            raise ValueError(
                f"store must be an SQLite file, got {store}: copy a database with pg_dump, and a folder with cp"
            )
        last = log.backup(path)
    _show({"ok": True, "path": str(path), "last": last}, as_json)


@app.command("seal")
def seal_command(
    store: StorePath,
    archive: Annotated[
        str, typer.Argument(metavar="ARCHIVE", help="FOLDER of Parquet files. It is created if needed.")
    ],
    days: Annotated[int | None, typer.Option(min=1, help="Keep the records of so many days.")] = None,
    before: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="Instead of --days: keep the records from this day or moment on, in UTC."),
    ] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Move the oldest months into an archive.

    Every month is read back from the archive before it is deleted from the store. The command is refused if a loop of
    the service would need the records at its next start.
    """
    from datetime import UTC, datetime, timedelta

    from onepass.log.archive import seal
    from onepass.log.parquet import ParquetStore
    from onepass.service.checkpoints import refuse_loss

    folder = Path(store).parent if data is None else data
    with _report_errors(), _open_store(store, readonly=False) as log, ParquetStore(archive) as target:
        if (days is None) == (before is None):
            raise ValueError("either --days or --before must be given")
        end = _parse_moment(before, "--before") if before is not None else datetime.now(UTC) - timedelta(days=days or 1)
        months = seal(log, target, end, lambda last: refuse_loss(folder, log, last))
    _show({"ok": True, "archive": archive, "months": dict(months)}, as_json)


@app.command()
def drop(
    store: StorePath,
    before: Annotated[
        str,
        typer.Option(metavar="SEQ|DATE", help="Sequence number of the first record to keep, or a day: 2026-11-01."),
    ],
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Delete the oldest records for good.

    The command is refused if a loop of the service would need the records at its next start.
    """
    from onepass.service.checkpoints import refuse_loss

    folder = Path(store).parent if data is None else data
    with _report_errors(), _open_store(store, readonly=False) as log:
        first = _seq_before(log, before, "--before") + (0 if _is_seq(before) else 1)
        if not 1 <= first <= log.last + 1:
            raise ValueError(f"--before must be a sequence number from 1 to {log.last + 1}, or a date, got {before}")
        if first > log.first:
            refuse_loss(folder, log, first - 1)
        _show({"ok": True, "dropped": log.drop_before(first), "first": first}, as_json)


@app.command()
def forget(
    store: StorePath,
    subjects: Annotated[list[str], typer.Argument(metavar="SUBJECT...", help="Subjects, as the decisions name them.")],
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Delete all records about a subject.

    The log must not be in use by a service; ask a running service with POST /v1/NAME/forget. A model keeps what it has
    learned from the records.
    """
    from onepass.service.doctor import is_served

    folder = Path(store).parent if data is None else data
    with _report_errors():
        if is_served(folder):
            raise ValueError(f"a service uses {folder}: ask it by POST /v1/NAME/forget, or stop it first")
        with _open_store(store, readonly=False) as log:
            _show({"ok": True, "forgotten": {subject: log.forget(subject) for subject in subjects}}, as_json)


def _is_seq(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _seq_before(log: Any, text: str, option: str) -> int:
    """Return the sequence number in `text`, the value of an option.

    If `text` is a day or a moment, it is the sequence number of the last record before it. `log` is the store, and
    `option` the name of the option, for errors.
    """
    if _is_seq(text):
        return int(text)
    from onepass.log.archive import first_since

    return int(first_since(log, _parse_moment(text, option))) - 1


def _parse_moment(text: str, option: str) -> Any:
    """Return a date or a moment as a datetime, in UTC if it names no time zone. `option` is the option's name."""
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        message = f"{option} must be a sequence number of the log, or a date such as 2026-11-01, got {text}"
        raise ValueError(message) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _open_store(path: str, readonly: bool = True) -> Any:
    from onepass.log.open_store import open_store

    return open_store(path, readonly=readonly)


def _load_bandit(path: Path | None) -> Any:
    """Return the bandit of a file, or None without a file."""
    if path is None:
        return None
    from onepass import load

    return load(path)


def _loop_names(log: Any) -> list[str]:
    """Return the loops of a store that have decisions, in the order of their first ones."""
    return list(Counter(decision.loop for decision in log.read(kinds=["decision"])))


@contextmanager
def _report_errors() -> Iterator[None]:
    """Print an error that the user can correct as one sentence, and exit with code 2."""
    try:
        yield
    except (ValueError, OSError) as error:
        print(f"onepass: {error}", file=sys.stderr)
        raise typer.Exit(2) from None


@contextmanager
def _progress_of_seqs(title: str, total: int | None, quiet: bool) -> Iterator[Callable[[int], object]]:
    """Show progress while a caller reports sequence numbers, of which `total` will pass; None if nobody knows.

    The first number it reports is the start. `title` stands before the progress, and nothing is shown if `quiet`. The
    context manager gives the function to call with each number.
    """
    from onepass.lab.progress import Meter

    with Meter(title, None if total is None else max(total, 1), quiet) as meter:
        last: list[int] = []

        def report(seq: int) -> None:
            last[:] = last or [seq]
            if seq - last[0] >= STEP:
                meter.advance(seq - last[0])
                last[0] = seq

        yield report


@contextmanager
def _progress_of_counts(title: str, total: int, quiet: bool) -> Iterator[Callable[[int], object]]:
    """Show progress while a caller reports numbers of finished records, `total` in all.

    `title` stands before the progress, and nothing is shown if `quiet`. The context manager gives the function to call
    with the number of records finished since the last call.
    """
    from onepass.lab.progress import Meter

    with Meter(title, max(total, 1), quiet) as meter:
        yield meter.advance


def _show(result: dict[str, Any], as_json: bool) -> None:
    """Print a result as JSON, or line by line."""
    if as_json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        parts = value.items() if isinstance(value, dict) else []
        print(f"{name}: {value}" if not parts else f"{name}:")
        for key, part in parts:
            print(f"  {key}: {part}")
