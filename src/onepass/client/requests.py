"""Requests, retries and answers, shared by the blocking and the asynchronous client."""

import json
import random
import ssl
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote

import httpx

from onepass.client.errors import KINDS, NoAnswer, ServiceError
from onepass.client.messages import (
    Arms,
    DecideOptions,
    Decision,
    Outcome,
    OutcomeCounts,
    SettingsInfo,
    from_json,
    parse_decision,
)

T = TypeVar("T")

TIMEOUT = 5.0  # seconds: a hundred times what a decision takes
RETRIES = 3
FIRST_PAUSE, MAX_PAUSE = 0.1, 10.0  # seconds before the first retry, which doubles; and at most
TOO_MANY_REQUESTS = 429
TRANSIENT = (TOO_MANY_REQUESTS, 502, 503, 504)  # too many, proxies without a service, a log that cannot be written
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
PERMANENT = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)
PAGE = 1_000  # records of the log in one request
SHOWN = 200  # characters of a foreign answer in an error message
LOOP = "/v1/{loop}"

Result = httpx.Response | httpx.RequestError


class Call(NamedTuple, Generic[T]):
    """Request to the service.

    Parameters
    ----------
    method : str
        HTTP method.
    path : str
        Path, with {loop} for the name of the loop.
    parse : callable
        Makes the result from the JSON of the answer.
    body : object, default None
        JSON body, None without one.
    repeatable : bool, default True
        If True, the request counts once however often it is sent.
    query : dict, default None
        Query arguments.
    """

    method: str
    path: str
    parse: Callable[[Any], T]
    body: Any = None
    repeatable: bool = True
    query: dict[str, Any] | None = None


# ---- calls ----


def decide_call(context: Any, arms: Arms | None, options: DecideOptions) -> Call[Decision]:
    """Return the request for a decision as a `Call`, with this context, the arms on offer, and options."""
    body: dict[str, Any] = {**options, "id": _id_or_new(options.get("id"))}
    if context is not None:
        body["context"] = context
    if isinstance(arms, Mapping):
        body["arms"] = [{"id": name, "features": features} for name, features in arms.items()]
    elif arms is not None:
        body["arms"] = list(arms)
    return Call("POST", f"{LOOP}/decide", parse_decision, body)


def outcomes_call(outcomes: Iterable[Outcome]) -> Call[OutcomeCounts]:
    """Return the request that sends the outcomes of many decisions, as a `Call`."""
    body = [{**outcome, "key": _id_or_new(outcome.get("key"))} for outcome in outcomes]
    return Call("POST", f"{LOOP}/outcome", _parse_counts, body)


def make_outcome(
    id: str, value: float | None, outcomes: Mapping[str, float] | None, slot: int | None, key: str | None
) -> Outcome:
    """Return the message with the reward `value` and other outcomes of the decision `id`, for the service.

    It has no entry `outcomes` if there are none. `slot` is the slot that the values belong to, and `key` the key under
    which the message counts once.
    """
    found: Outcome = {"id": id, "value": value, "slot": slot, "key": key}
    if outcomes:
        found["outcomes"] = outcomes
    return found


def activate_call(id: str) -> Call[None]:
    """Return the request that activates the deferred decision with this id, as a `Call`."""
    return Call("POST", f"{LOOP}/activate", _ignore_answer, {"id": id})


def patch_settings_call(part: Mapping[str, Any], dry_run: bool) -> Call[SettingsInfo]:
    """Return the request that changes the settings in `part`; with `dry_run` it only reports the changes."""
    return Call("PATCH", LOOP, _parse_settings, dict(part), dry_run, {"dry_run": "true"} if dry_run else None)


def replace_settings_call(settings: Mapping[str, Any], dry_run: bool) -> Call[SettingsInfo]:
    """Return the request that replaces all settings of the loop; with `dry_run` it only reports the changes."""
    return Call("PUT", LOOP, _parse_settings, dict(settings), dry_run, {"dry_run": "true"} if dry_run else None)


def get_call(path: str) -> Call[Any]:
    """Return the request that reads `path`, which is relative to the loop, as a `Call`."""
    return Call("GET", f"{LOOP}/{path}", _return_json)


def action_call(path: str, body: Any = None, method: str = "POST") -> Call[Any]:
    """Make a request to `path`, relative to the loop, that must not be sent twice because it would count twice.

    `body` is the JSON body, None for none, and `method` the HTTP method.
    """
    return Call(method, f"{LOOP}/{path}", _return_json, body, False)


def evaluate_call(options: Mapping[str, Any]) -> Call[Any]:
    """Return the request that starts an evaluation with these options, as a `Call`."""
    return Call("POST", f"{LOOP}/evaluations", _return_json, {**options, "id": _id_or_new(options.get("id"))})


def _parse_counts(answer: Any) -> OutcomeCounts:
    return from_json(OutcomeCounts, answer)


def _parse_settings(answer: Any) -> SettingsInfo:
    return from_json(SettingsInfo, answer)


def _ignore_answer(answer: Any) -> None:
    """Return None, whatever the answer is."""


def _return_json(answer: Any) -> Any:
    return answer


SETTINGS = Call("GET", LOOP, _parse_settings)
HEALTH, READY = Call("GET", "/healthz", _ignore_answer), Call("GET", "/readyz", _ignore_answer, repeatable=False)


def _id_or_new(given: str | None) -> str:
    """Return a given id, or make a unique one for None."""
    return uuid.uuid4().hex if given is None else given


def quote_segment(name: str) -> str:
    """Return a name, percent-encoded, as one segment of the path of an address."""
    return quote(name, safe="")


def encode_body(body: Any) -> bytes | None:
    """Return a body as JSON; it may hold NumPy numbers and arrays. Raises ValueError for infinity and NaN."""
    if body is None:
        return None
    return json.dumps(body, allow_nan=False, separators=(",", ":"), default=_to_builtin).encode()


def body_headers(body: bytes | None) -> dict[str, str]:
    """Return the HTTP headers of a request with this body."""
    return {} if body is None else {"content-type": "application/json"}


def _to_builtin(value: Any) -> Any:
    """Call the method `tolist` of a value that JSON does not know. Raises TypeError if it has no such method."""
    if not hasattr(value, "tolist"):
        raise TypeError(f"{type(value).__name__} cannot be sent: give numbers, text, lists, dictionaries or arrays")
    return value.tolist()


# ---- retries and answers ----


class Retries:
    """Retries of one request.

    Parameters
    ----------
    max_retries : int
        Largest number of retries, at least 0.
    repeatable : bool
        If True, the request counts once however often it is sent.
    """

    def __init__(self, max_retries: int, repeatable: bool) -> None:
        self._left, self._repeatable, self._pause = max_retries, repeatable, FIRST_PAUSE

    def next_pause(self, result: Result) -> float | None:
        """Return the seconds to wait before the next retry, given the last result, or None if there is no retry."""
        if isinstance(result, httpx.Response):
            transient = result.status_code in TRANSIENT and (
                self._repeatable or result.status_code == TOO_MANY_REQUESTS
            )
        else:
            transient = not isinstance(result, PERMANENT) and (self._repeatable or isinstance(result, NOT_SENT))
        if not transient or self._left <= 0:
            return None
        self._left -= 1
        pause, self._pause = self._pause * (1.0 + random.random()), 2 * self._pause
        wait = result.headers.get("retry-after", "") if isinstance(result, httpx.Response) else ""
        return min(max(pause, float(wait) if wait.isascii() and wait.isdigit() else 0.0), MAX_PAUSE)


def parse_result(call: Call[T], result: Result) -> T:
    """Return the answer of the service to the request `call`, or raise the ServiceError that it stands for.

    `result` is the HTTP response, or the error of httpx if none came.
    """
    if isinstance(result, httpx.RequestError):
        message = f"{type(result).__name__}: {result}" if str(result) else type(result).__name__
        raise NoAnswer(0, "NoAnswer", message, call.body) from result
    try:
        answer: Any = result.json() if result.content else None
        if result.is_success:
            return call.parse(answer)
        code, message = f"{answer['error']['code']}", f"{answer['error']['message']}"
    except (ValueError, KeyError, TypeError):
        code, message = f"HTTP{result.status_code}", f"not an answer of the service: {result.text[:SHOWN]!r}"
    raise KINDS.get(result.status_code, ServiceError)(result.status_code, code, message, call.body)


class LogPages:
    """Pages of the log, each fetched by one request.

    Parameters
    ----------
    since : int
        Sequence number after which the records begin.
    limit : int or None
        Largest number of records, at least 0; None for all.

    Raises
    ------
    ValueError
        If `since` or `limit` is negative.
    """

    since: int

    def __init__(self, since: int, limit: int | None) -> None:
        if since < 0 or (limit is not None and limit < 0):
            raise ValueError(f"since and limit must be at least 0, got {since} and {limit}")
        self.since, self.remaining, self.has_more = since, limit, limit is None or limit > 0
        self._room, self._part = 0, b""

    def next_call(self) -> Call[None]:
        """Return the request for the next page, after the last record received."""
        self._part, self._room = b"", PAGE if self.remaining is None else min(PAGE, self.remaining)
        return Call("GET", f"{LOOP}/log", _ignore_answer, query={"since": self.since, "limit": self._room})

    def parse_records(self, part: bytes) -> Iterator[dict[str, Any]]:
        """Yield the records of the log that are complete once the received text `part` is added."""
        *lines, self._part = (self._part + part).split(b"\n")
        for line in lines:
            record: dict[str, Any] = json.loads(line)
            self.since, self._room = record["seq"], self._room - 1
            self.remaining = None if self.remaining is None else self.remaining - 1
            yield record

    def end_page(self) -> None:
        """Note that the present page has ended; another page follows if this one was full."""
        self.has_more = self._room == 0 and self.remaining != 0


def httpx_options(
    url: str, key: str | None, timeout: float, retries: int, ca_file: str | Path | None
) -> dict[str, Any]:
    """Return the keyword arguments of an httpx client, by name. Raises ValueError if an argument is wrong.

    The arguments are those of `Client`. "base_url" and "timeout" are always in the result; "headers" are there for a
    key, and "verify" for `ca_file`.
    """
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"url must begin with http:// or https://, got {url[:SHOWN]!a}")
    if not timeout > 0.0 or retries < 0:
        raise ValueError(f"timeout must be above 0 seconds and retries at least 0, got {timeout} and {retries}")
    options: dict[str, Any] = {"base_url": url, "timeout": timeout}
    if key is not None and not key.strip():
        raise ValueError("key must not be empty: give a key of the loop (is ONEPASS_KEY set?), or None for no key")
    if key is not None and not (key.isascii() and key.isprintable() and " " not in key):
        raise ValueError("key must be printable ASCII characters without spaces, got others")
    if key is not None:
        options["headers"] = {"authorization": f"Bearer {key}"}
    if ca_file is not None:
        options["verify"] = tls_context(ca_file)
    return options


def tls_context(ca_file: str | Path) -> ssl.SSLContext:
    """Make a TLS context that trusts the certificate authorities in a file. Raises ValueError if it is not PEM."""
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise ValueError(f"a file of authorities must be a PEM file of certificates, got {ca_file}: {error}") from None
