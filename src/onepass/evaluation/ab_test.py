"""A/B test with adaptive probabilities, which says in a sentence when it may stop.

    p_t       probabilities of top-two sampling (exploration/top_two.py), each at least .5 t^(-1/4) / K;
              leaders are drawn by action-centred rows, rivals are arms whose limits prevent stopping
    D(a, b)   contrast, the mean reward of arm a minus that of b, with limits at every time (contrasts.py)
    stop      as soon as an arm a has every lower limit of D(a, b) above -tolerance

Action-centred rows are z = e_A - p, with G += z z^T, c += z (r - sum p m) and theta = (G + I)^-1 c. E[z | past] = 0
because p is exact, so a level of rewards that moves does not bias theta. With probability `certainty` no limit ever
fails. So with this probability no arm that is more than `tolerance` worse than another one is declared the winner,
however often one looks. At any moment the probabilities are the same for all contexts, so contrasts are averages over
all visitors, not over a segment.

Sources: Russo (2020); Greenewald et al. (2017) for action-centred rows; Liang and Bojinov (2023) for the floor's decay.
"""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, Self, final

import numpy as np

from onepass.bandit.bandit import Bandit
from onepass.bandit.decision import SAMPLED, Decision, name_from_json, plain_name
from onepass.bandit.rewarded_ids import RewardedIds
from onepass.evaluation.contrasts import Contrasts, leader
from onepass.evaluation.reward_range import Interval, make_range
from onepass.exploration.randomness import make_generator, make_key
from onepass.foundation import check, files
from onepass.foundation.deferred_signals import defer_signals
from onepass.foundation.html import make_html
from onepass.foundation.registry import build, savable
from onepass.foundation.rw_lock import composite, reading
from onepass.model.names import distinct_names

DRAWS = 400  # of the arms' effects, from which shares are counted
GROWTH = 1.01  # of the number of rows, after which probabilities are computed anew
DECAY = 0.25  # exponent of the floor
HALF_LIFE = 200.0  # rows after which a residual counts half in the level
RULE = "A/B test"  # of decisions' records


class Contrast(NamedTuple):
    """Estimated difference between the rewards of two arms of an experiment.

    Parameters
    ----------
    arm : hashable
        The arm.
    other : hashable
        The arm that it is compared with.
    gain : float
        Estimate of the average reward of `arm`, minus the average reward of `other`.
    limits : Interval
        Limits of the gain that hold at every time.
    """

    arm: Any
    other: Any
    gain: float
    limits: Interval


class Answer(NamedTuple):
    """Answer of an experiment so far.

    Parameters
    ----------
    leader : hashable
        Arm that is best so far. For each arm, take the smallest lower limit of its gains over the others: the leader
        has the largest of these.
    enough : bool
        True if the experiment may stop.
    sentence : str
        The answer as a sentence.
    contrasts : tuple of Contrast
        Differences of the leader to all other arms, with limits.
    decisions : int
        Number of decisions with a reward.
    """

    leader: Any
    enough: bool
    sentence: str
    contrasts: tuple[Contrast, ...]
    decisions: int

    def __str__(self) -> str:
        lines = [self.sentence]
        for one in self.contrasts:
            low, high = one.limits
            lines.append(f"{one.arm!s} - {one.other!s:<20} {one.gain:+.5g}  ({low:+.5g} to {high:+.5g})")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            (one.arm, one.other, one.gain, f"{one.limits.lower:+.5g} to {one.limits.upper:+.5g}")
            for one in self.contrasts
        ]
        head = ("arm", "other", "gain", "limits at any time")
        return make_html(self.sentence, head, rows, [f"{self.decisions:,} decisions with a reward"])


class ABTestState(NamedTuple):
    """Arrays of an experiment in a file.

    Parameters
    ----------
    sums : sums (3, K, K) over rounds, for each pair of arms: weights, weighted differences, their squares
    (`Contrasts`).
    gram : sum (K, K) of z z^T over rows z, the indicator of the chosen arm minus the arms' probabilities.
    moment : sum (K,) of r z over these rows z, where r is the reward minus its prediction before the draw.
    totals : (3, K): rows and rewards of each arm, and in the last row the present probabilities.
    subjects : index of the arm of each subject seen so far, (n,).
    keys : hashes (n,) of these subjects.
    """

    sums: np.ndarray
    gram: np.ndarray
    moment: np.ndarray
    totals: np.ndarray
    subjects: np.ndarray
    keys: np.ndarray


@final
@savable
class ABTest(files.Owner):
    """Experiment with few arms that earns while it learns, with an answer that is valid at any time.

    Most decisions go to two arms: the best arm so far and its closest rival. The answer is valid
    however often you look, even if the level of rewards moves (weekdays, promotions).

    Parameters
    ----------
    bandit : Bandit or None
        Bandit with named arms that predicts rewards from contexts, such as `ContextualBandit()`. Its predictions narrow
        the limits, and it learns every decision, so it can take over afterwards. None predicts each arm's mean so far,
        without contexts.
    arms : sequence of hashable
        Names of the arms, at least 2, at most 50.
    tolerance : float, default 0.0
        Loss per decision that is small enough not to matter, at least 0, in units of rewards. The experiment may stop
        when the leader is at most this much worse than any other arm. With 0 it stops when the leader is better.
    certainty : float, default 0.95
        Probability that all limits hold at all times, above 0 and below 1.
    reward_range : tuple of float, default (0.0, 1.0)
        Least and largest possible reward.
    share : float, default 0.5
        Share of the leader, above 0 and below 1, among the decisions that are divided between leader and rival.
    floor : float, default 0.5
        Share of the decisions that is spread evenly over all arms in the first round, above 0 and at most 1. In round t
        it is t^(-1/4) times this number.
    seed : int, default 0
        Seed of all draws, at least 0.

    Attributes
    ----------
    bandit : Bandit or None
        The bandit.
    arms : tuple of hashable
        Names of the arms.
    n_learned : int
        Number of decisions with a reward.
    stopped_at : int or None
        Number of decisions with which the experiment could first stop, None if it must go on. Rewards that come later
        do not revoke it.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    The property `answer` holds the leading arm, and says if the test may stop. It is given by contrasts.
    A *contrast* of two arms is the average difference of their mean rewards over the decisions so far, each weighted
    by the smaller of the two arms' probabilities. If the difference does not change over time, the contrast is this
    difference.

    Learn a reward for every decision, in the order of the decisions: if clicks are learned before the zeros that belong
    to the same time, limits do not hold. The argument `subject` of `decide` keeps users who come back on the arm of
    their first decision, and only that decision counts.

    Examples
    --------
    >>> import numpy as np, onepass as op
    >>> rng, rates = np.random.default_rng(0), {"a": 0.2, "b": 0.5}
    >>> study = op.ABTest(None, ["a", "b"])
    >>> while not study.answer.enough:
    ...     decision = study.decide()
    ...     study.learn(decision, float(rng.random() < rates[decision.arm]))
    >>> study.answer.leader
    'b'
    """

    def __init__(
        self,
        bandit: Bandit | None,
        arms: Sequence[Hashable],
        tolerance: float = 0.0,
        certainty: float = 0.95,
        *,
        reward_range: tuple[float, float] = (0.0, 1.0),
        share: float = 0.5,
        floor: float = 0.5,
        seed: int = 0,
    ) -> None:
        if bandit is not None and not isinstance(bandit, Bandit):
            raise ValueError(f"bandit must be a Bandit or None, got {check.quote(bandit)}")
        if bandit is not None and not bandit.model.has_named_arms:
            raise ValueError("bandit must have models of named arms, such as ContextualBandit()")
        self.bandit: Bandit | None = bandit
        self.arms: tuple[Any, ...] = tuple(distinct_names(arms))
        check.integer("the number of arms", len(self.arms), 2, 50)
        self.tolerance: float = check.real("tolerance", tolerance)
        if self.tolerance < 0.0:
            raise ValueError(f"tolerance must be at least 0, got {check.quote(tolerance)}")
        self.certainty: float = _inner_fraction("certainty", certainty)
        self.reward_range = make_range(tuple(reward_range))
        self.share: float = _inner_fraction("share", share)
        self.floor: float = check.positive("floor", floor)
        check.fraction("floor", floor)
        self.seed: int = check.integer("seed", seed, 0)
        count = len(self.arms)
        self.n_learned: int = 0
        self.stopped_at: int | None = None
        self._contrasts = Contrasts(count, 1.0 - self.certainty)
        self._gram, self._moment, self._totals = np.zeros((count, count)), np.zeros(count), np.zeros((2, count))
        self._p = np.full(count, 1.0 / count)
        self._made, self._renewed, self._level, self._squares = 0, 0, 0.0, 0.25
        self._subjects: dict[int, int] = {}
        self._rewarded = RewardedIds()

    @property
    def probabilities(self) -> np.ndarray:
        """Probabilities (K,) with which the next decision draws each arm."""
        return self._p.copy()

    @composite
    def decide(self, context: Any = None, *, id: str | None = None, subject: str | None = None) -> Decision:
        """Choose an arm.

        Parameters
        ----------
        context : array or dict, default None
            Context as the bandit takes it. None without a bandit.
        id : str, default None
            Identity of the decision. The draw is then a function of the seed, the id and what was learned so far. None
            makes one.
        subject : str, default None
            Identity of a user who may come back. Later decisions of a subject get the arm of the first one with
            probability 1, and do not count for the contrasts.

        Returns
        -------
        Decision
            The arm, with exact probabilities.

        Raises
        ------
        ValueError
            If there is a context without a bandit, or the bandit refuses the context.
        """
        if self.bandit is None and context is not None:
            raise ValueError("context must be None for an experiment without a bandit")
        identity = f"{RULE} {self.seed} {self._made}" if id is None else id
        if not isinstance(identity, str) or not identity:
            raise ValueError(f"id must be a string that is not empty, got {check.quote(id)}")
        key = make_key(self.seed, identity)
        known = None if subject is None else self._subjects.get(_subject_key(self.seed, subject))
        p = self._p.copy() if known is None else np.eye(len(self.arms))[known]
        place = int(make_generator(key).choice(len(p), p=p))
        found = self._make_decision(context, identity, place, p, key)
        with defer_signals():
            self._made += 1
            if subject is not None:
                self._subjects.setdefault(_subject_key(self.seed, subject), place)
        return found

    def _make_decision(self, context: Any, identity: str, place: int, p: np.ndarray, key: str) -> Decision:
        """Return the record of a choice of the arm at index `place`, with the predicted rewards of all arms.

        `p` (K,) are the action probabilities, and `key` the key of the random numbers.
        """
        arm, names = self.arms[place], list(self.arms)
        chosen: dict[str, Any] = {
            "propensity": float(p[place]),
            "probabilities": p,
            "propensities": p[place : place + 1],
        }
        if self.bandit is not None:
            found = self.bandit.decide(context, names, id=identity, eligible=[arm])
            return found._replace(**chosen, rule=RULE)
        means = self.reward_range.least + self.reward_range.span * (self._totals[1] + 0.5) / (self._totals[0] + 1.0)
        return Decision(
            arm=arm, arms=[arm], scores=means, means=means, widths=None, **chosen, index=place,
            places=np.array([place]), slots=None, rest=SAMPLED, id=identity, context=None, candidates=names,
            n_learned=self.n_learned, rule=RULE, seed=key,
        )  # fmt: skip

    @composite
    def learn(self, decision: Decision | Sequence[Decision], reward: Any) -> None:
        """Learn the reward of a decision, or the rewards of several in their order.

        Parameters
        ----------
        decision : Decision or sequence of Decision
            Decisions of this experiment, also rebuilt by `Decision.from_dict`.
        reward : float or sequence of float
            Their rewards, within `reward_range`.

        Raises
        ------
        ValueError
            If a reward is out of range, or a decision is between other arms or has had its reward.
        """
        single = isinstance(decision, Decision)
        each: list[Decision] = [decision] if isinstance(decision, Decision) else list(decision)
        values = [check.real("reward", one) for one in ([reward] if single else list(reward))]
        if len(values) != len(each):
            raise ValueError(f"reward must have one number for each decision ({len(each)}), got {len(values)}")
        if not each:
            return
        for one, value in zip(each, values, strict=True):
            if one.is_batch or one.rule != RULE or tuple(one.candidates or ()) != self.arms:
                raise ValueError(f"decision {check.quote(one.id)} is none of this experiment")
            if not self.reward_range.least <= value <= self.reward_range.largest:
                raise ValueError(f"reward must be within {tuple(self.reward_range)}, got {value:g}")
        new = self._rewarded.check([one.id for one in each], False)
        with defer_signals():
            if self.bandit is not None:
                self.bandit.learn(each, values, allow_repeat=True)  # another experiment may have had the same ids
            self._rewarded.add(new)
            span = self.reward_range.span
            self._learn_rows(
                np.array([one.probabilities for one in each]),
                np.array([one.index for one in each]),
                (np.array(values) - self.reward_range.least) / span,
                (np.array([one.means for one in each]) - self.reward_range.least) / span,
            )

    @composite
    def learn_rows(
        self, places: np.ndarray, rewards: np.ndarray, probabilities: np.ndarray, means: np.ndarray | None = None
    ) -> None:
        """Learn rows of decisions that another program made, for instance with `probabilities` of an hour ago.

        The bandit learns nothing from them.

        Parameters
        ----------
        places : array of int of shape (n,)
            Indices of the chosen arms.
        rewards : array of shape (n,)
            Their rewards, within `reward_range`.
        probabilities : array of shape (n, K) or (K,)
            Probabilities with which the arms were chosen.
        means : array of shape (n, K), default None
            Rewards predicted before the arms were chosen. None takes each arm's mean so far.

        Raises
        ------
        ValueError
            If shapes do not agree, a number is out of range, or a chosen arm had no probability.
        """
        number, count = np.dtype(np.float64), len(self.arms)
        values = check.finite("rewards", check.array("rewards", rewards, number, (1,)))
        arms = np.asarray(places)
        if arms.shape != values.shape or arms.dtype.kind not in "iu" or not ((arms >= 0) & (arms < count)).all():
            raise ValueError(f"places must be {len(values)} indices below {count}, got {check.quote(places)}")
        p = np.broadcast_to(check.array("probabilities", probabilities, number, (1, 2), count), (len(values), count))
        chosen = p[np.arange(len(values)), arms]
        if not ((p >= 0.0).all() and (chosen > 0.0).all() and (abs(p.sum(axis=1) - 1.0) < 1e-6).all()):
            raise ValueError(
                f"probabilities must be at least 0, add up to 1, and be above 0 for the arms chosen, got "
                f"{check.quote(probabilities)}"
            )
        least, largest = self.reward_range
        if not ((values >= least) & (values <= largest)).all():
            raise ValueError(f"rewards must be within {tuple(self.reward_range)}")
        scaled = (self._totals[1] + 0.5) / (self._totals[0] + 1.0)
        if means is not None:
            scaled = (check.finite("means", check.array("means", means, number, (2,), count)) - least) / (
                largest - least
            )
        if len(values):
            with defer_signals():
                self._learn_rows(p, arms, (values - least) / (largest - least), np.broadcast_to(scaled, p.shape))

    def _learn_rows(self, p: np.ndarray, arms: np.ndarray, rewards: np.ndarray, means: np.ndarray) -> None:
        """Learn rows: probabilities (n, K), arms (n,), rewards (n,) and predictions (n, K), both scaled to [0, 1]."""
        rows, count = np.arange(len(arms)), len(self.arms)
        means = np.clip(means + self._level, 0.0, 1.0)
        rest = rewards - means[rows, arms]
        self._contrasts.add(p, arms, rewards, means)
        centred = np.eye(count)[arms] - p
        self._gram = self._gram + centred.T @ centred
        self._moment = self._moment + centred.T @ (rewards - (p * means).sum(axis=1))
        self._totals = self._totals + np.stack(
            [np.bincount(arms, each, count) for each in (np.ones(len(arms)), rewards)]
        )
        fade = 0.5 ** (len(arms) / HALF_LIFE)
        self._level = self._level + (1.0 - fade) * float(rest.mean())
        self._squares += float(rest @ rest)
        self.n_learned += len(arms)
        if self.n_learned >= self._renewed * GROWTH + 1.0:
            self._renew()
        if self.stopped_at is None and self._is_enough(self._contrasts.lower()):
            self.stopped_at = self.n_learned

    def _renew(self) -> None:
        """Compute the probabilities of the arms again."""
        count, t = len(self.arms), self.n_learned
        self._renewed = t
        deviation = np.sqrt(self._squares / (t + 1.0))
        samples = self._draw_effects(deviation)
        found = self._contrasts
        costs = np.maximum(found.estimates + self.tolerance / self.reward_range.span, 0.0) / found.widths()
        np.fill_diagonal(costs, np.inf)
        leaders = np.bincount(samples.argmax(axis=1), minlength=count) / len(samples)
        rivals = np.bincount(costs.argmin(axis=1), leaders, count)
        even = self.floor * max(t, 1.0) ** -DECAY
        p = (1.0 - even) * (self.share * leaders + (1.0 - self.share) * rivals) + even / count
        self._p = p / p.sum()

    def _draw_effects(self, deviation: float) -> np.ndarray:
        """Return random draws (DRAWS, K) of the arms' effects on rewards, from the regression on action-centred rows.

        Rewards are scaled to [0, 1], and `deviation` is the standard deviation of their noise.
        """
        root = np.linalg.cholesky(self._gram + np.eye(len(self.arms)))
        theta = np.linalg.solve(root.T, np.linalg.solve(root, self._moment))
        normals = make_generator(make_key(self.seed, f"draws {self.n_learned}")).standard_normal((DRAWS, theta.size))
        return theta + deviation * np.linalg.solve(root.T, normals.T).T

    def _is_enough(self, lower: np.ndarray) -> bool:
        """Return True if the leader is at most `tolerance` worse than any other arm.

        `lower` (K, K) holds lower limits of the differences between arms, for rewards scaled to [0, 1].
        """
        worst = np.delete(lower[leader(lower)], leader(lower)).min()
        return bool(worst > -self.tolerance / self.reward_range.span)

    @property
    @reading
    def answer(self) -> Answer:
        """Answer so far, with the leading arm, its differences to others, whether the test may stop, and a sentence."""
        lower = self._contrasts.lower()
        first, enough = leader(lower), self.stopped_at is not None or self._is_enough(lower)
        each = tuple(one for one in self._list_contrasts(lower) if one.arm == self.arms[first])
        return Answer(self.arms[first], enough, self._sentence(each, enough), each, self.n_learned)

    @reading
    def contrasts(self) -> tuple[Contrast, ...]:
        """Return the estimated differences of all pairs of arms, in both directions.

        Returns
        -------
        tuple of Contrast
            Estimates with limits. All limits hold at all times at once with probability `certainty`.
        """
        return self._list_contrasts(self._contrasts.lower())

    def _list_contrasts(self, lower: np.ndarray) -> tuple[Contrast, ...]:
        """Return the contrasts of all pairs, given their lower limits (K, K) for rewards scaled to [0, 1]."""
        span, found = self.reward_range.span, self._contrasts.estimates
        return tuple(
            Contrast(a, b, span * float(found[i, j]), Interval(span * float(lower[i, j]), -span * float(lower[j, i])))
            for i, a in enumerate(self.arms)
            for j, b in enumerate(self.arms)
            if i != j
        )

    def _sentence(self, contrasts: tuple[Contrast, ...], enough: bool) -> str:
        """Return the answer as a sentence.

        `contrasts` are the differences of the leader to all other arms, and `enough` is True if the experiment may
        stop.
        """
        worst, first = min(contrasts, key=lambda one: one.limits.lower), contrasts[0].arm
        low, high = worst.limits
        if enough and low > 0.0:
            if len(contrasts) == 1:
                return f"{first} is better than {worst.other} by {self._amount(low, high)}; you may stop."
            return f"{first} is better than every other arm by at least {self._amount(low)}; you may stop."
        if enough and self.stopped_at is not None and low < -self.tolerance:  # later rewards have moved the limits
            loss = self._amount(-low)
            return f"{first} is at most {loss} worse than any other arm; you could stop at {self.stopped_at:,} rewards."
        if enough:
            return f"{first} is at most {self._amount(self.tolerance)} worse than any other arm; you may stop."
        if self.n_learned == 0:
            return "no reward is known yet; go on."
        rest = f"{worst.other} may be better by up to {self._amount(-low)}"
        return f"{first} leads, but {rest}; go on{self._remaining(contrasts)}."

    def _amount(self, *numbers: float) -> str:
        """Format one number or a range, in percentage points for clicks, else in units of rewards."""
        clicks = self.reward_range == (0.0, 1.0)
        texts = [f"{100.0 * one if clicks else one:.3g}" for one in numbers]
        return " to ".join(texts) + ((" point" if texts == ["1"] else " points") if clicks else "")

    def _remaining(self, contrasts: tuple[Contrast, ...]) -> str:
        """Return a text on how many more decisions are needed; "" if the leader is not ahead.

        `contrasts` are the differences of the leader to all other arms.
        """
        needed = 0.0
        for one in contrasts:
            ahead = one.gain + self.tolerance
            if ahead <= 0.0 or one.limits.lower <= -self.reward_range.span:
                return ""
            needed = max(needed, ((one.gain - one.limits.lower) / ahead) ** 2 - 1.0)
        return f", for about {float(f'{needed * self.n_learned:.1g}'):,.0f} more decisions" if needed > 0.0 else ""

    def contents(self) -> files.Contents:
        arms = [plain_name(name) if isinstance(name, tuple | np.generic) else name for name in self.arms]
        params = {
            "bandit": self.bandit, "arms": arms, "tolerance": self.tolerance, "certainty": self.certainty,
            "reward_range": list(self.reward_range), "share": self.share, "floor": self.floor, "seed": self.seed,
        }  # fmt: skip
        extra = {
            "n_learned": self.n_learned, "stopped_at": self.stopped_at, "made": self._made, "renewed": self._renewed,
            "level": self._level, "squares": self._squares, "rewarded": self._rewarded.to_text(),
        }  # fmt: skip
        state = ABTestState(
            sums=self._contrasts.sums, gram=self._gram, moment=self._moment,
            totals=np.concatenate([self._totals, self._p[None]]),
            subjects=np.array(list(self._subjects.values()), np.int64),
            keys=np.array(list(self._subjects), np.uint64),
        )  # fmt: skip
        return files.Contents(params, extra, state)

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        """Rebuild the experiment from saved `params`, `extra` and arrays `held`; raise ValueError if they disagree."""
        given = dict(params)
        bandit = build(given.pop("bandit"))
        given["arms"], given["reward_range"] = name_from_json(given["arms"]), tuple(given["reward_range"])
        study = cls(None if bandit is None else bandit.copy(), **given)
        template, count = study.contents().state, len(study.arms)
        found = held.take(template, lambda state: _is_valid(state, count))
        study._contrasts = Contrasts(count, 1.0 - study.certainty, found.sums)
        study._gram, study._moment = found.gram, found.moment
        study._totals, study._p = found.totals[:2].copy(), found.totals[2].copy()
        study._subjects = dict(zip(found.keys.tolist(), found.subjects.tolist(), strict=True))
        study.n_learned = check.integer("n_learned", extra["n_learned"], 0)
        stopped = extra["stopped_at"]
        study.stopped_at = None if stopped is None else check.integer("stopped_at", stopped, 0)
        study._made, study._renewed = (check.integer(name, extra[name], 0) for name in ("made", "renewed"))
        study._level, study._squares = check.real("level", extra["level"]), check.positive("squares", extra["squares"])
        study._rewarded = RewardedIds.from_text(extra["rewarded"])
        return study

    def __repr__(self) -> str:
        return f"<ABTest: {len(self.arms)} arms, {self.n_learned:,} decisions with a reward; {self.answer.sentence}>"

    def _repr_html_(self) -> str:
        return self.answer._repr_html_()


def _subject_key(seed: int, subject: str) -> int:
    """Return a 64-bit hash of a subject's identity."""
    if not isinstance(subject, str) or not subject:
        raise ValueError(f"subject must be a string that is not empty, got {check.quote(subject)}")
    return int(make_key(seed, f"subject {subject}")[:16], 16)


def _is_valid(state: ABTestState, count: int) -> bool:
    """Return True if arrays read from a file can belong to an experiment with `count` arms."""
    p = state.totals[2:]
    return (
        state.sums.shape == (3, count, count)
        and state.gram.shape == (count, count)
        and state.moment.shape == (count,)
        and state.totals.shape == (3, count)
        and bool((p > 0.0).all())
        and abs(float(p.sum()) - 1.0) < 1e-9
        and len(state.subjects) == len(state.keys) == len(set(state.keys.tolist()))
        and bool(((state.subjects >= 0) & (state.subjects < count)).all())
    )


def _inner_fraction(name: str, value: Any) -> float:
    """Return a float above 0 and below 1, or raise ValueError; `name` is the argument that the message names."""
    number = check.fraction(name, value)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name} must be above 0 and below 1, got {check.quote(value)}")
    return number
