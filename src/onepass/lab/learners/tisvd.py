"""Decompositions of the sketch of a growing kernel matrix: TISVD updates against full recomputation.

M_n = S^T K_n S, (s, s), of the first n points; point n + 1 changes it by a b^T + b a^T
error = ||M_n - M~_n|| / ||M_n||

Source: Wen, Zhang et al. figure 4.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from onepass.features.sketched_nystrom import sjlt_row
from onepass.foundation.linalg import tisvd
from onepass.lab.definition import CHECKPOINTS, Trial, curve_rows, final_rows
from onepass.lab.drawing import canvas, plot_curves, set_log_scale, set_title
from onepass.lab.figure import Figure, Line, Picture, Row
from onepass.lab.learners.streams import Stream, random_order_factory
from onepass.lab.line_styles import assign_styles
from onepass.lab.policy import Policy
from onepass.lab.tables import group_rows, mean_cell, policy_label

FIRST = 200  # number of points in the sketch before the first update


class TISVD:
    """Leading eigenpairs, updated from the change alone: O(s k^2) an update."""

    def __init__(self, *, rank: int, matrix: np.ndarray) -> None:
        self.rank = rank
        values, vectors = np.linalg.eigh(matrix)
        self.values, self.vectors = values[: -rank - 1 : -1].copy(), vectors[:, : -rank - 1 : -1].T.copy()

    def update(self, matrix: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
        self.vectors, self.values = tisvd(self.vectors, self.values, a, b, self.rank)

    def approximation(self) -> np.ndarray:
        return (self.vectors.T * self.values) @ self.vectors


class FullSVD:
    """Full SVD of M, recomputed at every update: O(s^3), with the least error that rank k can have."""

    def __init__(self, *, rank: int, matrix: np.ndarray) -> None:
        self.rank = rank
        self.update(matrix, matrix[0], matrix[0])

    def update(self, matrix: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
        left, self.values, right = np.linalg.svd(matrix)
        self.left, self.right = left[:, : self.rank], right[: self.rank]

    def approximation(self) -> np.ndarray:
        return (self.left * self.values[: self.rank]) @ self.right


class FullEigh:
    """Eigenpairs of the symmetric M, recomputed at every update: O(s^3)."""

    def __init__(self, *, rank: int, matrix: np.ndarray) -> None:
        self.rank = rank
        self.update(matrix, matrix[0], matrix[0])

    def update(self, matrix: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
        values, vectors = np.linalg.eigh(matrix)
        self.values, self.vectors = values[-self.rank :], vectors[:, -self.rank :]

    def approximation(self) -> np.ndarray:
        return (self.vectors * self.values) @ self.vectors.T


class RandomizedSVD:
    """Randomized SVD of scikit-learn, recomputed at every update: O(s^2 k)."""

    def __init__(self, *, rank: int, matrix: np.ndarray) -> None:
        self.rank, self.random = rank, np.random.RandomState(0)
        self.update(matrix, matrix[0], matrix[0])

    def update(self, matrix: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
        from sklearn.utils.extmath import randomized_svd

        self.left, self.values, self.right = randomized_svd(matrix, self.rank, random_state=self.random)

    def approximation(self) -> np.ndarray:
        return (self.left * self.values) @ self.right


def _decomposition_lines(rows: Sequence[Row]) -> list[Line]:
    """Return one line per method: relative spectral error after the last update, the worst one, and the time."""
    return [
        {
            "method": label,
            "error at the end": mean_cell(own, "spectral_error", ".3g"),
            "worst error": f"{max(row['worst_error'] for row in own):.3g}",
            "µs an update": mean_cell(own, "microseconds_per_round", ",.1f"),
            "seconds": mean_cell(own, "seconds", ",.3g"),
            "updates": f"{own[0]['rounds']:,}",
            "seeds": str(len(own)),
        }
        for label, own in group_rows(rows, policy_label).items()
    ]


def _draw_decomposition(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Draw relative spectral error and seconds over updates (Wen, Zhang et al. figure 4)."""
    figure = canvas(8.5, 6.6)
    styles = assign_styles(rows, "policy")
    panels = figure.subplots(2, 1)
    for axes, (value, name) in zip(panels, (("spectral_error", "||M - M~|| / ||M||"), ("seconds", "seconds"))):
        axes.set_label(value)
        plot_curves(axes, curves, value, styles)
        set_log_scale(axes, "y")
        axes.set(xlabel="updates", ylabel=name)
        axes.set_xlim(0, max(row["round"] for row in curves))
    set_title(figure, rows, "decompositions of the sketch")
    return figure


DECOMPOSITION = Figure("decomposition", _decomposition_lines, _draw_decomposition)


@dataclass(frozen=True)
class DecompositionStudy:
    """Study of decompositions of a sketched Gaussian kernel matrix; the sketch has one SJLT block.

    Parameters
    ----------
    name : str
        Name on the command line and in the rows.
    description : str
        One line for `onepass list`.
    stream : callable
        `stream(seed)` returns the stream of a seed, whose rows are the points of the kernel matrix.
    policies : tuple of Policy
        Decompositions that play unless others are given.
    rounds : int
        Number of updates unless another is given.
    seeds : int
        Number of seeds unless another is given.
    size : int, default 100
        Number of columns of the sketch.
    width : float, default 4.0
        Width of the Gaussian kernel.
    figure : Figure
        Table and picture of the results. The default is the figure of errors and seconds over updates.
    timed : bool, default True
        True if seconds are the result.
    grid : dict of str -> sequence of float
        Parameters that `tune` searches. The default is empty.
    """

    name: str
    description: str
    stream: Callable[[int], Stream]
    policies: tuple[Policy, ...]
    rounds: int
    seeds: int
    size: int = 100
    width: float = 4.0
    figure: Figure = DECOMPOSITION
    timed: bool = True
    grid: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def trial(self, policies: Sequence[Policy], seed: int) -> Trial:
        return DecompositionTrial(self, policies, seed)

    def warm_up(self, policy: Policy) -> None:
        matrix, a = np.diag(np.arange(1.0, 101.0)), np.linspace(-1.0, 1.0, 100)
        policy.build(matrix=matrix).update(matrix, a, a[::-1].copy())

    def step_size(self, rounds: int) -> int:
        return -(-rounds // CHECKPOINTS)


class DecompositionTrial:
    """Trial on the sketch of one seed's stream; every method is updated with every change.

    Seconds are those of the updates.
    """

    def __init__(self, study: DecompositionStudy, policies: Sequence[Policy], seed: int) -> None:
        self.study, self.policies, self.seed = study, policies, seed
        self.examples = study.stream(seed).examples(0, FIRST + study.rounds).rows
        self.hashes = np.array([sjlt_row(i, study.size, 1, seed) for i in range(len(self.examples))])
        self.matrix = np.zeros((study.size, study.size))
        for n in range(FIRST):
            self.grow(n)
        self.known = [policy.build(matrix=self.matrix) for policy in policies]
        self.points: list[list[dict[str, Any]]] = [[] for _ in policies]

    def grow(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Add point n to the sketch, and return a and b of the change."""
        squares = ((self.examples[:n] - self.examples[n]) ** 2).sum(axis=1)
        a = self.hashes[n]
        b = self.hashes[:n].T @ np.exp(-0.5 * squares / self.study.width**2) + 0.5 * a
        change = np.outer(a, b)
        self.matrix += change + change.T
        return a, b

    def step(self, start: int, rounds: int) -> None:
        seconds = [points[-1]["seconds"] if points else 0.0 for points in self.points]
        for n in range(FIRST + start, FIRST + start + rounds):
            a, b = self.grow(n)
            for i, method in enumerate(self.known):
                began = perf_counter()
                method.update(self.matrix, a, b)
                seconds[i] += perf_counter() - began
        scale = np.linalg.norm(self.matrix, 2)
        for points, method, spent in zip(self.points, self.known, seconds):
            error = float(np.linalg.norm(self.matrix - method.approximation(), 2) / scale)
            points.append({"round": start + rounds, "seconds": spent, "spectral_error": error})

    def rows(self) -> list[dict[str, Any]]:
        return final_rows(
            self.policies,
            self.seed,
            self.points,
            lambda points: {
                "spectral_error": points[-1]["spectral_error"],
                "worst_error": max(point["spectral_error"] for point in points),
                "seconds": points[-1]["seconds"],
            },
        )

    def curves(self) -> list[dict[str, Any]]:
        return curve_rows(self.policies, self.seed, self.points)


SUITE = DecompositionStudy(
    "tisvd",
    "TISVD, eigh, full and randomized SVD of spambase's sketched kernel, rank 30 of 100 (Wen, Zhang et al. figure 4)",
    random_order_factory("spambase"),
    (
        Policy("TISVD", TISVD, {"rank": 30}),
        Policy("eigh", FullEigh, {"rank": 30}),
        Policy("full SVD", FullSVD, {"rank": 30}),
        Policy("randomized SVD", RandomizedSVD, {"rank": 30}),
    ),
    rounds=4_000,
    seeds=3,
)
