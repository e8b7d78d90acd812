"""OpenAPI description of Personalizer's two dialects.

Paths begin with the name of the loop. Version v1.0 is part of the path, and the later version is a parameter of the
query. If the key determines the loop, the same paths begin with /personalizer.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from onepass.service.personalizer import configuration, evaluations, importances, ranking, slots
from onepass.service.personalizer.app import FIRST, LATER, OPERATIONS

JSON, BINARY = "application/json", "application/octet-stream"
ERRORS = {
    "400": "The request does not fit.",
    "401": "There is no such key.",
    "403": "The key must not do this.",
    "404": "There is no such loop, event, evaluation or importance.",
    "405": "Not by this method.",
    "409": "The model cannot rank this.",
    "415": "The body must be application/json.",
    "421": "Without keys, only by a name of this machine.",
    "500": "An error of the service.",
    "503": "The log cannot be written, or the service stops: try again.",
}
TEXT: dict[str, Any] = {"type": "string"}
LIST: dict[str, Any] = {"type": "array", "items": {"type": "object"}}
NUMBER: dict[str, Any] = {"type": "number"}
MAYBE: dict[str, Any] = {"type": ["string", "null"]}


def object_schema(**fields: Any) -> dict[str, Any]:
    """Return the schema of an object with these required fields. Other fields are allowed."""
    return {"type": "object", "required": sorted(fields), "properties": fields}


ERROR = object_schema(error=object_schema(code=TEXT, message=TEXT, details={"type": "array"}))
PAGE = object_schema(value=LIST, nextLink=MAYBE)
RANKED = object_schema(ranking=LIST, eventId=TEXT, rewardActionId=TEXT)
SLOTS = object_schema(slots=LIST, eventId=TEXT)
SERVICE = object_schema(rewardWaitTime=TEXT, defaultReward=NUMBER, rewardAggregation=TEXT, learningMode=TEXT)
POLICY = object_schema(name=TEXT, arguments=TEXT)
EVALUATION = object_schema(id=TEXT, name=TEXT, startTime=TEXT, endTime=TEXT, status=TEXT)
SPAN = object_schema(dateRange={"type": "object"})
LEARNED = object_schema(creationTime=TEXT, lastModifiedTime=TEXT)
IMPORTANCE = object_schema(id=TEXT, name=TEXT, startTime=TEXT, endTime=TEXT, status=TEXT)
STATUS = object_schema(service=TEXT, apiStatus=TEXT)
SIZES = ("top", "skip")


class OperationText(NamedTuple):
    """Description of one operation.

    `summary` is a sentence on it. `answer` is the schema of the response, or None without a body. `body` is the type of
    the request's body, bytes for a model. `good` is the status code of success. `dialects` is "both", "first" (v1.0) or
    "later". `query` lists the names of query parameters.
    """

    summary: str
    answer: Any = None
    body: Any = None
    good: str = "200"
    dialects: str = "both"
    query: tuple[str, ...] = ()


TEXTS = {
    ("POST", "rank"): OperationText("Rank actions", RANKED, ranking.RankRequest, "201"),
    ("POST", "events/*/reward"): OperationText("Say what came of it", None, ranking.RewardRequest, "204"),
    ("POST", "events/*/activate"): OperationText("Say that it was shown", None, None, "204"),
    ("POST", "multislot/rank"): OperationText(
        "Rank for several slots", SLOTS, slots.MultiSlotRankRequest, "201", "later"
    ),
    ("POST", "multislot/events/*/reward"): OperationText(
        "Say what came of slots", None, slots.MultiSlotRewardRequest, "204", "later"
    ),
    ("POST", "multislot/events/*/activate"): OperationText("Say that slots were shown", None, None, "204", "later"),
    ("GET", "configurations/service"): OperationText("The configuration", SERVICE),
    ("PUT", "configurations/service"): OperationText(
        "Configure", SERVICE, configuration.ServiceConfiguration, dialects="first"
    ),
    ("PATCH", "configurations/service"): OperationText(
        "Configure", SERVICE, configuration.ServiceConfiguration, dialects="later"
    ),
    ("GET", "configurations/policy"): OperationText("The policy", POLICY),
    ("PUT", "configurations/policy"): OperationText(
        "Follow a policy", POLICY, configuration.PolicyContract, dialects="first"
    ),
    ("PATCH", "configurations/policy"): OperationText(
        "Follow a policy", POLICY, configuration.PolicyContract, dialects="later"
    ),
    ("DELETE", "configurations/policy"): OperationText("Follow the bandit's own", POLICY),
    ("POST", "configurations/applyFromEvaluation"): OperationText(
        "Follow a policy of an evaluation", None, evaluations.ApplyRequest, "204", "later"
    ),
    ("POST", "evaluations"): OperationText("Evaluate", EVALUATION, evaluations.EvaluationContract, "201", "first"),
    ("PUT", "evaluations/*"): OperationText("Evaluate", None, evaluations.EvaluationContract, "200", "later"),
    ("GET", "evaluations"): OperationText("All evaluations", PAGE, query=(*SIZES, "filter")),
    ("GET", "evaluations/*"): OperationText("An evaluation", EVALUATION, query=("intervalInMinutes", "window")),
    ("DELETE", "evaluations/*"): OperationText("Delete an evaluation", good="204"),
    ("GET", "featureImportances"): OperationText("All importances", PAGE, dialects="later", query=SIZES),
    ("PUT", "featureImportances/*"): OperationText(
        "Which features counted", None, importances.FeatureImportance, "200", "later"
    ),
    ("GET", "featureImportances/*"): OperationText("Importances", IMPORTANCE, dialects="later"),
    ("DELETE", "featureImportances/*"): OperationText("Delete importances", good="204", dialects="later"),
    ("GET", "model"): OperationText("The model", bytes),
    ("PUT", "model"): OperationText("Go on with a model", None, bytes, "204"),
    ("DELETE", "model"): OperationText("Begin anew", good="204"),
    ("GET", "model/properties"): OperationText("When it began and learned", LEARNED),
    ("DELETE", "logs"): OperationText("Delete what is not needed", good="204"),
    ("GET", "logs/properties"): OperationText("First and last decision", SPAN),
    ("GET", "status"): OperationText("Whether it works", STATUS, dialects="first"),
}
TYPES = tuple({said.body: None for said in TEXTS.values() if said.body not in (None, bytes)})


def describe_paths(schemas: dict[Any, Any]) -> dict[str, Any]:
    """Return the part `paths` of an OpenAPI document, for both versions of Personalizer's API.

    `schemas` maps the types of request and response bodies to their schemas.
    """
    found: dict[str, Any] = {}
    for operation in OPERATIONS:
        for method in operation.methods:
            said = TEXTS.get((method, operation.path))
            if said is None:
                continue
            for first, place in operation_paths(operation.path, said):
                name = f"personalizer_{'first' if first else 'later'}_{method.lower()}_{operation.handler.__name__}"
                name = f"{name}_{operation.path.partition('/')[0]}"
                found.setdefault(place, {})[method.lower()] = describe_operation(
                    name, operation.path, said, first, schemas
                )
    return found


def operation_paths(path: str, said: OperationText) -> Iterator[tuple[bool, str]]:
    """Yield, for each version of the API that has the operation `said`, True for v1.0, and the path."""
    place = path.replace("*", "{id}")
    if said.dialects != "later":
        yield True, f"/{{loop}}/personalizer/{FIRST}/{place}"
    if said.dialects != "first":
        yield False, f"/{{loop}}/personalizer/{place}"


def describe_operation(
    name: str, path: str, said: OperationText, first: bool, schemas: dict[Any, Any]
) -> dict[str, Any]:
    """Return the OpenAPI description of the operation `said` in v1.0 (`first` True) or in the later version.

    `schemas` maps the types of request bodies to their schemas.
    """
    named = ["loop", "id"] if "*" in path else ["loop"]
    parameters = [{"name": one, "in": "path", "required": True, "schema": TEXT} for one in named]
    parameters += [{"name": one, "in": "query", "schema": TEXT} for one in said.query]
    if not first:
        parameters.append({"name": "api-version", "in": "query", "required": True, "schema": {"const": LATER}})
    done: dict[str, Any] = {"description": "Done."}
    if said.answer is bytes:
        done["content"] = {BINARY: {"schema": {}}}
    elif said.answer is not None:
        schema = LIST if first and said.answer is PAGE else said.answer
        done["content"] = {JSON: {"schema": schema}}
    refused = {"content": {JSON: {"schema": ERROR}}, "headers": {"x-ms-error-code": {"schema": TEXT, "required": True}}}
    responses = {said.good: done, **{code: {"description": text, **refused} for code, text in ERRORS.items()}}
    found = {"operationId": name, "summary": said.summary, "parameters": parameters, "responses": responses}
    if said.body is bytes:
        found["requestBody"] = {"required": True, "content": {BINARY: {"schema": {}}}}
    elif said.body is not None:
        found["requestBody"] = {"required": True, "content": {JSON: {"schema": schemas[said.body]}}}
    return found
