"""Fill the compilation cache: `python -m onepass compile`, for images and before first requests.

Every recipe decides and learns, and every learner learns, once in each way that compiles separate code. Other
combinations compile when they are first used: hybrid models, another design under another estimator, float32, and
designs of your own.
"""

import sys
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

import numpy as np

import onepass as op
from onepass.foundation import cache, compilation, compile_notice
from onepass.learner.multiclass_newton import MulticlassNewton

DIM, ROWS = 6, 40  # enough rows for every phase that has its own types; times do not depend on them
WIDTH = 30  # of the bar, in characters


def shared(bandit: Any) -> None:
    """Make a bandit with one shared model decide, learn a row, learn several rows, and play."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((4, DIM))
    row = rows[bandit.decide(rows).arm]
    bandit.learn(row, 1.0)
    bandit.learn(np.stack([row, row, row]), rng.random(3))  # some play an arm twice in a row
    bandit.play(np.stack([rows, rows]), rng.random((2, 4)))
    bandit.error_bound()


def per_arm(bandit: Any) -> None:
    """Make a bandit with a model for each arm decide, learn, play and recommend."""
    rows = np.random.default_rng(0).standard_normal((4, DIM))
    bandit.learn(rows, [0.0, 1.0, 0.0, 1.0], arm=["a", "b", "a", "b"])
    bandit.learn(rows[0], 1.0, arm=bandit.decide(rows[0]).arm)
    bandit.decide(rows[:2], arms=["a", "b"])
    bandit.recommend(rows, k=1)
    bandit.play(rows[:, None], np.ones((4, 2)))
    bandit.models_of()
    bandit.error_bound()


def recommended(bandit: Any) -> None:
    """Make a `ContextualBandit` decide and learn on rows of numbers."""
    rows = np.random.default_rng(0).standard_normal((ROWS, DIM))
    for row in rows:
        bandit.learn(bandit.decide(row, ["a", "b"]), 1.0)
    bandit.score(rows[0])


def crossed(bandit: Any) -> None:
    """Make a bandit decide and learn on contexts that are dictionaries."""
    arms = {"a": {"topic": "x", "length": 1.0}, "b": {"topic": "y", "length": 2.0}}
    for hour in range(ROWS):
        bandit.learn(bandit.decide({"hour": hour, "country": "de"}, arms=arms), 1.0)


def kernel(bandit: Any) -> None:
    """Play some rounds with a kernel bandit."""
    for _ in range(4):
        arm = bandit.decide().arm
        bandit.learn(None, float(arm % 3), arm)
    bandit.decide()


def learner(found: Any) -> None:
    """Learn rows with the online kernel learner `found`, and predict two rows."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((ROWS, DIM))
    found.partial_fit(rows, np.where(rows[:, 0] > 0.0, 1.0, -1.0))
    found.predict(rows[:2])


def several() -> None:
    """Learn rows of three classes with a multiclass learner, and predict classes."""
    rows = np.random.default_rng(0).standard_normal((ROWS, DIM))
    found = MulticlassNewton(classes=3, learner=op.KernelNewton())
    found.partial_fit(rows, np.arange(ROWS) % 3.0).predict(rows[:2])


SHARED: dict[str, dict[str, Any]] = {
    "OFUL": {}, "LinUCB": {}, "LinTS": {}, "SOFUL": {"size": 2}, "CBSCFD": {"size": 2},
    "DBSLinUCB": {"size": 2, "error": 1.0}, "PSILinUCB": {"rank": 2}, "CBRAP": {"size": 3}, "HvtUCB": {},
    "HeavyOFUL": {}, "WeightUCB": {"half_life": 10.0},
    "CRTM": {}, "TOFU": {}, "CRMM": {"repeats": 2}, "MENU": {"repeats": 2},
    "GLBOMD": {}, "GLOC": {},
}  # fmt: skip
PER_ARM = ("OFUL", "SOFUL", "DBSLinUCB", "PSILinUCB", "HvtUCB")  # LinTS plays OFUL's compiled code
LEARNERS: dict[str, dict[str, Any]] = {
    "KernelNewton": {}, "FORKS": {"budget": 10}, "SkeGD": {"budget": 10}, "NOGD": {"budget": 10},
    "FOGD": {"features": 10}, "PROSNKONS": {}, "RBP": {"budget": 10}, "BPAS": {"budget": 10}, "BOGD": {"budget": 10},
    "Projectron": {"budget": 10}, "KOGD": {},
}  # fmt: skip


def jobs() -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the name of every job and the function that does it; a job compiles the code of one bandit or tool."""
    for name, options in SHARED.items():
        yield name, partial(call, shared, name, dim=DIM, **options)
    for name in PER_ARM:
        yield f"{name} per arm", partial(call, per_arm, name, dim=DIM, model="disjoint", **SHARED[name])
    yield "ItemHeads", partial(call, per_arm, "ItemHeads", dim=DIM)
    yield "ItemModels", partial(call, per_arm, "ItemModels", dim=DIM)
    yield "ContextualBandit", partial(call, recommended, "ContextualBandit")
    yield "InteractionBandit", partial(call, crossed, "InteractionBandit")
    points = np.random.default_rng(0).random((20, 2))
    for name in ("BKB", "GPUCB"):
        yield name, partial(call, kernel, name, points, op.Matern(2.5, 0.5), reg=0.01)
    for name, options in LEARNERS.items():
        yield name, partial(call, learner, name, **options)
    yield "KernelNewton of several classes", several


def call(use: Callable[[Any], None], name: str, *args: Any, **options: Any) -> None:
    """Make the bandit or learner `name` with these arguments, and call `use` with it."""
    place = op.learner if name in op.learner.__all__ else op
    use(getattr(place, name)(*args, **options))


def main(names: Collection[str] = ()) -> int:
    """Do the jobs with these names, or all jobs if there are none, and return the exit code.

    A progress bar is shown on standard error.
    """
    every, before = list(jobs()), cache.count_entries(compilation.entry_suffix())
    unknown = set(names) - {name for name, _ in every}
    if unknown:
        known = ", ".join(repr(name) for name, _ in every)
        print(f"onepass: there is nothing to compile for {sorted(unknown)[0]!r}: choose among {known}", file=sys.stderr)
        return 2
    every = [(name, job) for name, job in every if name in names or not names]
    compile_notice.set_quiet(True)
    for done, (name, job) in enumerate(every):
        show(done, len(every), name)
        job()
    show(len(every), len(every), "")
    compile_notice.set_quiet(False)
    found = cache.count_entries(compilation.entry_suffix())
    if found == 0:
        print("\nonepass: nothing was kept; set NUMBA_CACHE_DIR to a folder that can be written to", file=sys.stderr)
        return 1
    seconds = compile_notice.compile_seconds()
    if found > before:
        cache.record_seconds(seconds)
    print(f"\nonepass: {found - before} functions compiled in {seconds:.0f} s, {found} are kept", file=sys.stderr)
    return 0


def show(done: int, count: int, name: str) -> None:
    """Show that `done` of `count` jobs are finished, and the name of the current job.

    On a terminal this is a bar in one line, elsewhere one line for every job.
    """
    filled = WIDTH * done // count
    bar = f"[{'#' * filled}{'.' * (WIDTH - filled)}] {done}/{count} {name}"
    terminal = sys.stderr.isatty()
    print(f"\r{bar:<70}" if terminal else bar, end="" if terminal else "\n", file=sys.stderr, flush=True)
