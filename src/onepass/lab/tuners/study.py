"""Studies of tuners: the best value after every trial, and the cost of a trial.

    onepass run tuning-branin

The other studies end in -hartmann6, -svc, -ridge and -tree. All tuners are samplers of Optuna (`onepass[optuna]`): that
of onepass, TPE, and a random sampler.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from time import perf_counter
from typing import Any

import numpy as np

from onepass.lab.definition import Study, Trial, curve_rows, final_rows
from onepass.lab.drawing import canvas, plot_curves, set_log_scale, set_title
from onepass.lab.figure import Figure, Line, Picture, Row
from onepass.lab.line_styles import assign_styles
from onepass.lab.policy import Policy
from onepass.lab.tables import group_rows, policy_label
from onepass.lab.tuners.problems import PROBLEMS, Problem, Settings

QUARTILES = (0.25, 0.5, 0.75)
WARM = 20  # number of trials of a throw-away tuner


def _bandit_sampler(seed: int) -> Any:
    """Return the sampler of `onepass.adapters.optuna`."""
    from onepass.adapters.optuna import BanditSampler

    return BanditSampler(seed=seed)


def _tpe_sampler(seed: int) -> Any:
    """Return Optuna's TPE sampler with its defaults."""
    from optuna.samplers import TPESampler

    return TPESampler(seed=seed)


def _random_sampler(seed: int) -> Any:
    """Return Optuna's random sampler."""
    from optuna.samplers import RandomSampler

    return RandomSampler(seed=seed)


SAMPLERS: dict[str, Callable[[int], Any]] = {
    "onepass": _bandit_sampler,
    "TPE": _tpe_sampler,
    "uniform": _random_sampler,
}


class OptunaTuner:
    """Tuner that wraps a study of Optuna; `ask` returns the next settings, and `tell` reports their value.

    `settings` has Optuna's distribution of every setting by name. `sampler` is a name in `SAMPLERS`.
    """

    def __init__(self, *, settings: Settings, seed: int, sampler: str) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.study, self.settings = optuna.create_study(sampler=SAMPLERS[sampler](seed)), settings

    def ask(self) -> Settings:
        self.trial = self.study.ask(self.settings)
        return dict(self.trial.params)

    def tell(self, value: float) -> None:
        self.study.tell(self.trial, value)


def best_lines(rows: Sequence[Row]) -> list[Line]:
    """Return the table as one line per tuner: quartiles of the best value over seeds, and milliseconds per trial.

    `rows` are the results of a run, as dictionaries.
    """
    lines = []
    for label, own in group_rows(rows, policy_label).items():
        low, middle, high = np.quantile([row["best"] for row in own], QUARTILES)
        lines.append(
            {
                "": label,
                "median of the best": f"{middle:.4g}",
                "quartiles": f"{low:.4g}, {high:.4g}",
                "ms a trial": f"{fmean(row['microseconds_per_round'] for row in own) / 1000:.2f}",
                "trials": f"{own[0]['rounds']:,}",
                "seeds": str(len(own)),
            }
        )
    return lines


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    low, middle, high = np.quantile(values, QUARTILES).tolist()
    return low, middle, high


def _draw_best(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Draw the best value so far over trials: median and quartiles over seeds.

    `rows` are the results at the end of a run, and `curves` the results over rounds, as dictionaries.
    """
    figure = canvas(8.5, 4.8)
    axes = figure.subplots()
    axes.set_label("best")
    plot_curves(axes, curves, "best", assign_styles(rows, "policy"), band=quartiles)
    axes.set_xlim(0, max(row["round"] for row in curves))
    if all(row["best"] > 0.0 for row in curves):
        set_log_scale(axes, "y")
    axes.set(xlabel="trials", ylabel="best value so far")
    set_title(figure, rows, "the best so far, median and quartiles")
    return figure


BEST = Figure("best", best_lines, _draw_best)


@dataclass(frozen=True)
class TunerStudy:
    """Study of tuners that minimize one of the functions in `PROBLEMS`; a round is the evaluation of one setting.

    `problem` is the name of the function. `Study` describes the other fields.
    """

    name: str
    description: str
    problem: str
    policies: tuple[Policy, ...]
    rounds: int = 100
    seeds: int = 20
    figure: Figure = BEST
    grid: Mapping[str, Sequence[float]] = field(default_factory=dict)
    timed: bool = True

    def trial(self, policies: Sequence[Policy], seed: int) -> Trial:
        return TunerTrial(PROBLEMS[self.problem](), policies, seed)

    def warm_up(self, policy: Policy) -> None:
        TunerTrial(PROBLEMS["branin"](), [policy], 0).step(0, WARM)

    def step_size(self, rounds: int) -> int:
        return 1


class TunerTrial:
    """Trial of all tuners on one function with one seed.

    Seconds are those of the tuners' methods `ask` and `tell`, not of the function.
    """

    def __init__(self, problem: Problem, policies: Sequence[Policy], seed: int) -> None:
        self.problem, self.policies, self.seed = problem, policies, seed
        self.tuners = [policy.build(settings=problem.settings, seed=seed) for policy in policies]
        self.points: list[list[dict[str, Any]]] = [[] for _ in policies]

    def step(self, start: int, rounds: int) -> None:
        for t in range(start, start + rounds):
            for tuner, points in zip(self.tuners, self.points):
                before = points[-1] if points else {"best": np.inf, "seconds": 0.0}
                began = perf_counter()
                settings = tuner.ask()
                asked = perf_counter() - began
                value = self.problem.value(settings)
                began = perf_counter()
                tuner.tell(value)
                seconds = before["seconds"] + asked + perf_counter() - began
                points.append({"round": t + 1, "best": min(value, before["best"]), "seconds": seconds})

    def rows(self) -> list[dict[str, Any]]:
        return final_rows(self.policies, self.seed, self.points, lambda points: {"best": points[-1]["best"]})

    def curves(self) -> list[dict[str, Any]]:
        return curve_rows(self.policies, self.seed, self.points)


TUNERS = tuple(Policy(label, OptunaTuner, {"sampler": label}) for label in SAMPLERS)
WHAT = {
    "branin": "Branin's function, two settings: regret",
    "hartmann6": "Hartmann's function, six settings: regret",
    "svc": "SVC on 600 digits, two settings: error of three folds",
    "ridge": "KernelRidge on diabetes, four settings: squared error of three folds",
    "tree": "a decision tree on breast cancer, five settings: log loss of three folds",
}
SUITES: tuple[Study, ...] = tuple(TunerStudy(f"tuning-{name}", what, name, TUNERS) for name, what in WHAT.items())
