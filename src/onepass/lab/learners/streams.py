"""Streams of examples for online learners: `examples(start, count)` returns rows, and labels -1 or 1.

Repeated calls return equal examples.

Source: Wen, Zhang et al. = the paper on FORKS; its table 1 (permuted data sets), tables 2 and 3 (adversarial), D.2
(watch ratios).
"""

from collections.abc import Callable
from functools import cached_property, partial
from typing import NamedTuple, Protocol

import numpy as np

from onepass.lab.datasets import load
from onepass.lab.seeds import stream

TUNING_SHARE = 0.3  # of examples: enough to fill the buffers of FORKS, SkeGD and NOGD on the smallest set


class Examples(NamedTuple):
    """Examples of two classes: features `rows` (n, d) and `labels` (n,), each -1 or 1."""

    rows: np.ndarray
    labels: np.ndarray


class Stream(Protocol):
    """Sequence of examples for online learners; `majority` is the more frequent label, -1 or 1."""

    @property
    def majority(self) -> float: ...

    def examples(self, start: int, count: int) -> Examples:
        """Return the examples number start .. start + count - 1."""
        ...

    def evaluation_mask(self, start: int, count: int) -> np.ndarray:
        """Return a Boolean mask (count,) that is True for the examples whose mistakes count.

        The mask is for the examples number start .. start + count - 1. Examples on which parameters were tuned do not
        count.
        """
        ...


class InMemoryStream:
    """Stream of examples in memory, which starts again after its end.

    Parameters
    ----------
    rows : array of shape (n, d)
        Features of the examples.
    labels : array of shape (n,)
        Labels, -1 or 1.
    counts : boolean array of shape (n,), default None
        True for the examples whose mistakes count. None counts all.
    """

    def __init__(self, rows: np.ndarray, labels: np.ndarray, counts: np.ndarray | None = None) -> None:
        self.rows, self.labels = rows, labels
        self.counts = np.ones(len(rows), bool) if counts is None else counts
        self.majority = 1.0 if labels[self.counts].sum() > 0.0 else -1.0

    def examples(self, start: int, count: int) -> Examples:
        places = self.places(start, count)
        return Examples(self.rows[places], self.labels[places])

    def evaluation_mask(self, start: int, count: int) -> np.ndarray:
        return self.counts[self.places(start, count)]

    def places(self, start: int, count: int) -> np.ndarray:
        return np.arange(start, start + count) % len(self.rows)


def load_binary(name: str, standardized: bool) -> Examples:
    """Return the examples of the data set `name`, which has two classes.

    If `standardized` is True, every feature is scaled to mean 0 and standard deviation 1 over the whole set.
    """
    data = load(name)
    rows = (data.rows - data.rows.mean(axis=0)) / data.rows.std(axis=0) if standardized else data.rows
    return Examples(rows, 2.0 * data.labels - 1.0)


def tuning_mask(labels: np.ndarray) -> np.ndarray:
    """Return a Boolean mask (n,) of the examples for tuning: a random 30% of each class, equal in every call.

    `labels` (n,) are the labels of all examples.
    """
    rng, chosen = np.random.default_rng(0), np.zeros(len(labels), bool)
    for label in (-1.0, 1.0):
        own = np.flatnonzero(labels == label)
        chosen[rng.permutation(own)[: round(TUNING_SHARE * len(own))]] = True
    return chosen


def random_order_factory(name: str, standardized: bool = True, part: str = "all") -> Callable[[int], Stream]:
    """Return a function from a seed to a stream of the data set `name` in random order.

    `part` is "all" for all examples, "tuning" for the examples in `tuning_mask`, or "evaluated" for all examples, of
    which only mistakes outside of `tuning_mask` count. If `standardized` is True, features are standardized.
    """
    return partial(_random_order_stream, name=name, standardized=standardized, part=part)


def _random_order_stream(seed: int, name: str, standardized: bool, part: str) -> Stream:
    rows, labels = load_binary(name, standardized)
    apart = np.zeros(len(labels), bool) if part == "all" else tuning_mask(labels)
    if part == "tuning":
        rows, labels, apart = rows[apart], labels[apart], np.zeros(apart.sum(), bool)
    order = stream(seed, 0).permutation(len(rows))
    return InMemoryStream(rows[order], labels[order], ~apart[order])


def flipped_blocks_factory(
    name: str, repeats: int, blocks: int = 500, standardized: bool = False
) -> Callable[[int], Stream]:
    """Return a function from a seed to a stream whose labels change: one example is repeated many times, then the next.

    The stream has `blocks` examples of the data set `name`, drawn without replacement, each repeated `repeats` times.
    Labels of every other example are flipped. If `standardized` is True, features are standardized.

    Source: Wen, Zhang et al. section 5.2, D.3.
    """
    return partial(_flipped_blocks_stream, name=name, repeats=repeats, blocks=blocks, standardized=standardized)


def _flipped_blocks_stream(seed: int, name: str, repeats: int, blocks: int, standardized: bool) -> Stream:
    rows, labels = load_binary(name, standardized)
    some = stream(seed, 0).permutation(len(rows))[:blocks]
    flips = np.where(np.arange(blocks) % 2 == 1, -1.0, 1.0)
    return InMemoryStream(np.repeat(rows[some], repeats, axis=0), np.repeat(flips * labels[some], repeats))


class WatchRatios:
    """Generated watch ratios with drift, in the shape of KuaiRec's dense matrix (Wen, Zhang et al. D.2).

        label = 1 where  watch ratio = exp(u^T M_t v + popularity_t(item) - length(item) / 2 + noise) > 0.75
        row   = (features u of the user, features v of the item, its length, logarithm of its age)

    Like KuaiRec, the stream has 1,411 users and 3,327 items. Both have 8 standard normal features, and all user-item
    pairs are equally likely. The preferences M_t turn slowly: after half of `length` examples they are uncorrelated
    with M_0, and at the end they are -M_0. An item's popularity fades with age, and has a wave of its own that no
    feature shows. The noise has standard deviation 0.5.

    Examples come in blocks of 5,000, each from its own stream of the seed. M and popularity are constant within a
    block, so any part can be made alone, in constant memory. The data are not KuaiRec's, so rates cannot be compared
    with those of Wen, Zhang et al.
    """

    USERS, ITEMS, FEATURES, BLOCK = 1_411, 3_327, 8, 5_000

    def __init__(self, seed: int, length: int = 4_500_000) -> None:
        rng, f = stream(seed, 0), self.FEATURES
        self.seed, self.length = seed, length
        self.users, self.items = rng.standard_normal((self.USERS, f)), rng.standard_normal((self.ITEMS, f))
        self.lengths = rng.standard_normal(self.ITEMS)
        self.waves = rng.standard_normal((2, f, f)) / f
        self.released = rng.uniform(-1.0, 0.0, self.ITEMS)  # release times, before the stream, in lengths of it
        self.phases = rng.uniform(0.0, 2.0 * np.pi, self.ITEMS)

    def block(self, number: int) -> Examples:
        rng, n = stream(self.seed, number + 1), self.BLOCK
        now = number * n / self.length
        preferences = np.cos(np.pi * now) * self.waves[0] + np.sin(np.pi * now) * self.waves[1]
        user, item = rng.integers(self.USERS, size=n), rng.integers(self.ITEMS, size=n)
        u, v, long = self.users[user], self.items[item], self.lengths[item]
        age = np.log1p(100.0 * (now - self.released[item]))
        popularity = 0.5 * np.cos(2.0 * np.pi * now + self.phases[item]) - 0.3 * (age - 3.0)
        noise = 0.5 * rng.standard_normal(n)
        ratio = np.exp(((u @ preferences) * v).sum(axis=1) + popularity - 0.5 * long + noise)
        return Examples(np.column_stack([u, v, long, age]), np.where(ratio > 0.75, 1.0, -1.0))

    def examples(self, start: int, count: int) -> Examples:
        first, last = start // self.BLOCK, (start + count - 1) // self.BLOCK
        blocks = [self.block(number) for number in range(first, last + 1)]
        rows, labels = (np.concatenate(parts) for parts in zip(*blocks))
        offset = start - first * self.BLOCK
        return Examples(rows[offset : offset + count], labels[offset : offset + count])

    def evaluation_mask(self, start: int, count: int) -> np.ndarray:
        return np.ones(count, bool)

    @cached_property
    def majority(self) -> float:
        """Label of most examples in ten blocks spread over the stream."""
        numbers = np.linspace(0, self.length // self.BLOCK - 1, 10).astype(int)
        return 1.0 if sum(self.block(number).labels.sum() for number in numbers) > 0.0 else -1.0
