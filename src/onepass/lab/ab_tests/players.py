"""Players of an A/B test: `ABTest`, track-and-stop, and a bandit that gives no answer.

Track-and-stop assumes constant means and ignores contexts.

Track-and-stop (Garivier and Kaufmann 2016) draws arms in the proportions that are optimal for the present estimates.
It stops when the generalized likelihood ratio against every other arm exceeds a threshold:

    proven       log(2 t (K - 1) / delta), for which wrong stops are at most delta (their theorem 10)
    practical    log((K - 1) (1 + log t) / delta), for which there is no proof
"""

import copy
from typing import Any, NamedTuple

import numpy as np

import onepass
from onepass.evaluation.ab_test import ABTest
from onepass.lab.ab_tests.worlds import World, sigmoid

GROWTH = 0.02  # of the decisions so far: size of a block
FIRST_FIT, REFIT = 500, 1.5  # rows of the first fit of the reward model, and growth until the next
STEPS = 16  # of bisection
LEADER_SHARES = np.linspace(0.08, 0.8, 37)


class Outcome(NamedTuple):
    """Outcome of one simulated A/B test, in which an arm is chosen for every decision and is then clicked or not.

    Parameters
    ----------
    decisions : number of decisions until the player stopped, or until the end of the game.
    stopped : True if the player stopped before the end.
    right : True if the arm that leads at that time has a higher click rate than every other arm.
    covered : True if all confidence limits of the differences between arms held at all times.
    width : width of the narrowest confidence limits that compare the leading arm with another arm at the end; NaN for
        a player without limits.
    regret : sum over decisions of the best arm's click rate minus the click rate of the chosen arm.
    share : share of the last quarter of the decisions in which the best arm was chosen.
    """

    decisions: int
    stopped: bool
    right: bool
    covered: bool
    width: float
    regret: float
    share: float


class Choices:
    """Record of the choices in a game: the regret, and how often the best arm was chosen.

    `rates` (K,) are the mean click rates of the arms.
    """

    def __init__(self, rates: np.ndarray) -> None:
        self.best, self.regret = int(rates.argmax()), 0.0
        self._single, self._hits = int((rates == rates.max()).sum()) == 1, [np.zeros(0, bool)]

    def add(self, rates: np.ndarray, arms: np.ndarray) -> None:
        """Add n decisions: their click rates (n, K), one per arm, and the indices `arms` (n,) of the chosen arms."""
        self.regret += float((rates[:, self.best] - rates[np.arange(len(rates)), arms]).sum())
        self._hits.append(arms == self.best)

    def is_right(self, leader: int) -> bool:
        """Return True if the arm with index `leader` has a higher mean click rate than every other arm."""
        return self._single and leader == self.best

    @property
    def share(self) -> float:
        """Share of the last quarter of the decisions in which the best arm was chosen, from 0 to 1."""
        hits = np.concatenate(self._hits)
        return float(hits[len(hits) * 3 // 4 :].mean())


class ClickModel:
    """Logistic regression that predicts clicks from the context and the arm, for `count` arms.

    The model is fitted to all stored rows again each time that their number has grown by half.
    """

    def __init__(self, count: int) -> None:
        self._count, self._rows = count, 0
        self._fitted: Any = None
        self._next = FIRST_FIT
        self._x: list[np.ndarray] = []
        self._y: list[np.ndarray] = []

    def predict(self, contexts: np.ndarray) -> np.ndarray | None:
        """Return the click probabilities (n, K) of all arms for contexts (n, d), or None before the first fit."""
        if self._fitted is None:
            return None
        slopes, dim = self._fitted.coef_[0], contexts.shape[1]
        return sigmoid((contexts @ slopes[:dim] + self._fitted.intercept_)[:, None] + slopes[dim:])

    def _columns(self, contexts: np.ndarray, arms: np.ndarray) -> np.ndarray:
        return np.hstack([contexts, np.eye(self._count)[arms]])

    def learn(self, contexts: np.ndarray, arms: np.ndarray, clicks: np.ndarray) -> None:
        """Store contexts (n, d), chosen arms (n,) and clicks (n,), 0 or 1, and refit if enough rows are new."""
        from sklearn.linear_model import LogisticRegression

        self._x.append(self._columns(contexts, arms))
        self._y.append(clicks)
        self._rows += len(clicks)
        if self._rows >= self._next and len(np.unique(y := np.concatenate(self._y))) == 2:
            self._fitted = LogisticRegression(C=10.0).fit(np.concatenate(self._x), y)
            self._next = int(self._rows * REFIT)


def play_ab_test(
    world: World, limit: int, tolerance: float, seed: int, adjusts: bool = True, stops: bool = True
) -> Outcome:
    """Simulate a test with `onepass.ABTest` in a world, and return the `Outcome`.

    Parameters
    ----------
    world : World
        Source of contexts and click rates.
    limit : int
        Largest number of decisions.
    tolerance : float
        Loss of click rate, compared with the best arm, that the test's answer may have.
    seed : int
        Seed of the choices and clicks.
    adjusts : bool, default True
        True if a model of clicks on contexts reduces the variance of the estimates.
    stops : bool, default True
        False if the test continues to the limit although it has an answer.
    """
    count, rng = len(world.rates), np.random.default_rng([seed, 3])
    study = ABTest(None, range(count), tolerance, seed=seed)
    model = ClickModel(count) if adjusts else None
    weights, truth, covered, choices = np.zeros((count, count)), np.zeros((count, count)), True, Choices(world.rates)
    while study.n_learned < limit and (study.stopped_at is None or not stops):
        contexts, rates = world.block(min(max(int(GROWTH * study.n_learned), 1), limit - study.n_learned))
        p = study.probabilities
        arms = rng.choice(count, len(rates), p=p)
        clicks = (rng.random(len(rates)) < rates[np.arange(len(rates)), arms]) * 1.0
        means = None if model is None or contexts is None else model.predict(contexts)
        study.learn_rows(arms, clicks, p, means)
        if model is not None and contexts is not None:
            model.learn(contexts, arms, clicks)
        pair = np.minimum(p[:, None], p[None])
        weights += len(rates) * pair
        truth += pair * (rates[:, :, None] - rates[:, None, :]).sum(axis=0)
        choices.add(rates, arms)
        covered = covered and _covers(study, truth / weights)
    answer = study.answer
    width = min(one.limits.upper - one.limits.lower for one in answer.contrasts)
    right = choices.is_right(answer.leader)
    return Outcome(study.n_learned, answer.enough, right, covered, width, choices.regret, choices.share)


def _covers(study: ABTest, truth: np.ndarray) -> bool:
    """Return True if every confidence interval of the test `study` contains the true difference.

    `truth` (K, K) holds the click rate of arm i minus the click rate of arm j.
    """
    return all(one.limits.contains(truth[one.arm, one.other]) for one in study.contrasts())


def play_track_and_stop(world: World, limit: int, tolerance: float, seed: int, proven: bool = True) -> Outcome:
    """Simulate the algorithm track-and-stop in a world, and return the `Outcome`.

    The player looks for an arm whose click rate is at most `tolerance` below the best one, with probability 0.95.
    `limit` is the largest number of decisions. `proven` selects the threshold for stopping that has a proof; False
    selects a lower one without proof.
    """
    count, rng, delta = len(world.rates), np.random.default_rng([seed, 3]), 0.05
    rows, clicks, shares, t = np.zeros(count), np.zeros(count), np.full(count, 1.0 / count), 0
    choices = Choices(world.rates)
    while True:
        _, rates = world.block(min(max(int(GROWTH * t), 1), limit - t))
        size = len(rates)
        wanted = np.maximum(shares * (t + size), np.sqrt(t + size) - count / 2.0)
        need = np.maximum(wanted - rows, 0.0) + 1e-9
        arms = rng.choice(count, size, p=need / need.sum())
        came = (rng.random(size) < rates[np.arange(size), arms]) * 1.0
        rows, clicks, t = rows + np.bincount(arms, minlength=count), clicks + np.bincount(arms, came, count), t + size
        choices.add(rates, arms)
        mean = (clicks + 0.5) / (rows + 1.0)
        variance, best = mean * (1.0 - mean), int(mean.argmax())
        others = np.arange(count) != best
        gap = mean[best] - mean[others] + tolerance
        ratio = (gap**2 / (2.0 * (variance[best] / (rows[best] + 1.0) + variance[others] / (rows[others] + 1.0)))).min()
        odds = 2.0 * t if proven else 1.0 + np.log(t)
        stopped = bool(ratio > np.log(odds * (count - 1) / delta))
        if stopped or t >= limit:
            return Outcome(t, stopped, choices.is_right(best), True, float("nan"), choices.regret, choices.share)
        shares = optimal_shares(best, others, gap, variance)


def play_bandit(world: World, limit: int, tolerance: float, seed: int, stops: bool = True) -> Outcome:
    """Simulate `ContextualBandit` in a world, and return the `Outcome`. This player gives no answer.

    It plays as many decisions as `ABTest` needs to stop in the same world, at most `limit`; `tolerance` is given to
    `ABTest`. If `stops` is False, it plays `limit` decisions.
    """
    size = play_ab_test(copy.deepcopy(world), limit, tolerance, seed).decisions if stops else limit
    bandit, rng, choices = onepass.ContextualBandit(seed=seed), np.random.default_rng([seed, 3]), Choices(world.rates)
    while bandit.n_learned < size:
        contexts, rates = world.block(size - bandit.n_learned)
        rows = np.ones((len(rates), 1)) if contexts is None else contexts
        arms = bandit.play(rows[:, None], (rng.random(rates.shape) < rates) * 1.0)
        choices.add(rates, arms)
    return Outcome(size, False, False, True, float("nan"), choices.regret, choices.share)


def optimal_shares(best: int, others: np.ndarray, gap: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Return the fractions (K,) of plays with which the evidence that arm `best` beats each other arm grows fastest.

    The smallest evidence over the other arms is maximized. `others` (K,) is True for these arms. For each of them,
    `gap` holds the mean of `best` minus its mean, plus the tolerance of the test. `variance` (K,) holds the variances
    of all arms.
    """
    lead = LEADER_SHARES[:, None]
    low, high = np.zeros(len(lead)), (gap**2 * lead / variance[best]).min(axis=1)
    for _ in range(STEPS):
        middle = (low + high) / 2.0
        total = (variance[others] / (gap**2 / middle[:, None] - variance[best] / lead)).sum(axis=1) + lead[:, 0]
        low, high = np.where(total > 1.0, low, middle), np.where(total > 1.0, middle, high)
    place, shares = int(low.argmax()), np.zeros(len(variance))
    shares[best] = lead[place, 0]
    shares[others] = variance[others] / np.maximum(gap**2 / low[place] - variance[best] / lead[place, 0], 1e-12)
    return shares / shares.sum()
