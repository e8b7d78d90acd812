"""Merged sketches: b is exact, certificates add and hold, and so do the radii of the theorems; dyadic blocks too."""

import numpy as np
import pytest

import onepass as op
from onepass.design.contract import matrix, solve
from onepass.estimator.contract import radius

DIM = 30
REGS = (0.05, 1.0, 7.0)
RNG = np.random.default_rng(4)
ROUNDING = 1e-6  # of ||A||: certificates of roundings grow faster than the rows do


def stream(count, rank, seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((count, rank)) @ rng.standard_normal((rank, DIM)) / np.sqrt(rank * 2.0)


def truth(reg, *streams):
    rows = np.vstack(streams)
    return reg * np.eye(DIM) + rows.T @ rows


def gap(a, design):
    return np.linalg.norm(a - design.matrix(), 2)


@pytest.mark.parametrize("compensation", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("reg", REGS)
def test_merged_bandits_on_sketches_keep_b_and_their_certificates_add_and_hold(reg, compensation):
    design = op.FrequentDirections(dim=DIM, size=4, reg=reg, compensation=compensation)
    streams, shards = [stream(80, rank, rank) for rank in (30, 9, 20)], []
    rewards = [rows @ np.ones(DIM) + RNG.standard_normal(80) for rows in streams]
    for rows, paid in zip(streams, rewards, strict=True):
        shards.append(op.Bandit(op.Ridge(design)))
        shards[-1].learn(rows, paid)
    merged = op.merge_all(*shards)
    assert merged.error_bound() >= sum(shard.error_bound() for shard in shards) * (1 - 1e-9)
    state, a = merged.model.state, truth(reg, *streams)
    assert np.linalg.norm(a - matrix(state.design), 2) <= merged.error_bound()
    b = sum(rows.T @ paid for rows, paid in zip(streams, rewards, strict=True))
    np.testing.assert_allclose(state.moment, b, rtol=0, atol=1e-10 * np.abs(b).max())
    np.testing.assert_allclose(merged.model.parameter, solve(state.design, b), rtol=0, atol=1e-8)


def test_a_sketch_gives_no_rows_back():
    held = op.FrequentDirections(dim=DIM, size=4).append(stream(10, 5, 0))
    bandits = [op.Bandit(op.Ridge(held)) for _ in range(2)]
    with pytest.raises(ValueError, match="rows cannot be taken away"):
        bandits[0].merge(bandits[1])
    start = op.Bandit(op.Ridge(op.FrequentDirections(dim=DIM, size=4)))
    assert start.copy().merge(start, since=start).n_learned == 0
    start.learn(stream(10, 5, 0), np.ones(10))
    with pytest.raises(ValueError, match="rows cannot be taken away"):
        start.copy().merge(start.copy(), since=start)


@pytest.mark.parametrize("base", ["fd", "rfd"])
@pytest.mark.parametrize("reg", REGS)
def test_dyadic_blocks_merge_and_certificates_add_and_hold(base, reg):
    """In all phases, after further rows as well; nothing is cut but a first block that had to be frozen."""
    seen = set()
    for error in (1.0, 5.0, 40.0):
        for counts in ((3, 2), (20, 200), (200, 200), (500, 20), (0, 60), (60, 0), (0, 0)):
            for rank in (2, 9, DIM):
                streams = [stream(count, rank, seed) for seed, count in enumerate(counts)]
                one, two = (op.Dyadic(dim=DIM, size=2, error=error, reg=reg, base=base).append(x) for x in streams)
                phases, frozen = (one.state.phase, two.state.phase), max(one.state.frozen, two.state.frozen)
                bounds, held = one.error_bound() + two.error_bound(), two.matrix()
                one.merge(two)
                np.testing.assert_array_equal(two.matrix(), held)
                rounding = ROUNDING * np.linalg.norm(truth(reg, *streams), 2)
                assert one.error_bound() <= bounds + (0.0 if frozen or max(phases) else 2.0 * error) + rounding
                for more in (0, 60):
                    streams.append(stream(more, rank, 7))
                    a = truth(reg, *streams)
                    one.append(streams[-1])
                    assert gap(a, one) <= one.error_bound() <= 4.0 * error + rounding
                    assert one.consistent(one.state)
                    inverse = np.linalg.inv(one.matrix())
                    solved = np.stack([one.solve(axis) for axis in np.eye(DIM)])
                    np.testing.assert_allclose(solved, inverse, rtol=0, atol=1e-7 * np.abs(inverse).max())
                    assert abs(one.log_det() - np.linalg.slogdet(one.matrix())[1]) < 1e-6
                seen.add((phases, one.state.phase))
    assert len(seen) >= 5


def test_merged_dyadic_blocks_dominate_nothing_that_was_not_there():
    """0 <= X^T X - H <= shed I, for many shards one after the other."""
    streams = [stream(60, 12, seed) for seed in range(6)]
    shards = [op.Dyadic(dim=DIM, size=2, error=3.0, reg=0.37).append(rows) for rows in streams]
    merged = op.merge_all(*shards)
    assert merged.error_bound() <= 2.0 * 3.0 * len(shards)
    rest = np.linalg.eigvalsh(truth(0.37, *streams) - merged.matrix())
    assert rest[0] >= -1e-8
    assert rest[-1] <= merged.error_bound()
    assert op.from_bytes(op.to_bytes(merged)).matrix().tolist() == merged.matrix().tolist()


@pytest.mark.parametrize(
    "design",
    [
        op.Exact(dim=4, reg=0.37),
        op.FrequentDirections(dim=4, size=2, reg=0.37),
        op.RobustFrequentDirections(dim=4, size=2, reg=0.37),
    ],
    ids=["exact", "fd", "rfd"],
)
def test_theoretical_radii_hold_after_merging(design):
    """||theta_* - theta||_A <= radius with probability 0.9, of five shards: of 200 at most 10% and 3 sigma fail."""
    failures = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        parameter = rng.standard_normal(4)
        parameter /= np.linalg.norm(parameter)
        shards = [op.Bandit(op.Ridge(design)) for _ in range(5)]
        for shard in shards:
            rows = rng.standard_normal((10, 4))
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            shard.learn(rows, rows @ parameter + rng.standard_normal(10))
        whole = op.merge_all(*shards)
        miss = parameter - whole.model.parameter
        bound = radius(whole.model.state, whole.n_learned, 1.0, 1.0, 1.0, 0.1)
        failures += miss @ matrix(whole.model.state.design) @ miss > bound**2
    assert failures <= 200 * 0.1 + 3 * np.sqrt(200 * 0.1 * 0.9)
