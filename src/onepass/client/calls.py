"""Requests before they are sent, how often they are, and what their answers mean: the same for both clients."""

import json
import random
import ssl
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote

import httpx

from onepass.client.answers import Arms, Asked, Counted, Decided, Outcome, Standing, decided, record
from onepass.client.errors import KINDS, NoAnswer, ServiceError

T = TypeVar("T")

TIMEOUT = 5.0  # seconds: a hundred times what a decision takes
RETRIES = 3
PAUSE, LONGEST = 0.1, 10.0  # seconds before the first repetition, which doubles; and at most
TOO_MANY = 429
PASSING = (TOO_MANY, 502, 503, 504)  # too many, proxies without a service, a log that cannot be written
UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
HOPELESS = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)
PAGE = 1_000  # records of the log that are asked for at once
SHOWN = 200  # characters of an answer that is not the service's
LOOP = "/v1/{loop}"

Came = httpx.Response | httpx.RequestError


class Call(NamedTuple, Generic[T]):
    """A request. path: with {loop} for the loop's name; read: of the answer's JSON; again: whether it counts once,
    however often it is sent."""

    method: str
    path: str
    read: Callable[[Any], T]
    body: Any = None
    again: bool = True
    query: dict[str, Any] | None = None


# ---- what there is to ask ----


def deciding(context: Any, arms: Arms | None, asked: Asked) -> Call[Decided]:
    """A decision."""
    body: dict[str, Any] = {**asked, "id": asked.get("id") or made()}
    if context is not None:
        body["context"] = context
    if isinstance(arms, Mapping):
        body["arms"] = [{"id": name, "features": features} for name, features in arms.items()]
    elif arms is not None:
        body["arms"] = list(arms)
    return Call("POST", f"{LOOP}/decide", decided, body)


def paying(outcomes: Iterable[Outcome]) -> Call[Counted]:
    """Outcomes."""
    body = [{**one, "key": one.get("key") or made()} for one in outcomes]
    return Call("POST", f"{LOOP}/outcome", counted, body)


def activating(id: str) -> Call[None]:
    """An activation."""
    return Call("POST", f"{LOOP}/activate", nothing, {"id": id})


def patching(part: Mapping[str, Any], dry_run: bool) -> Call[Standing]:
    """A part of the settings."""
    return Call("PATCH", LOOP, standing, dict(part), dry_run, {"dry_run": "true"} if dry_run else None)


def changing(settings: Mapping[str, Any], dry_run: bool) -> Call[Standing]:
    """Other settings."""
    return Call("PUT", LOOP, standing, dict(settings), dry_run, {"dry_run": "true"} if dry_run else None)


def asking(place: str) -> Call[Any]:
    """What reads. place: below the loop's."""
    return Call("GET", f"{LOOP}/{place}", as_it_is)


def doing(place: str, body: Any = None, method: str = "POST") -> Call[Any]:
    """What does something that could be done twice. place: below the loop's."""
    return Call(method, f"{LOOP}/{place}", as_it_is, body, False)


def evaluating(asked: Mapping[str, Any]) -> Call[Any]:
    """An evaluation."""
    return Call("POST", f"{LOOP}/evaluations", as_it_is, {**asked, "id": asked.get("id") or made()})


def counted(found: Any) -> Counted:
    """The answer to outcomes."""
    return record(Counted, found)


def standing(found: Any) -> Standing:
    """Settings and their version."""
    return record(Standing, found)


def nothing(found: Any) -> None:
    """An answer without a body."""


def as_it_is(found: Any) -> Any:
    """The JSON of an answer."""
    return found


STANDING = Call("GET", LOOP, standing)
ALIVE, READY = Call("GET", "/healthz", nothing), Call("GET", "/readyz", nothing, again=False)


def made() -> str:
    """A name that nobody else makes."""
    return uuid.uuid4().hex


def part(name: str) -> str:
    """A name as a part of a path."""
    return quote(name, safe="")


def encoded(body: Any) -> bytes | None:
    """A body; ValueError for numbers that are not finite. NumPy's numbers and arrays are taken as they are."""
    if body is None:
        return None
    return json.dumps(body, allow_nan=False, separators=(",", ":"), default=plain).encode()


def typed(body: bytes | None) -> dict[str, str]:
    """The headers of a body."""
    return {} if body is None else {"content-type": "application/json"}


def plain(value: Any) -> Any:
    """What JSON does not know, by its own `tolist`; TypeError where it has none."""
    if not hasattr(value, "tolist"):
        raise TypeError(f"{type(value).__name__} cannot be sent: give numbers, text, lists, dictionaries or arrays")
    return value.tolist()


# ---- how often it is sent, and what comes of it ----


class Tries:
    """How often a request is sent again. retries: at most; again: whether it counts once."""

    def __init__(self, retries: int, again: bool) -> None:
        self._left, self._again, self._pause = retries, again, PAUSE

    def after(self, came: Came) -> float | None:
        """Seconds until it is sent again, None where it is not. came: of the last time."""
        if isinstance(came, httpx.Response):
            passing = came.status_code in PASSING and (self._again or came.status_code == TOO_MANY)
        else:
            passing = not isinstance(came, HOPELESS) and (self._again or isinstance(came, UNSENT))
        if not passing or self._left <= 0:
            return None
        self._left -= 1
        pause, self._pause = self._pause * (1.0 + random.random()), 2 * self._pause
        said = came.headers.get("retry-after", "") if isinstance(came, httpx.Response) else ""
        return min(max(pause, float(said) if said.isascii() and said.isdigit() else 0.0), LONGEST)


def read(call: Call[T], came: Came) -> T:
    """What a call comes to: its answer, or its ServiceError."""
    if isinstance(came, httpx.RequestError):
        message = f"{type(came).__name__}: {came}" if str(came) else type(came).__name__
        raise NoAnswer(0, "NoAnswer", message, call.body) from came
    try:
        found: Any = came.json() if came.content else None
        if came.is_success:
            return call.read(found)
        code, message = f"{found['error']['code']}", f"{found['error']['message']}"
    except (ValueError, KeyError, TypeError):
        code, message = f"HTTP{came.status_code}", f"not an answer of the service: {came.text[:SHOWN]!r}"
    raise KINDS.get(came.status_code, ServiceError)(came.status_code, code, message, call.body)


class Pages:
    """The log, a page a request. since: the place after which; limit: how many records at most, None: all."""

    since: int

    def __init__(self, since: int, limit: int | None) -> None:
        self.since, self.left, self.more = since, limit, limit is None or limit > 0
        self._room, self._part = 0, b""

    def next(self) -> Call[None]:
        """The next page, after the last record that came."""
        self._part, self._room = b"", PAGE if self.left is None else min(PAGE, self.left)
        return Call("GET", f"{LOOP}/log", nothing, query={"since": self.since, "limit": self._room})

    def taken(self, part: bytes) -> Iterator[dict[str, Any]]:
        """Records that are whole now. Lines end with a line feed alone: text may hold what else ends lines."""
        *lines, self._part = (self._part + part).split(b"\n")
        for line in lines:
            found: dict[str, Any] = json.loads(line)
            self.since, self._room = found["seq"], self._room - 1
            self.left = None if self.left is None else self.left - 1
            yield found

    def ended(self) -> None:
        """The page is whole: another one follows where it was full."""
        self.more = self._room == 0 and self.left != 0


def given(url: str, key: str | None, timeout: float, retries: int, trusted: str | Path | None) -> dict[str, Any]:
    """The arguments that httpx takes; ValueError for what cannot be asked."""
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"url must begin with http:// or https://, got {url[:SHOWN]!a}")
    if not timeout > 0.0 or retries < 0:
        raise ValueError(f"timeout must be above 0 seconds and retries at least 0, got {timeout} and {retries}")
    found: dict[str, Any] = {"base_url": url, "timeout": timeout}
    if key is not None and not key.strip():
        raise ValueError("key must not be empty: give a key of the loop (is ONEPASS_KEY set?), or None for no key")
    if key is not None:
        found["headers"] = {"authorization": f"Bearer {key}"}
    if trusted is not None:
        found["verify"] = trust(trusted)
    return found


def trust(authorities: str | Path) -> ssl.SSLContext:
    """The context of TLS that trusts a file of authorities, PEM; ValueError where it is none."""
    try:
        return ssl.create_default_context(cafile=authorities)
    except OSError as error:
        raise ValueError(
            f"a file of authorities must be a PEM file of certificates, got {authorities}: {error}"
        ) from None
