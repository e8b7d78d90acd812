"""`onepass log verify | import | export | replay | backup | seal | drop | forget`: what a log says, checked, taken in,
given out, learned again, kept, deleted.

STORE is a file of SQLite, a folder of Parquet files, postgresql://..., or a file of JSON lines (.jsonl), which is read.
Exit codes: 0, 1 for a log that is damaged or does not say the truth, 2 for what cannot be done as asked.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

STEP = 1_000  # records between two signs of progress

app = typer.Typer(
    help="Logs of decisions: verify, import, export, replay, backup, seal, drop, forget.", no_args_is_help=True
)

Place = Annotated[str, typer.Argument(metavar="STORE", help="FILE, FOLDER, FILE.jsonl or postgresql://...")]
Loop = Annotated[str | None, typer.Option(metavar="NAME", help="Only this loop. Default: all.")]
Model = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The bandit it began with. Default: a checkpoint of the log.")
]
Form = Annotated[
    str | None,
    typer.Option("--format", help="records, dsjson, vw, csv or obp. Default: by the ending, .jsonl records."),
]
Until = Annotated[int | None, typer.Option(metavar="PLACE", help="The last record. Default: the end.")]
Data = Annotated[Path | None, typer.Option(metavar="DIR", help="Of `onepass serve --data`. Default: where STORE is.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output, nothing else.")]


@app.command()
def verify(
    store: Place,
    loop: Loop = None,
    model: Model = None,
    since: Annotated[
        str, typer.Option(metavar="PLACE|DATE", help="Begin with the last checkpoint before, that holds its model.")
    ] = "0",
    until: Until = None,
    workers: Annotated[int, typer.Option(metavar="N", help="Processes, each of which verifies pieces.")] = 1,
    again: Annotated[bool, typer.Option("--all", help="Also sealed months that were verified earlier.")] = False,
    as_json: Json = False,
) -> None:
    """Check a store, and decide everything again.

    Looks for damage, and compares every probability to the last bit.
    """
    from functools import partial

    from onepass.log.parallel import verify_all

    if model is not None:
        with said():
            if workers != 1 or since != "0":
                raise ValueError("--model begins at the beginning, in one pass: leave out --workers and --since")
            verify_from(store, loop, model, until, as_json)
    with said(), opened(store) as log:
        begin, records = place_of(log, since, "--since"), len(log)
        access = log.open_view if workers == 1 else partial(opened, store)
        with progress("verify", 2 * (log.last - begin), as_json) as told:
            report = verify_all(access, loop, workers=workers, since=begin, until=until, again=again, progress=told)
    found = {
        name if len(each) == 1 else f"{name}, model {line}": listed(one)
        for name, each in report.loops.items()
        for line, one in each.items()
    }
    reasons = {
        name: {"reason": f"loop {name!r} has no checkpoint with its model: give the bandit it began with"}
        for name in report.unplaced
    }
    damages = [one._asdict() for one in report.damages]
    ok = report.ok and not (loop is not None and reasons)
    parts: dict[str, Any] = {"ok": ok, "records": records, "damages": damages, "loops": {**found, **reasons}}
    if report.earlier:
        parts["decisions verified earlier"] = report.earlier
    show(parts, as_json)
    raise typer.Exit(0 if ok else 1)


def verify_from(store: str, loop: str | None, model: Path, until: int | None, as_json: bool) -> None:
    """Verify the first model of each loop from a bandit on, and later ones from their first checkpoints."""
    from onepass.log.model_lineage import read_lineage
    from onepass.log.replay import Fold
    from onepass.log.verification import verify as again

    with opened(store) as log:
        damages = [damage._asdict() for damage in log.check()]
        found: dict[str, Any] = {}
        ok = not damages
        for name in [] if damages else [loop] if loop is not None else loops(log):
            models = list(read_lineage(log, name).each) or [0]
            for line in models:
                first = line == models[0]
                fold = Fold(log, name, begun(model)) if first else Fold.resume(log, name, first=True, line=line)
                title = name if len(models) == 1 else f"{name}, model {line}"
                with meter(f"verify {title}", log.last - fold.through, as_json) as told:
                    result = again(fold, until, told)
                found[title] = listed(result)
                ok = ok and result.ok
        show({"ok": ok, "records": len(log), "damages": damages, "loops": found}, as_json)
    raise typer.Exit(0 if ok else 1)


def listed(found: Any) -> dict[str, Any]:
    """What verifying found, for JSON."""
    return {**found._asdict(), "mismatches": [one._asdict() for one in found.mismatches]}


@app.command("import")
def import_command(
    store: Place,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="What to store.")],
    form: Form = None,
    loop: Annotated[str | None, typer.Option(metavar="NAME", help="The loop that records shall be of.")] = None,
    skip: Annotated[bool, typer.Option("--skip", help="Leave bad lines out and name them; else stop.")] = False,
    default: Annotated[
        float | None,
        typer.Option(
            metavar="REWARD",
            help="Of events: join every decision with its outcomes, or with this reward where there are none, so that "
            "a replay learns it. Without it a service joins by its own settings.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Store the records, or the events, of a file.

    What is there already is not stored twice. Events that the loop's model cannot learn are refused.
    """
    from onepass.log.import_export import import_file

    bad: list[tuple[int, str]] = []
    with said(), opened(store, readonly=False) as log:
        if not path.exists():
            raise ValueError(f"there is no file {path}")
        with meter(f"import {path.name}", 0, as_json) as told:
            counts = import_file(
                log,
                path,
                form,
                loop=loop,
                bad="skip" if skip else "refuse",
                report=lambda number, reason: bad.append((number, reason)),
                progress=told,
                default=default,
            )
        show({"counts": dict(counts), "bad": bad, "last": log.last}, as_json)


@app.command()
def export(
    store: Place,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A file, also with .gz, that appears when it is whole.")],
    form: Form = None,
    loop: Loop = None,
    since: Annotated[
        str, typer.Option(metavar="PLACE|DATE", help="The record after which to begin, or a day: 2026-11-01, of UTC.")
    ] = "0",
    until: Until = None,
    as_json: Json = False,
) -> None:
    """Write the records of a store to a file.

    Or its events, in a format of others.
    """
    from onepass.log.import_export import export_file

    with said(), opened(store) as log:
        begin = place_of(log, since, "--since")
        with meter(f"export {path.name}", log.last - begin, as_json) as told:
            count = export_file(log, path, form, loop=loop, since=begin, until=until, progress=told)
        show({"written": count, "file": str(path)}, as_json)


@app.command()
def replay(
    store: Place,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to save the bandit.")],
    loop: Loop = None,
    model: Model = None,
    until: Until = None,
    as_json: Json = False,
) -> None:
    """Learn a log again, and save the model.

    From its last checkpoint, or from a bandit.
    """
    from onepass.log.replay import Fold

    with said(), opened(store) as log:
        names = [loop] if loop is not None else loops(log)
        if len(names) != 1:
            raise ValueError(f"--loop must name one of the loops: {', '.join(names) or 'there are none'}")
        first = begun(model)
        fold = Fold.resume(log, names[0]) if first is None else Fold(log, names[0], first)
        begin, joins, end = fold.through, 0, log.last if until is None else until
        with meter(f"replay {names[0]}", end - begin, as_json) as told:
            for place in [*range(begin + STEP, end, STEP), end]:
                joins += fold.advance(place)
                told(place)
        fold.bandit.save(out)
        show({"from": begin, "through": fold.through, "joins": joins, "saved": str(out)}, as_json)


# ---- what they share ----


@app.command()
def backup(
    store: Place, path: Annotated[Path, typer.Argument(metavar="FILE", help="A new file.")], as_json: Json = False
) -> None:
    """Copy a store of SQLite, while it is used.

    As it is at one moment: FILE takes its place after a loss.
    """
    from onepass.log.sqlite import SqliteStore

    with said(), opened(store) as log:
        if not isinstance(log, SqliteStore):
            raise ValueError(f"store must be a file of SQLite, got {store}: a database has pg_dump, a folder is copied")
        last = log.backup(path)
    show({"ok": True, "path": str(path), "last": last}, as_json)


@app.command("seal")
def seal_command(
    store: Place,
    archive: Annotated[str, typer.Argument(metavar="ARCHIVE", help="FOLDER of Parquet files, made where needed.")],
    days: Annotated[int | None, typer.Option(min=1, help="Keep what is younger.")] = None,
    before: Annotated[
        str | None, typer.Option(metavar="DATE", help="Instead: keep what is from this day on, or moment, of UTC.")
    ] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Move the oldest months into an archive.

    Month by month, each read back before it is deleted from the store. Refused where a loop of the service would need
    what goes at its next start.
    """
    from datetime import UTC, datetime, timedelta

    from onepass.log.archive import seal
    from onepass.log.parquet import ParquetStore
    from onepass.service.checkpoints import refuse_loss

    folder = Path(store).parent if data is None else data
    with said(), opened(store, readonly=False) as log, ParquetStore(archive) as target:
        if (days is None) == (before is None):
            raise ValueError("either --days or --before must be given")
        end = moment_of(before, "--before") if before is not None else datetime.now(UTC) - timedelta(days=days or 1)
        months = seal(log, target, end, lambda last: refuse_loss(folder, log, last))
    show({"ok": True, "archive": archive, "months": dict(months)}, as_json)


@app.command()
def drop(
    store: Place,
    before: Annotated[
        str, typer.Option(metavar="PLACE|DATE", help="The first record to keep, or a day: 2026-11-01, of UTC.")
    ],
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Delete the oldest records, for ever.

    Refused where a loop of the service would need what goes at its next start.
    """
    from onepass.service.checkpoints import refuse_loss

    folder = Path(store).parent if data is None else data
    with said(), opened(store, readonly=False) as log:
        place = place_of(log, before, "--before", first=True)
        if not 1 <= place <= log.last + 1:
            raise ValueError(f"--before must be a place from 1 to {log.last + 1}, or a day, got {before}")
        if place > log.first:
            refuse_loss(folder, log, place - 1)
        show({"ok": True, "dropped": log.drop_before(place), "first": place}, as_json)


@app.command()
def forget(
    store: Place,
    subjects: Annotated[list[str], typer.Argument(metavar="SUBJECT...", help="As decisions named them.")],
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Delete all that is about a subject.

    Of a service that is stopped, or of a log without one; a running service is asked by POST /v1/NAME/forget. What a
    model has learned of a subject it still knows.
    """
    from onepass.service.doctor import is_served

    folder = Path(store).parent if data is None else data
    with said():
        if is_served(folder):
            raise ValueError(f"a service uses {folder}: ask it by POST /v1/NAME/forget, or stop it first")
        with opened(store, readonly=False) as log:
            show({"ok": True, "forgotten": {one: log.forget(one) for one in subjects}}, as_json)


def place_of(log: Any, text: str, option: str, first: bool = False) -> int:
    """A place of a log, given as such, or as a day or moment: the place before the first record from then on.

    option: the name of the option that gave it; first: that of this first record instead (default False).
    """
    if text.isascii() and text.isdigit():
        return int(text)
    from onepass.log.archive import first_since

    found = int(first_since(log, moment_of(text, option)))
    return found if first else found - 1


def moment_of(day: str, option: str) -> Any:
    """A day, or a moment, as a datetime in UTC; ValueError for text that is none. option: the name of what gave it."""
    from datetime import UTC, datetime

    try:
        found = datetime.fromisoformat(day)
    except ValueError:
        raise ValueError(f"{option} must be a place of the log, or a day as 2026-11-01, got {day}") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def opened(store: str, readonly: bool = True) -> Any:
    from onepass.log.open_store import open_store as at

    return at(store, readonly=readonly)


def begun(model: Path | None) -> Any:
    """The bandit of a file."""
    if model is None:
        return None
    from onepass import load

    return load(model)


def loops(log: Any) -> list[str]:
    """The loops of a store that have decisions, in the order of the first ones."""
    return list(Counter(one.loop for one in log.read(kinds=["decision"])))


@contextmanager
def said() -> Iterator[None]:
    """What the user can put right is said in one sentence, with exit code 2."""
    try:
        yield
    except (ValueError, OSError) as error:
        print(f"onepass: {error}", file=sys.stderr)
        raise typer.Exit(2) from None


@contextmanager
def meter(title: str, total: int, quiet: bool) -> Iterator[Callable[[int], object]]:
    """Progress by places: the first one told is where it begins."""
    from onepass.lab.progress import Meter

    with Meter(title, max(total, 1), quiet) as shown:
        before: list[int] = []

        def told(place: int) -> None:
            before[:] = before or [place]
            if place - before[0] >= STEP:
                shown.advance(place - before[0])
                before[0] = place

        yield told


@contextmanager
def progress(title: str, total: int, quiet: bool) -> Iterator[Callable[[int], object]]:
    """Progress by numbers of places that are done."""
    from onepass.lab.progress import Meter

    with Meter(title, max(total, 1), quiet) as shown:
        yield shown.advance


def show(found: dict[str, Any], as_json: bool) -> None:
    """A result as JSON, or as lines."""
    if as_json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        parts = value.items() if isinstance(value, dict) else []
        print(f"{name}: {value}" if not parts else f"{name}:")
        for key, part in parts:
            print(f"  {key}: {part}")
