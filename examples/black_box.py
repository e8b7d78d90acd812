"""Optimize a noisy black box over 4,000 settings, and over a continuum. Run: python examples/black_box.py

A simulator pays a smooth function of two settings plus noise. BKB is told neither its length scale nor its noise: after
60 random trials it takes both from the marginal likelihood. A trial costs it microseconds, however many came before.
"""

import numpy as np
from scipy.optimize import minimize

import onepass as op

TRIALS, NOISE = 1_500, 0.3


def worth(settings: np.ndarray) -> np.ndarray:
    """What settings (n, 2) in [0, 1]^2 pay on average."""
    x, y = settings[:, 0], settings[:, 1]
    return np.sin(6.0 * x) * np.cos(4.0 * y) + x - 0.5 * y


def main() -> None:
    """Choose among listed settings, then among all of them."""
    rng = np.random.default_rng(0)
    settings = rng.random((4_000, 2))
    bandit = op.BKB(settings, op.RBF(0.5), normalize=True, fit_after=60)
    expected = worth(settings)
    chosen = []
    for _ in range(TRIALS):
        decision = bandit.decide()
        bandit.learn(decision, float(expected[decision.arm] + NOISE * rng.standard_normal()))
        chosen.append(decision.arm)
    print(f"chosen by marginal likelihood: {bandit.model.kernel!r}, reg {bandit.model.reg:.3f}")
    lost = expected.max() - expected[chosen]
    at_random, since, lately = lost[:60].mean(), lost[60:].mean(), lost[-500:].mean()
    print(f"lost a trial: {at_random:.3f} at random, {since:.3f} since, {lately:.3f} lately")
    means, _, deviations = bandit.model.posterior()
    best = means.argmax()
    print(f"best setting: pays {means[best]:.2f} +- {2 * deviations[best]:.2f}, in truth {expected[best]:.2f}")
    print(
        f"{bandit.n_learned} trials rest on {bandit.model.dictionary_size} of them, "
        f"{bandit.memory_usage() / 1e6:.1f} MB"
    )

    def climb(score):
        """The best of 200 random settings and of a local search from it."""
        starts = rng.random((200, 2))
        start = starts[score(starts).argmax()]
        found = minimize(lambda x: -score(x[None])[0], start, bounds=[(0.0, 1.0)] * 2)
        return found.x

    # no list of arms: a maximizer proposes them
    anywhere = op.BKB(kernel=bandit.model.kernel, reg=bandit.model.reg, normalize=True)
    for _ in range(60):
        setting = anywhere.decide(maximizer=climb).arm
        anywhere.learn(setting, float(worth(setting[None])[0] + NOISE * rng.standard_normal()))
    found = worth(setting[None])[0]
    print(f"anywhere in the square, 60 trials: pays {found:.2f}, the best listed {expected.max():.2f}")


if __name__ == "__main__":
    main()
