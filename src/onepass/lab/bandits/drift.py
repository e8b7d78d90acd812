"""Experiments with changing problems, which measure gains and costs of forgetting: rewards are x^T theta(t) + noise.

- abrupt: a new theta is drawn every `period` rounds
- turning: theta(t) moves along a circle, once around in `period` rounds
- still: theta is constant

Contexts are new in every round and have length 1. They are drawn as in `Decaying`: x = R (g_j decay^j)_j, scaled, with
standard normal g and a rotation R. A theta is drawn as a context is. The noise is relative to the typical |x^T theta|.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from onepass import OFUL, SOFUL
from onepass.bandit.bandit import Bandit
from onepass.lab.bandits.discounted import DLinUCB
from onepass.lab.bandits.environments import BLOCK, Blocks, Chunk, Environment, normalize_rows
from onepass.lab.bandits.sliding_window import SlidingWindow
from onepass.lab.bandits.study import Experiment
from onepass.lab.policy import Policy
from onepass.lab.seeds import stream

LEAST = 1e-3  # axes shorter than this share of the first axis are left out
SAMPLE = 2000  # contexts that the typical |x^T theta| is measured on
NARROW, WIDE, SIZE, DECAY = 20, 500, 40, 0.93  # dimensions, rows of the sketch, decay of the wide contexts
ABRUPT, TURN = 5_000, 20_000  # rounds between two changes, rounds of a whole turn
GRID: Mapping[str, Sequence[float]] = {
    "exploration": (0.01, 0.03, 0.1, 0.3),
    "reg": (0.1, 1.0),
    "half_life": (31.25, 62.5, 125.0, 250.0, 500.0, 1000.0),
    "window": (62, 125, 250, 500, 1000, 2000),
}


class DriftingLinear(Blocks):
    """Problem with rewards x^T theta(t) + noise, in which the parameter theta may change over rounds t.

    Parameters
    ----------
    arms : int
        Number of arms.
    dim : int
        Number of features.
    seed : int
        Seed of all draws.
    kind : {"abrupt", "turning", "still"}
        Change of theta: a new draw every `period` rounds, a rotation that takes `period` rounds, or none.
    period : int, default 1
        Number of rounds of a change.
    decay : float, default 1.0
        Ratio of the standard deviations of successive directions of contexts and theta.
    noise : float, default 0.5
        Standard deviation of the noise, relative to that of x^T theta.
    """

    def __init__(
        self, arms: int, dim: int, seed: int, kind: str, period: int = 1, decay: float = 1.0, noise: float = 0.5
    ) -> None:
        self.arms, self.dim, self.seed, self.kind, self.period = arms, dim, seed, kind, period
        lengths = decay ** np.arange(dim)
        lengths = lengths[lengths >= LEAST]
        rng = stream(seed, 0)
        self.axes = lengths[:, None] * np.linalg.qr(rng.standard_normal((dim, lengths.size)))[0].T
        typical = normalize_rows(rng.standard_normal((SAMPLE, lengths.size)) @ self.axes)
        self.noise = noise * float(np.sqrt(np.mean((typical @ self.draw_theta(0)) ** 2)))

    def draw_theta(self, number: int) -> np.ndarray:
        """Return the random parameter (dim,) with this number, the same in every call."""
        return normalize_rows(stream(self.seed, 0, number).standard_normal(len(self.axes)) @ self.axes)

    def thetas(self, rounds: np.ndarray) -> np.ndarray:
        """Return the parameters theta(t), of shape (n, dim), in the rounds t given by `rounds` (n,)."""
        if self.kind == "turning":
            first, second = self.draw_theta(0), self.draw_theta(1)
            second = normalize_rows(second - (second @ first) * first)
            angles = 2.0 * np.pi * rounds[:, None] / self.period
            return np.cos(angles) * first + np.sin(angles) * second
        numbers = rounds // self.period if self.kind == "abrupt" else np.zeros_like(rounds)
        found = {number: self.draw_theta(number) for number in set(numbers.tolist())}
        return np.stack([found[number] for number in numbers.tolist()])

    def block(self, number: int) -> Chunk:
        rng = stream(self.seed, number + 1)
        contexts = normalize_rows(rng.standard_normal((BLOCK, self.arms, len(self.axes))) @ self.axes)
        expected = np.einsum("tad,td->ta", contexts, self.thetas(np.arange(BLOCK) + number * BLOCK))
        return Chunk(contexts, expected, expected + self.noise * rng.standard_normal(expected.shape))


def _ten_arm_problem(seed: int, dim: int, kind: str, period: int) -> Environment:
    """Make a problem with ten arms and `dim` features; `kind` and `period` are those of `DriftingLinear`."""
    return DriftingLinear(10, dim, seed, kind, period, DECAY if dim == WIDE else 1.0)


def _problem_factory(dim: int, kind: str, period: int) -> Callable[[int], Environment]:
    """Return a function from a seed to a problem with ten arms and `dim` features.

    `kind` and `period` are arguments of `DriftingLinear`.
    """
    return partial(_ten_arm_problem, dim=dim, kind=kind, period=period)


def Still(*, dim: int, reg: float, exploration: float, seed: int = 0) -> Bandit:
    """Return a UCB bandit that forgets nothing, the rival of bandits that do.

    It uses exact ridge regression for fewer than 500 features, else a sketch. `reg` is the ridge penalty, and
    `exploration` the multiplier of the width.
    """
    return Forgetting(dim=dim, reg=reg, exploration=exploration, half_life=None, seed=seed)


def Forgetting(
    *, dim: int, reg: float, exploration: float, half_life: float | None, wrong: float = 1.0, seed: int = 0
) -> Bandit:
    """Return a UCB bandit that forgets: the weight of a row halves every `wrong * half_life` rounds.

    It uses exact ridge regression for fewer than 500 features, else a sketch. `reg` is the ridge penalty, and
    `exploration` the multiplier of the width. None as `half_life` means no forgetting.
    """
    rule: dict[str, Any] = {"reg": reg, "exploration": exploration, "seed": seed}
    rule["half_life"] = None if half_life is None else wrong * half_life
    return OFUL(dim=dim, **rule) if dim < WIDE else SOFUL(dim=dim, size=SIZE, **rule)


def policies(best: Mapping[str, Mapping[str, float]], dense: bool) -> tuple[Policy, ...]:
    """Return the policies: one that does not forget, three that do, and algorithms of other papers.

    `best` maps the name of a policy to its tuned parameters. The three policies that forget have the tuned half-life,
    half of it and twice it. If `dense` is True, D-LinUCB and SW-LinUCB are included, which need matrices (dim, dim).
    """
    own = best["Forgetting"]
    found = [
        Policy("Still", Still, best["Still"]),
        Policy("Forgetting", Forgetting, own),
        *(
            Policy(f"Forgetting, {note}", Forgetting, {**own, "wrong": wrong}, "Forgetting", tuned=False)
            for note, wrong in (("half", 0.5), ("twice", 2.0))
        ),
    ]
    if dense:
        found += [Policy("DLinUCB", DLinUCB, best["DLinUCB"]), Policy("SlidingWindow", SlidingWindow, best["Window"])]
    return tuple(found)


RULE = {"reg": 1.0, "exploration": 0.1}
# Best points of `onepass tune NAME --seeds 2 --rounds 10000` (wide: --seeds 1). D-LinUCB has the half-life of
# Forgetting; its 62.5 was found on the seeds of tuning, too.
BEST: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "drift-abrupt": {
        "Still": {"reg": 0.1, "exploration": 0.1},
        "Forgetting": {"reg": 1.0, "exploration": 0.01, "half_life": 62.5},
        "DLinUCB": {"reg": 1.0, "exploration": 0.1, "half_life": 62.5},
        "Window": {"reg": 1.0, "exploration": 0.03, "window": 250},
    },
    "drift-turning": {
        "Still": {"reg": 1.0, "exploration": 0.01},
        "Forgetting": {"reg": 1.0, "exploration": 0.01, "half_life": 125.0},
        "DLinUCB": {"reg": 1.0, "exploration": 0.01, "half_life": 125.0},
        "Window": {"reg": 0.1, "exploration": 0.01, "window": 500},
    },
    "drift-abrupt-wide": {
        "Still": {"reg": 1.0, "exploration": 0.3},
        "Forgetting": {"reg": 1.0, "exploration": 0.1, "half_life": 125.0},
    },
    "drift-turning-wide": {
        "Still": {"reg": 0.1, "exploration": 0.3},
        "Forgetting": {"reg": 1.0, "exploration": 0.3, "half_life": 125.0},
    },
}


def _drift_experiment(name: str, what: str, dim: int, kind: str, period: int) -> Experiment:
    """Make the experiment `name` with one kind of drift; `what` describes it in `onepass list`.

    `dim` is the number of features. `kind` and `period` are arguments of `DriftingLinear`.
    """
    rounds = 20_000 if dim < WIDE else 10_000
    found = policies(BEST[name], dim < WIDE)
    return Experiment(name, what, _problem_factory(dim, kind, period), found, rounds=rounds, seeds=5, grid=GRID)


SUITES = (
    _drift_experiment("drift-abrupt", "another theta every 5,000 rounds, 20 dimensions", NARROW, "abrupt", ABRUPT),
    _drift_experiment("drift-turning", "theta turns, once in 20,000 rounds, 20 dimensions", NARROW, "turning", TURN),
    _drift_experiment("drift-abrupt-wide", "the first in 500 dimensions, sketches of 40 rows", WIDE, "abrupt", ABRUPT),
    _drift_experiment("drift-turning-wide", "the second in 500 dimensions, sketches of 40 rows", WIDE, "turning", TURN),
    Experiment(
        "drift-none",
        "theta stands still: what a half-life costs",
        _problem_factory(NARROW, "still", 1),
        (
            Policy("Still", Still, RULE),
            *(
                Policy(f"half-life {h:,}", Forgetting, {**RULE, "half_life": float(h)}, "Forgetting", tuned=False)
                for h in (1_000, 5_000, 50_000)
            ),
        ),
        rounds=50_000,
        seeds=5,
        grid={"exploration": GRID["exploration"], "reg": GRID["reg"]},
    ),
)
