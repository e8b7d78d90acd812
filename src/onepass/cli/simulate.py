"""Command `onepass simulate [URL]`: sends simulated visitors to a service, so that its page has something to show.

Exit codes: 0 after the given seconds, 2 if no service answers or the service refuses.
"""

import os
import ssl
import sys
from pathlib import Path
from typing import Annotated

import typer

Url = Annotated[str, typer.Argument(metavar="URL", help="URL of a running service.")]
LoopName = Annotated[str, typer.Option(help="Loop with the arms and features of `onepass serve --demo`.")]
Rate = Annotated[float, typer.Option(min=0.01, help="Visitors per second.")]
Seconds = Annotated[float | None, typer.Option(min=0.0, help="Duration. Default: as long as the service answers.")]
Authorities = Annotated[
    Path | None,
    typer.Option(
        "--ca", metavar="FILE", help="Certificate authorities to trust for TLS, PEM. Default: those of the system."
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the visitors and their clicks.")]


def simulate(
    url: Url = "http://127.0.0.1:8080",
    loop: LoopName = "demo",
    rate: Rate = 40.0,
    seconds: Seconds = None,
    seed: Seed = 0,
    authorities: Authorities = None,
) -> None:
    """Send simulated visitors to a service.

    The best policy for them is known (docs/page.md). The key of the service is read from ONEPASS_KEY.
    """
    from onepass.service import simulation

    key = os.environ.get("ONEPASS_KEY")
    try:
        if key is not None and not key.strip():
            raise ValueError(
                "ONEPASS_KEY must not be empty: set it to a key of the loop, or unset it if the loop has no keys"
            )
        tls = None if authorities is None else _tls_context(authorities)
        visitors = simulation.simulate(
            url, loop, rate=rate, seconds=seconds, seed=seed, key=key, tls=tls,
            tell=lambda line: print(f"onepass: {line}", file=sys.stderr, flush=True),
        )  # fmt: skip
    except ValueError as error:
        print(f"onepass: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    if not visitors.shown:
        print(f"onepass: nothing answers at {url}", file=sys.stderr)
        raise typer.Exit(2)


def _tls_context(authorities: Path) -> ssl.SSLContext:
    """Return the TLS context that trusts a file of certificate authorities, as the client does."""
    from onepass.client.requests import tls_context

    return tls_context(authorities)
