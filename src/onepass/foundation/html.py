"""HTML tables for notebooks (`_repr_html_`); all text is escaped."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


def make_html(title: str, head: Sequence[str], rows: Iterable[Sequence[Any]], notes: Iterable[str] = ()) -> str:
    """Return a title, a table and notes as HTML. Numbers are aligned to the right.

    `head` holds the table's column names, and `rows` its rows of values. Each note is a paragraph.
    """
    parts = [f"<p><strong>{escape(title)}</strong></p>"] if title else []
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    if body:
        names = "".join(f"<th>{escape(name)}</th>" for name in head)
        parts.append(f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>")
    parts += [f"<p>{escape(note)}</p>" for note in notes]
    return f'<div class="onepass">{"".join(parts)}</div>'


def _cell(value: Any) -> str:
    """Return one value as an HTML table cell."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        text = f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
        return f'<td style="text-align: right">{text}</td>'
    return f"<td>{escape(str(value))}</td>"
