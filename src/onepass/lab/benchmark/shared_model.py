"""Cost of a round with one shared model, relative to its unavoidable matrix operations and to plain NumPy."""

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import onepass as op
from onepass.lab import find, runner


def median_microseconds(call: Callable[[], object], repeats: int = 7, inner: int = 200) -> float:
    """Return the microseconds of one call: the median over `repeats` measurements, each of `inner` calls."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(inner):
            call()
        times.append((time.perf_counter() - start) / inner * 1e6)
    return float(np.median(times))


def game(rounds: int, arms: int, dim: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return random contexts (rounds, arms, dim) of length 1, and rewards (rounds, arms) uniform in [0, 1]."""
    rng = np.random.default_rng(seed)
    contexts = rng.standard_normal((rounds, arms, dim))
    contexts /= np.linalg.norm(contexts, axis=2, keepdims=True)
    return contexts, rng.random((rounds, arms))


def blas_floor_microseconds(arms: int, dim: int, size: int) -> float:
    """Return the microseconds of the matrix operations that a round with a sketch of `size` rows cannot avoid.

    In every round, the contexts of all arms are multiplied by the sketch, and one system is solved. Once per `size`
    rounds the sketch is decomposed.
    """
    rng = np.random.default_rng(0)
    rows, sketch = rng.standard_normal((arms, dim)), rng.standard_normal((2 * size, dim))
    b, coordinates, keep = (
        rng.standard_normal(dim),
        rng.standard_normal(2 * size),
        rng.standard_normal((size - 1, 2 * size)),
    )
    gram = sketch @ sketch.T
    each = [
        median_microseconds(lambda: rows @ sketch.T),
        median_microseconds(lambda: sketch @ b),
        median_microseconds(lambda: coordinates @ sketch),
    ]
    once = [
        median_microseconds(lambda: sketch @ sketch.T, inner=50),
        median_microseconds(lambda: np.linalg.eigh(gram), inner=20),
        median_microseconds(lambda: keep @ sketch, inner=50),
    ]
    return sum(each) + sum(once) / size


def dense_round_microseconds(arms: int, dim: int) -> float:
    """Return the microseconds of a round of exact ridge regression with UCB in NumPy, without a sketch.

    A round scores `arms` contexts of `dim` features, chooses one, and updates the inverse matrix.
    """
    contexts, rewards = game(1, arms, dim)
    rows, inverse, moment = contexts[0], np.eye(dim), np.zeros(dim)

    def play() -> None:
        nonlocal inverse, moment
        theta = inverse @ moment
        scores = rows @ theta + 0.1 * np.sqrt(np.sum((rows @ inverse) * rows, axis=1))
        x = rows[int(np.argmax(scores))]
        v = inverse @ x
        inverse = inverse - np.outer(v, v) / (1.0 + x @ v)
        moment = moment + rewards[0, 0] * x

    return median_microseconds(play, inner=30 if dim > 200 else 300)


def round_microseconds(bandit: Any, arms: int, rounds: int, repeats: int = 7) -> float:
    """Return the median microseconds per round in which a bandit plays recorded rounds, 50 rounds per call.

    The rounds are played `repeats + 1` times. The first pass fills the model and is not counted.
    """
    contexts, rewards = game(rounds, arms, bandit.model.dim)
    times, chunk = [], np.empty((50, arms, bandit.model.dim))
    for repeat in range(repeats + 1):
        spent = 0.0
        for start in range(0, rounds - 49, 50):
            chunk[:] = contexts[start : start + 50]
            began = time.perf_counter()
            bandit.play(chunk, rewards[start : start + 50])
            spent += time.perf_counter() - began
        if repeat:
            times.append(spent / (rounds - rounds % 50) * 1e6)
    return float(np.median(times))


def stepwise_microseconds(bandit: Any, arms: int) -> float:
    """Return the median microseconds of one `decide` among `arms` arms and one `learn` together, called from Python."""
    contexts, rewards = game(1, arms, bandit.model.dim)
    rows, reward = contexts[0], float(rewards[0, 0])

    def step() -> None:
        bandit.learn(rows[bandit.decide(rows).arm], reward)

    return median_microseconds(step, inner=2000)


START = """
import time; start = time.perf_counter()
import numpy as np, onepass as op
op.SOFUL(dim=20, size=5).decide(np.zeros((2, 20)))
print(time.perf_counter() - start)
"""


def _first_decision_seconds() -> float:
    """Return the seconds from the start of a new process to its first decision, with compiled code in the cache."""
    run = [sys.executable, "-c", START]
    subprocess.run(run, check=True, capture_output=True)
    return min(float(subprocess.run(run, check=True, capture_output=True, text=True).stdout) for _ in range(3))


Line = tuple[str, float, str, float, str]


def speed_lines() -> list[Line]:
    """Measure bandits with one shared model, and return lines of the table that `onepass bench` prints.

    A line has a label, the measured value, its unit, a ratio, and the reference of the ratio.
    """
    least = blas_floor_microseconds(
        10, 784, 50
    )  # first: later, freed memory may put its arrays on huge pages, twice as fast for a GEMM
    wide, dense = round_microseconds(op.SOFUL(dim=784, size=50), arms=10, rounds=500), dense_round_microseconds(10, 784)
    small = round_microseconds(op.OFUL(dim=20), arms=50, rounds=5000)
    steps, numpy_small = stepwise_microseconds(op.OFUL(dim=20), 50), dense_round_microseconds(50, 20)
    rows = [
        (
            "a round of SOFUL, K=10 d=784 l=50",
            wide,
            "us",
            wide / least,
            f"times its BLAS floor of {least:.0f} us (bar 1.5)",
        ),
        ("a dense OFUL round in NumPy, K=10 d=784", dense, "us", dense / wide, "times a SOFUL round (bar 15)"),
        ("a round of OFUL, K=50 d=20, compiled loop", small, "us", small / 8.0, "of the 8 us allowed"),
        ("the same through decide and learn", steps, "us", steps / 20.0, "of the 20 us allowed"),
        ("the same in ten lines of NumPy", numpy_small, "us", numpy_small / small, "times the compiled loop"),
        ("new process to first decision", first := _first_decision_seconds(), "s", first, "of the 1 s allowed"),
    ]
    others = {
        "OFUL": op.OFUL(dim=784),
        "CBSCFD, l=50": op.CBSCFD(dim=784, size=50),
        "PSILinUCB, r=50": op.PSILinUCB(dim=784, rank=50),
        "PSILinUCB compensated, r=50": op.PSILinUCB(dim=784, rank=50, compensate=True),
        "CBRAP, m=50": op.CBRAP(dim=784, size=50),
    }
    for name, bandit in others.items():
        spent = round_microseconds(bandit, 10, 200, 3)
        rows.append(
            (f"a round of {name}, K=10 d=784", spent, "us", dense / spent, "times faster than dense OFUL in NumPy")
        )
    return rows


def regret() -> str:
    """Return ratios of regrets on MNIST as text: dyadic sketches relative to exact regression and to fixed sketches.

    The first lines have tuned policies and 20 seeds. The others have small ridge penalties, where sketches of a fixed
    size fail.
    """
    from statistics import fmean

    def play(name: str, labels: tuple[str, ...], seeds: int) -> list[dict]:
        study = find(name)
        return runner.run(
            study, policies=[p for p in study.policies if (p.group or p.label) in labels], seeds=seeds
        ).rows

    def ratio(rows: list[dict], label: str, other: str, bar: float, reg: float | None = None) -> str:
        one, two = (
            fmean(
                row["cumulative_regret"]
                for row in rows
                if (row["group"] or row["policy"]) == name and reg in (None, row["params"]["reg"])
            )
            for name in (label, other)
        )
        where = "tuned" if reg is None else f"reg {reg:g}"
        return f"{where:<9} {label:<13} / {other:<5} {one:7.1f} / {two:7.1f} = {one / two:.2f} (bar {bar:g})"

    tuned = play("mnist", ("OFUL", "DBSLinUCB", "DBSLinUCB-RFD"), 20)
    lines = [ratio(tuned, label, "OFUL", 1.1) for label in ("DBSLinUCB", "DBSLinUCB-RFD")]
    small = play("mnist-reg", ("OFUL", "SOFUL", "DBSLinUCB", "DBSLinUCB-RFD"), 10)
    for reg in (0.02, 0.2):
        lines += [ratio(small, "DBSLinUCB", "SOFUL", 0.8, reg), ratio(small, "DBSLinUCB-RFD", "OFUL", 1.5, reg)]
    return "\n".join(lines)
