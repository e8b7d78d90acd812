"""Tables of results as aligned Markdown, readable on a terminal and in a README; functions for their lines."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median, stdev
from textwrap import fill
from typing import Any

import polars as pl

from onepass.lab.definition import Study
from onepass.lab.figure import Figure, Line, Row

WIDTH = 96  # letters in a line of a paragraph on a terminal
WIDEST_TABLE, WIDEST_CELL = 400, 200  # in letters: wider than any table here, so that no table is cut


def format_table(figure: Figure, rows: Sequence[Row]) -> str:
    """Return the table of the results as text, with the note of the figure below it.

    `rows` are the results of a run, as dictionaries.
    """
    text, note = markdown(figure.lines(rows)), figure.note(rows)
    return f"{text}\n\n{note}" if note else text


def markdown(lines: Sequence[Line]) -> str:
    """Return lines (dictionaries with the same keys) as an aligned Markdown table."""
    with pl.Config(
        tbl_formatting="MARKDOWN",
        tbl_hide_column_data_types=True,
        tbl_hide_dataframe_shape=True,
        tbl_cell_alignment="LEFT",
        tbl_rows=-1,
        tbl_cols=-1,
        tbl_width_chars=WIDEST_TABLE,
        fmt_str_lengths=WIDEST_CELL,
    ):
        return str(pl.DataFrame(lines))


def group_rows(rows: Sequence[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    """Return a dictionary from `key(row)` to the list of rows with this key, in the order of first appearance.

    `rows` are results as dictionaries.
    """
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def policy_label(row: Row) -> str:
    return row["policy"]


def group_label(row: Row) -> str:
    return row["group"]


def standard_error(values: Sequence[float]) -> float:
    return stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")


def cost_columns(rows: Sequence[Row]) -> Line:
    """Return two columns of a table line: mean microseconds per round, and mean memory in kB, over rows of results."""
    return {
        "µs a round": f"{fmean(row['microseconds_per_round'] for row in rows):,.1f}",
        "memory, kB": f"{fmean(row['memory_bytes'] for row in rows) / 1000:,.1f}",
    }


def cost_and_error_columns(rows: Sequence[Row]) -> Line:
    """Return the columns of `cost_columns`, and the largest certified error bound over rows of results, or "none"."""
    bound = max(row["error_bound"] for row in rows)
    return {**cost_columns(rows), "error bound": "none" if bound == float("inf") else f"{bound:.3g}"}


def size_columns(rows: Sequence[Row]) -> Line:
    """Return two columns of a table line: the numbers of rounds and of seeds.

    `rows` are the results of one policy, one dictionary for each seed.
    """
    return {"rounds": f"{rows[0]['rounds']:,}", "seeds": str(len(rows))}


def regret_lines(rows: Sequence[Row]) -> list[Line]:
    """Return a table as one line per policy: mean regret, standard error, median and costs.

    `rows` are the results of a run, as dictionaries.
    """
    lines = []
    for label, own in group_rows(rows, policy_label).items():
        regrets = [row["cumulative_regret"] for row in own]
        lines.append(
            {
                "policy": label,
                "mean regret": f"{fmean(regrets):,.1f}",
                "std. error": f"{standard_error(regrets):,.1f}" if len(regrets) > 1 else "",
                "median": f"{median(regrets):,.1f}",
                **cost_and_error_columns(own),
                **size_columns(own),
            }
        )
    return lines


def lines_over_reg(rows: Sequence[Row], value: str, digits: str, names: Sequence[str] = ("reg",)) -> list[Line]:
    """Return a table of the mean of column `value`: one line per group, and one column per ridge penalty.

    `rows` are the results of a run, as dictionaries. `names` are possible names of the parameter that is shown in
    columns, for example "size" or "rank". `digits` is the format of a number.
    """

    def axis_value(row: Row) -> float:
        return next(row["params"][name] for name in names if name in row["params"])

    values = sorted({axis_value(row) for row in rows})
    cells = group_rows(rows, lambda row: (row["group"], axis_value(row)))
    return [
        {"": group, **{f"{names[0]} {at:g}": mean_cell(cells.get((group, at), []), value, digits) for at in values}}
        for group in group_rows(rows, group_label)
    ]


def mean_cell(rows: Sequence[Row], value: str, digits: str) -> str:
    """Return the mean of column `value` as text, over the rows that have a value, or an empty string if none has.

    `rows` are the results of a run, as dictionaries. `digits` is the format of the number, such as ".2f".
    """
    known = [row[value] for row in rows if row[value] is not None]
    return format(fmean(known), digits) if known else ""


def experiment_list(groups: Mapping[str, Sequence[Study]]) -> str:
    """Return a text with one paragraph per experiment and its policies; `groups` maps headings to experiments."""
    return "\n\n".join(
        f"# {group}\n\n" + "\n\n".join(map(_experiment_paragraph, experiments)) for group, experiments in groups.items()
    )


def _experiment_paragraph(experiment: Study) -> str:
    """Describe an experiment: its size, its description and its policies."""
    names = ", ".join(dict.fromkeys(policy.group or policy.label for policy in experiment.policies))
    indent = " " * 4
    policies = fill(
        f"policies: {names}",
        width=WIDTH,
        initial_indent=indent,
        subsequent_indent=2 * indent,
        break_on_hyphens=False,
    )
    return (
        f"{experiment.name}: {experiment.rounds:,} rounds, {experiment.seeds} seeds\n"
        f"{indent}{experiment.description}\n{policies}"
    )


def policy_table(experiment: Study) -> str:
    """Return a table of an experiment's policies with their parameters, as text."""
    return markdown(
        [
            {
                "policy": policy.label,
                "recipe": policy.name,
                "parameters": ", ".join(f"{name}={value}" for name, value in policy.params.items()),
            }
            for policy in experiment.policies
        ]
    )
