"""Games of prices: the clairvoyant and the best fixed price, a short game, and the studies."""

import numpy as np
import pytest

from onepass.lab import find
from onepass.lab.prices.games import buyers
from onepass.lab.prices.players import play_bandit
from onepass.lab.prices.study import lines


def test_buyers_pay_as_expected_and_the_best_is_no_less_than_any_price():
    game = buyers(3, 400)
    for price in (4.0, 9.0, 40.0):
        expected = np.array([game.expected(i, price) for i in range(400)])
        assert (expected <= game.best + 1e-3).all()
        paid = np.mean([game.reward(i, price) for i in range(400)])
        assert paid == pytest.approx(expected.mean(), abs=4.0 * price * 0.5 / 20.0)
        assert expected.sum() <= game.fixed + 1e-6


def test_short_games_of_prices_earn_nine_tenths_of_the_best():
    """Customers 200 to 600 of three games; a single one earned .87 to .96."""
    earned, best = 0.0, 0.0
    for seed in (11, 12, 13):
        game = buyers(seed, 600)
        actions = play_bandit(game, seed).tolist()
        earned += sum(game.expected(i, a) for i, a in enumerate(actions) if i >= 200)
        best += game.best[200:].sum()
    assert earned >= 0.9 * best


@pytest.mark.parametrize("name", ["prices", "prices-diabetes"])
def test_studies_are_known_by_name(name):
    study = find(name)
    assert study.policies[0].label == "ContextualBandit"
    assert study.game(0, 50).play(lambda game, seed: np.full(len(game.rows), 5.0))["round"] == 50


def test_losses_are_compared_with_those_of_cats_at_its_best_setting():
    losses = {"ContextualBandit": (0.1, 0.2), "CATS 4 cells": (0.5, 0.3), "CATS 8 cells": (0.2, 0.4)}
    rows = [
        {"policy": label, "group": label, "params": {}, "of the best": 0.9, "of the best fixed": 1.1, "loss": loss}
        for label, each in losses.items()
        for loss in each
    ]
    found = {line["player"]: line["of the best CATS"] for line in lines(rows)}
    assert found == {"ContextualBandit": "0.500", "CATS 4 cells": "1.333", "CATS 8 cells": "1.000"}
    assert [line["of the best CATS"] for line in lines(rows[:2])] == [""]
