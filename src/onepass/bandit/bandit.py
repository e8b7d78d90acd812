"""Bandit = parameters x estimator x exploration: decide, learn, recommend, save. Here: what both bandits share."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Any, Self

import numpy as np

from onepass.bandit.aging import Aging
from onepass.bandit.clock import Clock, stood
from onepass.bandit.deciding import are_decisions, checked_tally, paired
from onepass.bandit.decision import DRAWN, Decision, Recommendation
from onepass.bandit.explanation import Explanation, contenders, explanation, recalled
from onepass.bandit.exploring import Exploring
from onepass.bandit.front import Front
from onepass.bandit.ledger import Ledger
from onepass.bandit.names import distinct
from onepass.bandit.recommending import recommendation
from onepass.bandit.sketch_warning import SketchWatch
from onepass.bandit.snapshot import Snapshot
from onepass.bandit.weights import Weights, requested, sides_of
from onepass.estimator.estimator import Estimator, known_radius
from onepass.estimator.links import expected, name_of, permit
from onepass.estimator.ridge import Ridge
from onepass.exploration.exploration import Exploration
from onepass.exploration.residuals import Tally
from onepass.features.factors import Outer
from onepass.foundation import check, files, state
from onepass.foundation.interrupts import deferred
from onepass.foundation.registry import built, plain
from onepass.foundation.sharing import reading, writing


class BaseBandit(Aging, Exploring, SketchWatch, files.Owner, ABC):
    """What `SharedBandit` and `ArmBandit`, the two final classes, share: all that hangs on scores alone, and files.

    Thread safety: any number of threads may use a bandit. Those that decide and score do so at once; who learns does so
    alone, and nobody sees half of it (docs/threads.md).
    """

    estimator: Any
    features: Any
    dim: int
    _width: int  # of what a design sees
    _learned: Any
    _front: Front

    def _set(self, exploration: Exploration | None, seed: int, name: str, dtype: np.dtype, clock: Clock | None) -> None:
        """What every bandit holds beside its model; `estimator` is set already."""
        if not isinstance(name, str):
            raise ValueError(f"name must be a string, got {check.shown(name)}")
        self.name = name
        self._clock, self._passed, self._recalled, self._later = clock, 0, 0.0, None
        self._tick: int | None = None if clock is not None and clock.timed else 0
        self._family = self._model_estimator().family  # of rewards, whose mean is mu(x^T theta); None: x^T theta is it
        self._explore(exploration)
        self.seed: int = check.integer("seed", seed, 0, None)
        self._dtype = dtype
        self.rounds: int = 0  # rows learned so far
        self._tally = Tally(rows=0, squares=0.0)
        self._rewarded = Ledger()
        self._rng = np.random.default_rng(self.seed)

    def _explore(self, exploration: Exploration | None) -> None:
        super()._explore(exploration)
        self._later = None

    def _permits(self, exploration: Exploration) -> None:
        estimator = self._model_estimator()
        known_radius(exploration.theory, estimator)
        if self._clock is not None and exploration.theory is not None and not isinstance(estimator, Ridge):
            raise ValueError("exploration must be a number beside half_life: only the radius of Ridge is known then")

    @abstractmethod
    def _model_estimator(self) -> Estimator:
        """The estimator that widths are those of."""

    @abstractmethod
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
        """Choose among arms, and fill k slots; see the two kinds of bandits for shapes."""

    @abstractmethod
    def score(self, contexts: Any, arms: Any = None, *, time: Any = None) -> np.ndarray:
        """Scores of all arms offered, without side effects."""

    @abstractmethod
    def learn(
        self, contexts: Any, rewards: Any, arm: Any = None, *, nu: Any = None, again: bool = False, time: Any = None
    ) -> None:
        """Learn one row and its reward, a batch, or decisions and theirs; late rewards are welcome in any order."""

    @abstractmethod
    def play(self, contexts: Any, rewards: Any, nu: Any = None) -> np.ndarray:
        """Play recorded rounds: contexts (T, K, dim), rewards (T, K) of every arm. The chosen indices (T,)."""

    @abstractmethod
    def error_bound(self) -> float:
        """Certified bound on ||A - A_hat||_2 of the design (the largest of all arms); infinite behind features without
        certificates."""

    @abstractmethod
    def _offered(self, contexts: Any, arms: Any) -> Sequence[Any]:
        """The names that a request offers."""

    @reading
    def recommend(
        self,
        contexts: Any,
        k: int,
        arms: Any = None,
        exclude: Sequence[Collection[Hashable]] | None = None,
        *,
        time: Any = None,
    ) -> Recommendation:
        """The k best arms of every user.

        contexts: what `score` takes for n users at once (for models per arm also (n, dim), one row per user), as
        NumPy arrays, polars or pandas frames, or `Outer(users (n, d_u), arms (K, d_a))`; arms: the candidates (default:
        all known ones); exclude: of every user, the names not to be recommended (seen items; unknown names are
        ignored); where fewer than k are left, the lists are shorter. Ties are broken by the seed, alike in every call.
        time: as in `decide`.
        No side effects. ValueError for bad shapes or k below 1.
        """
        model = self if time is None and self._clock is None else self._at(time)
        contexts = self._per_user(contexts)
        arms = arms if arms is None else tuple(distinct(arms))
        names = self._offered(contexts, arms)
        k = min(check.integer("k", k, 1), len(names))
        order, rng = np.random.default_rng(self.seed).permutation(len(names)), np.random.default_rng(self.seed)
        return recommendation(lambda part: model._block(part, arms, rng), contexts, names, k, exclude, order)

    def _block(self, contexts: Any, arms: Any, rng: np.random.Generator) -> np.ndarray:
        """Scores (n, K) of a block of users; rng: of all blocks."""
        return self._score(contexts, arms)

    @abstractmethod
    def _score(self, contexts: Any, arms: Any) -> np.ndarray:
        """`score` by the models as they are."""

    def _per_user(self, contexts: Any) -> Any:
        """Contexts with users on their first axis, ready to be cut into blocks."""
        if isinstance(contexts, Outer):
            return Outer(check.array("contexts.left", contexts.left, self._dtype, (2,)), contexts.right)
        contexts = check.array("contexts", contexts, self._dtype, (2, 3), self.dim)
        return contexts[:, None, :] if contexts.ndim == 2 else contexts

    # ---- decisions and their rewards ----

    def _teach(self, contexts: Any, rewards: Any, arm: Any, nu: Any, again: bool, time: Any) -> None:
        """`learn` of rows, or of decisions."""
        if not are_decisions(contexts):
            with deferred():
                self._learn(contexts, rewards, arm, nu, time)
        elif arm is not None or nu is not None:
            raise ValueError("arm and nu must be None beside decisions, which know their arms")
        else:
            self._reward(contexts, rewards, again, time)
        if self.rounds >= self._next_look:
            self._look()

    def _values(self, rewards: Any, count: int, single: bool) -> np.ndarray:
        """Checked rewards (count,): of a single row a number."""
        if single and isinstance(rewards, float) and -1e12 < rewards < 1e12:  # the common case, checked at once
            values = np.array([rewards], self._dtype)
            self._allows(values)
            return values
        values = check.array("rewards", rewards, self._dtype, (0,) if single else (1,))
        values = check.finite("rewards", values).reshape(-1)
        if len(values) != count:
            raise ValueError(f"rewards must have one entry per row of contexts ({count}), got {len(values)}")
        self._allows(values)
        return values

    @reading
    def check_rewards(self, rewards: Any) -> None:
        """Raise ValueError for rewards (n,) that `learn` would not take: NaN, or none of the family."""
        self._values(rewards, len(rewards), False)

    def _allows(self, rewards: np.ndarray) -> None:
        """ValueError for rewards that the estimator's family does not have."""
        if self._family is not None:
            permit(self._family, rewards)

    def _expected(self, values: np.ndarray, ranked: bool = False) -> np.ndarray:
        """Scores x^T theta on the scale of rewards; ranked: what the rule ranks by, which may be on it already."""
        if self._family is None or (ranked and self._explores.rewards):
            return values
        return expected(self._family, values.reshape(-1)).reshape(values.shape)

    def _reward(self, decisions: Any, rewards: Any, again: bool, time: Any) -> None:
        """Learn the rewards of decisions: from their records, all or none."""
        given, paid = paired(decisions, rewards)
        identities = [one.id for one in given]
        if not again:
            self._rewarded.refuse(identities)
        rows, names, values = [], [], []
        for one, each in zip(given, paid, strict=True):
            if not isinstance(one.context, np.ndarray):
                raise ValueError(f"decision {check.shown(one.id)} has no context, as those of this bandit have")
            for row, name, value in zip(one.context.reshape(len(one.arms), -1), one.arms, each, strict=True):
                if value is not None:
                    rows.append(row)
                    names.append(name)
                    values.append(value)
        with deferred():
            if len(rows) == 1:
                self._learn(rows[0], values[0], self._known_by(names[0]), None, time)
            elif rows:
                self._learn(np.stack(rows), values, self._known_by(names), None, time)
            self._rewarded.add(identities)

    @abstractmethod
    def _known_by(self, arm: Any) -> Any:
        """What `learn` is told of an arm, or of a list of them."""

    @abstractmethod
    def _learn(self, contexts: Any, rewards: Any, arm: Any, nu: Any, time: Any) -> None:
        """`learn` of rows, with signals deferred."""

    @reading
    def exploring(self, exploration: Exploration) -> Self:
        """The same model under another exploration, from the seed on. What is learned is shared, not copied: let one of
        the two learn, or take a `copy` first. ValueError for what is no exploration.
        """
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.sharing = self.sharing
        twin._explore(exploration)
        twin._rng = np.random.default_rng(self.seed)
        return twin

    @writing
    def snapshot(self) -> Snapshot:
        """What the bandit knows now, for servers: it decides and scores in any number of threads, and never learns.

        Costs one copy of what was learned; of models per arm, of the arms that have changed since the last snapshot.
        """
        return Snapshot(self._published())

    def _twin(self) -> Self:
        """A bandit with the same attributes."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._front, twin._rewarded, twin._later = self._front.at_rest(), self._rewarded.copy(), None
        return twin

    @abstractmethod
    def _published(self) -> Self:
        """A bandit that stays as this one is now, but for the generator, which is the same."""

    @property
    def knows(self) -> bool:
        """True: it is written where it is an argument of another owner."""
        return True

    @property
    def learned(self) -> Any:
        """All that was learned, as compiled code sees it: not to be written to, and no part of a stable interface."""
        return self._learned

    @reading
    def memory_usage(self) -> int:
        """Bytes of all arrays of the state, the feature map's included."""
        return state.nbytes(self._state())

    @abstractmethod
    def _state(self) -> Any:
        """All that was learned, as a tree of arrays."""

    def params(self) -> dict[str, Any]:
        """What the constructor was given, as plain data."""
        return {name: plain(part) for name, part in self._arguments().items()}

    def _arguments(self) -> dict[str, Any]:
        parts = {"estimator": self.estimator, "exploration": self.exploration, "features": self.features}
        parts = {**parts, "seed": self.seed, "name": self.name}
        return parts if self._clock is None else {**parts, "half_life": self._clock}

    def contents(self) -> files.Contents:
        extra = {
            "rng": self._rng.bit_generator.state,
            "rounds": self.rounds,
            "tally": list(self._tally),
            "rewarded": self._rewarded.text(),
        }
        if self._clock is not None:
            extra.update(tick=self._tick, passed=self._passed, recalled=self._recalled)
        return files.Contents(self._arguments(), extra, self._saved())

    @classmethod
    def restored(cls, params: dict[str, Any], extra: dict[str, Any], held: files.Holds) -> Self:
        """From what a file, copy or pickle holds, `params`, `extra` and `held`; ValueError where that does not fit."""
        bandit = cls(**{name: built(part) for name, part in params.items()})
        bandit._restore(held)
        bandit.rounds = check.integer("rounds", extra["rounds"], 0)
        bandit._rng.bit_generator.state = extra["rng"]
        bandit._tally = checked_tally(extra["tally"])
        bandit._rewarded = Ledger.of(extra["rewarded"])
        if bandit._clock is not None:
            bandit._tick, bandit._passed, bandit._recalled = stood(extra)
        return bandit

    @abstractmethod
    def _saved(self) -> Any:
        """All that was learned, as a tree of arrays. What a feature map drew is not: it is drawn again."""

    @abstractmethod
    def _restore(self, held: files.Holds) -> None:
        """Take `_saved` back; ValueError for arrays that do not fit."""

    @reading
    def __repr__(self) -> str:
        parts = [repr(self.estimator), repr(self.exploration)]
        parts += [] if self.features is None else [f"features={self.features!r}"]
        bound = self.error_bound()
        learned = f"{self.rounds} rows learned, {self.memory_usage():,} bytes, error bound {bound:.3g}"
        return f"<{self.name}: {', '.join(parts)}, seed={self.seed}; {learned}>"

    # ---- why ----

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
        """What the mean and the width of an arm are made of, feature by feature, and its difference to another arm.

        contexts, arms: those of one decision, (K, dim) or as else `decide` takes them; or a `Decision`, and arms None:
        the arms that it chose, from its record alone.
        arm: a name of `arms`, or an index where a shared model is given none (default None: of the largest score).
        other: another one, to be compared with (default None: the nearest competitor, of the largest score beside it).
        For a `Decision`: one of the arms that it chose (None: that of the first slot; another slot's).
        names: of the columns of a context, or of those of left, then of right (default None: x0, x1, ...).
        time: as in `decide`.
        Scores are those of `score`; for clicks and counts means and widths are those of x^T theta, before the link.
        Nothing changes, no arm becomes known.
        ValueError for arms that are not offered, twice the same arm, wrong names, and as `score`.
        """
        if isinstance(contexts, Decision):
            contexts, arms, arm = recalled(contexts, arms, arm)
        arms = arms if arms is None else tuple(distinct(arms))
        rows, names = requested(self._front, contexts), self._front.map.input_names(names)
        model = self if time is None and self._clock is None else self._at(time)
        scores, offered = model._score(contexts, arms), self._offered(rows[None], arms)
        places = contenders(scores, offered, arm, other)
        asked = np.ascontiguousarray(rows[places if len(rows) > 1 else [0] * len(places)])
        z = np.concatenate([self._front.transform(row[None]) for row in asked])
        found, front = [offered[place] for place in places], self._front
        sides = lambda m: sides_of(front, names, asked[:m], z[:m], model._weights(found[:m], asked[:m], z[:m]))  # noqa: E731
        link = "" if self._family is None else name_of(self._family)
        return explanation(found, scores[places].tolist(), sides, link)

    @abstractmethod
    def _weights(self, arms: list[Any], rows: np.ndarray, z: np.ndarray) -> list[list[Weights]]:
        """Of one arm, or of two, with contexts rows (m, dim) and features z (m, D): what z is multiplied by."""
