"""The contract of a model: what is learned about arms, and what a `Bandit` asks of it.

    decide   encode -> predict -> rule -> draw;   the record of a decision keeps `evidence`
    learn    recall (of records) or observe (of contexts) -> update

A model has one writer, the bandit that it was given to, and readers use frozen copies of it. A member is a final class
with the abstract methods below and those of the optional ones that it can answer; `onepass.testing.check_model` holds
it to the contract. What is derived here, members replace where they have a faster way to the same numbers.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from onepass.estimator.families import check_rewards, mean_of_scores, to_reward_scale
from onepass.exploration.contract import ArmStatistics, score
from onepass.exploration.exploration import Exploration
from onepass.exploration.randomness import noise_once
from onepass.exploration.rule import Rule
from onepass.exploration.slots import rank_and_fill_direct
from onepass.features.attribution import Terms
from onepass.foundation import check, files
from onepass.foundation.check import quote
from onepass.foundation.registry import has_equal_arguments

Choice = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]
"""places (k,), distributions of the slots (k, K), scores, means on the scale of rewards, and widths (K,)."""


class Request(NamedTuple):
    """What one decision, or n at once, are about.

    names: of the arms on offer, None where arms are their indices; size: K, how many arms; single: True for one
    decision; each (n): the contexts as the model reads them; arms: the arms on offer, likewise; given: the contexts as
    they were given.
    """

    names: list[Any] | None
    size: int
    single: bool
    each: Sequence[Any]
    arms: Any = ()
    given: Any = None


class Batch(NamedTuple):
    """Rows to be learned together: all of them, or none.

    size: n, how many rows; single: True where one row was given by itself; rows: as the model reads them; arms: whose
    rewards they had, likewise.
    """

    size: int
    single: bool
    rows: Any
    arms: Any = ()


class Side(NamedTuple):
    """What one part of a model says of an arm.

    terms: of the mean and of the squared width; mean, square: their sums, to rounding. Of two arms `square` is what
    that of the difference is made of: the first arm's less the second's.
    """

    part: str
    terms: Terms
    mean: float
    square: float


Sides = Callable[[int], Sequence[Sequence[Side]]]
"""For m = 1: the parts of the first arm alone; for m = 2: those of both arms, as a difference."""


class Model(files.Owner, ABC):
    """What is learned about arms.

    n_learned: rows learned so far. dtype: of rewards. family: of rewards, whose mean is mu(score); None where scores
    are
    expected rewards. compares: False where an explanation is of one arm alone. common_draw: True where one draw of the
    parameter serves all decisions of a request that are scored together.
    """

    n_learned: int
    dtype: np.dtype[Any] = np.dtype(np.float64)
    family: Any = None
    compares: ClassVar[bool] = True
    common_draw: ClassVar[bool] = False

    # ---- decisions ----

    @abstractmethod
    def encode(self, context: Any, arms: Any) -> Request:
        """Check a context and the arms on offer (None: all known ones), and return them as the model reads them.

        Nothing changes. ValueError for NaN, for a wrong shape, for a name that is there twice, and for no arm at all.
        """

    @abstractmethod
    def predict(self, request: Request, i: int, rule: Rule, rng: np.random.Generator, pairs: int) -> ArmStatistics:
        """Return means, widths and draws of the arms in the i-th decision of a request, as the rule needs them.

        pairs: of draws +- d, made of normals from rng.
        """

    @abstractmethod
    def evidence(self, request: Request, i: int, places: np.ndarray) -> Any:
        """Return what the record of the i-th decision of a request keeps of the arms at `places` (k,)."""

    def choose(
        self,
        request: Request,
        i: int,
        rule: Rule,
        rng: np.random.Generator,
        among: np.ndarray,
        k: int,
        greedy: bool,
    ) -> Choice:
        """Fill k slots in the i-th decision of a request by a rule and lots from rng. Derived: by `predict`.

        among (1 or k, K): the arms that are eligible; greedy: True to give slots after the first the best of the rest.
        The first place is negative where no arm can be drawn (exploration/slots.py).
        """
        seen = self.predict(request, i, rule, rng, rule.pairs)
        lots = noise_once(min(rule.pairs, 1), 0, rng, k)[1]
        places, p, scores = rank_and_fill_direct(rule.rule, self.view(seen, rule), among, lots, greedy, rule.code)
        return places, p, self.mean_rewards(scores, rule), self.mean_rewards(seen.means), seen.widths

    def scores(self, request: Request, rule: Rule, rng: np.random.Generator) -> np.ndarray:
        """Return the scores (n, K) that a rule ranks the arms of a request by, with one draw from rng where it draws.

        Derived.
        """
        pairs = min(rule.pairs, 1)
        each = range(len(request.each))
        return np.stack([score(rule.rule, self.view(self.predict(request, i, rule, rng, pairs), rule)) for i in each])

    def view(self, seen: ArmStatistics, rule: Rule) -> ArmStatistics:
        """Return `seen`, statistics of arms, on the scale that a rule looks at: that of scores, or that of rewards."""
        return to_reward_scale(self.family, seen) if rule.rewards and self.family is not None else seen

    def mean_rewards(self, values: np.ndarray, rule: Rule | None = None) -> np.ndarray:
        """Return values, scores, as expected rewards; rule: the one that ranked by them, if these are its scores."""
        if self.family is None or (rule is not None and rule.rewards):
            return values
        return mean_of_scores(self.family, values.reshape(-1)).reshape(values.shape)

    def active_rule(self, rule: Rule, request: Request | None = None) -> Rule:
        """Return the rule to decide a request by; None: where a maximizer finds the arm. Derived: the rule itself."""
        return rule

    def default_exploration(self) -> Exploration | None:
        """Return the exploration where none is given; None: `UCB()`. Derived: None."""
        return None

    def require_fit(self, exploration: Exploration) -> None:
        """Raise ValueError for an exploration that asks for what the model does not have. Derived: for a `Theory`."""
        if exploration.theory is not None:
            raise ValueError(
                f"exploration must be a number: no radius is known for this model, got {quote(exploration)}"
            )

    def at(self, time: Any) -> "Model":
        """Return the model at a time: itself, or one for readers that has forgotten up to there.

        Derived: ValueError for a time.
        """
        if time is not None:
            raise ValueError(f"time must be None: this model does not forget by the clock, got {quote(time)}")
        return self

    @property
    def needs_time(self) -> bool:
        """True if `learn` and what reads must be told the time. Derived: False."""
        return False

    # ---- learning ----

    @abstractmethod
    def observe(self, context: Any, arm: Any) -> Batch:
        """Check a context, or several, and the arm whose reward is learned, where no decision was made of them here."""

    @abstractmethod
    def recall(self, slots: list[tuple[Any, int]]) -> Batch:
        """Return what was chosen in slots (decision, number of the slot), from the records of these decisions alone.

        ValueError for records of another model's decisions.
        """

    @abstractmethod
    def update(
        self, batch: Batch, rewards: np.ndarray, *, nu: Any = None, time: Any = None, residuals: bool = False
    ) -> "Model":
        """Learn a batch of rows and its rewards (n,), all or none, and return the model to go on with, mostly itself.

        nu: noise scales; time: when; residuals: True to count deviations of rewards from their means.
        """

    def permit(self, rewards: np.ndarray) -> None:
        """Raise ValueError for rewards (n,) that the family does not have."""
        if self.family is not None:
            check_rewards(self.family, rewards)

    def game(self, contexts: Any, rewards: Any, nu: Any) -> tuple[np.ndarray, np.ndarray, Any]:
        """Check recorded rounds: contexts (T, K or 1, dim), rewards (T, K) and nu, noise scales. Derived: refused."""
        raise ValueError(f"recorded rounds are played by models of rows, not by {type(self).__name__}")

    def play(
        self, contexts: np.ndarray, rewards: np.ndarray, nu: Any, rule: Rule, rng: np.random.Generator
    ) -> np.ndarray | None:
        """Play recorded rounds in compiled code; the arms (T,), negative from where a score was not finite.

        contexts (T, K or 1, dim), rewards (T, K), nu: as `game` returns them; rule, rng: of the decisions. Derived:
        None, the bandit decides and learns one by one.
        """
        return None

    def merge(self, other: Self, since: Self | None) -> "Model":
        """Learn what `other`, another model, has learned; since: the model that both began as copies of.

        Both are copies that may be used up. Derived: TypeError.
        """
        raise TypeError(f"{type(self).__name__} cannot be merged")

    # ---- arms ----

    @property
    def has_named_arms(self) -> bool:
        """True if arms are known by their names. Derived: False, arms are rows."""
        return False

    @property
    def arms(self) -> tuple[Any, ...]:
        """All known arms, in the order in which they appeared. Derived: none, arms are rows."""
        return ()

    def add_arm(self, arm: Hashable) -> None:
        """Make an arm known before it is learned from. Derived: ValueError."""
        raise ValueError(f"arm must be offered with its features: {type(self).__name__} knows no arms by name")

    def remove_arm(self, arm: Hashable) -> None:
        """Forget an arm. Derived: ValueError."""
        raise ValueError(f"arm {quote(arm)} is not known: {type(self).__name__} knows no arms by name")

    # ---- questions ----

    def users(self, contexts: Any) -> tuple[int, Callable[[slice], Any]]:
        """Return the number of users in contexts (n, dim) or (n, K, dim), and a function that gives those of a slice.

        Derived.
        """
        rows = check.array("contexts", contexts, self.dtype, (2, 3))
        rows = rows[:, None, :] if rows.ndim == 2 else rows
        return len(rows), lambda part: rows[part]

    @abstractmethod
    def attribute(self, request: Request, places: list[int], names: Any) -> Sides:
        """Return what means and squared widths of one or two arms, at places in a request, are made of.

        names: of the columns of a context (None: x0, x1, ...).
        """

    def reread(self, decision: Any) -> Request:
        """Return a request for the arms that a decision chose, from its record alone. Derived: of rows."""
        if not isinstance(decision.context, np.ndarray):
            raise ValueError(f"decision {quote(decision.id)} has no context, as those of this bandit have")
        return self.encode(decision.context.reshape(len(decision.arms), -1), tuple(decision.arms))

    def error_bound(self) -> float:
        """Return a certified bound on ||A - A_hat||_2. Derived: infinite, nothing is certified."""
        return float("inf")

    def sketch_loss(self) -> tuple[float, float] | None:
        """Return what a sketch has cut, in units of its ridge, and that ridge. Derived: None, there is no sketch."""
        return None

    def choices(self) -> dict[str, Any]:
        """Return what the model has chosen from the data. Derived: nothing."""
        return {}

    # ---- copies ----

    def can_become(self, other: "Model") -> bool:
        """Return True if `other` is what this model may become by learning. Derived: one of equal parameters."""
        return has_equal_arguments(self, other)

    @abstractmethod
    def freeze(self) -> Self:
        """Return a copy that stays as the model is now; it may share what never changes."""

    @property
    def has_learned(self) -> bool:
        """True: it is written where it is an argument of another owner."""
        return True

    @property
    def state(self) -> Any:
        """All that was learned, as compiled code sees it: not to be written to, and no part of a stable interface."""
        return ()

    @abstractmethod
    def memory_usage(self) -> int:
        """Return the bytes of all arrays."""

    def summary(self) -> str:
        """Return what the model has learned so far, in a few words."""
        return f"{self.n_learned} rows learned, {self.memory_usage():,} bytes, error bound {self.error_bound():.3g}"


def non_finite_error(what: str = "a score") -> FloatingPointError:
    """Return what is raised when a score, or a parameter, is not finite."""
    return FloatingPointError(f"{what} is not finite: rewards or contexts are too large for this reg; scale them down")


def check_finite_parameter(found: np.ndarray) -> np.ndarray:
    """Return a parameter; FloatingPointError where it is not finite."""
    if not np.isfinite(found).all():
        raise non_finite_error("the parameter")
    return found


def check_rounds(rows: np.ndarray, rewards: Any, dtype: np.dtype[Any], common: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return recorded rounds, contexts (T, K, dim) and rewards (T, K); common: True where (T, 1, dim) serves all arms.

    ValueError for shapes that do not match, and for NaN.
    """
    values = check.finite("rewards", check.array("rewards", rewards, dtype, (2,)))
    if len(values) != len(rows) or rows.shape[1] not in ((1, values.shape[1]) if common else (values.shape[1],)):
        raise ValueError(f"rewards must have shape {rows.shape[:2]} as contexts has, got {values.shape}")
    return rows, values


def rows_of_slots(slots: list[tuple[Any, int]]) -> np.ndarray:
    """Return the rows (n, dim) of arms that were chosen in slots (decision, number of the slot), from their records."""
    rows = []
    for decision, slot in slots:
        if not isinstance(decision.context, np.ndarray):
            raise ValueError(f"decision {quote(decision.id)} has no context, as those of this bandit have")
        rows.append(decision.context.reshape(len(decision.arms), -1)[slot])
    return rows[0].reshape(1, -1) if len(rows) == 1 else np.stack(rows)
