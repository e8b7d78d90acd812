"""What a bandit knew at one moment, for servers: it decides, scores, recommends and explains, and never learns."""

from pathlib import Path
from typing import Any, final

import numpy as np

from onepass.bandit.decision import Decision, Recommendation
from onepass.bandit.explanation import Explanation


@final
class Snapshot:
    """An immutable copy of a bandit, as `bandit.snapshot()` gives it: any number of threads, no writer to wait for.

    Decisions without an id draw from the bandit's own generator, so those of two snapshots are independent; rewards are
    learned by the bandit, from the records. Made of models per arm, a copy that no snapshot has any more is brought up
    to date by the arms that have changed, and used again: hold on to as few as you need.
    """

    __slots__ = ("_bandit",)

    def __init__(self, bandit: Any) -> None:
        self._bandit = bandit

    @property
    def n_learned(self) -> int:
        """Rows that the bandit had learned."""
        return self._bandit.n_learned

    def decide(self, contexts: Any, arms: Any = None, k: int = 1, **options: Any) -> Decision:
        """As the bandit would have decided; contexts (K, dim), arms, k, options (id, eligible, rest, time) as there."""
        return self._bandit.decide(contexts, arms, k, **options)

    def score(self, contexts: Any, arms: Any = None, *, time: Any = None) -> np.ndarray:
        """The bandit's scores; contexts (K, dim) or (n, K, dim), arms, time and errors as there."""
        return self._bandit.score(contexts, arms, **({} if time is None else {"time": time}))

    def recommend(
        self, contexts: Any, k: int, arms: Any = None, exclude: Any = None, *, time: Any = None
    ) -> Recommendation:
        """The bandit's recommendations; contexts (n, dim) or (n, K, dim), k, arms, exclude, time, errors as there."""
        return self._bandit.recommend(contexts, k, arms, exclude, time=time)

    def explain(self, contexts: Any, arm: Any = None, other: Any = None, **options: Any) -> Explanation:
        """The bandit's explanation; contexts (K, dim), arm, other, options (arms, names, time) and errors as there."""
        return self._bandit.explain(contexts, arm, other, **options)

    def bandit(self) -> Any:
        """A bandit of its own that goes on from here."""
        return self._bandit.copy()

    def save(self, path: str | Path) -> None:
        """Write the bandit as it was to `path`, while it goes on learning; errors as of `bandit.save`."""
        self._bandit.save(path)

    def memory_usage(self) -> int:
        """Bytes of all arrays, some of which other snapshots may share."""
        return self._bandit.memory_usage()

    def __repr__(self) -> str:
        return f"<Snapshot of {self._bandit!r}>"
