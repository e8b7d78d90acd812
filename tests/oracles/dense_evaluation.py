"""Off-policy evaluation, written as it is defined: a loop over rows, or an optimizer."""

import math
from itertools import pairwise

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


def bet_by_definition(total, moments, corners):
    """The ridge regression's bet, so that no corner (rows of w - 1 and w r - v) costs more than half of the wealth; and
    how far it was shrunk."""
    bet = np.linalg.solve(moments, total)
    cost = max(-float(bet @ corner) for corner in corners)
    shrink = min(1.0, 0.5 / cost) if cost > 0.0 else 1.0
    return bet * shrink, shrink


def corners_at(value, bound):
    """The worst rows there can be under a value."""
    return [-1.0, -value], [bound - 1.0, -value], [bound - 1.0, bound - value]


def betting_cells(w, r, tops, ends, inside=()):
    """Cells (low, high, log wealth at either end, peak), by definition: row by row, cell by cell.

    The schedule: bets after one row in 64 of those so far, and where a row can have a larger weight than all before;
    cells are looked at after 8 rows, later n / 64, at most 32. inside: values whose wealth under the bets of their cell
    is kept exactly: a dictionary of these comes second.
    """
    cells = [dict(low=a, high=b, below=0.0, above=0.0, peak=0.0) for a, b in pairwise(ends)]
    exact, left, held, bound, moments, total, count = dict.fromkeys(inside, 0.0), 0, 0, 1.0, np.zeros((3, 3)), None, 0
    for a, b, top in zip(w, r, tops, strict=True):
        if held >= max(8, min(count // 64, 32)):
            held, due = 0, left < max(8, min(count // 64, 32))
            for one in cells:
                one["peak"] = max(one["peak"], min(one["below"], one["above"]))
            changed = halved(cells, count) if due else cells
            if len(changed) != len(cells) or any(one is not two for one, two in zip(changed, cells, strict=True)):
                cells, left = changed, 0
        if left == 0 or top > bound:
            bound, left = max(bound, top), max(count // 64, 1)
            for one in cells:
                v = (one["low"] + one["high"]) / 2.0
                shift = np.array([[1.0, 0.0, -1.0], [0.0, 1.0, -v]])  # of (w, w r, 1) to (w - 1, w r - v)
                squares, total = shift @ moments @ shift.T + np.eye(2), shift @ moments[:, 2]
                corners = [c for end in (one["low"], one["high"]) for c in corners_at(end, bound)]
                one["bet"], shrink = bet_by_definition(total, squares, corners)
                one["rest"] = (squares[1, 1] - squares[0, 1] ** 2 / squares[0, 0]) / shrink**2
        for one in cells:
            one["below"] += math.log1p(one["bet"] @ (a - 1.0, a * b - one["low"]))
            one["above"] += math.log1p(one["bet"] @ (a - 1.0, a * b - one["high"]))
        for v in exact:
            own = next((one for one in cells if one["low"] <= v <= one["high"]), None)
            exact[v] = np.inf if own is None else exact[v] + math.log1p(own["bet"] @ (a - 1.0, a * b - v))
        row = np.array([a, a * b, 1.0])
        moments, left, held, count = moments + np.outer(row, row), left - 1, held + 1, count + 1
    for one in cells:
        one["peak"] = max(one["peak"], min(one["below"], one["above"]))
    return cells, exact


def halved(cells, rows):
    """Without cells at either end that are refuted for good, halves in place of those that are too coarse."""
    kept = list(cells)
    while kept and kept[0]["peak"] > 46.0:
        kept = kept[1:]
    while kept and kept[-1]["peak"] > 46.0:
        kept = kept[:-1]
    out = []
    for one in kept:
        wide = rows * (one["high"] - one["low"])
        if one["peak"] > 10.0 or wide * wide <= 0.25 * one["rest"]:
            out.append(one)
            continue
        middle, between = (one["low"] + one["high"]) / 2.0, (one["below"] + one["above"]) / 2.0
        out += [{**one, "high": middle, "above": between}, {**one, "low": middle, "below": between}]
    return out if len(out) <= 256 else kept


def betting_limits(w, r, bound, alpha, grid):
    """The limits by bets of every value of its own, on a grid; bets from all rows before, after one row in 64."""
    wealth, most, n, left = np.zeros(len(grid)), np.zeros(len(grid)), 0, 0
    u, uu, y, uy, yy = np.zeros(5)
    for a, b in zip(w - 1.0, w * r, strict=True):
        if left == 0:
            first, second, cross = u, y - n * grid, uy - grid * u
            square = yy - 2.0 * grid * y + n * grid**2 + 1.0
            det = (uu + 1.0) * square - cross**2
            p, q = (square * first - cross * second) / det, ((uu + 1.0) * second - cross * first) / det
            cost = np.max([-(p * c[0] + q * c[1]) for c in corners_at(grid, bound)], axis=0)
            shrink = np.minimum(1.0, 0.5 / np.maximum(cost, 0.5))
            p, q, left = p * shrink, q * shrink, max(n // 64, 1)
        wealth += np.log1p(p * a + q * (b - grid))
        most = np.maximum(most, wealth)
        n, left = n + 1, left - 1
        u, uu, y, uy, yy = u + a, uu + a * a, y + b, uy + a * b, yy + b * b
    kept = grid[most < math.log(1.0 / alpha)]
    return kept[0], kept[-1]


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
