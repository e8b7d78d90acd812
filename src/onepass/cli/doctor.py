"""Command `onepass doctor --data DIR LOOP.toml ...`: checks a service, running or not.

Exit codes: 0, 1 if something is broken, 2 if the arguments are wrong.
"""

import json
from pathlib import Path
from typing import Annotated

import typer

Loops = Annotated[
    list[Path] | None,
    typer.Argument(metavar="[LOOP.toml...]", help="Settings, one file per loop. Default: the loops of the logs."),
]
Data = Annotated[Path, typer.Option(metavar="DIR", help="Folder of logs and checkpoints.")]
Log = Annotated[
    str | None,
    typer.Option(metavar="postgresql://...", envvar="ONEPASS_LOG", help="Log of all loops, as for `onepass serve`."),
]
Quick = Annotated[bool, typer.Option("--quick", help="Do not read the logs through.")]
Json = Annotated[bool, typer.Option("--json", help="Print one line of JSON per finding, and nothing else.")]


def doctor(
    loops: Loops = None, data: Data = Path("data"), log: Log = None, quick: Quick = False, as_json: Json = False
) -> None:
    """Check the installation of a service.

    Looks at its settings, folder, disk, logs, checkpoints and clock (docs/hosting.md).
    """
    from onepass.service.doctor import examine

    broken = False
    for finding in examine(data, loops or (), log, quick):
        broken = broken or finding.state == "broken"
        loop = f"{finding.loop}: " if finding.loop else ""
        line = f"{finding.state:6}  {finding.what:10}  {loop}{finding.sentence}"
        print(json.dumps(finding._asdict()) if as_json else line)
    raise typer.Exit(1 if broken else 0)
