"""A process that learns a stream on shards until it is killed, and goes on where it was: `python sharded_driver.py
FOLDER ROUNDS SHARDS [ADDRESS]` prints the number of every change that it has learned."""

import os
import signal
import sys

import numpy as np

import onepass as op
from onepass.cluster import ShardedBandit

DIM, ARMS, EVERY = 4, 11, 40  # EVERY: rows between two checkpoints


def recipe():
    return op.Bandit(op.Disjoint(op.Ridge(op.FrequentDirections(dim=DIM, size=2, reg=0.3))), op.UCB(0.3), seed=5)


def batch(seq: int):
    """Return the rows, rewards and names of arms of one change."""
    rng = np.random.default_rng(seq)
    n = int(rng.integers(1, 7))
    return rng.standard_normal((n, DIM)), rng.random(n), [f"arm {a}" for a in rng.integers(0, ARMS, n)]


def assert_same(many, rounds: int) -> None:
    """Assert that a bandit equals one that has learned all changes once each, in one process."""
    one = recipe()
    for seq in range(1, rounds + 1):
        one.learn(*batch(seq))
    assert (many.seq, many.n_learned, many.arms) == (rounds, one.n_learned, one.arms)
    for arm in one.arms:
        np.testing.assert_array_equal(many.bandit.model.parameter_of(arm), one.model.parameter_of(arm))
        assert many.bandit.model.rows_of(arm) == one.model.rows_of(arm)
    mine, its = (bandit.decide(np.ones(DIM), id="all") for bandit in (one, many))
    np.testing.assert_array_equal(its.scores, mine.scores)
    np.testing.assert_array_equal(its.probabilities, mine.probabilities)


class Mortal:
    """Bandit whose process is killed after a batch, once for every file in a folder."""

    def __init__(self, bandit, tokens: str):
        self.bandit, self.tokens, self.batches = bandit, tokens, 0

    def copy(self) -> "Mortal":
        return Mortal(self.bandit.copy(), self.tokens)

    def merge(self, other: "Mortal") -> "Mortal":
        self.bandit.merge(other.bandit)
        return self

    def learn(self, rows, rewards) -> None:
        self.bandit.learn(rows, rewards)
        self.batches += 1
        if self.batches % 2:
            return
        for token in os.listdir(self.tokens):
            try:
                os.unlink(os.path.join(self.tokens, token))
            except FileNotFoundError:
                continue  # another worker took it
            os.kill(os.getpid(), signal.SIGKILL)


def main(folder: str, rounds: str, shards: str, address: str | None = None) -> None:
    if os.path.exists(os.path.join(folder, "current")):
        bandit = ShardedBandit.open(folder, ray=address, checkpoint_every=EVERY)
    else:
        bandit = ShardedBandit(recipe(), int(shards), ray=address, folder=folder, checkpoint_every=EVERY)
    print(bandit.seq, flush=True)
    for seq in range(bandit.seq + 1, int(rounds) + 1):
        bandit.learn(*batch(seq), seq=seq)
        print(seq, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
