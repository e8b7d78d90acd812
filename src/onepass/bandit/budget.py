"""Settings of budgets of outcomes and of shares of arms, and the amount that a budget allows so far.

The line of a budget is the amount that may have been spent by now:

    per decision     line = amount n                       after n decisions, this one included
    horizon          line = amount n / horizon
    day              line = amount (time since local midnight) / (length of this day)

The classes are plain data; budgeted.py enforces them.
"""

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from onepass.foundation import check
from onepass.foundation.check import quote

DECISION, DAY, HORIZON = "decision", "day", "horizon"
IS_DAILY = {DECISION: False, DAY: True, HORIZON: False}
HAS_HORIZON = {DECISION: False, DAY: False, HORIZON: True}


@dataclass(frozen=True)
class Budget:
    """Limit on the spending of an outcome, such as a cost.

    Pass it to `Budgeted` under the name of the outcome: ``Budgeted(bandit, {"dollars": Budget(0.001)})``. `learn` then
    reports what was spent: ``learn(decision, reward, outcomes={"dollars": 0.0002})``.

    Parameters
    ----------
    amount : float
        Amount, above 0, in the unit of the outcome. It is for one decision, for one day or for the whole horizon, as
        `per` says.
    per : {"decision", "day", "horizon"}, default "decision"
        "decision" limits the average over all decisions, without end: what one decision saves, later ones may spend.
        "day" starts again at every local midnight. "horizon" limits the sum over `horizon` decisions.
    horizon : int, default None
        Number of decisions, only for "horizon".
    zone : str, default "UTC"
        Time zone of "day", such as "Europe/Berlin". A day may have 23 or 25 hours.
    window : int, default 200
        Number of consecutive decisions, at least 1, over which spending is kept within the budget. It does not apply to
        "day".
    leash : float, default 0.01
        Share, above 0, by which the decisions of a window may together exceed their part of the budget. For "day" it is
        the share of the day's amount by which spending may be ahead of the time of the day. An arm has probability 0 if
        a cautious estimate of its cost is more than what is left (docs/how/pacing.md). The cheapest arm always stays.

    Raises
    ------
    ValueError
        If an argument is out of range, or does not belong to `per`.
    """

    amount: float
    per: str = DECISION
    horizon: int | None = None
    zone: str = "UTC"
    window: int = 200
    leash: float = 0.01

    def __post_init__(self) -> None:
        object.__setattr__(self, "amount", check.positive("amount", self.amount))
        check.choice("per", self.per, (DECISION, DAY, HORIZON))
        if (self.horizon is not None) != HAS_HORIZON[self.per]:
            raise ValueError(
                f'horizon must be a number of decisions for per="horizon" alone, got {quote(self.horizon)}'
            )
        if self.horizon is not None:
            object.__setattr__(self, "horizon", check.integer("horizon", self.horizon, 1))
        object.__setattr__(self, "window", check.integer("window", self.window, 1, 100_000))
        object.__setattr__(self, "leash", check.positive("leash", self.leash))
        try:
            ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
            raise ValueError(f"zone must be a time zone such as Europe/Berlin, got {quote(self.zone)}") from None

    @property
    def is_daily(self) -> bool:
        """True if the budget is an amount per day."""
        return IS_DAILY[self.per]

    @property
    def decision_amount(self) -> float:
        """Amount that a decision may spend on average; for "day" the amount of the whole day."""
        return self.amount / self.horizon if self.horizon is not None else self.amount


@dataclass(frozen=True)
class Share:
    """Smallest and largest share of the decisions that an arm may get.

    Parameters
    ----------
    least : float, default 0.0
        Least share, from 0 to 1.
    most : float, default 1.0
        Largest share, from 0 to 1, at least `least`.

    Raises
    ------
    ValueError
        If a share is out of range.
    """

    least: float = 0.0
    most: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "least", check.fraction("least", self.least))
        object.__setattr__(self, "most", check.fraction("most", self.most))
        if self.most < self.least or self.most == 0.0:
            raise ValueError(f"most must be above 0 and at least least = {self.least}, got {self.most}")


class Spending(NamedTuple):
    """State of one budget, as `Budgeted.budgets` reports it.

    Parameters
    ----------
    spent : float
        Amount spent so far: of this day, for a day's budget. Outcomes that have not come count as predicted.
    left : float
        Amount that the budget allows up to now, minus the amount spent; negative if more was spent. For a budget per
        decision whose amount was changed, both count from the change on.
    price : float
        Price of one unit of the outcome, in units of reward, in the last decision.
    decisions : int
        Number of decisions, of this day for a day's budget.
    on_course : bool
        True if spending exceeds what the budget allows up to now by no more than the budget's `leash`.
    """

    spent: float
    left: float
    price: float
    decisions: int
    on_course: bool


class Day(NamedTuple):
    """Local day at some time.

    `date` is its date as text, `over` the fraction of the day that has passed, and `left` the seconds until it ends.
    """

    date: str
    over: float
    left: float


def local_day(seconds: float, zone: str) -> Day:
    """Return the local day of a Unix time in a time zone; a day with a change of the clock is shorter or longer."""
    place = ZoneInfo(zone)
    now = datetime.fromtimestamp(seconds, place)
    begin = datetime(now.year, now.month, now.day, tzinfo=place)
    later = (begin.replace(tzinfo=None) + timedelta(days=1)).date()
    end = datetime(later.year, later.month, later.day, tzinfo=place)
    length, since = end.timestamp() - begin.timestamp(), seconds - begin.timestamp()
    return Day(now.date().isoformat(), min(max(since / length, 0.0), 1.0), max(end.timestamp() - seconds, 0.0))


def check_spent(name: str, value: Any) -> float:
    """Return an amount spent, or raise ValueError if it is negative or not finite; `name` names it in the message."""
    found = check.real(name, value)
    if found < 0.0 or not math.isfinite(found):
        raise ValueError(f"{name} must be at least 0, for it is spent from a budget, got {quote(value)}")
    return found
