"""Rare and large rewards: the parts that clipping removed are summed by size, and count if such rewards recur.

    size of a reward: the smallest k with |r - m| <= 3 D 8^k, at most 12
    tail_a = T |T| / (n_a sum |c|),  T = sum of c over sizes 1 .. k,  k: the largest that RECURS n_a rewards reach,
             or, where T < 0, at least LOSSES rewards and twice that share
    clip_a = 3 D 8^k,  k: the largest that LEARNED_FROM rewards of the arm reach, and a share of OFTEN

c is what clipping removed from a reward of the arm, by the reward's size; n_a is the number of rows that the arm has
learned; m and D are explained in rewards.py. The tail is added to the mean that the arm's models predict. The mean of
clipped rewards plus the mean of the removed parts is the mean of all rewards, so clipping loses nothing that recurs. A
single outlier counts only while the arm has at most 1 / RECURS rows. After that it has no influence, because tails are
computed from counts and sums, and the models never saw the removed part. Negative tails need more evidence, because an
arm that seems bad is not played again, and nothing would correct it. |T| / sum |c| is 1 if all that was removed has one
sign, and small if tails are symmetric.

An arm whose own rewards are all equal, while other arms' rewards vary, may be one that pays rarely. Until it has
MANY_ALIKE rows it is treated as if it had learned nothing.
"""

from onepass.foundation.generic import compiled

SIZES = 12  # of rewards beyond the clip: the last one holds all that are larger
STEP = 8.0  # from a size to the next
RECURS = 0.025  # of an arm's rows: .04 and .05 lose jackpots that one row in ten pays
LOSSES = 5.0  # rewards: fewer large losses may be errors
LEARNED_FROM, OFTEN = 20.0, 0.2  # rewards, and their share of an arm's rows, from which models learn them whole
MANY_ALIKE = 12.0  # rows: of an arm that pays one row in ten, 72 % have paid by then
ROOM = 4.0  # at most a share of 1 / ROOM of all rows is spent so
COUNTS, SUMS, LENGTHS = range(3)  # rows of an arm's tails, (3, SIZES)


@compiled
def note_size(tails, reward, middle, most, learned):
    """Count a reward by its size, and return the size and the clip for this arm.

    `tails` (3, SIZES) are the arm's statistics, updated in place. Its rows are, for each size, the number of rewards,
    the sum of what clipping removed, and the sum of the absolute values. `middle` is the median of the rewards,
    `most` the basic clip (0 for none), and `learned` the number of rows of the arm. A reward of size k deviates from
    the median by more than 8^(k - 1) basic clips.
    """
    if most == 0.0:
        return 0, 0.0
    size, limit, above = 0, most, 0.0
    while size < SIZES and abs(reward - middle) > limit:
        limit *= STEP
        size += 1
    if size > 0:
        tails[COUNTS, size - 1] += 1.0
    for k in range(SIZES, 0, -1):
        above += tails[COUNTS, k - 1]
        if above >= LEARNED_FROM and above >= OFTEN * (learned + 1):
            return size, most * STEP**k
    return size, most


@compiled
def add_cut(tails, size, cut):
    """Add to an arm's statistics tails (3, SIZES) the amount `cut` that clipping removed from a reward of this size."""
    if size > 0:
        tails[SUMS, size - 1] += cut
        tails[LENGTHS, size - 1] += abs(cut)


@compiled
def tail_of(tails, learned):
    """Return the mean of what clipping removed from an arm's rewards, 0 unless such rewards recur.

    `tails` (3, SIZES) are the arm's statistics of clipped rewards, and `learned` is its number of rows.
    """
    above = 0.0
    for k in range(SIZES, 0, -1):
        above += tails[COUNTS, k - 1]
        if above > 0.0 and above >= RECURS * learned:
            total, length = tails[SUMS, :k].sum(), tails[LENGTHS, :k].sum()
            if length > 0.0 and (total > 0.0 or above >= max(LOSSES, 2.0 * RECURS * learned)):
                return total * (abs(total) / length) / learned
    return 0.0


@compiled
def says_little(alike, learned, known, arms):
    """Return True if an arm counts as unknown, since its few rewards were all equal.

    - alike: number of equal first rewards.
    - learned: rows of the arm.
    - known: rows of all `arms` arms together.
    """
    return learned <= alike and learned < min(MANY_ALIKE, known / (ROOM * arms))
