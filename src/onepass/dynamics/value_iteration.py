"""Optimistic least-squares value iteration in linear Markov decision processes with heavy-tailed rewards.

    reward of step h: <phi, theta_h> + noise,   E[V(s') | phi] linear in phi for every function V

    w_h = Lambda_h^-1 sum phi V_{h+1}(s'),   Lambda_h = reg I + sum phi phi^T      over all transitions of step h
    Q_h = min(phi^T (theta_h + w_h) + beta ||phi||_{V_h^-1} + beta_P ||phi||_{Lambda_h^-1},  (H - h) bound),  h = 0..H-1
    V_h(s) = max over actions of Q_h

Values are those of LSVI-UCB (Jin, Yang, Wang and Jordan 2020), whose rewards are known and bounded, with reg = 1 and
beta_P = c m H sqrt(log(2 m T / delta)), T the number of steps and c an unknown absolute constant. Noisy rewards have a
regression and a bonus of their own: one-pass Huber regression (Wang et al. 2025, section 5.1, name the use and print no
algorithm), in place of the adaptive Huber regression of Huang et al. 2024. The plan is computed again only when the
determinant of some V_h or Lambda_h has doubled, which happens O(m H log K) times in K episodes (rare switching,
Abbasi-Yadkori et al. 2011). Here phi has m entries, H is the number of steps of an episode, and V_h is the design of
the rewards of step h. Rewards are learned in one pass. All transitions are stored, because w_h needs them; the features
of a next state are stored once, however often the agent came to it.
"""

from typing import Any, NamedTuple, Self

import numpy as np

from onepass.design.contract import log_det, matrix
from onepass.design.exact import Exact
from onepass.estimator import contract
from onepass.estimator.estimator import Estimator
from onepass.estimator.one_pass_huber import OnePassHuber
from onepass.estimator.ridge import Ridge
from onepass.foundation import check, files
from onepass.foundation import state as states
from onepass.foundation.check import quote
from onepass.foundation.deferred_signals import defer_signals
from onepass.foundation.registry import savable
from onepass.foundation.rw_lock import reading, writing

DOUBLED = float(np.log(2.0))  # growth of a log det after which the plan is made anew
KINDS = ("huber", "ridge")
ENDED = -1  # in place of the number of a next state


class Plan(NamedTuple):
    """Plan of step h of an episode: the numbers from which the optimistic value of an action is computed.

    The value of an action with features phi (m,) is phi^T coefficients, plus sqrt(phi^T B phi) for B = `reward_bonus`
    and for B = `value_bonus` (m, m). These are the inverses of the designs of rewards and of next values, multiplied by
    the squares of their exploration factors.
    """

    coefficients: np.ndarray
    reward_bonus: np.ndarray
    value_bonus: np.ndarray


class StepData(NamedTuple):
    """Transitions of one step of an episode.

    `rows` are the features (m,) of the actions taken. `places` are the numbers of the next states, -1 at the end of the
    episode.
    """

    rows: list[np.ndarray]
    places: list[int]


class SavedValues(NamedTuple):
    """State of `OptimisticValueIteration` in a file, with all n transitions in the order of their steps.

    - rewards: states of the regressions of rewards, one for each step.
    - gram (H, m, m): the matrix reg I + sum of phi phi^T over the features phi learned at each of the H steps.
    - steps, places (n,): step of each transition, and the number of its next state, or -1 at the end of an episode.
    - rows (n, m): features of the actions taken.
    - counts (s,), following (sum of counts, m): number of actions of every next state, and their features.
    - planned (2, H): log determinants for which the plan was made.
    - coefficients (H, m), reward_bonus, value_bonus (H, m, m): the plan.
    """

    rewards: tuple[Any, ...]
    gram: np.ndarray
    steps: np.ndarray
    places: np.ndarray
    rows: np.ndarray
    counts: np.ndarray
    following: np.ndarray
    planned: np.ndarray
    coefficients: np.ndarray
    reward_bonus: np.ndarray
    value_bonus: np.ndarray


@savable
class OptimisticValueIteration(files.Owner):
    """Optimistic value iteration (LSVI-UCB) for episodes of fixed length, whose rewards may have heavy tails.

    Parameters
    ----------
    n_steps : int
        Number H of steps of an episode, at least 1.
    dim : int
        Number m of features of a pair of state and action, at least 1.
    estimator : {"huber", "ridge"}, default "huber"
        Regression of rewards: one-pass Huber (Wang et al.) or ridge.
    epsilon : float, default 1.0
        As for `OnePassHuber`: moments of the noise of order 1 + epsilon are finite.
    nu : float, default None
        Size of the noise of rewards, above 0, as for `OnePassHuber`. None estimates it.
    reward_bound : float, default 1.0
        Largest mean of a reward, above 0. Means are assumed to be at least 0. Noise may be of any size.
    exploration : float, default 1.0
        Multiplier beta, at least 0, of the width of a predicted reward, which is added to it. Its unit is the size of
        the noise for "huber", and a unit of reward for "ridge".
    value_exploration : float, default 0.6
        Multiplier beta_P, at least 0, of the width of the predicted value of the next state. At step h, counted from 0,
        its unit is (H - h - 1) reward_bound, the largest value of the next state.
    reg : float, default 1.0
        Ridge penalty, above 0, of the regressions of rewards and of values.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    The default multipliers were the most reliable ones on nine chains, squares and random processes
    (docs/processes_defaults.md). They are far smaller than those of the theorem, which are too large to be of use.
    `onepass.dynamics.value_iteration.jin_multiplier` computes the multiplier of the theorem. A decision costs O(A m^2)
    for A actions. A new plan costs O(K m + S A m^2) for each step of the episode, with K transitions learned at this
    step, which led to S different states. Memory grows by m numbers for every transition, and by A m numbers for every
    different state.

    References
    ----------
    Jin, Yang, Wang and Jordan 2020; Wang, Zhang, Zhao and Zhou 2025, section 5.1.

    Examples
    --------
    Two states, two actions; the second action leads to the second state, where rewards are 1 on average.

    >>> import numpy as np
    >>> from onepass.dynamics import OptimisticValueIteration
    >>> rng = np.random.default_rng(0)
    >>> features = np.eye(4).reshape(2, 2, 4)  # of states and actions
    >>> agent = OptimisticValueIteration(3, 4)
    >>> for episode in range(200):
    ...     state = 0
    ...     for h in range(3):
    ...         action = agent.decide(h, features[state])
    ...         reward = state + rng.standard_t(2.1)
    ...         agent.learn(h, features[state, action], reward, features[action])
    ...         state = action
    ...     _ = agent.end_episode()
    >>> agent.decide(0, features[0])
    1
    """

    def __init__(
        self,
        n_steps: int,
        dim: int,
        *,
        estimator: str = "huber",
        epsilon: float = 1.0,
        nu: float | None = None,
        reward_bound: float = 1.0,
        exploration: float = 1.0,
        value_exploration: float = 0.6,
        reg: float = 1.0,
    ) -> None:
        self.n_steps, self.dim = check.integer("n_steps", n_steps, 1), check.integer("dim", dim, 1)
        self.kind: str = check.choice("estimator", estimator, KINDS)
        self.reward_bound, self.reg = check.positive("reward_bound", reward_bound), check.positive("reg", reg)
        self.exploration = check.real("exploration", exploration)
        self.value_exploration = check.real("value_exploration", value_exploration)
        for name, value in (("exploration", self.exploration), ("value_exploration", self.value_exploration)):
            if value < 0.0:
                raise ValueError(f"{name} must be at least 0, got {quote(value)}")
        self._options = {"epsilon": epsilon, "nu": nu}
        self._estimator = self._make_estimator(epsilon, nu)
        self._rewards = [self._estimator.begin() for _ in range(self.n_steps)]
        self._data = [StepData([], []) for _ in range(self.n_steps)]
        self._states: list[np.ndarray] = []  # features (A, m) of every next state
        self._numbers: dict[bytes, int] = {}  # number of a next state by its features
        self._plans: list[Plan] = []
        if not states.is_abstract():
            self._gram = self.reg * np.tile(np.eye(self.dim), (self.n_steps, 1, 1))  # Lambda_h
            self._planned = self._log_dets()
            self._plans = self._make_plans()

    def _make_estimator(self, epsilon: Any, nu: Any) -> Estimator:
        design = Exact(dim=self.dim, reg=self.reg)
        if self.kind == "huber":
            return OnePassHuber(design, epsilon=epsilon, nu=nu)
        if (epsilon, nu) != (1.0, None):
            raise ValueError("epsilon and nu must be left out for ridge regression")
        return Ridge(design)

    @reading
    def decide(self, step: int, phis: Any) -> int:
        """Choose the action of the largest optimistic value, and the first of equal ones. Nothing changes.

        Parameters
        ----------
        step : int
            Step h of the episode, from 0 to n_steps - 1.
        phis : array of shape (A, dim)
            Features of the present state with every action.

        Returns
        -------
        int
            Index of the action.

        Raises
        ------
        ValueError
            If the step or a shape does not fit, or a number is not finite.
        """
        return int(np.argmax(self._values(step, phis)))

    @reading
    def values(self, step: int, phis: Any) -> np.ndarray:
        """Return the optimistic value Q_h of every action at step h, under the present plan.

        Parameters
        ----------
        step : int
            Step h of the episode, from 0 to n_steps - 1.
        phis : array of shape (A, dim)
            Features of a state with every action.

        Returns
        -------
        ndarray of shape (A,)
            Optimistic values, at most (n_steps - step) reward_bound.

        Raises
        ------
        ValueError
            If the step or a shape does not fit, or a number is not finite.
        """
        return self._values(step, phis)

    def _values(self, step: Any, phis: Any) -> np.ndarray:
        h = check.integer("step", step, 0, self.n_steps - 1)
        return self._q(h, self._plans[h], self._rows("phis", phis, (2,)))

    @writing
    def learn(self, step: int, phi: Any, reward: float, next_phis: Any = None, nu: float | None = None) -> None:
        """Learn one transition.

        Parameters
        ----------
        step : int
            Step h of the episode, from 0 to n_steps - 1.
        phi : array of shape (dim,)
            Features of the state and the action taken.
        reward : float
            Reward.
        next_phis : array of shape (A, dim), default None
            Features of the next state with every action. None if the episode has ended, as it has after the last step.
        nu : float, default None
            Size of the noise of this reward, above 0. Only "huber" accepts it.

        Raises
        ------
        ValueError
            If the step or a shape does not fit, or a number is not finite. Nothing is learned then.
        """
        h = check.integer("step", step, 0, self.n_steps - 1)
        row, value = self._rows("phi", phi, (1,)), check.real("reward", reward)
        following = None if next_phis is None else self._rows("next_phis", next_phis, (2,)).copy()
        told = None if nu is None else check.positive("nu", nu)
        if told is not None and not self._estimator.takes_nu:
            raise ValueError("nu must be None for ridge regression, which uses no noise scale")
        with defer_signals():
            state = self._rewards[h]
            if told is not None:
                state = contract.set_next_noise(state, told)
            self._rewards[h] = contract.update(state, row, value)
            self._gram[h] += np.outer(row, row)
            self._data[h].rows.append(row.copy())
            self._data[h].places.append(ENDED if following is None else self._number(following))

    @writing
    def end_episode(self) -> bool:
        """Make the plan again if the determinant of some step's matrix has doubled since the last plan.

        A step has two matrices: the designs of rewards and of next values.

        Returns
        -------
        bool
            True if there is a new plan.
        """
        now = self._log_dets()
        if not (now > self._planned + DOUBLED).any():
            return False
        with defer_signals():
            self._plans, self._planned = self._make_plans(), now
        return True

    @reading
    def reward_parameters(self) -> np.ndarray:
        """Return the estimates theta_h of rewards.

        Returns
        -------
        ndarray of shape (n_steps, dim)
            One row for every step.
        """
        return np.stack([contract.parameter(state) for state in self._rewards])

    def _log_dets(self) -> np.ndarray:
        """Return the log determinants of the designs of all H steps, (2, H): of rewards, and of next values."""
        return np.array([[log_det(state.design) for state in self._rewards], np.linalg.slogdet(self._gram)[1]])

    def _make_plans(self) -> list[Plan]:
        """Return the plans of all steps, in the order of the steps; each is computed from the plan of the next step."""
        plans: list[Plan] = []
        for h in reversed(range(self.n_steps)):
            state, inverse = self._rewards[h], np.linalg.inv(self._gram[h])
            target = np.zeros(self.dim)
            if plans and self._data[h].rows:
                target = self._next_values(h, plans[-1]) @ np.stack(self._data[h].rows)
            unit = contract.noise_unit(state) or 1.0
            bonus = self.exploration * unit
            following = self.value_exploration * (self.n_steps - h - 1) * self.reward_bound
            plans.append(
                Plan(
                    contract.parameter(state) + inverse @ target,
                    bonus**2 * np.linalg.inv(matrix(state.design)),
                    following**2 * inverse,
                )
            )
        return plans[::-1]

    def _number(self, phis: np.ndarray) -> int:
        """Return the number of the state with features `phis`, which is stored if it is new."""
        number = self._numbers.setdefault(phis.tobytes(), len(self._states))
        if number == len(self._states):
            self._states.append(phis)
        return number

    def _next_values(self, h: int, plan: Plan) -> np.ndarray:
        """Return the optimistic value of the next state of every transition learned at step h, (K,).

        `plan` is the plan of step h + 1. The value is 0 at the end of an episode.
        """
        places = np.array(self._data[h].places)
        out, known = np.zeros(len(places)), places != ENDED
        if known.any():
            distinct, which = np.unique(places[known], return_inverse=True)
            states = [self._states[i] for i in distinct]
            q = self._q(h + 1, plan, np.concatenate(states))
            starts = np.cumsum([0, *map(len, states[:-1])])
            out[known] = np.maximum.reduceat(q, starts)[which]
        return out

    def _q(self, h: int, plan: Plan, phis: np.ndarray) -> np.ndarray:
        widths = sum(
            np.sqrt(np.maximum(np.einsum("aj,aj->a", phis @ bonus, phis), 0.0))
            for bonus in (plan.reward_bonus, plan.value_bonus)
        )
        return np.minimum(phis @ plan.coefficients + widths, (self.n_steps - h) * self.reward_bound)

    def _rows(self, name: str, value: Any, dims: tuple[int, ...]) -> np.ndarray:
        found = check.finite(name, check.array(name, value, np.dtype(np.float64), dims, self.dim))
        if len(found) == 0:
            raise ValueError(f"{name} must have at least one action")
        return found

    @property
    def has_learned(self) -> bool:
        """Always True, so that an agent is saved with all it has learned if it is part of another saved object."""
        return True

    def params(self) -> dict[str, Any]:
        """Return the arguments of the constructor.

        Returns
        -------
        dict
            The arguments by name.
        """
        return {
            "n_steps": self.n_steps,
            "dim": self.dim,
            "estimator": self.kind,
            **self._options,
            "reward_bound": self.reward_bound,
            "exploration": self.exploration,
            "value_exploration": self.value_exploration,
            "reg": self.reg,
        }

    def contents(self) -> files.Contents:
        nothing = np.zeros((0, self.dim))
        rows = [row for data in self._data for row in data.rows]
        state = SavedValues(
            rewards=tuple(self._rewards),
            gram=self._gram,
            steps=np.repeat(np.arange(self.n_steps), [len(data.rows) for data in self._data]),
            places=np.array([place for data in self._data for place in data.places], np.int64),
            rows=np.stack(rows) if rows else nothing,
            counts=np.array([len(phis) for phis in self._states], np.int64),
            following=np.concatenate(self._states) if self._states else nothing,
            planned=self._planned,
            coefficients=np.stack([plan.coefficients for plan in self._plans]),
            reward_bonus=np.stack([plan.reward_bonus for plan in self._plans]),
            value_bonus=np.stack([plan.value_bonus for plan in self._plans]),
        )
        return files.Contents(self.params(), {}, state)

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        """Rebuild the agent from its saved arguments `params`, further data `extra` and arrays `held`.

        Raises ValueError if they disagree.
        """
        if not check.integer("n_steps", params["n_steps"], 1) <= len(held.arrays):
            raise ValueError(f"n_steps must be the number of saved regressions, got {quote(params['n_steps'])}")
        agent = cls(**params)
        steps, m, counts = agent.n_steps, agent.dim, states.zeros(0, dtype=np.int64)
        square, empty = states.zeros(steps, m, m), states.zeros(0, m)
        template = SavedValues(
            rewards=tuple(agent._rewards),
            gram=square,
            steps=counts,
            places=counts,
            rows=empty,
            counts=counts,
            following=empty,
            planned=states.zeros(2, steps),
            coefficients=states.zeros(steps, m),
            reward_bonus=square,
            value_bonus=square,
        )
        saved = held.take(template, agent._is_consistent)
        agent._rewards, agent._gram, agent._planned = list(saved.rewards), saved.gram, saved.planned
        agent._plans = [Plan(*parts) for parts in zip(saved.coefficients, saved.reward_bonus, saved.value_bonus)]
        for phis in np.split(saved.following, np.cumsum(saved.counts)[:-1]) if len(saved.counts) else ():
            agent._number(phis.copy())
        for h, row, place in zip(saved.steps.tolist(), saved.rows, saved.places.tolist()):
            agent._data[h].rows.append(row)
            agent._data[h].places.append(place)
        return agent

    def _is_consistent(self, saved: SavedValues) -> bool:
        """Return True if shapes and counters of a saved state are those of this agent."""
        n, steps, m = len(saved.rows), self.n_steps, self.dim
        square = (steps, m, m)
        return (
            saved.gram.shape == saved.reward_bonus.shape == saved.value_bonus.shape == square
            and (saved.planned.shape, saved.coefficients.shape) == ((2, steps), (steps, m))
            and saved.rows.shape == (n, m)
            and saved.steps.shape == saved.places.shape == (n,)
            and bool(((saved.steps >= 0) & (saved.steps < steps)).all())
            and bool(((saved.places >= ENDED) & (saved.places < len(saved.counts))).all())
            and bool((saved.counts > 0).all())
            and saved.following.shape == (int(saved.counts.sum()), m)
            and all(self._estimator.consistent(state) for state in saved.rewards)
        )

    def __repr__(self) -> str:
        return (
            f"OptimisticValueIteration({self.n_steps}, {self.dim}, estimator={self.kind!r}, "
            f"exploration={self.exploration}, value_exploration={self.value_exploration})"
        )


def jin_multiplier(n_steps: int, dim: int, n_episodes: int, delta: float, constant: float = 1.0) -> float:
    """Return beta of Jin et al. theorem 3.1: constant * m H sqrt(log(2 m T / delta)), T = K H, for rewards up to 1.

    Parameters
    ----------
    n_steps : int
        Number H of steps of an episode, at least 1.
    dim : int
        Number m of features, at least 1.
    n_episodes : int
        Number K of episodes, at least 1.
    delta : float
        Probability of failure, above 0 and below 1.
    constant : float, default 1.0
        Absolute constant c of the theorem, above 0. The paper does not print it.

    Returns
    -------
    float
        The multiplier. `value_exploration` is in units of the range of the next value, so divide by n_steps.

    Raises
    ------
    ValueError
        If an argument is outside its range.
    """
    h, m = check.integer("n_steps", n_steps, 1), check.integer("dim", dim, 1)
    k, c = check.integer("n_episodes", n_episodes, 1), check.positive("constant", constant)
    if not 0.0 < check.real("delta", delta) < 1.0:
        raise ValueError(f"delta must be above 0 and below 1, got {quote(delta)}")
    return c * m * h * float(np.sqrt(np.log(2.0 * m * k * h / delta)))
