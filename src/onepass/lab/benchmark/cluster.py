"""Cost of more cores and shards: `python -m onepass.lab.benchmark.cluster WHAT`.

WHAT is `rows [ROWS]`, `latency` or `arms [ARMS ROWS [REPEATS [here]]]`:

rows   seconds to learn files: one thread, two threads, two Ray workers, and, as the limit of the machine, two
       processes that do only the arithmetic, on rows in memory
arms   ROWS rows of each of ARMS arms on two shards: bytes, the share of learning outside the shards, by the clock and
       by CPU time, and the ten best of all arms for 100 users, REPEATS times; shards in this process, then as Ray
       actors (not with "here"), each compared with one bandit
latency  seconds of calls when messages to shards take 1, 5 and 20 ms, with the model of docs/cluster_measured.md

Not part of `onepass bench`: needs Ray, both cores and some gigabytes. Runs alternate; ratios are medians. Set
POLARS_MAX_THREADS=1 and OPENBLAS_NUM_THREADS=1 before Python starts, so that one thread is one.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import onepass as op
from onepass.cluster import ShardedBandit, fit
from onepass.cluster.ray_transport import connect
from onepass.lab.benchmark.shared_model import Line

BAR, LIMIT = 1.6, 30.0  # least speed relative to one worker; largest percentage of learning time spent on routing
BYTES, BEST = 1.3, 1.5  # largest memory relative to the necessary rows; largest time relative to one process
REPEATS = 5
HERE = "here"  # argument that leaves out the actors
FILES = 4
DIM, RANK = 128, 8  # dimension and rank of an arm's model
DELAYS = (0.001, 0.005, 0.02)  # seconds within a rack, within a region, between two regions
BATCH = 100_000  # rows in one call of `learn`
USERS, TOP = 100, 10
MODELS: dict[str, tuple[int, int, Callable[[], Any]]] = {  # dim, rows, function that makes the model
    "exact, d=256": (256, 100_000, lambda: op.OFUL(dim=256)),
    "sketched, d=784, l=50": (784, 60_000, lambda: op.SOFUL(dim=784, size=50)),
}


# ---- rows ----


def stream(dim: int, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw contexts (rows, dim) and rewards (rows,), which are the first column of the contexts."""
    x = np.random.default_rng(seed).standard_normal((rows, dim))
    return x, x[:, 0].copy()


def _run_arithmetic(name: str, rows: int, seed: int, go: Any, ready: Any, out: Any) -> None:
    """Learn `rows` rows in memory each time that the queue `go` gives True, and put the seconds into the queue `out`.

    It runs in a separate process, and ends when `go` gives False. `name` is a model of `MODELS`, and `seed` the seed of
    the rows. The semaphore `ready` is released once, after compilation.
    """
    model, (x, rewards) = MODELS[name][2](), stream(MODELS[name][0], rows, seed)
    model.copy().learn(x[:1_000], rewards[:1_000])
    ready.release()
    while go.get():
        twin = model.copy()
        begun = time.perf_counter()
        for start in range(0, rows, 10_000):
            twin.learn(x[start : start + 10_000], rewards[start : start + 10_000])
        out.put(time.perf_counter() - begun)


def _machine_ratios(name: str, rows: int, repeats: int) -> list[float]:
    """Return the throughput of two processes relative to one, as a list of `repeats` measurements.

    Each process learns `rows` rows in memory with the model `name` of `MODELS`.
    """
    context = get_context("spawn")
    ready, out, ratios = context.Semaphore(0), context.Queue(), []
    orders = [context.SimpleQueue() for _ in range(2)]
    crew = [
        context.Process(target=_run_arithmetic, args=(name, rows, seed, order, ready, out), daemon=True)
        for seed, order in enumerate(orders)
    ]
    for process in crew:
        process.start()
    for _ in crew:
        ready.acquire()
    for _ in range(repeats):
        orders[0].put(True)
        alone = out.get()
        for order in orders:
            order.put(True)
        ratios.append(2.0 * alone / max(out.get() for _ in crew))
    for order, process in zip(orders, crew, strict=True):
        order.put(False)
        process.join()
    return ratios


def _call_seconds(act: Callable[[], object]) -> float:
    """Return the seconds of one call of `act`."""
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


def _row_lines(name: str, rows: int = 0, *, repeats: int = REPEATS, ray: str = "local") -> list[Line]:
    """Return table lines on learning from files with the model `name` of `MODELS`, by one and by two workers.

    If `rows` is 0, the number of rows is the one in `MODELS`. Times are medians of `repeats` runs. `ray` is the address
    of Ray.
    """
    dim, usual, begun = MODELS[name]
    rows = rows or usual
    import polars as pl

    with tempfile.TemporaryDirectory() as folder:
        for part in range(FILES):
            x, rewards = stream(dim, rows // FILES, part)
            table = pl.DataFrame({"features": pl.Series(x, dtype=pl.Array(pl.Float64, dim)), "reward": rewards})
            table.write_parquet(Path(folder) / f"{part}.parquet", compression="uncompressed")
        ways: dict[str, Callable[[], object]] = {
            "one thread": lambda: fit(folder, begun(), workers=1),
            "two threads": lambda: fit(folder, begun(), workers=2),
            "two workers of Ray": lambda: fit(folder, begun(), ray=ray),
        }
        for act in ways.values():  # compiles, and starts the workers
            act()
        found = {way: [_call_seconds(act)] for way, act in ways.items()}
        for _ in range(repeats - 1):
            for way, act in ways.items():
                found[way].append(_call_seconds(act))
    one = found.pop("one thread")
    lines: list[Line] = [(f"{name}, {rows:,} rows of files, one thread", float(np.median(one)), "s", 1.0, "")]
    for way, each in found.items():
        ratio = float(np.median(np.divide(one, each)))
        lines.append((f"  {way}", float(np.median(each)), "s", ratio, f"times as fast (bar {BAR})"))
    ratio = float(np.median(_machine_ratios(name, rows // FILES, repeats)))
    lines.append(("  two processes, arithmetic alone: the machine", 0.0, "", ratio, "times as much as one"))
    return lines


# ---- arms ----


def batches(arms: int, rows: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield batches of random contexts (n, 128), rewards (n,) and arms (n,), until each arm has got `rows` rows.

    `arms` is the number of arms.
    """
    rng, total = np.random.default_rng(0), arms * rows
    for start in range(0, total, BATCH):
        count = min(BATCH, total - start)
        x = rng.standard_normal((count, DIM), dtype=np.float32)
        yield x, rng.random(count), (start + np.arange(count)) % arms


def _make_bandit() -> Any:
    """Make a bandit with a small model for each arm."""
    return op.Bandit(op.Disjoint(op.Ridge(op.ProjectorSplitting(dim=DIM, rank=RANK, dtype="float32"))), op.UCB(0.5))


def _learn_seconds(bandit: Any, arms: int, rows: int) -> tuple[float, float]:
    """Return the seconds in which a bandit learns `rows` rows of each of `arms` arms: elapsed and processor time.

    The time in which the rows are generated is not counted.
    """
    begun, worked = 0.0, 0.0
    for x, rewards, names in batches(arms, rows):
        begun, worked = begun - time.perf_counter(), worked - time.process_time()
        bandit.learn(x, rewards, names)
        begun, worked = begun + time.perf_counter(), worked + time.process_time()
    return begun, worked


def _resident_bytes() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _arm_lines(arms: int, rows: int, *, ray: str | None = "local", repeats: int = REPEATS) -> list[Line]:
    """Return table lines on two shards that hold `arms` arms and learn `rows` rows of each arm.

    One bandit in memory is measured too, for comparison. Shards are in this process and, if `ray` is an address, also
    actors of Ray. Searches for the best arms are repeated `repeats` times.
    """
    users = np.random.default_rng(1).standard_normal((USERS, DIM)).astype(np.float32)
    ask: Callable[[Any], object] = lambda bandit: bandit.recommend(users, TOP)  # noqa: E731
    keeps = arms * min(rows, RANK) * DIM * 4.0
    one = _make_bandit()
    _learn_seconds(_make_bandit(), 100, 1)  # compiles
    alone, _ = _learn_seconds(one, arms, rows)
    title = f"{arms:,} arms, {arms * rows:,} rows"
    held = one.memory_usage()
    lines: list[Line] = [
        (f"{title}: one bandit learns a row", 1e6 * alone / (arms * rows), "us", held / keeps, "bytes a byte of rows")
    ]
    for address in (None, ray)[: 1 if ray is None else 2]:
        where, joined = ("here", sum) if address is None else ("as actors", max)
        many = ShardedBandit(_make_bandit(), 2, ray=address)
        _learn_seconds(many, 100, 1)  # starts the actors, and loads their code
        had, before = _resident_bytes(), np.array(many.supervisor.busy_times())
        wall, front = _learn_seconds(many, arms, rows)
        grown, bytes_ = _resident_bytes() - had, many.memory_usage()
        busy, work, whole = (np.array(many.supervisor.busy_times()) - before).T
        clock = 100.0 * (1.0 - joined(busy) / wall)
        cpu = 100.0 * (1.0 - work.sum() / (front if address is None else front + whole.sum()))
        ratios, mine = [], []
        ask(one), ask(many)
        for _ in range(repeats):
            mine.append(_call_seconds(lambda: ask(many)))  # noqa: B023
            ratios.append(mine[-1] / _call_seconds(lambda: ask(one)))
        many.close()
        each, learns = 1e6 * wall / (arms * rows), f"  two shards {where}: learn a row"
        best, of = float(np.median(ratios)), f"times as long as one bandit (bar {BEST})"
        if address is None:
            lines.append(("  two shards here: the process grew by", grown / 1e9, "GB", grown / keeps, "of the rows"))
        lines += [
            (f"  two shards {where}: bytes", bytes_ / 1e9, "GB", bytes_ / keeps, f"of the rows (bar {BYTES})"),
            (learns, each, "us", clock, f"% of it no shard is at work (bar {LIMIT:g})"),
            (learns, each, "us", cpu, f"% of the CPU time is not the shards' own (bar {LIMIT:g})"),
            (f"  two shards {where}: the {TOP} best for {USERS} users", float(np.median(mine)), "s", best, of),
        ]
    return lines


# ---- latency ----


class DelayedTransport:
    """Connection to the shards of a bandit that waits `delay` seconds per round trip, as a slow network would.

    It passes all calls on to another connection, `transport`. The attribute `trips` counts the round trips.
    """

    def __init__(self, transport: Any) -> None:
        self.transport, self.delay, self.trips = transport, 0.0, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)

    def gather(self, calls: list[Any]) -> list[Any]:
        """Send the calls to the shards, wait for one delay, and return the answers of the shards."""
        self.trips += 1
        time.sleep(self.delay)
        found: list[Any] = self.transport.gather(calls)
        return found


def _latency_lines(arms: int = 5_000, delays: tuple[float, ...] = DELAYS, repeats: int = REPEATS) -> list[Line]:
    """Measure calls of a sharded bandit at each of the `delays`, in seconds, and return table lines.

    A time is the median of `repeats` calls, and is compared with a model: seconds without delay + round trips x delay.
    """
    many, rng = ShardedBandit(_make_bandit(), 2), np.random.default_rng(2)
    _learn_seconds(many, arms, 2)
    many.supervisor.transport = far = DelayedTransport(many.supervisor.transport)
    x, rewards = rng.standard_normal((1_000, DIM), dtype=np.float32), rng.random(1_000)
    names, few = rng.integers(0, arms, 1_000), list(range(10))
    acts: dict[str, Callable[[], object]] = {
        "decide among 10": lambda: many.decide(x[0], arms=few),
        "learn 1,000 rows": lambda: many.learn(x, rewards, names),
        f"the {TOP} best for {USERS} users": lambda: many.recommend(x[:USERS], TOP),
    }
    lines: list[Line] = []
    for name, act in acts.items():
        act()
        far.trips = 0
        act()
        trips = far.trips
        for delay in delays:
            base, found = [], []
            for _ in range(repeats):
                far.delay = 0.0
                base.append(_call_seconds(act))
                far.delay = delay
                found.append(_call_seconds(act))
            far.delay = 0.0
            taken, wanted = float(np.median(found)), float(np.median(base)) + trips * delay
            reference = f"times the model: {trips} x {1e3 * delay:g} ms + what it takes here"
            lines.append((f"{name}, shards {1e3 * delay:g} ms away", 1e3 * taken, "ms", taken / wanted, reference))
    return lines


def main(arguments: list[str]) -> None:
    """Run the benchmark that the command-line arguments name, and print its measurements."""
    what, given = arguments[0], [int(one) for one in arguments[1:] if one != HERE]
    if what == "rows":
        connect("local")
        found = [line for name in MODELS for line in _row_lines(name, *given[:1])]
    elif what == "latency":
        found = _latency_lines()
    else:
        sizes = given[:2] if len(given) > 1 else (125_000, 8)
        found = _arm_lines(*sizes, ray=None if HERE in arguments else "local", repeats=(*given[2:], REPEATS)[0])
    for label, measured, unit, ratio, of in found:
        print(f"{label:<62} {measured:9.2f} {unit:<2}  {ratio:7.2f} {of}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
