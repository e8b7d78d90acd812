"""The bake-off of noisy worlds: its split, its worlds, its players, its lines."""

from functools import partial

import numpy as np
import pytest

from onepass.lab.bakeoff.forest import Forest
from onepass.lab.errors import ExperimentError
from onepass.lab.noisy import figures
from onepass.lab.noisy.game import logged_game
from onepass.lab.noisy.generated import GENERATED, clipped_mean, continuous_game, costs_game, linear_means
from onepass.lab.noisy.names import CHOOSE, KINDS, NAMES, REPORT
from onepass.lab.noisy.players import GREEDY, OURS, THOMPSON_FREE, UCB_FREE, WABBIT, ContextFree, policies
from onepass.lab.noisy.real import REAL, class_game
from onepass.lab.noisy.study import NoisyBakeOff, NoisyTrial
from onepass.lab.noisy.worlds import make_game
from onepass.lab.runner import run


def test_worlds_are_split_by_a_hash_of_their_names_as_committed_before_the_first_run():
    assert len(NAMES) == len(set(NAMES)) == 36
    assert CHOOSE == (
        "click2-waveform-5000", "click2-digits", "costs-segment", "flip20-segment", "flip40-vehicle", "flip40-digits",
        "flip20-phoneme", "outliers", "jackpot", "linear-30", "arms-30", "arms-10", "ratings-generated-weak",
        "ratings-genres", "trial-colon", "trial-star", "routing", "steps-10",
    )  # fmt: skip
    assert sorted((*CHOOSE, *REPORT)) == sorted(NAMES)
    for names in KINDS.values():
        assert abs(len(set(names) & set(CHOOSE)) - len(set(names) & set(REPORT))) <= 1
    assert {*GENERATED, *REAL} == set(NAMES)
    with pytest.raises(ExperimentError, match="there is no world"):
        make_game("nowhere", 0)


def test_flipped_and_clicked_rewards_expect_what_the_enumeration_of_their_outcomes_gives():
    for right, wrong, offset in ((0.8, 0.2, 0.0), (0.05, 0.02, 0.0), (0.8, 0.2, -1.0)):
        games = [class_game(0, "iris", right, wrong, offset) for _ in range(2)]
        game = games[0]
        assert np.array_equal(game.rewards, games[1].rewards)
        enumerated = {chance: (1.0 + offset) * chance + offset * (1.0 - chance) for chance in (right, wrong)}
        assert np.allclose(np.unique(game.expected), sorted(enumerated.values()))
        assert (game.expected == game.expected.max()).sum(axis=1).tolist() == [1] * 150
        assert set(np.unique(game.rewards)) <= {game.low, game.high}
        assert abs(game.rewards.mean() - game.expected.mean()) < 4.0 * 0.5 / np.sqrt(450)


@pytest.mark.parametrize("mean", [-0.3, 0.1, 0.5, 1.2])
def test_the_mean_of_a_clipped_rating_is_its_integral(mean):
    z = mean + 0.2 * np.linspace(-9.0, 9.0, 200_001)
    density = np.exp(-0.5 * ((z - mean) / 0.2) ** 2) / (0.2 * np.sqrt(2.0 * np.pi))
    assert clipped_mean(np.array([mean]), 0.2)[0] == pytest.approx(
        np.trapezoid(np.clip(z, 0, 1) * density, z), abs=1e-8
    )


@pytest.mark.parametrize("name", sorted(GENERATED))
def test_generated_rewards_scatter_around_their_expectations(name):
    game = make_game(name, 3)
    errors = (game.rewards - game.expected)[np.abs(game.rewards) < 1e11]
    assert abs(errors.mean()) < 4.5 * errors.std() / np.sqrt(errors.size)
    assert game.low < game.expected.mean() < game.high
    assert game.rows.shape[0] == game.rewards.shape[0] >= 1_000


def test_contexts_and_arms_explain_the_share_of_the_variance_that_the_world_is_named_after():
    game = continuous_game(np.random.default_rng(5), linear_means, 0.3)
    assert game.expected.var() == pytest.approx(0.3)
    assert game.rewards.var() == pytest.approx(1.0, abs=0.05)
    costs = costs_game(np.random.default_rng(5))
    assert -1.0 <= costs.rewards.min() < costs.rewards.max() <= 0.0


def test_a_replayed_log_has_equally_many_rows_of_every_arm_and_counts_matches_alone():
    rng = np.random.default_rng(0)
    arms = rng.choice(3, 400, p=[0.5, 0.3, 0.2])
    game = logged_game(rng.standard_normal((400, 2)), arms, (arms == 1) + 0.0, rng, bounded=True)
    assert len(set(np.bincount(game.logged).tolist())) == 1
    assert game.arm_values().tolist() == [0.0, 1.0, 0.0]
    policy = next(policy for policy in policies() if policy.label == THOMPSON_FREE)
    trial = NoisyTrial("log", game, [policy], 0, 0)
    trial.step(0, 400)
    (row,) = trial.rows()
    assert row["counted"] < len(game.rows) == row["rounds"]
    assert row["reward"] > 0.7
    assert row["uniform"] == pytest.approx(1 / 3)


def test_every_policy_plays_every_round_and_the_bars_are_computed_from_the_rows(monkeypatch):
    small = partial(class_game, name="iris", right=0.8, wrong=0.2)
    monkeypatch.setitem(REAL, "flip20-vehicle", small)
    make_game.cache_clear()
    offered = {}
    for policy in policies():
        offered.setdefault((policy.group or policy.label, policy.params.get("options", "")), policy)
    study = NoisyBakeOff("small", "one world", tuple(offered.values()), seeds=1, worlds=("flip20-vehicle",), rounds=90)
    results = run(study, quiet=True)
    make_game.cache_clear()
    assert {row["group"] for row in results.rows} >= {OURS, UCB_FREE, THOMPSON_FREE, GREEDY, WABBIT, "forest"}
    for row in results.rows:
        assert row["rounds"] == row["counted"] == 90
        assert 0.2 <= row["reward"] <= 0.8
        assert row["uniform"] == pytest.approx(0.4)
    (line,) = figures.lines(results.rows)
    assert line["world"] == "flip20-vehicle"
    assert line["orders"] == "1"
    assert "geometric mean" in figures.note(results.rows)


def test_context_free_ucb_plays_the_bound_that_ten_naive_lines_find():
    rng = np.random.default_rng(2)
    player, paid = ContextFree(arms=3, seed=0, width=0.7), [[], [], []]
    for t in range(60):
        arm = player.choose(np.zeros(2))
        if t >= 3:
            means = np.array([np.mean(own) for own in paid])
            residuals = np.concatenate([np.array(own) - np.mean(own) for own in paid])
            s = np.sqrt((residuals**2).sum() / max(t - 3, 1))
            bounds = means + 0.7 * s * np.sqrt(np.log(t) / np.array([len(own) for own in paid]))
            assert bounds[arm] == pytest.approx(bounds.max())
        paid[arm].append(float(rng.normal(0.2 * arm)))
        player.learn(np.zeros(2), arm, paid[arm][-1])
    assert min(len(own) for own in paid) > 1


def test_forests_find_the_side_of_a_step_and_count_their_rows():
    rng = np.random.default_rng(4)
    rows = rng.uniform(-1.0, 1.0, (300, 3))
    rewards = np.stack([rows[:, 0] > 0.2, rows[:, 0] <= 0.2], axis=1) + 0.1 * rng.standard_normal((300, 2))
    player = Forest(arms=2, seed=0, trees=8, drawn=3)
    arms = player.play(rows, rewards)
    assert [len(forest.rows) for forest in player.forests] == np.bincount(arms).tolist()
    assert np.mean(arms[150:] == (rows[150:, 0] <= 0.2)) > 0.9


def row(world, policy, group, order, reward, kind="flipped"):
    place = {"rounds": 10, "counted": 10, "arms": 2, "dim": 3, "uniform": 0.5, "fixed": 0.5, "low": 0.0, "high": 1.0}
    place["late_share"] = None
    return {"world": world, "policy": policy, "group": group, "order": order, "reward": reward, "kind": kind, **place}


def test_a_ratio_is_of_gains_against_the_best_rival_in_hindsight_where_this_gains_enough():
    rows = [row("a", OURS, OURS, 0, 0.6), row("a", "VW x", WABBIT, 0, 0.7), row("a", "VW y", WABBIT, 0, 0.6)]
    rows += [
        row("b", OURS, OURS, 0, 0.9),
        row("b", "VW x", WABBIT, 0, 0.51),
        row("b", THOMPSON_FREE, THOMPSON_FREE, 0, 0.6),
    ]
    found = {world.name: world for world in figures.worlds(rows)}
    assert found["a"].ratio(OURS, (WABBIT,)).value == pytest.approx(0.5)
    assert found["b"].ratio(OURS, (WABBIT,)) is None
    assert found["b"].ratio(OURS, figures.RIVALS).value == pytest.approx(4.0)
    unfinished = [*rows, row("a", "VW x", WABBIT, 1, 0.9), row("a", OURS, OURS, 1, 0.9)]
    assert figures.lines(unfinished) == figures.lines(rows)
    (line,) = [text for text in figures.bars(rows) if "greedy linear" in text]
    assert f"{np.sqrt(0.5 * 4.0):.3f} over 2 worlds" in line
    assert "holds" in line


def test_limits_of_a_paired_ratio_cover_it_in_about_95_of_100_draws():
    rng, hits = np.random.default_rng(1), 0
    for _ in range(400):
        luck = 0.2 * rng.standard_normal(12)
        ratio = figures.paired_ratio(
            1.0 + luck + 0.1 * rng.standard_normal(12), 1.25 + luck + 0.1 * rng.standard_normal(12)
        )
        hits += ratio.low <= 0.8 <= ratio.high
    assert 0.91 < hits / 400 < 0.98
