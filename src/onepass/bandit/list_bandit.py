"""Bandits for lists of arms, with rewards that depend on the position, or with one reward for the whole list.

In a list, arm a_j stands at position j, and x is the context:

    E[c_j] = w_j mu(a_j, x),  w_0 = 1          c_j: reward of position j,  w_j: its weight,  mu: value of the arm
    c_j / w_j is learned as the reward of arm a_j
    E[r] = sum_j w_j x_j^T theta               one reward r for the list,  x_j: row of a_j
    (sum_j w_j x_j, r) is learned

Weights that are not given are fitted to sums over the lists so far, by iterative scaling:

    c_aj ~ Poisson(m_a w_j e_aj)

Here e_aj is the sum of the rewards predicted for arm a at position j, and c_aj the sum of the observed rewards. The
factor m_a corrects the predictions of arm a as a whole. Without it, errors for arms that are mostly at the top would be
taken for position weights.
"""

import json
from collections.abc import Hashable, Sequence
from typing import Any, Self, final

import numpy as np

from onepass.bandit.bandit import Bandit
from onepass.bandit.decision import SAMPLED, Decision, name_from_json, plain_name
from onepass.bandit.rewarded_ids import RewardedIds
from onepass.estimator.families import name_of, reward_range
from onepass.exploration.greedy import EpsilonGreedy
from onepass.exploration.thompson import SingleDrawThompson
from onepass.foundation import check, files
from onepass.foundation.check import quote
from onepass.foundation.registry import build, savable
from onepass.foundation.rw_lock import composite, reading
from onepass.model.shared import SharedModel

REWARDS = {"items": False, "list": True}  # whether the list as a whole has the reward
POWER, START = 1.0, 8.0  # list number n counts (n + START)^POWER: predictions of the first lists are poor
PRIOR_ARM, PRIOR_POSITION = 0.2, 3.0  # average rewards that hold m and w near 1
LEAST_MEAN = 0.01  # of the average reward: a prediction below counts as this
LEAST_WEIGHT = 0.02  # a reward is multiplied by at most 50
SWEEPS, GROWTH = 10, 1.02  # of the scaling, and lists between two scalings as a ratio
LONGEST = 10_000  # positions of a list
MOST_ARMS = 10_000  # arms that have sums of their own; all others share theirs


@final
@savable
class ListBandit(files.Owner):
    """Bandit for lists of `k` arms whose positions get different attention.

    With ``reward="items"`` every position has a reward, such as a click. Its expectation is w_j mu_j: the weight w_j of
    the position times the value mu_j of the arm there. The bandit learns the reward divided by w_j, and the weights are
    estimated, too. With ``reward="list"`` one number is the reward of the whole list. Its expectation is the sum of w_j
    x_j^T theta, where x_j is the row of the arm at position j.

    Parameters
    ----------
    bandit : Bandit
        The bandit, which may also be used directly. For ``reward="list"`` its arms are rows of one shared linear
        model without a feature map, and its exploration is `SingleDrawThompson` or `EpsilonGreedy`:
        ``Bandit(Ridge(Exact(dim)), SingleDrawThompson())``.
    k : int
        Length of a list, from 1 to 10,000.
    reward : {"items", "list"}, default "items"
        "items" if every position has a reward, "list" if the list as a whole has one.
    positions : array of shape (k,), default None
        Weights of the positions relative to the first, above 0 and at most 1. The first is 1. By default they are
        learned if `reward` is "items", and all are 1 if it is "list".

    Attributes
    ----------
    bandit : Bandit
        The bandit.
    k : int
        Length of a list.
    reward : str
        "items" or "list".

    Raises
    ------
    ValueError
        If an argument is outside of its range, or `bandit` allows no reward above 1 (the logistic family), although
        rewards are divided by weights below 1.

    Notes
    -----
    Rewards of items are at least 0. The weights need arms that appear at several positions, which changing contexts and
    exploration bring about. If every arm always stands at the same position, values and weights cannot be told apart,
    and the weights stay near 1. The weight of a position is at least 0.02.

    The reward of a list only tells the sum over its arms. If the same arms are always shown together, the width of each
    never shrinks, and a rule such as UCB, which adds a width to each arm, would show them for ever. Therefore only the
    two explorations named above are allowed for ``reward="list"``.

    A list costs as much as `Bandit.decide` and `Bandit.learn` for k slots. Whenever the number of lists has grown by 2
    %, the weights are fitted again, which costs O(K k) for K arms.

    References
    ----------
    Position-based model: Craswell, Zoeter, Taylor and Ramsey, *An experimental comparison of click position-bias
    models*, 2008. Lagree, Vernade and Cappe, *Multiple-play bandits in the position-based model*, 2016.

    Examples
    --------
    >>> import onepass as op
    >>> lists = op.ListBandit(op.ContextualBandit(), 2)
    >>> decision = lists.decide([0.2, 1.0], ["news", "sport", "weather"])
    >>> len(decision.arms)
    2
    >>> lists.learn(decision, [1.0, 0.0])
    >>> lists.positions.tolist()
    [1.0, 1.0]
    """

    bandit: Bandit

    def __init__(
        self,
        bandit: Bandit,
        k: int,
        *,
        reward: str = "items",
        positions: Sequence[float] | np.ndarray | None = None,
    ) -> None:
        if not isinstance(bandit, Bandit):
            raise ValueError(f"bandit must be a Bandit, got {quote(bandit)}")
        self.bandit = bandit
        self.k: int = check.integer("k", k, 1, LONGEST)
        self.reward: str = check.choice("reward", reward, tuple(REWARDS))
        self._is_whole: bool = REWARDS[self.reward]
        if self._is_whole and bandit.model.has_named_arms:
            raise ValueError(
                'reward must be "items" for a bandit of named arms: one reward for a list needs arms that are rows '
                "of one shared linear model, such as Bandit(Ridge(Exact(dim)), SingleDrawThompson())"
            )
        if self._is_whole and (not isinstance(bandit.model, SharedModel) or bandit.model.features is not None):
            raise ValueError(
                'reward must be "items" for a bandit with a kernel or a feature map: the sum of the rows of a list is '
                "learned as one row, which is right only if the model is linear in rows"
            )
        if self._is_whole and not isinstance(bandit.exploration, SingleDrawThompson | EpsilonGreedy):
            raise ValueError(
                "exploration must be SingleDrawThompson or EpsilonGreedy where the list has one reward, got "
                f"{quote(bandit.exploration)}: rules that look at one arm at a time show the same list for ever"
            )
        self._given: np.ndarray | None = None if positions is None else _check_positions(positions, self.k)
        if not self._is_whole and self.k > 1 and (self._given is None or self._given.min() < 1.0):
            _check_any_reward(bandit)
        self._weights = np.ones(self.k) if self._given is None else self._given
        self._rows: dict[Hashable, int] = {}
        self._earned, self._expected = np.zeros((0, self.k)), np.zeros((0, self.k))
        self._lists, self._total, self._mass, self._next = 0, 0.0, 0.0, 10.0
        self._rewarded = RewardedIds()

    @property
    @reading
    def positions(self) -> np.ndarray:
        """Weights (k,) of the positions relative to the first, as given or as learned so far."""
        return self._weights.copy()

    def decide(
        self,
        context: Any = None,
        arms: Any = None,
        *,
        id: Any = None,
        eligible: Any = None,
        rest: str = SAMPLED,
        time: Any = None,
    ) -> Decision:
        """Choose a list of `k` arms, the most promising first.

        Parameters
        ----------
        context : array, dict, frame, Factors or list, default None
            One request, or n, as in `Bandit.decide`.
        arms : sequence of hashable, dict or list of features, default None
            The arms on offer, at least `k`. None is as for `Bandit.decide`.
        id : str or list of str, default None
            Identity of the decision, as in `Bandit.decide`.
        eligible : array of bool, sequence of names, or one for each slot, default None
            The arms that may be chosen.
        rest : {"sampled", "greedy"}, default "sampled"
            Choice of the positions after the first. "sampled" draws them from the arms that are left, with exact
            probabilities.
        time : float or datetime, default None
            Present time, only for a half-life in seconds.

        Returns
        -------
        Decision
            The list in `arms`.

        Raises
        ------
        ValueError
            If fewer than `k` arms may be chosen, or `Bandit.decide` refuses the request.
        """
        return self.bandit.decide(context, arms, self.k, id=id, eligible=eligible, rest=rest, time=time)

    @composite
    def learn(self, decision: Decision, reward: Any, *, allow_repeat: bool = False, time: Any = None) -> None:
        """Learn the rewards of a list.

        If an error is raised, nothing has changed.

        Parameters
        ----------
        decision : Decision
            A decision of `decide`, for one request.
        reward : sequence of float of shape (k,), or float
            Reward of each position, at least 0, with None for a position without one. A single number if the reward
            is the list's.
        allow_repeat : bool, default False
            Learn a second reward of a list. By default it is refused for the last 10,000 lists.
        time : float or datetime, default None
            Time from which the rows count, only for a half-life in seconds.

        Raises
        ------
        ValueError
            If a reward is negative or not finite, their number is not `k`, the decision is a batch or of another
            length, or the bandit refuses.
        """
        if not isinstance(decision, Decision) or decision.is_batch or len(decision.arms) != self.k:
            raise ValueError(f"decision must be of one list of {self.k} arms, got {quote(decision)}")
        if self._is_whole:
            self._learn_list(decision, reward, allow_repeat, time)
            return
        values = _check_rewards(reward, self.k)
        scaled = [None if value is None else value / w for value, w in zip(values, self._weights.tolist(), strict=True)]
        self.bandit.learn(decision, scaled if self.k > 1 else scaled[0], allow_repeat=allow_repeat, time=time)
        if self._given is None and self.k > 1:
            self._count(decision, values)

    def _learn_list(self, decision: Decision, reward: Any, allow_repeat: bool, time: Any) -> None:
        """Learn one reward for the weighted sum of the list's rows."""
        value = check.real("reward", reward)
        if not isinstance(decision.context, np.ndarray):
            raise ValueError("decision must hold rows: one reward for a list needs arms that are rows")
        new = self._rewarded.check([decision.id], allow_repeat)
        row = self._weights @ decision.context.reshape(self.k, -1)
        self.bandit.learn(row, value, time=time)
        self._rewarded.add(new)

    # ---- weights of positions ----

    def _count(self, decision: Decision, values: list[float | None]) -> None:
        """Add rewards and predictions of a list to the sums by arm and position, and fit the weights if due.

        They are due when the number of lists has grown by 2 % since the last fit.
        """
        self._lists += 1
        weight = (self._lists + START) ** POWER
        for j, value in enumerate(values):
            if value is None:
                continue
            row = self._row(decision, j)
            mean = float(decision.means[decision.places[j]])
            self._total += value / self._weights[j]
            self._mass += 1.0
            self._earned[row, j] += weight * value
            self._expected[row, j] += weight * max(mean, LEAST_MEAN * self._total / self._mass)
        if self._lists >= self._next and self._total > 0.0:
            self._next = self._lists * GROWTH
            self._weights = self._solve(weight * self._total / self._mass)

    def _row(self, decision: Decision, j: int) -> int:
        """Return the row that the arm at position `j` has in the sums of rewards by arm and position.

        All arms without names share one row.
        """
        name = decision.arms[j] if self.bandit.model.has_named_arms else None
        if name not in self._rows and len(self._rows) >= MOST_ARMS:
            name = None
        row = self._rows.setdefault(name, len(self._rows))
        if row >= len(self._earned):
            more = np.zeros((max(16, len(self._earned)), self.k))
            self._earned, self._expected = np.vstack([self._earned, more]), np.vstack([self._expected, more])
        return row

    def _solve(self, unit: float) -> np.ndarray:
        """Return the weights (k,) of the positions that fit the sums of rewards and of predictions by arm and position.

        `unit` is the average reward times the weight with which the latest list was added to the sums. It scales the
        prior, which keeps estimates from few rewards near 1.
        """
        earned, expected = self._earned[: len(self._rows)], self._expected[: len(self._rows)]
        one, of_arm, of_position = None in self._rows, PRIOR_ARM * unit, PRIOR_POSITION * unit
        w = self._weights
        for _ in range(SWEEPS):
            m = (earned.sum(1) + of_arm) / (expected @ w + of_arm)
            if one:
                m[self._rows[None]] = 1.0
            w = (earned.sum(0) + of_position) / (m @ expected + of_position)
            w = w / w[0]
        return np.clip(w, LEAST_WEIGHT, 1.0)

    # ---- files ----

    def contents(self) -> files.Contents:
        count = len(self._rows)
        extra = {
            "k": self.k,
            "reward": self.reward,
            "positions": None if self._given is None else self._given.tolist(),
            "weights": self._weights.tolist(),
            "arms": [plain_name(name) for name in self._rows],
            "earned": self._earned[:count].tolist(),
            "expected": self._expected[:count].tolist(),
            "counts": [self._lists, self._total, self._mass, self._next],
            "rewarded": self._rewarded.to_text(),
        }
        return files.Contents({"bandit": self.bandit}, {"state": json.dumps(extra)}, ())

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        """Rebuild the object from `params`, `extra` and `held`; ValueError if they do not belong together."""
        held.take((), lambda found: True)
        state, bandit = json.loads(extra["state"]), params["bandit"]
        bandit = bandit.copy() if isinstance(bandit, Bandit) else build(bandit)
        made = cls(bandit, state["k"], reward=state["reward"], positions=state["positions"])
        made._weights = _check_positions(state["weights"], made.k)
        made._rows = {name_from_json(name): row for row, name in enumerate(state["arms"])}
        shape = len(state["arms"]), made.k
        made._earned = np.array(state["earned"], np.float64).reshape(shape)
        made._expected = np.array(state["expected"], np.float64).reshape(shape)
        if len(made._rows) != shape[0] or not all(np.isfinite(x).all() for x in (made._earned, made._expected)):
            raise ValueError("sums of arms must be finite, each arm once")
        made._lists, made._total, made._mass, made._next = state["counts"]
        made._rewarded = RewardedIds.from_text(state["rewarded"])
        return made

    def __repr__(self) -> str:
        weights = ", ".join(f"{w:.2f}" for w in self._weights.tolist())
        return f"<ListBandit: {self.k} positions with weights {weights}; {self.bandit!r}>"


def _check_any_reward(bandit: Bandit) -> None:
    """Raise ValueError if the family of a bandit's rewards has a largest one, which divided rewards may exceed."""
    largest = np.inf if bandit.model.family is None else reward_range(bandit.model.family)[1]
    if largest < np.inf:
        raise ValueError(
            f"bandit must learn rewards above {largest:g}, which are divided by the weights of positions, but its "
            f"family is {name_of(bandit.model.family)}; use family='identity', or positions that are all 1"
        )


def _check_positions(positions: Any, k: int) -> np.ndarray:
    """Return the weights `positions` as an array (k,).

    Raises ValueError unless they are k numbers above 0 and at most 1, the first of which is 1.
    """
    w = check.finite("positions", check.array("positions", positions, np.dtype(np.float64), (1,)))
    if w.shape != (k,) or w[0] != 1.0 or (w <= 0.0).any() or (w > 1.0).any():
        raise ValueError(f"positions must be {k} numbers above 0 and at most 1, the first 1, got {quote(positions)}")
    return w


def _check_rewards(rewards: Any, k: int) -> list[float | None]:
    """Return the rewards of k positions: numbers of at least 0, or None."""
    if isinstance(rewards, str) or not isinstance(rewards, Sequence | np.ndarray) or len(rewards) != k:
        raise ValueError(
            f"reward must be a sequence of {k} numbers or None, one for each position, got {quote(rewards)}"
        )
    values = [None if value is None else check.real("reward", value) for value in rewards]
    for value in values:
        if value is not None and value < 0.0:
            raise ValueError(f"reward of an item must be at least 0, got {quote(value)}")
    return values
