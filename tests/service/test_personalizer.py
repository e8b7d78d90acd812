"""Both of Microsoft's client wheels, unchanged, against a service in a process of its own."""

import io
import itertools
import re
from datetime import UTC, datetime, timedelta

import pytest
from azure.ai.personalizer import PersonalizerAdministrationClient, PersonalizerClient
from azure.cognitiveservices.personalizer import PersonalizerClient as FirstClient
from azure.cognitiveservices.personalizer.models import ErrorResponseException, RankableAction, RankRequest
from azure.core.credentials import AzureKeyCredential
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from msrest.authentication import CognitiveServicesCredentials

from counts import LONG
from onepass.log.model_lineage import read_lineage
from onepass.log.replay import Fold
from onepass.log.sqlite import SqliteStore
from onepass.log.verification import verify
from onepass.service.personalizer.evaluations import TRIED
from patience import until
from service_process import RunningService

LOOP = """
name = "shop"
[model]
recipe = "InteractionBandit"
arguments = {context = {kind = "Records", size = 16, standardize = true},
             item = {kind = "Records", size = 16, standardize = true}}
[reward]
wait = 0.3
range = [-1.0, 1.0]
[operation]
checkpoint = 0.3
publish = 0.0
"""
CONTEXT = [{"hour": 9, "_secret": "x"}, {"device": {"os": "iOS", "ram": 8}}, {"likes": ["sport", "food"]}]
ACTIONS = [{"id": f"a{j}", "features": [{"topic": "sport" if j % 2 else "news"}, {"n": {"len": j}}]} for j in range(4)]
ODD = "e/1 ü%2F"  # an id with a slash, a blank, a letter beyond ASCII, and what looks like an escape


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A service whose log, at the end, is the truth about all that these tests did."""
    folder = tmp_path_factory.mktemp("personalizer")
    (folder / "shop.toml").write_text(LOOP.replace("\n             item", " item"))
    service = RunningService(folder / "data", folder / "shop.toml")
    yield service
    service.ready("shop")
    assert service.stop() == 0
    with SqliteStore(folder / "data" / "shop.sqlite") as store:
        for line in read_lineage(store, "shop").each:  # those before the log was deleted are gone
            found = verify(Fold.resume(store, "shop", first=True, line=line))
            assert (found.ok, found.equal, found.others) == (True, found.decisions, ()), f"model {line}"
        assert [*store.check()] == []


@pytest.fixture
def endpoint(served):
    return str(served.client.base_url).rstrip("/")


@pytest.fixture
def first(endpoint):
    return FirstClient(endpoint, CognitiveServicesCredentials("any"))


@pytest.fixture
def client(endpoint):
    with PersonalizerClient(f"{endpoint}/shop", AzureKeyCredential("any")) as found:
        yield found


@pytest.fixture
def admin(endpoint):
    with PersonalizerAdministrationClient(endpoint, AzureKeyCredential("shop")) as found:
        yield found


def log(served, id):
    return served.log(id, "shop")


def in_time(served, name, act):
    return served.in_time(name, act, "shop")


def rank_of_first(first, **fields):
    actions = [RankableAction(id=one["id"], features=one["features"]) for one in ACTIONS]
    return first.rank(RankRequest(**{"actions": actions, "context_features": CONTEXT, **fields}))


def test_the_first_client_ranks_rewards_and_activates(served, first):
    def act(id):
        found = rank_of_first(first, event_id=id, excluded_actions=["a0", "a2"], defer_activation=True)
        assert first.events.activate(id) is None
        assert first.events.reward(id, -0.5) is None
        assert found.event_id == id
        assert [one.id for one in found.ranking if one.probability == 0.0] == ["a0", "a2"]
        assert found.ranking[2].id == "a2"
        assert found.ranking[0].id == found.reward_action_id
        assert abs(sum(one.probability for one in found.ranking) - 1.0) < 1e-9

    id = in_time(served, ODD, act)
    served.ready("shop")
    records = log(served, id)
    assert [one["kind"] for one in records] == ["decision", "activation", "outcome", "join"]
    assert records[-1]["rewards"] == [-0.5]
    assert records[0]["contexts"]["context"] == {
        "hour": 9, "device": {"os": "iOS", "ram": 8}, "likes": ["sport", "food"],
    }  # fmt: skip


def test_the_same_event_gets_the_same_answer_and_another_request_of_its_id_none(first):
    found = rank_of_first(first, event_id="twice")
    assert rank_of_first(first, event_id="twice").as_dict() == found.as_dict()
    with pytest.raises(ErrorResponseException) as error:
        rank_of_first(first, event_id="twice", excluded_actions=["a1"])
    assert error.value.error.error.code == "InvalidRankRequest"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"actions": []}, "action"),
        ({"actions": [RankableAction(id="a", features=[{"x": [[1]]}])]}, "x"),
        ({"excluded_actions": ["a0", "a1", "a2", "a3"]}, "excluded"),
        ({"context_features": [{"x": "a"}, {"x": 1}]}, "different kinds"),
    ],
)
def test_a_rank_that_does_not_fit_is_refused_by_its_code(first, fields, says):
    with pytest.raises(ErrorResponseException, match=says) as error:
        rank_of_first(first, **fields)
    assert error.value.response.status_code == 400
    assert error.value.response.headers["x-ms-error-code"] == "InvalidRankRequest"
    assert error.value.error.error.code == "InvalidRankRequest"


def rank_body(**fields):
    return {"contextFeatures": CONTEXT, "actions": ACTIONS, **fields}


def test_a_call_that_is_sent_again_with_its_request_id_counts_once(served, client):
    again = {"headers": {"x-ms-client-request-id": "one"}}
    found = client.rank(rank_body(), **again)
    assert client.rank(rank_body(), **again) == found
    assert client.rank(rank_body(excludedActions=["a0"]), **again)["eventId"] != found["eventId"]

    def act(id):
        client.rank(rank_body(eventId=id))
        for _ in range(2):
            client.reward(id, {"value": 0.25}, **again)
        assert client.reward(id, {"value": 0.75}, headers={"x-ms-client-request-id": "two"}) is None

    id = in_time(served, "again", act)
    served.ready("shop")
    kinds = [one["kind"] for one in log(served, id)]
    assert kinds.count("decision") == 1
    assert kinds.count("outcome") == 2
    assert log(served, id)[-1]["rewards"] == [0.25]
    assert len(log(served, found["eventId"])) == 2  # the decision and its join


def test_the_later_client_activates_and_is_told_what_it_did_wrong(served, client):
    found = client.rank(rank_body(deferActivation=True, eventId="lapses"))
    assert {one["id"] for one in found["ranking"]} == {"a0", "a1", "a2", "a3"}
    with pytest.raises(HttpResponseError) as error:
        client.activate("nobody")
    assert (error.value.status_code, error.value.error.code) == (400, "InvalidEventIdToActivate")
    with pytest.raises(HttpResponseError) as error:
        client.reward("lapses", {"value": 2.0})
    assert (error.value.status_code, error.value.error.code) == (400, "InvalidRewardRequest")
    served.ready("shop")
    assert [one["kind"] for one in log(served, "lapses")] == ["decision"]
    assert client.activate("lapses") is None


def slots_body(**fields):
    slots = [{"id": "top", "baselineAction": "a1", "features": [{"size": "large"}]},
             {"id": "side", "baselineAction": "a0", "excludedActions": ["a3"]},
             {"id": "end", "baselineAction": "a2"}]  # fmt: skip
    return {**rank_body(), "slots": slots, **fields}


def test_slots_are_filled_one_after_the_other_and_rewarded_by_their_names(served, client):
    def act(id):
        found = client.rank_multi_slot(slots_body(eventId=id, deferActivation=True))
        assert client.activate_multi_slot(id) is None
        assert client.reward_multi_slot(id, {"reward": [{"slotId": "end", "value": 1.0}]}) is None
        assert client.rank_multi_slot(slots_body(eventId=id, deferActivation=True)) == found
        taken = [one["rewardActionId"] for one in found["slots"]]
        assert [one["id"] for one in found["slots"]] == ["top", "side", "end"]
        assert len(set(taken)) == 3
        assert taken[1] != "a3"

    id = served.in_time("m/1", act, "shop", parts=("", " slot 2", " slot 3"))
    served.ready("shop")
    rewards = [log(served, id)[-1]["rewards"] for id in (id, f"{id} slot 2", f"{id} slot 3")]
    assert rewards == [[0.0], [0.0], [1.0]]
    assert log(served, id)[0]["contexts"]["context"]["_slot"] == {"size": "large", "id": "top"}


def test_a_slot_leaves_the_actions_that_later_slots_need(client):
    """The last slot may show one action alone: none before it takes that, and no slot stays empty."""
    slots = [{"id": "top", "baselineAction": "a0"}, {"id": "side", "baselineAction": "a1"},
             {"id": "end", "baselineAction": "a2", "excludedActions": ["a0", "a1", "a3"]}]  # fmt: skip
    for _ in range(12):
        found = [one["rewardActionId"] for one in client.rank_multi_slot(slots_body(slots=slots))["slots"]]
        assert found[2] == "a2"
        assert len(set(found)) == 3


def test_slots_that_do_not_fit_are_refused(client):
    for fields in (
        {"slots": []},
        {"slots": [{"id": "top", "baselineAction": "nobody"}]},
        {"slots": [{"id": "top", "baselineAction": "a0", "excludedActions": ["a0"]}]},
    ):
        with pytest.raises(HttpResponseError) as error:
            client.rank_multi_slot(slots_body(**fields))
        assert (error.value.status_code, error.value.error.code) == (400, "InvalidRankRequest")
    with pytest.raises(ResourceNotFoundError):
        client.reward_multi_slot("nobody", {"reward": [{"slotId": "top", "value": 1.0}]})
    with pytest.raises(ResourceNotFoundError):
        client.activate_multi_slot("nobody")


def test_the_configuration_is_what_the_loop_does_and_can_be_changed(served, admin):
    was = admin.get_service_configuration()
    assert was["rewardWaitTime"] == "PT0.3S"
    assert was["learningMode"] == "Online"
    assert admin.update_service_configuration(was) == was
    changed = admin.update_service_configuration({**was, "rewardAggregation": "sum", "defaultReward": -0.5})
    assert (changed["rewardAggregation"], changed["defaultReward"]) == ("sum", -0.5)
    assert changed["lastConfigurationEditDate"] > was["lastConfigurationEditDate"]
    assert served.client.get("/v1/shop").json()["settings"]["reward"]["aggregation"] == "sum"
    for wrong, code in (
        ({"logRetentionDays": 90}, "InvalidLogRetentionDays"),
        ({"rewardWaitTime": "soon"}, "InvalidServiceConfiguration"),
        ({"learningMode": "Offline"}, "InvalidServiceConfiguration"),
        ({"defaultReward": 7.0}, "InvalidServiceConfiguration"),
        ({"isAutoOptimizationEnabled": True}, "InvalidServiceConfiguration"),
    ):
        with pytest.raises(HttpResponseError) as error:
            admin.update_service_configuration({**was, **wrong})
        assert (error.value.status_code, error.value.error.code) == (400, code)
    patched = served.client.patch("/personalizer/v1.0/configurations/service", json=was)
    assert (patched.status_code, patched.json()["rewardAggregation"]) == (200, "earliest")


def test_an_apprentice_shows_the_first_action_and_says_how_often_it_agrees(served, admin, client):
    was = admin.get_service_configuration()
    admin.update_service_configuration({**was, "learningMode": "Apprentice"})
    try:
        asked = []

        def act(id):
            found = client.rank(rank_body(eventId=id))
            client.reward(id, {"value": 0.5})
            assert (found["rewardActionId"], found["ranking"][0]["probability"]) == ("a0", 1.0)
            asked.append(id)

        for number in range(3):
            in_time(served, f"shown {number}", act)
        slots = client.rank_multi_slot(slots_body())["slots"]
        assert [one["rewardActionId"] for one in slots] == ["a1", "a0", "a2"]
        served.ready("shop")
        metrics = admin.get_service_configuration()["latestApprenticeModeMetrics"]
        assert metrics["numberOfEvents"] == len(asked) + 3
        assert 0 <= metrics["numberOfImitatedEvents"] <= len(asked) + 3
        joins = [one for id in asked for one in log(served, id) if one["kind"] == "join"]  # a late outcome comes after
        assert len(joins) == len(asked)
        assert metrics["sumOfRewards"] == sum(one["rewards"][0] for one in joins) >= 1.5
    finally:
        assert admin.update_service_configuration(was)["learningMode"] == "Online"


def test_a_rank_says_what_counted_where_it_is_asked_to(served, admin, client):
    was = admin.get_service_configuration()
    played(served, client, 1)
    admin.update_service_configuration({**was, "isInferenceExplainabilityEnabled": True})
    try:
        said = client.rank(rank_body())["inferenceExplanation"]
        assert sorted(one["id"] for one in said) == ["a0", "a1", "a2", "a3"]
        names = {feature["name"] for one in said for feature in one["features"]}
        assert names & {"device.os=iOS * topic=news", "device.os=iOS * topic=sport"}  # of the one that was learned
    finally:
        admin.update_service_configuration(was)


NUMBERS = itertools.count()


def played(served, client, count):
    """Decisions with rewards in time, joined and learned. No reward is the default one, 0, of which nothing is learned
    whoever draws which action."""

    def act(id):
        found = client.rank(rank_body(eventId=id))
        client.reward(id, {"value": 1.0 if found["rewardActionId"] in ("a1", "a3") else -0.5})

    before = rounds_of(served)
    for _ in range(count):
        in_time(served, f"played {next(NUMBERS)}", act)
    served.ready("shop")
    until(lambda: rounds_of(served) >= before + count)


def rounds_of(served):
    """Rewards that the model has learned by which decisions are made."""
    return float(
        re.search(r'^onepass_learned_rewards\{loop="shop"\} (\S+)$', served.client.get("/metrics").text, re.M)[1]
    )


def span():
    now = datetime.now(UTC)
    return (now - timedelta(hours=1), now + timedelta(hours=1))


def test_an_evaluation_weighs_policies_on_the_log(served, admin, client):
    played(served, client, 12)
    begin, end = span()
    asked = {"name": "june", "startTime": begin.isoformat(), "endTime": end.isoformat(),
             "enablePolicyOptimization": LONG,
             "policies": [{"name": "careful", "arguments": "--cb_explore_adf --epsilon 0.2 -q ::"}]}  # fmt: skip
    assert admin.create_evaluation("ev/1", asked) is None
    look = {"start_time": begin, "end_time": end}
    found = until(lambda: (one := admin.get_evaluation("ev/1", **look))["status"] != "Running" and one)
    assert found["status"] == "Succeeded", found.get("description")
    policies = {one["name"]: one for one in found["content"]["value"]}
    tried = TRIED.keys() if LONG else set()  # each is compiled
    assert policies.keys() == {"Online", "Baseline", "Random", "careful", *tried}
    for one in policies.values():
        lower, upper = one["summary"]["confidenceInterval"]
        assert -1.0 <= lower <= upper <= 1.0
        for point in one["timeseries"]["data"]:
            assert -1.0 <= point["confidenceInterval"][0] <= point["confidenceInterval"][1] <= 1.0
    assert policies["Online"]["timeseries"]["data"]
    assert found["optimalPolicy"] in policies
    rolling = admin.get_evaluation("ev/1", interval_in_minutes=60, window="Rolling", **look)
    assert rolling["content"]["intervalInMinutes"] == 60
    assert [one["id"] for one in admin.list_evaluations()] == ["ev/1"]
    assert [*admin.list_evaluations(skip=1)] == []
    assert admin.delete_evaluation("ev/1") is None
    with pytest.raises(ResourceNotFoundError):
        admin.get_evaluation("ev/1", **look)


def test_evaluations_that_cannot_be_are_refused(served, admin, client):
    played(served, client, 1)
    begin, end = (one.isoformat() for one in span())
    good = {"name": "x", "startTime": begin, "endTime": end}
    policy = {"name": "p", "arguments": "--cb_explore_adf --epsilon 0.1"}
    for wrong, code in (
        ({"policies": [policy, policy]}, "DuplicateCustomPolicyNames"),
        ({"policies": [{**policy, "name": f"{j}"} for j in range(11)]}, "MaximumEvaluationCustomPoliciesExceeded"),
        ({"policies": [{**policy, "arguments": "--cover 3"}]}, "InvalidPolicyContract"),
        ({"startTime": "2001-01-01", "endTime": "2001-01-02T00:00:00Z"}, "NoLogsExistInDateRange"),
        ({"startTime": end, "endTime": begin}, "InvalidEvaluationContract"),
    ):
        with pytest.raises(HttpResponseError) as error:
            admin.create_evaluation("bad", {**good, **wrong})
        assert (error.value.status_code, error.value.error.code) == (400, code)


def test_evaluations_of_v1_have_its_form(served, client):
    played(served, client, 2)
    begin, end = (one.isoformat() for one in span())
    root = "/personalizer/v1.0/evaluations"
    made = served.client.post(root, json={"name": "first", "startTime": begin, "endTime": end, "policies": []})
    assert made.status_code == 201
    id = made.json()["id"]
    assert made.headers["location"].endswith(f"{root}/{id}")
    found = until(lambda: (one := served.client.get(f"{root}/{id}").json())["status"] != "pending" and one)
    assert found["status"] == "completed"
    assert {one["name"] for one in found["policyResults"]} == {"Online", "Baseline", "Random"}
    total = found["policyResults"][0]["totalSummary"]
    assert total["ipsEstimatorDenominator"] == total["snipsEstimatorDenominator"] > 0
    assert [one["id"] for one in served.client.get(root).json()] == [id]
    assert served.client.delete(f"{root}/{id}").status_code == 204
    assert served.client.get(f"{root}/{id}").status_code == 404


def test_features_are_ranked_by_what_they_count(served, admin, client):
    played(served, client, 4)
    begin, end = (one.isoformat() for one in span())
    assert admin.create_feature_importance("f/1", {"name": "june", "startTime": begin, "endTime": end}) is None
    found = until(lambda: (one := admin.get_feature_importance("f/1"))["status"] != "Running" and one)
    assert found["status"] == "Succeeded", found.get("description")
    scores = [one["score"] for one in found["featureScores"]]
    assert scores == sorted(scores, reverse=True)
    assert abs(sum(scores) - 100.0) < 1e-6
    assert ("device", "os=iOS") in {(one["namespace"], one["featureName"]) for one in found["featureScores"]}
    assert [one["id"] for one in admin.list_feature_importances()] == ["f/1"]
    assert admin.delete_feature_importance("f/1") is None
    with pytest.raises(ResourceNotFoundError):
        admin.get_feature_importance("f/1")


def test_the_log_and_the_model_say_since_when_they_are(served, admin, client):
    client.rank(rank_body())
    dates = admin.get_log_properties()["dateRange"]
    assert dates["from"] <= dates["to"]
    properties = admin.get_model_properties()
    assert properties["creationTime"] <= properties["lastModifiedTime"]
    assert len(b"".join(admin.export_model())) > 1000


def test_logs_are_deleted_and_the_model_goes_on(served, admin, client):
    played(served, client, 2)
    rounds = served.client.post("/v1/shop/decide", json={"arms": ["a", "b"]}).json()["rounds"]
    served.ready("shop")
    before = served.client.get("/v1/shop/log", params={"limit": 100_000}).text.count('"kind":"decision"')
    assert before >= 3
    assert admin.delete_logs() is None
    assert served.client.get("/v1/shop/log", params={"limit": 100_000}).text.count('"kind":"decision"') == 0
    with pytest.raises(ResourceNotFoundError) as error:
        admin.get_log_properties()
    assert error.value.error.code == "LogsPropertiesNotFound"
    found = served.client.post("/v1/shop/decide", json={"arms": ["a", "b"]}).json()
    assert found["rounds"] >= rounds
    assert admin.get_log_properties()["dateRange"]["from"] == admin.get_log_properties()["dateRange"]["to"]


def test_a_policy_is_learned_from_the_log_and_then_followed(served, admin, client):
    played(served, client, 2)
    was = admin.get_policy()
    assert was["name"] == "onepass"
    new = {"name": "app1", "arguments": "--cb_explore_adf --epsilon 0.4 --power_t 0 -l 0.001 --cb_type mtr -q ::"}
    assert admin.update_policy(new) == admin.get_policy() == new
    assert admin.get_service_configuration()["explorationPercentage"] == 0.4
    until(lambda: decided_by(served, client) == "Greedy(uniform_share=0.4)")
    with pytest.raises(HttpResponseError, match="--cover is refused") as error:
        admin.update_policy({"name": "app2", "arguments": "--cb_explore_adf --cover 3"})
    assert error.value.error.code == "InvalidPolicyContract"
    assert admin.get_policy() == new
    was_configured = admin.get_service_configuration()
    admin.update_service_configuration({**was_configured, "explorationPercentage": 0.3})
    until(lambda: decided_by(served, client) == "Greedy(uniform_share=0.3)")
    assert admin.reset_policy() == was
    until(lambda: decided_by(served, client).startswith("OptimisticGap"))


def decided_by(served, client):
    """The rule of a decision."""
    return log(served, client.rank(rank_body())["eventId"])[0]["rule"]


def test_a_policy_of_an_evaluation_can_be_applied(served, admin, client):
    played(served, client, 2)
    begin, end = span()
    asked = {"name": "x", "startTime": begin.isoformat(), "endTime": end.isoformat(),
             "policies": [{"name": "careful", "arguments": "--cb_explore_adf --epsilon 0.4"}]}  # fmt: skip
    admin.create_evaluation("applied", asked)
    look = {"start_time": begin, "end_time": end}
    assert until(lambda: admin.get_evaluation("applied", **look)["status"] != "Running")
    for name in ("nobody", "Random"):
        with pytest.raises(HttpResponseError):
            admin.apply_from_evaluation({"evaluationId": "applied", "policyName": name})
    assert admin.apply_from_evaluation({"evaluationId": "applied", "policyName": "careful"}) is None
    assert admin.get_policy()["name"] == "careful"
    until(lambda: decided_by(served, client) == "Greedy(uniform_share=0.4)")
    admin.reset_policy()
    until(lambda: decided_by(served, client).startswith("OptimisticGap"))
    admin.delete_evaluation("applied")


def test_a_model_can_be_taken_out_begun_anew_and_put_back(served, admin, client):
    played(served, client, 3)
    rounds = served.client.post("/v1/shop/decide", json={"arms": ["a", "b"]}).json()["rounds"]
    data = b"".join(admin.export_model(signed=True))
    assert admin.reset_model() is None
    fresh = served.client.post("/v1/shop/decide", json={"arms": ["a", "b"]}).json()["rounds"]
    assert fresh < rounds
    assert admin.import_model(io.BytesIO(data)) is None
    back = served.client.post("/v1/shop/decide", json={"arms": ["a", "b"]}).json()["rounds"]
    assert back >= rounds
    for wrong in (b"", b"no model", data[: len(data) // 2], data[:-9] + b"x" + data[-8:]):
        with pytest.raises(HttpResponseError) as error:
            admin.import_model(io.BytesIO(wrong))
        assert error.value.error.code == "InvalidModelImportFormat"


def test_other_paths_methods_versions_and_origins_are_refused_in_personalizers_form(served):
    def refused(answer):
        assert answer.headers["x-ms-error-code"] == answer.json()["error"]["code"]
        return answer.status_code, answer.json()["error"]["code"]

    ask = served.client.request
    assert refused(ask("GET", "/personalizer/v1.0/rank")) == (405, "BadRequest")
    assert refused(ask("POST", "/personalizer/v1.0/nothing")) == (404, "ResourceNotFound")
    assert refused(ask("POST", "/personalizer/rank", json={})) == (400, "BadRequest")
    assert refused(ask("POST", "/other/personalizer/v1.0/rank", json={})) == (404, "ResourceNotFound")
    assert refused(ask("POST", "/personalizer/v1.0/rank", content="{}")) == (415, "BadRequest")
    assert refused(ask("POST", "/personalizer/v1.0/rank", json={}, headers={"origin": "http://evil.example"})) == (
        403, "InvalidApiAccess",
    )  # fmt: skip
    half = {"content": "{", "headers": {"content-type": "application/json"}}
    assert refused(ask("POST", "/personalizer/v1.0/rank", **half)) == (400, "InvalidRankRequest")
    assert refused(ask("POST", "/personalizer/v1.0/events/%FF/activate")) == (400, "BadRequest")
    assert refused(ask("POST", "/personalizer/v1.0/events/a%00b/reward", json={"value": 1.0}))[0] == 400
    assert ask("POST", "/personalizer/v1.1-preview.3/multislot/rank", json=slots_body()).status_code == 201
    assert ask("GET", "/personalizer/v1.0/status").json()["apiStatus"] == "Valid"
