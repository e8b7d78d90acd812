"""What late conversions cost a learner that knows the model of the site: python tests/late_oracle.py SEED prints it.

The learner is no bandit of the package. Its posterior is a Laplace approximation of logistic regression on the very
terms of the site's log odds, with their true means and deviations as the prior. It draws theta for every request from
the posterior with half of its deviation, and shows the best article. It fits anew every half hour on two days, then
every hour. Three ways to learn:

    now      every outcome at once
    told     every outcome, a conversion or none, after its delay
    law      conversions as they come; a decision of age e without one has the likelihood 1 - p F(e), F the true law
"""

import sys
from itertools import islice

import numpy as np
from scipy import sparse
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import expit, ndtr

from onepass.lab.news.late_conversions import SPREAD, STUDY, WEEK, delay_hours
from onepass.lab.news.simulator import AUTHORS, BASE, COUNTRIES, DEVICES, HOURS, MIDDLE, TOPICS
from onepass.lab.news.simulator import SPREAD as YEARS

WAYS = ("now", "told", "law")
# terms of the log odds: how many, mean and deviation; an article loses 1 / 50 an hour
TERMS = {
    "base": (1, BASE, 0.3), "country": (8, 0.0, 0.3), "topic": (8, 0.0, 0.4), "author": (20, 0.0, 0.4),
    "country x topic": (64, 0.0, 0.5), "device x topic": (24, 0.0, 0.3), "country x author": (160, 0.0, 0.35),
    "age x topic": (8, 0.0, 0.5), "interest": (1, 0.9, 0.3), "days": (1, -HOURS / 50.0, 0.1),
}  # fmt: skip
COUNTS, MEANS, DEVIATIONS = (np.array(each) for each in zip(*TERMS.values(), strict=True))
FIRST = dict(zip(TERMS, np.cumsum([0, *COUNTS[:-1]]).tolist(), strict=True))
MEAN, PRECISION, DIM = np.repeat(MEANS, COUNTS), np.repeat(DEVIATIONS**-2.0, COUNTS), int(COUNTS.sum())
SHARE = 0.5  # of the posterior's deviation, in a draw


def terms(request):
    """Places (K, 10) and values (K, 10) of the terms of the articles on offer; an unknown age counts as the mean."""
    user = request.user
    c, d = COUNTRIES.index(user["country"]), DEVICES.index(user["device"])
    years = 0.0 if user["age"] is None else (user["age"] - MIDDLE) / YEARS
    places, values = [], []
    for article in request.articles.values():
        t, a = TOPICS.index(article["topic"]), AUTHORS.index(article["author"])
        at = (0, c, t, a, 8 * c + t, 8 * d + t, 20 * c + a, t, 0, 0)
        places.append([first + place for first, place in zip(FIRST.values(), at, strict=True)])
        values.append([1.0] * 7 + [years, float(article["topic"] in user["interests"]), article["age"] / HOURS])
    return np.array(places), np.array(values)


def law(hours):
    """Share F of the conversions that have come by an age in hours."""
    return ndtr(np.log(np.maximum(hours, 1e-9) / HOURS) / SPREAD)


class Learner:
    """Learner that knows the terms of the log odds and their prior; it learns in one of the three ways."""

    def __init__(self, way, seed):
        self.way, self.rng, self.due = way, np.random.default_rng([seed, 77]), 0.0
        self.theta, self.root = MEAN.copy(), np.diag(np.sqrt(PRECISION))
        self.places, self.values, self.log = [], [], []  # log: hour, outcome, hour at which it is known
        self.clicks = 0.0

    def serve(self, request, places, values):
        if request.hour >= self.due:
            self.fit(request.hour)
            self.due = request.hour + (0.5 if request.hour < 2.0 * HOURS else 1.0)
        draw = solve_triangular(self.root, self.rng.standard_normal(DIM), lower=True, trans=1, check_finite=False)
        best = int(np.argmax(((self.theta + SHARE * draw)[places] * values).sum(axis=1)))
        chance = float(request.chances[best])
        self.clicks += chance
        self.places.append(places[best])
        self.values.append(values[best])
        self.log.append((request.hour, float(request.lot < chance), request.hour + delay_hours(request)))

    def fit(self, hour):
        """Take Newton steps to the largest posterior density of what is known at an hour."""
        if not self.log:
            return
        made, y, known_at = np.array(self.log).T
        share, known = np.ones(len(y)), np.ones(len(y), bool)
        if self.way == "told":
            known = known_at <= hour
        elif self.way == "law":
            y = y * (known_at <= hour) * (known_at - made <= WEEK)
            share = np.where(y == 1.0, 1.0, law(np.minimum(hour - made, WEEK)))
        if not known.any():
            return
        starts, shape = np.arange(0, 10 * known.sum() + 1, 10), (int(known.sum()), DIM)
        kept = np.array(self.values)[known].ravel(), np.array(self.places)[known].ravel(), starts
        rows, y, share = sparse.csr_matrix(kept, shape=shape), y[known], share[known]
        for _ in range(3):
            p = expit(rows @ self.theta)
            q = np.clip(p * share, 1e-12, 1.0 - 1e-12)  # probability that a conversion is known by now
            slope = q * (1.0 - p)
            gradient = rows.T @ ((y - q) * slope / (q * (1.0 - q))) - PRECISION * (self.theta - MEAN)
            matrix = (rows.T @ sparse.diags(slope**2 / (q * (1.0 - q))) @ rows).toarray()
            matrix.flat[:: DIM + 1] += PRECISION
            self.root = cholesky(matrix, lower=True, check_finite=False)
            step = cho_solve((self.root, True), gradient, check_finite=False)
            self.theta = self.theta + step
            if np.abs(step).max() < 0.02:
                break


def clicks(seed, rounds=STUDY.rounds):
    """Expected conversions of the learners by way, of the best articles, and of articles drawn uniformly."""
    learners = {way: Learner(way, seed) for way in WAYS}
    best = uniform = 0.0
    for request in islice(STUDY.site(seed).requests(), rounds):
        known = terms(request)
        for one in learners.values():
            one.serve(request, *known)
        best, uniform = best + float(request.chances.max()), uniform + float(request.chances.mean())
    return {way: one.clicks for way, one in learners.items()} | {"best": best, "uniform": uniform}


if __name__ == "__main__":
    for seed in map(int, sys.argv[1:]):
        found = clicks(seed)
        print(seed, {name: round(value / found["now"], 3) for name, value in found.items()}, round(found["now"], 1))
