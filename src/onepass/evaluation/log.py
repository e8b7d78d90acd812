"""A log of decisions as columns: what was chosen, with which probability, what it earned, and from what.

From decisions of ours (`Log.from_decisions`), from columns (the constructor), from obp's dictionary (`Log.from_obp`).
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from onepass.bandit.request import Request
from onepass.foundation import check
from onepass.foundation.check import shown

NUMBER = np.dtype(np.float64)


class Log:
    """n logged decisions, in their order.

    arms: (n,) what was chosen: integers from 0 to n_arms - 1, or names.
    rewards: (n,) what it earned, finite.
    propensities: (n,) the probability with which the logger chose it, above 0 and at most 1; 0 is refused, for what
        had no chance was not chosen.
    n_arms: K, how many there are; None (default): as many as `names`, or the largest arm + 1.
    contexts: (n, d) features of the decision, or (n, K, d) of every arm; None (default): none.
    slots: (n,) integers from 0, the place of a list that the row is about; None (default): one place.
    distributions: (n, K) the logger's probabilities of all arms; None (default): not known, and then support is judged
        by which arms were chosen at all.
    eligible: (n, K) whether a decision offered the arm; None (default): all did.
    names: of all arms, in the order of places; None (default): those of `arms`, sorted, where it has names, else none.
    requests: (n,) of `onepass.bandit.request.Request`, contexts and arms that are records, for policies that take such;
        None (default): none.
    ValueError for columns that do not fit, NaN, and propensities out of range: the row is named.
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
            raise ValueError(f"names must name each of {self.n_arms} arms once, got {shown(self.names)}")
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
        """A part of the log: a slice, or booleans (n,)."""
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
        """Its parts of `size` rows, in their order."""
        for start in range(0, len(self), size):
            yield self[slice(start, start + size)]

    @property
    def support(self) -> np.ndarray:
        """Arms that the logger may choose, (n, K) where distributions are known, else (1, K): those it chose at all."""
        if self.distributions is not None:
            return self.distributions > 0.0
        return (np.bincount(self.arms, minlength=self.n_arms) > 0)[None]

    @classmethod
    def from_decisions(cls, decisions: Sequence[Any], rewards: Any, n_arms: int | None = None) -> "Log":
        """From `Decision` records of one slot each, over the same arms, and their rewards (n,).

        decisions: as `decide` returned them; n_arms: None (default): as many as the first one offered. ValueError for
        lists of several slots.
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
        """From obp's `bandit_feedback`: n_actions, action, reward, pscore, and context, position where given."""
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
        """obp's `bandit_feedback`."""
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
    """The names of the arms offered, where all decisions offered the same ones in the same order, else None."""
    first = decisions[0].candidates if len(decisions) else None
    if first is None or any(list(one.candidates or ()) != list(first) for one in decisions):
        return None
    return [str(name) for name in first]


def _arm_names(arms: Any) -> tuple[str, ...] | None:
    """The names that a column of arms has, sorted; None for numbers."""
    column = np.asarray(arms)
    return tuple(np.unique(column.astype(str)).tolist()) if column.dtype.kind in "UO" and column.size else None


def _arm_indices(arms: Any, names: tuple[str, ...] | None) -> Any:
    """Arms by their places; ValueError for a name that there is not."""
    column = np.asarray(arms)
    if names is None or column.dtype.kind not in "UO":
        return arms
    known = {name: place for place, name in enumerate(names)}
    unknown = [name for name in column.astype(str).tolist() if name not in known]
    if unknown:
        raise ValueError(f"arms must be among names ({', '.join(names)}), got {shown(unknown[0])}")
    return np.array([known[name] for name in column.astype(str).tolist()], int)


def _check_indices(name: str, value: Any, rows: int) -> np.ndarray:
    """Integers from 0, (rows,)."""
    out = np.asarray(value)
    if out.shape != (rows,) or (rows and (out.dtype.kind not in "iu" or out.min() < 0)):
        raise ValueError(f"{name} must be {rows} integers of at least 0, got {shown(value)}")
    return out.astype(np.int64)


def _check_propensities(value: Any, rows: int) -> np.ndarray:
    """Probabilities (rows,) in (0, 1]."""
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
    """Requests (rows,) as an array of objects."""
    if len(value) != rows or not all(isinstance(one, Request) and 1 <= len(one.arms) <= arms for one in value):
        raise ValueError(f"requests must be {rows} of Request(context, arms), each with 1 to {arms} arms")
    out = np.empty(rows, object)
    for place, one in enumerate(value):
        out[place] = one
    return out
