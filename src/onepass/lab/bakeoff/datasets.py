"""Multi-class data sets as bandits: one row per round, one arm per class, reward 1 for the right class, else 0.

Rows stay in their units. A text column becomes a 0/1 column per word; a missing number becomes the median of its
column. The seed draws the order of rounds, except for sets ordered in time.
"""

import lzma
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from onepass.lab.datasets import Dataset, Examples, Form, Source, find_files, load, make_dataset
from onepass.lab.errors import ExperimentError

MISSING = ("?", "")


def _numeric_columns(values: list[str]) -> np.ndarray:
    """Convert the n texts of a column to numbers (n, 1), or to one 0/1 column per word (n, words) if one is no number.

    Missing numbers become the median.
    """
    try:
        found = np.array([np.nan if value in MISSING else float(value) for value in values])
    except ValueError:
        return (np.array(values)[:, None] == np.unique(values)[None, :]).astype(np.float64)
    return np.where(np.isnan(found), np.nanmedian(found), found)[:, None]


def read_columns(columns: list[list[str]]) -> np.ndarray:
    """Convert the columns of a table, given as lists of texts, to an array (rows, features).

    Columns of numbers stay one feature, and missing numbers become the median. Other columns become one 0/1 feature per
    word.
    """
    return np.hstack([_numeric_columns(column) for column in columns])


def read_table(paths: list[Path]) -> Examples:
    """Read an xz-compressed table with words and numbers separated by commas, and the class in the last column.

    The first line is a header. Returns features (rows, features) and classes (rows,). `paths` holds the path of the
    file.
    """
    lines = lzma.decompress(paths[0].read_bytes()).decode().splitlines()[1:]
    table = [[cell.strip().strip("'\"") for cell in line.split(",")] for line in lines if line]
    *rows, labels = zip(*table, strict=True)
    return read_columns([list(column) for column in rows]), np.array(labels)


TABLES = (
    "abalone", "bank-marketing", "banknote-authentication", "cardiotocography", "eeg-eye-state", "electricity", "jm1",
    "kr-vs-kp", "nursery", "one-hundred-plants-shape", "page-blocks", "phoneme", "qsar-biodeg", "segment", "semeion",
    "steel-plates-fault", "vehicle", "waveform-5000",
)  # fmt: skip
BUNDLED = ("breast_cancer", "iris", "wine")  # scikit-learn carries these sets
LOADED = ("digits", "mnist", "optdigits", "cnae-9", "mfeat-zernike", "spambase", "german", "svmguide3", "ijcnn1")
ORDERED = ("eeg-eye-state", "electricity")  # rows are ordered in time

ROUNDS = 10_000  # of a generated set


def _linear_labels(rng: np.random.Generator, rows: np.ndarray, weights: np.ndarray, noise: float) -> np.ndarray:
    """Return the class (n,) of every row: the class a with the largest x^T w_a + Gaussian noise.

    `rows` is (n, d), and `weights` (d, classes) has one column w_a per class. `noise` is the standard deviation of the
    noise, relative to that of all values x^T w_a.
    """
    scores = rows @ weights
    return np.argmax(scores + noise * scores.std() * rng.standard_normal(scores.shape), axis=1)


def _irrelevant_features(rng: np.random.Generator) -> Examples:
    """Generate five classes that depend on 8 of 100 features."""
    rows = rng.standard_normal((ROUNDS, 100))
    return rows, _linear_labels(rng, rows[:, :8], rng.standard_normal((8, 5)), 0.2)


def _imbalanced_classes(rng: np.random.Generator) -> Examples:
    """Generate six classes as Gaussian clouds in 12 dimensions, with 70% to 1% of the rounds."""
    shares = np.array([0.7, 0.15, 0.08, 0.04, 0.02, 0.01])
    labels = rng.choice(len(shares), ROUNDS, p=shares)
    return 1.2 * rng.standard_normal((len(shares), 12))[labels] + rng.standard_normal((ROUNDS, 12)), labels


def _abrupt_changes(rng: np.random.Generator) -> Examples:
    """Generate five classes linear in 20 features, with new weights after 4,000 and after 8,000 rounds."""
    rows, parts = rng.standard_normal((ROUNDS, 20)), np.split(np.arange(ROUNDS), [4_000, 8_000])
    return rows, np.concatenate([_linear_labels(rng, rows[part], rng.standard_normal((20, 5)), 0.2) for part in parts])


def _rotating_weights(rng: np.random.Generator) -> Examples:
    """Generate four classes linear in 10 features, whose weights rotate by half a circle in 10,000 rounds."""
    rows, (one, other) = rng.standard_normal((ROUNDS, 10)), rng.standard_normal((2, 10, 4))
    angles = np.linspace(0.0, np.pi, ROUNDS)[:, None]
    scores = np.cos(angles) * (rows @ one) + np.sin(angles) * (rows @ other)
    return rows, np.argmax(scores, axis=1)


def _feature_products(rng: np.random.Generator) -> Examples:
    """Generate rows of eight features in four classes, which depend on the signs of two products of features."""
    rows = rng.standard_normal((ROUNDS, 8))
    return rows, 2 * (rows[:, 0] * rows[:, 1] > 0.0) + (rows[:, 2] * rows[:, 3] > 0.0)


def _short_texts(rng: np.random.Generator) -> Examples:
    """Generate texts of 15 words in twenty classes; a row holds the counts of 400 words, of which 96% are zero."""
    labels, common = rng.integers(20, size=ROUNDS), rng.dirichlet(np.full(400, 0.2))
    topics = 0.6 * common + 0.4 * rng.dirichlet(np.full(400, 0.05), size=20)
    return np.array([rng.multinomial(15, topics[label]) for label in labels], np.float64), labels


GENERATED: dict[str, Callable[[np.random.Generator], Examples]] = {
    "generated-irrelevant": _irrelevant_features,
    "generated-imbalanced": _imbalanced_classes,
    "generated-changing": _abrupt_changes,
    "generated-turning": _rotating_weights,
    "generated-crossed": _feature_products,
    "generated-words": _short_texts,
}
SHUFFLED = "electricity-shuffled"  # the rows of electricity in random order, so that the last label says nothing
NAMES = (*LOADED, *BUNDLED, *TABLES, *GENERATED, SHUFFLED)
IN_ORDER = (*ORDERED, "generated-changing", "generated-turning")


@cache
def load_set(name: str) -> Dataset:
    """Return the data set `name`, one of `NAMES`, with its rows in the order of the source.

    Each data set is read once per process. Raises ExperimentError for another name.
    """
    if name in LOADED:
        return load(name)
    if name in GENERATED:
        return make_dataset(name, *GENERATED[name](np.random.default_rng(NAMES.index(name))))
    if name in BUNDLED:
        from sklearn import datasets

        return make_dataset(name, *getattr(datasets, f"load_{name}")(return_X_y=True))
    if name == SHUFFLED:
        ordered = load_set("electricity")
        return Dataset(name, ordered.rows, ordered.labels)
    if name not in TABLES:
        raise ExperimentError(f"there is no set '{name}': choose one of {', '.join(NAMES)}")
    _, paths = find_files(name, Source(0, (), (Form((f"openml/{name}.csv.xz",), read_table),), ()))
    return make_dataset(name, *read_table(paths))


# A set with more than WIDE columns is played for at most FEWER rounds: MNIST's 784 columns would take hours.
WIDE, FEWER = 300, 3_000


def first_rounds(name: str, seed: int, rounds: int) -> Dataset:
    """Return the first `rounds` rows of the data set `name`, after a random permutation that `seed` determines.

    Sets whose order has a meaning are not permuted. Of a set with more than 300 features, at most 3,000 rows are
    returned.
    """
    found = load_set(name)
    rounds = min(rounds, FEWER) if found.rows.shape[1] > WIDE else rounds
    order = np.arange(len(found.rows))
    if name not in IN_ORDER:
        order = np.random.default_rng(seed).permutation(order)
    part = order[:rounds]
    return Dataset(name, found.rows[part], found.labels[part])
