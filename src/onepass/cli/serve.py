"""Command `onepass serve --data DIR LOOP.toml ...`: decides and takes rewards over HTTP.

Exit codes: 0 after a signal, 2 if the arguments are wrong or the service cannot start.
"""

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

Loops = Annotated[list[Path] | None, typer.Argument(metavar="LOOP.toml...", help="Settings, one file per loop.")]
Data = Annotated[Path, typer.Option(metavar="DIR", help="Folder of logs and checkpoints.")]
Host = Annotated[
    str, typer.Option(help="Address to listen on. Other machines can reach the service only if it has keys.")
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port, or 0 for any free one.")]
Log = Annotated[
    str | None,
    typer.Option(
        metavar="postgresql://...",
        envvar="ONEPASS_LOG",
        help="One log for all loops. Default: an SQLite file per loop.",
    ),
]
Workers = Annotated[
    int,
    typer.Option("--workers", min=0, help="Processes that decide; 0: the process that writes and learns also decides."),
]
Connections = Annotated[int, typer.Option(min=1, help="Maximum number of connections of each process.")]
Standby = Annotated[bool, typer.Option("--standby", help="Wait until another service of the same loops ends.")]
Check = Annotated[bool, typer.Option("--check", help="Only check the settings files.")]
Compile = Annotated[
    bool, typer.Option("--compile", help="Only compile the code that the loops need, as for a container image.")
]
NewKey = Annotated[
    str | None, typer.Option(metavar="ROLES", help="Print a new key with these roles: decide,reward,read,admin.")
]
Demo = Annotated[bool, typer.Option("--demo", help="Add a loop with simulated visitors.")]
Pem = Annotated[Path | None, typer.Option(metavar="FILE", help="PEM file for TLS.")]


def serve(
    loops: Loops = None,
    data: Data = Path("data"),
    host: Host = "127.0.0.1",
    port: Port = 8080,
    log: Log = None,
    workers: Workers = 0,
    connections: Connections = 1_000,
    standby: Standby = False,
    check: Check = False,
    compile_only: Compile = False,
    demo: Demo = False,
    new_key: NewKey = None,
    certificate: Pem = None,
    private_key: Pem = None,
) -> None:
    """Decide and take rewards over HTTP.

    Every decision is in a durable log before it is answered (docs/service.md).
    """
    from onepass.service import first_model, keys, loop, server, settings, simulation

    loops, visitors = [*([simulation.SETTINGS] if demo else ()), *(loops or ())], list[subprocess.Popen[bytes]]()

    def announce_wait() -> None:
        print("onepass: another process serves; waiting for its end", file=sys.stderr, flush=True)

    def announce_address(address: str) -> None:
        print(f"onepass: listening at {address}", file=sys.stderr, flush=True)
        if demo:
            print(f"onepass: the page is {address}/demo", file=sys.stderr, flush=True)
            visitors.append(subprocess.Popen([sys.executable, "-m", "onepass", "simulate", address]))

    try:
        if new_key is not None:
            key, lines = keys.make_key(new_key.split(","))
            print(lines)
            print(f"The key, which is stored nowhere: {key}", file=sys.stderr)
            return
        if not loops:
            raise ValueError("name the settings of a loop: onepass serve LOOP.toml")
        if check or compile_only:
            for path, (content, _) in zip(loops, settings.read_files(loops), strict=True):
                first_model.check_source(content.model)
                if compile_only:
                    loop.compile_paths(settings.make_bandit(content), content)
                print(f"{path}: loop {content.name} is {'compiled' if compile_only else 'right'}")
            return
        server.serve(
            data, loops, host=host, port=port, log=log, workers=workers, connections=connections,
            certificate=certificate, private_key=private_key, listening=announce_address,
            standby=announce_wait if standby else None,
        )  # fmt: skip
    except (ValueError, OSError) as error:
        for line in str(error).splitlines():
            print(f"onepass: {line}", file=sys.stderr)
        raise typer.Exit(2) from None
    finally:
        for process in visitors:
            process.terminate()
            process.wait()
