"""A bandit that never earns much less than a baseline: a mixture of both, opened by evidence alone.

    m = (1 - q) pi + q p,     q = 0 while slack < 1 - loss, else slack / (slack + ROOM)
    promise   sum r >= (1 - loss) sum r_b,     r_b: reward of the arm that the baseline would have shown
    slack     R - (1 - loss) (H + D - M),     R: sum of rewards;  H: of those where the baseline's arm was shown;
              D: number of other decisions, the misses;  M: lower limit of their sum of y = 1 - r_b

Rewards are scaled to [0, 1], so a miss costs at most 1 - loss, and with M = 0 the promise is certain. r_b is seen where
the baseline's arm was shown, by chance c: (1 - c) y / c has the same mean there as y has in misses, and for l > 0

    E exp(l (hit (1 - c) y / c - miss y) - f_c(l)) <= 1,     f_c(l) = log(c exp(l (1 - c) / c) + (1 - c) exp(-l))

for every y in [0, 1]. So with probability `certainty`, at all times together (Ville 1939, a union over J bets l),

    M = max over l of  sum of hit (1 - c) y / c - (sum of f_c(l) + log(J / (1 - certainty))) / l

No model has to be right: only the draw of the arm is random. Rewards that have not come count as 0 for the bandit and
as 1 for the baseline. Related: conservative bandits (Kazerouni, Ghavamzadeh, Abbasi-Yadkori and Van Roy 2017), which
trust a model. Cost: two decisions at most.
"""

import json
import math
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple, Self, final

import numpy as np

from onepass.bandit.bandit import Bandit
from onepass.bandit.decision import Decision, new_id
from onepass.evaluation.harm_test import AtLeast, AtMost, HarmTest
from onepass.evaluation.reward_range import Range
from onepass.exploration.random_split import hash_uniform, mix_probabilities
from onepass.foundation import check, files
from onepass.foundation.check import quote
from onepass.foundation.registry import build, savable
from onepass.foundation.rw_lock import composite, reading

ROOM = 3.0  # slack, in rewards of 1, at which the bandit has half of the decisions
MOST = 0.98  # share of the bandit
BETS = 2.0 ** -np.arange(9.0)  # l
PENDING = 100_000  # decisions whose rewards are awaited; older ones count as if none came
KINDS: dict[str, type[AtMost] | type[AtLeast]] = {"at most": AtMost, "at least": AtLeast}


class Shown(NamedTuple):
    """One decision whose reward is awaited.

    hit: the baseline's arm was shown, with probability `chance`; policy_weight, baseline_weight: p / m and pi / m of
    the arm shown; share: q.
    """

    hit: bool
    chance: float
    policy_weight: float
    baseline_weight: float
    share: float


class GuardReport(NamedTuple):
    """State of a `Guarded` bandit.

    Parameters
    ----------
    decisions : int
        Number of decisions.
    deviations : int
        Decisions in which another arm than the baseline's was shown.
    reward : float
        Sum of rewards beyond the least possible one.
    baseline : float
        Upper limit of that sum for the baseline.
    slack : float
        Reward less (1 - loss) times baseline, in units of rewards.
    share : float
        Share q of the bandit in the next decision.
    stopped : tuple of str
        Outcomes whose guardrail has been broken.
    """

    decisions: int
    deviations: int
    reward: float
    baseline: float
    slack: float
    share: float
    stopped: tuple[str, ...]


@final
@savable
class Guarded(files.Owner):
    """Bandit that earns at least (1 - loss) of what a baseline would have earned, at every time.

    It starts as the baseline. Every reward buys deviations, and evidence that the bandit is better opens it.

    Parameters
    ----------
    bandit : Bandit
        The bandit. It learns every reward, whoever chose the arm.
    baseline : hashable, FieldArm or Bandit
        The rule in force: an arm, a field of the request that names an arm, or a bandit, which does not learn here.
    loss : float, default 0.05
        Largest share of the baseline's rewards that may be lost, above 0 and below 1. Rewards count from the least
        possible one.
    certainty : float, default 0.95
        Probability that the promise holds at all times together, above 0 and below 1.
    reward_range : pair of float, default (0.0, 1.0)
        Least and largest possible reward.
    guardrails : dict of str to AtMost or AtLeast, default None
        Claims about outcomes. A broken one sends all decisions to the baseline until `resume`.
    alpha : float, default 0.05
        Probability that any guardrail is broken falsely, above 0 and below 1. Guardrail j has alpha / (j (j + 1)).

    Attributes
    ----------
    bandit : Bandit
        The bandit.

    Raises
    ------
    ValueError
        If an argument is out of range, or a guardrail is of an outcome that the bandit does not learn.

    Notes
    -----
    The promise is about the rewards of the very requests that came: rewards r(a) of all arms are fixed, and only the
    arm is drawn. Arms other than the baseline's have probability 0 while q = 0, so a log has no support for them there.

    Examples
    --------
    >>> import onepass as op
    >>> guarded = op.Guarded(op.ContextualBandit(), baseline="old", loss=0.05)
    >>> decision = guarded.decide([0.3, 1.2], ["old", "new"])
    >>> decision.arm, decision.propensity
    ('old', 1.0)
    >>> guarded.learn(decision, 1.0)
    >>> guarded.report().share
    0.0
    """

    bandit: Bandit

    def __init__(
        self,
        bandit: Bandit,
        baseline: Any,
        *,
        loss: float = 0.05,
        certainty: float = 0.95,
        reward_range: tuple[float, float] = (0.0, 1.0),
        guardrails: Mapping[str, AtMost | AtLeast] | None = None,
        alpha: float = 0.05,
    ) -> None:
        if not isinstance(bandit, Bandit):
            raise ValueError(f"bandit must be a Bandit, got {quote(bandit)}")
        if not isinstance(baseline, Hashable):
            raise ValueError(f"baseline must be an arm, a FieldArm or a Bandit, got {quote(baseline)}")
        self.bandit, self._baseline = bandit, baseline
        self._loss, self._certainty = _inner("loss", loss), _inner("certainty", certainty)
        self._alpha, self._range = _inner("alpha", alpha), Range(*reward_range)
        given = {} if guardrails is None else dict(guardrails)
        for name, one in given.items():
            if name not in bandit.outcomes or not isinstance(one, AtMost | AtLeast):
                raise ValueError(
                    f"guardrails must be {{outcome of {bandit.outcomes}: AtMost or AtLeast}}, got {quote(given)}"
                )
        self._tests = {
            name: HarmTest(one, self._alpha / ((j + 1) * (j + 2))) for j, (name, one) in enumerate(given.items())
        }
        self._shown: dict[str, Shown] = {}
        self._decisions = self._misses = 0
        self._earned = self._hits = self._missed = 0.0  # sums of r, of r in hits, and of (1 - c) y / c in hits
        self._growth = np.zeros(BETS.size)  # sums of f_c(l)

    # ---- decisions ----

    @composite
    def decide(
        self, context: Any = None, arms: Any = None, *, id: str | None = None, eligible: Any = None, **options: Any
    ) -> Decision:
        """Choose an arm for one request.

        Parameters
        ----------
        context : array, dict, frame or Factors, default None
            One request, as in `Bandit.decide`.
        arms : sequence of hashable, dict or list of features, default None
            The arms on offer. The baseline's arm must be among them.
        id : str, default None
            Identity of the decision. The draw is a function of the seed, the id, the model and the rewards so far.
            None makes an id.
        eligible : array of bool or sequence of names, default None
            The arms that may be chosen. The baseline's arm must be among them.
        **options : Any
            Further arguments of `Bandit.decide`, such as `time`, `costs` and `weights`.

        Returns
        -------
        Decision
            The chosen arm. Its probabilities are those of the mixture m.

        Raises
        ------
        ValueError
            If `Bandit.decide` refuses the request, or the baseline's arm may not be chosen.
        """
        identity = new_id() if id is None else id
        decision = self.bandit.decide(context, arms, id=identity, eligible=eligible, **options)
        if decision.is_batch:
            raise ValueError("contexts must be those of one decision: each one may change what the next one may risk")
        law, place = self._baseline_choice(decision, context, arms, eligible, options)
        share, p, drawn = self._share(), decision.probabilities, int(decision.index)
        index = drawn if hash_uniform(f"{decision.seed} {identity}", b"guarded") < share else place
        if index != drawn:
            one = np.arange(p.size) == index
            decision = self.bandit.decide(context, arms, id=identity, eligible=one, **options)
        mixture = np.array(mix_probabilities(law.tolist(), p.tolist(), share))
        m = float(mixture[index])
        decision = decision._replace(probabilities=mixture, propensity=m, propensities=np.array([m]))
        if identity not in self._shown:  # a repeated question counts once
            chance = 1.0 - share + share * float(p[place])
            self._note(identity, Shown(index == place, chance, float(p[index]) / m, float(law[index]) / m, share))
        return decision

    def _baseline_choice(
        self, decision: Decision, context: Any, arms: Any, eligible: Any, options: Any
    ) -> tuple[np.ndarray, int]:
        """Return the baseline's probabilities (K,) and the index of its arm."""
        baseline, count = self._baseline, decision.probabilities.size
        if isinstance(baseline, Bandit):
            times = {"time": options["time"]} if baseline.needs_time and "time" in options else {}
            found = baseline.decide(context, arms, id=decision.id, eligible=eligible, **times)
            return found.probabilities, int(found.index)
        arm = baseline.arm_of(context) if isinstance(baseline, FieldArm) else baseline
        names = list(range(count)) if decision.candidates is None else list(decision.candidates)
        if arm not in names:
            raise ValueError(f"the baseline's arm {quote(arm)} must be among the arms on offer, {quote(names)}")
        place = names.index(arm)
        among = getattr(eligible, "tolist", lambda: eligible)()
        if among is not None and not (among[place] if _is_mask(among) else arm in among):
            raise ValueError(f"the baseline's arm {quote(arm)} must be eligible")
        return (np.arange(count) == place).astype(np.float64), place

    def _share(self) -> float:
        """Return q for the next decision."""
        slack = self._slack()
        if slack < 1.0 - self._loss or any(one.is_harmful for one in self._tests.values()):
            return 0.0
        return min(slack / (slack + ROOM), MOST)

    def _baseline_limit(self) -> float:
        """Return an upper limit of the baseline's sum of rewards, scaled to [0, 1]."""
        level = math.log(BETS.size / (1.0 - self._certainty))
        lost = float((self._missed - (self._growth + level) / BETS).max())
        return self._hits + self._misses - max(lost, 0.0)

    def _slack(self) -> float:
        return self._earned - (1.0 - self._loss) * self._baseline_limit()

    def _note(self, identity: str, shown: Shown) -> None:
        self._shown[identity] = shown
        self._decisions += 1
        self._misses += not shown.hit
        c = shown.chance
        if c < 1.0:
            self._growth = self._growth + np.log(c * np.exp(BETS * (1.0 - c) / c) + (1.0 - c) * np.exp(-BETS))
        if len(self._shown) > PENDING:
            del self._shown[next(iter(self._shown))]

    # ---- rewards ----

    @composite
    def learn(self, decision: Decision, reward: float, *, outcomes: Any = None, **options: Any) -> None:
        """Learn the reward and outcomes of a decision.

        Parameters
        ----------
        decision : Decision
            A decision of `decide`.
        reward : float
            The reward, within `reward_range`.
        outcomes : dict of str to float, default None
            Outcomes, for a bandit with `outcomes`. One with a guardrail must be from 0 to its `upper`.
        **options : Any
            Further arguments of `Bandit.learn`, such as `time`.

        Raises
        ------
        ValueError
            If a number is out of range, or `Bandit.learn` refuses. Nothing has changed then.
        """
        value = check.real("reward", reward)
        least, span = self._range.least, self._range.span
        if not least <= value <= least + span:
            raise ValueError(f"reward must be from {least:g} to {least + span:g}, got {quote(value)}; see reward_range")
        given = {} if outcomes is None else outcomes
        checked = {
            name: one.check_value(given[name]) for name, one in self._tests.items() if given.get(name) is not None
        }
        more = {} if outcomes is None else {"outcomes": outcomes}
        self.bandit.learn(decision, value, **more, **options)
        shown = self._shown.pop(decision.id, None)
        if shown is None:
            return  # decided elsewhere, or learned again: no part of the promise
        if shown.share > 0.0:
            for name, outcome in checked.items():
                self._tests[name].add(shown.policy_weight, shown.baseline_weight, shown.share, outcome)
        scaled = (value - least) / span
        self._earned += scaled
        if shown.hit:
            self._hits += scaled
            self._missed += (1.0 - shown.chance) / shown.chance * (1.0 - scaled)

    # ---- questions ----

    @reading
    def report(self) -> GuardReport:
        """Return the state of the promise.

        Returns
        -------
        GuardReport
            Sums, slack, the share of the bandit, and broken guardrails.
        """
        span = self._range.span
        return GuardReport(
            self._decisions,
            self._misses,
            span * self._earned,
            span * self._baseline_limit(),
            span * self._slack(),
            self._share(),
            tuple(name for name, one in self._tests.items() if one.is_harmful),
        )

    @composite
    def resume(self, name: str) -> None:
        """Test a broken guardrail anew, from the next decision on.

        Parameters
        ----------
        name : str
            Name of the outcome.

        Raises
        ------
        ValueError
            If there is no such guardrail.
        """
        if name not in self._tests:
            raise ValueError(f"name must be that of a guardrail, {quote(list(self._tests))}, got {quote(name)}")
        self._tests[name] = HarmTest(self._tests[name].guardrail, self._tests[name].alpha)

    # ---- files ----

    def contents(self) -> files.Contents:
        kinds = {kind: name for name, kind in KINDS.items()}
        baseline = self._baseline
        params = {
            "bandit": self.bandit,
            "baseline": baseline,
            "loss": self._loss,
            "certainty": self._certainty,
            "reward_range": [self._range.least, self._range.least + self._range.span],
            "guardrails": [
                [name, kinds[type(one.guardrail)], one.guardrail.ratio, one.guardrail.upper]
                for name, one in self._tests.items()
            ],
            "alpha": self._alpha,
        }
        state = {
            "shown": {identity: list(one) for identity, one in self._shown.items()},
            "counts": [self._decisions, self._misses],
            "sums": [self._earned, self._hits, self._missed],
            "growth": self._growth.tolist(),
            "tests": {name: one.log_wealth.tolist() for name, one in self._tests.items()},
        }
        return files.Contents(params, {"state": json.dumps(state)}, ())

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        held.take((), lambda found: True)
        bandit, baseline = (
            one.copy() if isinstance(one, Bandit) else build(one) for one in (params["bandit"], params["baseline"])
        )
        rails = {name: KINDS[kind](*numbers) for name, kind, *numbers in params["guardrails"]}
        given = {name: params[name] for name in ("loss", "certainty", "alpha")}
        made = cls(bandit, _name(baseline), reward_range=tuple(params["reward_range"]), guardrails=rails, **given)
        state = json.loads(extra["state"])
        made._shown = {identity: Shown(*one) for identity, one in state["shown"].items()}
        made._decisions, made._misses = state["counts"]
        made._earned, made._hits, made._missed = state["sums"]
        made._growth = np.array(state["growth"], np.float64)
        for name, wealth in state["tests"].items():
            made._tests[name] = HarmTest(rails[name], made._tests[name].alpha, wealth)
        return made

    def __repr__(self) -> str:
        found = self.report()
        return f"<Guarded: share {found.share:.2f}, slack {found.slack:.4g}; {self.bandit!r}>"


@savable
class FieldArm:
    """Baseline whose arm is named by a field of the request.

    Parameters
    ----------
    name : str
        Name of the field of a dictionary context.
    """

    name: str

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise ValueError(f"name must be a string, got {quote(name)}")
        self.name = name

    @property
    def params(self) -> dict[str, Any]:
        """Arguments of the constructor."""
        return {"name": self.name}

    def arm_of(self, context: Any) -> Any:
        """Return the arm that a request names.

        Parameters
        ----------
        context : dict
            The request.

        Returns
        -------
        hashable
            The arm.

        Raises
        ------
        ValueError
            If the context is no dictionary, or has no such field.
        """
        if not isinstance(context, Mapping) or self.name not in context:
            raise ValueError(f"context must be a dictionary with a field {quote(self.name)}, got {quote(context)}")
        return context[self.name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldArm) and other.name == self.name

    def __hash__(self) -> int:
        return hash((FieldArm, self.name))

    def __repr__(self) -> str:
        return f"FieldArm({self.name!r})"


def _inner(name: str, value: Any) -> float:
    found = check.real(name, value)
    if not 0.0 < found < 1.0:
        raise ValueError(f"{name} must be above 0 and below 1, got {quote(value)}")
    return found


def _name(arm: Any) -> Any:
    """Return the name of an arm from JSON, where a tuple is a list."""
    return tuple(_name(one) for one in arm) if isinstance(arm, list) else arm


def _is_mask(eligible: list[Any]) -> bool:
    return all(isinstance(one, bool) for one in eligible)
