"""Regret with and without the noise of every row: Wang et al.'s problem, with full noise in one round of ten.

`python tests/variance_games.py` prints the figures of docs/claims/heavy_tails.md, a few minutes.
"""

import time

import numpy as np

import onepass as op

NU = 1.31  # Wang et al.'s, for Student t of 2.1 degrees of freedom
NOISY = 0.1  # share of rounds whose noise is not made smaller


def world(seed, quiet, rounds):
    """Return contexts and rewards of 50 fixed arms in 2 dimensions, their means, and the noise share of every round."""
    rng = np.random.default_rng(seed)
    rows, theta = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (rng.uniform(-1, 1, n) for n in ((50, 2), 2)))
    shares = np.where(rng.random(rounds) < NOISY, 1.0, quiet)
    means = rows @ theta
    rewards = means + shares[:, None] * rng.standard_t(2.1, (rounds, 50))
    return np.ascontiguousarray(np.broadcast_to(rows, (rounds, 50, 2))), rewards, means, shares


def regrets(seed, quiet, rounds=18_000):
    """Return the regret of HvtUCB given the noise of every row, its largest, or none, and that of OFUL."""
    contexts, rewards, means, shares = world(seed, quiet, rounds)
    told = {"every row's": NU * shares[:, None], "the largest": np.full((rounds, 1), NU)}
    arms = {
        name: op.HvtUCB(dim=2).play(contexts, rewards, nu=np.broadcast_to(nu, rewards.shape))
        for name, nu in told.items()
    }
    arms["nothing"] = op.HvtUCB(dim=2).play(contexts, rewards)
    arms["OFUL"] = op.OFUL(dim=2, exploration=NU).play(contexts, rewards)
    return {name: float((means.max() - means[chosen]).sum()) for name, chosen in arms.items()}


def main(seeds=range(100, 150)):
    for quiet in (1.0, 0.1, 0.01):
        found = [regrets(seed, quiet) for seed in seeds]
        for name in found[0]:
            of = np.array([one[name] for one in found])
            error = of.std(ddof=1) / len(of) ** 0.5
            print(f"noise x {quiet:g} in 9 of 10 rounds, told {name:12} {of.mean():5.0f} ± {error:3.0f}", flush=True)
    bandit, (contexts, rewards, _, _) = op.HvtUCB(dim=2), world(0, 1.0, 40_000)
    for start in range(0, 40_000, 4_000):
        part, begun = slice(start, start + 4_000), time.process_time()
        bandit.play(contexts[part], rewards[part])
        print(f"rounds {start:,} to {start + 4_000:,}: {(time.process_time() - begun) / 4_000 * 1e6:.2f} µs a round")


if __name__ == "__main__":
    main()
