"""KernelNewton equals its naive dense version, is kernel ridge regression, and needs no tuning on real data."""

import bz2
import gzip
import lzma
import os
from pathlib import Path

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys
from scipy.optimize import minimize_scalar

import dense_newton as dense
import onepass as op
from counts import repetitions
from dense_learners import LOSSES
from onepass.learner import losses

CLASSIFYING = ("hinge", "squared_hinge", "logistic")
MAP = {"size": 8, "width": None, "width_factor": 1.0, "standardize": True, "recent": True, "seed": 3}
KERNEL = {"linear": False}  # test_linear_part.py has the rest


def stream(count=150, dim=3, seed=0, loss="squared_hinge", scales=(1.0, 100.0, 0.01)):
    """Rows of very different scales; two classes that no plane separates, or a smooth function with noise."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, dim))
    f = np.sin(2.0 * rows[:, 0]) + rows[:, 1] * rows[:, -1] + 0.2 * rng.standard_normal(count)
    return rows * np.resize(scales, dim), np.where(f < 0.0, -1.0, 1.0) if loss in CLASSIFYING else f


def both(
    rows, targets, loss="squared_hinge", features="nystrom", reg=0.1, warm_up=45, rank=None, memory=None, **options
):
    """Decisions of KernelNewton and of the naive version."""
    options, steps = {**MAP, **options}, {"loss": loss, "reg": reg, "warm_up": warm_up, "memory": memory}
    learner = op.KernelNewton(features=features, rank=rank, loss_width=0.3, **KERNEL, **steps, **options)
    found = op.progressive_validation(learner, rows, targets).decisions
    rank = learner.design.dim - 2
    return found, dense.kernel_newton(rows, targets, features=features, rank=rank, **steps, **options)


# --- the implicit step


@pytest.mark.parametrize("name", LOSSES)
def test_implicit_steps_minimize_their_objective(name):
    loss, value = losses.make_loss(name, 0.3), LOSSES[name][0]
    for f in (-30.0, -2.0, -0.999, 0.0, 0.5, 1.0, 1.3, 40.0):
        for y in (-1.0, 1.0) if name in CLASSIFYING else (-1.3, 0.0, 0.77, 25.0):
            for q in (1e-9, 1e-3, 0.3, 1.0, 34.0, 1e3, 1e9):

                def objective(z, f=f, y=y, q=q):
                    return (z - f) ** 2 / (2.0 * q) + value(z, y)

                found = f - q * losses.implicit_slope(loss, f, y, q)
                reach = 3.0 * (abs(f) + abs(y) + 10.0)
                best = minimize_scalar(objective, bounds=(-reach, reach), method="bounded", options={"xatol": 1e-9})
                assert objective(found) <= min(best.fun, objective(f)) + 1e-12 * (1.0 + abs(best.fun))


@pytest.mark.parametrize("name", LOSSES)
def test_implicit_slopes_are_the_slopes_where_they_lead_however_large_or_small_everything_is(name):
    loss, slope = losses.make_loss(name, 0.3), LOSSES[name][1]
    sizes = 10.0 ** np.arange(-9.0, 9.5, 1.5)
    with np.errstate(over="ignore"):
        for f in np.concatenate([-sizes, [0.0], sizes]):
            for q in sizes:
                for y in (-1.0, 1.0) if name in CLASSIFYING else (-1.3, 0.0, 1e4):
                    found = losses.implicit_slope(loss, f, y, q)
                    z, rounded = f - q * found, 1e-15 * (abs(f) + abs(y) + q * abs(found))
                    assert slope(z - rounded, y) * (1.0 - np.sign(found) * 1e-9) - 1e-300 <= found
                    assert found <= slope(z + rounded, y) * (1.0 + np.sign(found) * 1e-9) + 1e-300


def test_logistic_steps_are_exact_where_newtons_method_alone_would_go_back_and_forth():
    loss = losses.make_loss("logistic", 1.0)
    for f, y, q in (
        (2.8485568606472893, -1.0, 34.27667673219891),
        (0.0, 1.0, 1000.0),
        (2.0, 1.0, 4.0),
        (-80.0, 1.0, 1e6),
    ):
        found = losses.implicit_slope(loss, f, y, q)
        np.testing.assert_allclose(found, LOSSES["logistic"][1](f - q * found, y), rtol=1e-11)


# --- equal to the naive version, warm-up and all


@pytest.mark.parametrize(("reg", "memory"), [(0.03, None), (0.1, 20.0), (0.1, 1.5), (2.0, None)])
@pytest.mark.parametrize("features", dense.MAPS)
@pytest.mark.parametrize("loss", LOSSES)
def test_decisions_equal_those_of_the_naive_version(loss, features, reg, memory):
    found, want = both(*stream(loss=loss), loss, features, reg, memory=memory)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-7)


@pytest.mark.parametrize(
    "options",
    [
        {"warm_up": 2},
        {"warm_up": 64},
        {"warm_up": 1000},
        {"size": 12, "rank": 5},
        {"size": 12, "rank": 5, "features": "sketched"},
        {"size": 2},
        {"width": 0.8, "width_factor": 2.0},
        {"width_factor": 0.4, "features": "fourier", "size": 40},
        {"standardize": False, "width": 30.0},
        {"recent": False},
        {"memory": 4.0},
        {"seed": 0, "features": "fourier"},
    ],
    ids=repr,
)
@pytest.mark.parametrize("loss", ["squared_hinge", "huber"])
def test_every_option_is_that_of_the_naive_version(loss, options):
    found, want = both(*stream(loss=loss), loss, **options)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-7)


@pytest.mark.parametrize("features", dense.MAPS)
@pytest.mark.parametrize("reg", [0.05, 3.0])
def test_with_the_squared_loss_it_is_kernel_ridge_regression_on_the_map(features, reg):
    rows, targets = stream(300, loss="squared")
    options = {**MAP, "features": features, "size": 20}
    learner = op.KernelNewton(**options, **KERNEL, reg=reg, warm_up=70, memory=None, loss="squared")
    learner.partial_fit(rows, targets)
    of = dense.features(rows[:70], rank=learner.design.dim - 2, **options, cut=True)
    mean, deviation = targets[:70].mean(), targets[:70].std()
    targets = (targets - mean) / deviation
    phi = of(rows, targets)
    w = np.linalg.solve(phi.T @ phi + reg * np.eye(phi.shape[1]), phi.T @ targets)
    queries = stream(50, seed=1)[0]
    for query, found in zip(queries, learner.decision_function(queries), strict=True):
        last = of(np.vstack([rows[-1], query]), np.append(targets[-1], 0.0))[1]  # the vote is that of the last example
        np.testing.assert_allclose(found, mean + deviation * (last @ w), rtol=0, atol=1e-8)


# --- scales


def test_scaling_a_feature_changes_nothing_at_all():
    rows, targets = stream(300)
    want = op.progressive_validation(op.KernelNewton(size=20), rows, targets).decisions
    for scales in ([2.0, 1.0, 1.0], [2.0**-40, 2.0**30, 0.25], [2.0**100] * 3):
        found = op.progressive_validation(op.KernelNewton(size=20), rows * scales, targets).decisions
        assert np.array_equal(found, want)
    raw = op.KernelNewton(size=20, standardize=False)
    assert not np.array_equal(op.progressive_validation(raw, rows * [2.0, 1.0, 1.0], targets).decisions, want)


def test_a_constant_feature_changes_nothing_however_large():
    rows, targets = stream(300)
    want = op.progressive_validation(op.KernelNewton(size=20), rows, targets).decisions
    for constant in (0.0, 1.0, -1e6):
        wider = np.column_stack([rows, np.full(300, constant)])
        found = op.progressive_validation(op.KernelNewton(size=20), wider, targets).decisions
        np.testing.assert_allclose(found, want, rtol=0, atol=1e-8)


# --- odd streams


@pytest.mark.parametrize("features", dense.MAPS)
@pytest.mark.parametrize("loss", LOSSES)
def test_odd_streams_are_survived(features, loss):
    rows, targets = stream(200, loss=loss)
    odd = {
        "one class only": (rows, np.ones(200)),
        "one row": (np.repeat(rows[:1], 200, axis=0), targets),
        "three rows": (rows[np.arange(200) % 3], targets),
        "all features constant but one": (rows * [1.0, 0.0, 0.0] + 5.0, targets),
        "a single feature": (rows[:, :1], targets),
        "one example": (rows[:1], targets[:1]),
    }
    for options in ({}, {"warm_up": 2}, {"size": 2, "warm_up": 2}):
        for X, y in odd.values():
            learner = op.KernelNewton(features=features, loss=loss, **{"size": 10, **options})
            decisions = op.progressive_validation(learner, X, y).decisions
            assert np.isfinite(decisions).all()
            assert np.isfinite(learner.decision_function(X + 1.0)).all()
    steady = op.progressive_validation(op.KernelNewton(size=10, features=features), rows, np.ones(200))
    assert steady.mistakes.sum() == 0.0


def test_wide_rows_are_learned():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((400, 2000))
    labels = np.sign(rows[:, :200].sum(axis=1))
    rows[:, :200] += 0.6 * labels[:, None]
    assert op.progressive_validation(op.KernelNewton(), rows, labels).mistakes[200:].mean() < 0.1


def test_repeated_examples_are_learned_after_one_mistake_each():
    """Wen, Zhang et al.'s adversarial streams: blocks of one example, its label random from block to block."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((100, 24))
    for repeats in (10, 20):
        blocks = rng.integers(100, size=300)
        labels = np.repeat(rng.choice([-1.0, 1.0], 300), repeats)
        found = op.progressive_validation(op.KernelNewton(), rows[np.repeat(blocks, repeats)], labels)
        mistakes = found.mistakes.reshape(300, repeats)
        last = np.concatenate([[1.0], labels[:-1] != labels[1:]]).mean()  # of repeating the last label
        assert mistakes[:, 2:].mean() < 0.005
        assert found.mistake_rate < last + 0.01
        alone = op.progressive_validation(op.KernelNewton(recent=False), rows[np.repeat(blocks, repeats)], labels)
        assert alone.mistake_rate > 2.0 * found.mistake_rate


# --- designs, and what is refused


@pytest.mark.parametrize(
    "design",
    [
        op.FrequentDirections(dim=42, size=10, reg=0.1),
        op.RobustFrequentDirections(dim=42, size=10, reg=0.1),
        op.ProjectorSplitting(dim=42, rank=20, reg=0.1, compensate=True),
        op.Exact(dim=42, reg=0.1),
    ],
    ids=lambda d: repr(d)[:40],
)
def test_any_design_learns(design):
    rows, labels = stream(2000, scales=(1.0, 1.0, 1.0))
    before = design.matrix()
    found = op.progressive_validation(op.KernelNewton(size=40, design=design), rows, labels)
    assert np.isfinite(found.decisions).all()
    assert found.mistakes[1000:].mean() < 0.17
    assert np.array_equal(design.matrix(), before)  # it is a pattern
    if isinstance(design, op.Exact):
        want = op.progressive_validation(op.KernelNewton(size=40, reg=0.1, linear=False), rows, labels)
        assert np.array_equal(found.decisions, want.decisions)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"design": op.Exact(dim=100)}, "dim=102"),
        ({"design": op.Exact(dim=102), "rank": 50}, "dim=52"),
        ({"design": op.Exact(dim=102, dtype="float32")}, "float64"),
        ({"design": "exact"}, "design must"),
        ({"features": "fourier", "size": 7}, "even"),
        ({"features": "fourier", "rank": 4}, "rank None"),
        ({"features": "random"}, "features must"),
        ({"size": 1}, "size must"),
        ({"rank": 101}, "rank must"),
        ({"reg": 0.0}, "reg must"),
        ({"linear": 2}, "linear must"),
        ({"gain": 0.0}, "gain must"),
        ({"sketch": 1}, "sketch must"),
        ({"columns": 1}, "columns must"),
        ({"width": -1.0}, "width must"),
        ({"width_factor": 0.0}, "width_factor must"),
        ({"warm_up": 1}, "warm_up must"),
        ({"memory": 0.0}, "memory must"),
        ({"standardize": 2}, "standardize must"),
        ({"recent": None}, "recent must"),
        ({"loss": "zero-one"}, "loss must"),
        ({"seed": -1}, "seed must"),
    ],
    ids=repr,
)
def test_wrong_parameters_are_refused_by_name(wrong, said):
    with pytest.raises(ValueError, match=said):
        op.KernelNewton(**wrong)


# --- memory


@pytest.mark.parametrize("features", dense.MAPS)
def test_memory_is_constant_after_the_warm_up(features):
    learner = op.KernelNewton(features=features, size=20).partial_fit(*stream(80))
    held = learner.memory_usage()
    assert learner.partial_fit(*stream(2000, seed=1)).memory_usage() == held


REGULAR = {
    "FORKS": lambda: op.learner.FORKS(budget=20, rank=6, sample_size=12, update_every=10**6),
    "SkeGD": lambda: op.learner.SkeGD(budget=20, rank=6, sample_size=12, update_every=10**6),
    "NOGD": lambda: op.learner.NOGD(budget=20),
    "FOGD": lambda: op.learner.FOGD(budget=20),
    "RBP": lambda: op.learner.RBP(budget=20),
    "BPAS": lambda: op.learner.BPAS(budget=20),
    "BOGD": lambda: op.learner.BOGD(budget=20),
    "Projectron": lambda: op.learner.Projectron(budget=20),
    "Projectron++": lambda: op.learner.Projectron(budget=20, margins=True),
    "PROSNKONS": lambda: op.learner.PROSNKONS(budget=20),
}


def allocations(learner, rows, targets):
    """How many arrays compiled code makes while these examples are decided and learned in one call."""
    _nrt_python.memsys_enable_stats()
    before = rtsys.get_allocation_stats().alloc
    learner.learn_checked(rows, targets)
    return rtsys.get_allocation_stats().alloc - before


@pytest.mark.parametrize("make", REGULAR.values(), ids=REGULAR)
def test_a_regular_round_allocates_nothing(make):
    """As many allocations for 2,000 examples in one call as for 1,000: all are those of the call."""
    rows, targets = stream(4000, scales=(1.0, 1.0, 1.0))
    learner = make().partial_fit(rows[:1000], targets[:1000])  # its buffer is full now
    once = allocations(learner, rows[1000:2000], targets[1000:2000])
    assert once == allocations(learner, rows[2000:], targets[2000:]) > 0


def test_allocations_are_counted():
    """An unlimited learner makes arrays as it grows, and updates of sketches make some."""
    rows, targets = stream(4000, scales=(1.0, 1.0, 1.0))
    for learner in (op.learner.KOGD(), op.learner.FORKS(budget=20, update_every=10)):
        learner.partial_fit(rows[:100], targets[:100])
        assert allocations(learner, rows[100:], targets[100:]) > allocations(learner, rows[:1], targets[:1])


# --- real data, every round counted, nothing tuned


def table(name):
    """Rows and labels -1 and 1."""
    folder = Path(os.environ.get("ONEPASS_DATA", "nowhere"))
    files = {"spambase": "openml/spambase.csv.xz", "ijcnn1": "libsvm/ijcnn1.bz2", "german": "libsvm/german.numer.gz"}
    path = folder / files.get(name, f"libsvm/{name}.csv.gz")
    if not path.is_file():
        pytest.skip(f"{path.name} is not in $ONEPASS_DATA")
    unpack = {".xz": lzma.decompress, ".gz": gzip.decompress, ".bz2": bz2.decompress}[path.suffix]
    lines = unpack(path.read_bytes()).decode().splitlines()
    if ".csv" in path.name:
        found = np.loadtxt(lines[1:], delimiter=",")
        label, rows = (found[:, -1], found[:, :-1]) if name == "spambase" else (found[:, 0], found[:, 1:])
        return rows, np.where(label > 0.0, 1.0, -1.0)
    labels = np.array([float(line.split(maxsplit=1)[0]) for line in lines])
    rows = np.zeros((len(lines), 24))
    for row, line in zip(rows, lines, strict=True):
        for entry in line.split()[1:]:
            place, value = entry.split(":")
            row[int(place) - 1] = float(value)
    return rows[:, rows.any(axis=0)], np.where(labels > 0.0, 1.0, -1.0)


@pytest.mark.parametrize(
    ("name", "bar", "seeds"),
    [
        ("spambase", 9.5, 1),
        ("svmguide3", 19.5, 2),
        ("german", 26.5, 2),
        *repetitions([], [pytest.param("ijcnn1", 5.5, 1, marks=pytest.mark.slow)]),
    ],
)
def test_defaults_are_accurate_on_real_data(name, bar, seeds):
    rows, labels = table(name)
    rates = []
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(rows))
        rates.append(100.0 * op.progressive_validation(op.KernelNewton(), rows[order], labels[order]).mistake_rate)
    assert np.mean(rates) <= bar


@pytest.mark.parametrize("loss", ["squared", "huber", "epsilon_insensitive"])
def test_units_and_offsets_of_targets_do_not_matter(loss):
    rows, targets = stream(1500, loss=loss)
    plain = op.progressive_validation(op.KernelNewton(loss=loss, loss_width=0.2), rows, targets).decisions
    for scale, offset in ((1.0, 1e6), (2.0**20, 0.0), (2.0**-30, 0.0), (1e3, -1e5)):
        found = op.progressive_validation(op.KernelNewton(loss=loss, loss_width=0.2), rows, scale * targets + offset)
        error = np.abs((found.decisions[2:] - offset) / scale - plain[2:]).max()  # the first two know no deviation
        assert error < 1e-6


def test_a_column_that_leaves_its_range_does_not_put_rows_far_from_all_landmarks():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((6000, 4))
    labels = np.where(np.sin(2.0 * rows[:, 0]) + rows[:, 1] > 0.0, 1.0, -1.0)
    late = np.where(np.arange(6000) < 400, 1.0, 1e3 * rng.standard_normal(6000))
    for column in (np.arange(6000.0), late):
        found = op.progressive_validation(op.KernelNewton(), np.column_stack([rows, column]), labels)
        assert found.mistakes[3000:].mean() < 0.1
