"""A bandit as a classifier of scikit-learn is the game that it says it plays, and keeps the checks of scikit-learn."""

import warnings

import numpy as np
import pytest

import dense
import onepass as op

pytest.importorskip("sklearn")

from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from onepass.adapters.bandit_classifier import BanditClassifier

LABELS = np.array(["a", "b", "c"])


def make_labelled_rows(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and the label of the largest of three sums of theirs."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, 4))
    return rows, LABELS[(rows @ np.random.default_rng(9).standard_normal((4, 3))).argmax(axis=1)]


@pytest.mark.parametrize("reg", [0.2, 5.0])
@pytest.mark.parametrize("intercept", [False, True])
def test_predictions_equal_dense_models(reg, intercept):
    rows, labels = make_labelled_rows(0, 90)
    model = BanditClassifier(0.4, reg=reg, fit_intercept=intercept)
    model.partial_fit(rows[:50], labels[:50], LABELS).partial_fit(rows[50:], labels[50:])
    full = np.hstack([rows, np.ones((90, 1))]) if intercept else rows
    naive = dense.Disjoint(full.shape[1], reg, 0.4)
    for x, label, choice, reward in zip(full, labels, model.choices_, model.rewards_, strict=True):
        scores = naive.scores(np.tile(x, (3, 1)), LABELS)
        assert scores[choice == LABELS][0] >= scores.max() - 1e-9
        assert reward == (choice == label)
        naive.learn(x, reward, choice)
    means = [full @ np.linalg.solve(naive.arms[name].matrix, naive.arms[name].moment) for name in LABELS]
    np.testing.assert_allclose(model.decision_function(rows), np.stack(means, axis=1), atol=1e-9)
    assert (model.predict(rows) == LABELS[np.argmax(means, axis=0)]).all()


def test_the_classifier_passes_the_checks_of_scikit_learn():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(BanditClassifier(), on_skip=None)


def test_a_search_finds_how_much_to_explore_and_two_classes_have_one_score():
    rows, labels = make_labelled_rows(1, 300)
    pipeline = make_pipeline(StandardScaler(), BanditClassifier(op.InverseGap(), random_state=3))
    search = GridSearchCV(pipeline, {"banditclassifier__exploration": [0.3, 1000.0]}, cv=3).fit(rows * 100.0, labels)
    assert search.best_params_ == {"banditclassifier__exploration": 0.3}
    assert search.best_score_ > 0.8
    two = BanditClassifier().fit(rows, labels == "a")
    assert two.decision_function(rows).shape == (300,)
    assert ((two.decision_function(rows) > 0.0) == two.predict(rows)).all()


def test_unknown_labels_are_refused_and_change_nothing():
    rows, labels = make_labelled_rows(2, 30)
    model = BanditClassifier().partial_fit(rows, labels, ["a", "b", "c"])
    before = model.decision_function(rows)
    for wrong in (np.repeat("d", 30), np.repeat("", 30)):
        with pytest.raises(ValueError, match="labels of classes only"):
            model.partial_fit(rows, wrong)
    assert (model.decision_function(rows) == before).all()
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(rows * np.nan, labels)
