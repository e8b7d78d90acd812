"""Workers that learn one stream and merge while it runs: at every merge the model is that of one pass over its rows."""

import numpy as np
import pytest

import onepass as op
from counts import LONG
from counts import repetitions as often
from onepass.cluster import Replicas

DIM, REG = 5, 0.3


def stream(seed: int, batches: int):
    """Batches of 1 to 40 rows and their rewards; single rows, too, as a stream has them."""
    rng = np.random.default_rng(seed)
    for n in rng.integers(1, 41, batches):
        x = rng.standard_normal((n, DIM))
        yield (x[0], float(x[0, 0])) if n < 4 else (x, x[:, 0] + rng.standard_normal(n))


def stack_batches(batches):
    """All rows of batches, and rewards."""
    return np.vstack([np.atleast_2d(x) for x, _ in batches]), np.hstack([rewards for _, rewards in batches])


def test_every_merge_is_one_pass_over_the_first_rows_and_never_late_by_more_than_promised():
    for seed, workers, merge_every in (
        (0, 2, 50),
        (1, 1, 7),
        (2, 3, 64),
        *((s, 1 + s % 5, 1 + 9 * s) for s in range(often(0, 60))),
    ):
        batches = list(stream(seed, 12))
        x, rewards = stack_batches(batches)
        with Replicas(op.OFUL(dim=DIM, reg=REG), workers, merge_every=merge_every) as stream_of:
            for place, (rows, paid) in enumerate(batches):
                stream_of.learn(rows, paid)
                if place == 5:
                    next(iter(stream_of.supervisor.members.values())).shard.clear()  # lost
                model, n = stream_of.model, stream_of.model.n_learned
                assert 0 <= stream_of.lag == stream_of.n_learned - n < merge_every
                theta = np.linalg.solve(REG * np.eye(DIM) + x[:n].T @ x[:n], x[:n].T @ rewards[:n])
                np.testing.assert_allclose(model.model.parameter, theta, rtol=0.0, atol=1e-9)
            assert stream_of.merge().n_learned == len(x)
            assert stream_of.supervisor.recovered == 1


@pytest.mark.parametrize("design", [op.FrequentDirections, op.RobustFrequentDirections])
def test_certificates_add_once_however_often_workers_merge(design):
    """||A - A_hat||_2 is at most the bound, which is that of one merge at the end."""
    bounds, x = [], np.random.default_rng(3).standard_normal((8, 20, DIM))
    for merge_every in (20, 60, 1_000_000):
        with Replicas(design(dim=DIM, size=2, reg=REG), 2, merge_every=merge_every) as stream_of:
            for rows in x:
                stream_of.learn(rows)
            found = stream_of.merge()
            error = np.linalg.norm(REG * np.eye(DIM) + np.vstack(x).T @ np.vstack(x) - found.matrix(), 2)
            assert 0.0 < error <= stream_of.error_bound()
            bounds.append((error, stream_of.error_bound()))
    assert bounds[0] == bounds[1] == bounds[2]


def test_what_the_recipe_knew_is_counted_once_and_arms_are_merged_too():
    one = op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=DIM, reg=REG))), op.UCB(0.3))
    rng = np.random.default_rng(4)
    x, rewards, arms = rng.standard_normal((90, DIM)), rng.random(90), rng.integers(0, 4, 90).tolist()
    one.learn(x[:30], rewards[:30], arms[:30])
    with Replicas(one, 2, merge_every=20) as stream_of:
        stream_of.learn(x[30:], rewards[30:], arms[30:])
        one.learn(x[30:], rewards[30:], arms[30:])
        np.testing.assert_allclose(stream_of.model.score(x[0], range(4)), one.score(x[0], range(4)), atol=1e-9)
        assert stream_of.model.n_learned == 90


def test_what_is_refused_changes_nothing():
    with Replicas(op.OFUL(dim=DIM, reg=REG), 2, merge_every=100) as stream_of:
        x = np.eye(DIM)
        stream_of.learn(x, np.ones(DIM))
        for wrong in (
            lambda: stream_of.learn(x, [1.0, np.nan, 1.0, 1.0, 1.0]),
            lambda: stream_of.learn(x, np.ones(4)),
            lambda: stream_of.learn(np.eye(DIM + 1), np.ones(DIM + 1)),  # by the workers
            lambda: stream_of.learn(x, np.ones(DIM), ["arm"] * DIM),
            lambda: stream_of.learn(x, None, ["arm"] * DIM),
            lambda: stream_of.learn(op.OFUL(dim=DIM).decide(x), 1.0),
        ):
            with pytest.raises((ValueError, TypeError)):
                wrong()
        stream_of.learn(x, np.ones(DIM))
        found = stream_of.merge()
    assert stream_of.n_learned == found.n_learned == 2 * DIM
    np.testing.assert_allclose(found.model.parameter, 2.0 / (REG + 2.0), rtol=0.0, atol=1e-9)


def test_a_recipe_that_cannot_be_merged_is_refused_at_once():
    for recipe in ("OFUL", *([op.ProjectorSplitting(dim=DIM, rank=2)] * LONG)):
        with pytest.raises(TypeError, match=r"merge|recipe"):
            Replicas(recipe)
    with pytest.raises(ValueError, match="every"):
        Replicas(op.OFUL(dim=DIM), merge_every=0)
