"""Games of made costs and of a safe baseline, and their tables."""

import numpy as np
import pytest

from onepass.lab.made_costs import study as made_costs
from onepass.lab.made_costs.game import ARMS, REQUESTS, Earned, Games, make_market, play
from onepass.lab.safe_baseline import study as safe_baseline
from onepass.lab.safe_baseline.game import (
    FITTED,
    Duel,
    is_broken,
    least_ratio,
    make_duel,
    play_free,
    play_guarded,
    rule_rewards,
)
from onepass.lab.suites import find


def test_costs_have_the_stated_ranges_over_arms_and_requests():
    market = make_market("wine", 0, 1_000)
    assert market.rewards.sum(axis=1).tolist() == [1.0] * len(market.rows)
    assert market.costs.mean() == pytest.approx(1.0)
    logs = np.log(market.costs)
    assert np.ptp(logs, axis=0) == pytest.approx([REQUESTS] * 3, rel=0.15)
    levels = np.sort(np.median(logs, axis=0))
    assert np.diff(levels) == pytest.approx([ARMS / 2] * 2, abs=0.5)
    assert not np.array_equal(make_market("wine", 1, 1_000).costs, market.costs)


class PaidGames(Games):
    """Games whose outcome is a given function of the price."""

    def __init__(self, reward, cost):
        self.played = []
        self._at_price, self._reward, self._cost = {}, reward, cost

    def at_price(self, price):
        if price not in self._at_price:
            self.played.append(price)
            self._at_price[price] = Earned(self._reward(price), self._cost(price))
        return self._at_price[price]


def test_the_best_constant_price_is_the_least_that_keeps_the_budget():
    games = PaidGames(lambda price: 1.0 / (1.0 + price), lambda price: 2.0 / (1.0 + price))
    found = games.best_constant_price(0.5)  # the cost is .5 at 3
    assert 3.0 <= found < 3.1
    before = len(games.played)
    assert games.best_constant_price(0.5) == found or len(games.played) <= before + 6
    assert games.best_constant_price(2.5) == 0.0  # without a price
    assert games.best_constant_price(-1.0) > 1e5  # no price keeps it


def test_a_game_within_a_budget_counts_what_it_earns_and_spends():
    market = make_market("iris", 0, 60)
    earned = play(market, Games(market, 0)._bandit(), 0.3)
    assert 0.0 < earned.cost <= 0.3 * (1.0 + earned.excess / 60)
    assert 0.0 < earned.reward < 1.0


def test_the_table_of_made_costs_compares_with_the_constant_price():
    def row(name, share, reward):
        told = {"reward at price": 0.8, "spending at price": 0.99, "spending": 0.9, "excess": 1.0}
        return {"set": name, "share": share, "reward": reward, **told}

    rows = [row("iris", 0.1, 0.4), row("iris", 0.3, 0.8), row("wine", 0.1, 0.76)]
    assert made_costs.ratios(rows) == {("iris", 0.1): 0.5, ("iris", 0.3): 1.0, ("wine", 0.1): pytest.approx(0.95)}
    assert [line["ratio"] for line in made_costs.lines(rows)[-2:]] == ["0.725, least 0.500", "1.000, least 1.000"]


def test_a_rule_is_fitted_to_rows_that_are_not_played_and_knows_of_the_turn():
    plain, turned = make_duel("digits", 0, 700), make_duel("digits", 0, 700, turns=True)
    assert len(plain.rows) == 700
    assert 0.7 < rule_rewards(plain).mean() < 0.95
    assert np.array_equal(rule_rewards(plain), rule_rewards(turned))
    assert np.array_equal(plain.rule[:500], turned.rule[:500])
    assert np.array_equal(turned.rewards[500:], np.roll(plain.rewards[500:], 1, axis=1))
    assert FITTED == 100


def test_a_promise_is_broken_if_any_sum_is_too_small():
    rule = np.array([0.0, 1.0, 1.0, 1.0, 1.0])
    assert not is_broken(rule, rule)
    late = np.array([0.0, 0.0, 2.0, 1.0, 1.0])
    assert is_broken(late, rule)
    assert least_ratio(late, rule) == 0.0
    assert least_ratio(rule, np.zeros(5)) == np.inf


def test_players_play_the_same_rows():
    duel = make_duel("iris", 0, 50)
    assert isinstance(duel, Duel)
    rewards, shares = play_guarded(duel, 0)
    assert (shares[0], rewards[0]) == (0.0, rule_rewards(duel)[0])
    assert len(rewards) == len(play_free(duel, 0)) == 50
    assert not is_broken(rewards, rule_rewards(duel))


def test_the_table_of_baselines_compares_with_the_bandit_alone():
    def row(who, reward):
        more = {"least ratio": 0.99, "broken": False, "share": 0.5}
        return {"set": "iris", "policy": who, "reward": reward, "last quarter": reward, **more}

    rows = [row(safe_baseline.RULE, 0.5), row(safe_baseline.FREE, 0.8), row(safe_baseline.GUARDED, 0.76)]
    assert "earns 0.950 of it" in safe_baseline.note(rows)
    assert len(safe_baseline.lines(rows)) == 6
    assert safe_baseline.note([row(safe_baseline.RULE, 0.9), *rows[1:]]) == ""


def test_sets_that_are_reported_are_not_those_on_which_constants_are_chosen():
    assert not set(made_costs.SETS) & set(made_costs.TRIAL_SETS)
    assert len(made_costs.SETS) == len(made_costs.TRIAL_SETS) == 10
    assert find("safe-baseline").seeds >= 200
