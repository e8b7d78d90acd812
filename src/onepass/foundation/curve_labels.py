"""Labels at the right ends of curves, in place of a legend.

Labels that would overlap are moved apart, and a thin line connects each to its curve. Their positions minimize the sum
of squared moves, subject to a distance of at least (h + h') / 2 between neighbours of heights h and h', inside the
panel if there is room. After subtracting the heights below each label, that is isotonic regression. The caller imports
matplotlib.
"""

from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

APART = 1.08  # of a label's height, from one to the next
AWAY = 0.02  # of the panel's width, from the curves to their names
LINE = 0.7  # points: of what leads from a name to its curve
READABLE = 4.5  # contrast of words on white (WCAG 2, level AA)
DARKER = 0.95  # a step
ENDS = "end of a curve"


def label_curve(axes: Any, text: str, point: tuple[float, float], color: str, away: float = AWAY, **look: Any) -> None:
    """Write `text` to the right of the panel `axes`, for the curve of this colour whose last point is `point`.

    `away` is the distance from the panel as a fraction of its width. `look` holds further arguments of matplotlib's
    `annotate`. `arrange_labels` later moves the label to the height of the curve.
    """
    axes.annotate(
        text,
        point,
        xytext=(1.0 + away, 0.5),
        textcoords="axes fraction",
        va="center",
        color=readable_color(color),
        gid=ENDS,
        annotation_clip=False,
        arrowprops={
            "arrowstyle": "-",
            "color": color,
            "linewidth": LINE,
            "shrinkA": 1.0,
            "shrinkB": 0.0,
            "relpos": (0.0, 0.5),
        },  # it begins left of the words
        **look,
    )


def arrange_labels(figure: Any) -> None:
    """Move every curve label of a figure to the height of its curve's last point, or as near as its neighbours allow.

    `figure` is a matplotlib figure. Curve labels are the texts that `label_curve` wrote.
    """
    from matplotlib.text import Text

    named = {axes: [text for text in axes.texts if text.get_gid() == ENDS] for axes in figure.axes}
    for axes, ends in named.items():
        for end in ends:  # lines lead to what is in view: 0 is not, on a log axis
            end.xy = float(np.clip(end.xy[0], *axes.get_xlim())), float(np.clip(end.xy[1], *sorted(axes.get_ylim())))
    figure.draw_without_rendering()  # lays the panels out
    for axes, ends in named.items():
        if ends:
            box = axes.get_window_extent()
            wanted = [(axes.transData.transform(end.xy)[1] - box.y0) / box.height for end in ends]
            words = [Text.get_window_extent(end) for end in ends]  # without the lines that lead there
            heights = [APART * one.height / box.height for one in words]
            for end, place in zip(ends, label_positions(wanted, heights).tolist(), strict=True):
                end.set_y(place)
    figure.set_layout_engine("none")  # it stays as it is laid out


def label_positions(wanted: list[float], heights: list[float]) -> np.ndarray:
    """Return the centres of labels with these heights, as near to the `wanted` centres as possible without overlap.

    All numbers are fractions of the panel's height. The labels lie in [0, 1] if all fit, otherwise around 0.5.
    """
    centres, tall = np.clip(wanted, 0.0, 1.0), np.array(heights)
    order = np.argsort(centres, kind="stable")
    below = np.concatenate([[0.0], np.cumsum((tall[order][:-1] + tall[order][1:]) / 2.0)])
    low, high = tall[order[0]] / 2.0, 1.0 - tall[order[-1]] / 2.0 - below[-1]
    if high < low:
        low = high = (low + high) / 2.0
    found = np.empty(len(tall))
    found[order] = np.clip(isotonic_regression(centres[order] - below).x, low, high) + below
    return found


def readable_color(color: str) -> str:
    """Return a colour "#rrggbb", darkened until text in it is readable on white."""
    rgb = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)], np.float64)
    while contrast(rgb) < READABLE:
        rgb *= DARKER
    return "#" + "".join(f"{round(part):02x}" for part in rgb.tolist())


def contrast(rgb: np.ndarray) -> float:
    """Return the contrast of a colour with white by WCAG 2, a ratio of luminances; `rgb` (3,) is from 0 to 255."""
    share = np.asarray(rgb, np.float64) / 255.0
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return float(1.05 / (linear @ [0.2126, 0.7152, 0.0722] + 0.05))
