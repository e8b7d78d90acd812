"""`onepass simulate [URL]`: simulated visitors for a service, to look at its page.

Exit codes: 0 after its time, 2 where nothing answers, or the service refuses.
"""

import os
import sys
from typing import Annotated

import typer

Url = Annotated[str, typer.Argument(metavar="URL", help="Of a service that runs.")]
LoopName = Annotated[str, typer.Option(help="With the arms and features of `onepass serve --demo`.")]
Rate = Annotated[float, typer.Option(min=0.01, help="Visitors a second.")]
Seconds = Annotated[float | None, typer.Option(min=0.0, help="How long. Default: as long as it is served.")]
Seed = Annotated[int, typer.Option(min=0)]


def simulate(
    url: Url = "http://127.0.0.1:8080",
    loop: LoopName = "demo",
    rate: Rate = 40.0,
    seconds: Seconds = None,
    seed: Seed = 0,
) -> None:
    """Send simulated visitors to a service.

    Their best policy is known (docs/page.md); a key is read from ONEPASS_KEY.
    """
    from onepass.service import simulation

    try:
        found = simulation.simulate(
            url, loop, rate=rate, seconds=seconds, seed=seed, key=os.environ.get("ONEPASS_KEY"),
            tell=lambda line: print(f"onepass: {line}", file=sys.stderr, flush=True),
        )  # fmt: skip
    except ValueError as error:
        print(f"onepass: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    if not found.shown:
        print(f"onepass: nothing answers at {url}", file=sys.stderr)
        raise typer.Exit(2)
