"""Lists: weights of positions, rewards of whole lists, files, refusals."""

import os

import numpy as np
import pytest

import onepass as op
from onepass import features

LONG = bool(os.environ.get("ONEPASS_TEST_LONG"))
ARMS, DIM, K = 20, 6, 3
WEIGHTS = np.array([1.0, 0.6, 0.3])
NAMES = [f"a{a}" for a in range(ARMS)]


def ridge_bandit() -> op.Bandit:
    return op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=DIM))), op.UCB(0.3))


def rows_bandit() -> op.Bandit:
    return op.Bandit(op.Ridge(op.Exact(dim=ARMS * DIM)), op.SingleDrawThompson())


class Readers:
    """Readers who look at position j with probability w_j, and click what they like."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.theta, self.base = 0.8 * rng.standard_normal((ARMS, DIM - 1)), 0.7 * rng.standard_normal(ARMS) - 1.0
        self.rng = rng

    def arrive(self) -> np.ndarray:
        return np.append(self.rng.standard_normal(DIM - 1), 1.0)

    def click(self, x: np.ndarray, places: np.ndarray) -> np.ndarray:
        likes = 1.0 / (1.0 + np.exp(-(self.theta[places] @ x[:-1] + self.base[places])))
        return (self.rng.uniform(size=K) < WEIGHTS * likes).astype(float)


def play(lists: op.ListBandit, seed: int, rounds: int) -> float:
    """Return the clicks of a game."""
    readers, earned = Readers(seed), 0.0
    for _ in range(rounds):
        x = readers.arrive()
        rows = x if lists.bandit.model.has_named_arms else np.kron(np.eye(ARMS), x)
        decision = lists.decide(rows, NAMES)
        clicks = readers.click(x, decision.places)
        lists.learn(decision, clicks.sum() if lists.reward == "list" else clicks)
        earned += clicks.sum()
    return earned


def test_weights_of_positions_are_those_of_the_readers():
    lists = op.ListBandit(ridge_bandit(), K)
    play(lists, 3, 1500)
    np.testing.assert_allclose(lists.positions, WEIGHTS, atol=0.1)


def test_weights_equal_those_of_plain_scaling():
    lists, readers, sums = op.ListBandit(ridge_bandit(), K), Readers(5), {}
    for n in range(1, 211):
        x = readers.arrive()
        decision = lists.decide(x, NAMES)
        clicks, before = readers.click(x, decision.places), lists.positions
        lists.learn(decision, clicks)
        sums.setdefault("rewards", []).extend(clicks / before)
        for j, arm in enumerate(decision.arms):
            cell = sums.setdefault((arm, j), [0.0, 0.0])
            so_far = sum(sums["rewards"][: len(sums["rewards"]) - K + j + 1]) / (len(sums["rewards"]) - K + j + 1)
            cell[0] += (n + 8.0) * clicks[j]
            cell[1] += (n + 8.0) * max(decision.means[decision.places[j]], 0.01 * so_far)
        if not np.array_equal(before, lists.positions):
            unit, w = (n + 8.0) * sum(sums["rewards"]) / len(sums["rewards"]), before
            cells = {key: value for key, value in sums.items() if key != "rewards"}
            for _ in range(10):
                m = {}
                for arm in {arm for arm, _ in cells}:
                    own = [(j, cells[arm, j]) for j in range(K) if (arm, j) in cells]
                    m[arm] = (sum(c for _, (c, _) in own) + 0.2 * unit) / (
                        sum(w[j] * e for j, (_, e) in own) + 0.2 * unit
                    )
                w = np.array(
                    [
                        (sum(c for (_, i), (c, _) in cells.items() if i == j) + 3 * unit)
                        / (sum(m[arm] * e for (arm, i), (_, e) in cells.items() if i == j) + 3 * unit)
                        for j in range(K)
                    ]
                )
                w /= w[0]
            np.testing.assert_allclose(lists.positions, np.clip(w, 0.02, 1.0), rtol=1e-9)
    assert lists.positions[2] < 0.9


@pytest.mark.parametrize("make", [ridge_bandit, op.ContextualBandit])
def test_learned_weights_earn_what_dividing_by_the_true_ones_earns(make):
    seeds, rounds = (range(10, 15), 5000) if LONG else ((10, 11), 400)
    learned = sum(play(op.ListBandit(make(), K), seed, rounds) for seed in seeds)
    divided = sum(play(op.ListBandit(make(), K, positions=WEIGHTS), seed, rounds) for seed in seeds)
    assert learned >= (0.99 if LONG else 0.93) * divided


def test_a_reward_of_the_list_alone_earns_nine_tenths_of_that():
    seeds, rounds = (range(10, 15), 5000) if LONG else ((10, 11), 1000)
    together = sum(play(op.ListBandit(rows_bandit(), K, reward="list"), seed, rounds) for seed in seeds)
    divided = sum(play(op.ListBandit(ridge_bandit(), K, positions=WEIGHTS), seed, rounds) for seed in seeds)
    assert together >= (0.9 if LONG else 0.8) * divided


def test_given_weights_divide_rewards():
    lists, plain = op.ListBandit(ridge_bandit(), K, positions=WEIGHTS), ridge_bandit()
    x = np.linspace(-1.0, 1.0, DIM)
    decision = lists.decide(x, NAMES, id="one")
    lists.learn(decision, [1.0, None, 1.0])
    plain.learn(plain.decide(x, NAMES, K, id="one"), [1.0, None, 1.0 / 0.3])
    np.testing.assert_array_equal(lists.bandit.score(x, NAMES), plain.score(x, NAMES))
    np.testing.assert_array_equal(lists.positions, WEIGHTS)


def test_a_reward_of_the_list_is_learned_at_the_sum_of_its_rows():
    weights = np.array([1.0, 0.5])
    lists = op.ListBandit(
        op.Bandit(op.Ridge(op.Exact(dim=4, reg=0.3)), op.EpsilonGreedy()), 2, reward="list", positions=weights
    )
    rng, a, b = np.random.default_rng(0), 0.3 * np.eye(4), np.zeros(4)
    for _ in range(30):
        rows, reward = rng.standard_normal((6, 4)), float(rng.standard_normal())
        decision = lists.decide(rows)
        lists.learn(decision, reward)
        row = weights @ rows[decision.places]
        a, b = a + np.outer(row, row), b + reward * row
    np.testing.assert_allclose(lists.bandit.model.parameter, np.linalg.solve(a, b), rtol=1e-9)


@pytest.mark.parametrize("named", [True, False])
def test_saved_lists_go_on_bit_for_bit(named, tmp_path):
    lists = op.ListBandit(ridge_bandit(), K) if named else op.ListBandit(rows_bandit(), K)
    play(lists, 1, 60)
    lists.save(tmp_path / "lists.onepass")
    again, copy = op.load(tmp_path / "lists.onepass"), lists.copy()
    assert repr(again).split(";")[0] == repr(lists).split(";")[0]
    for one in (lists, again, copy):
        play(one, 2, 60)
    for one in (again, copy):
        np.testing.assert_array_equal(one.positions, lists.positions)
        assert one.contents().extra == lists.contents().extra


def test_a_bandit_that_allows_no_divided_reward_is_refused():
    clicks = lambda family: op.Bandit(op.Disjoint(op.OnePassGLM(op.Exact(dim=DIM), family=family)))  # noqa: E731
    for positions in (None, [1.0, 0.5]):
        with pytest.raises(ValueError, match=r"bandit must learn rewards above 1, .* but its family is logistic"):
            op.ListBandit(clicks("logistic"), 2, positions=positions)
        assert op.ListBandit(clicks("poisson"), 2, positions=positions).k == 2
    assert op.ListBandit(clicks("logistic"), 1).k == 1
    lists = op.ListBandit(clicks("logistic"), 2, positions=[1.0, 1.0])
    lists.learn(lists.decide(np.ones(DIM), ["a", "b", "c"]), [1.0, 0.0])


def test_bad_lists_are_refused():
    with pytest.raises(ValueError, match="k must be"):
        op.ListBandit(ridge_bandit(), 0)
    with pytest.raises(ValueError, match="named arms"):
        op.ListBandit(ridge_bandit(), 2, reward="list")
    with pytest.raises(ValueError, match="the same list for ever"):
        op.ListBandit(op.Bandit(op.Ridge(op.Exact(dim=4)), op.UCB(0.3)), 2, reward="list")
    mapped = op.Bandit(op.Ridge(op.Exact(dim=8)), op.EpsilonGreedy(), features=features.Fourier(dim=4, size=8))
    for curved in (mapped, op.BKB(kernel=op.RBF(1.0), exploration=op.SingleDrawThompson())):
        with pytest.raises(ValueError, match="linear in rows"):
            op.ListBandit(curved, 2, reward="list")
    for positions in ([1.0], [0.5, 0.5], [1.0, 0.0], [1.0, 1.5], [1.0, float("nan")]):
        with pytest.raises(ValueError, match="positions"):
            op.ListBandit(ridge_bandit(), 2, positions=positions)
    lists = op.ListBandit(ridge_bandit(), 2)
    with pytest.raises(ValueError, match="k must be"):
        lists.decide(np.ones(DIM), ["only"])
    decision = lists.decide(np.ones(DIM), NAMES)
    for reward in (1.0, [1.0], [1.0, -1.0], [1.0, float("nan")], "ab", [True, 1.0]):
        with pytest.raises(ValueError, match="reward"):
            lists.learn(decision, reward)
    with pytest.raises(ValueError, match="list of 2 arms"):
        lists.learn(lists.bandit.decide(np.ones(DIM), NAMES, 3), [1.0, 0.0, 0.0])
    assert lists.bandit.n_learned == 0
    lists.learn(decision, [1.0, 0.0])
    with pytest.raises(ValueError, match="has had its reward"):
        lists.learn(decision, [1.0, 0.0])
    whole = op.ListBandit(rows_bandit(), 2, reward="list")
    decision = whole.decide(np.kron(np.eye(ARMS), np.ones(DIM)))
    whole.learn(decision, -3.0)
    with pytest.raises(ValueError, match="has had its reward"):
        whole.learn(decision, 1.0)
