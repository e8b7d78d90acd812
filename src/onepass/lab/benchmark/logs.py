"""Cost of logs: evaluation of many fixed policies in one pass, and reading of other formats."""

import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from onepass import evaluation as ev
from onepass.lab.benchmark.shared_model import Line

ROWS, ARMS, WIDTH, POLICIES = 1_000_000, 20, 20, 20
BLOCK = 10_000
REPEATS, OBP_REPEATS = 100, 10_000  # repeats of obp's bootstrap: in the measurement, and by default
SHARE = 5  # obp's arithmetic is timed on a fifth of the rows, because its time is linear in them


def policies(seed: int = 0) -> tuple[ev.LinearPolicy, dict[str, Any]]:
    """Return a linear policy that writes the log, and a dictionary of linear policies that are evaluated on the log."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(ARMS, WIDTH)) / np.sqrt(WIDTH)
    return ev.LinearPolicy(0.3 * theta, 0.5, 0.1), {
        f"policy {i}": ev.LinearPolicy(theta + 0.1 * rng.normal(size=theta.shape), 0.5, 0.05) for i in range(POLICIES)
    }


class Stream:
    """Synthetic log of `rows` rows, as an iterable over blocks; the policy `logger` chooses the arms.

    The attribute `seconds` is the time spent on generating the blocks.
    """

    def __init__(self, logger: ev.LinearPolicy, rows: int, seed: int = 1) -> None:
        self.logger, self.rows, self.rng, self.seconds = logger, rows, np.random.default_rng(seed), 0.0

    def __iter__(self) -> Iterator[ev.Log]:
        for _ in range(self.rows // BLOCK):
            began = time.perf_counter()
            x = self.rng.normal(size=(BLOCK, WIDTH))
            p = self.logger(x)
            arms = (p.cumsum(axis=1) > self.rng.random((BLOCK, 1)) * p.sum(axis=1, keepdims=True)).argmax(axis=1)
            chance = 1.0 / (1.0 + np.exp(-np.einsum("ij,ij->i", x, self.logger.theta[arms]) / 0.3))
            log = ev.Log(
                arms=arms, rewards=(self.rng.random(BLOCK) < chance) * 1.0, n_arms=ARMS, contexts=x,
                propensities=p[np.arange(BLOCK), arms], distributions=p,
            )  # fmt: skip
            self.seconds += time.perf_counter() - began
            yield log


def _obp_seconds(log: ev.Log, policy: Any, predicted: np.ndarray, repeats: int) -> float:
    """Return the seconds of the arithmetic of obp (Open Bandit Pipeline) for one policy.

    It computes distributions (n, K, 1), the terms of the estimators IPW, SNIPW, DM and DR, and a bootstrap of each with
    `repeats` samples. `policy` maps contexts to probabilities (n, K), and `predicted` (n, K) are predicted rewards.
    """
    began, rng = time.perf_counter(), np.random.default_rng(0)
    action_dist = policy(log.contexts)[:, :, None]
    if not np.allclose(action_dist.sum(axis=1), 1.0) or not np.isfinite(action_dist).all():
        raise ValueError("action_dist must be probabilities")
    rows, position = np.arange(len(log)), np.zeros(len(log), int)
    iw = action_dist[rows, log.arms, position] / log.propensities
    q = predicted[:, :, None]
    direct = np.average(q[rows, :, position], weights=action_dist[rows, :, position], axis=1)
    for terms in (
        log.rewards * iw,
        log.rewards * iw / iw.mean(),
        direct,
        direct + iw * (log.rewards - q[rows, log.arms, position]),
    ):
        samples = [rng.choice(terms, size=terms.size).mean() for _ in range(repeats)]
        np.percentile(samples or [terms.mean()], [2.5, 97.5])
    return time.perf_counter() - began


def measure_policies(size: int = ROWS) -> tuple[float, float, float, float, float]:
    """Evaluate all policies in one pass over a log of `size` rows, and return five measurements.

    They are the seconds for all policies; the peak memory in MB; the seconds that the arithmetic of obp takes for one
    policy, with its bootstrap and without; and the seconds in which one policy computes its probabilities.
    """
    logger, frozen = policies()
    ev.evaluate_many(Stream(logger, BLOCK), frozen)
    stream, began = Stream(logger, size), time.perf_counter()
    ev.evaluate_many(stream, frozen, progress=lambda rows: print(f"\r{rows:,} rows", end="", file=sys.stderr))
    print(file=sys.stderr)
    spent = time.perf_counter() - began - stream.seconds
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    blocks = list(Stream(logger, size // SHARE))
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(block, name) for block in blocks])
        for name in ("arms", "rewards", "propensities", "contexts", "distributions")
    }
    log = ev.Log(**columns, n_arms=ARMS)
    policy, predicted = frozen["policy 0"], np.zeros((len(log), ARMS))
    whole, bare = (SHARE * _obp_seconds(log, policy, predicted, repeats) for repeats in (REPEATS, 0))
    began = time.perf_counter()
    for block in blocks:
        policy(block.contexts)
    return spent, most, whole, bare, SHARE * (time.perf_counter() - began)


def megabytes_per_second(lazy: bool, lines: int = 20_000) -> float:
    """Return the MB of a dsjson file that are read per second of processor time.

    dsjson is the log format of Azure Personalizer and Vowpal Wabbit. The file has `lines` lines of 1.4 kB with eight
    actions each. If `lazy` is True, parts of a line are decoded only when used.
    """
    from onepass.log import Decision, Event, Outcome
    from onepass.log.formats import dsjson

    rng, tags = np.random.default_rng(0), {f"tag{i}": 0.5 for i in range(6)}

    def events() -> Iterator[Event]:
        for number in range(lines):
            p = rng.dirichlet(np.ones(8))
            actions = [
                {"TAction": {"topic": f"t{rng.integers(9)}", "length": rng.random(), "tags": tags}} for _ in range(8)
            ]
            contexts = {"GUser": {"id": f"u{number}", "age": 31, "hour": 9.5}, "_multi": actions}
            decision = Decision(
                loop="a", time=number, id=f"e{number}", places=[0], propensities=[float(p[0])],
                probabilities=p.tolist(), contexts=contexts,
            )  # fmt: skip
            yield Event(decision, (Outcome(loop="a", time=number, id=f"e{number}", value=1.0),))

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.dsjson")
        dsjson.write(path, events())
        began = time.process_time()
        for _ in dsjson.read(path, lazy=lazy):
            pass
        return path.stat().st_size / 1e6 / (time.process_time() - began)


def speed_lines() -> list[Line]:
    """Measure the evaluation and the reading of logs, and return lines of the table that `onepass bench` prints."""
    spent, most, whole, bare, own = measure_policies()
    full = bare + (whole - bare) * OBP_REPEATS / REPEATS
    each, lazy, plain = spent / POLICIES, megabytes_per_second(True), megabytes_per_second(False)
    return [
        ("20 linear policies on 1,000,000 decisions, K=20 d=20", spent, "s", spent / 60.0, "of the 60 s allowed"),
        ("the same, memory at most", most, "MB", most / 2000.0, "of the 2 GB allowed"),
        ("a policy by obp's arithmetic, its 10,000 bootstraps", full, "s", full / each, "times ours (bar 20)"),
        ("the same, 100 bootstraps", whole, "s", whole / each, "times ours"),
        ("the same, no intervals", bare, "s", bare / each, "times ours, which has five kinds of them"),
        ("the policy's own probabilities", own, "s", own / each, "of ours: nobody evaluates faster"),
        ("dsjson, features left as JSON", lazy, "MB", lazy / 50.0, "times the 50 MB/s asked for"),
        ("dsjson, whole", plain, "MB", plain / 50.0, "times the 50 MB/s asked for"),
    ]
