"""Snapshots: what a bandit knew at one moment, however much it learns meanwhile."""

import numpy as np
import pytest

import onepass as op
from counts import repetitions

DIM = 5
BANDITS = {
    "exact": lambda: op.Bandit(op.Ridge(op.Exact(dim=DIM, reg=0.4)), op.Thompson(0.3), seed=1),
    "sketch": lambda: op.Bandit(op.Ridge(op.Dyadic(dim=DIM, size=2, error=4.0)), seed=1),
    "standardized": lambda: op.Bandit(op.Ridge(op.Exact(dim=DIM)), features=op.features.Standardize(dim=DIM), seed=1),
    "arena": lambda: op.Bandit(op.Disjoint(op.Ridge(op.ProjectorSplitting(dim=DIM, rank=2))), op.InverseGap(), seed=1),
    "shrinking arena": lambda: op.Bandit(op.Disjoint(op.Ridge(op.FrequentDirections(dim=DIM, size=2))), seed=1),
    "Huber arena": lambda: op.Bandit(op.Disjoint(op.OnePassHuber(op.Exact(dim=DIM))), seed=1),
    "separate": lambda: op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=DIM)), compact=False), seed=1),
    "hybrid": lambda: op.Bandit(
        op.Hybrid(shared=op.Ridge(op.Exact(dim=DIM)), arms=op.Ridge(op.ProjectorSplitting(dim=DIM, rank=2))), seed=1
    ),
    "directions": lambda: op.Bandit(
        op.Disjoint(op.Ridge(op.Exact(dim=2))), features=op.features.OuterProduct(left=2, right=3), seed=1
    ),
}


def teach(bandit, rng, count):
    """Rows, one by one and in batches; arms come and go."""
    for _ in range(count):
        shared, act = not bandit.model.has_named_arms, rng.integers(6)
        arms = [int(a) for a in rng.integers(40, size=6)]
        rows, rewards = rng.standard_normal((6, DIM)), rng.standard_normal(6)
        if bandit.model.features is not None and not shared:
            rows[:, 2:] = np.array(arms)[:, None] + np.arange(3.0)  # every arm keeps its direction
        if act == 0 and not shared and bandit.arms:
            bandit.remove_arm(bandit.arms[int(rng.integers(len(bandit.arms)))])
        elif act < 4:
            bandit.learn(rows[0], float(rewards[0]), None if shared else arms[0])
        else:
            bandit.learn(rows, rewards, None if shared else arms)


def answers(one, bandit):
    """All that a request can ask for."""
    rows = np.random.default_rng(3).standard_normal((40, DIM))
    if bandit.model.has_named_arms and bandit.model.features is not None:
        rows[:, 2:] = np.arange(40.0)[:, None] + np.arange(3.0)
    return one.score(rows, range(40)).tobytes(), one.decide(rows, range(40), k=3, id="x").to_dict()


@pytest.mark.parametrize("name", BANDITS)
def test_a_snapshot_stays_as_it_was_and_equals_a_copy(name):
    bandit, rng, held = BANDITS[name](), np.random.default_rng(0), []
    for step in range(repetitions(25, 2500)):
        teach(bandit, rng, 4)
        snapshot, copy = bandit.snapshot(), bandit.copy()
        held.append((snapshot, answers(copy, bandit), op.to_bytes(copy)))
        held = [held[i] for i in sorted({*rng.integers(len(held), size=3).tolist(), len(held) - 1})]
        for kept, want, saved in held:
            assert answers(kept, bandit) == want
            if step % 5 == 0:
                twin = kept.bandit()
                assert twin.n_learned == op.from_bytes(saved).n_learned == kept.n_learned
                own = np.random.default_rng(step)
                goes, same = np.random.default_rng(step), op.from_bytes(saved)
                teach(twin, own, 5)
                teach(same, goes, 5)
                assert answers(twin, bandit) == answers(same, bandit)


def test_a_snapshot_is_saved_while_the_bandit_learns_on(tmp_path):
    bandit, rng = BANDITS["arena"](), np.random.default_rng(1)
    teach(bandit, rng, 20)
    snapshot, want = bandit.snapshot(), answers(bandit.copy(), bandit)
    teach(bandit, rng, 20)
    snapshot.save(tmp_path / "model")
    assert answers(op.load(tmp_path / "model"), bandit) == want
    assert snapshot.memory_usage() > 0
    assert not hasattr(snapshot, "learn")


def test_decisions_of_two_snapshots_draw_on():
    bandit = op.Bandit(op.Ridge(op.Exact(dim=2)), op.Greedy(), seed=0)
    rows = np.ones((2, 2))
    chosen = [bandit.snapshot().decide(rows).arm for _ in range(64)]
    assert set(chosen) == {0, 1}


def test_copies_are_used_again_and_few_are_kept():
    bandit, rng = BANDITS["arena"](), np.random.default_rng(1)
    teach(bandit, rng, 60)
    places = set()
    for _ in range(20):
        bandit.learn(rng.standard_normal(DIM), 1.0, 3)
        snapshot = bandit.snapshot()
        places.add(snapshot._bandit.model.state.store.state.basis.ctypes.data)
    assert len(places) <= 2
    first = [bandit.snapshot() for _ in range(4)]
    assert len({one._bandit.model.state.store.state.basis.ctypes.data for one in first}) == 4
