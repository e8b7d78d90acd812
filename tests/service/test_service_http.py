"""The native API over HTTP, against a service in a process of its own."""

import json
import time
from itertools import count
from pathlib import Path

import pytest

import onepass as op
from onepass.log.model_lineage import read_lineage
from onepass.log.replay import Fold
from onepass.log.sqlite import SqliteStore
from onepass.log.verification import verify
from onepass.service.server import serve
from onepass.service.workers import SETTLE
from patience import until
from service_process import RunningService, write_settings

ARMS = ["a", "b", "c"]
ASKED = {"context": {"hour": 0.5, "new": 1.0}, "arms": ARMS}


@pytest.fixture(scope="module", params=[0, 2], ids=["one process", "two workers"])
def served(request, tmp_path_factory):
    """A service whose log, at the end, is the truth about all that these tests did."""
    folder = tmp_path_factory.mktemp("service")
    service = RunningService(folder / "data", write_settings(folder), options=("--workers", f"{request.param}"))
    yield service
    service.ready()
    assert service.stop() == 0
    with SqliteStore(folder / "data" / "news.sqlite") as store:
        count = 0
        for line in read_lineage(store, "news").each:
            found = verify(Fold.resume(store, "news", first=True, line=line))
            assert (found.ok, found.undrawn, found.others) == (True, 0, ())
            assert found.equal == found.decisions + found.canaries
            count += found.decisions
        assert count == sum(1 for _ in store.read(kinds=["decision"]))
        twin = Fold.resume(store, "news", first=True)
        twin.advance()
        saved = (file.read_bytes() for file in (folder / "data" / "news.models").glob("*.model"))
        assert twin.bandit.n_learned == 0 or op.to_bytes(twin.bandit) in saved
        assert [*store.check()] == []


@pytest.fixture
def client(served):
    return served.client


def decided(client, **fields):
    answer = client.post("/v1/news/decide", json={**ASKED, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(answer):
    return answer.status_code, answer.json()["error"]["code"]


def test_an_answer_names_an_arm_its_probability_and_all_others(client):
    found = decided(client)
    assert found["arm"] in ARMS
    assert sorted(one["arm"] for one in found["ranking"]) == ARMS
    assert found["ranking"][0] == {**found["ranking"][0], "arm": found["arm"], "probability": found["propensity"]}
    assert abs(sum(one["probability"] for one in found["ranking"]) - 1.0) < 1e-9


def test_an_answer_is_in_the_log_when_it_comes_and_its_reward_is_learned(served, client):
    def act(id):
        found = decided(client, id=id, subject="user 7")
        record = served.log(id)[0]
        assert (record["propensities"], record["subject"]) == ([found["propensity"]], "user 7")
        said = client.post("/v1/news/outcome", json={"id": id, "value": 1.0, "key": "click"})
        assert (said.status_code, said.json()) == (200, {"accepted": 1, "new": 1})

    id = served.in_time("e1", act)
    served.ready()
    assert [one["kind"] for one in served.log(id)] == ["decision", "outcome", "join"]
    assert served.log(id)[-1]["rewards"] == [1.0]


def test_the_same_request_gets_the_same_answer_and_another_one_of_that_id_none(served, client):
    first = decided(client, id="e2")
    assert decided(client, id="e2") == first
    assert refused(client.post("/v1/news/decide", json={**ASKED, "id": "e2", "slots": 2})) == (409, "EventConflict")
    assert [one["kind"] for one in served.log("e2")].count("decision") == 1


def test_an_outcome_that_is_sent_again_counts_once(served, client):
    def act(id):
        decided(client, id=id)
        batch = [
            {"id": id, "value": 0.5, "key": "k"},
            {"id": id, "value": 0.5, "key": "k"},
            {"id": id, "value": 0.25},
        ]
        assert client.post("/v1/news/outcome", json=batch).json() == {"accepted": 3, "new": 2}
        assert client.post("/v1/news/outcome", json=batch[0]).json() == {"accepted": 1, "new": 0}

    id = served.in_time("e3", act)
    served.ready()
    assert served.log(id)[-1]["count"] == 2


def test_a_deferred_decision_is_learned_once_it_is_activated_and_else_never(served, client):
    def act(id):
        decided(client, id=id, defer=True)
        for _ in range(2):
            assert client.post("/v1/news/activate", json={"id": id}).status_code == 204

    decided(client, id="e4", defer=True)
    id = served.in_time("e5", act)
    assert refused(client.post("/v1/news/activate", json={"id": "nobody"})) == (404, "EventNotFound")
    served.ready()
    assert [one["kind"] for one in served.log("e4")] == ["decision"]
    assert [one["kind"] for one in served.log(id)] == ["decision", "activation", "join"]


def test_slots_are_rewarded_one_by_one_and_excluded_arms_are_not_drawn(served, client):
    def act(id):
        found = decided(client, id=id, slots=2, exclude=["b"])
        assert sorted(found["arms"]) == ["a", "c"]
        assert [one["probability"] for one in found["ranking"] if one["arm"] == "b"] == [0.0]
        client.post("/v1/news/outcome", json={"id": id, "value": 0.75, "slot": 1})

    for number in range(9):
        act(f"e6 {number}")
    id = served.in_time("e6", act)
    served.ready()
    assert served.log(id)[-1]["rewards"] == [0.0, 0.75]


BAD = {
    "no JSON": "{",
    "NaN": '{"context": [NaN, 0, 0], "arms": ["a"]}',
    "infinite": '{"context": [1e999, 0, 0], "arms": ["a"]}',
    "too large for a design": '{"context": [1e300, 0, 0], "arms": ["a"]}',
    "too few numbers": '{"context": [1.0], "arms": ["a"]}',
    "an unknown number": '{"context": {"minute": 1.0}, "arms": ["a"]}',
    "an unknown field": '{"context": [0, 0, 0], "arms": ["a"], "armz": []}',
    "no arms": '{"context": [0, 0, 0], "arms": []}',
    "an arm twice": '{"context": [0, 0, 0], "arms": ["a", "a"]}',
    "an empty name": '{"context": [0, 0, 0], "arms": [""]}',
    "a long name": json.dumps({"context": [0, 0, 0], "arms": ["a" * 257]}),
    "features that the settings do not have": '{"context": [0, 0, 0], "arms": [{"id": "a", "features": [1.0]}]}',
    "an excluded stranger": '{"context": [0, 0, 0], "arms": ["a"], "exclude": ["b"]}',
    "all excluded": '{"context": [0, 0, 0], "arms": ["a"], "exclude": ["a"]}',
    "more slots than arms": '{"context": [0, 0, 0], "arms": ["a"], "slots": 2}',
    "an id with NUL": '{"context": [0, 0, 0], "arms": ["a"], "id": "a\\u0000"}',
    "a lone surrogate": '{"context": [0, 0, 0], "arms": ["\\ud800"]}',
    "deep nesting": '{"context": ' + "[" * 9_000 + "]" * 9_000 + "}",
}


@pytest.mark.parametrize("body", BAD.values(), ids=BAD.keys())
def test_what_cannot_be_decided_is_refused_in_one_shape(client, body):
    answer = client.post("/v1/news/decide", content=body, headers={"content-type": "application/json"})
    assert refused(answer) == (400, "BadArgument")
    assert answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "outcome", ['{"id": "x", "value": NaN}', '{"id": "x", "value": 1.5}', '{"id": "", "value": 1}', "[]",
                '{"id": "x", "value": 1, "slot": -1}', '{"id": "x"}', '{"id": "\\u0000", "value": 1}'],
)  # fmt: skip
def test_outcomes_out_of_range_are_refused_and_nothing_of_their_batch_is_stored(served, client, outcome):
    for body in (outcome, f'[{{"id": "batch", "value": 1.0}}, {outcome}]'):
        answer = client.post("/v1/news/outcome", content=body, headers={"content-type": "application/json"})
        assert refused(answer) == (400, "BadArgument")
    assert served.log("batch") == []


def test_other_paths_methods_types_and_hosts_are_refused_in_the_same_shape(client):
    assert refused(client.get("/v1/news/decide")) == (405, "MethodNotAllowed")
    assert refused(client.get("/v2")) == (404, "NotFound")
    assert refused(client.post("/v1/other/decide", json=ASKED)) == (404, "LoopNotFound")
    assert refused(client.post("/v1/news/decide", content="{}")) == (415, "UnsupportedMediaType")
    assert refused(client.get("/v1/news", headers={"host": "evil.example"})) == (421, "WrongHost")
    large = {**ASKED, "subject": "x" * 30_000}
    assert refused(client.post("/v1/news/decide", json=large)) == (413, "TooLarge")


def test_settings_can_be_asked_for_tried_and_changed_but_not_the_model(client):
    was = client.get("/v1/news").json()
    new = {**was["settings"], "limits": {"slots": 3}}
    tried = client.put("/v1/news", params={"dry_run": "true"}, json=new).json()
    assert (tried["changed"], tried["version"]) == (["limits"], was["version"])
    assert client.get("/v1/news").json() == was
    begin = time.monotonic()
    changed = client.put("/v1/news", json={**new, "limits": {**was["settings"]["limits"], "slots": 3}}).json()
    taken = time.monotonic() - begin
    assert changed["version"] == str(int(was["version"]) + 1)
    assert refused(client.post("/v1/news/decide", json={**ASKED, "arms": [*"abcd"], "slots": 4})) == (
        400,
        "BadArgument",
    )
    assert refused(client.put("/v1/news", json={**new, "exploring": 2.0})) == (400, "InvalidSettings")
    assert refused(client.put("/v1/news", json={**new, "features": {"context": 7}})) == (409, "SettingsFixed")
    # after so long a change is answered before all workers follow it
    assert decided(client)["settings"] == changed["version"] or taken >= SETTLE


def test_a_loop_is_steered_over_http_from_a_candidate_to_its_promotion_and_back(served, client):
    was = client.get("/v1/news").json()
    assert refused(client.post("/v1/news/promote", json={})) == (409, "NoCandidate")
    assert refused(client.delete("/v1/news/candidate")) == (409, "NoCandidate")
    for number in range(12):
        decided(client, id=f"steer {number}")
    served.ready()
    arguments = {**was["settings"]["model"]["arguments"], "reg": 2.0}
    new = {
        **was["settings"],
        "mode": "canary",
        "share": 0.5,
        "model": {**was["settings"]["model"], "arguments": arguments},
    }
    staged = client.put("/v1/news", json=new).json()
    assert (sorted(staged["changed"]), staged["settings"]["model"]) == (
        ["mode", "model", "share"],
        was["settings"]["model"],
    )
    assert staged["candidate"]["model"]["arguments"]["reg"] == 2.0
    until(lambda: client.get("/v1/news").json()["candidate"]["state"] == "waiting")
    asked, found = (f"steer both {number}" for number in count()), {}

    def both():
        """Decide, and return the record if both models took part: another worker may not have its copies yet."""
        found.update(decided(client, id=next(asked)))
        record = served.log(found["id"])[0]
        return record if "canary" in record else None

    record = until(both)
    assert record["canary"]["line"] == was["model_number"] + 1
    assert record["showing"][record["shown"][0]] == found["propensity"]
    promoted = client.post("/v1/news/promote", json={}).json()
    assert (promoted["model_number"], promoted["candidate"]) == (was["model_number"] + 1, None)
    assert promoted["settings"]["model"]["arguments"]["reg"] == 2.0
    models = client.get("/v1/news/models").json()
    assert [one["state"] for one in models["models"]][-2:] == ["retired", "serving"]
    before = next(one for one in models["checkpoints"] if one["model_number"] == was["model_number"])
    assert refused(client.post("/v1/news/rollback", json={"checkpoint": "x"})) == (404, "CheckpointNotFound")
    assert client.post("/v1/news/rollback", json={"checkpoint": before["name"]}).status_code == 200
    until(lambda: client.get("/v1/news").json()["model_number"] == was["model_number"] + 2)
    assert client.get("/v1/news").json()["settings"]["model"] == was["settings"]["model"]
    assert client.get("/readyz").status_code == 200


def test_an_evaluation_is_asked_for_listed_promoted_and_deleted(served, client):
    for number in range(30):
        decided(client, id=f"judged {number}")
    served.ready()
    model = client.get("/v1/news").json()["settings"]["model"]
    other = {**model, "arguments": {**model["arguments"], "reg": 3.0}}
    policies = [{"name": "even", "kind": "uniform"}, {"name": "other", "kind": "recipe", "model": other}]
    asked = client.post("/v1/news/evaluations", json={"id": "e", "policies": policies})
    assert (asked.status_code, asked.json()["id"]) == (201, "e")
    until(lambda: client.get("/v1/news/evaluations/e").json()["status"] == "done")
    found = client.get("/v1/news/evaluations/e").json()
    assert [one["name"] for one in found["policies"]] == ["even", "other"]
    assert all(one["verdict"] in ("ok", "wide", "refused") and one["sentence"] for one in found["policies"])
    assert found["rows"] >= 30
    assert client.get("/v1/news/evaluations").json()["evaluations"][0] == found
    assert client.post("/v1/news/evaluations", json={"id": "e", "policies": policies}).json() == found
    assert refused(client.post("/v1/news/evaluations", json={"id": "e"})) == (409, "EvaluationConflict")
    assert refused(client.post("/v1/news/promote", json={"evaluation": "e"})) == (409, "NotBetter")
    line = client.get("/v1/news").json()["model_number"]
    assert client.post("/v1/news/promote", json={"evaluation": "e", "anyway": True}).status_code == 200
    until(lambda: client.get("/v1/news").json()["model_number"] > line)
    assert client.get("/v1/news").json()["settings"]["model"] == other
    assert client.delete("/v1/news/evaluations/e").status_code == 204
    assert refused(client.get("/v1/news/evaluations/e")) == (404, "EvaluationNotFound")


def test_health_readiness_metrics_and_openapi(client):
    assert client.get("/healthz").json() == {"status": "alive"}
    assert client.get("/readyz").json() == {"status": "ready"}
    assert 'onepass_ready{loop="news"} 1.0' in client.get("/metrics").text
    document = client.get("/openapi.json").json()
    assert sorted(path for path in document["paths"] if "personalizer" not in path) == [
        "/healthz", "/metrics", "/openapi.json", "/readyz", "/v1",
        "/v1/{loop}", "/v1/{loop}/activate", "/v1/{loop}/candidate", "/v1/{loop}/decide", "/v1/{loop}/evaluations",
        "/v1/{loop}/evaluations/{id}", "/v1/{loop}/event", "/v1/{loop}/forget", "/v1/{loop}/log", "/v1/{loop}/models",
        "/v1/{loop}/outcome", "/v1/{loop}/overview", "/v1/{loop}/promote", "/v1/{loop}/resume", "/v1/{loop}/rollback",
    ]  # fmt: skip
    references = {part.split('"')[0] for part in json.dumps(document).split("#/components/schemas/")[1:]}
    assert references <= document["components"]["schemas"].keys()


def test_a_second_process_on_the_same_folder_is_refused(served, tmp_path):
    data = served.process.args[served.process.args.index("--data") + 1]
    with pytest.raises(ValueError, match="another process serves"):
        serve(Path(data), [write_settings(tmp_path)], port=0)


def test_the_log_is_paged_by_places(client):
    decided(client)
    first = client.get("/v1/news/log", params={"limit": 2}).text.splitlines()
    rest = client.get("/v1/news/log", params={"since": 2, "limit": 1}).text.splitlines()
    assert [json.loads(line)["seq"] for line in (*first, *rest)] == [1, 2, 3]
    assert refused(client.get("/v1/news/log", params={"since": "x"})) == (400, "BadArgument")
