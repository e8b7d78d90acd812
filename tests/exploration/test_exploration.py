"""Every rule gives probabilities, and arms are drawn from them."""

import numpy as np
import pytest
from scipy import stats

import onepass as op
from counts import LONG, repetitions
from dense_exploration import LEVEL, naive, seen_of
from onepass.exploration.contract import score
from onepass.exploration.sampling import sample_action
from onepass.exploration.slots import fill_slots
from onepass.foundation.generic import compiled

RULES = {
    "UCB": op.UCB(0.3),
    "UCB uniform share": op.UCB(0.3, uniform_share=0.2),
    "Greedy": op.Greedy(),
    "Greedy uniform share": op.Greedy(uniform_share=0.3),
    "EpsilonGreedy": op.EpsilonGreedy(0.25),
    "Softmax": op.Softmax(),
    "Softmax T": op.Softmax(0.7, uniform_share=0.0),
    "InverseGap": op.InverseGap(),
    "InverseGap all": op.InverseGap(None, gamma=3.0, uniform_share=0.1),
    "Thompson": op.Thompson(0.5),
    "Thompson 1": op.Thompson(0.5, draws=1, uniform_share=0.1),
    "SingleDrawThompson": op.SingleDrawThompson(0.5),
    "TopTwo": op.TopTwo(0.7, exploration=0.5),
}
DRAWN = 200_000
MANY_ARMS = repetitions(50_000, DRAWN)  # draws of one of 1,000 arms


@compiled
def frequencies(rule, seen, among, lots):
    """How often every arm is chosen."""
    counts, scores = np.zeros(among.size), score(rule, seen)
    for i in range(lots.shape[0]):
        arm, _ = sample_action(rule, seen, scores, among, lots[i])
        counts[arm] += 1
    return counts


@compiled
def slot_frequencies(rule, seen, among, lots, second):
    """How often every arm is in the second slot, and the sum of its distributions."""
    counts, scores, total = np.zeros(second), score(rule, seen), np.zeros(second)
    for i in range(lots.shape[0]):
        arms, p = fill_slots(rule, seen, scores, among, lots[i], False)
        counts[arms[1]] += 1
        for a in range(second):
            total[a] += p[1, a]
    return counts, total


def agrees(counts, p):
    """Chi-square of counts against probabilities; what is never expected never happens, the rare are pooled."""
    expected = p * counts.sum()
    assert (counts[p == 0.0] == 0).all()
    rare = expected < 10.0
    seen, wanted = np.append(counts[~rare], counts[rare].sum()), np.append(expected[~rare], expected[rare].sum())
    keep = wanted > 0.0
    if keep.sum() < 2:
        return True
    return stats.chisquare(seen[keep], wanted[keep] * counts.sum() / wanted[keep].sum()).pvalue > LEVEL


def some(count, barred, seed):
    """Arms that may be chosen: all, or about two thirds of them."""
    among = np.ones(count, np.bool_)
    if barred:
        among[np.random.default_rng(seed).permutation(count)[: count // 3]] = False
    return among


@pytest.mark.parametrize("ties", [False, True], ids=["", "ties"])
@pytest.mark.parametrize("name", RULES)
def test_probabilities_are_those_of_the_formula_and_arms_are_drawn_from_them(name, ties):
    given = RULES[name]
    rule = given.rule()
    for seed, (count, barred) in enumerate([(1, False), (2, False), (2, True), (10, False), (10, True), (1000, True)]):
        draws = min(getattr(given, "draws", 1), 4 if count == 1000 else 100)
        seen, among = seen_of(count, draws, seed, ties), some(count, barred, seed)
        _, p = sample_action(rule, seen, score(rule, seen), among, np.array([0.5, 0.5]))
        assert p == pytest.approx(naive(given, seen, among), abs=1e-12)
        assert abs(p.sum() - 1.0) < 1e-12
        assert (p[~among] == 0.0).all()
        assert (p >= 0.0).all()
        share = rule.uniform_share
        assert (p[among] >= share / among.sum() * (1 - 1e-12)).all()
        lots = np.random.default_rng(seed + 100).random((DRAWN if count < 1000 else MANY_ARMS, 2))
        assert agrees(frequencies(rule, seen, among, lots), p)


@pytest.mark.parametrize("name", RULES)
def test_every_slot_is_drawn_from_its_own_distribution_without_replacement(name):
    given = RULES[name]
    rule, count = given.rule(), 6
    seen, among = seen_of(count, min(getattr(given, "draws", 1), 20), 3), np.ones((1, count), np.bool_)
    lots = np.random.default_rng(1).random((DRAWN, 4))
    counts, total = slot_frequencies(rule, seen, among, lots, count)
    assert total.sum() == pytest.approx(DRAWN, rel=1e-9)
    assert agrees(counts, total / DRAWN)
    scores = score(rule, seen)
    for lot in lots[:50]:
        arms, p = fill_slots(rule, seen, scores, among, np.tile(lot, 3)[: 2 * count], False)
        assert len(set(arms.tolist())) == len(arms)
        left = np.ones(count, np.bool_)
        for arm, own in zip(arms, p, strict=True):
            assert own == pytest.approx(naive(given, seen, left), abs=1e-12)
            left[arm] = False


def test_a_slot_may_have_its_own_eligible_arms_and_a_greedy_tail_takes_the_best_of_the_rest():
    bandit = op.Bandit(op.Ridge(op.Exact(dim=3, reg=0.5)), op.Softmax(1.0), seed=4)
    bandit.learn(np.eye(3), [1.0, 0.5, 0.2])
    rows, names = np.vstack([np.eye(3), -np.eye(3)]), list("abcdef")
    decision = bandit.decide(rows, names, k=2, eligible=[["c", "d"], {"a"}])
    assert decision.arms[0] in "cd"
    assert decision.arms[1] == "a"
    assert decision.slots[0].nonzero()[0].tolist() == [2, 3]
    assert decision.slots[1].tolist() == [1.0, 0, 0, 0, 0, 0]
    greedy = bandit.decide(rows, names, k=4, rest="greedy", eligible=np.array([True] * 5 + [False]))
    assert greedy.rest == "greedy"
    best = [names[a] for a in np.argsort(-greedy.scores, kind="stable") if names[a] not in (greedy.arm, "f")]
    assert greedy.arms[1:] == best[:3]
    assert [row.tolist() for row in greedy.slots[1:]] == [np.eye(6)[a].tolist() for a in greedy.places[1:]]
    with pytest.raises(ValueError, match="eligible must leave an arm for every slot"):
        bandit.decide(rows, names, k=2, eligible=[["a"], ["a"]])
    with pytest.raises(ValueError, match="eligible must leave an arm for every slot"):
        bandit.decide(rows, names, k=3, eligible=["a", "b"])
    with pytest.raises(ValueError, match="eligible must name arms that are offered"):
        bandit.decide(rows, names, eligible=["z"])


def test_exploration_changes_on_a_living_bandit():
    rows = np.random.default_rng(0).standard_normal((5, 3))
    for bandit in (op.OFUL(dim=3), op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=3)))), op.GPUCB(rows, op.RBF(1.0))):
        for rule in RULES.values():
            bandit.exploration = rule
            kernel = isinstance(bandit.model, op.model.KernelModel)
            decision = bandit.decide() if kernel else bandit.decide(rows, range(5))
            assert decision.rule == repr(rule)
            assert decision.probabilities.sum() == pytest.approx(1.0, abs=1e-12)
            bandit.learn(decision, 0.5)
            assert op.from_bytes(op.to_bytes(bandit)).exploration == rule
        with pytest.raises(ValueError, match="exploration must be"):
            bandit.exploration = "greedy"
        assert bandit.exploration == rule


def test_gamma_and_temperature_come_from_the_running_residual():
    rng, theta = np.random.default_rng(2), np.array([1.0, -0.5, 0.3])
    bandit = op.Bandit(op.Ridge(op.Exact(dim=3, reg=0.3)), op.InverseGap(None, uniform_share=0.0), seed=1)
    squares = []
    for _ in range(300):
        rows = rng.standard_normal((4, 3))
        decision = bandit.decide(rows)
        reward = float(rows[decision.index] @ theta + 0.4 * rng.standard_normal())
        squares.append((reward - decision.means[decision.index]) ** 2)
        bandit.learn(rows[decision.index], reward)
    decision, sigma = bandit.decide(rows), np.sqrt(np.mean(squares))
    gamma = op.InverseGap().scale * np.sqrt(4 * 300) / sigma
    best = decision.means.argmax()
    others = np.arange(4) != best
    want = 1 / (4 + gamma * (decision.means[best] - decision.means[others]))
    assert decision.probabilities[others] == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize("parameters", ["shared", "per arm"])
def test_play_equals_decide_and_learn_under_every_rule(parameters):
    rng = np.random.default_rng(5)
    contexts, rewards = rng.standard_normal((60, 4, 3)), rng.standard_normal((60, 4))
    rules = [rule for rule in RULES.values() if LONG or parameters == "shared" or not isinstance(rule, op.Softmax)]
    for rule in rules:
        model = op.Ridge(op.Exact(dim=3, reg=0.4))
        played, stepped = (
            op.Bandit(model if parameters == "shared" else op.Disjoint(model), rule, seed=6) for _ in "ab"
        )
        arms = played.play(contexts, rewards)
        for t, row in enumerate(contexts):
            decision = stepped.decide(row, range(4))
            assert decision.arm == arms[t]
            stepped.learn(row[arms[t]], float(rewards[t, arms[t]]), None if parameters == "shared" else decision.arm)


@pytest.mark.parametrize("values", [
    lambda: op.UCB(np.nan), lambda: op.UCB(0.1, uniform_share=1.5), lambda: op.Softmax(0.0),
    lambda: op.Softmax(scale=-1.0),
    lambda: op.InverseGap(-0.1), lambda: op.InverseGap(gamma=0.0), lambda: op.Thompson(draws=0),
    lambda: op.Thompson(draws=2.5), lambda: op.Greedy(uniform_share=-0.1), lambda: op.EpsilonGreedy(2.0),
])  # fmt: skip
def test_rules_refuse_values_out_of_range(values):
    with pytest.raises(ValueError, match="must be"):
        values()
