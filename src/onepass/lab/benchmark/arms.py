"""Models per arm: training, scoring and memory on Magazine Subscriptions and on 100,000 synthetic arms.

Lower bounds: one pass over the kept directions (a matrix-vector product), and the bytes of the rows that must be kept,
sum of min(rows of the arm, rank). Times are minima of several repeats.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import onepass as op
from onepass.lab.benchmark.shared_model import Line
from onepass.lab.errors import ExperimentError
from onepass.lab.recommender.interactions import features, load, warm_up


def _least_seconds(call: Callable[[], object], repeats: int = 5) -> float:
    """Return the least seconds of `repeats` calls, after a first call that compiles."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def _basis_pass_seconds(bandit: Any) -> float:
    """Return the seconds in which the sketch rows of all arms of a bandit are multiplied by one context."""
    state = bandit.model.state.store.state
    kept = state.basis[: state.top]
    context = np.ones(kept.shape[1], kept.dtype)
    return _least_seconds(lambda: kept @ context, 15)


def sherman_morrison(dim: int, rows: int = 12) -> float:
    """Return the seconds that dense LinUCB in NumPy takes to learn one row of one arm, in `dim` features.

    The inverse of the arm's matrix is updated in place by a matrix of rank one, then the coefficients are computed. The
    result is the median over `rows` rows.
    """
    from scipy.linalg.blas import dger

    rng = np.random.default_rng(0)
    inverse, moment, times = np.asfortranarray(np.eye(dim)), np.zeros(dim), []
    for x in rng.standard_normal((rows, dim)) / dim**0.5:
        start = time.perf_counter()
        v = inverse @ x
        inverse = dger(-1.0 / (1.0 + x @ v), v, v, a=inverse, overwrite_a=True)
        moment += x
        inverse @ moment
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def _magazine_lines() -> list[Line]:
    """Return lines that compare the exact reduced model with PSI-LinUCB in 1,681 dimensions, on Magazine's warm-up."""
    log = load("magazine")
    warm = log.part(slice(warm_up(log)))
    users, i = np.unique(warm.users, return_inverse=True)
    items, j = np.unique(warm.items, return_inverse=True)
    indexed = warm._replace(users=i, items=j)
    left, right = features(indexed, (len(users), len(items)), 41)
    pairs, rewards = op.Factors(left[i], right[j]), warm.ratings / 5.0

    def train_bandit(design: op.extend.Design, reduce: bool, compact: bool = True) -> Any:
        outer = op.features.OuterProduct(left=41, right=41, reduce=reduce)
        bandit = op.Bandit(op.Disjoint(op.Ridge(design), compact=compact, threads=1), op.UCB(-0.1), features=outer)
        bandit.learn(pairs, rewards, arm=j)
        return bandit

    lines, bandits = [], []
    for name, design, reduce, bar in (
        ("exact, reduced to 41 dimensions", op.Exact(dim=41), True, 0.3),
        ("PSI-LinUCB, r=48 in 1,681 dimensions", op.ProjectorSplitting(dim=1681, rank=48), False, 2.0),
    ):
        spent = _least_seconds(lambda: train_bandit(design, reduce), 3)  # noqa: B023
        lines.append((f"Magazine, {len(j):,} rows: train {name}", spent, "s", spent / bar, f"of the {bar:g} s allowed"))
        bandits.append(train_bandit(design, reduce))
    exact, psi = bandits
    request = op.Factors(left[5], right[list(exact.arms)])
    spent = _least_seconds(lambda: exact.score(request), 50)
    lines.append(
        ("  score a user's 2,257 arms, exact reduced", spent * 1e3, "ms", spent / 5e-4, "of the 0.5 ms allowed")
    )
    spent, floor = _least_seconds(lambda: psi.score(request), 15), _basis_pass_seconds(psi)
    reference = f"times one pass over its factors, {floor * 1e3:.1f} ms (bar 1.5)"
    lines.append(("  score a user's arms, PSI-LinUCB in 1,681", spent * 1e3, "ms", spent / floor, reference))
    many = op.Factors(left[:100], request.right)
    for name, bandit in (("exact reduced", exact), ("PSI-LinUCB in 1,681", psi)):
        spent, memory = _least_seconds(lambda: bandit.recommend(many, 10), 3), bandit.memory_usage() / 1e6  # noqa: B023
        lines.append((f"  a user of 100 at once, top 10, {name}", spent * 10.0, "ms", memory, "MB of memory"))
    truth = exact.score(many)
    gap = float(np.abs(psi.score(many) - truth).max())
    lines.append(
        ("  largest gap of their scores", gap * 1e10, "", gap / 1e-8, "of the 1e-8 allowed (first column times 1e-10)")
    )
    for rank in (4, 16):
        gaps = []
        for compact, compensate in ((True, False), (False, False), (True, True)):
            design = op.ProjectorSplitting(dim=41, rank=rank, compensate=compensate)
            scores = train_bandit(design, True, compact).score(many)
            gaps.append(float(np.sqrt(np.mean((scores - truth) ** 2)) / truth.std()))
        reference = f"of that of Shustova et al.'s integrator, {gaps[1]:.0f}; compensated {gaps[2]:.2f}"
        lines.append(
            (f"  PSI at r={rank}: rms error of scores, in their spread", gaps[0], "", gaps[0] / gaps[1], reference)
        )
    row, train = sherman_morrison(1681), lines[1][1]
    reference = "times PSI-LinUCB (bar 50), from the seconds of a row of an arm that fits"
    lines.append(
        ("  the same by dense Sherman-Morrison, extrapolated", row * len(j), "s", row * len(j) / train, reference)
    )
    return lines


WIDE_SCRIPT = """
import resource, sys
import numpy as np, onepass as op
rng = np.random.default_rng(0)
arms, kept, left, right = 1000, 8, 130, 130
features = op.features.OuterProduct(left=left, right=right, reduce=False)
bandit = op.Bandit(op.Disjoint(op.Ridge(op.ProjectorSplitting(dim=left * right, rank=kept))), features=features)
items = rng.standard_normal((arms, right))
for _ in range(10):
    who = rng.integers(0, arms, 1000)
    bandit.learn(op.Factors(rng.standard_normal((1000, left)), items[who]), rng.random(1000), arm=who)
names = bandit.arms
bandit.recommend(op.Factors(rng.standard_normal((20, left)), items[list(names)]), 10)
print(bandit.memory_usage(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def _wide_lines() -> list[Line]:
    """Return lines on 10,000 rows for 1,000 arms in 16,900 dimensions at rank 8, measured in a separate process."""
    run = subprocess.run([sys.executable, "-c", WIDE_SCRIPT], check=True, capture_output=True, text=True)
    _, peak = (float(word) / 1e9 for word in run.stdout.split())
    dense = 1000 * 16_900**2 * 8 / 1e9
    return [
        (
            "1,000 arms in 16,900 dimensions, r=8: peak of the process",
            peak,
            "GB",
            peak / 2.0,
            f"of the 2 GB allowed (dense: {dense:,.0f} GB)",
        )
    ]


def interactions(count: int, arms: int, dim: int, seed: int, skew: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw random rows (count, dim) in float32, rewards (count,) and arms (count,).

    Arms are numbered from 0 to `arms` - 1. Arm a is drawn with a probability proportional to (a + 1)^-`skew`.
    """
    rng = np.random.default_rng(seed)
    shares = np.cumsum(np.arange(1.0, arms + 1.0) ** -skew)
    rows = rng.standard_normal((count, dim), np.float32) / np.float32(dim**0.5)
    return rows, rng.random(count, np.float32), np.searchsorted(shares, rng.random(count) * shares[-1])


def scale_lines(
    arms: int = 100_000, dim: int = 256, count: int = 1_000_000, rank: int = 16, step: int = 50_000
) -> list[Line]:
    """Learn `count` rows in batches, score all arms, and return lines of the table that `onepass bench` prints.

    This is done twice: with equally likely arms, and with arms whose frequencies fall as a power of their rank. `rank`
    is the size of the sketch of an arm, and `step` the number of rows in a batch.
    """
    small = op.PSILinUCB(dim=dim, rank=rank, model="disjoint", dtype="float32")
    small.learn(*interactions(2 * step, 50, dim, 0, 0.0)[:2], arm=interactions(2 * step, 50, dim, 0, 0.0)[2])  # compile
    lines: list[Line] = []
    for skew in (0.0, 0.8):
        bandit = op.PSILinUCB(dim=dim, rank=rank, model="disjoint", dtype="float32")
        spent, counts, half = 0.0, np.zeros(arms, np.int64), 0.0
        for seed in range(count // step):
            rows, rewards, who = interactions(step, arms, dim, seed, skew)
            counts += np.bincount(who, minlength=arms)
            start = time.perf_counter()
            bandit.learn(rows, rewards, arm=who)
            spent += time.perf_counter() - start
            half = spent if seed == count // step // 2 - 1 else half
        must = int(np.minimum(counts, rank).sum()) * dim * 4
        spread = "evenly" if skew == 0.0 else f"by (1/rank)^{skew:g}"
        what = f"{arms:,} arms, {count:,} rows {spread}, d={dim}, r={rank}"
        lines.append((what, spent, "s", spent / 90.0, "of the 90 s allowed, two threads"))
        lines.append(("  second half of the rows", spent - half, "s", (spent - half) / half, "times the first half"))
        memory = bandit.memory_usage()
        lines.append(("  memory", memory / 1e9, "GB", memory / must, "times the rows it must keep (bar 1.5)"))
        context = np.ones(dim, np.float32)
        scoring, floor = _least_seconds(lambda: bandit.score(context)), _basis_pass_seconds(bandit)  # noqa: B023
        reference = f"times one pass over them, {floor * 1e3:.0f} ms (bar 2)"
        lines.append(("  score all arms for one context", scoring * 1e3, "ms", scoring / floor, reference))
        if skew == 0.0:
            lines += _snapshot_lines(bandit, arms, dim)
        for name in range(arms, 2 * arms):
            bandit.add_arm(name)
        more = bandit.memory_usage() / memory
        lines.append(
            (f"  with {arms:,} more arms without data: memory", memory * more / 1e9, "GB", more, "times as much")
        )
    return lines


def _snapshot_lines(bandit: Any, arms: int, dim: int) -> list[Line]:
    """Measure a bandit's snapshots, and return table lines: one after 1,000 new rows, and the first, a full copy.

    `arms` is the number of arms, and `dim` the number of features.
    """
    start = time.perf_counter()
    current = bandit.snapshot()
    whole, times = time.perf_counter() - start, []
    for seed in range(8):
        rows, rewards, who = interactions(1000, arms, dim, 100 + seed, 0.0)
        bandit.learn(rows, rewards, arm=who)
        start = time.perf_counter()
        current = bandit.snapshot()
        times.append(time.perf_counter() - start)
    current.score(np.ones(dim, np.float32))
    spent = float(np.median(times[2:])) * 1e3  # the second snapshot is a full copy, too, while the first is in use
    return [
        ("  snapshot after 1,000 new rows", spent, "ms", spent / 50.0, "of the 50 ms allowed"),
        ("  a whole copy", whole * 1e3, "ms", whole * 1e3 / spent, "times that"),
    ]


def call_microseconds(dtype: str, rows: int, estimator: str = "ridge") -> float:
    """Return the microseconds in which a bandit chooses among 1,000 arms and learns the reward, call by call.

    Contexts have 50 features, and every arm has a sketch of rank 8. `dtype` and `estimator` are arguments of the
    bandit. Before the timing, the bandit learns `rows` rows and plays 1,000 rounds.
    """
    rng = np.random.default_rng(0)
    bandit = op.PSILinUCB(dim=50, rank=8, estimator=estimator, model="disjoint", dtype=dtype)
    names, contexts = tuple(range(1000)), rng.standard_normal((3000, 50)).astype(dtype)
    if rows:
        bandit.learn(rng.standard_normal((rows, 50)), np.zeros(rows), arm=np.arange(rows) % 1000)
    for context in contexts[:1000]:
        bandit.learn(context, 0.5, bandit.decide(context, names).arm)
    start = time.perf_counter()
    for context in contexts[1000:]:
        bandit.learn(context, 0.5, bandit.decide(context, names).arm)
    return (time.perf_counter() - start) / 2000 * 1e6


def speed_lines() -> list[Line]:
    """Measure bandits with one model per arm, and return lines of the table that `onepass bench` prints.

    Lines on the data set Magazine Subscriptions are included only if its files are available.
    """
    lines = []
    for dtype, rows, state in (
        ("float64", 0, "the first 3,000 rounds"),
        ("float64", 12_000, "every arm at rank 8"),
        ("float32", 12_000, "every arm at rank 8, float32"),
    ):
        spent = call_microseconds(dtype, rows)
        lines.append(
            (f"choose + learn by call, K=1,000 d=50 r=8, {state}", spent, "us", spent / 200.0, "of the 200 us allowed")
        )
    pairs = [[call_microseconds("float64", 12_000, estimator) for estimator in ("newton", "ridge")] for _ in range(3)]
    newton, ridge = (min(times) for times in zip(*pairs, strict=True))
    lines.append(
        ("  the same by Newton steps, every arm at rank 8", newton, "us", newton / ridge, "times ridge regression")
    )
    try:
        lines += _magazine_lines()
    except ExperimentError as missing:
        print(f"Magazine is left out: {missing}", file=sys.stderr)
    return [*lines, *_wide_lines(), *scale_lines()]
