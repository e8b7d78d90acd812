"""Adapters that need no package: Vowpal Wabbit's flags, contextualbandits' interface, Open Bandit Pipeline's arrays."""

import numpy as np
import pytest

import onepass as op
from onepass.adapters import contextualbandits, obp, vowpal_wabbit

K, DIM = 4, 3


def log(seed: int, rounds: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Contexts, arms of a uniform logger, rewards."""
    rng = np.random.default_rng(seed)
    X, a = rng.standard_normal((rounds, DIM)), rng.integers(K, size=rounds)
    return X, a, (X @ rng.standard_normal((DIM, K)))[np.arange(rounds), a]


def dense_scores(X: np.ndarray, a: np.ndarray, r: np.ndarray, rows: np.ndarray, alpha: float, reg: float) -> np.ndarray:
    """Ridge regression with a constant, arm by arm, and alpha times its width."""
    X, rows = (np.hstack([x, np.ones((len(x), 1))]) for x in (X, rows))
    found = np.empty((len(rows), K))
    for arm in range(K):
        own = X[a == arm]
        inverse = np.linalg.inv(reg * np.eye(DIM + 1) + own.T @ own)
        theta = inverse @ own.T @ r[a == arm]
        found[:, arm] = rows @ theta + alpha * np.sqrt(np.einsum("nd,de,ne->n", rows, inverse, rows))
    return found


def test_flags_of_vowpal_wabbit_become_a_bandit_that_learns():
    bandit = vowpal_wabbit.bandit_from_arguments("--cb_explore_adf --squarecb --gamma_scale 100 -q ::", seed=1)
    assert isinstance(bandit.model, op.model.InteractionModel)
    assert bandit.exploration == op.InverseGap(scale=100.0, uniform_share=0.001, exploration=None)
    arms = {"a": {"topic": "sport"}, "b": {"topic": "news"}}
    for t in range(60):
        decision = bandit.decide({"user": f"u{t % 2}"}, arms)
        bandit.learn(decision, float(decision.arm == "ab"[t % 2]))
    assert bandit.score({"user": "u0"}, arms).argmax() == 0
    assert bandit.score({"user": "u1"}, arms).argmax() == 1
    with pytest.raises(ValueError, match="--cover is refused: online cover has no counterpart"):
        vowpal_wabbit.bandit_from_arguments("--cb_explore_adf --cover 3")


@pytest.mark.parametrize("reg", [0.3, 2.0])
def test_the_interface_of_contextualbandits_scores_as_dense_ridge_regression(reg):
    X, a, r = log(0, 120)
    model = contextualbandits.LinUCB(K, alpha=0.7, lambda_=reg).fit(X[:70], a[:70], r[:70])
    model.partial_fit(X[70:], a[70:], r[70:])
    rows = log(1, 10)[0]
    want = dense_scores(X, a, r, rows, 0.7, reg)
    np.testing.assert_allclose(model.decision_function(rows), want, rtol=1e-9, atol=1e-12)
    assert model.predict(rows).tolist() == want.argmax(axis=1).tolist()
    assert model.topN(rows, 2).tolist() == np.argsort(-want, axis=1)[:, :2].tolist()
    means = dense_scores(X, a, r, rows, 0.0, reg)
    assert model.predict(rows, exploit=True).tolist() == means.argmax(axis=1).tolist()
    told = model.predict(rows, output_score=True)
    np.testing.assert_allclose(told["score"], want.max(axis=1), rtol=1e-9)
    fresh = model.fit(X[:5], a[:5], r[:5]).decision_function(rows)
    np.testing.assert_allclose(fresh, dense_scores(X[:5], a[:5], r[:5], rows, 0.7, reg), rtol=1e-9, atol=1e-12)


def test_the_interface_of_contextualbandits_refuses_bad_arguments():
    X, a, r = log(0, 5)
    model = contextualbandits.LinUCB(K)
    with pytest.raises(ValueError, match="fit must come before predict"):
        model.predict(X)
    with pytest.raises(ValueError, match="a must be"):
        model.fit(X, a + K, r)
    with pytest.raises(ValueError, match="nchoices must be"):
        contextualbandits.LinUCB(0)


def test_scores_equal_contextualbandits_without_a_constant():
    theirs = pytest.importorskip("contextualbandits.online")
    X, a, r = log(2, 200)
    given = {"alpha": 0.5, "lambda_": 1.3, "fit_intercept": False}
    ours, other = contextualbandits.LinUCB(K, **given), theirs.LinUCB(K, use_float=False, **given)
    for model in (ours, other):
        model.fit(X, a, r)
    rows = log(3, 20)[0]
    np.testing.assert_allclose(ours.decision_function(rows), other.decision_function(rows), rtol=1e-6)


def test_distributions_for_obp_equal_the_probabilities_of_decisions():
    X, a, r = log(0, 80)
    policy = obp.Policy(op.LinUCB(dim=DIM, model="disjoint", exploration=op.InverseGap()), K)
    for x, action, reward in zip(X, a, r, strict=True):
        policy.update_params(int(action), reward, x[None])
    found = policy.action_dist(X[:6])
    assert found.shape == (6, K, 1)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    for x, row in zip(X[:6], found, strict=True):
        decision = policy.bandit.decide(x, list(range(K)))
        np.testing.assert_allclose(row[:, 0], np.ravel(decision.probabilities), rtol=1e-12)


def test_replay_for_obp_learns_the_rounds_in_which_it_agrees():
    X, a, r = log(1, 150)
    feedback = {"n_rounds": 150, "context": X, "action": a, "reward": r, "position": None}
    made = lambda: op.LinUCB(dim=DIM, model="disjoint", exploration=0.1)  # noqa: E731
    found = obp.run_bandit_simulation(feedback, obp.Policy(made(), K))
    naive = obp.Policy(made(), K).bandit
    for x, action, reward, row in zip(X, a, r, found[:, :, 0], strict=True):
        chosen = naive.decide(x, list(range(K))).arm
        assert row.tolist() == np.eye(K)[chosen].tolist()
        if chosen == action:
            naive.learn(x, reward, int(action))


def test_lists_for_obp_show_different_actions_and_learn_by_position():
    X, a, r = log(1, 60)
    policy = obp.Policy(op.LinUCB(dim=DIM, model="disjoint", exploration=0.1), K, len_list=2)
    found = obp.run_bandit_simulation(
        {"n_rounds": 60, "context": X, "action": a, "reward": r, "position": np.arange(60) % 2}, policy
    )
    assert (found.sum(axis=1) == 1.0).all()
    assert (found.sum(axis=2) <= 1.0).all()
    with pytest.raises(ValueError, match="len_list=1"):
        policy.action_dist(X)
    with pytest.raises(ValueError, match='model="disjoint"'):
        obp.Policy(op.OFUL(dim=DIM), K)
