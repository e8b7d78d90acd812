"""The rules of exploration by the formulas of their docstrings."""

import numpy as np

from onepass.exploration.contract import ArmStatistics

LEVEL = 1e-4  # of every chi-square test: one in 10^4 fails by chance, and the seeds are fixed


def seen_of(count, draws, seed, ties=False):
    """Means, widths and draws such as a model has; ties: whole numbers, so that several are best."""
    rng = np.random.default_rng(seed)
    means, widths = rng.standard_normal(count), rng.random(count)
    samples = means + 0.5 * widths * rng.standard_normal((max(draws, 1), count))
    if ties:
        means, widths, samples = np.round(means), np.ones(count), np.round(samples)
    return ArmStatistics(means=means, widths=widths, samples=samples, beta=np.full(count, 0.3), residual=0.8, rounds=50)


def naive(rule, seen, among):
    """The formulas of the docstrings, one line each."""
    m, w, inside = seen.means, seen.widths, np.flatnonzero(among)
    p, kind, given = np.zeros(m.size), type(rule).__name__, rule
    if kind in ("UCB", "Greedy", "EpsilonGreedy"):
        s = m + seen.beta * w if kind == "UCB" else m
        top = inside[s[inside] == s[inside].max()]
        p[top] = 1 / len(top)
    elif kind == "Softmax":
        T = given.temperature or given.scale * np.sqrt(len(inside) / seen.rounds) * seen.residual
        p[inside] = np.exp((m[inside] - m[inside].max()) / T)
        p /= p.sum()
    elif kind == "InverseGap":
        b = inside[np.argmax(m[inside])]
        if given.exploration is not None:
            low = (m - seen.beta * w)[inside].max()
            inside = np.array([a for a in inside if a == b or m[a] + seen.beta[a] * w[a] >= low])
        gamma = given.gamma or given.scale * np.sqrt(len(inside) * seen.rounds) / seen.residual
        p[inside] = 1 / (len(inside) + gamma * (m[b] - m[inside]))
        p[b] = 1 - (p.sum() - p[b])
    elif kind == "TopTwo":
        for sample in seen.samples:  # the first of equals
            best = inside[np.argmax(sample[inside])]
            others = inside[inside != best]
            costs = np.maximum(m[best] - m[others], 0.0) ** 2 / (w[best] ** 2 + w[others] ** 2)
            rival = others[np.argmin(costs)] if len(others) else best
            p[best] += given.share / len(seen.samples)
            p[rival] += (1 - given.share) / len(seen.samples)
    else:
        for sample in seen.samples:
            top = inside if len(inside) == 0 else np.flatnonzero(among & (sample == sample[among].max()))
            p[top] += 1 / len(top) / len(seen.samples)
    share = getattr(given, "uniform_share", getattr(given, "epsilon", 0.0)) if kind != "SingleDrawThompson" else 0.0
    return (1 - share) * p + share * among / among.sum()
