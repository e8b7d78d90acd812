"""Records of decisions: the chosen arm, the distribution it was drawn from, and everything that learning will need.

A record holds the distribution p from which the arm was drawn, for the first and for every further slot:

    p = probabilities,   arm ~ p,   propensity = p[index]            of the first slot
    slots[j]  the distribution of slot j over the arms that are left

A record outlives the process that made it. `to_dict` gives plain JSON with every number exact.
"""

import itertools
import math
import os
import secrets
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np

from onepass.foundation import check
from onepass.model.interval.interval import has_facts

FORMAT = 1  # of the dictionary
RANDOM = 8  # bytes that no other process has
SAMPLED, GREEDY = "sampled", "greedy"  # how the slots after the first are filled
RECORD_NAMES = {"candidates": "offered", "rest": "tail", "n_learned": "rounds"}  # of fields, in JSON and in logs
TAILS = {SAMPLED: "drawn", GREEDY: "greedy"}  # values of `rest`, in JSON and in logs
FROM_FILE = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)

_made = {"process": secrets.token_hex(RANDOM), "count": itertools.count()}


def _renew_process_id() -> None:
    _made.update(process=secrets.token_hex(RANDOM), count=itertools.count())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_process_id)


def new_id() -> str:
    """Return a unique id: 16 random hexadecimal digits of the process, followed by a count."""
    return f"{_made['process']}-{next(_made['count']):x}"  # type: ignore[call-overload]


class Decision(NamedTuple):
    """Record of a decision, in which k of K arms were chosen.

    A batch of n decisions is a `Decision`, too. Each field that differs between the decisions then has a leading axis
    n, or is a list of n. `split()` returns the n decisions.

    Parameters
    ----------
    arm : hashable or ndarray
        Name or index of the chosen arm, of the first slot.
    arms : list
        Names or indices of the chosen arms of all k slots.
    scores : ndarray of shape (K,)
        The numbers by which the rule ranks the arms.
    means : ndarray of shape (K,)
        Expected rewards: x^T theta, or mu(x^T theta) for clicks and counts. Scores are then on the scale of mu, too.
    widths : ndarray of shape (K,) or None
        Width of every arm, such as sqrt(x^T A^-1 x): the standard error of the mean, divided by the standard deviation
        of the noise. For the clicks and counts of `GLBOMD` it is the standard error of x^T theta. None if the rule does
        not use widths.
    propensity : float
        Probability of `arm`.
    probabilities : ndarray of shape (K,)
        Distribution from which `arm` was drawn; 0 for arms that were not eligible.
    index : int
        Index of `arm` among the arms offered.
    places : ndarray of shape (k,)
        Indices of the chosen arms of all slots.
    slots : ndarray of shape (k, K) or None
        Distribution of each slot over the arms that were left, if k > 1.
    propensities : ndarray of shape (k,)
        Probability of the chosen arm of each slot.
    rest : {"sampled", "greedy"}
        "sampled" if each slot was drawn from its distribution. "greedy" if the slots after the first are the best of
        the other arms; these slots say nothing about arms that were not chosen.
    id : str
        Identity of the decision, given or made.
    context : ndarray of shape (dim,) or (k, dim), dict or None
        Rows of the chosen arms before any feature map. The terms of a dictionary context are a dictionary. None for a
        fixed set of arms.
    candidates : list or None
        Names of the arms offered. None if they are indices.
    n_learned : int
        Number of rows that the model had learned.
    rule : str
        The exploration rule as text.
    seed : int or str
        Key of the random numbers (hexadecimal digits) if the id was given, else the seed of the bandit.
    predicted : dict of str to ndarray of shape (K,), default None
        Predicted outcomes of all arms, by name, for a bandit with `outcomes`. A batch has a list of them.
    spreads : dict of str to ndarray of shape (K,), default None
        Standard errors of `predicted`: the outcome's residual times `widths`. None if the rule uses no widths.
    costs : dict of str to dict, default None
        Prices that were given: by outcome, then by index of the arm.
    weights : dict of str to float, default None
        Weights of the reward and of outcomes by which the arms were ranked. The entry "arms" holds the weights of
        single arms. The price of a budget is minus its weight.
    eligible : ndarray of bool of shape (K,), default None
        The arms that might be chosen, if a budget decided so.
    mixture : dict, default None
        Parts of `probabilities` if they are a mixture with a baseline: "share" of the bandit, its probabilities
        "policy" (K,), the "baseline"'s (K,), and the "place" of the arm that the baseline chose. If the share depends
        on the model, "expected" holds its mean reward of that arm and an upper limit of it, both scaled to [0, 1].
    """

    arm: Any
    arms: Any
    scores: np.ndarray
    means: np.ndarray
    widths: np.ndarray | None
    propensity: Any
    probabilities: np.ndarray
    index: Any
    places: np.ndarray
    slots: np.ndarray | None
    propensities: np.ndarray
    rest: str
    id: Any
    context: Any
    candidates: Any
    n_learned: int
    rule: str
    seed: Any
    predicted: Any = None
    spreads: Any = None
    costs: Any = None
    weights: Any = None
    eligible: Any = None
    mixture: Any = None

    @property
    def prices(self) -> dict[str, float]:
        """Price, in units of reward, of each outcome whose weight is a number below 0. It is minus the weight.

        Other outcomes are left out.
        """
        return {
            name: -weight
            for name, weight in (self.weights or {}).items()
            if not isinstance(weight, dict) and weight < 0.0
        }

    @property
    def density(self) -> float | None:
        """Probability density of the action `arm`, per unit of the action; None without an `Interval`."""
        return self._fact("density")

    @property
    def half_width(self) -> float | None:
        """Half the length of the action's cell on the scale of its `Interval`; None without an `Interval`."""
        return self._fact("half_width")

    def _fact(self, name: str) -> float | None:
        arms = self.context.get("arms") if isinstance(self.context, dict) else None
        return arms[0].get(name) if arms and has_facts(arms[0]) else None

    @property
    def is_batch(self) -> bool:
        """True if the record holds n decisions at once."""
        return isinstance(self.id, list)

    def split(self) -> list["Decision"]:
        """Split a batch into single decisions.

        Returns
        -------
        list of Decision
            The decisions; a single decision gives a list of one.
        """
        if not self.is_batch:
            return [self]
        columns = {name: getattr(self, name) for name in BATCH_FIELDS}
        rows: list[dict[str, Any]] = [
            {name: None if column is None else column[i] for name, column in columns.items()}
            for i in range(len(self.id))
        ]
        return [self._replace(**row) for row in rows]

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as plain JSON: numbers, strings and lists.

        Returns
        -------
        dict
            The record, from which `from_dict` rebuilds an equal decision.

        Raises
        ------
        ValueError
            If the record is a batch, or if a name is not a string, number, boolean, None or a tuple of these.
        """
        if self.is_batch:
            raise ValueError("to_dict is of one decision: use [d.to_dict() for d in decisions.split()]")
        out: dict[str, Any] = {"format": FORMAT}
        for field, value in zip(self._fields, self, strict=True):
            name = RECORD_NAMES.get(field, field)
            out[name] = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        for field in OPTIONAL:
            value = out.pop(field)
            if value is not None:
                out[field] = plain_outcomes(value)
        for name in ("arm", "arms", "offered"):
            out[name] = plain_name(out[name])
        out["tail"] = TAILS[self.rest]
        return out

    @classmethod
    def from_dict(cls, record: Any) -> Self:
        """Rebuild a decision that `to_dict` wrote, equal in every bit.

        Parameters
        ----------
        record : dict
            The dictionary, which may have been JSON in between.

        Returns
        -------
        Decision
            The decision.

        Raises
        ------
        ValueError
            If the dictionary is not a record of a decision.
        """
        try:
            return decision_from_record(cls, record)
        except FROM_FILE as error:
            raise ValueError(f"record must be what Decision.to_dict gave, but {error}") from None


class Recommendation(NamedTuple):
    """Recommended arms of each user, best first.

    Parameters
    ----------
    arms : list of list
        At most k names for each user.
    scores : list of ndarray
        Scores of these arms.
    """

    arms: list[list[Any]]
    scores: list[np.ndarray]


BATCH_FIELDS = (  # fields with an entry per decision
    "arm", "arms", "scores", "means", "widths", "propensity", "probabilities", "index", "places", "slots",
    "propensities", "id", "context", "seed", "predicted", "spreads", "costs", "eligible",
)  # fmt: skip
OPTIONAL = (
    "predicted",
    "spreads",
    "costs",
    "weights",
    "eligible",
    "mixture",
)  # fields of a bandit with outcomes, left out of JSON if None


def plain_outcomes(value: Any) -> Any:
    """Convert an optional field of a decision, which may hold arrays, to data for JSON; None stays None."""
    if isinstance(value, dict):
        return {str(name): plain_outcomes(part) for name, part in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


def outcomes_from_json(record: dict[str, Any], count: int, names: list[Any] | None = None) -> dict[str, Any]:
    """Return those optional fields of a decision over `count` arms that its JSON record holds, by name.

    They are "predicted", "spreads", "costs", "weights", "eligible" and "mixture". `names` are the names of the arms,
    None if they are indices.
    """
    out: dict[str, Any] = {}
    by_text = {str(name): name for name in (range(count) if names is None else names)}
    for name in ("predicted", "spreads"):
        if record.get(name) is not None:
            out[name] = {key: _numbers(record[name], key, (count,)) for key in record[name]}
    if record.get("costs") is not None:
        out["costs"] = {
            key: {int(place): check.positive("price", price) for place, price in each.items()}
            for key, each in record["costs"].items()
        }
    if record.get("weights") is not None:
        out["weights"] = {
            str(key): {by_text.get(arm, arm): check.real("weight", one) for arm, one in value.items()}
            if isinstance(value, dict)
            else check.real("weight", value)
            for key, value in record["weights"].items()
        }
    if record.get("eligible") is not None:
        out["eligible"] = _numbers(record, "eligible", (count,), np.bool_)
    if record.get("mixture") is not None:
        mixed = record["mixture"]
        out["mixture"] = {
            "share": check.fraction("share", mixed["share"]),
            "place": check.integer("place", mixed["place"], 0, count - 1),
            **{name: _numbers(mixed, name, (count,)) for name in ("baseline", "policy")},
        }
        if mixed.get("expected") is not None:
            out["mixture"]["expected"] = _numbers(mixed, "expected", (2,)).tolist()
    return out


def stack_decisions(each: list[Decision]) -> Decision:
    """Return the single decisions `each` as one record, whose fields have a leading axis for the decisions."""
    columns: dict[str, Any] = {name: [getattr(one, name) for one in each] for name in BATCH_FIELDS}
    for name in ("predicted", "spreads", "costs", "eligible"):
        columns[name] = None if columns[name][0] is None else columns[name]
    for name in ("scores", "means", "widths", "probabilities", "places", "slots", "propensities", "context"):
        columns[name] = None if columns[name][0] is None else np.stack(columns[name])
    for name in ("propensity", "index"):
        columns[name] = np.array(columns[name])
    return each[0]._replace(**columns)


def check_same_offer(first: Decision, repeated: Decision) -> Decision:
    """Return the decision `first` of an id, for a repeated request that the decision `repeated` would answer anew.

    Raises ValueError if the two do not offer the same arms and as many slots.
    """
    offers = [(one.candidates, one.probabilities.size, len(one.arms)) for one in (first, repeated)]
    if offers[0] != offers[1]:
        raise ValueError(
            f"id must be another one for another request: {check.quote(first.id)} was decided with other arms"
        )
    return first


# ---- JSON ----


def rest_from_record(tail: str) -> str:
    """Return the option `rest` ("sampled" or "greedy") from its text `tail` in the record of a decision."""
    return SAMPLED if tail == TAILS[SAMPLED] else tail


def plain_name(name: Any) -> Any:
    """Convert a name or a list of names to JSON: a NumPy number to a number, a tuple to {"tuple": [...]}."""
    if isinstance(name, list):
        return [plain_name(part) for part in name]
    if isinstance(name, np.generic):
        name = name.item()
    if isinstance(name, np.ndarray):
        return {"row": name.tolist()}
    if isinstance(name, tuple):
        return {"tuple": [plain_name(part) for part in name]}
    if name is None or isinstance(name, str | bool | int) or (isinstance(name, float) and math.isfinite(name)):
        return name
    raise ValueError(f"arm must be a string, a finite number or a tuple of them to be written, got {check.quote(name)}")


def name_from_json(name: Any) -> Any:
    """Convert a name, or a list of names, back from the JSON of `Decision.to_dict`."""
    if isinstance(name, list):
        return [name_from_json(part) for part in name]
    if isinstance(name, dict):
        ((kind, held),) = name.items()
        return FROM_JSON[kind](held)
    return name


FROM_JSON: dict[str, Callable[[Any], Any]] = {
    "row": lambda held: np.array(held, np.float64),
    "tuple": lambda held: tuple(name_from_json(part) for part in held),
}


def _numbers(record: dict[str, Any], name: str, shape: tuple[int | None, ...], kind: Any = np.float64) -> np.ndarray:
    """Return the field `name` of a record as a finite array of the given shape and the dtype `kind`.

    None in `shape` allows any length. Raises ValueError for another shape, and for numbers that are not finite.
    """
    out = np.array(record[name], kind)
    if out.ndim != len(shape) or any(want not in (None, got) for want, got in zip(shape, out.shape, strict=True)):
        raise ValueError(f"{name} has shape {out.shape}")
    if not np.isfinite(out).all():
        raise ValueError(f"{name} has a number that is not finite")
    return out


def decision_from_record(cls: Any, record: Any) -> Any:
    """Return a record, after a check of its fields, as a `Decision`, an object of the class `cls`."""
    if record["format"] != FORMAT:
        raise ValueError(f"its format is {check.quote(record['format'])}, this version knows {FORMAT}")
    probabilities = _numbers(record, "probabilities", (None,))
    count, places = len(probabilities), _numbers(record, "places", (None,), np.int64)
    k = len(places)
    if not (k >= 1 and ((places >= 0) & (places < count)).all() and len(set(places.tolist())) == k):
        raise ValueError("places are not those of arms offered")
    slots = None if record["slots"] is None else _numbers(record, "slots", (k, count))
    for row in probabilities[None] if slots is None else slots:
        if (row < 0.0).any() or abs(row.sum() - 1.0) > SUM:
            raise ValueError("its probabilities do not add up to 1")
    context = record["context"]
    if not (context is None or isinstance(context, dict)):
        context = _numbers(record, "context", (None,) if k == 1 else (k, None))
    offered, arms = name_from_json(record["offered"]), name_from_json(record["arms"])
    found = places.tolist() if offered is None else [offered[place] for place in places]
    wrong = (
        (not isinstance(arms[0], np.ndarray) and found != arms)  # a row that a maximizer gave is its own name
        or (offered is not None and len(offered) != count)
        or not isinstance(record["id"], str)
        or not isinstance(record["rule"], str)
        or record["tail"] not in TAILS.values()
        or not isinstance(record["seed"], int | str)
    )
    if wrong:
        raise ValueError("its parts contradict each other")
    propensities = _numbers(record, "propensities", (k,))
    return cls(
        arm=arms[0],
        arms=arms,
        scores=_numbers(record, "scores", (count,)),
        means=_numbers(record, "means", (count,)),
        widths=None if record["widths"] is None else _numbers(record, "widths", (count,)),
        propensity=float(propensities[0]),
        probabilities=probabilities,
        index=int(places[0]),
        places=places,
        slots=slots,
        propensities=propensities,
        rest=rest_from_record(record["tail"]),
        id=record["id"],
        context=context,
        candidates=offered,
        n_learned=check.integer("rounds", record["rounds"], 0),
        rule=record["rule"],
        seed=record["seed"],
        **outcomes_from_json(record, count, offered),
    )


SUM = 1e-9  # how far probabilities that were written may be from 1 in all: 10^5 arms round to 1e-12
