"""Best fixed policy on all pairs of features of user and article, fitted to the true click probabilities.

It shows the article with the largest x^T theta, where x = vec((1, user) (1, article)^T) and theta minimizes

    sum over requests and articles of (click probability - x^T theta)^2

`InteractionBandit` has weights for the same pairs. The fixed policy learns the probabilities of all offered articles at
every third request, from the days on which it is evaluated. An online policy never sees these.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onepass.lab.news.simulator import AUTHORS, COUNTRIES, DEVICES, HOURS, MIDDLE, SPREAD, TOPICS, Request

EVERY = 3  # one request in so many is learned
TOGETHER = 200  # number of requests whose rows are added at once
REG = 1e-3  # keeps the system solvable: some columns are sums of others
USER = (*COUNTRIES, *DEVICES, *TOPICS, "no age", "age", "always")
ARTICLE = (*TOPICS, *AUTHORS, "age", "always")
AT_USER = {name: place for place, name in enumerate(USER)}
AT_ARTICLE = {name: place for place, name in enumerate(ARTICLE)}


def user_row(user: Mapping[str, Any]) -> np.ndarray:
    """Return the features of a user as an array (u,), in the order of the names in `USER`."""
    row = np.zeros(len(USER))
    row[[AT_USER[name] for name in (user["country"], user["device"], *user["interests"], "always")]] = 1.0
    if user["age"] is None:
        row[AT_USER["no age"]] = 1.0
    else:
        row[AT_USER["age"]] = (user["age"] - MIDDLE) / SPREAD
    return row


def article_rows(articles: Mapping[str, Mapping[str, Any]]) -> np.ndarray:
    """Return the features of K articles as an array (K, a), in the order of the names in `ARTICLE`."""
    rows = np.zeros((len(articles), len(ARTICLE)))
    for row, one in zip(rows, articles.values(), strict=True):
        row[[AT_ARTICLE[name] for name in (one["topic"], one["author"], "always")]] = 1.0
        row[AT_ARTICLE["age"]] = one["age"] / HOURS
    return rows


def best_fixed(requests: Sequence[Request]) -> np.ndarray:
    """Return the index (n,) of the article that the best fixed linear policy shows at each of n requests.

    The policy is a ridge regression of the true click probabilities on products of user and article features, fitted to
    a part of the requests.
    """
    dim = len(USER) * len(ARTICLE)
    gram, moment = REG * np.eye(dim), np.zeros(dim)
    learned = requests[::EVERY]
    for start in range(0, len(learned), TOGETHER):
        part = learned[start : start + TOGETHER]
        rows = np.concatenate([
            np.einsum("u,ka->kua", user_row(one.user), article_rows(one.articles)).reshape(-1, dim) for one in part
        ])  # fmt: skip
        gram += rows.T @ rows
        moment += np.concatenate([one.chances for one in part]) @ rows
    theta = np.linalg.solve(gram, moment).reshape(len(USER), len(ARTICLE))
    return np.array([np.argmax(article_rows(one.articles) @ (user_row(one.user) @ theta)) for one in requests])
