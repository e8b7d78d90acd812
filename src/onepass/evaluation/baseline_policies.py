"""Policies without a model, for comparison on any log: baselines, and functions of a row."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from onepass.evaluation.log import Log
from onepass.foundation import check
from onepass.foundation.check import quote


def _eligible_mask(block: Log) -> np.ndarray:
    """Return (n, K) with 1.0 for arms that a decision offered, else 0.0."""
    return np.ones((len(block), block.n_arms)) if block.eligible is None else block.eligible * 1.0


class UniformPolicy:
    """Policy that gives all eligible arms the same probability."""

    def action_probabilities(self, block: Log) -> np.ndarray:
        """Return the probabilities of the arms for each decision of a log.

        Parameters
        ----------
        block : Log
            Log of n decisions.

        Returns
        -------
        ndarray of shape (n, K)
            Action probabilities.
        """
        p = _eligible_mask(block)
        return p / p.sum(axis=1, keepdims=True)


class ConstantPolicy:
    """Policy that always chooses one arm, or draws uniformly if that arm is not eligible.

    `evaluate`, `evaluate_many`, `evaluate_slates` and `compare` raise ValueError if the log has no such arm.

    Parameters
    ----------
    arm : int or str
        Index of the arm, at least 0, or its name in a log whose arms have names.
    """

    def __init__(self, arm: int | str) -> None:
        self.arm: int | str = arm if isinstance(arm, str) else check.integer("arm", arm, 0)

    def has_arm(self, block: Log) -> bool:
        """Return True if a log has the policy's arm.

        Parameters
        ----------
        block : Log
            Log, or a part of it.

        Returns
        -------
        bool
            False if the arm is an index beyond the arms of the log.

        Raises
        ------
        ValueError
            If no arm of the log has this name.
        """
        return _arm_index(self.arm, block.names) < block.n_arms

    def action_probabilities(self, block: Log) -> np.ndarray:
        """Return the probabilities of the arms for each decision of a log.

        Parameters
        ----------
        block : Log
            Log of n decisions.

        Returns
        -------
        ndarray of shape (n, K)
            Action probabilities.

        Raises
        ------
        ValueError
            If no arm of the log has this name.
        """
        p, place = UniformPolicy().action_probabilities(block), _arm_index(self.arm, block.names)
        if place < block.n_arms:
            p[_eligible_mask(block)[:, place] > 0.0] = np.eye(block.n_arms)[place]
        return p


class RowPolicy:
    """Policy given by a function of one row of a frame, or of one context that is a dictionary.

    Parameters
    ----------
    function : callable
        Function of a row, {column: cell}, that returns the name or index of an arm, or the probabilities of arms as
        {name: probability}. If the log was not made from a frame, the function is given the dictionary of the request.

    Examples
    --------
    >>> from onepass.evaluation import Log, RowPolicy
    >>> visits = {"arm": ["a", "b"], "reward": [0, 1], "propensity": [0.5, 0.5], "device": ["phone", "desk"]}
    >>> policy = RowPolicy(lambda row: "a" if row["device"] == "phone" else {"a": 0.2, "b": 0.8})
    >>> policy.action_probabilities(Log.from_frame(visits)).tolist()
    [[1.0, 0.0], [0.2, 0.8]]
    """

    def __init__(self, function: Callable[[dict[str, Any]], Any]) -> None:
        if not callable(function):
            raise ValueError(f"function must be callable, got {quote(function)}")
        self.function = function

    def action_probabilities(self, block: Log) -> np.ndarray:
        """Return the probabilities of the arms for each decision of a log.

        Parameters
        ----------
        block : Log
            Log of n decisions.

        Returns
        -------
        ndarray of shape (n, K)
            Action probabilities.

        Raises
        ------
        ValueError
            If the log has no rows of a frame or dictionaries, or the function returns an arm that the log does not
            have.
        """
        p = np.zeros((len(block), block.n_arms))
        for place, row in enumerate(_row_dicts(block)):
            found = self.function(row)
            for arm, share in found.items() if isinstance(found, Mapping) else ((found, 1.0),):
                p[place, _row_arm(arm, block)] += check.fraction("probability", share)
        return p


def _row_dicts(block: Log) -> list[dict[str, Any]]:
    """Return the rows of a block as dictionaries; raise ValueError if the log has neither a frame nor requests."""
    if block.columns is not None:
        cells = [column.tolist() for column in block.columns.values()]
        return [dict(zip(block.columns, row, strict=True)) for row in zip(*cells, strict=True)]
    contexts = [] if block.requests is None else [one.context for one in block.requests]
    if not contexts or not all(isinstance(one, dict) for one in contexts):
        raise ValueError("log must have rows of a frame (Log.from_frame) or dictionaries for a function of rows")
    return contexts


def _row_arm(arm: Any, block: Log) -> int:
    """Return the index of an arm that a function of rows chose. Raises ValueError if the log does not have it."""
    found = _arm_index(arm if isinstance(arm, str) else check.integer("arm", arm, 0), block.names)
    if found >= block.n_arms:
        raise ValueError(f"arm must be one of {block.n_arms} arms, got {quote(arm)}")
    return found


def _arm_index(arm: int | str, names: tuple[str, ...] | None) -> int:
    """Return the index of an arm given by index or name; text of digits is an index unless an arm has that name."""
    if not isinstance(arm, str) or (arm.isdecimal() and arm not in (names or ())):
        return int(arm)
    if names is None or arm not in names:
        those = "and arms of the log have none" if names is None else f"of {', '.join(names[:20])}"
        raise ValueError(f"arm must be a place from 0, or the name of an arm, {those}, got {quote(arm)}")
    return names.index(arm)


class LoggingPolicy:
    """Policy that wrote the log, optionally mixed with uniform choice.

    It may have learned on the way, so its limits are limits of the average value.

    Parameters
    ----------
    uniform_share : float, default 0.0
        Share that is spread evenly over the eligible arms, 0 to 1.
    """

    changes = True

    def __init__(self, uniform_share: float = 0.0) -> None:
        self.uniform_share: float = check.fraction("uniform_share", uniform_share)

    def action_probabilities(self, block: Log) -> np.ndarray:
        """Return the probabilities of the arms for each decision of a log.

        Parameters
        ----------
        block : Log
            Log of n decisions.

        Returns
        -------
        ndarray of shape (n, K)
            Action probabilities.

        Raises
        ------
        ValueError
            If the log has no distributions.
        """
        if block.distributions is None:
            raise ValueError("distributions must be in the log for the policy that wrote it")
        p = block.distributions / block.distributions.sum(axis=1, keepdims=True)
        return (1.0 - self.uniform_share) * p + self.uniform_share * UniformPolicy().action_probabilities(block)
