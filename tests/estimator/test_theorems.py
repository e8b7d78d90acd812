"""The guarantees of the papers, at every round."""

import numpy as np
import pytest

import dense
import onepass as op
from onepass.estimator.radii import confidence_radius
from onepass.testing import REGS

DIM = 16


def streams():
    rng = np.random.default_rng(0)
    flat = rng.standard_normal((150, DIM))
    yield "flat", flat / np.linalg.norm(flat, axis=1, keepdims=True)
    yield "decaying", rng.standard_normal((150, DIM)) * 0.6 ** np.arange(DIM)
    yield "changing", np.vstack([flat[:70] * ([3.0] * 4 + [0.1] * 12), flat[70:] * ([0.1] * 12 + [2.0] * 4)])


STREAMS = dict(streams())


def data_part(design):
    """S^T S: what the sketch holds without its ridge."""
    state = design.state
    ridge = state.space.ridge if isinstance(design, op.FrequentDirections) else None
    if ridge is None:
        rule, shed = state.block.settings, state.sums.shed + state.block.sums.shed
        ridge = rule.reg + rule.compensation * shed
    return design.matrix() - ridge * np.eye(DIM)


def sheds(design):
    state = design.state
    return state.sums.shed + (0.0 if isinstance(design, op.FrequentDirections) else state.block.sums.shed)


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("compensation", [0.0, 0.5, 1.0])
def test_shed_mass_bounds_the_gap_and_stays_below_the_tail_bound(stream, compensation):
    size = 4
    design = op.FrequentDirections(dim=DIM, size=size, reg=0.37, compensation=compensation)
    for t, row in enumerate(STREAMS[stream], 1):
        design.append(row)
        rows = STREAMS[stream][:t]
        gap = np.linalg.eigvalsh(rows.T @ rows - data_part(design))
        slack = 1e-10 * np.linalg.norm(rows) ** 2
        assert gap[0] >= -slack
        assert gap[-1] <= sheds(design) + slack
        tails = np.append(np.cumsum(np.linalg.svd(rows, compute_uv=False)[::-1] ** 2)[::-1], 0.0)
        bound = min(tails[k] / (size - k) for k in range(min(size, tails.size)))
        assert sheds(design) <= bound + slack
        error = np.linalg.norm(0.37 * np.eye(DIM) + rows.T @ rows - design.matrix(), 2)
        assert error <= design.error_bound() + slack


def test_fast_frequent_directions_equal_the_naive_ones():
    for stream in STREAMS.values():
        fast, naive = op.FrequentDirections(dim=DIM, size=4, reg=0.37), dense.FrequentDirections(DIM, 4)
        for row in stream:
            fast.append(row)
            naive.append(row)
            np.testing.assert_allclose(data_part(fast), naive.rows.T @ naive.rows, atol=1e-8)
            np.testing.assert_allclose(sheds(fast), naive.shed, atol=1e-9)


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("make", ["rfd", "dyadic rfd"])
def test_robust_sketches_are_monotone_and_no_worse_conditioned(make, stream, reg):
    if make == "rfd":
        robust, plain = (op.FrequentDirections(dim=DIM, size=4, reg=reg, compensation=c) for c in (1.0, 0.0))
    else:
        robust, plain = (op.Dyadic(dim=DIM, size=2, error=8.0, reg=reg, base=b) for b in ("rfd", "fd"))
    before = robust.matrix()
    for row in STREAMS[stream]:
        robust.append(row)
        plain.append(row)
        now = robust.matrix()
        assert np.linalg.eigvalsh(now - before)[0] >= -1e-9 * np.linalg.norm(now, 2)
        assert np.linalg.cond(now) <= np.linalg.cond(plain.matrix()) * (1 + 1e-9)
        before = now


@pytest.mark.parametrize("base", ["fd", "rfd"])
@pytest.mark.parametrize("error", [0.5, 2.0, 8.0, 40.0])
@pytest.mark.parametrize("stream", STREAMS)
def test_dyadic_error_stays_below_twice_its_parameter(stream, error, base):
    design = op.Dyadic(dim=DIM, size=2, error=error, reg=0.37, base=base)
    for t, row in enumerate(STREAMS[stream], 1):
        design.append(row)
        rows = STREAMS[stream][:t]
        gap = np.linalg.norm(0.37 * np.eye(DIM) + rows.T @ rows - design.matrix(), 2)
        assert gap <= design.error_bound() + 1e-9 * np.linalg.norm(rows) ** 2
        assert design.error_bound() <= 2 * error * (1 + 1e-9)


@pytest.mark.parametrize("error", [0.5, 2.0, 8.0])
@pytest.mark.parametrize("stream", STREAMS)
def test_fast_dyadic_blocks_equal_the_naive_ones(stream, error):
    fast, naive = op.Dyadic(dim=DIM, size=2, error=error, reg=0.37), dense.Dyadic(DIM, 2, error)
    for row in STREAMS[stream]:
        fast.append(row)
        naive.append(row)
        assert fast.state.frozen == len(naive.frozen)
        np.testing.assert_allclose(fast.matrix(), 0.37 * np.eye(DIM) + naive.rows.T @ naive.rows, atol=1e-7)
        np.testing.assert_allclose(sheds(fast), naive.shed, atol=1e-8)


def test_dyadic_block_sizes_double_and_the_last_rows_are_exact():
    dim, size, error = 63, 4, 2.0
    rows = np.random.default_rng(1).standard_normal((120, dim))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    design, seen = op.Dyadic(dim=dim, size=size, error=error, reg=0.37), []
    most = int(np.log2(dim / size + 1))
    for row in rows:
        design.append(row)
        if not seen or seen[-1] != design.blocks:
            seen.append(design.blocks)
    assert most == 4
    assert seen == [[4], [4, 8], [4, 8, 16], [4, 8, 16]][:3]
    assert design.state.frozen == most - 1  # three frozen blocks, then exact rows
    shed = sheds(design)
    assert sheds(design.append(rows)) == shed


@pytest.mark.parametrize("error", [1.0, 1.5, 8.0])
@pytest.mark.parametrize("base", ["fd", "rfd"])
@pytest.mark.parametrize("order", ["mixed", "sorted"])
def test_dyadic_on_unit_rows_of_low_rank_never_opens_a_second_block_and_is_exact(order, base, error):
    rng, size = np.random.default_rng(2), 4
    rows = rng.standard_normal((200, size - 1)) @ rng.standard_normal((size - 1, DIM))
    if order == "sorted":  # many repeats first, new directions late
        rows = np.repeat(rows[: size - 1], 60, axis=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    design = op.Dyadic(dim=DIM, size=size, error=error, reg=0.37, base=base)
    for row in rows:
        design.append(row)
        assert design.blocks == [size]
        assert design.error_bound() <= 1e-9  # its rounding
    truth = dense.inverse(rows, 0.37)
    solved = np.stack([design.solve(e) for e in np.eye(DIM)])
    assert np.abs(solved - truth).max() <= 1e-9 * np.abs(truth).max()


@pytest.mark.parametrize("compensation", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("reg", REGS)
def test_merge_keeps_the_certificate(reg, compensation):
    first, second = STREAMS["flat"], STREAMS["decaying"]
    one, two = (op.FrequentDirections(dim=DIM, size=4, reg=reg, compensation=compensation) for _ in range(2))
    one.append(first)
    two.append(second)
    shed = sheds(one) + sheds(two)
    held = two.matrix()
    one.merge(two)
    rows = np.vstack([first, second])
    gap = np.linalg.eigvalsh(rows.T @ rows - data_part(one))
    assert gap[0] >= -1e-8
    assert gap[-1] <= sheds(one) + 1e-8
    assert sheds(one) >= shed
    assert np.linalg.norm(reg * np.eye(DIM) + rows.T @ rows - one.matrix(), 2) <= one.error_bound() + 1e-8
    np.testing.assert_allclose(one.solve(first[0]), np.linalg.solve(one.matrix(), first[0]), rtol=1e-9)
    np.testing.assert_array_equal(two.matrix(), held)  # the other one is left as it was


@pytest.mark.parametrize("reg", REGS)
def test_merged_exact_designs_are_exact(reg):
    first, second = STREAMS["flat"], STREAMS["decaying"]
    merged = op.Exact(dim=DIM, reg=reg).append(first).merge(op.Exact(dim=DIM, reg=reg).append(second))
    truth = dense.inverse(np.vstack([first, second]), reg)
    np.testing.assert_allclose(np.stack([merged.solve(e) for e in np.eye(DIM)]), truth, atol=1e-10)


def test_members_without_a_certificate_do_not_merge():
    with pytest.raises(TypeError, match="merge is not defined"):
        op.ProjectorSplitting(dim=4, rank=2).merge(op.ProjectorSplitting(dim=4, rank=2))
    with pytest.raises(ValueError, match="equal parameters"):
        op.Exact(dim=4).merge(op.Exact(dim=4, reg=2.0))


@pytest.mark.parametrize(
    "make", [lambda: op.Exact(dim=DIM, reg=0.37), lambda: op.ProjectorSplitting(dim=DIM, rank=16, reg=0.37)]
)
def test_exact_confidence_ellipsoid_holds(make):
    """||theta_* - theta||_A <= radius with probability 0.9: over 200 streams at most 10% and 3 sigma fail."""
    failures = 0
    for seed in range(200):
        rng, design, moment = np.random.default_rng(seed), make(), np.zeros(DIM)
        truth = rng.standard_normal(DIM)
        truth /= np.linalg.norm(truth)
        rows = rng.standard_normal((40, DIM))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        design.append(rows)
        moment = rows.T @ (rows @ truth + rng.standard_normal(40))
        gap = truth - design.solve(moment)
        radius = confidence_radius(design.state, 40, 1.0, 1.0, 1.0, 0.1)
        failures += gap @ design.matrix() @ gap > radius**2
    assert failures <= 200 * 0.1 + 3 * np.sqrt(200 * 0.1 * 0.9)


@pytest.mark.parametrize("compensate", [False, True])
def test_splitting_keeps_the_trace_only_when_compensated(compensate):
    rows = STREAMS["flat"]
    design = op.ProjectorSplitting(dim=DIM, rank=4, reg=0.37, compensate=compensate)
    for row in rows:
        design.append(row)
    design.append(np.zeros((1, DIM)))
    held = np.trace(design.matrix()) - 0.37 * DIM
    truth = np.linalg.norm(rows) ** 2
    assert bool(abs(held - truth) < 1e-6 * truth) == compensate


@pytest.mark.parametrize("compensation", [0.0, 1.0])
def test_merging_with_an_empty_sketch_changes_nothing(compensation):
    make = lambda size: op.FrequentDirections(dim=DIM, size=size, reg=0.37, compensation=compensation)  # noqa: E731
    for size in (1, 4):
        full = make(size).append(STREAMS["flat"])
        held = full.matrix()
        np.testing.assert_allclose(full.merge(make(size)).matrix(), held, atol=1e-10)
        np.testing.assert_allclose(make(size).merge(full).matrix(), held, atol=1e-10)
        assert make(size).merge(make(size)).error_bound() == 0.0


def test_merging_exact_designs_keeps_reg_under_huge_rows():
    one, two = (op.Exact(dim=2, reg=1e-5).append([1e6, 0.0]) for _ in range(2))
    np.testing.assert_allclose(one.merge(two).solve([0.0, 1.0]), [0.0, 1e5], rtol=1e-8)


@pytest.mark.parametrize(
    ("exponent", "scale", "wanted"), [(0.5, 3.0, 3.0), (0.8, 1.0, 1000**0.2), (0.65, 2.0, 2e0 * 1000**0.1)]
)
def test_the_error_of_remark_2_has_the_exponent_of_the_regret(exponent, scale, wanted):
    assert op.Dyadic.choose_error(1000, exponent, scale) == pytest.approx(wanted)
    for bad in ({"exponent": 0.4}, {"exponent": 1.0}, {"scale": 0.0}, {"rounds": 0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            op.Dyadic.choose_error(**{"rounds": 10, **bad})
