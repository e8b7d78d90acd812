"""Assignments of arms to slots with different eligible arms, so that every later slot can still be filled.

    arm a may take slot j:   a is eligible for j, not taken, and slots j + 1, ..., k - 1 have an assignment without a

An assignment gives every slot an eligible arm of its own. It is a bipartite matching, found by augmenting paths (Kuhn
1955) in O(k^2 K) for k slots and K arms. Only the k - 1 arms of one matching of the later slots have to be tried.
"""

import numpy as np

from onepass.foundation.generic import compiled

NONE = -1


@compiled
def augment(
    eligible: np.ndarray, slot: int, free: np.ndarray, match: np.ndarray, owner: np.ndarray, reached: np.ndarray
) -> bool:
    """Give `slot` an arm in an assignment of arms to slots, moving other slots to other arms if needed.

    Returns True if the slot has an arm. Returns False, and changes no assignment, if no arm is left.

    - eligible (k, K): True if an arm may take a slot.
    - free (K,): True for the arms that may be used.
    - match (k,): arm of each slot, NONE without one; changed in place.
    - owner (K,): slot of each arm, NONE without one; changed in place.
    - reached (k,): becomes True for the slots that were tried. If the result is False, the arms that may be used for
      these slots are one fewer than the slots.
    """
    k, count = eligible.shape
    before, queue = np.full(count, NONE), np.empty(k, np.int64)
    reached[:] = False
    queue[0], first, last, reached[slot] = slot, 0, 1, True
    while first < last:
        at = queue[first]
        first += 1
        for a in range(count):
            if not (free[a] and eligible[at, a] and before[a] == NONE):
                continue
            before[a] = at
            if owner[a] == NONE:
                arm = a
                while arm != NONE:
                    taker = before[arm]
                    match[taker], owner[arm], arm = arm, taker, match[taker]
                return True
            reached[owner[a]] = True
            queue[last] = owner[a]
            last += 1
    return False


@compiled
def unfillable_slots(eligible: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Return a mask (k,) of slots that cannot all get an arm: together they have fewer eligible arms than slots.

    `eligible` (k, K) is the mask of each slot, and `free` (K,) marks arms that may be used. The result is all False if
    every slot can get an arm of its own.
    """
    k, count = eligible.shape
    match, owner, reached = np.full(k, NONE), np.full(count, NONE), np.zeros(k, np.bool_)
    for slot in range(k):
        if not augment(eligible, slot, free, match, owner, reached):
            return reached
    reached[:] = False
    return reached


@compiled
def exclude_dead_ends(eligible: np.ndarray, slot: int, open_arms: np.ndarray, free: np.ndarray) -> None:
    """Set open_arms (K,) to False for arms that would leave a later slot without an arm if `slot` took them.

    `eligible` (k, K) is the mask of each slot; `free` (K,) marks arms that no earlier slot has taken.
    """
    k, count = eligible.shape
    later, enough = k - 1 - slot, True
    for i in range(slot + 1, k):
        left = 0
        for a in range(count):
            left += free[a] and eligible[i, a]
            if left > later:
                break
        if left <= later:
            enough = False
            break
    if enough:  # more arms for every later slot than there are slots: each finds one whatever is chosen
        return
    match, owner, reached = np.full(k, NONE), np.full(count, NONE), np.zeros(k, np.bool_)
    for i in range(slot + 1, k):
        if not augment(eligible, i, free, match, owner, reached):
            open_arms[:] = False
            return
    for arm in match[slot + 1 :].copy():
        i = owner[arm]
        if not open_arms[arm] or i == NONE:  # free again: another arm was found for its slot
            continue
        free[arm], owner[arm], match[i] = False, NONE, NONE
        if not augment(eligible, i, free, match, owner, reached):
            open_arms[arm], owner[arm], match[i] = False, i, arm
        free[arm] = True
