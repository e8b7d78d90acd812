"""The ranked view of `ContextualBandit`: columns by their normal scores, so that long tails do not matter."""

import numpy as np
import pytest
from scipy.stats import norm, rankdata

import onepass as op
from dense_contextual import views_of
from onepass.model.averaged.view import CLIP, KNOTS, embedded


def seen(rows, landmarks=5):
    """The ranked view of these rows."""
    return views_of(rows, landmarks)[2]


def columns(view, x):
    """z of a row, as it stands among its features, in single precision."""
    count, dim = view.landmarks.shape
    return embedded(view, x)[count : count + dim] / np.float32(view.numbers[1])


def test_columns_are_standardized_normal_scores_of_middle_ranks():
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.standard_cauchy(50), rng.integers(3, size=50), np.full(50, 7.0)])
    view = seen(rows)
    found = np.array([columns(view, x) for x in rows])
    for column, z in zip(rows.T[:2], found.T, strict=False):
        scores = norm.ppf((rankdata(column) - 0.5) / 50.0)
        truth = np.clip((scores - scores.mean()) / scores.std(), -CLIP, CLIP)
        assert z == pytest.approx(truth, abs=1e-5)  # single precision
    assert not found[:, 2].any()  # what does not vary says nothing


def line_of(column):
    """Values of a column that are knots, and their scores, one after the other."""
    values, counts = np.unique(column, return_counts=True)
    scores = norm.ppf((np.cumsum(counts) - counts / 2.0) / len(column))
    mean = scores @ counts / len(column)
    z = (scores - mean) / np.sqrt((scores - mean) ** 2 @ counts / len(column))
    few = np.arange(len(values))
    if len(values) > KNOTS:
        few = np.arange(KNOTS) * (len(values) - 1) // (KNOTS - 1)
    return values[few], np.clip(z[few], -CLIP, CLIP)


def test_columns_in_blocks_have_the_lines_of_each_column_alone():
    """From 1 to 256 values, ties, more columns than are ranked at once; landmarks are rows on these lines."""
    rng = np.random.default_rng(5)
    for count in (2, 64, 65, 200):
        rows = np.column_stack([rng.standard_normal(count), *(rng.integers(k, size=count) for k in range(1, 150))])
        view, varied = seen(rows, 300), rows.std(axis=0) > 0.0
        lines = [line_of(column) if one else (column[:1], [0.0]) for column, one in zip(rows.T, varied, strict=True)]
        for j, (values, _) in enumerate(lines):
            assert np.array_equal(np.unique(view.knots[j]), values) or not varied[j]
        z = np.column_stack([np.interp(column, *line) for column, line in zip(rows.T, lines, strict=True)])
        gaps = ((view.landmarks[:, None] - z[None]) ** 2).sum(axis=2)
        assert gaps.min(axis=1).max() < 1e-9


def test_values_between_and_beyond_those_seen_lie_on_lines_and_at_the_ends():
    view = seen(np.array([[0.0], [1.0], [3.0]]))
    low, middle, high = (columns(view, np.array([x]))[0] for x in (0.0, 1.0, 3.0))
    assert columns(view, np.array([2.0]))[0] == pytest.approx((middle + high) / 2.0, abs=1e-6)
    assert columns(view, np.array([-9.0]))[0] == low
    assert columns(view, np.array([1e300]))[0] == high


def test_a_column_may_be_bent_by_any_growing_function():
    rows = np.random.default_rng(2).standard_normal((60, 3))  # fewer rows than knots: all are knots
    plain, bent = seen(rows), seen(np.exp(5.0 * rows))
    for x in rows[:10]:
        assert np.array_equal(embedded(plain, x), embedded(bent, np.exp(5.0 * x)))


def mistakes(rows, best, seed):
    rewards = (best[:, None] == np.arange(3)).astype(float)
    return np.mean(op.ContextualBandit(seed=seed).play(rows[:, None, :], rewards)[200:] != best[200:])


def test_long_tails_cost_little():
    rng = np.random.default_rng(3)
    rows, weights = rng.standard_normal((900, 6)), rng.standard_normal((6, 3))
    best = np.argmax(rows @ weights, axis=1)
    assert mistakes(np.exp(3.0 * rows), best, 0) < 1.5 * mistakes(rows, best, 0)


def test_the_ranked_view_is_the_first_to_go_where_memory_is_short():
    rng, chosen = np.random.default_rng(4), []
    for megabytes in (1.4, 1.0, 0.5):
        bandit = op.ContextualBandit(memory_limit=megabytes, n_landmarks=100, warm_up=128)
        bandit.learn(rng.standard_normal((200, 4)), rng.random(200), rng.integers(20, size=200).tolist())
        chosen.append(("ranked kernel" in bandit.choices()["weights"], bandit.choices()["landmarks"][0]))
    assert chosen == [(True, 100), (False, 100), (True, 50)]
