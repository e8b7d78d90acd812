"""On Ray, started here: actors and workers that are killed change nothing; results are those of one process."""

import logging
import os
import secrets
import threading

import numpy as np
import polars as pl
import psutil
import pytest

import onepass as op
from counts import many as often
from onepass import evaluation as ev
from onepass.cluster import ShardedBandit, evaluate, fit
from sharded_driver import EVERY, batch, recipe, same

pytestmark = pytest.mark.xdist_group("ray")  # one Ray for all of them


@pytest.fixture(scope="module")
def ray(tmp_path_factory):
    """A Ray of this machine for the tests of this module, with a token of its own."""
    os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    os.environ["RAY_AUTH_MODE"] = "token"
    import ray

    ray.init(
        num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR,
        object_store_memory=100 * 1024**2,
    )  # fmt: skip
    yield ray
    ray.shutdown()
    del os.environ["RAY_AUTH_TOKEN"], os.environ["RAY_AUTH_MODE"]


def test_actors_that_are_killed_while_they_learn_come_back(ray, tmp_path):
    kills = often(2, 33)
    rng, rounds = np.random.default_rng(1), 8 * kills
    bandit = ShardedBandit(recipe(), 2, ray="local", folder=tmp_path / "a", every=EVERY)
    strikes = set(rng.choice(np.arange(2, rounds), kills, replace=False).tolist())
    for seq in range(1, rounds + 1):
        if seq in strikes:
            ray.kill(bandit.crew.members[int(rng.integers(2))].shard)
        bandit.learn(*batch(seq), seq=seq)
    same(bandit, rounds)
    assert bandit.crew.recovered == kills
    users = rng.standard_normal((5, 4))
    one = recipe()
    for seq in range(1, rounds + 1):
        one.learn(*batch(seq))
    assert bandit.recommend(users, 3).arms == one.recommend(users, 3).arms
    bandit.close()


def test_fit_and_evaluate_on_ray_are_those_of_one_process(ray, tmp_path):
    rng = np.random.default_rng(0)
    for part in range(5):
        x = rng.standard_normal((50, 4))
        pl.DataFrame({"features": x.tolist(), "reward": x.sum(1)}).write_parquet(tmp_path / f"{part}.parquet")
    one, two = (fit(tmp_path, op.OFUL(dim=4, reg=0.3), ray=address) for address in (None, "local"))
    np.testing.assert_allclose(one.parameter, two.parameter, rtol=0.0, atol=1e-9)
    assert one.rounds == two.rounds == 250
    log = ev.Log(arms=rng.integers(0, 2, 400), rewards=rng.random(400), propensities=np.full(400, 0.5))
    parts, policies = list(log.blocks(130)), {"one": np.array([0.3, 0.7])}
    here, there = (evaluate(parts, policies, ray=address)["one"].to_dict() for address in (None, "local"))
    assert here == there


def worker_processes() -> list[psutil.Process]:
    """Ray's processes that are at work on a task of this process's Ray."""
    found = psutil.Process().children(recursive=True)
    return [one for one in found if one.is_running() and "ray::" in " ".join(one.cmdline()[:1])]


def test_workers_that_are_killed_while_they_learn_are_replaced(ray, tmp_path):
    kills = often(1, 33)
    rng = np.random.default_rng(2)
    x = rng.standard_normal((4 * 2_000, 4))
    for part in range(4):
        own = x[2_000 * part : 2_000 * part + 2_000]
        pl.DataFrame({"features": own.tolist(), "reward": own.sum(1)}).write_parquet(tmp_path / f"{part}.parquet")
    done, struck = threading.Event(), []

    def strike():
        while not done.is_set() and len(struck) < kills:
            for process in worker_processes()[:1]:
                try:
                    if "alone" in process.cmdline()[0]:
                        process.kill()
                        struck.append(process.pid)
                except psutil.NoSuchProcess:
                    continue

    while len(struck) < kills:
        done.clear()
        thread = threading.Thread(target=strike)
        thread.start()
        found = fit(tmp_path, op.OFUL(dim=4, reg=0.3), ray="local", batch=10)
        done.set()
        thread.join()
        theta = np.linalg.solve(0.3 * np.eye(4) + x.T @ x, x.T @ x.sum(1))
        np.testing.assert_allclose(found.parameter, theta, rtol=0.0, atol=1e-9)
        assert found.rounds == len(x)
