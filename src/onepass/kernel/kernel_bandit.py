"""What all kernel bandits do: decide, learn rewards, explain. What they know: kernel_model.py."""

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np

from onepass.bandit.deciding import (
    Rule,
    are_decisions,
    asked,
    checked_tail,
    failed,
    paired,
    recorded,
    rule_of,
    trouble,
)
from onepass.bandit.decision import DRAWN, Decision
from onepass.bandit.explanation import Explanation, contenders, explanation, recalled
from onepass.bandit.names import eligible_arms
from onepass.bandit.rounds import fill_slots
from onepass.exploration.contract import Seen, draws, score, strength
from onepass.exploration.greedy import EpsilonGreedy
from onepass.exploration.randomness import no_normals, noise_once
from onepass.exploration.residuals import residual
from onepass.exploration.thompson import DEVIATIONS, PlainThompson, Thompson
from onepass.exploration.ucb import UCB
from onepass.foundation import check
from onepass.foundation.check import shown
from onepass.foundation.sharing import reading, writing
from onepass.kernel.explaining import expanded, expansion
from onepass.kernel.kernel_model import KernelModel
from onepass.kernel.posterior import (
    centred,
    units,
)
from onepass.kernel.values import gram_of, prior_of

Score = Callable[[Any], np.ndarray]


@cache
def at_random() -> Rule:
    """The rule while kernel and reg are not chosen."""
    return rule_of(EpsilonGreedy(1.0))


@lru_cache(maxsize=16)
def two_deviations(reg: float) -> Rule:
    """The rule where none is given."""
    return rule_of(UCB(2.0 * reg**0.5))


class KernelBandit(KernelModel):
    """A bandit whose rewards are f(x) + noise, f of bounded norm in the space of a kernel. Use `GPUCB` or `BKB`."""

    def _rule(self, random: bool = True) -> tuple[Rule, float]:
        """The rule of exploration and its beta; random: arms can be drawn until kernel and reg are chosen."""
        if self._fits and random:
            return at_random(), 0.0
        if self._fits or self._explores is None:
            return two_deviations(self.reg), 2.0 * self.reg**0.5
        exploration = self._explores.exploration
        if isinstance(exploration, Thompson | PlainThompson) and exploration.exploration is None:
            return self._explores, DEVIATIONS * self.reg**0.5
        scale, theory = strength(self._explores.rule).scale, exploration.theory
        if theory is not None:
            return self._explores, scale * self._radius(theory) / units(self._state, self.normalize)[1]
        return self._explores, scale * (self.reg / self._begun_with[1]) ** 0.5  # as many standard deviations as before

    def _seen(self, rows: Any, explores: Rule, beta: float, rng: np.random.Generator, pairs: int) -> Seen:
        """What the rule sees of the arms, or of the rows where arms change; `pairs` of draws."""
        s, shifts = self._state, np.zeros((0, 0))
        if rows is None:
            if not self.fixed:
                raise ValueError("rows must be given where arms change: the arms of this round, one a row")
            means, ones, variances = s.means, s.ones, s.variances
            if pairs:
                shifts = self._arm_draws(rng, pairs)
        else:
            gram, prior = gram_of(self.kernel, self.dictionary, rows), prior_of(self.kernel, rows)
            if pairs:
                shifts = self._row_draws(rows, gram, prior, rng, pairs)
            means, ones, variances = self._predicted(gram, prior)
        centre, scale = units(s, self.normalize)
        means, widths = centred(means, ones, variances, centre, scale)
        samples = no_normals(means.size)
        if pairs:
            samples = np.concatenate([means + beta * scale * shifts, means - beta * scale * shifts])
            samples = samples[: draws(explores.rule)]
        return Seen(
            means=means,
            widths=widths,
            samples=samples,
            beta=np.full(means.size, beta),
            residual=residual(self._tally),
            rounds=self.rounds,
        )

    @reading
    def decide(
        self,
        rows: Any = None,
        k: int = 1,
        *,
        id: Any = None,
        eligible: Any = None,
        tail: str = DRAWN,
        maximizer: Callable[[Score], Any] | None = None,
    ) -> Decision:
        """Choose an arm: its index, among fixed arms or the rows (K, dim) of this round.

        k: slots to fill; id, eligible, tail: as for `SharedBandit.decide`.
        maximizer: where arms change and cannot be listed, a function that is given the score function,
        (n, dim) -> (n,), and returns the row that is best; `arm` is then that row (UCB and greedy rules, floor 0).
        widths: sigma, in units of rewards: scores of UCB are means + beta widths.
        ValueError for bad rows or k; FloatingPointError when a score is not finite.
        """
        if self.fixed and not (rows is None and maximizer is None):
            raise ValueError("rows and maximizer are for arm sets that change: build the bandit with arms=None")
        explores, beta = self._rule(random=maximizer is None)
        (one,) = asked(id, None, self.seed, self._rng)
        if maximizer is not None:
            random = explores.pairs or explores.rule.floor > 0.0 or explores.residual
            if rows is not None or k != 1 or eligible is not None or random:
                raise ValueError("maximizer takes the place of rows, with k = 1 and UCB or Greedy without a floor")
            return self._maximized(maximizer, explores, beta, one)
        rows = rows if rows is None else self._checked_rows(rows)
        count = len(self._state.plays) if rows is None else len(rows)
        k = check.integer("k", k, 1, max(count, 1))
        among, greedy = eligible_arms(eligible, None, count, k), checked_tail(tail)
        before = one.rng.bit_generator.state if explores.pairs else None
        try:
            seen = self._seen(rows, explores, beta, one.rng, explores.pairs)
            scores = score(explores.rule, seen)
            if not np.isfinite(scores).all():
                raise trouble()
        except BaseException:
            if before is not None:
                one.rng.bit_generator.state = before
            raise
        _, lots = noise_once(min(explores.pairs, 1), 0, one.rng, k)
        places, p = fill_slots(explores.rule, seen, scores, among, lots, greedy)
        if places[0] < 0:
            raise failed(int(places[0]))
        context = None if rows is None else rows[places[0]].copy() if k == 1 else rows[places]
        return recorded(one, (places, p, scores, seen.means, seen.widths), None, context, tail, explores, self.rounds)

    def _maximized(self, maximizer: Callable[[Score], Any], explores: Rule, beta: float, one: Any) -> Decision:
        def found(points: Any) -> tuple[np.ndarray, Seen]:
            seen = self._seen(self._checked_rows(points), explores, beta, self._rng, 0)
            return score(explores.rule, seen), seen

        row = np.array(maximizer(lambda points: found(points)[0]), np.float64)
        if row.ndim != 1:
            raise ValueError(f"maximizer must return one row (dim,), got shape {row.shape}")
        scores, seen = found(row[None])
        if not np.isfinite(scores[0]):
            raise trouble()
        sure = np.zeros(1, np.int64), np.ones((1, 1)), scores, seen.means, seen.widths
        decision = recorded(one, sure, None, row.copy(), DRAWN, explores, self.rounds)
        return decision._replace(arm=row, arms=[row])

    @reading
    def score(self, rows: Any = None) -> np.ndarray:
        """Scores of all arms, or of the rows, without side effects; of Thompson sampling for the seed's first draw."""
        explores, beta = self._rule()
        rows = rows if rows is None else self._checked_rows(rows)
        seen = self._seen(rows, explores, beta, np.random.default_rng(self.seed), min(explores.pairs, 1))
        return score(explores.rule, seen)

    @writing
    def learn(self, arm: Any, reward: Any, *, again: bool = False) -> None:
        """Learn the reward of an arm: an index, or a row (dim,) where arms change; or several at once, in order.

        arm: or a `Decision`, or a list of them, from whose records alone is learned: reward is then a number per
        decision, for k slots k numbers, None where there was none. again: learn a second reward of a decision, too
        (default False: it is refused, for the last 10,000 decisions rewarded).
        ValueError, and nothing has changed, for an arm that does not exist, NaN, a decision that has had its reward, or
        a kernel found not to be positive definite. Before several at once everything is copied, so that all or none are
        learned.
        """
        if are_decisions(arm):
            self._reward(arm, reward, again)
        else:
            self._learn_all(arm, reward)

    def _learn_all(self, arm: Any, reward: Any) -> None:
        """`learn` of arms."""
        known = self.fixed and type(arm) is int and 0 <= arm < len(self._state.plays)
        if known and type(reward) is float and -1e12 < reward < 1e12:  # the common case, checked at once
            self._learn(arm, reward)
            return
        many, arms = self._arms(arm)
        rewards = check.array("reward", reward, np.dtype(np.float64), (1 if many else 0,)).reshape(-1)
        check.finite("reward", rewards)
        if len(arms) != len(rewards):
            raise ValueError(f"reward must have one entry per arm ({len(arms)}), got {len(rewards)}")
        if len(arms) == 1:
            self._learn(arms[0], float(rewards[0]))
            return
        whole = self.copy()
        try:
            for one, paid in zip(arms, rewards, strict=True):
                self._learn(one, float(paid))
        except BaseException:
            self.__dict__.update(whole.__dict__)
            raise

    def _reward(self, decisions: Any, rewards: Any, again: bool) -> None:
        """Learn the rewards of decisions, all or none."""
        given, paid = paired(decisions, rewards)
        identities = [one.id for one in given]
        if not again:
            self._rewarded.refuse(identities)
        arms, values = [], []
        for one, each in zip(given, paid, strict=True):
            if self.fixed != (one.context is None):
                raise ValueError(f"decision {check.shown(one.id)} must be one of a bandit like this one")
            rows = one.places.tolist() if one.context is None else list(one.context.reshape(len(one.arms), -1))
            arms += [row for row, value in zip(rows, each, strict=True) if value is not None]
            values += [value for value in each if value is not None]
        if arms:
            self._learn_all(arms if self.fixed else np.stack(arms), values)
        self._rewarded.add(identities)

    def play(self, reward: Callable[[int], float], rounds: int) -> np.ndarray:
        """Decide and learn `rounds` times on a fixed set of arms; reward(arm) is what an arm pays. The arms chosen.

        What `reward` raises passes through: the rounds before are learned, and the arm of this one was decided.
        """
        if not self.fixed:
            raise ValueError("play needs a fixed set of arms; where arms change, decide and learn in turn")
        if not callable(reward):
            raise ValueError(f"reward must be a function of the arm that gives what it pays, got {shown(reward)}")
        arms = np.empty(check.integer("rounds", rounds, 0), np.int64)
        for t in range(arms.size):
            arms[t] = arm = self.decide().arm
            self.learn(arm, reward(arm))
        return arms

    def explain(self, rows: Any = None, arm: Any = None, other: Any = None) -> Explanation:
        """What the mean and the width of an arm are made of, dictionary point by dictionary point (explaining.py).

        rows: (K, dim), the arms of this round where they change, or any others, as `score` takes them; or a `Decision`,
        from its record alone: where arms change the rows are those of its slots (arm None: that of the first); arm,
        other: indices, as in `SharedBandit.explain` (None: the arm of the largest score, and its nearest competitor).
        A term is a point, "arm7" among fixed arms, else "point2" for the third of `dictionary`; its value is the
        kernel's there. Errors as `score`, and for arms not offered. Nothing changes.
        """
        if isinstance(rows, Decision):
            if self.fixed != (rows.context is None):
                raise ValueError(f"decision {shown(rows.id)} must be one of a bandit like this one")
            first = int(rows.places[0]) if self.fixed else 0
            arm, rows = first if arm is None else arm, None if self.fixed else recalled(rows, None, None)[0]
        scores = self.score(rows)
        places = contenders(scores, range(len(scores)), arm, other)
        points = self._state.points[places] if rows is None else self._checked_rows(rows)[places]
        found = expansion(self._state, self.kernel, points, self.reg, self.fixed, self.normalize)
        return explanation(places, scores[places].tolist(), lambda m: expanded(found, *self._weights(found.near(m)), m))
