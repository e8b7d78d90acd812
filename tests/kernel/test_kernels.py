"""Kernels equal their formulas and scikit-learn's; their matrices are symmetric and positive semidefinite."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.gaussian_process import kernels as sk

import dense_kernel as dense
import onepass as op
from onepass.features import fourier
from onepass.features.kernels import as_kernel

SCALES = [0.3, 2.0, (0.2, 1.0, 5.0)]  # one for all, one per feature


def points(count, seed=0, dim=3):
    return np.random.default_rng(seed).standard_normal((count, dim))


def stationary(scale):
    """(ours, a pair's value, scikit-learn's)."""
    length = np.array(scale)
    yield op.RBF(scale), lambda x, y: dense.rbf(x, y, length), sk.RBF(scale)
    for nu in (0.5, 1.5, 2.5):
        yield op.Matern(nu, scale), lambda x, y, nu=nu: dense.matern(x, y, nu, length), sk.Matern(scale, nu=nu)


def cases():
    for scale in SCALES:
        yield from stationary(scale)
    yield op.Linear(), dense.linear, sk.DotProduct(0.0)
    yield op.Linear(bias=0.7), lambda x, y: dense.linear(x, y, 0.7), sk.DotProduct(np.sqrt(0.7))
    for degree, bias in ((1, 0.5), (2, 0.0), (3, 1.0), (5, 0.3)):
        power = sk.Exponentiation(sk.DotProduct(np.sqrt(bias)), degree)
        yield op.Polynomial(degree, bias), lambda x, y, d=degree, b=bias: dense.polynomial(x, y, d, b), power


def composed():
    rbf, matern, line = op.RBF(0.4), op.Matern(1.5, 2.0), op.Linear(0.3)
    a, b, c = (
        lambda x, y: dense.rbf(x, y, 0.4),
        lambda x, y: dense.matern(x, y, 1.5, 2.0),
        lambda x, y: dense.linear(x, y, 0.3),
    )
    A, B, C = sk.RBF(0.4), sk.Matern(2.0, nu=1.5), sk.DotProduct(np.sqrt(0.3))
    yield rbf + matern, lambda x, y: a(x, y) + b(x, y), A + B
    yield rbf * matern, lambda x, y: a(x, y) * b(x, y), A * B
    yield 3.0 * rbf, lambda x, y: 3 * a(x, y), sk.ConstantKernel(3.0) * A
    yield rbf * 0.5, lambda x, y: a(x, y) / 2, sk.ConstantKernel(0.5) * A
    yield 2.0 * rbf + matern * line, lambda x, y: 2 * a(x, y) + b(x, y) * c(x, y), sk.ConstantKernel(2.0) * A + B * C
    yield (
        0.5 * (rbf + 3.0 * line) * matern,
        lambda x, y: (a(x, y) + 3 * c(x, y)) * b(x, y) / 2,
        (sk.ConstantKernel(0.5) * (A + sk.ConstantKernel(3.0) * C) * B),
    )


ALL = [*cases(), *composed()]
NAMES = [repr(ours) for ours, _, _ in ALL]


def close(got, want, tolerance=1e-12):
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * max(np.abs(want).max(), 1.0))


@pytest.mark.parametrize(("ours", "pair", "theirs"), ALL, ids=NAMES)
def test_a_kernel_equals_its_formula_and_scikit_learns(ours, pair, theirs):
    X, Y = points(9, 1), np.vstack([points(6, 2), points(9, 1)[:2]])  # two points shared
    got = ours(X, Y)
    assert got.shape == (9, 8)
    assert got.dtype == np.float64
    close(got, dense.matrix(pair, X, Y))
    close(got, theirs(X, Y))


@pytest.mark.parametrize(("ours", "pair", "theirs"), ALL, ids=NAMES)
def test_the_diagonal_is_the_diagonal_of_the_matrix(ours, pair, theirs):
    X = points(40, 3)
    got = ours.diagonal(X)
    assert got.shape == (40,)
    close(got, np.diag(ours(X, X)))
    close(got, [pair(x, x) for x in X])


@pytest.mark.parametrize(("ours", "pair", "theirs"), ALL, ids=NAMES)
def test_a_kernel_leaves_its_arguments_alone_and_gives_a_matrix_of_its_own(ours, pair, theirs):
    X, Y = points(5, 4), points(7, 5)
    before = X.copy(), Y.copy()
    first = ours(X, Y)
    kept = first.copy()
    first[:] = np.nan
    ours.diagonal(X)[:] = np.nan
    assert np.array_equal(ours(X, Y), kept)
    assert np.array_equal(X, before[0])
    assert np.array_equal(Y, before[1])


@pytest.mark.parametrize("ours", [ours for ours, _, _ in ALL], ids=NAMES)
def test_a_kernel_is_a_value(ours):
    again = eval(repr(ours), {name: getattr(op, name) for name in ("RBF", "Matern", "Linear", "Polynomial")})
    assert again == ours
    assert hash(again) == hash(ours)
    X = points(6, 6)
    assert np.array_equal(again(X, X), ours(X, X))
    field = "length_scale" if hasattr(ours, "length_scale") else "bias" if hasattr(ours, "bias") else None
    if field:
        with pytest.raises(AttributeError):
            setattr(ours, field, 9.0)


def test_kernels_differ_where_a_parameter_does():
    kernels = [ours for ours, _, _ in ALL]
    for i, one in enumerate(kernels):
        for other in kernels[i + 1 :]:
            assert one != other


def test_the_defaults_are_the_documented_ones():
    assert op.RBF() == op.RBF(length_scale=1.0)
    assert op.Matern() == op.Matern(nu=2.5, length_scale=1.0)
    assert op.Linear() == op.Linear(bias=0.0)
    assert op.Polynomial() == op.Polynomial(degree=3, bias=1.0)


def test_one_length_scale_is_the_same_as_one_per_feature_that_are_equal():
    X, Y = points(8, 7), points(5, 8)
    for make in (op.RBF, lambda scale: op.Matern(0.5, scale), lambda scale: op.Matern(2.5, scale)):
        close(make(0.7)(X, Y), make([0.7, 0.7, 0.7])(X, Y))


def test_a_feature_with_an_endless_length_scale_does_not_count():
    X, Y = points(8, 7), points(5, 8)
    close(op.RBF([0.5, 0.9, 1e12])(X, Y), op.RBF([0.5, 0.9])(X[:, :2], Y[:, :2]))


BAD = [
    lambda: op.RBF(0.0),
    lambda: op.RBF(-1.0),
    lambda: op.RBF(np.nan),
    lambda: op.RBF(np.inf),
    lambda: op.RBF("long"),
    lambda: op.RBF([]),
    lambda: op.RBF([1.0, 0.0]),
    lambda: op.RBF([1.0, np.nan]),
    lambda: op.RBF([[1.0, 2.0]]),
    lambda: op.Matern(1.0),
    lambda: op.Matern("2.5"),
    lambda: op.Matern(2.5, 0.0),
    lambda: op.Linear(-0.1),
    lambda: op.Linear(np.inf),
    lambda: op.Polynomial(0),
    lambda: op.Polynomial(2.5),
    lambda: op.Polynomial(3, -1.0),
    lambda: op.Polynomial(3, np.nan),
    lambda: 0.0 * op.RBF(),
    lambda: -1.0 * op.RBF(),
    lambda: np.nan * op.RBF(),
    lambda: as_kernel(3),
    lambda: as_kernel("RBF"),
    lambda: as_kernel(sk.WhiteKernel()),
    lambda: as_kernel(sk.RBF() + sk.WhiteKernel(0.1)),
    lambda: as_kernel(2.0 * (sk.RBF() * (sk.Matern() + sk.WhiteKernel(0.1)))),
]


@pytest.mark.parametrize("make", BAD)
def test_what_is_no_kernel_is_refused(make):
    with pytest.raises(ValueError, match=r"\w+ .*\w"):
        make()


def test_a_sum_with_a_number_is_refused():
    with pytest.raises((TypeError, ValueError)):
        op.RBF() + 1.0


def test_length_scales_of_another_width_are_refused():
    with pytest.raises(ValueError, match="length_scale"):
        op.RBF([1.0, 2.0])(points(4), points(4))
    with pytest.raises(ValueError, match="length_scale"):
        op.GPUCB(points(4), op.Matern(1.5, [1.0, 2.0]))


def test_scikit_learns_kernels_and_plain_functions_are_kernels():
    X, Y = points(9, 1), points(6, 2)
    theirs = 2.0 * sk.RBF(0.4) + sk.DotProduct(0.3)
    plain = as_kernel(lambda X, Y: 1.0 / (1.0 + ((X[:, None] - Y) ** 2).sum(2)))
    close(as_kernel(theirs)(X, Y), theirs(X, Y))
    close(as_kernel(theirs).diagonal(X), np.diag(theirs(X, X)))
    close(plain(X, Y), 1.0 / (1.0 + ((X[:, None] - Y) ** 2).sum(2)))
    close(plain.diagonal(X), np.ones(9))
    assert as_kernel(op.RBF(0.3)) == op.RBF(0.3)
    mixed = as_kernel(theirs) * op.RBF(0.7)
    close(mixed(X, Y), theirs(X, Y) * op.RBF(0.7)(X, Y))


finite = st.floats(-50, 50, allow_nan=False, width=64)
scale = st.floats(1e-2, 1e3)


@st.composite
def trees(draw, depth=2):
    """Any kernel of ours, composed up to two levels deep."""
    if depth and draw(st.booleans()):
        left, right = draw(trees(depth=depth - 1)), draw(trees(depth=depth - 1))
        how = draw(st.sampled_from(["sum", "product", "scale"]))
        return left + right if how == "sum" else left * right if how == "product" else draw(scale) * left
    kinds = [
        st.builds(op.RBF, st.one_of(scale, st.lists(scale, min_size=2, max_size=2))),
        st.builds(op.Matern, st.sampled_from([0.5, 1.5, 2.5]), scale),
        st.builds(op.Linear, st.floats(0, 10)),
        st.builds(op.Polynomial, st.integers(1, 3), st.floats(0, 10)),
    ]
    return draw(st.one_of(kinds))


@given(kernel=trees(), X=hnp.arrays(np.float64, st.tuples(st.integers(1, 7), st.just(2)), elements=finite))
@settings(max_examples=150, deadline=None)
def test_every_kernel_matrix_is_symmetric_and_positive_semidefinite(kernel, X):
    gram = kernel(X, X)
    size = max(np.abs(gram).max(), 1e-300)
    assert np.isfinite(gram).all()
    assert np.abs(gram - gram.T).max() <= 1e-13 * size
    assert np.linalg.eigvalsh(gram / size)[0] >= -1e-11
    assert np.abs(kernel.diagonal(X) - np.diag(gram)).max() <= 1e-13 * size


@given(kernel=trees(depth=3))
@settings(max_examples=200, deadline=None)
def test_the_repr_of_a_composed_kernel_evaluates_to_it(kernel):
    assert eval(repr(kernel), {name: getattr(op, name) for name in ("RBF", "Matern", "Linear", "Polynomial")}) == kernel


@given(X=hnp.arrays(np.float64, st.tuples(st.integers(1, 7), st.just(2)), elements=finite), scale=st.floats(1e-3, 1e6))
@settings(max_examples=100, deadline=None)
def test_stationary_kernels_are_one_at_equal_points_and_never_above(X, scale):
    X = np.vstack([X, X[:1], X[:1] + 1e-9])
    for kernel in (op.RBF(scale), op.Matern(0.5, scale), op.Matern(1.5, scale), op.Matern(2.5, scale)):
        gram = kernel(X, X)
        assert gram.max() <= 1.0
        assert gram.min() >= 0.0
        assert np.array_equal(kernel.diagonal(X), np.ones(len(X)))
        np.testing.assert_allclose(np.diag(gram), 1.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
def test_distances_far_from_the_origin_keep_their_digits(offset):
    """||x||^2 + ||y||^2 - 2 x.y loses them: centre the points or subtract them."""
    X = points(30, 9)
    for ours, pair in ((op.RBF(0.5), dense.rbf), (op.Matern(1.5, 0.5), lambda x, y, l: dense.matern(x, y, 1.5, l))):
        shifted = X + offset
        want = dense.matrix(lambda x, y, pair=pair: pair(x, y, 0.5), shifted, shifted)
        np.testing.assert_allclose(ours(shifted, shifted), want, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kernel", [op.RBF(3.0), op.Matern(2.5, 3.0), op.RBF([3.0] * 200), op.Polynomial(2)], ids=repr)
def test_no_temporary_of_pairs_times_features(kernel):
    n = m = 500
    X, Y = points(n, 1, 200), points(m, 2, 200)
    kernel(X, Y)
    tracemalloc.start()
    try:
        kernel(X, Y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5 * n * m * 8 + X.nbytes + Y.nbytes


def test_sines_and_cosines_of_turns_are_those_of_the_standard_library():
    rng = np.random.default_rng(0)
    exact = np.arange(-16, 17) / 16
    for turns in (*exact, *rng.uniform(-1.0, 1.0, 2000), *rng.uniform(-1e3, 1e3, 2000)):
        rest = turns - round(turns)
        sine, cosine = fourier.sine_and_cosine(turns)
        assert abs(sine - math.sin(2.0 * math.pi * rest)) < 1e-15
        assert abs(cosine - math.cos(2.0 * math.pi * rest)) < 1e-15
