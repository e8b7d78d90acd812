"""Classification data sets: `load(name)` gives rows (n, d) and labels (n,) from 0 to classes - 1.

This module also finds the files of user-item interactions, which recommender/interactions.py reads.

`digits` comes with scikit-learn. All others are looked for in the folder $ONEPASS_DATA, then in the user's cache, and
are else downloaded from their official homes into that cache. Large ones are not downloaded: an error says where to get
them. MNIST's archives are checked by their published MD5 sums. UCI and LIBSVM publish none, so files are checked by
shape and by the number of examples, of each class where it is published.
Training and test parts are merged (Wen, Yin et al. F.1). Rows stay as in the files: environments normalize them.
"""

import gzip
import lzma
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from onepass.lab.errors import DataNotFound, ExperimentError

MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist/"
AMAZON = "https://datarepo.eng.ucsd.edu/mcauley_group/data/amazon_v2/categoryFilesSmall/"
UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"


@dataclass(frozen=True)
class Dataset:
    """Classification examples, both arrays read-only.

    Parameters
    ----------
    name : str
        Name of the data set.
    rows : array of shape (n, d), float64
        Features of the examples.
    labels : array of shape (n,), int64
        Class of every example, from 0 to classes - 1.
    """

    name: str
    rows: np.ndarray
    labels: np.ndarray

    @classmethod
    def from_arrays(cls, name: str, rows: Any, labels: Any) -> "Dataset":
        """Make a data set from rows and their classes.

        Parameters
        ----------
        name : str
            Name of the data set.
        rows : array-like of shape (n, d)
            Finite features.
        labels : array-like of shape (n,)
            Class of every row; any values that can be sorted.

        Returns
        -------
        Dataset
            A copy with classes numbered in sorted order.

        Raises
        ------
        ExperimentError
            If rows are not finite, shapes do not match, or there are fewer than two classes.
        """
        rows, labels = np.asarray(rows, dtype=np.float64), np.asarray(labels)
        if rows.ndim != 2 or labels.shape != rows.shape[:1]:
            raise ExperimentError(
                f"{name} must have rows (n, d) and one label each, got shapes {rows.shape} and {labels.shape}"
            )
        if not np.isfinite(rows).all():
            raise ExperimentError(f"{name} has rows that are not finite: leave out or fill in what is missing")
        if len(np.unique(labels)) < 2:
            raise ExperimentError(f"{name} must have at least two classes, got {np.unique(labels).tolist()}")
        return make_dataset(name, rows, labels)

    @property
    def classes(self) -> int:
        """Number of classes of the data set."""
        return int(self.labels.max()) + 1


Examples: TypeAlias = tuple[np.ndarray, np.ndarray]  # rows and labels


class Form(NamedTuple):
    """One stored form of a data set: the names of its files in a data folder, and the function that reads them."""

    files: tuple[str, ...]
    read: Callable[[list[Path]], Examples]


class Download(NamedTuple):
    """File of a data set to download from `url` to the path `file` in the user's cache.

    `checksum` is its MD5 sum, or None if the publisher gives none.
    """

    file: str
    url: str
    checksum: str | None = None


class Source(NamedTuple):
    """Description of a data set: its size, its files, and where they come from.

    - dim: number of features, against which files are checked; 0 for no check.
    - counts: number of examples of each class, or only the total number; an empty tuple for no check.
    - forms: stored forms, of which the first one found is read.
    - downloads: files of the last form that are downloaded if no form is found.
    - home: where a user gets the files, if there are no downloads.
    """

    dim: int
    counts: tuple[int, ...]
    forms: tuple[Form, ...]
    downloads: tuple[Download, ...] = ()
    home: str = ""


def _read_idx(paths: list[Path]) -> Examples:
    """Read MNIST's format, and return images (n, 784) and labels (n,).

    `paths` are the gzipped files of images and labels in turn, uint8 after headers of 16 and 8 bytes.
    """
    parts = [np.frombuffer(gzip.decompress(path.read_bytes()), dtype=np.uint8) for path in paths]
    images = np.concatenate([part[16:].reshape(-1, 784) for part in parts[0::2]])
    return images.astype(np.float64), np.concatenate([part[8:] for part in parts[1::2]])


def read_csv(label: int, header: bool) -> Callable[[list[Path]], Examples]:
    """Return a reader of comma-separated numbers with the class in column `label`; .gz and .xz are unpacked.

    If `header` is True, the first line is skipped. The reader returns features (n, d) and classes (n,).
    """

    def read(paths: list[Path]) -> Examples:
        table = np.concatenate([np.loadtxt(path, delimiter=",", skiprows=int(header), ndmin=2) for path in paths])
        return np.delete(table, label, axis=1), table[:, label]

    return read


def _read_svmlight(paths: list[Path], width: int | None = None) -> Examples:
    """Read LIBSVM's format, `label index:value ...`, from the first of `paths`; .gz and .bz2 are unpacked.

    `width` is the number of features; None takes the largest index.
    """
    from sklearn.datasets import load_svmlight_file

    rows, labels = load_svmlight_file(str(paths[0]), n_features=width)
    return rows.toarray(), labels


def _read_cifar(paths: list[Path]) -> Examples:
    """Read the binary form of CIFAR-10 from the files `paths`, and return pictures (n, 3072) and classes (n,).

    An example is a byte of the class and 3,072 bytes of the picture.
    """
    table = np.concatenate([np.frombuffer(path.read_bytes(), dtype=np.uint8) for path in paths]).reshape(-1, 3073)
    return table[:, 1:].astype(np.float64), table[:, 0]


def _read_blocks_of_200(paths: list[Path]) -> Examples:
    """Read the UCI form of mfeat from the first of `paths`, and return features (n, d) and classes (n,).

    The file has numbers separated by spaces, 200 examples of each class in turn.
    """
    rows = np.loadtxt(paths[0], ndmin=2)
    return rows, np.arange(len(rows)) // 200


MNIST_FILES = {
    "mnist/train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "mnist/train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
    "mnist/t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
    "mnist/t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
}
SOURCES = {
    "mnist": Source(
        784,
        (6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958),
        (Form(tuple(MNIST_FILES), _read_idx),),
        tuple(Download(file, MNIST + file[6:], f"md5:{md5}") for file, md5 in MNIST_FILES.items()),
    ),
    "optdigits": Source(
        64,
        (554, 571, 557, 572, 568, 558, 558, 566, 554, 562),
        (
            Form(("openml/optdigits.csv.xz",), read_csv(label=-1, header=True)),
            Form(("uci/optdigits.tra", "uci/optdigits.tes"), read_csv(label=-1, header=False)),
        ),
        (
            Download("uci/optdigits.tra", UCI + "optdigits/optdigits.tra"),
            Download("uci/optdigits.tes", UCI + "optdigits/optdigits.tes"),
        ),
    ),
    "cnae-9": Source(
        856,
        (120,) * 9,
        (
            Form(("openml/CNAE-9.data.xz",), read_csv(label=0, header=False)),
            Form(("uci/CNAE-9.data",), read_csv(label=0, header=False)),
        ),
        (Download("uci/CNAE-9.data", UCI + "00233/CNAE-9.data"),),
    ),
    "mfeat-zernike": Source(
        47,
        (200,) * 10,
        (
            Form(("openml/mfeat-zernike.csv.xz",), read_csv(label=-1, header=True)),
            Form(("uci/mfeat-zer",), _read_blocks_of_200),
        ),
        (Download("uci/mfeat-zer", UCI + "mfeat/mfeat-zer"),),
    ),
    "spambase": Source(
        57,
        (2788, 1813),
        (
            Form(("openml/spambase.csv.xz",), read_csv(label=-1, header=True)),
            Form(("uci/spambase.data",), read_csv(label=-1, header=False)),
        ),
        (Download("uci/spambase.data", UCI + "spambase/spambase.data"),),
    ),
    "german": Source(
        24,
        (700, 300),
        (Form(("libsvm/german.numer.gz",), _read_svmlight), Form(("libsvm/german.numer",), _read_svmlight)),
        (Download("libsvm/german.numer", LIBSVM + "german.numer"),),
    ),
    "svmguide3": Source(
        21,
        (947, 296),
        (
            Form(("libsvm/svmguide3.csv.gz",), read_csv(label=0, header=True)),
            Form(("libsvm/svmguide3",), _read_svmlight),
        ),
        (Download("libsvm/svmguide3", LIBSVM + "svmguide3"),),
    ),
    "ijcnn1": Source(
        22,
        (45_137, 4_853),
        (Form(("libsvm/ijcnn1.bz2",), _read_svmlight),),
        (Download("libsvm/ijcnn1.bz2", LIBSVM + "ijcnn1.bz2"),),
    ),
    "cod-rna": Source(
        8,
        (59_535,),
        (Form(("libsvm/cod-rna",), _read_svmlight),),
        (Download("libsvm/cod-rna", LIBSVM + "cod-rna"),),
    ),
    "w7a": Source(
        300,
        (24_692,),
        (Form(("libsvm/w7a",), partial(_read_svmlight, width=300)),),
        (Download("libsvm/w7a", LIBSVM + "w7a"),),
    ),
    "cifar-10": Source(
        3072,
        (5_000,) * 10,
        (Form(tuple(f"cifar-10-batches-bin/data_batch_{i}.bin" for i in range(1, 6)), _read_cifar),),
        home="unpack the binary version from https://www.cs.toronto.edu/~kriz/cifar.html",
    ),
}
NAMES = ("digits", *SOURCES)


HEADER_2023 = b"user_id,parent_asin,rating,timestamp\n"


def _read_interactions(
    order: str, separator: str, header: bool = False, unit: float = 1.0
) -> Callable[[list[Path]], Examples]:
    """Return a reader of tables with or without a header, and with times in units of `unit` seconds.

    `order` has the names of the columns, "user", "item", "rating" and "time", in the order of the table and separated
    by spaces. `separator` stands between columns. The reader returns rows (n, 4) of user, item, rating and time, and no
    labels. Users and items become indices of their sorted names. .gz and .xz are unpacked.
    """

    def read(paths: list[Path]) -> Examples:
        import polars as pl

        unpack = {".xz": lzma.decompress, ".gz": gzip.decompress}.get(paths[0].suffix, bytes)
        names = order.split()
        try:
            content = unpack(paths[0].read_bytes()).replace(separator.encode(), separator[:1].encode())
            if header and not content.startswith(HEADER_2023):
                raise ValueError(f"its first line is not {HEADER_2023.decode().strip()}")
            table = pl.read_csv(content, has_header=header, separator=separator[:1], new_columns=names)
            places = [(pl.col(name).rank("dense") - 1).cast(float) for name in ("user", "item")]
            numbers = [pl.col("rating").cast(float), pl.col("time").cast(float) * unit]
            return table.select(*places, *numbers).to_numpy(), np.empty(0)
        except pl.exceptions.PolarsError as error:
            raise ValueError(str(error)) from error

    return read


RATINGS = _read_interactions("item user rating time", ",")
MOVIELENS = _read_interactions("user item rating time", "\t")
RATINGS_2023 = _read_interactions("user item rating time", ",", header=True, unit=1e-3)
INTERACTIONS = {  # counts: interactions, users, items
    "magazine": Source(
        4,
        (89_689, 72_098, 2_428),
        (
            Form(("amazon/Magazine_Subscriptions_2018_ratings.csv.xz",), RATINGS),
            Form(("amazon/Magazine_Subscriptions.csv",), RATINGS),
        ),
        (Download("amazon/Magazine_Subscriptions.csv", AMAZON + "Magazine_Subscriptions.csv"),),
    ),
    "movielens-100k": Source(
        4,
        (100_000, 943, 1_682),
        (Form(("movielens-100k/u.data.gz",), MOVIELENS), Form(("movielens-100k/u.data",), MOVIELENS)),
        (Download("movielens-100k/u.data", "https://files.grouplens.org/datasets/movielens/ml-100k/u.data"),),
    ),
    "movielens-1m": Source(
        4,
        (1_000_209, 6_040, 3_706),
        (Form(("ml-1m/ratings.dat",), _read_interactions("user item rating time", "::")),),
        home="unpack ml-1m.zip from https://grouplens.org/datasets/movielens/1m/",
    ),
    **{
        f"{name}-2023": Source(
            4,
            (),
            (Form((f"amazon-2023/{file}.csv.gz",), RATINGS_2023), Form((f"amazon-2023/{file}.csv",), RATINGS_2023)),
            home=f"get the ratings of {file} without filtering (0-core) from https://amazon-reviews-2023.github.io",
        )
        for name, file in (
            ("health", "Health_and_Personal_Care"),
            ("beauty", "All_Beauty"),
            ("magazine", "Magazine_Subscriptions"),
        )
    },
}


@cache
def load(name: str) -> Dataset:
    """Return the data set `name`, one of `onepass.lab.datasets.NAMES`; each is read once per process.

    Parameters
    ----------
    name : str
        Name of the data set.

    Returns
    -------
    Dataset
        Rows as in the files, with read-only arrays.

    Raises
    ------
    ExperimentError
        If the name is unknown or the files are damaged.
    DataNotFound
        If the files are neither on this machine nor can be downloaded.

    Examples
    --------
    >>> load("digits").rows.shape
    (1797, 64)
    """
    if name not in NAMES:
        raise ExperimentError(f"there is no data set '{name}': choose one of {', '.join(NAMES)}")
    if name == "digits":
        from sklearn.datasets import load_digits

        return make_dataset(name, *load_digits(return_X_y=True))
    source = SOURCES[name]
    form, paths = find_files(name, source)
    try:
        rows, labels = form.read(paths)
    except (ValueError, OSError, EOFError, lzma.LZMAError) as error:
        raise ExperimentError(f"{join_paths(paths)} cannot be read ({error}): remove or replace it") from error
    shape, counts = rows.shape, tuple(np.unique(labels, return_counts=True)[1].tolist())
    known = (len(rows),) if len(source.counts) == 1 else counts
    if shape != (sum(source.counts), source.dim) or known != source.counts:
        raise ExperimentError(
            f"{join_paths(paths)} is not {name}: it has shape {shape} and {counts} examples per class "
            f"instead of {(sum(source.counts), source.dim)} and {source.counts}; remove or replace it"
        )
    return make_dataset(name, rows, labels)


def make_dataset(name: str, rows: np.ndarray, labels: np.ndarray) -> Dataset:
    """Return a read-only data set whose classes are numbered 0 .. classes - 1 in the sorted order of `labels`.

    `name` is the data set's name, `rows` (n, d) are the features, and `labels` (n,) are the classes.
    """
    rows = np.array(rows, dtype=np.float64, order="C")  # a copy: the caller's stays writeable
    labels = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    rows.flags.writeable = labels.flags.writeable = False
    return Dataset(name, rows, labels)


def find_files(name: str, source: Source) -> tuple[Form, list[Path]]:
    """Return the first stored form of the data set `name` that is on this machine, and the paths of its files.

    `source` describes the data set. A form is a set of files that holds the data. It is looked for in the folder
    $ONEPASS_DATA and in the user's cache. If no form is there, one is downloaded.
    """
    folders = [Path(os.environ["ONEPASS_DATA"])] if os.environ.get("ONEPASS_DATA") else []
    folders.append(cache_folder())
    for folder in folders:
        for form in source.forms:
            paths = [folder / file for file in form.files]
            if all(path.is_file() for path in paths):
                return form, paths
    return _download(name, source)


def cache_folder() -> Path:
    """Return the path of the user's cache folder of onepass."""
    import pooch

    return Path(pooch.os_cache("onepass"))


def _download(name: str, source: Source) -> tuple[Form, list[Path]]:
    """Download the files of the data set `name` into the user's cache, and return their form and paths.

    The form is the last one of `source`. Raises DataNotFound if there are no downloads or they fail.
    """
    folder = cache_folder()
    files = " or ".join(join_paths(form.files) for form in source.forms)
    if not source.downloads:
        raise DataNotFound(
            f"the data set '{name}' is not on this machine: {source.home}, and put {files} into the folder that the "
            f"environment variable ONEPASS_DATA names, or into {folder}"
        )
    import pooch
    import requests

    fetch = pooch.HTTPDownloader(timeout=20)
    try:
        for file, url, checksum in source.downloads:
            target = folder / file
            pooch.retrieve(url, checksum, fname=target.name, path=target.parent, downloader=fetch)
    except (requests.RequestException, OSError, ValueError) as error:
        raise DataNotFound(
            f"the data set '{name}' is not on this machine and could not be downloaded: get "
            f"{join_paths([one.url for one in source.downloads])}, and put {files} into the folder that the "
            f"environment variable ONEPASS_DATA names, or into {folder}"
        ) from error
    form = source.forms[-1]
    return form, [folder / file for file in form.files]


def join_paths(items: Sequence[Path | str]) -> str:
    return " and ".join(str(item) for item in items)
