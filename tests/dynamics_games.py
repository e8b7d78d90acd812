"""Linear systems to be identified, played many times: python tests/dynamics_games.py [GAMES] prints the coverage."""

import sys

import numpy as np

import onepass as op
from onepass.dynamics import SystemIdentification

NOISES = {"t 2.1": 2.1, "t 1.5": 1.5, "gaussian": None}
STATES, INPUTS = 3, 2


def draw_system(rng, states=STATES, inputs=INPUTS, radius=0.9):
    """A with this spectral radius, and B."""
    a = rng.standard_normal((states, states))
    return a * radius / np.abs(np.linalg.eigvals(a)).max(), rng.standard_normal((states, inputs))


def trajectory(rng, a, b, steps, df, scale=1.0, inputs=None):
    """States (steps + 1, n), inputs (steps, m) of standard deviation 1; Student t noise of df degrees, or Gaussian."""
    u = rng.standard_normal((steps, b.shape[1])) if inputs is None else inputs
    shape = (steps, len(a))
    w = scale * (rng.standard_normal(shape) if df is None else rng.standard_t(df, shape))
    x = np.zeros((steps + 1, len(a)))
    for t in range(steps):
        x[t + 1] = a @ x[t] + b @ u[t] + w[t]
    return x, u


def errors(df, seeds, steps=10_000, kinds=("huber", "ridge")):
    """||[A B] - [A* B*]||_F at the end, (seeds, kinds)."""
    found = np.empty((seeds, len(kinds)))
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        a, b = draw_system(rng)
        x, u = trajectory(rng, a, b, steps, df)
        for k, kind in enumerate(kinds):
            system = SystemIdentification(STATES, INPUTS, estimator=kind).learn(x[:-1], u, x[1:])
            found[seed, k] = np.linalg.norm(np.hstack(system.matrices()) - np.hstack([a, b]))
    return found


def theory_for(a, b, x, u, delta):
    """The bounds that hold of one system and its trajectory."""
    bound = np.linalg.norm(np.hstack([a, b]), axis=1).max()
    longest = np.linalg.norm(np.hstack([x[:-1], u]), axis=1).max()
    return op.Theory(parameter_bound=float(bound), row_bound=float(longest), delta=delta)


def coverage(kind, df, delta, games, steps=60):
    """Games in which the ellipsoid misses [A* B*] in some round, and the largest ratio of error to radius."""
    missed, largest = 0, 0.0
    epsilon = 1.0 if df is None else min(df - 1.0, 1.0) - 0.05
    moment = 1.0 if df is None else moment_bound(df, epsilon)
    options = {} if kind == "ridge" else {"epsilon": epsilon, "nu": moment, "horizon": steps}
    for game in range(games):
        rng = np.random.default_rng([game, 7])
        a, b = draw_system(rng)
        x, u = trajectory(rng, a, b, steps, df)
        system = SystemIdentification(STATES, INPUTS, estimator=kind, theory=theory_for(a, b, x, u, delta), **options)
        truth, worst = np.hstack([a, b]), system.ellipsoid().ratio(np.hstack([a, b]))
        for t in range(steps):
            system.learn(x[t], u[t], x[t + 1])
            worst = max(worst, system.ellipsoid().ratio(truth))
        missed += worst > 1.0
        largest = max(largest, worst)
    return missed, largest


def moment_bound(df, epsilon):
    """(E|w|^(1 + epsilon))^(1 / (1 + epsilon)) of Student t noise."""
    from scipy.special import gammaln

    k = 1.0 + epsilon
    log = gammaln((k + 1) / 2) + gammaln((df - k) / 2) - gammaln(0.5) - gammaln(df / 2) + k / 2 * np.log(df)
    return float(np.exp(log / k))


if __name__ == "__main__":
    games = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for name, df in NOISES.items():
        final = np.median(errors(df, 20), axis=0)
        print(f"{name:<9} median error: huber {final[0]:.4f}, ridge {final[1]:.4f}, ratio {final[0] / final[1]:.2f}")
    for kind, df in (("huber", 2.1), ("huber", 1.5), ("huber", None), ("ridge", None)):
        for delta in (0.05, 0.2):
            missed, largest = coverage(kind, df, delta, games)
            print(
                f"{kind:<6} df {df} delta {delta}: {missed} of {games} missed, largest ratio {largest:.4f}", flush=True
            )
