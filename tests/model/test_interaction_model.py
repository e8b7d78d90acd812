"""`InteractionBandit`: its model is the naive one, its probabilities their formula, and it finds what users like."""

import json

import numpy as np
import pytest

import onepass as op
from counts import LONG, repetitions
from dense_crossed import Naive
from onepass.features.flatten import flatten_record
from onepass.testing import check_exploration

TOPICS, COUNTRIES = ("sport", "news", "food"), ("de", "fr", "us", "in")


def plain(seed: int = 0, **options) -> op.Bandit:
    """Numbers as they are, so that rows are terms."""
    return op.InteractionBandit(op.Records(size=32), op.Records(size=32), seed=seed, **options)


def request(rng, count: int = 5):
    user = {"country": str(rng.choice(COUNTRIES)), "x": float(rng.normal()), "tags": list(rng.choice(["p", "q"], 1))}
    arms = {f"a{k}": {"topic": str(rng.choice(TOPICS)), "y": float(rng.normal())} for k in rng.choice(9, count, False)}
    return user, arms


@pytest.mark.parametrize("unit", [1.0, 1e-4, 1e5])
def test_means_widths_and_probabilities_are_the_naive_ones(unit):
    bandit, naive, rng = plain(), Naive(), np.random.default_rng(1)
    known, compared = set(), 0  # terms that are new share places: only what was learned is compared
    for _ in range(repetitions(150, 1500)):
        user, arms = request(rng)
        decision = bandit.decide(user, arms)
        if {*flatten_record(user), *(term for item in arms.values() for term in flatten_record(item))} <= known:
            looked = [naive.look(flatten_record(user), flatten_record(item), name) for name, item in arms.items()]
            means, widths = np.array(looked).T
            sigma = naive.sigma()
            upper = means + 0.8 * sigma * widths
            assert decision.means == pytest.approx(means, rel=1e-8, abs=1e-9 * unit)
            assert decision.widths == pytest.approx(widths, rel=1e-8)
            assert decision.scores == pytest.approx(upper, rel=1e-8, abs=1e-9 * unit)
            p = 1.0 / (len(arms) + 30.0 * np.sqrt(len(arms) * naive.rows) / sigma * (upper.max() - upper))
            p[np.argmax(upper)] = 0.0
            p[np.argmax(upper)] = 1.0 - p.sum()
            assert decision.probabilities == pytest.approx(0.999 * p + 0.001 / len(arms), rel=1e-6)
            compared += 1
        reward = unit * float(rng.normal() + ("de" in user["country"]) * ("sport" in arms[decision.arm]["topic"]))
        bandit.learn(decision, reward)
        naive.learn(flatten_record(user), flatten_record(arms[decision.arm]), decision.arm, reward)
        known |= {*flatten_record(user), *flatten_record(arms[decision.arm])}
    assert bandit.n_learned == naive.rows
    assert compared > 50


def test_multiplied_rewards_give_the_same_choices():
    chosen = []
    for unit in (1.0, 1024.0):  # a power of two, so that nothing rounds differently
        bandit, rng = op.InteractionBandit(seed=2), np.random.default_rng(3)
        own = []
        for _ in range(200):
            decision = bandit.decide(*request(rng), id=f"{len(own)}")
            own.append((decision.arm, decision.propensity))
            bandit.learn(decision, unit * float(rng.random() < 0.2))
        chosen.append(own)
    assert [arm for arm, _ in chosen[0]] == [arm for arm, _ in chosen[1]]
    assert np.array([p for _, p in chosen[0]]) == pytest.approx([p for _, p in chosen[1]], rel=1e-9)


def test_every_user_gets_the_topic_of_their_country_though_articles_come_and_go():
    bandit, rng, hits, number = op.InteractionBandit(), np.random.default_rng(0), [], 0
    liked = dict(zip(COUNTRIES, (*TOPICS, "sport"), strict=True))
    stock = [(f"a{k}", TOPICS[k % 3]) for k in range(12)]
    for round_ in range(1200):
        if round_ % 20 == 0:
            number += 1
            stock = [*stock[1:], (f"b{number}", TOPICS[number % 3])]
        user = {"country": str(rng.choice(COUNTRIES)), "age": float(rng.normal(40, 10))}
        decision = bandit.decide(user, {name: {"topic": topic} for name, topic in stock})
        hit = dict(stock)[decision.arm] == liked[user["country"]]
        bandit.learn(decision, float(rng.random() < (0.3 if hit else 0.03)))
        hits.append(hit)
    assert np.mean(hits[600:]) > 0.8  # a third by chance


def test_an_arms_own_appeal_is_learned_and_given_up_for_later_arms():
    bandit, rng = op.InteractionBandit(recent=3), np.random.default_rng(0)
    for _ in range(300):
        decision = bandit.decide({}, {"good": {}, "bad": {}})
        bandit.learn(decision, float(rng.random() < (0.6 if decision.arm == "good" else 0.1)))
    held = bandit.explain({}, arms={"good": {}}).terms
    assert {term.name for term in held} == {"constant", "own"}
    assert held[1].contribution != 0.0
    decision = bandit.decide({}, {"good": {}, "bad": {}})
    assert decision.means[0] > decision.means[1] + 0.1
    for name in ("c", "d", "e"):
        bandit.learn(bandit.decide({}, {name: {}}), 0.3)
    means = bandit.decide({}, {"good": {}, "bad": {}, "never seen": {}}).means
    assert means[0] == means[1] == means[2]


@pytest.mark.parametrize("level", [0.0, 100.0])
def test_every_hour_gets_its_arm_where_nothing_is_noise(level):
    """With priors up to 1 widths of what was never played fell with the noise; with a narrow constant the arm that
    came first had the level of all rewards."""
    for seed in range(repetitions(4, 24)):
        rng = np.random.default_rng(seed)
        best, bandit, hits = rng.integers(3, size=24), op.InteractionBandit(seed=seed), []
        for t in range(480):
            decision = bandit.decide({"hour": f"{t % 24}"}, ["0", "1", "2"])
            hits.append(decision.index == best[t % 24])
            bandit.learn(decision, level + float(hits[-1]))
        assert np.mean(hits[-48:]) > 0.9


def test_explanations_add_up_and_name_pairs():
    bandit, rng = op.InteractionBandit(), np.random.default_rng(5)
    for _ in range(80):
        user, arms = request(rng)
        bandit.learn(bandit.decide(user, arms), float(rng.random()))
    user, arms = request(rng)
    decision = bandit.decide(user, arms)
    for place, name in enumerate(arms):
        found = bandit.explain(user, name, arms=arms)
        assert found.mean == pytest.approx(decision.means[place], rel=1e-9)
        assert found.width == pytest.approx(decision.widths[place], rel=1e-9)
        assert found.score == pytest.approx(decision.scores[place], rel=1e-9)
        assert sum(term.contribution for term in found.terms) == pytest.approx(found.mean, rel=1e-9)
        assert sum(term.share for term in found.terms) == pytest.approx(found.width**2, rel=1e-9)
        assert f"country={user['country']} * topic={arms[name]['topic']}" in {term.name for term in found.terms}
    assert bandit.explain(user, arms=arms).arm == list(arms)[int(np.argmax(decision.scores))]
    json.dumps(bandit.explain(user, arms=arms).to_dict())


if LONG:  # compiles for half a minute

    @pytest.mark.parametrize("rule", [op.OptimisticGap(), op.OptimisticGap(0.0, 3.0, 0.1)])
    def test_the_rule_keeps_the_contract_of_explorations(rule):
        check_exploration(lambda: rule, n_draws=500)


@pytest.mark.parametrize(
    "wrong", [{"exploration": -0.1}, {"exploration": np.nan}, {"scale": 0.0}, {"uniform_share": 1.1}]
)
def test_wrong_arguments_of_the_rule_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        op.OptimisticGap(**wrong)
