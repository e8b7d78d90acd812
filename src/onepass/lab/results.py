"""Results as flat rows: one per policy and seed, and one per checkpoint of these, each with every parameter.

On disk a row has a column `param_NAME` per parameter, and all parameters as JSON in `params`. In memory `params` is a
dict.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from onepass.lab.errors import ExperimentError
from onepass.lab.figure import Figure, Row

ROWS, CURVES = "results.parquet", "curves.parquet"


@dataclass
class Results:
    """Results of a run or of tuning.

    Parameters
    ----------
    rows : list of dict
        One row per policy and seed. The default is an empty list.
    curves : list of dict
        One row per policy, seed and number of rounds. The default is an empty list.
    interrupted : bool, default False
        True if Ctrl-C came before the end.
    figure : Figure, default None
        Table and picture of the rows.
    """

    rows: list[Row] = field(default_factory=list)
    curves: list[Row] = field(default_factory=list)
    interrupted: bool = False
    figure: Figure | None = field(default=None, compare=False)

    def save(self, folder: Path) -> None:
        """Write rows to `results.parquet` and curves to `curves.parquet` in a folder, over older files of these names.

        Parameters
        ----------
        folder : Path
            Folder for the files; it is created if missing.
        """
        folder.mkdir(parents=True, exist_ok=True)
        write(self.rows, folder / ROWS)
        write(self.curves, folder / CURVES)


def write(rows: Iterable[Row], path: Path) -> None:
    """Write rows as Parquet to `path`, through a temporary file: an interrupted write leaves no partial file."""
    flat = [flatten(row) for row in rows]
    columns = dict.fromkeys(key for row in flat for key in row)
    table = pl.DataFrame([{key: row.get(key) for key in columns} for row in flat], infer_schema_length=None)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    table.write_parquet(partial)
    partial.replace(path)


def flatten(row: Row) -> Row:
    """Return a row of results with one more column `param_NAME` for each parameter, and with `params` as JSON.

    Lists and dictionaries are JSON in their columns, too, because policies may have other types in the same column.
    """
    params = row["params"]
    own = {f"param_{name}": json.dumps(it) if isinstance(it, list | dict) else it for name, it in params.items()}
    return {**row, "params": json.dumps(params), **own}


def read(path: Path) -> list[Row]:
    """Read the rows of a Parquet file that `write` made."""
    if not path.is_file():
        raise ExperimentError(
            f"there is no {path.name} in {path.parent}: 'onepass run' and 'onepass tune' write such files"
        )
    try:
        table = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ExperimentError(f"{path} cannot be read ({error}): run the experiment again") from error
    if "params" not in table.columns:
        raise ExperimentError(f"{path} was not written by onepass: it has no column 'params'")
    plain = table.select(name for name in table.columns if not name.startswith("param_"))
    try:
        return [{**row, "params": json.loads(row["params"])} for row in plain.iter_rows(named=True)]
    except (ValueError, TypeError) as error:
        raise ExperimentError(f"{path} is damaged ({error} in column 'params'): run the experiment again") from error


def json_line(row: Row) -> str:
    """Return a row as one line of JSON; numbers that are not finite become null."""
    return json.dumps({key: _finite_or_none(value) for key, value in row.items()}, allow_nan=False)


def _finite_or_none(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
