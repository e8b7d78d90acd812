"""Bounds of regret that a bandit can be asked for: sums of 2 beta ||x||, in calls and in compiled play, in files and
merges."""

import numpy as np
import pytest

import onepass as op
from onepass.bandit.regret_bound import RegretSum
from onepass.design.contract import matrix
from onepass.estimator import contract
from onepass.estimator.families import Logistic, Poisson, mean, mean_limits

DIM, ARMS, NOISE = 4, 5, 0.1
THEORY = op.Theory(noise=NOISE, delta=0.05)
MAKE = {
    "OFUL": lambda rule: op.OFUL(dim=DIM, reg=0.37, exploration=rule),
    "SOFUL": lambda rule: op.SOFUL(dim=DIM, size=1, reg=0.37, exploration=rule),
    "CBSCFD": lambda rule: op.CBSCFD(dim=DIM, size=1, reg=0.37, exploration=rule),
    "DBSLinUCB": lambda rule: op.DBSLinUCB(dim=DIM, size=1, error=2.0, reg=0.37, exploration=rule),
    "OnlineNewton": lambda rule: op.Bandit(op.OnlineNewton(op.Exact(dim=DIM, reg=0.37)), op.UCB(rule)),
    "HvtUCB": lambda rule: op.HvtUCB(dim=DIM, nu=NOISE, horizon=200, exploration=rule),
}


def rounds(count=60, seed=0):
    rng = np.random.default_rng(seed)
    contexts = rng.standard_normal((count, ARMS, DIM))
    contexts /= np.linalg.norm(contexts, axis=2, keepdims=True)
    means = contexts @ np.array([0.5, 0.2, -0.3, 0.1])
    return contexts, means, means + NOISE * rng.standard_normal(means.shape)


def play(bandit, contexts, rewards):
    """Rounds by call; returns the decisions."""
    made = []
    for rows, each in zip(contexts, rewards, strict=True):
        made.append(bandit.decide(rows))
        bandit.learn(made[-1], float(each[made[-1].index]))
    return made


@pytest.mark.parametrize("scale", [1.0, 2.5])
@pytest.mark.parametrize("name", MAKE)
def test_the_bound_is_the_sum_of_twice_radius_times_width_and_above_the_regret(name, scale):
    contexts, means, rewards = rounds()
    bandit, want, regret = MAKE[name](op.Theory(noise=NOISE, delta=0.05, scale=scale)), 0.0, 0.0
    for rows, middle, each in zip(contexts, means, rewards, strict=True):
        state = bandit.model.state
        beta = scale * contract.radius(state, bandit.n_learned, NOISE, 1.0, 1.0, 0.05)
        decision = bandit.decide(rows)
        x = rows[decision.index]
        want += 2 * beta * np.sqrt(x @ np.linalg.solve(matrix(state.design), x))
        regret += middle.max() - middle[decision.index]
        bandit.learn(decision, float(each[decision.index]))
    found = bandit.regret_bound()
    assert found.total == pytest.approx(want, rel=1e-9)
    assert found[1:] == (0.95, 60, 0)
    assert regret <= found.total


@pytest.mark.parametrize("name", ["OFUL", "CBSCFD"])
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_compiled_play_adds_what_calls_add(name, share):
    contexts, _, rewards = rounds()
    rule = op.UCB(THEORY, uniform_share=share)
    played, called = MAKE[name](THEORY), MAKE[name](THEORY)
    for bandit in (played, called):
        bandit.exploration = rule
    arms = played.play(contexts, rewards)
    assert arms.tolist() == [decision.index for decision in play(called, contexts, rewards)]
    assert played.regret_bound().total == pytest.approx(called.regret_bound().total, rel=1e-9)
    assert played.regret_bound()[1:] == called.regret_bound()[1:] == (0.95, 60, 0)


def test_with_a_model_for_each_arm_delta_counts_for_every_arm():
    contexts, _, rewards = rounds()
    played, called = (op.LinUCB(dim=DIM, reg=0.37, exploration=THEORY, model="disjoint") for _ in range(2))
    played.play(contexts[:, :1], rewards)
    for rows, each in zip(contexts, rewards, strict=True):
        decision = called.decide(rows[0], arms=range(ARMS))
        called.learn(decision, float(each[decision.index]))
    assert played.regret_bound().total == pytest.approx(called.regret_bound().total, rel=1e-9)
    assert played.regret_bound().probability == pytest.approx(1.0 - ARMS * 0.05)
    sixty = op.LinUCB(dim=DIM, model="disjoint", exploration=THEORY)
    sixty.learn(np.ones((60, DIM)), np.zeros(60), list(range(60)))
    assert sixty.regret_bound() == (0.0, 0.0, 0, 60)


def test_an_arm_that_was_removed_counts_still():
    bandit = op.OFUL(dim=2, model="disjoint", exploration=op.Theory(noise=NOISE, delta=0.01))
    bandit.add_arm("never decided")
    bandit.remove_arm("never decided")
    for arm in "abc":
        bandit.learn(bandit.decide([1.0, 0.0], [arm]), 1.0)
    assert bandit.regret_bound().probability == pytest.approx(0.97)
    bandit.remove_arm("c")
    bandit.remove_arm("b")
    for one in (bandit, bandit.copy(), op.from_bytes(op.to_bytes(bandit)), bandit.snapshot().bandit()):
        assert one.regret_bound().probability == pytest.approx(0.97)
    bandit.learn(bandit.decide([1.0, 0.0], ["c"]), 1.0)  # an ellipsoid more
    assert bandit.regret_bound().probability == pytest.approx(0.96)


def test_an_arm_that_was_drawn_evenly_costs_up_to_the_largest_upper_bound():
    contexts, _, _ = rounds()
    bandit, want = MAKE["OFUL"](THEORY), 0.0
    bandit.exploration = op.UCB(THEORY, uniform_share=1.0)
    for rows in contexts:
        decision = bandit.decide(rows, eligible=np.arange(ARMS) != 2)
        among, a = np.delete(decision.scores, 2), decision.index
        want += among.max() - (2 * decision.means[a] - decision.scores[a])
        bandit.learn(decision, 0.0)
    assert bandit.regret_bound().total == pytest.approx(want, rel=1e-9)


def test_rows_without_a_decision_of_this_rule_are_counted_apart():
    contexts, _, _ = rounds()
    bandit, other = MAKE["OFUL"](THEORY), MAKE["OFUL"](0.3)
    bandit.learn(contexts[0], np.zeros(ARMS))
    bandit.learn(other.decide(contexts[1]), 0.0)
    first, second = bandit.decide(contexts[2]), bandit.decide(contexts[3], k=3)
    bandit.learn([first, second], [0.0, [0.0, None, 1.0]])
    found = bandit.regret_bound()
    assert found[2:] == (3, ARMS + 1)
    each = [
        2 * (d.scores - d.means)[place]
        for d, place in ((first, first.index), *((second, second.places[i]) for i in (0, 2)))
    ]
    assert found.total == pytest.approx(sum(each), rel=1e-9)


def test_slots_and_batches_add_one_by_one():
    contexts, _, _ = rounds()
    bandit = MAKE["OFUL"](THEORY)
    decisions = bandit.decide(contexts[:7])
    bandit.learn(decisions, np.zeros(7))
    each = [2 * (d.scores - d.means)[d.index] for d in decisions.split()]
    assert bandit.regret_bound().total == pytest.approx(sum(each), rel=1e-9)
    assert bandit.regret_bound().n_decisions == 7


def test_copies_files_and_merges_have_the_sum_and_a_new_rule_begins_anew():
    contexts, _, rewards = rounds()
    start = MAKE["OFUL"](THEORY)
    play(start, contexts[:20], rewards[:20])
    one, other = start.copy(), op.from_bytes(op.to_bytes(start))
    assert one.regret_bound() == other.regret_bound() == start.regret_bound()
    play(one, contexts[20:40], rewards[20:40])
    play(other, contexts[40:], rewards[40:])
    totals = [bandit.regret_bound().total for bandit in (one, other, start)]
    found = one.merge(other, since=start).regret_bound()
    assert found.total == pytest.approx(totals[0] + totals[1] - totals[2], rel=1e-9)
    assert (found.probability, found.n_decisions, found.n_other_rows) == (pytest.approx(0.85), 60, 0)
    one.exploration = op.UCB(op.Theory(noise=NOISE, delta=0.2))
    assert one.regret_bound() == (0.0, 0.8, 0, 60)


def test_an_infinite_radius_and_a_smaller_scale_prove_nothing():
    contexts, _, rewards = rounds()
    bandit = op.Bandit(op.Ridge(op.Exact(dim=DIM)), op.UCB(op.Theory(scale=0.5)))
    play(bandit, contexts, rewards)
    assert bandit.regret_bound().probability == 0.0
    endless = RegretSum(np.inf, 3, 2)
    assert RegretSum.from_plain(endless.to_plain()) == endless
    assert endless.join(RegretSum(1.0, 1, 1), endless).total == np.inf
    for bad in ([-1.0, 3, 1], [1.0, -3, 1], [1.0, 3, 0]):
        with pytest.raises(ValueError, match=r"regret|rows|streams"):
            RegretSum.from_plain(bad)


@pytest.mark.parametrize("rule", [op.UCB(0.3), op.Thompson(THEORY), op.Greedy()])
def test_other_rules_have_no_bound(rule):
    bandit = op.Bandit(op.Ridge(op.Exact(dim=DIM)), rule)
    with pytest.raises(ValueError, match=r"^exploration must be UCB\(Theory"):
        bandit.regret_bound()


@pytest.mark.parametrize(("family", "high"), [(Logistic(), 12.0), (Poisson(), 20.0)])
def test_the_lower_mean_is_found_from_mean_and_upper_mean(family, high):
    for z in np.linspace(-high, high, 25):
        for away in (0.0, 1e-3, 1.0, 30.0):
            want = mean(family, z - away)
            got = mean_limits(family, mean(family, z), mean(family, z + away))
            assert got <= want * (1 + 1e-6) + 1e-15
            if z + away < high:
                assert got == pytest.approx(want, rel=1e-3)


def test_with_clicks_the_bound_is_in_clicks_and_above_the_regret():
    contexts, means, _ = rounds(100)
    rng, bandit, regret = np.random.default_rng(1), op.GLBOMD(dim=DIM, exploration=THEORY), 0.0
    played, rates = bandit.copy(), 1.0 / (1.0 + np.exp(-means))
    clicks = (rng.random(rates.shape) < rates).astype(float)
    for d, each in zip(play(bandit, contexts, clicks), rates, strict=True):
        regret += each.max() - each[d.index]
    found = bandit.regret_bound()
    assert regret <= found.total <= 100.0
    played.play(contexts, clicks)
    assert played.regret_bound().total == pytest.approx(found.total, rel=1e-6)
