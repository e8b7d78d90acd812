"""Recommender studies (Shustova et al.): models learn the warm-up, then every month is scored before it is learned.

A round is a step, a month or a week; trial.py defines the metrics.

Users without features ("cold") have rows of their own in the results. There, every model treats them as the mean user
of the warm-up. The row of `Popularity` shows the other way to serve them. Models learn from known users alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from onepass import Factors
from onepass.lab.definition import Trial
from onepass.lab.figure import Figure
from onepass.lab.policy import Policy
from onepass.lab.recommender.figures import RECOMMENDER
from onepass.lab.recommender.interactions import Interactions, Problem, prepare, warm_up
from onepass.lab.recommender.policies import Recommender
from onepass.lab.recommender.trial import K, RecommenderTrial
from onepass.lab.seeds import FIRST_TUNING_SEED

EXPLORATIONS = (-1.0, -0.3, -0.1, -0.03, 0.0, 0.1, 1.0, 10.0)
REGS = (0.1, 1.0, 10.0, 1e2, 1e3, 1e4, 1e5)


@dataclass(frozen=True)
class RecommenderStudy:
    """Study of a recommender's problem, made from interactions.

    The first 80% of the interactions are the warm-up, which is learned before the first scored step. Tuning (seeds from
    1000) sees the warm-up alone: its first 80% are learned, and the rest is scored in steps.

    Parameters
    ----------
    name : str
        Name on the command line and in the rows.
    description : str
        One line for `onepass list`.
    interactions : callable
        `interactions()` returns the interactions of users with items in time order, as an object with the arrays
        `users`, `items`, `ratings` and `times` (n,), times in seconds.
    factors : int
        Number r of features of users and of arms; contexts have r^2 dimensions.
    policies : tuple of Policy
        Policies that play unless others are given.
    rounds : int
        Number of steps that are scored, if there are so many.
    seeds : int, default 1
        Number of seeds unless another is given.
    unit : {"month", "week"}, default "month"
        Length of a step.
    reward : {"rating", "liked"}, default "rating"
        Reward of an interaction: rating / 5, or 1 for 4 stars and more, else 0.
    leaking : bool, default False
        True to take features, users and arms from all data, the test part included.
    figure : Figure
        Table and picture of the results. The default is the figure of hits over steps.
    grid : dict of str -> sequence of float
        Parameters that `tune` searches, with their values. The default is a grid of exploration and reg.
    timed : bool, default False
        True if seconds are the result.
    """

    name: str
    description: str
    interactions: Callable[[], Interactions]
    factors: int
    policies: tuple[Policy, ...]
    rounds: int
    seeds: int = 1
    unit: str = "month"
    reward: str = "rating"
    leaking: bool = False
    figure: Figure = RECOMMENDER
    grid: Mapping[str, Sequence[float]] = field(default_factory=lambda: {"exploration": EXPLORATIONS, "reg": REGS})
    timed: bool = False

    def problem(self, seed: int, factors: int | None = None, arms: int | None = None) -> Problem:
        """Make the problem of a seed, which scores the test part, or for tuning the end of the warm-up.

        Parameters
        ----------
        seed : int
            Seed; from 1000 on it is a seed of tuning.
        factors : int, default None
            Number of features of users and arms. None takes the study's.
        arms : int, default None
            Number of arms, the most frequent ones. None takes all.

        Returns
        -------
        Problem
            Features, warm-up and steps.
        """
        interactions = self.interactions()
        if seed >= FIRST_TUNING_SEED:
            interactions = interactions.part(slice(warm_up(interactions)))
        return prepare(interactions, factors or self.factors, self.unit, arms, self.leaking)

    def rewards(self, log: Interactions) -> np.ndarray:
        """Return the rewards of interactions, as the study's `reward` defines them.

        Parameters
        ----------
        log : Interactions
            Interactions with their ratings.

        Returns
        -------
        array of shape (n,)
            The reward of each interaction.
        """
        return log.ratings / 5 if self.reward == "rating" else (log.ratings >= 4).astype(np.float64)

    def trial(self, policies: Sequence[Policy], seed: int) -> Trial:
        """Return the trial of one seed, in which all given policies recommend to the same users.

        Parameters
        ----------
        policies : sequence of Policy
            Policies that recommend.
        seed : int
            Seed of the problem and of the policies.

        Returns
        -------
        Trial
            The trial, which the runner advances step by step.
        """
        return RecommenderTrial(partial(self.problem, seed), self.rewards, policies, seed)

    def warm_up(self, policy: Policy) -> None:
        """Let a throw-away copy of the policy learn and recommend a little, so that its code is compiled.

        Results do not change, and later timings contain no compilation.

        Parameters
        ----------
        policy : Policy
            Policy whose compiled code is needed.
        """
        width = (policy.factors if isinstance(policy, Recommender) else None) or self.factors
        rng = np.random.default_rng(0)
        users, arms = rng.standard_normal((4, width)), rng.standard_normal((20, width))
        model = policy.build(dim=(width, width), seed=0)
        for batch in (1, 40):
            who, what = rng.integers(4, size=batch), rng.integers(20, size=batch)
            model.learn(Factors(users[who], arms[what]), np.ones(batch), arm=what)
        model.recommend(Factors(users, arms), K, arms=range(20), exclude=[{0}] * 4)

    def step_size(self, rounds: int) -> int:
        """Return 1: every scored step of the problem is a step of the run.

        Parameters
        ----------
        rounds : int
            Number of steps of the run.

        Returns
        -------
        int
            The number 1.
        """
        return 1
