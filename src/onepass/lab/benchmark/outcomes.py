"""Cost of a further outcome: `decide` and `learn` of `ContextualBandit` with one, relative to those without."""

import time
from typing import Any

import numpy as np

import onepass as op
from onepass.lab.benchmark.shared_model import Line

ARMS, DIM, ROUNDS, FIRST = 10, 64, 1_500, 500


def round_microseconds(*bandits: Any) -> list[float]:
    """Return for each bandit the median microseconds of a `decide` with its `learn`, after the first 500 rounds.

    A bandit that was made with a further outcome, such as costs in dollars, also learns this outcome. The bandits
    alternate, so that other work on the machine slows all of them.
    """
    rng = np.random.default_rng(0)
    theta, names = rng.standard_normal((ARMS, DIM)) / DIM**0.5, list(range(ARMS))
    times: list[list[float]] = [[] for _ in bandits]
    for number in range(ROUNDS):
        row = rng.standard_normal(DIM)
        paid, spent = theta @ row + 0.1 * rng.standard_normal(ARMS), rng.random(ARMS)
        for bandit, each in zip(bandits, times, strict=True):
            began = time.perf_counter()
            decision = bandit.decide(row, names)
            arm = decision.arm
            if bandit.outcomes:
                bandit.learn(decision, float(paid[arm]), outcomes={"dollars": float(spent[arm])})
            else:
                bandit.learn(decision, float(paid[arm]))
            if number >= FIRST:
                each.append(time.perf_counter() - began)
    return [float(np.median(each)) * 1e6 for each in times]


def speed_lines() -> list[Line]:
    """Measure rounds with and without an outcome, and return lines of the table that `onepass bench` prints."""
    lines = []
    pairs = {
        "ContextualBandit": (op.ContextualBandit(), op.ContextualBandit(outcomes=["dollars"])),
        "OFUL, a model for each arm": tuple(
            op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=DIM))), op.UCB(), outcomes=which)
            for which in (None, ["dollars"])
        ),
    }
    for name, pair in pairs.items():
        without, beside = round_microseconds(*pair)
        what = f"decide + learn with an outcome, K={ARMS} d={DIM}: {name}"
        lines.append((what, beside, "us", beside / without, f"times {without:.0f} us without (bar 1.3)"))
    return lines
