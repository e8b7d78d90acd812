"""Matrix studies: all designs append the same rows, and A_hat is compared with A = reg I + sum of x x^T.

spectral_error = ||A - A_hat||_2, which `error_bound` bounds; inverse_error = ||A^-1 - A_hat^-1||_2 / ||A^-1||_2.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
import scipy.linalg

from onepass.lab.definition import Trial, curve_rows, final_rows
from onepass.lab.figure import Figure
from onepass.lab.matrices.figures import ERROR, INVERSES
from onepass.lab.policy import Policy


@dataclass(frozen=True)
class MatrixStudy:
    """Study of the errors of sketched matrices; the policies that it compares are sketches.

    Parameters
    ----------
    name : str
        Name on the command line and in the rows.
    description : str
        One line for `onepass list`.
    stream : callable
        `stream(seed, n)` returns the first n rows of a seed, (n, dim).
    policies : tuple of Policy
        Designs that play unless others are given.
    rounds : int
        Number of rows unless another is given.
    seeds : int
        Number of seeds unless another is given.
    figure : Figure
        Table and picture of the results: ||A - A_hat|| along the stream (the default), or the relative error of A^-1
        at its end.
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
    figure: Figure = ERROR
    grid: Mapping[str, Sequence[float]] = field(default_factory=dict)
    timed: bool = False

    def trial(self, policies: Sequence[Policy], seed: int) -> Trial:
        """Return the trial of one seed, in which all given policies sketch the same rows.

        Parameters
        ----------
        policies : sequence of Policy
            Policies that sketch them.
        seed : int
            Seed of the problem and of the policies.

        Returns
        -------
        Trial
            The trial, which the runner advances step by step.
        """
        return MatrixTrial(self, policies, seed)

    def warm_up(self, policy: Policy) -> None:
        """Let a throw-away copy of the design learn two rows, so that its code is compiled.

        Results do not change, and later timings contain no compilation.

        Parameters
        ----------
        policy : Policy
            Policy whose compiled code is needed.
        """
        rows = self.stream(0, 2)
        policy.build(dim=rows.shape[1]).append(rows)

    def step_size(self, rounds: int) -> int:
        """Return the number of rows in a step of a run of `rounds`.

        A run has about 50 steps, or one if the relative error of A^-1 is compared at its end.

        Parameters
        ----------
        rounds : int
            Number of rows of the run.

        Returns
        -------
        int
            Rows in one step, at least 1.
        """
        return rounds if self.figure.name in INVERSES else -(-rounds // 50)


class MatrixTrial:
    """Trial of all sketches on the rows of one seed, compared with the exact Gram matrix of the rows."""

    def __init__(self, study: MatrixStudy, policies: Sequence[Policy], seed: int) -> None:
        self.study, self.policies, self.seed = study, policies, seed
        dim = study.stream(seed, 1).shape[1]
        self.designs = [policy.build(dim=dim) for policy in policies]
        self.gram = np.zeros((dim, dim))
        self.seconds = [0.0] * len(policies)
        self.rows_seen = np.empty((0, dim))
        self.points: list[list[dict[str, Any]]] = [[] for _ in policies]

    def step(self, start: int, rounds: int) -> None:
        if start + rounds > len(self.rows_seen):
            self.rows_seen = self.study.stream(self.seed, max(self.study.rounds, start + rounds))
        rows = np.ascontiguousarray(self.rows_seen[start : start + rounds])
        gram = self.gram + rows.T @ rows
        spectrum = np.linalg.eigvalsh(gram) if self.study.figure.name in INVERSES else np.empty(0)
        points = []
        for i, (policy, design) in enumerate(zip(self.policies, self.designs)):
            began = perf_counter()
            design.append(rows)
            self.seconds[i] += perf_counter() - began
            points.append(
                {
                    "round": start + rounds,
                    "seconds": self.seconds[i],
                    "memory_bytes": design.memory_usage(),
                    "error_bound": design.error_bound(),
                    **errors(gram, spectrum, design.matrix(), float(policy.params["reg"])),
                }
            )
        self.gram = gram
        for known, point in zip(self.points, points):
            known.append(point)

    def rows(self) -> list[dict[str, Any]]:
        errors = ("error_bound", "spectral_error", "inverse_error")
        return final_rows(
            self.policies, self.seed, self.points, lambda points: {name: points[-1][name] for name in errors}
        )

    def curves(self) -> list[dict[str, Any]]:
        return curve_rows(self.policies, self.seed, self.points)


def errors(gram: np.ndarray, spectrum: np.ndarray, approximation: np.ndarray, reg: float) -> dict[str, float | None]:
    """Return two errors of A_hat, an approximation of A = Gram matrix + reg I, by name.

    "spectral_error" is the largest absolute eigenvalue of A - A_hat. "inverse_error" is the largest absolute eigenvalue
    of A^-1 - A_hat^-1, divided by the largest eigenvalue of A^-1. It is None if `spectrum` is empty.

    - gram, approximation (dim, dim): the Gram matrix, and A_hat.
    - spectrum (dim,): eigenvalues of the Gram matrix in increasing order, or an empty array.
    """
    exact = gram + reg * np.eye(len(gram))
    spectral = float(np.abs(np.linalg.eigvalsh(exact - approximation)).max())
    if spectrum.size == 0:
        return {"spectral_error": spectral, "inverse_error": None}
    difference = scipy.linalg.inv(exact) - scipy.linalg.inv(approximation)
    relative = float(np.abs(np.linalg.eigvalsh((difference + difference.T) / 2)).max() * (reg + spectrum[0]))
    return {"spectral_error": spectral, "inverse_error": relative}
