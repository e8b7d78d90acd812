import numpy as np
import pytest

from onepass.lab import (
    Classification,
    Contaminated,
    Dataset,
    Decaying,
    FixedArms,
    Labels,
    Linear,
    Noisy,
    StudentT,
    load,
)
from onepass.lab.bandits.environments import BLOCK, dataset_rows, gaussian_rows, normalize_rows

MAKERS = {
    "classification": lambda seed: Classification(load("digits"), seed),
    "linear": lambda seed: Linear(arms=7, dim=5, seed=seed),
    "normalized linear": lambda seed: Linear(arms=7, dim=5, seed=seed, normalized=True),
    "fixed arms": lambda seed: FixedArms(arms=7, dim=5, seed=seed, noise=StudentT(1.5)),
    "decaying": lambda seed: Decaying(arms=7, dim=12, seed=seed, noise=StudentT(1.5), decay=0.8),
    "noisy": lambda seed: Noisy(Classification(load("digits"), seed), Contaminated(), seed),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_round_does_not_depend_on_the_chunk_it_comes_in(name: str) -> None:
    whole = MAKERS[name](3).chunk(0, 3 * BLOCK)
    for start, rounds in ((0, 1), (BLOCK - 1, 2), (7, 2 * BLOCK), (2 * BLOCK + 1, BLOCK - 1)):
        for part, array in zip(MAKERS[name](3).chunk(start, rounds), whole):
            np.testing.assert_array_equal(part, array[start : start + rounds])


@pytest.mark.parametrize("name", MAKERS)
def test_seeds_and_blocks_differ(name: str) -> None:
    one, other = MAKERS[name](0).chunk(0, 2 * BLOCK), MAKERS[name](1).chunk(0, 2 * BLOCK)
    assert not np.array_equal(one.contexts, other.contexts)
    assert not np.array_equal(one.contexts[:BLOCK], one.contexts[BLOCK:]) or name == "fixed arms"
    assert not np.array_equal(one.rewards[:BLOCK], one.rewards[BLOCK:])


@pytest.mark.parametrize("name", MAKERS)
def test_chunks_are_what_play_expects(name: str) -> None:
    environment = MAKERS[name](0)
    contexts, expected, rewards = environment.chunk(3, 10)
    assert contexts.shape == (10, environment.arms, environment.dim)
    assert expected.shape == rewards.shape == (10, environment.arms)
    assert all(array.dtype == np.float64 and array.flags.c_contiguous for array in (contexts, expected, rewards))


def make_labelled_rows(classes: int, examples: int) -> Dataset:
    """Rows whose direction tells their class: e_class plus a little of one other axis for the example."""
    labels = np.repeat(np.arange(classes), examples)
    rows = (
        3.0 * np.eye(classes)[labels]
        + 0.5 * np.eye(classes)[(labels + 1) % classes] * np.arange(labels.size)[:, None] / labels.size
    )
    return Dataset("labelled", rows, labels)


def test_every_round_offers_one_example_of_each_class_and_pays_the_target_only() -> None:
    environment = Classification(make_labelled_rows(4, 6), seed=6)
    contexts, expected, rewards = environment.chunk(0, 200)
    classes = contexts.argmax(axis=2)
    np.testing.assert_array_equal(np.sort(classes, axis=1), np.tile(np.arange(4), (200, 1)))
    assert environment.target == 2
    np.testing.assert_array_equal(rewards, classes == 2)
    np.testing.assert_array_equal(expected, rewards)


def test_every_example_of_a_class_is_drawn() -> None:
    environment = Classification(make_labelled_rows(3, 4), seed=0)
    drawn = np.unique(environment.chunk(0, 500).contexts.reshape(-1, 3).round(12), axis=0)
    assert len(drawn) == 12


def test_positions_tell_nothing_about_the_target() -> None:
    rounds, arms = 5000, 10
    rewards = Classification(load("digits"), seed=1).chunk(0, rounds).rewards
    hits = rewards.sum(axis=0)
    deviation = np.sqrt(rounds / arms * (1 - 1 / arms))
    assert np.abs(hits - rounds / arms).max() < 4.5 * deviation  # 10 positions: false alarm below 1e-4


def test_targets_rotate_with_the_seed() -> None:
    assert [Classification(load("digits"), seed).target for seed in range(12)] == [*range(10), 0, 1]
    assert Classification(load("digits"), seed=3, target=7).target == 7


@pytest.mark.parametrize("name", ["classification", "normalized linear", "fixed arms", "decaying", "noisy"])
def test_normalized_contexts_have_length_one(name: str) -> None:
    np.testing.assert_allclose(np.linalg.norm(MAKERS[name](0).chunk(0, 60).contexts, axis=2), 1.0, rtol=1e-12)


def test_a_zero_row_stays_zero_and_warns_of_nothing() -> None:
    np.testing.assert_array_equal(normalize_rows(np.array([[0.0, 0.0], [3.0, 4.0]])), [[0.0, 0.0], [0.6, 0.8]])


@pytest.mark.parametrize("normalized", [False, True])
def test_linear_rewards_are_the_expected_ones_plus_noise_of_the_stated_size(normalized: bool) -> None:
    environment = Linear(arms=20, dim=16, seed=2, noise=0.5, normalized=normalized)
    contexts, expected, rewards = environment.chunk(0, 2000)
    np.testing.assert_allclose(expected, contexts @ environment.theta, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(environment.theta), 1.0)
    ratio = (rewards - expected).std() / expected.std()
    assert abs(ratio - 0.5) < 0.5 * 4.5 / np.sqrt(40000)  # two standard deviations of 40,000 draws, 4.5 sigma together


def test_rows_of_matrix_studies_are_unit_rows_and_prefixes_agree() -> None:
    np.testing.assert_allclose(np.linalg.norm(gaussian_rows(0, 30, dim=8), axis=1), 1.0)
    for rows in (gaussian_rows, lambda seed, n: dataset_rows(load("digits"), seed, n)):
        np.testing.assert_array_equal(rows(1, 40)[:10], rows(1, 10))


def test_rows_of_a_data_set_are_drawn_without_replacement_while_they_last() -> None:
    data = make_labelled_rows(4, 6)
    assert len(np.unique(dataset_rows(data, 0, 24).round(12), axis=0)) == 24
    assert dataset_rows(data, 0, 50).shape == (50, 4)


def typical_share(noise: np.ndarray, size: float) -> float:
    """The share of values below the median of |eta| that a noise's size stands for, less one half."""
    return float((np.abs(noise) <= size / 1.4826).mean()) - 0.5


@pytest.mark.parametrize("dim", [2, 30])
def test_fixed_arms_stay_and_pay_their_mean_plus_the_noise(dim: int) -> None:
    environment = FixedArms(arms=20, dim=dim, seed=4, noise=StudentT(1.5, scale=0.3))
    contexts, expected, rewards = environment.chunk(30, 500)
    assert (contexts == contexts[0]).all()
    assert np.linalg.norm(environment.theta) == pytest.approx(1.0)
    np.testing.assert_allclose(expected, contexts @ environment.theta, atol=1e-12)
    share = typical_share(rewards - expected, environment.noise.size)
    assert abs(share) < 4.5 * 0.5 / np.sqrt(rewards.size)  # false alarm below 1e-5
    assert len(np.unique(rewards)) == rewards.size


def test_entries_of_fixed_arms_are_uniform_before_they_are_scaled() -> None:
    rows = FixedArms(arms=40_000, dim=2, seed=0, noise=StudentT(2.1)).rows
    steep = (np.abs(rows[:, 0]) > 2 * np.abs(rows[:, 1])).mean()  # of a square 1/4, of a disc 0.295
    assert abs(steep - 0.25) < 4.5 * np.sqrt(0.25 * 0.75 / len(rows))


def test_a_few_directions_hold_decaying_contexts_and_theta() -> None:
    environment = Decaying(arms=20, dim=100, seed=2, noise=StudentT(1.5), decay=0.9)
    contexts, expected, _ = environment.chunk(0, 200)
    rows = contexts.reshape(-1, 100)
    spectrum = np.linalg.eigvalsh(rows.T @ rows)[::-1]
    assert spectrum[30:].sum() < 0.01 * spectrum.sum()
    assert np.abs(rows).max(axis=0).min() > 0.05  # but no coordinate is empty: the basis is rotated
    assert expected.std() > 2 / np.sqrt(100)  # twice what a theta uniform on the sphere would give


def test_noise_that_is_added_leaves_contexts_and_expectations_alone() -> None:
    plain, noise = Classification(load("digits"), 3), StudentT(1.5, scale=0.3)
    contexts, expected, rewards = Noisy(plain, noise, 3).chunk(20, 300)
    bare = plain.chunk(20, 300)
    np.testing.assert_array_equal(contexts, bare.contexts)
    np.testing.assert_array_equal(expected, bare.expected)
    share = typical_share(rewards - bare.rewards, noise.size)
    assert abs(share) < 4.5 * 0.5 / np.sqrt(rewards.size)


def test_labels_offer_one_row_for_all_arms_and_pay_its_class() -> None:
    data = make_labelled_rows(4, 6)
    environment = Labels(data, seed=1)
    contexts, expected, rewards = environment.chunk(7, 400)
    assert contexts.shape == (400, 1, environment.dim)
    assert contexts.flags.c_contiguous
    assert expected.shape == (400, environment.arms)
    np.testing.assert_array_equal(rewards.argmax(axis=1), contexts[:, 0].argmax(axis=1))
    np.testing.assert_array_equal(rewards.sum(axis=1), 1.0)
    np.testing.assert_array_equal(expected, rewards)
    assert len(np.unique(contexts[:, 0].round(12), axis=0)) == 24
    for part, array in zip(Labels(data, seed=1).chunk(60, 70), environment.chunk(0, 200)):
        np.testing.assert_array_equal(part, array[60:130])
