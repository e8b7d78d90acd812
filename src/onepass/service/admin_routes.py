"""Administrative routes of a loop: models, promotion, rollback, evaluations.

GET    /v1/{loop}/models                 list models and the checkpoints that a rollback can use
DELETE /v1/{loop}/candidate              discard the candidate
POST   /v1/{loop}/promote                promote the candidate, or a recipe that an evaluation found better
POST   /v1/{loop}/rollback               return to a checkpoint
POST   /v1/{loop}/resume                 test a broken guardrail again
GET, POST /v1/{loop}/evaluations         list evaluations, or start one
GET, DELETE /v1/{loop}/evaluations/{id}  read or delete one evaluation
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from onepass.foundation.check import quote
from onepass.service import checkpoints, promotion
from onepass.service.evaluations import EvaluationAnswer, EvaluationRequest
from onepass.service.keys import Role
from onepass.service.loop import Loop
from onepass.service.messages import Answer, ApiError, Message, ModelAnswer

JSON = "application/json"
LOOP = "/v1/{loop}"

Handler = Callable[[Request, Loop], Awaitable[Response]]
Read = Callable[[Request, Loop, Any], Awaitable[Any]]  # the message of a request


class PromoteRequest(Message, frozen=True, kw_only=True):
    """Request to let another model take over.

    - evaluation: id of the evaluation whose policy becomes the loop's model. By default the candidate takes over.
    - policy: name of a policy of kind "recipe" in that evaluation. By default the only better one.
    - anyway: true promotes the policy even if it was not found better.
    """

    evaluation: str | None = None
    policy: str | None = None
    anyway: bool = False


class RollbackRequest(Message, frozen=True, kw_only=True):
    """Request to return to an earlier model.

    - checkpoint: name of the checkpoint that holds the model.
    - learn: true if the model then learns the rewards joined since the checkpoint (default false).
    """

    checkpoint: str
    learn: bool = False


class ResumeRequest(Message, frozen=True, kw_only=True):
    """Request to restart the test of a broken guardrail (the limit of an outcome).

    `outcome` is the name of the outcome.
    """

    outcome: str


class CheckpointAnswer(Answer, frozen=True, kw_only=True):
    """Checkpoint of a model.

    - name: name of the checkpoint.
    - model_number: number of the model.
    - through: sequence number of the last join learned (a record of the final rewards of a decision).
    - rounds: number of rows the model had learned.
    """

    name: str
    model_number: int
    through: int
    rounds: int


class ModelsAnswer(Answer, frozen=True, kw_only=True):
    """Answer with the models and checkpoints of a loop.

    - models: all models the loop has had, in their order.
    - checkpoints: checkpoints that a rollback can use, the newest first.
    """

    models: list[ModelAnswer]
    checkpoints: list[CheckpointAnswer]


class EvaluationsAnswer(Answer, frozen=True, kw_only=True):
    """Answer of the API with the evaluations of a loop, the newest first."""

    evaluations: list[EvaluationAnswer]


_encoder = msgspec.json.Encoder()
_promote = msgspec.json.Decoder(PromoteRequest)
_rollback = msgspec.json.Decoder(RollbackRequest)
_resume = msgspec.json.Decoder(ResumeRequest)
_evaluation = msgspec.json.Decoder(EvaluationRequest)


def routes(read: Read) -> list[tuple[str, str, Role, Handler]]:
    """Return paths, methods, roles and handlers of administrative routes; `read` decodes the message of a request."""

    async def promote(request: Request, loop: Loop) -> Response:
        asked = await read(request, loop, _promote)
        await asyncio.to_thread(apply_promotion, loop, asked)
        return json_response(promotion.settings_answer(loop))

    async def rollback(request: Request, loop: Loop) -> Response:
        asked = await read(request, loop, _rollback)
        await asyncio.to_thread(loop.rollback, asked.checkpoint, asked.learn)
        return json_response(promotion.settings_answer(loop))

    async def resume(request: Request, loop: Loop) -> Response:
        asked = await read(request, loop, _resume)
        await asyncio.to_thread(loop.resume, asked.outcome)
        return json_response(promotion.settings_answer(loop))

    async def evaluate(request: Request, loop: Loop) -> Response:
        asked = await read(request, loop, _evaluation)
        return json_response(await asyncio.to_thread(loop.evaluations.start, asked), 201)

    return [
        (f"{LOOP}/models", "GET", "read", list_models),
        (f"{LOOP}/candidate", "DELETE", "admin", discard_candidate),
        (f"{LOOP}/promote", "POST", "admin", promote),
        (f"{LOOP}/rollback", "POST", "admin", rollback),
        (f"{LOOP}/resume", "POST", "admin", resume),
        (f"{LOOP}/evaluations", "GET", "read", list_evaluations),
        (f"{LOOP}/evaluations", "POST", "admin", evaluate),
        (f"{LOOP}/evaluations/{{id}}", "GET", "read", get_evaluation),
        (f"{LOOP}/evaluations/{{id}}", "DELETE", "admin", delete_evaluation),
    ]


async def list_models(request: Request, loop: Loop) -> Response:
    """Answer with all models and checkpoints of the loop."""
    loop_state = loop.loop_state
    each = [promotion.model_answer(loop, loop_state, line) for line in loop_state.lines.each.values()]
    found = await asyncio.to_thread(lambda: [*checkpoints.list_checkpoints(loop.folder, loop.store, loop.name)])
    answers = [
        CheckpointAnswer(name=one.name, model_number=one.line, through=one.through, rounds=one.rounds) for one in found
    ]
    return json_response(ModelsAnswer(models=each, checkpoints=answers))


async def discard_candidate(request: Request, loop: Loop) -> Response:
    """Answer a request to discard the loop's candidate model."""
    await asyncio.to_thread(loop.discard_candidate)
    return Response(status_code=204)


async def list_evaluations(request: Request, loop: Loop) -> Response:
    """Answer with all evaluations of the loop."""
    return json_response(EvaluationsAnswer(evaluations=loop.evaluations.list_all()))


async def get_evaluation(request: Request, loop: Loop) -> Response:
    """Answer with the state and the results of one evaluation."""
    return json_response(loop.evaluations.get(request.path_params["id"]))


async def delete_evaluation(request: Request, loop: Loop) -> Response:
    """Answer a request to delete one evaluation."""
    await asyncio.to_thread(loop.evaluations.delete, request.path_params["id"])
    return Response(status_code=204)


def json_response(answer: Any, status: int = 200) -> Response:
    """Return a response with the content `answer` as JSON and this HTTP status."""
    return Response(_encoder.encode(answer), status, media_type=JSON)


def apply_promotion(loop: Loop, asked: PromoteRequest) -> None:
    """Let another model take over, as the request `asked` says.

    It is the candidate model, or a new model with the recipe of an evaluation once it has learned the log. Raises
    ApiError if the candidate, or the recipe, does not exist.
    """
    if asked.evaluation is None:
        loop.promote()
        return
    found = loop.evaluations.get(asked.evaluation)
    if found.status != "done":
        raise ApiError(409, "EvaluationNotDone", f"evaluation {quote(found.id)} is {found.status}")
    recipes = {one.name: one for one in found.request.policies if one.kind == "recipe"}
    verdicts = {one.name: one for one in found.policies if one.name in recipes and (one.better or asked.anyway)}
    names = [*verdicts] if asked.policy is None else [name for name in verdicts if name == asked.policy]
    if len(names) != 1:
        wanted = "no recipe" if asked.policy is None else f"no recipe {quote(asked.policy)}"
        raise ApiError(
            409, "NotBetter", f"evaluation {quote(found.id)} found {wanted} better, or several: name a policy"
        )
    chosen = recipes[names[0]].model
    if chosen is None or chosen == loop.settings.model:
        raise ApiError(409, "SameModel", f"policy {quote(names[0])} is the present model's recipe")
    loop.stage_model(chosen, f"evaluation {found.id}: {verdicts[names[0]].sentence}")
