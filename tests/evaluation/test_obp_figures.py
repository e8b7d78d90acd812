"""Open Bandit Pipeline's published relative errors, on digits and on made-up data: ours are theirs, within the spread.

Its examples/multiclass (30 runs: logger 0.4 logistic regression, policy 0.9 random forest, 70% of the data) and
examples/synthetic (20 runs: 10,000 rows, 30 arms, 5 features, logger softmax of -3 means, policy by weighted logistic
regression). Its models see other rows than ours, which learn from the past alone, and its draws are others.
"""

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from counts import repetitions
from onepass import evaluation as ev

DIGITS = {"ips": (0.030288, 0.024506), "snips": (0.022764, 0.017917), "dr": (0.016156, 0.012679),
          "sndr": (0.022082, 0.016865), "dros": (0.015868, 0.012537)}  # fmt: skip
SYNTHETIC = {"ips": (0.009481, 0.006899), "snips": (0.006665, 0.004541), "dr": (0.006175, 0.004245),
             "sndr": (0.006118, 0.003997), "switch": (0.006175, 0.004245), "dros": (0.021951, 0.013337)}  # fmt: skip
FOREIGN_DM = 0.436541  # on digits
OTHERS = 2.0  # times the published deviation: ours may differ, for its models and draws are others


class Clicks:
    """The probability of a click by logistic regression, as a regressor."""

    def __init__(self):
        self.model = LogisticRegression(C=100, max_iter=10_000)

    def fit(self, rows, clicks):
        self.model.fit(rows, clicks)

    def predict(self, rows):
        return self.model.predict_proba(rows)[:, 1]


def errors(runs, names):
    """Relative errors (runs,) by name, of (log, policy, truth, model)."""
    found = {name: [] for name in names}
    for log, policy, truth, model in runs:
        seen = ev.evaluate(log, policy, estimators=names, model=model).estimates
        for name in names:
            found[name].append(abs(seen[name].value - truth) / truth)
    return {name: np.array(each) for name, each in found.items()}


def digits(seed):
    x, labels = load_digits(return_X_y=True)
    seen, x, known, labels = train_test_split(x, labels, test_size=0.7, random_state=seed)
    rng, rows, right = np.random.default_rng(seed), np.arange(len(x)), np.eye(10)[labels]
    logger = 0.4 * np.eye(10)[LogisticRegression(C=1000, max_iter=10_000).fit(seen, known).predict(x)] + 0.06
    forest = RandomForestClassifier(max_depth=10, min_samples_leaf=10, random_state=seed).fit(seen, known)
    policy = 0.9 * np.eye(10)[forest.predict(x)] + 0.01
    arms = (logger.cumsum(axis=1) > rng.random((len(x), 1))).argmax(axis=1)
    log = ev.Log(
        arms=arms,
        rewards=right[rows, arms],
        propensities=logger[rows, arms],
        n_arms=10,
        contexts=x,
        distributions=logger,
    )
    model = HistGradientBoostingRegressor(max_depth=5, learning_rate=0.01, min_samples_leaf=10, random_state=seed)
    return log, policy, float((policy * right).sum() / len(x)), model


def synthetic(seed, rows=10_000, arms=30, width=5):
    rng = np.random.default_rng(seed)
    of_contexts, of_arms, of_both = (rng.uniform(-1, 1, size) for size in (width, arms, (width, arms)))

    def batch():
        x = rng.normal(size=(rows, width))
        scores = (x @ of_contexts)[:, None] + of_arms + x @ of_both
        means = expit((scores - scores.mean()) / scores.std())
        p = softmax(-3.0 * means, axis=1)
        chosen = (p.cumsum(axis=1) > rng.random((rows, 1))).argmax(axis=1)
        each = np.arange(rows), chosen
        return means, ev.Log(
            arms=chosen, rewards=(rng.random(rows) < means[each]) * 1.0, propensities=p[each], n_arms=arms, contexts=x,
            distributions=p,
        )  # fmt: skip

    _, old = batch()
    learned = LogisticRegression(C=100, max_iter=10_000)
    learned.fit(old.contexts, old.arms, sample_weight=old.rewards / old.propensities)
    means, log = batch()
    policy = np.zeros((rows, arms))
    policy[:, learned.classes_] = learned.predict_proba(log.contexts)
    return log, policy, float((policy * means).sum() / rows), ev.RegressorModel(Clicks())


@pytest.mark.parametrize(
    ("make", "published", "its", "ours"),
    [(digits, DIGITS, 30, repetitions(1, 30)), (synthetic, SYNTHETIC, 20, repetitions(1, 20))],
)
def test_relative_errors_are_the_published_ones_within_their_spread(make, published, its, ours):
    names = (*published, "dm")
    found = errors(map(make, range(ours)), names)
    for name, (mean, deviation) in published.items():
        assert abs(found[name].mean() - mean) < 3.0 * OTHERS * deviation * np.sqrt(1 / its + 1 / ours), name
    if make is digits:  # on rows that a model predicts, of which the first ones are by one that saw little
        assert found["dm"].mean() == pytest.approx(FOREIGN_DM, abs=0.06)
