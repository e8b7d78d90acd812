"""Any number of threads may use any object: nobody sees half a state, every file is of one that was."""

import itertools
import threading

import numpy as np
import pytest

import onepass as op
from counts import repetitions
from patience import PATIENCE
from thread_games import (
    ALL,
    ASKED,
    CALLS,
    KERNELS,
    REWARDS,
    ROWS,
    for_seconds,
    history,
    plain_reward,
    play_beside_readers,
    run_together,
)

SECONDS = repetitions(1, 240) / 4


@pytest.mark.parametrize("name", ALL)
def test_readers_beside_a_learner_see_states_between_two_calls_in_order_and_files_hold_one(name, tmp_path):
    kind = ALL[name]
    known = history(kind)
    seen = for_seconds(
        SECONDS, lambda: play_beside_readers(kind, known, tmp_path / "saved"), {"scores": CALLS, "files": 1}
    )
    assert seen["scores"] >= CALLS
    assert seen["files"] >= 1


@pytest.mark.parametrize("name", [*ALL])
def test_four_writers_leave_what_one_order_of_their_calls_leaves(name):
    kind = ALL[name]
    begun = kind.make()
    for i in range(12):
        kind.write(begun, i)
    orders = set()
    for order in itertools.permutations((12, 19, 24, 31)):
        twin = begun.copy()
        for i in order:
            kind.write(twin, i)
        orders.add(kind.read(twin).tobytes())
    for _ in range(repetitions(10, 2000)):
        one = begun.copy()
        assert run_together(*[lambda i=i, one=one: kind.write(one, i) for i in (12, 19, 24, 31)]) == []
        assert kind.read(one).tobytes() in orders


def test_rows_of_four_writers_are_all_learned():
    """Distinct unit vectors: every entry of the root and of the moment is made by one thread, in its order."""
    dim, times = 24, repetitions(30, 3000)
    one, alone, eye = op.OFUL(dim=dim, reg=0.37), op.OFUL(dim=dim, reg=0.37), np.eye(dim)

    def learn(bandit, first):
        for t in range(times):
            for axis in range(first, dim, 4):
                bandit.learn(0.1 * (1 + t % 7) * eye[axis], float(REWARDS[t % 50]))

    assert run_together(*[lambda first=first: learn(one, first) for first in range(4)]) == []
    for first in range(4):
        learn(alone, first)
    assert one.n_learned == alone.n_learned == dim * times
    assert np.allclose(one.score(eye), alone.score(eye), rtol=1e-12, atol=0.0)


def test_arms_of_four_writers_are_those_of_one():
    """Arms share nothing: whatever the order between arms, each is the same, bit for bit."""

    def made():
        return op.Bandit(op.Disjoint(op.Ridge(op.FrequentDirections(dim=10, size=3, reg=0.37))))

    def learn(bandit, writer):
        for i in range(repetitions(150, 120)):
            j = i % 100
            names = [f"{writer}-{i}", f"{writer}-{i % 5}", f"{writer}-{i % 3}"]
            bandit.learn(ROWS[j : j + 3], REWARDS[j : j + 3], names)
            bandit.learn(ROWS[j], plain_reward(REWARDS[j]), f"{writer}-{i % 4}")

    for _ in range(repetitions(1, 100)):
        one, alone = made(), made()
        assert run_together(*[lambda writer=writer, one=one: learn(one, writer) for writer in range(4)]) == []
        for writer in range(4):
            learn(alone, writer)
        names = alone.arms
        assert set(one.arms) == set(names)
        assert one.score(ASKED[0], names).tobytes() == alone.score(ASKED[0], names).tobytes()


def test_arms_come_and_go_while_others_decide():
    bandit = op.Bandit(op.Disjoint(op.Ridge(op.FrequentDirections(dim=10, size=3))))
    bandit.learn(ROWS[:5], REWARDS[:5], list("abcde"))
    over = threading.Event()

    def change():
        try:
            for i in range(repetitions(200, 20000)):
                bandit.add_arm(i)
                bandit.learn(ROWS[i % 50], 1.0, i)
                bandit.remove_arm(i)
        finally:
            over.set()

    def decide():
        while not over.is_set():
            assert bandit.decide(ASKED[0]).arm is not None
            assert len(bandit.recommend(ASKED, 3).arms[0]) == 3
            assert bandit.model.rows_of("a") == 1
            assert bandit.memory_usage() > 0

    assert run_together(change, decide, decide) == []
    assert bandit.arms == tuple("abcde")


def test_four_threads_that_decide_draw_as_often_as_one():
    """The generator stands where it stands after as many decisions of one thread: no number was drawn twice."""
    one, alone, count = op.OFUL(dim=3), op.OFUL(dim=3), repetitions(200, 20000)

    def decide(bandit, times):
        for _ in range(times):
            bandit.decide(np.eye(3))

    assert run_together(*[lambda: decide(one, count)] * 4) == []
    decide(alone, 4 * count)
    assert op.to_bytes(one) == op.to_bytes(alone)


@pytest.mark.parametrize("name", KERNELS)
def test_two_threads_read_at_the_same_time(name):
    """A kernel of the user's own waits within `posterior` until another thread is there as well."""
    met = threading.Barrier(2)
    waits = [False]

    def slow(x, y):
        if waits[0]:
            met.wait(PATIENCE)
        return op.RBF(1.0)(x, y)

    bandit = op.GPUCB(np.arange(6.0)[:, None], slow) if "GP" in name else op.BKB(np.arange(6.0)[:, None], slow)
    bandit.learn(None, 1.0, 2)
    waits[0] = True
    assert run_together(*[lambda: bandit.model.posterior([[0.5]])] * 2) == []


def test_other_threads_run_while_one_computes():
    """Each of these calls takes long: if it held the lock of the interpreter, the counter would stand still."""
    rows = np.random.default_rng(0).standard_normal((30_000, 40))
    sketch, learner = op.SOFUL(dim=40, size=10), op.learner.FOGD(features=400)
    sketch.learn(rows[:50], rows[:50, 0])
    learner.partial_fit(rows[:50], np.sign(rows[:50, 0]))
    for call in (
        lambda: sketch.score(rows),
        lambda: sketch.learn(rows, rows[:, 0]),
        lambda: learner.decision_function(rows),
        lambda: learner.partial_fit(rows, np.sign(rows[:, 0])),
    ):
        call()
        assert any(ticks_beside(call) >= 3 for _ in range(ATTEMPTS))


ATTEMPTS = 100  # at seeing a thread run, which the system may leave out for as long as a call takes


def ticks_beside(call):
    """How often this thread ran while another one called something."""
    ticks, over = 0, threading.Event()

    def run():
        call()
        over.set()

    thread = threading.Thread(target=run)
    thread.start()
    while not over.wait(0.0005):
        ticks += 1
    thread.join()
    return ticks
