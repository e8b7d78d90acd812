"""Offline evaluations: start one, which runs in the background, read its results, and apply its best policy.

Each evaluation adds three policies to those of the request: Online, the actions that were shown; Baseline, the first
action; Random. With enablePolicyOptimization it also tries a few explorations. The optimal policy is the one with the
largest lower confidence limit.
"""

import asyncio
import contextlib
from dataclasses import asdict
from typing import Any

from starlette.responses import Response

from onepass.adapters.vowpal_wabbit import exploration_from_arguments
from onepass.bandit.decision import new_id
from onepass.evaluation import intervals
from onepass.evaluation.moments import Moments
from onepass.evaluation.reward_range import Range
from onepass.foundation.check import quote
from onepass.log.replay import Fold
from onepass.service.first_model import begin_bandit
from onepass.service.loop import Loop
from onepass.service.personalizer.configuration import PolicyContract, follow_policy
from onepass.service.personalizer.counterfactuals import BUCKET, LEVEL, PolicyRun, weigh_policies
from onepass.service.personalizer.errors import Problem
from onepass.service.personalizer.jobs import FAILED, RUNNING, SUCCEEDED
from onepass.service.personalizer.policies import LONGEST_NAME, policy_json, set_exploration
from onepass.service.personalizer.requests import Body, Call, empty_response, json_response
from onepass.service.personalizer.time_index import has_decisions_between
from onepass.service.personalizer.times import format_time, parse_time

MOST = 10  # policies of a request
INTERVALS = (5, 60, 360, 720, 1440)  # minutes
MINUTE = 60_000_000  # microseconds
APPLIED = "OptimalPolicyApplied"
FIRST_STATUS = {RUNNING: "pending", SUCCEEDED: "completed", APPLIED: "completed", FAILED: "failed"}
TRIED = {  # explorations that are tried where a better policy is looked for
    "epsilon-greedy": "--cb_explore_adf --epsilon 0.05",
    "inverse gaps": "--cb_explore_adf --squarecb --gamma_scale 30 --elim",
    "optimistic gaps": 'onepass {"kind": "OptimisticGap", "exploration": 0.4, "scale": 100.0, "uniform_share": 0.001}',
    "Thompson": 'onepass {"kind": "Thompson", "exploration": 0.5, "draws": 20, "uniform_share": 0.01}',
}


class EvaluationContract(Body, frozen=True, kw_only=True):
    """Body of a request for an offline evaluation.

    `start_time` and `end_time`, ISO 8601 text, limit the decisions. `policies` are evaluated beside the loop's own, the
    baseline and a random policy. If `enable_policy_optimization` or `enable_offline_experimentation` is true,
    explorations of this package are tried as well. `name` is the name of the evaluation.
    """

    name: str
    start_time: str
    end_time: str
    policies: list[PolicyContract] | None = None
    enable_policy_optimization: bool | None = None
    enable_offline_experimentation: bool | None = None


class ApplyRequest(Body, frozen=True, kw_only=True):
    """Request to apply the policy `policy_name` of the evaluation with the id `evaluation_id`."""

    evaluation_id: str
    policy_name: str


async def put(call: Call) -> Response:
    """Answer PUT /evaluations/{id}: start an evaluation with this id. The response is empty."""
    await start_evaluation(call, call.parts[0])
    return Response(status_code=200)


async def post(call: Call) -> Response:
    """Answer POST /evaluations of v1.0: start an evaluation with a new id, and respond with its state."""
    identity = new_id()
    await start_evaluation(call, identity)
    return json_response(v1_form(call.evaluations.get(identity)), 201, location=f"{call.request.url}/{identity}")


async def get(call: Call) -> Response:
    """Answer GET /evaluations/{id} with the state and the results of one evaluation."""
    found = await asyncio.to_thread(call.evaluations.get, call.parts[0])
    return json_response(v1_form(found) if call.first else preview_form(found, call))


async def get_all(call: Call) -> Response:
    """Answer GET /evaluations with a list of all evaluations."""
    found = await asyncio.to_thread(call.evaluations.list_all)
    if call.first:
        return json_response([v1_form(one) for one in found])
    wanted = call.request.query_params.get("filter", "")
    if "'Auto'" in wanted:
        found = []
    return json_response({"value": [evaluation_summary(one) for one in select_page(found, call)], "nextLink": None})


async def delete(call: Call) -> Response:
    """Answer DELETE /evaluations/{id}: delete the evaluation. The response is empty."""
    await asyncio.to_thread(call.evaluations.delete, call.parts[0])
    return empty_response()


async def apply(call: Call) -> Response:
    """Answer POST /configurations/applyFromEvaluation: use a policy of an evaluation in the loop from now on.

    The response is empty.
    """
    asked = call.read(ApplyRequest)
    found = await asyncio.to_thread(call.evaluations.get, asked.evaluation_id)
    policy = next((one for one in found.get("policies", ()) if one["name"] == asked.policy_name), None)
    if policy is None or policy["policySource"] in ("Baseline", "Random"):
        raise Problem(
            400, "InvalidPolicyContract", f"The evaluation has no policy {quote(asked.policy_name)} to apply."
        )
    if policy["policySource"] != "Online":
        await asyncio.to_thread(follow_policy, call.loop, policy["name"], policy["arguments"])
    return empty_response()


def select_page(found: list[Any], call: Call) -> list[Any]:
    """Return the part of the list `found` that the query arguments `top` and `skip` of a call select."""
    numbers = {}
    for name, default in (("top", len(found)), ("skip", 0)):
        text = call.request.query_params.get(name, f"{default}")
        if not (text.isascii() and text.isdigit()):
            raise Problem(400, "InvalidRequest", f"{name} must be a whole number, got {quote(text)}", name)
        numbers[name] = int(text)
    return found[numbers["skip"] :][: numbers["top"]]


# ---- the work ----


async def start_evaluation(call: Call, identity: str) -> None:
    """Check the request for an evaluation, and start it. Raises Problem for an invalid request."""
    asked = call.read(EvaluationContract)
    if not 1 <= len(identity) <= LONGEST_NAME or not 1 <= len(asked.name) <= LONGEST_NAME:
        raise Problem(400, "InvalidEvaluationContract", f"Names must have from 1 to {LONGEST_NAME} characters.")
    given = list(asked.policies or ())
    names = [policy.name for policy in given]
    if len(given) > MOST:
        raise Problem(400, "MaximumEvaluationCustomPoliciesExceeded", f"There must be at most {MOST} policies.")
    if len(set(names)) != len(names):
        raise Problem(400, "DuplicateCustomPolicyNames", "Every policy must have a name of its own.")
    begins, ends = parse_time(asked.start_time), parse_time(asked.end_time)
    if not begins < ends:
        raise Problem(400, "InvalidEvaluationContract", "startTime must be before endTime.", "startTime")
    loop = call.loop
    if not await asyncio.to_thread(has_decisions_between, loop.store, loop.name, begins, ends):
        raise Problem(400, "NoLogsExistInDateRange", "There are no decisions in that time.", "startTime")
    chosen = [(policy.name, policy.arguments, "Custom") for policy in given]
    if asked.enable_policy_optimization or asked.enable_offline_experimentation:
        chosen += [(name, text, "OfflineExperimentation") for name, text in TRIED.items() if name not in names]
    policies = await asyncio.to_thread(make_policies, loop, chosen)
    said = {
        "id": identity, "name": asked.name, "startTime": format_time(begins), "endTime": format_time(ends),
        "creationTime": format_time(loop.clock()), "jobId": identity, "evaluationType": "Manual",
    }  # fmt: skip
    await asyncio.to_thread(call.evaluations.start, said, lambda: run_evaluation(loop, policies, begins, ends))


def make_policies(loop: Loop, chosen: list[tuple[str, str, str]]) -> list[PolicyRun]:
    """Return the policies of an evaluation: the loop's own, the baseline, a random one, and the policies `chosen`.

    `chosen` holds (name, arguments in Vowpal Wabbit's syntax, source). Raises Problem for wrong arguments.
    """
    policies = [PolicyRun("Online", policy_json(loop.settings)["arguments"], "Online"),
                PolicyRun("Baseline", "", "Baseline"), PolicyRun("Random", "", "Random")]  # fmt: skip
    for name, text, source in chosen:
        try:
            bandit = begin_bandit(set_exploration(loop.settings, exploration_from_arguments(text)))
        except ValueError as error:
            raise Problem(400, "InvalidPolicyContract", f"{name}: {error}", "policies") from None
        policies.append(PolicyRun(name, text, source, Fold(loop.store, loop.name, bandit)))
    return policies


def run_evaluation(loop: Loop, policies: list[PolicyRun], begins: int, ends: int) -> dict[str, Any]:
    """Evaluate policies on the decisions from `begins` to `ends`, in microseconds, and return the results.

    The keys are "policies", a list of results, "optimalPolicy", the name of the best policy, and "description", the
    reasons against trust in results. Raises ValueError if no decision has its reward.
    """
    if weigh_policies(loop, policies, begins, ends) == 0:
        raise ValueError("no decision of that time has its reward yet")
    least, largest = loop.settings.reward.range
    said, best, lower = list[dict[str, Any]](), "Online", -float("inf")
    for one in policies:
        found = one.evaluate(least, largest)
        said.append({
            "name": one.name, "arguments": one.arguments, "policySource": one.source, "value": found.value,
            "limits": list(found.limits), "verdict": found.verdict, "reasons": list(found.diagnosis.reasons),
            "range": [least, largest],
            "buckets": {f"{number}": asdict(moments) for number, moments in one.buckets().items()},
        })  # fmt: skip
        if found.value is not None and found.limits.lower > lower and one.source != "Random":
            best, lower = one.name, found.limits.lower
    reasons = [f"{one['name']}: {'; '.join(one['reasons'])}" for one in said if one["reasons"]]
    return {"policies": said, "optimalPolicy": best, "description": ". ".join(reasons)}


# ---- how it is said ----


def evaluation_summary(found: dict[str, Any]) -> dict[str, Any]:
    """Return the evaluation `found` without its results."""
    names = ("id", "name", "startTime", "endTime", "creationTime", "jobId", "status", "evaluationType",
             "optimalPolicy", "description")  # fmt: skip
    return {name: found[name] for name in names if name in found}


def preview_form(found: dict[str, Any], call: Call) -> dict[str, Any]:
    """Return the evaluation `found` as plain data in the form of Personalizer's API of 2022-09-01-preview.

    It contains the time series that the query of the request `call` selects.
    """
    query = call.request.query_params
    minutes = query.get("intervalInMinutes", f"{INTERVALS[0]}")
    if minutes not in map(str, INTERVALS):
        raise Problem(400, "InvalidRequest", f"intervalInMinutes must be one of {INTERVALS}, got {quote(minutes)}")
    begins = parse_time(query.get("startTime") or found["startTime"])
    ends = parse_time(query.get("endTime") or found["endTime"])
    rolling = query.get("window", "Expanding") == "Rolling"
    said = evaluation_summary(found)
    if "policies" not in found:
        return said
    value = [
        {
            "name": one["name"], "arguments": one["arguments"], "policySource": one["policySource"], "slotId": "",
            "summary": {"expectedReward": one["value"], "confidenceInterval": one["limits"]},
            "timeseries": {"data": series(one, begins, ends, int(minutes) * MINUTE, rolling)},
        }
        for one in found["policies"]
    ]  # fmt: skip
    content = {
        "startTime": format_time(begins),
        "endTime": format_time(ends),
        "intervalInMinutes": int(minutes),
        "value": value,
    }
    return {**said, "content": content}


def v1_form(found: dict[str, Any]) -> dict[str, Any]:
    """Return the evaluation `found` as plain data in the form of version v1.0 of Personalizer's API."""
    said = {name: found[name] for name in ("id", "name", "startTime", "endTime", "jobId")}
    results = []
    for one in found.get("policies", ()):
        moments = buckets(one, parse_time(found["startTime"]), parse_time(found["endTime"]))
        parts = [policy_summary(m, one["range"], format_time(at * BUCKET)) for at, m in sorted(moments.items())]
        whole = policy_summary(sum(moments.values(), Moments()), one["range"], found["startTime"])
        whole["confidenceInterval"] = (one["limits"][1] - one["limits"][0]) / 2
        results.append({"name": one["name"], "arguments": one["arguments"], "summary": parts, "totalSummary": whole})
    return {**said, "status": FIRST_STATUS.get(found["status"], "failed"), "policyResults": results}


def policy_summary(m: Moments, range: list[float], time: str) -> dict[str, Any]:
    """Return what v1.0 of the API reports about a policy: sums, and half the width of the confidence interval.

    `m` holds the sums, and `range` the least and the largest reward. `time` is the start of the period, as the API
    writes times. The interval has level 95 %.
    """
    limits = interval(m, range)
    return {
        "timeStamp": time, "ipsEstimatorNumerator": m.products, "ipsEstimatorDenominator": m.rows,
        "snipsEstimatorDenominator": m.weights, "aggregateTimeWindow": "PT5M", "nonZeroProbability": m.rows,
        "confidenceInterval": (limits[1] - limits[0]) / 2, "sumOfSquares": m.square_products,
    }  # fmt: skip


def buckets(policy: dict[str, Any], begins: int, ends: int) -> dict[int, Moments]:
    """Return the sums (`Moments`) of every five minutes from `begins` to `ends`, by the number of the interval.

    `policy` is a result in the list "policies" of `run_evaluation`. Intervals are numbered from 1970 (Unix time) on.
    Times are in microseconds.
    """
    found = {int(number): Moments(**moments) for number, moments in policy["buckets"].items()}
    return {at: moments for at, moments in found.items() if begins // BUCKET <= at <= ends // BUCKET}


def series(policy: dict[str, Any], begins: int, ends: int, step: int, rolling: bool) -> list[dict[str, Any]]:
    """Return estimates of a policy's value over time, one for each step with rows.

    `policy` is a result of `run_evaluation`, and `begins`, `ends` and `step` are in microseconds. An estimate has the
    keys "timeStamp", "expectedReward" and "confidenceInterval". It uses the rows of the step alone if `rolling`, else
    all rows up to the step's end.
    """
    steps: dict[int, Moments] = {}
    for at, moments in sorted(buckets(policy, begins, ends).items()):
        number = at * BUCKET // step
        steps[number] = steps.get(number, Moments()) + moments
    said, whole = [], Moments()
    for number, moments in sorted(steps.items()):
        whole = moments if rolling else whole + moments
        said.append({
            "timeStamp": format_time(number * step), "expectedReward": whole.snips,
            "confidenceInterval": interval(whole, policy["range"]),
        })  # fmt: skip
    return said


def interval(m: Moments, range: list[float]) -> list[float]:
    """Return the lower and upper Clopper-Pearson confidence limit of a policy's value.

    `m` holds the sums of weights and rewards, and `range` the least and the largest reward, which are returned if there
    are no rows.
    """
    with contextlib.suppress(ArithmeticError):
        return list(intervals.clopper_pearson(m, Range(*range), LEVEL))
    return list(range)
