"""Asks a service, `onepass serve`: `Client`, and `AsyncClient` for programs that await (docs/client.md).

    with Client("http://127.0.0.1:8080", "news", key="onepass_...") as news:
        decided = news.decide({"hour": 9.0}, ["sport", "economy"])
        news.outcome(decided.id, 1.0)

Identities of decisions and keys of outcomes are made here, so what had no answer is sent again and counts once. What
would count twice is sent again only where nothing of it was sent. This folder needs httpx (`pip install
onepass[client]`) and nothing else of onepass: it may be copied to a machine that only asks.
"""

from onepass.client.answers import Asked, Counted, Decided, Outcome, Ranked, Standing
from onepass.client.awaiting import AsyncClient
from onepass.client.blocking import Client
from onepass.client.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    NoAnswer,
    NotFound,
    ServiceError,
    TooMany,
    Unauthorized,
    Unavailable,
)

__all__ = [
    "Asked",
    "AsyncClient",
    "BadRequest",
    "Client",
    "Conflict",
    "Counted",
    "Decided",
    "Forbidden",
    "NoAnswer",
    "NotFound",
    "Outcome",
    "Ranked",
    "ServiceError",
    "Standing",
    "TooMany",
    "Unauthorized",
    "Unavailable",
]
