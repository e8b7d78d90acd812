"""merge(A, B) is the model that has learned both streams, each row once: shared models, beside dense ridge."""

import threading

import numpy as np
import pytest

import onepass as op
from patience import PATIENCE

DIM = 6
REGS = (0.02, 0.37, 5.0)
TRUTH = np.random.default_rng(9).standard_normal(DIM)
ROWS = np.random.default_rng(1).standard_normal((160, DIM)) * np.linspace(0.3, 3.0, DIM)
REWARDS = ROWS @ TRUTH + np.random.default_rng(2).standard_normal(160)
PRIOR, FIRST, SECOND, COMMON = slice(0, 7), slice(7, 60), slice(60, 130), slice(130, 160)
ADDITIVE = {
    "Ridge": op.Ridge,
    "OnlineNewton": op.OnlineNewton,
    "TruncatedRidge": lambda design: op.estimator.TruncatedRidge(design, moment=30.0),
    "MedianOfMeans": lambda design: op.estimator.MedianOfMeans(design, repeats=1),
}


def learned(make, *parts):
    bandit = make()
    for part in parts:
        bandit.learn(ROWS[part], REWARDS[part])
    return bandit


def dense_ridge(reg, *parts, prior=slice(0, 0)):
    """theta and A of all rows; those of the prior have no rewards."""
    rows, rewards = np.vstack([ROWS[p] for p in parts]), np.concatenate([REWARDS[p] for p in parts])
    a = reg * np.eye(DIM) + rows.T @ rows + ROWS[prior].T @ ROWS[prior]
    return np.linalg.solve(a, rows.T @ rewards), a


def same(merged, whole, tolerance=1e-9):
    np.testing.assert_allclose(merged.model.parameter, whole.model.parameter, rtol=0, atol=tolerance)
    np.testing.assert_allclose(merged.score(ROWS[:20]), whole.score(ROWS[:20]), rtol=0, atol=tolerance)
    assert merged.n_learned == whole.n_learned


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("kind", ADDITIVE)
def test_merged_exact_models_equal_learning_both_streams(kind, reg):
    make = lambda: op.Bandit(ADDITIVE[kind](op.Exact(dim=DIM, reg=reg)), op.UCB(0.7))  # noqa: E731
    first, second = learned(make, FIRST), learned(make, SECOND)
    held = op.to_bytes(second)
    same(first.merge(second), learned(make, FIRST, SECOND))
    assert op.to_bytes(second) == held
    if kind in ("Ridge", "OnlineNewton"):
        theta, a = dense_ridge(reg, FIRST, SECOND)
        np.testing.assert_allclose(first.model.parameter, theta, rtol=0, atol=1e-9)
        widths = first.decide(ROWS[:20]).widths
        np.testing.assert_allclose(widths, np.sqrt(np.sum(ROWS[:20] @ np.linalg.inv(a) * ROWS[:20], axis=1)), rtol=1e-9)
    same(first.merge(learned(make, COMMON)), learned(make, FIRST, SECOND, COMMON))  # and goes on


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("kind", ADDITIVE)
def test_rows_that_a_design_held_already_count_once(kind, reg):
    make = lambda: op.Bandit(  # noqa: E731
        ADDITIVE[kind](op.Exact(dim=DIM, reg=reg).append(ROWS[PRIOR])),
        op.UCB(op.Theory() if kind == "Ridge" else 0.7),
    )
    merged = learned(make, FIRST).merge(learned(make, SECOND))
    same(merged, learned(make, FIRST, SECOND))
    if kind in ("Ridge", "OnlineNewton"):
        theta, _ = dense_ridge(reg, FIRST, SECOND, prior=PRIOR)
        np.testing.assert_allclose(merged.model.parameter, theta, rtol=0, atol=1e-9)


def test_a_loaded_bandit_knows_the_rows_that_its_design_held():
    make = lambda: op.Bandit(op.Ridge(op.Exact(dim=DIM, reg=0.37).append(ROWS[PRIOR])))  # noqa: E731
    first, second = (op.from_bytes(op.to_bytes(learned(make, part))) for part in (FIRST, SECOND))
    assert op.to_bytes(first) == op.to_bytes(learned(make, FIRST)) == op.to_bytes(first.copy())
    same(first.merge(second), learned(make, FIRST, SECOND))


def test_a_design_that_goes_on_after_the_bandit_was_built_is_not_its_prior():
    design = op.Exact(dim=DIM, reg=0.37)
    make = lambda: op.Bandit(op.Ridge(design))  # noqa: E731
    first, second, whole = make(), make(), make()
    design.append(ROWS[PRIOR])
    first.learn(ROWS[FIRST], REWARDS[FIRST])
    second.learn(ROWS[SECOND], REWARDS[SECOND])
    for part in (FIRST, SECOND):
        whole.learn(ROWS[part], REWARDS[part])
    same(first.merge(second), whole)
    with pytest.raises(ValueError, match="begun with the same rows"):
        first.merge(make())


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("kind", ADDITIVE)
def test_copies_of_one_bandit_merge_with_what_each_has_learned_since(kind, reg):
    make = lambda: op.Bandit(ADDITIVE[kind](op.Exact(dim=DIM, reg=reg)))  # noqa: E731
    common = learned(make, COMMON)
    shards = [common.copy(), op.from_bytes(op.to_bytes(common))]
    for shard, part in zip(shards, (FIRST, SECOND), strict=True):
        shard.learn(ROWS[part], REWARDS[part])
    same(op.merge_all(*shards, since=common), learned(make, COMMON, FIRST, SECOND))
    assert op.merge_all(common.copy(), common.copy(), since=common).n_learned == common.n_learned


def test_float32_models_merge_to_their_own_precision():
    make = lambda: op.Bandit(op.Ridge(op.Exact(dim=DIM, reg=0.37, dtype="float32").append(ROWS[PRIOR])))  # noqa: E731
    merged, whole = learned(make, FIRST).merge(learned(make, SECOND)), learned(make, FIRST, SECOND)
    assert merged.model.parameter.dtype == np.float32
    same(merged, whole, 2e-4)


def test_shards_in_any_number_and_order_are_one_model():
    make = lambda: op.Bandit(op.Ridge(op.Exact(dim=DIM, reg=0.37)), op.UCB(op.Theory(noise=0.3)))  # noqa: E731
    whole = learned(make, slice(0, 160))
    for count in (2, 3, 7):
        shards = [learned(make, slice(i, 160, count)) for i in range(count)]
        same(op.merge_all(*shards), whole)
        same(op.merge_all(*reversed(shards)), whole)
        assert all(shard.n_learned < 160 for shard in shards)


# ---- what does not merge says so, and nothing has changed ----

PATHS = {
    "OnePassHuber": lambda: op.Bandit(op.OnePassHuber(op.Exact(dim=DIM))),
    "AdaptiveHuber": lambda: op.Bandit(op.estimator.AdaptiveHuber(op.Exact(dim=DIM))),
    "OnePassTruncation": lambda: op.Bandit(op.estimator.OnePassTruncation(op.Exact(dim=DIM))),
    "OnePassMedian": lambda: op.Bandit(op.estimator.OnePassMedian(op.Exact(dim=DIM), repeats=1)),
    "OnlineNewton": lambda: op.Bandit(op.OnlineNewton(op.Exact(dim=DIM), step=2.0)),
    "OnlineNewton with step=1 on an exact design": lambda: op.Bandit(
        op.OnlineNewton(op.FrequentDirections(dim=DIM, size=2))
    ),
    "ProjectorSplitting": lambda: op.Bandit(op.Ridge(op.ProjectorSplitting(dim=DIM, rank=2))),
}


@pytest.mark.parametrize("kind", PATHS)
def test_what_depends_on_the_order_of_rows_is_refused_with_its_name(kind):
    first, second = learned(PATHS[kind], FIRST), learned(PATHS[kind], SECOND)
    held = op.to_bytes(first)
    with pytest.raises(TypeError, match=f"merge is not defined for {kind}|merge is defined for {kind}"):
        first.merge(second)
    assert op.to_bytes(first) == held


@pytest.mark.parametrize("wrap", [op.Ridge, lambda design: op.Disjoint(op.Ridge(design))])
def test_a_start_that_has_learned_more_than_a_bandit_is_refused(wrap):
    make, names = lambda: op.Bandit(wrap(op.Exact(dim=DIM))), ["a"] * 5
    arms = () if wrap is op.Ridge else (names,)
    start, more, few = make(), make(), make()
    start.learn(ROWS[:5], REWARDS[:5], *arms)
    few.learn(ROWS[5], REWARDS[5], *(one[0] for one in arms))
    more.learn(ROWS[:5], REWARDS[:5], *arms)
    held = op.to_bytes(more)
    refused(more, few, ValueError, r"it has learned 5 rows, this one 5 and other 1", since=start)
    refused(few, more, ValueError, r"it has learned 5 rows, this one 1 and other 5", since=start)
    assert op.to_bytes(more) == held


def test_a_start_whose_arm_has_learned_more_than_the_other_one_is_refused():
    make = lambda: op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=DIM))))  # noqa: E731
    start, mine, other = make(), make(), make()
    start.learn(ROWS[:5], REWARDS[:5], ["a"] * 5)
    for one in (mine, other):
        one.learn(ROWS[:6], REWARDS[:6], ["a"] + ["b"] * 5)
    refused(mine, other, ValueError, r"other has learned fewer rows of arm 'a' than since", since=start)


def refused(bandit, other, error, match, **since):
    held = op.to_bytes(bandit)
    with pytest.raises(error, match=match):
        bandit.merge(other, **since)
    assert op.to_bytes(bandit) == held


def test_bandits_of_other_parts_are_refused():
    ridge = lambda **named: op.Bandit(op.Ridge(op.Exact(dim=DIM, **named)))  # noqa: E731
    bandit = learned(ridge, FIRST)
    refused(bandit, ridge(reg=2.0), ValueError, "must have the estimator")
    refused(bandit, ridge(dtype="float32"), ValueError, "must have the estimator")
    refused(bandit, op.Bandit(op.OnlineNewton(op.Exact(dim=DIM))), ValueError, "must have the estimator")
    refused(bandit, op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=DIM)))), TypeError, "must be another bandit with a")
    refused(bandit, op.Exact(dim=DIM), TypeError, "must be another bandit with a")
    refused(bandit, ridge(), TypeError, "since must be another bandit with a", since=op.Exact(dim=DIM))
    limited = lambda: op.Bandit(op.estimator.TruncatedRidge(op.Exact(dim=DIM), horizon=100))  # noqa: E731
    refused(learned(limited, FIRST), learned(limited, SECOND), ValueError, "horizon was fixed at 100")
    means = lambda: op.Bandit(op.estimator.MedianOfMeans(op.Exact(dim=DIM), repeats=3))  # noqa: E731
    refused(means(), learned(means, slice(0, 1)), ValueError, "must have finished its epoch")


def test_features_that_have_moved_apart_are_refused_and_equal_ones_are_not():
    def make(rows=ROWS[PRIOR]):
        features = op.features.Chain(
            op.features.Standardize(dim=DIM).learn(rows), op.features.Fourier(dim=DIM, size=8, seed=3)
        )
        return op.Bandit(op.Ridge(op.Exact(dim=8)), features=features)

    refused(learned(make, FIRST), learned(make, SECOND), ValueError, "different coordinates")
    refused(make(), make(ROWS[SECOND]), ValueError, "different coordinates")
    whole = learned(make, FIRST)
    assert whole.copy().merge(whole).n_learned == 2 * whole.n_learned
    still = lambda seed: op.Bandit(op.Ridge(op.Exact(dim=8)), features=op.features.Fourier(dim=DIM, size=8, seed=seed))  # noqa: E731
    same(
        learned(lambda: still(3), FIRST).merge(learned(lambda: still(3), SECOND)),
        learned(lambda: still(3), FIRST, SECOND),
    )
    refused(still(3), still(4), ValueError, "must have the features")


def test_learners_and_other_owners_say_that_they_cannot_be_merged():
    for owner in (
        op.KernelNewton(),
        op.learner.FORKS(),
        op.BKB(ROWS[:5], op.RBF(1.0)),
        op.features.Standardize(dim=2),
        op.Exact,
        3,
    ):
        with pytest.raises(TypeError, match="cannot be merged"):
            op.merge_all(owner, owner)


def test_residuals_and_decisions_that_had_their_reward_are_merged_too():
    make = lambda: op.Bandit(op.Ridge(op.Exact(dim=DIM)), op.InverseGap())  # noqa: E731
    shards = [make() for _ in range(3)]
    common = shards.pop()
    decisions = [shard.decide(ROWS[i : i + 4]) for i, shard in enumerate(shards)]
    for shard, decision in zip(shards, decisions, strict=True):
        shard.learn(decision, 1.0)
    merged = op.merge_all(*shards, since=common)
    count, squares = zip(*(bandit.model.contents().extra["tally"] for bandit in (*shards, merged)), strict=True)
    assert count == (1, 1, 2)
    assert squares[2] == squares[0] + squares[1] > 0.0
    for decision in decisions:
        with pytest.raises(ValueError, match="has had its reward"):
            merged.learn(decision, 1.0)


def test_shards_that_merge_into_each_other_at_once_do_not_wait_for_ever():
    make = lambda: op.Bandit(op.Ridge(op.Exact(dim=DIM)))  # noqa: E731
    first, second = learned(make, slice(0, 1)), learned(make, slice(1, 2))
    both = [threading.Thread(target=a.merge, args=(b,), daemon=True) for a, b in ((first, second), (second, first))]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert {first.n_learned, second.n_learned} <= {2, 3}
