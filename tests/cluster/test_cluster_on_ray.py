"""On Ray, started here: actors and workers that are killed change nothing; results are those of one process."""

import numpy as np
import polars as pl
import pytest

import onepass as op
from counts import repetitions as often
from experiments import Scripted, Staircase, Until
from local_ray import kill, local_ray
from onepass import evaluation as ev
from onepass.cluster import Replicas, ShardedBandit, evaluate, fit
from onepass.lab import Experiment, ExperimentError, Policy, run
from sharded_driver import EVERY, Mortal, assert_same, batch, recipe

pytestmark = pytest.mark.xdist_group("ray")  # one Ray for all of them


@pytest.fixture(scope="module")
def ray():
    """One for all tests of this module."""
    with local_ray() as found:
        yield found


def test_actors_that_are_killed_while_they_learn_come_back(ray, tmp_path):
    kills = often(1, 33)
    rng, rounds = np.random.default_rng(1), 8 * (kills + 1)
    bandit = ShardedBandit(recipe(), 2, ray="local", folder=tmp_path / "a", checkpoint_every=EVERY)
    strikes = set(rng.choice(np.arange(2, rounds), kills, replace=False).tolist())
    for seq in range(1, rounds + 1):
        if seq in strikes:
            kill(ray, bandit.supervisor.members[int(rng.integers(2))].shard)
        bandit.learn(*batch(seq), seq=seq)
    assert_same(bandit, rounds)
    assert bandit.supervisor.recovered == kills
    users = rng.standard_normal((5, 4))
    one = recipe()
    for seq in range(1, rounds + 1):
        one.learn(*batch(seq))
    assert bandit.recommend(users, 3).arms == one.recommend(users, 3).arms
    bandit.close()


def test_workers_of_a_stream_that_are_killed_while_they_learn_come_back(ray):
    kills, rng = often(1, 34), np.random.default_rng(3)
    rounds = 6 * (kills + 1)
    strikes = set(rng.choice(np.arange(1, rounds), kills, replace=False).tolist())
    x, reg = rng.standard_normal((rounds, 10, 4)), 0.3
    with Replicas(op.OFUL(dim=4, reg=reg), often(1, 3), merge_every=25, ray="local") as stream:
        for place, rows in enumerate(x):
            if place in strikes:
                kill(ray, rng.choice(list(stream.supervisor.members.values())).shard)
            stream.learn(rows, rows.sum(1))
        found = stream.merge()
    whole = np.vstack(x)
    theta = np.linalg.solve(reg * np.eye(4) + whole.T @ whole, whole.T @ whole.sum(1))
    np.testing.assert_allclose(found.model.parameter, theta, rtol=0.0, atol=1e-9)
    assert found.n_learned == len(whole)
    assert 0 < stream.supervisor.recovered <= kills  # two may fall between the same two answers


def test_fit_and_evaluate_on_ray_are_those_of_one_process(ray, tmp_path):
    rng = np.random.default_rng(0)
    for part in range(5):
        x = rng.standard_normal((50, 4))
        pl.DataFrame({"features": x.tolist(), "reward": x.sum(1)}).write_parquet(tmp_path / f"{part}.parquet")
    one, two = (fit(tmp_path, op.OFUL(dim=4, reg=0.3), ray=address) for address in (None, "local"))
    np.testing.assert_allclose(one.model.parameter, two.model.parameter, rtol=0.0, atol=1e-9)
    assert one.n_learned == two.n_learned == 250
    log = ev.Log(arms=rng.integers(0, 2, 400), rewards=rng.random(400), propensities=np.full(400, 0.5))
    parts, policies = list(log.blocks(130)), {"one": np.array([0.3, 0.7])}
    here, there = (evaluate(parts, policies, ray=address)["one"].to_dict() for address in (None, "local"))
    assert here == there


def test_an_experiment_on_ray_has_the_rows_of_one_process_and_goes_on_where_it_was(ray, tmp_path):
    study = Experiment("stairs", "", Staircase, (Policy("Up", Scripted, {"arm": 2}), Policy("Down", Scripted)), 100, 3)
    here = run(study, quiet=True)
    policies = (*study.policies, Policy("Until", Until, {"folder": str(tmp_path)}))
    with pytest.raises(ExperimentError, match="not yet"):
        run(study, policies=policies, ray="local", cache_folder=tmp_path / "kept", quiet=True)
    assert len(list((tmp_path / "kept").iterdir())) == 2  # of three seeds
    (tmp_path / "now").touch()
    whole = run(study, policies=policies, ray="local", cache_folder=tmp_path / "kept", quiet=True)
    both = [row for row in whole.rows if row["policy"] != "Until"]
    assert [without_seconds(row) for row in both] == [without_seconds(row) for row in here.rows]
    assert not (tmp_path / "kept").exists()


def without_seconds(row):
    return {name: value for name, value in row.items() if "second" not in name}


def test_workers_that_are_killed_while_they_learn_are_replaced(ray, tmp_path):
    kills, rng = often(1, 33), np.random.default_rng(2)
    tokens = tmp_path / "kills"
    tokens.mkdir()
    for token in range(kills):
        (tokens / str(token)).touch()
    x = rng.standard_normal((100 * (kills + 1), 4))
    for part, own in enumerate(np.split(x, 4)):
        pl.DataFrame({"features": own.tolist(), "reward": own.sum(1)}).write_parquet(tmp_path / f"{part}.parquet")
    found = fit(tmp_path, Mortal(op.OFUL(dim=4, reg=0.3), str(tokens)), ray="local", workers=1, batch=10)
    assert not list(tokens.iterdir())
    theta = np.linalg.solve(0.3 * np.eye(4) + x.T @ x, x.T @ x.sum(1))
    np.testing.assert_allclose(found.bandit.model.parameter, theta, rtol=0.0, atol=1e-9)
    assert found.bandit.n_learned == len(x)
