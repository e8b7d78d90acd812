"""Merging of models that have learned different parts of a stream.

    A = A_1 + A_2 - A_start,   b = b_1 + b_2 - b_start

The start, which both models have in common, is counted once. It is A = reg I, or the rows that their design held at the
beginning, or a model (`since`) of which both began as copies.
"""

from typing import Any, NamedTuple

from onepass.estimator import contract as estimators
from onepass.estimator.estimator import Estimator
from onepass.foundation import state as states
from onepass.foundation.check import quote
from onepass.foundation.registry import has_equal_arguments


def design_prior(estimator: Estimator) -> Any:
    """Return the state with which an estimator begins if its design holds rows already; () if A = reg I."""
    if states.is_abstract() or not estimator.design.has_learned:
        return ()
    initial = estimator.begin()
    return () if states.equal(initial.design, estimator.design.begin()) else initial


def initial_state(estimator: Estimator, before: Any) -> Any:
    """Return the state with which a bandit began; `before` is the result of `design_prior` at that time."""
    if before != ():
        return before
    return estimator.begin()._replace(design=estimator.design.begin())


class Parts(NamedTuple):
    """Parts that two models must have in common to be merged.

    `estimator` is the estimator, `features` the feature map, and `moved` the statistics that this map has learned.
    `before` is the initial state, () for A = reg I, and `clock` the clock of the half-life, None without one.
    """

    estimator: Any
    features: Any
    moved: tuple[Any, ...]
    before: Any
    clock: Any = None


def check_mergeable(mine: Parts, its: Parts, name: str = "other") -> None:
    """Raise ValueError if two models differ in parts that they must have in common to be merged.

    `mine` and `its` are the parts. `name` is the name of the second model in the message.
    """
    if not has_equal_arguments(mine.clock, its.clock):
        raise ValueError(f"{name} must forget as this one does, by the same half_life")
    if not has_equal_arguments(mine.estimator, its.estimator):
        raise ValueError(f"{name} must have the estimator {quote(mine.estimator)}, got {quote(its.estimator)}")
    if not has_equal_arguments(mine.features, its.features):
        raise ValueError(f"{name} must have the features {quote(mine.features)}, got {quote(its.features)}")
    if not states.equal(mine.moved, its.moved):
        raise ValueError(
            f"{name} must have features that have learned the same rows: maps that moved apart have put rows into "
            "different coordinates; let the map learn before the bandits are copied, or use one that stands still"
        )
    if not states.equal(mine.before, its.before):
        raise ValueError(f"{name} must have begun with the same rows in its design")


def merge_shared(estimator: Estimator, before: Any, learned: Any, other: Any, since: Any) -> Any:
    """Return the merged state of two shared models, `learned` and `other`; `other` must not be used afterwards.

    `estimator` is the estimator of both. `since` is the state with which both began. If it is (), the initial state
    `before` is used.
    """
    start = initial_state(estimator, before) if since == () else since
    return estimators.merge(states.copy(learned), other, start)
