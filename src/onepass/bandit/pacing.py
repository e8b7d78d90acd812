"""Pacing of budgets: it counts what was spent, puts prices on scarce outcomes, and stops arms that cost too much.

The score U_a of arm a is reduced by the prices of what it is predicted to spend, and targets follow the budget's line:

    L_a = U_a - sum_j lambda_j c_ja            c: predicted outcomes;  lambda: budget_prices.py
    target b_j = b (1 + clip((line - spent) / (b REACH), -SLOWEST, FASTEST))      per decision
    an arm has probability 0 if  c > line - spent,  or  upper > (1 + leash) window b - spent in the window,
                                 or  it had more than its largest share of the decisions
    upper = min(c r, price r'),   r = min(R^(1 + GROWTH / sqrt(n)), LARGEST)

R is the largest ratio of the arm's n costs so far to their predictions (r), or to its price (r'). The power allows for
costs that are larger than all before. The price of an arm is given or follows its costs.

If every arm is stopped, the arm with the least upper cost is played. But if no arm has cost at most b in the mean, arms
without a given price that were never played come first: one of them may be cheap.

A decision is charged its predicted outcome. When the outcome comes, the difference is charged. `Budgeted` holds a
pacing beside its bandit. A service holds one beside its log, and updates it with the records of the log.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from onepass.bandit.budget import Budget, Share, Spending, local_day
from onepass.bandit.budget_prices import solve_prices
from onepass.bandit.outcomes import ARMS, CLIP, Survey, check_weights
from onepass.exploration.greedy import Greedy
from onepass.exploration.rule import make_rule
from onepass.foundation import check, files
from onepass.foundation.check import quote

RING, FEW = 400, 100  # requests on which prices are solved: the later half of all, from FEW to RING of them
SIGNS = {"most": -1.0, "least": 1.0}  # of the bonus that a share gives its arm
EVERY = 8  # decisions after which they are solved again
REACH = 250.0  # decisions' budgets: what was saved is spent, or made up for, over so many decisions
FASTEST, SLOWEST = 0.1, 0.3  # share by which the target is above or below the budget
MEMORY = 60.0  # values over which an arm's price is corrected by the errors of predictions
PENDING = 100_000  # decisions whose outcomes are awaited; older ones stay charged as predicted
LARGEST, SOON = CLIP[1], 5.0  # upper ratio of an arm without costs; its excess over 1 is halved after so many costs
GROWTH = 6.0  # over the root of the number of costs: excess of the power over 1
FADING = 0.9999  # by which the largest deviation of an arm's cost shrinks with every decision
TRUSTED = 20.0  # values that the first price of an arm counts for
LEAST = 1e-6  # of a price: what costs nothing has a price of its own
MOST = 1e9  # price that may be given, in amounts of its budget: floats lose what was spent beside larger ones
DAY = 86_400.0  # seconds
LONG = 20_000.0  # seconds between decisions before two have come


Bases = dict[tuple[str, Any], float | None]
"""Price that was given for an outcome and arm; None if none was."""


Prices = dict[Any, dict[str, float]] | None
"""Prices of arms, {arm: {outcome: price}}; None without any."""


class Account(NamedTuple):
    """Spending of one budget.

    `day` is the date for a budget per day. `spent` and `decisions` are the amount spent and the number of decisions, of
    that day or of all time. `total` is the amount of all time that counts against what the budget allows: if the amount
    of a budget per decision is changed, it begins anew. `recent` holds the amounts of the latest decisions.
    """

    day: str
    spent: float
    decisions: int
    total: float
    recent: deque[float]


class Largest(NamedTuple):
    """Largest relative deviations of an arm's costs above predictions and above its price, and the mean of its costs.

    `predicted` and `price` are these deviations. `number` is the number of the arm's costs, and `decisions` the number
    of decisions of all arms when the last cost came.
    """

    predicted: float = 0.0
    price: float = 0.0
    number: int = 0
    decisions: int = 0
    mean: float = 0.0


class Left(NamedTuple):
    """Amounts that the next decision may spend within one budget.

    An arm is allowed if its predicted cost is at most `predicted`, and its upper cost, an upper limit of it, at most
    `most`. `predicted` is what is left of the budget of the decisions so far and the next one; for a daily budget, of
    the part of the amount that is due by now, plus the leash. `most` is what is left of the budget of the window and of
    the horizon, or of the day's amount.
    """

    predicted: float
    most: float


class Pacing:
    """Prices and stops that keep a bandit within budgets, and arms within shares of the decisions.

    Parameters
    ----------
    outcomes : tuple of str
        Names of the outcomes of the bandit.
    budgets : dict of str to Budget
        Budget of each outcome that has one.
    shares : Share or dict of arm to Share or None
        Smallest and largest shares of the decisions: one for every arm, or one for each arm named.
    """

    def __init__(
        self, outcomes: tuple[str, ...], budgets: Mapping[str, Budget], shares: Share | Mapping[Hashable, Share] | None
    ) -> None:
        self._budgets: dict[str, Budget] = dict(budgets)
        self._shares: Share | dict[Hashable, Share] | None = dict(shares) if isinstance(shares, Mapping) else shares
        self._accounts = {name: open_account(one) for name, one in self._budgets.items()}
        self._ratios: dict[str, dict[tuple[Any, bool], tuple[float, float]]] = {name: {} for name in outcomes}
        self._largest: dict[str, dict[Any, Largest]] = {name: {} for name in outcomes}
        self._decisions = 0
        self._pending: dict[str, dict[str, tuple[float, float | None, float]]] = {}
        self._reserved: dict[str, tuple[float, dict[str, float]]] = {}  # time and amounts of decisions not yet charged
        self._prices: dict[str, float] = {}
        self._plays: dict[Any, int] = {}
        self._ring: deque[tuple[np.ndarray, np.ndarray, np.ndarray, tuple[Any, ...]]] = deque(maxlen=RING)
        self._times: deque[float] = deque(maxlen=RING)
        self._since = 0
        self._greedy = make_rule(Greedy()).rule

    @property
    def names(self) -> list[str]:
        """Names of the outcomes that have a budget."""
        return list(self._budgets)

    @property
    def prices(self) -> dict[str, float]:
        """Present prices in units of reward, of budgets by outcome and of shares by a text such as "most 0".

        The text is "most" or "least" for an arm's largest or smallest share, and the index of the arm.
        """
        return dict(self._prices)

    def spending(self) -> dict[str, Spending]:
        """Return the state of every budget by the name of its outcome."""
        out = {}
        for name, one in self._budgets.items():
            account = self._accounts[name]
            counted = account.spent if one.is_daily else account.total
            left = self._line(name, account.decisions, self._times[-1] if self._times else 0.0) - counted
            ahead = one.leash * (one.amount if one.is_daily else one.window * one.decision_amount)
            price = self._prices.get(name, 0.0)
            out[name] = Spending(account.spent, left, price, account.decisions, left >= -ahead)
        return out

    def _line(self, name: str, decisions: int, now: float) -> float:
        """Return how much of the budget `name` may be spent after this many decisions.

        For a daily budget, it is how much may be spent by the time `now`, in Unix seconds.
        """
        one = self._budgets[name]
        if one.is_daily:
            return one.amount * local_day(now, one.zone).over
        return one.decision_amount * (decisions if one.horizon is None else min(decisions, one.horizon))

    def check_time(self, now: Any) -> float:
        """Return a time as a float, or raise ValueError unless every budget per day has a local day at this time."""
        seconds = check.real("now", now)
        for one in self._budgets.values():
            if one.is_daily:
                try:
                    local_day(seconds, one.zone)
                except (ValueError, OverflowError, OSError):
                    raise ValueError(f"now must be a time in Unix seconds, got {quote(now)}") from None
        return seconds

    # ---- prices and stops ----

    def arm_prices(self, names: Iterable[Any], costs: Any) -> tuple[dict[Any, dict[str, float]] | None, Bases]:
        """Return the expected price of each arm and outcome, and the prices as they were given.

        The first result is {arm: {outcome: price}}. A price given in `costs` is corrected by what the arm has really
        cost so far; an arm without a price has its mean cost so far. The second result maps (outcome, arm) to the given
        price or None.
        """
        costs = {} if costs is None else costs
        if not isinstance(costs, Mapping) or not all(isinstance(each, Mapping) for each in costs.values()):
            raise ValueError(f"costs must be {{arm: {{outcome: price}}}}, got {quote(costs)}")
        names = list(names)
        out: dict[Any, dict[str, float]] = {arm: dict(each) for arm, each in costs.items()}
        bases: Bases = {}
        for name, one in self._budgets.items():
            for arm in names:
                each = out.setdefault(arm, {})
                base = bases[name, arm] = check_price("a price", each[name], one) if name in each else None
                ratio, weight = self._ratios[name].get((arm, base is not None), (1.0, 0.0))
                if base is not None:
                    each[name] = base * ratio
                else:
                    each[name] = ratio if weight > 0.0 else self._usual_price(name)
        return {arm: each for arm, each in out.items() if each} or None, bases

    def _usual_price(self, name: str) -> float:
        """Return the price of an arm without data: the lowest price of the other arms, at most the decision's budget.

        So each arm is tried once. With the mean price of the others, cheap arms looked expensive after an expensive one
        had been played, and were never tried.
        """
        known = [ratio for (_, priced), (ratio, _) in self._ratios[name].items() if not priced]
        return float(min([*known, self._budgets[name].decision_amount]))

    def pricing(
        self, given: dict[str, Any], now: float, prices: Prices, bases: Bases
    ) -> Callable[[Survey], tuple[dict[str, Any], np.ndarray]]:
        """Return a function that maps the `Survey` of a request to weights of outcomes and a mask of allowed arms.

        `given` are the weights of the caller, from which the prices of budgets are subtracted. `now` is the time in
        Unix seconds, and `prices` and `bases` are those of `arm_prices`. `Bandit.decide` is called with the
        function inside `commit_if_new`.
        """

        def price(survey: Survey) -> tuple[dict[str, Any], np.ndarray]:
            check_weights(given, survey.outcomes, survey.names, survey.eligible.size)
            scale = float(given.get("reward", 1.0))
            base = scale * survey.scores
            for name, row in zip(survey.outcomes, survey.predicted, strict=True):
                if name in given:
                    base = base + float(given[name]) * row
            keys = arm_keys(survey)
            costs, labels = self._spendings(dict(zip(survey.outcomes, survey.predicted, strict=True)), keys)
            self._ring.append((base, costs, survey.eligible, keys))
            if self._since % EVERY == 0 or set(labels) != set(self._prices):
                self._solve(labels, survey, now)
            self._since += 1
            weights, arms = dict(given), dict(given.get(ARMS, {}))
            for label in labels:
                found = self._prices.get(label, 0.0)
                if label in self._budgets:
                    weights[label] = weights.get(label, 0.0) - found
                elif found > 0.0:
                    sign, arm = _share_of(label, keys)
                    arms[arm] = arms.get(arm, 0.0) + sign * found
            if arms:
                weights[ARMS] = arms
            return weights, self._leash_mask(survey, now, prices, bases)

        return price

    @contextmanager
    def commit_if_new(self, is_repeated: bool = False) -> Iterator[None]:
        """Keep the changes of recent requests and prices by the decision that is made in this context, if it is new.

        They are undone if the decision raises an exception, or if `is_repeated` is True: it was made earlier then.
        """
        before, made = (self._ring.copy(), self._prices, self._since), False
        try:
            yield
            made = True
        finally:
            if is_repeated or not made:
                self._ring, self._prices, self._since = before

    def _spendings(self, predicted: Mapping[str, Any], keys: tuple[Any, ...]) -> tuple[np.ndarray, list[str]]:
        """Return what each of K arms would spend (J, K) of every budget and share, and the labels of these J.

        `predicted` holds the predicted outcomes (K,) by name, and `keys` are the names or indices of the arms. An arm
        spends 1 of its largest share, "most", and -1 of its smallest, "least"; the label ends with the arm's index.
        """
        rows: list[Any] = [predicted[name] for name in self._budgets]
        labels = list(self._budgets)
        for place, arm in enumerate(keys):
            share = self._share(arm)
            if share is None:
                continue
            one = np.zeros(len(keys))
            one[place] = 1.0
            if share.most < 1.0:
                rows.append(one)
                labels.append(f"most {place}")
            if share.least > 0.0:
                rows.append(-one)
                labels.append(f"least {place}")
        return np.array(rows).reshape(len(rows), len(keys)), labels

    def recall(
        self, keys: tuple[Any, ...], scores: Any, predicted: Mapping[str, Any], eligible: Any, prices: dict[str, float]
    ) -> None:
        """Add a logged request to the recent requests, from which prices are computed.

        `keys` are the names or indices of its arms, `scores` (K,) their scores, `predicted` their predicted outcomes,
        `eligible` (K,) the mask of arms that could be chosen, and `prices` the prices of that decision.
        """
        base = np.array(scores, np.float64)
        for label, price in prices.items():
            if label in self._budgets:
                base = base + price * np.asarray(predicted[label])
            elif label.split()[0] in SIGNS and int(label.split()[1]) < len(keys):
                sign, place = SIGNS[label.split()[0]], int(label.split()[1])
                base[place] -= sign * price
        costs, _ = self._spendings(predicted, keys)
        among = np.ones(len(keys), np.bool_) if eligible is None else np.asarray(eligible, np.bool_)
        self._ring.append((base, costs, among, keys))
        self._prices = dict(prices)

    def _share(self, arm: Any) -> Share | None:
        return self._shares.get(arm) if isinstance(self._shares, dict) else self._shares

    def _solve(self, labels: list[str], survey: Survey, now: float) -> None:
        """Set the prices at which recent requests with the arms of the present one would have kept within the budgets.

        `labels` name the budgets and shares. `survey` is of the present request: its exploration rule, its residual
        (the root mean square of prediction errors) and its number of rewards learned are used. `now` is the time in
        Unix seconds.
        """
        keys = self._ring[-1][3]
        late = list(self._ring)[-max(self._decisions // 2, FEW) :]
        alike = [one for one in late if one[3] == keys and len(one[1]) == len(labels)]
        scores = np.array([one[0] for one in alike])
        costs, offered = np.array([one[1] for one in alike]), np.array([one[2] for one in alike])
        targets = np.array([self._target(label, keys, now) for label in labels])
        spread = max(float(np.ptp(scores)), 1e-6)
        units = spread / np.maximum(np.abs(targets), 1e-12)
        before = np.array([self._prices.get(label, 0.0) for label in labels])
        rule = survey.rule.rule if survey.rule.pairs == 0 else self._greedy
        found = before
        if labels:
            seen = survey.statistics
            found = solve_prices(
                rule, scores, costs, offered, targets, units, before, float(seen.residual), int(seen.rounds)
            )
        self._prices = dict(zip(labels, found.tolist(), strict=True))

    def _target(self, label: str, keys: tuple[Any, ...], now: float) -> float:
        """Return how much a decision may spend on average from now on, for the budget or share with this label.

        `keys` are the names or indices of the arms on offer, and `now` is the time in Unix seconds.
        """
        if label not in self._budgets:
            sign, arm = _share_of(label, keys)
            share, played = self._share(arm), self._decisions
            assert share is not None
            wanted = share.most if sign < 0.0 else share.least
            ahead = (wanted * played - self._plays.get(arm, 0)) / REACH
            return -sign * float(np.clip(wanted + ahead + 0.02 * sign * wanted, 0.0, 1.0))
        one, account = self._budgets[label], self._present(label)
        if one.is_daily:
            day = local_day(now, one.zone)
            spent = account.spent if account.day == day.date else 0.0
            return max(one.amount - spent, 0.0) / max(self._rate(now) * day.left, 1.0)
        if one.horizon is not None and account.decisions < one.horizon:
            return max(one.amount - account.spent, 0.0) / (one.horizon - account.decisions)
        saved = (one.decision_amount * account.decisions - account.total) / one.decision_amount
        return one.decision_amount * (1.0 + float(np.clip(saved / REACH, -SLOWEST, FASTEST)))

    def _leash_mask(self, survey: Survey, now: float, prices: Prices, bases: Bases) -> np.ndarray:
        """Return a mask (K,) of the arms that no hard stop excludes; the cheapest arm is always among them.

        `survey` has the statistics of the request, and `now` is the Unix time in seconds. `prices` and `bases` are the
        expected and the given prices, as `arm_prices` returns them. If every arm is stopped, the one with the least
        upper cost counts as the cheapest. The arms of `_unknown_arms` come before it.
        """
        allowed = survey.eligible.copy()
        for name, one in self._budgets.items():
            cost, left = survey.predicted[survey.outcomes.index(name)], self._left(one, self._present(name), now)
            upper = self._upper_costs(name, survey, prices)
            fits = allowed & (cost <= left.predicted) & (upper <= left.most)
            if not fits.any():
                fits = allowed & self._unknown_arms(name, survey, bases, now)
            if not fits.any():
                least = np.where(allowed, upper, np.inf)
                fits = allowed & (least == least.min())
            allowed = fits
        if self._shares is None:
            return allowed
        below = allowed & self._below_shares(arm_keys(survey))
        return below if below.any() else allowed

    def _below_shares(self, keys: tuple[Any, ...]) -> np.ndarray:
        """Return a mask (K,) of the arms `keys` whose decisions so far are at most their largest share of all.

        The present decision counts among all. So an arm has at most one decision more than its share.
        """
        ahead, plays, shares = self._decisions + 1, self._plays, map(self._share, keys)
        pairs = zip(keys, shares, strict=True)
        return np.array([share is None or plays.get(key, 0) <= share.most * ahead for key, share in pairs])

    def _unknown_arms(self, name: str, survey: Survey, bases: Bases, now: float) -> np.ndarray:
        """Return a mask (K,) of the arms that were never played and have no given price of the outcome `name`.

        They may be cheaper than their predictions, which come from other arms. The mask is False everywhere if an
        eligible arm costs at most the budget of a decision: by its given price, or else in the mean of its costs.
        `survey` has the statistics of the request, `bases` the given prices, and `now` is the Unix time in seconds.
        """
        keys = arm_keys(survey)
        given = [bases.get((name, key)) for key in keys]
        fair, seen = self._fair_amount(self._budgets[name], now), self._largest[name]
        tried = self._plays.keys() | seen.keys()
        unknown = np.array([price is None and key not in tried for key, price in zip(keys, given, strict=True)])
        for key, price, eligible in zip(keys, given, survey.eligible, strict=True):
            usual = seen[key].mean if price is None and key in seen else price
            if eligible and usual is not None and usual <= fair:
                unknown[:] = False
        return unknown

    def _fair_amount(self, one: Budget, now: float) -> float:
        """Return the budget of one decision.

        A daily budget is divided by the number of decisions in a day, at their rate up to `now`, in Unix seconds.
        """
        return one.amount / max(self._rate(now) * DAY, 1.0) if one.is_daily else one.decision_amount

    def _rate(self, now: float) -> float:
        """Return the number of decisions per second up to the time `now`, in Unix seconds."""
        span = max(now - self._times[0], 1.0) if len(self._times) > 1 else LONG
        return max(len(self._times), 1) / span

    def cheapest_arm(self, predicted: Mapping[str, Any], allowed: np.ndarray) -> int:
        """Return the index of the allowed arm whose predicted spending, relative to the budgets, is smallest.

        `predicted` holds the predicted outcomes (K,) by name, and `allowed` (K,) is the mask of the arms.
        """
        cost = sum(np.asarray(predicted[name]) / one.amount for name, one in self._budgets.items())
        return int(np.where(allowed, cost, np.inf).argmin())

    def _upper_costs(self, name: str, survey: Survey, prices: Prices) -> np.ndarray:
        """Return an upper limit (K,) of the cost of each arm for the outcome `name`.

        It is the smaller one of prediction and price, each times a ratio that earlier costs of the arm suggest.
        `survey` has the predictions, and `prices` holds {arm: {outcome: price}}.
        """
        predicted = survey.predicted[survey.outcomes.index(name)]
        upper = np.empty(predicted.size)
        for a, key in enumerate(arm_keys(survey)):
            seen = self._largest[name].get(key, Largest())
            ahead, above = self._upper_ratios(seen)
            price = (prices or {}).get(key, {}).get(name, np.inf)
            upper[a] = min(predicted[a] * ahead, price * above)
        return upper

    def _upper_ratios(self, seen: Largest) -> Iterator[float]:
        """Yield two numbers: the largest ratios that an arm's next cost may have to its prediction and to its price.

        `seen` holds the deviations of the arm's costs so far.
        """
        number, fading = seen.number, FADING ** (self._decisions - seen.decisions)
        least, power = (LARGEST - 1.0) / (1.0 + number / SOON), 1.0 + GROWTH / max(number, 1) ** 0.5
        for one in (1.0 + fading * seen.predicted, 1.0 + fading * seen.price):
            yield max(1.0 + least, one, min(one**power, LARGEST))

    def _left(self, one: Budget, account: Account, now: float) -> Left:
        """Return what the next decision may spend under the hard stops of the budget `one`.

        `account` holds what was spent of the budget, and `now` is the time of the decision in Unix seconds.
        """
        if one.is_daily:
            day = local_day(now, one.zone)
            spent = account.spent if account.day == day.date else 0.0
            return Left(one.amount * (day.over + one.leash) - spent, one.amount - spent)
        recent = account.recent
        most = one.decision_amount * one.window * (1.0 + one.leash) - sum(recent)
        if len(recent) == one.window:
            most += recent[0]
        if one.horizon is not None:
            most = min(most, one.amount - account.total)
        return Left(one.decision_amount * (account.decisions + 1) - account.total, most)

    # ---- spending ----

    def is_charged(self, identity: str, name: str) -> bool:
        """Return True if a decision was charged its predicted outcome `name` and still waits for the real one.

        `identity` is the decision's id.
        """
        return name in self._pending.get(identity, {})

    def is_reserved(self, identity: str) -> bool:
        """Return True if the decision with the id `identity` is being made, and its predicted outcomes are reserved."""
        return identity in self._reserved

    def charge_decision(
        self,
        identity: str,
        arm: Any,
        predicted: Mapping[str, float],
        bases: Mapping[str, float | None],
        prices: Mapping[str, float],
        now: float,
    ) -> None:
        """Charge the predicted outcomes of a decision to the budgets.

        `identity` is the decision's id, `predicted` holds the predicted amount for every budget, `bases` the prices
        given for the arm, and `prices` the budgets' prices at which the decision was made. `now` is the time of the
        decision in Unix seconds.
        """
        charged = {name: max(float(predicted[name]), 0.0) for name in self._budgets}
        for name, amount in charged.items():
            self.spend(name, amount, now, 1)
        self._pending[identity] = {
            name: (amount, bases.get(name), prices.get(name, 0.0)) for name, amount in charged.items()
        }
        self._plays[arm] = self._plays.get(arm, 0) + 1
        self._decisions += 1
        self._times.append(now)
        if len(self._pending) > PENDING:
            del self._pending[next(iter(self._pending))]

    def charge_outcomes(self, identity: str, arm: Any, outcomes: Mapping[str, float | None], now: float) -> None:
        """Replace the predicted amounts charged for a decision by the outcomes that have come.

        `identity` is the decision's id, `arm` the arm shown, and `now` the present time in Unix seconds. `outcomes`
        maps names of outcomes to values, None for one that has not come.
        """
        charged = self._pending.get(identity, {})
        for name in self._budgets:
            value = outcomes.get(name)
            if value is not None:
                predicted, base, price = charged.pop(name, (0.0, None, 0.0))
                self.spend(name, float(value) - predicted, now, 0)
                self._note(name, arm, float(value), predicted, base, price)
        if identity in self._pending and not charged:
            del self._pending[identity]

    def note_outcomes(
        self,
        arm: Any,
        outcomes: Mapping[str, float | None],
        predicted: Mapping[str, float],
        bases: Mapping[str, float | None],
        prices: Mapping[str, float],
    ) -> None:
        """Learn what an arm cost in a decision that no budget is charged for.

        `arm` is the arm shown. The other arguments map names of outcomes: `outcomes` to values, None for one that is
        not known, and `predicted` to what was predicted. All are in units of the outcome. `bases` has the price of the
        arm that the caller gave in `costs`, or None. `prices` has the price with which the prediction was made: the
        given price, corrected by what the arm has really cost so far, or without a given price the arm's mean cost so
        far, as in `arm_prices`.
        """
        for name in self._budgets:
            value = outcomes.get(name)
            if value is not None:
                self._note(name, arm, float(value), max(float(predicted[name]), 0.0), bases[name], prices[name])

    def spend(self, name: str, amount: float, now: float, decisions: int = 0) -> None:
        """Charge an amount to the budget `name`.

        `amount` is in units of the outcome, and below 0 to give back. `now` is the time of the spending in Unix
        seconds: a budget per day begins a new day if its local date has changed. `decisions` is 1 if the amount belongs
        to a new decision. It is 0 if the amount corrects the charge of an earlier one, or was spent without a decision;
        it is then added to the amount of the latest decision.
        """
        self._accounts[name] = _charge(self._budgets[name], self._accounts[name], amount, now, decisions)

    def reserve(self, identity: str, predicted: Mapping[str, float], now: float) -> None:
        """Count the predicted outcomes of a decision that is being made as spent, until it is charged or given up.

        `identity` is the decision's id, `predicted` holds the predicted amount for every budget, and `now` is the time
        of the decision in Unix seconds.
        """
        self._reserved[identity] = now, {name: max(float(predicted[name]), 0.0) for name in self._budgets}

    def release(self, identity: str) -> None:
        """Stop counting a decision that `reserve` announced, because it was charged or was not made."""
        self._reserved.pop(identity, None)

    def _present(self, name: str) -> Account:
        """Return the account of a budget with the decisions that are not charged yet."""
        account = self._accounts[name]
        if self._reserved:
            account = account._replace(recent=account.recent.copy())
        for now, amounts in self._reserved.values():
            account = _charge(self._budgets[name], account, amounts.get(name, 0.0), now, 1)
        return account

    def _note(self, name: str, arm: Any, value: float, predicted: float, base: float | None, price: float) -> None:
        """Update the price of an arm and the largest deviations of its costs; arguments as in `_note_ratio`."""
        self._note_cost(name, arm, value, predicted, self._note_ratio(name, arm, value, predicted, base, price))

    def _note_cost(self, name: str, arm: Any, value: float, predicted: float, price: float) -> None:
        """Update the mean of an arm's costs, and their largest relative deviations above prediction and price.

        `value` is a cost of the arm, in the outcome `name`; `predicted` was its prediction, and `price` is its price.
        """
        seen, ahead = self._largest[name].get(arm, Largest()), self._decisions
        fading, number = FADING ** (ahead - seen.decisions), seen.number + 1
        self._largest[name][arm] = Largest(
            max(fading * seen.predicted, value / predicted - 1.0 if predicted > 0.0 else 0.0),
            max(fading * seen.price, value / price - 1.0),
            number,
            ahead,
            seen.mean + (value - seen.mean) / number,
        )

    def _note_ratio(
        self, name: str, arm: Any, value: float, predicted: float, base: float | None, price: float
    ) -> float:
        """Correct the ratio of an arm's price to its `base` by the error of a prediction, and return the price.

        `name` is the outcome, whose `value` came in place of `predicted`. If no price was given (`base` is None), the
        price itself is corrected. It begins at the `price` that the decision was made with, or at the value if that is
        lower. A price that is so wrong that the model cannot follow is corrected by its own error.
        """
        key, unit = (arm, base is not None), base or 1.0
        known = self._ratios[name].get(key)
        if known is None and base is None and not 0.0 < price <= value:
            ratio, weight = value, TRUSTED
        else:
            ratio, weight = known or (1.0 if base is not None else price, TRUSTED)
            weight = min(weight + 1.0, MEMORY)
            follows = CLIP[0] * ratio * unit <= value <= CLIP[1] * ratio * unit
            ratio += (value - (predicted if follows else ratio * unit)) / unit / weight
        ratio = max(ratio, LEAST * (1.0 if base else self._budgets[name].decision_amount))
        self._ratios[name][key] = ratio, weight
        return ratio * unit

    def change(self, name: str, budget: Budget) -> None:
        """Replace the budget of the outcome `name` by `budget`.

        The amount spent so far stays. For a budget per decision with another amount, what was spent before no longer
        counts against what is allowed: nothing was saved or overspent. If `budget` is of another kind (`per`), it
        begins with no decisions and nothing spent.
        """
        account, before = self._accounts[name], self._budgets[name]
        recent = deque(account.recent, maxlen=budget.window)
        if budget.per != before.per:
            account = open_account(budget)
        elif not budget.is_daily and budget.horizon is None and budget.amount != before.amount:  # per decision
            account = account._replace(total=budget.amount * account.decisions)
        self._budgets[name], self._accounts[name] = budget, account._replace(recent=recent)

    def replace(self, budgets: Mapping[str, Budget], shares: Share | Mapping[Hashable, Share] | None) -> None:
        """Replace all budgets and shares; None means no shares.

        A budget that stays the same keeps what was spent, and `change` says what a changed one keeps. A budget of an
        outcome that had none begins with nothing spent.
        """
        for name in self._budgets.keys() - budgets.keys():
            del self._budgets[name], self._accounts[name]
        for name, one in budgets.items():
            if name not in self._budgets:
                self._budgets[name], self._accounts[name] = one, open_account(one)
            elif one != self._budgets[name]:
                self.change(name, one)
        self._budgets = {name: self._budgets[name] for name in budgets}
        self._shares = dict(shares) if isinstance(shares, Mapping) else shares

    # ---- files ----

    def to_dict(self, recent: bool = True) -> dict[str, Any]:
        """Return the state as data for JSON, with the recent requests if `recent` is True."""
        shares, plain = self._shares, files.plain_object
        listed = [[plain(arm), asdict(one)] for arm, one in shares.items()] if isinstance(shares, dict) else None
        return {
            "budgets": {name: asdict(one) for name, one in self._budgets.items()},
            "shares": asdict(shares) if isinstance(shares, Share) else listed,
            "accounts": {name: [*one[:4], list(one.recent)] for name, one in self._accounts.items()},
            "ratios": {
                name: [[plain(arm), priced, *one] for (arm, priced), one in each.items()]
                for name, each in self._ratios.items()
            },
            "largest": {
                name: [[plain(arm), *one] for arm, one in each.items()] for name, each in self._largest.items()
            },
            "pending": {id: {name: list(one) for name, one in each.items()} for id, each in self._pending.items()},
            "prices": dict(self._prices),
            "plays": [[plain(arm), count] for arm, count in self._plays.items()],
            "ring": [
                [scores.tolist(), costs.tolist(), open.tolist(), [plain(key) for key in keys]]
                for scores, costs, open, keys in (self._ring if recent else ())
            ],
            "times": list(self._times),
            "since": self._since,
        }

    @classmethod
    def from_dict(cls, outcomes: tuple[str, ...], state: dict[str, Any]) -> "Pacing":
        """Rebuild the object from the data that `to_dict` returned."""
        name_of, shares = files.object_from_plain, state["shares"]
        if isinstance(shares, list):
            shares = {name_of(arm): Share(**one) for arm, one in shares}
        elif shares is not None:
            shares = Share(**shares)
        budgets = {name: Budget(**one) for name, one in state["budgets"].items()}
        made = cls(outcomes, budgets, shares)
        for name, (day, spent, decisions, total, recent) in state["accounts"].items():
            latest = deque(recent, maxlen=budgets[name].window)
            made._accounts[name] = Account(day, spent, decisions, total, latest)
        for name, each in state["ratios"].items():
            made._ratios[name] = {(name_of(arm), priced): (ratio, weight) for arm, priced, ratio, weight in each}
        for name, each in state["largest"].items():
            made._largest[name] = {name_of(arm): Largest(*one) for arm, *one in each}
        made._pending = {id: {name: tuple(one) for name, one in each.items()} for id, each in state["pending"].items()}
        made._prices, made._since = state["prices"], state["since"]
        made._plays = {name_of(arm): count for arm, count in state["plays"]}
        made._decisions = sum(made._plays.values())
        for scores, costs, open, keys in state["ring"]:
            names = tuple(name_of(key) for key in keys)
            shape = np.array(costs, np.float64).reshape(-1, len(names))
            made._ring.append((np.array(scores), shape, np.array(open, np.bool_), names))
        made._times.extend(state["times"])
        return made


def check_price(name: str, value: Any, budget: Budget) -> float:
    """Return the price `value` of an arm; raise ValueError unless it is above 0 and fits the budget's amount.

    `name` describes the price in the message.
    """
    price, most = check.positive(name, value), MOST * budget.amount
    if price > most:
        raise ValueError(f"{name} must be at most {MOST:.0e} times the budget's amount, {most:g}, got {price:g}")
    return price


def arm_keys(survey: Survey) -> tuple[Any, ...]:
    """Return the names of the arms that a survey is about, or their indices if they have none."""
    return tuple(range(survey.eligible.size)) if survey.names is None else tuple(survey.names)


def open_account(one: Budget) -> Account:
    """Return the account of a new budget `one`, from which nothing is spent yet."""
    return Account("", 0.0, 0, 0.0, deque(maxlen=one.window))


def _charge(one: Budget, account: Account, amount: float, now: float, decisions: int) -> Account:
    day, spent, count, recent = account.day, account.spent, account.decisions, account.recent
    if one.is_daily and (date := local_day(now, one.zone).date) != day:
        day, spent, count = date, 0.0, 0
    if decisions:
        recent.append(amount)
    elif recent:
        recent[-1] += amount
    return Account(day, spent + amount, count + decisions, account.total + amount, recent)


def _share_of(label: str, keys: tuple[Any, ...]) -> tuple[float, Any]:
    """Return the sign of a share's bonus (+1 for a least share, -1 for a largest one), and its arm.

    `label` is "least" or "most" and the index of the arm in `keys`, the names or indices of the arms on offer.
    """
    kind, place = label.split()
    return SIGNS[kind], keys[int(place)]
