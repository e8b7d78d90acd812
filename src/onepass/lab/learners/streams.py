"""Streams of examples for online learners: `examples(start, count)` gives rows and labels -1 or 1, the same every time.

Source: Wen, Zhang et al. = the paper on FORKS; its table 1 (permuted data sets), tables 2 and 3 (adversarial), D.2
(watch ratios).
"""

from collections.abc import Callable
from functools import cached_property, partial
from typing import NamedTuple, Protocol

import numpy as np

from onepass.lab.datasets import load
from onepass.lab.seeds import stream

TUNING_SHARE = 0.3  # enough that the buffers of FORKS, SkeGD and NOGD fill on the smallest set


class Examples(NamedTuple):
    """rows (n, d) and labels (n,), -1 or 1."""

    rows: np.ndarray
    labels: np.ndarray


class Stream(Protocol):
    """Examples in their order; majority: the label of most of them, known in hindsight."""

    @property
    def majority(self) -> float: ...

    def examples(self, start: int, count: int) -> Examples:
        """Examples start .. start + count - 1."""
        ...

    def evaluation_mask(self, start: int, count: int) -> np.ndarray:
        """Whether mistakes on these examples count, (count,): not on those that parameters were chosen on."""
        ...


class InMemoryStream:
    """A stream that is in memory as a whole; what is asked beyond its end begins anew. counts: all unless told."""

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
    """A data set of two classes; standardized: divided by the deviations of the whole set, means taken off."""
    data = load(name)
    rows = (data.rows - data.rows.mean(axis=0)) / data.rows.std(axis=0) if standardized else data.rows
    return Examples(rows, 2.0 * data.labels - 1.0)


def tuning_mask(labels: np.ndarray) -> np.ndarray:
    """Which examples parameters are chosen on, (n,): 30% of either class, always the same ones."""
    rng, chosen = np.random.default_rng(0), np.zeros(len(labels), bool)
    for label in (-1.0, 1.0):
        own = np.flatnonzero(labels == label)
        chosen[rng.permutation(own)[: round(TUNING_SHARE * len(own))]] = True
    return chosen


def random_order_factory(name: str, standardized: bool = True, part: str = "all") -> Callable[[int], Stream]:
    """A data set in an order drawn from the seed.

    part: "all" examples; "evaluated": all, where mistakes count on those alone that are not `for_tuning`; "tuning":
    only those.
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
    """One example repeated in every block, its label flipped in every other block (Wen, Zhang et al. section 5.2, D.3).

    The examples of the blocks are drawn without replacement.
    """
    return partial(_flipped_blocks_stream, name=name, repeats=repeats, blocks=blocks, standardized=standardized)


def _flipped_blocks_stream(seed: int, name: str, repeats: int, blocks: int, standardized: bool) -> Stream:
    rows, labels = load_binary(name, standardized)
    some = stream(seed, 0).permutation(len(rows))[:blocks]
    flips = np.where(np.arange(blocks) % 2 == 1, -1.0, 1.0)
    return InMemoryStream(np.repeat(rows[some], repeats, axis=0), np.repeat(flips * labels[some], repeats))


class WatchRatios:
    """Who watches what for how long: generated in the shape of KuaiRec's dense matrix (Wen, Zhang et al. D.2), with
    drift.

        label = 1 where  watch ratio = exp(u^T M_t v + popularity_t(item) - length(item) / 2 + noise) > 0.75
        row   = (features u of the user, features v of the item, its length, logarithm of its age)

    1,411 users and 3,327 items, as there, both with 8 standard normal features; all user-item pairs are equally likely.
    The preferences M_t turn slowly: after half of `length` examples they are uncorrelated with M_0, at the end they are
    -M_0. An item's popularity fades with age and has a wave of its own, which no feature shows; noise has deviation
    0.5. Examples come in blocks of 5,000, each from its own stream of the seed, in which M and popularity stand still:
    any part can be made alone, in constant memory. KuaiRec itself is not in it: rates are not comparable with Wen,
    Zhang et al.'s.
    """

    USERS, ITEMS, FEATURES, BLOCK = 1_411, 3_327, 8, 5_000

    def __init__(self, seed: int, length: int = 4_500_000) -> None:
        rng, f = stream(seed, 0), self.FEATURES
        self.seed, self.length = seed, length
        self.users, self.items = rng.standard_normal((self.USERS, f)), rng.standard_normal((self.ITEMS, f))
        self.lengths = rng.standard_normal(self.ITEMS)
        self.waves = rng.standard_normal((2, f, f)) / f
        self.released = rng.uniform(-1.0, 0.0, self.ITEMS)  # in lengths of the stream, before it began
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
        """Of ten blocks over the stream."""
        numbers = np.linspace(0, self.length // self.BLOCK - 1, 10).astype(int)
        return 1.0 if sum(self.block(number).labels.sum() for number in numbers) > 0.0 else -1.0
