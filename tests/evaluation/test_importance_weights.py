"""What is logged can be evaluated: inverse propensity estimates of fixed policies from the logs of every rule.

    V_hat = 1/T sum_t pi(a_t) / p_t(a_t) r_t,   V = 1/T sum_t v_t,   v_t = sum_a pi(a) mu_t(a)
    Var(w r | past) = sum over p_t(a) > 0 of pi(a)^2 (mu_t(a)^2 + sigma^2) / p_t(a)  -  (sum of pi(a) mu_t(a))^2

V_hat - V is a martingale where p is positive: its standard error is sqrt(sum of variances) / T, and exact.
"""

import numpy as np
import pytest

import onepass as op

LOGS, STEPS, TOGETHER = 40, 12, 40  # logs of a rule; of each: steps between which is learned, decisions in one
K, DIM, SIGMA = 4, 3, 0.5  # arms, features, noise
ERRORS = 4.0  # standard errors: 6 in 10^5 normal numbers are beyond
FAR = 10.0  # those by which an estimate is off that knows nothing of most arms

RULES = {
    "UCB": op.UCB(0.5, uniform_share=0.2),
    "Greedy": op.Greedy(uniform_share=0.2),
    "EpsilonGreedy": op.EpsilonGreedy(0.2),
    "Softmax": op.Softmax(uniform_share=0.1),
    "InverseGap": op.InverseGap(0.5, uniform_share=0.1),
    "InverseGap all": op.InverseGap(None, uniform_share=0.1),
    "Thompson 1": op.Thompson(0.5, draws=1, uniform_share=0.1),
    "Thompson 10": op.Thompson(0.5, draws=10, uniform_share=0.1),
    "Thompson 100": op.Thompson(0.5, draws=100, uniform_share=0.1),
}
DEFAULTS = {"Softmax": op.Softmax(), "InverseGap": op.InverseGap(), "Thompson": op.Thompson()}  # floors of 0.001
POLICIES = {  # the probabilities of arms (K,), whatever their features
    "always the second arm": np.eye(K)[1],
    "arms uniformly": np.full(K, 1.0 / K),
    "a mixture": np.array([0.6, 0.0, 0.3, 0.1]),
}


def ridge():
    return op.Ridge(op.Exact(dim=DIM, reg=0.5))


def logged(model, rule, seed, k=1):
    """Records of a bandit that learns while it decides: distributions, places, worth and rewards, (T, k, ..)."""
    rng, theta = np.random.default_rng([seed, k]), np.array([0.8, -0.5, 0.3])
    bandit, per_arm = op.Bandit(model, rule, seed=seed), isinstance(model, op.Disjoint)
    turns = theta * np.array([[1, 1, 1], [-1, 1, 1], [1, -1, 1], [-1, -1, 1]])  # of every arm, where each has its own
    p, places, worth, rewards = [], [], [], []
    for _ in range(STEPS):
        rows = rng.standard_normal((TOGETHER, 1 if per_arm else K, DIM))
        mu = rows[:, 0] @ turns.T if per_arm else rows @ theta
        decision = bandit.decide(np.repeat(rows, K, axis=1) if per_arm else rows, range(K), k=k)
        paid = np.take_along_axis(mu, decision.places, 1) + SIGMA * rng.standard_normal((TOGETHER, k))
        bandit.learn(decision, paid if k > 1 else paid[:, 0])
        p.append(decision.probabilities[:, None] if k == 1 else decision.slots)
        for column, part in ((places, decision.places), (worth, mu), (rewards, paid)):
            column.append(part)
    return tuple(np.concatenate(column) for column in (p, places, worth, rewards))


def distances(log, slot=0):
    """V_hat - V and the standard error, of every policy, over the arms that slots before have left."""
    p, places, mu, rewards = log
    left = np.ones(mu.shape)
    np.put_along_axis(left, places[:, :slot], 0.0, 1)
    own, chosen, out = p[:, slot], places[:, slot : slot + 1], []
    for policy in POLICIES.values():
        pi = policy * left
        pi = np.where(pi.sum(axis=1, keepdims=True) > 0.0, pi, left)  # all it would choose is taken: any of the rest
        pi /= pi.sum(axis=1, keepdims=True)
        weights = np.divide(pi, own, out=np.zeros(pi.shape), where=own > 0.0)
        estimate = np.take_along_axis(weights, chosen, 1)[:, 0] * rewards[:, slot]
        known = (own > 0.0) * pi * mu
        variance = (pi * weights * (mu**2 + SIGMA**2)).sum(axis=1) - known.sum(axis=1) ** 2
        out.append((estimate.mean() - (pi * mu).sum(axis=1).mean(), np.sqrt(variance.sum()) / len(mu)))
    return out


def every_log(found, where):
    """Each log is within its errors."""
    off, error = np.moveaxis(np.array(found), 2, 0)  # (logs, policies)
    assert (np.abs(off) < ERRORS * error).all(), f"{where}: {(off / error).round(1)}"


def the_mean(found, where):
    """And so is the mean of all logs, whose error is smaller."""
    off, error = np.moveaxis(np.array(found), 2, 0)
    mean = off.sum(axis=0) / np.sqrt((error**2).sum(axis=0))
    assert (np.abs(mean) < ERRORS).all(), f"{where}: {mean}"


@pytest.mark.parametrize("name", RULES)
def test_estimates_of_fixed_policies_from_the_log_of_every_rule_are_unbiased(name):
    found = [distances(logged(ridge(), RULES[name], seed)) for seed in range(LOGS)]
    every_log(found, name)
    the_mean(found, name)


@pytest.mark.parametrize("name", DEFAULTS)
def test_so_they_are_under_the_floors_that_are_the_default(name):
    """An arm at the floor is drawn once in 4,000 decisions: of one log alone the error is not normal."""
    the_mean([distances(logged(ridge(), DEFAULTS[name], seed)) for seed in range(LOGS)], name)


@pytest.mark.parametrize("name", ["InverseGap", "Thompson 10"])
def test_so_they_are_where_every_arm_has_a_model_of_its_own(name):
    found = [distances(logged(op.Disjoint(ridge()), RULES[name], seed)) for seed in range(LOGS)]
    every_log(found, name)
    the_mean(found, name)


@pytest.mark.parametrize("name", ["Softmax", "Thompson 10"])
def test_so_they_are_of_every_slot_given_the_slots_before(name):
    logs = [logged(ridge(), RULES[name], seed, k=2) for seed in range(LOGS)]
    for slot in range(2):
        found = [distances(log, slot) for log in logs]
        every_log(found, f"{name}, slot {slot}")
        the_mean(found, f"{name}, slot {slot}")


@pytest.mark.parametrize("rule", [op.UCB(0.5), op.SingleDrawThompson(0.5)], ids=lambda rule: type(rule).__name__)
def test_they_are_far_off_where_arms_have_no_probability(rule):
    """The control: the same estimates from logs of rules without support miss by many standard errors."""
    for seed in range(3):
        found = np.array(distances(logged(ridge(), rule, seed)))
        assert (np.abs(found[:, 0]) > FAR * found[:, 1]).all(), found


@pytest.mark.parametrize("name", ["InverseGap", "Thompson 10"])
def test_they_are_off_where_probabilities_are_logged_that_arms_were_not_drawn_from(name):
    """The other control: a tenth of all probability, said to be spread over the arms, was not."""
    found = []
    for seed in range(LOGS):
        p, *rest = logged(ridge(), RULES[name], seed)
        found.append(distances((0.9 * p + 0.1 / K, *rest)))
    with pytest.raises(AssertionError):
        the_mean(found, name)
