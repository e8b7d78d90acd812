"""Landmarks follow rows that move elsewhere, forget little, and stay where rows do or where it would not help."""

import numpy as np
import pytest

import onepass as op


def turned(count=1_200, seed=0, jump=30.0):
    """Rows in four columns, two classes that no plane separates; from the half on elsewhere."""
    rows = np.random.default_rng(seed).standard_normal((count, 4))
    labels = np.where(rows[:, 0] * rows[:, 1] > 0.0, 1.0, -1.0)
    rows[count // 2 :] += jump
    return rows, labels


def made(**options):
    return op.KernelNewton(**{"size": 40, "warm_up": 100, "follow": True, **options})


def test_rows_that_jump_are_learned_again_and_the_old_place_is_remembered():
    rows, labels = turned()
    following, staying = made().partial_fit(rows, labels), made(follow=False).partial_fit(rows, labels)
    new, signs = turned(seed=1)
    right = [np.mean(one.predict(new) == signs) for one in (following, staying)]
    assert right[0] > right[1] + 0.1
    back = slice(0, 600)
    assert np.mean(following.predict(new[back]) == signs[back]) > 0.7
    fresh = made().partial_fit(rows[600:], labels[600:])
    assert np.mean(fresh.predict(new[back]) == signs[back]) < 0.65


@pytest.mark.parametrize("column", [None, 3])
def test_rows_that_stay_and_row_numbers_change_nothing(column):
    rows, labels = turned(jump=0.0)
    if column is not None:
        rows[:, column] = np.arange(len(rows))
    want = op.progressive_validation(made(follow=False), rows, labels).decisions
    assert np.array_equal(op.progressive_validation(made(), rows, labels).decisions, want)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_one_by_one_in_blocks_and_from_a_file_it_is_the_same(loss, tmp_path):
    rows, targets = turned(600)
    whole = made(loss=loss)
    want = op.progressive_validation(whole, rows, targets).decisions
    parts, at = made(loss=loss), 0
    for stop in (3, 100, 101, 290, 455, 600):
        found = op.progressive_validation(parts, rows[at:stop], targets[at:stop]).decisions
        assert np.array_equal(found, want[at:stop])
        parts.save(tmp_path / "learner")
        parts, at = op.load(tmp_path / "learner"), stop


def test_several_classes_follow_too(tmp_path):
    rows, signs = turned()
    labels = np.where(rows[:, 2] % 30.0 < 0.5, 2, signs > 0).astype(int)
    found = {}
    for follow in (True, False):
        model = op.OnlineKernelClassifier(made(follow=follow, loss="logistic")).fit(rows, labels)
        found[follow] = model.score(rows[600:], labels[600:])
        model.save(tmp_path / "model")
        assert np.array_equal(op.load(tmp_path / "model").predict_proba(rows[:9]), model.predict_proba(rows[:9]))
    assert found[True] > found[False]


def test_only_landmarks_can_follow():
    with pytest.raises(ValueError, match="features must be 'nystrom'"):
        op.KernelNewton(features="fourier", follow=True)
    with pytest.raises(ValueError, match="follow must"):
        op.KernelNewton(follow=2)
