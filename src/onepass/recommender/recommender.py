"""The class `Recommender`, which learns from logs of the items that users took and ranks items for users.

    learn       first update the weights of the softmax (ranking.py) by the row, then its counts and histories
    recommend   the k items with the largest logits
    refit       directions of taste and neighbours (tastes.py), whenever the log has grown by a tenth

Rows of a user that follow one another within half an hour are a visit. The j-th row of a visit is used for the weights
with a share of 1 / j, because a list would have been shown when the visit began. All rows of a new user's first visit
are used, because a new user's list should hold anything that the user takes. Of n rows of new users, and of n rows of
known users, about sqrt(1,000 n) are used, spread evenly. So learning gets cheaper as the log grows.
"""

from array import array
from collections.abc import Collection, Hashable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Self, final

import numpy as np

from onepass.bandit.decision import Recommendation
from onepass.foundation import check, files
from onepass.foundation import state as states
from onepass.foundation.deferred_signals import defer_signals
from onepass.foundation.registry import savable
from onepass.foundation.rw_lock import reading, writing
from onepass.model.names import check_hashable, name_list
from onepass.recommender.ranking import (
    CLOSEST,
    HALF_LIVES,
    KNOWN,
    LARGEST,
    NEW,
    Counts,
    Scorer,
    Weights,
    choose_candidates,
    init_counts,
    init_weights,
    learn_choice,
    make_features,
)
from onepass.recommender.tastes import Tastes, fit_tastes, init_tastes, neighbours_of

VISIT = 1800.0  # seconds without a row that end a visit
GROWTH = 1.1  # of the log, after which directions and neighbours are computed anew
FIRST = 500  # rows before the first step of the weights, and at least between two fits
USED = 250.0  # rows of new (known) users up to which all are used
SCATTER = 2654435769  # 2^32 times the golden ratio: numbers of rows to beginnings of samples
LONGEST = 1000  # items of a user that are kept, the latest ones


class RecommenderState(NamedTuple):
    """Arrays of a recommender in a file.

    Parameters
    ----------
    users : names (U,) of the users.
    items : names (N,) of the items.
    lengths : number of items in the history of each user, (U,).
    taken : indices of these items, one user after the other.
    last : time of the last row of each user in seconds, (U,).
    visits : number of items of each user before the present visit, and number of rows in it, (2, U).
    counts : `Counts` of the items, which decay.
    weights : `Weights` of the softmax over items.
    tastes : `Tastes`, directions of taste and neighbours of items.
    used : numbers of rows so far of new and of known users, and two fractions that decide which rows learn, (4,).
    """

    users: np.ndarray
    items: np.ndarray
    lengths: np.ndarray
    taken: np.ndarray
    last: np.ndarray
    visits: np.ndarray
    counts: Counts
    weights: Weights
    tastes: Tastes
    used: np.ndarray


@final
@savable
class Recommender(files.Owner):
    """Recommender for logs of what users took, with nothing to tune.

    It learns who took what, row by row, and ranks all items for any user. It combines how popular an item is over six
    spans of time, items that the same users took, and directions of taste. How much each of them counts is learned from
    how well it ranked what was taken next. A new user gets what is popular, and a new item counts from its first row.

    Parameters
    ----------
    dim : int, default 64
        Largest number of directions of taste, at least 1. Directions that are noise get no weight.
    seed : int, default 0
        Seed of all draws, at least 0.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    The score of an item i for a user u is the inner product of learned weights w with ten numbers:

    - log share_1 to log share_6. A share is the part of recent rows in which i was taken. Rows
      count half after 250, 1,000, 4,000, 16,000 or 64,000 rows, or never.
    - v_i^T x_u. The directions v_i come from a truncated SVD of the matrix of users and items, and x_u is the
      posterior mean given what u has taken.
    - log(near + 0.1), where `near`, at least 0, is the sum of the similarities of i with the items that u has taken,
      divided by its mean over all items. The similarity of i and j is n_ij / sqrt((n_i + 20) (n_j + 20)), where n_ij
      users took both, n_i took i, and n_j took j. It counts as 0 unless i is among the 24 items most similar to j.
    - The logarithm of a learned mixture of the shares and `near`.
    - 1 if u has taken i before, else 0.

    The softmax of the scores is the probability that u takes each item next. The weights are learned by online Newton
    steps on its log loss. A step compares the row's item with some items that are near to what u has taken, and with
    every m-th other item, which counts m times. About sqrt(1,000 n) of n rows make a step.

    An item takes 4 dim + 270 bytes, and a user 4 bytes for each of the last 1,000 items taken. `recommend` costs O(N
    dim) a user for N items. `learn` costs O(dim) a row on average. Each time the log has grown by a tenth, the call of
    `learn` also computes directions and similarities anew.

    Examples
    --------
    >>> import onepass as op
    >>> recommender = op.Recommender()
    >>> recommender.learn(["ann", "ann", "bob", "eve"], ["tea", "milk", "tea", "tea"])
    >>> recommender.recommend(["bob", "someone new"], k=1, exclude_seen=True).arms
    [['milk'], ['tea']]
    """

    def __init__(self, *, dim: int = 64, seed: int = 0) -> None:
        self.dim = check.integer("dim", dim, 1, 4096)
        self.seed = check.integer("seed", seed, 0, None)
        self.n_learned = 0
        self._users: dict[Any, int] = {}
        self._items: dict[Any, int] = {}
        self._names: list[Any] = []
        self._taken: list[array[int]] = []
        self._last: array[float] = array("d")
        self._before: array[int] = array("q")
        self._rows: array[int] = array("q")
        self._counts = init_counts()
        self._growth = np.exp2(1.0 / HALF_LIVES)
        self._weights, self._tastes = init_weights(), init_tastes(self.dim)
        self._used = np.zeros(4)
        self._fitted = 0
        self._timed: bool | None = None
        self._scorer: Scorer | None = None

    @property
    def has_learned(self) -> bool:
        return self.n_learned > 0

    @property
    def n_users(self) -> int:
        """Number of users seen so far."""
        return len(self._users)

    @property
    def n_items(self) -> int:
        """Number of items seen so far."""
        return len(self._names)

    @writing
    def learn(self, user: Any, item: Any, *, time: Any = None, reward: Any = None) -> None:
        """Learn that a user took an item, or many such rows in the order in which they came.

        Parameters
        ----------
        user : hashable, or list, array or series of them
            The user, or one user for each row. A tuple is the name of one user.
        item : hashable, or list, array or series of them
            The item, or one item for each row. A tuple is the name of one item.
        time : float or datetime, or a sequence of them, default None
            When it was: Unix seconds, datetimes with a time zone, or datetime64. Rows within half an hour are one
            visit. Without times, each row is a visit. Give times in all calls or in none.
        reward : float or sequence of float, default None
            Weight of the row, from 0 to 1,000, such as the share of a film that was watched. A row of weight 0 is left
            out. The default weight is 1.

        Raises
        ------
        ValueError
            If lengths differ, a name is not hashable, `user` and `item` are both tuples, a number is not finite or out
            of range, or times come only now and then. Nothing is learned then.
        """
        if isinstance(user, tuple) and isinstance(item, tuple):
            raise ValueError(
                f"user and item must be lists for many rows, got the tuples {check.quote(user)} and "
                f"{check.quote(item)}; if each is one name, pass [user] and [item]"
            )
        users, items = _names("user", user), _names("item", item)
        if len(users) != len(items):
            raise ValueError(f"item must have one name for each user ({len(users)}), got {len(items)}")
        if not users:
            return
        times = _times(time, len(users))
        if self._timed is not None and self._timed != (times is not None):
            raise ValueError(f"time must be {'given' if self._timed else 'None'} as in earlier calls")
        amounts = _rewards(reward, len(users))
        with defer_signals():
            self._timed, self._scorer = times is not None, None
            for i, (person, thing) in enumerate(zip(users, items, strict=True)):
                if amounts is None or amounts[i] > 0.0:
                    self._learn_row(
                        person, thing, None if times is None else times[i], 1.0 if amounts is None else amounts[i]
                    )

    def _learn_row(self, user: Any, item: Any, time: float | None, amount: float) -> None:
        """Learn one row: update weights, then counts and history, then the directions of taste if the log has grown.

        `user` and `item` are names, `time` is in seconds or None, and `amount` is the weight of the row.
        """
        person = self._users.get(user)
        if person is None:
            person = self._users[user] = len(self._taken)
            self._taken.append(array("i"))
            self._last.append(0.0)
            self._before.append(0)
            self._rows.append(0)
        taken = self._taken[person]
        if time is None or self._rows[person] == 0 or time - self._last[person] > VISIT:
            self._before[person], self._rows[person] = len(taken), 0
        self._rows[person] += 1
        if time is not None:
            self._last[person] = time
        thing = self._items.get(item)
        if thing is None:
            thing = self._items[item] = len(self._names)
            self._names.append(item)
            if thing >= self._counts.counts.shape[1]:
                self._widen()
        elif self.n_learned >= FIRST and self._is_due(KNOWN if self._before[person] else NEW, self._rows[person]):
            self._learn_weights(np.array(taken[: self._before[person]], np.int64), thing, amount)
        counts = self._counts
        gains = amount * counts.gains
        counts.counts[:, thing] += gains
        np.add(counts.totals, gains, out=counts.totals)
        np.multiply(counts.gains, self._growth, out=counts.gains)
        if counts.gains[0] > LARGEST:
            for part in (counts.counts, counts.totals[:, None], counts.gains[:, None]):
                part /= counts.gains[:, None].copy()
        if thing not in taken:
            taken.append(thing)
            if len(taken) > LONGEST:
                del taken[0]
                self._before[person] = max(self._before[person] - 1, 0)
        self.n_learned += 1
        if self.n_learned >= max(self._fitted + FIRST, GROWTH * self._fitted):
            self._fit()

    def _widen(self) -> None:
        """Make room for an eighth more items."""
        counts = self._counts.counts
        wide = np.zeros((len(counts), max(16, len(self._names) + len(self._names) // 8)), counts.dtype)
        wide[:, : counts.shape[1]] = counts
        self._counts = self._counts._replace(counts=wide)

    def _is_due(self, user: int, row: int) -> bool:
        """Return True if the weights of the softmax learn from a row, the `row`-th of its visit.

        `user` is 0 for a new user and 1 for a known one.
        """
        used, share = self._used, 1.0 if user == NEW else 1.0 / row
        used[user] += share
        used[2 + user] += min(1.0, (USED / used[user]) ** 0.5) * share
        if used[2 + user] < 1.0:
            return False
        used[2 + user] -= 1.0
        return True

    def _learn_weights(self, taken: np.ndarray, item: int, amount: float) -> None:
        """Update the weights by one row: a user who had taken the items `taken` took `item`, all given by index.

        `amount` is the weight of the row.
        """
        known, user = self.n_items, KNOWN if len(taken) else NEW
        near, sums = likeness = neighbours_of(self._tastes, taken)
        if len(near) > CLOSEST:
            near = near[np.argpartition(-sums, CLOSEST)[:CLOSEST]]
        items, excess = choose_candidates(item, near, known, (self.seed + self.n_learned) * SCATTER >> 16)
        mixture = self._weights.mixture[user]
        features, parts = make_features(self._counts, self._tastes, mixture, taken, likeness, items, known)
        learn_choice(self._weights, user, features, parts, int(np.searchsorted(items, item)), excess, amount)

    def _fit(self) -> None:
        """Compute directions of taste and neighbours anew."""
        self._fitted = self.n_learned
        self._tastes = fit_tastes(self._lengths(), self._all_taken(), self.n_items, self._tastes, self.seed)

    def _lengths(self) -> np.ndarray:
        return np.fromiter(map(len, self._taken), np.int64, len(self._taken))

    def _all_taken(self) -> np.ndarray:
        flat = array("i")
        for taken in self._taken:
            flat.extend(taken)
        return np.array(flat, np.int32)

    @reading
    def recommend(
        self,
        user: Any,
        k: int = 10,
        *,
        exclude_seen: bool = False,
        exclude: Sequence[Collection[Hashable]] | None = None,
        items: Any = None,
    ) -> Recommendation:
        """Recommend the k best items to a user, or to each of many users.

        Parameters
        ----------
        user : hashable, or list, array or series of them
            The users. Unknown users get what is popular with new users. A tuple is the name of one user.
        k : int, default 10
            Length of each list, at least 1.
        exclude_seen : bool, default False
            True to leave out the last 1,000 items that the user has taken. By default they are ranked by how often
            users take an item again.
        exclude : sequence of collections of names, default None
            For each user, items to leave out. Unknown names are ignored.
        items : sequence of hashable, default None
            The candidates, the same for all users. Unknown names are ignored. By default all items known so far.

        Returns
        -------
        Recommendation
            A list of items for each user, best first, in `arms`, and their scores in `scores`. A list is shorter if
            fewer than k items are left.

        Raises
        ------
        ValueError
            If `k` is below 1, a name is not hashable, `exclude` does not have one collection for each user, or `user`
            is an unknown tuple of known users.
        """
        if self._is_tuple_of_users(user):
            raise ValueError(
                f"user must be a list for many users, got the tuple {check.quote(user)} of known users; if it is one "
                "new user, pass [user]"
            )
        users, k = _names("user", user), check.integer("k", k, 1)
        left_out = None if exclude is None else _collection("exclude", exclude)
        if left_out is not None and len(left_out) != len(users):
            raise ValueError(f"exclude must have one collection per user ({len(users)}), got {len(left_out)}")
        closed = None
        if items is not None:
            closed = np.ones(self.n_items, np.bool_)
            closed[self._places(items, "items")] = False
        found = Recommendation([], [])
        for i, name in enumerate(users):
            taken = self._history(name)
            scores = self.scorer.score(taken) if self.n_items else np.zeros(0)
            if closed is not None:
                scores[closed] = -np.inf
            if exclude_seen:
                scores[taken] = -np.inf
            if left_out is not None:
                scores[self._places(left_out[i], "exclude")] = -np.inf
            best = _best(scores, k)
            found.arms.append([self._names[place] for place in best.tolist()])
            found.scores.append(scores[best])
        return found

    @reading
    def score(self, user: Any) -> np.ndarray:
        """Return the scores of all known items for one user.

        Parameters
        ----------
        user : hashable
            The user.

        Returns
        -------
        ndarray of shape (n_items,)
            Scores, in the order of `items`. Their softmax gives the probabilities that the user takes each item next.
        """
        check_hashable([user])
        return self.scorer.score(self._history(user)) if self.n_items else np.zeros(0)

    @property
    def items(self) -> list[Any]:
        """Names of all items seen so far, in the order in which they came."""
        return list(self._names)

    @property
    def scorer(self) -> Scorer:
        """Scorer of all items at this moment, kept until the next row is learned."""
        if self._scorer is None:
            self._scorer = Scorer(self._counts, self._tastes, self._weights, self.n_items)
        return self._scorer

    def _is_tuple_of_users(self, user: Any) -> bool:
        """Return True for a tuple of known users that is no known user itself."""
        if not isinstance(user, tuple) or not user:
            return False
        check_hashable([user])
        return user not in self._users and all(part in self._users for part in user)

    def _history(self, user: Any) -> np.ndarray:
        """Return the items that a user has taken, as indices."""
        person = self._users.get(user)
        return np.zeros(0, np.int64) if person is None else np.array(self._taken[person], np.int64)

    def _places(self, names: Any, argument: str) -> list[int]:
        """Return the indices of the known items in `names`; `argument` is the argument's name in messages."""
        listed = _collection(argument, names)
        check_hashable(listed)
        return [self._items[name] for name in listed if name in self._items]

    def memory_usage(self) -> int:
        """Return the bytes of all arrays: counts, directions, neighbours and histories.

        Returns
        -------
        int
            Bytes. Names are not counted.
        """
        held = states.nbytes(self._counts) + states.nbytes(self._weights) + states.nbytes(self._tastes)
        each = sum(taken.itemsize * len(taken) for taken in self._taken)
        return held + each + 24 * len(self._taken)

    def contents(self) -> files.Contents:
        params = {"dim": self.dim, "seed": self.seed}
        extra = {"n_learned": self.n_learned, "fitted": self._fitted, "timed": self._timed}
        counts = self._counts._replace(counts=self._counts.counts[:, : self.n_items])
        state = RecommenderState(
            users=states.object_array(list(self._users)),
            items=states.object_array(self._names),
            lengths=self._lengths(),
            taken=self._all_taken(),
            last=np.array(self._last, np.float64),
            visits=np.array([self._before, self._rows], np.int64).reshape(2, -1),
            counts=counts,
            weights=self._weights,
            tastes=self._tastes,
            used=self._used,
        )
        return files.Contents(params, extra, state)

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        """Rebuild the recommender from its saved arguments `params`, further data `extra` and arrays `held`.

        Raises ValueError if they do not belong together.
        """
        new = cls(**params)
        new.n_learned = check.integer("n_learned", extra["n_learned"], 0)
        new._fitted = check.integer("fitted", extra["fitted"], 0, new.n_learned)
        new._timed = check.choice("timed", extra["timed"], (None, False, True))
        template = new.contents().state
        found = held.take(template, lambda state: _is_valid(state, template))
        new._names = found.items.tolist()
        new._items = {name: place for place, name in enumerate(new._names)}
        new._users = {name: place for place, name in enumerate(found.users.tolist())}
        parts = np.split(found.taken, np.cumsum(found.lengths))[: len(found.lengths)]
        new._taken = [array("i", part.tolist()) for part in parts]
        new._last = array("d", found.last.tolist())
        new._before, new._rows = (array("q", row.tolist()) for row in found.visits)
        new._counts, new._weights = states.copy_arrays(found.counts), states.copy_arrays(found.weights)
        new._tastes, new._used = states.copy_arrays(found.tastes), np.array(found.used)
        return new

    def __repr__(self) -> str:
        return f"<Recommender: {self.n_items:,} items, {self.n_users:,} users, {self.n_learned:,} rows>"


def _is_valid(state: RecommenderState, begun: RecommenderState) -> bool:
    """Return True if the arrays of `state` fit together; `begun` is the state of a new recommender."""
    users, items = len(state.users), len(state.items)
    tastes, width = state.tastes, len(state.tastes.basis)
    return (
        len(set(state.users.tolist())) == users
        and len(set(state.items.tolist())) == items
        and state.lengths.shape == state.last.shape == (users,)
        and state.visits.shape == (2, users)
        and bool((state.lengths >= 0).all())
        and len(state.taken) == int(state.lengths.sum())
        and bool(((state.taken >= 0) & (state.taken < items)).all())
        and bool((state.visits >= 0).all() and (state.visits[0] <= state.lengths).all())
        and state.counts.counts.shape == (len(HALF_LIVES), items)
        and bool((state.counts.counts >= 0.0).all() and (state.counts.gains > 0.0).all())
        and states.has_same_shapes(state.weights, begun.weights)
        and bool((state.weights.mixture >= 0.0).all() and (state.weights.mixture.sum(axis=1) > 0.0).all())
        and state.counts.gains.shape == state.counts.totals.shape == (len(HALF_LIVES),)
        and width <= items
        and tastes.basis.shape[1] == begun.tastes.basis.shape[1]
        and tastes.levels.shape == begun.tastes.levels.shape
        and tastes.sizes.shape == (width,)
        and tastes.near.shape == tastes.likeness.shape == (width, begun.tastes.near.shape[1])
        and bool(((tastes.near >= 0) & (tastes.near < max(width, 1))).all() and (tastes.likeness >= 0.0).all())
        and bool((tastes.levels >= 0.0).all())
        and state.used.shape == begun.used.shape
    )


def _names(argument: str, value: Any) -> list[Any]:
    """Return the names in a list, array or series, or a list of one name; raise ValueError for unhashable ones.

    `argument` is the argument's name in messages.
    """
    many = isinstance(value, list) or hasattr(value, "tolist") or hasattr(value, "to_list")
    if many and getattr(value, "ndim", 1) == 0:
        names = [value.tolist()]  # a NumPy scalar
    else:
        names = name_list(value, argument=argument) if many else [value]
    check_hashable(names)
    return names


def _collection(argument: str, value: Any) -> list[Any]:
    """Return the entries of a list, array, series or set as a list; raise ValueError for anything else.

    `argument` is the argument's name in messages.
    """
    if isinstance(value, str | bytes) or not isinstance(value, Collection) or getattr(value, "ndim", 1) == 0:
        raise ValueError(f"{argument} must hold collections of names, got {check.quote(value)}")
    return list(value)


def _times(value: Any, count: int) -> list[float] | None:
    """Return the times of `count` rows in seconds, or None without times."""
    if value is None:
        return None
    if isinstance(value, datetime | float | int):
        value = [value] * count
    times = np.asarray(value)
    if times.dtype.kind == "M":
        out = times.astype("datetime64[us]").astype(np.int64) / 1e6
        if np.isnat(times).any():
            raise ValueError("time must be known for every row, got NaT")
    elif times.dtype == object:
        if not all(isinstance(one, datetime) and one.tzinfo is not None for one in times.ravel().tolist()):
            raise ValueError(f"time must be Unix seconds, or datetimes with a time zone, got {check.quote(value)}")
        out = np.array([one.timestamp() for one in times.ravel().tolist()]).reshape(times.shape)
    else:
        out = check.finite("time", check.array("time", times, np.dtype(np.float64), (0, 1)))
    if out.ndim == 0:
        out = np.full(count, out)
    if out.shape != (count,):
        raise ValueError(f"time must have one entry for each row ({count}), got shape {out.shape}")
    seconds: list[float] = out.tolist()
    return seconds


def _rewards(value: Any, count: int) -> list[float] | None:
    """Return the `reward` argument of `learn` as one weight for each of `count` rows, or None if there is none.

    A single number is the weight of every row. Raise ValueError for a number below 0 or above 1,000.
    """
    if value is None:
        return None
    numbers = check.array("reward", value, np.dtype(np.float64), (0, 1))
    numbers = np.full(count, numbers) if numbers.ndim == 0 else numbers
    if numbers.shape != (count,) or not ((numbers >= 0.0) & (numbers <= 1000.0)).all():
        raise ValueError(f"reward must be {count} numbers from 0 to 1,000, got {check.quote(value)}")
    out: list[float] = numbers.tolist()
    return out


def _best(scores: np.ndarray, k: int) -> np.ndarray:
    """Return the indices of the k largest scores above -inf, best first. Equal scores keep their order."""
    k = min(k, len(scores))
    if k < len(scores):
        least = scores[np.argpartition(-scores, k - 1)[:k]].min() if k else np.inf
        places = np.flatnonzero(scores >= least)
    else:
        places = np.arange(len(scores))
    places = places[np.argsort(-scores[places], kind="stable")][:k]
    return places[scores[places] > -np.inf]
