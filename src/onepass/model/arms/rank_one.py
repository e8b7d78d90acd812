"""Reduction of rows x = vec(u v^T) for arms whose factor v keeps its direction, so that an arm learns only u.

    e_a = v_a / ||v_a|| of the first row with v_a != 0,      length = v^T e_a,      the row that arm a learns: length u

It is exact for ridge regression on an exact design, and takes d_u numbers for a direction instead of d_u d_a.
"""

import numpy as np

from onepass.arena.arena import NONE
from onepass.features.outer_product import signed_lengths


def lengths_along(directions: np.ndarray, places: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the signed lengths v^T e (n,) of factors v, the rows of `right` (n, d_a), along their arms' directions e.

    Contexts are vec(u v^T), and the v of an arm always lies along its direction. `directions` (arms, d_a) holds the
    unit vectors e, zero for an arm without a direction, and `places` (n,) the index of each row's arm. The length is
    ||v|| if the arm has no direction yet. Raises ValueError if a row is not parallel to its arm's direction.
    """
    lengths, turned = signed_lengths(right, directions, places)
    if turned >= 0:
        raise ValueError(
            f"contexts.right must keep the direction of every arm, but row {turned} has turned; "
            "use OuterProduct(reduce=False) for arms whose factors change"
        )
    return lengths


def directions_for(held: np.ndarray, arm_ids: list[int], group: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the unit vectors (arms, d_a) of the arms' factors, given factors right (n, d_a) that are to be learned.

    Contexts are vec(u v^T). The direction of an arm is that of its first v that is not 0; it is 0 if there is none. Row
    i belongs to arm group[i], whose id is arm_ids[group[i]], or NONE if it has not learned. `held` has the directions
    of arms that have learned, by id.
    """
    norms = np.linalg.norm(right.astype(np.float64), axis=1)
    directions = np.zeros((len(arm_ids), right.shape[1]))
    some = np.flatnonzero(norms > 0.0)
    places, first = np.unique(group[some], return_index=True)
    directions[places] = right[some[first]] / norms[some[first], None]
    for place, arm_id in enumerate(arm_ids):
        if arm_id != NONE and held[arm_id].any():
            directions[place] = held[arm_id]
    return directions
