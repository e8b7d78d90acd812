"""Load on a service: `python -m onepass.lab.benchmark.service [--arms 20] [--rate 1000] [--seconds 20] ...`.

The service is durable and runs in a process of its own, on a temporary folder. Clients are in this process and send
requests over loopback at a fixed rate: a request is sent when it is due, whether others were answered or not, and its
latency counts from then on. Outcomes come at the same rate, in batches. `cpu_ms` is processor time per decision,
including its outcome and its learning; `memory_mb` is the memory of the service after each twelfth of the time.
"""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

CONTEXT, ARM = 5, 5  # numbers of features of a context and of an arm
LOOP = """
name = "load"
[features]
context = {context}
arms = {arm}
[reward]
wait = {wait}
[operation]
durability = "{durability}"
[limits]
body = 10000000
arms = 10000
"""
HEAD = """POST /v1/load/{place} HTTP/1.1\r
host: localhost\r
content-type: application/json\r
content-length: {size}\r
\r
"""
MEMORY_SAMPLES = 12  # number of looks at the memory, at equal intervals
KINDS = 64  # number of different requests, which come in turn
MOST = 0.3  # upper limit of click probabilities
CHOSEN = re.compile(rb'\{"id":"([^"]+)","arm":"a(\d+)"')
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


def _encode_request(place: str, body: Any) -> bytes:
    """Return the bytes of an HTTP request to the path `place` with a JSON body."""
    text = json.dumps(body).encode()
    return HEAD.format(place=place, size=len(text)).encode() + text


async def _send_request(link: Any, request: bytes) -> bytes:
    """Send a request over the connection `link`, a pair of reader and writer, and return the body of the answer.

    Raises RuntimeError if the service refuses.
    """
    reader, writer = link
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    found = LENGTH.search(head)
    body: bytes = await reader.readexactly(int(found[1])) if found else b""
    if b" 200 " not in head[:20]:
        raise RuntimeError(body.decode())
    return body


class Traffic(NamedTuple):
    """Requests to a service: 64 different contexts with their arms, which are sent in turn.

    Parameters
    ----------
    contexts : array of shape (64, 5)
        Context of every request.
    arms : array of shape (64, K, 5)
        Features of the K arms of every request.
    chances : array of shape (64, K)
        Click probability of every arm.
    lots : array of shape (number of decisions,)
        Uniform random numbers; a decision is clicked if its number is below the click probability of the arm.
    """

    contexts: np.ndarray
    arms: np.ndarray
    chances: np.ndarray
    lots: np.ndarray


def make_traffic(options: argparse.Namespace) -> Traffic:
    """Return the requests of a load that `options` describe; equal options give equal requests."""
    rng = np.random.default_rng(0)
    contexts = rng.standard_normal((KINDS, CONTEXT)).round(3)
    arms = rng.standard_normal((KINDS, options.arms, ARM)).round(3)
    scores = arms @ rng.standard_normal(ARM) + (contexts @ rng.standard_normal(CONTEXT))[:, None]
    chances = np.ones(scores.shape) if options.rewards == "ones" else MOST / (1.0 + np.exp(-scores))
    return Traffic(contexts, arms, chances, rng.random(round(options.rate * options.seconds)))


async def _run_load(port: int, options: argparse.Namespace) -> dict[str, Any]:
    """Send the requests that `options` describe to the service on this port.

    Returns the dictionary of `summarize_load`.
    """
    contexts, arms, chances, lots = make_traffic(options)
    ready = [
        _encode_request(
            "decide", {"context": context, "arms": [{"id": f"a{a}", "features": row} for a, row in enumerate(rows)]}
        )
        for context, rows in zip(contexts.tolist(), arms.tolist(), strict=True)
    ]
    decided: asyncio.Queue[tuple[str, float]] = asyncio.Queue()
    latencies: list[float] = []
    total = lots.size
    number, begin = iter(range(total)), time.perf_counter()

    async def decide() -> None:
        link = await asyncio.open_connection("127.0.0.1", port)
        for t in number:
            due = begin + t / options.rate
            await asyncio.sleep(max(due - time.perf_counter(), 0.0))
            answer = await _send_request(link, ready[t % KINDS])
            latencies.append(time.perf_counter() - due)
            found = CHOSEN.match(answer)
            assert found is not None
            click = lots[t] < chances[t % KINDS, int(found[2])]
            decided.put_nowait((found[1].decode(), float(click)))
        link[1].close()

    async def reward() -> None:
        link = await asyncio.open_connection("127.0.0.1", port)
        for start in range(0, total, options.batch):
            paid = [await decided.get() for _ in range(min(options.batch, total - start))]
            await _send_request(
                link, _encode_request("outcome", [{"id": id, "value": value, "key": "k"} for id, value in paid])
            )
        link[1].close()

    await asyncio.gather(*(decide() for _ in range(options.clients)), reward())
    return summarize_load(options, latencies, time.perf_counter() - begin)


def summarize_load(options: argparse.Namespace, latencies: list[float], taken: float) -> dict[str, Any]:
    """Return the decisions per second, and the median and 99% quantile of the latency in milliseconds, by name.

    The names are "arms" (their number, from `options`), "decisions_per_s", "p50_ms" and "p99_ms". `latencies`, one per
    decision, and `taken`, the time of all, are in seconds. The first tenth of the latencies is left out.
    """
    found = np.array(latencies[len(latencies) // 10 :])
    p50, p99 = (round(1e3 * float(np.quantile(found, q)), 2) for q in (0.5, 0.99))
    return {"arms": options.arms, "decisions_per_s": round(len(latencies) / taken), "p50_ms": p50, "p99_ms": p99}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Start a decision service, send it the requests that `options` describe, and return the measurements by name.

    They are those of `summarize_load`, "cpu_ms" per decision, "stop_s", the seconds until the service has stopped,
    "log_mb", the size of its log, and "memory_mb", a list of its memory at equal intervals.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "load.toml")
        path.write_text(LOOP.format(context=CONTEXT, arm=ARM, wait=options.wait, durability=options.durability))
        command = [sys.executable, "-m", "onepass", "serve", "--data", f"{folder}/data", "--port", "0"]
        command += ["--workers", f"{options.workers}", str(path)]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        try:
            address = next(line for line in process.stderr if "listening at" in line)
            before, memory, over = cpu_seconds(process.pid), list[float](), threading.Event()
            looking = threading.Thread(
                target=_sample_memory, args=(process.pid, options.seconds / MEMORY_SAMPLES, over, memory)
            )
            looking.start()
            found = asyncio.run(_run_load(int(address.strip().rpartition(":")[2]), options))
            found["cpu_ms"] = round(1e3 * (cpu_seconds(process.pid) - before) / options.rate / options.seconds, 3)
            over.set()
            looking.join()
            begin = time.perf_counter()
            process.terminate()
            process.wait()
            found["stop_s"] = round(time.perf_counter() - begin, 2)
            found["log_mb"] = round(os.path.getsize(f"{folder}/data/load.sqlite") / 1e6, 1)
            return {**found, "memory_mb": memory}
        finally:
            process.kill()
            process.wait()
            process.stderr.close()


def cpu_seconds(process: int) -> float:
    """Return the processor seconds of the process with this number and its children, or NaN without /proc."""
    total = 0.0
    try:
        for one in (process, *children(process)):
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return float("nan")
    return total


def children(process: int) -> list[int]:
    """Return the numbers of the running children of the process with the number `process`."""
    found = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for path in found for child in path.read_text().split()]


def resident_megabytes(process: int) -> float:
    """Return the resident memory in MB of the process with this number and its children, or NaN without /proc."""
    try:
        found = [Path(f"/proc/{one}/statm").read_text().split()[1] for one in (process, *children(process))]
    except OSError:
        return float("nan")
    return sum(map(int, found)) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _sample_memory(process: int, every: float, over: threading.Event, memory: list[float]) -> None:
    """Append the memory of a process and its children, in MB, to `memory` every `every` seconds until `over` is set.

    `process` is the number of the process.
    """
    while not over.wait(every):
        memory.append(round(resident_megabytes(process), 1))


def argument_parser(description: str | None) -> argparse.ArgumentParser:
    """Return the parser of the command-line options that describe a load."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--arms", type=int, default=20)
    parser.add_argument("--rate", type=float, default=1_000.0, help="decisions a second")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--clients", type=int, default=32, help="connections")
    parser.add_argument("--batch", type=int, default=20, help="outcomes in a request")
    parser.add_argument("--workers", type=int, default=0, help="processes that decide")
    parser.add_argument("--wait", type=float, default=2.0, help="for rewards")
    parser.add_argument("--durability", default="commit")
    parser.add_argument("--rewards", choices=("clicks", "ones"), default="clicks", help="all models explain ones")
    return parser


def main() -> None:
    """Run the load that the command line describes, and print the measurements as one JSON object."""
    print(json.dumps(measure(argument_parser(__doc__).parse_args())))


if __name__ == "__main__":
    main()
