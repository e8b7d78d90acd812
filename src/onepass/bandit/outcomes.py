"""Outcomes beside the reward in a bandit's calls: names, prices, weights and values.

    y = value                         an outcome without a price
    y = value / price - 1             an outcome with a known price of the arm; values above CLIP[1] = 10 prices are cut
    predicted = price clip(1 + y^, .1, 10), or y^ without a price
    score = weight_reward U_a + sum_j weight_j predicted_ja      if weights are given

y is what is learned and y^ its prediction. Prices may change from decision to decision, because y is relative to them.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from onepass.bandit.decide import DecisionSeed
from onepass.bandit.decision import Decision
from onepass.exploration.contract import ArmStatistics, score
from onepass.exploration.randomness import noise_once
from onepass.exploration.rule import Rule
from onepass.exploration.slots import rank_and_fill_direct
from onepass.foundation.check import quote
from onepass.model.contract import Choice, Model, Request

REWARD, ARMS = "reward", "arms"  # names of weights that are not outcomes
Weights = dict[str, Any]
"""Weight of the reward and of outcomes by name; under "arms" a dictionary of weights of single arms."""
CLIP = 0.1, 10.0  # of a price: the least and the most that is predicted or learned


class Survey(NamedTuple):
    """Statistics of K arms before weights are chosen, for a function given to `decide(weights=...)`.

    Parameters
    ----------
    names : list of hashable or None
        Names of the arms; None if they are indices.
    scores : array of shape (K,)
        Scores of the reward by which the rule would rank the arms.
    predicted : array of shape (J, K)
        Predicted outcomes.
    statistics : ArmStatistics
        Means, widths and draws of the reward, as the rule sees them.
    rule : Rule
        The exploration rule.
    eligible : array of bool of shape (K,)
        The arms that may be chosen.
    outcomes : tuple of str
        Names of the J outcomes.
    """

    names: list[Any] | None
    scores: np.ndarray
    predicted: np.ndarray
    statistics: ArmStatistics
    rule: Rule
    eligible: np.ndarray
    outcomes: tuple[str, ...]


class Asked(NamedTuple):
    """Arguments of a decision with outcomes, checked and encoded.

    - model, request: the model, and the encoded request of n decisions.
    - k: number of slots.
    - eligible (1 or k, K): mask of the arms that may be chosen.
    - greedy: True if slots after the first are filled by score.
    - rule: the exploration rule.
    - seeds: id and random generator of every decision.
    - prices (J, K): known prices of the J outcomes for each arm, NaN for the others; None without any.
    - weights: weights of reward and outcomes, or a function that returns them.
    - outcomes: names of the outcomes.
    """

    model: Model
    request: Request
    k: int
    eligible: np.ndarray
    greedy: bool
    rule: Rule
    seeds: list[DecisionSeed]
    prices: np.ndarray | None
    weights: Any
    outcomes: tuple[str, ...]


class Chosen(NamedTuple):
    """A choice of arms, the weights it was made with, and the mask (1 or k, K) of the eligible arms."""

    choice: Choice
    weights: Weights
    eligible: np.ndarray


class Offsets(NamedTuple):
    """Effect of weights on the statistics of K arms: they are multiplied by `scale`, then `shift` (K,) is added."""

    scale: float
    shift: np.ndarray


def check_names(outcomes: Any) -> tuple[str, ...]:
    """Return the names of outcomes, or raise ValueError.

    They must be distinct strings, none of them "reward" or "arms".
    """
    if outcomes is None:
        return ()
    names = tuple(outcomes) if isinstance(outcomes, Iterable) and not isinstance(outcomes, str) else ()
    if (
        not names
        or len(set(names)) != len(names)
        or not all(isinstance(n, str) and n and n not in (REWARD, ARMS) for n in names)
    ):
        raise ValueError(f'outcomes must be distinct names, none of them "reward" or "arms", got {quote(outcomes)}')
    return names


def check_number(what: str, value: Any) -> float:
    """Return a number as a float, or raise ValueError unless it is finite; `what` names it in the message."""
    if type(value) is float and -math.inf < value < math.inf:  # the common case
        return value
    if isinstance(value, bool | np.bool_):
        return float(value)
    if not isinstance(value, int | float | np.integer | np.floating) or not math.isfinite(value):
        raise ValueError(f"{what} must be a finite number, got {quote(value)}")
    return float(value)


def check_prices(costs: Any, outcomes: tuple[str, ...], names: list[Any] | None, count: int) -> np.ndarray | None:
    """Return the prices (J, K) of J outcomes for K arms, NaN for missing ones; None if there are no costs.

    `costs` maps an arm to {outcome: price}. The arms are `names`, or the indices of `count` arms if that is None.
    Raises ValueError for an unknown arm or outcome, and for a price that is not a finite number above 0.
    """
    if costs is None:
        return None
    if not isinstance(costs, Mapping) or not all(isinstance(each, Mapping) for each in costs.values()):
        raise ValueError(f"costs must be {{arm: {{outcome: price}}}}, got {quote(costs)}")
    out = np.full((len(outcomes), count), np.nan)
    places = {name: place for place, name in enumerate(range(count) if names is None else names)}
    for arm, each in costs.items():
        if arm not in places:
            raise ValueError(f"costs must be of arms on offer, got {quote(arm)}")
        for name, price in each.items():
            if name not in outcomes:
                raise ValueError(
                    f"costs must be of outcomes of this bandit, {quote(list(outcomes))}, got {quote(name)}"
                )
            value = check_number(f"the price of {quote(arm)}", price)
            if value <= 0.0:
                raise ValueError(f"the price of {quote(arm)} must be above 0, got {quote(price)}")
            out[outcomes.index(name), places[arm]] = value
    return out


def check_weights(weights: Any, outcomes: tuple[str, ...], names: list[Any] | None, count: int) -> Weights | None:
    """Return the weights of the reward, of outcomes and of single arms; raise ValueError for other names or values.

    `weights` maps "reward" and names of outcomes to numbers, and "arms" to {arm: number}; None stays None. The arms are
    `names`, or the indices of `count` arms if that is None.
    """
    if weights is None:
        return None
    if not isinstance(weights, Mapping):
        raise ValueError(f"weights must be {{outcome: number}}, got {quote(weights)}")
    found: Weights = {}
    for name, value in weights.items():
        if name == ARMS:
            offered = range(count) if names is None else names
            if not isinstance(value, Mapping) or not all(arm in offered for arm in value):
                raise ValueError(f"the weights of arms must be {{arm on offer: number}}, got {quote(value)}")
            found[name] = {arm: check_number(f"the weight of {quote(arm)}", each) for arm, each in value.items()}
        elif name == REWARD or name in outcomes:
            found[name] = check_number(f"the weight of {quote(name)}", value)
        else:
            raise ValueError(f"weights must be of {quote([REWARD, *outcomes, ARMS])}, got {quote(name)}")
    if found.get(REWARD, 1.0) < 0.0:
        raise ValueError(f"the weight of the reward must be at least 0, got {quote(weights)}")
    return found


def predictions(raw: np.ndarray, prices: np.ndarray | None) -> np.ndarray:
    """Return the predicted outcomes (J, K) in their own units.

    `raw` (J, K) are the model's predictions, which are relative to the price for an arm whose price is known. `prices`
    (J, K) are the known prices, NaN for the others.
    """
    if prices is None:
        return raw
    priced = prices * np.clip(1.0 + raw, *CLIP)
    return np.where(np.isnan(prices), raw, priced)


def offsets(weights: Weights, outcomes: tuple[str, ...], predicted: np.ndarray, names: list[Any] | None) -> Offsets:
    """Return the scale (a number) and the shift (K,) of the reward's scores that `weights` ask for.

    The scale is the weight of the reward, 1 if `weights` has none. The shift is the weighted sum of the outcomes plus
    the weights of single arms. `outcomes` are the names of the J outcomes, `predicted` (J, K) their predicted values
    for the K arms, and `names` the names of the arms, None if `weights` has their indices.
    """
    shift = np.zeros(predicted.shape[1])
    for name, row in zip(outcomes, predicted, strict=True):
        if name in weights:
            shift += weights[name] * row
    for arm, weight in weights.get(ARMS, {}).items():
        shift[arm if names is None else names.index(arm)] += weight
    return Offsets(weights.get(REWARD, 1.0), shift)


def shift_statistics(seen: ArmStatistics, by: Offsets) -> ArmStatistics:
    """Return the statistics of the weighted sum of reward and outcomes.

    They are the reward's statistics `seen`, multiplied by by.scale, with by.shift added.
    """
    scale, shift = by
    return seen._replace(
        means=scale * seen.means + shift,
        samples=scale * seen.samples + shift,
        beta=scale * seen.beta,
        residual=scale * seen.residual,
    )


def choose_by_weights(asked: Asked, i: int, rng: np.random.Generator, predicted: np.ndarray) -> Chosen:
    """Choose arms for the slots of decision i, ranked by the weighted sum of reward and predicted outcomes.

    `asked` holds the arguments of the decision, and `predicted` (J, K) the outcomes. All random numbers come from
    `rng`. The choice in the result has the form in which `Model.choose` returns it; its means are those of the reward
    alone.
    """
    model, rule, weights, eligible = asked.model, asked.rule, asked.weights, asked.eligible
    seen = model.predict(asked.request, i, rule, rng, rule.pairs)
    uniforms = noise_once(min(rule.pairs, 1), 0, rng, asked.k)[1]
    view = model.view(seen, rule)
    if callable(weights):
        names, count = asked.request.names, asked.request.size
        survey = Survey(names, score(rule.rule, view), predicted, view, rule, eligible[0], asked.outcomes)
        weights, allowed = weights(survey)
        weights = check_weights(weights, asked.outcomes, names, count) or {}
        eligible = eligible & allowed
    by = offsets(weights or {}, asked.outcomes, predicted, asked.request.names)
    shifted = shift_statistics(view, by)
    places, p, scores = rank_and_fill_direct(rule.rule, shifted, eligible, uniforms, asked.greedy, rule.code)
    return Chosen((places, p, scores, model.mean_rewards(seen.means), seen.widths), weights or {}, eligible)


def check_values(outcomes: Any, names: tuple[str, ...]) -> np.ndarray:
    """Return the values (J,) of outcomes, NaN for missing ones; raise ValueError for other names or values.

    `outcomes` maps some of the J `names` to a number or None. None stands for no outcomes.
    """
    if outcomes is None:
        return np.full(len(names), np.nan)
    if not isinstance(outcomes, dict | Mapping):
        raise ValueError(f"outcomes must be {{name: number}}, got {quote(outcomes)}")
    found = [math.nan] * len(names)
    for name, value in outcomes.items():
        if name not in names:
            raise ValueError(f"outcomes must be of this bandit, {quote(list(names))}, got {quote(name)}")
        if value is not None:
            found[names.index(name)] = check_number(name, value)
    return np.array(found)


def relative(decision: Decision, slot: int, values: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    """Return the values (J,) of a slot's outcomes as the model learns them, relative to the prices of the decision.

    `values` are in the order of `names`. An outcome with a price is divided by the price, and 1 is subtracted. Other
    outcomes stay as they are.
    """
    if decision.costs is None:
        return values
    place, out = int(decision.places[slot]), values.copy()
    for j, name in enumerate(names):
        price = decision.costs.get(name, {}).get(place)
        if price is not None and out[j] == out[j]:
            out[j] = min(out[j] / price, CLIP[1]) - 1.0
    return out


def values_from_record(decision: Decision, slot: int, names: tuple[str, ...]) -> np.ndarray:
    """Return the outcomes `names` (J,) that a decision's record predicts for the arm in a slot; NaN if it has none."""
    if decision.predicted is None:
        return np.full(len(names), np.nan)
    place = int(decision.places[slot])
    return np.array([decision.predicted[name][place] if name in decision.predicted else np.nan for name in names])


def outcomes_by_slot(decisions: list[Decision], outcomes: Any) -> list[list[Any]]:
    """Return the outcomes of every slot of every decision; raise ValueError if their number is wrong.

    `outcomes` is one dictionary for one decision, or a list with one for each decision. A decision of several slots has
    a list with one dictionary for each slot, or None for a slot without outcomes.
    """
    if outcomes is None:
        return [[None] * len(one.arms) for one in decisions]
    if type(outcomes) is dict and len(decisions) == 1 and len(decisions[0].arms) == 1:
        return [[outcomes]]  # the common case
    given = [outcomes] if len(decisions) == 1 and not _is_nested(outcomes, len(decisions[0].arms)) else outcomes
    if not isinstance(given, list | tuple) or len(given) != len(decisions):
        raise ValueError(f"outcomes must have one entry per decision ({len(decisions)}), got {quote(outcomes)}")
    out = []
    for one, each in zip(decisions, given, strict=True):
        k = len(one.arms)
        slots = [each] if k == 1 and not isinstance(each, list | tuple) else each
        slots = [None] * k if slots is None else slots
        if not isinstance(slots, list | tuple) or len(slots) != k:
            raise ValueError(f"outcomes must have one dictionary per slot ({k}), None for none, got {quote(each)}")
        out.append(list(slots))
    return out


def _is_nested(outcomes: Any, k: int) -> bool:
    """Return True if `outcomes` is a list with one entry, which holds the k slots of a single decision."""
    return isinstance(outcomes, list | tuple) and len(outcomes) == 1 and (k == 1 or isinstance(outcomes[0], list))
