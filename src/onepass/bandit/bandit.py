"""The bandit: a model and an exploration rule that decide, learn, recommend, explain and are saved."""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from typing import Any, Self, final

import numpy as np

from onepass.bandit.decide import (
    DecisionSeed,
    are_decisions,
    choice_error,
    decision_seeds,
    is_greedy,
    make_decision,
    pair_rewards,
)
from onepass.bandit.decision import SAMPLED, Decision, Recommendation, stack_decisions
from onepass.bandit.explanation import Explanation, arms_to_explain, make_explanation
from onepass.bandit.maximizer import maximize_score
from onepass.bandit.outcomes import (
    Asked,
    check_names,
    check_prices,
    check_values,
    check_weights,
    choose_by_weights,
    outcomes_by_slot,
    predictions,
    relative,
    values_from_record,
)
from onepass.bandit.recommend import recommend_top_k
from onepass.bandit.regret_bound import RegretBound, RegretSum, bound_of_slot, bounds_of_rounds, is_bounded, make_bound
from onepass.bandit.removed_arms import RemovedArms
from onepass.bandit.rewarded_ids import LENGTH, RewardedIds
from onepass.bandit.sketch_warning import FIRST, next_look
from onepass.bandit.snapshot import Snapshot
from onepass.estimator.families import name_of
from onepass.exploration.exploration import Exploration
from onepass.exploration.randomness import generator_of_seed
from onepass.exploration.rule import Rule, make_rule
from onepass.features.feature_map import FeatureMap
from onepass.foundation import check, files
from onepass.foundation.deferred_signals import defer_signals
from onepass.foundation.latest import Latest
from onepass.foundation.registry import build, savable, to_plain
from onepass.foundation.rw_lock import composite, join_owner, reading, writing
from onepass.model.contract import Model, Request, non_finite_error
from onepass.model.factory import make_model
from onepass.model.names import eligible_arms


@final
@savable
class Bandit(files.Owner):
    """Contextual bandit: a model of rewards and an exploration rule.

    Parameters
    ----------
    model : Estimator, Disjoint, Hybrid or Model
        An estimator such as ``Ridge(FrequentDirections(dim=784, size=32))`` makes one model that all arms share.
        `Disjoint` and `Hybrid` make a model for each arm. Any other `Model` is used as it is; the bandit owns it from
        then on.
    exploration : Exploration, default None
        Rule that chooses arms, such as `UCB`, `Thompson` or `InverseGap`. None takes the model's default, which usually
        is `UCB()`.
    features : FeatureMap, default None
        Map of the rows; its `output_dim` is the width of the designs. None takes rows as they are.
    half_life : int or timedelta, default None
        Number of rows, or time, after which a row counts half, above 0. With a timedelta every call that learns or
        reads takes the `time`. None forgets nothing.
    seed : int, default 0
        Seed for ties and draws, at least 0.
    name : str, default "Bandit"
        Name that `repr` shows.
    outcomes : sequence of str, default None
        Names of further numbers to learn from each decision, such as costs (docs/how/budgets.md). They share the matrix
        of the reward's model. None learns the reward alone.

    Raises
    ------
    ValueError
        If the parts do not fit together, the model learns no outcomes, or `features` or `half_life` is given beside a
        model that exists already.

    Notes
    -----
    Methods that only some models have, such as `parameter` or `export_arm`, are on `bandit.model`.

    Any number of threads may use a bandit. Calls that decide and score run at the same time. A call that learns runs
    alone, and no other call sees half of its effect (docs/threads.md).

    Examples
    --------
    >>> import numpy as np, onepass as op
    >>> bandit = op.Bandit(op.Ridge(op.Exact(dim=2)), op.UCB(0.5))
    >>> bandit.learn(np.eye(2), [1.0, 0.0])
    >>> bandit.decide(np.eye(2), arms=["left", "right"]).arm
    'left'
    >>> bandit = op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=2))), op.UCB(0.5))
    >>> bandit.learn([1.0, 0.0], 1.0, arm="left")
    >>> bandit.decide([1.0, 0.0], arms=["left", "right"]).arm
    'left'
    """

    _model: Model
    _rule: Rule

    def __init__(
        self,
        model: Any,
        exploration: Exploration | None = None,
        *,
        features: FeatureMap | None = None,
        half_life: Any = None,
        seed: int = 0,
        name: str = "Bandit",
        outcomes: Iterable[str] | None = None,
    ) -> None:
        if not isinstance(name, str):
            raise ValueError(f"name must be a string, got {check.quote(name)}")
        self.name: str = name
        self.seed: int = check.integer("seed", seed, 0, None)
        self.outcomes: tuple[str, ...] = check_names(outcomes)
        self._adopt(make_model(model, features, half_life))
        if self.outcomes:
            if self._model.n_learned:
                raise ValueError("outcomes must be named before anything is learned")
            self._model.begin_outcomes(len(self.outcomes))
        self._explore(exploration)
        self._rewarded, self._informed, self._regret = RewardedIds(), RewardedIds(), RegretSum()
        self._removed = RemovedArms()
        self._early = Latest(LENGTH)  # outcomes that wait for their reward, by decision, slot and name
        self._rng = np.random.default_rng(self.seed)
        self._next_look = FIRST

    def _adopt(self, model: Model) -> None:
        """Take ownership of a model, so that it is read and written under the bandit's lock."""
        join_owner(model, self)
        self._model = model

    # ---- parts ----

    @property
    def model(self) -> Any:
        """Model of rewards; it has further methods and properties, such as `parameter` or `export_arm`.

        The bandit owns it. Arms are removed by `Bandit.remove_arm`: the model's own method raises RuntimeError.
        """
        return self._model

    @property
    def exploration(self) -> Exploration:
        """Exploration rule, which may be replaced at any time by one that fits the model."""
        return self._rule.exploration

    @exploration.setter
    @writing
    def exploration(self, exploration: Exploration | None) -> None:
        self._explore(exploration)
        self._regret = RegretSum()

    def _explore(self, exploration: Exploration | None) -> None:
        rule = make_rule(self._model.default_exploration() if exploration is None else exploration)
        self._model.require_fit(rule.exploration)
        self._rule, self._given, self._bounded = rule, exploration, is_bounded(rule)

    @property
    def n_learned(self) -> int:
        """Number of rows learned so far."""
        return self._model.n_learned

    @property
    def needs_time(self) -> bool:
        """True if every call that learns or reads must be given the time."""
        return self._model.needs_time

    @property
    @reading
    def trust(self) -> dict[Any, float]:
        """Trust in a warm start by arm, from 0 to 1 (`onepass.warm_start`); empty without one."""
        return self._model.trust

    @property
    @reading
    def arms(self) -> tuple[Any, ...]:
        """Known arms in the order in which they appeared; empty if arms are rows."""
        return self._model.arms

    @writing
    def add_arm(self, arm: Hashable) -> None:
        """Make an arm known before it is learned from.

        Parameters
        ----------
        arm : hashable
            Name of the arm.

        Raises
        ------
        ValueError
            If the arm is known already or not hashable, or if the model knows arms by their features alone.
        """
        self._model.add_arm(arm)

    @writing
    def remove_arm(self, arm: Hashable) -> None:
        """Forget an arm and everything that was learned for this arm alone.

        Parameters
        ----------
        arm : hashable
            Name of the arm.

        Raises
        ------
        ValueError
            If the arm is not known.
        """
        with defer_signals():
            self._model.remove_arm(arm)
            self._removed.add(arm, self.n_learned)
            if self._regret.rows:
                self._regret = self._regret._replace(removed=self._regret.removed + 1)

    @reading
    def has_removed(self, arm: Hashable, since: int) -> bool:
        """Return True if `remove_arm` has removed an arm after a number of rows were learned.

        Parameters
        ----------
        arm : hashable
            Name of the arm, which may have been added again.
        since : int
            Number of rows learned, such as `n_learned` of a decision.

        Returns
        -------
        bool
            True if the arm was removed after more than `since` rows. The latest 2,000 removals are known.
        """
        return self._removed.has(arm, since)

    # ---- decisions ----

    @reading
    def decide(
        self,
        context: Any = None,
        arms: Any = None,
        k: int = 1,
        *,
        id: Any = None,
        eligible: Any = None,
        rest: str = SAMPLED,
        time: Any = None,
        maximizer: Callable[[Callable[[Any], np.ndarray]], Any] | None = None,
        costs: Any = None,
        weights: Any = None,
    ) -> Decision:
        """Choose an arm, or a list of `k` arms, for one request or for n requests.

        The arm is drawn from the action probabilities that the returned decision reports. Only the random generator
        changes.

        Parameters
        ----------
        context : array, dict, frame, Factors or list, default None
            An array of shape (K, dim), one row for each of the K arms. With a model for each arm it may also be one row
            (dim,) for all arms. A context may also be a record: a dictionary, or a frame of one row. None is for a
            fixed set of arms. For n decisions, arrays have a leading axis n, and records are a list.
        arms : sequence of hashable, dict or list of features, default None
            The arms on offer, each once, one for each row. None means indices of rows, or all known arms.
        k : int, default 1
            Number of slots to fill without replacement, from 1 to K.
        id : str or list of str, default None
            Identity of the decision, or of each decision. The draw then depends only on the seed, the id and the model.
            None makes an id and draws from the bandit's random generator.
        eligible : array of bool, sequence of names, or one for each slot, default None
            The arms that may be chosen: booleans (K,), or (k, K) for each slot; or names, or k collections of them.
            None means all. Where arms are named True or False, give a set of names, or an array of booleans.
        rest : {"sampled", "greedy"}, default "sampled"
            Choice of the slots after the first. "sampled" draws each slot from the arms that are left. "greedy" takes
            the best of them.
        time : float or datetime, default None
            Present time, only for a half-life in seconds: Unix seconds or a datetime with a time zone. A time before
            the last one learned counts as the last one.
        maximizer : callable, default None
            A function that searches for the best arm, if arms are rows that cannot be listed and the rule draws
            nothing. It is given the score function, which maps rows (n, dim) to scores (n,). It returns the best row
            (dim,), which is then the arm.
        costs : dict, default None
            Known prices of arms, {arm: {outcome: price above 0}}, for a bandit with `outcomes`. Outcomes are learned
            relative to the price: predictions follow a price that changes. Give them always or never.
        weights : dict, default None
            Weights by which arms are ranked, for example {"reward": 1, "latency": -0.2}. An arm's score is the weighted
            sum of the reward's score and of the predicted outcomes. The weight of the reward is at least 0, and 1 by
            default; the weight of an outcome is 0 by default. The entry "arms" holds numbers that are added to the
            scores of single arms. For a single request, `weights` may be a function that is given a `Survey` of the
            arms. It returns such a dictionary and a mask (K,) of the arms that may be chosen. `Budgeted` uses this.

        Returns
        -------
        Decision
            The chosen arms, their probabilities, an id, and everything `learn` needs later.

        Raises
        ------
        ValueError
            If a number is not finite, a shape does not fit, an arm appears twice, or `k` exceeds the number of arms.
        FloatingPointError
            If a score is not finite.
        """
        if self.outcomes or costs is not None or weights is not None:
            return self._decide_with_outcomes(context, arms, k, id, eligible, rest, time, maximizer, costs, weights)
        if maximizer is not None:
            return self._decide_by_maximizer(maximizer, context, arms, k, id, eligible, time)
        model = self._model.at(time)
        request = model.encode(context, arms)
        names, count = request.names, request.size
        if type(k) is not int or k != 1:
            k = check.integer("k", k, 1, count)
        greedy, among = is_greedy(rest), eligible_arms(eligible, names, count, k)
        rule, each = model.active_rule(self._rule, request), []
        for i, one in enumerate(
            decision_seeds(id, None if request.single else len(request.each), self.seed, self._rng)
        ):
            found = model.choose(request, i, rule, one.rng, among, k, greedy)
            places = found[0]
            if places[0] < 0:
                raise choice_error(int(places[0]))
            drawn = model.draw_actions(request, i, found, one.rng) if model.draws_actions else request
            evidence = model.evidence(drawn, i, places)
            each.append(make_decision(one, found, drawn.names, evidence, rest, rule, model.n_learned))
        return each[0] if request.single else stack_decisions(each)

    def _decide_with_outcomes(
        self, context: Any, arms: Any, k: int, id: Any, eligible: Any, rest: str, time: Any, maximizer: Any,
        costs: Any, weights: Any,
    ) -> Decision:  # fmt: skip
        """Decide as `decide` does, and put predicted outcomes into the record.

        `costs` and `weights` are prices of outcomes and factors of the arms' scores, as `decide` describes.
        """
        if maximizer is not None:
            raise ValueError("maximizer must be None for a bandit with outcomes, or beside costs and weights")
        asked, made = self._statements(context, arms, k, id, eligible, rest, time, costs, weights), []
        for i, one in enumerate(asked.seeds):
            raw, errors = asked.model.predict_outcomes(asked.request, i)
            predicted = predictions(raw, asked.prices)
            if asked.weights is None:
                given = asked.request, i, asked.rule, one.rng, asked.eligible, asked.k, asked.greedy
                found, by, among = asked.model.choose(*given), None, None
            else:
                found, by, among = choose_by_weights(asked, i, one.rng, predicted)
            if found[0][0] < 0:
                raise choice_error(int(found[0][0]))
            drawn = asked.model.draw_actions(asked.request, i, found, one.rng)
            evidence = asked.model.evidence(drawn, i, found[0])
            plain = make_decision(one, found, drawn.names, evidence, rest, asked.rule, asked.model.n_learned)
            stopped = among if callable(asked.weights) else None
            made.append(self._with_outcomes(plain, predicted, errors, asked, by, stopped))
        return made[0] if asked.request.single else stack_decisions(made)

    @reading
    def probabilities(
        self,
        context: Any = None,
        arms: Any = None,
        *,
        id: str | None = None,
        eligible: Any = None,
        time: Any = None,
        costs: Any = None,
        weights: Any = None,
    ) -> np.ndarray:
        """Return the action probabilities of one request without choosing an arm. Nothing changes.

        Parameters
        ----------
        context : array, dict, frame or Factors, default None
            One request, as in `decide`.
        arms : sequence of hashable, dict or list of features, default None
            The arms on offer, as in `decide`.
        id : str, default None
            Identity of the decision, as in `decide`. It matters for rules that draw parameters, whose probabilities
            depend on the draws. None uses the first draws of the seed.
        eligible : array of bool or sequence of names, default None
            The arms that may be chosen, as in `decide`.
        time : float or datetime, default None
            Present time, as in `decide`.
        costs, weights : dict, default None
            Prices and weights, as in `decide`.

        Returns
        -------
        ndarray of shape (K,)
            The probability of each arm.

        Raises
        ------
        ValueError
            If `decide` would refuse the request, or if there are several requests.
        FloatingPointError
            If a score is not finite.
        """
        asked = self._statements(context, arms, 1, id or "", eligible, SAMPLED, time, costs, weights, draw=False)
        if not asked.request.single:
            raise ValueError(f"contexts must be those of one decision, not of {len(asked.request.each)} at once")
        (one,) = asked.seeds
        if asked.weights is None:
            found = asked.model.choose(asked.request, 0, asked.rule, one.rng, asked.eligible, 1, False)
        else:
            predicted = predictions(asked.model.predict_outcomes(asked.request, 0)[0], asked.prices)
            found = choose_by_weights(asked, 0, one.rng, predicted).choice
        if found[0][0] < 0:
            raise choice_error(int(found[0][0]))
        return found[1][0]

    def _statements(
        self, context: Any, arms: Any, k: int, id: Any, eligible: Any, rest: str, time: Any, costs: Any, weights: Any,
        draw: bool = True,
    ) -> Asked:  # fmt: skip
        """Check and encode the arguments of a decision with outcomes; the arguments are those of `decide`.

        If `draw` is False, the bandit's random generator is not used: without `id` a generator begins at the seed.
        """
        if not self.outcomes and not (costs is None and weights is None):
            raise ValueError(
                "costs and weights must be None for a bandit without outcomes: name them in outcomes=[...]"
            )
        model = self._model.at(time)
        request = model.encode(context, arms)
        k = check.integer("k", k, 1, request.size)
        prices = check_prices(costs, self.outcomes, request.names, request.size)
        weighed = weights if callable(weights) else check_weights(weights, self.outcomes, request.names, request.size)
        among, rule = eligible_arms(eligible, request.names, request.size, k), model.active_rule(self._rule, request)
        if draw:
            seeds = decision_seeds(id, None if request.single else len(request.each), self.seed, self._rng)
        else:
            rng = generator_of_seed(self.seed)
            seeds = decision_seeds(id, None, self.seed, rng) if id else [DecisionSeed("", rng, self.seed)]
        return Asked(model, request, k, among, is_greedy(rest), rule, seeds, prices, weighed, self.outcomes)

    def _with_outcomes(
        self,
        decision: Decision,
        predicted: np.ndarray,
        errors: np.ndarray,
        asked: Asked,
        weights: Any,
        stopped: np.ndarray | None,
    ) -> Decision:
        """Return a decision whose record includes predicted outcomes (J, K), their errors (J,), prices and weights.

        `asked` holds the checked arguments of the decision, the prices among them. `weights` are those of reward and
        outcomes, and `stopped` is the mask (1 or k, K) of the arms that might be chosen, None if no budget decided so.
        """
        spreads, prices = None, asked.prices
        if decision.widths is not None and self.outcomes:
            spreads = {name: size * decision.widths for name, size in zip(self.outcomes, errors, strict=True)}
            if prices is not None:
                spreads = {
                    name: spread * np.where(np.isnan(prices[j]), 1.0, prices[j])
                    for j, (name, spread) in enumerate(spreads.items())
                }
        return decision._replace(
            predicted=dict(zip(self.outcomes, predicted, strict=True)),
            spreads=spreads,
            costs=None
            if prices is None
            else {
                name: {a: price for a, price in enumerate(each.tolist()) if price == price}
                for name, each in zip(self.outcomes, prices, strict=True)
            },
            weights=weights,
            eligible=None if stopped is None else stopped[0],
        )

    def _decide_by_maximizer(
        self, maximizer: Any, context: Any, arms: Any, k: int, id: Any, eligible: Any, time: Any
    ) -> Decision:
        model = self._model.at(time)
        rule = model.active_rule(self._rule)
        if context is not None or arms is not None or k != 1 or eligible is not None or rule.is_random:
            raise ValueError("maximizer takes the place of rows, with k = 1 and UCB or Greedy without a uniform_share")
        (one,) = decision_seeds(id, None, self.seed, self._rng)
        row, found = maximize_score(model, rule, maximizer, self._rng)
        decision = make_decision(one, found, None, row.copy(), SAMPLED, rule, model.n_learned)
        return decision._replace(arm=row, arms=[row])

    @reading
    def score(self, context: Any = None, arms: Any = None, *, time: Any = None) -> np.ndarray:
        """Score arms without side effects.

        A rule that samples uses the first draws of the seed, the same in every call.

        Parameters
        ----------
        context : array, dict, frame, Factors or list, default None
            One request or n requests, as in `decide`.
        arms : sequence of hashable, dict or list of features, default None
            The arms on offer, as in `decide`.
        time : float or datetime, default None
            Present time, as in `decide`.

        Returns
        -------
        ndarray of shape (K,) or (n, K)
            The score of each arm, on the scale of rewards.

        Raises
        ------
        ValueError
            If a number is not finite, a shape does not fit, or an arm appears twice.
        FloatingPointError
            If a score is not finite.
        """
        model = self._model.at(time)
        request = model.encode(context, arms)
        scores = self._scores(model, request, generator_of_seed(self.seed))
        return scores[0] if request.single else scores

    def _scores(self, model: Model, request: Request, rng: np.random.Generator) -> np.ndarray:
        rule = model.active_rule(self._rule, request)
        scores = model.scores(request, rule, rng)
        if not np.isfinite(scores).all():
            raise non_finite_error()
        return model.mean_rewards(scores, rule)

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
        """Recommend the k best arms to each of many users, without side effects.

        Ties are broken by the seed, in the same way in every call.

        Parameters
        ----------
        contexts : array, frame, list of dict or Factors
            Contexts of n users, as `score` takes them for n requests. With a model for each arm, (n, dim) is one row
            for each user. `Factors(users (n, d_u), arms (K, d_a))` combines features of users and of arms.
        k : int
            Length of each list, at least 1.
        arms : sequence of hashable, dict or list of features, default None
            The candidates. None means all known arms.
        exclude : sequence of collections of names, default None
            For each user, the arms not to be recommended, such as items already seen. Unknown names are ignored. A list
            is shorter if fewer than k arms are left. None excludes nothing.
        time : float or datetime, default None
            Present time, as in `decide`.

        Returns
        -------
        Recommendation
            Lists of arms and their scores, best first.

        Raises
        ------
        ValueError
            If a shape does not fit, `k` is below 1, or `exclude` does not have one collection of names for each user.
        """
        model, rng = self._model.at(time), generator_of_seed(self.seed)
        users, part_of = model.users(contexts)
        if users == 0:
            return Recommendation([], [])
        arms = tuple(arms) if isinstance(arms, list | Iterator) else arms
        first = model.encode(part_of(slice(0, 1)), arms)
        names = range(first.size) if first.names is None else first.names

        def scores_of(part: slice) -> np.ndarray:
            block = generator_of_seed(self.seed) if model.common_draw else rng
            return self._scores(model, model.encode(part_of(part), arms), block)

        return recommend_top_k(names, users, scores_of, k, exclude, self.seed)

    # ---- rewards ----

    @writing
    def learn(
        self,
        context: Any,
        reward: Any = None,
        arm: Any = None,
        *,
        nu: Any = None,
        allow_repeat: bool = False,
        time: Any = None,
        outcomes: Any = None,
    ) -> None:
        """Learn the reward of a decision, or of a context and an arm chosen elsewhere.

        Rewards may come late and in any order. If an error is raised, nothing has changed.

        Parameters
        ----------
        context : Decision, list of Decision, array, dict, frame, Factors or None
            A decision, n decisions at once, or a list of decisions. If no decision was made here, the context of the
            arm, as `decide` takes it: a row (dim,), n rows (n, dim), `Factors` in pairs, a record or a list of records.
            None is for a fixed set of arms.
        reward : float or array of shape (n,), default None
            The reward of each row. For a decision of k slots, k numbers, with None for a slot without a reward. None if
            only `outcomes` of a decision are given.
        arm : hashable, dict or list, default None
            The arm of each reward, for contexts of models that know arms: a name, {name: features}, [features] or an
            index. None for decisions, and where rows are arms.
        nu : float or array of shape (n,), default None
            Noise scale of each row, for estimators that use one.
        allow_repeat : bool, default False
            Learn a second reward of a decision. By default it is refused for the last 10,000 rewarded decisions.
        time : float or datetime, default None
            Time from which the rows count, as in `decide`.
        outcomes : dict or list of dict, default None
            Outcomes by name, such as {"dollars": 0.0003}: one dictionary for each decision or row. A decision of k
            slots has k dictionaries, with None for a slot without outcomes. An outcome may come in a later call. If the
            model is linear and the design exact, it then counts exactly as if it had come with the reward.

        Raises
        ------
        ValueError
            If a number is not finite, a shape does not fit, a decision is of another model or has had its reward, the
            estimator refuses a row or `nu`, or the arm is impossible.
        """
        if are_decisions(context):
            if arm is not None or nu is not None:
                raise ValueError("arm and nu must be None beside decisions, which know their arms")
            if outcomes is None and (reward is not None or not self.outcomes):
                self._reward(context, reward, allow_repeat, time)
            else:
                self._learn_outcomes(context, reward, outcomes, allow_repeat, time)
        else:
            batch = self._model.observe(context, arm)
            values = self._values(reward, batch.size, batch.single)
            beside = self._outcomes_of_rows(outcomes, batch)
            with defer_signals():
                self._update(batch, values, nu, time, beside)
        if self.n_learned >= self._next_look:
            self._next_look = next_look(self._model, self.name, self._next_look)

    def _reward(self, decisions: Any, rewards: Any, allow_repeat: bool, time: Any) -> None:
        """Learn the rewards of decisions from their records; if one is refused, none is learned.

        The arguments are those of `learn`, whose `context` are the decisions here.
        """
        if rewards is None:
            raise ValueError("rewards must be given for decisions, unless outcomes come without them, got None")
        given, paid = pair_rewards(decisions, rewards)
        new = self._rewarded.check([one.id for one in given], allow_repeat)
        slots, values = [], []
        for one, each in zip(given, paid, strict=True):
            for slot, value in enumerate(each):
                if value is not None:
                    slots.append((one, slot))
                    values.append(value)
        batch = self._model.recall(slots) if slots else None
        checked = self._values(values[0], 1, True) if len(values) == 1 else self._values(values, len(slots), False)
        more = self._fill_missing(slots) if self.outcomes else None
        with defer_signals():
            if batch is not None:
                self._update(batch, checked, None, time, more)
                self._drop_early(slots)
                if self._bounded:
                    self._add_regret(slots)
            self._rewarded.add(new)

    def _add_regret(self, slots: list[tuple[Decision, int]]) -> None:
        """Add the regret bounds of `slots`, pairs (decision, slot), as far as the present rule decided them."""
        for decision, slot in slots:
            if decision.rule == self._rule.text:
                self._regret = self._regret.add(bound_of_slot(decision, slot, self._model.family))

    def _learn_outcomes(self, decisions: Any, rewards: Any, outcomes: Any, allow_repeat: bool, time: Any) -> None:
        """Learn outcomes of decisions, together with their rewards or alone.

        The arguments are those of `learn`. Unless `allow_repeat` is True, an outcome that was learned before is
        refused.
        """
        if not self.outcomes:
            raise ValueError("outcomes must be None for a bandit that was given no names of outcomes")
        listed = decisions if isinstance(decisions, list) else [decisions]
        given = [one for part in listed for one in part.split()]
        each = outcomes_by_slot(given, outcomes)
        values, keys = {}, []
        for d, one in enumerate(given):
            for slot in range(len(one.arms)):
                found = check_values(each[d][slot], self.outcomes)
                values[d, slot] = relative(one, slot, found, self.outcomes)
                named = zip(self.outcomes, found.tolist(), strict=True)
                keys += [f"{one.id}\n{slot}\n{name}" for name, value in named if value == value]
        informed = self._informed.check(keys, allow_repeat)
        if rewards is None:
            revisions = []
            for (d, slot), found in values.items():
                known = ~np.isnan(found)
                if known.any():
                    one = given[d]
                    expected = relative(one, slot, values_from_record(one, slot, self.outcomes), self.outcomes)
                    learned = one.id in self._rewarded and not np.isnan(expected[known]).any()
                    revisions.append(((one, slot), found, expected if learned else None))
            with defer_signals():
                for at, revised, before in revisions:
                    if self._model.revise_outcomes(at, revised, before) is False:
                        self._keep_early(at, revised)
                self._informed.add(informed)
            return
        paid = pair_rewards(decisions, rewards)[1]
        new = self._rewarded.check([one.id for one in given], allow_repeat)
        places = [(d, slot) for d, row in enumerate(paid) for slot, value in enumerate(row) if value is not None]
        slots = [(given[d], slot) for d, slot in places]
        batch = self._model.recall(slots) if slots else None
        numbers = [paid[d][slot] for d, slot in places]
        checked = self._values(numbers[0], 1, True) if len(numbers) == 1 else self._values(numbers, len(slots), False)
        rows = np.array([values[at] for at in places]).reshape(len(places), len(self.outcomes))
        if len(keys) < rows.size:
            rows = np.where(np.isnan(rows), self._fill_missing(slots), rows)
        with defer_signals():
            if batch is not None:
                self._update(batch, checked, None, time, rows)
                self._drop_early(slots)
                if self._bounded:
                    self._add_regret(slots)
            self._rewarded.add(new)
            self._informed.add(informed)

    def _fill_missing(self, slots: list[tuple[Decision, int]]) -> np.ndarray:
        """Return the outcomes (n, J) to learn for slots whose outcomes do not come with their reward.

        `slots` lists n pairs (decision, slot). The outcomes are the predictions in the decisions' records. An outcome
        that came before has the value that was kept for it, or NaN if it was learned then.
        """
        out = np.empty((len(slots), len(self.outcomes)))
        for i, (one, slot) in enumerate(slots):
            out[i] = relative(one, slot, values_from_record(one, slot, self.outcomes), self.outcomes)
            for j, name in enumerate(self.outcomes):
                if (key := f"{one.id}\n{slot}\n{name}") in self._informed:
                    out[i, j] = self._early.get(key, np.nan)
        return out

    def _keep_early(self, slot: tuple[Decision, int], values: np.ndarray) -> None:
        """Keep the outcomes `values` (J,) of a slot, NaN for missing ones, until its reward is learned.

        The oldest outcomes beyond 10,000 are dropped.
        """
        decision, place = slot
        for name, value in zip(self.outcomes, values.tolist(), strict=True):
            if value == value:
                self._early.put(f"{decision.id}\n{place}\n{name}", value)

    def _drop_early(self, slots: list[tuple[Decision, int]]) -> None:
        """Drop the kept outcomes of slots whose rewards have been learned."""
        for decision, place in slots if self._early else ():
            for name in self.outcomes:
                self._early.pop(f"{decision.id}\n{place}\n{name}", None)

    def _outcomes_of_rows(self, outcomes: Any, batch: Any) -> np.ndarray | None:
        """Return the outcomes (n, J) of rows that were not decided by this bandit, or None without outcomes.

        `outcomes` is a dictionary, or a list with one for each row of `batch`; None if they have not come.
        """
        if not self.outcomes:
            if outcomes is not None:
                raise ValueError("outcomes must be None for a bandit that was given no names of outcomes")
            return None
        given = [None] * batch.size if outcomes is None else [outcomes] if batch.single else outcomes
        if not isinstance(given, list | tuple) or len(given) != batch.size:
            raise ValueError(f"outcomes must have one entry per row ({batch.size}), got {check.quote(outcomes)}")
        return np.stack([check_values(each, self.outcomes) for each in given]) if given else np.empty((0, 0))

    def _update(self, batch: Any, values: np.ndarray, nu: Any, time: Any, outcomes: np.ndarray | None = None) -> None:
        more = {} if outcomes is None else {"outcomes": outcomes}
        model = self._model.update(batch, values, nu=nu, time=time, residuals=self._rule.residual, **more)
        if model is not self._model:  # one that the data asked for
            self._adopt(model)
            self._explore(self._given)

    def _values(self, rewards: Any, count: int, single: bool) -> np.ndarray:
        """Check rewards and return them as an array (count,); `single` allows a bare number."""
        model = self._model
        if single and isinstance(rewards, float) and -1e12 < rewards < 1e12:  # the common case, checked at once
            values = np.array([rewards], model.dtype)
            model.check_rewards(values)
            return values
        values = check.array("rewards", rewards, model.dtype, (0,) if single else (1,))
        values = check.finite("rewards", values).reshape(-1)
        if len(values) != count:
            raise ValueError(f"rewards must have one entry per row of contexts ({count}), got {len(values)}")
        model.check_rewards(values)
        return values

    @reading
    def check_rewards(self, rewards: Any) -> None:
        """Check rewards without learning them.

        Parameters
        ----------
        rewards : array of shape (n,)
            The rewards.

        Raises
        ------
        ValueError
            If `learn` would refuse a reward: it is not finite, or not possible for the family of rewards.
        """
        self._values(rewards, len(rewards), False)

    @composite
    def play(self, contexts: Any, rewards: Any, nu: Any = None) -> np.ndarray:
        """Play recorded rounds in which the reward of every arm is known.

        The result equals T calls of `decide` and `learn`. It takes one compiled loop if the model has one.

        Parameters
        ----------
        contexts : array of shape (T, K, dim)
            The row of each arm in each round. With a model for each arm also (T, 1, dim); these arms are named 0 to K -
            1. `Factors` are refused.
        rewards : array of shape (T, K)
            The reward that each arm would pay.
        nu : array of shape (T,) or (T, K), default None
            Noise scales, for estimators that use them.

        Returns
        -------
        ndarray of int of shape (T,)
            Index of the chosen arm in each round.

        Raises
        ------
        ValueError
            If `decide` or `learn` would refuse a round. Also if a rule such as that of `CRMM` must repeat an arm, and
            the arm is missing; rounds before it have been learned.
        FloatingPointError
            If a score is not finite. Rounds before it have been learned.
        """
        model = self._model
        rows, values, nus = model.check_rounds(contexts, rewards, nu)
        model.check_rewards(values)
        scored = np.empty((len(rows) if self._bounded else 0, 3))
        arms = model.play(rows, values, nus, self._rule, self._rng, scored)
        if arms is None:
            return self._play_one_by_one(rows, values, nus)
        if scored.size:
            played = scored[: np.count_nonzero(arms >= 0)]
            self._regret = self._regret.add(bounds_of_rounds(played, model.mean_rewards).sum(), len(played))
        if self.n_learned >= self._next_look:
            self._next_look = next_look(model, self.name, self._next_look)
        if arms.size and arms[-1] < 0:
            raise choice_error(int(arms[-1]))
        return arms

    def _play_one_by_one(self, rows: np.ndarray, rewards: np.ndarray, nus: Any) -> np.ndarray:
        arms = np.empty(len(rows), np.int64)
        names = tuple(range(rewards.shape[1])) if self._model.has_named_arms else None
        common = rows.shape[1] == 1 and names is not None
        for t in range(len(rows)):
            decision = self.decide(rows[t, 0] if common else rows[t], names)
            arms[t] = a = decision.index
            nu = float(nus[t, a]) if nus is not None and nus.size else None
            self.learn(rows[t, 0 if common else a], float(rewards[t, a]), None if names is None else int(a), nu=nu)
            if self._bounded:
                self._add_regret([(decision, 0)])
        return arms

    # ---- answers ----

    @reading
    def explain(
        self,
        context: Any = None,
        arm: Any = None,
        other: Any = None,
        *,
        arms: Any = None,
        names: Iterable[str] | None = None,
        time: Any = None,
    ) -> Explanation:
        """Explain the score of an arm, feature by feature, and its difference to another arm.

        Nothing changes, and no arm becomes known. For clicks and counts, means and widths are those of x^T theta, not
        of the expected reward.

        Parameters
        ----------
        context : Decision, array, dict, frame or Factors, default None
            A request, as in `decide`, or a decision. For a decision, the arms that it chose are explained from its
            record.
        arm : hashable or int, default None
            The arm to explain: a name of `arms`, or an index if arms have no names. None takes the arm with the largest
            score, or the first slot of a decision.
        other : hashable or int, default None
            The arm to compare with. None takes the arm with the largest score among the others.
        arms : sequence of hashable, dict or list of features, default None
            The arms on offer, as in `decide`. None beside a decision.
        names : iterable of str, default None
            Names of the columns of a context. For `Factors`, the names of the left factor's columns come first, and
            those of the right one's follow. None means x0, x1, ...
        time : float or datetime, default None
            Present time, as in `decide`.

        Returns
        -------
        Explanation
            Score, mean and width of the arm, their terms, and the difference to the other arm.

        Raises
        ------
        ValueError
            If an arm is not offered, `other` equals `arm`, the number of names is wrong, or `score` would refuse the
            request.
        FloatingPointError
            If a score is not finite.
        """
        model = self._model.at(time)
        if isinstance(context, Decision):
            if context.is_batch:
                raise ValueError("contexts must be one decision: take several at once apart with decisions.split()")
            if arms is not None:
                raise ValueError(
                    "arms must be None beside a decision, whose record has the rows of the arms it chose alone"
                )
            request = model.encode_decision(context)
            arm = context.arms[0] if arm is None and request.names is not None else arm
        else:
            request = model.encode(context, arms)
        if not request.single:
            raise ValueError(f"contexts must be those of one decision, not of {len(request.each)} at once")
        scores = self._scores(model, request, generator_of_seed(self.seed))[0]
        offered = range(request.size) if request.names is None else request.names
        places = arms_to_explain(scores, offered, arm, other, model.can_compare(request))
        sides = model.attribute(request, places, names)
        link = "" if model.family is None else name_of(model.family)
        return make_explanation([offered[place] for place in places], scores[places].tolist(), sides, link)

    @reading
    def choices(self) -> dict[str, Any]:
        """Return the settings that the model has chosen from the data, as plain data.

        Returns
        -------
        dict
            The settings by name, which the model's method `choices` describes; empty for a model that chooses nothing.
        """
        return self._model.choices()

    @reading
    def error_bound(self) -> float:
        """Return the proven bound on ||A - A_hat||_2 of the design, the largest over all arms.

        Returns
        -------
        float
            The bound; infinite if none is known.
        """
        return self._model.error_bound()

    @reading
    def regret_bound(self) -> RegretBound:
        """Bound the cumulative regret of all decisions learned so far, under `UCB(Theory(...))`.

        Regret is measured against the best arm on offer. Each decision of this rule that is learned adds 2 beta
        sqrt(x^T A^-1 x), where x is the row of its arm and beta the radius at that time. The sum is a bound at all
        times at once, if the constants of `Theory` are right and its radius is proved (see the notes there).

        Returns
        -------
        RegretBound
            `total` is the bound, and `probability` the probability with which it holds. `n_decisions` is the number of
            decisions that it covers. `n_other_rows` is the number of other rows learned, such as rows without a
            decision. The bound says nothing about their regret.

        Raises
        ------
        ValueError
            If the exploration is not `UCB` with a `Theory`.

        Notes
        -----
        The sum starts again from 0 when `exploration` is set. A decision that is learned twice counts twice. A decision
        without a reward does not count. With a model for each arm the probability is 1 - K delta for K arms, removed
        ones included. A merge with another bandit lowers it by 2 delta if all arms share one model. The reason is that
        two more sequences of radii must hold: the other bandit's before the merge, and the merged bandit's after it.

        Examples
        --------
        >>> import numpy as np, onepass as op
        >>> rng = np.random.default_rng(0)
        >>> bandit = op.OFUL(dim=2, exploration=op.Theory(noise=0.1, delta=0.05))
        >>> for _ in range(100):
        ...     decision = bandit.decide(np.eye(2))
        ...     bandit.learn(decision, 0.8 * (decision.arm == 0) + 0.1 * rng.standard_normal())
        >>> found = bandit.regret_bound()
        >>> round(found.probability, 2), found.n_decisions, bool(found.total < 60)
        (0.95, 100, True)
        """
        return make_bound(self._rule, self._regret, self.n_learned, self._model.n_ellipsoids)

    @reading
    def memory_usage(self) -> int:
        """Return the memory of all arrays of the model and its feature map.

        Returns
        -------
        int
            Number of bytes.
        """
        return self._model.memory_usage()

    @reading
    def __repr__(self) -> str:
        return f"<{self.name}: {self._model!r}, {self.exploration!r}, seed={self.seed}; {self._model.summary()}>"

    # ---- copies and files ----

    @reading
    def with_exploration(self, exploration: Exploration) -> Self:
        """Return a bandit with the same model under another exploration rule.

        The two bandits share what they learn. Let only one of them learn, or take a `copy` first. The random generator
        of the new bandit starts at the seed. A `ContextualBandit` chooses its model when it first learns: call this
        method afterwards, because before that nothing is shared.

        Parameters
        ----------
        exploration : Exploration
            The other rule.

        Returns
        -------
        Bandit
            The new bandit.

        Raises
        ------
        ValueError
            If the rule does not fit the model.
        """
        twin = self._twin(self._model)
        twin.sharing = self.sharing
        twin._rewarded, twin._informed, twin._early = self._rewarded, self._informed, self._early
        twin._removed = self._removed
        twin._explore(exploration)
        twin._regret = RegretSum()
        twin._rng = np.random.default_rng(self.seed)
        return twin

    @writing
    def snapshot(self) -> Snapshot:
        """Return an immutable copy for servers, which decides and scores in any number of threads.

        It costs one copy of the learned state. With a model for each arm it copies only the arms that have changed
        since the last snapshot.

        Returns
        -------
        Snapshot
            The copy, which never learns.
        """
        twin = self._twin(self._model.freeze())
        self._copy_outcomes(twin)
        join_owner(twin._model, twin)
        return Snapshot(twin)

    @reading
    def copy(self) -> Self:
        """Return an independent copy, with the same state of the random generator.

        Returns
        -------
        Bandit
            The copy.
        """
        twin = self._twin(self._model.copy())
        self._copy_outcomes(twin)
        join_owner(twin._model, twin)
        twin._rng = np.random.default_rng(self.seed)
        twin._rng.bit_generator.state = self._rng.bit_generator.state
        return twin

    @writing
    def continue_randomness(self, earlier: "Bandit") -> None:
        """Draw the random numbers that another bandit would draw next, as `RestartOnChange` needs.

        Parameters
        ----------
        earlier : Bandit
            The other bandit, with a model of the same kind. It does not change.

        Raises
        ------
        TypeError
            If `earlier` is no `Bandit`.
        """
        if not isinstance(earlier, Bandit):
            raise TypeError(f"earlier must be a Bandit, got {check.quote(earlier)}")
        with defer_signals():
            self._rng.bit_generator.state = earlier._rng.bit_generator.state
            self._model.continue_randomness(earlier._model)

    def _twin(self, model: Model) -> Self:
        """Return a bandit with another model and otherwise the attributes of this one."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._model, twin._rewarded, twin._informed = model, self._rewarded.copy(), self._informed.copy()
        twin._removed = self._removed.copy()
        twin._early = self._early.copy()
        return twin

    def _copy_outcomes(self, twin: Self) -> None:
        """Give another bandit's model copies of what was learned about outcomes."""
        if self.outcomes:
            twin._model.restore_outcomes(len(self.outcomes), files.InMemory(self._model.outcome_state()))

    def merge(self, other: "Bandit", *, since: "Bandit | None" = None) -> Self:
        """Learn everything that another bandit has learned, as if its rows had been learned here.

        The other bandit does not change. This bandit keeps its exploration rule, seed and random generator.

        Parameters
        ----------
        other : Bandit
            A bandit with a model of the same kind.
        since : Bandit, default None
            The trained bandit, if both bandits started as copies of one. Its rows then count once. None means that both
            started without rows.

        Returns
        -------
        Bandit
            This bandit.

        Raises
        ------
        TypeError
            If the bandits have models of different kinds, or a model, estimator or design that cannot be merged.
        ValueError
            If the models do not fit together: their parts or learned features differ, a horizon would be exceeded, an
            arm is in the middle of its repeated plays, `since` has learned more rows than one of both, or a sketch
            would have to give rows back. Nothing has changed then.
        """
        for name, one in (("other", other), ("since", other if since is None else since)):
            if not (isinstance(one, Bandit) and type(one.model) is type(self._model)):
                kind = type(self._model).__name__
                raise TypeError(f"{name} must be another bandit with a {kind}, got {check.quote(one)}")
        if self.outcomes or other.outcomes:
            raise TypeError("bandits with outcomes cannot be merged: learn the other one's log here")
        # copied first, so that no bandit is written while it waits for another one
        return self._merge(other.copy(), None if since is None else since.copy())

    @writing
    def _merge(self, other: Self, since: Self | None) -> Self:
        if since is not None and since.n_learned > min(self.n_learned, other.n_learned):
            raise ValueError(
                f"since must be the bandit that both were copied from: it has learned {since.n_learned} rows, "
                f"this one {self.n_learned} and other {other.n_learned}"
            )
        with defer_signals():
            self._adopt(self._model.merge(other._model, None if since is None else since._model))
            self._rewarded.join(other._rewarded)
            if (self._regret.rows, other._regret.rows) != (0, 0):
                self._regret = self._regret.join(other._regret, None if since is None else since._regret)
            self._informed.join(other._informed)
            self._rule = self._rule._replace(code={})  # compiled for the types of the state before
        return self

    @property
    def has_learned(self) -> bool:
        """Always True, also before the first reward.

        So a bandit is saved with everything it has learned if it is part of another saved object.
        """
        return True

    def params(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain data.

        Returns
        -------
        dict
            The arguments by name.
        """
        return {name: to_plain(part) for name, part in self._arguments().items()}

    def _arguments(self) -> dict[str, Any]:
        return {"model": self._model, "exploration": self._given, "seed": self.seed, "name": self.name}

    def contents(self) -> files.Contents:
        extra = {
            "rng": self._rng.bit_generator.state,
            "rewarded": self._rewarded.to_text(),
            "regret": self._regret.to_plain(),
        }
        if removed := self._removed.to_plain():
            extra["removed"] = removed
        if not self.outcomes:
            return files.Contents(self._arguments(), extra, ())
        extra |= {"outcomes": list(self.outcomes), "informed": self._informed.to_text()}
        extra |= {"early": dict(self._early)} if self._early else {}
        return files.Contents(self._arguments(), extra, self._model.outcome_state())

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        """Rebuild a bandit from the saved `params`, `extra` and arrays `held`; raise ValueError if they disagree."""
        bandit = cls(**{name: build(part) for name, part in params.items()})
        if extra.get("outcomes"):
            bandit.outcomes = check_names(extra["outcomes"])
            bandit._model.restore_outcomes(len(bandit.outcomes), held)
            bandit._informed = RewardedIds.from_text(extra["informed"])
            early = extra.get("early", {})
            bandit._early = Latest(LENGTH, {key: check.real("early outcome", value) for key, value in early.items()})
        else:
            held.take((), lambda found: True)
        bandit._rng.bit_generator.state = extra["rng"]
        bandit._rewarded = RewardedIds.from_text(extra["rewarded"])
        bandit._regret = RegretSum.from_plain(extra["regret"])
        bandit._removed = RemovedArms.from_plain(extra.get("removed", {}))
        return bandit
