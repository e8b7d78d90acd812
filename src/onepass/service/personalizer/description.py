"""What OpenAPI says of Personalizer's dialects: the loop in the path, v1.0 there too, the later one in the query.

Where the key says the loop, the same paths begin with /personalizer.
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


def shape(**fields: Any) -> dict[str, Any]:
    """The schema of an object that has these fields, and perhaps others."""
    return {"type": "object", "required": sorted(fields), "properties": fields}


ERROR = shape(error=shape(code=TEXT, message=TEXT, details={"type": "array"}))
PAGE = shape(value=LIST, nextLink=MAYBE)
RANKED = shape(ranking=LIST, eventId=TEXT, rewardActionId=TEXT)
SLOTS = shape(slots=LIST, eventId=TEXT)
SERVICE = shape(rewardWaitTime=TEXT, defaultReward=NUMBER, rewardAggregation=TEXT, learningMode=TEXT)
POLICY = shape(name=TEXT, arguments=TEXT)
EVALUATION = shape(id=TEXT, name=TEXT, startTime=TEXT, endTime=TEXT, status=TEXT)
SPAN = shape(dateRange={"type": "object"})
LEARNED = shape(creationTime=TEXT, lastModifiedTime=TEXT)
IMPORTANCE = shape(id=TEXT, name=TEXT, startTime=TEXT, endTime=TEXT, status=TEXT)
STATUS = shape(service=TEXT, apiStatus=TEXT)
SIZES = ("top", "skip")


class Said(NamedTuple):
    """summary; answer: its schema, None for no body; body: the type of what is sent, bytes for a model; good: the
    code of an answer; dialects: "both", "first" or "later"; query: names."""

    summary: str
    answer: Any = None
    body: Any = None
    good: str = "200"
    dialects: str = "both"
    query: tuple[str, ...] = ()


SAID = {
    ("POST", "rank"): Said("Rank actions", RANKED, ranking.RankRequest, "201"),
    ("POST", "events/*/reward"): Said("Say what came of it", None, ranking.RewardRequest, "204"),
    ("POST", "events/*/activate"): Said("Say that it was shown", None, None, "204"),
    ("POST", "multislot/rank"): Said("Rank for several slots", SLOTS, slots.MultiSlotRankRequest, "201", "later"),
    ("POST", "multislot/events/*/reward"): Said(
        "Say what came of slots", None, slots.MultiSlotRewardRequest, "204", "later"
    ),
    ("POST", "multislot/events/*/activate"): Said("Say that slots were shown", None, None, "204", "later"),
    ("GET", "configurations/service"): Said("The configuration", SERVICE),
    ("PUT", "configurations/service"): Said("Configure", SERVICE, configuration.ServiceConfiguration, dialects="first"),
    ("PATCH", "configurations/service"): Said(
        "Configure", SERVICE, configuration.ServiceConfiguration, dialects="later"
    ),
    ("GET", "configurations/policy"): Said("The policy", POLICY),
    ("PUT", "configurations/policy"): Said("Follow a policy", POLICY, configuration.PolicyContract, dialects="first"),
    ("PATCH", "configurations/policy"): Said("Follow a policy", POLICY, configuration.PolicyContract, dialects="later"),
    ("DELETE", "configurations/policy"): Said("Follow the bandit's own", POLICY),
    ("POST", "configurations/applyFromEvaluation"): Said(
        "Follow a policy of an evaluation", None, evaluations.Application, "204", "later"
    ),
    ("POST", "evaluations"): Said("Evaluate", EVALUATION, evaluations.EvaluationContract, "201", "first"),
    ("PUT", "evaluations/*"): Said("Evaluate", None, evaluations.EvaluationContract, "200", "later"),
    ("GET", "evaluations"): Said("All evaluations", PAGE, query=(*SIZES, "filter")),
    ("GET", "evaluations/*"): Said("An evaluation", EVALUATION, query=("intervalInMinutes", "window")),
    ("DELETE", "evaluations/*"): Said("Delete an evaluation", good="204"),
    ("GET", "featureImportances"): Said("All importances", PAGE, dialects="later", query=SIZES),
    ("PUT", "featureImportances/*"): Said(
        "Which features counted", None, importances.FeatureImportance, "200", "later"
    ),
    ("GET", "featureImportances/*"): Said("Importances", IMPORTANCE, dialects="later"),
    ("DELETE", "featureImportances/*"): Said("Delete importances", good="204", dialects="later"),
    ("GET", "model"): Said("The model", bytes),
    ("PUT", "model"): Said("Go on with a model", None, bytes, "204"),
    ("DELETE", "model"): Said("Begin anew", good="204"),
    ("GET", "model/properties"): Said("When it began and learned", LEARNED),
    ("DELETE", "logs"): Said("Delete what is not needed", good="204"),
    ("GET", "logs/properties"): Said("First and last decision", SPAN),
    ("GET", "status"): Said("Whether it works", STATUS, dialects="first"),
}
TYPES = tuple({said.body: None for said in SAID.values() if said.body not in (None, bytes)})


def paths(schemas: dict[Any, Any]) -> dict[str, Any]:
    """Paths of both dialects. schemas: of TYPES."""
    found: dict[str, Any] = {}
    for operation in OPERATIONS:
        for method in operation.methods:
            said = SAID.get((method, operation.path))
            if said is None:
                continue
            for first, place in placed(operation.path, said):
                name = f"personalizer_{'first' if first else 'later'}_{method.lower()}_{operation.handler.__name__}"
                name = f"{name}_{operation.path.partition('/')[0]}"
                found.setdefault(place, {})[method.lower()] = described(name, operation.path, said, first, schemas)
    return found


def placed(path: str, said: Said) -> Iterator[tuple[bool, str]]:
    """Whether it is v1.0, and the path, for each dialect."""
    place = path.replace("*", "{id}")
    if said.dialects != "later":
        yield True, f"/{{loop}}/personalizer/{FIRST}/{place}"
    if said.dialects != "first":
        yield False, f"/{{loop}}/personalizer/{place}"


def described(name: str, path: str, said: Said, first: bool, schemas: dict[Any, Any]) -> dict[str, Any]:
    """One operation."""
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
