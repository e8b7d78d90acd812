"""`onepass simulate [URL]`: simulated visitors for a service, to look at its page.

Exit codes: 0 after its time, 2 where nothing answers, or the service refuses.
"""

import os
import ssl
import sys
from pathlib import Path
from typing import Annotated

import typer

Url = Annotated[str, typer.Argument(metavar="URL", help="Of a service that runs.")]
LoopName = Annotated[str, typer.Option(help="With the arms and features of `onepass serve --demo`.")]
Rate = Annotated[float, typer.Option(min=0.01, help="Visitors a second.")]
Seconds = Annotated[float | None, typer.Option(min=0.0, help="How long. Default: as long as it is served.")]
Authorities = Annotated[
    Path | None,
    typer.Option("--ca", metavar="FILE", help="Authorities to trust for TLS, PEM. Default: the usual ones."),
]
Seed = Annotated[int, typer.Option(min=0)]


def simulate(
    url: Url = "http://127.0.0.1:8080",
    loop: LoopName = "demo",
    rate: Rate = 40.0,
    seconds: Seconds = None,
    seed: Seed = 0,
    authorities: Authorities = None,
) -> None:
    """Send simulated visitors to a service.

    Their best policy is known (docs/page.md); a key is read from ONEPASS_KEY.
    """
    from onepass.service import simulation

    key = os.environ.get("ONEPASS_KEY")
    try:
        if key is not None and not key.strip():
            raise ValueError(
                "ONEPASS_KEY must not be empty: set it to a key of the loop, or unset it where there is none"
            )
        tls = None if authorities is None else context_of(authorities)
        found = simulation.simulate(
            url, loop, rate=rate, seconds=seconds, seed=seed, key=key, tls=tls,
            tell=lambda line: print(f"onepass: {line}", file=sys.stderr, flush=True),
        )  # fmt: skip
    except ValueError as error:
        print(f"onepass: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    if not found.shown:
        print(f"onepass: nothing answers at {url}", file=sys.stderr)
        raise typer.Exit(2)


def context_of(authorities: Path) -> ssl.SSLContext:
    """The context of TLS that trusts a file of authorities, as the client's."""
    from onepass.client.requests import tls_context

    return tls_context(authorities)
