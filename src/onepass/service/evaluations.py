"""Evaluations of policies: one after the other, in a separate thread, from a view of the log.

    DIR/NAME.evaluations/ID.json      request, progress and result

An evaluation that was not done when the service ended starts again. Evaluations take at most half of a core: requests
come first.
"""

import contextlib
import math
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from onepass.bandit.decision import new_id
from onepass.foundation import atomic_write
from onepass.foundation.check import quote
from onepass.log.records import SECOND
from onepass.log.replay import Fold
from onepass.log.store import Store, StoreError
from onepass.service import policy_evaluation
from onepass.service.first_model import begin_bandit, refuse_new_source
from onepass.service.messages import Answer, ApiError, Message
from onepass.service.policy_evaluation import FixedPolicy, LearningPolicy, Policy, Verdict, Window
from onepass.service.promotion import LoopParts
from onepass.service.settings import Model, parse_settings

IDENTITY = re.compile(r"[A-Za-z0-9_-]{1,64}")  # a file is named by it
MOST = 100  # evaluations that are kept
POLICIES = 10  # of one evaluation
PLACES = 1_000  # of the log that a model learns at a time
STEP = 0.05  # seconds of work between two pauses, as long
DONE = ("done", "failed")

Kind = Literal["uniform", "baseline", "logged", "arm", "frozen", "recipe"]
Status = Literal["waiting", "running", "done", "failed"]


class PolicyRequest(Message, frozen=True, kw_only=True):
    """Policy to evaluate.

    - name: name of the policy in the answer.
    - kind: "uniform" draws among all arms; "baseline" shows the first arm; "logged" chooses the logged arm; "arm"
      always shows `arm`; "recipe" is a model that learns the evaluated part of the log as it goes; "frozen" is the
      serving model as it was at the sequence number `through`.
    - arm: name of the arm, for "arm".
    - model: model of a "recipe", as in settings (default: the present model's).
    - through: sequence number for "frozen" (default: the beginning of the evaluated part).
    """

    name: str
    kind: Kind
    arm: str | None = None
    model: Model | None = None
    through: int | None = None


USUAL = (
    PolicyRequest(name="uniform", kind="uniform"),
    PolicyRequest(name="baseline", kind="baseline"),
    PolicyRequest(name="present", kind="recipe"),
)


class EvaluationRequest(Message, frozen=True, kw_only=True):
    """Request for an evaluation.

    - id: id of the evaluation; letters, digits, - and _, at most 64 (default: made).
    - policies: at most 10 policies (default: uniform, baseline, and the present recipe).
    - since, until: sequence numbers; decisions after the first and up to the last one count (default: all).
    - begin, end: the same limits as times, in seconds of Unix time.
    - level: confidence level of all limits, above 0 and below 1 (default 0.95).
    """

    id: str | None = None
    policies: tuple[PolicyRequest, ...] = USUAL
    since: int = 0
    until: int | None = None
    begin: float | None = None
    end: float | None = None
    level: float = 0.95


class PolicyAnswer(Answer, frozen=True, kw_only=True):
    """Result of an evaluation for one policy.

    - name, kind: name and kind of the policy, as in the request.
    - verdict: "ok", "wide" (too little data to decide), "refused" (not to be believed) or "failed".
    - sentence: the result in one sentence.
    - value: estimated reward of a decision, null if refused.
    - limits: limits of the value that are valid at any time.
    - gain: value minus the value of what was shown.
    - gain_limits: limits of the gain, so that with probability `level` no policy here is called better that is not.
    - better: true if the policy is better.
    - rows: number of decisions.
    - effective: effective sample size.
    """

    name: str
    kind: str
    verdict: str
    sentence: str
    value: float | None = None
    limits: list[float] | None = None
    gain: float | None = None
    gain_limits: list[float] | None = None
    better: bool = False
    rows: int = 0
    effective: float = 0.0


class EvaluationAnswer(Answer, frozen=True, kw_only=True):
    """State and results of an evaluation.

    - id: id of the evaluation.
    - status: "waiting", "running", "done" or "failed".
    - created: Unix time of its start.
    - request: the request for it.
    - rows: number of decisions read so far.
    - logged: mean reward of what was shown.
    - why: reason of a failure.
    - policies: results, in the order of the request.
    """

    id: str
    status: Status
    created: float
    request: EvaluationRequest
    rows: int = 0
    logged: float | None = None
    why: str = ""
    policies: tuple[PolicyAnswer, ...] = ()


class EvaluationCancelled(Exception):
    """Signal that the evaluation was deleted, or that the service is stopping."""


class Evaluations:
    """Evaluations of policies on the log of the loop `loop`; requests and results are files in `folder`."""

    def __init__(self, loop: LoopParts, folder: Path) -> None:
        self._loop, self._folder = loop, folder
        self._lock, self._some = threading.Lock(), threading.Condition()
        self._ending, self._thread = False, None  # type: tuple[bool, threading.Thread | None]
        self._held = {one.id: one for one in load_evaluations(folder)}

    def resume(self) -> None:
        """Start again the evaluations that an earlier process did not finish."""
        if any(one.status not in DONE for one in self._held.values()):
            self._run()

    def stop(self) -> None:
        """Stop the running evaluation; the next process starts it again."""
        with self._some:
            self._ending = True
            self._some.notify()
        if self._thread is not None:
            self._thread.join()

    # ---- what is asked ----

    def list_all(self) -> list[EvaluationAnswer]:
        """Return all evaluations, the newest first."""
        with self._lock:
            return sorted(self._held.values(), key=lambda one: (-one.created, one.id))

    def get(self, identity: str) -> EvaluationAnswer:
        """Return one evaluation; raise ApiError if there is none."""
        with self._lock:
            found = self._held.get(identity)
        if found is None:
            raise ApiError(404, "EvaluationNotFound", f"there is no evaluation {quote(identity)}")
        return found

    def start(self, request: EvaluationRequest) -> EvaluationAnswer:
        """Start an evaluation, or return the one with the same id and request.

        Raises ApiError for an invalid request.
        """
        identity = f"{new_id()}" if request.id is None else request.id
        self._check(request, identity)
        with self._lock:
            before = self._held.get(identity)
            if before is not None:
                if before.request != request:
                    raise ApiError(409, "EvaluationConflict", f"id {quote(identity)} was used by another evaluation")
                return before
            if len(self._held) >= MOST:
                raise ApiError(409, "TooManyEvaluations", f"there are {MOST} evaluations: DELETE some")
            answer = EvaluationAnswer(id=identity, status="waiting", created=time.time(), request=request)
            try:
                self._save(answer)
            except OSError as error:
                raise StoreError(f"the evaluation cannot be written: {error}") from None
            self._held[identity] = answer
        self._run()
        return answer

    def delete(self, identity: str) -> None:
        """Delete an evaluation, and stop it if it runs; raise ApiError if there is none."""
        self.get(identity)
        with self._lock:
            self._held.pop(identity, None)
            self._path(identity).unlink(missing_ok=True)

    def _check(self, request: EvaluationRequest, identity: str) -> None:
        if not IDENTITY.fullmatch(identity):
            raise wrong(f"id must be letters, digits, - and _, 64 at most, got {quote(identity)}")
        names = [one.name for one in request.policies]
        if not 1 <= len(names) <= POLICIES or len(set(names)) != len(names):
            raise wrong(f"policies must be from 1 to {POLICIES}, each with a name of its own, got {quote(names)}")
        if not 0.0 < request.level < 1.0:
            raise wrong(f"level must be above 0 and below 1, got {request.level}")
        if request.since < 0 or (request.until is not None and request.until <= request.since):
            raise wrong("since must be at least 0, and until above it")
        for one in request.policies:
            if (one.kind == "arm") != (one.arm is not None):
                raise wrong(f'policy {quote(one.name)}: arm must be given for the kind "arm", and for no other')
            if one.model is not None:
                if one.kind != "recipe":
                    raise wrong(f'policy {quote(one.name)}: model must be given for the kind "recipe" alone')
                try:
                    parse_settings({**self._loop.settings.to_dict(), "model": msgspec.to_builtins(one.model)})
                    refuse_new_source(self._loop.settings.model, one.model)
                except ValueError as error:
                    raise wrong(f"policy {quote(one.name)}: {error}") from None

    # ---- the thread ----

    def _run(self) -> None:
        with self._some:
            if self._ending:
                raise ApiError(503, "Stopping", "the service is stopping: ask again when it is back")
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._serve, name=f"evaluations of {self._loop.name}", daemon=True
                )
                self._thread.start()
            self._some.notify()

    def _serve(self) -> None:
        while not self._ending:
            with self._lock:
                todo = min(
                    (one for one in self._held.values() if one.status not in DONE),
                    key=lambda one: (one.created, one.id), default=None,
                )  # fmt: skip
            if todo is None:
                with self._some:
                    self._some.wait_for(lambda: self._ending or any(one.status == "waiting" for one in self.list_all()))
                continue
            with contextlib.suppress(EvaluationCancelled):
                self._finish(todo)

    def _finish(self, todo: EvaluationAnswer) -> None:
        self._update(replace(todo, status="running"))
        try:
            found = self._evaluate(todo)
        except policy_evaluation.FAILURES as error:
            found = replace(todo, status="failed", why=str(error))
        except EvaluationCancelled:
            raise
        except Exception as error:
            found = replace(todo, status="failed", why=f"this is an error of the service: {type(error).__name__}")
        self._update(found)

    def _evaluate(self, todo: EvaluationAnswer) -> EvaluationAnswer:
        request, loop, begun_at = todo.request, self._loop, time.monotonic()

        def report_progress(count: int) -> None:
            nonlocal begun_at
            worked = time.monotonic() - begun_at
            if self._ending:
                raise EvaluationCancelled
            if worked > STEP:
                self._update(replace(todo, status="running", rows=count), disk_too=False)
                time.sleep(worked)
                begun_at = time.monotonic()

        with loop.store.open_view() as view:
            window = make_window(view, loop.name, request)
            policies, found = dict[str, Policy](), dict[str, Verdict]()
            for one in request.policies:
                try:
                    policies[one.name] = make_policy(loop, view, one, window, report_progress)
                except policy_evaluation.FAILURES as error:
                    found[one.name] = Verdict(None, None, str(error))
            rewards = loop.settings.reward.range
            found |= policy_evaluation.evaluate_policies(
                view, loop.name, policies, window, rewards, request.level, report_progress
            )
        each = tuple(make_answer(one, found[one.name], request.level) for one in request.policies)
        logged = next((one.found.logged for one in found.values() if one.found is not None), None)
        rows = max((one.rows for one in each), default=0)
        return replace(todo, status="done", rows=rows, logged=logged, policies=each)

    def _update(self, found: EvaluationAnswer, disk_too: bool = True) -> None:
        """Store the progress of an evaluation; raise EvaluationCancelled if it was deleted meanwhile.

        It is stored in memory and, if `disk_too` is True, in the evaluation's file.
        """
        with self._lock:
            if found.id not in self._held:
                raise EvaluationCancelled
            self._held[found.id] = found
            if disk_too:
                with contextlib.suppress(OSError):  # then it is begun again after a restart
                    self._save(found)

    def _save(self, found: EvaluationAnswer) -> None:
        self._folder.mkdir(exist_ok=True)
        atomic_write.write_atomically(self._path(found.id), msgspec.json.encode(found))

    def _path(self, identity: str) -> Path:
        return self._folder / f"{identity}.json"


def load_evaluations(folder: Path) -> Iterator[EvaluationAnswer]:
    """Yield the evaluations of a folder; unreadable files are skipped."""
    for place in folder.glob("*.json"):
        with contextlib.suppress(OSError, ValueError):
            yield msgspec.json.decode(place.read_bytes(), type=EvaluationAnswer)


def make_window(store: Store, loop: str, request: EvaluationRequest) -> Window:
    """Return the part of the log that a request asks to evaluate, in sequence numbers."""
    since, until = request.since, request.until
    if request.begin is not None:
        since = max(since, seq_before(store, loop, request.begin))
    if request.end is not None:
        last = seq_before(store, loop, request.end)
        until = last if until is None else min(until, last)
    return Window(since, until)


def seq_before(store: Store, loop: str, seconds: float) -> int:
    """Return the last sequence number before a time in seconds of Unix time, or 0 if there is none.

    Times in a log never decrease.
    """
    low, high = store.first - 1, store.last
    while low < high:
        middle = (low + high + 1) // 2
        record = next(store.read(middle - 1, None, None, loop), None)
        if record is not None and record.time < seconds * SECOND:
            low = max(middle, min(record.seq, high))
        else:
            high = middle - 1
    return max(low, 0)


def make_policy(
    loop: LoopParts, store: Store, asked: PolicyRequest, window: Window, report_progress: Callable[[int], object]
) -> Policy:
    """Return the policy that the request `asked` asks to evaluate; raise ValueError if it cannot be made.

    `window` is the part of the log, and `report_progress` is called while a model learns.
    """
    if asked.kind == "recipe":
        settings = loop.settings if asked.model is None else replace(loop.settings, model=asked.model)
        return LearningPolicy(Fold(store, loop.name, begin_bandit(settings)))
    if asked.kind == "frozen":
        through = window.since if asked.through is None else asked.through
        if through > window.since:
            raise ValueError(
                f"policy {quote(asked.name)}: through must be at most {window.since}, where the window begins: a model "
                "that has learned the window would be judged by what it has learned"
            )
        fold = loop.load_fold(loop.loop_state.lines.serving)
        if fold.through > through:
            raise ValueError(f"policy {quote(asked.name)}: the serving model began at place {fold.through}")
        fold.store = store
        for place in [*range(fold.through + PLACES, through, PLACES), through]:
            fold.advance(place)
            report_progress(0)
        return FixedPolicy(lambda decision: policy_evaluation.bandit_probabilities(fold.bandit, decision))
    if asked.kind == "arm":
        return FixedPolicy(policy_evaluation.constant_policy(asked.arm or ""))
    if asked.kind == "logged":
        return FixedPolicy(policy_evaluation.shown_probabilities, changes=True)
    return FixedPolicy({"uniform": policy_evaluation.uniform, "baseline": policy_evaluation.baseline}[asked.kind])


def make_answer(asked: PolicyRequest, verdict: Verdict, level: float) -> PolicyAnswer:
    """Return the API's answer about the policy that `asked` asked for, from its result `verdict` at this level."""
    found, gain = verdict.found, verdict.gain
    if found is None or gain is None:
        return PolicyAnswer(name=asked.name, kind=asked.kind, verdict="failed", sentence=verdict.why)
    return PolicyAnswer(
        name=asked.name, kind=asked.kind, verdict=found.verdict, sentence=verdict_sentence(found, gain, level),
        value=finite_or_none(found.value), limits=finite_limits(found.limits), gain=finite_or_none(gain.gain),
        better=gain.better, gain_limits=finite_limits(gain.limits), rows=found.diagnosis.rows,
        effective=found.diagnosis.effective,
    )  # fmt: skip


def verdict_sentence(found: Any, gain: Any, level: float) -> str:
    """Return a sentence on the result of a policy, given its estimates `found` and its `gain` over what was shown.

    `level` is the confidence level of their limits.
    """
    if found.verdict == "refused":
        return f"This window cannot tell: {'; '.join(found.diagnosis.reasons)}."
    limits = f"{found.limits.lower:.4g} to {found.limits.upper:.4g}"
    much = f"{gain.gain:+.4g} against what was shown ({gain.limits.lower:+.4g} to {gain.limits.upper:+.4g})"
    said = "better" if gain.better else "worse" if gain.limits.upper < 0.0 else "not told apart from it"
    wide = f" {'; '.join(found.diagnosis.reasons).capitalize()}." if found.verdict == "wide" else ""
    return f"It would have earned {found.value:.4g} a decision ({limits} with {level:.0%}), {much}: {said}.{wide}"


def finite_or_none(value: float | None) -> float | None:
    """Return `value` if it is a finite number, else None, because JSON has no other numbers."""
    return value if value is not None and math.isfinite(value) else None


def finite_limits(limits: Any) -> list[float] | None:
    """Return `limits`, a lower and an upper limit, as a list if both are finite, else None."""
    return [*limits] if all(map(math.isfinite, limits)) else None


def wrong(message: str) -> ApiError:
    """Return the error for a request with a wrong value; `message` says what is wrong."""
    return ApiError(400, "BadArgument", message)
