"""Probabilities of the online classifier are calibrated; weights of examples and classes count as they say."""

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import f1_score, log_loss

import onepass as op
from wide_rows import wide


def noisy(count=3_000, seed=0):
    """Rows with P(yes) = 1 / (1 + e^-f)."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, 3))
    f = 2.0 * rows[:, 0] - rows[:, 1]
    return rows, np.where(rng.random(count) < 1.0 / (1.0 + np.exp(-f)), "yes", "no"), 1.0 / (1.0 + np.exp(-f))


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_probabilities_are_near_the_true_ones(loss):
    rows, labels, truth = noisy()
    found = op.OnlineKernelClassifier(op.KernelNewton(loss=loss)).fit(rows[:2_500], labels[:2_500])
    told = found.predict_proba(rows[2_500:])
    assert np.abs(told[:, 1] - truth[2_500:]).mean() < 0.06
    np.testing.assert_allclose(told.sum(axis=1), 1.0, rtol=1e-12)
    assert np.array_equal(found.predict_proba_one(rows[7]), found.predict_proba(rows[7:8])[0])
    assert np.array_equal(found.classes_[told.argmax(axis=1)], found.predict(rows[2_500:]))


def test_probabilities_survive_files_and_copies(tmp_path):
    rows, labels, _ = noisy(600)
    made = op.OnlineKernelClassifier(class_weight={"yes": 3.0}).fit(rows, labels)
    made.save(tmp_path / "classifier")
    for other in (op.load(tmp_path / "classifier"), made.copy()):
        assert other.class_weight == {"yes": 3.0}
        other.partial_fit(rows, labels)
        assert not np.array_equal(other.predict_proba(rows), made.predict_proba(rows))
    same = made.copy().partial_fit(rows, labels)
    again = op.load(tmp_path / "classifier").partial_fit(rows, labels)
    assert np.array_equal(same.predict_proba(rows), again.predict_proba(rows))


def test_at_three_percent_positives_loss_and_f1_are_better_than_those_of_gradient_descent_in_one_pass():
    rows, labels = wide()
    known, new = slice(0, 9_000), slice(9_000, None)
    ours = op.OnlineKernelClassifier().fit(rows[known], labels[known])
    theirs = SGDClassifier(loss="log_loss", random_state=0).partial_fit(rows[known], labels[known], classes=[-1.0, 1.0])
    told, other = ours.predict_proba(rows[new]), theirs.predict_proba(rows[new])
    assert log_loss(labels[new], told) < log_loss(labels[new], other)
    assert f1_score(labels[new], ours.predict(rows[new])) >= f1_score(labels[new], theirs.predict(rows[new]))


def test_weights_of_zero_leave_examples_out_and_a_weight_of_two_is_a_loss_twice_as_large():
    rows, labels, _ = noisy(500)
    weights = np.arange(500) % 3.0
    kept = weights > 0.0
    whole = op.OnlineKernelClassifier().fit(rows, labels, sample_weight=weights)
    part = op.OnlineKernelClassifier().fit(rows[kept], labels[kept], sample_weight=weights[kept])
    assert np.array_equal(whole.predict_proba(rows), part.predict_proba(rows))
    square = op.KernelNewton(loss="squared", standardize=False, width=2.0, memory=None, reg=0.1, recent=False)
    targets = rows[:, 0]
    halved = op.KernelNewton(loss="squared", standardize=False, width=2.0, memory=None, reg=0.05, recent=False)
    twice = op.OnlineKernelRegressor(square).fit(rows, targets, sample_weight=2.0).predict(rows)
    np.testing.assert_allclose(twice, op.OnlineKernelRegressor(halved).fit(rows, targets).predict(rows), atol=1e-8)


def test_balanced_classes_find_more_of_the_rare_one():
    rows, labels = wide(6_000)
    known, new = slice(0, 4_000), slice(4_000, None)
    plain = op.OnlineKernelClassifier().fit(rows[known], labels[known]).predict(rows[new])
    balanced = op.OnlineKernelClassifier(class_weight="balanced").fit(rows[known], labels[known]).predict(rows[new])
    labels = labels[new]
    assert (balanced[labels > 0.0] > 0.0).mean() > (plain[labels > 0.0] > 0.0).mean() + 0.1


def test_wrong_weights_are_refused_by_name():
    rows, labels, _ = noisy(50)
    for given in (-1.0, np.ones(3), np.nan):
        with pytest.raises(ValueError, match="sample_weight"):
            op.OnlineKernelClassifier().fit(rows, labels, sample_weight=given)
    with pytest.raises(ValueError, match="KernelNewton"):
        op.OnlineKernelClassifier(op.learner.FORKS()).fit(rows, labels, sample_weight=1.0)
    for given in ("even", {"perhaps": 1.0}, {"yes": -1.0}, 3):
        with pytest.raises(ValueError, match="class_weight"):
            op.OnlineKernelClassifier(class_weight=given).fit(rows, labels)


def test_other_learners_leave_out_examples_of_light_classes_alike_in_one_call_and_one_by_one():
    rows, labels, _ = noisy(300)
    made = [op.OnlineKernelClassifier(op.learner.RBP(budget=20), class_weight={"no": 0.2}) for _ in range(2)]
    made[0].partial_fit(rows, labels, classes=["no", "yes"])
    for row, label in zip(rows, labels, strict=True):
        made[1].learn_one(row, label, classes=["no", "yes"])
    assert np.array_equal(made[0].predict_proba(rows), made[1].predict_proba(rows))
    plain = op.OnlineKernelClassifier(op.learner.RBP(budget=20)).fit(rows, labels)
    assert (made[0].predict(rows) == "yes").mean() > (plain.predict(rows) == "yes").mean()


def test_the_penalty_is_the_less_the_rarer_a_class_is():
    learner, even = op.KernelNewton(loss="logistic"), np.ones(400)
    shares = [learner.penalty_shares(np.repeat([1.0, -1.0], [k, 400 - k]), even) for k in (200, 40, 8, 0)]
    assert [each[0] for each in shares] == [1.0, 0.25, 0.0625, 0.015625]
    assert all(each == (each[0], each[0] / 4.0, each[0] / 16.0) for each in shares)
    for options in ({"loss": "squared_hinge"}, {"loss": "logistic", "reg": 0.3}):
        assert op.KernelNewton(**options).penalty_shares(even, even) == (1.0,)
