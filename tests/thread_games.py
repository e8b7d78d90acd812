"""Games of threads: one learns at full speed, others score, one saves and copies. A second object knows all states."""

import contextlib
import functools
import pickle
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import onepass as op
from counts import LONG
from patience import PATIENCE

SWITCH = 0.0005  # seconds between two switches of threads
READERS = 4
CALLS = 120  # of a stream
DIM = 10

rng = np.random.default_rng(5)
ROWS = rng.standard_normal((CALLS + 8, DIM))
REWARDS = np.where(ROWS[:, 0] * ROWS[:, 1] > 0.0, 1.0, -1.0)
ASKED = rng.standard_normal((7, DIM))
POINTS = rng.standard_normal((40, 2))


class Kind(NamedTuple):
    """How to make an object, its i-th write, and a read that returns an array."""

    make: Callable[[], Any]
    write: Callable[[Any, int], Any]
    read: Callable[[Any], np.ndarray]


def rows_at(i: int) -> slice | int:
    """Return the rows of the i-th call. Every tenth call takes eight rows."""
    return slice(i, i + 8) if i % 10 == 9 else i


def plain_reward(reward: Any) -> Any:
    return reward if np.ndim(reward) else float(reward)


def shared_kind(make):
    return Kind(
        make, lambda b, i: b.learn(ROWS[rows_at(i)], plain_reward(REWARDS[rows_at(i)])), lambda b: b.score(ASKED)
    )


def names_at(i: int) -> Any:
    """Return the arms of a call, with new ones among them, so that the arrays of all arms grow."""
    return [i % 7, 100 + i, 200 + i, 300 + i, 400 + i, i % 3, i % 5, 6] if i % 10 == 9 else i % 11


def arms(make):
    asked = (0, 1, 2, 3, 4, 5, 109)
    return Kind(
        make,
        lambda b, i: b.learn(ROWS[rows_at(i)], plain_reward(REWARDS[rows_at(i)]), names_at(i)),
        lambda b: b.score(ASKED, asked),
    )


def clicks(make):
    paid = 0.5 + 0.5 * REWARDS
    return Kind(make, lambda b, i: b.learn(ROWS[rows_at(i)], plain_reward(paid[rows_at(i)])), lambda b: b.score(ASKED))


@functools.cache
def records_of_decisions():
    """Return decisions about dictionaries, of a bandit that learns nothing."""
    bandit, topics = op.InteractionBandit(), ("sport", "news", "art")
    return [
        bandit.decide(
            {"hour": i % 24, "device": f"d{i % 5}"}, {f"a{j}": {"topic": topics[j % 3]} for j in range(i % 4 + 2)}
        )
        for i in range(CALLS + 8)
    ]


def interaction_kind(make):
    offered = {f"a{j}": {"topic": "sport", "age": j} for j in range(5)}
    return Kind(
        make,
        lambda b, i: b.learn(records_of_decisions()[rows_at(i)], plain_reward(REWARDS[rows_at(i)]), allow_repeat=True),
        lambda b: b.score({"hour": 7, "device": "d1"}, offered),
    )


def kernel(make):
    def write(b, i):
        b.learn(None, *(([1.0, 0.5], [i % 9, i % 7]) if i % 10 == 9 else (float(REWARDS[i]), i % 29)))

    return Kind(make, write, lambda b: b.score())


def changing_arms_kind(make):
    def write(b, i):
        b.learn(*((ROWS[i : i + 2], [1.0, 0.5]) if i % 10 == 9 else (ROWS[i], float(REWARDS[i]))))

    return Kind(make, write, lambda b: b.score(ASKED))


def learner(make):
    def write(one, i):
        block = slice(i, i + (8 if i % 10 == 9 else 1))
        one.partial_fit(ROWS[block], REWARDS[block])

    return Kind(make, write, lambda one: one.decision_function(ASKED))


def design(make):
    return Kind(make, lambda d, i: d.append(ROWS[rows_at(i)]), lambda d: d.inverse_quadratic(ASKED))


def classifier():
    labels = (REWARDS + 1.5).astype(int) + (ROWS[:, 2] > 0.0)

    def write(one, i):
        one.partial_fit(ROWS[i : i + 2], labels[i : i + 2], classes=[0, 1, 2, 3])

    return Kind(
        lambda: op.OnlineKernelClassifier(op.learner.FOGD(features=20)).partial_fit(
            ROWS[:2], labels[:2], classes=[0, 1, 2, 3]
        ),
        write,
        lambda one: one.decision_function(ASKED),
    )


def per_arm(member, **options):
    return lambda: op.Bandit(op.Disjoint(op.Ridge(member), **options))


SKETCH = op.FrequentDirections(dim=DIM, size=4, reg=0.37)
BANDITS = {
    "exact": shared_kind(lambda: op.OFUL(dim=DIM, reg=0.37)),
    "sketch": shared_kind(lambda: op.SOFUL(dim=DIM, size=3, reg=0.37)),
    "blocks": shared_kind(lambda: op.DBSLinUCB(dim=DIM, size=2, error=4.0, reg=0.37)),
    "huber": shared_kind(lambda: op.HvtUCB(dim=DIM, reg=0.37)),
    "moving map": shared_kind(
        lambda: op.Bandit(op.Ridge(op.Exact(dim=DIM)), features=op.features.Standardize(dim=DIM))
    ),
    "arms in an arena": arms(per_arm(SKETCH)),
    "arms apart": arms(per_arm(SKETCH, compact=False)),
    "hybrid": arms(lambda: op.Bandit(op.Hybrid(shared=op.Ridge(op.Exact(dim=DIM)), arms=op.Ridge(SKETCH)))),
}
KERNELS = {
    "GPUCB": kernel(lambda: op.GPUCB(POINTS, op.RBF(1.0))),
    "GPUCB, normalized": kernel(lambda: op.GPUCB(POINTS, op.RBF(1.0), normalize=True)),
    "GPUCB, changing arms": changing_arms_kind(lambda: op.GPUCB(None, op.RBF(1.0))),
    "BKB": kernel(lambda: op.BKB(POINTS, op.RBF(1.0))),
}
LEARNERS = {
    "KOGD": learner(lambda: op.learner.KOGD()),
    "RBP": learner(lambda: op.learner.RBP(budget=10)),
    "BPAS": learner(lambda: op.learner.BPAS(budget=10)),
    "BOGD": learner(lambda: op.learner.BOGD(budget=10)),
    "Projectron": learner(lambda: op.learner.Projectron(budget=10)),
    "FOGD": learner(lambda: op.learner.FOGD(features=20)),
    "NOGD": learner(lambda: op.learner.NOGD(budget=10)),
    "SkeGD": learner(lambda: op.learner.SkeGD(budget=10)),
    "FORKS": learner(lambda: op.learner.FORKS(budget=10, width=2.0)),
    "PROSNKONS": learner(lambda: op.learner.PROSNKONS()),
    "KernelNewton": learner(lambda: op.KernelNewton(size=6, warm_up=20)),
    "KernelNewton, sketched": learner(lambda: op.KernelNewton(size=6, warm_up=20, features="sketched")),
    "classifier": classifier(),
}
PARTS = {
    "Exact": design(lambda: op.Exact(dim=DIM, reg=0.37)),
    "FrequentDirections": design(lambda: op.FrequentDirections(dim=DIM, size=4, reg=0.37)),
    "Dyadic": design(lambda: op.Dyadic(dim=DIM, size=2, error=4.0, reg=0.37)),
    "Standardize": Kind(
        lambda: op.features.Standardize(dim=DIM), lambda m, i: m.learn(ROWS[i]), lambda m: m.transform(ASKED)
    ),
}
if LONG:
    BANDITS["contextual"] = arms(lambda: op.ContextualBandit(dim=DIM))
    BANDITS["crossed"] = interaction_kind(lambda: op.InteractionBandit())
    BANDITS["contextual, crossed"] = interaction_kind(lambda: op.ContextualBandit(model="interaction"))
    BANDITS["clicks"] = clicks(lambda: op.GLBOMD(dim=DIM))
    BANDITS["half-life"] = shared_kind(lambda: op.WeightUCB(dim=DIM, half_life=20))
    BANDITS["arms, half-life"] = arms(lambda: op.LinUCB(dim=DIM, model="disjoint", half_life=20))
ALL = {**BANDITS, **KERNELS, **LEARNERS, **PARTS}


def history(kind: Kind) -> dict[bytes, list[int]]:
    """Map the answer of every state to the numbers of calls after which it is given."""
    one = kind.make()
    found = {kind.read(one).tobytes(): [0]}
    for i in range(CALLS):
        kind.write(one, i)
        found.setdefault(kind.read(one).tobytes(), []).append(i + 1)
    return found


@contextlib.contextmanager
def switching():
    """Let threads take turns often."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


def run_together(*jobs: Callable[[], None]) -> list[BaseException]:
    """Run jobs in threads that start together, and return the errors they raised."""
    raised, begin = [], threading.Barrier(len(jobs))

    def run(job):
        begin.wait()
        try:
            job()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    with switching():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return raised


def play_beside_readers(kind: Kind, known: dict[bytes, list[int]], path: Any) -> dict[str, int]:
    """Learn one stream while other threads read and save, and return the numbers of scores and files checked.

    Raises AssertionError for a score that no state gives, or that is older than the reader's last one.
    """
    one, over = kind.make(), threading.Event()
    seen = {"scores": 0, "files": 0}

    def write():
        try:
            for i in range(CALLS):
                kind.write(one, i)
        finally:
            over.set()

    def read():
        before = 0
        while not over.is_set():
            places = known.get(kind.read(one).tobytes(), [])
            later = [place for place in places if place >= before]
            assert later, f"a score of {places or 'no state'} after one of {before}"
            before = later[0]
            seen["scores"] += 1

    def save():
        while not over.is_set():
            one.save(path)
            for twin in (op.load(path), one.copy(), pickle.loads(pickle.dumps(one))):
                assert kind.read(twin).tobytes() in known
            seen["files"] += 1

    raised = run_together(write, save, *[read] * READERS)
    if raised:
        raise raised[0]
    assert kind.read(one).tobytes() in known
    return seen


def for_seconds(seconds: float, game: Callable[[], dict[str, int]], least: dict[str, int]) -> dict[str, int]:
    """Repeat a game for some seconds, and until its counts reach `least`. Return the sums of its counts."""
    total: dict[str, int] = {}
    begun = time.monotonic()
    while (
        not total
        or (passed := time.monotonic() - begun) < seconds
        or (passed < PATIENCE and any(total[name] < count for name, count in least.items()))
    ):
        for name, count in game().items():
            total[name] = total.get(name, 0) + count
    return total
