"""Models per arm hold no more than what was learned, while arms come and go."""

import numpy as np
import pytest

import onepass as op
from arm_games import DIM, data, disjoint, learn_in_batches
from onepass.arena import arena
from onepass.foundation import state as states

# ---- storage ----


@pytest.mark.parametrize(("design", "most"), [
    (op.Exact(dim=DIM), DIM),
    (op.ProjectorSplitting(dim=DIM, rank=3), 3),
    (op.FrequentDirections(dim=DIM, size=2), 3),
], ids=["Exact", "ProjectorSplitting", "FrequentDirections"])  # fmt: skip
def test_an_arm_with_n_rows_holds_at_most_n_directions_and_at_most_its_rank(design, most):
    counts = [1, 2, 3, 4, 9, 30]
    rng = np.random.default_rng(0)
    names = rng.permutation(np.repeat(np.arange(6), counts))
    bandit = disjoint(design)
    for name in names:
        bandit.learn(rng.standard_normal(DIM), 1.0, int(name))
    state = bandit.model.state.store.to_state()
    held = [int(state.n_slots[bandit.model.index.lookup(a)]) for a in range(6)]
    assert all(h <= min(n, most) for h, n in zip(held, counts, strict=True))
    cut = int((state.outside >= 0).sum())  # one more slot an arm that has lost directions
    assert state.top == sum(held) + cut + len(free_slots(state))
    assert len(free_slots(state)) <= 6
    assert arena.is_consistent(state)


def free_slots(state):
    slots, slot = [], state.free
    while slot != arena.NONE:
        slots.append(slot)
        slot = state.link[slot]
    return slots


def test_memory_does_not_grow_with_arms_that_have_no_data():
    rows, rewards, names = data(50)
    bandit = learn_in_batches(disjoint(op.Exact(dim=DIM)), rows, rewards, names)
    before = bandit.memory_usage()
    for arm in range(100_000):
        bandit.add_arm(f"item {arm}")
    assert bandit.memory_usage() == before
    assert len(bandit.arms) == 100_004
    assert bandit.score(rows[0]).shape == (100_004,)


def test_little_room_is_spare_and_an_arena_grows_where_it_lies():
    rng, count = np.random.default_rng(0), 2_000
    bandit, grown = disjoint(op.ProjectorSplitting(dim=DIM, rank=3)), 0
    for _ in range(6):
        basis, slots = id(bandit.model.state.store.state.basis), bandit.model.state.store.state.link.size
        bandit.learn(rng.standard_normal((count, DIM)), np.ones(count), list(range(count)))
        grown += bandit.model.state.store.state.link.size > slots
        assert id(bandit.model.state.store.state.basis) == basis
    store = bandit.model.state.store
    needed, taken = states.nbytes(store.to_state()), states.nbytes(store.state)
    assert grown > 1
    assert needed <= taken <= 1.02 * needed  # a 64th, and 16 arms


@pytest.mark.parametrize("sizes", [(1,), (500,)])
def test_users_that_come_again_take_no_more_room(sizes):
    rng = np.random.default_rng(0)
    users, who, arm = rng.standard_normal((3, DIM)), rng.integers(0, 3, 1000), rng.integers(0, 20, 1000)
    bandit = learn_in_batches(disjoint(op.Exact(dim=DIM)), users[who], np.ones(1000), arm.tolist(), sizes)
    state = bandit.model.state.store.to_state()
    assert (state.n_slots == 3).all()
    assert arena.is_consistent(state)


def test_a_removed_arm_leaves_its_slots_to_others():
    rng = np.random.default_rng(0)
    bandit, store = disjoint(op.ProjectorSplitting(dim=DIM, rank=3)), None
    for arm in "abcdefgh":
        bandit.learn(rng.standard_normal((12, DIM)), np.ones(12), [arm] * 12)
    store = bandit.model.state.store
    top, records = store.state.top, store._count
    for arm in "bdf":
        bandit.remove_arm(arm)
    assert len(free_slots(store.state)) >= 3 * 4
    for arm in "xyz":
        bandit.learn(rng.standard_normal((12, DIM)), np.ones(12), [arm] * 12)
    assert store.state.top == top
    assert store._count == records
    assert arena.is_consistent(store.to_state())


@pytest.mark.parametrize("compact", [True, False])
def test_memory_stays_bounded_while_arms_come_and_go(compact):
    rng = np.random.default_rng(0)
    bandit, sizes = disjoint(op.FrequentDirections(dim=DIM, size=2), compact=compact), []
    for cycle_ in range(60):
        names = [f"{cycle_}/{i}" for i in range(10)]
        bandit.learn(rng.standard_normal((80, DIM)), np.ones(80), names * 8)
        for name in names:
            bandit.learn(rng.standard_normal(DIM), 1.0, name)
        sizes.append(bandit.memory_usage())
        for name in names:
            bandit.remove_arm(name)
    assert sizes[-1] == sizes[2]
    assert bandit.arms == ()
