"""Posterior variances in decimal arithmetic of 80 digits: the truth where double precision has none."""

from decimal import Context, Decimal, localcontext

import numpy as np

DIGITS = 80


def rbf(length_scale):
    """exp(-||x - y||^2 / (2 l^2))."""
    scale = Decimal(float(length_scale))
    return lambda x, y: (-sum(((a - b) / scale) ** 2 for a, b in zip(x, y, strict=True)) / 2).exp()


def polynomial(degree, bias):
    """(x.y + bias)^degree."""
    return lambda x, y: (sum(a * b for a, b in zip(x, y, strict=True)) + Decimal(float(bias))) ** degree


def times(scale, kernel):
    """scale k(x, y)."""
    return lambda x, y: Decimal(float(scale)) * kernel(x, y)


def plus(left, right):
    """left(x, y) + right(x, y)."""
    return lambda x, y: left(x, y) + right(x, y)


def product(left, right):
    """left(x, y) right(x, y)."""
    return lambda x, y: left(x, y) * right(x, y)


def variances(kernel, rows, plays, reg):
    """(k(x, x) - k^T (K + reg I)^-1 k) / reg at the rows: each in turn is conditioned on, with noise reg / plays."""
    with localcontext(Context(prec=DIGITS)):
        points = [[Decimal(float(v)) for v in row] for row in rows]
        noise, count = Decimal(float(reg)), range(len(points))
        covariance = [[kernel(x, y) for y in points] for x in points]
        for i in np.flatnonzero(plays):
            row, total = covariance[i], covariance[i][i] + noise / int(plays[i])
            covariance = [[covariance[a][b] - row[a] * row[b] / total for b in count] for a in count]
        return [covariance[a][a] / noise for a in count]


def ratios(ours, truth):
    """ours / truth, entry by entry, rounded once."""
    with localcontext(Context(prec=DIGITS)):
        return np.array([float(Decimal(float(v)) / t) for v, t in zip(ours, truth, strict=True)])
