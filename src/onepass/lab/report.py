"""Folders of results: Parquet files, and the table and picture that are made from them."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from onepass.lab.drawing import save, save_panels
from onepass.lab.errors import ExperimentError
from onepass.lab.figure import Figure, Row
from onepass.lab.grid_best import TUNING
from onepass.lab.results import CURVES, ROWS, Results, read, write
from onepass.lab.suites import SUITES
from onepass.lab.tables import format_table
from onepass.lab.tuning import TUNED_FILE

PICTURE, TABLE, PAPER = "figure.png", "table.md", "figure.pdf"


def publish(results: Results, folder: Path, keeper: Callable[[Results, Path], str], stream: TextIO) -> None:
    """Save results in a folder, print their table to `stream`, and print the names of the files to standard error.

    `keeper(results, folder)` writes the files and returns the table; it is `keep` or `keep_tuning`.
    """
    if results.interrupted:
        done = f"what is done is kept ({len(results.rows):,} rows)" if results.rows else "nothing was finished"
        print(f"onepass: interrupted; {done}", file=sys.stderr)
    if results.rows:
        print(keeper(results, folder), file=stream)
        names = sorted(path.name for path in folder.iterdir() if path.is_file())
        print(f"written to {folder}: {', '.join(names)}", file=sys.stderr)


def keep(results: Results, folder: Path) -> str:
    """Write results.parquet, curves.parquet, the table and the picture into a folder.

    Parameters
    ----------
    results : Results
        Rows and curves of a run.
    folder : Path
        Folder for the files; it is created if missing.

    Returns
    -------
    str
        The table as Markdown.
    """
    write(results.rows, folder / ROWS)
    write(results.curves, folder / CURVES)
    return rebuild(folder, ROWS, results.figure)


def keep_tuning(results: Results, folder: Path) -> str:
    """Write tuned.parquet, the table of best parameters and the picture into a folder.

    Parameters
    ----------
    results : Results
        Rows of `tune`.
    folder : Path
        Folder for the files; it is created if missing.

    Returns
    -------
    str
        The table as Markdown.
    """
    write(results.rows, folder / TUNED_FILE)
    return rebuild(folder, TUNED_FILE, TUNING)


def rebuild(
    folder: Path, file: str = "", figure: Figure | None = None, paper: bool = False, beside: Sequence[Path] = ()
) -> str:
    """Make the table and the picture again from the Parquet files of a folder, and return the table.

    `file` is the name of the file of rows; an empty string takes the one that a run or `tune` writes. None as `figure`
    takes the figure that the rows name. If `paper` is True, figure.pdf is also written, and each panel without the
    title as figure-PANEL.pdf. Rows of the folders `beside` are added if their policy and seed are new.
    """
    if not file:
        file = next((name for name in (ROWS, TUNED_FILE) if (folder / name).is_file()), ROWS)
    rows = read(folder / file)
    if not rows:
        raise ExperimentError(f"{folder / file} has no rows: run the experiment again")
    curves = read(folder / CURVES) if file == ROWS else []
    for other in beside:
        rows, curves = _add_rows(rows, read(other / file)), _add_rows(curves, read(other / CURVES))
    figure = figure or _figure_by_name(rows[0].get("figure", ""), folder)
    text = format_table(figure, rows)
    (folder / TABLE).write_text(text + "\n", encoding="utf-8")
    save(figure, rows, curves, folder / PICTURE)
    if paper:
        save(figure, rows, curves, folder / PAPER)
        save_panels(figure, rows, curves, folder / Path(PAPER).stem)
    return text


def _add_rows(rows: list[Row], others: Sequence[Row]) -> list[Row]:
    """Return `rows`, followed by the rows in `others` whose pair of policy and seed is not in `rows`."""
    known = {(row["policy"], row["seed"]) for row in rows}
    return [*rows, *(row for row in others if (row["policy"], row["seed"]) not in known)]


def figures() -> dict[str, Figure]:
    """Return the figures (tables and pictures) of tuning and of all experiments, by name."""
    return {figure.name: figure for figure in (TUNING, *(suite.figure for suite in SUITES))}


def _figure_by_name(name: str, folder: Path) -> Figure:
    """Return the figure of this name; raise ExperimentError, which names `folder`, if onepass has none.

    Names in files never load code.
    """
    known = figures()
    if name not in known:
        raise ExperimentError(f"the figure '{name}' of {folder} is not one of onepass: say --figure MODULE:NAME")
    return known[name]
