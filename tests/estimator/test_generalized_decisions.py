"""Bandits for clicks and counts: means through the link, rules on the scale they need, rewards that a family has."""

import numpy as np
import pytest

import onepass as op
from onepass.estimator import families
from onepass.exploration.contract import ArmStatistics


def sigmoid(z):
    return 1.0 / (1.0 + np.exp(-z))


def trained(exploration, model="shared", rows=300, **options):
    """A bandit of clicks that has learned, and rows to be decided on."""
    rng = np.random.default_rng(0)
    bandit = op.GLBOMD(dim=3, exploration=exploration, model=model, **options)
    contexts = rng.standard_normal((rows, 3))
    clicks = (rng.random(rows) < sigmoid(contexts @ np.array([1.0, -1.0, 2.0]))).astype(float)
    if rows:
        bandit.learn(contexts, clicks, None if model == "shared" else [i % 4 for i in range(rows)])
    return bandit, rng.standard_normal((4, 3))


def linear(bandit, rows, arm=None):
    """x^T theta of every row, by the model of the arm where there are several."""
    if arm is None:
        return rows @ bandit.model.parameter
    return np.array([row @ bandit.model.parameter_of(a) for a, row in enumerate(rows)])


@pytest.mark.parametrize("parameters", ["shared", "disjoint"])
@pytest.mark.parametrize("rule", [op.UCB(0.7), op.Greedy(), op.InverseGap(), op.Softmax(), op.Thompson(0.5)], ids=str)
def test_means_and_scores_are_expected_rewards(parameters, rule):
    bandit, rows = trained(rule, parameters)
    decision = bandit.decide(rows)
    z = linear(bandit, rows, None if parameters == "shared" else "own")
    assert decision.means == pytest.approx(sigmoid(z), rel=1e-9)
    scores = bandit.score(rows)
    if isinstance(rule, op.UCB):
        assert scores == pytest.approx(sigmoid(z + 0.7 * decision.widths), rel=1e-9)
    elif not isinstance(rule, op.Thompson):
        assert scores == pytest.approx(decision.means, rel=1e-12)
    assert ((scores > 0.0) & (scores < 1.0)).all()
    assert decision.probabilities.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("parameters", ["shared", "disjoint"])
def test_rules_that_weigh_gaps_weigh_gaps_of_expected_rewards(parameters):
    gap = op.InverseGap(exploration=None, gamma=5.0, uniform_share=0.0)
    bandit, rows = trained(gap, parameters)
    decision = bandit.decide(rows)
    means = decision.means
    best = int(np.argmax(means))
    wanted = 1.0 / (4 + 5.0 * (means[best] - means))
    wanted[best] = 0.0
    wanted[best] = 1.0 - wanted.sum()
    assert decision.probabilities == pytest.approx(wanted, rel=1e-9)
    soft, rows = trained(op.Softmax(temperature=0.1, uniform_share=0.0), parameters)
    wanted = np.exp(soft.decide(rows).means / 0.1)
    assert soft.decide(rows).probabilities == pytest.approx(wanted / wanted.sum(), rel=1e-9)


def test_saturated_means_do_not_tie_the_arms_of_rules_of_order():
    bandit = op.GLBOMD(dim=1, exploration=0.0)
    bandit.learn(np.ones((400, 1)), np.ones(400))
    rows = np.array([[300.0], [400.0], [200.0]])
    decision = bandit.decide(rows)
    assert (decision.means == 1.0).all()
    assert decision.arm == 1
    assert decision.probabilities[1] == 1.0


def test_elimination_by_intervals_of_rewards_never_strikes_out_more_than_by_those_of_scores():
    rng = np.random.default_rng(1)
    for family in (families.Logistic(), families.Poisson()):
        for _ in range(200):
            z, widths, beta = 2.0 * rng.standard_normal(5), rng.exponential(size=5), np.full(5, rng.exponential())
            seen = ArmStatistics(means=z, widths=widths, samples=np.empty((0, 5)), beta=beta, residual=0.0, rounds=9)
            view = families.to_reward_scale(family, seen)
            mean = np.vectorize(lambda value, family=family: families.mean(family, value))
            away, rounding = beta * view.widths, 1e-12 * (view.means + beta * view.widths)
            assert (view.means + away >= mean(z + beta * widths) - rounding).all()
            assert (view.means - away <= mean(z - beta * widths) + rounding).all()
            sure = families.to_reward_scale(family, seen._replace(beta=np.zeros(5)))
            assert sure.widths == pytest.approx([families.slope(family, v) * w for v, w in zip(z, widths, strict=True)])


@pytest.mark.parametrize("parameters", ["shared", "disjoint"])
def test_rewards_that_the_family_has_not_change_nothing(parameters):
    bandit, rows = trained(op.InverseGap(), parameters)
    before = op.to_bytes(bandit)
    arm = None if parameters == "shared" else 0
    for wrong in (-0.1, 1.5, -1.0):
        with pytest.raises(ValueError, match="rewards must be from 0 to 1 for the logistic family"):
            bandit.learn(rows[0], wrong, arm)
        with pytest.raises(ValueError, match="rewards"):
            bandit.learn(rows[:2], [1.0, wrong], arm if arm is None else [0, 1])
        with pytest.raises(ValueError, match="rewards"):
            bandit.learn(bandit.decide(rows, id="one"), wrong)
        with pytest.raises(ValueError, match="rewards"):
            bandit.play(rows[None], np.array([[0.0, 1.0, wrong, 0.5]]))
    assert op.to_bytes(bandit) == before
    counts = op.GLBOMD(dim=3, family="poisson")
    counts.learn(rows[0], 12.0)
    with pytest.raises(ValueError, match="at least 0"):
        counts.learn(rows[0], -1.0)


@pytest.mark.parametrize("parameters", ["shared", "disjoint"])
def test_the_residual_is_that_of_expected_rewards(parameters):
    bandit, rows = trained(op.InverseGap(), parameters, rows=0)
    arms, squares = None if parameters == "shared" else "own", 0.0
    for t, reward in enumerate((1.0, 0.0, 0.25, 1.0)):
        squares += (reward - sigmoid(linear(bandit, rows, arms)[t])) ** 2 if t else 0.25
        bandit.learn(rows[t], reward, None if arms is None else t)
        if t == 0 and arms is not None:
            for a in range(1, 4):
                bandit.add_arm(a)
    assert bandit.model.contents().extra["tally"] == pytest.approx([4, squares])


def test_explanations_add_up_to_the_score_before_the_link():
    bandit, rows = trained(op.UCB(0.5))
    found = bandit.explain(rows)
    z = linear(bandit, rows)
    place = int(np.argmax(bandit.score(rows)))
    assert found.mean == pytest.approx(z[place])
    assert sum(term.contribution for term in found.terms) == pytest.approx(found.mean)
    assert found.score == pytest.approx(sigmoid(found.mean + 0.5 * found.width))
    assert found.link == "logistic"
    assert "before the logistic link" in str(found)
    assert found.to_dict()["link"] == "logistic"
    plain = op.OFUL(dim=3)
    assert plain.explain(rows).link == ""
    assert "link" not in str(plain.explain(rows))
