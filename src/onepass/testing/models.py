"""The conformance suite of models."""

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
from onepass.testing.shared import close, summary

CLOSE = 1e-6  # of what is derived and what a model says itself; in float32 a little less is known
RULES: tuple[Callable[[], Exploration], ...] = (Greedy, lambda: UCB(0.5), lambda: InverseGap(), lambda: Thompson(0.5))
Pair = tuple[Any, Any]  # a context and an arm, as `observe` takes them


def check_model(
    make: Callable[[], Model],
    context: Callable[[np.random.Generator], Any],
    arms: Any = None,
    *,
    chosen: Callable[[Any, int], Pair] | None = None,
    rounds: int = 30,
) -> str:
    """AssertionError unless `make()` gives models that keep the contract (onepass.extend.Model).

    make: a model that has learned nothing. context: of one decision among the same number of arms, from a generator.
    arms: on offer, as `Bandit.decide` takes them (default None). chosen: of a context and a place, what `Bandit.learn`
    is told of the arm there (default: row and no arm; where arms are given, the context and the arm). rounds: of a
    game, at least 10 (default 30).

    Encoding, predicting and freezing change nothing; statistics have a number an arm, and widths and draws where a rule
    wants them; choices and scores are those that are derived from statistics; evidence survives JSON and teaches what
    observation does; an update is all or nothing; explanations add up to means and squared widths; copies, pickles and
    bytes go on alike, and a frozen copy stays as it is. Returns a sentence that says what was checked.
    """
    one = chosen or ((lambda found, place: (found[place], None)) if arms is None else by_name(arms))
    game, model = np.random.default_rng(0), make()
    for turn in range(rounds):
        found = context(game)
        seen, arm = one(found, turn % model.encode(found, arms).size)
        model = taught(model, seen, arm, float(game.standard_normal()))
        if turn in (0, rounds // 2):
            check_statistics(model, found, arms)
    assert model.n_learned == rounds, f"{model!r}: {model.n_learned} rows are counted, not {rounds}"
    found = context(game)
    check_statistics(model, found, arms)
    check_choices(model, found, arms)
    check_records(model, found, arms, one)
    check_refusals(model, found, one)
    check_explanations(model, found, arms)
    check_copies(model, found, arms, one)
    assert model.memory_usage() > 0
    assert model.error_bound() >= 0.0
    return summary(
        model, f"statistics, choices and explanations in a game of {rounds} rounds", "evidence survives JSON",
        "updates are all or nothing", "copies, pickles and bytes go on alike",
    )  # fmt: skip


def by_name(arms: Any) -> Callable[[Any, int], Pair]:
    """The context of all arms, and the arm at a place: its name, with its features where these are given."""
    if isinstance(arms, dict):
        return lambda found, place: (found, {list(arms)[place]: list(arms.values())[place]})
    return lambda found, place: (found, arms[place])


def taught(model: Model, context: Any, arm: Any, reward: float) -> Model:
    """The model after one reward."""
    batch = model.observe(context, arm)
    assert batch.size == 1, f"{model!r}: one context was observed as {batch.size}"
    return model.update(batch, np.array([reward], model.dtype))


def check_statistics(model: Model, context: Any, arms: Any) -> None:
    before, request = to_bytes(model), model.encode(context, arms)
    where, count = repr(model), request.size
    assert request.single, f"{where}: one decision was encoded as several"
    assert count > 0, f"{where}: no arm was encoded"
    assert request.names is None or len(request.names) == count, f"{where}: {request.names} are not {count} names"
    for make in RULES:
        rule = make_rule(make())
        seen = model.predict(request, 0, rule, np.random.default_rng(1), rule.pairs)
        assert seen.means.shape == seen.widths.shape == seen.beta.shape == (count,), f"{where}: not a number an arm"
        assert np.isfinite(seen.means).all(), f"{where}: means are {seen.means}"
        assert (seen.widths >= 0.0).all(), f"{where}: widths are {seen.widths}"
        assert seen.samples.shape[1] == count, f"{where}: draws have shape {seen.samples.shape}"
        assert (len(seen.samples) > 0) == (rule.pairs > 0), f"{where}: {len(seen.samples)} draws for {rule.text}"
        again = model.predict(request, 0, rule, np.random.default_rng(1), rule.pairs)
        assert np.array_equal(again.means, seen.means), f"{where}: means are others in a second call"
        assert np.array_equal(again.samples, seen.samples), f"{where}: equal generators give other draws"
    assert to_bytes(model) == before, f"{where}: to encode and to predict has changed something"


def check_choices(model: Model, context: Any, arms: Any) -> None:
    request = model.encode(context, arms)
    among = np.ones((1, request.size), np.bool_)
    for make in RULES[:3]:  # those without draws, whose choices are functions of statistics
        rule = model.active_rule(make_rule(make()), request)
        where, rng = f"{model!r} under {rule.text}", np.random.default_rng(2)
        k = min(2, request.size)
        places, p, scores, means, widths = model.choose(request, 0, rule, rng, among, k, False)
        lots = np.random.default_rng(2).random(2 * k)
        seen = model.predict(request, 0, rule, np.random.default_rng(0), 0)
        view = model.view(seen, rule)
        derived = rank_and_fill(rule.rule, view, among, lots, False)
        assert len(set(places.tolist())) == k, f"{where}: {k} slots have the places {places}"
        close(f"{where}: scores", scores, model.mean_rewards(derived[2], rule), CLOSE)
        close(f"{where}: means", means, model.mean_rewards(seen.means), CLOSE)
        close(f"{where}: probabilities", p, derived[1], CLOSE)
        assert np.allclose(p.sum(axis=1), 1.0, rtol=0.0, atol=1e-12), (
            f"{where}: probabilities add up to {p.sum(axis=1)}"
        )
        assert widths is None or widths.shape == (request.size,), f"{where}: widths have shape {widths.shape}"
        ranked = model.scores(request, rule, np.random.default_rng(0))
        close(f"{where}: scores without a draw", ranked[0], score(rule.rule, view), CLOSE)


def check_records(model: Model, context: Any, arms: Any, one: Callable[[Any, int], Pair]) -> None:
    """A record teaches what observation does, and so does one from JSON."""
    where, bandit = repr(model), Bandit(model.copy(), UCB(0.3), seed=4)
    decision = bandit.decide(context, arms, id="a request")
    record = Decision.from_dict(json.loads(json.dumps(decision.to_dict())))
    assert record.to_dict() == decision.to_dict(), f"{where}: a record is another one after JSON"
    twins = [bandit.copy() for _ in range(3)]
    twins[0].learn(decision, 0.5)
    twins[1].learn(record, 0.5)
    observed, arm = one(context, decision.index)
    twins[2].learn(observed, 0.5, arm)
    ends = [to_bytes(twin.model) for twin in twins]
    assert ends[0] == ends[1], f"{where}: a record teaches something else than the decision"
    assert ends[0] == ends[2], f"{where}: observation teaches something else than the decision"
    request = model.encode_decision(record)
    assert isinstance(request, Request), f"{where}: a record is read again as {type(request).__name__}"
    fixed = record.context is None  # all arms are known without a record
    assert fixed or request.size == 1, f"{where}: a record of one slot has {request.size} arms"


def check_refusals(model: Model, context: Any, one: Callable[[Any, int], Pair]) -> None:
    bandit = Bandit(model.copy())
    before = to_bytes(bandit)
    observed, arm = one(context, 0)
    for reward in (np.nan, np.inf, "much", [1.0, 2.0]):
        try:
            bandit.learn(observed, reward, arm)
        except ValueError:
            assert to_bytes(bandit) == before, f"{model!r}: {reward!r} was refused, and something has changed"
            continue
        raise AssertionError(f"{model!r}: the reward {reward!r} was not refused with a ValueError")


def check_explanations(model: Model, context: Any, arms: Any) -> None:
    bandit = Bandit(model.copy(), UCB(0.5))
    found = bandit.explain(context, arms=arms)
    parts = np.array([[term.contribution, term.share] for term in found.terms]).reshape(-1, 2).sum(axis=0)
    close(f"{model!r}: contributions add up to the mean", parts[:1], np.array([found.mean]), 1e-5)
    close(f"{model!r}: shares add up to the squared width", parts[1:], np.array([found.width**2]), 1e-5)


def check_copies(model: Model, context: Any, arms: Any, one: Callable[[Any, int], Pair]) -> None:
    where, before, frozen = repr(model), to_bytes(model), model.freeze()
    kept = to_bytes(frozen)
    twins = {"a copy": model.copy(), "bytes": from_bytes(before), "a pickle": pickle.loads(pickle.dumps(model))}
    ends = {}
    for what, twin in twins.items():
        assert to_bytes(twin) == before, f"{where}: {what} holds something else"
        ends[what] = to_bytes(taught(twin, *one(context, 0), 1.0))
    assert to_bytes(model) == before, f"{where}: what a copy learned has changed the original"
    end = to_bytes(taught(model, *one(context, 0), 1.0))
    assert end != before, f"{where}: a reward has changed nothing"
    for what, found in ends.items():
        assert found == end, f"{where}: {what} goes on differently"
    assert to_bytes(frozen) == kept, f"{where}: a frozen copy has changed"
    rule = make_rule(UCB(0.5))
    frozen.predict(frozen.encode(context, arms), 0, rule, np.random.default_rng(0), 0)
