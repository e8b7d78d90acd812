"""Logs that were cut before all conversions had come, by inverse probability of censoring weights (IPCW).

    r' = default + (r - default) / F(age)          F: distribution function of delays, age: of the decision at the cut

A conversion is known at the cut with probability F(age), so E r' is the expected reward of the complete log, whatever
the policy. IPS on r' is IPCW-IPS, and DR is IPCW-DR: its reward model is fitted to r' as well.
"""

from typing import Any

import numpy as np

from onepass.bandit.delay_law import DelayLaw
from onepass.evaluation.log import Log
from onepass.foundation import check
from onepass.foundation.check import quote

NUMBER = np.dtype(np.float64)


def ipcw_log(log: Log, ages: Any, law: DelayLaw, *, default: float = 0.0, least: float = 0.05) -> Log:
    """Return a log whose rewards stand for those that were still to come when the log was cut.

    r' = default + (r - default) / F(age)

    Here r is the reward of a decision at the cut, and r' its reward in the result. F(age) is the probability, by
    `law`, that a conversion is known at this age. Decisions that are too young are left out. This depends on their age
    alone, never on rewards. The result works with all estimators and limits.

    Parameters
    ----------
    log : Log
        A log with the rewards that were known at the cut; `default` where there was no conversion.
    ages : array of shape (n,)
        Age of every decision at the cut in seconds, at least 0.
    law : DelayLaw
        Distribution of the delays: the result of `fit_delay_law` for conversions of this log or of an earlier one, or
        `PendingRewards.delay_law`.
    default : float, default 0.0
        Reward of a decision without a conversion.
    least : float, default 0.05
        Decisions with F(age) below it are left out, above 0 and at most 1. Rewards grow by at most 1 / least.

    Returns
    -------
    Log
        The log without its youngest decisions.

    Raises
    ------
    ValueError
        If an age is missing, negative or not finite, an argument is out of range, or no decision is old enough.

    Notes
    -----
    `reward_range` of `evaluate` must hold r': from 0 to 1 / least for conversions of 0 or 1. Limits take the law as
    known. The age at which a decision was cut must not depend on its reward, and delays must not depend on the arm or
    the context. Robins and Rotnitzky, "Recovery of information and adjustment for dependent censoring", 1992. The cost
    is O(n log m) for the m ages of `law.ages`.
    """
    if not isinstance(law, DelayLaw):
        raise ValueError(f"law must be a DelayLaw, as fit_delay_law returns it, got {quote(law)}")
    default, least = check.real("default", default), check.fraction("least", check.positive("least", least))
    reached = check.finite("ages", check.array("ages", ages, NUMBER, (1,)))
    if len(reached) != len(log) or (reached < 0.0).any():
        raise ValueError(f"ages must be at least 0, one per row of the log ({len(log)}), got {quote(reached)}")
    shares = law.cdf(reached)
    known = shares >= least
    if not known.any():
        raise ValueError(
            f"least must leave decisions that are old enough, got {least}: the largest share of conversions known at "
            f"an age of this log is {shares.max(initial=0.0):.3g}"
        )
    part = log[known]
    return part.with_rewards(default + (part.rewards - default) / shares[known])
