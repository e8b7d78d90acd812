"""Three views of a context, each with features of a Gaussian kernel beside the columns themselves.

    standard   z = clip((x - mean) / deviation, +-3)             every column counts alike
    raw        z = (x - mean) / rms ||x - mean||                 columns count by what they spread
    ranked     z = clip((s - mean s) / deviation s, +-3)         s: normal scores of ranks, linear between the knots
    phi(x) = [L^-1 k(z), scale z, 1 / sqrt(d + 1)],   k_i = exp(-||z - s_i||^2 / (2 w^2)),   L L^T = k(S, S)
Of wide rows z and S are coordinates on a span of the first rows (span.py), and the ranked view is not made.

Means, deviations, scales, landmarks S (random rows) and w^2 = WIDTH median ||z - z'||^2 come from the rows at hand. The
columns and the constant together have a mean square of about 1, as the kernel's features have, so that neither needs a
penalty of its own. Deviations of constant columns count as none: z_j = 0. Normal scores are Phi^-1 of a value's middle
rank, so that a column may be bent by any growing function, as amounts and counts with long tails are.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf
from scipy.special import ndtri

from onepass.contextual.span import Span, landmarks_on, no_span, place, span_of
from onepass.foundation.generic import compiled
from onepass.foundation.state import zeros

CLIP = 3.0  # standard deviations: .68 against .74 of the mistakes without (docs/recommended_measured.md)
WIDTH = 0.35  # of the median squared distance
CONSTANT = 1e-9  # of a column's largest entry: one that spreads less does not vary
IN_SPAN = 1e-6  # of k(s, s) = 1: a landmark of which the others leave less is dropped; features are in float32
SPARSE = 0.9  # share of zeros from which on rows are sparse
MANY = 256  # rows of which distances are measured, at most
NO_END = 1e30  # no clipping, as a finite number
KNOTS = 64  # of a ranked column, at most: 256 rows say no more


class View(NamedTuple):
    """center, unit (d,): z = (x - center) unit; numbers (3,): where z is cut, its scale, 1 / (2 w^2); landmarks (N, d);
    half (N, N) = L^-1; knots, heights (d, Q): of a ranked view, whose z_j goes through (knots_jq, heights_jq); Q = 0
    elsewhere; span: of wide rows, on which landmarks are (N, r + 2)."""

    center: np.ndarray
    unit: np.ndarray
    numbers: np.ndarray
    landmarks: np.ndarray
    half: np.ndarray
    knots: np.ndarray
    heights: np.ndarray
    span: Span


@compiled
def between(x, knots, heights):
    """The line through (knots, heights) at x; constant beyond the ends."""
    first, last = 0, knots.size  # the number of knots up to x lies between these
    while first < last:
        middle = (first + last) // 2
        if knots[middle] <= x:
            first = middle + 1
        else:
            last = middle
    if first == 0 or first == knots.size:
        return heights[max(first - 1, 0)]
    share = (x - knots[first - 1]) / (knots[first] - knots[first - 1])
    return heights[first - 1] + share * (heights[first] - heights[first - 1])


@compiled
def seen(view, x):
    """z (d,) of a row that is not mapped, or its coordinates on the span (r + 2,)."""
    z, limit = np.zeros(x.size, np.float32), view.numbers[0]
    if view.knots.shape[1] > 0:
        for j in range(x.size):
            z[j] = between(x[j], view.knots[j], view.heights[j])
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
def cut_at(view, j, value):
    """z_j of a value."""
    return min(max((value - view.center[j]) * view.unit[j], -view.numbers[0]), view.numbers[0])


@compiled
def width(view):
    """Columns, or directions of wide rows: how many features are linear."""
    dim, count = view.span.basis.shape
    return count if count > 0 else dim


@compiled
def embedded(view, x):
    """phi(x), (N + d + 1,), or (N + r + 1,) of wide rows, in float32."""
    (count, across), dim, z = view.landmarks.shape, width(view), seen(view, x)
    phi, near = np.empty(count + dim + 1, np.float32), np.empty(count, np.float32)
    scale, precision = view.numbers[1], np.float32(view.numbers[2])
    for j in range(dim):
        phi[count + j] = z[j] * scale
    phi[count + dim] = 1.0 / np.sqrt(x.size + 1.0)
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


def no_view(dim: int) -> View:
    """Of contexts of which nothing is known: all are alike."""
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


def views(rows: np.ndarray, size: int, rng: np.random.Generator, directions: int = 0) -> tuple[View, View, View]:
    """The standard, the raw and the ranked view, from rows (n, d), with at most `size` landmarks each; directions: that
    rows are mapped on, at most; 0: they are not."""
    center, deviation = rows.mean(axis=0), rows.std(axis=0)
    varies = deviation > CONSTANT * np.abs(rows).max(axis=0)
    unit = np.divide(1.0, deviation, out=np.zeros(center.size), where=varies)
    moved = rows - center
    length = np.sqrt(np.mean((moved**2).sum(axis=1)))
    common = np.full(center.size, 1.0 / length if length > 0.0 else 0.0)
    standard = view(np.clip(moved * unit, -CLIP, CLIP), center, unit, CLIP, size, rng, directions)
    raw = view(moved * common, center, common, NO_END, size, rng, directions)
    if directions > 0:
        return standard, raw, no_view(center.size)
    z, knots, heights = ranked(rows, varies)
    none = np.zeros(center.size)
    return standard, raw, view(z, none, none, CLIP, size, rng)._replace(knots=knots, heights=heights)


def raw_alone(rows: np.ndarray) -> tuple[View, View, View]:
    """The raw view without landmarks, beside no others: of wide rows that are mostly zeros."""
    center, none = rows.mean(axis=0), no_view(rows.shape[1])
    length = np.sqrt(np.mean(((rows - center) ** 2).sum(axis=1)))
    unit = np.full(center.size, 1.0 / length if length > 0.0 else 0.0)
    return none, none._replace(center=center, unit=unit, numbers=np.array([NO_END, 1.0, 1.0])), none


def ranked(rows: np.ndarray, varies: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """z (n, d), and knots and heights (d, Q); of columns that do not vary all heights are 0."""
    normal = ndtri(np.arange(1, 2 * len(rows)) * 0.5 / len(rows))  # every middle rank there can be
    lines = [
        scores_of(column, normal) if varied else (column[:1], np.zeros(1))
        for column, varied in zip(rows.T, varies, strict=True)
    ]
    count = max(len(values) for values, _ in lines)
    knots, heights = np.empty((len(lines), count)), np.empty((len(lines), count))
    z = np.empty_like(rows)
    for j, (values, scores) in enumerate(lines):
        knots[j], heights[j] = values[-1], scores[-1]  # those that are too many repeat the last one
        knots[j, : len(values)], heights[j, : len(values)] = values, scores
        z[:, j] = np.interp(rows[:, j], values, scores)
    return z, knots, heights


def scores_of(column: np.ndarray, normal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values (Q,) of a column (n,) that varies, and their normal scores, standardized and cut; normal (2n - 1,): scores
    of the ranks 1/2, 1, 3/2, ..."""
    values, counts = np.unique(column, return_counts=True)
    scores = normal[2 * np.cumsum(counts) - counts - 1]
    mean = scores @ counts / len(column)
    z = (scores - mean) / np.sqrt((scores - mean) ** 2 @ counts / len(column))
    if len(values) > KNOTS:
        few = np.linspace(0, len(values) - 1, KNOTS).astype(np.int64)  # each once: steps are 1 or more
        values, z = values[few], z[few]
    return values, np.clip(z, -CLIP, CLIP)


def view(
    z: np.ndarray,
    center: np.ndarray,
    unit: np.ndarray,
    limit: float,
    size: int,
    rng: np.random.Generator,
    directions: int = 0,
) -> View:
    """The view of these scales, with landmarks from rows (n, d) that are seen as z; directions: as of `views`."""
    length, span = np.sqrt(np.mean((z**2).sum(axis=1))), no_span(center.size)
    if directions > 0:
        span = span_of(z, np.clip(-center * unit, -limit, limit), directions)
        z = landmarks_on(span, z)
    precision = 0.5 / (WIDTH * median_square(z[rng.permutation(len(z))[:MANY]]))
    some = z[rng.permutation(len(z))[:size]]
    factor, order, rank, _ = dpstrf(np.exp(-precision * squares(some)), tol=IN_SPAN, lower=1)
    kept = order[:rank] - 1
    half = solve_triangular(np.tril(factor[:rank, :rank]), np.eye(rank), lower=True) if rank else np.zeros((0, 0))
    return View(
        center=center,
        unit=unit,
        numbers=np.array([limit, 1.0 / length if length > 0.0 else 1.0, precision]),
        landmarks=np.ascontiguousarray(some[kept], np.float32),
        half=np.ascontiguousarray(half, np.float32),
        knots=np.zeros((center.size, 0)),
        heights=np.zeros((center.size, 0)),
        span=span,
    )


def squares(z: np.ndarray) -> np.ndarray:
    """||z_i - z_j||^2, (n, n)."""
    gram = z @ z.T
    norms = np.diagonal(gram)
    return np.maximum(norms[:, None] + norms[None, :] - 2.0 * gram, 0.0)


def median_square(z: np.ndarray) -> float:
    """The median squared distance of rows that differ; 1 where none do."""
    found = squares(z)[np.tri(len(z), k=-1, dtype=np.bool_)]
    found = found[found > CONSTANT * (z**2).sum(axis=1).max()] if found.size else found
    return float(np.median(found)) if found.size else 1.0
