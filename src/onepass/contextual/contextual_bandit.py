"""ContextualBandit: what to try first. Nothing has to be known before; each choice is shown, and can be fixed.

Contexts are rows of numbers or records, arms names or records; what it is given first decides which models it keeps
(kinds.py, fronting.py). Of every arm a few ridge regressions, on the columns, those of records too (columns.py), and on
features of a kernel (view.py, model.py), weighed by how well they have predicted (mixture.py); or of all arms that have
features one model (bandit/crossing.py). It explores in units of what they leave, by inverse gaps over upper bounds
(rewards.py, exploration/optimistic_gap.py). What each part is worth: docs/recommended_measured.md. Cost of a round of
the first: n^2 / 2 an arm for widths, n = landmarks + dim + 1 of the models that are believed, and n^2 of every model to
learn. Of more than 300 columns span.py and sketched.py say which models, and what they cost.
"""

from collections.abc import Hashable, Iterable
from functools import partial
from typing import Any, final

import numpy as np

from onepass.bandit.bandit import BaseBandit
from onepass.bandit.deciding import asked, checked_tail, failed, recorded, trouble
from onepass.bandit.decision import DRAWN, Decision, together
from onepass.bandit.explanation import Explanation, contenders, explanation, recalled
from onepass.bandit.knowing import Knowing
from onepass.bandit.names import distinct, eligible_arms, hashable, named
from onepass.bandit.roster import Roster
from onepass.bandit.rounds import fill_slots
from onepass.bandit.sketch_warning import NEVER
from onepass.bandit.weights import Weights
from onepass.contextual import crossed_side
from onepass.contextual.columns import WIDTH, Columns
from onepass.contextual.explaining import called, sides_of
from onepass.contextual.filed import Filed
from onepass.contextual.fronting import Fronting
from onepass.contextual.kinds import (
    CROSSED,
    OWN,
    RECORDS,
    ROWS,
    common,
    first_featured,
    kept_of,
    kind_of_decision,
    name_alone,
    names_alone,
    records_of,
    told_of,
)
from onepass.contextual.known import Known, widest
from onepass.contextual.recorded import rows_of_slots
from onepass.contextual.span import WIDE
from onepass.design.exact import Exact
from onepass.estimator.estimator import Estimator
from onepass.estimator.ridge import Ridge
from onepass.exploration.contract import Seen, draws, score, strength
from onepass.exploration.exploration import Exploration
from onepass.exploration.optimistic_gap import OptimisticGap
from onepass.exploration.randomness import no_normals, noise_once
from onepass.features.records import Records
from onepass.features.terms import terms
from onepass.foundation import check
from onepass.foundation.check import shown
from onepass.foundation.interrupts import deferred
from onepass.foundation.registry import savable
from onepass.foundation.sharing import composed, reading, writing

WARM_UP = 256  # rows from which the views are made
MEGABYTES = 64.0  # that models may take when the views are made
PATIENCE = 50.0  # of the alarm, in units of surprise
TOO_WIDE = "as `megabytes` and `warm_up` say: raise the one, or map rows before (onepass.GaussianProjection)"


@final
@savable
class ContextualBandit(Filed, Fronting, Knowing, BaseBandit):
    """The bandit that needs no tuning: contexts are rows of numbers in any units, or records; arms come and go.

    A context is a row (dim,), the same for all arms, or (K, dim), a row per arm; n decisions take (n, 1, dim) or
    (n, K, dim). Or it is a dictionary, or a frame of one row; n decisions take a list or a frame. Rewards are clicks,
    counts or numbers of any unit. Arms are any hashable: they appear when they are learned from or added, and leave by
    `remove_arm`; any may be offered. Or they have features: {name: record or row}, or records without names.

    What is learned first decides which models are kept: where arms have features, and where more than 20 without are
    offered for a record, those of `CrossedBandit`; else every arm has its own. `repr` and `choices` say which.

    dim: of contexts that are rows, from 1 to 2,000, or to what `megabytes` allow, 27,777 at the defaults: the first
    rows and two spans fit into them. None (default): that of the first row learned.
    exploration: any rule, its multiplier of widths in units of the residual; None (default): `OptimisticGap()`, where
    models are crossed `OptimisticGap(0.8, scale=30.0, floor=0.001)`; these give every arm a probability. `UCB(1.0)`
    plays the best bound alone. No `Theory`.
    landmarks: of the kernel's features, from 0 (the columns alone) to 2,000 (default 150); fewer where `megabytes` say.
    reg: penalty on every parameter, above 0 (default 0.1).
    warm_up: rows from which scales and landmarks are made, again after 1, 2, 4, ... of them, from 1 (default 256).
    megabytes: that the models of all arms known may take when landmarks are chosen, above 0 (default 64.0); arms that
    come later, and columns of records, take more. Rows of more than 300 columns are mapped on up to 64 directions, or,
    where over 90% are zeros, every arm has a sketch.
    patience: of the alarm that forgets all after a change for the worse, above 0 (default 50.0); None: no alarm.
    seed: of landmarks, ties and draws, at least 0 (default 0). name: shown by repr (default "ContextualBandit").
    models: "own" (of every arm, features are left out), "crossed" (one of all arms), None (default): as said above.
    context, item: the `Records` of requests and of arms, learned further in copies; None (default): 256 wide. With
    more than 300 places of requests models are crossed.
    landmarks to patience are of models of every arm. ValueError for values out of range.

    >>> import numpy as np, onepass as op
    >>> bandit, rng = op.ContextualBandit(), np.random.default_rng(0)
    >>> for _ in range(300):
    ...     context = rng.uniform(0.0, 24.0, 2)
    ...     decision = bandit.decide(context, ["tea", "soup"])
    ...     bandit.learn(decision, float((decision.arm == "soup") == (11.0 < context[0] < 14.0)))
    >>> bandit.decide([12.5, 3.0], ["tea", "soup"]).means.argmax(), bandit.decide([20.0, 3.0], ["tea", "soup"]).arm
    (np.int64(1), 'tea')
    >>> other, arms = op.ContextualBandit(), {"a1": {"topic": "sport"}, "a2": {"topic": "news"}}
    >>> other.learn(other.decide({"hour": 9, "country": "de"}, arms), 1.0)
    >>> other.choices()["models"]
    'crossed'
    """

    _next_look = NEVER  # it chooses its sketches itself (sketched.py)

    def __init__(
        self,
        dim: int | None = None,
        *,
        exploration: Exploration | None = None,
        landmarks: int = 150,
        reg: float = 0.1,
        warm_up: int = WARM_UP,
        megabytes: float = MEGABYTES,
        patience: float | None = PATIENCE,
        seed: int = 0,
        name: str = "ContextualBandit",
        models: str | None = None,
        context: Records | None = None,
        item: Records | None = None,
    ):
        for argument, value in (("context", context), ("item", item)):
            if not isinstance(value, Records | None):
                raise ValueError(f"{argument} must be Records(size=256), got {shown(value)}")
        if context is not None and context.size > WIDE:
            if models == OWN:
                raise ValueError(f"context must have at most {WIDE} places where arms have models of their own")
            models = CROSSED
        self._given: dict[str, Any] = {
            "dim": dim,
            "landmarks": check.integer("landmarks", landmarks, 0, 2_000),
            "reg": check.positive("reg", reg),
            "warm_up": check.integer("warm_up", warm_up, 1, 1 << 20),
            "megabytes": check.positive("megabytes", megabytes),
            "patience": None if patience is None else check.positive("patience", patience),
            "models": None if models is None else check.choice("models", models, (OWN, CROSSED)),
            "context": None if context is None else context.copy(),
            "item": None if item is None else item.copy(),
        }
        self._kind, self._crossed = None, None
        if dim is not None:
            self._given["dim"] = dim = check.integer("dim", dim, 1, widest(self._given), TOO_WIDE)
        self._set(OptimisticGap() if exploration is None else exploration, seed, name, np.dtype(np.float64), None)
        self._free = exploration is None
        self._known = Known(self._given, seed)
        self._columns = Columns(Records(size=WIDTH) if context is None else context.copy(), [])
        self.estimator: Any = None
        self.features: Any = None
        self.dim: int = 0
        if dim is not None:
            self._begin(dim)

    def _model_estimator(self) -> Estimator:
        return Ridge(Exact(dim=1, reg=self._given["reg"]))

    def _permits(self, exploration: Exploration) -> None:
        if exploration.theory is not None:
            raise ValueError("exploration must be a number for ContextualBandit: no radius is known for several models")

    # ---- arms ----

    @property
    def roster(self) -> Roster:
        """Names of arms, and where each has its model: not to be written to, and no part of a stable interface."""
        return self._known.roster

    @writing
    def remove_arm(self, arm: Hashable) -> None:
        """Forget an arm and all it has learned; its place is taken by the next new one. ValueError if it is not
        known. Of an arm with features what it is beside them."""
        if self._kind == CROSSED:
            self._inner().remove_arm(arm)
            return
        slot = self._known.roster.known(arm)
        with deferred():
            self._known.remove(arm, slot)

    # ---- decisions ----

    def _requests(self, contexts: Any, count: int) -> tuple[bool, np.ndarray]:
        """Whether it is a single decision, and rows (n, K or 1, dim). Here contexts become rows."""
        if self._told(contexts):
            single, records = records_of(contexts)
            return single, self._columns.rows(records)[:, None, :]
        rows = check.array("contexts", contexts, self._dtype, (1, 2, 3), self.dim or None)
        if rows.size == 0 or (rows.ndim > 1 and rows.shape[-2] not in (1, count)):
            raise ValueError(f"contexts must have one row, or one per arm ({count}), got shape {rows.shape}")
        check.finite_rows("contexts", rows.reshape(-1, rows.shape[-1]))
        return rows.ndim < 3, rows.reshape(1, 1, -1) if rows.ndim == 1 else rows[None] if rows.ndim == 2 else rows

    def _seen(self, rows: np.ndarray, slots: np.ndarray, normals: np.ndarray) -> Seen:
        """What the rule sees of arms for rows (1 or K, dim)."""
        rule = self._explores.rule
        means, widths, sigma, known = self._known.survey(rows, slots)
        beta, samples = np.full(slots.size, strength(rule).scale * sigma), no_normals(slots.size)
        if len(normals):
            shifts = beta * normals * widths
            samples = np.concatenate([means + shifts, means - shifts])[: draws(rule)]
        return Seen(means=means, widths=widths, samples=samples, beta=beta, residual=sigma, rounds=known)

    @reading
    def decide(
        self,
        contexts: Any,
        arms: Any = None,
        k: int = 1,
        *,
        id: Any = None,
        eligible: Any = None,
        tail: str = DRAWN,
        time: Any = None,
    ) -> Decision:
        """Choose among `arms` (names, each once; default: all known), and fill k slots. Only the generator changes.

        contexts: a row (dim,), or (K, dim), a row per arm, or a dictionary, or a frame of one row; n decisions:
        (n, 1, dim), (n, K, dim), a list of n dictionaries, or a frame of n rows.
        k: how many slots to fill, without replacement, from 1 to K (default 1).
        id: a string, or n of them: the draw is then a function of the seed, the id and the model (default: made).
        eligible: who may be chosen: booleans (K,), or (k, K) for each slot; or names (default: all).
        tail: "drawn": every slot has a distribution (default); "greedy": slots after the first take the best left.
        time: None. Means are expected rewards; scores means + exploration unit widths. ValueError for NaN, a wrong
        shape, duplicate arms, no arm at all or k above K; FloatingPointError when a score is not finite.
        """
        self._timeless(time)
        kind = ROWS if self._kind == ROWS and common(contexts, arms) else self._kind_for(contexts, arms)
        if kind == CROSSED:
            return crossed_side.decide(
                self._inner(), self.dim, contexts, self._all(arms), k, id, eligible=eligible, tail=tail
            )
        names, slots = self._known.roster.request(arms if kind == ROWS else names_alone(arms))
        if type(k) is not int or k != 1:
            k = check.integer("k", k, 1, len(names))
        greedy, among = checked_tail(tail), eligible_arms(eligible, names, len(names), k)
        (single, requests), each, rule = self._requests(contexts, len(names)), [], self._explores.rule
        records = records_of(contexts)[1] if kind == RECORDS else None
        identities = asked(id, None if single else len(requests), self.seed, self._rng)
        for i, (rows, one) in enumerate(zip(requests, identities, strict=True)):
            normals, lots = noise_once(self._explores.pairs, len(names), one.rng, k)
            seen = self._seen(rows, slots, normals)
            scores = score(rule, seen)
            places, p = fill_slots(rule, seen, scores, among, lots, greedy)
            if places[0] < 0:
                raise failed(int(places[0]))
            if records is not None:
                context: Any = kept_of(records[i], [names[place] for place in places])
            else:
                context = rows[places if len(rows) > 1 else [0] * k]
                context = context[0] if k == 1 else context
            found = places, p, scores, seen.means, seen.widths
            each.append(recorded(one, found, names, context, tail, self._explores, self.rounds))
        return each[0] if single else together(each)

    @reading
    def score(self, contexts: Any, arms: Any = None, *, time: Any = None) -> np.ndarray:
        """Scores (K,) of `arms` (default: all known), or (n, K) for n contexts, without side effects.

        Under Thompson sampling the same draws in every call: the first that the seed gives. time: None. Errors as of
        `decide`.
        """
        self._timeless(time)
        if self._kind_for(contexts, arms) == CROSSED:
            return crossed_side.score(self._inner(), self.dim, contexts, self._all(arms))
        return self._score(contexts, names_alone(arms))

    def _score(self, contexts: Any, arms: Any) -> np.ndarray:
        names, slots = self._known.roster.request(arms)
        single, requests = self._requests(contexts, len(names))
        scores = self._scored(requests, slots, np.random.default_rng(self.seed))
        return scores[0] if single else scores

    def _block(self, contexts: Any, arms: Any, rng: np.random.Generator) -> np.ndarray:
        names, slots = self._known.roster.request(arms)
        return self._scored(self._requests(contexts, len(names))[1], slots, rng)

    def _scored(self, requests: np.ndarray, slots: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        scores, pairs = np.empty((len(requests), slots.size)), min(self._explores.pairs, 1)
        for i, rows in enumerate(requests):
            scores[i] = score(self._explores.rule, self._seen(rows, slots, noise_once(pairs, slots.size, rng, 1)[0]))
        if not np.isfinite(scores).all():
            raise trouble()
        return scores

    def _per_user(self, contexts: Any) -> np.ndarray:
        if self._told(contexts):
            return self._columns.rows(records_of(contexts)[1])[:, None, :]
        contexts = check.array("contexts", contexts, self._dtype, (2, 3), self.dim or None)
        return contexts[:, None, :] if contexts.ndim == 2 else contexts

    # ---- learning ----

    @writing
    def learn(
        self, contexts: Any, rewards: Any, arm: Any = None, *, nu: Any = None, again: bool = False, time: Any = None
    ) -> None:
        """Learn contexts, rewards and arms: one row (dim,), a number and a name, or (n, dim), (n,) and n names.

        contexts: rows or records, or decisions, as in `SharedBandit.learn`, which know their arms. arm: names, which
        may be new; where arms have features, for each {name: features}, or [features] without a name.
        Rows are learned in their order. nu, time: None. again: learn a second reward of a decision, too (default
        False). ValueError, and nothing has changed, for NaN, shapes that do not match, names that are not hashable, or
        a decision that has had its reward.
        """
        self._teach(contexts, rewards, arm, nu, again, time)

    def _learn(self, contexts: Any, rewards: Any, arm: Any, nu: Any, time: Any) -> None:
        self._timeless(time)
        if nu is not None:
            raise ValueError("nu must be None for ContextualBandit, which finds the scale of the noise by itself")
        first = first_featured(arm, rewards)
        kind = ROWS if self._kind == ROWS and first is None and common(contexts, None) else None
        kind = self._kind_for(contexts, first) if kind is None else kind
        if kind == CROSSED:
            self._learn_crossed(contexts, rewards, arm)
            return
        if first is not None:
            arm = name_alone(arm) if np.ndim(rewards) == 0 else [name_alone(one) for one in arm]
        if kind == RECORDS:
            single, records = records_of(contexts)
            if arm is None:
                raise ValueError("arm must name the arm of every record")
            told, single = [terms(record) for record in records], single and not isinstance(arm, list)
            values = self._values(rewards, len(told), single)
            self._learn_records(told, values, [arm] if single else named(arm, len(told), "arm"))
            return
        rows = check.array("contexts", contexts, self._dtype, (1, 2), self.dim or None)
        single, rows = rows.ndim == 1, np.atleast_2d(rows)
        check.finite_rows("contexts", rows)
        if self.dim == 0:
            check.integer("dim", rows.shape[1], 1, widest(self._given), TOO_WIDE)
        values = self._values(rewards, len(rows), single)
        if arm is None:
            raise ValueError("arm must name the arm of every row")
        names = [arm] if single else named(arm, len(rows), "arm")
        hashable(names)
        if self.dim == 0:
            self._begin(rows.shape[1])
        self._become(ROWS)
        with deferred():
            for row, value, name in zip(rows, values.tolist(), names, strict=True):
                self._known.take(row, value, name)
                self.rounds += 1

    @composed
    def play(self, contexts: Any, rewards: Any, nu: Any = None) -> np.ndarray:
        """Play recorded rounds: contexts (T, K, dim) or (T, 1, dim), rewards (T, K); the arms are named 0 .. K - 1.

        nu: None. Returns the chosen indices (T,): those of T calls of `decide` and `learn`. ValueError as there;
        FloatingPointError when a score is not finite: the rounds before have been learned.
        """
        if self._kind not in (None, ROWS):
            raise ValueError(f"contexts of this bandit are {self._kind}: only rows of numbers are played")
        rows = check.array("contexts", contexts, self._dtype, (3,), self.dim or None)
        values = check.finite("rewards", check.array("rewards", rewards, self._dtype, (2,)))
        if rows.shape[0] != values.shape[0] or rows.shape[1] not in (1, values.shape[1]) or nu is not None:
            raise ValueError(
                f"contexts must be (T, K, dim) or (T, 1, dim), rewards (T, K) and nu None, got shapes {rows.shape} and "
                f"{values.shape} and nu {shown(nu)}"
            )
        arms, names = np.empty(len(rows), np.int64), tuple(range(values.shape[1]))
        for t in range(len(rows)):
            arms[t] = a = self.decide(rows[t], names).index
            self.learn(rows[t, a if rows.shape[1] > 1 else 0], float(values[t, a]), int(a))
        return arms

    # ---- what is known ----

    @reading
    def choices(self) -> dict[str, Any]:
        """What was chosen from the rows so far: {"models": "rows", or "records", "weights": of the models by their
        names, "landmarks": of each view, "directions": that wide rows are mapped on, 0: they are not wide, "residual":
        sigma, the unit of exploration, "prior": mean of an unknown arm, "unit": D of the rewards, "alarms": how often
        all was forgotten, "bytes_per_arm": memory}; {} before the first row. {"models": "crossed", ...}: as
        `CrossedBandit.choices`."""
        if self._kind == CROSSED:
            return {"models": CROSSED, **self._inner().choices()}
        found = self._known.choices()
        return {"models": self._kind, **found} if found else {}

    @reading
    def explain(
        self,
        contexts: Any,
        arm: Any = None,
        other: Any = None,
        *,
        arms: Any = None,
        names: Iterable[str] | None = None,
        time: Any = None,
    ) -> Explanation:
        """What the mean and the width of an arm are made of, column by column, and its difference to another arm.

        contexts: of one decision, (dim,) or (K, dim), or a `Decision`; arms, arm, other, names: as for `ArmBandit`;
        time: None. Records: of terms; where arms have features of pairs of terms, and without other and names.
        "landmarks" is what the kernel adds, "prior" what an unknown arm is worth. Widths of two arms add as those of
        models that share nothing. What the models were weighed by: `choices`. ValueError as there.
        """
        self._timeless(time)
        told = isinstance(contexts, Decision)
        kind = (
            self._kind or kind_of_decision(self._given["models"], contexts) if told else self._kind_for(contexts, arms)
        )
        if kind == CROSSED:
            if other is not None or names is not None:
                raise ValueError("other and names must be None where arms have features")
            return crossed_side.explain(self._inner(), self.dim, contexts, arms if told else self._all(arms), arm)
        if kind == RECORDS:
            names = self._columns.names() if names is None else names
            if told and not contexts.several:
                contexts = contexts._replace(
                    context=rows_of_slots(self._columns, told_of(contexts), len(contexts.arms))
                )
        if told:
            contexts, arms, arm = recalled(contexts, arms, arm)
        arms = names_alone(arms)
        offered = self._known.roster.request(arms if arms is None else tuple(distinct(arms)))[0]
        single, requests = self._requests(contexts, len(offered))
        if not single:
            raise ValueError(f"contexts must be those of one decision, got {len(requests)}")
        scores, rows = self._score(requests[0], tuple(offered)), requests[0]
        places, columns = contenders(scores, offered, arm, other), called(rows.shape[1], names)
        slots = [self._known.roster.record(offered[place]) for place in places]
        asked_of = [rows[place if len(rows) > 1 else 0] for place in places]
        sides = partial(sides_of, self._known.models, asked_of, slots, columns)
        return explanation([offered[place] for place in places], scores[places].tolist(), sides)

    def _weights(self, arms: list[Any], rows: np.ndarray, z: np.ndarray) -> list[list[Weights]]:
        return []

    @reading
    def error_bound(self) -> float:
        """Infinite: rows are mapped by views that were made anew, so no single A is certified."""
        return float("inf")

    @reading
    def __repr__(self) -> str:
        said = f"{self.exploration!r}, seed={self.seed}"
        rows = f"{self.rounds} rows learned of {len(self._known.roster)} arms, {self.memory_usage():,} bytes"
        if self._kind == CROSSED:
            found = self._inner().choices()
            terms_of, arms_of = found["terms"]
            return (
                f"<{self.name}: {said}; {self.rounds} rewards of records crossed with those of arms, {terms_of} and "
                f"{arms_of} terms, {self.memory_usage():,} bytes; residual {found['residual']:.3g}>"
            )
        if self._kind == RECORDS:
            rows += f"; records of {self.dim} columns"
        return f"<{self.name}: {said}; {rows}{self._known.told()}>"
