"""Parallel learning of files: each worker learns its own rows, and the models are merged in a tree.

The merged model has the matrix and the moment

    A = reg I + sum over workers of (A_worker - reg I),    b = sum of b_worker         (docs/merging.md: what is merged)

With exact designs the result equals the model of one pass, up to rounding. With Frequent Directions the certificates of
the workers add and hold.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onepass.cluster.task_pool import make_pool, merge_tree
from onepass.design.design import Design
from onepass.foundation import check
from onepass.foundation.merge import merge_all

BATCH = 10_000  # rows that are read and learned together
PARTS_PER_WORKER = 4  # a worker that finishes early takes another part
MIN_PART_ROWS = 10_000  # to learn fewer rows costs less than another merge; parts are smaller if workers had none


class Columns(NamedTuple):
    """Names of the columns of a file.

    Parameters
    ----------
    features : one column of lists, or several columns of numbers.
    reward : column of rewards, None for designs.
    arm : column of arms' names, None without names.
    """

    features: tuple[str, ...]
    reward: str | None
    arm: str | None


class Part(NamedTuple):
    """Range of rows of the file `path`, from row `start` to row `stop` - 1."""

    path: str
    start: int
    stop: int


def fit(
    files: Any,
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
    """Learn Parquet files, or a data set of Ray, with several workers, and merge their models into one.

    Each worker reads its own rows, also if all rows are in one file. A task of a lost Ray worker is done again.

    Parameters
    ----------
    files : path, sequence of paths, or ray.data.Dataset
        Parquet files. A folder stands for its files ending in .parquet, in the order of their names.
    recipe : bandit or Design
        Model from which every worker starts with a copy. It must be of a kind that can be merged, and does not change.
        If it has learned rows already, they count once in the result. Such a recipe needs an exact design, because rows
        cannot be subtracted from a sketch.
    features : str or sequence of str, default "features"
        Column of lists, or names of columns of numbers.
    reward : str, default "reward"
        Column of rewards. Designs do not need it.
    arm : str, default None
        Column of arms' names, for models per arm.
    workers : int, default 2
        Number of threads of this process, at least 1. With `ray` it is not used: there is a worker for each core of the
        Ray cluster.
    ray : str, default None
        Address of Ray, or "local" for a Ray of this machine. None runs in threads of this process. Pass it for a data
        set of Ray as well: otherwise threads of this process read the data set.
    batch : int, default 10000
        Number of rows that are learned together, at least 1.
    progress : callable, default None
        Called with the number of rows learned so far, after each task. The rows are divided into tasks, at least one
        for each worker.

    Returns
    -------
    bandit or Design
        A new model of the recipe's class.

    Raises
    ------
    TypeError
        If the recipe is of a kind that cannot be merged. Nothing has been learned then.
    ValueError
        If the recipe cannot be merged, no file is found, a column is missing, or a number is missing.
    ModuleNotFoundError
        If `ray` is given and Ray is missing.
    """
    count, batch = check.integer("workers", workers, 1), check.integer("batch", batch, 1)
    distributed = hasattr(files, "iter_batches")  # a data set of Ray
    paths = [] if distributed else _list_files(files)
    names = (features,) if isinstance(features, str) else tuple(features)
    columns = Columns(names, None if isinstance(recipe, Design) else reward, arm)
    since = recipe.copy() if getattr(recipe, "n_learned", 0) else None
    pool = make_pool(count, ray)
    try:
        parts: list[list[Any]] = (
            [[part] for part in files.split(pool.count)]
            if distributed
            else list(split_rows(count_rows(paths), pool.count))
        )
        if len(parts) > 1:
            merge_all(recipe, recipe, since=since) if since is not None else merge_all(recipe, recipe)
        tasks = [pool.start(_learn_parts, recipe, part, columns, batch) for part in parts]
        rows = 0
        for task in pool.as_completed(tasks):
            rows += pool.result(task)[1]
            if progress is not None:
                progress(rows)
        return merge_tree(pool, tasks, _merge_two if since is None else _merge_two_since)[0]
    finally:
        pool.close()


def _list_files(files: Any) -> list[Path]:
    """Return the paths of `files`, which is one path or several; a folder stands for its files ending in .parquet.

    Raises ValueError if there is none or one is missing.
    """
    single = isinstance(files, str | Path)
    if single and Path(files).is_dir():
        found = sorted(Path(files).glob("*.parquet"))
    else:
        found = [Path(files)] if single else [Path(one) for one in files]
    missing = [path for path in found if not path.is_file()]
    if missing or not found:
        what = "none" if not found else check.quote_path(missing[0])
        raise ValueError(f"files must be Parquet files, or a folder of them, got {what}")
    return found


def count_rows(paths: Sequence[Path]) -> list[Part]:
    """Return each file of `paths` as one `Part` with all rows, whose number is read from the end of the file."""
    import polars as pl

    return [Part(str(path), 0, pl.scan_parquet(path).select(pl.len()).collect().item()) for path in paths]


def split_rows(whole: Sequence[Part], workers: int) -> Iterator[list[Part]]:
    """Divide the rows of the files `whole` into tasks of equal length; yield each task as a list of parts, in order.

    There are at least as many tasks as `workers`, if there are as many rows.
    """
    total = sum(part.stop for part in whole)
    count = max(1, min(total, max(workers, min(PARTS_PER_WORKER * workers, total // MIN_PART_ROWS))))
    for a, b in pairwise(np.linspace(0, total, count + 1).astype(int).tolist()):
        mine, offset = [], 0
        for path, _, rows in whole:
            start, stop = max(a - offset, 0), min(b - offset, rows)
            if start < stop or not total:
                mine.append(Part(path, start, stop))
            offset += rows
        yield mine


def _learn_parts(recipe: Any, parts: list[Any], columns: Columns, batch: int) -> tuple[Any, int, Any]:
    """Learn the rows of the `parts` with a copy of `recipe`, `batch` rows at a time.

    Returns the model, the number of rows, and the recipe. `columns` names the columns that are read.
    """
    model, rows = recipe.copy(), 0
    for x, rewards, names in (block for part in parts for block in read_blocks(part, columns, batch)):
        if rewards is None:
            model.append(x)
        elif names is None:
            model.learn(x, rewards)
        else:
            model.learn(x, rewards, names)
        rows += len(x)
    return model, rows, recipe


def _merge_two(one: tuple[Any, int, Any], other: tuple[Any, int, Any]) -> tuple[Any, int, Any]:
    """Merge two results of `_learn_parts`, each (model, number of rows, recipe), into one."""
    return merge_all(one[0], other[0]), one[1] + other[1], one[2]


def _merge_two_since(one: tuple[Any, int, Any], other: tuple[Any, int, Any]) -> tuple[Any, int, Any]:
    """Merge two results of `_learn_parts`, each (model, number of rows, recipe), whose recipe had learned rows.

    The recipe's rows count once in the merged model.
    """
    return merge_all(one[0], other[0], since=one[2]), one[1] + other[1], one[2]


Block = tuple[np.ndarray, np.ndarray | None, Any]  # contexts, rewards, names of arms


def read_blocks(part: Any, columns: Columns, batch: int) -> Iterator[Block]:
    """Yield the rows of a part in order, as blocks (contexts, rewards, names of arms) of up to `batch` rows.

    `part` is a `Part` of a file, or one split of a Ray data set. Rewards or names are None if `columns` names none.
    Raises ValueError if a column or a number is missing.
    """
    wanted = [*columns.features, *(name for name in (columns.reward, columns.arm) if name is not None)]
    return (
        _read_parquet(part, columns, wanted, batch)
        if isinstance(part, Part)
        else _read_ray_batches(part, columns, wanted, batch)
    )


def _read_parquet(part: Part, columns: Columns, wanted: list[str], batch: int) -> Iterator[Block]:
    """Yield the `wanted` columns of a part of a Parquet file in blocks of up to `batch` rows.

    A block has contexts, rewards and names of arms; `columns` tells which column holds which. Columns of lists are one
    array in memory, which is not copied.
    """
    import polars as pl

    table = pl.scan_parquet(part.path)
    _check_columns(wanted, table.collect_schema().names(), check.quote_path(part.path))
    for start in range(part.start, part.stop, batch):
        block = table.select(wanted).slice(start, min(batch, part.stop - start)).collect()
        if any(block[name].null_count() for name in wanted):
            raise ValueError(
                f"files must have no missing values, but {check.quote_path(part.path)} has, after row {start}"
            )
        first = block[columns.features[0]]
        if isinstance(first.dtype, pl.List):
            if first.list.len().n_unique() > 1:
                raise ValueError(f"files must have lists of one length, {check.quote_path(part.path)} has several")
            x = first.explode().to_numpy().reshape(len(block), -1)
        else:
            x = first.to_numpy() if isinstance(first.dtype, pl.Array) else block.select(columns.features).to_numpy()
        rewards = None if columns.reward is None else block[columns.reward].to_numpy()
        yield np.ascontiguousarray(x), rewards, None if columns.arm is None else block[columns.arm].to_list()


def _read_ray_batches(part: Any, columns: Columns, wanted: list[str], batch: int) -> Iterator[Block]:
    """Yield the `wanted` columns of `part`, one split of a Ray data set, in blocks of up to `batch` rows.

    A block has contexts, rewards and names of arms; `columns` tells which column holds which.
    """
    for block in part.iter_batches(batch_size=batch, batch_format="numpy"):
        _check_columns(wanted, list(block), "the data set")
        x = [np.stack(list(block[name])) if block[name].dtype == object else block[name] for name in columns.features]
        rewards = None if columns.reward is None else block[columns.reward]
        names = None if columns.arm is None else block[columns.arm].tolist()
        yield np.ascontiguousarray(x[0] if len(x) == 1 and x[0].ndim > 1 else np.column_stack(x)), rewards, names


def _check_columns(wanted: list[str], available: list[str], source: str) -> None:
    """Raise ValueError if one of the `wanted` columns is not among the `available` ones.

    `source` names the file or data set in the message.
    """
    missing = [name for name in wanted if name not in available]
    if missing:
        raise ValueError(f"files must have the columns {', '.join(wanted)}, but {source} has no {missing[0]}")
