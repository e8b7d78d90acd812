"""CrossedBandit: records of users and of arms, every feature of the one with every feature of the other.

Requests are dictionaries, arms have features of their own and come and go; clicks, counts or numbers; nothing to tune.
The model is crossing.py, what becomes of a record terms.py. A decision's record holds the terms of the request and of
the arms that were chosen, so that its reward can be learned later, by another process, or by another model.
"""

from collections.abc import Hashable, Mapping
from typing import Any, Self, final

import numpy as np

from onepass.bandit.crossed_arms import Owned, arms_of, rows_to_learn
from onepass.bandit.crossed_explaining import explained
from onepass.bandit.crossing import FEWER, PRIORS, Crossed, begun, decide_crossed, learn_crossed, rescale, shares
from onepass.bandit.deciding import are_decisions, asked, checked_tail, failed, paired, recorded, trouble
from onepass.bandit.decision import DRAWN, Decision
from onepass.bandit.explanation import Explanation, place_of, recalled
from onepass.bandit.exploring import Exploring
from onepass.bandit.ledger import Ledger
from onepass.bandit.names import eligible_arms, everyone, hashable
from onepass.bandit.snapshot import Snapshot
from onepass.exploration.exploration import Exploration
from onepass.exploration.optimistic_gap import OptimisticGap
from onepass.exploration.randomness import noise_once
from onepass.features.pairs import Pairs
from onepass.features.records import Records
from onepass.features.terms import LARGEST, checked_terms, terms
from onepass.foundation import check, files, state
from onepass.foundation.interrupts import deferred
from onepass.foundation.registry import built, plain, savable
from onepass.foundation.sharing import reading, writing

WIDTH = 256  # of users and of items: 5.2 MB of weights and variances
BANDS = 16  # values of an arm's number that have a weight each, beside the number's own: ten prices, say
RECENT = 1000
RULE = OptimisticGap(0.8, scale=30.0, floor=0.001)  # chosen on generated news sites (docs/news.md)


@final
@savable
class CrossedBandit(Exploring, files.Owner):
    """A bandit for requests and arms that are records: `decide({"country": "de"}, arms={"a1": {"topic": "sport"}})`.

    context, item: the `Records` of requests and of arms, learned further in copies (None, the default: 256 wide, with
        standardized numbers, and 16 bands a number of arms).
    exploration: any rule but one with `Theory`, its strength in units of what rewards deviate by (None:
        `OptimisticGap(0.8, scale=30.0, floor=0.001)`).
    recent: arms whose own appeal, beside that of their features, is kept: those learned last, at least 1 (default
        1000).
    seed: at least 0 (default 0): breaks ties and draws. name: shown by repr.
    Memory 80 bytes times the product of both widths; a decision costs the product of the terms of the request and of
    all arms, a reward that of those of one. Means are expected rewards, in any unit. Nothing is forgotten but what arms
    are in themselves. ValueError for parts that do not fit.

    >>> import onepass as op
    >>> bandit = op.CrossedBandit()
    >>> arms = {"a1": {"topic": "sport"}, "a2": {"topic": "news"}}
    >>> decision = bandit.decide({"hour": 9, "country": "de"}, arms=arms)
    >>> bandit.learn(decision, 1.0)
    >>> bandit.rounds, bandit.item.known
    (1, 1)
    """

    timed = False  # for who runs it beside bandits that forget

    def __init__(
        self,
        context: Records | None = None,
        item: Records | None = None,
        exploration: Exploration | None = None,
        *,
        recent: int = RECENT,
        seed: int = 0,
        name: str = "CrossedBandit",
    ):
        for argument, value in (("context", context), ("item", item)):
            if not isinstance(value, Records | None):
                raise ValueError(f"{argument} must be Records(size=256, standardize=True), got {check.shown(value)}")
        if not isinstance(name, str):
            raise ValueError(f"name must be a string, got {check.shown(name)}")
        self.context: Records = Records(size=WIDTH, standardize=True) if context is None else context.copy()
        self.item: Records = Records(size=WIDTH, standardize=True, bands=BANDS) if item is None else item.copy()
        self.name: str = name
        self.seed: int = check.integer("seed", seed, 0, None)
        self.recent: int = check.integer("recent", recent, 1)
        self._explore(RULE if exploration is None else exploration)
        self._learned = begun(self.context.size, self.item.size, self.recent)
        self._owned, self._rewarded = Owned(self.recent), Ledger()
        self._rng = np.random.default_rng(self.seed)

    def _permits(self, exploration: Exploration) -> None:
        if exploration.theory is not None:
            raise ValueError(f"exploration must be a number here: no radius is proved, got {check.shown(exploration)}")

    @property
    def rounds(self) -> int:
        """Rewards learned so far."""
        return int(self._learned.totals[0])

    @reading
    def decide(
        self,
        context: Any,
        arms: Any,
        k: int = 1,
        *,
        id: Any = None,
        eligible: Any = None,
        tail: str = DRAWN,
    ) -> Decision:
        """Choose among K arms for one request.

        context: a dictionary. arms: a dictionary of records by names; a list of names, each then its only feature; or
        records without names: a list of dictionaries, or a polars or pandas frame. k, id, eligible, tail: as for every
        bandit (`SharedBandit.decide`). Returns a `Decision`, whose `context` holds the terms of the request and of the
        chosen arms: `learn` needs nothing else. Nothing but the generator changes. ValueError for NaN, for what is no
        record, for names given twice, or for k above K.
        """
        (names, records), told = arms_of(arms), terms(context)
        count = len(records)
        if type(k) is not int or k != 1:
            k = check.integer("k", k, 1, count)
        greedy, among = checked_tail(tail), eligible_arms(eligible, names, count, k)
        one = asked(id, None, self.seed, self._rng)[0]
        found = self._found(context, names, records, one.rng, among, k, greedy)
        if found[0][0] < 0:
            raise failed(int(found[0][0]))
        chosen = [terms(records[place]) for place in found[0].tolist()]
        kept: Any = {"context": told, "arms": chosen}
        return recorded(one, found, names, kept, tail, self._explores, self.rounds)

    def _found(
        self, context: Any, names: Any, records: Any, rng: np.random.Generator, among: np.ndarray, k: int, greedy: bool
    ) -> Any:
        """What `decide_crossed` finds for a request."""
        return self._judged(self.context.pairs(context), self.item.pairs(records), names, rng, among, k, greedy)

    def _judged(self, user: Pairs, items: Pairs, names: Any, rng: Any, among: np.ndarray, k: int, greedy: bool) -> Any:
        """The same for pairs."""
        count = len(items.starts) - 1
        own = self._owned.places(names, count)
        normals, lots = noise_once(self._explores.pairs, count, rng, k)
        rule = self._explores.rule
        return decide_crossed(self._learned, rule, user.places, user.values, *items, own, normals, among, lots, greedy)

    @reading
    def score(self, context: Any, arms: Any) -> np.ndarray:
        """What arms are ranked by, (K,), without side effects; context, arms and errors as in `decide`. Under Thompson
        sampling it is the first draw that the seed gives."""
        names, records = arms_of(arms)
        rng = np.random.default_rng(self.seed)
        found = self._found(context, names, records, rng, everyone(len(records)), 1, False)
        if not np.isfinite(found[2]).all():
            raise trouble()
        return found[2]

    @reading
    def explain(self, context: Any, arms: Any = None, arm: Any = None) -> Explanation:
        """What an arm's mean, and its width, come from: terms of the request ("country=de"), of the arm
        ("topic=sport"), of both ("country=de * topic=sport"), what is constant, and the arm's own appeal.

        context, arms, errors: as in `decide`; or a `Decision` of this bandit or one like it, arms None, whose record
        has the terms of what it chose. arm: its name, or its place where arms have none (default: the one with the
        largest score; of a decision the first it chose). There is no `difference`.
        """
        if isinstance(context, Decision):
            user, items, called, names, place = self._recalled(context, arms, arm)
        else:
            names, records = arms_of(arms)
            called = list(range(len(records))) if names is None else names
            user, items = self.context.pairs(context), self.item.pairs(records)
            place = None if arm is None else place_of("arm", arm, called)
        rng = np.random.default_rng(self.seed)
        scores = self._judged(user, items, names, rng, everyone(len(called)), 1, False)[2]
        if not np.isfinite(scores).all():
            raise trouble()
        place = int(np.argmax(scores)) if place is None else place
        own = self._owned.places(names, len(called))
        item = slice(*items.starts[place : place + 2])
        row = Crossed(user.places, user.values, items.places[item], items.values[item], int(own[place]))
        found = (self.context.feature_names(), self.item.feature_names())
        return explained(self._learned, row, *found, called[place], float(scores[place]))

    def _recalled(self, decision: Decision, arms: Any, arm: Any) -> Any:
        """Pairs of the request and of the arms that a decision chose, what these are called, their names, and the place
        of the one asked about."""
        if decision.several or arms is not None:
            recalled(decision, arms, arm)  # says so
        every = rows_of_decision(decision, [0.0] * len(decision.arms))
        called = list(decision.arms)
        user = self.context.pairs_of_terms([every[0][0]])
        items = self.item.pairs_of_terms([item for _, item, _, _ in every])
        place = 0 if arm is None else place_of("arm", arm, called)
        return user, items, called, None if every[0][2] is None else called, place

    @writing
    def learn(self, contexts: Any, rewards: Any, arm: Any = None, *, again: bool = False) -> None:
        """Learn the reward of a decision, late ones in any order; or of an arm that somebody else chose.

        contexts: a `Decision`, or a list of them, of which the records alone are needed; or a dictionary, n of them, or
        a frame, beside which `arm` says what was chosen. rewards: a number, for k slots (k,) numbers, None where there
        was none; of a list one entry per decision or dictionary. arm: a name, {name: features}, or [features] of an
        arm without a name; of n dictionaries a list of n such (default None: decisions know their arms). again: learn a
        second reward of a decision, too (default False: it is refused, for the last 10,000 decisions rewarded). The
        dictionaries of features grow by the terms that are new. ValueError, and nothing has changed, for what is no
        decision of records and no record, for NaN, for another number of rewards or arms, and for a decision that has
        had its reward.
        """
        if are_decisions(contexts):
            if arm is not None:
                raise ValueError("arm must be None beside decisions, which know their arms")
            given, paid = paired(contexts, rewards)
            identities = [one.id for one in given]
            if not again:
                self._rewarded.refuse(identities)
            every = [row for one, each in zip(given, paid, strict=True) for row in rows_of_decision(one, each)]
        else:
            identities, every = [], rows_to_learn(contexts, rewards, arm)
        with deferred():
            for user, item, name, reward in every:
                user_places, item_places = self.context.learn_terms(user), self.item.learn_terms(item)
                users, items = self.context.take_rescaled(), self.item.take_rescaled()
                if users or items:
                    rescale(self._learned, users, items)
                own = self._owned.learned(name, self._learned)
                learn_crossed(self._learned, Crossed(*user_places, *item_places, own), reward)
            self._rewarded.add(identities)

    @staticmethod
    def check_rewards(rewards: Any) -> None:
        """Raise ValueError for rewards (n,) that `learn` would not take: NaN, or numbers too large."""
        check.finite("rewards", check.array("rewards", rewards, np.dtype(np.float64), (1,)))

    # ---- what is known ----

    @property
    @reading
    def arms(self) -> tuple[Any, ...]:
        """The names of the arms whose own appeal is kept, the one learned longest ago first."""
        return self._owned.names

    @writing
    def remove_arm(self, arm: Hashable) -> None:
        """Forget what an arm is in itself, beside its features; ValueError if that is not kept."""
        hashable([arm])
        if arm not in self._owned.names:
            raise ValueError(f"arm {check.shown(arm)} is not known; known are {len(self.arms)} arms, see bandit.arms")
        with deferred():
            self._owned.forget(arm, self._learned)

    @reading
    def choices(self) -> dict[str, Any]:
        """What was chosen from the rewards so far: {"weights": of the priors, "residual": sigma, the
        unit of exploration, "terms": names learned of requests and of arms}."""
        weights, sigma = shares(self._learned)
        by_prior = {f"{prior:g}": round(float(weight), 3) for prior, weight in zip(PRIORS, weights, strict=True)}
        return {"weights": by_prior, "residual": float(sigma), "terms": (self.context.known, self.item.known)}

    # ---- copies and files ----

    @reading
    def exploring(self, exploration: Exploration) -> Self:
        """The same model under another exploration, from the seed on. What is learned is shared, not copied: let one of
        the two learn, or take a `copy` first. ValueError for one that does not fit.
        """
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.exploration, twin._rng = exploration, np.random.default_rng(self.seed)
        twin.sharing = self.sharing
        return twin

    @writing
    def drawing_from(self, rng: np.random.Generator) -> Self:
        """The bandit itself, which draws from `rng` from now on: for who runs it as a part of theirs. ValueError for
        what is no generator of NumPy."""
        if not isinstance(rng, np.random.Generator):
            raise ValueError(f"rng must be a numpy.random.Generator, got {check.shown(rng)}")
        self._rng = rng
        return self

    @reading
    def snapshot(self) -> Snapshot:
        """What the bandit knows now, for servers: it decides, scores and explains in any number of threads, and never
        learns. Costs a copy."""
        return Snapshot(self.copy().drawing_from(self._rng))

    @property
    def knows(self) -> bool:
        """True: it is written where it is an argument of another owner."""
        return True

    @reading
    def memory_usage(self) -> int:
        """Bytes of all arrays, and of the names in the dictionaries."""
        return state.nbytes(self._learned) + self.context.memory_usage() + self.item.memory_usage()

    def params(self) -> dict[str, Any]:
        """What the constructor was given, as plain data."""
        return {name: plain(part) for name, part in self._arguments().items()}

    def _arguments(self) -> dict[str, Any]:
        parts = {"context": self.context, "item": self.item, "exploration": self.exploration, "recent": self.recent}
        return {**parts, "seed": self.seed, "name": self.name}

    def contents(self) -> files.Contents:
        extra = {"rng": self._rng.bit_generator.state, "rewarded": self._rewarded.text()}
        return files.Contents(self._arguments(), extra, (self._learned, self._owned.kept()))

    @classmethod
    def restored(cls, params: dict[str, Any], extra: dict[str, Any], held: files.Holds) -> Self:
        """From what a file, copy or pickle holds, `params`, `extra` and `held`; ValueError where that does not fit."""
        found = cls(**{name: built(part) for name, part in params.items()})
        begun_with = (found._learned, Owned(found.recent).kept())
        learned, owned = held.take(begun_with, lambda tree: consistent(found._learned, tree[0], tree[1], found.recent))
        found._learned, found._owned = learned, Owned.of(found.recent, owned)
        found._rewarded = Ledger.of(extra["rewarded"])
        found._rng.bit_generator.state = extra["rng"]
        return found

    def __repr__(self) -> str:
        return f"{self.name}({self.context!r}, {self.item!r}, {self.exploration!r}) of {self.rounds} rewards"


def rows_of_decision(one: Decision, paid: list[Any]) -> list[tuple[Any, Any, Any, float]]:
    """The terms of request and arm, the arm's name, and the reward, of every slot of a decision that had one."""
    kept = one.context
    whole = isinstance(kept, Mapping) and kept.keys() == {"context", "arms"} and isinstance(kept["arms"], list)
    if not whole or len(kept["arms"]) != len(one.arms):
        raise ValueError(f"decision {check.shown(one.id)} has no terms of records, as those of this bandit have")
    user, found = checked_terms(kept["context"]), []
    for item, name, value in zip(kept["arms"], one.arms, paid, strict=True):
        if value is not None:
            if not -LARGEST <= value <= LARGEST:
                check.finite("rewards", np.array([value]))  # says so
            found.append((user, checked_terms(item), None if one.offered is None else (name,), value))
    return found


def consistent(begins: Any, learned: Any, owned: Any, recent: int) -> bool:
    """Whether what a file holds can have been learned."""
    priors = len(learned.losses)
    wanted = ((*begins.cells.shape[:2], 2 * priors), (recent, 2 * priors), (priors,), (priors,), begins.totals.shape)
    shapes = priors in (len(PRIORS), FEWER) and all(
        one.shape == shape for one, shape in zip(learned, wanted, strict=True)
    )
    positive = shapes and all(bool((part[..., priors:] >= 0.0).all()) for part in (learned.cells, learned.own))
    counts = shapes and all(bool((part >= 0.0).all()) for part in (learned.losses, learned.squares, learned.totals))
    return positive and counts and owned.fits(recent)
