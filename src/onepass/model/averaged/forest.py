"""Trees whose leaves predict the reward of every arm, grown from the most recent rows and shared by all arms.

    m_a(node) = (sum of the arm's rewards in the node + m_a(parent)) / (number of these rewards + 1)
    m_a(above the root) = mu;   mean_a(x) = the mean over trees of m_a at the leaf of x
    h_a(x) = the mean over trees of 1 / (number of the arm's rewards at the leaf of x + 1)

mu is the mean of an unknown arm (rewards.py). The trees are extremely randomized (Geurts, Ernst and Wehenkel 2006): a
node draws a few columns, and for each a threshold between two of its rows. It keeps the split that explains most of the
variance of rewards within arms. A node with less than SPLIT rows, or whose arms have equal rewards, is a leaf.

Every reward is added at once to the nodes that its row passes. After every GROWTH n / T rewards, with n rows stored and
T trees, the oldest tree is grown anew from all stored rows. So every tree is replaced while the number of rows grows by
GROWTH, and no call grows more than one tree. One tree takes about n log n steps for each column drawn, with n at most
MOST_ROWS. A reward takes T times the depth of a tree, and a decision that times the number of arms.

Rewards are clipped as for the other models: the error of the forest is held within `bound`. A tree that is grown anew
holds every stored reward within HELD times that of the median, so that an outlier among the first rewards is harmless.
The generator of the splits (splitmix64) is part of the state. Its seed is that of the model, so that a replay grows the
same trees.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.foundation.generic import compiled
from onepass.foundation.state import lazy_zeros, zeros

N_TREES = 30
WIDEST = 32  # columns: with more, a tree takes longer to grow
FIRST_ROWS, MOST_ROWS = 64, 4_096  # rows stored at first, and at most; nodes of a tree likewise
FEWEST_NODES = 64  # of a tree: with less memory there is no forest
MEMORY = 0.1  # share of `memory_limit`; with more, calls in which arrays grow take longer than 5 ms
GROWTH = 0.5  # of the number of rows, while all trees are grown anew: 1 makes up to 1.1 times the mistakes of .3
SPLIT = 4  # rows that a node with children has at least
DRAWN = 1.5  # times the square root of the number of columns: columns that a node draws
HELD = 10.0 / 3.0  # clips from the median: stored rewards are held within
SAME = 1e-9  # of the variance: a split that explains so little more is no better
NONE = -1  # the slot of a stored row that is not used

TOTAL, NEXT, SINCE = range(3)  # entries of `Forest.places`


class Forest(NamedTuple):
    """State of T trees with at most N nodes each; arms are at the slots of a `Mixture`.

    - rows (d, R), arms (R,), gains (R,): a ring of the last rows, the slots that were played (-1: not used) and their
      clipped rewards.
    - columns, children (T, N), thresholds (T, N): a row goes to the first child if its column is at most the threshold,
      else to the next node after it. Nodes without children have 0 for the first child.
    - counts, sums (T, N, slots): number of an arm's rewards in a node, and the sum of these rewards, each minus the
      tree's origin.
    - origins (T,): the mean reward when the tree was grown.
    - scores (2,): sums of e^2 / (1 + h) and of log(1 + h), over residuals e and squared widths h.
    - places (3,): rows stored so far, the tree that is replaced next, and rows since the last one.
    - random (1,): state of the generator.
    """

    rows: np.ndarray
    arms: np.ndarray
    gains: np.ndarray
    columns: np.ndarray
    children: np.ndarray
    thresholds: np.ndarray
    counts: np.ndarray
    sums: np.ndarray
    origins: np.ndarray
    scores: np.ndarray
    places: np.ndarray
    random: np.ndarray


def init_forest(dim: int, trees: int, seed: int) -> Any:
    """Return a forest that has learned nothing, for rows with `dim` columns; () without trees, or for wider rows."""
    if trees == 0 or dim > WIDEST:
        return ()
    return Forest(
        rows=zeros(dim, FIRST_ROWS),
        arms=zeros(FIRST_ROWS, dtype=np.int64),
        gains=zeros(FIRST_ROWS),
        columns=zeros(trees, FIRST_ROWS, dtype=np.int32),
        children=zeros(trees, FIRST_ROWS, dtype=np.int32),
        thresholds=zeros(trees, FIRST_ROWS),
        counts=zeros(trees, FIRST_ROWS, 0, dtype=np.float32),
        sums=zeros(trees, FIRST_ROWS, 0, dtype=np.float32),
        origins=zeros(trees),
        scores=zeros(2),
        places=zeros(SINCE + 1, dtype=np.int64),
        random=np.array([seed % 2**64], np.uint64),
    )


@compiled
def draw(forest: Forest) -> np.uint64:
    """Return the next 64 random bits of the forest's generator."""
    forest.random[0] += np.uint64(0x9E3779B97F4A7C15)
    z = forest.random[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def draw_below(forest: Forest, n: int) -> np.int64:
    """Return a random integer from 0 to n - 1."""
    return np.int64(draw(forest) % np.uint64(n))


@compiled
def next_node(forest: Forest, t: int, node: int, x: np.ndarray) -> int:
    """Return the child of a node of tree t that row x goes to, or 0 at a leaf."""
    first = forest.children[t, node]
    if first == 0:
        return 0
    return first if x[forest.columns[t, node]] <= forest.thresholds[t, node] else first + 1


@compiled
def ask_forest(forest: Forest, x: np.ndarray, slots: np.ndarray, level: float) -> np.ndarray:
    """Return the predicted rewards (K,) of the arms in `slots` (K,) at row x (d,).

    A slot is the index of an arm in a `Mixture`, negative for an unknown arm, whose mean is `level`.
    """
    trees = forest.children.shape[0]
    means, own = np.zeros(slots.size), np.zeros(slots.size)
    for t in range(trees):
        node, origin = 0, forest.origins[t]
        own[:] = level - origin
        while True:
            counts, sums = forest.counts[t, node], forest.sums[t, node]
            for a in range(slots.size):
                if slots[a] >= 0:
                    own[a] = (sums[slots[a]] + own[a]) / (counts[slots[a]] + 1.0)
            node = next_node(forest, t, node, x)
            if node == 0:
                break
        for a in range(slots.size):
            means[a] += own[a] + origin
    return means / trees


@compiled
def judge_forest(forest: Forest, x: np.ndarray, slot: int, level: float) -> tuple[float, float]:
    """Return the predicted reward of one arm at row x, and the squared width h of the prediction.

    `slot` is the index of the arm in a `Mixture`, and `level` is the mean of an unknown arm.
    """
    trees, mean, h = forest.children.shape[0], 0.0, 0.0
    for t in range(trees):
        node, leaf, own = 0, 0, level - forest.origins[t]
        while True:
            own = (forest.sums[t, node, slot] + own) / (forest.counts[t, node, slot] + 1.0)
            leaf, node = node, next_node(forest, t, node, x)
            if node == 0:
                break
        mean += own + forest.origins[t]
        h += 1.0 / (forest.counts[t, leaf, slot] + 1.0)
    return mean / trees, h / trees


@compiled
def add_to_trees(forest: Forest, x: np.ndarray, slot: int, reward: float) -> None:
    """Add a reward of the arm at index `slot` to every node that row x passes, in all trees."""
    for t in range(forest.children.shape[0]):
        node = 0
        while True:
            forest.counts[t, node, slot] += 1.0
            forest.sums[t, node, slot] += reward - forest.origins[t]
            node = next_node(forest, t, node, x)
            if node == 0:
                break


@compiled
def fill_node(forest: Forest, t: int, node: int, order: np.ndarray, first: int, last: int, gains: np.ndarray) -> None:
    """Make the node number `node` of tree t a leaf with the stored rows of the indices order[first:last].

    `gains` (R,) are the rewards of all stored rows, minus the tree's origin.
    """
    forest.children[t, node] = 0
    forest.counts[t, node] = 0.0
    forest.sums[t, node] = 0.0
    for q in range(first, last):
        forest.counts[t, node, forest.arms[order[q]]] += 1.0
        forest.sums[t, node, forest.arms[order[q]]] += gains[order[q]]


@compiled
def draw_threshold(forest: Forest, order: np.ndarray, first: int, last: int, j: int) -> float:
    """Return a threshold drawn uniformly between the values of two random rows in column j; NaN if both are equal.

    The rows are drawn among the stored rows with the indices order[first:last].
    """
    values = forest.rows[j]
    low = values[order[first + draw_below(forest, last - first)]]
    high = values[order[first + draw_below(forest, last - first)]]
    if low == high:
        high = values[order[first + draw_below(forest, last - first)]]
    share = np.float64(draw(forest) >> np.uint64(11)) * 2.0**-53
    if low == high:
        return np.nan
    low, high = min(low, high), max(low, high)
    between = low + share * (high - low)
    return between if between < high else low


@compiled
def explained(
    forest: Forest,
    order: np.ndarray,
    first: int,
    last: int,
    j: int,
    threshold: float,
    gains: np.ndarray,
    totals: np.ndarray,
    lefts: np.ndarray,
) -> float:
    """Return the sum over arms and children of (sum of rewards)^2 / number, for a split; -1 if a child is empty.

    The node has the stored rows of the indices order[first:last]. Rows whose column j is at most `threshold` go to the
    first child. gains (R,): the rewards of stored rows, minus the tree's origin. totals, lefts (2, slots): number and
    sum of rewards by arm, in the node and in its first child; `lefts` is filled here.
    """
    lefts[:] = 0.0
    count, values, arms = 0, forest.rows[j], forest.arms
    for q in range(first, last):
        i = order[q]
        if values[i] <= threshold:
            lefts[0, arms[i]] += 1.0
            lefts[1, arms[i]] += gains[i]
            count += 1
    if count == 0 or count == last - first:
        return -1.0
    total = 0.0
    for a in range(lefts.shape[1]):
        if lefts[0, a] > 0.0:
            total += lefts[1, a] * lefts[1, a] / lefts[0, a]
        rest = totals[0, a] - lefts[0, a]
        if rest > 0.0:
            total += (totals[1, a] - lefts[1, a]) ** 2 / rest
    return total


@compiled
def grow_tree(forest: Forest, t: int, gains: np.ndarray) -> None:
    """Grow tree t anew from all stored rows that are used.

    gains (R,) are the rewards of the stored rows, minus the tree's origin.
    """
    most, slots, dim = forest.children.shape[1], forest.counts.shape[2], forest.rows.shape[0]
    stored = min(forest.places[TOTAL], forest.arms.size)
    order = np.empty(stored, np.int64)
    n = 0
    for i in range(stored):
        if forest.arms[i] != NONE:
            order[n] = i
            n += 1
    least = max(SPLIT, -(-SPLIT * n // most))  # a tree has about 4 n / least nodes at most
    drawn, nodes, top = max(2, int(np.ceil(DRAWN * np.sqrt(dim)))), 1, 1
    stack = np.empty((most, 3), np.int64)  # nodes to split, with their rows
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, 0, n
    totals, lefts = np.zeros((2, slots)), np.zeros((2, slots))
    fill_node(forest, t, 0, order, 0, n, gains)
    while top > 0:
        top -= 1
        node, first, last = stack[top, 0], stack[top, 1], stack[top, 2]
        if last - first < least or nodes + 2 > most:
            continue
        totals[:] = 0.0
        squares = 0.0
        for q in range(first, last):
            squares += gains[order[q]] * gains[order[q]]
        for q in range(first, last):
            i = order[q]
            totals[0, forest.arms[i]] += 1.0
            totals[1, forest.arms[i]] += gains[i]
        variance = squares
        for a in range(slots):
            if totals[0, a] > 0.0:
                variance -= totals[1, a] * totals[1, a] / totals[0, a]
        if variance <= SAME * squares:
            continue
        best, column, threshold = -1.0, -1, 0.0
        for _ in range(drawn):
            j = draw_below(forest, dim)
            at = draw_threshold(forest, order, first, last, j)
            if not np.isnan(at):
                found = explained(forest, order, first, last, j, at, gains, totals, lefts)
                if found >= 0.0 and (column < 0 or found > best + SAME * variance):
                    best, column, threshold = found, j, at
        if column < 0:
            continue
        middle, end = first, last
        while middle < end:
            if forest.rows[column, order[middle]] <= threshold:
                middle += 1
            else:
                end -= 1
                order[middle], order[end] = order[end], order[middle]
        forest.columns[t, node], forest.thresholds[t, node], forest.children[t, node] = column, threshold, nodes
        fill_node(forest, t, nodes, order, first, middle, gains)
        fill_node(forest, t, nodes + 1, order, middle, last, gains)
        stack[top, 0], stack[top, 1], stack[top, 2] = nodes, first, middle
        stack[top + 1, 0], stack[top + 1, 1], stack[top + 1, 2] = nodes + 1, middle, last
        nodes, top = nodes + 2, top + 2


@compiled
def store(forest: Forest, x: np.ndarray, slot: int, reward: float) -> None:
    """Store a row x (d,) with the index `slot` of the arm played and its clipped reward.

    The row replaces the oldest one if there is no room for more.
    """
    place = forest.places[TOTAL] % forest.arms.size
    forest.rows[:, place] = x
    forest.arms[place], forest.gains[place] = slot, reward
    forest.places[TOTAL] += 1
    forest.places[SINCE] += 1


@compiled
def needs_tree(forest: Forest) -> bool:
    """Return True if it is time to grow the oldest tree anew, by the number of rows since the last one was grown."""
    stored = min(forest.places[TOTAL], forest.arms.size)
    return forest.places[SINCE] * forest.children.shape[0] >= GROWTH * stored


@compiled
def replace_tree(forest: Forest, middle: float, bounds: np.ndarray) -> None:
    """Grow the oldest tree anew.

    `middle` is the median reward. bounds (slots,) sets by arm how far from it a reward may lie before it is clipped, 0
    for no clipping.
    """
    stored, trees = min(forest.places[TOTAL], forest.arms.size), forest.children.shape[0]
    t, gains, used = forest.places[NEXT], np.zeros(stored), 0
    for i in range(stored):
        slot = forest.arms[i]
        if slot != NONE:
            most = HELD * bounds[slot] if bounds[slot] > 0.0 else np.inf
            gains[i] = min(max(forest.gains[i], middle - most), middle + most)
            used += 1
    forest.origins[t] = gains.sum() / max(used, 1)
    for i in range(stored):
        gains[i] -= forest.origins[t]
    grow_tree(forest, t, gains)
    forest.places[NEXT], forest.places[SINCE] = (t + 1) % trees, 0


@compiled
def clear_forest(forest: Forest) -> None:
    """Forget all rows, and make every tree an empty leaf; the generator goes on."""
    forest.children[:, 0] = 0
    forest.counts[:, 0] = 0.0
    forest.sums[:, 0] = 0.0
    forest.origins[:] = 0.0
    forest.scores[:] = 0.0
    forest.places[:] = 0


def erase_arm(forest: Forest, slot: int) -> None:
    """Forget the rows of the arm at index `slot`, in the stored rows and in all trees."""
    forest.counts[:, :, slot] = 0.0
    forest.sums[:, :, slot] = 0.0
    own = forest.arms == slot
    forest.arms[own] = NONE
    forest.rows[:, own] = 0.0
    forest.gains[own] = 0.0


def nodes_within(memory: float, trees: int, rows: int, slots: int) -> int:
    """Return the number of nodes that each tree can have in `memory` bytes for all trees, at most `rows`.

    `trees` is the number of trees, `rows` the number of stored rows, and `slots` the number of arms.
    """
    return min(rows, int(memory / (trees * (16 + 8 * max(slots, 1)))))


def fit_forest(forest: Forest, slots: int, memory: float) -> Any:
    """Return the forest with room for `slots` arms and for the next row; trees may take at most `memory` bytes.

    The number of stored rows and of nodes is doubled up to MOST_ROWS. If memory is too small for FEWEST_NODES nodes of
    every tree, the forest is given up, and () is returned.
    """
    (trees, before), rows = forest.children.shape, len(forest.arms)
    full = forest.places[TOTAL] >= rows and rows < MOST_ROWS
    if not full and slots == forest.counts.shape[2]:
        return forest
    more = 2 * rows if full else rows
    nodes = nodes_within(memory, trees, more, slots)
    if nodes < FEWEST_NODES:
        return ()
    larger = forest._replace(
        rows=lazy_zeros(len(forest.rows), more),
        arms=np.zeros(more, np.int64),
        gains=np.zeros(more),
        columns=np.zeros((trees, nodes), np.int32),
        children=np.zeros((trees, nodes), np.int32),
        thresholds=np.zeros((trees, nodes)),
        counts=lazy_zeros(trees, nodes, slots, dtype=np.float32),
        sums=lazy_zeros(trees, nodes, slots, dtype=np.float32),
    )
    for name in ("rows", "arms", "gains"):
        getattr(larger, name)[..., :rows] = getattr(forest, name)
    kept = before if nodes >= before else 1  # fewer nodes: leaves, until the trees are grown anew
    for name in ("columns", "thresholds"):
        getattr(larger, name)[:, :kept] = getattr(forest, name)[:, :kept]
    if kept > 1:
        larger.children[:, :kept] = forest.children
    held = min(slots, forest.counts.shape[2])
    larger.counts[:, :kept, :held] = forest.counts[:, :kept, :held]
    larger.sums[:, :kept, :held] = forest.sums[:, :kept, :held]
    return larger


def widen_forest(forest: Forest, fills: np.ndarray) -> Any:
    """Return the forest with n columns appended to its rows, or () if they are too wide then.

    fills (n,) are the values of the new columns in all earlier rows.
    """
    rows = np.vstack([forest.rows, np.repeat(fills[:, None], forest.rows.shape[1], axis=1)])
    return () if len(rows) > WIDEST else forest._replace(rows=rows)


def forest_fits(forest: Forest, begun: Forest, slots: int) -> bool:
    """Return True if a loaded forest is consistent.

    - begun: a forest for rows of the right width that has learned nothing.
    - slots: number of slots of the mixture.
    """
    (trees, nodes), (dim, rows) = forest.children.shape, forest.rows.shape
    fixed = ("origins", "scores", "places", "random")
    if any(getattr(forest, name).shape != getattr(begun, name).shape for name in fixed) or not (
        trees == len(begun.children)
        and min(rows, nodes) >= 1
        and dim == len(begun.rows)
        and forest.arms.shape == forest.gains.shape == (rows,)
        and forest.columns.shape == forest.thresholds.shape == (trees, nodes)
        and forest.counts.shape == forest.sums.shape
        and forest.counts.shape == (trees, nodes, slots)
    ):
        return False
    total, following, since = forest.places.tolist()
    return bool(
        ((forest.children == 0) | (forest.children > np.arange(nodes))).all()
        and (forest.children < max(nodes - 1, 1)).all()
        and (forest.columns >= 0).all()
        and (forest.columns < dim).all()
        and (forest.arms >= NONE).all()
        and (forest.arms < max(slots, 1)).all()
        and 0 <= following < trees
        and 0 <= since <= total
        and (forest.scores >= 0.0).all()
    )


def forest_path(forest: Forest, t: int, x: np.ndarray, slot: int, level: float) -> tuple[list[int], np.ndarray]:
    """Return the columns at which row x is split in tree t, and the means of an arm at the nodes on its way.

    The arm is at index `slot` of the `Mixture`. The first mean is `level`, that of an unknown arm, and the second that
    at the root, so there are two more means than columns.
    """
    columns: list[int] = []
    node, origin = 0, forest.origins[t]
    own, means = level - origin, [level]
    while True:
        own = (float(forest.sums[t, node, slot]) + own) / (float(forest.counts[t, node, slot]) + 1.0)
        means.append(own + origin)
        following = int(next_node(forest, t, node, x))
        if following == 0:
            return columns, np.array(means)
        columns.append(int(forest.columns[t, node]))
        node = following
