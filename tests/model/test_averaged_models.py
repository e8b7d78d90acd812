"""ContextualBandit: its formulas against dense truth, and what it promises of units, arms, changes and outliers."""

import numpy as np
import pytest

import onepass as op
from dense_contextual import Mixture
from onepass.foundation import generic
from onepass.model.averaged.mixture import MODELS, SIZE

SMALL = {"n_landmarks": 5, "warm_up": 16}
SINGLE = 2e-3  # of numbers near 1: float32 after 100 rows on features with condition numbers of 10^3


def game(rounds, dim, arms, seed, noise=0.0):
    """Contexts, and rewards 1 of the arm whose direction the context has, which a square bends."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((rounds, dim))
    scores = rows @ rng.standard_normal((dim, arms)) + (rows**2) @ rng.standard_normal((dim, arms))
    best = np.argmax(scores + noise * rng.standard_normal(scores.shape), axis=1)
    return rows, (best[:, None] == np.arange(arms)).astype(np.float64)


def played(bandit, rows, rewards):
    """Rewards that it had."""
    arms = bandit.play(rows[:, None, :], rewards)
    return rewards[np.arange(len(arms)), arms]


@pytest.mark.parametrize(("shift", "reg", "rare"), [(0.0, 0.1, 0.0), (50.0, 0.37, 0.0), (0.5, 0.1, 0.1)])
def test_means_widths_and_residual_are_those_of_dense_regressions_on_the_same_views(shift, reg, rare):
    """Clicks, and rewards far from 0, which begin at their mean; an arm that pays rarely, and one that never paid;
    views of 64 rows, then as they are."""
    rng = np.random.default_rng(3)
    rows, rewards = rng.standard_normal((100, 3)) * [1.0, 5.0, 0.2], shift + rng.standard_normal(100).round(1)
    arms, bandit = (
        rng.integers(3, size=100),
        op.ContextualBandit(n_landmarks=12, warm_up=64, reg=reg, alarm_threshold=None, n_trees=0),
    )
    if rare > 0.0:
        arms[arms == 2], arms[::20] = 0, 2  # the third arm has five rows, all of them worth 0
        rewards[arms == 1] = 40.0 * (rng.random((arms == 1).sum()) < rare)
        rewards[arms == 2] = 0.0
    bandit.learn(rows, rewards, arms)
    state = bandit.model.state
    used = [m for m in range(len(MODELS)) if state.plan[m, SIZE] > 0]
    truth = Mixture(state.views, [MODELS[m] for m in used], 3, reg)
    truth.rewards = list(rewards[:64])  # the first rows are learned again by what is known after them
    truth.early = [list(rewards[:64][arms[:64] == arm][:5]) for arm in range(3)]
    assert (rare > 0.0) == (bandit.model.state.tails.max() > 20.0)
    for x, arm, reward in zip(rows[:64], arms, rewards, strict=False):
        truth.learn(x, arm, reward)
    for x, arm, reward in zip(rows[64:], arms[64:], rewards[64:], strict=True):
        truth.paid(reward)
        truth.learn(x, arm, reward)
    for x in rng.standard_normal((5, 3)):
        means, widths, sigma = truth.survey(x)
        found = bandit.decide(x, [0, 1, 2])
        assert np.allclose(found.widths, widths, rtol=SINGLE)
        assert np.allclose(found.scores - found.means, sigma * widths, rtol=SINGLE)
        assert np.allclose(found.means, means, atol=SINGLE)


def test_units_of_rewards_and_contexts_do_not_matter():
    """Powers of two, so that every product rounds alike."""
    rows, rewards = game(400, 4, 3, seed=1)
    usual = op.ContextualBandit(seed=2).play(rows[:, None, :], rewards)
    for unit, scale in ((128.0, 1.0), (0.0625, 8.0), (1.0, 0.25)):
        assert np.array_equal(op.ContextualBandit(seed=2).play(scale * rows[:, None, :], unit * rewards), usual)


@pytest.mark.parametrize("power", [-60, 60])
def test_rewards_times_a_power_of_two_are_decided_on_alike_bit_for_bit(power):
    rows, rewards = game(400, 4, 3, seed=1)
    rewards += 0.1 * np.random.default_rng(2).standard_normal(rewards.shape)
    usual, scaled = op.ContextualBandit(seed=2), op.ContextualBandit(seed=2)
    arms = usual.play(rows[:, None, :], rewards)
    assert np.array_equal(scaled.play(rows[:, None, :], np.ldexp(rewards, power)), arms)
    one, other = usual.decide(rows[0], range(3)), scaled.decide(rows[0], range(3))
    assert np.array_equal(one.probabilities, other.probabilities)
    assert np.array_equal(np.ldexp(one.means, power), other.means)


@pytest.mark.parametrize("unit", [1e-12, 1e-9, 1e9])
def test_rewards_of_any_unit_are_decided_on_alike_up_to_rounding(unit):
    """Rewards of rows that are given, so that one draw more or less changes nothing."""
    rng, (rows, rewards) = np.random.default_rng(3), game(400, 4, 3, seed=1)
    arms, found = rng.integers(3, size=400), []
    for scale in (1.0, unit):
        bandit = op.ContextualBandit()
        bandit.learn(rows, scale * rewards[np.arange(400), arms], arms)
        found.append([bandit.decide(x, range(3)).probabilities for x in rows[:50]])
    assert np.allclose(*found, atol=SINGLE)


def test_it_learns_what_is_not_linear_and_beats_a_linear_bandit():
    rows, rewards = game(1500, 4, 3, seed=5)
    mine = played(op.ContextualBandit(), rows, rewards)[500:].mean()
    linear = [
        played(op.LinUCB(dim=4, model="disjoint", exploration=e, reg=0.1), rows, rewards)[500:].mean()
        for e in (0.1, 0.3, 1.0)
    ]
    assert mine > 1.25 * max(linear)


def test_what_it_returns_are_the_probabilities_that_arms_are_drawn_by():
    """Of 2,000 decisions every arm has as many as its probabilities add up to, within 5 standard deviations."""
    rows, rewards = game(150, 3, 4, seed=6)
    bandit = op.ContextualBandit(seed=1)
    bandit.play(rows[:, None, :], rewards)
    found = [bandit.decide(rows[t % 5], range(4)) for t in range(2_000)]
    for arm in range(4):
        p = np.array([one.probabilities[arm] for one in found])
        assert p.min() > 0.0
        assert abs(sum(one.arm == arm for one in found) - p.sum()) < 5.0 * np.sqrt((p * (1.0 - p)).sum())


def test_a_change_is_noticed_and_a_still_world_is_not_forgotten():
    rows, rewards = game(3_000, 4, 3, seed=7, noise=0.5)
    still = op.ContextualBandit()
    played(still, rows, rewards)
    assert still.choices()["alarms"] == 0
    changed = np.vstack([rewards[:1500], np.roll(rewards[1500:], 1, axis=1)])
    with_alarm, without = op.ContextualBandit(), op.ContextualBandit(alarm_threshold=None)
    after, never = played(with_alarm, rows, changed)[1500:].mean(), played(without, rows, changed)[1500:].mean()
    assert with_alarm.choices()["alarms"] == 1
    assert after > never + 0.1


def test_a_change_of_noisy_labels_is_noticed_though_a_drifting_model_is_believed_soon():
    """Two labels in ten are random, and all are swapped half way."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((1_000, 8))
    labels = np.argmax(rows @ rng.standard_normal((8, 2)), axis=1)
    random = rng.random(1_000) < 0.2
    labels[random] = rng.integers(2, size=random.sum())
    bandit = op.ContextualBandit()
    bandit.play(rows[:, None, :], np.eye(2)[(labels + (np.arange(1_000) >= 500)) % 2])
    assert bandit.choices()["alarms"] == 1


def test_outliers_cost_little_and_clicks_are_never_clipped():
    """Student t with 1.5 degrees of freedom, which has no variance: regret below half of a uniform choice's."""
    rng = np.random.default_rng(8)
    rows, weights = rng.standard_normal((1_500, 5)), rng.standard_normal((5, 4))
    expected = rows @ weights
    arms = op.ContextualBandit(seed=1).play(rows[:, None, :], expected + rng.standard_t(1.5, expected.shape))
    regret = (expected.max(axis=1) - expected[np.arange(1_500), arms]).sum()
    assert regret < 0.5 * (expected.max(axis=1) - expected.mean(axis=1)).sum()
    clicks = op.ContextualBandit()
    clicks.play(rows[:300, None, :], (rng.random((300, 4)) < 0.04).astype(float))
    assert clicks.choices()["unit"] == 1.0
    assert clicks.choices()["prior"] == 0.0


@pytest.mark.parametrize(("seed", "sign"), [(1, 1.0), (2, -1.0), (3, 1.0), (4, -1.0)])
def test_rewards_of_a_trillion_that_do_not_recur_are_harmless(seed, sign):
    """One in a hundred rewards is an error of 10^12: regret below a seventh of a uniform choice's."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((1_000, 5))
    expected = rows @ rng.standard_normal((5, 4))
    rewards = expected + rng.standard_normal(expected.shape)
    rewards[rng.random(rewards.shape) < 0.01] = sign * 1e12
    arms = op.ContextualBandit(**SMALL).play(rows[:, None, :], rewards)
    regret = (expected.max(axis=1) - expected[np.arange(1_000), arms]).sum()
    assert regret < (expected.max(axis=1) - expected.mean(axis=1)).sum() / 7.0


def test_an_arm_that_rarely_pays_much_is_played_most():
    """50 with probability .1 beside arms worth .5: in at least 90 % of the later rounds, over six games."""
    shares = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        rewards = rng.random((1_500, 5))
        rewards[:, 2] = 50.0 * (rng.random(1_500) < 0.1)
        arms = op.ContextualBandit(**SMALL, seed=seed).play(rng.standard_normal((1_500, 1, 4)), rewards)
        shares.append((arms[1_000:] == 2).mean())
    assert np.mean(shares) > 0.9


def test_models_learn_which_rows_pay_rarely_but_much():
    """One of two arms pays 50 with probability .1, and the sign of a column says which: the median of six games.

    In one game of ten, with or without trees, an arm has not paid when it is left, so the mean is a matter of luck.
    """
    right = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        rows, rewards = rng.standard_normal((1_500, 4)), rng.random((1_500, 4))
        pays = np.where(rows[:, 0] > 0.0, 1, 3)
        rewards[np.arange(1_500), pays] = 50.0 * (rng.random(1_500) < 0.1)
        arms = op.ContextualBandit(**SMALL, seed=seed).play(rows[:, None, :], rewards)
        right.append((arms[1_000:] == pays[1_000:]).mean())
    assert np.median(right) > 0.65  # the best fixed arm is right in .5


def test_an_arm_that_rarely_loses_much_is_left():
    """-50 with probability .2, else 1, beside an arm worth .5."""
    rng = np.random.default_rng(7)
    rewards = 0.5 + 0.1 * rng.standard_normal((1_000, 2))
    rewards[:, 1] += np.where(rng.random(1_000) < 0.2, -50.0, 0.5)
    arms = op.ContextualBandit(**SMALL).play(rng.standard_normal((1_000, 1, 4)), rewards)
    assert (arms[500:] == 0).mean() > 0.9


def test_models_learn_large_rewards_whole_where_an_arm_pays_them_often():
    """An arm that pays 20 by the context's sign, beside one that pays up to 1 and is played most."""
    rng, bandit = np.random.default_rng(5), op.ContextualBandit(**SMALL)
    rows, rewards = rng.standard_normal((600, 3)), rng.random(600)
    arms = (np.arange(600) % 5 == 0).astype(int)
    rewards[arms == 1] = 20.0 * (rows[arms == 1, 0] > 0.0)
    bandit.learn(rows, rewards, arms)
    means = [bandit.decide([x, 0.0, 0.0], [0, 1]).means[1] for x in (-1.0, 1.0)]
    assert bandit.choices()["unit"] < 0.5
    assert means[1] - means[0] > 10.0


def test_a_third_value_now_and_then_leaves_the_prior_at_the_smaller_one():
    """One in fifty does, one in four does not."""
    rng, priors = np.random.default_rng(6), []
    rows, arms = rng.standard_normal((200, 3)), np.arange(200) % 3
    for every in (50, 4):
        bandit, rewards = op.ContextualBandit(**SMALL), (rng.random(200) < 0.7).astype(float)
        rewards[3::every] = 0.5
        bandit.learn(rows, rewards, arms)
        priors.append(bandit.choices()["prior"])
    assert priors[0] == 0.0
    assert 0.3 < priors[1] < 0.9


def test_a_thousand_equal_rewards_leave_the_unit_and_the_prior_as_they_were():
    """Else all models, which learn what is left of rewards without the prior, would be wrong at once."""
    rng, bandit = np.random.default_rng(14), op.ContextualBandit(n_landmarks=5)
    rewards = np.ones(1_300)
    rewards[:200:4] = 0.0
    bandit.learn(rng.standard_normal((1_300, 2)), rewards, np.arange(1_300) % 2)
    assert bandit.choices()["unit"] == 1.0
    assert bandit.choices()["prior"] == 0.0
    assert bandit.choices()["alarms"] == 0
    assert bandit.decide(rng.standard_normal(2), [0, 1]).means.min() > 0.7


def test_arms_come_and_go_in_the_memory_of_those_that_are_there():
    rng = np.random.default_rng(9)
    bandit = op.ContextualBandit(n_landmarks=10)
    for name in range(300):
        bandit.learn(rng.standard_normal(3), 1.0, name)
        if name >= 4:
            bandit.remove_arm(name - 4)
    assert bandit.arms == (296, 297, 298, 299)
    assert len(bandit.model.state.last) == 8  # room for 4, doubled once
    unknown = bandit.decide(np.zeros(3), ["new", *bandit.arms])
    assert unknown.widths[0] == unknown.widths.max() > unknown.widths[1:].max()
    with pytest.raises(ValueError, match="is not known"):
        bandit.remove_arm(0)


def test_many_arms_have_fewer_landmarks_and_it_says_so():
    rng = np.random.default_rng(10)
    few, many = op.ContextualBandit(memory_limit=64.0), op.ContextualBandit(memory_limit=2.0)
    for bandit in (few, many):
        bandit.learn(rng.standard_normal((300, 6)), rng.random(300), rng.integers(50, size=300).tolist())
    assert few.choices()["landmarks"][0] == 150
    assert many.choices()["landmarks"][0] < 80
    assert 50 * many.choices()["bytes_per_arm"] <= 2e6
    assert f"{many.choices()['bytes_per_arm']:,} bytes an arm" in repr(many)


def test_sparse_rows_have_one_linear_model_where_they_are_wide():
    rng = np.random.default_rng(11)
    rows = (rng.random((20, 257)) < 0.05).astype(float)
    wide, narrow = op.ContextualBandit(n_landmarks=5), op.ContextualBandit(n_landmarks=5)
    wide.learn(rows, rows[:, 0], ["a"] * 20)
    narrow.learn(rows[:, 1:], rows[:, 0], ["a"] * 20)
    assert wide.choices()["weights"] == {"raw linear": 1.0}
    assert "kernel" in narrow.choices()["weights"]


def test_explanations_add_up():
    rows, rewards = game(120, 3, 3, seed=12)
    bandit = op.ContextualBandit()
    bandit.play(rows[:, None, :], rewards)
    found, decision = bandit.explain(rows[0], 1, 2, arms=range(3), names="uvw"), bandit.decide(rows[0], range(3))
    assert found.mean == pytest.approx(decision.means[1], abs=SINGLE)
    assert found.width == pytest.approx(decision.widths[1], rel=SINGLE)
    assert sum(term.share for term in found.terms) == pytest.approx(found.width**2)
    assert sum(gap.contribution for gap in found.difference.terms) == pytest.approx(found.difference.mean)
    assert {term.name for term in found.terms} == {"u", "v", "w", "landmarks", "prior"}


@pytest.mark.parametrize("rounds", [0, 1, 3, 16, 17, 40])
def test_saved_at_any_time_it_goes_on_bit_for_bit(rounds):
    rows, rewards = game(60, 3, 3, seed=13)
    bandit = op.ContextualBandit(warm_up=16, n_landmarks=5)
    if rounds:
        bandit.play(rows[:rounds, None, :], rewards[:rounds])
    twin = op.from_bytes(op.to_bytes(bandit))
    for one in (bandit, twin):
        one.play(rows[rounds:, None, :], rewards[rounds:])
    assert op.to_bytes(bandit) == op.to_bytes(twin)


def test_the_first_decision_of_a_snapshot_finds_no_types_again(monkeypatch):
    def found_again(function, *like):
        raise AssertionError(f"the types of {function.__name__} were found again")

    bandit = op.ContextualBandit(**SMALL)
    bandit.learn(np.eye(3), [0.0, 1.0, 0.0], ["a", "b", "a"])
    first = bandit.snapshot().decide(np.ones(3), ["a", "b"], id="one")
    monkeypatch.setattr(generic, "direct", found_again)
    assert bandit.snapshot().decide(np.ones(3), ["a", "b"], id="one").means.tolist() == first.means.tolist()


def test_contexts_of_another_width_are_refused_before_anything_changes():
    bandit = op.ContextualBandit()
    bandit.learn([1.0, 2.0], 1.0, "a")
    before = op.to_bytes(bandit)
    with pytest.raises(ValueError, match="contexts"):
        bandit.learn([1.0, 2.0, 3.0], 1.0, "a")
    with pytest.raises(ValueError, match="no radius is known"):
        op.ContextualBandit(exploration=op.UCB(op.Theory()))
    with pytest.raises(ValueError, match="27777"):
        op.ContextualBandit(dim=30_000)
    assert op.to_bytes(bandit) == before
