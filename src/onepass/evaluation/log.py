"""Log of decisions as columns: chosen arms, propensities, rewards, and contexts.

It is made from a frame (`Log.from_frame`), from decisions of onepass (`Log.from_decisions`), from columns (the
constructor), or from obp's dictionary (`Log.from_obp`).
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from onepass.bandit.request import Request
from onepass.evaluation.frames import DirtyRows, FrameColumns, fixed_split, is_missing, split_from
from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.foundation.html import make_html

NUMBER = np.dtype(np.float64)
ROUNDED = 0.02  # how far from 1 the probabilities of a row may add up: files may keep two digits of each


class Log:
    """Log of n decisions, in their order.

    Parameters
    ----------
    arms : array of shape (n,)
        Chosen arms: integers from 0 to n_arms - 1, or names. Every row has one.
    rewards : array of shape (n,)
        Rewards of the chosen arms, finite.
    propensities : array of shape (n,)
        Probability with which the logger chose the arm, above 0 and at most 1.
    n_arms : int, default None
        Number of arms K. None takes the length of `names`, or the largest arm + 1.
    contexts : array of shape (n, d) or (n, K, d), default None
        Features of the decision, or of every arm.
    slots : array of shape (n,), default None
        Position in a list that the row is about, an integer from 0. None means that there is one position.
    distributions : array of shape (n, K), default None
        The logger's probabilities of all arms, at least 0. Each row adds up to 1. None means that they are not known.
        The support is then the set of arms that the logger chose in any row.
    eligible : array of bool of shape (n, K), default None
        Arms that each decision offered. None means all arms.
    names : sequence of str, default None
        Names of all arms, in the order of their indices. None takes the sorted names in `arms`, if it has names.
    requests : sequence of onepass.bandit.request.Request, default None
        Contexts and arms that are dictionaries, one request for each row, for policies that take them.
    columns : mapping of str to array of shape (n,), default None
        Further columns, which `RowPolicy` reads.

    Attributes
    ----------
    dirty : DirtyRows or None
        Report of the rows of a frame that were left out. None for a log that was not made from a frame, and for a part
        of a log.

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
        columns: Mapping[str, Any] | None = None,
    ) -> None:
        self.dirty: DirtyRows | None = None
        self.rewards = check.finite("rewards", check.array("rewards", rewards, NUMBER, (1,)))
        arms = _check_arms(arms) if names is None else arms
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
        self.columns = None if columns is None else _check_columns(columns, len(self.rewards))
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
            _check_distributions(self.distributions)
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
            columns=None if self.columns is None else {name: one[rows] for name, one in self.columns.items()},
        )

    def with_rewards(self, rewards: Any) -> "Log":
        """Return the log with other rewards. It keeps the report of dirty rows.

        Parameters
        ----------
        rewards : array of shape (n,)
            Rewards of the chosen arms, finite.

        Returns
        -------
        Log
            The log.

        Raises
        ------
        ValueError
            If there is not one finite reward per row.
        """
        found = Log(
            arms=self.arms,
            rewards=rewards,
            propensities=self.propensities,
            n_arms=self.n_arms,
            contexts=self.contexts,
            slots=self.slots,
            distributions=self.distributions,
            eligible=self.eligible,
            names=self.names,
            requests=self.requests,
            columns=self.columns,
        )
        found.dirty = self.dirty
        return found

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
        """Arms that the logger may choose, as True in an array of shape (n, K).

        Without distributions the shape is (1, K), and these are the arms that the logger chose in any row.
        """
        if self.distributions is not None:
            return self.distributions > 0.0
        return (np.bincount(self.arms, minlength=self.n_arms) > 0)[None]

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        arm: str = "arm",
        reward: str = "reward",
        propensity: str | float | Mapping[Any, float] = "propensity",
        context: str | Sequence[str] | None = None,
        arms: Sequence[Any] | None = None,
        probabilities: Sequence[str] | None = None,
        id: str | None = None,
        default: float | None = None,
        reward_range: tuple[float, float] | None = None,
        bad: str = "refuse",
    ) -> "Log":
        """Return the log of a frame with one decision a row.

        Rows with a missing or impossible cell are dirty. `dirty` of the log reports each with its number and reason.

        Parameters
        ----------
        frame : pandas or polars frame, or mapping of columns
            The decisions in their order.
        arm : str, default "arm"
            Column of the chosen arm. If it holds text that is no number, arms have names. Numbers, also as text, are
            indices from 0; pass `arms` if they are names.
        reward : str, default "reward"
            Column of the reward.
        propensity : str, float or mapping of arm to float, default "propensity"
            Column of the probability with which the arm was chosen. For a fixed split, the probability of each arm, or
            one number for all.
        context : str or sequence of str, default None
            Columns that describe the decision. Columns of numbers become rows of numbers. If one is text, every
            decision has a dictionary. One column of dictionaries or JSON objects is taken as it is.
        arms : sequence, default None
            Names of all arms, in their order. None takes the sorted names in the column. Give them to find misspelt
            arms.
        probabilities : sequence of str, default None
            Columns of the logger's probabilities of all arms, in the order of `arms`. A row is dirty if they do not add
            up to 1, or if the propensity is not that of the chosen arm. With None they are known only if
            the propensity of each arm is the same in all rows, and the arms' propensities add up to 1 (a fixed split).
        id : str, default None
            Column of an identity. A row with the identity of an earlier row is dirty.
        default : float, default None
            Reward of rows with an empty cell. With None such rows are dirty.
        reward_range : tuple of float, default None
            Least and largest possible reward. Rows outside are dirty. None means no limits.
        bad : {"refuse", "skip"}, default "refuse"
            "refuse" raises ValueError with the report of dirty rows. "skip" leaves them out.

        Returns
        -------
        Log
            Log of the clean rows. It keeps all columns of the frame, from which a `RowPolicy` can choose.

        Raises
        ------
        ValueError
            If a column is missing, a row is dirty and `bad` is "refuse", or no row is clean.

        Examples
        --------
        >>> from onepass.evaluation import Log
        >>> visits = {"page": ["old", "new", ""], "bought": [0, 1, 1], "p": [0.5, 0.5, 0.5]}
        >>> log = Log.from_frame(visits, arm="page", reward="bought", propensity="p", bad="skip")
        >>> log.names, len(log), log.dirty.rows
        (('new', 'old'), 2, (DirtyRow(row=2, reason='page is missing', value=''),))
        """
        skip = check.choice("bad", bad, ("refuse", "skip")) == "skip"
        columns, split = FrameColumns(frame), None
        chosen, names = columns.arms(arm, arms)
        count = max(int(chosen.max(initial=-1)) + 1, 1) if names is None else len(names)
        rewards = columns.rewards(reward, default, reward_range)
        if isinstance(propensity, str):
            p = columns.propensities(propensity)
        else:
            split = split_from(propensity, names, count)
            p = split[np.maximum(chosen, 0)]
        contexts, records = (None, None) if context is None else columns.contexts(context)
        chances = None if not probabilities else columns.probabilities(probabilities, chosen, p, count, ROUNDED)
        if id is not None:
            columns.repeats(id)
        rows, dirty = columns.clean(), columns.report(chosen)
        if (len(dirty) and not skip) or not rows.any():
            raise ValueError(f"frame must have rows without faults; pass bad='skip' to leave out the others\n{dirty}")
        if split is None and chances is None:
            split = fixed_split(chosen[rows], p[rows], count)
        offered = list(range(count)) if names is None else list(names)
        log = cls(
            arms=chosen[rows],
            rewards=rewards[rows],
            propensities=p[rows],
            n_arms=count,
            contexts=None if contexts is None else contexts[rows],
            distributions=chances[rows]
            if chances is not None
            else None
            if split is None
            else np.tile(split, (int(rows.sum()), 1)),
            names=names,
            requests=None
            if records is None
            else [Request(records[row], offered) for row in np.flatnonzero(rows).tolist()],
            columns=columns.select(rows),
        )
        log.dirty = dirty
        return log

    @classmethod
    def from_decisions(cls, decisions: Sequence[Any], rewards: Any, n_arms: int | None = None) -> "Log":
        """Return the log of decisions with one slot each.

        Arms that have names are the same arm wherever a decision offered it. Arms without names go by their index.

        Parameters
        ----------
        decisions : sequence of Decision
            Decisions as `decide` returned them.
        rewards : array of shape (n,)
            Their rewards.
        n_arms : int, default None
            Number of arms. None takes the number of different arms that the decisions offered.

        Returns
        -------
        Log
            Log with distributions. If decisions offered different arms, it says which were `eligible`.

        Raises
        ------
        ValueError
            If a decision has several slots.
        """
        if any(len(one.arms) != 1 for one in decisions):
            raise ValueError("decisions must have one slot each: log the rows of every slot, with its slot's number")
        offers = [
            list(range(len(one.probabilities)) if one.candidates is None else one.candidates) for one in decisions
        ]
        known = {name: place for place, name in enumerate(dict.fromkeys(itertools.chain.from_iterable(offers)))}
        count = len(known) if n_arms is None else n_arms
        eligible, distributions = np.zeros((len(offers), len(known)), bool), np.zeros((len(offers), len(known)))
        for row, (one, offer) in enumerate(zip(decisions, offers, strict=True)):
            places = [known[name] for name in offer]
            eligible[row, places], distributions[row, places] = True, one.probabilities
        return cls(
            arms=[known[offer[one.index]] for one, offer in zip(decisions, offers, strict=True)],
            rewards=rewards,
            propensities=[one.propensity for one in decisions],
            n_arms=count,
            distributions=distributions,
            eligible=None if eligible.all() else eligible,
            names=None if all(one.candidates is None for one in decisions) else list(known),
        )

    @classmethod
    def from_obp(cls, feedback: dict[str, Any]) -> "Log":
        """Return the log of a `bandit_feedback` of Open Bandit Pipeline (obp).

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
        """Return the log as a `bandit_feedback` of Open Bandit Pipeline (obp).

        Returns
        -------
        dict
            "n_rounds", "n_actions", "context", "action", "position", "reward" and "pscore". Context and position are
            None if the log has none.
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

    def _repr_html_(self) -> str:
        rows = []
        for arm in range(self.n_arms):
            own = self.arms == arm
            mean = float(self.rewards[own].mean()) if own.any() else float("nan")
            p = float(self.propensities[own].mean()) if own.any() else float("nan")
            rows.append((self.names[arm] if self.names else arm, int(own.sum()), p, mean))
        head = ("arm", "decisions", "mean propensity", "mean reward")
        found = make_html(f"{len(self):,} decisions among {self.n_arms} arms", head, rows)
        return found + self.dirty._repr_html_() if self.dirty else found


def _check_columns(columns: Mapping[str, Any], rows: int) -> dict[str, np.ndarray]:
    """Return columns as arrays (rows,), or raise ValueError."""
    found = {str(name): np.asarray(column) for name, column in columns.items()}
    wrong = [name for name, column in found.items() if len(column) != rows]
    if wrong:
        raise ValueError(f"columns must have one entry a row ({rows}), and {wrong[0]} has {len(found[wrong[0]])}")
    return found


def _check_arms(arms: Any) -> Any:
    """Return arms (n,), as an array of integers if they are integers in a column of objects.

    Raises ValueError if an arm is missing.
    """
    column = np.asarray(arms)
    if column.dtype.kind not in "UO" or (column is arms and column.dtype.kind == "U"):
        return arms
    cells = column.tolist() if column.dtype.kind == "O" else list(arms)  # NumPy makes text of NaN among text
    missing = next((row for row, cell in enumerate(cells) if is_missing(cell)), None)
    if missing is not None:
        raise ValueError(f"arms must be an index or a name in every row, got {quote(cells[missing])} in row {missing}")
    whole = column.dtype.kind == "O" and all(
        isinstance(one, int | np.integer) and not isinstance(one, bool) for one in cells
    )
    return np.array(cells) if whole and cells else arms


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


def _check_distributions(rows: np.ndarray) -> None:
    """Raise ValueError unless each row of an array (n, K) has probabilities that add up to 1."""
    bad = np.flatnonzero(~((rows.min(axis=1, initial=0.0) >= 0.0) & (np.abs(rows.sum(axis=1) - 1.0) <= ROUNDED)))
    if bad.size:
        raise ValueError(
            f"distributions must be probabilities that add up to 1 in each row, but {bad.size} rows are not, the first "
            f"is row {bad[0]}: {quote(rows[bad[0]])}"
        )


def _check_requests(value: Any, rows: int, arms: int) -> np.ndarray:
    """Return requests (rows,) as an array of objects, or raise ValueError unless each has 1 to `arms` arms."""
    if len(value) != rows or not all(isinstance(one, Request) and 1 <= len(one.arms) <= arms for one in value):
        raise ValueError(f"requests must be {rows} of Request(context, arms), each with 1 to {arms} arms")
    out = np.empty(rows, object)
    for place, one in enumerate(value):
        out[place] = one
    return out
