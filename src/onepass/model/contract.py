"""Contract of a model, which holds everything that a `Bandit` learns about its arms.

A bandit owns the exploration rule, the random generator and the records of decisions. It asks its model for everything
else, in this order:

    decide   encode(context, arms) -> Request          check the input and convert it, once for n decisions
             predict(request, i, ...) -> ArmStatistics means, widths and draws of the arms in decision i
             evidence(request, i, places)              plain data for the record, enough to learn from later
    learn    recall(slots) -> Batch                    rows of recorded decisions, or
             observe(context, arm) -> Batch            rows of a context and an arm that were chosen elsewhere
             update(batch, rewards, ...) -> Model      learn all rows or none

To write a model of your own, subclass `Model`, decorate the class with `onepass.extend.savable`, and define:

- `encode`, `predict` and `evidence` for decisions;
- `observe`, `recall` and `update` for learning, and the attribute or property `n_learned`;
- `attribute` for explanations;
- `freeze`, `memory_usage`, `params`, `contents`, `from_contents` and `__repr__` for copies and files.

Override the other members if they apply: `has_named_arms` and `arms` if arms are known by name, `encode_decision` if
records hold no rows, `merge` if models can be merged. Methods with a default that is computed from others, such as
`choose` and `scores`, may be replaced by faster code that returns the same numbers.

Decisions change nothing in a model. Errors in the input are ValueErrors, raised before anything has changed. A model
has one writer, the bandit that it was given to; concurrent readers use frozen copies. `onepass.testing.check_model`
checks all of this, and docs/contributing/model.md shows a complete model of 100 lines.
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

NO_SCORES = np.empty((0, 3))  # of rounds whose scores nobody asked for
JOINED, REVISED, AHEAD = range(3)  # an outcome comes with its reward, after it, before it

Choice = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]
"""Result of filling k slots from K arms.

Chosen places (k,), action probabilities (k, K), scores (K,), expected rewards (K,) and widths (K,) or None.
"""


class Request(NamedTuple):
    """One decision, or n decisions at once, as a model has encoded them.

    Parameters
    ----------
    names : list of hashable or None
        Names of the arms on offer. None if arms are known by their index.
    size : int
        Number of arms K.
    single : bool
        True if the user asked for one decision, False for n.
    each : sequence of length n
        Encoded context of every decision.
    arms : Any, default ()
        Encoded arms on offer, if they are the same for all decisions.
    given : Any, default None
        The contexts as the user gave them, or other data that the model needs again.
    """

    names: list[Any] | None
    size: int
    single: bool
    each: Sequence[Any]
    arms: Any = ()
    given: Any = None


class Batch(NamedTuple):
    """Rows that are learned together: all of them or none.

    Parameters
    ----------
    size : int
        Number of rows n.
    single : bool
        True if the user gave one row by itself, whose reward is a number.
    rows : Any
        The rows as the model encodes them.
    arms : Any, default ()
        The arms whose rewards are learned, as the model encodes them.
    """

    size: int
    single: bool
    rows: Any
    arms: Any = ()


class Side(NamedTuple):
    """Contributions to one arm's mean and squared width from one part of a model.

    Parameters
    ----------
    part : str
        Name of the part, such as "shared" or "arm".
    terms : Terms
        Contributions of all features to the mean and to the squared width.
    mean : float
        Sum of the contributions to the mean.
    square : float
        Sum of the contributions to the squared width. A difference of two arms has two sides. The squared width of the
        difference is the first `square` minus the second.
    """

    part: str
    terms: Terms
    mean: float
    square: float


Sides = Callable[[int], Sequence[Sequence[Side]]]
"""A function of m that lists the parts of m arms: of the first alone, or of both as a difference for m = 2."""


class Model(files.Owner, ABC):
    """Base class of models: everything that a bandit learns about its arms.

    Parameters
    ----------
    *args, **named : Any
        Arguments of the constructor of a subclass.

    Attributes
    ----------
    n_learned : int
        Number of rows learned so far.
    dtype : numpy.dtype
        Type of rewards.
    family : Any
        Family of rewards, such as clicks, if an expected reward is a function mu of the score. None if scores are
        expected rewards.
    compares : bool
        False if only one arm at a time can be explained.
    common_draw : bool
        True if one draw of the parameter serves all decisions of a request that are scored together.
    draws_actions : bool
        True if an arm stands for a set of actions, of which `draw_actions` draws one.
    """

    n_learned: int
    dtype: np.dtype[Any] = np.dtype(np.float64)
    family: Any = None
    compares: bool = True
    common_draw: ClassVar[bool] = False
    draws_actions: ClassVar[bool] = False

    # ---- decisions ----

    @abstractmethod
    def encode(self, context: Any, arms: Any) -> Request:
        """Check a context and the arms on offer, and encode them. Nothing changes.

        Parameters
        ----------
        context : Any
            The context of one decision or of n, as `Bandit.decide` takes it.
        arms : Any
            The arms on offer; None means all known arms.

        Returns
        -------
        Request
            The encoded decisions.

        Raises
        ------
        ValueError
            If a number is not finite, a shape does not fit, an arm appears twice, or there is no arm.
        """

    @abstractmethod
    def predict(self, request: Request, i: int, rule: Rule, rng: np.random.Generator, pairs: int) -> ArmStatistics:
        """Compute the statistics of the arms in one decision, as the rule needs them.

        Parameters
        ----------
        request : Request
            Result of `encode`.
        i : int
            Index of the decision, from 0.
        rule : Rule
            The exploration rule, which says whether widths and draws are needed.
        rng : numpy.random.Generator
            Source of the draws.
        pairs : int
            Number of pairs of draws, at least 0. The two draws of a pair lie symmetrically about the mean.

        Returns
        -------
        ArmStatistics
            Means, widths and draws of the K arms.
        """

    @abstractmethod
    def evidence(self, request: Request, i: int, places: np.ndarray) -> Any:
        """Return what the record of a decision keeps about the chosen arms.

        Parameters
        ----------
        request : Request
            Result of `encode`.
        i : int
            Index of the decision.
        places : array of int of shape (k,)
            Indices of the chosen arms.

        Returns
        -------
        Any
            Data from which `recall` can learn later. If contexts are rows: the row (dim,) of a single chosen arm, or
            rows (k, dim). If contexts are dictionaries: plain data. None if the index of an arm is enough.
        """

    def choose(
        self,
        request: Request,
        i: int,
        rule: Rule,
        rng: np.random.Generator,
        eligible: np.ndarray,
        k: int,
        greedy: bool,
    ) -> Choice:
        """Fill k slots in one decision.

        The result is computed from `predict`, or by faster code that returns the same numbers.

        Parameters
        ----------
        request : Request
            Result of `encode`.
        i : int
            Index of the decision.
        rule : Rule
            The exploration rule.
        rng : numpy.random.Generator
            Source of all random numbers.
        eligible : array of bool of shape (1, K) or (k, K)
            The arms that may be chosen, for all slots or for each.
        k : int
            Number of slots, from 1 to K.
        greedy : bool
            True to give the slots after the first to the best arms that are left.

        Returns
        -------
        tuple
            Indices of the chosen arms (k,), probabilities of all arms for each slot (k, K), scores (K,), mean rewards
            (K,), and widths (K,) or None. The first index is negative if no arm is left for a slot, or if a score is
            not finite.
        """
        seen = self.predict(request, i, rule, rng, rule.pairs)
        uniforms = noise_once(min(rule.pairs, 1), 0, rng, k)[1]
        places, p, scores = rank_and_fill_direct(
            rule.rule, self.view(seen, rule), eligible, uniforms, greedy, rule.code
        )
        return places, p, self.mean_rewards(scores, rule), self.mean_rewards(seen.means), seen.widths

    def draw_actions(self, request: Request, i: int, found: Choice, rng: np.random.Generator) -> Request:
        """Draw an action in every arm chosen, if arms stand for sets of actions (`draws_actions`).

        Parameters
        ----------
        request : Request
            Result of `encode`.
        i : int
            Index of the decision.
        found : tuple
            Result of `choose`.
        rng : numpy.random.Generator
            Source of all random numbers.

        Returns
        -------
        Request
            The request for `evidence`, with the actions as names of the arms chosen. It is `request` itself if arms do
            not stand for sets of actions.
        """
        return request

    def scores(self, request: Request, rule: Rule, rng: np.random.Generator) -> np.ndarray:
        """Compute the scores that the rule ranks arms by.

        They are computed from `predict`, or by faster code that returns the same numbers.

        Parameters
        ----------
        request : Request
            Result of `encode`.
        rule : Rule
            The exploration rule.
        rng : numpy.random.Generator
            Source of one draw, if the rule draws.

        Returns
        -------
        array of shape (n, K)
            Score of every arm in every decision.
        """
        pairs = min(rule.pairs, 1)
        each = range(len(request.each))
        return np.stack([score(rule.rule, self.view(self.predict(request, i, rule, rng, pairs), rule)) for i in each])

    def view(self, seen: ArmStatistics, rule: Rule) -> ArmStatistics:
        """Convert statistics from the scale of x^T theta to the one that a rule needs.

        Parameters
        ----------
        seen : ArmStatistics
            Statistics of x^T theta, before a link function such as the logistic one.
        rule : Rule
            The exploration rule.

        Returns
        -------
        ArmStatistics
            Statistics on the scale of rewards if the rule needs that, else `seen`.
        """
        return to_reward_scale(self.family, seen) if rule.rewards and self.family is not None else seen

    def mean_rewards(self, values: np.ndarray, rule: Rule | None = None) -> np.ndarray:
        """Convert scores to expected rewards.

        Parameters
        ----------
        values : array
            Scores, of any shape.
        rule : Rule, default None
            The rule whose scores these are. If it works on the scale of rewards, they are returned as they are.

        Returns
        -------
        array
            Expected rewards, in the same shape.
        """
        if self.family is None or (rule is not None and rule.rewards):
            return values
        return mean_of_scores(self.family, values.reshape(-1)).reshape(values.shape)

    def active_rule(self, rule: Rule, request: Request | None = None) -> Rule:
        """Return the rule for a request: the rule of the bandit, unless the model needs another one at present.

        Parameters
        ----------
        rule : Rule
            The rule of the bandit.
        request : Request, default None
            The decisions. None if a maximizer looks for the arm.

        Returns
        -------
        Rule
            The rule to decide by.
        """
        return rule

    def default_exploration(self) -> Exploration | None:
        """Return the exploration of a bandit that was given none.

        Returns
        -------
        Exploration or None
            The exploration. None stands for `UCB()`.
        """
        return None

    def require_fit(self, exploration: Exploration) -> None:
        """Check that the model provides what an exploration needs, such as a confidence radius for `Theory`.

        `Theory` computes its multiplier of widths from a theorem, so a model to which no theorem applies refuses it.

        Parameters
        ----------
        exploration : Exploration
            The exploration of a bandit.

        Raises
        ------
        ValueError
            If the model does not know what the exploration needs.
        """
        if exploration.theory is not None:
            raise ValueError(
                f"exploration must be a number: no radius is known for this model, got {quote(exploration)}"
            )

    def at(self, time: Any) -> "Model":
        """Return the model as it is at a given time.

        Parameters
        ----------
        time : float, datetime or None
            Present time, for models with a half-life in seconds.

        Returns
        -------
        Model
            The model itself, or a copy for readers that has forgotten up to `time`.

        Raises
        ------
        ValueError
            If a time is given to a model that needs none, or missing for one that needs it.
        """
        if time is not None:
            raise ValueError(f"time must be None: this model does not forget by the clock, got {quote(time)}")
        return self

    @property
    def needs_time(self) -> bool:
        """True if `learn` and all readers need the present time, as models with a half-life in seconds do."""
        return False

    # ---- learning ----

    @abstractmethod
    def observe(self, context: Any, arm: Any) -> Batch:
        """Check and encode contexts and arms whose rewards are learned, for choices that this bandit did not make.

        Parameters
        ----------
        context : Any
            The context of one arm, or n contexts, as `Bandit.learn` takes them.
        arm : Any
            The arm, or the arm of every context; None if each context is the row of its arm.

        Returns
        -------
        Batch
            The encoded rows.

        Raises
        ------
        ValueError
            If a number is not finite, a shape does not fit, or the model cannot have this arm.
        """

    @abstractmethod
    def recall(self, slots: list[tuple[Any, int]]) -> Batch:
        """Encode the chosen arms of recorded decisions, from the records alone.

        Parameters
        ----------
        slots : list of (Decision, int)
            Decisions, and the number of the slot in each.

        Returns
        -------
        Batch
            The encoded rows, one for each slot.

        Raises
        ------
        ValueError
            If a record is from a decision of another model.
        """

    @abstractmethod
    def update(
        self,
        batch: Batch,
        rewards: np.ndarray,
        *,
        nu: Any = None,
        time: Any = None,
        residuals: bool = False,
        outcomes: Any = None,
    ) -> "Model":
        """Learn a batch of rows and their rewards: all of them or none.

        Parameters
        ----------
        batch : Batch
            Result of `observe` or `recall`.
        rewards : array of shape (n,)
            Checked rewards.
        nu : float or array of shape (n,), default None
            Noise scale of all rows, or of each row, for estimators that use one.
        time : float or datetime, default None
            Time of the rewards, as Unix seconds or a datetime with a time zone, for models with a half-life in seconds.
        residuals : bool, default False
            True to count the deviations of the rewards from their means, for rules that use them.
        outcomes : array of shape (n, count), default None
            Outcomes beside the rewards, NaN where there is none, for models that learn them (`begin_outcomes`).

        Returns
        -------
        Model
            The model to go on with: itself, or another one that the data asks for.
        """

    # ---- outcomes beside the reward ----

    def begin_outcomes(self, count: int) -> None:
        """Learn outcomes beside the reward from here on.

        A model that learns outcomes overrides this method and the other methods on outcomes, and uses the argument
        `outcomes` of `update`.

        Parameters
        ----------
        count : int
            Number of outcomes, at least 1.

        Raises
        ------
        ValueError
            If the model learns no outcomes beside the reward.
        """
        raise ValueError(
            f"outcomes must be None: this {type(self).__name__} learns the reward alone; ContextualBandit and "
            "InteractionBandit learn outcomes, and so do shared or disjoint models on Ridge without half_life"
        )

    def predict_outcomes(self, request: Request, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Predict the outcomes of all arms in one decision.

        Parameters
        ----------
        request : Request
            Result of `encode`.
        i : int
            Index of the decision.

        Returns
        -------
        means : array of shape (n_outcomes, K)
            Mean of every outcome for every arm.
        errors : array of shape (n_outcomes,)
            Root mean square error of every outcome's predictions so far.
        """
        return np.zeros((0, request.size)), np.zeros(0)

    def revise_outcomes(self, slot: tuple[Any, int], values: np.ndarray, expected: np.ndarray | None) -> bool:
        """Learn outcomes that did not come with their reward.

        Parameters
        ----------
        slot : tuple of (Decision, int)
            Decision and the number of its slot.
        values : array of shape (n_outcomes,)
            Outcomes in the order of the bandit's argument `outcomes`; NaN where there is none.
        expected : array of shape (n_outcomes,) or None
            Values that were learned in their place with the reward. None if the reward has not been learned yet.

        Returns
        -------
        bool
            False if the model cannot learn them before the reward, for example because the arm has not learned a reward
            yet. The bandit then keeps them, and gives them to `update` with the reward. Otherwise True.
        """
        return False

    def outcome_state(self) -> Any:
        """Return all that was learned about outcomes, as a state for files.

        Returns
        -------
        NamedTuple
            Arrays; () if nothing was learned.
        """
        return ()

    def restore_outcomes(self, count: int, held: files.StateSource) -> None:
        """Take what `outcome_state` returned, from a file or a copy.

        Parameters
        ----------
        count : int
            Number of outcomes.
        held : StateSource
            Source of the saved arrays: `held.take(begun, check)` returns them in the form of the state `begun`.

        Raises
        ------
        ValueError
            If they do not fit the model.
        """
        self.begin_outcomes(count)
        held.take((), lambda found: True)

    def check_rewards(self, rewards: np.ndarray) -> None:
        """Check that the family of rewards allows these rewards.

        Parameters
        ----------
        rewards : array of shape (n,)
            Finite rewards.

        Raises
        ------
        ValueError
            If the family does not allow a reward.
        """
        if self.family is not None:
            check_rewards(self.family, rewards)

    def check_rounds(self, contexts: Any, rewards: Any, nu: Any) -> tuple[np.ndarray, np.ndarray, Any]:
        """Check recorded rounds for `Bandit.play`.

        Parameters
        ----------
        contexts : array of shape (T, K, dim) or (T, 1, dim)
            Rows of all arms in every round, or one row for all arms.
        rewards : array of shape (T, K)
            Reward that each arm would pay in each round.
        nu : Any
            Noise scales (T,) or (T, K), or None.

        Returns
        -------
        tuple
            Checked contexts, rewards and noise scales, as `play` takes them.

        Raises
        ------
        ValueError
            If shapes do not fit, a number is not finite, or the model does not play recorded rounds.
        """
        raise ValueError(f"recorded rounds are played by models of rows, not by {type(self).__name__}")

    @property
    def n_ellipsoids(self) -> int:
        """Number of confidence ellipsoids that must hold together if exploration is `Theory`.

        It is 1, or the number of arms if each arm has its own ellipsoid.
        """
        return 1

    def play(
        self,
        contexts: np.ndarray,
        rewards: np.ndarray,
        nu: Any,
        rule: Rule,
        rng: np.random.Generator,
        scored: np.ndarray = NO_SCORES,
    ) -> np.ndarray | None:
        """Play recorded rounds in compiled code.

        Parameters
        ----------
        contexts : array of shape (T, K, dim) or (T, 1, dim)
            Contexts from `check_rounds`.
        rewards : array of shape (T, K)
            Rewards from `check_rounds`.
        nu : Any
            Noise scales from `check_rounds`.
        rule : Rule
            The exploration rule.
        rng : numpy.random.Generator
            Source of all random numbers.
        scored : array of shape (T, 3) or (0, 3)
            Array that receives, for every round, the mean and the score of the chosen arm and the largest score. A
            model with a link function (such as the logistic one) writes them before it applies the link. By default the
            array is empty and receives nothing.

        Returns
        -------
        array of int of shape (T,) or None
            The chosen arms, negative from the first round with a score that is not finite. None if there is no
            compiled code for these rounds; the bandit then decides and learns round by round.
        """
        return None

    def merge(self, other: Self, since: Self | None) -> "Model":
        """Learn what another model has learned.

        Parameters
        ----------
        other : Model
            A model of the same kind. It must not be used afterwards.
        since : Model or None
            The model that both were copied from, whose rows count once. It must not be used afterwards. None: both
            began without rows.

        Returns
        -------
        Model
            The model to go on with.

        Raises
        ------
        TypeError
            If models of this kind cannot be merged.
        ValueError
            If the two models do not belong together.
        """
        raise TypeError(f"{type(self).__name__} cannot be merged")

    def continue_randomness(self, earlier: "Model") -> None:
        """Draw the random numbers that an earlier model would draw next, if learning draws any.

        Parameters
        ----------
        earlier : Model
            A model of the same kind.
        """

    # ---- arms ----

    @property
    def has_named_arms(self) -> bool:
        """True if arms are known by name. False if, for example, each arm is known by its row."""
        return False

    @property
    def arms(self) -> tuple[Any, ...]:
        """Names of all known arms, in order of appearance; () if arms have no names (`has_named_arms` is False)."""
        return ()

    def add_arm(self, arm: Hashable) -> None:
        """Make an arm known before anything is learned about it.

        Parameters
        ----------
        arm : hashable
            Name of the arm.

        Raises
        ------
        ValueError
            If the arm is known already, or the model knows no arms by name.
        """
        raise ValueError(f"arm must be offered with its features: {type(self).__name__} knows no arms by name")

    def remove_arm(self, arm: Hashable) -> None:
        """Forget an arm; called by `Bandit.remove_arm`, which notes the removal.

        Models of onepass are decorated with `for_owner`, and so raise RuntimeError if a bandit owns them and the call
        is not its own.

        Parameters
        ----------
        arm : hashable
            Name of the arm.

        Raises
        ------
        ValueError
            If the arm is not known, or the model knows no arms by name.
        """
        raise ValueError(f"arm {quote(arm)} is not known: {type(self).__name__} knows no arms by name")

    # ---- questions ----

    def users(self, contexts: Any) -> tuple[int, Callable[[slice], Any]]:
        """Split the contexts of many users, for `Bandit.recommend`.

        Parameters
        ----------
        contexts : Any
            Contexts of n users: rows (n, dim) or (n, K, dim), unless the model takes others.

        Returns
        -------
        n : int
            Number of users.
        part : callable
            Function of a slice that returns the contexts of these users.
        """
        rows = check.array("contexts", contexts, self.dtype, (2, 3))
        rows = rows[:, None, :] if rows.ndim == 2 else rows
        return len(rows), lambda part: rows[part]

    @abstractmethod
    def attribute(self, request: Request, places: list[int], names: Any) -> Sides:
        """Return the parts of the means and squared widths of one or two arms, for explanations.

        Parameters
        ----------
        request : Request
            One encoded decision.
        places : list of int
            Indices of one or two arms.
        names : sequence of str or None
            Names of a context's columns; None means x0, x1, ...

        Returns
        -------
        callable
            Function of a number m. It returns one list for each of the first m arms, with the parts (`Side`) of the
            arm. With m = 2 the parts are those of the difference between both arms.
        """

    def can_compare(self, request: Request) -> bool:
        """Return True if the difference of two arms can be explained for a request.

        Parameters
        ----------
        request : Request
            One encoded decision.

        Returns
        -------
        bool
            The attribute `compares`, unless another model decides this request.
        """
        return self.compares

    def encode_decision(self, decision: Any) -> Request:
        """Encode the arms that a decision chose, from its record alone.

        The record holds the names of the arms, and what `evidence` returned.

        Parameters
        ----------
        decision : Decision
            A decision of this model or of another one of its kind.

        Returns
        -------
        Request
            One encoded decision among the arms that were chosen.

        Raises
        ------
        ValueError
            If the record is not from a model of this kind.
        """
        if not isinstance(decision.context, np.ndarray):
            raise ValueError(f"decision {quote(decision.id)} has no context, as those of this bandit have")
        names = None if isinstance(decision.arms[0], np.ndarray) else tuple(decision.arms)  # the row of a maximizer
        return self.encode(decision.context.reshape(len(decision.arms), -1), names)

    def error_bound(self) -> float:
        """Return a proven bound on the error of the design, ||A - A_hat||_2.

        Returns
        -------
        float
            The bound; infinite if none is known.
        """
        return float("inf")

    def sketch_loss(self) -> tuple[float, float] | None:
        """Return how much the sketches of a ridge regression have cut off and not put back.

        Returns
        -------
        tuple of float or None
            The loss divided by the ridge, which is 0 without a sketch, and the `reg` of the design. If every arm has
            its own sketch, it is the largest loss of an arm. None if the model is not such a ridge regression.
        """
        return None

    def choices(self) -> dict[str, Any]:
        """Return the settings that the model has chosen from the data so far.

        Returns
        -------
        dict
            Plain data by name, such as {"landmarks": [120, 150, 150], "residual": 0.4}. Each model documents its
            entries. Empty if there are none.
        """
        return {}

    @property
    def trust(self) -> dict[Any, float]:
        """Trust in a warm start by arm, from 0 to 1. Empty if there was no warm start."""
        return {}

    # ---- copies ----

    def can_become(self, other: "Model") -> bool:
        """Return True if this model may become `other` by learning.

        A model may become one of its own class with equal parameters. An `AutoModel` may become any model that its data
        can ask for, and a `WarmStart` may drop one of its two models.

        Parameters
        ----------
        other : Model
            A model, for example from a file.

        Returns
        -------
        bool
            True if `other` can continue a log that began with this model.
        """
        return has_equal_arguments(self, other)

    @abstractmethod
    def freeze(self) -> Self:
        """Return a copy for readers, which stays as the model is now.

        Returns
        -------
        Model
            The copy. It may share arrays that never change.
        """

    @property
    def has_learned(self) -> bool:
        """True, so that a model is saved with everything it has learned if it is part of another saved object."""
        return True

    @property
    def state(self) -> Any:
        """Everything that was learned, as compiled code sees it. It is read-only, and no part of a stable interface."""
        return ()

    @abstractmethod
    def memory_usage(self) -> int:
        """Return the memory of all arrays of the model, in bytes.

        Returns
        -------
        int
            Bytes.
        """

    def summary(self) -> str:
        """Return a short description of what the model has learned.

        Returns
        -------
        str
            One line of text.
        """
        return f"{self.n_learned} rows learned, {self.memory_usage():,} bytes, error bound {self.error_bound():.3g}"


def non_finite_error(what: str = "a score") -> FloatingPointError:
    """Return the error for `what`, a score or parameter that is not finite."""
    return FloatingPointError(f"{what} is not finite: rewards or contexts are too large for this reg; scale them down")


def check_finite_parameter(found: np.ndarray) -> np.ndarray:
    """Return the parameter `found`, or raise FloatingPointError if it is not finite."""
    if not np.isfinite(found).all():
        raise non_finite_error("the parameter")
    return found


def check_rounds(rows: np.ndarray, rewards: Any, dtype: np.dtype[Any], common: bool) -> tuple[np.ndarray, np.ndarray]:
    """Check recorded rounds, contexts (T, K, dim) and rewards (T, K), and return both.

    If `common`, contexts may be (T, 1, dim), the same for all arms. `dtype` is the type of the rewards returned. Raises
    ValueError for other shapes and for NaN.
    """
    values = check.finite("rewards", check.array("rewards", rewards, dtype, (2,)))
    if len(values) != len(rows) or rows.shape[1] not in ((1, values.shape[1]) if common else (values.shape[1],)):
        raise ValueError(f"rewards must have shape {rows.shape[:2]} as contexts has, got {values.shape}")
    return rows, values


def rows_of_slots(slots: list[tuple[Any, int]]) -> np.ndarray:
    """Return the rows (n, dim) of the arms chosen in n pairs (decision, slot), from the records of the decisions."""
    rows = []
    for decision, slot in slots:
        if not isinstance(decision.context, np.ndarray):
            raise ValueError(f"decision {quote(decision.id)} has no context, as those of this bandit have")
        rows.append(decision.context.reshape(len(decision.arms), -1)[slot])
    return rows[0].reshape(1, -1) if len(rows) == 1 else np.stack(rows)
