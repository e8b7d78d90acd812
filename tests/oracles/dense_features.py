"""Feature maps as their formulas say, over all rows at once; independent of the package's state functions."""

import numpy as np


def identity(rows, seen):
    return rows


def intercept(rows, seen):
    return np.ones((len(rows), 1))


def standardize(rows, seen):
    """Two passes over all rows seen so far; columns that have been constant give 0."""
    if len(seen) == 0:
        return np.zeros_like(rows)
    mean, deviation = seen.mean(axis=0), seen.std(axis=0)
    constant = (seen == seen[0]).all(axis=0)
    return np.where(constant, 0.0, (rows - mean) / np.where(constant, 1.0, deviation))


def projection(dim, size, seed):
    matrix = np.random.RandomState(seed).standard_normal((dim, size)).T / np.sqrt(size)
    return lambda rows, seen: np.array([matrix @ x for x in rows]).reshape(-1, size)


def fourier(dim, size, length_scale, seed):
    W = np.random.RandomState(seed).standard_normal((size // 2, dim)) / np.asarray(length_scale)
    return lambda rows, seen: (
        np.sqrt(2 / size) * np.array([[*np.cos(W @ x), *np.sin(W @ x)] for x in rows]).reshape(-1, size)
    )


def nystrom(points, kernel):
    lower = np.linalg.cholesky(kernel(points, points))
    return lambda rows, seen: np.linalg.solve(lower, kernel(points, rows)).T


def outer(left):
    return lambda rows, seen: np.array([np.outer(x[:left], x[left:]).ravel() for x in rows]).reshape(len(rows), -1)


def chain(first, second):
    """The second map has seen what the first made of every row when that was learned."""

    def mapped(rows, seen):
        return second(first(rows, seen), learned(first, seen) if len(seen) else seen)

    return mapped


def concatenate(first, second):
    return lambda rows, seen: np.hstack([first(rows, seen), second(rows, seen)])


def learned(mapped, rows):
    """z of every row as it was when the row was learned, itself included among those seen."""
    return np.vstack([mapped(rows[i : i + 1], rows[: i + 1]) for i in range(len(rows))])
