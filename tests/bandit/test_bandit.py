"""The bandit: equal to ten obvious lines of NumPy, reproducible, and strict about what it is given."""

import numpy as np
import pytest

import dense
import onepass as op
from onepass.design import contract
from onepass.estimator.radii import confidence_radius
from onepass.testing import REGS

DIM, ARMS = 8, 5
RECIPES = {
    "OFUL": lambda **k: op.OFUL(dim=DIM, **k),
    "LinUCB": lambda **k: op.LinUCB(dim=DIM, **k),
    "LinTS": lambda **k: op.LinTS(dim=DIM, **k),
    "SOFUL": lambda **k: op.SOFUL(dim=DIM, size=3, **k),
    "SOFUL-TS": lambda **k: op.SOFUL(dim=DIM, size=3, thompson=True, **k),
    "CBSCFD": lambda **k: op.CBSCFD(dim=DIM, size=3, **k),
    "CBRAP": lambda **k: op.CBRAP(dim=DIM, size=4, **k),
    "DBSLinUCB": lambda **k: op.DBSLinUCB(dim=DIM, size=2, error=4.0, **k),
    "DBSLinUCB-RFD": lambda **k: op.DBSLinUCB(dim=DIM, size=2, error=4.0, base="rfd", **k),
    "PSILinUCB": lambda **k: op.PSILinUCB(dim=DIM, rank=3, **k),
    "PSILinUCB compensated": lambda **k: op.PSILinUCB(dim=DIM, rank=3, compensate=True, **k),
}


def game(rounds=60, seed=0):
    rng = np.random.default_rng(seed)
    contexts = rng.standard_normal((rounds, ARMS, DIM))
    contexts /= np.linalg.norm(contexts, axis=2, keepdims=True)
    return contexts, contexts @ rng.standard_normal(DIM) + 0.1 * rng.standard_normal((rounds, ARMS))


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("exploration", [0.5, 0.0, -0.3])
def test_oful_scores_equal_the_naive_ones(reg, exploration):
    contexts, rewards = game()
    bandit, naive = op.OFUL(dim=DIM, reg=reg, exploration=exploration), dense.OFUL(DIM, reg, exploration)
    for rows, pays in zip(contexts, rewards, strict=True):
        decision = bandit.decide(rows)
        np.testing.assert_allclose(decision.scores, naive.scores(rows), rtol=1e-9, atol=1e-12)
        assert decision.scores[decision.arm] == decision.scores.max()
        bandit.learn(rows[decision.arm], pays[decision.arm])
        naive.learn(rows[decision.arm], pays[decision.arm])


@pytest.mark.parametrize("name", RECIPES)
def test_play_equals_decide_and_learn(name):
    contexts, rewards = game()
    together, apart = RECIPES[name](seed=3), RECIPES[name](seed=3)
    arms = together.play(contexts, rewards)
    for t, arm in enumerate(arms):
        assert apart.decide(contexts[t]).arm == arm
        apart.learn(contexts[t, arm], rewards[t, arm])
    np.testing.assert_allclose(
        together.model.parameter, apart.model.parameter, rtol=1e-9, atol=1e-12
    )  # BLAS rounds by shape
    assert together.n_learned == apart.n_learned == len(contexts)


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_learns(name):
    contexts, rewards = game(400)
    arms = RECIPES[name](reg=1.0, exploration=0.1).play(contexts, rewards)
    mean = rewards[np.arange(200, 400), arms[200:]].mean()
    assert mean > 0.5 * rewards[200:].max(axis=1).mean() > rewards[200:].mean()


@pytest.mark.parametrize(
    ("name", "dtype"), [(name, "float64") for name in RECIPES] + [(n, "float32") for n in ("OFUL", "LinTS", "CBRAP")]
)
def test_save_load_continue_gives_the_same_decisions(name, dtype, tmp_path):
    contexts, rewards = game(80)
    bandit = RECIPES[name](seed=5, dtype=dtype)
    bandit.play(contexts[:40].astype(dtype), rewards[:40])
    bandit.save(tmp_path / "model.onepass")
    loaded, copied = op.load(tmp_path / "model.onepass"), bandit.copy()
    assert repr(loaded) == repr(bandit)
    arms = bandit.play(contexts[40:].astype(dtype), rewards[40:])
    for other in (loaded, copied):
        np.testing.assert_array_equal(other.play(contexts[40:].astype(dtype), rewards[40:]), arms)
        np.testing.assert_array_equal(other.model.parameter, bandit.model.parameter)


def test_batches_equal_single_rows_for_an_exact_design():
    contexts, rewards = game()
    one, many = op.OFUL(dim=DIM, reg=0.37), op.OFUL(dim=DIM, reg=0.37)
    for row, reward in zip(contexts[:, 0], rewards[:, 0], strict=True):
        one.learn(row, reward)
    many.learn(contexts[:, 0], rewards[:, 0])
    np.testing.assert_allclose(one.model.parameter, many.model.parameter, rtol=1e-10)
    np.testing.assert_allclose(one.score(contexts), many.score(contexts), rtol=1e-10)
    assert one.score(contexts).shape == contexts.shape[:2]


def test_decisions_come_in_batches_with_names_and_ranks():
    contexts, rewards = game()
    bandit = op.OFUL(dim=DIM)
    bandit.play(contexts, rewards)
    decision = bandit.decide(contexts[0], arms=list("abcde"), k=3)
    order = np.argsort(-decision.scores)[:3]
    assert decision.arms == ["abcde"[a] for a in order]
    assert decision.arm == decision.arms[0]
    batch = bandit.decide(contexts[:4])
    assert batch.arm == [bandit.decide(rows).arm for rows in contexts[:4]]
    assert batch.scores.shape == (4, ARMS)


def test_sparse_contexts_are_accepted():
    from scipy.sparse import csr_array

    contexts, rewards = game()
    bandit = op.OFUL(dim=DIM)
    bandit.play(contexts, rewards)
    assert bandit.decide(csr_array(contexts[0])).arm == bandit.decide(contexts[0]).arm


def test_read_only_strided_and_integer_contexts_are_accepted():
    contexts, rewards = game()
    bandit = op.OFUL(dim=DIM)
    bandit.learn(contexts[:, 0], rewards[:, 0])
    frozen, wide = contexts[0].copy(), np.zeros((ARMS, 2 * DIM))
    frozen.flags.writeable = False
    wide[:, ::2] = contexts[0]
    want = bandit.decide(contexts[0]).scores
    for rows in (frozen, wide[:, ::2], np.asfortranarray(contexts[0]), contexts[0].tolist(), contexts[0].astype(">f8")):
        np.testing.assert_array_equal(bandit.decide(rows).scores, want)
    bandit.learn(np.ones(DIM, dtype=int), np.float32(1.0))
    bandit.learn(frozen[0], True)
    assert bandit.n_learned == len(contexts) + 2


def test_ties_are_broken_evenly_and_by_the_seed():
    rows = np.zeros((4, DIM))
    first = [op.OFUL(dim=DIM, seed=s).decide(rows).arm for s in range(400)]
    assert first == [op.OFUL(dim=DIM, seed=s).decide(rows).arm for s in range(400)]
    counts = np.bincount(first, minlength=4)
    assert np.abs(counts - 100).max() < 4 * np.sqrt(400 * 0.25 * 0.75)  # four standard deviations
    assert op.OFUL(dim=DIM).decide(rows).propensity == 0.25
    drawn = np.bincount([op.LinTS(dim=DIM, seed=s).decide(rows).arm for s in range(400)], minlength=4)
    assert np.abs(drawn - 100).max() < 4 * np.sqrt(400 * 0.25 * 0.75)


def test_epsilon_greedy_explores_with_its_propensity():
    contexts, rewards = game()
    bandit = op.Bandit(op.Ridge(op.Exact(dim=DIM)), op.EpsilonGreedy(0.4), seed=1)
    greedy = op.Bandit(op.Ridge(op.Exact(dim=DIM)), op.Greedy())
    bandit.learn(contexts[:, 0], rewards[:, 0])
    greedy.learn(contexts[:, 0], rewards[:, 0])
    best = greedy.decide(contexts[0])
    assert best.widths is None
    assert best.propensity == 1.0
    drawn = [bandit.decide(contexts[0]) for _ in range(2000)]
    share = np.mean([d.arm == best.arm for d in drawn])
    expected = 0.6 + 0.4 / ARMS
    assert abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / 2000)
    assert {round(d.propensity, 12) for d in drawn} == {round(expected, 12), round(0.4 / ARMS, 12)}


@pytest.mark.parametrize("name", ["LinTS", "SOFUL-TS"])
def test_thompson_draws_have_the_posterior_mean_and_variance(name):
    contexts, rewards = game()
    bandit = RECIPES[name](exploration=0.7, reg=0.37)
    bandit.learn(contexts[:, 0], rewards[:, 0])
    draws = np.array([bandit.decide(contexts[0]).scores for _ in range(4000)])
    mean = contexts[0] @ bandit.model.parameter
    spread = 0.7 * np.sqrt(contract.inverse_quadratic(bandit.model.state.design, contexts[0]))
    assert np.abs(draws.mean(axis=0) - mean).max() < 4.5 * spread.max() / np.sqrt(4000)
    np.testing.assert_allclose(draws.std(axis=0), spread, rtol=4.5 / np.sqrt(2 * 4000))


@pytest.mark.parametrize("reg", REGS)
def test_theoretical_radius_is_that_of_oful(reg):
    contexts, rewards = game()
    theory = op.Theory(noise=0.3, parameter_bound=2.0, delta=0.05, scale=0.5)
    bandit = op.OFUL(dim=DIM, reg=reg, exploration=theory)
    bandit.learn(contexts[:, 0], rewards[:, 0])
    decision = bandit.decide(contexts[0])
    rows = contexts[:, 0]
    gain = np.linalg.slogdet(np.eye(DIM) + rows.T @ rows / reg)[1]
    radius = 0.3 * np.sqrt(gain + 2 * np.log(1 / 0.05)) + 2.0 * np.sqrt(reg)
    np.testing.assert_allclose(decision.scores, decision.means + 0.5 * radius * decision.widths, rtol=1e-9)


def test_sketched_radii_are_those_of_the_paper():
    contexts, _ = game()
    rows, reg, size = contexts[:, 0], 0.37, 3
    t, h, noise, delta, d = len(rows), 2.0, 0.3, 0.05, DIM
    for compensation in (0.0, 1.0):
        design = op.FrequentDirections(dim=d, size=size, reg=reg, compensation=compensation).append(rows)
        s = design.state.sums.shed
        assert s > 0
        base = 2 * np.log(1 / delta) + d * np.log(1 + s / reg)
        if compensation:
            spread = s - size * s / (2 * size)
            inside = base + 2 * size * np.log(1 + t / (2 * size * reg) + spread / reg)
            want = noise * np.sqrt(inside) + h * np.sqrt(reg + s)
        else:
            inside = base + 2 * size * np.log(1 + t / (2 * size * reg))
            want = noise * np.sqrt(inside) * np.sqrt(1 + s / reg) + h * (reg + s) / np.sqrt(reg)
        got = confidence_radius(design.state, t, noise, h, 1.0, delta)
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_cbrap_is_oful_on_projected_rows_and_its_projection_depends_on_the_seed_only():
    contexts, rewards = game()
    bandit = op.CBRAP(dim=DIM, size=4, reg=0.37, seed=9)
    matrix = np.random.RandomState(9).standard_normal((DIM, 4)) / 2.0
    naive = dense.OFUL(4, 0.37, 0.1)
    for rows, pays in zip(contexts, rewards, strict=True):
        np.testing.assert_allclose(bandit.score(rows), naive.scores(rows @ matrix), rtol=1e-8, atol=1e-10)
        bandit.learn(rows[0], pays[0])
        naive.learn(rows[0] @ matrix, pays[0])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e200])
@pytest.mark.parametrize("name", ["OFUL", "DBSLinUCB"])
def test_rows_that_are_not_finite_are_refused_and_change_nothing(name, bad):
    contexts, rewards = game()
    bandit = RECIPES[name]()
    bandit.play(contexts, rewards)
    before = bandit.model.parameter.copy()
    rows = contexts[0].copy()
    rows[2, 3] = bad
    for call in (
        lambda: bandit.decide(rows),
        lambda: bandit.score(rows),
        lambda: bandit.learn(rows[2], 1.0),
        lambda: bandit.learn(rows, rewards[0]),
        lambda: bandit.play(rows[None], rewards[:1]),
    ):
        with pytest.raises(ValueError, match="contexts must be finite"):
            call()
    if not np.isfinite(bad):
        for call in (
            lambda: bandit.learn(contexts[0, 0], bad),
            lambda: bandit.learn(contexts[0], np.full(ARMS, bad)),
            lambda: bandit.play(contexts[:1], np.full((1, ARMS), bad)),
        ):
            with pytest.raises(ValueError, match="rewards must be"):
                call()
    np.testing.assert_array_equal(bandit.model.parameter, before)
    assert bandit.n_learned == len(contexts)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda b: b.decide(np.zeros((3, DIM + 1))), "rows of length 8"),
        (lambda b: b.decide(np.zeros(DIM)), "2 or 3 dimension"),
        (lambda b: b.decide(np.zeros((0, DIM))), "at least one row"),
        (lambda b: b.decide([["a"] * DIM] * 2), "real numbers"),
        (lambda b: b.decide([[1.0], [1.0, 2.0]]), "rectangular"),
        (lambda b: b.decide(np.zeros((2, DIM), complex)), "complex128"),
        (lambda b: b.decide(np.zeros((2, DIM)), arms=["a"]), "one name per row"),
        (lambda b: b.decide(np.zeros((2, DIM)), k=3), "from 1 to 2"),
        (lambda b: b.learn(np.zeros((2, DIM)), [1.0]), "one entry per row"),
        (lambda b: b.learn(np.zeros(DIM), "good"), "real numbers"),
        (lambda b: b.play(np.zeros((2, 3, DIM)), np.zeros((2, 4))), "shape"),
    ],
)
def test_wrong_calls_get_one_clear_sentence(call, says):
    bandit = op.OFUL(dim=DIM)
    with pytest.raises(ValueError, match=says):
        call(bandit)
    assert bandit.n_learned == 0
    assert not bandit.model.parameter.any()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: op.OFUL(dim=0), "dim must be an integer at least 1, got 0"),
        (lambda: op.OFUL(dim=2.5), "dim must be an integer"),
        (lambda: op.OFUL(dim=DIM, reg=0.0), "reg must be a finite number above 0, got 0.0"),
        (lambda: op.OFUL(dim=DIM, reg=-1.0), "reg"),
        (lambda: op.OFUL(dim=DIM, reg=np.nan), "reg"),
        (lambda: op.OFUL(dim=DIM, reg=10**400), "reg"),
        (lambda: op.OFUL(dim=DIM, reg=1e-310), "reg must be from"),
        (lambda: op.OFUL(dim=DIM, reg=1e-100, dtype="float32"), "reg must be from"),
        (lambda: op.OFUL(dim=DIM, dtype="int8"), "dtype must be one of 'float64', 'float32'"),
        (lambda: op.OFUL(dim=DIM, exploration="much"), "exploration"),
        (lambda: op.OFUL(dim=DIM, exploration=np.inf), "exploration"),
        (lambda: op.OFUL(dim=DIM, seed=-1), "seed"),
        (lambda: op.SOFUL(dim=DIM, size=0), "size must be an integer from 1 to 8, got 0"),
        (lambda: op.SOFUL(dim=DIM, size=DIM + 1), "size"),
        (lambda: op.CBSCFD(dim=DIM, size=2, compensation=1.5), "compensation must be from 0 to 1"),
        (lambda: op.CBRAP(dim=DIM, size=DIM + 1), "size"),
        (lambda: op.DBSLinUCB(dim=DIM, size=2, error=0.0), "error"),
        (
            lambda: op.DBSLinUCB(dim=DIM, size=2, error=1.0, base="svd"),
            "base must be one of 'fd', 'half', 'rfd', got 'svd'",
        ),
        (lambda: op.PSILinUCB(dim=DIM, rank=0), "rank"),
        (lambda: op.PSILinUCB(dim=DIM, rank=2, compensate="yes"), "compensate"),
        (lambda: op.Theory(delta=0.0), "delta"),
        (lambda: op.Theory(delta=1.5), "delta"),
        (lambda: op.Bandit(op.Exact(dim=2)), "model must be"),
        (lambda: op.Bandit(op.Ridge(op.Exact(dim=2)), 0.1), "exploration must be"),
        (
            lambda: op.Bandit(op.Ridge(op.Exact(dim=2)), features=op.features.GaussianProjection(dim=4, size=3)),
            "features",
        ),
    ],
)
def test_wrong_parameters_get_one_clear_sentence(make, says):
    with pytest.raises(ValueError, match=says) as error:
        make()
    assert "\n" not in str(error.value)


def test_scores_that_overflow_are_raised_not_returned():
    bandit = op.OFUL(dim=2, reg=1e-300, exploration=1e308)
    for call in (bandit.decide, bandit.score, lambda rows: bandit.play(rows[None], np.zeros((1, 2)))):
        with pytest.raises(FloatingPointError, match="not finite"):
            call(np.full((2, 2), 1e100))


@pytest.mark.parametrize(
    ("dtype", "row", "reward"), [("float64", 1e149, 1e200), ("float32", 1.0, 1e30), ("float32", 1e17, 1.0)]
)
def test_products_that_would_overflow_are_refused_before_anything_changes(dtype, row, reward):
    bandit = op.OFUL(dim=2, dtype=dtype)
    for call in (
        lambda: bandit.learn([row, 0.0], reward),
        lambda: bandit.learn([[row, 0.0]], [reward]),
        lambda: bandit.play([[[row, 0.0]]], [[reward]]),
    ):
        with pytest.raises(ValueError, match="must be finite"):
            call()
    assert bandit.n_learned == 0
    assert not bandit.model.parameter.any()


def test_parameters_may_be_numpy_scalars_and_are_saved(tmp_path):
    parts = (
        op.UCB(np.float32(0.5)),
        op.UCB(np.int64(1)),
        op.EpsilonGreedy(np.float32(0.25)),
        op.UCB(op.Theory(noise=np.float32(2))),
    )
    for exploration in parts:
        design = op.ProjectorSplitting(dim=np.int64(3), rank=np.int32(1), reg=np.float32(2), compensate=np.True_)
        bandit = op.Bandit(op.Ridge(design), exploration)
        bandit.save(tmp_path / "model")
        assert repr(op.load(tmp_path / "model")) == repr(bandit)


def test_half_of_a_surrogate_pair_is_a_name_like_others():
    half = "\ud800"  # which JSON allows
    arms = {"a": {"p": 1.0}, "b": {"p": 2.0}}
    bandit = op.InteractionBandit()
    bandit.learn(bandit.decide({"q": half}, arms, id=half), 1.0)
    bandit = op.from_bytes(op.to_bytes(bandit))
    with pytest.raises(ValueError, match="has had its reward"):
        bandit.learn(bandit.decide({"q": half}, arms, id=half), 1.0)
    full = op.Records(size=4, hashed=2)
    full.learn([{"a": "1"}, {"a": "2"}, {"a": half}, {"a": "3"}, {"b": half}])
    assert full.transform([{"c": half}]).any()
    assert full.memory_usage() > 0


def test_arm_names_go_by_position():
    class Labelled(dict):  # as a pandas Series does, indexing goes by label and iteration by position
        def __iter__(self):
            return iter(self.values())

    bandit = op.OFUL(dim=2)
    bandit.learn(np.eye(2), [1.0, 0.0])
    assert bandit.decide(np.eye(2), arms=Labelled({1: "first", 0: "second"})).arm == "first"
    assert bandit.decide(np.eye(2), arms=np.array(["first", "second"])).arm == "first"
    with pytest.raises(ValueError, match="sequence of names"):
        bandit.decide(np.eye(2), arms=3)


def test_memory_usage_counts_the_arrays():
    assert 2 * 8 * 100**2 < op.OFUL(dim=100).memory_usage() < 2.2 * 8 * 100**2 + 8 * 64 * 100
    assert op.SOFUL(dim=1000, size=10).memory_usage() < 8 * (20 * 1000 + 2 * 400 + 1000) * 1.01


def test_nothing_is_certified_behind_a_random_projection():
    assert op.CBRAP(dim=DIM, size=4).error_bound() == np.inf
    assert op.OFUL(dim=DIM).error_bound() == 0.0


def test_entries_that_a_masked_array_hides_are_refused():
    bandit, rows = op.OFUL(dim=2), np.ma.masked_invalid([[1.0, 2.0], [np.inf, 3.0]])
    bandit.learn(np.ma.masked_array(np.eye(2)), np.ma.masked_array([1.0, 0.0]))  # nothing is masked
    with pytest.raises(ValueError, match="contexts must have no masked entries"):
        bandit.score(np.ma.masked_array(np.eye(2), mask=np.eye(2)))
    with pytest.raises(ValueError, match="rewards must have no masked entries"):
        bandit.learn(np.eye(2), np.ma.masked_array([1.0, 5.0], mask=[False, True]))
    with pytest.raises(ValueError, match="contexts must have no masked entries"):
        bandit.decide(rows)
    assert bandit.n_learned == 2
