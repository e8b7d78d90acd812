"""Colours and dashes of policies: the colour-blind-safe palette of Okabe and Ito.

No two policies share colour and dashes. Pictures are drawn to be read at half their size: no letter is smaller than
SMALL points, no picture wider than WIDEST inches.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from onepass.lab.figure import Row
from onepass.lab.tables import group_label, group_rows

BLACK, ORANGE, SKY, GREEN, BLUE, RED, PINK, GREY = (
    "#222222", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "#888888",
)  # fmt: skip
STYLES = {
    "OFUL": (BLACK, "-"),
    "LinUCB": (BLACK, "-"),
    "LinUCB row by row": (BLACK, "--"),
    "Popularity": (GREY, "-"),
    "Random": (GREY, (0, (1, 1.2))),
    "LinTS": (GREY, "--"),
    "SOFUL": (ORANGE, "-"),
    "SOFUL-TS": (ORANGE, "--"),
    "CBSCFD": (RED, "-"),
    "CBRAP": (PINK, "-"),
    "DBSLinUCB": (BLUE, "-"),
    "DBSLinUCB-RFD": (SKY, "-"),
    "PSILinUCB": (GREEN, "-"),
    "PSILinUCB-C": (GREEN, "--"),
    "HvtUCB": (BLUE, "-"),
    "HeavyOFUL": (ORANGE, "-"),
    "CRTM": (RED, "-"),
    "CRMM": (GREEN, "-"),
    "MENU": (PINK, "-"),
    "TOFU": (SKY, "-"),
    "GPUCB": (BLACK, "-"),
    "exact GP": (BLACK, "-"),
    "GP-TS": (ORANGE, "-"),
    "BKB": (BLUE, "-"),
    "BKB every round": (SKY, "-"),
    "onepass": (BLUE, "-"),
    "TPE": (ORANGE, "-"),
    "uniform": (GREY, (0, (1, 1.2))),
    "BKB-TS": (PINK, "-"),
    "GPUCB fitted": (RED, "-"),
    "BKB fitted": (GREEN, "-"),
    "subset of regressors": (RED, "-"),
    "constant": (GREY, "-"),
    "repeat the last label": (GREY, (0, (1, 1.2))),
    "RBP": (PINK, (0, (1, 1.2))),
    "BPA-S": (PINK, "--"),
    "Projectron": (SKY, "--"),
    "Projectron++": (SKY, (0, (1, 1.2))),
    "BOGD": (PINK, "-"),
    "FOGD": (ORANGE, "-"),
    "NOGD": (SKY, "-"),
    "SkeGD": (ORANGE, "--"),
    "PROS-N-KONS": (RED, "-"),
    "PROS-N-KONS capped at 100": (RED, "--"),
    "PROS-N-KONS without resets": (RED, (0, (1, 1.2))),
    "KOGD": (BLACK, "-"),
    "FORKS": (BLUE, "-"),
    "FORKS 100/50/30": (BLUE, "--"),
    "FORKS 100/100/50": (BLUE, (0, (1, 1.2))),
    "KernelNewton": (GREEN, "-"),
    "KernelNewton Fourier 400": (GREEN, "--"),
    "KernelNewton FD 30": (GREEN, (0, (1, 1.2))),
    "TISVD": (BLUE, "-"),
    "TISVD of FORKS": (GREEN, "-"),
    "full SVD": (BLACK, "-"),
    "randomized SVD": (ORANGE, "-"),
    "HvtUCB FD": (ORANGE, "-"),
    "HvtUCB RFD": (RED, "-"),
    "HvtUCB dyadic FD": (SKY, "-"),
    "HvtUCB dyadic RFD": (PINK, "-"),
    "HvtUCB PSI": (GREEN, "-"),
    "FD": (ORANGE, "-"),
    "FD size=50": (ORANGE, "-"),
    "RFD": (RED, "-"),
    "RFD half": (RED, "--"),
    "PSI": (GREEN, "-"),
    "PSI compensated": (GREEN, "--"),
}
SPARE = (BLUE, ORANGE, GREEN, RED, PINK, SKY, GREY, BLACK)
DASHES = ("-", "--", (0, (1, 1.2)), "-.")
SIZE, SMALL = 11.0, 9.0  # font sizes in points: usual, smallest
WIDEST = 10.0  # inches
RC_PARAMS: Any = {
    "font.size": SIZE,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#666666",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.8,
    "axes.titlesize": SIZE,
    "axes.titlelocation": "left",
    "axes.titlepad": 8.0,
    "lines.linewidth": 1.8,
    "figure.dpi": 150,
    "pdf.fonttype": 42,  # letters stay letters, as journals ask
}


def assign_styles(rows: Sequence[Row], key: str) -> dict[str, dict[str, Any]]:
    """Return a line style for every value of column `key`: the colour shows the group, the dashes the policy's label.

    The result maps values to dictionaries with "color" and "linestyle" for matplotlib. `rows` are the results of a run,
    as dictionaries. No two values share a style. If a style is taken, the next dash pattern of the colour follows, then
    the next colour.
    """
    found: dict[str, dict[str, Any]] = {}
    taken: set[tuple[str, Any]] = set()
    groups = group_rows(rows, group_label)
    known = {STYLES[group][0] for group in groups if group in STYLES}
    spare = iter([color for color in SPARE if color not in known] + [*SPARE] * len(groups))
    for group, own in groups.items():
        color, dash = STYLES.get(group) or (next(spare), "-")
        for name in group_rows(own, lambda row: row[key]):
            look = next((one for one in _alternative_styles(color, dash) if one not in taken), (color, dash))
            taken.add(look)
            found[name] = {"color": look[0], "linestyle": look[1]}
    return found


def _alternative_styles(color: str, dash: Any) -> Iterator[tuple[str, Any]]:
    """Yield styles as pairs (colour, dashes): first the given one, then other dashes of `color`, then other colours."""
    yield color, dash
    yield from product((color, *SPARE), DASHES)
