"""One model from many files: workers learn their own rows, models are merged in a tree.

    A = reg I + sum over workers of (A_worker - reg I),    b = sum of b_worker         (docs/merging.md: what is merged)

Exact designs: the model of one pass, to rounding. Frequent directions: certificates of the workers add and hold.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onepass.cluster.working import tree, workers_of
from onepass.design.design import Design
from onepass.foundation import check
from onepass.foundation.merged import merged

BATCH = 10_000  # rows that are read and learned together
PARTS = 4  # a worker: who is done early takes another one


class Columns(NamedTuple):
    """Which columns of a file are what: features (one of lists, or several of numbers), reward, arm or None."""

    features: tuple[str, ...]
    reward: str | None
    arm: str | None


def fit(
    files: str | Path | Sequence[str | Path],
    recipe: Any,
    *,
    features: str | Sequence[str] = "features",
    reward: str = "reward",
    arm: str | None = None,
    workers: int = 2,
    ray: str | None = None,
    batch: int = BATCH,
    progress: Callable[[int], object] | None = None,
) -> Any:
    """Learn Parquet files by several workers: one model, as if it had learned them all.

    files: paths, or a folder, whose files ending in .parquet are taken in order of their names.
    recipe: what learns: a bandit or a design that can be merged; what it has learned already is counted once, where
        rows can be taken away again. It does not change.
    features: the column of lists, or the names of columns of numbers (default "features"); reward: a column (default
        "reward"), not asked for by designs; arm: the column of names, for models per arm (default None).
    workers: threads of this process, at least 1 (default 2); with ray the machines there decide.
    ray: None (default): this process; an address, or "local": tasks of Ray, done again where a worker is lost.
    batch: rows that are learned together, at least 1 (default 10,000).
    progress: called with the number of rows learned so far, after each part (default None).
    Returns a new model. TypeError and ValueError, before anything is read, for what cannot be merged; ValueError for
    files without these columns, or with missing numbers.
    """
    count, batch = check.integer("workers", workers, 1), check.integer("batch", batch, 1)
    places = files_of(files)
    names = (features,) if isinstance(features, str) else tuple(features)
    columns = Columns(names, None if isinstance(recipe, Design) else reward, arm)
    since = recipe.copy() if getattr(recipe, "rounds", 0) else None
    if len(places) > 1:
        merged(recipe, recipe, since=since) if since is not None else merged(recipe, recipe)
    cut = np.linspace(0, len(places), min(len(places), PARTS * count) + 1).astype(int)
    crew = workers_of(count, ray)
    try:
        parts = [[str(path) for path in places[a:b]] for a, b in pairwise(cut)]
        tasks = [crew.start(learned, recipe, part, columns, batch) for part in parts]
        rows = 0
        for task in crew.finished(tasks):
            rows += crew.answer(task)[1]
            if progress is not None:
                progress(rows)
        return tree(crew, tasks, together if since is None else beyond)[0]
    finally:
        crew.close()


def files_of(files: Any) -> list[Path]:
    """Paths of files; ValueError where there is none."""
    single = isinstance(files, str | Path)
    if single and Path(files).is_dir():
        found = sorted(Path(files).glob("*.parquet"))
    else:
        found = [Path(files)] if single else [Path(one) for one in files]
    missing = [path for path in found if not path.is_file()]
    if missing or not found:
        what = "none" if not found else check.quoted(missing[0])
        raise ValueError(f"files must be Parquet files, or a folder of them, got {what}")
    return found


def learned(recipe: Any, paths: list[str], columns: Columns, batch: int) -> tuple[Any, int, Any]:
    """A model of the rows of some files, how many these are, and what it began with."""
    model, rows = recipe.copy(), 0
    for x, rewards, names in (block for path in paths for block in blocks_of(path, columns, batch)):
        if rewards is None:
            model.append(x)
        elif names is None:
            model.learn(x, rewards)
        else:
            model.learn(x, rewards, names)
        rows += len(x)
    return model, rows, recipe


def together(one: tuple[Any, int, Any], other: tuple[Any, int, Any]) -> tuple[Any, int, Any]:
    """Two of them as one."""
    return merged(one[0], other[0]), one[1] + other[1], one[2]


def beyond(one: tuple[Any, int, Any], other: tuple[Any, int, Any]) -> tuple[Any, int, Any]:
    """The same of models that have learned beyond what both began with."""
    return merged(one[0], other[0], since=one[2]), one[1] + other[1], one[2]


def blocks_of(path: str, columns: Columns, batch: int) -> Iterator[tuple[np.ndarray, np.ndarray | None, Any]]:
    """Contexts, rewards and names of arms of a file, in its order. ValueError where they are not there."""
    import polars as pl

    wanted = [*columns.features, *(name for name in (columns.reward, columns.arm) if name is not None)]
    table = pl.scan_parquet(path)
    missing = [name for name in wanted if name not in table.collect_schema().names()]
    if missing:
        raise ValueError(
            f"files must have the columns {', '.join(wanted)}, but {check.quoted(path)} has no {missing[0]}"
        )
    start = 0
    while len(block := table.select(wanted).slice(start, batch).collect()):
        if any(block[name].null_count() for name in wanted):
            raise ValueError(f"files must have no missing values, but {check.quoted(path)} has, after row {start}")
        first = block[columns.features[0]]
        if isinstance(first.dtype, pl.List | pl.Array):
            x = np.stack(first.to_list()) if first.dtype == pl.List else first.to_numpy()
        else:
            x = block.select(columns.features).to_numpy()
        rewards = None if columns.reward is None else block[columns.reward].to_numpy()
        yield np.ascontiguousarray(x), rewards, None if columns.arm is None else block[columns.arm].to_list()
        start += batch
