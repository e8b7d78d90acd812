"""Routes of Personalizer's API: both dialects, `%2F` in ids, and a loop found by its name or by its key.

/personalizer/v1.0/rank                     v1.0; v1.1-preview.N have the bodies of the later one
/personalizer/rank?api-version=2022-09-01-preview
/LOOP/personalizer/...                      the same where the endpoint names the loop
"""

import re
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple
from urllib.parse import unquote

from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from onepass.foundation.check import quote
from onepass.service.admission import address_of
from onepass.service.keys import Role
from onepass.service.loop import Loop
from onepass.service.personalizer import configuration, evaluations, importances, model_and_logs, ranking, slots
from onepass.service.personalizer.errors import Problem, problem_from, problem_response
from onepass.service.personalizer.jobs import Jobs
from onepass.service.personalizer.requests import Call, find_loop, key_of

CHANGE = ("PUT", "PATCH")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
FIRST = "v1.0"
BETWEEN = re.compile(r"v1\.1-preview\.[0-9]+")
LATER = "2022-09-01-preview"
KINDS = ("application/json", "application/octet-stream")
MODEL = 1 << 30  # bytes of a model that is sent

Handler = Callable[[Call], Awaitable[Response]]


class Rest(Convertor[str]):
    """Pattern of a URL path that matches the rest of the path, line breaks included.

    The web framework's own pattern stops at a line break, which an id may contain.
    """

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("rest", Rest())


class Operation(NamedTuple):
    """One operation of Personalizer's API.

    - methods: HTTP methods.
    - path: path, with `*` for each segment that the caller chooses.
    - role: role that a key needs for the operation.
    - code: error code of an invalid request.
    - handler: function that answers a call.
    """

    methods: tuple[str, ...]
    path: str
    role: Role
    code: str
    handler: Handler


OPERATIONS = (
    Operation(("POST",), "rank", "decide", "InvalidRankRequest", ranking.rank),
    Operation(("POST",), "events/*/reward", "reward", "InvalidRewardRequest", ranking.reward),
    Operation(("POST",), "events/*/activate", "decide", "InvalidEventIdToActivate", ranking.activate),
    Operation(("POST",), "multislot/rank", "decide", "InvalidRankRequest", slots.rank),
    Operation(("POST",), "multislot/events/*/reward", "reward", "InvalidRewardRequest", slots.reward),
    Operation(("POST",), "multislot/events/*/activate", "decide", "InvalidEventIdToActivate", slots.activate),
    Operation(("GET",), "configurations/service", "read", "InvalidServiceConfiguration", configuration.get),
    Operation(CHANGE, "configurations/service", "admin", "InvalidServiceConfiguration", configuration.put),
    Operation(("GET",), "configurations/policy", "read", "InvalidPolicyContract", configuration.get_policy),
    Operation(CHANGE, "configurations/policy", "admin", "InvalidPolicyContract", configuration.put_policy),
    Operation(("DELETE",), "configurations/policy", "admin", "InvalidPolicyContract", configuration.delete_policy),
    Operation(("POST",), "configurations/applyFromEvaluation", "admin", "InvalidPolicyContract", evaluations.apply),
    Operation(("POST",), "evaluations", "admin", "InvalidEvaluationContract", evaluations.post),
    Operation(("GET",), "evaluations", "read", "InvalidRequest", evaluations.get_all),
    Operation(("PUT",), "evaluations/*", "admin", "InvalidEvaluationContract", evaluations.put),
    Operation(("GET",), "evaluations/*", "read", "InvalidRequest", evaluations.get),
    Operation(("DELETE",), "evaluations/*", "admin", "InvalidRequest", evaluations.delete),
    Operation(("GET",), "featureImportances", "read", "InvalidRequest", importances.get_all),
    Operation(("PUT",), "featureImportances/*", "admin", "InvalidContract", importances.put),
    Operation(("GET",), "featureImportances/*", "read", "InvalidRequest", importances.get),
    Operation(("DELETE",), "featureImportances/*", "admin", "InvalidRequest", importances.delete),
    Operation(("GET",), "model", "read", "InvalidRequest", model_and_logs.get_model),
    Operation(("PUT",), "model", "admin", "InvalidModelImportFormat", model_and_logs.put_model),
    Operation(("DELETE",), "model", "admin", "InvalidRequest", model_and_logs.delete_model),
    Operation(("GET",), "model/properties", "read", "InvalidRequest", model_and_logs.model_properties),
    Operation(("DELETE",), "logs", "admin", "InvalidRequest", model_and_logs.delete_logs),
    Operation(("GET",), "logs/properties", "read", "InvalidRequest", model_and_logs.log_properties),
    Operation(("GET",), "status", "read", "InvalidRequest", model_and_logs.status),
)


def routes(service: Any) -> list[Route]:
    """Return the HTTP routes of Personalizer's API, in both of its versions. `service` runs the loops."""
    jobs = {name: make_jobs(loop) for name, loop in service.loops.items()}

    async def serve(request: Request) -> Response:
        begin, label, what, code, status = time.perf_counter(), "", "personalizer", "BadRequest", 500
        try:
            name, first, segments = parse_path(request)
            found, parts = find_operation(request.method, segments)
            what, code = f"personalizer {found.path}", found.code
            loop = find_loop(request, service.loops, service.keys, name, found.role)
            label = loop.name
            client = key_of(request) if len(service.keys[label]) else address_of(request)
            service.rates.admit(label, client, loop.settings.limits.rate)
            content = await read_body(request, MODEL if found.path == "model" else loop.settings.limits.body)
            answer = await found.handler(Call(request, loop, first, parts, content, *jobs[loop.name]))
        except Exception as error:
            answer = problem_response(problem_from(error, code))
        status = answer.status_code
        service.metrics.requests.labels(label, what, status).inc()
        service.metrics.seconds.labels(label, what).observe(time.perf_counter() - begin)
        return answer

    paths = ("/personalizer/{rest:rest}", "/{loop}/personalizer/{rest:rest}")
    return [Route(path, serve, methods=METHODS, name="personalizer") for path in paths]


def make_jobs(loop: Loop) -> tuple[Jobs, Jobs]:
    """Make the jobs of a loop: its evaluations, and its feature importances."""
    folder = loop.folder.parent / f"{loop.name}.personalizer"
    return (
        Jobs(folder / "evaluations", "EvaluationNotFound", "EvaluationAlreadyExists"),
        Jobs(folder / "importances", "ResourceNotFound", "FeatureImportanceAlreadyExists"),
    )


def parse_path(request: Request) -> tuple[str | None, bool, list[str]]:
    """Parse the path of a request into (loop name or None, is v1.0, remaining segments).

    Each segment is percent-decoded by itself, so an id may contain a slash. Raises Problem for another API version.
    """
    raw = request.scope.get("raw_path") or request.scope["path"].encode()
    try:
        segments = [unquote(one, errors="strict") for one in raw.decode("ascii").split("?")[0].split("/")[1:]]
    except UnicodeDecodeError:
        raise Problem(400, "BadRequest", "the path must be UTF-8, percent-encoded") from None
    at = 0 if segments[0] == "personalizer" else 1
    name, segments = segments[0] if at else None, segments[at + 1 :]
    if segments and (segments[0] == FIRST or BETWEEN.fullmatch(segments[0])):
        return name, segments[0] == FIRST, segments[1:]
    version = request.query_params.get("api-version")
    if version != LATER:
        raise Problem(400, "BadRequest", f"api-version must be {LATER}, got {quote(version)}", "api-version")
    return name, False, segments


def find_operation(method: str, segments: list[str]) -> tuple[Operation, tuple[str, ...]]:
    """Return the operation of a method and of the `segments` of a path, and those segments that the caller chose.

    Raises Problem if there is no such operation.
    """
    known = False
    for one in OPERATIONS:
        pattern = one.path.split("/")
        if len(pattern) == len(segments) and all(a in ("*", b) for a, b in zip(pattern, segments, strict=True)):
            known = True
            if method in one.methods:
                return one, tuple(b for a, b in zip(pattern, segments, strict=True) if a == "*")
    if known:
        raise Problem(405, "BadRequest", f"{method} is not served here")
    raise Problem(404, "ResourceNotFound", f"nothing is served at {quote('/'.join(segments))}")


async def read_body(request: Request, most: int) -> bytes:
    """Read the body of a request.

    Raises Problem for more than `most` bytes, for another content type, and for a request that a web page of another
    origin sent.
    """
    origin, parts, count = request.headers.get("origin"), [], 0
    if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
        raise Problem(403, "InvalidApiAccess", "pages of another origin are not served")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    async for part in request.stream():
        if part and kind not in KINDS:
            raise Problem(415, "BadRequest", "content-type must be application/json")
        count += len(part)
        if count > most:
            raise Problem(400, "PayloadSizeExceeded", f"a body must have at most {most} bytes")
        parts.append(part)
    return b"".join(parts)
