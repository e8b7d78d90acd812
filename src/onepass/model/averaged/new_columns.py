"""New columns in the rows of averaged models, which keep their predicted means.

    z = clip((x - fill) / size, +-3), for a name 0 or 3; landmarks have z = 0 there
    P -> [P  0; 0  I / reg],   theta -> [theta, 0]                  exactly, for phi was 0 in the new columns
    a constant's feature 1 / sqrt(d + 1) shrinks by s = sqrt((d + 1) / (d' + 1)):  theta_c / s, row and column P_c / s

P is the inverse matrix and theta the parameter of a model, and d' is the new number of columns. All earlier rows count
as if they had the fill value in a new column. Means stay as they were. Widths, whose prior and reduction are in units
of ||phi||, shrink with the constant. When the views are rebuilt (mixture.py), units become those of the rows. Rows are
never wide here, because dictionaries of more than 300 terms are learned by an `InteractionModel` (auto.py).
"""

import numpy as np

from onepass.model.averaged.mixture import CONSTANT, CONSTANT_ALONE, MODELS, REG, SIZE, Mixture, make_plan
from onepass.model.averaged.regression import length
from onepass.model.averaged.sketches import no_sketches
from onepass.model.averaged.span import no_span
from onepass.model.averaged.view import CLIP, View


def widened(state: Mixture, fills: np.ndarray, sizes: np.ndarray) -> Mixture:
    """Return the state of averaged models with n columns appended to the rows; predicted means stay as they are.

    `fills` (n,) is the value of each new column in all earlier rows. `sizes` (n,) is the scale of its numbers, 0 for a
    0/1 column.
    """
    standard, raw, ranked = (wider(view, fills, sizes) for view in state.views)
    views = standard, raw, ranked
    before, after = state.rows.shape[1], state.rows.shape[1] + len(fills)
    plan = make_plan(views, state.plan[:, SIZE] > 0) if state.plan.any() else state.plan
    grown, thetas, taus, inverses, t, p = np.float32(np.sqrt((after + 1.0) / (before + 1.0))), [], [], [], 0, 0
    for m, n in enumerate(state.plan[:, SIZE].tolist()):
        if n:
            its, constant = (
                state.inverse[:, p : p + length(n)],
                np.float32(1.0) if state.settings[m, CONSTANT] > 0.0 else grown,
            )
            more = 0 if MODELS[m][1] == CONSTANT_ALONE else len(fills)
            thetas.append(wider_theta(state.theta[:, t : t + n], more, constant))
            taus.append(wider_theta(state.tau[:, t : t + n], more, constant))
            inverses.append(wider_inverse(its, n, more, constant, state.settings[m, REG]))
        t, p = t + n, p + length(n)
    return state._replace(
        views=views,
        plan=plan,
        theta=beside(*thetas) if thetas else state.theta,
        tau=beside(*taus) if taus else state.tau,
        inverse=beside(*inverses) if inverses else state.inverse,
        rows=beside(state.rows, np.tile(fills, (len(state.rows), 1))),
        sketches=no_sketches(len(state.last), after, 0),
    )


def beside(*parts: np.ndarray) -> np.ndarray:
    """Return arrays joined along the second axis, contiguous in memory."""
    return np.ascontiguousarray(np.hstack(parts))


def wider_theta(theta: np.ndarray, count: int, grown: np.float32) -> np.ndarray:
    """Return parameters (arms, n + count) of arms, from `theta` (arms, n), after `count` features were added.

    The parameters of the new features are 0. They are inserted before the last column, the parameter of the constant
    feature, which is multiplied by `grown`.
    """
    return np.hstack([theta[:, :-1], np.zeros((len(theta), count), np.float32), grown * theta[:, -1:]])


def wider_inverse(inverse: np.ndarray, n: int, count: int, grown: np.float32, reg: float) -> np.ndarray:
    """Return arms' inverse matrices with `count` features inserted before the constant, each with diagonal 1 / reg.

    - inverse (arms, n (n + 1) / 2): lower triangles of n features, row by row.
    - grown: factor of the constant's row and column.
    """
    slots, same = len(inverse), length(n - 1)
    out = np.zeros((slots, length(n + count)), np.float32)
    out[:, :same] = inverse[:, :same]
    for j in range(n - 1, n - 1 + count):
        out[:, length(j) + j] = 1.0 / reg
    last = length(n - 1 + count)
    out[:, last : last + n - 1] = grown * inverse[:, same:-1]
    out[:, -1] = grown * grown * inverse[:, -1]
    return out


def wider(view: View, fills: np.ndarray, sizes: np.ndarray) -> View:
    """Return a feature map (view) with n columns appended to its rows.

    `fills` (n,) is the value of each new column in all earlier rows. `sizes` (n,) is the scale of its numbers, 0 for a
    0/1 column. The map on raw columns uses the common unit of its columns in place of `sizes`.
    """
    count, (before, knots) = len(fills), view.knots.shape
    names, common = sizes == 0.0, view.unit.max(initial=0.0)
    units = np.where(names, CLIP, 1.0 / np.where(names, 1.0, sizes))
    if knots == 0 and view.numbers[0] > CLIP and common > 0.0:
        units = np.full(count, common)
    lines = [view.knots, view.heights]
    if knots > 0:  # the same by two knots, where z is cut
        room = max(knots, 2)
        lines = [beside(line, np.repeat(line[:, -1:], room - knots, axis=1)) for line in lines]
        ends = np.repeat((fills + CLIP / units)[:, None], room, axis=1)
        ends[:, 0] = fills - CLIP / units
        heights = np.repeat([[-CLIP] + [CLIP] * (room - 1)], count, axis=0)
        lines = [np.vstack([lines[0], ends]), np.vstack([lines[1], heights])]
        fills = units = np.zeros(count)
    else:
        lines = [np.zeros((before + count, 0)), np.zeros((before + count, 0))]
    return View(
        center=np.append(view.center, fills),
        unit=np.append(view.unit, units),
        numbers=view.numbers,
        landmarks=beside(view.landmarks, np.zeros((len(view.landmarks), count), np.float32)),
        half=view.half,
        knots=lines[0],
        heights=lines[1],
        span=no_span(before + count),
    )
