"""Generated implicit feedback: the items that users took in a year; nothing says what they dislike.

The taste of user u for item a is popularity_a + STRENGTH u^T v_a + noise, with u and v_a drawn from N(0, I /
sqrt(TASTES)). A user takes the items with the largest values, at times after the user's first day. The noise is Gumbel
distributed, so items are drawn without replacement by a softmax of the other terms. Every rating is 5.
"""

from functools import cache

import numpy as np

from onepass.lab.recommender.interactions import Interactions, in_time_order

TASTES = 16  # dimension of tastes
STRENGTH = 1.5  # scale of tastes, beside popularity with standard deviation 1
MEAN = 25.0  # mean number of items of a user, who takes at least one
LATE = 0.7  # the first day is this power of a uniform number
LAST = 0.95  # share of the year in which new users come
YEAR = 365 * 86_400.0  # seconds
SEED = 0


@cache
def implicit_interactions(users: int = 8000, items: int = 1200) -> Interactions:
    """Return random interactions of `users` users with `items` items within a year, the same in every call."""
    rng = np.random.default_rng(SEED)
    left, right = (rng.standard_normal((count, TASTES)) / TASTES**0.25 for count in (users, items))
    popularity = rng.standard_normal(items)
    who, what, when = [], [], []
    for user in range(users):
        count = min(1 + int(rng.geometric(1.0 / MEAN)), items // 4)
        values = popularity + STRENGTH * (right @ left[user]) + rng.gumbel(size=items)
        first = LAST * rng.random() ** LATE
        who.append(np.full(count, user))
        what.append(np.argpartition(-values, count)[:count])
        when.append(YEAR * (first + (1.0 - first) * rng.random(count)))
    columns = (np.concatenate(column) for column in (who, what, when))
    people, taken, times = columns
    return in_time_order(people, taken, np.full(len(people), 5.0), times)
