"""Tables and pictures of sketched matrices: the error along the stream and its bound, the inverse's over reg."""

from collections.abc import Sequence
from functools import partial
from statistics import fmean

from onepass.experiment.drawing import GREY, band, canvas, draw_over_reg, legend, sample, styles, title
from onepass.experiment.figure import Figure, Line, Picture, Row
from onepass.experiment.tables import by, cost, lines_over_reg, policy_of


def error_lines(rows: Sequence[Row]) -> list[Line]:
    """One line per design: its spectral error at the end of the stream, and what it cost."""
    return [
        {
            "design": label,
            "spectral error": f"{fmean(row['spectral_error'] for row in own):.3g}",
            **cost(own),
            "rows": f"{own[0]['rounds']:,}",
            "seeds": str(len(own)),
        }
        for label, own in by(rows, policy_of).items()
    ]


def draw_error(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Spectral error along the stream, dashed its certified bound (Wen, Yin et al. figure 4)."""
    figure = canvas(8.5, 5)
    axes = figure.subplots()
    looks = styles(rows, "policy")
    for label, own in by(curves, policy_of).items():
        band(axes, own, "round", "spectral_error", looks[label], label)
        known = [row for row in own if row["error_bound"] != float("inf")]
        if known:
            band(axes, known, "round", "error_bound", {**looks[label], "linestyle": (0, (2, 2)), "linewidth": 1.2}, "")
    axes.set(xlabel="rows", ylabel="spectral error")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    handles, labels = axes.get_legend_handles_labels()
    dashed = sample(color=GREY, linestyle=(0, (2, 2)), linewidth=1.2)
    legend(figure, [*handles, dashed], [*labels, "certified bound"])
    title(figure, rows, "error of the sketch and its bound")
    return figure


def draw_inverse(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Relative error of the inverse over reg."""
    what = f"error of the inverse after {rows[0]['rounds']:,} rows"
    return draw_over_reg(rows, "inverse_error", "relative error of the inverse, spectral norm", what)


def draw_ranks(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Relative error of the inverse over the size of the sketch (Shustova et al. figures 5 and 16)."""
    what = f"error of the inverse after {rows[0]['rounds']:,} rows"
    return draw_over_reg(rows, "inverse_error", "relative error of the inverse, spectral norm", what, "rank", "size")


ERROR = Figure("error", error_lines, draw_error)
INVERSE = Figure("inverse", partial(lines_over_reg, value="inverse_error", digits=".2g"), draw_inverse)
RANKS = Figure(
    "ranks", partial(lines_over_reg, value="inverse_error", digits=".2g", names=("rank", "size")), draw_ranks
)
INVERSES = (INVERSE.name, RANKS.name)  # figures that need the inverse, at the end of the stream alone
