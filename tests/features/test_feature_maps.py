"""Feature maps: each is its formula, keeps the contract, composes, and a bandit behind it is a bandit of rows z."""

import numpy as np
import pytest

import dense_features as dense
import onepass as op
from onepass.features import contract
from onepass.foundation.generic import compiled
from onepass.testing import check_feature_map

POINTS = np.random.default_rng(5).standard_normal((4, 5))
WIDE = op.RBF(2.0)
SCALES = (0.5, 1.0, 2.0, 4.0, 8.0)
STANDARDIZED_FOURIER = dense.chain(dense.standardize, dense.fourier(5, 6, 1.5, 3))

# rows of 5 numbers: a map, and its formula
MAPS = {
    "identity": (lambda: op.features.Identity(dim=5), dense.identity),
    "intercept": (lambda: op.features.Intercept(dim=5), dense.intercept),
    "standardize": (lambda: op.features.Standardize(dim=5), dense.standardize),
    "projection": (lambda: op.features.GaussianProjection(dim=5, size=3, seed=2), dense.projection(5, 3, 2)),
    "fourier": (
        lambda: op.features.Fourier(dim=5, size=6, length_scale=SCALES, seed=3),
        dense.fourier(5, 6, SCALES, 3),
    ),
    "nystrom": (lambda: op.features.Nystrom(POINTS, WIDE, reduced=True), dense.nystrom(POINTS, WIDE)),
    "outer product": (lambda: op.features.OuterProduct(left=2, right=3), dense.outer(2)),
    "outer product, full": (lambda: op.features.OuterProduct(left=2, right=3, reduce=False), dense.outer(2)),
    "chain": (
        lambda: op.features.Chain(
            op.features.Standardize(dim=5), op.features.Fourier(dim=5, size=6, length_scale=1.5, seed=3)
        ),
        STANDARDIZED_FOURIER,
    ),
    "concatenation": (
        lambda: op.features.Concatenate(
            op.features.Intercept(dim=5), op.features.Standardize(dim=5), op.features.OuterProduct(left=2, right=3)
        ),
        dense.concatenate(dense.intercept, dense.concatenate(dense.standardize, dense.outer(2))),
    ),
    "chain of products": (
        lambda: op.features.Chain(
            op.features.OuterProduct(left=2, right=3),
            op.features.Standardize(dim=6),
            op.features.GaussianProjection(dim=6, size=4),
        ),
        dense.chain(dense.chain(dense.outer(2), dense.standardize), dense.projection(6, 4, 0)),
    ),
    "nested": (
        lambda: op.features.Concatenate(
            op.features.Identity(dim=5),
            op.features.Chain(
                op.features.Standardize(dim=5),
                op.features.Concatenate(op.features.Nystrom(POINTS, WIDE, reduced=True), op.features.Identity(dim=5)),
            ),
            op.features.Chain(op.features.Standardize(dim=5), op.features.Standardize(dim=5)),
        ),
        dense.concatenate(
            dense.identity,
            dense.concatenate(
                dense.chain(dense.standardize, dense.concatenate(dense.nystrom(POINTS, WIDE), dense.identity)),
                dense.chain(dense.standardize, dense.standardize),
            ),
        ),
    ),
}
MOVING = ("standardize", "chain", "concatenation", "chain of products", "nested")


def stream(count, seed=0):
    """Rows of several units, one column constant."""
    units, places = np.array([1.0, 3.0, 0.1, 1.0, 2.0]), np.array([0.0, 5.0, 0.0, 0.0, 0.0])
    rows = np.random.default_rng(seed).standard_normal((count, 5)) * units + places
    rows[:, 3] = 0.7
    return rows


def assert_close(got, want, tolerance=1e-9):
    np.testing.assert_allclose(got, want, rtol=0.0, atol=tolerance * max(np.abs(want).max(), 1e-300))


def fingerprint(bandit):
    return bandit.memory_usage(), bandit.n_learned, [bandit.copy().score(row) for row in (np.eye(5)[:3], stream(3, 9))]


@pytest.mark.parametrize("name", MAPS)
def test_every_map_is_its_formula(name):
    make, formula = MAPS[name]
    features, rows, asked = make(), stream(40), stream(7, 1)
    state = features.begin(np.dtype(np.float64))
    assert_close(contract.transform(state, asked), formula(asked, rows[:0]))
    for part in (slice(0, 1), slice(1, 2), slice(2, 40)):
        assert_close(
            contract.update_and_transform(state, rows[part]), dense.learned(formula, rows[: part.stop])[part.start :]
        )
        assert_close(contract.transform(state, asked), formula(asked, rows[: part.stop]))
    assert_close(features.learn(rows).transform(asked), formula(asked, rows))


@pytest.mark.parametrize("name", MAPS)
def test_every_map_keeps_the_contract(name):
    check_feature_map(MAPS[name][0])


@pytest.mark.parametrize("name", MAPS)
def test_play_is_decide_and_learn_on_rows_as_they_are_mapped_then(name):
    make, formula = MAPS[name]
    rounds, rng = 25, np.random.default_rng(4)
    contexts, rewards = stream(rounds * 3, 2).reshape(rounds, 3, 5), rng.standard_normal((rounds, 3))
    width = make().output_dim
    bandits = [op.Bandit(op.Ridge(op.Exact(dim=width, reg=0.37)), op.UCB(0.3), features=make()) for _ in range(2)]
    plain, seen, arms = op.Bandit(op.Ridge(op.Exact(dim=width, reg=0.37)), op.UCB(0.3)), np.zeros((0, 5)), []
    for t in range(rounds):
        decision, want = bandits[0].decide(contexts[t]), plain.decide(formula(contexts[t], seen))
        assert_close(decision.scores, want.scores, 1e-8)  # of a maximum that is 0 at first
        arms.append(decision.arm)
        seen = np.vstack([seen, contexts[t, decision.arm]])
        bandits[0].learn(contexts[t, decision.arm], rewards[t, decision.arm])
        plain.learn(formula(seen[-1:], seen)[0], rewards[t, decision.arm])
    assert np.array_equal(bandits[1].play(contexts, rewards), arms)
    assert_close(bandits[1].score(contexts[0]), bandits[0].score(contexts[0]))


@pytest.mark.parametrize("name", [name for name in MAPS if "nystrom" not in name and name != "nested"])
def test_compiled_code_sees_the_same_map(name):
    features = MAPS[name][0]().learn(stream(30))
    state, rows = features.state, stream(5, 1)
    assert_close(embedded(state, rows), features.transform(rows))
    assert_close(at_once(state, rows), features.transform(rows))


@compiled
def embedded(state, rows):
    z = np.empty((rows.shape[0], contract.output_dim(state)))
    for i in range(rows.shape[0]):
        contract.transform_row(state, rows[i], z[i])
    return z


@compiled
def at_once(state, rows):
    return contract.transform(state, rows)


def test_a_bandit_starts_from_what_its_map_has_learned_and_leaves_the_map_alone():
    rows = stream(50)
    features = op.features.Chain(op.features.Standardize(dim=5).learn(rows[:20]), op.features.Fourier(dim=5, size=4))
    before = features.transform(rows)
    assert_close(before, op.features.Fourier(dim=5, size=4).transform(dense.standardize(rows, rows[:20])))
    bandit = op.Bandit(op.Ridge(op.Exact(dim=4)), features=features)
    bandit.learn(rows[20:], np.ones(30))
    assert np.array_equal(features.transform(rows), before)
    z = op.features.Fourier(dim=5, size=4).transform(dense.standardize(rows, rows))
    assert_close(bandit.decide(rows).means, z @ bandit.model.parameter)


@pytest.mark.parametrize("name", MOVING)
def test_what_is_refused_moves_nothing(name):
    features = MAPS[name][0]()
    bandit = op.Bandit(op.Ridge(op.Exact(dim=features.output_dim)), features=features)
    bandit.learn(stream(20), np.ones(20))
    before = fingerprint(bandit)
    spoiled = stream(4)
    spoiled[3, 1] = np.nan
    for rows, rewards in ((spoiled, np.ones(4)), (stream(4), np.full(4, np.inf)), (stream(4), np.ones(3))):
        with pytest.raises(ValueError, match=r"contexts|rewards"):
            bandit.learn(rows, rewards)
        assert str(fingerprint(bandit)) == str(before)
    bandit.decide(stream(3, 3))
    bandit.recommend(stream(6, 3).reshape(2, 3, 5), 2)
    assert str(fingerprint(bandit)) == str(before)


def test_features_that_overflow_are_refused_before_the_map_moves():
    features = op.features.Concatenate(
        op.features.Standardize(dim=5),
        op.features.Chain(op.features.Identity(dim=5), op.features.OuterProduct(left=2, right=3)),
    )
    bandit = op.Bandit(op.Ridge(op.Exact(dim=features.output_dim)), features=features)
    bandit.learn(stream(20), np.ones(20))
    before = fingerprint(bandit)
    with pytest.raises(ValueError, match="features of contexts must be finite"):
        bandit.learn(np.full((3, 5), 1e140), np.ones(3))
    assert str(fingerprint(bandit)) == str(before)


def test_interrupted_python_kernels_leave_the_map_where_it_was():
    calls = []

    def kernel(X, Y):
        calls.append(len(Y))
        if len(Y) == 3:
            raise KeyboardInterrupt
        return np.exp(-0.5 * ((X[:, None] - Y[None]) ** 2).sum(axis=-1))

    features = op.features.Concatenate(
        op.features.Standardize(dim=5), op.features.Nystrom(POINTS, kernel, reduced=True)
    )
    bandit = op.Bandit(op.Ridge(op.Exact(dim=9)), features=features)
    bandit.learn(stream(20), np.ones(20))
    asked, before = stream(5, 8), bandit.score(stream(5, 8))
    with pytest.raises(KeyboardInterrupt):
        bandit.learn(stream(3), np.ones(3))
    assert np.array_equal(bandit.score(asked), before)
    assert bandit.n_learned == 20


def test_certificates_pass_through_maps_that_are_the_model_only():
    rows = np.random.default_rng(0).standard_normal((200, 5))
    for name, (make, _) in MAPS.items():
        features = make()
        design = op.FrequentDirections(dim=features.output_dim, size=max(1, features.output_dim // 2))
        bound = op.Bandit(op.Ridge(design), features=features)
        bound.learn(rows, np.ones(200))
        assert np.isfinite(bound.error_bound()) == features.certified, name
    certified = {name for name, (make, _) in MAPS.items() if make().certified}
    assert certified == {"identity", "intercept", "nystrom", "outer product", "outer product, full"}


def test_arms_played_in_a_row_are_known_behind_maps_that_repeat_themselves():
    rows, features = stream(4), op.features.Concatenate(op.features.Identity(dim=5), op.features.Fourier(dim=5, size=6))
    bandit = op.Bandit(op.estimator.OnePassMedian(op.Exact(dim=11), repeats=3), features=features)
    for _ in range(6):
        bandit.learn(rows[bandit.decide(rows).arm], 1.0)
    for name in (*MOVING, "projection", "nystrom"):
        features = MAPS[name][0]()
        with pytest.raises(ValueError, match="features must be repeatable"):
            op.Bandit(op.estimator.OnePassMedian(op.Exact(dim=features.output_dim), repeats=3), features=features)


def test_fourier_features_of_float32_rows_are_exact_far_from_the_origin():
    features, rows = op.features.Fourier(dim=5, size=6), (1e4 * stream(20)).astype(np.float32)
    z = contract.transform(features.begin(rows.dtype), rows)
    assert z.dtype == np.float32
    assert_close(z, features.transform(rows.astype(np.float64)), 1e-6)


def test_names_travel_through_maps():
    names = ["hour", "age", "a", "b", "c"]
    features = op.features.Concatenate(
        op.features.Chain(op.features.Standardize(dim=5), op.features.OuterProduct(left=2, right=3)),
        op.features.Identity(dim=5),
        op.features.Standardize(dim=5),
    )
    products = ("hour*a", "hour*b", "hour*c", "age*a", "age*b", "age*c")
    assert features.feature_names(names) == (*products, *names, *(f"{name}'" for name in names))
    assert op.features.Chain(op.features.Identity(dim=2), op.features.Fourier(dim=2, size=4)).feature_names() == (
        "cos0",
        "cos1",
        "sin0",
        "sin1",
    )
    for bad in (names[:-1], [*names[:-1], "hour"], [*names[:-1], 5]):
        with pytest.raises(ValueError, match="names must be 5 different strings"):
            features.feature_names(bad)


def test_users_and_arms_meet_in_compositions_of_products():
    rng = np.random.default_rng(3)
    users, arms = rng.standard_normal((4, 2)), rng.standard_normal((6, 3))
    rows = np.concatenate([np.repeat(users[:, None], 6, axis=1), np.repeat(arms[None], 4, axis=0)], axis=2)
    features = op.features.Concatenate(
        op.features.Identity(dim=5),
        op.features.Chain(op.features.OuterProduct(left=2, right=3), op.features.Standardize(dim=6)),
    )
    shared = op.Bandit(op.Ridge(op.Exact(dim=11)), features=features)
    own = op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=11))), features=features)
    pairs, names = op.Factors(users, arms[:4]), list(range(6))
    shared.learn(pairs, np.arange(4.0))
    own.learn(pairs, np.arange(4.0), names[:4])
    for bandit, offered in ((shared, None), (own, names)):
        assert_close(bandit.score(op.Factors(users, arms), offered), bandit.score(rows, offered))
        got, want = (bandit.recommend(contexts, 2, names) for contexts in (op.Factors(users, arms), rows))
        assert got.arms == want.arms
    with pytest.raises(ValueError, match="contexts must be rows of length 5, not Factors"):
        op.OFUL(dim=5).decide(op.Factors(users, arms))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: op.features.Chain(op.features.Identity(dim=5), op.features.Identity(dim=4)),
            "second must take rows of length 5",
        ),
        (lambda: op.features.Chain(op.features.Identity(dim=5), "identity"), "second must be a feature map"),
        (
            lambda: op.features.Chain(
                op.features.Identity(dim=5), op.features.Identity(dim=5), op.features.Identity(dim=4)
            ),
            "rows of length 5",
        ),
        (lambda: op.features.Concatenate(None, op.features.Identity(dim=4)), "first must be a feature map"),
        (
            lambda: op.features.Concatenate(op.features.Identity(dim=5), op.features.Identity(dim=4)),
            "second must take the same rows as first",
        ),
        (
            lambda: op.features.Concatenate(
                op.features.OuterProduct(left=2, right=3), op.features.OuterProduct(left=3, right=2)
            ),
            "with other sides",
        ),
        (lambda: op.features.Identity(dim=0), "dim must be an integer at least 1, got 0"),
        (lambda: op.features.Intercept(dim=1.5), "dim must be an integer"),
        (lambda: op.features.Standardize(dim=True), "dim must be an integer"),
        (lambda: op.features.Fourier(dim=2, size=3), "size must be even"),
        (lambda: op.features.Fourier(dim=2, size=4, length_scale=-1.0), "length_scale"),
        (
            lambda: op.features.Fourier(dim=2, size=4, length_scale=(1.0, 2.0, 3.0)),
            "length_scale must be one number or 2",
        ),
        (lambda: op.features.Fourier(dim=2, size=4, seed=-1), "seed"),
        (lambda: op.features.GaussianProjection(dim=2, size=3), "size must be an integer from 1 to 2"),
        (lambda: op.Bandit(op.Ridge(op.Exact(dim=2)), features="standardize"), "features must be a feature map"),
        (
            lambda: op.Bandit(op.Ridge(op.Exact(dim=2)), features=op.features.Standardize(dim=3)),
            "features must give 2 features",
        ),
        (
            lambda: op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=2))), features=op.features.Identity(dim=3)),
            "must have dim=3",
        ),
    ],
)
def test_maps_that_do_not_fit_get_one_clear_sentence(make, says):
    with pytest.raises(ValueError, match=says) as error:
        make()
    assert "\n" not in str(error.value)
