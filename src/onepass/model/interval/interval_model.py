"""Model of rewards over an interval of actions: prices, bids, doses.

    E[reward | context, action] = g(x, t)                              t: position of the action on the scale, [0, 1]
    E[reward | context, price]  = (price - cost) sigmoid(3 - 6 t + g)  if `demand`; made to fall in the price

g is a posterior on splines of t times columns of the context (posterior.py). A decision is made over 64 cells of equal
length. The rule gives each cell a probability P, and the action is uniform in the cell that was drawn, on the scale:

    density = P(cell) 64 / (high - low)     per unit of the action;  P(cell) 64 / (action log(high / low)) if log

The decision's record holds the action, its density and half the cell's length among the features of the chosen arm.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, Self, final

import numpy as np

from onepass.exploration.contract import ArmStatistics
from onepass.exploration.exploration import Exploration
from onepass.exploration.randomness import NO_UNIFORMS, empty_normals, noise_once, normals, uniform
from onepass.exploration.rule import Rule
from onepass.exploration.slots import rank_and_fill_direct
from onepass.exploration.thompson import SingleDrawThompson, Thompson
from onepass.features.attribution import Terms
from onepass.features.flatten import flatten_record
from onepass.features.records import Records
from onepass.features.sparse_rows import SparseRows
from onepass.foundation import check, files
from onepass.foundation.check import quote
from onepass.foundation.generic import compiled
from onepass.foundation.registry import build, savable, to_plain
from onepass.foundation.rw_lock import reading
from onepass.model.contract import Batch, Choice, Model, Request, Side, Sides
from onepass.model.interval.interval import CELLS, POSITIONS, Interval, interval_of
from onepass.model.interval.posterior import Learned, SplinePosterior
from onepass.model.interval.splines import KEPT, smooth_functions, smooth_functions_at
from onepass.model.records import are_records, check_evidence, requests_of

WIDTH = 32  # of the context's columns
DEVIATIONS = 0.8
RULE = Thompson(DEVIATIONS, draws=32, uniform_share=0.005)  # chosen on generated games (docs/prices_measured.md)
CALMER = 0.6  # of demand: deviations of a draw in units of those of other rewards
SURE = 3.0  # log odds of a sale at `low` before anything is learned, and against it at `high`
LARGEST = 700.0  # log odds against a sale whose exponential is a finite number
ROUNDING = 1e-9  # of a demand that is computed from a reward


class Columns:
    """Map from records to rows of numbers: a constant, and a column for every term learned.

    `records` is the dictionary of terms, which grows as it learns. `places` holds the index in `records` of each
    column's term, without the first column. A term that a record lacks is 0, which is the mean of a standardized
    number.
    """

    def __init__(self, records: Records, places: list[int]) -> None:
        self.records, self.places = records, places
        self._column = np.zeros(records.size, np.int64)
        self._column[places] = np.arange(1, len(places) + 1)

    def rows(self, pairs: SparseRows) -> list[np.ndarray]:
        """Return a row (1 + columns,) for each record: the constant 1, then the number of every column's term.

        `pairs` are the records as sparse rows, as `Records.pairs` returns them.
        """
        ends = pairs.starts.tolist()
        return [self._row(pairs.places[a:b], pairs.values[a:b]) for a, b in pairwise(ends)]

    def advance(self, terms: dict[str, float]) -> np.ndarray:
        """Learn the terms of a record, and return the record's row (1 + columns,)."""
        places, values = self.records.learn_terms(terms)
        for place in places.tolist():
            if not self._column[place]:
                self.places.append(place)
                self._column[place] = len(self.places)
        return self._row(places, values)

    def names(self) -> list[str]:
        """Return the name of each column's term, without the first column, the constant."""
        every = self.records.feature_names()
        return [every[place] for place in self.places]

    def _row(self, places: np.ndarray, values: np.ndarray) -> np.ndarray:
        row = np.zeros(1 + len(self.places))
        row[self._column[places]] = values
        row[0] = 1.0
        return row


class Cells(NamedTuple):
    """K actions of an interval with their spline features.

    - interval: the interval.
    - actions (K,): the actions.
    - psi (K, 8): values of the 8 spline functions at the actions (splines.py).
    - odds (K,): log odds of a sale before learning, used only with `demand`.
    - grid: True if the actions are the centres of the interval's 64 equal cells in order.
    - facts: description of the interval for a decision's record.
    - margins (K,): the actions minus the interval's cost.
    - names: the actions as a list of numbers.
    """

    interval: Interval
    actions: np.ndarray
    psi: np.ndarray
    odds: np.ndarray
    grid: bool
    facts: dict[str, float]
    margins: np.ndarray
    names: list[float]


def cells_of(interval: Interval, positions: np.ndarray, actions: Sequence[float], grid: bool) -> Cells:
    """Return the `Cells` of `actions` (K,), with their values of the spline functions, for an interval.

    `positions` (K,) are the positions of the actions in the learned interval, from 0 to 1. `grid` is True if the
    actions are the centres of the 64 equal cells of `interval` in order, and False for other actions.
    """
    facts = {name: float(value) for name, value in interval.params().items()} | {"half_width": interval.half_width}
    every, odds = np.array(actions), SURE - 2.0 * SURE * positions
    names = every.tolist()
    return Cells(interval, every, smooth_functions(positions), odds, grid, facts, every - interval.cost, names)


@lru_cache(maxsize=64)
def grid_of(interval: Interval, learned: Interval) -> Cells:
    """Return the `Cells` of the centres of an interval's 64 cells, at their positions in the learned interval."""
    actions = [interval.action(t) for t in POSITIONS.tolist()]
    return cells_of(interval, np.array([learned.position(action) for action in actions]), actions, True)


@final
@savable
class IntervalModel(Model):
    """Model of rewards over an interval of actions, by splines of the action times columns of the context.

    A context is a dictionary, a row (dim,), or None; n decisions take a list of dictionaries, a frame, or rows
    (n, 1, dim). Arms are an `Interval`. `learn` takes a decision, or a context with an action as its arm.

    Parameters
    ----------
    interval : Interval
        The interval of actions. Decisions may be given the same interval, a part of it, or another cost.
    context : Records, default None
        Feature map of contexts. The model learns with a copy of it. The default has 32 columns and standardizes
        numbers.

    Raises
    ------
    ValueError
        If an argument has another type.

    Notes
    -----
    The mean reward is a linear combination of splines. A prior on the second differences of its coefficients makes it
    smooth, and the strength of the prior is chosen by marginal likelihood. With p columns of the context and d = 8 p, a
    decision costs O(d^2) and a reward O(d^2). Whenever the number of rows has grown by an eighth, a reward costs
    O(d^3). The memory is 16 d^2 bytes, and 2 p kilobytes more for intervals with `demand`.

    Examples
    --------
    >>> import onepass as op
    >>> bandit = op.Bandit(op.model.IntervalModel(op.Interval(0.0, 1.0)), seed=3)
    >>> for _ in range(200):
    ...     decision = bandit.decide(None, op.Interval(0.0, 1.0))
    ...     bandit.learn(decision, -((decision.arm - 0.5) ** 2))
    >>> abs(bandit.decide(None, op.Interval(0.0, 1.0)).arm - 0.5) < 0.1
    True
    """

    draws_actions = True

    def __init__(self, interval: Interval, *, context: Records | None = None) -> None:
        if not isinstance(interval, Interval):
            raise ValueError(f"interval must be Interval(low, high), got {quote(interval)}")
        if not isinstance(context, Records | None):
            raise ValueError(f"context must be Records(size=32), got {quote(context)}")
        self.interval = interval
        records = Records(size=WIDTH, standardize=True) if context is None else context.copy()
        self._columns = Columns(records, [])
        self._posterior = SplinePosterior(1, interval.demand)
        self._latest: tuple[Any, Cells] = None, grid_of(interval, interval)  # arms of a decision and their cells
        self.n_learned = 0

    # ---- decisions ----

    def _cells(self, arms: Any) -> Cells:
        known, cells = self._latest
        if known is not arms:  # the same object as before need not be looked up
            cells = self._find_cells(arms)
            self._latest = arms, cells
        return cells

    def _find_cells(self, arms: Any) -> Cells:
        if arms is None:
            return grid_of(self.interval, self.interval)
        if not isinstance(arms, Interval):
            raise ValueError(f"arms must be an Interval, as this bandit has learned, got {quote(arms)}")
        if not self.interval.contains(arms):
            raise ValueError(f"arms must be {quote(self.interval)}, a part of it, or another cost, got {quote(arms)}")
        return grid_of(arms, self.interval)

    def encode(self, context: Any, arms: Any) -> Request:
        cells = self._cells(arms)
        single, records = (True, [{}]) if context is None else requests_of(context, None)
        terms = [flatten_record(record) for record in records]
        return Request(cells.names, CELLS, single, self._rows(terms), cells, terms)

    def _rows(self, terms: list[dict[str, float]]) -> list[np.ndarray]:
        return self._columns.rows(self._columns.records.pairs_of_terms(terms))

    def encode_decision(self, decision: Any) -> Request:
        terms, arms = check_evidence(decision, actions=True)
        each = [interval_of(one, decision.id) for one in arms]
        interval = self._check_interval(each[0][1], decision.id)
        actions = [action for action, _ in each]
        positions = np.array([self.interval.position(action) for action in actions])
        cells = cells_of(interval, positions, actions, False)
        return Request(actions, len(actions), True, self._rows([terms]), cells, [terms])

    def predict(self, request: Request, i: int, rule: Rule, rng: np.random.Generator, pairs: int) -> ArmStatistics:
        return self._predict(request, i, rule, normals(rng, pairs * KEPT) if pairs else NO_UNIFORMS)

    def choose(
        self, request: Request, i: int, rule: Rule, rng: np.random.Generator, eligible: np.ndarray, k: int, greedy: bool
    ) -> Choice:
        drawn, uniforms = noise_once(rule.pairs, KEPT, rng, k)
        seen = self._predict(request, i, rule, drawn)
        places, p, scores = rank_and_fill_direct(rule.rule, seen, eligible, uniforms, greedy, rule.code)
        return places, p, scores, seen.means, seen.widths

    def _predict(self, request: Request, i: int, rule: Rule, drawn: np.ndarray) -> ArmStatistics:
        """Compute the statistics of all cells in decision `i`; `drawn` holds 8 standard normals per pair of draws."""
        cells: Cells = request.arms
        mean, covariance = self._posterior.moments(request.each[i])
        beta, widths, pairs = _multiplier(rule), np.zeros(request.size), drawn.size // KEPT
        samples = empty_normals(request.size)
        if rule.widths:
            widths = np.sqrt(np.maximum(((cells.psi @ covariance) * cells.psi).sum(axis=1), 0.0))
        curves = np.empty((KEPT, 1 + 2 * pairs)).T
        curves[0] = mean
        if pairs:
            size = beta * CALMER if self.interval.demand else beta
            shifts = (self._posterior.root(covariance) @ (size * drawn.reshape(KEPT, pairs))).T
            np.add(mean, shifts, out=curves[1 : pairs + 1])
            np.subtract(mean, shifts, out=curves[pairs + 1 :])
        values = curves[: rule.draws + 1] @ cells.psi.T
        if self.interval.demand:
            rates = _demand(values, cells)
            if rule.widths:
                widths *= cells.margins * rates[0] * (1.0 - rates[0])
            values *= cells.margins
        if pairs:
            samples = values[1:]
        every = np.empty(request.size)
        every.fill(beta)
        noise = float(self._posterior.noise[0]) ** 0.5
        return ArmStatistics(
            means=values[0],
            widths=widths,
            samples=samples,
            beta=every,
            residual=noise,
            rounds=self.n_learned,
        )

    def draw_actions(self, request: Request, i: int, found: Choice, rng: np.random.Generator) -> Request:
        cells: Cells = request.arms
        names, facts = list(request.names or ()), []
        for slot, place in enumerate(found[0].tolist()):
            action = cells.interval.action((place + uniform(rng)) / CELLS)
            names[place] = action
            density = cells.interval.density(action, float(found[1][slot, place]))
            facts.append({"action": action, "density": density, **cells.facts})
        return Request(names, request.size, request.single, request.each, cells, (request.given, facts))

    def evidence(self, request: Request, i: int, places: np.ndarray) -> Any:
        terms, facts = request.given
        return {"context": terms[i], "arms": facts}

    def default_exploration(self) -> Exploration:
        return RULE

    # ---- learning ----

    def observe(self, context: Any, arm: Any) -> Batch:
        if arm is None:
            raise ValueError("arm must be the action that was taken, or a list of them, one per context")
        several = isinstance(arm, list | tuple | np.ndarray)
        actions = list(arm) if several else [arm]
        if context is None:
            records: list[Any] = [{} for _ in actions]
        elif are_records(context):
            records = requests_of(context, None)[1]
        else:
            rows = check.array("contexts", context, np.dtype(np.float64), (1, 2))
            records = requests_of(np.atleast_2d(rows)[:, None, :], None)[1]
        if len(records) != len(actions):
            raise ValueError(f"arm must have one action per context ({len(records)}), got {quote(arm)}")
        found = [self.interval.position(action) for action in actions]
        margins = [float(action) - self.interval.cost for action in actions]
        terms = [flatten_record(record) for record in records]
        return Batch(len(actions), not several, list(zip(terms, found, margins, strict=True)))

    def recall(self, slots: list[tuple[Any, int]]) -> Batch:
        rows = []
        for decision, slot in slots:
            terms, arms = check_evidence(decision, actions=True)
            action, interval = interval_of(arms[slot], decision.id)
            self._check_interval(interval, decision.id)
            rows.append((terms, self.interval.position(action), action - interval.cost))
        return Batch(len(rows), False, rows)

    def _check_interval(self, interval: Interval, identity: Any) -> Interval:
        if not self.interval.contains(interval):
            raise ValueError(
                f"decision {quote(identity)} must be over {quote(self.interval)} or a part of it, got {quote(interval)}"
            )
        return interval

    def update(
        self, batch: Batch, rewards: np.ndarray, *, nu: Any = None, time: Any = None, residuals: bool = False,
        outcomes: Any = None,
    ) -> Self:  # fmt: skip
        if nu is not None:
            raise ValueError("nu must be None for models of an interval")
        self.at(time)
        values = rewards.tolist()
        if self.interval.demand:
            values = [count_sales(y, margin) for y, (_, _, margin) in zip(values, batch.rows, strict=True)]
        whole = self.copy() if batch.size > 1 else None
        try:
            for (terms, position, _), y in zip(batch.rows, values, strict=True):
                self._learn(terms, position, y)
        except BaseException:
            if whole is not None:
                self.__dict__.update(whole.__dict__)
            raise
        return self

    def _learn(self, terms: dict[str, float], position: float, y: float) -> None:
        x = self._columns.advance(terms)
        if len(x) > self._posterior.columns:
            self._posterior.grow(len(x))
        psi = smooth_functions_at(position)
        self._posterior.add_row(x, psi, y, SURE - 2.0 * SURE * position if self.interval.demand else 0.0)
        self.n_learned += 1

    # ---- questions ----

    def attribute(self, request: Request, places: list[int], names: Any) -> Sides:
        if names is not None:
            raise ValueError(f"names must be None where terms of records have names, got {quote(names)}")
        cells, x = request.arms, request.each[0]
        posterior, own = self._posterior, ("level", *self._columns.names(), "prior")
        weights = posterior.theta.reshape(posterior.columns, KEPT)
        psi = cells.psi[places]
        slopes, means = psi @ weights.T, psi @ (x @ weights)
        scale = np.ones(len(places))
        if self.interval.demand:
            rates = _demand((cells.psi @ (x @ weights))[None], cells)[0][places]
            margins = cells.margins[places]
            means, scale = margins * rates, margins * rates * (1.0 - rates)
        rows = [size * np.outer(x, each).reshape(-1) for size, each in zip(scale, psi, strict=True)]

        def sides(count: int) -> list[list[Side]]:
            total = rows[0] if count == 1 else rows[0] - rows[1]
            solved = posterior.noise[0] * (posterior.inverse @ total)
            out = []
            for a in range(count):
                parts = scale[a] * slopes[a] * x
                squares = (rows[a] * solved).reshape(posterior.columns, KEPT).sum(axis=1)
                table = np.zeros((2, len(x) + 1))
                table[0, :-1], table[0, -1], table[1, :-1] = parts, means[a] - parts.sum(), squares
                tilt = np.zeros((2, len(x) + 1))
                tilt[0, 1:-1] = (scale[a] * slopes[a])[1:]
                terms = Terms(own, np.append(x, 1.0), tilt, table)
                out.append([Side("interval", terms, float(means[a]), float(squares.sum()))])
            return out

        return sides

    @reading
    def choices(self) -> dict[str, Any]:
        """Return what the model has chosen so far.

        Returns
        -------
        dict
            "model" is "interval". "interval" describes the interval. "columns" lists the names of the context's
            columns. "smoothness" has the strengths of the prior.
        """
        return {
            "model": "interval",
            "interval": repr(self.interval),
            "columns": self._columns.names(),
            "smoothness": self._posterior.strengths(),
        }

    def memory_usage(self) -> int:
        return sum(part.nbytes for part in self._posterior.state)

    def __repr__(self) -> str:
        return f"IntervalModel({self.interval!r}, context={self._columns.records!r})"

    # ---- copies and files ----

    def freeze(self) -> Self:
        return self.copy()

    def params(self) -> dict[str, Any]:
        """Return the arguments of the constructor.

        Returns
        -------
        dict
            Arguments by name.
        """
        return {"interval": to_plain(self.interval), "context": self._columns.records}

    def contents(self) -> files.Contents:
        extra = {"rounds": self.n_learned, "places": list(self._columns.places)}
        return files.Contents(self.params(), extra, self._posterior.state)

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        model = cls(**{name: build(part) for name, part in params.items()})
        places, records = extra["places"], model._columns.records
        if not all(type(place) is int and 0 <= place < records.size for place in places) or len(set(places)) != len(
            places
        ):
            raise ValueError(f"the columns of the context have the places {quote(places)}, expected different ones")
        model._columns = Columns(records, places)
        model.n_learned = check.integer("rounds", extra["rounds"], 0)
        demand, count = model.interval.demand, len(places) + 1
        model._posterior.restore(held.take(model._posterior.state, lambda saved: _fits(saved, count, demand)))
        return model


def _multiplier(rule: Rule) -> float:
    """Return the number of standard deviations by which a rule explores; Thompson sampling has a default."""
    given = rule.exploration
    plain = isinstance(given, Thompson | SingleDrawThompson) and given.exploration is None
    return DEVIATIONS if plain else float(rule.strength.scale)


def _demand(values: np.ndarray, cells: Cells) -> np.ndarray:
    """Replace n functions g with the values (n, K) by the probabilities of a sale at K prices, and return these.

    The log odds are g plus the known odds in `cells`. On a grid of prices the probability at a price is the largest of
    all prices from there on: whoever buys at a price buys at a lower one, too. So it falls as the price rises, and
    prices that have not been tried are not taken for bad ones.
    """
    _add_odds(values, cells.odds, cells.grid)
    np.exp(values, out=values)
    values += 1.0
    np.divide(1.0, values, out=values)
    return values


@compiled
def _add_odds(values: np.ndarray, odds: np.ndarray, falling: bool) -> None:
    """Replace values (n, K) of functions g by log odds against a sale, at most `LARGEST`.

    If `falling`, the log odds of a sale at an action are the largest from there on.
    """
    for i in range(values.shape[0]):
        most = -np.inf
        for a in range(values.shape[1] - 1, -1, -1):
            found = values[i, a] + odds[a]
            if not falling or found > most or found != found:
                most = found
            values[i, a] = LARGEST if -most > LARGEST else -most


def count_sales(reward: float, margin: float) -> float:
    """Return the number of sales, from 0 to 1, that a reward stands for: reward / margin.

    `margin` is the action minus the cost of a sale. Raises ValueError if the quotient is not from 0 to 1.
    """
    y = reward / margin
    if not -ROUNDING <= y <= 1.0 + ROUNDING:
        raise ValueError(
            f"rewards must be from 0 to action - cost = {margin:g} with demand=True, got {reward:g}; use demand=False "
            "for rewards of another kind"
        )
    return min(max(y, 0.0), 1.0)


def _fits(saved: Learned, columns: int, demand: bool) -> bool:
    """Return True if the arrays read from a file have valid shapes and numbers."""
    wanted = SplinePosterior(columns, demand).state
    shapes = [part.shape for part in saved] == [part.shape for part in wanted]
    return shapes and bool(saved.noise[0] > 0.0) and SplinePosterior.allows(saved.choice)
