"""A bandit that begins anew when its residuals grow: a detector of change, and the recent rows to learn again.

|reward - mean| of every decision that is rewarded goes to an e-detector (exploration/e_detector.py): while the absolute
residuals are exchangeable, or shrink, false alarms are at least `every` rewards apart on average. At an alarm the
bandit becomes again what it was when it was given, and learns the rewards since the change began, `recent` at most.
"""

from collections import deque
from typing import Any, final

from onepass.bandit.bandit import Bandit
from onepass.bandit.decision import Decision
from onepass.exploration.e_detector import EDetector
from onepass.foundation import check
from onepass.foundation.rw_lock import SharedObject, reading, writing


@final
class RestartOnChange(SharedObject):
    """A bandit and a watch over its residuals, for any number of threads; `bandit` is what to save, and to read.

    bandit: a copy of what it knows now is what it becomes again.
    every: rewards between two false alarms, on average, at least; above 1 (default 100,000).
    recent: rewards that are learned again at most, at least 1 (default 1000).
    seed: of the detector, at least 0 (default 0). ValueError outside those ranges.

    >>> import numpy as np, onepass as op
    >>> watched = op.RestartOnChange(op.OFUL(dim=2), every=10_000.0)
    >>> rng = np.random.default_rng(0)
    >>> for t in range(600):
    ...     decision = watched.decide(rng.standard_normal((3, 2)))
    ...     theta = [1.0, 0.0] if t < 400 else [-1.0, 0.0]
    ...     alarm = watched.learn(decision, float(decision.context @ theta) + 0.1 * rng.standard_normal())
    >>> len(watched.alarms), 400 < watched.alarms[0] < 420, watched.bandit.model.parameter[0].round(1)
    (1, True, np.float64(-1.0))
    """

    rewards: int
    alarms: list[int]

    bandit: Bandit

    def __init__(self, bandit: Bandit, *, every: float = 1e5, recent: int = 1000, seed: int = 0) -> None:
        if not isinstance(bandit, Bandit):
            raise ValueError(f"bandit must be a Bandit, got {check.quote(bandit)}")
        self.bandit, self._initial = bandit, bandit.copy()
        self._detector = EDetector(every=every, seed=seed)
        self._recent: deque[tuple[Decision, Any]] = deque(maxlen=check.integer("recent", recent, 1))
        self.rewards, self.alarms = 0, list[int]()  # rewards learned in all; at how many of them there was an alarm

    @reading
    def decide(self, contexts: Any, arms: Any = None, k: int = 1, **options: Any) -> Decision:
        """As the bandit decides; contexts (K, dim), arms, k, options (id, eligible, rest) and errors as there."""
        return self.bandit.decide(contexts, arms, k, **options)

    @writing
    def learn(self, decision: Decision, reward: Any, *, time: Any = None) -> bool:
        """Learn a reward of one `decision` for one slot, `time` as of the bandit's `learn`; whether there was an alarm.

        ValueError, and nothing has changed, for several decisions or slots, and as of the bandit's `learn`.
        """
        if not isinstance(decision, Decision) or decision.is_batch or len(decision.arms) != 1:
            raise ValueError(f"decision must be one decision for one slot, got {check.quote(decision)}")
        paid = check.real("reward", reward)
        self.bandit.learn(decision, paid, time=time)
        self.rewards += 1
        self._recent.append((decision, paid))
        mean = float(decision.means[decision.index])
        if not self._detector.add(abs(paid - mean)):
            return False
        self.alarms.append(self.rewards)
        again = list(self._recent)[-self._detector.since :]
        self._detector.begin()
        self.bandit = self._initial.copy()
        for one, value in again:
            self.bandit.learn(one, value, allow_repeat=True, time=time)
        return True
