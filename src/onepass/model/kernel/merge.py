"""Merging of exact kernel models, whose plays and sums of rewards at every point add up.

The models 1 and 2 are merged by

    n = n_1 + n_2,  s = s_1 + s_2 at every point;   mean and scatter of the rewards by Chan, Golub and LeVeque 1983:
    S = S_1 + S_2 + (c_1 - c_2)^2 t_1 t_2 / (t_1 + t_2)

where c_i is the mean of all rewards of model i, t_i their number, and S_i their sum of squares around the mean.

n is the number of plays of a point, and s the sum of its rewards. If arms change, the table of points is the union of
both tables, with the points of the first model first.
"""

import numpy as np

from onepass.foundation import state as states
from onepass.foundation.check import quote
from onepass.foundation.files import Contents
from onepass.foundation.registry import has_equal_arguments
from onepass.model.kernel.state import CENTRE, ROOM, ROUNDS, SCATTER, USED, KernelState, append_point, pad_array


def check_mergeable(mine: Contents, its: Contents) -> None:
    """Raise ValueError unless the models `mine` and `its` have the same kernel, reg, normalization and arms.

    Also raises it if a kernel is still to be chosen from the first plays.
    """
    if mine.extra["fits"] or its.extra["fits"]:
        raise ValueError("kernel and reg must have been chosen before bandits merge: learn fit_after plays first")
    for name in ("fixed", "kernel", "reg"):
        if not has_equal_arguments(mine.extra[name], its.extra[name]):
            raise ValueError(f"other must have {name} {quote(mine.extra[name])}, got {quote(its.extra[name])}")
    if mine.params["normalize"] != its.params["normalize"]:
        raise ValueError(f"other must have normalize={mine.params['normalize']}, got {its.params['normalize']}")
    own, theirs = mine.state.state.points, its.state.state.points
    if mine.extra["fixed"] and not np.array_equal(own, theirs):
        raise ValueError(f"other must have the same arms, {len(own)} points, got {len(theirs)} points")
    if own.shape[1] and theirs.shape[1] and own.shape[1] != theirs.shape[1]:
        raise ValueError(f"other must have rows of {own.shape[1]} features, got {theirs.shape[1]}")


def merge_tallies(mine: np.ndarray, its: np.ndarray) -> np.ndarray:
    """Return the reward statistics of all plays of two models.

    `mine` and `its` are the statistics of each model: number of plays, mean, and sum of squares about the mean.
    """
    tally, gap, rounds = mine.copy(), its[CENTRE] - mine[CENTRE], mine[ROUNDS] + its[ROUNDS]
    if rounds:
        tally[CENTRE] += gap * its[ROUNDS] / rounds
        tally[SCATTER] += its[SCATTER] + gap * gap * mine[ROUNDS] * its[ROUNDS] / rounds
    tally[ROUNDS] = rounds
    return tally


def merge_plays(state: KernelState, other: KernelState, reg: float, fixed: bool) -> KernelState:
    """Return a copy of a kernel model's state with the plays of `other` added; the posterior must be computed again.

    `fixed` is True if both models have the same fixed arms, and `reg` is the variance of the noise.
    """
    if not state.points.shape[1] or not other.points.shape[1]:  # where arms change, no row has been seen
        return states.copy(state if state.points.shape[1] else other)
    state, count = states.copy(state), other.size
    places = np.arange(count)
    if not fixed:
        known = {(row + 0.0).tobytes(): place for place, row in enumerate(state.points[: state.size])}
        for i, row in enumerate(other.points[:count]):
            place = known.get((row + 0.0).tobytes(), -1)
            if place < 0:
                state = append_point(state, row, float(other.prior[i]), reg)
                place = state.size - 1
            places[i] = place
    state.plays[places] += other.plays[:count]
    state.sums[places] += other.sums[:count]
    members = state.members[: state.n_rows]
    theirs = places[other.members[: other.n_rows]]
    members = np.concatenate([members, theirs[~np.isin(theirs, members)]])
    room, tally = max(len(members) + ROOM, len(state.members)), merge_tallies(state.tally, other.tally)
    tally[USED] = len(members)
    return state._replace(
        rows=np.zeros((room, state.rows.shape[1])),
        root=np.zeros((room, room)),
        members=pad_array(members, room),
        tally=tally,
    )
