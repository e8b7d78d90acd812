"""What the OpenAPI document says of Personalizer's dialects is so, whatever is asked of them."""

from types import SimpleNamespace

import pytest
import schemathesis

from counts import LONG, repetitions
from onepass.bandit.decision import new_id
from onepass.log.sqlite import SqliteStore
from onepass.service.app import Service
from onepass.service.keys import Keys
from onepass.service.loop import Loop
from onepass.service.openapi import document
from onepass.service.personalizer.app import FIRST, LATER, OPERATIONS
from onepass.service.personalizer.description import TEXTS
from onepass.service.settings import parse_settings
from openapi_requests import FIT, HOST, JSON, MODES, PATIENCE, cases, count_answers
from patience import until

EXAMPLES = repetitions(1, 2_000)


def alone(path):
    """Whether no other path leads to the same: v1.0 has few that the later dialect has not."""
    return f"/{FIRST}/" not in path or path.replace(f"/{FIRST}/", "/") not in document()["paths"]


RECORDS = {"kind": "Records", "size": 16, "standardize": True}
SHOP = {"name": "shop", "model": {"recipe": "InteractionBandit", "arguments": {"context": RECORDS, "item": RECORDS}},
        "reward": {"wait": 0.1}}  # fmt: skip
CASES = cases(document(), lambda path: "personalizer" in path and (LONG or alone(path)))
SPAN = {"startTime": "2020-01-01T00:00:00Z", "endTime": "2120-01-01T00:00:00Z"}
ACTIONS = [{"id": "a", "features": [{"x": 1}]}, {"id": "b", "features": [{"x": 2}]}]
RANK = {"actions": ACTIONS, "contextFeatures": [{"hour": 9}]}
SLOTS = {**RANK, "slots": [{"id": "s", "baselineAction": "a"}]}
BODIES = {
    "multislot/rank": SLOTS,
    "multislot/events/{id}/reward": {"reward": [{"slotId": "s", "value": 0.5}]},
    "rank": RANK,
    "events/{id}/reward": {"value": 0.5},
    "configurations/service": {"defaultReward": 0.0},
    "configurations/policy": {"name": "mine", "arguments": "--cb_explore_adf --squarecb"},
    "configurations/applyFromEvaluation": {"evaluationId": "asked", "policyName": "Online"},
    "evaluations": {"name": "asked", **SPAN},
    "evaluations/{id}": {"name": "asked", **SPAN},
    "featureImportances/{id}": {"name": "asked", **SPAN},
}
DONE = {200, 201, 204}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    with SqliteStore(folder / "log") as store:
        loop = Loop(parse_settings(SHOP), store, folder / "models")
        app = Service({"shop": loop}, {"shop": Keys()}).app
        schema = schemathesis.openapi.from_asgi("/openapi.json", app, headers=HOST)
        yield SimpleNamespace(loop=loop, schema=schema)
        loop.stop()


def place_of(path):
    return path.partition("personalizer/")[2].removeprefix(f"{FIRST}/")


def prepared(service):
    """What operations are done to: events of one slot and of several, an evaluation, importances; the model."""
    assert called(service, "POST", "rank", {**RANK, "eventId": "decided"}).status_code == 201
    assert called(service, "POST", "multislot/rank", {**SLOTS, "eventId": "slots"}).status_code == 201
    for place in ("evaluations/{id}", "featureImportances/{id}"):
        assert called(service, "PUT", place, BODIES[place]).status_code in (200, 400)  # it is there
    return called(service, "GET", "model").content


def called(service, method, place, body=None):
    """The answer to a call of the later dialect."""
    operation = service.schema[f"/{{loop}}/personalizer/{place}"][method]
    given = {} if body is None else {"body": body, "media_type": JSON}
    names = {"loop": "shop", "id": "asked"}
    return operation.Case(path_parameters=names, query={"api-version": LATER}, **given).call(
        headers=HOST, timeout=PATIENCE
    )


def identity(path, method):
    """The id of what an operation is done to."""
    if method == "put":
        return new_id()
    return "slots" if "multislot" in path else "decided" if "/events/" in path else "asked"


def test_the_document_has_every_operation_of_the_dialects():
    offered = {(method, one.path) for one in OPERATIONS for method in one.methods}
    assert TEXTS.keys() <= offered
    assert {path for _, path in TEXTS} == {path for _, path in offered}


@pytest.mark.parametrize(("path", "method", "mode"), CASES, ids=[f"{m} {p} {MODES[mode]}" for p, m, mode in CASES])
def test_whatever_is_asked_the_answer_is_one_that_the_document_has(service, path, method, mode):
    operation, place, model = service.schema[path][method.upper()], place_of(path), prepared(service)
    body = BODIES.get(place)
    if mode is FIT:
        given = {"body": body, "media_type": JSON} if body is not None else {}
        if (method, place) == ("put", "model"):
            given = {"body": model, "media_type": "application/octet-stream"}
        elif method not in ("put", "post", "patch"):
            given = {}
        names = {"loop": "shop", "id": identity(path, method)}
        answer = operation.Case(path_parameters=names, query={"api-version": LATER}, **given).call(
            headers=HOST, timeout=PATIENCE
        )
        assert (answer.status_code in DONE) or place.endswith("applyFromEvaluation")

    def put_right(case, whole):
        case.path_parameters["loop"] = "shop"
        if whole and "id" in case.path_parameters:
            case.path_parameters["id"] = identity(path, method)
        if whole and mode is FIT and method in ("put", "post", "patch") and body is not None:
            case.body = {**case.body, **body}

    counts = count_answers(operation, mode, EXAMPLES, put_right)
    service.loop.change_settings(parse_settings(SHOP))
    until(lambda: service.loop.building is None)  # a model that a request asked for gives way
    assert mode is FIT or set(counts) <= {200, 201, 204, 400, 404}
