"""Epochs: an arm is played r times in a row before anything is learned from it (CRMM, MENU).

The arm being played is known by its row, which must be offered again in every round of the epoch, and no other row can
be learned meanwhile: the arm set is fixed, as both papers assume, and rewards come in order.
"""

from typing import NamedTuple

import numpy as np

from onepass.foundation.generic import compiled


class Epoch(NamedTuple):
    """row (dim,) being played; rewards (r,): the first `played` count."""

    row: np.ndarray
    rewards: np.ndarray
    played: int


@compiled
def equal_rows(row: np.ndarray, other: np.ndarray) -> bool:
    """Return whether two rows are equal in every entry."""
    differing = 0
    for j in range(row.size):
        differing += row[j] != other[j]
    return differing == 0


@compiled
def required_index(epoch: Epoch, rows: np.ndarray) -> int:
    """Which of the rows offered is the one being played: -1 if none is, -2 if it is not offered."""
    if epoch.played == 0:
        return -1
    for a in range(rows.shape[0]):
        if equal_rows(epoch.row, rows[a]):
            return a
    return -2


@compiled
def add_play(epoch: Epoch, row: np.ndarray, reward: float) -> Epoch:
    """Return the epoch with one more reward; it is full when `played` is r."""
    for j in range(row.size):
        epoch.row[j] = row[j]
    epoch.rewards[epoch.played] = reward
    return Epoch(row=epoch.row, rewards=epoch.rewards, played=epoch.played + 1)


@compiled
def reset_epoch(epoch: Epoch) -> Epoch:
    """Return an epoch in which nothing has been played yet."""
    return Epoch(row=epoch.row, rewards=epoch.rewards, played=0)


@compiled
def first_violation(epoch: Epoch, rows: np.ndarray) -> int:
    """Return the first of the rows (n, dim) that would break off the epoch it falls into; -1 if there is none."""
    row, played = epoch.row, epoch.played
    for i in range(rows.shape[0]):
        if played > 0 and not equal_rows(row, rows[i]):
            return i
        row, played = rows[i], (played + 1) % epoch.rewards.size
    return -1


def check_epoch(epoch: Epoch, rows: np.ndarray) -> None:
    """ValueError unless the rows continue the epoch."""
    bad = int(first_violation(epoch, rows))
    if bad >= 0:
        raise ValueError(
            f"contexts must repeat the arm being played {epoch.rewards.size} times in a row, but row {bad} is another; "
            "learn the rewards of one decision before the next, or use an estimator such as OnePassHuber"
        )
