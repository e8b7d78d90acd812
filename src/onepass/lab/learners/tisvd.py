"""Decompositions of a matrix that low-rank updates change: TISVD against full recomputation.

- gaussian: M_0 (100, 100) is standard normal, and an update adds B^T C with standard normal B and C (3, 100)
- kernel: M_n = S^T K_n S, of shape (s, s), is the sketched kernel matrix of the first n points; the next point changes
  it by a b^T + b a^T

The error of an approximation M~_n is ||M_n - M~_n|| / ||M_n|| in the spectral norm.

Source: Wen, Zhang et al. figure 4, which shows the first case.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from onepass import learner
from onepass.features.sketched_nystrom import sjlt_row
from onepass.foundation.linalg import tisvd
from onepass.lab.definition import CHECKPOINTS, Trial, curve_rows, final_rows
from onepass.lab.drawing import canvas, plot_curves, set_log_scale, set_title
from onepass.lab.figure import Figure, Line, Picture, Row
from onepass.lab.learners.streams import Stream, random_order_factory
from onepass.lab.line_styles import assign_styles
from onepass.lab.policy import Policy
from onepass.lab.tables import group_rows, mean_cell, policy_label

FIRST = 200  # number of points in the sketched kernel before the first update


class TISVD:
    """Truncated SVD of rank k = `rank` of a matrix (s, s), updated from the matrix's change alone in O(s k^2)."""

    def __init__(self, *, rank: int, matrix: np.ndarray) -> None:
        self.held = learner.TISVD(rank, matrix)

    def update(self, matrix: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
        self.held.update(left, right)

    def approximation(self) -> np.ndarray:
        return self.held.approximation()


class SymmetricTISVD:
    """Truncated eigendecomposition of a positive semi-definite matrix, updated from its change a b^T + b a^T.

    `rank` is the number of eigenvalues that are kept. This is the compiled code that the learner FORKS uses.
    """

    def __init__(self, *, rank: int, matrix: np.ndarray) -> None:
        self.rank = rank
        values, vectors = np.linalg.eigh(matrix)
        self.values, self.vectors = values[: -rank - 1 : -1].copy(), vectors[:, : -rank - 1 : -1].T.copy()

    def update(self, matrix: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
        a, b = left[:, 0].copy(), left[:, 1].copy()
        self.vectors, self.values = tisvd(self.vectors, self.values, a, b, self.rank)

    def approximation(self) -> np.ndarray:
        return (self.vectors.T * self.values) @ self.vectors


class FullSVD:
    """Truncated SVD of a matrix (s, s), recomputed in full at every update in O(s^3), with the least possible error.

    `rank` is the number of singular values that are kept.
    """

    def __init__(self, *, rank: int, matrix: np.ndarray) -> None:
        self.rank = rank
        self.update(matrix, matrix, matrix)

    def update(self, matrix: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
        u, self.values, v = np.linalg.svd(matrix)
        self.left, self.right = u[:, : self.rank], v[: self.rank]

    def approximation(self) -> np.ndarray:
        return (self.left * self.values[: self.rank]) @ self.right


class FullEigh:
    """Truncated eigendecomposition of a symmetric matrix (s, s), recomputed in full at every update in O(s^3).

    `rank` is the number of eigenvalues that are kept.
    """

    def __init__(self, *, rank: int, matrix: np.ndarray) -> None:
        self.rank = rank
        self.update(matrix, matrix, matrix)

    def update(self, matrix: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
        values, vectors = np.linalg.eigh(matrix)
        self.values, self.vectors = values[-self.rank :], vectors[:, -self.rank :]

    def approximation(self) -> np.ndarray:
        return (self.vectors * self.values) @ self.vectors.T


class RandomizedSVD:
    """Truncated SVD of a matrix (s, s) by scikit-learn's randomized method, computed at every update in O(s^2 rank)."""

    def __init__(self, *, rank: int, matrix: np.ndarray) -> None:
        self.rank, self.random = rank, np.random.RandomState(0)
        self.update(matrix, matrix, matrix)

    def update(self, matrix: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
        from sklearn.utils.extmath import randomized_svd

        self.left, self.values, self.right = randomized_svd(matrix, self.rank, random_state=self.random)

    def approximation(self) -> np.ndarray:
        return (self.left * self.values) @ self.right


def _decomposition_lines(rows: Sequence[Row]) -> list[Line]:
    """Return one line per method: relative spectral error after the last update, the worst one, and the time.

    `rows` are the results of a run, as dictionaries.
    """
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
    """Draw relative spectral error and seconds over updates (Wen, Zhang et al. figure 4).

    `rows` are the results at the end of a run, and `curves` the results over rounds, as dictionaries.
    """
    figure = canvas(8.5, 6.6)
    styles = assign_styles(rows, "policy")
    panels = figure.subplots(2, 1)
    for axes, (value, name) in zip(panels, (("spectral_error", "||M - M~|| / ||M||"), ("seconds", "seconds"))):
        axes.set_label(value)
        plot_curves(axes, curves, value, styles)
        set_log_scale(axes, "y")
        axes.set(xlabel="updates", ylabel=name)
        axes.set_xlim(0, max(row["round"] for row in curves))
    set_title(figure, rows, "decompositions under low-rank updates")
    return figure


DECOMPOSITION = Figure("decomposition", _decomposition_lines, _draw_decomposition)


class GaussianMatrix:
    """Standard normal matrix of shape (size, size), to which random matrices of rank 3 are added.

    `rounds`, the number of updates, is not used.
    """

    def __init__(self, seed: int, size: int, rounds: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.matrix = self.rng.standard_normal((size, size))

    def grow(self) -> tuple[np.ndarray, np.ndarray]:
        """Add left right^T to the matrix, and return the random factors `left` and `right`, each (size, 3)."""
        left, right = self.rng.standard_normal((2, len(self.matrix), 3))
        self.matrix += left @ right.T
        return left, right


class SketchedKernel:
    """Sketched Gaussian kernel matrix of a growing set of points; the sketch is a sparse random projection (SJLT).

    Parameters
    ----------
    stream : callable
        `stream(seed)` returns the stream of a seed, whose rows are the points.
    seed : int
        Seed of the stream and of the sketch.
    size : int
        Number of columns of the sketch.
    rounds : int
        Number of updates.
    width : float, default 4.0
        Width of the kernel.
    """

    def __init__(self, stream: Callable[[int], Stream], seed: int, size: int, rounds: int, width: float = 4.0) -> None:
        self.precision = 0.5 / width**2
        self.examples = stream(seed).examples(0, FIRST + rounds).rows
        self.hashes = np.array([sjlt_row(i, size, 1, seed) for i in range(len(self.examples))])
        self.matrix, self.count = np.zeros((size, size)), 0
        for _ in range(FIRST):
            self.grow()

    def grow(self) -> tuple[np.ndarray, np.ndarray]:
        """Add the next point, and return `left` and `right`, each (size, 2): the matrix grows by left right^T."""
        n = self.count
        squares = ((self.examples[:n] - self.examples[n]) ** 2).sum(axis=1)
        a = self.hashes[n]
        b = self.hashes[:n].T @ np.exp(-self.precision * squares) + 0.5 * a
        left, right = np.stack([a, b], axis=1), np.stack([b, a], axis=1)
        self.matrix += left @ right.T
        self.count += 1
        return left, right


@dataclass(frozen=True)
class DecompositionStudy:
    """Study of decompositions of a matrix that low-rank updates change.

    Parameters
    ----------
    name : str
        Name on the command line and in the rows.
    description : str
        One line for `onepass list`.
    source : callable
        `source(seed, size, rounds)` returns an object with `matrix`, of shape (size, size), and a method `grow`, which
        changes it by left right^T and returns both factors.
    policies : tuple of Policy
        Decompositions that play unless others are given.
    rounds : int
        Number of updates unless another is given.
    seeds : int
        Number of seeds unless another is given.
    size : int, default 100
        Number of rows and columns.
    figure : Figure
        Table and picture of the results. The default is the figure of errors and seconds over updates.
    timed : bool, default True
        True if seconds are the result.
    grid : dict of str -> sequence of float
        Parameters that `tune` searches. The default is empty.
    """

    name: str
    description: str
    source: Callable[[int, int, int], Any]
    policies: tuple[Policy, ...]
    rounds: int
    seeds: int
    size: int = 100
    figure: Figure = DECOMPOSITION
    timed: bool = True
    grid: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def trial(self, policies: Sequence[Policy], seed: int) -> Trial:
        """Return the trial of one seed, in which all given policies update the same matrix.

        Parameters
        ----------
        policies : sequence of Policy
            Policies that update it.
        seed : int
            Seed of the problem and of the policies.

        Returns
        -------
        Trial
            The trial, which the runner advances step by step.
        """
        return DecompositionTrial(self, policies, seed)

    def warm_up(self, policy: Policy) -> None:
        """Let a throw-away copy of the method update a small matrix, so that its code is compiled.

        Results do not change, and later timings contain no compilation.

        Parameters
        ----------
        policy : Policy
            Policy whose compiled code is needed.
        """
        matrix, change = np.diag(np.arange(1.0, 101.0)), np.linspace(-1.0, 1.0, 200).reshape(100, 2)
        policy.build(matrix=matrix).update(matrix, change, change[:, ::-1].copy())

    def step_size(self, rounds: int) -> int:
        """Return the number of changes in a step of a run of `rounds`: a run has about 40 steps.

        Parameters
        ----------
        rounds : int
            Number of changes of the run.

        Returns
        -------
        int
            Changes in one step, at least 1.
        """
        return -(-rounds // CHECKPOINTS)


class DecompositionTrial:
    """Trial on the matrix of one seed: every method updates its decomposition after every change of the matrix.

    Only the updates are timed.
    """

    def __init__(self, study: DecompositionStudy, policies: Sequence[Policy], seed: int) -> None:
        self.study, self.policies, self.seed = study, policies, seed
        self.source = study.source(seed, study.size, study.rounds)
        self.known = [policy.build(matrix=self.source.matrix) for policy in policies]
        self.points: list[list[dict[str, Any]]] = [[] for _ in policies]

    def step(self, start: int, rounds: int) -> None:
        seconds = [points[-1]["seconds"] if points else 0.0 for points in self.points]
        for _ in range(rounds):
            left, right = self.source.grow()
            for i, method in enumerate(self.known):
                began = perf_counter()
                method.update(self.source.matrix, left, right)
                seconds[i] += perf_counter() - began
        matrix = self.source.matrix
        scale = np.linalg.norm(matrix, 2)
        for points, method, spent in zip(self.points, self.known, seconds):
            error = float(np.linalg.norm(matrix - method.approximation(), 2) / scale)
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


SUITES = (
    DecompositionStudy(
        "tisvd",
        "TISVD, full and randomized SVD of a Gaussian matrix under updates of rank 3, rank 30 of 100 "
        "(Wen, Zhang et al. figure 4)",
        GaussianMatrix,
        (
            Policy("TISVD", TISVD, {"rank": 30}),
            Policy("full SVD", FullSVD, {"rank": 30}),
            Policy("randomized SVD", RandomizedSVD, {"rank": 30}),
        ),
        rounds=50_000,
        seeds=1,
    ),
    DecompositionStudy(
        "tisvd-kernel",
        "TISVD, eigh, full and randomized SVD of spambase's sketched kernel, rank 30 of 100",
        partial(SketchedKernel, random_order_factory("spambase")),
        (
            Policy("TISVD of FORKS", SymmetricTISVD, {"rank": 30}),
            Policy("TISVD", TISVD, {"rank": 30}),
            Policy("eigh", FullEigh, {"rank": 30}),
            Policy("full SVD", FullSVD, {"rank": 30}),
            Policy("randomized SVD", RandomizedSVD, {"rank": 30}),
        ),
        rounds=4_000,
        seeds=3,
    ),
)
