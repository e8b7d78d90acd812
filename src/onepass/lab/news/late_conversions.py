"""Conversions that come days after a decision, with several ways to learn them.

    log(delay / day) ~ normal, median one day, 90 % within six days

The site is the news site, where a fifth of the articles is replaced every day, and a click stands for a conversion. All
policies are one `InteractionBandit`, and meet the same visitors with the same delays. "told later" is a world that
reports every outcome, conversion or not, after such a delay: nothing is censored there, only late. "law known" learns
as conversions come, and knows the distribution of the delays from the start.
"""

import math
from collections.abc import Sequence
from functools import cache, partial
from heapq import heappop, heappush
from statistics import NormalDist, fmean
from typing import Any

import numpy as np
from scipy.special import ndtri

from onepass import InteractionBandit, PendingRewards
from onepass.evaluation import DelayLaw, fit_delay_law
from onepass.lab.figure import Figure, Line, Row
from onepass.lab.news.simulator import HOURS, LATE, PER_DAY, STOCK, Site
from onepass.lab.news.study import NewsStudy, Server, draw
from onepass.lab.policy import Policy
from onepass.lab.tables import cost_columns, group_rows, policy_label, size_columns, standard_error

NO_DELAY, CENSORED, KNOWN, TOLD, ZEROS = "no delay", "censored", "law known", "told later", "zeros first"
WEEK = 7.0 * HOURS
WAITS = {"wait an hour": 1.0, "wait a week": WEEK}
SPREAD = math.log(6.0) / NormalDist().inv_cdf(0.9)  # of log(delay)
SECONDS = 3600.0


def delay_hours(request: Any) -> float:
    """Return the delay of a request's conversion in hours, which has a log-normal distribution.

    It is a function of the exponential number `request.delay`.
    """
    uniform = min(max(-math.expm1(-request.delay / LATE), 1e-12), 1.0 - 1e-12)
    return HOURS * math.exp(SPREAD * NormalDist().inv_cdf(uniform))


@cache
def true_law() -> DelayLaw:
    """Return the true distribution of the delays, as a `DelayLaw` fitted to 100,000 of its quantiles."""
    probabilities = (np.arange(100_000) + 0.5) / 100_000
    seconds = SECONDS * HOURS * np.exp(SPREAD * ndtri(probabilities))
    return fit_delay_law(seconds, np.maximum(seconds, WEEK * SECONDS), WEEK * SECONDS)


class Late:
    """Bandit of a news site whose conversions come late.

    Parameters
    ----------
    seed : seed of the bandit.
    how : name of a way to learn, for example "wait a week", "zeros first" or "no delay".
    """

    def __init__(self, seed: int, how: str) -> None:
        self.bandit, self.how = InteractionBandit(seed=seed), how
        self.pending = None
        if how in (CENSORED, KNOWN) or how in WAITS:
            law, hours = true_law() if how == KNOWN else None, WAITS.get(how, WEEK)
            self.pending = PendingRewards(
                self.bandit, after=hours * SECONDS, censored=how in (CENSORED, KNOWN), delay_law=law
            )

    def memory_usage(self) -> int:
        return int(self.bandit.memory_usage())


class LateServer(Server):
    """Simulated service of a news site whose conversions come late; all times are hours of the simulation.

    `policy` is the bandit, with its way to learn late conversions (`Late`).
    """

    policy: Late

    def __init__(self, policy: Late) -> None:
        super().__init__(policy)
        self.coming: list[tuple[float, int, Any, float]] = []  # hour, count, decision or its id, reward

    def learn_until(self, hour: float) -> None:
        """Learn the conversions that have come by this hour of the simulation.

        If the policy has a table of pending decisions, they are reported to it, and it learns them. It also learns the
        decisions whose deadline has passed. Otherwise the bandit learns them directly.
        """
        one = self.policy
        while self.coming and self.coming[0][0] <= hour:
            when, _, decision, reward = heappop(self.coming)
            if one.pending is None:
                one.bandit.learn(decision, reward, allow_repeat=True)
            else:
                one.pending.reward(decision, reward, now=when * SECONDS)
        if one.pending is not None:
            one.pending.expire(now=hour * SECONDS)

    def choose(self, request: Any) -> int:
        """Return the index of the article that is shown. A conversion is queued until it arrives."""
        one, hour, late = self.policy, request.hour, delay_hours(request)
        if one.pending is not None:
            identity, after = f"{self.served}", one.pending.after / SECONDS
            decision = one.pending.decide(request.user, request.articles, id=identity, now=hour * SECONDS)
            if request.lot < request.chances[decision.index] and late < after:
                self._queue(hour + late, identity, 1.0)
            return int(decision.index)
        decision = one.bandit.decide(request.user, request.articles)
        converts = float(request.lot < request.chances[decision.index])
        if one.how == TOLD:
            self._queue(hour + late, decision, converts)
        else:
            one.bandit.learn(decision, 0.0 if one.how == ZEROS else converts)
            if one.how == ZEROS and converts and late < WEEK:
                self._queue(hour + late, decision, 1.0)
        return int(decision.index)

    def _queue(self, when: float, decision: Any, reward: float) -> None:
        heappush(self.coming, (when, self.served, decision, reward))


def lines(rows: Sequence[Row]) -> list[Line]:
    """Return the table as one line per policy: the conversion rate, also relative to that without delay.

    `rows` are the results of a run, as dictionaries.
    """
    without = {row["seed"]: row for row in rows if row["policy"] == NO_DELAY}
    found: list[Line] = []
    for label, own in group_rows(rows, policy_label).items():
        base = [without[row["seed"]] for row in own if row["seed"] in without]
        shares = {}
        for title, name in (("of no delay", "click_rate"), ("last half", "last_half")):
            whole = fmean(one[name] for one in base) if len(base) == len(own) else math.nan
            shares[title] = f"{fmean(one[name] for one in own) / whole:.3f}"
        rates = [row["click_rate"] for row in own]
        rate = f"{fmean(rates):.4f} ± {standard_error(rates):.4f}"
        found.append({"policy": label, "conversions": rate, **shares, **cost_columns(own), **size_columns(own)})
    return found


STUDY = NewsStudy(
    "late-conversions",
    "the news site with conversions a day later in the median: learned as they come, after a wait, or zeros first",
    partial(Site, replaced=STOCK // 5),
    tuple(Policy(how, Late, {"how": how}) for how in (NO_DELAY, CENSORED, KNOWN, TOLD, *WAITS, ZEROS)),
    rounds=10 * PER_DAY,
    seeds=10,
    figure=Figure("late-conversions", lines, draw),
    server=LateServer,
)
