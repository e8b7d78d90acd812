"""Misses of confidence intervals over many logs, at the end and on the way, for loggers that learn or do not."""

import sys
from itertools import pairwise

import numpy as np

from onepass import evaluation as ev
from onepass.evaluation import intervals
from onepass.evaluation.doubly_robust import DoublyRobustSequence

CLICKS = ev.Range(0.0, 1.0)
GAMES = {  # means of arms, the policy that is evaluated, the floor of the logger's probabilities
    "clicks": ((0.02, 0.08, 0.05), (0.05, 0.15, 0.8), 0.1),
    "twins": ((0.5, 0.5), (0.0, 1.0), 0.02),
    "rare": ((0.001, 0.004, 0.002), (0.05, 0.15, 0.8), 0.1),
    "hidden": ((0.02, 0.9), (0.9, 0.1), 0.001),  # the logger never draws evenly: half of its floor for the second arm
}
TOGETHER = ("betting", "doubly-robust", "average")
ALONE = ("bernstein", "clopper-pearson", "cressie-read", "normal", "bootstrap")


def logs(game, learns, runs, rows, seed):
    """Return weights and rewards (runs, rows), the value, and the largest weight.

    A logger that learns plays the arm with the highest mean so far, and every arm with the floor's probability. Another
    logger draws evenly, or in "hidden" plays the first arm except for the floor.
    """
    means, policy, floor = (np.array(part) for part in GAMES[game])
    rng, arms = np.random.default_rng(seed), len(means)
    clicks, shown = np.ones((runs, arms)), np.full((runs, arms), 2.0)
    w, r, each = np.empty((runs, rows)), np.empty((runs, rows)), np.arange(runs)
    for t in range(rows):
        p = np.full((runs, arms), 1.0 / arms)
        if learns:
            p[:] = floor / arms
            p[each, (clicks / shown).argmax(axis=1)] += 1.0 - floor
        elif game == "hidden":
            p[:] = 1.0 - floor / 2, floor / 2
        arm = (p.cumsum(axis=1) > rng.random((runs, 1))).argmax(axis=1)
        r[:, t] = rng.random(runs) < means[arm]
        w[:, t] = policy[arm] / p[each, arm]
        clicks[each, arm] += r[:, t]
        shown[each, arm] += 1.0
    return w, r, float(policy @ means), float(policy.max() / (floor / arms if learns else 1.0 / arms))


def misses(game, learns, runs, rows, looks, bootstrap=100, seed=0):
    """Count for each interval at 95 % the runs in which it misses, at the end and at any look on the way.

    In "hidden" only propensities are known and there is no largest weight, so there are no bets.
    """
    w, r, value, bound = logs(game, learns, runs, rows, seed)
    ends = np.linspace(0, rows, looks + 1).astype(int)
    found = {name: [0, 0] for name in (*TOGETHER, *ALONE)}
    rng, ips = np.random.default_rng(seed + 1), ev.get_estimator("ips")
    for run in range(runs):
        out = {name: [] for name in found}
        betting, robust = ev.BettingSequence(CLICKS, bound), DoublyRobustSequence(CLICKS, bound)
        average = ev.AverageSequence(CLICKS)
        seen = np.concatenate([[0.0], np.cumsum(r[run])[:-1]]) / np.arange(1, rows + 1)  # a model of the past alone
        for start, end in pairwise(ends):
            part, sample = slice(start, end), ev.make_sample(w[run, :end], r[run, :end])
            average.add(w[run, part], r[run, part])
            if game != "hidden":
                betting.add(w[run, part], r[run, part])
                robust.add(ev.make_sample(w[run, part], r[run, part], seen[part], seen[part]))
            m = ev.compute_moments(sample.weights, sample.rewards)
            limits = {
                "betting": betting.interval(),
                "doubly-robust": robust.interval(),
                "average": average.interval(),
                "bernstein": intervals.bernstein(m, CLICKS, 0.05),
                "clopper-pearson": intervals.clopper_pearson(m, CLICKS, 0.05),
                "cressie-read": intervals.cressie_read(m, CLICKS, 0.05),
                "normal": intervals.normal(sample.products, CLICKS, 0.05),
            }
            if bootstrap:
                limits["bootstrap"] = intervals.bootstrap(ips, sample, CLICKS, 0.05, bootstrap, rng)
            for name, one in limits.items():
                out[name].append(not one.contains(value))
        for name, missed in out.items():
            found[name][0] += bool(missed) and missed[-1]
            found[name][1] += any(missed)
    return found


if __name__ == "__main__":  # the table of docs/evaluation_measured.md: python tests/coverage_games.py [LOGS]
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    for game in GAMES:
        for learns in (False, True) if game != "hidden" else (False,):
            for name, (end, ever) in misses(game, learns, runs, 2_000, 10).items():
                if game != "hidden" or name not in ("betting", "doubly-robust"):
                    print(f"{game:<8} {learns!s:<6} {name:<16} {end / runs:7.1%} {ever / runs:7.1%}", flush=True)
