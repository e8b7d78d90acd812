"""A log of decisions as columns: chosen arms, propensities, rewards, and contexts.

It is made from decisions of onepass (`Log.from_decisions`), from columns (the constructor), or from obp's dictionary
(`Log.from_obp`).
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from onepass.bandit.request import Request
from onepass.foundation import check
from onepass.foundation.check import quote

NUMBER = np.dtype(np.float64)


class Log:
    """Log of n decisions, in their order.

    Parameters
    ----------
    arms : array of shape (n,)
        Chosen arms: integers from 0 to n_arms - 1, or names.
    rewards : array of shape (n,)
        Rewards of the chosen arms, finite.
    propensities : array of shape (n,)
        Probability with which the logger chose the arm, above 0 and at most 1.
    n_arms : int, default None
        Number of arms K. None: the length of `names`, or the largest arm + 1.
    contexts : array of shape (n, d) or (n, K, d), default None
        Features of the decision, or of every arm.
    slots : array of shape (n,), default None
        Position in a list that the row is about, integers from 0. None: one position.
    distributions : array of shape (n, K), default None
        The logger's probabilities of all arms. None: not known; then the support is the set of arms chosen at all.
    eligible : array of bool of shape (n, K), default None
        Arms that each decision offered. None: all arms.
    names : sequence of str, default None
        Names of all arms, in the order of their indices. None: the sorted names in `arms`, if it has names.
    requests : sequence of onepass.bandit.request.Request, default None
        Contexts and arms that are records (n,), for policies that take them.

    Raises
    ------
    ValueError
        If columns differ in length, a number is NaN, or a propensity is out of range. The message names the row.
    """

    def __init__(
        self,
        *,
        arms: Any,
        rewards: Any,
        propensities: Any,
        n_arms: int | None = None,
        contexts: Any = None,
        slots: Any = None,
        distributions: Any = None,
        eligible: Any = None,
        names: Any = None,
        requests: Any = None,
    ):
        self.rewards = check.finite("rewards", check.array("rewards", rewards, NUMBER, (1,)))
        self.names: tuple[str, ...] | None = _arm_names(arms) if names is None else tuple(str(name) for name in names)
        self.arms = _check_indices("arms", _arm_indices(arms, self.names), len(self.rewards))
        least = max(int(self.arms.max(initial=-1)) + 1, len(self.names or ()))
        self.n_arms: int = least if n_arms is None else check.integer("n_arms", n_arms, max(least, 1))
        if self.names is not None and (len(self.names) != self.n_arms or len(set(self.names)) != self.n_arms):
            raise ValueError(f"names must name each of {self.n_arms} arms once, got {quote(self.names)}")
        self.propensities = _check_propensities(propensities, len(self.rewards))
        self.slots = None if slots is None else _check_indices("slots", slots, len(self.rewards))
        self.contexts = None if contexts is None else check.array("contexts", contexts, NUMBER, (2, 3))
        self.requests = None if requests is None else _check_requests(requests, len(self.rewards), self.n_arms)
        self.distributions, self.eligible = None, None if eligible is None else np.asarray(eligible)
        if self.eligible is not None:
            fits = self.eligible.shape == (len(self), self.n_arms) and self.eligible.dtype == bool
            if not fits or not self.eligible[np.arange(len(self)), self.arms].all():
                raise ValueError(f"eligible must be booleans ({len(self)}, {self.n_arms}), true for the arms chosen")
        if self.contexts is not None:
            if len(self.contexts) != len(self):
                raise ValueError(f"contexts must have one entry a row ({len(self)}), got {len(self.contexts)}")
            if self.contexts.ndim == 3 and self.contexts.shape[1] != self.n_arms:
                raise ValueError(
                    f"contexts must have n_arms ({self.n_arms}) rows a decision, got {self.contexts.shape}"
                )
            check.finite("contexts", self.contexts)
        if distributions is not None:
            self.distributions = check.array("distributions", distributions, NUMBER, (2,), self.n_arms)
            held = self.distributions[np.arange(len(self)), self.arms] if len(self.distributions) == len(self) else None
            if held is None or not np.allclose(held, self.propensities, rtol=0.0, atol=1e-9):  # JSON keeps 16 digits
                raise ValueError("distributions must have the propensities at the arms that were chosen")

    def __len__(self) -> int:
        return len(self.rewards)

    def __getitem__(self, rows: slice | np.ndarray) -> "Log":
        """Return a part of the log: a slice, or booleans (n,)."""
        take = lambda column: None if column is None else column[rows]  # noqa: E731
        return Log(
            arms=self.arms[rows],
            rewards=self.rewards[rows],
            propensities=self.propensities[rows],
            n_arms=self.n_arms,
            contexts=take(self.contexts),
            slots=take(self.slots),
            distributions=take(self.distributions),
            eligible=take(self.eligible),
            names=self.names,
            requests=take(self.requests),
        )

    def blocks(self, size: int) -> Iterator["Log"]:
        """Yield parts of `size` rows in their order.

        Parameters
        ----------
        size : int
            Rows per part, at least 1.

        Yields
        ------
        Log
            Part of the log.
        """
        for start in range(0, len(self), size):
            yield self[slice(start, start + size)]

    @property
    def support(self) -> np.ndarray:
        """Arms that the logger may choose: (n, K), or without distributions (1, K), the arms it ever chose."""
        if self.distributions is not None:
            return self.distributions > 0.0
        return (np.bincount(self.arms, minlength=self.n_arms) > 0)[None]

    @classmethod
    def from_decisions(cls, decisions: Sequence[Any], rewards: Any, n_arms: int | None = None) -> "Log":
        """Return the log of decisions with one slot each, over the same arms.

        Parameters
        ----------
        decisions : sequence of Decision
            Decisions as `decide` returned them.
        rewards : array of shape (n,)
            Their rewards.
        n_arms : int, default None
            Number of arms. None: the number that the first decision offered.

        Returns
        -------
        Log
            Log with distributions.

        Raises
        ------
        ValueError
            If a decision has several slots.
        """
        if any(len(one.arms) != 1 for one in decisions):
            raise ValueError("decisions must have one slot each: log the rows of every slot, with its slot's number")
        return cls(
            arms=[one.index for one in decisions],
            rewards=rewards,
            propensities=[one.propensity for one in decisions],
            n_arms=len(decisions[0].probabilities) if n_arms is None and len(decisions) else n_arms,
            distributions=np.array([one.probabilities for one in decisions]),
            names=_names_if_equal(decisions),
        )

    @classmethod
    def from_obp(cls, feedback: dict[str, Any]) -> "Log":
        """Return the log of obp's `bandit_feedback`.

        Parameters
        ----------
        feedback : dict
            Entries n_actions, action, reward, pscore, and optionally context and position.

        Returns
        -------
        Log
            Log of the same rounds.

        Raises
        ------
        ValueError
            If an entry is missing.
        """
        missing = [name for name in ("n_actions", "action", "reward", "pscore") if feedback.get(name) is None]
        if missing:
            raise ValueError(f"feedback must have {', '.join(missing)}, got {sorted(feedback)}")
        return cls(
            arms=feedback["action"],
            rewards=feedback["reward"],
            propensities=feedback["pscore"],
            n_arms=int(feedback["n_actions"]),
            contexts=feedback.get("context"),
            slots=feedback.get("position"),
        )

    def to_obp(self) -> dict[str, Any]:
        """Return obp's `bandit_feedback`.

        Returns
        -------
        dict
            Columns by obp's names.
        """
        return {
            "n_rounds": len(self),
            "n_actions": self.n_arms,
            "context": self.contexts,
            "action": self.arms,
            "position": self.slots,
            "reward": self.rewards,
            "pscore": self.propensities,
        }

    def __repr__(self) -> str:
        return f"Log({len(self)} decisions among {self.n_arms} arms)"


def _names_if_equal(decisions: Sequence[Any]) -> list[str] | None:
    """Return the names of the arms if all decisions offered the same ones in the same order, else None."""
    first = decisions[0].candidates if len(decisions) else None
    if first is None or any(list(one.candidates or ()) != list(first) for one in decisions):
        return None
    return [str(name) for name in first]


def _arm_names(arms: Any) -> tuple[str, ...] | None:
    """Return the sorted names in a column of arms, or None for numbers."""
    column = np.asarray(arms)
    return tuple(np.unique(column.astype(str)).tolist()) if column.dtype.kind in "UO" and column.size else None


def _arm_indices(arms: Any, names: tuple[str, ...] | None) -> Any:
    """Return arms as indices. Raises ValueError for an unknown name."""
    column = np.asarray(arms)
    if names is None or column.dtype.kind not in "UO":
        return arms
    known = {name: place for place, name in enumerate(names)}
    unknown = [name for name in column.astype(str).tolist() if name not in known]
    if unknown:
        raise ValueError(f"arms must be among names ({', '.join(names)}), got {quote(unknown[0])}")
    return np.array([known[name] for name in column.astype(str).tolist()], int)


def _check_indices(name: str, value: Any, rows: int) -> np.ndarray:
    """Return integers (rows,) of at least 0, or raise ValueError."""
    out = np.asarray(value)
    if out.shape != (rows,) or (rows and (out.dtype.kind not in "iu" or out.min() < 0)):
        raise ValueError(f"{name} must be {rows} integers of at least 0, got {quote(value)}")
    return out.astype(np.int64)


def _check_propensities(value: Any, rows: int) -> np.ndarray:
    """Return probabilities (rows,) in (0, 1], or raise ValueError."""
    out = check.array("propensities", value, NUMBER, (1,))
    if len(out) != rows:
        raise ValueError(f"propensities must have one entry a row ({rows}), got {len(out)}")
    bad = np.flatnonzero(~((out > 0.0) & (out <= 1.0)))
    if bad.size:
        raise ValueError(
            f"propensities must be above 0 and at most 1, but {bad.size} are not, the first in row {bad[0]}: "
            f"{out[bad[0]]}; what was logged without a usable propensity cannot be evaluated"
        )
    return out


def _check_requests(value: Any, rows: int, arms: int) -> np.ndarray:
    """Return requests (rows,) as an array of objects, or raise ValueError."""
    if len(value) != rows or not all(isinstance(one, Request) and 1 <= len(one.arms) <= arms for one in value):
        raise ValueError(f"requests must be {rows} of Request(context, arms), each with 1 to {arms} arms")
    out = np.empty(rows, object)
    for place, one in enumerate(value):
        out[place] = one
    return out
