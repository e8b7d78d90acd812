"""With Ray's own Serve and Data: replicas that decide while their keeper is killed, data sets that are learned.

The replicas are made as on docs/cluster_serving.md.
"""

import json
from importlib.util import find_spec

import numpy as np
import pytest

import onepass as op
from counts import repetitions as often
from local_ray import local_ray
from onepass.cluster import fit
from onepass.cluster.serving import application
from onepass.log.replay import Fold
from onepass.log.sqlite import SqliteStore
from onepass.log.verification import verify
from onepass.service.settings import make_bandit, read_file
from patience import until
from reader_games import RULES, request

pytestmark = [
    pytest.mark.xdist_group("ray"),
    pytest.mark.filterwarnings(  # of Ray's own modules, which also leave files of logs open
        "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
    pytest.mark.skipif(
        find_spec("fastapi") is None or find_spec("pyarrow") is None, reason="ray[serve,data] is not installed"
    ),
]
WITHIN = 300.0  # seconds until an answer must be there, however loaded the machine is


@pytest.fixture(scope="module")
def ray():
    """One for all tests of this module."""
    with local_ray() as found:
        yield found


def test_replicas_decide_while_their_keeper_is_killed_and_nothing_is_lost(ray, tmp_path):
    from ray import serve

    rules, data, kills = tmp_path / "news.toml", tmp_path / "data", often(1, 20)
    rules.write_text(RULES)
    serve.start(proxy_location="Disabled")  # asked by its handle: no port
    try:
        news = serve.run(
            application(rules, data, readers=2, poll_interval=0.05, ray="local"), name="news", route_prefix=None
        )
        ask = lambda act, body: getattr(news, act).remote(body).result(timeout_s=WITHIN)  # noqa: E731
        keeper, rounds, rng = ray.get_actor("onepass keeper of news"), 20 * (kills + 1), np.random.default_rng(0)
        strikes, answers = set(rng.choice(np.arange(5, rounds - 5), kills, replace=False).tolist()), {}
        for t in range(rounds):
            if t in strikes:
                ray.kill(keeper, no_restart=False)
            answers[f"{t}"] = ask("decide", request(t))
            value = float(json.loads(answers[f"{t}"])["arm"] == "b")
            ask("outcome", json.dumps({"id": f"{t}", "value": value}).encode())
        for t in range(0, rounds, 7):
            assert ask("decide", request(t)) == answers[f"{t}"]
        with pytest.raises(Exception, match="another request"):
            ask("decide", request(3, exclude=["a"]))
        new = lambda: f"{10**6 + int(rng.integers(1 << 40))}"  # noqa: E731
        until(lambda: json.loads(ask("decide", request(0, id=new())))["rounds"])
        ray.get(keeper.stop.remote(), timeout=WITHIN)
        ray.kill(keeper)
    finally:
        serve.shutdown()

    with SqliteStore(data / "news.sqlite") as store:
        logged = [record for record in store.read(kinds=["decision"]) if int(record.id) < 10**6]
        outcomes = [record.id for record in store.read(kinds=["outcome"])]
        assert sorted(record.id for record in logged) == sorted(answers)  # each once
        assert sorted(outcomes) == sorted(answers)
        for record in logged:
            assert json.loads(answers[record.id])["propensity"] == record.propensities[0]
        found = verify(Fold.resume(store, "news", first=True))
        assert found.ok
        assert (found.wrong, found.others) == (0, ())
        settings, _ = read_file(rules)
        fold = Fold(store, "news", make_bandit(settings))
        fold.advance()
        newest = max((data / "news.models").glob("*.model")).read_bytes()
        assert op.to_bytes(fold.bandit) == newest


@pytest.mark.parametrize("address", [None, "local"])
def test_a_data_set_of_ray_is_learned_as_files_are(ray, address):
    import ray.data

    rng = np.random.default_rng(0)
    x = rng.standard_normal((400, 4))
    lists = ray.data.from_items(
        [{"features": row.tolist(), "reward": float(row.sum()), "arm": "ab"[i % 2]} for i, row in enumerate(x)],
        override_num_blocks=5,
    )
    theta = np.linalg.solve(0.3 * np.eye(4) + x.T @ x, x.T @ x.sum(1))
    counts = []
    found = fit(lists, op.OFUL(dim=4, reg=0.3), ray=address, batch=33, progress=counts.append)
    np.testing.assert_allclose(found.model.parameter, theta, rtol=0.0, atol=1e-9)
    assert found.n_learned == counts[-1] == 400

    tensors = ray.data.from_numpy(x).rename_columns({"data": "features"})
    design = fit(tensors, op.Exact(dim=4, reg=0.3), ray=address)
    np.testing.assert_allclose(design.matrix(), 0.3 * np.eye(4) + x.T @ x, rtol=0.0, atol=1e-9)

    each = fit(lists, op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=4, reg=0.3)))), arm="arm", ray=address)
    own = x[::2]
    theta = np.linalg.solve(0.3 * np.eye(4) + own.T @ own, own.T @ own.sum(1))
    np.testing.assert_allclose(each.model.parameter_of("a"), theta, rtol=0.0, atol=1e-9)

    with pytest.raises(ValueError, match="no nobody"):
        fit(lists, op.OFUL(dim=4), reward="nobody", ray=address)
