"""Worlds that change, as data: rewards x^T theta(t) + noise. What forgetting gains there, and what it costs elsewhere.

abrupt     another theta every `period` rounds
turning    theta(t) goes round in a plane, once in `period` rounds
still      one theta for all time

Contexts are new in every round, of length 1: x = R (g_j decay^j)_j scaled, g of N(0, I), as in `Decaying`. A theta is
drawn as a context is. noise: in units of the typical |x^T theta|.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from onepass import OFUL, SOFUL
from onepass.bandit.bandit import Bandit
from onepass.lab.bandits.discounted import DLinUCB
from onepass.lab.bandits.environments import BLOCK, Chunk, Environment, assemble, unit
from onepass.lab.bandits.sliding_window import SlidingWindow
from onepass.lab.bandits.study import Experiment
from onepass.lab.policy import Policy
from onepass.lab.seeds import stream

LEAST = 1e-3  # of the first axis: shorter ones are left out
SAMPLE = 2000  # contexts that the typical |x^T theta| is measured on
NARROW, WIDE, SIZE, DECAY = 20, 500, 40, 0.93  # dimensions, rows of the sketch, decay of the wide contexts
ABRUPT, TURN = 5_000, 20_000  # rounds between two changes, rounds of a whole turn
GRID: Mapping[str, Sequence[float]] = {
    "exploration": (0.01, 0.03, 0.1, 0.3),
    "reg": (0.1, 1.0),
    "half_life": (31.25, 62.5, 125.0, 250.0, 500.0, 1000.0),
    "window": (62, 125, 250, 500, 1000, 2000),
}


class Drifting:
    """kind: "abrupt", "turning" or "still"."""

    def __init__(
        self, arms: int, dim: int, seed: int, kind: str, period: int = 1, decay: float = 1.0, noise: float = 0.5
    ) -> None:
        self.arms, self.dim, self.seed, self.kind, self.period = arms, dim, seed, kind, period
        lengths = decay ** np.arange(dim)
        lengths = lengths[lengths >= LEAST]
        rng = stream(seed, 0)
        self.axes = lengths[:, None] * np.linalg.qr(rng.standard_normal((dim, lengths.size)))[0].T
        typical = unit(rng.standard_normal((SAMPLE, lengths.size)) @ self.axes)
        self.noise = noise * float(np.sqrt(np.mean((typical @ self.drawn(0)) ** 2)))

    def drawn(self, number: int) -> np.ndarray:
        """One theta (dim,)."""
        return unit(stream(self.seed, 0, number).standard_normal(len(self.axes)) @ self.axes)

    def thetas(self, rounds: np.ndarray) -> np.ndarray:
        """theta(t) of every round, (n, dim)."""
        if self.kind == "turning":
            first, second = self.drawn(0), self.drawn(1)
            second = unit(second - (second @ first) * first)
            angles = 2.0 * np.pi * rounds[:, None] / self.period
            return np.cos(angles) * first + np.sin(angles) * second
        numbers = rounds // self.period if self.kind == "abrupt" else np.zeros_like(rounds)
        found = {number: self.drawn(number) for number in set(numbers.tolist())}
        return np.stack([found[number] for number in numbers.tolist()])

    def chunk(self, start: int, rounds: int) -> Chunk:
        return assemble(self.block, start, rounds)

    def block(self, number: int) -> Chunk:
        rng = stream(self.seed, number + 1)
        contexts = unit(rng.standard_normal((BLOCK, self.arms, len(self.axes))) @ self.axes)
        expected = np.einsum("tad,td->ta", contexts, self.thetas(np.arange(BLOCK) + number * BLOCK))
        return Chunk(contexts, expected, expected + self.noise * rng.standard_normal(expected.shape))


def drifting(seed: int, dim: int, kind: str, period: int) -> Environment:
    """Ten arms."""
    return Drifting(10, dim, seed, kind, period, DECAY if dim == WIDE else 1.0)


def problem(dim: int, kind: str, period: int) -> Callable[[int], Environment]:
    """The problem of a seed."""
    return partial(drifting, dim=dim, kind=kind, period=period)


def Still(*, dim: int, reg: float, exploration: float, seed: int = 0) -> Bandit:
    """Nothing is forgotten; wide rows in a sketch."""
    return Forgetting(dim=dim, reg=reg, exploration=exploration, half_life=None, seed=seed)


def Forgetting(
    *, dim: int, reg: float, exploration: float, half_life: float | None, wrong: float = 1.0, seed: int = 0
) -> Bandit:
    """The same with a half-life of `wrong` times as many rounds."""
    rule: dict[str, Any] = {"reg": reg, "exploration": exploration, "seed": seed}
    rule["half_life"] = None if half_life is None else wrong * half_life
    return OFUL(dim=dim, **rule) if dim < WIDE else SOFUL(dim=dim, size=SIZE, **rule)


def policies(best: Mapping[str, Mapping[str, float]], dense: bool) -> tuple[Policy, ...]:
    """Without and with forgetting, at the best half-life and at twice and half of it, and what others do."""
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
# the best points of `onepass tune NAME --seeds 2 --rounds 10000` (wide: --seeds 1). D-LinUCB has the half-life of
# Forgetting, whose 62.5 was found on the same seeds
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


def suite(name: str, what: str, dim: int, kind: str, period: int) -> Experiment:
    """One of the drifts."""
    rounds = 20_000 if dim < WIDE else 10_000
    found = policies(BEST[name], dim < WIDE)
    return Experiment(name, what, problem(dim, kind, period), found, rounds=rounds, seeds=5, grid=GRID)


SUITES = (
    suite("drift-abrupt", "another theta every 5,000 rounds, 20 dimensions", NARROW, "abrupt", ABRUPT),
    suite("drift-turning", "theta turns, once in 20,000 rounds, 20 dimensions", NARROW, "turning", TURN),
    suite("drift-abrupt-wide", "the first in 500 dimensions, sketches of 40 rows", WIDE, "abrupt", ABRUPT),
    suite("drift-turning-wide", "the second in 500 dimensions, sketches of 40 rows", WIDE, "turning", TURN),
    Experiment(
        "drift-none",
        "theta stands still: what a half-life costs",
        problem(NARROW, "still", 1),
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
