"""How results are told: a table and a picture, which every kind of study brings beside its rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:  # matplotlib takes longer to import than a small run to play
    from matplotlib.figure import Figure as Canvas

Picture: TypeAlias = "Canvas"
Row: TypeAlias = dict[str, Any]
Line: TypeAlias = dict[str, str]


def no_note(rows: Sequence[Row]) -> str:
    """Nothing beside the table."""
    return ""


@dataclass(frozen=True)
class Figure:
    """A table and a picture under a name, which the rows carry, so that both can be made again from files.

    lines(rows): the lines of the table, all with the same keys; draw(rows, curves): the picture, see `drawing`;
    note(rows): a text below the table, or nothing. Functions of a module, so that processes can be sent a study.
    """

    name: str
    lines: Callable[[Sequence[Row]], list[Line]]
    draw: Callable[[Sequence[Row], Sequence[Row]], Picture]
    note: Callable[[Sequence[Row]], str] = no_note
