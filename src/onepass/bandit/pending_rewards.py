"""Decisions that wait for their rewards, for programs without the decision service.

A reward is learned when it is due:

    due = time of the decision + after        at due: learn the reward given by then, else the default

Every row is learned at its own deadline, so rows are learned in the order of their decisions, clicked or not. Clicks
that are learned on arrival overtake the zeros of arms that were shown at the same time. While those zeros wait, the
arms shown lately look better than they are, and afterwards worse.

If conversions take days, `censored` learns conversions and zeros before the deadline (censored_rewards.py).
"""

import heapq
import json
import time
from datetime import timedelta
from typing import Any, NamedTuple, Self, final

import numpy as np

from onepass.bandit.bandit import Bandit
from onepass.bandit.censored_rewards import (
    CensoredRewards,
    Progress,
    check_possible,
    progress_from_plain,
    progress_to_plain,
)
from onepass.bandit.decide import check_rewards
from onepass.bandit.decision import Decision, check_same_offer, stack_decisions
from onepass.bandit.delay_law import DelayLaw
from onepass.foundation import check, files
from onepass.foundation.deferred_signals import defer_signals
from onepass.foundation.registry import build, savable
from onepass.foundation.rw_lock import composite, reading
from onepass.foundation.state import object_array

DEADLINE, ARRIVAL = "deadline", "arrival"


class WaitingDecision(NamedTuple):
    """Decision that waits for its reward.

    `due` is the time in seconds at which the bandit next learns something from the decision. It is the deadline, unless
    rewards are censored: then there are earlier times, too. `number` is the count of decisions before it, and `paid`
    the reward of every slot so far, or None. `progress` says what a decision with censored rewards has learned so far;
    else it is None.
    """

    due: float
    number: int
    decision: Decision
    paid: list[float | None]
    progress: Progress | None = None


class SavedDecisions(NamedTuple):
    """Waiting decisions as arrays for a file.

    `due` holds times in seconds; `records` and `paid` hold the decisions and their rewards by slot as JSON. If rewards
    are censored, `paid` holds the progress of the decisions instead.
    """

    due: np.ndarray
    records: np.ndarray
    paid: np.ndarray


@final
@savable
class PendingRewards(files.Owner):
    """Bandit and the decisions that wait for their rewards, which are saved and copied together.

    A decision waits for `after` seconds. At this deadline the bandit learns the reward that has been given, or the
    default. The next call of `decide`, `reward` or `expire` handles the deadlines that have passed, one after the
    other, each at its own time. So the state of the bandit does not depend on the times of these calls.

    Parameters
    ----------
    bandit : Bandit
        The bandit, which may also be used directly.
    after : float or timedelta, default 3600.0
        Time from a decision to its deadline, in seconds if it is a number, above 0.
    default : float, default 0.0
        Reward of a slot for which none was given, a finite number. None learns nothing for such a slot, which is right
        if a missing reward carries no information.
    learn_at : {"deadline", "arrival"}, default "deadline"
        "arrival" learns a reward when it is given. This is right only if every decision gets a reward, or if `default`
        is None. Otherwise rewards are learned before the defaults of decisions made at the same time, and the bandit
        favors the arms that it has shown lately.
    censored : bool, default False
        True to learn before the deadline, for conversions that take hours or days. A reward that differs from `default`
        is a conversion. A conversion is learned when it is given. A decision without one is learned with the default at
        an age that is drawn from the delays of conversions so far. So a recent decision has less weight, because less
        is known about it. If a conversion comes after that, or is cancelled, give the new reward: what was learned is
        corrected. With True, `default` must be a number and `learn_at` must be "deadline".
    delay_law : DelayLaw, default None
        Distribution of the delays to start from, with `censored`: the result of `fit_delay_law`, or `delay_law` of
        another such bandit. Further conversions are added to those that it has counted.

    Attributes
    ----------
    bandit : Bandit
        The bandit.
    after : float
        Seconds from a decision to its deadline.
    delay_law : DelayLaw or None
        Estimated distribution of the delays of conversions. None unless `censored`.
    arm_delay_laws : dict of hashable to DelayLaw
        Estimated distributions of the delays of conversions, by name of the arm, for the arms whose delays differ from
        `delay_law`.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Let F(e) be the share of conversions with a delay of at most e, and p the probability of a conversion. With
    `censored` a decision of age e counts, in expectation, as F(e) rows with p F(e) conversions. F needs no settings:
    until conversions have come, their delays are taken to be uniform in log(delay), from `after` / 2048 to `after`.

    Corrections are exact for ridge regression without a feature map or half-life: once all decisions are complete, the
    model equals one that waited for every deadline, up to rounding. Other models, `ContextualBandit` among them, learn
    a correction as one more row, whose reward is the expected reward plus the difference. Models whose rewards are
    limited, such as `GLBOMD` or a model of prices with `demand=True`, learn the new reward as one more row, wherever
    that sum is not a possible reward.

    Examples
    --------
    >>> import numpy as np, onepass as op
    >>> pending = op.PendingRewards(op.OFUL(dim=2), after=60.0)
    >>> decision = pending.decide(np.eye(2), id="request 1", now=0.0)
    >>> pending.reward("request 1", 1.0, now=10.0)
    >>> len(pending), pending.bandit.n_learned
    (1, 0)
    >>> pending.expire(now=60.0), len(pending), pending.bandit.n_learned
    (1, 0, 1)

    Purchases within a week, learned as they come:

    >>> from datetime import timedelta
    >>> pending = op.PendingRewards(op.ContextualBandit(), after=timedelta(days=7), censored=True)
    >>> decision = pending.decide([1.0], arms=["red", "blue"], id="visit 5", now=0.0)
    >>> pending.reward("visit 5", 1.0, now=7200.0)
    >>> pending.bandit.n_learned
    1
    """

    bandit: Bandit
    after: float

    def __init__(
        self,
        bandit: Bandit,
        *,
        after: float | timedelta = 3600.0,
        default: float | None = 0.0,
        learn_at: str = DEADLINE,
        censored: bool = False,
        delay_law: DelayLaw | None = None,
    ) -> None:
        if not isinstance(bandit, Bandit):
            raise ValueError(f"bandit must be a Bandit, got {check.quote(bandit)}")
        seconds = after.total_seconds() if isinstance(after, timedelta) else after
        self.bandit, self.after = bandit, check.positive("after", seconds)
        self.default: float | None = None if default is None else check.real("default", default)
        self.learn_at: Any = learn_at
        self._learns_at_deadline: bool = check.choice("learn_at", learn_at, (DEADLINE, ARRIVAL)) == DEADLINE
        if self.default is not None:
            bandit.check_rewards([self.default])
        self._censored: CensoredRewards | None = None
        if check.choice("censored", censored, (True, False)):
            if self.default is None or not self._learns_at_deadline:
                raise ValueError(
                    'censored must be False unless default is a number and learn_at "deadline": a missing conversion '
                    f"is learned as the default, got default={self.default} and learn_at={check.quote(learn_at)}"
                )
            if delay_law is not None and (not isinstance(delay_law, DelayLaw) or delay_law.after != self.after):
                raise ValueError(
                    f"delay_law must be a DelayLaw, as fit_delay_law returns it, with after={self.after:g}, got "
                    f"{check.quote(delay_law)}"
                )
            self._censored = CensoredRewards(self.after, self.default, delay_law)
        elif delay_law is not None:
            raise ValueError(f"delay_law must be None unless censored, got {check.quote(delay_law)}")
        self._waiting: dict[str, WaitingDecision] = {}
        self._queue: list[tuple[float, int, str]] = []  # (due, number, id), a heap; some wait no more
        self._made = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def delay_law(self) -> DelayLaw | None:
        """Estimated distribution of the delays of conversions; None unless rewards are `censored`."""
        return None if self._censored is None else self._censored.laws.common

    @property
    def arm_delay_laws(self) -> dict[Any, DelayLaw]:
        """Distributions of the delays of conversions, for the arms whose delays differ from `delay_law`.

        A dictionary maps the name of an arm to its `DelayLaw`. It is empty unless rewards are `censored`.
        """
        return {} if self._censored is None else self._censored.laws.separate_laws()

    @reading
    def ids(self) -> list[str]:
        """Return the identities of the waiting decisions, the oldest first.

        Returns
        -------
        list of str
            The identities.
        """
        return list(self._waiting)

    @composite
    def decide(self, contexts: Any, arms: Any = None, k: int = 1, *, now: Any = None, **options: Any) -> Decision:
        """Choose an arm, or a list of `k` arms, and let the decision wait for its reward.

        Deadlines that have passed are handled first. An id that already waits is a repeated request: it gets the
        waiting decision, whose deadline stays. Of n requests, each has an id of its own, and each waits for its own
        reward.

        Parameters
        ----------
        contexts : array, dict, frame, Factors or list
            One request, such as rows (K, dim), or n requests, as in `Bandit.decide`.
        arms : sequence of hashable, dict or list of features, default None
            The arms on offer. None is as for `Bandit.decide`.
        k : int, default 1
            Number of slots to fill.
        now : float, default None
            Present time in seconds. None takes `time.time()`.
        **options : Any
            Further arguments of `Bandit.decide`, such as `id`, `eligible` and `rest`. For n requests, `id` is a list of
            n ids.

        Returns
        -------
        Decision
            The chosen arms and their probabilities.

        Raises
        ------
        ValueError
            If `Bandit.decide` refuses the request, or if the id waits with other arms.
        """
        now = self._to_seconds(now)
        self._expire(now)
        decision = self.bandit.decide(contexts, arms, k, **self._time_options(now), **options)
        each = [self._find_waiting(one) for one in decision.split()]
        for one in each:
            if one.id not in self._waiting:
                if self._censored is None:
                    self._wait(now + self.after, one, [None] * len(one.arms))
                else:
                    progress, due = self._censored.begin(one, now)
                    self._wait(due, one, [None] * len(one.arms), progress)
        return stack_decisions(each) if decision.is_batch else each[0]

    @composite
    def reward(self, identity: str, reward: Any, *, now: Any = None) -> None:
        """Record the reward of a waiting decision, or learn it at once if `learn_at` is "arrival".

        Before the deadline a later reward of a slot replaces an earlier one. With "arrival" the decision stops waiting,
        and nothing is learned for slots with None. With `censored` the reward is learned at once, and so is a
        correction of an earlier reward. A reward that equals the default then changes nothing, unless it cancels a
        conversion.

        Parameters
        ----------
        identity : str
            Id of the decision.
        reward : float or list of float
            The reward; k numbers for k slots. None leaves a slot as it is.
        now : float, default None
            Present time in seconds. None takes `time.time()`.

        Raises
        ------
        ValueError
            If the bandit would refuse the reward, the number of slots is wrong, or a censored reward comes before its
            decision. The reward then changes nothing.
        KeyError
            If no decision with this id waits.
        """
        now = self._to_seconds(now)
        self._expire(now)
        if identity not in self._waiting:
            or_learned = "" if self._learns_at_deadline else ", or it had its reward"
            raise KeyError(
                f"no decision waits under the id {check.quote(identity)}: the id is unknown, or its deadline has passed"
                f"{or_learned}"
            )
        one = self._waiting[identity]
        paid = check_rewards([one.decision], [reward])[0]
        check_possible(self.bandit, one.decision, paid)
        if self._censored is not None and one.progress is not None:
            if now < one.progress.made:
                raise ValueError(
                    f"now must be at least the time of the decision, {one.progress.made}, got {now}: no conversion "
                    "comes before its decision"
                )
            with defer_signals():
                due = self._censored.pay(self.bandit, one.decision, one.progress, paid, now)
                self._visit_at(one, one.due if due is None else due)
            return
        if self._learns_at_deadline:
            one.paid[:] = [old if new is None else new for old, new in zip(one.paid, paid, strict=True)]
            return
        self._learn(one, paid, now)

    @composite
    def expire(self, *, now: Any = None) -> int:
        """Learn the decisions whose deadline has passed, in the order of their deadlines.

        A slot without a reward takes the default. If the default is None, nothing is learned for it. With `censored`,
        the bandit also learns decisions that have reached the age drawn for them (see the class) before their deadline.
        They still wait for a conversion, and are not counted in the result.

        Parameters
        ----------
        now : float, default None
            Present time in seconds. None takes `time.time()`.

        Returns
        -------
        int
            Number of decisions whose deadline has passed.
        """
        return self._expire(self._to_seconds(now))

    def _expire(self, now: float) -> int:
        count = 0
        while self._queue and self._queue[0][0] <= now:
            with defer_signals():  # what has left the queue is learned
                due, number, identity = heapq.heappop(self._queue)
                one = self._waiting.get(identity)
                if one is None or one.number != number or one.due != due:
                    continue
                if one.progress is not None:
                    count += self._visit(one, one.progress, due)
                else:
                    count += 1
                    self._learn(one, [self.default if value is None else value for value in one.paid], due)
        return count

    def _visit(self, one: WaitingDecision, progress: Progress, due: float) -> int:
        """Call `CensoredRewards.visit` for a decision at the time `due`; return 1 if it is complete then, else 0."""
        assert self._censored is not None
        identity = one.decision.id
        try:
            later = self._censored.visit(self.bandit, one.decision, progress, due)
        except Exception as error:
            del self._waiting[identity]
            error.add_note(f"decision {check.quote(identity)} waits no more")
            raise
        if later is None:
            del self._waiting[identity]
            return 1
        self._visit_at(one, later)
        return 0

    def _visit_at(self, one: WaitingDecision, due: float) -> None:
        """Set the time `due` of a decision's next visit. An entry of the queue with another time is skipped later."""
        if due != one.due:
            identity = one.decision.id
            self._waiting[identity] = one._replace(due=due)
            heapq.heappush(self._queue, (due, one.number, identity))

    def _learn(self, one: WaitingDecision, paid: list[float | None], when: float) -> None:
        """Remove a decision from the queue and learn its rewards `paid`, with the default for those that are None.

        `when` is the time of learning. The decision is removed even if the bandit refuses it: otherwise it would block
        everything behind it.
        """
        with defer_signals():
            del self._waiting[one.decision.id]
            if any(value is not None for value in paid):
                reward = paid[0] if len(paid) == 1 else paid
                try:
                    self.bandit.learn(one.decision, reward, allow_repeat=True, **self._time_options(when))
                except Exception as error:
                    error.add_note(f"decision {check.quote(one.decision.id)} waits no more, and was not learned")
                    raise

    def _find_waiting(self, one: Decision) -> Decision:
        """Return the waiting decision with the same id, or the decision itself if none waits."""
        if one.id not in self._waiting:
            return one
        return check_same_offer(self._waiting[one.id].decision, one)

    def _wait(self, due: float, decision: Decision, paid: list[float | None], progress: Progress | None = None) -> None:
        with defer_signals():
            self._waiting[decision.id] = WaitingDecision(due, self._made, decision, paid, progress)
            heapq.heappush(self._queue, (due, self._made, decision.id))
            self._made += 1

    def _time_options(self, now: float) -> dict[str, Any]:
        """Return the argument `time` with the Unix time `now` in seconds if the bandit has a half-life in seconds."""
        return {"time": now} if self.bandit.needs_time else {}

    @staticmethod
    def _to_seconds(now: Any) -> float:
        return time.time() if now is None else check.real("now", now)

    def contents(self) -> files.Contents:
        waiting = list(self._waiting.values())
        due = np.array([one.due for one in waiting], np.float64)
        records = object_array([json.dumps(one.decision.to_dict()) for one in waiting])
        each = [one.paid if one.progress is None else progress_to_plain(one.progress) for one in waiting]
        paid = object_array([json.dumps(one) for one in each])
        params = {"bandit": self.bandit, "after": self.after, "default": self.default, "learn_at": self.learn_at}
        extra: dict[str, Any] = {}
        if self._censored is not None:
            params["censored"], extra = True, self._censored.counts()
        return files.Contents(params, extra, SavedDecisions(due=due, records=records, paid=paid))

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        """Rebuild the object from saved `params`, `extra` and arrays `held`; raise ValueError if they disagree."""
        arguments = {name: build(part) for name, part in params.items()}
        pending = cls(arguments.pop("bandit").copy(), **arguments)
        begun = SavedDecisions(due=np.zeros(0), records=object_array([]), paid=object_array([]))
        found = held.take(
            begun, lambda w: len(w.due) == len(w.records) == len(w.paid) and bool(np.isfinite(w.due).all())
        )
        each = [Decision.from_dict(json.loads(record)) for record in found.records]
        paid = [json.loads(one) for one in found.paid]
        if pending._censored is None:
            for due, one, rewards in zip(found.due.tolist(), each, check_rewards(each, paid), strict=True):
                pending.bandit.check_rewards([value for value in rewards if value is not None])
                pending._wait(due, one, rewards)
        else:
            pending._censored.restore(**extra)
            for due, one, plain in zip(found.due.tolist(), each, paid, strict=True):
                progress = progress_from_plain(plain, one, pending._censored.laws.common)
                pending.bandit.check_rewards([value for value in progress.learned if value is not None])
                pending._wait(due, one, [None] * len(one.arms), progress)
        if len(pending._waiting) != len(each):
            raise ValueError("two decisions wait under one id")
        return pending

    def __repr__(self) -> str:
        return (
            f"<PendingRewards: {len(self)} decisions wait up to {self.after:g} s, then {self.default}; {self.bandit!r}>"
        )
