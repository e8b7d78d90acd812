"""Table and picture of results, which every kind of study provides for its rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:  # matplotlib takes longer to import than a small run to play
    from matplotlib.figure import Figure as Canvas

Picture: TypeAlias = "Canvas"
Row: TypeAlias = dict[str, Any]
Line: TypeAlias = dict[str, str]


def _empty_note(rows: Sequence[Row]) -> str:
    """Return an empty note.

    Parameters
    ----------
    rows : sequence of dict
        Rows of results, which are ignored.

    Returns
    -------
    str
        An empty string.
    """
    return ""


@dataclass(frozen=True)
class Figure:
    """Table and picture of a study, looked up by name, so that the files of an earlier run can be drawn again.

    `lines`, `draw` and `note` must be functions of a module, not lambdas, so that a study can be pickled.

    Parameters
    ----------
    name : str
        Name in the column `figure` of the rows.
    lines : callable
        `lines(rows)` returns the lines of the table, all with the same keys.
    draw : callable
        `draw(rows, curves)` returns a matplotlib figure.
    note : callable
        `note(rows)` returns a text below the table, or an empty string. The default returns an empty string.
    """

    name: str
    lines: Callable[[Sequence[Row]], list[Line]]
    draw: Callable[[Sequence[Row], Sequence[Row]], Picture]
    note: Callable[[Sequence[Row]], str] = _empty_note
