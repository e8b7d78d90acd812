"""From an interactions file to top-10 lists: one model per item, users' features by a truncated SVD.

Run: python examples/recommend.py [FILE.csv]     (columns user,item,rating,timestamp; without a file one is made up)
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds

import onepass as op

FACTORS, K = 8, 10


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


def features(log: pl.DataFrame, users: list[str], items: list[str]) -> np.ndarray:
    """A V of users, A the last rating of every pair, A ~ U S V^T."""
    last = log.unique(["user", "item"], keep="last", maintain_order=True)
    place = {name: i for i, name in enumerate(users)}, {name: i for i, name in enumerate(items)}
    where = [[place[0][u] for u in last["user"]], [place[1][i] for i in last["item"]]]
    matrix = csr_array((last["rating"].to_numpy().astype(float), where), (len(users), len(items)))
    right = svds(matrix, k=min(FACTORS, min(matrix.shape) - 1), v0=np.ones(min(matrix.shape)))[2].T
    return matrix @ right


def main(path: Path) -> None:
    log = pl.read_csv(path).cast({"user": pl.String, "item": pl.String}).sort("timestamp", maintain_order=True)
    past, later = log.head(len(log) * 8 // 10), log.tail(len(log) - len(log) * 8 // 10)
    users, items = past["user"].unique().sort().to_list(), past["item"].unique().sort().to_list()
    of_users = features(past, users, items)  # of the past alone
    row = {name: i for i, name in enumerate(users)}

    def learn(part: pl.DataFrame) -> None:
        part = part.filter(pl.col("user").is_in(users) & pl.col("item").is_in(items))
        bandit.learn(of_users[[row[u] for u in part["user"]]], part["rating"] / 5, arm=part["item"])

    bandit = op.ItemModels(dim=of_users.shape[1])
    learn(past)

    came = later.filter(pl.col("user").is_in(users)).group_by("user", maintain_order=True).agg("item")
    known = dict(past.group_by("user").agg("item").iter_rows())
    asked = of_users[[row[u] for u in came["user"]]]
    seen = [known[u] for u in came["user"]]
    found = bandit.recommend(asked, K, arms=items, exclude=seen)  # all users at once
    wanted = [set(own) - set(old) for own, old in zip(came["item"], seen, strict=True)]
    hits = [bool(own & set(arms)) for own, arms in zip(wanted, found.arms, strict=True) if own]
    lists = pl.DataFrame({"user": came["user"], "top": found.arms})
    print(lists.head(3).with_columns(pl.col("top").list.head(3).list.join(", ")))
    print(f"{np.mean(hits):.0%} of {len(hits)} users came for one of the ten they were shown")
    print(f"{len(bandit.arms)} models, {bandit.memory_usage() / 1e3:,.0f} kB")
    learn(later)  # and on from here


if __name__ == "__main__":
    if len(sys.argv) == 2 and Path(sys.argv[1]).suffix == ".csv":
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(made_up(Path(folder) / "interactions.csv"))
