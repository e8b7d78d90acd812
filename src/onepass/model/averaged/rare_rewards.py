"""Rare and large rewards: the parts that clipping removed are summed by size, and count if such rewards recur.

    size of a reward: the smallest k with |r - m| <= 3 D 8^k, at most 12
    tail_a = T |T| / (n_a sum |c|),  T = sum of c over sizes 1 .. k,  k: the largest that RECURS n_a rewards reach,
             or, where T < 0, at least LOSSES rewards and a share of LOSSES_RECUR
    clip_a = 3 D 8^k,  k: the largest that LEARNED_FROM rewards of the arm reach, and a share of OFTEN;
             from k = 2 on, ONE_SIDED_FROM and a share of ONE_SIDED_OFTEN are enough if most c have the same sign
    For k from 2 to PLAUSIBLE, rewards of sizes k to PLAUSIBLE need a share of only RECURS_PLAUSIBLE for the tail; for
    the clip PLAUSIBLE_FROM of them and a share of PLAUSIBLE_OFTEN are enough, if most c have the same sign.

c is what clipping removed from a reward of the arm, by the reward's size; n_a is the number of rows that the arm has
learned; m and D are explained in rewards.py. The tail is added to the mean that the arm's models predict. The mean of
clipped rewards plus the mean of the removed parts is the mean of all rewards, so clipping loses nothing that recurs. A
single outlier counts only while the arm has at most 1 / RECURS rows. After that it has no influence, because tails are
computed from counts and sums, and the models never saw the removed part. Rewards of sizes 2 to PLAUSIBLE need less,
because they are less likely to be errors; still larger ones do not count there. Negative tails need more evidence,
because an arm that seems bad is not played again, and nothing would correct it. |T| / sum |c| is 1 if all that was
removed has one sign, and small if tails are symmetric.

A tail says nothing about contexts. So where large rewards of one sign have recurred often enough, the models learn them
whole, and with them for which rows they come. Size 1 is left out: normal noise exceeds 3 D in one of twenty rewards.

An arm whose own rewards are all equal, while other arms' rewards vary, may be one that pays rarely. Until it has
MANY_ALIKE rows it is treated as if it had learned nothing. The same holds, until MANY_REPEATS rows or a reward of size
2, for an arm that often has one and the same reward. It may pay rarely for some rows, and nothing else for these, and
then its models learn to avoid just these rows.
"""

import numpy as np

from onepass.foundation.generic import compiled

SIZES = 12  # of rewards beyond the clip: the last one holds all that are larger
STEP = 8.0  # from a size to the next
RECURS = 0.025  # of an arm's rows: .04 and .05 lose jackpots that one row in ten pays
PLAUSIBLE, RECURS_PLAUSIBLE = 4, 0.005  # size, share: with .015, an arm was left that paid once in its first 67 rows
PLAUSIBLE_FROM, PLAUSIBLE_OFTEN = 5.0, 0.01  # rewards, share: arms that pay for some rows only reach .04 late or never
LOSSES, LOSSES_RECUR = 5.0, 0.05  # rewards, and share of rows: fewer large losses may be errors
LEARNED_FROM, OFTEN = 20.0, 0.2  # rewards, and their share of an arm's rows, from which models learn them whole
ONE_SIDED_FROM, ONE_SIDED_OFTEN = 10.0, 0.04  # the same if signs agree: with 5, outliers of 10^12 do harm
AGREE = 0.8  # mean sign of what was removed, from which signs agree
MANY_ALIKE = 30.0  # rows: of an arm that pays one row in ten, 96 % have paid by then
REPEATS_OFTEN, MANY_REPEATS = 0.1, 60.0  # share of an arm's rewards that are the same, and its rows
ROOM, MORE_ROOM = 4.0, 2.0  # a share of at most 1 / ROOM of all rows is spent so, 1 / MORE_ROOM for repeated rewards
COUNTS, SUMS, LENGTHS = range(3)  # rows of an arm's tails, (3, SIZES)


@compiled
def note_size(tails: np.ndarray, reward: float, middle: float, most: float, learned: int) -> tuple[int, float]:
    """Count a reward of an arm by its size class, and return the class and the limit at which the reward is clipped.

    - tails (3, 12): statistics of the arm, updated in place. For each of the size classes 1 to 12 they are the number
      of rewards, the sum of what clipping removed, and the sum of the absolute values of what clipping removed.
    - middle: median of all rewards.
    - most: basic limit of the distance from the median; with 0 the result is class 0 and limit 0, which means no
      clipping.
    - learned: number of rows of the arm.

    A reward of class 0 lies within the basic limit. A reward of class k deviates from the median by more than 8^(k - 1)
    and at most 8^k basic limits; class 12 holds all larger ones, too.
    """
    if most == 0.0:
        return 0, 0.0
    size, limit = 0, most
    while size < SIZES and abs(reward - middle) > limit:
        limit *= STEP
        size += 1
    if size > 0:
        tails[COUNTS, size - 1] += 1.0
    return size, clip_of(tails, most, learned + 1)


@compiled
def clip_of(tails: np.ndarray, most: float, learned: int) -> float:
    """Return how far an arm's reward may lie from the median before it is clipped.

    The result is the basic limit `most`, or `most` times a power of 8 if rewards that far away have come so often that
    models learn them whole (see the top of this module). `tails` (3, 12) holds the arm's statistics by size class, as
    `note_size` describes them, and `learned` is the arm's number of rows.
    """
    above, signs, near, agree = 0.0, 0.0, 0.0, 0.0
    for k in range(SIZES, 0, -1):
        count, length = tails[COUNTS, k - 1], tails[LENGTHS, k - 1]
        sign = count * tails[SUMS, k - 1] / length if length > 0.0 else 0.0
        above += count
        signs += sign
        if k <= PLAUSIBLE:
            near += count
            agree += sign
        if above >= LEARNED_FROM and above >= OFTEN * learned:
            return most * STEP**k
        recurs = above >= ONE_SIDED_FROM and above >= ONE_SIDED_OFTEN * learned
        if k > 1 and recurs and abs(signs) >= AGREE * above:
            return most * STEP**k
        recurs = near >= PLAUSIBLE_FROM and near >= PLAUSIBLE_OFTEN * learned
        if k > 1 and recurs and abs(agree) >= AGREE * near:
            return most * STEP**k
    return most


@compiled
def add_cut(tails: np.ndarray, size: int, cut: float) -> None:
    """Add to an arm's statistics tails (3, 12) the amount `cut` that clipping removed from a reward of class `size`.

    The classes, from 0, are those of `note_size`; class 0 has no statistics.
    """
    if size > 0:
        tails[SUMS, size - 1] += cut
        tails[LENGTHS, size - 1] += abs(cut)


@compiled
def tail_of(tails: np.ndarray, learned: int) -> float:
    """Return the mean of what clipping removed from an arm's rewards, 0 unless such rewards recur.

    The mean is over all `learned` rows of the arm, and is smaller if clipping removed parts of both signs. `tails` (3,
    12) holds the arm's statistics by size class, as `note_size` describes them.
    """
    above, near = 0.0, 0.0
    for k in range(SIZES, 0, -1):
        above += tails[COUNTS, k - 1]
        near += tails[COUNTS, k - 1] if k <= PLAUSIBLE else 0.0
        recurs = above > 0.0 and above >= RECURS * learned
        if recurs or (k > 1 and near > 0.0 and near >= RECURS_PLAUSIBLE * learned):
            total, length = tails[SUMS, :k].sum(), tails[LENGTHS, :k].sum()
            if length > 0.0 and (total > 0.0 or above >= max(LOSSES, LOSSES_RECUR * learned)):
                return total * (abs(total) / length) / learned
    return 0.0


@compiled
def says_little(alike: float, learned: int, known: int, arms: int) -> bool:
    """Return True if an arm counts as unknown, because its few rewards were all equal.

    - alike: number of equal first rewards of the arm.
    - learned: number of rows of the arm.
    - known: number of rows of all arms together.
    - arms: number of arms.
    """
    return learned <= alike and learned < min(MANY_ALIKE, known / (ROOM * arms))


@compiled
def has_many_repeats(repeats: float, learned: int, known: int, arms: int) -> bool:
    """Return True if an arm has few rows, and its rewards are often the same.

    - repeats: how often that value came which was the first to come twice in a row.
    - learned: number of rows of the arm.
    - known: number of rows of all arms together.
    - arms: number of arms.
    """
    return repeats >= REPEATS_OFTEN * learned and learned < min(MANY_REPEATS, known / (MORE_ROOM * arms))


@compiled
def has_paid(tails: np.ndarray) -> bool:
    """Return True if an arm has had a reward of size class 2 or more: over 8 basic limits from the median.

    `tails` (3, 12) are the arm's statistics of clipped rewards by size class.
    """
    return tails[COUNTS, 1:].sum() > 0.0
