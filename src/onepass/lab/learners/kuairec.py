"""KuaiRec's fully observed matrix as a stream of watch ratios in order of time (Wen, Zhang et al. D.2).

The label of an event is 1 if its watch ratio is above 0.75, else -1. Its row has the columns of the user and those of
the video on that day. They are standardized over the tables, and a text is replaced by its place among the sorted
texts.

Events without a time are left out, as in Wen, Zhang et al., who count 4,494,578 that have one. The paper does not say
which columns it uses: here they are all columns of `user_features.csv` and of `item_daily_features.csv`.
"""

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onepass.lab.datasets import Form, Source, find_files, join_paths
from onepass.lab.errors import ExperimentError
from onepass.lab.learners.streams import Examples

THRESHOLD = 0.75
FILES = tuple(f"KuaiRec/data/{name}.csv" for name in ("small_matrix", "user_features", "item_daily_features"))


class Tables(NamedTuple):
    """Tables of KuaiRec, joined.

    Parameters
    ----------
    users : array of shape (U, f)
        Standardized columns of users.
    videos : array of shape (V, g)
        Standardized columns of videos, one row per video and day.
    user : array of shape (n,), int
        Row of `users` that belongs to an event, in the order of time.
    video : array of shape (n,), int
        Row of `videos` that belongs to an event.
    labels : array of shape (n,)
        Label of every event, 1 or -1.
    """

    users: np.ndarray
    videos: np.ndarray
    user: np.ndarray
    video: np.ndarray
    labels: np.ndarray


class KuaiRec:
    """Stream of KuaiRec's small matrix, in which users watch videos, in the order of time.

    The label is 1 if a user watched more than 0.75 of a video's length, else -1. A row has the standardized columns of
    the user and of the video on that day.

    Parameters
    ----------
    seed : int
        Ignored, because the stream is the same for every seed.
    """

    def __init__(self, seed: int) -> None:
        self.tables = load_kuairec()

    def examples(self, start: int, count: int) -> Examples:
        t, places = self.tables, np.arange(start, start + count) % len(self.tables.labels)
        return Examples(np.hstack([t.users[t.user[places]], t.videos[t.video[places]]]), t.labels[places])

    def evaluation_mask(self, start: int, count: int) -> np.ndarray:
        return np.ones(count, bool)

    @property
    def majority(self) -> float:
        return 1.0 if self.tables.labels.sum() > 0.0 else -1.0


def _read_tables(paths: list[Path]) -> Any:
    """Read the tables of events, users and videos from these paths, and join them."""
    import polars as pl

    try:
        events, users, videos = (pl.read_csv(path, infer_schema_length=None) for path in paths)
        events = events.drop_nulls("timestamp").sort("timestamp", maintain_order=True)
        events = events.with_columns(pl.col("date").cast(pl.Float64).cast(pl.Int64))
        videos = videos.with_columns(pl.col("date").cast(pl.Int64))
        user_place = users.select("user_id").with_row_index("user")
        video_place = videos.select("video_id", "date").with_row_index("video")
        joined = events.join(user_place, on="user_id", how="inner", maintain_order="left").join(
            video_place, on=["video_id", "date"], how="inner", maintain_order="left"
        )
    except pl.exceptions.PolarsError as error:
        raise ValueError(str(error)) from error
    return Tables(
        users=_standardize(users.drop("user_id")),
        videos=_standardize(videos.drop("video_id", "date")),
        user=joined["user"].to_numpy(),
        video=joined["video"].to_numpy(),
        labels=np.where(joined["watch_ratio"].to_numpy() > THRESHOLD, 1.0, -1.0),
    )


def _standardize(table: Any) -> np.ndarray:
    """Return the columns of a table as numbers with mean 0 and standard deviation 1.

    A text counts as its place among the sorted texts of its column, and a missing value as 0 before the scaling.
    """
    import polars as pl

    numbers = [pl.col(name).rank("dense") if kind == pl.String else pl.col(name) for name, kind in table.schema.items()]
    columns = table.select(numbers).cast(pl.Float64).fill_null(0.0).fill_nan(0.0).to_numpy()
    spread = columns.std(axis=0)
    return (columns - columns.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)


SOURCE = Source(
    0, (), (Form(FILES, _read_tables),), home="unpack KuaiRec.zip from https://kuairec.com (Zenodo has it as well)"
)


@cache
def load_kuairec() -> Tables:
    """Return the tables of KuaiRec, read once per process.

    Returns
    -------
    Tables
        Columns of users and videos, and the events in the order of time.

    Raises
    ------
    DataNotFound
        If the files are not on this machine; the message says where to get them.
    ExperimentError
        If they cannot be read.
    """
    form, paths = find_files("kuairec", SOURCE)
    try:
        tables: Any = form.read(paths)
    except (ValueError, OSError, EOFError) as error:
        raise ExperimentError(f"{join_paths(tuple(map(str, paths)))} cannot be read ({error}): replace it") from error
    return tables
