"""Rewards with a few enormous values: an order of 10,000 among baskets of 10. Run: python examples/heavy_tails.py

300 features, 10 offers a visit. The noise is Student t with 1.5 degrees of freedom: it has no variance, so least
squares never settles. HvtUCB is told nothing about the noise; on a sketch a visit costs it O(300 x 6).
"""

import numpy as np

import onepass as op

VISITS, OFFERS, DIM = 3_000, 10, 300


def main() -> None:
    """Play the same visits with each bandit; print what it lost against the best offers."""
    rng = np.random.default_rng(0)
    topics = rng.standard_normal((15, DIM)) / DIM**0.5  # 15 combinations of features matter
    truth = topics.T @ rng.standard_normal(15)
    contexts = rng.standard_normal((VISITS, OFFERS, 15)) @ topics
    worth = contexts @ truth
    rewards = worth + 2.0 * rng.standard_t(1.5, worth.shape)
    bandits = {
        "OFUL": op.OFUL(dim=DIM, exploration=1.0),
        "HvtUCB": op.HvtUCB(dim=DIM),
        "HvtUCB on a sketch of 6 rows": op.HvtUCB(dim=DIM, design=op.RobustFrequentDirections(dim=DIM, size=6)),
    }
    for name, bandit in bandits.items():
        arms = bandit.play(contexts, rewards)
        lost = worth.max(axis=1) - worth[np.arange(VISITS), arms]
        print(f"{name:<29} lost {lost.sum():8.1f}, in the last thousand visits {lost[-1000:].sum():7.1f}")


if __name__ == "__main__":
    main()
