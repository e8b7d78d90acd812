"""Exploration: from means, widths or draws to scores; it knows nothing of designs.

    ucb         mean + beta width                    width = sqrt(x^T A^-1 x)  (beta < 0 is pessimism)
    thompson    mean + beta draw                     draw  = x^T R z, z standard normal, R R^T = A^-1
    greedy      mean
    epsilon     mean; with probability epsilon an arm uniformly at random

beta is a constant, or `Theory`: the radius of the design's confidence ellipsoid, times a scale.
All of them are one `Rule`, so that compiled loops are specialised on designs only.
"""

import threading
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from onepass.foundation import check
from onepass.foundation.forks import open_at_fork
from onepass.foundation.generic import compiled
from onepass.foundation.registry import plain, savable

MEANS, WIDTHS, DRAWS = 0, 1, 2
DRAWING = open_at_fork(threading.RLock())  # a generator's own lock may be held at a fork


class Rule(NamedTuple):
    """spread: what is added to the means; beta = scale (times the theoretical radius); epsilon: share of random arms.

    theory: empty, or (noise, parameter_bound, row_bound, delta).
    """

    spread: int
    scale: float
    epsilon: float
    theory: np.ndarray


@savable
@dataclass(frozen=True, kw_only=True)
class Theory:
    """The radius under which the papers prove their regret, times `scale` (its constants are large: tune it).

    Nothing proves it behind a random projection, nor for projector splitting once something was cut.

    noise R: rewards are R-sub-Gaussian about their mean (estimators for heavy tails go by their nu or moment instead);
    parameter_bound H >= ||theta_*||; row_bound L >= ||x||;
    delta: the confidence ellipsoid holds in all rounds with probability 1 - delta (an estimator whose theorem spends
    several deltas is given shares of this one). With models per arm this is said of every arm by itself: the ellipsoids
    of K arms hold together with probability 1 - K delta, so for all of them at once pass delta / K.
    ValueError for values that are not positive.
    """

    noise: float = 1.0
    parameter_bound: float = 1.0
    row_bound: float = 1.0
    delta: float = 0.01
    scale: float = 1.0

    def __post_init__(self):
        for name in ("noise", "parameter_bound", "row_bound", "delta"):
            object.__setattr__(self, name, check.positive(name, getattr(self, name)))
        if not self.delta < 1.0:
            raise ValueError(f"delta must be above 0 and below 1, got {self.delta!r}")
        object.__setattr__(self, "scale", check.real("scale", self.scale))

    def params(self) -> dict[str, Any]:
        """What the constructor was given, as plain data."""
        return asdict(self)


def _checked(exploration: "float | Theory") -> "float | Theory":
    hint = "use a number (negative for pessimism) or onepass.Theory(...)"
    return exploration if isinstance(exploration, Theory) else check.real("exploration", exploration, hint)


def _rule(spread: int, exploration: "float | Theory", epsilon: float = 0.0) -> Rule:
    if isinstance(exploration, Theory):
        t = exploration
        constants = np.array([t.noise, t.parameter_bound, t.row_bound, t.delta], np.float64)
        return Rule(spread, float(t.scale), epsilon, constants)
    return Rule(spread, exploration, epsilon, np.empty(0))


class Exploration:
    """What `Bandit` takes as its exploration: a frozen dataclass that gives a `Rule`."""

    def rule(self) -> Rule:
        """The rule as compiled loops read it; ValueError for values out of range."""
        raise TypeError(f"{type(self).__name__} gives no rule; use UCB, Thompson, Greedy or EpsilonGreedy")

    def params(self) -> dict[str, Any]:
        """What the constructor was given, as plain data."""
        return {field.name: plain(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]


@savable
@dataclass(frozen=True)
class UCB(Exploration):
    """Optimism: mean + exploration * width. Negative exploration is pessimism, for learning from logs."""

    exploration: float | Theory = 0.1

    def __post_init__(self):
        object.__setattr__(self, "exploration", _checked(self.exploration))

    def rule(self) -> Rule:
        return _rule(WIDTHS, self.exploration)


@savable
@dataclass(frozen=True)
class Thompson(Exploration):
    """Thompson sampling: one draw of theta from N(theta, exploration^2 A^-1) a round, shared by all arms."""

    exploration: float | Theory = 0.1

    def __post_init__(self):
        object.__setattr__(self, "exploration", _checked(self.exploration))

    def rule(self) -> Rule:
        return _rule(DRAWS, self.exploration)


@savable
@dataclass(frozen=True)
class Greedy(Exploration):
    """The largest mean."""

    def rule(self) -> Rule:
        return _rule(MEANS, 0.0)


@savable
@dataclass(frozen=True)
class EpsilonGreedy(Exploration):
    """The largest mean; with probability epsilon an arm uniformly at random."""

    epsilon: float = 0.1

    def __post_init__(self):
        object.__setattr__(self, "epsilon", check.fraction("epsilon", self.epsilon))

    def rule(self) -> Rule:
        return _rule(MEANS, 0.0, self.epsilon)


def noise_width(rule: Rule, features: int) -> int:
    """Random numbers a round takes: `features` normals for Thompson sampling, else two uniforms."""
    return features if rule.spread == DRAWS else 2


def draw_noise(rule: Rule, features: int, rounds: int, rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
    """The random numbers of `rounds` rounds, shape (rounds, noise_width); the same stream in one call or in many."""
    drawn = normals(rng, (rounds, features)) if rule.spread == DRAWS else uniforms(rng, (rounds, 2))
    return drawn.astype(dtype, copy=False)


def normals(rng: np.random.Generator, shape: int | tuple[int, ...]) -> np.ndarray:
    """Standard normals; by one thread at a time, so that no child is forked meanwhile."""
    with DRAWING:
        return rng.standard_normal(shape)


def uniforms(rng: np.random.Generator, shape: int | tuple[int, ...]) -> np.ndarray:
    """Uniform numbers in [0, 1), likewise."""
    with DRAWING:
        return rng.random(shape)


@compiled
def choose(rule, scores, noise):
    """The best arm and its probability of being chosen (NaN for Thompson sampling, whose draw is the only one made).

    Ties are broken by noise[1] (a draw: by the digits of its first normal); noise[0] < epsilon asks for a random arm.
    -1 when a score is not finite.
    """
    count = scores.size
    best, ties = -np.inf, 0
    for a in range(count):
        if not np.isfinite(scores[a]):
            return -1, np.nan
        if scores[a] > best:
            best, ties = scores[a], 1
        elif scores[a] == best:
            ties += 1
    lot = abs(noise[0]) * 1e4 % 1.0 if rule.spread == DRAWS else noise[1]
    if rule.spread != DRAWS and noise[0] < rule.epsilon:
        chosen = min(int(lot * count), count - 1)
    else:
        chosen, skip = -1, min(int(lot * ties), ties - 1)
        while skip >= 0:
            chosen += 1
            if scores[chosen] == best:
                skip -= 1
    if rule.spread == DRAWS:
        return chosen, np.nan
    propensity = rule.epsilon / count
    if scores[chosen] == best:
        propensity += (1.0 - rule.epsilon) / ties
    return chosen, propensity


@compiled
def best(scores, k, order, excluded):
    """The k best of every row of scores (n, K): indices (n, k), best first, -1 where fewer are left.

    order: a permutation of the arms, in which ties are taken; excluded (n, K): what must not be taken, or (0, 0).
    """
    out = np.full((scores.shape[0], k), -1)
    values = np.empty(k)
    for i in range(scores.shape[0]):
        filled = 0
        for a in order:
            value = scores[i, a]
            if (filled == k and value <= values[k - 1]) or (excluded.size > 0 and excluded[i, a]):
                continue
            place = filled if filled < k else k - 1
            while place > 0 and values[place - 1] < value:
                values[place], out[i, place] = values[place - 1], out[i, place - 1]
                place -= 1
            values[place], out[i, place] = value, a
            filled = min(filled + 1, k)
    return out
