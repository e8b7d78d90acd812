"""Conformance suite of models."""

import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from onepass.bandit.bandit import Bandit
from onepass.bandit.decision import Decision
from onepass.exploration.contract import score
from onepass.exploration.exploration import Exploration
from onepass.exploration.greedy import Greedy
from onepass.exploration.inverse_gap import InverseGap
from onepass.exploration.rule import make_rule
from onepass.exploration.slots import rank_and_fill
from onepass.exploration.thompson import Thompson
from onepass.exploration.ucb import UCB
from onepass.foundation.files import from_bytes, to_bytes
from onepass.model.contract import Model, Request
from onepass.testing.shared import assert_close, summary

TOLERANCE = 1e-6  # between derived numbers and those of the model itself
RULES: tuple[Callable[[], Exploration], ...] = (Greedy, lambda: UCB(0.5), lambda: InverseGap(), lambda: Thompson(0.5))
Observation = tuple[Any, Any]  # a context and an arm, as `observe` takes them


def check_model(
    make: Callable[[], Model],
    context: Callable[[np.random.Generator], Any],
    arms: Any = None,
    *,
    observe_arm: Callable[[Any, int], Observation] | None = None,
    n_rounds: int = 30,
) -> str:
    """Check that a model satisfies its contract, `onepass.extend.Model`.

    Parameters
    ----------
    make : function
        Returns a new model, which has learned nothing.
    context : function
        Maps a random generator to the context of one decision. All contexts have the same number of arms.
    arms : sequence or dict, default None
        Arms on offer, as `Bandit.decide` takes them.
    observe_arm : function, default None
        Maps a context and the index of an arm to the context and the arm that `Bandit.learn` takes. None takes the
        row of the arm and no arm, or the context and the arm if `arms` are given.
    n_rounds : int, default 30
        Number of rounds of a game, at least 10.

    Returns
    -------
    str
        A sentence that lists what was checked.

    Raises
    ------
    AssertionError
        At the first violation.

    Notes
    -----
    The suite checks that

    - encoding, predicting and freezing change nothing;
    - statistics have a number per arm, and widths and draws if a rule needs them;
    - choices and scores equal those derived from the statistics;
    - a decision's record survives JSON and teaches what an observation does;
    - a refused update changes nothing;
    - explanations add up to means and squared widths;
    - copies, pickles and bytes continue alike, and a frozen copy stays as it is.
    """
    if observe_arm is None:
        observe_arm = _observe_row if arms is None else _make_observer(arms)
    game, model = np.random.default_rng(0), make()
    for turn in range(n_rounds):
        current = context(game)
        observed, arm = observe_arm(current, turn % model.encode(current, arms).size)
        model = _learn(model, observed, arm, float(game.standard_normal()))
        if turn in (0, n_rounds // 2):
            _check_statistics(model, current, arms)
    assert model.n_learned == n_rounds, f"{model!r}: {model.n_learned} rows are counted, not {n_rounds}"
    current = context(game)
    _check_statistics(model, current, arms)
    _check_choices(model, current, arms)
    _check_records(model, current, arms, observe_arm)
    _check_refusals(model, current, observe_arm)
    _check_explanations(model, current, arms)
    _check_copies(model, current, arms, observe_arm)
    assert model.memory_usage() > 0
    assert model.error_bound() >= 0.0
    return summary(
        model, f"statistics, choices and explanations in a game of {n_rounds} rounds", "evidence survives JSON",
        "updates are all or nothing", "copies, pickles and bytes go on alike",
    )  # fmt: skip


def _observe_row(context: Any, index: int) -> Observation:
    return context[index], None


def _make_observer(arms: Any) -> Callable[[Any, int], Observation]:
    """Return the function from a context and an arm's index to the context and the arm, as `Bandit.learn` takes them.

    `arms` are the arms on offer, a dict if they have features. Then the arm is {name: features}, else its name.
    """
    if isinstance(arms, dict):
        return lambda context, index: (context, {list(arms)[index]: list(arms.values())[index]})
    return lambda context, index: (context, arms[index])


def _learn(model: Model, context: Any, arm: Any, reward: float) -> Model:
    """Return the model after it has learned one reward."""
    batch = model.observe(context, arm)
    assert batch.size == 1, f"{model!r}: one context was observed as {batch.size}"
    return model.update(batch, np.array([reward], model.dtype))


def _check_statistics(model: Model, context: Any, arms: Any) -> None:
    before, request = to_bytes(model), model.encode(context, arms)
    where, count = repr(model), request.size
    assert request.single, f"{where}: one decision was encoded as several"
    assert count > 0, f"{where}: no arm was encoded"
    assert request.names is None or len(request.names) == count, f"{where}: {request.names} are not {count} names"
    for make in RULES:
        rule = make_rule(make())
        statistics = model.predict(request, 0, rule, np.random.default_rng(1), rule.pairs)
        assert statistics.means.shape == statistics.widths.shape == statistics.beta.shape == (count,), (
            f"{where}: not a number an arm"
        )
        assert np.isfinite(statistics.means).all(), f"{where}: means are {statistics.means}"
        assert (statistics.widths >= 0.0).all(), f"{where}: widths are {statistics.widths}"
        assert statistics.samples.shape[1] == count, f"{where}: draws have shape {statistics.samples.shape}"
        assert (len(statistics.samples) > 0) == (rule.pairs > 0), (
            f"{where}: {len(statistics.samples)} draws for {rule.text}"
        )
        repeated = model.predict(request, 0, rule, np.random.default_rng(1), rule.pairs)
        assert np.array_equal(repeated.means, statistics.means), f"{where}: means are others in a second call"
        assert np.array_equal(repeated.samples, statistics.samples), f"{where}: equal generators give other draws"
    assert to_bytes(model) == before, f"{where}: encoding and predicting have changed something"


def _check_choices(model: Model, context: Any, arms: Any) -> None:
    request = model.encode(context, arms)
    eligible = np.ones((1, request.size), np.bool_)
    for make in RULES[:3]:  # rules without draws, whose choices are functions of statistics
        rule = model.active_rule(make_rule(make()), request)
        where, rng = f"{model!r} under {rule.text}", np.random.default_rng(2)
        k = min(2, request.size)
        places, p, scores, means, widths = model.choose(request, 0, rule, rng, eligible, k, False)
        uniforms = np.random.default_rng(2).random(2 * k)
        statistics = model.predict(request, 0, rule, np.random.default_rng(0), 0)
        view = model.view(statistics, rule)
        derived = rank_and_fill(rule.rule, view, eligible, uniforms, False)
        assert len(set(places.tolist())) == k, f"{where}: {k} slots have the places {places}"
        assert_close(f"{where}: scores", scores, model.mean_rewards(derived[2], rule), TOLERANCE)
        assert_close(f"{where}: means", means, model.mean_rewards(statistics.means), TOLERANCE)
        assert_close(f"{where}: probabilities", p, derived[1], TOLERANCE)
        assert np.allclose(p.sum(axis=1), 1.0, rtol=0.0, atol=1e-12), (
            f"{where}: probabilities add up to {p.sum(axis=1)}"
        )
        assert widths is None or widths.shape == (request.size,), f"{where}: widths have shape {widths.shape}"
        ranked = model.scores(request, rule, np.random.default_rng(0))
        assert_close(f"{where}: scores without a draw", ranked[0], score(rule.rule, view), TOLERANCE)


def _check_records(model: Model, context: Any, arms: Any, observe_arm: Callable[[Any, int], Observation]) -> None:
    """Check that a decision, its record and an observation teach the same.

    `context` is the context of one decision; `arms` and `observe_arm` are arguments of `check_model`.
    """
    where, bandit = repr(model), Bandit(model.copy(), UCB(0.3), seed=4)
    decision = bandit.decide(context, arms, id="a request")
    record = Decision.from_dict(json.loads(json.dumps(decision.to_dict())))
    assert record.to_dict() == decision.to_dict(), f"{where}: a record is another one after JSON"
    twins = [bandit.copy() for _ in range(3)]
    twins[0].learn(decision, 0.5)
    twins[1].learn(record, 0.5)
    observed, arm = (context, decision.arm) if model.draws_actions else observe_arm(context, decision.index)
    twins[2].learn(observed, 0.5, arm)
    ends = [to_bytes(twin.model) for twin in twins]
    assert ends[0] == ends[1], f"{where}: a record teaches something else than the decision"
    assert ends[0] == ends[2], f"{where}: observation teaches something else than the decision"
    request = model.encode_decision(record)
    assert isinstance(request, Request), f"{where}: a record is read again as {type(request).__name__}"
    assert request.size == 1, f"{where}: a record of one slot has {request.size} arms"


def _check_refusals(model: Model, context: Any, observe_arm: Callable[[Any, int], Observation]) -> None:
    bandit = Bandit(model.copy())
    before = to_bytes(bandit)
    observed, arm = observe_arm(context, 0)
    for reward in (np.nan, np.inf, "much", [1.0, 2.0]):
        try:
            bandit.learn(observed, reward, arm)
        except ValueError:
            assert to_bytes(bandit) == before, f"{model!r}: {reward!r} was refused, and something has changed"
            continue
        raise AssertionError(f"{model!r}: the reward {reward!r} was not refused with a ValueError")


def _check_explanations(model: Model, context: Any, arms: Any) -> None:
    bandit = Bandit(model.copy(), UCB(0.5))
    explanation = bandit.explain(context, arms=arms)
    parts = np.array([[term.contribution, term.share] for term in explanation.terms]).reshape(-1, 2).sum(axis=0)
    assert_close(f"{model!r}: contributions add up to the mean", parts[:1], np.array([explanation.mean]), 1e-5)
    assert_close(f"{model!r}: shares add up to the squared width", parts[1:], np.array([explanation.width**2]), 1e-5)


def _check_copies(model: Model, context: Any, arms: Any, observe_arm: Callable[[Any, int], Observation]) -> None:
    where, before, frozen = repr(model), to_bytes(model), model.freeze()
    frozen_before = to_bytes(frozen)
    twins = {"a copy": model.copy(), "bytes": from_bytes(before), "a pickle": pickle.loads(pickle.dumps(model))}
    ends = {}
    for what, twin in twins.items():
        assert to_bytes(twin) == before, f"{where}: {what} holds something else"
        ends[what] = to_bytes(_learn(twin, *observe_arm(context, 0), 1.0))
    assert to_bytes(model) == before, f"{where}: what a copy learned has changed the original"
    end = to_bytes(_learn(model, *observe_arm(context, 0), 1.0))
    assert end != before, f"{where}: a reward has changed nothing"
    for what, learned in ends.items():
        assert learned == end, f"{where}: {what} goes on differently"
    assert to_bytes(frozen) == frozen_before, f"{where}: a frozen copy has changed"
    rule = make_rule(UCB(0.5))
    frozen.predict(frozen.encode(context, arms), 0, rule, np.random.default_rng(0), 0)
