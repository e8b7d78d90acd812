"""Directions of taste and neighbours of items, from the matrix H (users, items) of what each user has taken.

    M = D_u^(-1/4) H (D_i + a)^(-1/2),   M^T M ~ Q diag(l) Q^T,   l in units of the largest eigenvalue
    v_i = (d_i + a)^(-1/2) sqrt(sum of d) (sqrt(l_k - 1.1 l_last) Q_ik)_k       the largest direction is left out
    x_u = (sum of v_j over what u has taken) / (1 + n_u (l - 1.1 l_last))       by direction

D_u and D_i are diagonal matrices of the numbers d of items of each user and of users of each item. n_u is the number of
items that user u has taken, and a and b are constants. If tastes are Gaussian and users take items by a softmax of
popularity and v_i^T x, then x_u is the posterior mean of x, up to second order, and v_i^T x_u is the log of how much
more often user u takes item i than others do. The noise is measured by the last eigenvalue, l_last. Directions below
the noise get the weight 0.

    the neighbours of item i are the items j with the largest
    C_ij = G_ij / sqrt((d_i + b) (d_j + b)),   G = H^T H without its diagonal

Costs for n pairs of a user and an item: O(n dim) for the directions, O(n 100) for the neighbours.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.foundation import state as states

PRIOR = 30.0  # a: users that an item's direction weighs against
SHRINKAGE = 20.0  # b: users that a similarity weighs against
EDGE = 1.1  # eigenvalues up to so many times the smallest one are noise
FIRST, AGAIN = 6, 2  # steps of subspace iteration, the first time and later
NEIGHBOURS = 24  # of an item
RECENT = 100  # items of a user that make neighbours
DENSE = 16  # sums over all items are cheaper than sorted neighbours, where there are so few items


class Tastes(NamedTuple):
    """Directions of taste and neighbours of N items, from the matrix of what users have taken.

    Parameters
    ----------
    basis : ndarray of shape (N, dim + 2)
        Orthonormal columns, float32, by falling eigenvalue: the main directions of the items.
    levels : ndarray of shape (dim,)
        Eigenvalues of the directions, minus the noise level; 0 below it.
    sizes : ndarray of shape (N,)
        Factor of each item's row of `basis`, float32: it falls with the number of users who took the item.
    near : ndarray of shape (N, NEIGHBOURS)
        Neighbours of each item, int32.
    likeness : ndarray of shape (N, NEIGHBOURS)
        Their similarities, float32; 0 where there are fewer.
    """

    basis: np.ndarray
    levels: np.ndarray
    sizes: np.ndarray
    near: np.ndarray
    likeness: np.ndarray


def init_tastes(dim: int, items: int = 0) -> Tastes:
    """Return the `Tastes` of `items` items in `dim` directions before anything was learned."""
    return Tastes(
        basis=states.zeros(items, dim + 2, dtype=np.float32),
        levels=states.zeros(dim),
        sizes=states.zeros(items, dtype=np.float32),
        near=states.zeros(items, NEIGHBOURS, dtype=np.int32),
        likeness=states.zeros(items, NEIGHBOURS, dtype=np.float32),
    )


def fit_tastes(lengths: np.ndarray, taken: np.ndarray, items: int, before: Tastes, seed: int) -> Tastes:
    """Return the tastes of `items` items, computed from the histories of all users.

    `taken` holds the items of one user after the other, and `lengths` the number of items of each user. Subspace
    iteration begins at the tastes `before`. `seed` is the seed of initial directions for new items.
    """
    from scipy import sparse

    users, dim = len(lengths), len(before.levels)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    ones = np.ones(len(taken), np.float32)
    matrix = sparse.csr_array((ones, taken, ends), (users, items))
    degrees = np.bincount(taken, minlength=items).astype(np.float64)
    near, likeness = _fit_neighbours(matrix, lengths, ends, taken, degrees)
    width = min(dim + 2, items, users)
    if width < 3:
        return init_tastes(dim, items)._replace(near=near, likeness=likeness)
    scaled = sparse.diags_array(np.maximum(lengths, 1.0).astype(np.float32) ** -0.25) @ matrix
    scaled = (scaled @ sparse.diags_array((degrees + PRIOR).astype(np.float32) ** -0.5)).tocsr()
    back = scaled.T.tocsr()
    basis = np.random.default_rng([seed, items]).standard_normal((items, width), np.float32)
    begun = bool(before.levels.any())
    if begun:
        basis[: len(before.basis)] = before.basis[:, :width]
        basis[len(before.basis) :] *= items**-0.5
    for _ in range(AGAIN if begun else FIRST):
        basis = np.linalg.qr(back @ (scaled @ basis))[0]
    image = scaled @ basis
    values, turn = np.linalg.eigh((image.T @ image).astype(np.float64))
    out = init_tastes(dim, items)
    full = np.zeros(out.basis.shape, np.float32)
    full[:, :width] = basis @ turn[:, ::-1].astype(np.float32)
    values = values[::-1] / values[-1]
    levels = np.zeros(dim)
    levels[: width - 2] = np.maximum(values[1:-1] - EDGE * values[-1], 0.0)
    sizes = np.sqrt(degrees.sum() / (degrees + PRIOR)).astype(np.float32)
    return Tastes(full, levels, sizes, near, likeness)


def _fit_neighbours(
    matrix: Any, lengths: np.ndarray, ends: np.ndarray, taken: np.ndarray, degrees: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the most similar items of each item and their similarities, (N, NEIGHBOURS) both.

    `matrix` (users, N) is 1 where a user took an item. `taken` holds the items of one user after the other, `lengths`
    the number of items of each user, and `ends` the sums of these numbers, from 0 on. `degrees` (N,) counts the users
    of each item.
    """
    from scipy import sparse

    items = len(degrees)
    if lengths.max(initial=0) > RECENT:  # the last of each user
        kept = np.arange(len(taken)) >= np.repeat(ends[1:] - RECENT, lengths)
        cut = np.concatenate([[0], np.cumsum(np.minimum(lengths, RECENT))])
        matrix = sparse.csr_array((np.ones(cut[-1], np.float32), taken[kept], cut), matrix.shape)
    scale = ((degrees + SHRINKAGE) ** -0.5).astype(np.float32)
    columns = (matrix @ sparse.diags_array(scale)).tocsr()
    rows = columns.T.tocsr()
    near, likeness = np.zeros((items, NEIGHBOURS), np.int32), np.zeros((items, NEIGHBOURS), np.float32)
    step = 4096
    for start in range(0, items, step):
        block = (rows[start : start + step] @ columns).tocsr()
        starts = block.indptr.tolist()
        for i in range(block.shape[0]):
            own, values = block.indices[starts[i] : starts[i + 1]], block.data[starts[i] : starts[i + 1]]
            values = np.where(own == start + i, np.float32(0.0), values)
            if len(own) > NEIGHBOURS:
                best = np.argpartition(-values, NEIGHBOURS)[:NEIGHBOURS]
                own, values = own[best], values[best]
            near[start + i, : len(own)], likeness[start + i, : len(own)] = own, values
    return near, likeness


def taste_of(tastes: Tastes, taken: np.ndarray) -> np.ndarray:
    """Return the taste (dim + 2,) of a user who has taken the items `taken`, as weights of the columns of `basis`.

    The user likes item i by sizes[i] * (basis[i] @ weights).
    """
    known = taken[taken < len(tastes.basis)]
    total = tastes.sizes[known] @ tastes.basis[known]
    total[0] = total[-1] = 0.0
    total[1:-1] *= tastes.levels / (1.0 + len(taken) * tastes.levels)
    return np.asarray(total, np.float32)


def neighbours_of(tastes: Tastes, taken: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the neighbours (m,) of the items `taken`, and the sum (m,) of each one's similarities with these items."""
    known = taken[taken < len(tastes.near)]
    near, likeness = tastes.near[known].ravel(), tastes.likeness[known].ravel()
    if DENSE * len(near) > len(tastes.near):
        every = np.bincount(near, likeness)
        found = np.flatnonzero(every)
        return found, every[found]
    found, place = np.unique(near, return_inverse=True)
    sums = np.bincount(place, likeness, minlength=len(found))
    return found[sums > 0.0], sums[sums > 0.0]
