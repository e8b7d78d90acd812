"""Costs of delays: clicks arrive minutes, hours or a day later, and are learned in another order.

Delays are exponential. The deadline is three means, so a twentieth of the clicks comes later and is never learned.

The site is the news site in which articles have no appeal beyond their features. Every bandit is behind
`PendingRewards`, in the loop of docs/first_loop.md. "no delay" is the bandit without it, which learns every reward
before the next request. Delays of all policies are multiples of one draw, so all policies meet the same visitors.
"""

from collections.abc import Sequence
from heapq import heappop, heappush
from statistics import fmean
from typing import Any

from onepass import GLBOMD, ContextualBandit, Factors, InteractionBandit, LinTS, PendingRewards
from onepass.lab.figure import Figure, Line, Row
from onepass.lab.news.oracle import AT_ARTICLE, USER, article_rows, user_row
from onepass.lab.news.simulator import LATE, PER_DAY, TOPICS, Site
from onepass.lab.news.study import NewsStudy, Server, draw
from onepass.lab.policy import Policy
from onepass.lab.tables import cost_columns, group_rows, policy_label, size_columns, standard_error

MEANS = {"no delay": 0.0, "5 minutes": 5.0 / 60.0, "2 hours": 2.0, "1 day": 24.0}  # hours
NO_DELAY = "no delay"
WAIT = 3.0  # mean delays until the deadline
HOUR = 3600.0
SEEN = [AT_ARTICLE[name] for name in (*TOPICS, "age", "always")]  # without authors, so that exact designs stay small
CROSSED = (len(USER), len(SEEN))
BANDITS: dict[str, Any] = {
    "ContextualBandit": lambda seed: ContextualBandit(seed=seed),
    "InteractionBandit": lambda seed: InteractionBandit(seed=seed),
    "LinTS": lambda seed: LinTS(dim=CROSSED, seed=seed),
    "GLBOMD": lambda seed: GLBOMD(dim=CROSSED, seed=seed),
}
OF_ROWS = ("LinTS", "GLBOMD")


class Delayed:
    """Bandit of a news site whose clicks arrive late.

    Parameters
    ----------
    seed : seed of the bandit.
    recipe : name of one of `BANDITS`.
    hours : mean delay of a click in hours; 0 for a bandit that learns at once.
    learn_at : "deadline" or "arrival": when a click is learned, as in `PendingRewards`.
    """

    def __init__(self, seed: int, recipe: str, hours: float, learn_at: str = "deadline") -> None:
        self.bandit = BANDITS[recipe](seed)
        self.rows, self.hours = recipe in OF_ROWS, hours
        self.wait = WAIT * hours
        self.pending = PendingRewards(self.bandit, after=self.wait * HOUR, learn_at=learn_at) if hours else None
        self.clicks: list[tuple[float, str]] = []

    def bandit_inputs(self, request: Any) -> tuple[Any, Any]:
        """Return the context and the arms of a request in the form that the bandit takes."""
        if self.rows:
            return Factors(user_row(request.user), article_rows(request.articles)[:, SEEN]), None
        return request.user, request.articles

    def memory_usage(self) -> int:
        return int(self.bandit.memory_usage())


class DelayedServer(Server):
    """Simulated service of a news site that decides and learns with `PendingRewards`, in the time of the simulation.

    `policy` is the bandit, with the delay of its clicks.
    """

    policy: Delayed

    def learn_until(self, hour: float) -> None:
        """Pass on the clicks that have arrived by this hour of the simulation, and learn rewards that are due."""
        one = self.policy
        while one.pending is not None and one.clicks and one.clicks[0][0] <= hour:
            when, identity = heappop(one.clicks)
            one.pending.reward(identity, 1.0, now=when * HOUR)
        if one.pending is not None:
            one.pending.expire(now=hour * HOUR)

    def choose(self, request: Any) -> int:
        """Return the index of the article that is shown. A click is queued, or learned at once if there is no delay."""
        one, (context, arms) = self.policy, self.policy.bandit_inputs(request)
        if one.pending is None:
            decision = one.bandit.decide(context, arms)
            one.bandit.learn(decision, float(request.lot < request.chances[decision.index]))
            return int(decision.index)
        identity, delay = f"{self.served}", request.delay / LATE * one.hours
        decision = one.pending.decide(context, arms, id=identity, now=request.hour * HOUR)
        if request.lot < request.chances[decision.index] and delay < one.wait:
            heappush(one.clicks, (request.hour + delay, identity))
        return int(decision.index)


def lines(rows: Sequence[Row]) -> list[Line]:
    """Return the table as one line per policy: click rates, and the last half's rate relative to that without delay.

    `rows` are the results of a run, as dictionaries.
    """
    without = {
        (row["group"], row["seed"]): row["last_half"] for row in rows if row["policy"] == f"{row['group']}, {NO_DELAY}"
    }
    found: list[Line] = []
    for label, own in group_rows(rows, policy_label).items():
        rates, late = [row["click_rate"] for row in own], [row["last_half"] for row in own]
        base = [without[key] for row in own if (key := (row["group"], row["seed"])) in without]
        share = f"{fmean(late) / fmean(base):.3f}" if len(base) == len(late) else ""
        found.append(
            {
                "policy": label,
                "click rate": f"{fmean(rates):.4f} ± {standard_error(rates):.4f}",
                "last half": f"{fmean(late):.4f}",
                "of no delay": share,
                **cost_columns(own),
                **size_columns(own),
            }
        )
    return found


DELAYS = Figure("delays", lines, draw)
LATE_POLICIES = tuple(
    Policy(f"{recipe}, {name}", Delayed, {"recipe": recipe, "hours": hours}, recipe)
    for recipe in BANDITS
    for name, hours in MEANS.items()
)
AT_ARRIVAL = tuple(
    Policy(
        f"InteractionBandit, {name}, at arrival",
        Delayed,
        {"recipe": "InteractionBandit", "hours": hours, "learn_at": "arrival"},
        "InteractionBandit",
    )
    for name, hours in MEANS.items()
    if hours
)
STUDY = NewsStudy(
    "news-delays",
    "the news site with clicks that come 5 minutes, 2 hours or a day later, and the same bandits without delay",
    Site,
    (*LATE_POLICIES, *AT_ARRIVAL),
    rounds=20 * PER_DAY,
    seeds=5,
    figure=DELAYS,
    server=DelayedServer,
)
