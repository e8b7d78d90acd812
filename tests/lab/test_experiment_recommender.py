import json
import os
from pathlib import Path

import numpy as np
import pytest

import onepass
from experiments import press_ctrl_c
from onepass import Factors, Recommendation, cli
from onepass.lab import (
    DataNotFound,
    ExperimentError,
    Figure,
    Policy,
    Recommender,
    RecommenderStudy,
    find,
    report,
    run,
    select,
    suites,
    tune,
)
from onepass.lab.datasets import INTERACTIONS
from onepass.lab.recommender import interactions
from onepass.lab.recommender.figures import ARMS, BATCH, RECOMMENDER, SIZE, WIDTH
from onepass.lab.recommender.interactions import (
    Interactions,
    calendar_periods,
    features,
    in_time_order,
    load,
    metrics,
    prepare,
    warm_up,
)
from onepass.lab.recommender.policies import CBRAP, LinUCBFull, Popularity, PSILinUCBFull, Random, RecommenderPolicy
from onepass.lab.recommender.suites import sweep
from onepass.lab.seeds import FIRST_TUNING_SEED

RULE = {"reg": 0.37, "exploration": -0.1}
LINUCB = Recommender("LinUCB", "LinUCB", {"model": "disjoint", **RULE})
POPULARITY = Recommender("Popularity", Popularity)
DAY = 86_400.0


def small_interactions(seed: int = 0, n: int = 1500) -> Interactions:
    """Ninety users of three tastes and thirty items over eight months; the last users come late."""
    rng = np.random.default_rng(seed)
    times = np.sort(rng.integers(0, 240, n)) * DAY + 1.4e9
    users = rng.integers(0, 20 + 70 * np.arange(n) // n)
    items = np.where(rng.random(n) < 0.7, users % 3 * 10 + rng.integers(0, 10, n), rng.integers(0, 33, n))
    ratings = np.where(items // 10 == users % 3, 5.0, rng.integers(1, 5, n).astype(float))
    return in_time_order(users, items, ratings, times)


def study(*policies: Policy, **changes: object) -> RecommenderStudy:
    given = {"rounds": 9, "seeds": 1, "grid": {"exploration": (-0.1, 0.3), "reg": (0.37, 4.0)}, **changes}
    return RecommenderStudy("small", "a small one", small_interactions, 4, policies or (LINUCB, POPULARITY), **given)


def rows_of_all_steps(rows: list[dict], users: str = "known") -> dict[str, dict]:
    return {row["policy"]: row for row in rows if row["month"] == "all" and row["users"] == users}


def test_metrics_equal_their_definitions() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        shown = rng.permutation(30)[: rng.integers(1, 15)].tolist()
        relevant = set(rng.permutation(30)[: rng.integers(0, 14)].tolist())
        gains = [1.0 if item in relevant else 0.0 for item in shown[:10]]
        gained = sum(gain / np.log2(place + 2) for place, gain in enumerate(gains))
        ideal = sum(1 / np.log2(place + 2) for place in range(min(10, len(relevant))))
        wanted = (float(any(gains)), gained / ideal if ideal else 0.0, 1 / (gains.index(1) + 1) if any(gains) else 0.0)
        assert metrics(shown, relevant) == pytest.approx(wanted)


def test_nothing_after_the_warm_up_touches_features_arms_or_what_is_learned_first() -> None:
    one = small_interactions()
    end = warm_up(one)
    rng = np.random.default_rng(1)
    order = end + rng.permutation(len(one.users) - end)
    columns = [column.copy() for column in one]
    for column in columns[:3]:
        column[end:] = column[order]
    other = Interactions(*columns)
    a, b = (
        prepare(one, 4),
        prepare(other._replace(ratings=np.where(np.arange(len(one.users)) < end, one.ratings, 0)), 4),
    )
    np.testing.assert_array_equal(a.users, b.users)
    np.testing.assert_array_equal(a.arms, b.arms)
    np.testing.assert_array_equal(a.warm, b.warm)
    assert a.seen == b.seen
    assert not np.array_equal(a.users, prepare(other, 4, leaking=True).users[: len(a.users)])


def test_features_are_the_truncated_svd_of_the_last_ratings() -> None:
    log = small_interactions().part(slice(1200))
    matrix = np.zeros((90, 33))
    for user, item, rating in zip(log.users, log.items, log.ratings):
        matrix[user, item] = rating
    left, right = features(log, (90, 33), 5)
    _, _, truth = np.linalg.svd(matrix)
    np.testing.assert_allclose(right @ right.T, truth[:5].T @ truth[:5], atol=1e-10)
    np.testing.assert_allclose(left, matrix @ right, atol=1e-10)
    with pytest.raises(ExperimentError, match="factors must be from 1 to 32"):
        features(log, (90, 33), 33)


@pytest.mark.parametrize("unit", ["month", "week"])
def test_steps_are_in_time_order_and_hold_every_later_interaction(unit: str) -> None:
    data = small_interactions()
    end = warm_up(data)
    cut = calendar_periods(data.times[end:], unit)
    assert [part.start for _, part in cut[1:]] == [part.stop for _, part in cut[:-1]]
    assert cut[0][1].start == 0
    assert cut[-1][1].stop == len(data.times) - end
    assert [name for name, _ in cut] == sorted({name for name, _ in cut})
    for (_, part), length in zip(cut, [31.0 if unit == "month" else 7.0] * len(cut)):
        assert np.ptp(data.times[end:][part]) < length * DAY
    problem = prepare(data, 4, unit)
    people, items = np.unique(data.users[:end]), np.unique(data.items[:end])
    for (name, part), step in zip(cut, problem.steps):
        assert step.name == name
        users, arms = data.users[end:][part], data.items[end:][part]
        came = {u: {int(i) for i in np.searchsorted(items, arms[users == u])} for u in np.unique(users) if u in people}
        assert dict(zip(people[step.users].tolist(), step.relevant)) == {int(u): own for u, own in came.items()}
        assert len(step.cold) == len(np.unique(users)) - len(came)
        assert len(step.log.users) == np.isin(users, people).sum()


class Spy:
    """Recommends the same arms to all and writes down what it is asked."""

    diary: list[tuple[str, int]]

    def __init__(self, *, dim: tuple[int, int], seed: int) -> None:
        self.diary = []

    def learn(self, contexts: Factors, rewards: np.ndarray, arm: np.ndarray) -> None:
        assert len(contexts.left) == len(contexts.right) == len(rewards) == len(arm)
        self.diary.append(("learn", len(arm)))

    def recommend(self, contexts: Factors, k: int, arms: range, exclude: list | None = None) -> Recommendation:
        self.diary.append(("recommend", len(contexts.left)))
        lists = [[a for a in arms if not exclude or a not in exclude[i]][:k] for i in range(len(contexts.left))]
        return Recommendation(lists, [np.zeros(k)] * len(lists))

    def memory_usage(self) -> int:
        return 100

    def error_bound(self) -> float:
        return float("inf")


def test_every_step_is_scored_before_it_is_learned() -> None:
    problem = study(Policy("spy", Spy))
    trial = problem.trial(problem.policies, 0)
    for number in range(3):
        trial.step(number, 1)
    steps = problem.problem(0).steps
    diary = trial.models[0].model.diary  # type: ignore[attr-defined]
    assert diary[0] == ("learn", len(problem.problem(0).warm.users))
    wanted = []
    for step in steps[:3]:
        wanted += [("recommend", len(step.users))] * 2 + ([("recommend", 1)] if step.cold else [])
        wanted.append(("learn", len(step.log.users)))
    assert diary[1:] == wanted


def test_means_and_errors_are_over_users_and_steps() -> None:
    results = run(study(Policy("spy", Spy)), rounds=3, quiet=True)
    problem = study().problem(0)
    hits = [[float(bool(own & set(range(10)))) for own in step.relevant] for step in problem.steps[:3]]
    row = rows_of_all_steps(results.rows)["spy"]
    assert row["hit_at_10"] == pytest.approx(np.mean([np.mean(own) for own in hits]))
    assert row["hit_at_10_pooled"] == pytest.approx(np.mean([hit for own in hits for hit in own]))
    weights = [1 / (3 * len(own)) for own in hits for _ in own]
    squares = [(hit - row["hit_at_10"]) ** 2 for own in hits for hit in own]
    assert row["hit_at_10_error"] == pytest.approx(np.sqrt(np.dot(np.square(weights), squares)))
    assert row["coverage"] == pytest.approx(10 / len(problem.arms))
    assert (row["rounds"], row["evaluations"]) == (3, sum(map(len, hits)))
    assert row["cumulative_reward"] + row["cumulative_regret"] == pytest.approx(3)
    left = [[a for a in range(len(problem.arms)) if a not in seen][:10] for seen in problem.seen]
    unseen = [
        float(bool(own & set(left[user]))) for step in problem.steps[:3] for user, own in zip(step.users, step.relevant)
    ]
    assert row["hit_at_10_unseen"] == pytest.approx(np.dot(weights, unseen))
    months = [row for row in results.rows if row["month"] != "all"]
    assert [row["hit_at_10"] for row in months] == pytest.approx([np.mean(own) for own in hits])
    cold = [float(bool(own & set(range(10)))) for step in problem.steps[:3] for own in step.cold]
    assert rows_of_all_steps(results.rows, "cold")["spy"]["hit_at_10_pooled"] == pytest.approx(np.mean(cold))


def test_everyone_of_a_step_has_every_row_with_an_arm_by_its_own_number() -> None:
    data = small_interactions()
    end = warm_up(data)
    people, items = np.unique(data.users[:end]), np.unique(data.items[:end])
    for (_, part), step in zip(calendar_periods(data.times[end:], "month"), prepare(data, 4).steps):
        users, taken, times = data.users[end:][part], data.items[end:][part], data.times[end:][part]
        arms = np.isin(taken, items)
        rows = step.everyone
        np.testing.assert_array_equal(items[rows.items], taken[arms])
        np.testing.assert_array_equal(rows.times, times[arms])
        known = np.isin(users[arms], people)
        np.testing.assert_array_equal(people[rows.users[known]], users[arms][known])
        assert len(set(zip(rows.users.tolist(), users[arms].tolist()))) == len(np.unique(users[arms]))
        assert (rows.users[~known] < interactions.UNKNOWN).all()


def test_the_recommender_learns_all_users_and_ranks_for_strangers_too() -> None:
    one = study(Recommender("Recommender", RecommenderPolicy))
    problem, twin = one.problem(0), onepass.Recommender()
    rows = {row["month"]: row for row in run(one, rounds=3, quiet=True).rows if row["users"] == "known"}
    cold = rows_of_all_steps(run(one, rounds=3, quiet=True).rows, "cold")["Recommender"]
    strangers = []
    twin.learn(problem.warm.users, problem.warm.items, time=problem.warm.times)
    for step in problem.steps[:3]:
        lists = twin.recommend(step.users).arms
        hits = [bool(own & set(shown)) for own, shown in zip(step.relevant, lists)]
        assert rows[step.name]["hit_at_10"] == pytest.approx(np.mean(hits))
        popular = set(twin.recommend("nobody").arms[0])
        strangers += [bool(own & popular) for own in step.cold]
        twin.learn(step.everyone.users, step.everyone.items, time=step.everyone.times)
    assert cold["hit_at_10_pooled"] == pytest.approx(np.mean(strangers))
    assert rows["all"]["hit_at_10_pooled"] > 0.3


def dense_hits(problem: object, reg: float, exploration: float) -> list[float]:
    """Hit@10 of every step by per-arm ridge regressions on the products, without any shortcut."""
    width = problem.users.shape[1] ** 2
    gram = np.tile(reg * np.eye(width), (len(problem.arms), 1, 1))
    moment = np.zeros((len(problem.arms), width))

    def learn(log: Interactions) -> None:
        for user, arm, rating in zip(log.users, log.items, log.ratings):
            x = np.outer(problem.users[user], problem.arms[arm]).ravel()
            gram[arm] += np.outer(x, x)
            moment[arm] += x * rating / 5

    learn(problem.warm)
    found = []
    for step in problem.steps:
        hits = []
        for user, relevant in zip(step.users, step.relevant):
            scores = []
            for arm, feature in enumerate(problem.arms):
                x = np.outer(problem.users[user], feature).ravel()
                inverse = np.linalg.inv(gram[arm])
                scores.append(moment[arm] @ inverse @ x + exploration * np.sqrt(x @ inverse @ x))
            hits.append(bool(relevant & set(np.argsort(scores)[-10:].tolist())))
        found.append(np.mean(hits))
        learn(step.log)
    return found


def test_hits_are_those_of_dense_models_on_the_products_and_row_by_row_changes_nothing() -> None:
    policies = (
        LINUCB,
        Recommender("rows", "LinUCB", LINUCB.params, batch=1),
        Recommender("full", PSILinUCBFull, {"rank": 5, **RULE}),
        Recommender("fours", PSILinUCBFull, {"rank": 5, **RULE}, batch=4),
        Recommender("full width", LinUCBFull, RULE),
    )
    rows = run(study(*policies), rounds=3, quiet=True).rows
    wanted = dense_hits(study().problem(0), 0.37, -0.1)[:3]
    for policy in policies:
        own = [row["hit_at_10"] for row in rows if row["policy"] == policy.label and row["month"] != "all"]
        assert own == pytest.approx(wanted), policy.label


def test_models_of_full_width_that_do_not_fit_into_memory_are_refused() -> None:
    policy = LinUCBFull(dim=(3, 4), memory_limit=2 * 8 * 12**2)
    rows = Factors(np.ones((3, 3)), np.ones((3, 4)))
    policy.learn(Factors(rows.left[:2], rows.right[:2]), np.ones(2), np.array([0, 1]))
    with pytest.raises(ValueError, match="3 arms of 12 x 12 numbers"):
        policy.learn(rows, np.ones(3), np.array([0, 1, 2]))


def test_a_policy_is_not_changed_by_its_company() -> None:
    bold = LINUCB.with_params(exploration=2.0)
    bold = Recommender("bold", bold.recipe, bold.params)
    together = rows_of_all_steps(run(study(LINUCB, bold), quiet=True).rows)
    assert together["LinUCB"]["ndcg_at_10"] != together["bold"]["ndcg_at_10"]
    for policy in (LINUCB, bold):
        alone = rows_of_all_steps(run(study(policy), quiet=True).rows)[policy.label]
        assert alone["ndcg_at_10"] == together[policy.label]["ndcg_at_10"]


def test_tuning_sees_the_warm_up_alone(tmp_path: Path) -> None:
    one = study(LINUCB, Recommender("CBRAP", CBRAP, {"size": 6, **RULE}))
    problem, data = one.problem(FIRST_TUNING_SEED), small_interactions()
    last = data.times[warm_up(data) - 1]
    assert problem.steps[-1].name <= str(np.datetime64(int(last), "s").astype("datetime64[M]"))
    assert sum(len(step.log.users) for step in problem.steps) + len(problem.warm.users) <= warm_up(data)
    results = tune(one, seeds=1, quiet=True)
    assert len(results.rows) == 2 * 4
    assert {row["month"] for row in results.rows} == {"all"}
    assert "mean regret" in report.keep_tuning(results, tmp_path)
    for name in ("magazine", "movielens-100k"):
        assert min(find(name).grid["exploration"]) < 0


def test_other_settings_of_the_problem_belong_to_the_policy() -> None:
    policies = sweep(LINUCB, factors=(2, 3)) + sweep(LINUCB, arms=(12,))
    rows = rows_of_all_steps(run(study(*policies), rounds=2, quiet=True).rows)
    assert [row["context_dim"] for row in rows.values()] == [4, 9, 16]
    assert rows["LinUCB arms=12"]["arms"] == 12
    assert rows["LinUCB factors=3"]["params"]["factors"] == 3
    assert {policy.group for policy in policies} == {"LinUCB"}


def test_popularity_counts_everyone_and_random_is_reproducible() -> None:
    popular = Popularity(dim=(2, 2))
    popular.learn(Factors(np.ones((5, 2)), np.ones((5, 2))), np.ones(5), np.array([3, 3, 1, 1, 1]))
    asked = Factors(np.ones((2, 2)), np.ones((6, 2)))
    assert popular.recommend(asked, 3, range(6)).arms == [[1, 3, 0]] * 2
    assert popular.recommend(asked, 3, range(6), [set(), {1, 0}]).arms == [[1, 3, 0], [3, 2, 4]]
    lists = [Random(dim=(2, 2), seed=5).recommend(asked, 3, range(6), [set(), {0}]).arms for _ in range(2)]
    assert lists[0] == lists[1]
    assert 0 not in lists[0][1]


@pytest.mark.parametrize("figure", [RECOMMENDER, SIZE, WIDTH, ARMS, BATCH], ids=lambda figure: figure.name)
def test_every_figure_of_a_recommender_is_reported(tmp_path: Path, figure: Figure) -> None:
    swept = sweep(Recommender("PSILinUCB", PSILinUCBFull, {"rank": 2, **RULE}), rank=(2, 3))
    results = run(study(LINUCB, *swept, POPULARITY, figure=figure), rounds=2, quiet=True)
    table = report.keep(results, tmp_path)
    assert all(name in table for name in ("Hit@10 cold", "±", "PSILinUCB rank=3", "ms a user", "peak, MB"))
    assert (tmp_path / "figure.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert report.rebuild(tmp_path) == table


def test_the_command_runs_it_and_json_has_its_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(suites, "SUITES", (study(),))
    with pytest.raises(SystemExit) as done:
        cli.main(["run", "small", "--rounds", "2", "--seeds", "2", "--json"])
    assert not done.value.code
    rows = [json.loads(line, parse_constant=pytest.fail) for line in capsys.readouterr().out.splitlines()]
    columns = "hit_at_10 ndcg_at_10 mrr_at_10 coverage train_seconds decide_seconds_per_user peak_memory_bytes month"
    assert all(row.keys() >= {*columns.split(), "cumulative_regret", "memory_bytes", "users"} for row in rows)
    assert [(row["policy"], row["seed"]) for row in rows if row["month"] == "all" and row["users"] == "known"] == [
        (policy, seed) for seed in (0, 1) for policy in ("LinUCB", "Popularity")
    ]
    assert {row["month"] for row in rows} == {"all", *(step.name for step in study().problem(0).steps[:2])}


def test_ctrl_c_keeps_the_steps_that_are_done() -> None:
    class Interrupting(Spy):
        def recommend(self, contexts: Factors, k: int, arms: range, exclude: list | None = None) -> Recommendation:
            if len(self.diary) > 6:
                press_ctrl_c()
            return super().recommend(contexts, k, arms, exclude)

    one = RecommenderStudy("small", "", small_interactions, 4, (Policy("spy", Interrupting),), 9)
    trial_rows = run(one, quiet=True)
    assert trial_rows.interrupted
    assert rows_of_all_steps(trial_rows.rows)["spy"]["rounds"] == 1


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    import pooch
    import requests

    from onepass.lab import datasets

    def refuse(*_: object, **__: object) -> None:
        raise requests.ConnectionError("no network")

    monkeypatch.setenv("ONEPASS_DATA", str(tmp_path))
    monkeypatch.setattr(datasets, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(pooch, "retrieve", refuse)
    return tmp_path


@pytest.mark.parametrize("name", INTERACTIONS)
def test_missing_damaged_and_other_files_are_named(name: str, files: Path) -> None:
    with pytest.raises(DataNotFound, match=INTERACTIONS[name].forms[0].files[0]):
        load.__wrapped__(name)
    path = files / INTERACTIONS[name].forms[-1].files[0]
    path.parent.mkdir()
    mark = {"movielens-100k": "\t", "movielens-1m": "::"}.get(name, ",")
    path.write_text("\n".join(mark.join(row) for row in (("7", "x", "4.0", "30"), ("5", "y", "1.0", "20"))))
    count = rf"is not {name}: it has \(2, 2, 2\) interactions"
    with pytest.raises(ExperimentError, match=count if INTERACTIONS[name].counts else "its first line is not user_id"):
        load.__wrapped__(name)
    path.write_text(f"7{mark}x{mark}much{mark}30")
    with pytest.raises(ExperimentError, match="cannot be read"):
        load.__wrapped__(name)


def test_interactions_are_read_in_time_order(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = INTERACTIONS["magazine"]
    monkeypatch.setitem(interactions.INTERACTIONS, "magazine", source._replace(counts=(3, 2, 2)))
    path = files / source.forms[1].files[0]
    path.parent.mkdir()
    path.write_text("b,u,4.0,30\na,v,1.0,20\na,u,5.0,30\n")
    data = load.__wrapped__("magazine")
    assert [column.tolist() for column in data] == [[1, 0, 0], [0, 1, 0], [1.0, 4.0, 5.0], [20.0, 30.0, 30.0]]


def is_available(name: str) -> bool:
    folder = os.environ.get("ONEPASS_DATA")
    forms = INTERACTIONS[name].forms
    return folder is not None and any(all((Path(folder) / file).is_file() for file in form.files) for form in forms)


@pytest.mark.parametrize(
    ("name", "hit", "unseen", "popularity"),
    [("magazine", 0.126, 0.122, (0.136, 0.133)), ("movielens-100k", 0.162, 0.349, (0.165, 0.334))],
)
def test_hits_on_real_interactions_are_those_measured(
    name: str, hit: float, unseen: float, popularity: tuple[float, float]
) -> None:
    if not is_available(name):
        pytest.skip(f"the files of {name} are not in $ONEPASS_DATA")
    found = find(name)
    full = found.policies[4]
    rows = rows_of_all_steps(run(found, policies=select(found, ["LinUCB", full.label, "Popularity"]), quiet=True).rows)
    assert rows["LinUCB"]["hit_at_10"] == pytest.approx(hit, abs=1e-3)
    assert rows["LinUCB"]["hit_at_10_unseen"] == pytest.approx(unseen, abs=1e-3)
    assert rows["Popularity"]["hit_at_10"] == pytest.approx(popularity[0], abs=1e-3)
    assert rows["Popularity"]["hit_at_10_unseen"] == pytest.approx(popularity[1], abs=1e-3)
    for column in ("hit_at_10", "ndcg_at_10", "mrr_at_10", "coverage"):  # the rank is above the features' 41 and 13
        assert rows[full.label][column] == pytest.approx(rows["LinUCB"][column])


def test_scores_of_psi_above_the_rank_of_the_data_are_the_exact_ones_on_magazine() -> None:
    if not is_available("magazine"):
        pytest.skip("the files of magazine are not in $ONEPASS_DATA")
    found = find("magazine")
    trial = found.trial(select(found, ["LinUCB", "PSILinUCB rank=48"]), 0)
    trial.step(0, 3)
    exact, full = trial.models  # type: ignore[attr-defined]
    asked = Factors(exact.problem.users[exact.problem.steps[3].users], exact.problem.arms)
    names = range(len(exact.problem.arms))
    assert np.abs(exact.model.score(asked, names) - full.model.score(asked, names)).max() < 1e-8


# ---------------------------------------------------------------- data sets that are not here


@pytest.mark.parametrize(
    ("name", "file", "content"),
    [
        ("movielens-1m", "ml-1m/ratings.dat", "2::10::5::978300760\n1::7::3::978302109\n2::7::4::978301968\n"),
        (
            "health-2023",
            "amazon-2023/Health_and_Personal_Care.csv",
            "user_id,parent_asin,rating,timestamp\nB,Y,5.0,978300760000\nA,X,3.0,978302109000\nB,X,4.0,978301968000\n",
        ),
    ],
)
def test_interactions_are_read_in_their_official_form(
    name: str, file: str, content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / file).parent.mkdir()
    (tmp_path / file).write_text(content)
    monkeypatch.setenv("ONEPASS_DATA", str(tmp_path))
    if INTERACTIONS[name].counts:
        with pytest.raises(ExperimentError, match=r"is not movielens-1m.*\(3, 2, 2\)"):
            load.__wrapped__(name)
        monkeypatch.setitem(INTERACTIONS, name, INTERACTIONS[name]._replace(counts=(3, 2, 2)))
    log = load.__wrapped__(name)
    assert (log.users.tolist(), log.items.tolist()) == ([1, 1, 0], [1, 0, 0])
    assert (log.ratings.tolist(), log.times.tolist()) == ([5.0, 4.0, 3.0], [978300760.0, 978301968.0, 978302109.0])


@pytest.mark.parametrize("name", ["movielens-1m", "health-2023", "beauty-2023", "magazine-2023"])
def test_a_set_that_is_not_downloaded_says_where_to_get_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONEPASS_DATA", str(tmp_path))
    monkeypatch.setattr("onepass.lab.datasets.cache_folder", lambda: tmp_path)
    with pytest.raises(DataNotFound, match=r"https://.*, and put .* into the folder"):
        find(name).interactions()
