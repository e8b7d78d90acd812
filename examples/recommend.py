"""From an interactions file to top-10 lists, with nothing to tune: `Recommender`.

Run: python examples/recommend.py [FILE.csv]     (columns user,item,rating,timestamp; without a file one is made up)
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

import onepass as op

K = 10


def made_up(path: Path) -> Path:
    """Two hundred readers of four tastes and sixty titles, over a year."""
    rng = np.random.default_rng(0)
    n = 4000
    user = rng.integers(200, size=n)
    item = np.where(rng.random(n) < 0.8, user % 4 * 15 + rng.integers(15, size=n), rng.integers(60, size=n))
    rating = np.where(item // 15 == user % 4, rng.integers(4, 6, size=n), rng.integers(1, 4, size=n))
    names = {"user": [f"reader-{u}" for u in user], "item": [f"title-{i}" for i in item]}
    time = 1_700_000_000 + np.sort(rng.integers(365 * 86_400, size=n))
    pl.DataFrame({**names, "rating": rating, "timestamp": time}).write_csv(path)
    return path


def main(path: Path) -> None:
    log = pl.read_csv(path).cast({"user": pl.String, "item": pl.String}).sort("timestamp", maintain_order=True)
    past, later = log.head(len(log) * 8 // 10), log.tail(len(log) - len(log) * 8 // 10)

    def learn(part: pl.DataFrame) -> None:
        recommender.learn(part["user"], part["item"], time=part["timestamp"])

    recommender = op.Recommender()
    learn(past)

    came = later.filter(pl.col("user").is_in(past["user"].implode())).group_by("user", maintain_order=True).agg("item")
    known = dict(past.group_by("user").agg("item").iter_rows())
    found = recommender.recommend(came["user"], K, exclude_seen=True)  # all users at once
    wanted = [set(own) - set(known[user]) for user, own in came.iter_rows()]
    hits = [bool(own & set(arms)) for own, arms in zip(wanted, found.arms, strict=True) if own]
    lists = pl.DataFrame({"user": came["user"], "top": found.arms})
    print(lists.head(3).with_columns(pl.col("top").list.head(3).list.join(", ")))
    print(f"{np.mean(hits):.0%} of {len(hits)} users came for one of the ten they were shown")
    print(f"somebody new is shown {', '.join(recommender.recommend('somebody new', 3).arms[0])}")
    print(f"{recommender!r}, {recommender.memory_usage() / 1e3:,.0f} kB")
    learn(later)  # and on from here


if __name__ == "__main__":
    if len(sys.argv) == 2 and Path(sys.argv[1]).suffix == ".csv":
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(made_up(Path(folder) / "interactions.csv"))
