"""Tables and pictures of worlds with a state: one panel for each kind of noise."""

from collections.abc import Sequence
from functools import partial
from statistics import median

import numpy as np

from onepass.lab.drawing import canvas, plot_curves, set_title
from onepass.lab.figure import Figure, Line, Picture, Row
from onepass.lab.line_styles import assign_styles
from onepass.lab.tables import group_rows, mean_cell, size_columns


def _quantiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the 10% quantile, the median and the 90% quantile of values; few seeds would decide a mean."""
    low, high = np.quantile(values, (0.1, 0.9))
    return float(low), median(values), float(high)


def _lines(rows: Sequence[Row], value: str, name: str, digits: str) -> list[Line]:
    """Return one line per noise and policy with the median and the 90% quantile of column `value` over seeds.

    `rows` are the results of a run, as dictionaries. `name` is the heading of the columns, and `digits` the format of
    numbers.
    """
    return [
        {
            "noise": noise,
            "policy": policy,
            f"{name}, median": format(median(row[value] for row in own), digits),
            "90% quantile": format(float(np.quantile([row[value] for row in own], 0.9)), digits),
            "µs a round": mean_cell(own, "microseconds_per_round", ",.0f"),
            **size_columns(own),
        }
        for (noise, policy), own in group_rows(rows, lambda row: (row["noise"], row["policy"])).items()
    ]


def _draw(rows: Sequence[Row], curves: Sequence[Row], value: str, name: str, unit: str, floor: float) -> Picture:
    """Draw the median of column `value` over rounds, with the band from the 10% to the 90% quantile of the seeds.

    `rows` are the results at the end of a run, and `curves` the results over rounds, as dictionaries. `name` labels the
    axis of values, which begins at `floor`, and `unit` labels that of rounds.
    """
    panels = group_rows(curves, lambda row: row["noise"])
    figure = canvas(8.5, 0.6 + 2.6 * len(panels))
    styles = assign_styles(rows, "policy")
    for axes, (noise, own) in zip(figure.subplots(len(panels), 1, squeeze=False)[:, 0], panels.items()):
        axes.set_label(noise)
        plot_curves(axes, own, value, styles, band=_quantiles)
        axes.set(title=noise, ylabel=name, xlim=(0, max(row["round"] for row in own)))
        late = [row[value] for row in own if row["round"] >= 0.1 * axes.get_xlim()[1]]
        axes.set_ylim(floor, 1.05 * float(np.quantile(late, 0.95)) if max(late) > floor else None)
    axes.set_xlabel(unit)
    set_title(figure, rows, f"{name}, median and 10% to 90%")
    return figure


def make_figure(name: str, value: str, what: str, unit: str, digits: str) -> Figure:
    """Return the figure of one measured value.

    Parameters
    ----------
    name : str
        Name of the figure.
    value : str
        Column that is shown.
    what : str
        The value in words.
    unit : str
        Name of a round.
    digits : str
        Format of the value.

    Returns
    -------
    Figure
        Table and picture.
    """
    return Figure(
        name,
        partial(_lines, value=value, name=what, digits=digits),
        partial(_draw, value=value, name=what, unit=unit, floor=0.0),
    )
