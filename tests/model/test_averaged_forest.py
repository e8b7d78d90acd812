"""Trees of `ContextualBandit`: against naive truth, in files, with arms that leave, changes, and little memory."""

import numpy as np
import pytest

import onepass as op
from dense_forest import Forest
from onepass.model.averaged import forest as trees
from onepass.model.averaged.forest import TOTAL, WIDEST, ask_forest, forest_fits
from onepass.model.averaged.forest_share import FROM, MOST, teach_trees
from onepass.model.averaged.mixture import FEW, NOISE, SIZE, TRUST, VOLUME, WEIGHT, forget

SMALL = {"n_landmarks": 8, "warm_up": 32}
SINGLE = 1e-5  # sums of rewards are in float32


def crossed(rounds, seed=0, dim=4, shift=0.0):
    """Contexts, and rewards 1 of the arm that the signs of two columns name; other columns say nothing."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((rounds, dim))
    labels = 2 * (rows[:, 0] > 0.0) + (rows[:, 1] > 0.0)
    return rows, shift + np.eye(4)[labels]


def learned(rows, rewards, seed=1, **options):
    bandit = op.ContextualBandit(**{**SMALL, **options})
    arms = np.random.default_rng(seed).integers(rewards.shape[1], size=len(rows))
    bandit.learn(rows, rewards[np.arange(len(rows)), arms], arms)
    return bandit, arms


def forest_of(bandit):
    return bandit.model._mixtures.forest


def share(bandit):
    return bandit.model._mixtures.share()


def slots_of(bandit):
    """Slots of the arms 0 to 3."""
    return bandit.model.index.request(range(4))[1]


def test_means_are_those_of_the_models_and_of_naive_trees_together():
    rows, rewards = crossed(140)
    rows[:, 2] = rows[:, 2] > 0.0  # a column with many equal values
    (bandit, arms), (without, _) = (learned(rows, rewards, n_trees=count, seed=1) for count in (5, 0))
    truth = Forest(5, seed=0)
    for x, arm, reward in zip(rows, arms, rewards[np.arange(140), arms], strict=True):
        truth.learn(x, arm, reward, 0.0, 0.0, 0.0, np.zeros(4))
    state, forest, slots = bandit.model.state, forest_of(bandit), slots_of(bandit)
    assert np.allclose(forest.scores, [truth.noise, truth.volume], rtol=SINGLE)
    used, tiny = state.plan[:, SIZE] > 0, 1e-8
    noises = np.append(state.scores[NOISE][used], truth.noise) + tiny
    losses = 70.0 * np.log(noises / noises.min()) + np.append(state.scores[VOLUME][used], truth.volume) / 2.0
    raw = np.append(state.settings[used, WEIGHT], 1.0) * np.exp(-TRUST * (losses - losses.min()))
    raw[:-1][raw[:-1] < FEW * raw[:-1].max()] = 0.0
    weight = raw[-1] / raw.sum()
    assert FEW < weight < MOST
    assert share(bandit) == pytest.approx(weight, rel=1e-6)
    for x in np.random.default_rng(2).standard_normal((20, 4)):
        its = np.array([truth.mean(x, arm, 0.0) for arm in range(4)])
        assert np.allclose(ask_forest(forest, x, slots, 0.0), its, atol=SINGLE)
        both = (1.0 - weight) * without.decide(x, range(4)).means + weight * its
        found = bandit.decide(x, range(4))
        assert np.allclose(found.means, both, atol=SINGLE)
        assert np.allclose(found.widths, without.decide(x, range(4)).widths, atol=SINGLE)


def test_trees_with_clips_and_a_full_ring_are_the_naive_ones():
    """Rewards far from 0 with outliers, a mean of unknown arms, and no more than the last rows."""
    rng = np.random.default_rng(3)
    forest, truth = trees.init_forest(3, 3, 7), Forest(3, seed=7, rows=trees.FIRST_ROWS)
    forest = trees.fit_forest(forest, 2, 1e9)
    for _ in range(90):
        x, arm = rng.standard_normal(3), int(rng.integers(2))
        reward = 5.0 + x[arm] + 100.0 * (rng.random() < 0.1)
        guess, h = trees.judge_forest(forest, x, arm, 4.0)
        most = 2.0 * np.sqrt(1.0 + h)
        taught = guess + min(max(reward - guess, -most), most)
        trees.add_to_trees(forest, x, arm, taught)
        trees.store(forest, x, arm, taught)
        if trees.needs_tree(forest):
            trees.replace_tree(forest, 5.0, np.array([2.0, 0.5]))
        truth.learn(x, arm, reward, 4.0, 2.0, 5.0, [2.0, 0.5])
    assert forest.places[TOTAL] == 90 > len(forest.arms)
    for x in rng.standard_normal((20, 3)):
        its = [truth.mean(x, arm, 4.0) for arm in range(2)]
        assert np.allclose(ask_forest(forest, x, np.arange(2), 4.0), its, rtol=SINGLE)


def test_steps_that_kernels_do_not_see_are_learned():
    """Two signs of eight columns name the arm: at most .8 of the mistakes without trees."""
    rows, rewards = crossed(1_200, dim=8)
    found = [op.ContextualBandit(n_trees=count).play(rows[:, None, :], rewards) for count in (30, 0)]
    mistakes = [(rewards[np.arange(1_200), arms] == 0.0).mean() for arms in found]
    assert mistakes[0] < 0.8 * mistakes[1]


def test_a_loaded_bandit_grows_the_same_trees(tmp_path):
    rows, rewards = crossed(240)
    bandit = op.ContextualBandit(**SMALL)
    bandit.play(rows[:150, None, :], rewards[:150])
    bandit.save(tmp_path / "bandit")
    loaded = op.load(tmp_path / "bandit")
    assert np.array_equal(
        bandit.play(rows[150:, None, :], rewards[150:]), loaded.play(rows[150:, None, :], rewards[150:])
    )
    for one, other in zip(forest_of(bandit), forest_of(loaded), strict=True):
        assert np.array_equal(one, other)


def test_trees_depend_on_the_seed_alone():
    rows, rewards = crossed(120)
    one, same, other = (forest_of(learned(rows, rewards, seed=1, **more)[0]) for more in ({}, {}, {"n_trees": 29}))
    assert np.array_equal(one.thresholds, same.thresholds)
    assert one.thresholds.shape != other.thresholds.shape


def test_a_removed_arm_leaves_no_row_behind():
    rows, rewards = crossed(120)
    bandit, arms = learned(rows, rewards)
    slot = slots_of(bandit)[2]
    bandit.remove_arm(2)
    forest = forest_of(bandit)
    assert not forest.counts[:, :, slot].any()
    assert (forest.arms == trees.NONE).sum() == (arms == 2).sum()
    bandit.learn(rows, np.ones(120), np.full(120, 3))  # grows trees without these rows
    assert not forest_of(bandit).counts[:, :, slot].any()


def test_a_change_that_is_noticed_makes_trees_forget():
    bandit, _ = learned(*crossed(120))
    state, forest = bandit.model.state, forest_of(bandit)
    assert share(bandit) > 0.0
    forget(state)
    teach_trees(state, forest, np.zeros(4), 0, 1.0)
    assert not forest.places.any()
    assert not ask_forest(forest, np.zeros(4), np.arange(4), 0.0).any()
    assert share(bandit) == 0.0


def test_parts_of_an_explanation_add_up_to_the_mean():
    rows, rewards = crossed(150)
    bandit, _ = learned(rows, rewards)
    assert share(bandit) > FEW
    for x in rows[:5]:
        found, means = bandit.explain(x, 1, 2, arms=range(4)), bandit.decide(x, range(4)).means
        assert found.mean == pytest.approx(means[1], abs=1e-4)
        assert sum(gap.contribution for gap in found.difference.terms) == pytest.approx(means[1] - means[2], abs=1e-4)


def test_few_rows_wide_rows_and_no_memory_have_no_trees():
    rows, rewards = crossed(FROM - 1)
    assert learned(rows, rewards)[0].choices()["weights"]["trees"] == 0.0
    wide = np.hstack([rows, np.zeros((len(rows), WIDEST))])
    assert "trees" not in learned(wide, rewards)[0].choices()["weights"]
    assert "trees" not in learned(rows, rewards, memory_limit=0.1)[0].choices()["weights"]


def test_trees_stay_within_their_share_of_memory():
    rng = np.random.default_rng(0)
    bandit = op.ContextualBandit(n_landmarks=0, memory_limit=4.0, n_trees=10)
    arms = rng.integers(20, size=600)
    bandit.learn(rng.standard_normal((600, 3)), rng.standard_normal(600), arms)
    forest = forest_of(bandit)
    assert (
        sum(one.nbytes for one in (forest.columns, forest.children, forest.thresholds, forest.counts, forest.sums))
        <= 1e6
    )
    assert len(forest.children) == 10
    assert (forest.counts[:, 0].sum(axis=1) > 500).all()


def test_new_columns_of_records_keep_the_trees_until_rows_are_wide():
    bandit, rng = op.ContextualBandit(**SMALL), np.random.default_rng(1)
    for i in range(60):
        bandit.learn({"size": float(rng.random()), "city": f"c{i % 4}"}, float(i % 2), "a" if i % 3 else "b")
    assert len(forest_of(bandit).rows) == bandit.model.dim
    for i in range(60):
        bandit.learn({"size": float(rng.random()), "city": f"d{i}"}, float(i % 2), "a")
    assert bandit.model.dim > WIDEST
    assert forest_of(bandit) == ()
    bandit.decide({"size": 0.5, "city": "d1"}, ["a", "b"])


def test_damaged_trees_are_refused():
    bandit, _ = learned(*crossed(120))
    forest, begun = forest_of(bandit), trees.init_forest(4, 30, 0)
    assert forest_fits(forest, begun, 4)
    for name, value in (("children", -1), ("children", 10**6), ("columns", 4), ("arms", 4), ("places", -1)):
        broken = forest._replace(**{name: getattr(forest, name).copy()})
        getattr(broken, name).flat[0] = value
        assert not forest_fits(broken, begun, 4)
    assert not forest_fits(forest._replace(counts=forest.counts[:, :, :3], sums=forest.sums[:, :, :3]), begun, 4)
    circle = forest._replace(children=forest.children.copy())
    circle.children[0, 5] = 3
    assert not forest_fits(circle, begun, 4)
    assert not forest_fits(forest._replace(sums=forest.sums[:, :, :2]), begun, 4)


def test_a_number_of_trees_below_0_is_refused():
    with pytest.raises(ValueError, match="n_trees"):
        op.ContextualBandit(n_trees=-1)
