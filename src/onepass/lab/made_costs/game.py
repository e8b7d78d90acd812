"""Data sets as bandits in which every arm has a generated cost that depends on the context.

    log c_k(x) = ARMS g_k + REQUESTS f(x^T u_k)

g_k are evenly spaced over [0, 1], in random order. u_k is Gaussian on standardized columns. f maps the 1 % quantile of
all x^T u_k to 0, the 99 % quantile to 1, and cuts off the rest. The reward is 1 for the right class, else 0. The bandit
knows no cost before it has paid one.
"""

from typing import NamedTuple

import numpy as np

from onepass import Budget, Budgeted, ContextualBandit
from onepass.bandit.bandit import Bandit
from onepass.lab.bakeoff.datasets import first_rounds

ARMS, REQUESTS = 5.0, 2.0  # ranges of the logarithm of costs, over arms and over requests
COST = "cost"
ENDLESS = 1e3  # budget of a decision that is never reached, where costs are 1 in the mean
DOUBLINGS = 20  # of a constant price
WINDOW = 200  # decisions over which spending is limited, as it is by default
TRIES = 6  # of constant prices for a budget


class Market(NamedTuple):
    """Data set with costs: contexts `rows` (n, d), and `rewards` (n, K) and `costs` (n, K) of all K arms.

    The mean of the costs is 1.
    """

    rows: np.ndarray
    rewards: np.ndarray
    costs: np.ndarray


class Earned(NamedTuple):
    """Result of a game within a budget.

    Parameters
    ----------
    reward : mean reward of a decision.
    cost : mean cost of a decision.
    excess : largest spending above the budget of the decisions so far, over all rounds, in budgets of one decision.
    """

    reward: float
    cost: float
    excess: float = 0.0


def make_market(name: str, order: int, rounds: int) -> Market:
    """Return at most `rounds` rows of the data set `name` as a bandit problem, with generated costs.

    `order` is the seed of the order of the rows and of the costs.
    """
    data = first_rounds(name, order, rounds)
    count, rng = max(data.classes, 2), np.random.default_rng([order, 11])
    scaled = (data.rows - data.rows.mean(axis=0)) / (data.rows.std(axis=0) + 1e-9)
    effects = scaled @ rng.standard_normal((scaled.shape[1], count))
    effects /= effects.std(axis=0) + 1e-9
    low, high = np.quantile(effects, [0.01, 0.99])
    levels = rng.permutation(np.linspace(0.0, 1.0, count))
    costs = np.exp(ARMS * levels + REQUESTS * np.clip((effects - low) / (high - low), 0.0, 1.0))
    rewards = (data.labels[:, None] == np.arange(count)).astype(np.float64)
    return Market(data.rows, rewards, costs / costs.mean())


def play(market: Market, bandit: Bandit, budget: float, price: float = 0.0, window: int = WINDOW) -> Earned:
    """Play all rows of a market with a bandit, and return the mean reward and cost.

    `budget` is the largest mean cost of a decision. `price` is a constant that is multiplied by the cost and subtracted
    from the reward when arms are compared. `window` is the number of decisions over which spending is limited.
    """
    router = Budgeted(bandit, {COST: Budget(budget, window=window)})
    weights = {COST: -price} if price > 0.0 else None
    arms = list(range(market.costs.shape[1]))
    reward = spent = excess = 0.0
    for t, row in enumerate(market.rows):
        decision = router.decide(row, arms, id=f"{t}", weights=weights, now=0.0)
        got, paid = market.rewards[t, decision.index], market.costs[t, decision.index]
        router.learn(decision, float(got), outcomes={COST: float(paid)}, now=0.0)
        reward, spent = reward + got, spent + paid
        excess = max(excess, spent / budget - (t + 1))
    return Earned(reward / len(market.rows), spent / len(market.rows), excess)


class Games:
    """Games of a bandit in one market; results at constant prices are stored, so that each is played only once.

    Parameters
    ----------
    market : Market
        Contexts, rewards and costs.
    seed : int
        Seed of the bandit, a `ContextualBandit` with default settings.
    """

    def __init__(self, market: Market, seed: int) -> None:
        self._market, self._seed = market, seed
        self._at_price: dict[float, Earned] = {}

    def within(self, budget: float, window: int = WINDOW) -> Earned:
        """Play all rows with a budget for each decision, and return mean reward, mean cost and largest excess.

        `budget` is the largest mean cost of a decision, which also holds for every `window` decisions in a row.
        """
        return play(self._market, self._bandit(), budget, window=window)

    def at_price(self, price: float) -> Earned:
        """Play all rows without a budget, and return mean reward, mean cost and largest excess.

        The bandit compares arms by their predicted reward minus `price` times their predicted cost.
        """
        if price not in self._at_price:
            self._at_price[price] = play(self._market, self._bandit(), ENDLESS, price)
        return self._at_price[price]

    def best_constant_price(self, budget: float) -> float:
        """Return the price with the largest reward among all tried prices whose mean cost is within the budget.

        A price is multiplied by the predicted cost and subtracted from the predicted reward. It is doubled until the
        game costs at most the budget. Then at most 6 prices between the last two are tried, each the geometric mean
        of a price that is too low and one that is high enough. Prices tried for other budgets are also compared. If no
        price is high enough, the largest one is returned.
        """
        price = 1.0 / self.at_price(0.0).cost
        for _ in range(DOUBLINGS):
            if self.at_price(price).cost <= budget:
                break
            price *= 2.0
        else:
            return price / 2.0  # no price keeps the budget
        for _ in range(TRIES):
            high = min(price for price, one in self._at_price.items() if one.cost <= budget)
            low = max(price for price, one in self._at_price.items() if one.cost > budget or price == 0.0)
            if low >= high:  # the spending is not monotone so near the budget
                break
            self.at_price((low * high) ** 0.5 if low > 0.0 else 0.5 * high)
        fitting = {price: one.reward for price, one in self._at_price.items() if one.cost <= budget}
        return max(fitting, key=fitting.__getitem__)

    def _bandit(self) -> Bandit:
        return ContextualBandit(outcomes=[COST], seed=self._seed)
