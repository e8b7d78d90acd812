"""A bandit within budgets: prices that are solved again on recent predictions, and hard stops.

    L_a = U_a - sum_j lambda_j c_ja            c: predicted outcomes;  lambda: budget_prices.py
    target b_j = b (1 + clip((line - spent) / b - CUSHION, within +-REACH) / REACH * share)      per decision
    stop: an arm whose upper cost c + spread exceeds what the window, or the line, has left has probability 0

A decision is charged what was predicted for it; when the outcome comes, the difference is charged. The record of a
decision has the price, so that its probabilities can be computed again.
"""

import json
import time
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple, Self, final

import numpy as np

from onepass.bandit.bandit import Bandit
from onepass.bandit.budget import Budget, Share, Spending, check_spent, local_day
from onepass.bandit.budget_prices import solve_prices
from onepass.bandit.decision import Decision
from onepass.bandit.outcomes import ARMS, Survey
from onepass.exploration.greedy import Greedy
from onepass.exploration.rule import make_rule
from onepass.foundation import check, files
from onepass.foundation.check import quote
from onepass.foundation.registry import build, savable
from onepass.foundation.rw_lock import composite, reading

RING = 400  # requests on which prices are solved
SIGNS = {"most": -1.0, "least": 1.0}  # of the bonus that a share gives its arm
EVERY = 8  # decisions after which they are solved again
REACH = 250.0  # decisions' budgets: what was saved is spent, or made up for, over so many decisions
CUSHION = 2.0  # decisions' budgets that are kept in hand, so that hard stops are rare
FASTEST, SLOWEST = 0.03, 0.3  # share by which the target is above or below the budget
MEMORY = 60.0  # values over which an arm's mean cost is taken, relative to its price
PENDING = 100_000  # decisions whose outcomes are awaited; older ones stay charged as predicted
DEVIATIONS = 4.0  # relative deviations of costs above their predictions at which a hard stop looks
UNKNOWN = 0.5, 2.0  # squared relative deviation of an arm's cost before any is known, and the values it counts for
TRUSTED = 3.0  # values that a price which was given counts for
LEAST = 1e-6  # of a price: what costs nothing has a price of its own
DAYS = 20_000.0  # seconds of decisions that say how many will come today, at least


Bases = dict[tuple[str, Any], float | None]
"""Price that was given for an outcome and arm; None if none was."""


class Account(NamedTuple):
    """Spending of one budget: the day it is of, the amount, decisions, and the latest of each decision."""

    day: str
    spent: float
    decisions: int
    total: float
    recent: deque[float]


@final
@savable
class Budgeted(files.Owner):
    """Bandit that keeps outcomes within budgets, and arms within shares of decisions.

    Every decision ranks arms by the reward's score minus price times predicted outcome. The price of a budget is the
    least one with which recent requests would have kept within it.

    Parameters
    ----------
    bandit : Bandit
        A bandit with `outcomes`. It may also be used directly.
    budgets : dict of str to Budget, default None
        Budget of each outcome that has one.
    shares : Share or dict of arm to Share, default None
        Shares of decisions that arms must and may have: one for every arm, or one for each arm named.

    Attributes
    ----------
    bandit : Bandit
        The bandit.

    Raises
    ------
    ValueError
        If a budget is of an outcome that the bandit does not have.

    Notes
    -----
    A budget that no arm fits stops nothing: the arm that is predicted to be cheapest is played. Prices of arms may be
    given (`costs`) or not: without one the running mean of the arm serves. If a price that was given is wrong, the
    running ratio of cost and price corrects it. Several processes share a budget by parts of it, or by `charge`.

    Examples
    --------
    >>> import onepass as op
    >>> bandit = op.ContextualBandit(outcomes=["dollars"])
    >>> router = op.Budgeted(bandit, {"dollars": op.Budget(0.001)})
    >>> prices = {"small": {"dollars": 0.0002}, "large": {"dollars": 0.005}}
    >>> decision = router.decide([0.3, 1.2], ["small", "large"], costs=prices)
    >>> decision.arm
    'small'
    >>> router.learn(decision, 0.9, outcomes={"dollars": 0.00018})
    >>> f"{router.budgets['dollars'].spent:.5f}"
    '0.00018'
    """

    bandit: Bandit

    def __init__(
        self,
        bandit: Bandit,
        budgets: Mapping[str, Budget] | None = None,
        *,
        shares: Share | Mapping[Hashable, Share] | None = None,
    ) -> None:
        if not isinstance(bandit, Bandit) or not bandit.outcomes:
            raise ValueError(f"bandit must be a Bandit with outcomes, got {quote(bandit)}")
        given = {} if budgets is None else dict(budgets)
        for name, one in given.items():
            if name not in bandit.outcomes or not isinstance(one, Budget):
                raise ValueError(f"budgets must be {{outcome of {bandit.outcomes}: Budget}}, got {quote(budgets)}")
        each = shares if isinstance(shares, Mapping) else {}
        if not (shares is None or isinstance(shares, Share | Mapping)) or not all(
            isinstance(one, Share) for one in each.values()
        ):
            raise ValueError(f"shares must be a Share, or {{arm: Share}}, got {quote(shares)}")
        self.bandit = bandit
        self._budgets: dict[str, Budget] = given
        self._shares: Share | dict[Hashable, Share] | None = dict(shares) if isinstance(shares, Mapping) else shares
        self._accounts = {name: _open_account(one) for name, one in given.items()}
        self._ratios: dict[str, dict[tuple[Any, bool], tuple[float, float]]] = {name: {} for name in bandit.outcomes}
        self._squares: dict[str, dict[Any, tuple[float, float]]] = {name: {} for name in bandit.outcomes}
        self._pending: dict[str, dict[str, tuple[float, float | None]]] = {}
        self._prices: dict[str, float] = {}
        self._plays: dict[Any, int] = {}
        self._ring: deque[tuple[np.ndarray, np.ndarray, np.ndarray, tuple[Any, ...]]] = deque(maxlen=RING)
        self._times: deque[float] = deque(maxlen=RING)
        self._since = 0
        self._greedy = make_rule(Greedy()).rule

    # ---- questions ----

    @property
    @reading
    def budgets(self) -> dict[str, Spending]:
        """State of every budget by the name of its outcome."""
        out = {}
        for name, one in self._budgets.items():
            account = self._accounts[name]
            left = self._line(name, account.decisions, self._times[-1] if self._times else 0.0) - account.spent
            ahead = one.leash * (one.amount if one.is_daily else one.window * one.decision_amount)
            price = self._prices.get(name, 0.0)
            out[name] = Spending(account.spent, left, price, account.decisions, left >= -ahead)
        return out

    def _line(self, name: str, decisions: int, now: float) -> float:
        """Return what may be spent after so many decisions, or by now."""
        one = self._budgets[name]
        if one.is_daily:
            return one.amount * local_day(now, one.zone).over
        return one.decision_amount * (decisions if one.horizon is None else min(decisions, one.horizon))

    # ---- decisions ----

    @composite
    def decide(
        self,
        context: Any = None,
        arms: Any = None,
        *,
        id: str | None = None,
        eligible: Any = None,
        costs: Any = None,
        weights: Any = None,
        now: Any = None,
    ) -> Decision:
        """Choose an arm for one request within the budgets.

        The decision is charged its predicted outcomes at once.

        Parameters
        ----------
        context : array, dict, frame or Factors, default None
            One request, as in `Bandit.decide`.
        arms : sequence of hashable, dict or list of features, default None
            The arms on offer.
        id : str, default None
            Identity of the decision, as in `Bandit.decide`.
        eligible : array of bool or sequence of names, default None
            The arms that may be chosen.
        costs : dict, default None
            Known prices of arms, {arm: {outcome: price above 0}}. An arm without one has its running mean.
        weights : dict, default None
            Weights of the reward and of outcomes, as in `Bandit.decide`; prices of budgets are subtracted from them.
        now : float, default None
            Present time in seconds, for budgets per day and half-lives. None takes `time.time()`.

        Returns
        -------
        Decision
            The chosen arm, with `predicted`, `weights` and `prices`.

        Raises
        ------
        ValueError
            If `Bandit.decide` refuses the request. Nothing is charged then.
        """
        now = time.time() if now is None else check.real("now", now)
        given = {} if weights is None else dict(weights)
        moment = {"time": now} if self.bandit.needs_time else {}
        prices, bases = self._arm_prices(arms, costs)
        pricing = self._pricing(given, now)
        decision = self.bandit.decide(context, arms, id=id, eligible=eligible, costs=prices, weights=pricing, **moment)
        if decision.is_batch:
            raise ValueError("contexts must be those of one decision: budgets are spent one after the other")
        if decision.id not in self._pending:  # a repeated question is charged once
            self._charge_prediction(decision, bases, now)
        return decision

    def _arm_prices(self, arms: Any, costs: Any) -> tuple[dict[Any, dict[str, float]] | None, Bases]:
        """Return prices of arms, and those that were given.

        A price that was given is corrected by what was paid; without one the running mean serves.
        """
        costs = {} if costs is None else costs
        if not isinstance(costs, Mapping) or not all(isinstance(each, Mapping) for each in costs.values()):
            raise ValueError(f"costs must be {{arm: {{outcome: price}}}}, got {quote(costs)}")
        names = list(arms) if arms is not None and not _are_features(arms) else list(self.bandit.arms)
        out: dict[Any, dict[str, float]] = {arm: dict(each) for arm, each in costs.items()}
        bases: Bases = {}
        for name in self._budgets:
            for arm in names:
                each = out.setdefault(arm, {})
                base = bases[name, arm] = float(check.positive("a price", each[name])) if name in each else None
                ratio, weight = self._ratios[name].get((arm, base is not None), (1.0, 0.0))
                if base is not None:
                    each[name] = base * ratio
                else:
                    each[name] = ratio if weight > 0.0 else self._usual_price(name)
        return {arm: each for arm, each in out.items() if each} or None, bases

    def _usual_price(self, name: str) -> float:
        """Return the price of an arm that nothing is known of: the mean of the others, or the budget of a decision."""
        known = [ratio for (_, priced), (ratio, _) in self._ratios[name].items() if not priced]
        return float(np.mean(known)) if known else self._budgets[name].decision_amount

    def _pricing(self, given: dict[str, Any], now: float) -> Callable[[Survey], tuple[dict[str, Any], np.ndarray]]:
        """Return the function that finds weights and stops when the arms of a request are surveyed."""

        def price(survey: Survey) -> tuple[dict[str, Any], np.ndarray]:
            scale = float(given.get("reward", 1.0))
            base = scale * survey.scores
            for name, row in zip(survey.outcomes, survey.predicted, strict=True):
                if name in given:
                    base = base + float(given[name]) * row
            costs, labels, keys = self._spendings(survey)
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
            return weights, self._leash_mask(survey, now)

        return price

    def _spendings(self, survey: Survey) -> tuple[np.ndarray, list[str], tuple[Any, ...]]:
        """Return what arms would spend (J, K) of every constraint, the constraints' labels, and the arms."""
        keys = tuple(range(survey.predicted.shape[1])) if survey.names is None else tuple(survey.names)
        rows, labels = [], []
        for name in self._budgets:
            rows.append(survey.predicted[survey.outcomes.index(name)])
            labels.append(name)
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
        return np.array(rows).reshape(len(rows), len(keys)), labels, keys

    def _share(self, arm: Any) -> Share | None:
        return self._shares.get(arm) if isinstance(self._shares, dict) else self._shares

    def _solve(self, labels: list[str], survey: Survey, now: float) -> None:
        """Find the prices with which recent requests of the same arms would have kept within all budgets."""
        keys = self._ring[-1][3]
        alike = [one for one in self._ring if one[3] == keys and len(one[1]) == len(labels)]
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
        """Return what a decision may spend on average from here on."""
        if label not in self._budgets:
            sign, arm = _share_of(label, keys)
            share, played = self._share(arm), sum(self._plays.values())
            assert share is not None
            wanted = share.most if sign < 0.0 else share.least
            ahead = (wanted * played - self._plays.get(arm, 0)) / REACH
            return -sign * float(np.clip(wanted + ahead + 0.02 * sign * wanted, 0.0, 1.0))
        one, account = self._budgets[label], self._accounts[label]
        if one.is_daily:
            day = local_day(now, one.zone)
            span = max(now - self._times[0], 1.0) if len(self._times) > 1 else DAYS
            rate = max(len(self._times), 1) / span
            spent = account.spent if account.day == day.date else 0.0
            return max(one.amount - spent, 0.0) / max(rate * day.left, 1.0)
        if one.horizon is not None and account.decisions < one.horizon:
            return max(one.amount - account.spent, 0.0) / (one.horizon - account.decisions)
        saved = (one.decision_amount * account.decisions - account.total) / one.decision_amount - CUSHION
        return one.decision_amount * (1.0 + float(np.clip(saved / REACH, -SLOWEST, FASTEST)))

    def _leash_mask(self, survey: Survey, now: float) -> np.ndarray:
        """Return the arms (K,) that leashes allow; the cheapest one always."""
        allowed = survey.eligible.copy()
        for name, one in self._budgets.items():
            j = survey.outcomes.index(name)
            cost = survey.predicted[j] * self._headroom(name, survey)
            left = self._leash_left(one, self._accounts[name], now)
            fits = allowed & (cost <= left)
            if not fits.any():
                cheapest = np.where(allowed, cost, np.inf)
                fits = allowed & (cheapest == cheapest.min())
            allowed = fits
        return allowed

    def _headroom(self, name: str, survey: Survey) -> np.ndarray:
        """Return by what predicted costs (K,) are multiplied before a hard stop compares them: 1 + deviations."""
        keys = range(survey.predicted.shape[1]) if survey.names is None else survey.names
        squares = self._squares[name]
        return np.array([1.0 + DEVIATIONS * squares.get(key, UNKNOWN)[0] ** 0.5 for key in keys])

    def _leash_left(self, one: Budget, account: Account, now: float) -> float:
        """Return what the next decision may spend at most."""
        if one.is_daily:
            day = local_day(now, one.zone)
            spent = account.spent if account.day == day.date else 0.0
            return min(one.amount - spent, one.amount * (day.over + one.leash) - spent)
        line = one.decision_amount * (account.decisions + 1) - account.total
        recent = account.recent
        room = one.decision_amount * (1.0 + one.leash) * one.window - sum(recent)
        if len(recent) == one.window:
            room += recent[0]
        return min(line, room)

    # ---- spending ----

    def _charge_prediction(self, decision: Decision, bases: Bases, now: float) -> None:
        place, arm = int(decision.index), _key(decision)
        charged = {name: max(float(decision.predicted[name][place]), 0.0) for name in self._budgets}
        for name, amount in charged.items():
            self._spend(name, amount, now, 1)
        self._pending[decision.id] = {name: (amount, bases.get((name, arm))) for name, amount in charged.items()}
        self._plays[arm] = self._plays.get(arm, 0) + 1
        self._times.append(now)
        if len(self._pending) > PENDING:
            del self._pending[next(iter(self._pending))]

    def _spend(self, name: str, amount: float, now: float, decisions: int) -> None:
        one, account = self._budgets[name], self._accounts[name]
        day, spent, count = account.day, account.spent, account.decisions
        if one.is_daily and (date := local_day(now, one.zone).date) != day:
            day, spent, count = date, 0.0, 0
        if decisions:
            account.recent.append(amount)
        elif account.recent:
            account.recent[-1] += amount
        self._accounts[name] = Account(day, spent + amount, count + decisions, account.total + amount, account.recent)

    @composite
    def learn(
        self,
        decision: Decision,
        reward: Any = None,
        *,
        outcomes: Any = None,
        now: Any = None,
        allow_repeat: bool = False,
    ) -> None:
        """Learn the reward and outcomes of a decision, and charge the outcomes in place of their predictions.

        Parameters
        ----------
        decision : Decision
            A decision of `decide`.
        reward : float, default None
            The reward. None if it came before, or comes later.
        outcomes : dict of str to float, default None
            Outcomes. Those with a budget must be at least 0. One that never comes stays charged as predicted.
        now : float, default None
            Present time in seconds, as in `decide`.
        allow_repeat : bool, default False
            Learn and charge once more what was learned already.

        Raises
        ------
        ValueError
            If a number is negative or not finite, or if `Bandit.learn` refuses. Nothing has changed then.
        """
        now = time.time() if now is None else check.real("now", now)
        given = {} if outcomes is None else outcomes
        if isinstance(given, Mapping):
            for name, value in given.items():
                if name in self._budgets and value is not None:
                    check_spent(name, value)
        moment = {"time": now} if self.bandit.needs_time else {}
        self.bandit.learn(decision, reward, outcomes=outcomes, allow_repeat=allow_repeat, **moment)
        charged = self._pending.get(decision.id, {})
        for name in self._budgets:
            value = given.get(name)
            if value is not None:
                predicted, base = charged.pop(name, (0.0, None))
                self._spend(name, float(value) - predicted, now, 0)
                mean = self._note_ratio(name, _key(decision), float(value), base)
                self._note_deviation(name, _key(decision), float(value), predicted, mean)
        if decision.id in self._pending and not charged:
            del self._pending[decision.id]

    def _note_deviation(self, name: str, arm: Any, value: float, predicted: float, mean: float) -> None:
        """Update the squared relative deviation of an arm's outcome, from its prediction or its mean."""
        nearest = min((abs(value / one - 1.0) for one in (predicted, mean) if one > 0.0), default=0.0)
        square, weight = self._squares[name].get(arm, UNKNOWN)
        weight = min(weight + 1.0, MEMORY)
        self._squares[name][arm] = square + (nearest**2 - square) / weight, weight

    def _note_ratio(self, name: str, arm: Any, value: float, base: float | None) -> float:
        """Update the running ratio of an arm's outcome to the price that was given, or its running mean.

        Returns the mean that this makes for the price.
        """
        start = (1.0, TRUSTED) if base is not None else (value, 0.0)
        ratio, weight = self._ratios[name].get((arm, base is not None), start)
        weight = min(weight + 1.0, MEMORY)
        ratio += (value / (base or 1.0) - ratio) / weight
        ratio = max(ratio, LEAST * (1.0 if base else self._budgets[name].decision_amount))
        self._ratios[name][arm, base is not None] = ratio, weight
        return ratio * (base or 1.0)

    @composite
    def charge(self, name: str, amount: float, *, now: Any = None) -> None:
        """Charge what was spent elsewhere, such as by another process, to a budget.

        Parameters
        ----------
        name : str
            Name of the outcome.
        amount : float
            Amount, at least 0.
        now : float, default None
            Present time in seconds, as in `decide`.

        Raises
        ------
        ValueError
            If there is no such budget, or the amount is negative or not finite.
        """
        if name not in self._budgets:
            raise ValueError(f"name must be that of a budget, {quote(list(self._budgets))}, got {quote(name)}")
        now = time.time() if now is None else check.real("now", now)
        self._spend(name, check_spent("amount", amount), now, 0)

    @composite
    def change(self, name: str, budget: Budget) -> None:
        """Replace a budget; what was spent stays spent.

        Parameters
        ----------
        name : str
            Name of the outcome.
        budget : Budget
            The new budget.

        Raises
        ------
        ValueError
            If there is no budget of this name, or `budget` is no `Budget`.
        """
        if name not in self._budgets or not isinstance(budget, Budget):
            raise ValueError(f"name must be that of a budget, and budget a Budget, got {quote(name)}, {quote(budget)}")
        account = self._accounts[name]
        self._budgets[name] = budget
        # the line of a budget per decision begins anew where it has another slope
        spent = budget.decision_amount * account.decisions if not budget.is_daily else account.spent
        self._accounts[name] = account._replace(
            total=spent, spent=spent, recent=deque(account.recent, maxlen=budget.window)
        )

    # ---- files ----

    def contents(self) -> files.Contents:
        shares = self._shares
        listed = [[arm, asdict(one)] for arm, one in shares.items()] if isinstance(shares, dict) else None
        extra = {
            "budgets": {name: asdict(one) for name, one in self._budgets.items()},
            "shares": asdict(shares) if isinstance(shares, Share) else listed,
            "accounts": {name: [*one[:4], list(one.recent)] for name, one in self._accounts.items()},
            "ratios": {name: [[*arm, *one] for arm, one in each.items()] for name, each in self._ratios.items()},
            "squares": {name: [[arm, *one] for arm, one in each.items()] for name, each in self._squares.items()},
            "pending": {id: {name: list(one) for name, one in each.items()} for id, each in self._pending.items()},
            "prices": dict(self._prices),
            "plays": [[arm, count] for arm, count in self._plays.items()],
            "ring": [
                [scores.tolist(), costs.tolist(), open.tolist(), list(keys)] for scores, costs, open, keys in self._ring
            ],
            "times": list(self._times),
            "since": self._since,
        }
        return files.Contents({"bandit": self.bandit}, {"state": json.dumps(extra)}, ())

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        """Rebuild the object from `params`, `extra` and `held`; ValueError if they do not belong together."""
        held.take((), lambda found: True)
        state, bandit = json.loads(extra["state"]), params["bandit"]
        shares: Any = state["shares"]
        if isinstance(shares, list):
            shares = {_name(arm): Share(**one) for arm, one in shares}
        elif shares is not None:
            shares = Share(**shares)
        budgets = {name: Budget(**one) for name, one in state["budgets"].items()}
        made = cls(bandit.copy() if isinstance(bandit, Bandit) else build(bandit), budgets, shares=shares)
        for name, (day, spent, decisions, total, recent) in state["accounts"].items():
            latest = deque(recent, maxlen=budgets[name].window)
            made._accounts[name] = Account(day, spent, decisions, total, latest)
        for name, each in state["ratios"].items():
            made._ratios[name] = {(_name(arm), priced): (ratio, weight) for arm, priced, ratio, weight in each}
        for name, each in state["squares"].items():
            made._squares[name] = {_name(arm): (square, weight) for arm, square, weight in each}
        made._pending = {id: {name: tuple(one) for name, one in each.items()} for id, each in state["pending"].items()}
        made._prices, made._since = state["prices"], state["since"]
        made._plays = {_name(arm): count for arm, count in state["plays"]}
        for scores, costs, open, keys in state["ring"]:
            names = tuple(_name(key) for key in keys)
            shape = np.array(costs, np.float64).reshape(-1, len(names))
            made._ring.append((np.array(scores), shape, np.array(open, np.bool_), names))
        made._times.extend(state["times"])
        return made

    def __repr__(self) -> str:
        kept = ", ".join(f"{name}: {one.spent:.4g} spent, price {one.price:.4g}" for name, one in self.budgets.items())
        return f"<Budgeted: {kept}; {self.bandit!r}>"


def _open_account(one: Budget) -> Account:
    return Account("", 0.0, 0, 0.0, deque(maxlen=one.window))


def _name(arm: Any) -> Any:
    """Return the name of an arm from JSON, where a tuple is a list."""
    return tuple(_name(one) for one in arm) if isinstance(arm, list) else arm


def _share_of(label: str, keys: tuple[Any, ...]) -> tuple[float, Any]:
    """Return the sign of a share's bonus, and its arm."""
    kind, place = label.split()
    return SIGNS[kind], keys[int(place)]


def _key(decision: Decision) -> Any:
    """Return the name of the chosen arm, or its index."""
    return decision.index if decision.candidates is None else decision.arm


def _are_features(arms: Any) -> bool:
    """Return True for arms that have no names: a list of dictionaries or rows."""
    return not isinstance(arms, Mapping) and any(isinstance(one, Mapping | list | np.ndarray) for one in arms)
