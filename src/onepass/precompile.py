"""Fill the compilation cache: `python -m onepass compile`, for images and before first requests.

Every recipe and learner decides and learns once in each way that compiles code of its own. What is not here (another
design under another estimator, float32, an own design) compiles when it is first used, as ever.
"""

import sys
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

import numpy as np

import onepass as op
from onepass.foundation import cache, compilation, waiting

DIM, ROWS = 6, 40  # enough rows for every phase that has its own types; times do not depend on them
WIDTH = 30  # of the bar, in characters


def shared(bandit: Any) -> None:
    """Decide, learn a row, learn rows, play."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((4, DIM))
    bandit.learn(rows[bandit.decide(rows).arm], 1.0)
    bandit.learn(rows, rng.standard_normal(4))
    bandit.play(rng.standard_normal((2, 4, DIM)), rng.standard_normal((2, 4)))
    bandit.error_bound()


def disjoint(bandit: Any) -> None:
    """The same for one model per arm, and recommend."""
    rows = np.random.default_rng(0).standard_normal((4, DIM))
    bandit.learn(rows, [0.0, 1.0, 0.0, 1.0], arm=["a", "b", "a", "b"])
    bandit.learn(rows[0], 1.0, arm=bandit.decide(rows[0]).arm)
    bandit.decide(rows[:2], arms=["a", "b"])
    bandit.recommend(rows, k=1)
    bandit.error_bound()


def kernel(bandit: Any) -> None:
    """Play some rounds."""
    bandit.play(lambda arm: float(arm % 3), 4)
    bandit.decide()


def learner(found: Any) -> None:
    """Learn rows, predict, learn one more."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((ROWS, DIM))
    found.partial_fit(rows, np.where(rows[:, 0] > 0.0, 1.0, -1.0))
    found.predict(rows[:2])


def jobs() -> Iterator[tuple[str, Callable[[], None]]]:
    """Names and what to do."""
    one: dict[str, dict[str, Any]] = {
        "OFUL": {}, "LinTS": {}, "SOFUL": {"size": 2}, "CBSCFD": {"size": 2}, "DBSLinUCB": {"size": 2, "error": 1.0},
        "PSILinUCB": {"rank": 2}, "CBRAP": {"size": 3}, "HvtUCB": {},
    }  # fmt: skip
    for name, options in one.items():
        yield name, partial(call, shared, name, dim=DIM, **options)
    for name in ("OFUL", "SOFUL", "PSILinUCB", "HvtUCB"):
        yield f"{name} per arm", partial(call, disjoint, name, dim=DIM, parameters="disjoint", **one[name])
    points = np.random.default_rng(0).random((20, 2))
    for name in ("BKB", "GPUCB"):
        yield name, partial(call, kernel, name, points, op.Matern(2.5, 0.5), reg=0.01)
    yield "KernelNewton", partial(call, learner, "KernelNewton")
    for name in ("FORKS", "Projectron", "BOGD"):
        yield name, partial(call, learner, name, budget=10, width=1.0)
    yield "FOGD", partial(call, learner, "FOGD", features=10, width=1.0)


def call(use: Callable[[Any], None], name: str, *args: Any, **options: Any) -> None:
    """Build and use it."""
    use(getattr(op, name)(*args, **options))


def main(names: Collection[str] = ()) -> int:
    """Do the jobs of these names, or all, with a bar on standard error; the exit code."""
    every, before = list(jobs()), cache.entries(compilation.ending())
    unknown = set(names) - {name for name, _ in every}
    if unknown:
        known = ", ".join(repr(name) for name, _ in every)
        print(f"onepass: there is nothing to compile for {sorted(unknown)[0]!r}: choose among {known}", file=sys.stderr)
        return 2
    every = [(name, job) for name, job in every if name in names or not names]
    waiting.quiet(True)
    for done, (name, job) in enumerate(every):
        show(done, len(every), name)
        job()
    show(len(every), len(every), "")
    waiting.quiet(False)
    found = cache.entries(compilation.ending())
    if found == 0:
        print("\nonepass: nothing was kept; set NUMBA_CACHE_DIR to a folder that can be written to", file=sys.stderr)
        return 1
    seconds = waiting.spent()
    if found > before:
        cache.remembered(seconds)
    print(f"\nonepass: {found - before} functions compiled in {seconds:.0f} s, {found} are kept", file=sys.stderr)
    return 0


def show(done: int, count: int, name: str) -> None:
    """The bar; one line on a terminal, else one line every job."""
    filled = WIDTH * done // count
    bar = f"[{'#' * filled}{'.' * (WIDTH - filled)}] {done}/{count} {name}"
    terminal = sys.stderr.isatty()
    print(f"\r{bar:<70}" if terminal else bar, end="" if terminal else "\n", file=sys.stderr, flush=True)
