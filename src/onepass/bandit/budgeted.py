"""A bandit that keeps within budgets, by prices on outcomes and by hard stops (pacing.py).

The record of a decision includes the price, so that its probabilities can be computed again. The latest records are
kept: a repeated id gets the record of the first time, and is not charged again.
"""

import json
import time
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, NamedTuple, Self, final

import numpy as np

from onepass.bandit.bandit import Bandit
from onepass.bandit.budget import Budget, Share, Spending, check_spent
from onepass.bandit.decision import Decision, check_same_offer
from onepass.bandit.outcomes import ARMS, check_weights
from onepass.bandit.pacing import Bases, Pacing, Prices
from onepass.foundation import check, files
from onepass.foundation.check import quote
from onepass.foundation.deferred_signals import defer_signals
from onepass.foundation.latest import Latest
from onepass.foundation.registry import build, savable
from onepass.foundation.rw_lock import composite, reading
from onepass.foundation.state import object_array
from onepass.model.names import check_hashable
from onepass.model.records import is_frame

REPEATS = 1_000  # latest decisions with an id of the caller that are kept for repeated requests


class SavedRecords(NamedTuple):
    """Decisions kept for repeated requests, as an array of JSON for a file."""

    records: np.ndarray


@final
@savable
class Budgeted(files.Owner):
    """Bandit that keeps outcomes within budgets, and arms within shares of decisions.

    Every decision ranks arms by the score of the reward minus a price times the predicted outcome. The price of a
    budget is the smallest one at which recent requests would have stayed within the budget.

    Parameters
    ----------
    bandit : Bandit
        A bandit with `outcomes`. It may also be used directly.
    budgets : dict of str to Budget, default None
        Budget of each outcome that has one.
    shares : Share or dict of arm to Share, default None
        Smallest and largest shares of decisions that arms may get: one `Share` for all arms, or a dictionary with one
        for each arm named.

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
    If no arm fits a budget, the cheapest one is played: the arm with the smallest upper cost, or an arm whose cost is
    not known if no arm is known to cost at most the budget of a decision. If you know what an arm costs, pass it as
    `costs`. Otherwise the arm is assumed to cost as little as the cheapest other arm, at most the budget of a decision,
    so that every arm is tried. Its usual cost then begins at its first cost, or at the assumed one if that is lower.
    Usual costs, given or not, are corrected by the errors of predicted costs. Several processes can divide a budget
    among them, or report their spending to one another with `charge`.

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
        self._pacing = Pacing(bandit.outcomes, given, shares)
        self._named = Latest(REPEATS)  # decisions by the id that the caller gave

    # ---- questions ----

    @property
    @reading
    def budgets(self) -> dict[str, Spending]:
        """State of every budget by the name of its outcome."""
        return self._pacing.spending()

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

        The decision is charged its predicted outcomes at once. A repeated `id` is a repeated request: it gets its
        earlier decision and is charged nothing, whatever was learned or spent in between.

        Parameters
        ----------
        context : array, dict, frame or Factors, default None
            One request, as in `Bandit.decide`.
        arms : sequence of hashable, dict or list of features, default None
            The arms on offer. None is as for `Bandit.decide`.
        id : str, default None
            Identity of the decision, as in `Bandit.decide`. The last 1,000 ids count as repeated.
        eligible : array of bool or sequence of names, default None
            The arms that may be chosen.
        costs : dict, default None
            Known prices of arms, {arm: {outcome: price}}, each above 0 and at most 1e9 times the budget's amount. An
            arm without a price is predicted to cost its mean so far.
        weights : dict, default None
            Weights of the reward and of outcomes, as in `Bandit.decide`; prices of budgets are subtracted from them.
        now : float, default None
            Present time in Unix seconds, for budgets per day and half-lives. None takes `time.time()`.

        Returns
        -------
        Decision
            The chosen arm, with `predicted`, `weights` and `prices`.

        Raises
        ------
        ValueError
            If `Bandit.decide` refuses the request, or if the id was decided with other arms. Nothing is charged then,
            and prices stay.
        """
        now = self._pacing.check_time(time.time() if now is None else now)
        arms = list(arms) if isinstance(arms, Iterator) else arms
        given = {} if weights is None else weights
        self._check_weights(given)
        moment = {"time": now} if self.bandit.needs_time else {}
        prices, bases = self._price_arms(arms, costs)
        options = {"id": id, "eligible": eligible, "costs": prices, **moment}
        known = self._named.get(id) if isinstance(id, str) else None
        if known is not None:  # decided anew only to check the request: without pricing, which would change prices
            return check_same_offer(known, self.bandit.decide(context, arms, weights=weights, **options))
        pricing = self._pacing.pricing(dict(given), now, prices, bases)
        with self._pacing.commit_if_new():
            decision = self.bandit.decide(context, arms, weights=pricing, **options)
            if decision.is_batch:
                raise ValueError("contexts must be those of one decision: budgets are spent one after the other")
        with defer_signals():
            self._pacing.charge_decision(decision.id, _key(decision), *self._forecast(decision, bases), now)
            if id is not None:
                self._named.put(decision.id, decision)
        return decision

    def _check_weights(self, weights: Any) -> None:
        """Raise ValueError for weights that `Bandit.decide` refuses; those of arms are checked once arms are known."""
        if isinstance(weights, Mapping):
            weights = dict(weights)
            weights.pop(ARMS, None)
        check_weights(weights, self.bandit.outcomes, None, 0)

    def _price_arms(self, arms: Any, costs: Any) -> tuple[Prices, Bases]:
        """Return the expected and the given prices of the arms on offer, as `Pacing.arm_prices` does."""
        names = list(arms) if arms is not None and not _are_features(arms) else list(self.bandit.arms)
        return self._pacing.arm_prices(names, costs)

    # ---- spending ----

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
            Outcomes by name. Outcomes with a budget must be at least 0. If one never comes, its prediction stays
            charged.
        now : float, default None
            Present time in seconds, as in `decide`.
        allow_repeat : bool, default False
            Learn and charge rewards and outcomes again, if the decision had them before.

        Raises
        ------
        ValueError
            If a number is negative or not finite, `now` is no time in Unix seconds, or `Bandit.learn` refuses. Nothing
            has changed then.
        """
        now = self._pacing.check_time(time.time() if now is None else now)
        given = self._check_outcomes(outcomes)
        moment = {"time": now} if self.bandit.needs_time else {}
        self.bandit.learn(decision, reward, outcomes=outcomes, allow_repeat=allow_repeat, **moment)
        self._pacing.charge_outcomes(decision.id, _key(decision), given, now)

    @composite
    def learn_logged(
        self,
        context: Any = None,
        arm: Any = None,
        reward: Any = None,
        *,
        arms: Any = None,
        outcomes: Any = None,
        costs: Any = None,
        now: Any = None,
    ) -> None:
        """Learn an earlier decision that these budgets did not pay for, such as a row of a log.

        The bandit learns its reward and outcomes, and the budgets learn what the arm costs. Nothing is charged.

        Parameters
        ----------
        context : array, dict, frame or Factors, default None
            The request, as in `decide`.
        arm : hashable or int
            The arm that was chosen, or its index if arms have no names.
        reward : float, default None
            The reward. None if it is not known.
        arms : sequence of hashable, dict or list of features, default None
            The arms that were on offer, as in `decide`.
        outcomes : dict of str to float, default None
            Outcomes by name. Outcomes with a budget must be at least 0.
        costs : dict, default None
            Known prices of arms, as in `decide`.
        now : float, default None
            Time of the decision in seconds, only for half-lives. None takes `time.time()`.

        Raises
        ------
        ValueError
            If the arm is not on offer, a number is negative or not finite, or `Bandit.learn` refuses. Nothing is
            learned then.
        """
        now = time.time() if now is None else check.real("now", now)
        given = self._check_outcomes(outcomes)
        check_hashable([arm])
        moment = {"time": now} if self.bandit.needs_time else {}
        arms = list(arms) if isinstance(arms, Iterator) else arms
        prices, bases = self._price_arms(arms, costs)
        decision = self.bandit.decide(context, arms, eligible={arm}, costs=prices, **moment)
        if decision.is_batch:
            raise ValueError("context must be that of one decision")
        self.bandit.learn(decision, reward, outcomes=outcomes, **moment)
        self._pacing.note_outcomes(_key(decision), given, *self._forecast(decision, bases))

    def _check_outcomes(self, outcomes: Any) -> Any:
        """Return outcomes, {} for None; raise ValueError if one with a budget is negative or not finite."""
        given = {} if outcomes is None else outcomes
        if isinstance(given, Mapping):
            for name, value in given.items():
                if name in self._pacing.names and value is not None:
                    check_spent(name, value)
        return given

    def _forecast(
        self, decision: Decision, bases: Bases
    ) -> tuple[dict[str, float], dict[str, float | None], dict[str, float]]:
        """Return three dictionaries by budget about the chosen arm: predicted outcome, given price, and price used.

        `bases` are the given prices, as `_price_arms` returns them.
        """
        place, arm, names = int(decision.index), _key(decision), self._pacing.names
        return (
            {name: decision.predicted[name][place] for name in names},
            {name: bases.get((name, arm)) for name in names},
            {name: (decision.costs or {}).get(name, {}).get(place, 0.0) for name in names},
        )

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
        if name not in self._pacing.names:
            raise ValueError(f"name must be that of a budget, {quote(self._pacing.names)}, got {quote(name)}")
        now = self._pacing.check_time(time.time() if now is None else now)
        self._pacing.spend(name, check_spent("amount", amount), now)

    @composite
    def change(self, name: str, budget: Budget) -> None:
        """Replace a budget.

        The amount spent so far is kept. For a budget per decision with another amount it no longer counts against what
        is allowed: `left` begins at 0. If `budget` is of another kind (`per`), it begins with nothing spent.

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
        if name not in self._pacing.names or not isinstance(budget, Budget):
            raise ValueError(f"name must be that of a budget, and budget a Budget, got {quote(name)}, {quote(budget)}")
        self._pacing.change(name, budget)

    # ---- files ----

    def contents(self) -> files.Contents:
        records = SavedRecords(object_array([json.dumps(one.to_dict()) for one in self._named.values()]))
        return files.Contents({"bandit": self.bandit}, {"state": json.dumps(self._pacing.to_dict())}, records)

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        """Rebuild the object from saved `params`, `extra` and arrays `held`; raise ValueError if they disagree."""
        found = held.take(SavedRecords(object_array([])), lambda saved: len(saved.records) <= REPEATS)
        bandit = params["bandit"]
        made = cls(bandit.copy() if isinstance(bandit, Bandit) else build(bandit))
        made._pacing = Pacing.from_dict(made.bandit.outcomes, json.loads(extra["state"]))
        for record in found.records:
            one = Decision.from_dict(json.loads(record))
            made._named.put(one.id, one)
        return made

    def __repr__(self) -> str:
        kept = ", ".join(f"{name}: {one.spent:.4g} spent, price {one.price:.4g}" for name, one in self.budgets.items())
        return f"<Budgeted: {kept}; {self.bandit!r}>"


def _key(decision: Decision) -> Any:
    """Return the name of the chosen arm, or its index if arms have no names."""
    return decision.index if decision.candidates is None else decision.arm


def _are_features(arms: Any) -> bool:
    """Return True for arms that have no names: a frame, or a list of dictionaries or rows."""
    if is_frame(arms):
        return True
    return not isinstance(arms, Mapping) and any(isinstance(one, Mapping | list | np.ndarray) for one in arms)
