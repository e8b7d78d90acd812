"""Logs as Personalizer and Vowpal Wabbit's client library write them, made up."""

import json

import numpy as np

TOPICS = ["sport", "news", "food"]


def lines(count, seed=0, named=True, begin=0):
    """Yield `count` decisions of a logger with known probabilities.

    With `named`, actions have tags as names. Young people like sport, others news.
    """
    rng = np.random.default_rng(seed)
    for number in range(begin, begin + count):
        age = int(rng.integers(15, 75))
        arms = rng.choice(9, size=3, replace=False).tolist()
        p = rng.dirichlet(np.ones(3) * 4).astype(np.float32).astype(float)  # single precision, as there
        place = int(rng.choice(3, p=p / p.sum()))
        likes = "sport" if age < 40 else "news"
        click = float(rng.random() < (0.6 if TOPICS[arms[place] % 3] == likes else 0.1))
        order = [place, *(at for at in range(3) if at != place)]
        yield {
            "_label_cost": -click, "_label_probability": p[place], "_label_Action": place + 1, "_labelIndex": place,
            "o": [{"EventId": f"e{number}", "v": click}] if click else [],
            "Timestamp": f"2026-01-02T03:{number // 60 % 60:02}:{number % 60:02}.0000000Z", "Version": "1",
            "EventId": f"e{number}", "a": [at + 1 for at in order],
            "c": {
                "GUser": {"age": age, "country": "de" if number % 2 else "fr", "_id": "not a feature"},
                " FromUrl": [{"weekday": True}, {"likes": ["a", "b"]}],
                "_multi": [
                    {**({"_tag": f"article {arm}"} if named else {}), "TAction": {"topic": TOPICS[arm % 3]},
                     "j": [{"Vision": {"person": 0.5}}, {"_text": "good words"}]}
                    for arm in arms
                ],
            },
            "p": [p[at] for at in order], "VWState": {"m": "model/1"},
        }  # fmt: skip


def write_log(path, count, **options):
    """Write such lines to a file, and return its path."""
    path.write_text("".join(json.dumps(one) + "\n" for one in lines(count, **options)))
    return path
