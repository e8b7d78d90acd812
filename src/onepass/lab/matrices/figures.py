"""Tables and pictures of sketched matrices: errors and bounds along the stream, errors of the inverse over reg."""

from collections.abc import Sequence
from functools import partial
from statistics import fmean

from onepass.lab.drawing import canvas, draw_over_reg, plot_curves, set_title
from onepass.lab.figure import Figure, Line, Picture, Row
from onepass.lab.line_styles import assign_styles
from onepass.lab.tables import cost_and_error_columns, group_rows, lines_over_reg, policy_label


def _error_lines(rows: Sequence[Row]) -> list[Line]:
    """Return one line per design: its spectral error at the end of the stream, and its costs.

    `rows` are the results of a run, as dictionaries.
    """
    return [
        {
            "design": label,
            "spectral error": f"{fmean(row['spectral_error'] for row in own):.3g}",
            **cost_and_error_columns(own),
            "rows": f"{own[0]['rounds']:,}",
            "seeds": str(len(own)),
        }
        for label, own in group_rows(rows, policy_label).items()
    ]


def _draw_error(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Draw the spectral error along the stream, with its certified bound dashed (Wen, Yin et al. figure 4).

    `rows` are the results at the end of a run, and `curves` the results over rounds, as dictionaries.
    """
    figure = canvas(8.5, 5)
    axes = figure.subplots()
    axes.set_label("error")
    styles = assign_styles(rows, "policy")
    plot_curves(axes, curves, "spectral_error", styles)
    known = [row for row in curves if row["error_bound"] != float("inf")]
    plot_curves(axes, known, "error_bound", styles, show_names=False, linestyle=(0, (2, 2)), linewidth=1.2)
    axes.set(title="spectral error; dashed: its certified bound", xlabel="rows")
    axes.set_xlim(0, max(row["round"] for row in curves))
    axes.set_ylim(bottom=0)
    set_title(figure, rows, "error of the sketch and its bound")
    return figure


def _draw_inverse(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Draw the relative error of the inverse against the ridge penalty.

    `rows` are the results of a run, as dictionaries. `curves`, the results over rounds, are not used.
    """
    what = f"error of the inverse after {rows[0]['rounds']:,} rows"
    return draw_over_reg(rows, "inverse_error", "relative error of the inverse, spectral norm", what)


def _draw_ranks(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Draw the relative error of the inverse over the size of the sketch (Shustova et al. figures 5 and 16).

    `rows` are the results of a run, as dictionaries. `curves`, the results over rounds, are not used.
    """
    what = f"error of the inverse after {rows[0]['rounds']:,} rows"
    return draw_over_reg(rows, "inverse_error", "relative error of the inverse, spectral norm", what, "rank", "size")


ERROR = Figure("error", _error_lines, _draw_error)
INVERSE = Figure("inverse", partial(lines_over_reg, value="inverse_error", digits=".2g"), _draw_inverse)
RANKS = Figure(
    "ranks", partial(lines_over_reg, value="inverse_error", digits=".2g", names=("rank", "size")), _draw_ranks
)
INVERSES = (INVERSE.name, RANKS.name)  # figures that need the inverse, but only at the end of the stream
