"""A sketch that is too small for its reg inflates scores: a bandit on it says so, once."""

import warnings

import numpy as np
import pytest

import onepass as op
from onepass.bandit.sketch_warning import FIRST, MOST
from onepass.design.contract import matrix
from onepass.design.loss import relative_loss

DIM, ARMS = 20, 5
SMALL = {
    "SOFUL": lambda **options: op.SOFUL(dim=DIM, size=4, **options),
    "PSI": lambda **options: op.PSILinUCB(dim=DIM, rank=4, **options),
}
SOUND = {
    "exact": lambda **options: op.OFUL(dim=DIM, **options),
    "large": lambda **options: op.SOFUL(dim=DIM, size=18, **options),
    "large reg": lambda **options: op.SOFUL(dim=DIM, size=4, reg=1e3, **options),
    "robust": lambda **options: op.CBSCFD(dim=DIM, size=4, **options),
    "compensated": lambda **options: op.PSILinUCB(dim=DIM, rank=4, compensate=True, **options),
    "dyadic": lambda **options: op.DBSLinUCB(dim=DIM, size=4, error=8.0, **options),
    "newton": lambda **options: op.SOFUL(dim=DIM, size=4, estimator="newton", **options),
}


def game(rounds=512, seed=0):
    """Contexts (rounds, ARMS, DIM) and rewards without noise, within 20."""
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal(DIM)
    contexts = rng.standard_normal((rounds, ARMS, DIM))
    return contexts, np.clip(contexts @ (4.0 * theta / np.linalg.norm(theta)), -20.0, 20.0)


def warned(bandit, contexts, rewards, way):
    """The warnings of a game, and the largest mean of its decisions."""
    largest = 0.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if way == "play":
            bandit.play(contexts, rewards)
        else:
            for rows, paid in zip(contexts, rewards, strict=True):
                decision = bandit.decide(rows, range(ARMS))
                largest = max(largest, float(np.abs(decision.means).max()))
                bandit.learn(decision, float(paid[decision.index]))
    assert all(issubclass(one.category, op.SketchWarning) for one in caught)
    return [str(one.message) for one in caught], largest


@pytest.mark.parametrize("way", ["call", "play"])
@pytest.mark.parametrize("parameters", ["shared", "disjoint", "hybrid"])
@pytest.mark.parametrize("name", SMALL)
def test_a_bandit_on_a_sketch_that_lost_100_ridges_warns_once(name, parameters, way):
    bandit = SMALL[name](model=parameters)
    said, largest = warned(bandit, *game(1024), way)
    assert len(said) == 1
    assert "take a larger size or reg" in said[0]
    assert largest > 100.0 or way == "play"  # of rewards within 20
    assert warned(bandit, *game(1024, seed=1), way)[0] == []


@pytest.mark.parametrize("way", ["call", "play"])
@pytest.mark.parametrize("parameters", ["shared", "disjoint"])
@pytest.mark.parametrize("name", SOUND)
def test_designs_that_are_exact_large_or_put_back_what_they_cut_do_not_warn(name, parameters, way):
    said, largest = warned(SOUND[name](model=parameters), *game(), way)
    assert said == []
    assert largest <= 50.0


def test_the_first_look_comes_after_64_rows_and_learning_in_batches_is_looked_at_too():
    contexts, rewards = game()
    bandit = SMALL["SOFUL"]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bandit.learn(contexts[: FIRST - 1, 0], rewards[: FIRST - 1, 0])
    with pytest.warns(op.SketchWarning, match="over 100 times its ridge .reg=1. by row 256"):
        bandit.learn(contexts[FIRST - 1 : 300, 0], rewards[FIRST - 1 : 300, 0])


def test_a_reward_is_learned_once_where_the_warning_is_an_error():
    contexts, rewards = game()
    bandit = SMALL["SOFUL"]()
    bandit.learn(contexts[: FIRST - 1, 0], rewards[: FIRST - 1, 0])
    decision = bandit.decide(contexts[FIRST])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(op.SketchWarning):
            bandit.learn(decision, 1.0)
    assert bandit.n_learned == FIRST
    with pytest.raises(ValueError, match="allow_repeat"):
        bandit.learn(decision, 1.0)


@pytest.mark.parametrize("compensation", [0.0, 0.5, 1.0])
def test_the_loss_is_at_least_the_mean_eigenvalue_that_is_missing(compensation):
    """By dense algebra: trace of X^T X less that of A_hat - ridge I, over dim ridges."""
    rows = np.random.default_rng(1).standard_normal((400, DIM))
    design = op.FrequentDirections(dim=DIM, size=4, compensation=compensation).append(rows)
    values = np.linalg.eigvalsh(matrix(design.state))
    missing = (np.square(rows).sum() - (values - values[0]).sum()) / DIM
    lost = relative_loss(design.state, 1.0)
    assert missing / values[0] <= lost * (1.0 + 1e-9)
    assert (lost > MOST) is (compensation == 0.0)
    assert relative_loss(op.Exact(dim=DIM).append(rows).state, 1.0) == 0.0


@pytest.mark.parametrize("arms", [["a", "b"], {"a": {"topic": "sport"}, "b": {"topic": "news"}}])
def test_the_bandit_that_chooses_its_own_models_learns_on_past_the_first_look(arms):
    bandit = op.ContextualBandit()
    for _ in range(FIRST + 2):
        bandit.learn(bandit.decide({"country": "de"}, arms), 1.0)
    assert bandit.n_learned == FIRST + 2
