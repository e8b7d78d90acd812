"""A model of wide rows: for every arm, Newton steps on a robust Frequent Directions sketch.

    h = phi^T A^-1 phi,  e = r - phi^T theta, clipped at bound sqrt(1 + h),  theta <- theta + A^-1 phi e / (1 + h)
    A <- A + phi phi^T, cut to `size` directions whenever there are 2 size,  A = reg I, theta = 0 at first

phi = [scale (x - center) unit, 1 / sqrt(d + 1)] are the columns of a view (view.py) and a constant. The model is exact
while an arm has fewer than 2 size rows. Half of what is cut is added to the ridge (RFD: design/frequent_directions.py).
Learning costs O(size d) for one arm.

For rows that are mostly zeros it is the only model, on the raw view. There phi = s - m with a sparse s and a constant
m. Because Q m and theta^T m are stored, a prediction for an arm costs 2 size products for each non-zero of s, and (2
size)^2. For other rows it is one of the averaged models, on the standard view. It sees all columns, where the other
models see coordinates on a span (span.py). A prediction costs 2 size (d + 2 size) for an arm.
"""

from typing import NamedTuple

import numpy as np

from onepass.design import contract
from onepass.design.frequent_directions import FrequentDirectionsRule
from onepass.design.sketch import SketchSettings, SketchState
from onepass.design.subspace import Subspace, inverse_quadratic_in, solve_in
from onepass.design.truncation import Sums
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot
from onepass.foundation.state import lazy_zeros
from onepass.model.averaged.view import View

ROWS_KEPT = 16  # directions that a cut leaves, and one more: 8 to 32 are alike (docs/wide_rows.md)
DENSE_KEPT = 48  # the same where rows are not mostly zeros: 16 and 32 help less (docs/wide_rows.md)
DENSE_NUMBERS = 1 << 15  # of a sketch with fewer than 48 directions
WIDEST = 4_096  # columns above which rows that are not mostly zeros have no sketch: it would take too long
FEWEST_KEPT = 4  # where memory is short
COMPENSATION = 0.5  # of what is cut, that goes into the ridge: RFD of Luo et al.
USED, RIDGE, LOG_DET, LEFT, MASS, SHED, WEIGHTED, DUST = range(8)  # places in a row of `Sketches.numbers`


class Sketches(NamedTuple):
    """Sketched models of arms, for wide rows with d columns; with size 0 there are none.

    The data of an arm are at an index of the arrays, called its slot.

    - basis (slots, 2 size, d + 1): orthonormal rows, a matrix Q for each arm.
    - root (slots, 2 size, 2 size): square root of the inverse Gram matrix on the span of Q.
    - theta (slots, d + 1): parameters.
    - aside (slots, 2 size + 1): Q m and theta^T m, where m is the scaled mean row; only for rows that are mostly zeros.
    - numbers (slots, 8): directions in use, ridge penalty, and the other scalars of the design.
    """

    basis: np.ndarray
    root: np.ndarray
    theta: np.ndarray
    aside: np.ndarray
    numbers: np.ndarray


def no_sketches(slots: int, dim: int, size: int) -> Sketches:
    """Return empty sketches of `slots` arms, with `size` directions, for rows of `dim` columns.

    `begin_sketch` initializes the sketch of an arm.
    """
    across = dim + 1 if size > 0 else 0
    return Sketches(
        basis=lazy_zeros(slots, 2 * size, across, dtype=np.float32),
        root=np.zeros((slots, 2 * size, 2 * size), np.float32),
        theta=np.zeros((slots, across), np.float32),
        aside=np.zeros((slots, 2 * size + 1)),
        numbers=np.zeros((slots, DUST + 1)),
    )


def dense_size(dim: int) -> int:
    """Return the number of directions that sketches keep of rows with `dim` columns that are not mostly zeros."""
    return 0 if dim > WIDEST else max(ROWS_KEPT, min(DENSE_KEPT, DENSE_NUMBERS // dim))


def bytes_of_sketch(dim: int, size: int) -> int:
    """Return the bytes of one arm's sketch, with `size` directions of `dim` columns."""
    return sum(one.nbytes for one in no_sketches(1, dim, size)) if size > 0 else 0


def sketches_fit(sketches: Sketches, known: np.ndarray, dim: int) -> bool:
    """Return True if loaded shapes and counters are consistent.

    - known (slots,): True for arms that have learned.
    - dim: number of columns.
    """
    capacity = sketches.root.shape[1]
    begun = no_sketches(len(known), dim, capacity // 2)
    used = sketches.numbers[:, USED]
    return (
        [one.shape for one in sketches] == [one.shape for one in begun]
        and bool((capacity == 0) or (sketches.numbers[known, RIDGE] > 0.0).all())
        and bool(((used >= 0) & (used <= capacity) & (used == np.floor(used))).all())
    )


@compiled
def begin_sketch(sketches: Sketches, slot: int, reg: float) -> None:
    """Reset the sketch of the arm at index `slot` to the prior, the Gram matrix reg I, in place."""
    numbers, across = sketches.numbers[slot], sketches.theta.shape[1]
    if numbers[USED] > 0.0:  # else its pages stay untouched
        sketches.basis[slot].fill(0.0)
        sketches.root[slot].fill(0.0)
        sketches.theta[slot].fill(0.0)
        sketches.aside[slot].fill(0.0)
    numbers.fill(0.0)
    numbers[RIDGE], numbers[LOG_DET] = reg, across * np.log(reg)


@compiled
def sparse_row(view: View, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the sparse part of the features of a row x, as indices and values, and the features' squared norm.

    The features are s - m with a sparse s and a constant m, and the squared norm is ||s - m||^2. `view` is the feature
    map (view.py), which holds the centers and scales of the columns.
    """
    dim, scale, count, shared, common = x.size, view.numbers[1], 1, 0.0, 0.0
    for j in range(dim):
        count += x[j] != 0.0
    places, values = np.empty(count, np.int64), np.empty(count, np.float32)
    k = 0
    for j in range(dim):
        if x[j] != 0.0:
            places[k], values[k] = j, scale * view.unit[j] * x[j]
            k += 1
    places[k], values[k] = dim, 1.0 / np.sqrt(dim + 1.0)
    for j in range(dim):
        middle = scale * view.unit[j] * view.center[j]
        common += middle * middle
    for i in range(k):
        value = float(values[i])
        shared += value * (value - 2.0 * scale * view.unit[places[i]] * view.center[places[i]])
    return places, values, shared + common + 1.0 / (dim + 1.0)


@compiled
def ask_sketch(
    sketches: Sketches, slot: int, places: np.ndarray, values: np.ndarray, norm: float
) -> tuple[float, float]:
    """Return the predicted mean and the squared width of the arm at index `slot`, for a sparse row.

    `places`, `values` and `norm` are the results of `sparse_row`: indices and values of the row's sparse part, and the
    squared norm of its features.
    """
    numbers, root, theta, aside = (
        sketches.numbers[slot],
        sketches.root[slot],
        sketches.theta[slot],
        sketches.aside[slot],
    )
    used, mean, covered, inside = int(numbers[USED]), 0.0, 0.0, 0.0
    p = np.empty(used, np.float32)
    for k in range(values.size):
        mean += float(theta[places[k]]) * values[k]
    for i in range(used):
        total, row = np.float32(0.0), sketches.basis[slot, i]
        for k in range(values.size):
            total += row[places[k]] * values[k]
        p[i] = total - aside[i]
    for i in range(used):
        covered += float(p[i]) * float(p[i])
    for j in range(used):
        total = np.float32(0.0)
        for i in range(used):
            total += p[i] * root[i, j]
        inside += float(total) * float(total)
    return mean - aside[-1], inside + max(norm - covered, 0.0) / numbers[RIDGE]


@compiled
def ask_dense(sketches: Sketches, slot: int, phi: np.ndarray, reg: float) -> tuple[float, float]:
    """Return the predicted mean and the squared width of the arm at index `slot`, for features phi (d + 1,).

    `reg` is the ridge penalty.
    """
    space = state_of(sketches, slot, reg).space
    return float(dot(phi, sketches.theta[slot])), float(inverse_quadratic_in(space, phi.reshape(1, -1))[0])


@compiled
def state_of(sketches: Sketches, slot: int, reg: float) -> SketchState:
    """Return the sketch of the arm at index `slot` as a `SketchState`, whose arrays are not copied.

    `reg` is the ridge penalty.
    """
    n, size = sketches.numbers[slot], sketches.root.shape[1] // 2
    rule = FrequentDirectionsRule(size=size, compensation=COMPENSATION, reg=reg)
    return SketchState(
        space=Subspace(
            basis=sketches.basis[slot],
            root=sketches.root[slot],
            used=int(n[USED]),
            ridge=n[RIDGE],
            log_det=n[LOG_DET],
            left=n[LEFT],
        ),
        sums=Sums(mass=n[MASS], shed=n[SHED], weighted=n[WEIGHTED], dust=n[DUST]),
        settings=SketchSettings(rule=rule, limit=2 * size, reg=reg),
    )


@compiled
def learn_sketch(
    sketches: Sketches, slot: int, phi: np.ndarray, middle: np.ndarray, reg: float, reward: float, bound: float
) -> tuple[float, float, float]:
    """Learn one reward of an arm; return the clipped prediction error, the squared width and the amount clipped.

    phi (d + 1,) holds the features of a row. For rows that are mostly zeros they are s - m: s are the scaled columns
    and the constant feature, and middle (d + 1,) is the scaled mean row m, 0 for the constant. Products of `middle`
    with the model are stored again, for fast predictions. For other rows `middle` is (0,). `sketches` is changed in
    place. `slot` is the index of the arm, and `reg` the ridge penalty. `bound` is the limit of the error in units of
    sqrt(1 + squared width); 0 means none.
    """
    state, theta, aside = state_of(sketches, slot, reg), sketches.theta[slot], sketches.aside[slot]
    direction = solve_in(state.space, phi)
    h = max(float(dot(phi, direction)), 0.0)
    whole = reward - float(dot(phi, theta))
    most = bound * np.sqrt(1.0 + h) if bound > 0.0 else np.inf
    e = min(max(whole, -most), most)
    step = np.float32(e / (1.0 + h))
    for j in range(theta.size):
        theta[j] += step * direction[j]
    state = contract.append(state, phi)
    space, sums, n = state.space, state.sums, sketches.numbers[slot]
    n[USED], n[RIDGE], n[LOG_DET], n[LEFT] = space.used, space.ridge, space.log_det, space.left
    n[MASS], n[SHED], n[WEIGHTED], n[DUST] = sums.mass, sums.shed, sums.weighted, sums.dust
    if middle.size > 0:
        along = dot(space.basis[: space.used], middle)
        for i in range(along.size):
            aside[i] = along[i]
        aside[-1] = dot(theta, middle)
    return e, h, whole - e


@compiled
def middle_of(view: View) -> np.ndarray:
    """Return the scaled mean row m (d + 1,) of a feature map.

    Its entries are minus the features of a row of zeros, except that the constant feature has 0.
    """
    dim, scale = view.unit.size, view.numbers[1]
    middle = np.zeros(dim + 1, np.float32)
    for j in range(dim):
        middle[j] = scale * view.unit[j] * view.center[j]
    return middle
