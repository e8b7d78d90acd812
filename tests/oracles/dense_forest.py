"""Naive truth of the forest of `ContextualBandit`: nodes keep lists of their rewards, and every mean is taken anew."""

import numpy as np

from onepass.model.averaged.forest import DRAWN, GROWTH, HELD, SAME, SPLIT

BITS = 2**64 - 1


class Splitmix:
    """splitmix64."""

    def __init__(self, seed):
        self.state = seed

    def bits(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & BITS
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & BITS
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & BITS
        return z ^ (z >> 31)

    def below(self, n):
        return self.bits() % n

    def share(self):
        return (self.bits() >> 11) * 2.0**-53


class Node:
    """Rewards (arm, reward less the origin) that came here; a split and two nodes, unless it is a leaf."""

    def __init__(self, given):
        self.given, self.column, self.threshold, self.children = given, None, None, None

    def next(self, x):
        return None if self.children is None else self.children[int(x[self.column] > self.threshold)]

    def rewards(self, arm):
        return [reward for a, reward in self.given if a == arm]


class Tree:
    def __init__(self, root, origin):
        self.root, self.origin = root, origin

    def path(self, x):
        node = self.root
        while node is not None:
            yield node
            node = node.next(x)

    def mean(self, x, arm, level):
        mean = level - self.origin
        for node in self.path(x):
            mean = (sum(node.rewards(arm)) + mean) / (len(node.rewards(arm)) + 1)
        return mean + self.origin


def within(given):
    """Sum over arms of the squared deviations of an arm's rewards from their mean."""
    arms = {arm for arm, _ in given}
    own = [np.array([reward for a, reward in given if a == arm]) for arm in arms]
    return sum(((one - one.mean()) ** 2).sum() for one in own)


class Forest:
    """T trees of the rows so far. `rows`: the most that are kept."""

    def __init__(self, trees, seed, rows=4_096):
        self.random, self.stored, self.most, self.total = Splitmix(seed), [], rows, 0
        self.trees, self.next, self.since = [Tree(Node([]), 0.0) for _ in range(trees)], 0, 0
        self.noise = self.volume = 0.0

    def mean(self, x, arm, level):
        return np.mean([tree.mean(x, arm, level) for tree in self.trees])

    def learn(self, x, arm, reward, level, bound, middle, bounds):
        leaves = [list(tree.path(x))[-1].rewards(arm) for tree in self.trees]
        guess, h = self.mean(x, arm, level), np.mean([1.0 / (len(own) + 1) for own in leaves])
        most = bound * np.sqrt(1.0 + h) if bound > 0.0 else np.inf
        e = np.clip(reward - guess, -most, most)
        self.noise += e**2 / (1.0 + h)
        self.volume += np.log(1.0 + h)
        for tree in self.trees:
            for node in tree.path(x):
                node.given.append((arm, guess + e - tree.origin))
        place = self.total % self.most
        self.stored[place : place + 1] = [(x, arm, guess + e)]
        self.total += 1
        self.since += 1
        if self.since * len(self.trees) >= GROWTH * len(self.stored):
            self.trees[self.next] = self.grow(middle, bounds)
            self.next, self.since = (self.next + 1) % len(self.trees), 0

    def grow(self, middle, bounds):
        held = [HELD * bounds[arm] if bounds[arm] > 0.0 else np.inf for _, arm, _ in self.stored]
        rewards = [np.clip(one[2], middle - most, middle + most) for one, most in zip(self.stored, held, strict=True)]
        origin = sum(rewards) / len(rewards)
        rows = [(x, arm, reward - origin) for (x, arm, _), reward in zip(self.stored, rewards, strict=True)]
        return Tree(self.split(rows), origin)

    def split(self, rows):
        given = [(arm, reward) for _, arm, reward in rows]
        node, variance = Node(given), within(given)
        if len(rows) < SPLIT or variance <= SAME * sum(reward**2 for _, reward in given):
            return node
        dim, found = rows[0][0].size, None
        for _ in range(max(2, int(np.ceil(DRAWN * np.sqrt(dim))))):
            j = self.random.below(dim)
            threshold = self.threshold(rows, j)
            sides = [[], []]
            for (x, *_), one in zip(rows, given, strict=True):
                sides[int(threshold is None or x[j] > threshold)].append(one)
            if threshold is not None and sides[0] and sides[1]:
                left = within(sides[0]) + within(sides[1])
                if found is None or left < found[0] - SAME * variance:
                    found = left, j, threshold
        if found is None:
            return node
        _, node.column, node.threshold = found
        low, high = self.parted(rows, node.column, node.threshold)
        second = self.split(high)  # the last that was put aside is the first that is split
        node.children = self.split(low), second
        return node

    def threshold(self, rows, j):
        low, high = (rows[self.random.below(len(rows))][0][j] for _ in range(2))
        if low == high:
            high = rows[self.random.below(len(rows))][0][j]
        share = self.random.share()
        if low == high:
            return None
        low, high = min(low, high), max(low, high)
        between = low + share * (high - low)
        return between if between < high else low

    @staticmethod
    def parted(rows, j, threshold):
        """Rows up to the threshold and above, in the order of a partition in place."""
        rows, middle, end = list(rows), 0, len(rows)
        while middle < end:
            if rows[middle][0][j] <= threshold:
                middle += 1
            else:
                end -= 1
                rows[middle], rows[end] = rows[end], rows[middle]
        return rows[:middle], rows[middle:]
