"""Dyadic blocks over sketches that state their share of lost mass: Frequent Directions, random signs, a user's own."""

from typing import NamedTuple

import numpy as np
import pytest

import dense
import onepass as op
from counts import LONG, repetitions
from onepass.design import DyadicSketches, RandomProjection, contract, truncation
from onepass.design.design import check_common
from onepass.design.frequent_directions import ridge_of
from onepass.design.random_projection import projection_share
from onepass.design.sketch import init_rule_sketch, is_valid_rule_sketch
from onepass.design.truncation import Sums, Truncation
from onepass.estimator import contract as estimators
from onepass.estimator.radii import confidence_radius
from onepass.extend import Design, savable
from onepass.foundation import state
from onepass.testing import check_design

DIM, SIZE = 24, 2
SIZES = [SIZE * 2**i for i in range(8)]


class LastHalfRule(NamedTuple):
    """Of Ghashami, Desai and Phillips 2014: only the last half of the kept directions pays for a cut."""

    size: int


@truncation.truncate.for_state(LastHalfRule)
def subtract_from_the_last_half(rule, spectrum, ridge, sums, dim, precision, eps):
    taken, kept = spectrum[rule.size - 1], spectrum[: rule.size - 1].copy()
    for i in range(rule.size // 2, kept.size):
        kept[i] -= taken
    return kept, ridge, Sums(mass=sums.mass, shed=sums.shed + taken, weighted=0.0, dust=sums.dust)


@truncation.certificate.for_state(LastHalfRule)
def certificate_of_last_half(rule, sums, rounded):
    return sums.shed + sums.dust + rounded


@truncation.loss_share.for_state(LastHalfRule)
def loss_share_of_last_half(rule):
    return 2.0 / rule.size  # a cut takes its eigenvalue from at least half of the directions


@truncation.refine.for_state(LastHalfRule)
def refine_last_half(rule):
    return LastHalfRule(size=2 * rule.size)


@savable
class LastHalf(Design):
    def __init__(self, *, dim, size, reg=1.0, dtype="float64"):
        self.params = {**check_common(dim, reg, dtype), "size": size}

    def begin(self):
        return init_rule_sketch(self.dim, self.truncation(), self.reg, self.dtype)

    def truncation(self):
        size = self.params["size"]
        return Truncation(rule=LastHalfRule(size=size), hold=2 * size - 1, limit=2 * size)

    def refine(self, times):
        return LastHalf(**{**self.params, "size": self.params["size"] << times})

    def consistent(self, state):
        return is_valid_rule_sketch(state, self.abstract_state)


class NaiveLastHalf(dense.FrequentDirections):
    raised = 0.0

    def shrink(self):
        _, singular, vectors = np.linalg.svd(self.rows, full_matrices=False)
        cut, keep = singular[self.size - 1] ** 2, singular[: self.size - 1] ** 2
        keep[self.size // 2 :] -= cut
        self.rows, self.shed = np.sqrt(np.maximum(keep, 0.0))[:, None] * vectors[: self.size - 1], self.shed + cut

    def append(self, row):
        super().append(row)
        self.mass = getattr(self, "mass", 0.0) + row @ row

    @property
    def error(self):
        return 2.0 / self.size * self.mass


class Naive(dense.FrequentDirections):
    def __init__(self, dim, size, compensation):
        super().__init__(dim, size)
        self.compensation = compensation

    @property
    def raised(self):
        return self.compensation * self.shed

    @property
    def error(self):
        return max(self.compensation, 1.0 - self.compensation) * self.shed


def sketch(kind, reg, dim=DIM):
    if kind == "signs":
        return RandomProjection(dim=dim, size=SIZE, reg=reg, delta=0.5)
    if kind == "last half":
        return LastHalf(dim=dim, size=SIZE, reg=reg)
    return op.FrequentDirections(dim=dim, size=SIZE, reg=reg, compensation=kind)


def streams():
    rng = np.random.default_rng(0)
    flat = rng.standard_normal((150, DIM))
    yield "flat", flat / np.linalg.norm(flat, axis=1, keepdims=True)
    yield "decaying", rng.standard_normal((150, DIM)) * 0.6 ** np.arange(DIM)
    yield "changing", np.vstack([flat[:70] * ([3.0] * 4 + [0.1] * 20), flat[70:] * ([0.1] * 20 + [2.0] * 4)])


STREAMS = dict(streams())


@pytest.mark.parametrize("kind", [0.0, 0.5, 1.0, "last half", "signs"])
@pytest.mark.parametrize("error", [2.0, 8.0, 60.0])
@pytest.mark.parametrize("stream", STREAMS)
def test_the_error_stays_below_twice_its_parameter_over_every_sketch(stream, error, kind):
    design, rows = DyadicSketches(sketch(kind, 0.37), error=error), STREAMS[stream]
    for t, row in enumerate(rows, 1):
        design.append(row)
        gap = np.linalg.norm(0.37 * np.eye(DIM) + rows[:t].T @ rows[:t] - design.matrix(), 2)
        assert gap <= design.error_bound() + 1e-9 * np.linalg.norm(rows) ** 2
        assert design.error_bound() <= 2 * error * (1 + 1e-9)


@pytest.mark.parametrize("kind", [0.0, 0.5, 1.0, "last half"])
@pytest.mark.parametrize("error", [0.5, 2.0, 8.0])
@pytest.mark.parametrize("stream", STREAMS)
def test_it_equals_naive_blocks_that_try_every_row_on_a_copy(stream, error, kind):
    make = (lambda i: NaiveLastHalf(DIM, SIZES[i])) if kind == "last half" else (lambda i: Naive(DIM, SIZES[i], kind))
    sizes = [2 * size for size in SIZES] if kind == "last half" else SIZES  # of a rule: all that it may hold
    fast, naive = DyadicSketches(sketch(kind, 0.37), error=error), dense.DyadicSketches(DIM, error, make, sizes)
    for row in STREAMS[stream]:
        fast.append(row)
        naive.append(row)
        assert fast.state.frozen == len(naive.frozen)
        np.testing.assert_allclose(fast.matrix(), naive.matrix(0.37), atol=1e-7)


def test_blocks_of_frequent_directions_never_end_earlier_than_by_the_mass_of_their_rows():
    for error in (0.5, 2.0, 8.0):
        for rows in STREAMS.values():
            ours, theirs = DyadicSketches(sketch(0.0, 0.37), error=error), op.Dyadic(dim=DIM, size=SIZE, error=error)
            for row in rows:
                ours.append(row)
                theirs.append(row)
                assert ours.state.frozen <= theirs.state.frozen


def test_random_signs_keep_their_bound_in_all_rounds_against_rows_that_depend_on_them():
    """Rows follow the direction of the largest error, and are longer while the sketch is too long."""
    dim, size, delta, bound, games, missed = 6, 8, 0.3, 60.0, repetitions(60, 1000), 0
    share = projection_share(size, delta)
    for seed in range(games):
        rng, design = np.random.default_rng(seed), RandomProjection(dim=dim, size=size, reg=1.0, delta=delta, seed=seed)
        exact, worst = np.zeros((dim, dim)), 0.0
        while True:
            gap = design.matrix() - np.eye(dim) - exact
            worst = max(worst, float(np.linalg.norm(gap, 2)))
            row = np.linalg.eigh(gap)[1][:, -1] + 0.3 * rng.standard_normal(dim)
            row *= 2.0 if np.trace(gap) > 0.0 else 1.0
            if np.trace(exact) + row @ row > bound:
                break
            design.append(row)
            exact += np.outer(row, row)
        missed += worst > share * bound
    assert missed <= delta * games


def test_random_signs_are_unbiased_and_uncorrelated():
    rows = np.random.default_rng(0).standard_normal((5, 4))
    sketches = [RandomProjection(dim=4, size=3, seed=seed).append(rows).matrix() for seed in range(4000)]
    deviation = np.std(sketches, axis=0) / np.sqrt(4000) + 1e-12
    assert (np.abs(np.mean(sketches, axis=0) - np.eye(4) - rows.T @ rows) <= 4.5 * deviation + 1e-9).all()


def test_they_keep_the_shipped_contract():
    check_design(lambda dim, reg: DyadicSketches(sketch(0.5, reg, dim), error=20.0))


def test_random_signs_keep_the_shipped_contract():
    check_design(lambda dim, reg: RandomProjection(dim=dim, size=4, reg=reg))


@pytest.mark.parametrize("kind", [0.5, 1.0, "signs"])
@pytest.mark.parametrize("error", [4.0, 60.0])
def test_forgetting_keeps_the_bound_and_a_copy_continues(kind, error):
    design, truth, rows = DyadicSketches(sketch(kind, 0.37), error=error), np.zeros((DIM, DIM)), STREAMS["changing"]
    for t, row in enumerate(rows):
        design.append(row)
        truth += np.outer(row, row)
        if t % 10 == 0:
            design.decay(0.7)
            truth *= 0.7
        gap = np.linalg.norm(0.37 * np.eye(DIM) + truth - design.matrix(), 2)
        assert gap <= design.error_bound() + 1e-8
        if t in (20, 100):
            twin = op.from_bytes(op.to_bytes(design))
            np.testing.assert_array_equal(twin.matrix(), design.matrix())
            assert np.array_equal(design.copy().append(rows[0]).matrix(), twin.append(rows[0]).matrix())


def test_ridge_regression_on_them_solves_their_matrix():
    rows, estimator = STREAMS["flat"], op.Ridge(DyadicSketches(sketch(0.5, 0.37), error=2.0))
    state, moment = estimator.begin(), np.zeros(DIM)
    for row in rows:
        state = estimators.update(state, row, 1.0)
        moment += row
    np.testing.assert_allclose(
        estimators.parameter(state), np.linalg.solve(contract.matrix(state.design), moment), rtol=1e-8
    )


@pytest.mark.parametrize("kind", [0.0, 0.5, 1.0] + ["last half", "signs"] * LONG)
def test_merged_blocks_keep_the_sum_of_their_bounds(kind):
    """In all phases, and after further rows; the other design does not change."""
    phases = set()
    for error in (2.0, 60.0):
        for first, second in ((20, 150), (150, 150), (4, 3), (0, 60), (60, 0)):
            one, two = (DyadicSketches(sketch(kind, 0.37), error=error) for _ in range(2))
            parts = [STREAMS["flat"][:first], 0.9 * STREAMS["changing"][:second]]
            one.append(parts[0])
            two.append(parts[1])
            held, met = two.matrix(), (one.state.phase, two.state.phase)
            one.merge(two)
            np.testing.assert_array_equal(two.matrix(), held)
            for more in (0, 40):
                parts.append(STREAMS["decaying"][:more])
                rows = np.vstack(parts)
                gap = np.linalg.norm(0.37 * np.eye(DIM) + rows.T @ rows - one.append(parts[-1]).matrix(), 2)
                assert gap <= one.error_bound() + 1e-8
                assert one.error_bound() <= 4 * error * (1 + 1e-9) + 1e-8
                inverse = np.linalg.inv(one.matrix())
                solved = np.stack([one.solve(axis) for axis in np.eye(DIM)])
                np.testing.assert_allclose(solved, inverse, rtol=0, atol=1e-8 * np.abs(inverse).max())
                assert one.log_det() == pytest.approx(np.linalg.slogdet(one.matrix())[1], abs=1e-6)
                assert op.from_bytes(op.to_bytes(one)).matrix().tolist() == one.matrix().tolist()
            phases.add((*met, one.state.phase))
    assert len(phases) > 1


def test_the_block_after_the_last_takes_no_memory():
    for kind in (0.0, "last half", "signs"):
        design = DyadicSketches(sketch(kind, 0.37), error=0.5)
        for row in STREAMS["flat"]:  # not all at once, which would be compiled for every kind
            design.append(row)
        assert design.state.phase == 1
        assert state.nbytes(design.state.active) <= 400
        assert DyadicSketches(sketch(kind, 0.37, dim=2), error=0.5).memory_usage() <= 400  # exact from the first row


def radius_of(design, raised, rows, noise, bound, length, delta):
    """The formula by dense matrices; the ridge was `raised` once there are several blocks."""
    reg, error = design.reg, design.error_bound()
    least = reg + (raised if design.state.frozen else 0.0)
    grown = np.linalg.slogdet(design.matrix())[1] - DIM * np.log(reg) + DIM * np.log1p(error / least)
    gain = min(grown, DIM * np.log1p(len(rows) * length**2 / (DIM * reg)))
    assert gain >= np.linalg.slogdet(np.eye(DIM) + rows.T @ rows / reg)[1] * (1 - 1e-9)
    spread = np.sqrt((1 + error / least) * (gain + 2 * np.log(1 / delta)))
    return noise * spread + bound * (reg + error) / np.sqrt(least)


@pytest.mark.parametrize("kind", [0.0, 1.0, "last half"])
def test_the_radius_over_any_sketch_follows_from_its_error(kind):
    rows, given = STREAMS["flat"], (0.5, 2.0, 1.0, 0.1)
    for error in (2.0, 8.0):
        design = DyadicSketches(sketch(kind, 0.37), error=error)
        for t, row in enumerate(rows, 1):
            design.append(row)
            if t % 10 == 0:
                radius, raised = confidence_radius(design.state, t, *given), contract.sums(design.state).shed
                want = radius_of(design, raised if kind == 1.0 else 0.0, rows[:t], *given)
                assert radius == pytest.approx(want, rel=1e-6)


@pytest.mark.parametrize("kind", [0.0, 0.5, 1.0])
def test_the_set_holds_the_parameter_in_all_rounds_over_any_sketch(kind, capsys):
    """Rows are the widest of 8, so that they depend on the sketch; the set is looked at after every row."""
    games, deltas, noise, ratios = repetitions(20, 1000), (0.05, 0.2), 0.5, []
    for seed in range(games):
        rng, worst = np.random.default_rng([seed, 14]), np.zeros(2)
        theta = rng.standard_normal(DIM)
        theta *= 2.0 / np.linalg.norm(theta)
        learned = op.Ridge(DyadicSketches(sketch(kind, 0.37), error=8.0)).begin()
        for t in range(1, 61):
            offered = rng.standard_normal((8, DIM))
            offered /= np.linalg.norm(offered, axis=1, keepdims=True)
            row = offered[np.argmax(contract.inverse_quadratic(learned.design, offered))]
            learned = estimators.update(learned, row, float(row @ theta + noise * rng.standard_normal()))
            gap = estimators.parameter(learned) - theta
            error = np.sqrt(gap @ contract.matrix(learned.design) @ gap)
            radii = [estimators.radius(learned, t, noise, 2.0, 1.0, delta) for delta in deltas]
            worst = np.maximum(worst, error / np.array(radii))
        assert contract.error_bound(learned.design) > 1.0
        ratios.append(worst)
    for delta, found in zip(deltas, np.transpose(ratios), strict=True):
        lost = int((found > 1.0).sum())
        with capsys.disabled():
            print(f"\nDyadicSketches, {kind}, delta {delta}: {lost} of {games} missed; largest ratio {found.max():.4f}")
        assert lost <= delta * games


REFUSED = {
    "RandomProjection": lambda: op.Ridge(sketch("signs", 1.0)),
    "DyadicSketches": lambda: op.Ridge(DyadicSketches(sketch("signs", 1.0), error=1.0)),
    "LastHalf": lambda: op.Ridge(sketch("last half", 1.0)),
    "with step=1.0 on DyadicSketches": lambda: op.OnlineNewton(DyadicSketches(sketch(0.0, 1.0), error=1.0)),
}


@pytest.mark.parametrize("words", REFUSED)
def test_a_bandit_refuses_theory_on_a_design_without_a_radius(words):
    with pytest.raises(ValueError, match=f"no theoretical radius.*{words}"):
        op.Bandit(REFUSED[words](), op.UCB(op.Theory()))
    with pytest.raises(ValueError, match="no theoretical radius"):
        op.Bandit(op.Disjoint(REFUSED[words](), compact=False), op.UCB(op.Theory()))


def test_half_compensation_halves_the_error_of_a_cut():
    robust, plain = (
        op.FrequentDirections(dim=DIM, size=SIZE, compensation=c).append(STREAMS["flat"]) for c in (0.5, 0)
    )
    assert contract.loss_share(robust.state) == contract.loss_share(plain.state) / 2 == 0.25
    assert robust.error_bound() == pytest.approx(plain.error_bound() / 2)
    assert ridge_of(robust.state.settings, robust.state.sums.shed) == robust.state.space.ridge


BAD = {
    "without rows": lambda: DyadicSketches(op.FrequentDirections(dim=4, size=1).append(np.ones(4)), error=1.0),
    "share of lost mass": lambda: DyadicSketches(op.ProjectorSplitting(dim=4, rank=2), error=1.0),
    "error": lambda: DyadicSketches(op.FrequentDirections(dim=4, size=1), error=0.0),
    "delta": lambda: RandomProjection(dim=4, size=2, delta=1.0),
    "seed": lambda: RandomProjection(dim=4, size=2, seed=-1),
}


@pytest.mark.parametrize("words", BAD)
def test_a_bad_argument_is_named(words):
    with pytest.raises(ValueError, match=words):
        BAD[words]()
