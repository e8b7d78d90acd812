"""The model of `InteractionBandit`, in dictionaries by name: one weight and one variance for every pair of terms."""

import math

PRIORS, CONSTANT, OWN = (0.01, 0.1, 1.0, 10.0, 100.0), 1e6, 0.15


class Naive:
    """Terms of user and item as they are (nothing standardized); own: the item's name."""

    def __init__(self):
        self.weights, self.variances = [{} for _ in PRIORS], [{} for _ in PRIORS]
        self.losses, self.squares = [0.0] * len(PRIORS), [0.0] * len(PRIORS)
        self.rows, self.lengths = 0, [0.0, 0.0]

    def row(self, user, item, own):
        norms = []
        for k, side in enumerate((user, item)):
            square = self.lengths[k] / self.rows if self.rows else 0.0
            norms.append(math.sqrt(square or sum(v * v for v in side.values()) or 1.0))
        left = {"": 1.0, **{name: v / norms[0] for name, v in user.items()}}
        right = {"": 1.0, **{name: v / norms[1] for name, v in item.items()}}
        return {**{(i, j): u * a for i, u in left.items() for j, a in right.items()}, own: 1.0}

    def variance(self, s, place):
        begun = CONSTANT if place == ("", "") else OWN * PRIORS[s] if isinstance(place, str) else PRIORS[s]
        return self.variances[s].get(place, begun)

    def mean(self, s, row):
        return sum(x * self.weights[s].get(place, 0.0) for place, x in row.items())

    def square(self, s, row):
        return sum(x * x * self.variance(s, place) for place, x in row.items())

    def shares(self):
        least = min(self.losses)
        found = [
            math.exp(-0.2 * (loss - least) * self.rows / (2 * least)) if least > 0 else 1.0 for loss in self.losses
        ]
        found = [one if one >= 0.01 else 0.0 for one in found]
        return [one / sum(found) for one in found]

    def sigma(self):
        return math.sqrt(sum(w * q for w, q in zip(self.shares(), self.squares)) / self.rows) if self.rows else 0.0

    def look(self, user, item, own):
        row, shares = self.row(user, item, own), self.shares()
        mean = sum(w * self.mean(s, row) for s, w in enumerate(shares))
        return mean, sum(w * math.sqrt(self.square(s, row)) for s, w in enumerate(shares))

    def learn(self, user, item, own, reward):
        self.rows += 1
        for k, side in enumerate((user, item)):
            self.lengths[k] += sum(v * v for v in side.values())
        row = self.row(user, item, own)
        for s in range(len(PRIORS)):
            error, h = reward - self.mean(s, row), self.square(s, row)
            self.losses[s] += error**2 / (1 + self.variance(s, ("", "")))
            self.squares[s] += error**2 / (1 + h)
            for place, x in row.items():
                p = self.variance(s, place)
                self.weights[s][place] = self.weights[s].get(place, 0.0) + p * x * error / (1 + h)
                self.variances[s][place] = p / (1 + p * x * x)
