"""Results are flat rows: one per policy and seed, and one per checkpoint of these, each carrying every parameter.

On disk a row has one column `param_NAME` per parameter beside the JSON text `params`; in memory `params` is a dict.
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
    """rows: one per policy and seed; curves: one per checkpoint of these; interrupted: Ctrl-C came before the end.

    figure: their table and picture.
    """

    rows: list[Row] = field(default_factory=list)
    curves: list[Row] = field(default_factory=list)
    interrupted: bool = False
    figure: Figure | None = field(default=None, compare=False)

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        write(self.rows, folder / ROWS)
        write(self.curves, folder / CURVES)


def write(rows: Iterable[Row], path: Path) -> None:
    """Write rows as Parquet, through a neighbour file so that a broken run never leaves half a file."""
    flat = [flatten(row) for row in rows]
    columns = dict.fromkeys(key for row in flat for key in row)
    table = pl.DataFrame([{key: row.get(key) for key in columns} for row in flat], infer_schema_length=None)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    table.write_parquet(partial)
    partial.replace(path)


def flatten(row: Row) -> Row:
    params = row["params"]
    return {**row, "params": json.dumps(params), **{f"param_{name}": value for name, value in params.items()}}


def read(path: Path) -> list[Row]:
    """The rows of a Parquet file that `write` made."""
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
    return [{**row, "params": json.loads(row["params"])} for row in plain.iter_rows(named=True)]


def json_line(row: Row) -> str:
    """One row as one line of valid JSON: what is not finite becomes null."""
    return json.dumps({key: finite(value) for key, value in row.items()}, allow_nan=False)


def finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
