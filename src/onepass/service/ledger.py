"""Ledger of a loop: spending of budgets, evidence about a baseline, and rows of an A/B test, computed from the log.

- A decision is charged the outcomes that were predicted for its arm, and is counted in the promise about the baseline.
- An outcome is charged in place of its prediction when it comes.
- A join (the final reward and outcomes of a decision) is evidence for or against the bandit.
- New settings change budgets, but not the amounts already spent.
- A join and its decision are a row of the A/B test.

Budgets come before the baseline: if a budget stops an arm of the rule in force, the cheapest arm takes its place.

A decision depends on the ledger, and counts in it once its record is durable. Until then its amounts are reserved, so
that decisions at the same time do not spend the same money. A restart takes the ledger of a checkpoint and adds the
records after it: the amounts are the same in every bit.
"""

import threading
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from onepass.bandit.bandit import Bandit
from onepass.bandit.decision import Decision as Decided
from onepass.bandit.mixture import mix_with_baseline, prediction_at
from onepass.bandit.pacing import PENDING, RING, Pacing
from onepass.evaluation.ab_test import ABTest
from onepass.evaluation.baseline_promise import BaselinePromise
from onepass.foundation import files
from onepass.foundation.check import quote
from onepass.log.records import CORRECTIONS, Decision, Join, Outcome, Settings
from onepass.service.accounting_settings import (
    Baseline,
    budgets_of,
    has_budgets,
    make_ab_test,
    make_promise,
    saved_rule,
)
from onepass.service.late_rewards import EARLY
from onepass.service.settings import LoopSettings, parse_logged_settings

EARLY_OUTCOMES = 10_000  # outcomes whose decision has not come, the latest
HELD = 20_000  # decisions of an A/B test that memory holds
RESUME = "resume"  # where a settings record names a guardrail that is tested anew
EVIDENCE = "evidence"  # field of a decision that says on which records the bandit's share depends
Decide = Callable[..., Decided]


class Evidence(NamedTuple):
    """Position in the log up to which records decided how often the bandit, and not the baseline, makes a decision.

    `through` is the sequence number of the last record counted. `waiting` holds the ids of later decisions that were
    being made at the same time.
    """

    through: int
    waiting: list[str]


class Accounted(NamedTuple):
    """Decision made within budgets and beside a baseline, with further fields for its record.

    `fields` are fields of the record, and `extra` holds entries of the record's field `extra`.
    """

    decision: Decided
    fields: dict[str, Any]
    extra: dict[str, Any]


class RuleChoice(NamedTuple):
    """Choice of the baseline, the present rule.

    `law` (K,) holds its probabilities of the arms, and `place` is the index of the arm chosen.
    """

    law: np.ndarray
    place: int


class Ledger:
    """Ledger of a loop: the state of its budgets, its baseline and its A/B test, computed from the log.

    Any thread may call it. `find` returns the records of the log about a decision. By default it finds none.
    """

    def __init__(self, find: Callable[[str], list[Any]] = lambda identity: []) -> None:
        self._find = find
        self.study: ABTest | None = None
        self._rows: dict[str, Decision] = {}  # of the A/B test, whose joins are awaited; others are found
        self.settings: LoopSettings | None = None
        self.pacing: Pacing | None = None
        self.promise: BaselinePromise | None = None
        self._rule: Bandit | None = None  # of a baseline that is a saved bandit
        self._counted = 0  # sequence number of the last record
        self._lock = threading.RLock()
        self._arms: dict[str, str] = {}  # of decisions whose outcomes may come, by id
        self._early: deque[Outcome] = deque(maxlen=EARLY_OUTCOMES)
        self._places: deque[int] = deque(maxlen=RING)  # sequence numbers of the latest decisions within budgets

    @property
    def is_active(self) -> bool:
        """True if the loop has budgets or a baseline, so that decisions depend on earlier ones."""
        return self.pacing is not None or self.promise is not None

    @property
    def has_state(self) -> bool:
        """True if a checkpoint must hold the ledger's state."""
        return self.is_active or self.study is not None

    # ---- decisions ----

    def decide(
        self, identity: str, decide: Decide, ask: Decide, names: list[str], context: Any, eligible: list[str] | None,
        costs: Any, weights: Any, now: float,
    ) -> Accounted:  # fmt: skip
        """Decide within the budgets and beside the baseline, and reserve what the decision may spend.

        A repeated request changes nothing here: the log keeps its first decision, which is charged.

        - identity: id of the decision.
        - decide: function that makes a decision of the model, with further options of `Bandit.decide`.
        - ask: function that makes a decision of the bandit that is its argument, the baseline.
        - names: arms on offer.
        - context: context of the request.
        - eligible: arms that may be chosen, None for all.
        - costs, weights: known prices of arms, and weights of outcomes, as in the request; None without any.
        - now: time of the decision in Unix seconds.

        Raises ValueError for a request that cannot be decided.
        """
        with self._lock:
            fields: dict[str, Any] = {}
            extra: dict[str, Any] = {}
            options = {name: value for name, value in (("costs", costs), ("weights", weights)) if value is not None}
            if self.pacing is not None:
                prices, bases = self.pacing.arm_prices(names, costs)
                pricing = self.pacing.pricing(dict(weights or {}), now, prices, bases)
                is_repeated = identity in self._arms or self.pacing.is_reserved(identity)
                with self.pacing.commit_if_new(is_repeated):
                    decision = decide(costs=prices, weights=pricing)
                    fields["prices"] = self.pacing.prices
                options = {"costs": prices, "weights": decision.weights}
            else:
                decision = decide(**options)
            if self.promise is not None:
                rule = self._rule_choice(ask, names, context, eligible, decision)
                mixed = mix_with_baseline(
                    decision, lambda mask: decide(eligible=mask, **options), *rule, self.promise.share(),
                    self.promise.expect(*prediction_at(decision, rule.place)),
                )  # fmt: skip
                decision = mixed._replace(eligible=decision.eligible)
                fields["baseline"] = [rule.place]
                extra[EVIDENCE] = Evidence(self._counted, self.promise.waiting)._asdict()
                self.promise.reserve(identity, decision.mixture, int(decision.index))
            if self.pacing is not None:
                place = int(decision.index)
                if not is_repeated:
                    self.pacing.reserve(identity, _amounts(decision.predicted, place), now)
                known = {name: bases.get((name, names[place])) for name in self.pacing.names}
                given = {name: price for name, price in known.items() if price is not None}
                fields["known_prices"] = given or None
            return Accounted(decision, fields, extra)

    def _rule_choice(
        self, ask: Decide, names: list[str], context: Any, eligible: list[str] | None, decision: Decided
    ) -> RuleChoice:
        """Return the choice of the rule in force for the request of a decision of the model.

        If a budget stops an arm of the rule, the cheapest arm that no budget stops takes its place. The arguments are
        those of `decide`, and `decision` is the model's decision.
        """
        assert self.settings is not None
        assert self.settings.baseline is not None
        if self._rule is None:
            place = baseline_place(self.settings.baseline, names, context, eligible)
            found = RuleChoice((np.arange(len(names)) == place).astype(np.float64), place)
        else:
            chosen = ask(self._rule)
            found = RuleChoice(chosen.probabilities, int(chosen.index))
        if self.pacing is None or decision.eligible is None:
            return found
        allowed, cheapest = decision.eligible, self.pacing.cheapest_arm(decision.predicted, decision.eligible)
        law = np.where(allowed, found.law, 0.0)
        law[cheapest] += found.law[~allowed].sum()
        return RuleChoice(law, found.place if allowed[found.place] else cheapest)

    def share_after(self, waiting: Iterable[Decision]) -> float | None:
        """Return the probability with which the bandit, and not the baseline, makes the next decision.

        `waiting` are decisions to be counted as made but not yet rewarded. Returns None without a baseline.
        """
        with self._lock:
            if self.promise is None:
                return None
            known = [one for one in waiting if one.mixture is not None]
            for one in known:
                assert one.mixture is not None
                self.promise.reserve(one.id, one.mixture, one.places[0])
            share = self.promise.share()
            for one in known:
                self.promise.release(one.id)
            return share

    def release(self, identity: str) -> None:
        """Release the amounts that a decision reserved, unless its record is already counted."""
        with self._lock:
            if self.pacing is not None:
                self.pacing.release(identity)
            if self.promise is not None:
                self.promise.release(identity)

    # ---- records ----

    def add_record(self, record: Any) -> None:
        """Add the next record of the log: a decision is charged, outcomes and rewards are counted."""
        if isinstance(record, Settings):
            with self._lock:
                self._apply(parse_logged_settings(record), record.settings.get(RESUME))
                self._counted = record.seq
        elif self.has_state:
            with self._lock:
                if self.study is not None:
                    self._add_to_study(record, self.study)
                if isinstance(record, Decision):
                    self._add_decision(record)
                elif isinstance(record, Outcome) and record.name is not None and self.pacing is not None:
                    self._add_outcome(record)
                elif isinstance(record, Join) and self.promise is not None and record.how not in CORRECTIONS:
                    self._add_join(record)
                self._counted = record.seq

    def _apply(self, settings: LoopSettings, resume: str | None) -> None:
        before, self.settings = self.settings, settings
        if not has_budgets(settings):
            self.pacing = None
        else:
            budgets, names = budgets_of(settings), tuple(settings.outcomes)
            shares = None if settings.shares is None else settings.shares.shares()
            self.pacing = Pacing(names, budgets, shares) if self.pacing is None else self.pacing
            self.pacing.replace(budgets, shares)
        if before is None or before.baseline != settings.baseline:
            self._rule = saved_rule(settings)
        if settings.baseline is None:
            self.promise = None
        elif self.promise is None or before is None or _terms(before) != _terms(settings):
            self.promise = make_promise(settings)
        elif resume in self.promise.tests:
            self.promise.resume(resume)
        if settings.ab_test is None:
            self.study = None
        elif self.study is None or before is None or _test_terms(before) != _test_terms(settings):
            self.study, self._rows = make_ab_test(settings), {}

    def _add_to_study(self, record: Any, study: ABTest) -> None:
        """Keep a decision for the A/B test, or add its row when its reward has been joined."""
        if isinstance(record, Decision):
            self._rows[record.id] = record
            if len(self._rows) > HELD:
                del self._rows[next(iter(self._rows))]
        elif isinstance(record, Join) and not record.again:
            held = self._rows.pop(record.id, None)
            found = [held] if held is not None else self._find(record.id)
            decision = next((one for one in found if isinstance(one, Decision)), None)
            reward = record.rewards[0]
            least, largest = study.reward_range
            if decision is not None and reward is not None and least <= reward <= largest:
                self._learn_row(decision, reward, study)

    def _learn_row(self, record: Decision, reward: float, study: ABTest) -> None:
        names, p, place = record.offered or [], record.probabilities, record.places[0]
        if record.shown is not None:
            p, place = record.showing, record.shown[0]
        if len(record.places) != 1 or p is None or {*names} != {*study.arms} or p[place] <= 0.0:
            return
        order = [names.index(arm) for arm in study.arms]
        means = None if record.means is None else np.array([[record.means[one] for one in order]])
        chances = np.array([p[one] for one in order])
        study.learn_rows(np.array([order.index(place)]), np.array([reward]), chances, means)

    def _add_decision(self, record: Decision) -> None:
        if self.pacing is not None and record.prices is not None and record.predicted is not None:
            names, place = record.offered or [], record.places[0]
            self.pacing.release(record.id)
            amounts, known = _amounts(record.predicted, place), record.known_prices or {}
            used = {name: each.get(f"{place}", 0.0) for name, each in (record.costs or {}).items()}
            self.pacing.charge_decision(record.id, names[place], amounts, known, used, record.seconds)
            self._arms[record.id] = names[place]
            if len(self._arms) > PENDING:
                del self._arms[next(iter(self._arms))]
            self._places.append(record.seq)
            for outcome in [one for one in self._early if one.id == record.id and one.time >= record.time - EARLY]:
                self._early.remove(outcome)
                self._add_outcome(outcome)
        if self.promise is not None and record.mixture is not None:
            self.promise.add_decision(record.id, record.mixture, record.places[0])

    def _add_outcome(self, record: Outcome) -> None:
        """Charge an outcome: its first value replaces the prediction, and later ones are added if values are summed."""
        assert self.pacing is not None
        assert self.settings is not None
        assert record.name is not None
        arm, name = self._arms.get(record.id), record.name
        if arm is None:
            self._early.append(record)
        elif self.pacing.is_charged(record.id, name):
            self.pacing.charge_outcomes(record.id, arm, {name: record.value}, record.seconds)
        elif name in self.pacing.names and self.settings.outcomes[name].aggregation == "sum":
            self.pacing.spend(name, record.value, record.seconds)

    def _add_join(self, record: Join) -> None:
        assert self.promise is not None
        (outcomes,) = record.outcomes or [None]
        least, largest = self.promise.rewards
        reward = record.rewards[0]
        if reward is not None and not least <= reward <= largest:
            reward = None  # of an earlier range
        within = {
            name: value
            for name, value in (outcomes or {}).items()
            if name in self.promise.tests and 0.0 <= value <= self.promise.tests[name].guardrail.upper
        }
        self.promise.learn(record.id, reward, within)

    # ---- restart ----

    def to_dict(self) -> dict[str, Any]:
        """Return the state of the ledger as data for JSON, for a checkpoint.

        "pacing" holds the budgets, "promise" the baseline, "study" the A/B test, and the other keys the counts and
        records that they need. `restore` takes the result.
        """
        with self._lock:
            return {
                "pacing": None if self.pacing is None else self.pacing.to_dict(recent=False),
                "promise": None if self.promise is None else self.promise.to_dict(),
                "counted": self._counted,
                "arms": dict(self._arms),
                "early": [[one.time, one.id, one.name, one.value] for one in self._early],
                "places": [*self._places],
                "study": None if self.study is None else b64encode(files.to_bytes(self.study)).decode(),
            }

    def restore(self, settings: LoopSettings, state: Mapping[str, Any]) -> None:
        """Replace the state by one that `to_dict` returned, under the settings of that time."""
        self.settings = settings
        if state["pacing"] is not None:
            self.pacing = Pacing.from_dict(tuple(settings.outcomes), state["pacing"])
        if state["promise"] is not None:
            self.promise = make_promise(settings)
            self.promise.restore(state["promise"])
            self._rule = saved_rule(settings)
        if state.get("study") is not None:
            self.study = files.from_bytes(b64decode(state["study"]))
        self._arms, self._counted = dict(state["arms"]), state["counted"]
        early = (
            Outcome(loop=settings.name, time=time, id=id, name=name, value=value)
            for time, id, name, value in state["early"]
        )
        self._early.extend(early)
        self._places.extend(state["places"])

    @property
    def recent(self) -> list[int]:
        """Sequence numbers of the latest decisions within budgets, from which the budgets' prices are computed."""
        return [*self._places]

    def recall(self, record: Decision) -> None:
        """Add a decision of the log to the recent requests from which budget prices are computed."""
        if self.pacing is not None and record.prices is not None and record.predicted is not None:
            names = tuple(record.offered or ())
            mask = record.eligible if record.eligible and isinstance(record.eligible[0], bool) else None
            self.pacing.recall(names, record.scores, record.predicted, mask, record.prices)

    # ---- how it is ----

    def budgets(self) -> dict[str, dict[str, Any]]:
        """Return the state of every budget, by its outcome, as data for JSON.

        The keys of a state are the fields of `onepass.bandit.budget.Spending`, such as "spent" and "left".
        """
        with self._lock:
            if self.pacing is None:
                return {}
            return {name: one._asdict() for name, one in self.pacing.spending().items()}

    def guard(self) -> dict[str, Any] | None:
        """Return the state of the comparison with the baseline, as data for JSON: rewards, limits and guardrail tests.

        The keys are the fields of `GuardReport` and "guardrails", which holds "stopped", "evidence" and "needed" by
        outcome. Returns None without a baseline.
        """
        with self._lock:
            if self.promise is None:
                return None
            tests = {
                name: {"stopped": one.is_harmful, "evidence": min(one.evidence, 1e300), "needed": 1.0 / one.alpha}
                for name, one in self.promise.tests.items()
            }
            return {**self.promise.report()._asdict(), "guardrails": tests}

    def ab_test(self) -> dict[str, Any] | None:
        """Return the answer of the loop's A/B test as data for JSON; None if it has no test.

        The keys are "leader", "enough", "sentence", "contrasts", "decisions" and "certainty".
        """
        with self._lock:
            if self.study is None:
                return None
            answer = self.study.answer
            each = [
                {"arm": one.arm, "other": one.other, "gain": one.gain, "limits": [*one.limits]}
                for one in answer.contrasts
            ]
            return {**answer._asdict(), "contrasts": each, "certainty": self.study.certainty}


def baseline_place(baseline: Baseline, names: list[str], context: Any, eligible: list[str] | None) -> int:
    """Return the index of the baseline's arm among `names`. Raises ValueError if it may not be chosen.

    `eligible` lists the arms that may be chosen; None means all.
    """
    if baseline.arm is None and baseline.field is None:
        return 0 if eligible is None else names.index(eligible[0])
    arm = baseline.arm
    if baseline.field is not None:
        if baseline.field not in context:
            raise ValueError(f"context must have {quote(baseline.field)}, which names the baseline's arm")
        arm = context[baseline.field]
    if arm not in (names if eligible is None else eligible):
        raise ValueError(f"the baseline's arm {quote(arm)} must be among the arms on offer that are not excluded")
    return names.index(arm)


def _amounts(predicted: Mapping[str, Any], place: int) -> dict[str, float]:
    """Return the amounts that were predicted for the arm with the index `place`, by outcome.

    `predicted` maps outcomes to the predicted amounts of all arms.
    """
    return {name: float(each[place]) for name, each in predicted.items()}


def _test_terms(settings: LoopSettings) -> tuple[Any, ...]:
    """Return the settings on which an A/B test depends; if they change, the test starts again."""
    return settings.ab_test, settings.arms, settings.reward.range


def _terms(settings: LoopSettings) -> tuple[Any, ...]:
    """Return the settings on which a promise depends; if they change, evidence is collected from the beginning."""
    rails = {name: one.guardrail for name, one in settings.outcomes.items()}
    return settings.baseline, settings.reward.range, rails
