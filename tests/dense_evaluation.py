"""Off-policy evaluation, written as it is defined: a loop over rows, or an optimizer."""

import math

import numpy as np
from scipy import integrate, optimize, special, stats


def estimate(name, w, r, q, v, knob=None):
    """The value by the estimator of that name, row by row."""
    shapes = {
        "ips": lambda x: x,
        "clipped": lambda x: min(x, knob),
        "snips": lambda x: x,
        "dm": lambda x: 0.0,
        "dr": lambda x: x,
        "sndr": lambda x: x,
        "switch": lambda x: x if x <= knob else 0.0,
        "dros": lambda x: knob * x / (x * x + knob),
        "subgaussian": lambda x: x / (1 - knob + knob * x) if x else 0.0,
        "subgaussian-dr": lambda x: x / (1 - knob + knob * x) if x else 0.0,
    }
    if name in ("ips", "clipped", "snips", "subgaussian"):
        q, v = np.zeros_like(q), np.zeros_like(v)
    s = [shapes[name](x) for x in w]
    away = sum(a * (b - c) for a, b, c in zip(s, r, q, strict=True))
    return sum(v) / len(v) + away / (sum(s) if name in ("snips", "sndr") else len(w))


def betting_limits(w, r, bound, alpha, grid):
    """The values of the grid that no bet has refuted, rewards in [0, 1]; bets from all rows before."""
    kept = []
    for value in grid:
        wealth, moments, total, most = 0.0, np.eye(2), np.zeros(2), 0.0
        for a, b in zip(w, r, strict=True):
            bet = np.linalg.solve(moments, total)
            corners = ([-1.0, -value], [bound - 1.0, -value], [bound - 1.0, bound - value])
            cost = max(-float(bet @ corner) for corner in corners)
            bet *= min(1.0, 0.5 / cost) if cost > 0.0 else 1.0
            g = np.array([a - 1.0, a * b - value])
            wealth += math.log1p(bet @ g)
            most, moments, total = max(most, wealth), moments + np.outer(g, g), total + g
        if most < math.log(1.0 / alpha):
            kept.append(value)
    return kept


def cressie_read(w, r, least, largest, alpha):
    """Both limits by an optimizer: of p_i (n + 1 of them) with sum p = sum p w = 1 and n + 1 times the squared distance
    from uniform within the budget, the least and the largest sum of p w r, the unseen row at its worst."""
    most, ends = max(w), []
    fake = most if sum(w) < len(w) else 0.0
    budget = stats.f.isf(alpha, 1, len(w)) + nearest(np.append(w, fake))
    for worst, sign in ((least, 1.0), (largest, -1.0)):
        found = []
        for unseen in (0.0, most):
            weights, products = np.append(w, unseen), np.append(w, unseen) * np.append(r, worst)
            n = len(weights)
            if nearest(weights) > budget:
                continue
            holds = [
                {"type": "eq", "fun": lambda p: p.sum() - 1.0},
                {"type": "eq", "fun": lambda p, x=weights: p @ x - 1.0},
                {"type": "ineq", "fun": lambda p, n=n: budget - ((n * p - 1.0) ** 2).sum()},
            ]
            best = optimize.minimize(
                lambda p, y=sign * products: p @ y, np.full(n, 1 / n), constraints=holds, tol=1e-12,
                options={"maxiter": 500},
            )  # fmt: skip
            found.append(best.fun)
        ends.append(sign * min(found))
    return max(ends[0], least), min(ends[1], largest)


def nearest(weights):
    """The squared distance n sum (p - 1 / n)^2 n of the nearest p with sum p = sum p w = 1, by least squares."""
    n = len(weights)
    rows = np.vstack([np.ones(n), weights])
    p = np.full(n, 1 / n) + np.linalg.pinv(rows) @ (np.ones(2) - rows @ np.full(n, 1 / n))
    return float(((n * p - 1.0) ** 2).sum())


def mixture_wealth(s, v, c=1.0):
    """The mixture over bets in [0, 1) of exp(bet s - psi(bet) v), psi(x) = -log(1 - x) - x, with the density of the
    gamma-exponential family at c, by quadrature."""

    def density(x):
        return (math.exp(x) * (1.0 - x)) ** c / (1.0 - x)

    def wealth(x):
        return math.exp(x * s - (-math.log1p(-x) - x) * v) * density(x)

    found = [integrate.quad(each, 0.0, 1.0 - 1e-12, limit=500, epsabs=0.0)[0] for each in (wealth, density)]
    return found[0] / found[1]


def mixed_log_wealth(s, v):
    """The logarithm of the mean of the mixtures at 1, 30 and 1000 for arrays s and v; below 1e-300 of it, that."""

    def log_lower(a, x):
        return special.gammaln(a) + np.log(np.maximum(special.gammainc(a, x), 1e-300))

    each = []
    for c in (1.0, 30.0, 1000.0):
        a, x = v + c, np.maximum(s + v + c, 1e-9)
        each.append(s + v - a * np.log(x) + log_lower(a, x) + c * np.log(c) - log_lower(c, c))
    return special.logsumexp(each, axis=0) - np.log(3.0)


def mixed_limit(x, alpha):
    """The limit below which the average of expectations of x (n,) is with probability alpha at most, by bisection."""
    n, total = len(x), x.sum()
    before = np.minimum((np.concatenate([[0.0], np.cumsum(x)[:-1]]) + 0.5) / np.arange(1, n + 1), 1.0)
    v, low, high = ((x - before) ** 2).sum(), 0.0, total / n
    if mixed_log_wealth(total, v) < -np.log(alpha):
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if mixed_log_wealth(total - n * middle, v) >= -np.log(alpha) else (low, middle)
    return low


def doubly_robust_lower(x, k, alpha):
    """The lower limits of the mean of x_t >= -k_t after each row: (sum l y - log 1/alpha - sum psi (y - m)^2) /
    (sum l / (k + 1)), each l and m from the rows before, with one row of mean 1/2 and variance 1/4 ahead of them."""
    limits, top, pay, width, seen, spread = [], 0.0, 0.0, 0.0, [0.5 / (k[0] + 1)], [0.25]
    for t, (one, bound) in enumerate(zip(x, k, strict=True), 1):
        y, before = one / (bound + 1), min(sum(seen) / len(seen), 1 / (bound + 1))
        bet = min(0.5, math.sqrt(2 * math.log(1 / alpha) / (sum(spread) / len(spread) * t * math.log(t + 1))))
        top, width = top + bet * y, width + bet / (bound + 1)
        pay += (-math.log(1 - bet) - bet) * (y - before) ** 2
        seen.append(y)
        spread.append((y - sum(seen) / len(seen)) ** 2)
        limits.append((top - math.log(1 / alpha) - pay) / width)
    return limits
