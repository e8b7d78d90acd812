"""Immutable copies of a bandit for servers: they decide, score, recommend and explain, and never learn."""

from pathlib import Path
from typing import Any, final

import numpy as np

from onepass.bandit.decision import Decision, Recommendation
from onepass.bandit.explanation import Explanation


@final
class Snapshot:
    """Immutable copy of a bandit, for any number of threads without waiting for a writer.

    `Bandit.snapshot` makes it. Decisions without an id draw from the bandit's own generator, so decisions of two
    snapshots are independent. `Bandit.learn` takes a snapshot's decisions as it takes those of the bandit.

    If the bandit has a model for each arm, a new snapshot takes over the arrays of an older one that nothing refers to
    any more. A snapshot that you keep never changes, and costs memory of its own.

    Parameters
    ----------
    bandit : Bandit
        The frozen bandit.
    """

    __slots__ = ("_bandit",)

    def __init__(self, bandit: Any) -> None:
        self._bandit = bandit

    @property
    def n_learned(self) -> int:
        """Number of rows that the bandit had learned."""
        return self._bandit.n_learned

    def decide(self, contexts: Any, arms: Any = None, k: int = 1, **options: Any) -> Decision:
        """Choose an arm, or a list of `k` arms, as the bandit would have done when the snapshot was taken.

        Parameters
        ----------
        contexts : array, dict, frame, Factors or list
            One request, such as rows (K, dim), or n requests.
        arms : sequence of hashable, dict or list of features, default None
            The arms on offer, as in `Bandit.decide`.
        k : int, default 1
            Number of slots to fill.
        **options : Any
            Further arguments of `Bandit.decide`, such as `id`, `eligible`, `rest` and `time`.

        Returns
        -------
        Decision
            The chosen arms and their probabilities.
        """
        return self._bandit.decide(contexts, arms, k, **options)

    def score(self, contexts: Any, arms: Any = None, *, time: Any = None) -> np.ndarray:
        """Score arms as the bandit would have done when the snapshot was taken.

        Parameters
        ----------
        contexts : array, dict, frame, Factors or list
            One request, such as rows (K, dim), or n requests.
        arms : sequence of hashable, dict or list of features, default None
            The arms on offer, as in `Bandit.decide`.
        time : float or datetime, default None
            Present time, only for a half-life in seconds, as in `Bandit.decide`.

        Returns
        -------
        ndarray of shape (K,) or (n, K)
            The score of each arm, by which the exploration rule ranks the arms.
        """
        return self._bandit.score(contexts, arms, **({} if time is None else {"time": time}))

    def recommend(
        self, contexts: Any, k: int, arms: Any = None, exclude: Any = None, *, time: Any = None
    ) -> Recommendation:
        """Recommend the k best arms to each user, as the bandit would have done when the snapshot was taken.

        Parameters
        ----------
        contexts : array, frame, list of dict or Factors
            Contexts of n users: (n, dim) or (n, K, dim).
        k : int
            Length of each list, at least 1.
        arms : sequence of hashable, dict or list of features, default None
            The candidates. None means all known arms.
        exclude : sequence of collections of names, default None
            For each user, the arms not to be recommended.
        time : float or datetime, default None
            Present time, only for a half-life in seconds, as in `Bandit.decide`.

        Returns
        -------
        Recommendation
            Lists of arms and their scores, best first.
        """
        return self._bandit.recommend(contexts, k, arms, exclude, time=time)

    def explain(self, contexts: Any, arm: Any = None, other: Any = None, **options: Any) -> Explanation:
        """Explain the score of an arm, as the bandit would have done when the snapshot was taken.

        Parameters
        ----------
        contexts : Decision, array, dict, frame or Factors
            A request, such as rows (K, dim), or a decision.
        arm : hashable or int, default None
            The arm to explain. None takes the arm with the largest score.
        other : hashable or int, default None
            The arm to compare with. None takes the nearest competitor.
        **options : Any
            Further arguments of `Bandit.explain`: `arms`, `names` and `time`.

        Returns
        -------
        Explanation
            Terms of the arm's mean and width, and the difference to the other arm.
        """
        return self._bandit.explain(contexts, arm, other, **options)

    def bandit(self) -> Any:
        """Return a bandit that continues from here, independent of the snapshot.

        Returns
        -------
        Bandit
            A copy that can learn.
        """
        return self._bandit.copy()

    def save(self, path: str | Path) -> None:
        """Write the bandit in the state of the snapshot, while the original continues to learn.

        Parameters
        ----------
        path : str or Path
            The file, as in `Bandit.save`.
        """
        self._bandit.save(path)

    def memory_usage(self) -> int:
        """Return the memory of all arrays, some of which other snapshots may share.

        Returns
        -------
        int
            Number of bytes.
        """
        return self._bandit.memory_usage()

    def __repr__(self) -> str:
        return f"<Snapshot of {self._bandit!r}>"
