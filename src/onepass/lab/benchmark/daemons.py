"""Compare a service with a daemon around Vowpal Wabbit under equal load: `python -m onepass.lab.benchmark.daemons`.

The daemon reads examples as text over TCP and answers with probabilities, as Vowpal Wabbit's daemon does. A reward
comes with the same features, and is learned at once. The daemon writes no log. Its package for Python contains no
executable, so it is the Python module in a loop. Rate, requests and click probabilities are those of service.py. A
ratio is the value of onepass divided by that of the daemon.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import time
from typing import Any

import numpy as np
import uvloop

from onepass.lab.benchmark.service import KINDS, argument_parser, cpu_seconds, make_traffic, measure, summarize_load

MODEL = "--cb_explore_adf --squarecb -q ca --quiet"
LABELLED = b"\n0:"
END = b"\n\n"
TURNS = 2


async def serve() -> None:
    """Run a server that prints its port, then answers requests until the process is stopped."""
    from vowpalwabbit import Workspace

    workspace = Workspace(MODEL)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                text = (await reader.readuntil(END))[: -len(END)]
            except asyncio.IncompleteReadError:
                return
            if LABELLED in text:
                workspace.learn(text.decode())
                writer.write(b"learned\n")
            else:
                writer.write(" ".join(f"{p:.6g}" for p in workspace.predict(text.decode())).encode() + b"\n")

    server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=1 << 24)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def examples(options: argparse.Namespace) -> list[list[str]]:
    """Return the text lines of each of the 64 different requests that `options` describe, in Vowpal Wabbit's format.

    The first line of a request is the context, and each further line is an arm.
    """
    found = make_traffic(options)
    texts = [["shared |c " + _format_features(context)] for context in found.contexts]
    for lines, rows in zip(texts, found.arms, strict=True):
        lines += ["|a " + _format_features(row) for row in rows]
    return texts


def _format_features(row: np.ndarray) -> str:
    """Format a row as features with their indices."""
    return " ".join(f"{place}:{value:g}" for place, value in enumerate(row.tolist()))


async def _run_load(port: int, options: argparse.Namespace) -> dict[str, Any]:
    """Send the requests that `options` describe to the daemon on this port.

    Returns the dictionary of `summarize_load`.
    """
    lines, (_, _, chances, lots) = examples(options), make_traffic(options)
    ready = ["\n".join(one).encode() + END for one in lines]
    drawn = np.random.default_rng(1).random(lots.size)
    decided: asyncio.Queue[tuple[int, int, float]] = asyncio.Queue()
    latencies: list[float] = []
    number, begin = iter(range(lots.size)), time.perf_counter()

    async def send(link: Any, text: bytes) -> bytes:
        link[1].write(text)
        found: bytes = await link[0].readline()
        return found

    async def decide() -> None:
        link = await asyncio.open_connection("127.0.0.1", port)
        for t in number:
            due = begin + t / options.rate
            await asyncio.sleep(max(due - time.perf_counter(), 0.0))
            p = [float(one) for one in (await send(link, ready[t % KINDS])).split()]
            latencies.append(time.perf_counter() - due)
            arm = min(int(np.searchsorted(np.cumsum(p), drawn[t])), len(p) - 1)
            decided.put_nowait((t, arm, p[arm]))
        link[1].close()

    async def reward() -> None:
        link = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(lots.size):
            t, arm, p = await decided.get()
            texts = lines[t % KINDS].copy()
            texts[arm + 1] = f"0:{-float(lots[t] < chances[t % KINDS, arm])}:{p} {texts[arm + 1]}"
            await send(link, "\n".join(texts).encode() + END)
        link[1].close()

    await asyncio.gather(*(decide() for _ in range(options.clients)), reward())
    return summarize_load(options, latencies, time.perf_counter() - begin)


def _measure_daemon(options: argparse.Namespace) -> dict[str, Any]:
    """Start a daemon, send it the requests that `options` describe, and stop it.

    Returns the dictionary of `summarize_load`, with "cpu_ms", the daemon's processor milliseconds per decision.
    """
    command = [sys.executable, "-m", "onepass.lab.benchmark.daemons", "--serve"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        port = int(process.stdout.readline())
        before = cpu_seconds(process.pid)
        found = asyncio.run(_run_load(port, options))
        found["cpu_ms"] = round(1e3 * (cpu_seconds(process.pid) - before) / options.rate / options.seconds, 3)
        return found
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def main() -> None:
    """Measure onepass and Vowpal Wabbit as servers under the same load, and print all measurements as JSON."""
    parser = argument_parser(__doc__)
    parser.add_argument("--serve", action="store_true", help="be the daemon")
    options = parser.parse_args()
    if options.serve:
        uvloop.run(serve())
        return
    ours, theirs = list[dict[str, Any]](), list[dict[str, Any]]()
    for _ in range(TURNS):
        for found, name, run in ((ours, "onepass", measure), (theirs, "vowpal wabbit", _measure_daemon)):
            found.append(run(options))
            print(json.dumps({"of": name, **found[-1]}), flush=True)
    ratios = {
        name: round(sum(one[name] for one in ours) / sum(one[name] for one in theirs), 2)
        for name in ("cpu_ms", "p50_ms", "p99_ms")
    }
    print(json.dumps({"of": "ratios", **ratios}))


if __name__ == "__main__":
    main()
