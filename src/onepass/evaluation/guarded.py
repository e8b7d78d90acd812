"""A bandit that never earns much less than a baseline, because it is mixed with the baseline as far as needed.

Decisions are drawn from the mixture

    m = (1 - q) pi + q p,     q: baseline_promise.py

where pi are the baseline's probabilities, p the bandit's probabilities, and q the share of the bandit. q begins at 0,
and grows with the evidence that the bandit earns enough. A decision costs at most as much as two decisions of the
bandit.
"""

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, Self, final

import numpy as np

from onepass.bandit.bandit import Bandit
from onepass.bandit.decision import Decision, new_id
from onepass.bandit.mixture import mix_with_baseline, prediction_at
from onepass.evaluation.baseline_promise import EVIDENCE, KINDS, BaselinePromise, GuardReport
from onepass.evaluation.harm_test import AtLeast, AtMost
from onepass.evaluation.reward_range import Range, make_range
from onepass.foundation import files
from onepass.foundation.check import quote
from onepass.foundation.registry import build, savable
from onepass.foundation.rw_lock import composite, reading


@final
@savable
class Guarded(files.Owner):
    """Bandit that earns at least (1 - loss) of what a baseline would have earned, at every time.

    It starts as the baseline. Rewards that it has earned allow it to deviate from the baseline. The more evidence there
    is that the bandit is better, the more often the bandit decides.

    Parameters
    ----------
    bandit : Bandit
        The bandit. It learns every reward, whoever chose the arm.
    baseline : hashable, FieldArm or Bandit
        The present rule: an arm, a field of the request that names an arm, or a bandit, which does not learn here.
    loss : float, default 0.05
        Largest share of the baseline's rewards that may be lost, above 0 and below 1. The least possible reward is
        subtracted from every reward first.
    certainty : float, default 0.95
        Probability that the promise holds at all times together, above 0 and below 1.
    reward_range : pair of float, default (0.0, 1.0)
        Least and largest possible reward, two finite numbers.
    guardrails : dict of str to AtMost or AtLeast, default None
        Limits of outcomes relative to the baseline, such as `AtMost(...)` for an average cost, by the name of the
        outcome. If a limit is found to be broken, the baseline decides alone until `resume`.
    alpha : float, default 0.05
        Probability, above 0 and below 1, that any guardrail is reported as broken although it holds. It is
        divided among the guardrails: the j-th has alpha / (j (j + 1)).
    by : {"evidence", "model"}, default "evidence"
        "evidence" trusts no model. "model" gives the bandit its share faster, as long as a test does not find that the
        bandit predicts too little for the baseline's arms. Evidence then bounds the loss by twice `loss`.

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
    The promise is about the requests that came: the reward that each arm would have paid is taken as fixed, and only
    the choice of the arm is random. While the bandit's share is 0, all other arms than the baseline's have probability
    0. Nothing can be estimated about them from that part of a log.

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
        by: str = EVIDENCE,
    ) -> None:
        if not isinstance(bandit, Bandit):
            raise ValueError(f"bandit must be a Bandit, got {quote(bandit)}")
        if not isinstance(baseline, Hashable):
            raise ValueError(f"baseline must be an arm, a FieldArm or a Bandit, got {quote(baseline)}")
        self.bandit, self._baseline = bandit, baseline
        given = {} if guardrails is None else dict(guardrails)
        for name, one in given.items():
            if name not in bandit.outcomes or not isinstance(one, AtMost | AtLeast):
                raise ValueError(
                    f"guardrails must be {{outcome of {bandit.outcomes}: AtMost or AtLeast}}, got {quote(given)}"
                )
        ends = tuple(reward_range) if isinstance(reward_range, Iterable) else reward_range
        make_range(ends)
        self._promise = BaselinePromise(loss, certainty, Range(*ends), given, alpha, by)

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
            The arms on offer. The baseline's arm must be among them. None means indices of rows, or all known arms.
        id : str, default None
            Identity of the decision. The draw is a function of the seed, the id, the model and the rewards so far. If
            the id is repeated before its reward has come, the share of the bandit is the same as the first time. The
            decision that is learned counts then. None makes an id.
        eligible : array of bool or sequence of names, default None
            The arms that may be chosen. The baseline's arm must be among them.
        **options : Any
            Further arguments of `Bandit.decide`, such as `time`, `costs` and `weights`.

        Returns
        -------
        Decision
            The chosen arm. Its probabilities are those of the mixture of bandit and baseline.

        Raises
        ------
        ValueError
            If `Bandit.decide` refuses the request, or the baseline's arm may not be chosen.
        """
        identity = new_id() if id is None else id
        arms, eligible = (list(one) if isinstance(one, Iterator) else one for one in (arms, eligible))
        decision = self.bandit.decide(context, arms, id=identity, eligible=eligible, **options)
        if decision.is_batch:
            raise ValueError("contexts must be those of one decision: each one may change what the next one may risk")
        law, place = self._baseline_choice(decision, context, arms, eligible, options)
        mixed = mix_with_baseline(
            decision,
            lambda one: self.bandit.decide(context, arms, id=identity, eligible=one, **options),
            law,
            place,
            self._promise.share(identity),
            self._promise.expect(*prediction_at(decision, place)),
        )
        self._promise.add_decision(identity, mixed.mixture, int(mixed.index))
        return mixed

    def _baseline_choice(
        self, decision: Decision, context: Any, arms: Any, eligible: Any, options: Any
    ) -> tuple[np.ndarray, int]:
        """Return the baseline's probabilities (K,) for the request of a decision, and the index of its arm.

        `context`, `arms`, `eligible` and `options` are the arguments with which the decision was made.
        """
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

    # ---- rewards ----

    @composite
    def learn(self, decision: Decision, reward: Any = None, *, outcomes: Any = None, **options: Any) -> None:
        """Learn the reward and outcomes of a decision.

        Parameters
        ----------
        decision : Decision
            A decision of `decide`.
        reward : float, default None
            The reward, within `reward_range`. None if only outcomes are given.
        outcomes : dict of str to float, default None
            Outcomes, for a bandit with `outcomes`. One with a guardrail must be from 0 to its `upper`. It may come
            with the reward, before it or later.
        **options : Any
            Further arguments of `Bandit.learn`, such as `time`.

        Raises
        ------
        ValueError
            If a number is out of range, or `Bandit.learn` refuses. Nothing has changed then.
        """
        value = reward if reward is None and outcomes is not None else self._promise.check_reward(reward)
        checked = self._promise.check_outcomes(outcomes if isinstance(outcomes, Mapping) else {})
        more = {} if outcomes is None else {"outcomes": outcomes}
        self.bandit.learn(decision, value, **more, **options)
        if decision.mixture is not None:
            self._promise.correct_decision(decision.id, decision.mixture, int(decision.index))
        self._promise.learn(decision.id, value, checked)

    # ---- questions ----

    @reading
    def report(self) -> GuardReport:
        """Return the state of the promise.

        Returns
        -------
        GuardReport
            The sums of rewards, the loss that is still allowed, the share of the bandit, and broken guardrails.
        """
        return self._promise.report()

    @composite
    def resume(self, name: str) -> None:
        """Restart the test of a broken guardrail (the limit of an outcome), from the next decision on.

        Parameters
        ----------
        name : str
            Name of the outcome.

        Raises
        ------
        ValueError
            If there is no such guardrail.
        """
        self._promise.resume(name)

    # ---- files ----

    def contents(self) -> files.Contents:
        kinds, promise = {kind: name for name, kind in KINDS.items()}, self._promise
        is_arm = not isinstance(self._baseline, Bandit | FieldArm)
        params = {
            "bandit": self.bandit,
            "baseline": None if is_arm else self._baseline,
            "loss": promise.loss,
            "certainty": promise.certainty,
            "reward_range": list(promise.rewards),
            "guardrails": [
                [name, kinds[type(one.guardrail)], one.guardrail.ratio, one.guardrail.upper]
                for name, one in promise.tests.items()
            ],
            "alpha": promise.alpha,
            "by": promise.by,
        }
        arm = files.plain_object(self._baseline) if is_arm else None
        return files.Contents(params, {"state": json.dumps({"arm": arm, **promise.to_dict()})}, ())

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        held.take((), lambda found: True)
        bandit, baseline = (
            one.copy() if isinstance(one, Bandit) else build(one) for one in (params["bandit"], params["baseline"])
        )
        state = json.loads(extra["state"])
        rails = {name: KINDS[kind](*numbers) for name, kind, *numbers in params["guardrails"]}
        given = {name: params[name] for name in ("loss", "certainty", "alpha", "by")}
        arm = files.object_from_plain(state["arm"]) if baseline is None else baseline
        made = cls(bandit, arm, reward_range=tuple(params["reward_range"]), guardrails=rails, **given)
        made._promise.restore(state)
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


def _is_mask(eligible: list[Any]) -> bool:
    return all(isinstance(one, bool) for one in eligible)
