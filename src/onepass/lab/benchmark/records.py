"""Cost of contexts that are dictionaries: making rows, beside scikit-learn's hashing, and deciding and learning."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import onepass as op
from onepass.lab.benchmark.shared_model import Line

ARMS, FEATURES = 20, 5
ALLOWED = 40.0  # microseconds for a request with ten features, and twenty arms of five features
REQUESTS, TURNS, KNOWN = 300, 9, 400


def requests(seed: int, count: int) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return `count` random requests, each with the ten features of a user and the five features of 20 arms.

    Features are words, numbers and booleans. The arms of a request are 20 of 60.
    """
    rng = np.random.default_rng(seed)
    arms = {
        f"a{k}": {
            "topic": f"t{k % 8}",
            "author": f"w{k % 20}",
            "age": float(k),
            "long": k % 2 == 0,
            "kind": f"k{k % 3}",
        }
        for k in range(60)
    }
    found = []
    for _ in range(count):
        user: dict[str, Any] = {f"word {j}": f"v{rng.integers(5)}" for j in range(6)}
        user |= {"age": float(rng.normal(40.0, 10.0)), "hour": int(rng.integers(24)), "vip": True, "score": 0.5}
        found.append((user, {f"a{k}": arms[f"a{k}"] for k in rng.choice(60, ARMS, replace=False)}))
    return found


def microseconds(works: dict[str, Callable[[Any, Any], Any]], asked: Any) -> dict[str, float]:
    """Return the least microseconds per request of every function in `works`, by name.

    A function takes a user and arms; `asked` are the requests, as pairs of these. The functions alternate.
    """
    least = dict.fromkeys(works, np.inf)
    for _ in range(TURNS):
        for name, work in works.items():
            began = time.perf_counter()
            for user, arms in asked:
                work(user, arms)
            least[name] = min(least[name], (time.perf_counter() - began) / len(asked) * 1e6)
    return least


def speed_lines() -> list[Line]:
    """Measure contexts that are dictionaries, and return lines of the table that `onepass bench` prints."""
    from sklearn.feature_extraction import FeatureHasher

    users, items = op.Records(), op.Records()
    bandit, rng = op.InteractionBandit(), np.random.default_rng(0)
    for user, arms in requests(1, KNOWN):
        users.learn(user)
        items.learn(list(arms.values()))
        bandit.learn(bandit.decide(user, arms), float(rng.random() < 0.1))  # clicks
    hasher = FeatureHasher(users.size)
    works: dict[str, Callable[[Any, Any], Any]] = {
        "rows": lambda user, arms: (users.pairs(user), items.pairs(list(arms.values()))),
        "hashed": lambda user, arms: (hasher.transform([user]), hasher.transform(arms.values())),
        "decide": bandit.decide,
    }
    asked = requests(2, REQUESTS)
    least = microseconds(works, asked)
    decisions = [bandit.decide(*one) for one in asked]
    began = time.perf_counter()
    for decision in decisions:
        bandit.learn(decision, 0.0)
    learned = (time.perf_counter() - began) / len(asked) * 1e6
    ratio = least["rows"] / least["hashed"]
    what = f"records, 10 features and {ARMS} arms of {FEATURES}"
    return [
        (what, least["rows"], "us", ratio, f"times FeatureHasher, {least['hashed']:.0f} us"),
        ("  of the 40 us allowed", least["rows"], "us", least["rows"] / ALLOWED, "times the bar"),
        (
            "InteractionBandit.decide, the same",
            least["decide"],
            "us",
            least["decide"] / least["rows"],
            "times its rows",
        ),
        ("InteractionBandit.learn, the same", learned, "us", learned / least["decide"], "times decide"),
    ]
