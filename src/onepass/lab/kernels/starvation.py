"""Variance starvation (Calandriello et al. figure 2): which posteriors are uncertain far from all evaluations.

f is drawn from a GP on [0, 1] and evaluated in [0, 0.5] alone. Source: Calandriello et al. 2019 (BKB). Its
"Gaussian kernel with bandwidth sigma^2 = 100" can only mean exp(-100 (x - y)^2 / 2), a length scale of 0.1: with
exp(-(x - y)^2 / 200) f would be constant. The source states no noise: here it has standard deviation 0.1, and reg is
its variance.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from onepass import BKB, RBF
from onepass.features.kernels import Kernel
from onepass.lab.definition import Trial
from onepass.lab.drawing import canvas, set_title
from onepass.lab.figure import Figure, Line, Picture, Row
from onepass.lab.kernels.problems import ARMS, FUNCTION, NOISE, gp_draw, line
from onepass.lab.kernels.study import model_of_bandit
from onepass.lab.line_styles import BLACK, GREY, SMALL, assign_styles
from onepass.lab.policy import Policy
from onepass.lab.seeds import stream
from onepass.lab.tables import group_rows, mean_cell, policy_label

KERNEL, REG = RBF(0.1), 0.01
GRID = line(1001)
SEEN = GRID[:, 0] <= 0.5
EVALUATIONS = (6, 63, 215)
DRAWN = slice(None, None, 5)  # points of the grid in the curves


class Belief(NamedTuple):
    """Posterior distribution of a function f at A arms: means (A,) and standard deviations (A,)."""

    means: np.ndarray
    deviations: np.ndarray


def exact_belief(kernel: Kernel, reg: float, rows: np.ndarray, values: np.ndarray, arms: np.ndarray) -> Belief:
    """Return the posterior of a Gaussian process at arms (A, d), given noisy values (n,) at rows (n, d).

    `kernel` is the covariance of the process, and `reg` the variance of the noise.
    """
    inverse = np.linalg.inv(kernel(rows, rows) + reg * np.eye(len(rows)))
    across = kernel(arms, rows)
    variances = kernel.diagonal(arms) - np.einsum("ij,jk,ik->i", across, inverse, across, optimize=True)
    return Belief(across @ (inverse @ values), np.sqrt(np.maximum(variances, 0.0)))


class SubsetOfRegressors:
    """Sparse Gaussian process with the dictionary and mean of BKB, but with a variance that is known to be too small.

    The approximation is called subset of regressors. `arms` (A, d) are the arms, and `reg` is the noise variance. For
    the features z of an arm, the variance is reg z^T V^-1 z with V = Z^T Z + reg I, where Z has the features of the
    plays as rows. It lacks the variance that z cannot represent.
    """

    def __init__(self, *, arms: np.ndarray, kernel: Kernel, reg: float, seed: int) -> None:
        self.arms, self.kernel, self.reg, self.played = arms, kernel, reg, list[int]()
        self.bkb = BKB(arms, kernel, reg=reg, seed=seed)

    def learn(self, context: None, reward: float, arm: int) -> None:
        self.bkb.learn(context, reward, arm)
        self.played.append(arm)

    @property
    def dictionary(self) -> np.ndarray:
        return np.asarray(self.bkb.model.dictionary)

    @property
    def dictionary_size(self) -> int:
        return int(self.bkb.model.dictionary_size)

    def posterior(self) -> Belief:
        spectrum, axes = np.linalg.eigh(self.kernel(self.dictionary, self.dictionary))
        kept = spectrum > 1e-12 * spectrum[-1]
        z = self.kernel(self.arms, self.dictionary) @ (axes[:, kept] / np.sqrt(spectrum[kept]))
        gram = z[self.played].T @ z[self.played] + self.reg * np.eye(z.shape[1])
        variances = self.reg * np.einsum("ij,ij->i", z, np.linalg.solve(gram, z.T).T)
        return Belief(self.bkb.model.posterior().means, np.sqrt(variances))


def _starvation_lines(rows: Sequence[Row]) -> list[Line]:
    """Return one line per policy and number of evaluations: coverage, and deviations relative to exact ones.

    Coverage is the share of points in the half without evaluations at which the function is within 3 posterior standard
    deviations of the posterior mean. `rows` are the results of a run, as dictionaries.
    """
    return [
        {
            "policy": label,
            "evaluations": f"{evaluations:,}",
            "f within 3 sd, unseen half": f"{fmean(row['coverage'] for row in own):.1%}",
            "sd / exact sd, unseen half": mean_cell(own, "unseen_deviation", ".3f"),
            "sd / exact sd, seen half": mean_cell(own, "seen_deviation", ".3f"),
            "dictionary": mean_cell(own, "dictionary_size", ",.1f"),
            "seeds": str(len(own)),
        }
        for (label, evaluations), own in group_rows(rows, lambda row: (row["policy"], row["rounds"])).items()
    ]


def _draw_starvation(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Draw the first seed's function, and every policy's posterior mean and 3 deviations, by number of evaluations.

    `rows` are the results at the end of a run, and `curves` the results over rounds, as dictionaries.
    """
    first = [row for row in curves if row["seed"] == curves[0]["seed"]]
    times, columns = group_rows(first, lambda row: row["round"]), group_rows(first, policy_label)
    figure = canvas(1.0 + 3.0 * len(columns), 1.0 + 2.2 * len(times))
    panels = figure.subplots(len(times), len(columns), sharex=True, sharey=True, squeeze=False)
    styles = assign_styles(rows, "policy")
    for axes, row in zip(panels.ravel(), (row for own in times.values() for row in own)):
        x, mean, deviation = (np.asarray(row[name]) for name in ("x", "mean", "deviation"))
        look = styles[row["policy"]]
        axes.set_label(f"{row['policy']} {row['round']}")
        axes.fill_between(x, mean - 3 * deviation, mean + 3 * deviation, color=look["color"], alpha=0.2, linewidth=0)
        axes.plot(x, mean, label=row["policy"], **look)
        axes.plot(x, row["function"], color=GREY, linestyle=(0, (4, 1.5)), linewidth=1.4)
        axes.plot(row["evaluated"], row["values"], ".", color=BLACK, markersize=3, alpha=0.6)
        if row["recipe"] != "GPUCB":
            ground = axes.get_xaxis_transform()
            axes.plot(row["dictionary"], [0.03] * len(row["dictionary"]), "|", color=look["color"], transform=ground)
    for axes, label in zip(panels[0], columns):
        axes.set_title(label)
    for axes, evaluations in zip(panels[:, 0], times):
        axes.set_ylabel(f"{evaluations} evaluations")
    figure.supxlabel(
        "line and band: mean and 3 standard deviations; dashed: f; dots: evaluations; ticks below: dictionary",
        fontsize=SMALL,
    )
    set_title(figure, first, "f and what is believed of it")
    return figure


STARVATION = Figure("starvation", _starvation_lines, _draw_starvation)


@dataclass(frozen=True)
class StarvationStudy:
    """Study of *variance starvation*: standard deviations that are too small where nothing was played.

    All policies learn the same noisy values of one function, and then their posteriors are compared.

    Parameters
    ----------
    name : str
        Name in rows and on the command line.
    description : str
        One line for `onepass list`.
    policies : tuple of Policy
        Policies that learn.
    seeds : int
        Number of seeds.
    evaluations : tuple of int, default (6, 63, 215)
        Numbers of evaluations after which the posteriors are compared, in increasing order.
    figure : Figure
        Table and picture of the results. The default shows coverage and deviations.
    grid : dict of str -> sequence of float
        Parameters that `tune` searches. The default is empty.
    timed : bool, default False
        True if seconds are the result.
    """

    name: str
    description: str
    policies: tuple[Policy, ...]
    seeds: int
    evaluations: tuple[int, ...] = EVALUATIONS
    figure: Figure = STARVATION
    grid: Mapping[str, Sequence[float]] = field(default_factory=dict)
    timed: bool = False

    @property
    def rounds(self) -> int:
        """Number of rounds of the study, the largest number of evaluations."""
        return self.evaluations[-1]

    def trial(self, policies: Sequence[Policy], seed: int) -> Trial:
        """Return the trial of one seed, in which all given policies learn the same evaluations.

        Parameters
        ----------
        policies : sequence of Policy
            Policies that learn.
        seed : int
            Seed of the problem and of the policies.

        Returns
        -------
        Trial
            The trial, which the runner advances step by step.
        """
        return StarvationTrial(self, policies, seed)

    def warm_up(self, policy: Policy) -> None:
        """Let a throw-away copy of the policy learn ten evaluations, so that its code is compiled.

        Results do not change, and later timings contain no compilation.

        Parameters
        ----------
        policy : Policy
            Policy whose compiled code is needed.
        """
        bandit = policy.build(arms=GRID[::50], kernel=KERNEL, seed=0)
        for arm in range(10):
            bandit.learn(None, 0.0, arm)
        model_of_bandit(bandit).posterior()

    def step_size(self, rounds: int) -> int:
        """Return the number of rounds in a step of a run of `rounds`, which is the whole run.

        Parameters
        ----------
        rounds : int
            Number of rounds of the run.

        Returns
        -------
        int
            Rounds in one step, at least 1.
        """
        return rounds


class StarvationTrial:
    """Trial on one random function, which is evaluated at random points of [0, 0.5] with noise."""

    def __init__(self, study: StarvationStudy, policies: Sequence[Policy], seed: int) -> None:
        self.study, self.policies, self.seed = study, policies, seed
        self.function = gp_draw(KERNEL, GRID, stream(seed, FUNCTION))
        self.bandits = [policy.build(arms=GRID, kernel=KERNEL, seed=seed) for policy in policies]
        self.played, self.values = list[int](), list[float]()
        self.found: list[dict[str, Any]] = []
        self.drawn: list[dict[str, Any]] = []

    def step(self, start: int, rounds: int) -> None:
        for t in range(start, start + rounds):
            arm = int(stream(self.seed, ARMS, t).integers(SEEN.sum()))
            value = float(self.function[arm] + REG**0.5 * stream(self.seed, NOISE, t).standard_normal())
            self.played.append(arm)
            self.values.append(value)
            for bandit in self.bandits:
                bandit.learn(None, value, arm)
            if t + 1 in self.study.evaluations or t + 1 == start + rounds:
                self._record_beliefs(t + 1)

    def _record_beliefs(self, evaluations: int) -> None:
        """Record every policy's posterior after this number of evaluations, and its comparison with the exact one."""
        values = np.asarray(self.values)
        exact = exact_belief(KERNEL, REG, GRID[self.played], values, GRID)
        for policy, bandit in zip(self.policies, self.bandits):
            known = model_of_bandit(bandit)
            belief = known.posterior()
            label = {**policy.columns(), "kernel": repr(KERNEL), "seed": self.seed}
            inside = np.abs(self.function - belief.means) <= 3.0 * belief.deviations
            self.found.append(
                {
                    **label,
                    "rounds": evaluations,
                    "coverage": float(inside[~SEEN].mean()),
                    "unseen_deviation": float(belief.deviations[~SEEN].mean() / exact.deviations[~SEEN].mean()),
                    "seen_deviation": float(belief.deviations[SEEN].mean() / exact.deviations[SEEN].mean()),
                    "dictionary_size": int(known.dictionary_size),
                }
            )
            self.drawn.append(
                {
                    **label,
                    "round": evaluations,
                    "x": GRID[DRAWN, 0].tolist(),
                    "function": self.function[DRAWN].tolist(),
                    "mean": belief.means[DRAWN].tolist(),
                    "deviation": belief.deviations[DRAWN].tolist(),
                    "evaluated": GRID[self.played, 0].tolist(),
                    "values": list(self.values),
                    "dictionary": known.dictionary[:, 0].tolist(),
                }
            )

    def rows(self) -> list[dict[str, Any]]:
        """Return one row of results per policy and number of evaluations: coverage and deviations."""
        return self.found

    def curves(self) -> list[dict[str, Any]]:
        """Return one row per policy and number of evaluations, with posterior, evaluations and dictionary."""
        return self.drawn


SUITE = StarvationStudy(
    "variance-starvation",
    "a GP on [0, 1] evaluated in [0, 0.5]: who is still uncertain in (0.5, 1] (Calandriello et al. figure 2)",
    (
        Policy("exact GP", "GPUCB", {"reg": REG}),
        Policy("BKB", "BKB", {"reg": REG}),
        Policy("subset of regressors", SubsetOfRegressors, {"reg": REG}),
    ),
    seeds=20,
)
