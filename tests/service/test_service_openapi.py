"""What the OpenAPI document says is so, whatever is asked: schemathesis makes requests of it that fit, and that do not.

What settings say (how many numbers, which arms) is not in the document, so half of the requests that fit get it here.
"""

from types import SimpleNamespace

import pytest
import schemathesis

from counts import repetitions
from onepass.log.memory import MemoryStore
from onepass.service.app import Service
from onepass.service.evaluations import EvaluationRequest
from onepass.service.keys import Keys
from onepass.service.loop import Loop
from onepass.service.messages import DecideRequest
from onepass.service.openapi import document
from onepass.service.overview_thread import OverviewThread
from onepass.service.settings import parse_settings
from openapi_requests import FIT, HOST, JSON, MODES, PATIENCE, cases, count_answers
from patience import until

EXAMPLES = repetitions(5, 2_000)
MODEL = {"recipe": "OFUL", "seed": 2, "arguments": {"model": "disjoint", "reg": 0.5,
                                  "exploration": {"kind": "Thompson", "exploration": 0.4, "draws": 5}}}  # fmt: skip
LOOP = {"name": "news", "features": {"context": 3}, "arms": ["a", "b"], "model": MODEL, "reward": {"wait": 0.1}}
CASES = cases(document(), lambda path: "personalizer" not in path)
WITHOUT = ("candidate", "promote", "rollback", "resume")  # this loop has nothing that they could be done to
DONE = {200, 201, 204}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    loop = Loop(parse_settings(LOOP), MemoryStore(), folder / "models")
    watcher = OverviewThread(loop.settings, loop.store, "news", folder / "overview")
    watcher.watch(loop.writer)
    app = Service({"news": loop}, {"news": Keys()}, {"news": watcher}).app
    yield SimpleNamespace(loop=loop, schema=schemathesis.openapi.from_asgi("/openapi.json", app, headers=HOST))
    loop.stop()
    watcher.stop()


def fitted(path, method, body):
    """A body with what settings say."""
    if path.endswith("/decide"):
        return {**body, "context": [1.0, 0.0, 0.5], "arms": None, "exclude": [], "slots": 1}
    if path.endswith("/outcome"):
        many = body if isinstance(body, list) else [body]
        return [{"id": "x", **one, "value": 0.5, "slot": None} for one in many] or [{"id": "x", "value": 0.5}]
    if path.endswith("/activate"):
        return {"id": "decided"}
    if path.endswith("/evaluations"):
        return {"id": "asked"}
    if path.endswith("/forget"):
        return {"subject": "somebody"}
    return {**body, **LOOP} if method == "put" else body


def plain(operation, path, method):
    """The answer to a request that has what settings say, and nothing else."""
    given = {"body": fitted(path, method, {}), "media_type": JSON} if method in ("post", "put", "patch") else {}
    if path.endswith("/event"):
        given["query"] = {"id": "decided"}
    return operation.Case(path_parameters={"loop": "news", "id": "asked"}, **given).call(headers=HOST, timeout=PATIENCE)


@pytest.mark.parametrize(("path", "method", "mode"), CASES, ids=[f"{m} {p} {MODES[mode]}" for p, m, mode in CASES])
def test_whatever_is_asked_the_answer_is_one_that_the_document_has(service, path, method, mode):
    operation = service.schema[path][method.upper()]
    service.loop.decide(DecideRequest(context=[1.0, 0.0, 0.5], id="decided")).result()
    if "{id}" in path:
        service.loop.evaluations.start(EvaluationRequest(id="asked"))
    if mode is FIT:
        assert (plain(operation, path, method).status_code in DONE) == (not path.endswith(WITHOUT))

    def put_right(case, whole):
        if "loop" in case.path_parameters:
            case.path_parameters["loop"] = "news"
        if whole and "id" in case.path_parameters:
            case.path_parameters["id"] = "asked"
        if whole and mode is FIT and method in ("post", "put", "patch"):
            case.body = fitted(path, method, case.body)
        if whole and mode is FIT and path.endswith("/event"):
            case.query["id"] = "decided"

    counts = count_answers(operation, mode, EXAMPLES, put_right)
    service.loop.change_settings(parse_settings(LOOP))
    until(lambda: service.loop.building is None)  # a model that a request asked for gives way
    assert mode is FIT or set(counts) <= {200, 400, 404}
