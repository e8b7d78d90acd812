"""`onepass doctor --data DIR LOOP.toml ...`: is a service in order, running or not?

Exit codes: 0, 1 where something is broken, 2 for what cannot be done as asked.
"""

import json
from pathlib import Path
from typing import Annotated

import typer

Loops = Annotated[list[Path] | None, typer.Argument(metavar="[LOOP.toml...]", help="Settings. Default: by the logs.")]
Data = Annotated[Path, typer.Option(metavar="DIR", help="Folder of logs and checkpoints.")]
Log = Annotated[str | None, typer.Option(metavar="postgresql://...", envvar="ONEPASS_LOG", help="As `onepass serve`.")]
Quick = Annotated[bool, typer.Option("--quick", help="Do not walk through the logs.")]
Json = Annotated[bool, typer.Option("--json", help="A line of JSON for every finding, nothing else.")]


def doctor(
    loops: Loops = None, data: Data = Path("data"), log: Log = None, quick: Quick = False, as_json: Json = False
) -> None:
    """Say whether a service is in order.

    Its settings, folder, disk, logs, checkpoints and clock (docs/hosting.md).
    """
    from onepass.service.doctor import examine

    broken = False
    for found in examine(data, loops or (), log, quick):
        broken = broken or found.state == "broken"
        whose = f"{found.loop}: " if found.loop else ""
        print(json.dumps(found._asdict()) if as_json else f"{found.state:6}  {found.what:10}  {whose}{found.sentence}")
    raise typer.Exit(1 if broken else 0)
