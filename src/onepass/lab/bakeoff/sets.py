"""Multi-class sets as bandits: a row a round, an arm for each class, reward 1 for the right one and 0 for any other.

Rows stay in their units: text columns become a column of 0 and 1 for each word, a missing number the median of its
column. Rounds come in an order that the seed draws, but for sets whose order is time.
"""

import lzma
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from onepass.lab.datasets import Dataset, Examples, Form, Source, find, frozen, load
from onepass.lab.errors import ExperimentError

MISSING = ("?", "")


def columns(values: list[str]) -> np.ndarray:
    """One column of a table as numbers (n, 1), or as a 0 and 1 for each word (n, words)."""
    try:
        found = np.array([np.nan if value in MISSING else float(value) for value in values])
    except ValueError:
        return (np.array(values)[:, None] == np.unique(values)[None, :]).astype(np.float64)
    return np.where(np.isnan(found), np.nanmedian(found), found)[:, None]


def read_table(paths: list[Path]) -> Examples:
    """Comma-separated words and numbers below a header, the class in the last column."""
    lines = lzma.decompress(paths[0].read_bytes()).decode().splitlines()[1:]
    table = [[cell.strip().strip("'\"") for cell in line.split(",")] for line in lines if line]
    *rows, labels = zip(*table, strict=True)
    return np.hstack([columns(list(column)) for column in rows]), np.array(labels)


TABLES = (
    "abalone", "bank-marketing", "banknote-authentication", "cardiotocography", "eeg-eye-state", "electricity", "jm1",
    "kr-vs-kp", "nursery", "one-hundred-plants-shape", "page-blocks", "phoneme", "qsar-biodeg", "segment", "semeion",
    "steel-plates-fault", "vehicle", "waveform-5000",
)  # fmt: skip
BUNDLED = ("breast_cancer", "iris", "wine")  # with scikit-learn, beside digits
LOADED = ("digits", "mnist", "optdigits", "cnae-9", "mfeat-zernike", "spambase", "german", "svmguide3", "ijcnn1")
ORDERED = ("eeg-eye-state", "electricity")  # in time

ROUNDS = 10_000  # of a generated set


def labelled(rng: np.random.Generator, rows: np.ndarray, weights: np.ndarray, noise: float) -> np.ndarray:
    """The class whose score x^T w_a + noise is the largest."""
    scores = rows @ weights
    return np.argmax(scores + noise * scores.std() * rng.standard_normal(scores.shape), axis=1)


def irrelevant(rng: np.random.Generator) -> Examples:
    """Five classes on 8 features, beside 92 that say nothing."""
    rows = rng.standard_normal((ROUNDS, 100))
    return rows, labelled(rng, rows[:, :8], rng.standard_normal((8, 5)), 0.2)


def imbalanced(rng: np.random.Generator) -> Examples:
    """Six classes as Gaussian clouds in 12 dimensions, from 70% to 1% of the rounds."""
    shares = np.array([0.7, 0.15, 0.08, 0.04, 0.02, 0.01])
    labels = rng.choice(len(shares), ROUNDS, p=shares)
    return 1.2 * rng.standard_normal((len(shares), 12))[labels] + rng.standard_normal((ROUNDS, 12)), labels


def changing(rng: np.random.Generator) -> Examples:
    """Five classes linear in 20 features, by other weights after 4,000 rounds and again after 8,000."""
    rows, parts = rng.standard_normal((ROUNDS, 20)), np.split(np.arange(ROUNDS), [4_000, 8_000])
    return rows, np.concatenate([labelled(rng, rows[part], rng.standard_normal((20, 5)), 0.2) for part in parts])


def turning(rng: np.random.Generator) -> Examples:
    """Four classes linear in 10 features, whose weights turn by half a circle within 10,000 rounds."""
    rows, (one, other) = rng.standard_normal((ROUNDS, 10)), rng.standard_normal((2, 10, 4))
    angles = np.linspace(0.0, np.pi, ROUNDS)[:, None]
    scores = np.cos(angles) * (rows @ one) + np.sin(angles) * (rows @ other)
    return rows, np.argmax(scores, axis=1)


def crossed(rng: np.random.Generator) -> Examples:
    """Four classes by the signs of two products of features, beside four features that say nothing."""
    rows = rng.standard_normal((ROUNDS, 8))
    return rows, 2 * (rows[:, 0] * rows[:, 1] > 0.0) + (rows[:, 2] * rows[:, 3] > 0.0)


def words(rng: np.random.Generator) -> Examples:
    """Twenty classes of short texts over 400 words, 15 words each: counts, 96% zeros."""
    labels, common = rng.integers(20, size=ROUNDS), rng.dirichlet(np.full(400, 0.2))
    topics = 0.6 * common + 0.4 * rng.dirichlet(np.full(400, 0.05), size=20)
    return np.array([rng.multinomial(15, topics[label]) for label in labels], np.float64), labels


GENERATED: dict[str, Callable[[np.random.Generator], Examples]] = {
    "generated-irrelevant": irrelevant,
    "generated-imbalanced": imbalanced,
    "generated-changing": changing,
    "generated-turning": turning,
    "generated-crossed": crossed,
    "generated-words": words,
}
NAMES = (*LOADED, *BUNDLED, *TABLES, *GENERATED)
IN_ORDER = (*ORDERED, "generated-changing", "generated-turning")


@cache
def examples(name: str) -> Dataset:
    """The set `name`, one of `NAMES`, in its own order; read once per process."""
    if name in LOADED:
        return load(name)
    if name in GENERATED:
        return frozen(name, *GENERATED[name](np.random.default_rng(NAMES.index(name))))
    if name in BUNDLED:
        from sklearn import datasets

        return frozen(name, *getattr(datasets, f"load_{name}")(return_X_y=True))
    if name not in TABLES:
        raise ExperimentError(f"there is no set '{name}': choose one of {', '.join(NAMES)}")
    _, paths = find(name, Source(0, (), (Form((f"openml/{name}.csv.xz",), read_table),), ()))
    return frozen(name, *read_table(paths))


WIDE, FEWER = 300, 3_000  # sets of more columns are played for fewer rounds: MNIST's 784 would take hours


def played(name: str, seed: int, rounds: int) -> Dataset:
    """The rows and labels of the first `rounds` rounds, at most as many as there are, and fewer of wide rows."""
    found = examples(name)
    rounds = min(rounds, FEWER) if found.rows.shape[1] > WIDE else rounds
    order = np.arange(len(found.rows))
    if name not in IN_ORDER:
        order = np.random.default_rng(seed).permutation(order)
    part = order[:rounds]
    return Dataset(name, found.rows[part], found.labels[part])
