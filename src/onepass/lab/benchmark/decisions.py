"""Cost of a decision with every exploration rule, relative to UCB; and rounds of models per arm in a compiled loop."""

import time
from typing import Any

import numpy as np

import onepass as op
from onepass.lab.benchmark.shared_model import Line, median_microseconds

DRAWS = 100  # draws of Thompson sampling


def _make_trained_bandit(dim: int, arms: int, size: int | None) -> tuple[Any, np.ndarray]:
    """Return a bandit with one shared model that has learned 500 rows, and rows (arms, dim) to choose from.

    The model uses a sketch of `size` rows, or an exact design if `size` is None.
    """
    rng = np.random.default_rng(0)
    bandit: Any = op.OFUL(dim=dim) if size is None else op.SOFUL(dim=dim, size=size)
    bandit.learn(rng.standard_normal((500, dim)) / dim**0.5, rng.standard_normal(500))
    return bandit, rng.standard_normal((arms, dim)) / dim**0.5


def _rule_lines(dim: int, arms: int, size: int | None, bars: dict[str, float]) -> list[Line]:
    """Return table lines with the microseconds of `decide` under each exploration rule, also as multiples of UCB.

    `dim` and `arms` are the numbers of features and of arms. The model uses a sketch of `size` rows, or an exact design
    if `size` is None. `bars` maps the name of a rule to the largest multiple that it may have. The rules are measured
    in turn.
    """
    bandit, rows = _make_trained_bandit(dim, arms, size)
    offered: dict[str, op.extend.Exploration] = {
        "UCB": op.UCB(),
        "Greedy": op.Greedy(uniform_share=0.1),
        "Softmax": op.Softmax(),
        "InverseGap": op.InverseGap(),
        f"Thompson({DRAWS} draws)": op.Thompson(draws=DRAWS),
    }
    twins = {name: bandit.with_exploration(rule) for name, rule in offered.items()}
    times = {
        name: [median_microseconds(lambda: twin.decide(rows), 1, 100) for _ in range(15)]  # noqa: B023
        for name, twin in twins.items()
    }
    least = {name: min(each) for name, each in times.items()}
    where = f"K={arms} d={dim}" + ("" if size is None else f" l={size}")
    lines = []
    for name, spent in least.items():
        allowed = f" (bar {bars[name]:g})" if name in bars else ""
        lines.append((f"decide, {where}: {name}", spent, "us", spent / least["UCB"], f"times UCB{allowed}"))
    return lines


def _play_per_arm(arms: int = 10, dim: int = 20, rounds: int = 5000) -> list[Line]:
    """Return lines that compare rounds of models per arm in one compiled loop with the same rounds by calls."""
    rng = np.random.default_rng(0)
    contexts, rewards = rng.standard_normal((rounds, 1, dim)) / dim**0.5, rng.random((rounds, arms))
    bandit = op.LinUCB(dim=dim, model="disjoint")
    bandit.copy().play(contexts[:10], rewards[:10])
    start = time.perf_counter()
    bandit.copy().play(contexts, rewards)
    played = (time.perf_counter() - start) / rounds * 1e6
    names, twin = tuple(range(arms)), bandit.copy()
    twin.learn(contexts[0, 0], 0.0, twin.decide(contexts[0, 0], names).arm)  # compiles
    start = time.perf_counter()
    for row, paid in zip(contexts[:, 0], rewards, strict=True):
        arm = bandit.decide(row, names).arm
        bandit.learn(row, float(paid[arm]), arm)
    called = (time.perf_counter() - start) / rounds * 1e6
    what = f"play per arm, K={arms} d={dim}: a round"
    return [(what, played, "us", played / called, f"times decide + learn by call, {called:.0f} us")]


def speed_lines() -> list[Line]:
    """Measure decisions by several exploration rules, and return lines of the table that `onepass bench` prints."""
    slow = f"Thompson({DRAWS} draws)"
    small = _rule_lines(20, 50, None, {"InverseGap": 1.2})
    spent = small[-1][1]
    allowed = ("  of the 60 us allowed", spent, "us", spent / 60.0, "times the bar")
    return [*small, allowed, *_rule_lines(784, 10, 50, {"InverseGap": 1.2, slow: 2.0}), *_play_per_arm()]
