"""Spectral error that a sketch of l rows can have on the rows that a bandit plays (Wen, Yin et al. figure 1 c).

After t rows X, the bound on the error is

    Delta_t = min over k < l of ||X - X_k||_F^2 / (l - k)

where X_k is the best approximation of X with rank k. Above t^(1/3), the proved regret of a fixed sketch is linear, so
log Delta_t / log t is drawn beside 1/3.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from statistics import fmean
from time import perf_counter
from typing import Any

import numpy as np

from onepass import OFUL
from onepass.lab.bandits.environments import Linear
from onepass.lab.definition import Trial, curve_rows, final_rows
from onepass.lab.drawing import canvas, plot_curves, set_title
from onepass.lab.figure import Figure, Line, Picture, Row
from onepass.lab.line_styles import assign_styles
from onepass.lab.policy import Policy
from onepass.lab.tables import group_rows, mean_cell, policy_label

LIMIT = 1.0 / 3.0  # exponent of the error from which on a proved regret is linear


class Tail:
    """Bound on the spectral error of a Frequent Directions sketch, computed from the eigenvalues of X^T X.

    Parameters
    ----------
    dim : int
        Number of features.
    size : int
        Number of rows of the sketch.
    """

    def __init__(self, *, dim: int, size: int) -> None:
        self.size = size

    def error(self, spectrum: np.ndarray) -> float:
        """Return the bound on the spectral error, given the eigenvalues (dim,) of X^T X.

        The bound is the minimum, over k < size, of the sum of all but the k largest eigenvalues, divided by size - k.
        """
        descending = np.maximum(np.sort(spectrum)[::-1], 0.0)
        rest = descending.sum() - np.concatenate([[0.0], np.cumsum(descending)[: self.size - 1]])
        return float((np.maximum(rest, 0.0) / (self.size - np.arange(len(rest)))).min())


@cache
def oful_rows(seed: int, rounds: int) -> np.ndarray:
    """Return the contexts (rounds, 500) that exact ridge UCB chooses on the synthetic problem of Wen, Yin et al."""
    problem, bandit = Linear(100, 500, seed), OFUL(dim=500, seed=seed)
    rows, chunk = np.empty((rounds, 500)), problem.chunk(0, rounds)
    for t in range(rounds):
        decision = bandit.decide(chunk.contexts[t])
        bandit.learn(decision, float(chunk.rewards[t, decision.arm]))
        rows[t] = chunk.contexts[t, decision.arm]
    return rows


def _tail_lines(rows: Sequence[Row]) -> list[Line]:
    """Return one line per size of a sketch: the exponent at the end, and the first round from which it exceeds 1/3.

    The exponent is log Delta_t / log t, where Delta_t is the bound `Tail.error` after t rounds. `rows` are the results
    of a run, as dictionaries.
    """
    return [
        {
            "sketch": label,
            "log Delta / log t": mean_cell(own, "exponent", ".3f"),
            "above 1/3 from": f"{fmean(row['crossing'] for row in own):,.0f}"
            if all(r["crossing"] for r in own)
            else "",
            "rounds": f"{own[0]['rounds']:,}",
            "seeds": str(len(own)),
        }
        for label, own in group_rows(rows, policy_label).items()
    ]


def _draw_tails(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Draw log Delta_t / log t over rounds t beside 1/3, one curve per size of a sketch.

    Delta_t is the bound `Tail.error` after t rounds. `rows` are the results at the end of a run, and `curves` the
    results over rounds, as dictionaries.
    """
    figure = canvas(8.5, 5)
    axes = figure.subplots()
    axes.set_label("exponent")
    plot_curves(axes, [row for row in curves if row["exponent"] is not None], "exponent", assign_styles(rows, "policy"))
    axes.axhline(LIMIT, color="black", linewidth=0.8, linestyle=(0, (2, 2)))
    axes.set(xlabel="rounds", ylabel="log Delta / log t; dashed: 1/3")
    axes.set_xlim(0, max(row["round"] for row in curves))
    set_title(figure, rows, "growth of the error that a fixed sketch may make")
    return figure


TAIL = Figure("tails", _tail_lines, _draw_tails)


@dataclass(frozen=True)
class TailStudy:
    """Study of the sum of the small eigenvalues of a stream of rows, which bounds the error of sketches.

    Parameters
    ----------
    name : str
        Name on the command line and in the rows.
    description : str
        One line for `onepass list`.
    stream : callable
        `stream(seed, n)` returns the first n rows of a seed, (n, dim).
    policies : tuple of Policy
        Sketch sizes (`Tail`) that are compared unless others are given.
    rounds : int
        Number of rows unless another is given.
    seeds : int
        Number of seeds unless another is given.
    figure : Figure
        Table and picture of the results. The default draws the exponents with which the bounds grow.
    grid : dict of str -> sequence of float
        Parameters that `tune` searches. The default is empty.
    timed : bool, default False
        True if seconds are the result.
    """

    name: str
    description: str
    stream: Callable[[int, int], np.ndarray]
    policies: tuple[Policy, ...]
    rounds: int
    seeds: int
    figure: Figure = TAIL
    grid: Mapping[str, Sequence[float]] = field(default_factory=dict)
    timed: bool = False

    def trial(self, policies: Sequence[Policy], seed: int) -> Trial:
        return TailTrial(self, policies, seed)

    def warm_up(self, policy: Policy) -> None:
        policy.build(dim=3)

    def step_size(self, rounds: int) -> int:
        return -(-rounds // 50)


class TailTrial:
    """Trial of one seed: the error bounds of all sketch sizes, computed on the same rows."""

    def __init__(self, study: TailStudy, policies: Sequence[Policy], seed: int) -> None:
        self.study, self.policies, self.seed = study, policies, seed
        self.rows_seen = study.stream(seed, study.rounds)
        self.gram = np.zeros((self.rows_seen.shape[1],) * 2)
        self.tails = [policy.build(dim=len(self.gram)) for policy in policies]
        self.points: list[list[dict[str, Any]]] = [[] for _ in policies]

    def step(self, start: int, rounds: int) -> None:
        began = perf_counter()
        rows, t = self.rows_seen[start : start + rounds], start + rounds
        self.gram += rows.T @ rows
        spectrum = np.linalg.eigvalsh(self.gram)
        for points, tail in zip(self.points, self.tails):
            error = tail.error(spectrum) if t > tail.size else 0.0  # fewer rows are exact
            exponent = float(np.log(error) / np.log(t)) if error > 0.0 else None
            points.append({"round": t, "seconds": perf_counter() - began, "exponent": exponent})

    def rows(self) -> list[dict[str, Any]]:
        return final_rows(
            self.policies,
            self.seed,
            self.points,
            lambda points: {"exponent": points[-1]["exponent"], "crossing": _crossing(points)},
        )

    def curves(self) -> list[dict[str, Any]]:
        return curve_rows(self.policies, self.seed, self.points)


def _crossing(points: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the first round from which on the exponent stays above 1/3, or None if it does not end above 1/3.

    `points` are the checkpoints of a run in order, dictionaries with "round" and "exponent".
    """
    above = [point["exponent"] is not None and point["exponent"] > LIMIT for point in points]
    if not above[-1]:
        return None
    last = max((i for i, one in enumerate(above) if not one), default=-1)
    return int(points[last + 1]["round"])


SUITE = TailStudy(
    "spectral-error",
    "growth of the spectral error of sketches of 50, 200 and 450 rows, synthetic (Wen, Yin et al. figure 1 c)",
    oful_rows,
    tuple(Policy(f"size={size}", Tail, {"size": size}) for size in (50, 200, 450)),
    rounds=2000,
    seeds=3,
)
