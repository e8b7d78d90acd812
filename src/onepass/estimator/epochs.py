"""Epochs of r rounds, in which one arm is played r times in a row before its rewards are learned (CRMM, MENU).

The arm being played is identified by its row, which must be offered in every round of the epoch. No other row can be
learned meanwhile. As both papers assume, the arm set is fixed and rewards come in order.
"""

from typing import NamedTuple

import numpy as np

from onepass.foundation.generic import compiled


class Epoch(NamedTuple):
    """Rewards of an arm that must be played r times in a row before they are learned.

    It holds the arm's row (dim,) and the rewards (r,), of which the first `played` count.
    """

    row: np.ndarray
    rewards: np.ndarray
    played: int


@compiled
def equal_rows(row: np.ndarray, other: np.ndarray) -> bool:
    """Return True if two rows are equal in every entry."""
    differing = 0
    for j in range(row.size):
        differing += row[j] != other[j]
    return differing == 0


@compiled
def required_index(epoch: Epoch, rows: np.ndarray) -> int:
    """Return the index among `rows` (K, dim) of the arm that must be played again to finish the epoch.

    It is -1 if the epoch has no plays yet, and -2 if its arm is not on offer.
    """
    if epoch.played == 0:
        return -1
    for a in range(rows.shape[0]):
        if equal_rows(epoch.row, rows[a]):
            return a
    return -2


@compiled
def add_play(epoch: Epoch, row: np.ndarray, reward: float) -> Epoch:
    """Return the epoch, the rewards of an arm that is played r times in a row, with one more reward."""
    for j in range(row.size):
        epoch.row[j] = row[j]
    epoch.rewards[epoch.played] = reward
    return Epoch(row=epoch.row, rewards=epoch.rewards, played=epoch.played + 1)


@compiled
def reset_epoch(epoch: Epoch) -> Epoch:
    """Return the epoch with no rewards counted, so that the next arm can be played several times in a row."""
    return Epoch(row=epoch.row, rewards=epoch.rewards, played=0)


@compiled
def first_violation(epoch: Epoch, rows: np.ndarray) -> int:
    """Return the index of the first of rows (n, dim) that is not the arm to be played again; -1 if there is none.

    The rows follow the plays of the present epoch. An arm is repeated until its epoch has r plays, as many as
    `epoch.rewards` has entries. Then any arm may begin.
    """
    row, played = epoch.row, epoch.played
    for i in range(rows.shape[0]):
        if played > 0 and not equal_rows(row, rows[i]):
            return i
        row, played = rows[i], (played + 1) % epoch.rewards.size
    return -1


def check_epoch(epoch: Epoch, rows: np.ndarray) -> None:
    """Raise ValueError unless rows (n, dim) repeat one arm until it was played r times, then the next, and so on.

    The rows follow the plays that `epoch` holds.
    """
    bad = int(first_violation(epoch, rows))
    if bad >= 0:
        raise ValueError(
            f"contexts must repeat the arm being played {epoch.rewards.size} times in a row, but row {bad} is another; "
            "learn the rewards of one decision before the next, or use an estimator such as OnePassHuber"
        )
