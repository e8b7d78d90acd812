"""KuaiRec's fully observed matrix as a stream of watch ratios, in the order of time (Wen, Zhang et al. D.2).

    label = 1 where watch_ratio > 0.75, else -1
    row   = (the user's columns, the columns of the video on that day), standardized over the tables; text as numbers
            of its sorted values

Rows of the matrix without a time are left out, as in Wen, Zhang et al., who count 4,494,578 that have one. Which
columns they take, they do not say: here all columns of `user_features.csv` and of `item_daily_features.csv`.
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
    """Columns of users (U, f) and of videos by day (V, g), and for every event its places in them and its label."""

    users: np.ndarray
    videos: np.ndarray
    user: np.ndarray
    video: np.ndarray
    labels: np.ndarray


class KuaiRec:
    """Stream of KuaiRec's small matrix in the order of time; every seed is the same stream.

    Parameters
    ----------
    seed : int
        Seed, which nothing depends on.
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
    """Read the three tables and join them."""
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
    """Return the columns of a table as numbers of mean 0 and deviation 1; text by the place among its sorted values."""
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
