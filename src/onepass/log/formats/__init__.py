"""File formats of other systems: each module reads and writes `onepass.log.Event`.

    dsjson    Decision Service JSON of Vowpal Wabbit and Personalizer: one slot (CB) or several (CCB) a line
    vw        text of Vowpal Wabbit: cb, cb_adf and ccb
    table     CSV with named columns, and frames that have them
    obp       arrays of Open Bandit Pipeline, and files of them

`read(path)` and `write(path, events)` take the format from the file's ending or by its name. Reading streams. A line
that cannot be read is refused with its number, or left out and reported.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from onepass.foundation import check
from onepass.log.formats import dsjson, obp, table, vw
from onepass.log.records import Event

FORMATS: dict[str, ModuleType] = {"dsjson": dsjson, "vw": vw, "csv": table, "obp": obp}
ENDINGS = {".dsjson": "dsjson", ".json": "dsjson", ".vw": "vw", ".txt": "vw", ".dat": "vw",
           ".csv": "csv", ".npz": "obp"}  # fmt: skip

__all__ = ["FORMATS", "dsjson", "format_of", "obp", "read", "table", "vw", "write"]


def format_of(path: str | Path, format: str | None = None) -> ModuleType:
    """Return the module of a file format, by the format's name or by the ending of a file's name before `.gz`.

    Raises ValueError if it is unknown.
    """
    if format is not None:
        return FORMATS[check.choice("format", format, tuple(FORMATS))]
    endings = [end for end in Path(path).suffixes if end != ".gz"]
    if not endings or endings[-1] not in ENDINGS:
        raise ValueError(f"path must end in one of {', '.join(ENDINGS)} where format is None, got {path}")
    return FORMATS[ENDINGS[endings[-1]]]


def read(path: str | Path, format: str | None = None, **options: Any) -> Iterator[Event]:
    """Yield the events of a file.

    Parameters
    ----------
    path : str or Path
        The file, with `.gz` at its end if it is compressed.
    format : str, default None
        "dsjson", "vw", "csv" or "obp". None chooses by the ending of the file's name.
    **options : Any
        Options of the format's own `read`.

    Returns
    -------
    iterator of Event
        The events.

    Raises
    ------
    ValueError
        If a line cannot be read, unless `bad="skip"`.
    """
    return format_of(path, format).read(path, **options)


def write(path: str | Path, events: Iterable[Event], format: str | None = None, **options: Any) -> int:
    """Write events to a file, which appears when it is complete.

    Parameters
    ----------
    path : str or Path
        The file.
    events : iterable of Event
        The events.
    format : str, default None
        Format, as in `read`.
    **options : Any
        Options of the format's own `write`.

    Returns
    -------
    int
        Number of events.
    """
    return format_of(path, format).write(path, events, **options)
