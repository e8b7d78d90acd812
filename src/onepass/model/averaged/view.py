"""Three feature maps of a context, called views, each with the columns themselves and features of a Gaussian kernel.

    standard   z = clip((x - mean) / deviation, +-3)             all columns have the same weight
    raw        z = (x - mean) / rms ||x - mean||                 columns are weighted by their spread
    ranked     z = clip((s - mean s) / deviation s, +-3)         s: normal scores of ranks, linear between the knots
    phi(x) = [L^-1 k(z), scale z, 1 / sqrt(d + 1)],   k_i = exp(-||z - s_i||^2 / (2 w^2)),   L L^T = k(S, S)

For wide rows, z and S are coordinates on a span of the first rows (span.py), and there is no ranked view. Means,
deviations, scales, landmarks S (random rows) and w^2 = WIDTH median ||z - z'||^2 come from the present rows. The
columns and the constant together have a mean square of about 1, like the kernel features, so that neither needs its own
penalty. A constant column has z_j = 0. The normal score of a value is Phi^-1 of its rank. So the result does not change
if a column is transformed by a growing function, which suits amounts and counts with long tails. s_i are the landmarks
in S, and w is the kernel width.
"""

from typing import NamedTuple

import numpy as np
import scipy

from onepass.foundation.generic import compiled
from onepass.foundation.state import zeros
from onepass.model.averaged.span import Span, landmarks_on, no_span, place

CLIP = 3.0  # standard deviations: 4 makes 1 % more mistakes (docs/recommended_defaults.md)
WIDTH = 0.35  # of the median squared distance
CONSTANT = 1e-9  # of a column's largest entry: one that spreads less does not vary
IN_SPAN = 1e-6  # of k(s, s) = 1: a landmark of which the others leave less is dropped; features are in float32
SPARSE = 0.9  # share of zeros from which on rows are sparse
MANY = 128  # rows of which distances are measured, at most
NO_END = 1e30  # no clipping, as a finite number
AT_ONCE = 64  # columns that are ranked at once
KNOTS = 64  # of a ranked column, at most: 256 rows say no more


class View(NamedTuple):
    """Feature map: it maps a row to linear features, the scaled columns, and to kernel values at landmarks.

    - center, unit (d,): scaling z = (x - center) unit.
    - numbers (3,): largest absolute value of z, scale of the linear features, and 1 / (2 w^2) for a Gaussian kernel of
      width w.
    - landmarks: N scaled rows (N, d), or (N, r + 2) if rows are represented along r main directions.
    - half (N, N): inverse of the Cholesky factor of the kernel matrix of the landmarks.
    - knots, heights (d, Q): one piecewise linear function per column, for the map that uses ranks; Q = 0 in other maps.
    - span: main directions of wide rows (`Span`).
    """

    center: np.ndarray
    unit: np.ndarray
    numbers: np.ndarray
    landmarks: np.ndarray
    half: np.ndarray
    knots: np.ndarray
    heights: np.ndarray
    span: Span


@compiled
def rank(knots: np.ndarray, heights: np.ndarray, x: np.ndarray, z: np.ndarray) -> None:
    """Write the value at x[j] of column j's piecewise linear function to z[j], for all columns of the row x (d,).

    The function goes through the points (knots[j], heights[j]), of arrays (d, Q), and is constant outside the knots.
    """
    last = knots.shape[1] - 1
    for j in range(x.size):
        after = 0  # the number of knots up to x[j]; to count them takes a quarter of the time of a binary search
        for k in range(last + 1):
            after += knots[j, k] <= x[j]
        if after == 0 or after > last:
            z[j] = heights[j, max(after - 1, 0)]
        else:
            share = (x[j] - knots[j, after - 1]) / (knots[j, after] - knots[j, after - 1])
            z[j] = heights[j, after - 1] + share * (heights[j, after] - heights[j, after - 1])


@compiled
def seen(view: View, x: np.ndarray) -> np.ndarray:
    """Return the row x (d,) after scaling and clipping by the feature map `view`.

    For wide rows the result has the coordinates (r + 2,) along r main directions (span.py).
    """
    z, limit = np.zeros(x.size, np.float32), view.numbers[0]
    if view.knots.shape[1] > 0:
        rank(view.knots, view.heights, x, z)
    elif view.span.basis.shape[1] == 0:
        for j in range(x.size):
            z[j] = min(max((x[j] - view.center[j]) * view.unit[j], -limit), limit)
    else:
        for j in range(x.size):
            if x[j] != 0.0:
                z[j] = cut_at(view, j, x[j]) - cut_at(view, j, 0.0)
        square = view.span.origin[-1]
        for j in range(x.size):
            if z[j] != 0.0:
                square += z[j] * (z[j] + 2.0 * cut_at(view, j, 0.0))
        return place(view.span, z, square)
    return z


@compiled
def cut_at(view: View, j: int, value: float) -> float:
    """Return `value`, a number of column j, after scaling and clipping by the feature map `view`."""
    return min(max((value - view.center[j]) * view.unit[j], -view.numbers[0]), view.numbers[0])


@compiled
def width(view: View) -> int:
    """Return the number of linear features of a feature map: columns, or main directions for wide rows."""
    dim, count = view.span.basis.shape
    return count if count > 0 else dim


@compiled
def embedded(view: View, x: np.ndarray) -> np.ndarray:
    """Return the features of a row x (d,) in float32: N kernel features, the linear features, and a constant."""
    return embed_from(view, x, 0)


@compiled
def embed_from(view: View, x: np.ndarray, first: int) -> np.ndarray:
    """Return the features of a row x (d,) as `embedded` does, but all N kernel features are 0 if `first` is above 0.

    `first` is the index of the first feature that is needed. Kernel features take N^2 / 2 steps, others d.
    """
    (count, across), dim, z = view.landmarks.shape, width(view), seen(view, x)
    phi = np.zeros(count + dim + 1, np.float32)
    scale, precision = view.numbers[1], np.float32(view.numbers[2])
    for j in range(dim):
        phi[count + j] = z[j] * scale
    phi[count + dim] = 1.0 / np.sqrt(x.size + 1.0)
    if first > 0:
        return phi
    near = np.empty(count, np.float32)
    for i in range(count):
        square, landmark = np.float32(0.0), view.landmarks[i]
        for j in range(across):
            gap = z[j] - landmark[j]
            square += gap * gap
        near[i] = np.exp(-precision * square)
    for i in range(count):
        total, row = np.float32(0.0), view.half[i]
        for j in range(i + 1):
            total += row[j] * near[j]
        phi[i] = total
    return phi


@compiled
def scale_row(view: View, x: np.ndarray) -> np.ndarray:
    """Return all columns of a row x (d,) as linear features, and a constant, (d + 1,) in float32.

    Unlike `embedded`, it does not replace wide rows by coordinates. `view` is a feature map that does not use ranks.
    """
    dim, scale = x.size, view.numbers[1]
    phi = np.empty(dim + 1, np.float32)
    for j in range(dim):
        phi[j] = scale * cut_at(view, j, x[j])
    phi[dim] = 1.0 / np.sqrt(dim + 1.0)
    return phi


def no_view(dim: int) -> View:
    """Return a feature map without landmarks that gives all rows of `dim` columns the same features."""
    return View(
        center=zeros(dim),
        unit=zeros(dim),
        numbers=zeros(3),
        landmarks=zeros(0, dim, dtype=np.float32),
        half=zeros(0, 0, dtype=np.float32),
        knots=zeros(dim, 0),
        heights=zeros(dim, 0),
        span=no_span(dim),
    )


def scaled_views(rows: np.ndarray) -> tuple[View, View]:
    """Return the feature maps on standardized and on raw columns, with the scales of rows (n, d), without landmarks."""
    center, deviation = rows.mean(axis=0), rows.std(axis=0)
    varies = deviation > CONSTANT * np.abs(rows).max(axis=0)
    unit = np.divide(1.0, deviation, out=np.zeros(center.size), where=varies)
    return bare_view(center, unit, CLIP), bare_view(center, common_unit(rows, center), NO_END)


def bare_view(center: np.ndarray, unit: np.ndarray, limit: float) -> View:
    """Return a feature map without landmarks that clips (x - center) unit at +-limit."""
    return no_view(center.size)._replace(center=center, unit=unit, numbers=np.array([limit, 1.0, 1.0]))


def common_unit(rows: np.ndarray, center: np.ndarray) -> np.ndarray:
    """Return the factor (d,) of raw columns, equal for all: 1 / root mean square of ||x - center|| over rows (n, d)."""
    length = np.sqrt(np.mean(((rows - center) ** 2).sum(axis=1)))
    return np.full(center.size, 1.0 / length if length > 0.0 else 0.0)


def standardized(view: View, rows: np.ndarray) -> np.ndarray:
    """Return rows (n, d) scaled and clipped by a feature map that does not use ranks."""
    return np.clip((rows - view.center) * view.unit, -view.numbers[0], view.numbers[0])


def raw_alone(rows: np.ndarray) -> tuple[View, View, View]:
    """Return three feature maps of which only the one on raw columns is used, for wide sparse rows (n, d).

    The other two, on scaled columns and on ranks, are empty. None has landmarks.
    """
    center, none = rows.mean(axis=0), no_view(rows.shape[1])
    return none, bare_view(center, common_unit(rows, center), NO_END), none


def rank_columns(view: View, rows: np.ndarray, varies: np.ndarray, first: int) -> tuple[View, np.ndarray]:
    """Return the feature map `view` with the functions of up to 64 more columns, and the columns' scores (n, m).

    The map on ranks has for each column a function that turns a value into the normal score of its rank among the n
    rows, the standard normal quantile. The m columns have the indices `first` to `first` + 63, or to d - 1 if fewer are
    left. Columns before `first` keep their functions.

    - rows (n, d): the rows among which values are ranked.
    - varies (d,): False for constant columns, which get score 0.
    """
    block = slice(first, first + AT_ONCE)
    z, knots, heights = ranked(rows[:, block].T, varies[block])
    lines = np.zeros((2, rows.shape[1], max(knots.shape[1], view.knots.shape[1])))
    for line, before, new in zip(lines, (view.knots, view.heights), (knots, heights), strict=True):
        for part, columns in ((before[:first], slice(first)), (new, block)):
            if part.size > 0:
                line[columns] = np.pad(part, ((0, 0), (0, lines.shape[2] - part.shape[1])), "edge")
    return view._replace(knots=lines[0], heights=lines[1]), z.T


def ranked(columns: np.ndarray, varies: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the normal scores of the ranks of columns (d, n), and piecewise linear functions that give these scores.

    The functions have knots and heights (d, Q). Equal values get the mean of their ranks. `varies` (d,) is False for
    constant columns, which get score 0.
    """
    from scipy.special import ndtri

    count = columns.shape[1]
    order, places = np.argsort(columns, axis=1), np.arange(count)
    columns = np.take_along_axis(columns, order, axis=1)
    opens, closes = np.ones((2, *columns.shape), np.bool_)  # whether an entry is the first, the last of its ties
    opens[:, 1:] = columns[:, 1:] != columns[:, :-1]
    closes[:, :-1] = opens[:, 1:]
    first = np.maximum.accumulate(np.where(opens, places, 0), axis=1)
    last = np.minimum.accumulate(np.where(closes, places, count - 1)[:, ::-1], axis=1)[:, ::-1]
    scores = ndtri(np.arange(1, 2 * count) * 0.5 / count)[first + last]  # every middle rank there can be
    scores -= scores.mean(axis=1, keepdims=True)
    spread = np.where(varies, scores.std(axis=1), np.inf)
    scores = np.clip(scores / spread[:, None], -CLIP, CLIP)
    at = knots_among(opens)
    knots, heights = columns.ravel()[at], scores.ravel()[at]
    if knots.shape[1] == KNOTS:  # what lies between two knots is on their line
        scores = np.array([np.interp(*lines) for lines in zip(columns, knots, heights, strict=True)])
    z = np.empty_like(scores)
    np.put_along_axis(z, order, scores, axis=1)
    return z, knots, heights


def knots_among(opens: np.ndarray) -> np.ndarray:
    """Return flat indices (d, Q) of the values of sorted columns (d, n) at which piecewise linear functions have knots.

    `opens` (d, n) is True at the first entry of every distinct value. Knots are all distinct values, or 64 of them at
    equal steps; columns with fewer repeat the last.
    """
    values = opens.sum(axis=1)[:, None]
    steps = np.arange(min(int(values.max()), KNOTS))
    few = np.where(values > KNOTS, steps * (values - 1) // (KNOTS - 1), np.minimum(steps, values - 1))
    return np.flatnonzero(opens)[np.cumsum(values)[:, None] - values + few]


def with_landmarks(view: View, z: np.ndarray, size: int, orders: list[np.ndarray]) -> View:
    """Return the feature map with at most `size` landmarks, chosen among scaled rows z (n, d).

    `orders` holds two random permutations of the rows: the first to estimate the kernel width from distances, the
    second to choose the landmarks.
    """
    length = np.sqrt(np.mean((z**2).sum(axis=1)))
    if view.span.basis.shape[1] > 0:
        z = landmarks_on(view.span, z)
    precision = 0.5 / (WIDTH * median_square(z[orders[0][:MANY]]))
    some = z[orders[1][:size]]
    factor, order, rank, _ = scipy.linalg.lapack.dpstrf(np.exp(-precision * squares(some)), tol=IN_SPAN, lower=1)
    kept = order[:rank] - 1
    half = np.zeros((0, 0))
    if rank:
        half = scipy.linalg.solve_triangular(np.tril(factor[:rank, :rank]), np.eye(rank), lower=True)
    return view._replace(
        numbers=np.array([view.numbers[0], 1.0 / length if length > 0.0 else 1.0, precision]),
        landmarks=np.ascontiguousarray(some[kept], np.float32),
        half=np.ascontiguousarray(half, np.float32),
    )


def columns_alone(view: View) -> View:
    """Return a feature map whose features are those of `scale_row`, for a map that does not use ranks."""
    bare = no_view(view.center.size)
    return bare._replace(center=view.center, unit=view.unit, numbers=view.numbers)


def view_fits(view: View, dim: int) -> bool:
    """Return True if the shapes of a feature map read from a file fit rows with `dim` columns."""
    count, across = len(view.landmarks), view.span.basis.shape[1]
    return (
        view.landmarks.shape == (count, across + 2 if across else dim)
        and view.half.shape == (count, count)
        and view.span.basis.shape == (dim, across)
        and view.span.origin.shape == (across + 1,)
        and view.knots.shape == view.heights.shape == (dim, view.knots.shape[1])
        and view.center.shape == view.unit.shape == (dim,)
        and view.numbers.shape == (3,)
    )


def squares(z: np.ndarray) -> np.ndarray:
    """Return all squared distances ||z_i - z_j||^2, (n, n), of rows z (n, d)."""
    gram = z @ z.T
    norms = np.diagonal(gram)
    return np.maximum(norms[:, None] + norms[None, :] - 2.0 * gram, 0.0)


def median_square(z: np.ndarray) -> float:
    """Return the median squared distance of rows z (n, d) that differ; 1 if none do."""
    found = squares(z)[np.tril_indices(len(z), -1)]
    found = found[found > CONSTANT * (z**2).sum(axis=1).max()] if found.size else found
    return float(np.median(found)) if found.size else 1.0
