"""Restart of a bandit when its residuals grow.

The absolute residual |reward - mean| of every rewarded decision goes to an e-detector (exploration/e_detector.py).
While the absolute residuals are exchangeable, or shrink, false alarms are at least `every` rewards apart on average. At
an alarm the bandit returns to its initial state and learns the rewards since the change began, at most `recent` of
them. Only its random numbers go on: those of the first rounds are not drawn again.
"""

from collections import deque
from typing import Any, final

from onepass.bandit.bandit import Bandit
from onepass.bandit.decision import Decision
from onepass.bandit.rewarded_ids import RewardedIds
from onepass.exploration.e_detector import EDetector
from onepass.foundation import check
from onepass.foundation.rw_lock import SharedObject, reading, writing


@final
class RestartOnChange(SharedObject):
    """Bandit that restarts when its prediction errors grow, for any number of threads.

    At an alarm the bandit returns to its initial state and learns the latest rewards again; its random numbers go on.
    To save it, save the attribute `bandit`. `learn` returns True at an alarm.

    Parameters
    ----------
    bandit : Bandit
        The bandit. A copy of its present state is the state to return to.
    every : float, default 1e5
        Lower bound on the average number of rewards between two false alarms, above 1.
    recent : int, default 1000
        Largest number of rewards to learn again, at least 1.
    seed : int, default 0
        Seed of the detector, at least 0.

    Attributes
    ----------
    bandit : Bandit
        The present bandit.
    rewards : int
        Number of rewards learned.
    alarms : list of int
        Number of rewards learned at each alarm.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
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
        self._detector, self._rewarded = EDetector(every=every, seed=seed), RewardedIds()
        self._recent: deque[tuple[Decision, Any]] = deque(maxlen=check.integer("recent", recent, 1))
        self.rewards, self.alarms = 0, list[int]()  # rewards learned in all; at how many of them there was an alarm

    @reading
    def decide(self, contexts: Any, arms: Any = None, k: int = 1, **options: Any) -> Decision:
        """Choose an arm, or a list of `k` arms, with the method `decide` of the bandit.

        Parameters
        ----------
        contexts : array, dict, frame, Factors or list
            One request, such as rows (K, dim), or n requests.
        arms : sequence of hashable, dict or list of features, default None
            The arms on offer.
        k : int, default 1
            Number of slots to fill.
        **options : Any
            Further arguments of `Bandit.decide`, such as `id`, `eligible` and `rest`.

        Returns
        -------
        Decision
            The chosen arms and their probabilities.
        """
        return self.bandit.decide(contexts, arms, k, **options)

    @writing
    def learn(self, decision: Decision, reward: Any, *, time: Any = None) -> bool:
        """Learn the reward of a decision, and restart the bandit if the detector raises an alarm.

        Parameters
        ----------
        decision : Decision
            A single decision with one slot.
        reward : float
            The reward.
        time : float or datetime, default None
            Time from which the row counts, as in `Bandit.learn`.

        Returns
        -------
        bool
            True if there was an alarm.

        Raises
        ------
        ValueError
            If there are several decisions or slots, or if `Bandit.learn` refuses the reward. Nothing has changed then.
        """
        if not isinstance(decision, Decision) or decision.is_batch or len(decision.arms) != 1:
            raise ValueError(f"decision must be one decision for one slot, got {check.quote(decision)}")
        paid = check.real("reward", reward)
        new = self._rewarded.check([decision.id], False)  # of all lives of the bandit
        self.bandit.learn(decision, paid, time=time)
        self._rewarded.add(new)
        self.rewards += 1
        self._recent.append((decision, paid))
        mean = float(decision.means[decision.index])
        if not self._detector.add(abs(paid - mean)):
            return False
        self.alarms.append(self.rewards)
        again = list(self._recent)[-self._detector.since :]
        self._detector.begin()
        ended, self.bandit = self.bandit, self._initial.copy()
        self.bandit.continue_randomness(ended)
        for one, value in again:
            self.bandit.learn(one, value, allow_repeat=True, time=time)
        return True
