"""A folder of results: Parquet files, the table and the picture that are made from them, and can be made again."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from onepass.lab.best import TUNING
from onepass.lab.drawing import save, save_panels
from onepass.lab.errors import ExperimentError
from onepass.lab.figure import Figure
from onepass.lab.results import CURVES, ROWS, Results, read, write
from onepass.lab.suites import SUITES
from onepass.lab.tables import table
from onepass.lab.tuning import FILE

PICTURE, TABLE, PAPER = "figure.png", "table.md", "figure.pdf"


def publish(results: Results, folder: Path, keeper: Callable[[Results, Path], str], stream: TextIO) -> None:
    """Keep the results by `keeper`, print the table to `stream`, and say on standard error where everything is."""
    if results.interrupted:
        done = f"what is done is kept ({len(results.rows):,} rows)" if results.rows else "nothing was finished"
        print(f"onepass: interrupted; {done}", file=sys.stderr)
    if results.rows:
        print(keeper(results, folder), file=stream)
        names = sorted(path.name for path in folder.iterdir() if path.is_file())
        print(f"written to {folder}: {', '.join(names)}", file=sys.stderr)


def keep(results: Results, folder: Path) -> str:
    """Write results.parquet, curves.parquet, the table and the picture into the folder; returns the table."""
    write(results.rows, folder / ROWS)
    write(results.curves, folder / CURVES)
    return rebuild(folder, ROWS, results.figure)


def keep_tuning(results: Results, folder: Path) -> str:
    """Write tuned.parquet, the table of best parameters and the picture into the folder; returns the table."""
    write(results.rows, folder / FILE)
    return rebuild(folder, FILE, TUNING)


def rebuild(folder: Path, file: str = "", figure: Figure | None = None, paper: bool = False) -> str:
    """Make the table and the picture of a folder again, from its Parquet files; returns the table.

    figure: None is the one that the rows name, of the experiments that onepass has. paper: also figure.pdf, and each
    panel without the title in a PDF of its own, figure-PANEL.pdf.
    """
    if not file:
        file = next((name for name in (ROWS, FILE) if (folder / name).is_file()), ROWS)
    rows = read(folder / file)
    if not rows:
        raise ExperimentError(f"{folder / file} has no rows: run the experiment again")
    curves = read(folder / CURVES) if file == ROWS else []
    figure = figure or named(rows[0]["figure"], folder)
    text = table(figure, rows)
    (folder / TABLE).write_text(text + "\n", encoding="utf-8")
    save(figure, rows, curves, folder / PICTURE)
    if paper:
        save(figure, rows, curves, folder / PAPER)
        save_panels(figure, rows, curves, folder / Path(PAPER).stem)
    return text


def figures() -> dict[str, Figure]:
    """Tuning's figure, and those of all experiments, by name."""
    return {figure.name: figure for figure in (TUNING, *(suite.figure for suite in SUITES))}


def named(name: str, folder: Path) -> Figure:
    """The figure of that name; a file says a name and nothing else: no code is looked for by it."""
    known = figures()
    if name not in known:
        raise ExperimentError(f"the figure '{name}' of {folder} is not one of onepass: say --figure MODULE:NAME")
    return known[name]
