"""Replacement of landmarks when rows move to another region, checked after every `warm_up` examples.

A row has moved if its nearest landmark is more than FAR widths away, or if one of its features leaves its range and is
clipped. Once more than HALF of the last `warm_up` rows have moved, half of the landmarks are kept and half are chosen
from these rows, which also determine scales and width. The ranges of features cover the old and the new rows. What was
learned is kept: the weights v of the new map phi' give about the same decisions f at the old landmarks p_j as before.
They minimize

    min_v  sum_j (v^T phi'(p_j) - f(p_j))^2 + RIDGE ||v||^2      for every class, the linear part left as it is

and the design begins as A = reg I + HELD sum_j phi'(p_j) phi'(p_j)^T. Then the last rows are decided and learned again
with the new map. It is used only if the later half of them has less loss in this way than with the old map. So a column
of row numbers, which leaves its range for ever, does not spoil the map for the other columns.
"""

from typing import Any

import numpy as np

from onepass.design.contract import append_rows
from onepass.features.contract import transform_row
from onepass.features.kernels import median_distance
from onepass.foundation.linalg import squared_distances
from onepass.learner.column_stats import standard_deviations
from onepass.learner.newton_features import NO_CLASS
from onepass.learner.newton_map import make_map

FAR = 2.0  # widths: the kernel is 0.14 there
HALF = 0.5  # of the last rows
HELD = 1.0  # examples that every landmark kept counts for
RIDGE = 1e-6  # in squares of f


def has_moved(s: Any) -> bool:
    """Return True if most of the latest rows are far from all landmarks, so that new landmarks are needed."""
    rows = s.buffer_rows
    cut = ((rows < s.low) | (rows > s.high)).any(axis=1)
    near = squared_distances(np.ascontiguousarray(np.clip(rows, s.low, s.high) * s.inverse_scale), s.map.points)
    far = near.min(axis=1) * s.map.precision > 0.5 * FAR * FAR
    return bool((cut | far).mean() > HALF)


def refresh_landmarks(s: Any, p: dict[str, Any], rank: int, design: Any, near: float) -> Any:
    """Return the state of `KernelNewton` with new landmarks, half of which are among the latest rows.

    The latest rows must then be learned again. `p` holds the parameters of `KernelNewton`, `rank` is the number of
    kernel features, and `design` the initial design. `near` multiplies the squared distance in the exponent of the
    kernel with the previous example: exp(-near ||x - x_last||^2 / (2 width^2)).
    """
    rows, linear = s.buffer_rows, s.slope.size
    scale = np.where(s.inverse_scale > 0.0, s.inverse_scale, 1.0)
    old = s.map.points / scale
    known = np.empty((len(old), rank))
    for j in range(len(old)):
        transform_row(s.map, s.map.points[j], known[j])
    w = np.atleast_2d(s.w)
    wanted = known @ w[:, :rank].T + w[:, -2]
    rng = np.random.default_rng(p["seed"] + s.n_seen)
    kept = rng.permutation(len(old))[: p["size"] // 2]
    chosen = rng.permutation(len(rows))[: p["size"] - len(kept)]
    inverse_scale = (
        np.where(s.inverse_scale > 0.0, 1.0 / standard_deviations(rows), 0.0) if p["standardize"] else s.inverse_scale
    )
    points = np.ascontiguousarray(np.vstack([old[kept], rows[chosen]]) * inverse_scale)
    width = p["width"] or median_distance(np.ascontiguousarray(rows * inverse_scale))
    width *= p["width_factor"]
    features = make_map({**p, "size": len(points)}, rank, points, width)
    fresh = np.zeros((len(old), rank + linear + 2))
    for j in range(len(old)):
        transform_row(features, old[j] * inverse_scale, fresh[j, :rank])
    fresh[:, -2] = 1.0
    part = np.delete(fresh, np.s_[rank : rank + linear], axis=1)[:, :-1]
    found = np.linalg.solve(part.T @ part + RIDGE * np.eye(rank + 1), part.T @ wanted).T
    weights = w.copy()
    weights[:, :rank], weights[:, -2] = found[:, :rank], found[:, -1]
    low, high = s.low, s.high
    if p["standardize"]:
        least, most = rows.min(axis=0), rows.max(axis=0)
        margin = 0.5 * most - 0.5 * least
        low, high = np.minimum(low, least - margin), np.maximum(high, most + margin)
    return s._replace(
        map=features,
        design=append_rows(design.initial_state(), np.sqrt(HELD) * fresh),
        w=weights.reshape(s.w.shape),
        phi=np.zeros_like(s.phi),
        inverse_scale=inverse_scale,
        low=low,
        high=high,
        last=np.zeros_like(s.last),
        scaled=np.zeros_like(s.scaled),
        last_target=0.0 if s.w.ndim == 1 else NO_CLASS,
        vote_precision=0.5 * near / width**2 if p["recent"] else -1.0,
    )
