"""Client of the decision service `onepass serve`, blocking and asynchronous (docs/client.md).

    with Client("http://127.0.0.1:8080", "news", key="onepass_...") as news:
        decision = news.decide({"hour": 9.0}, ["sport", "economy"])
        news.outcome(decision.id, 1.0)

The client makes the ids of decisions and the keys of outcomes. So it can send such a request again, and the service
counts it once. Other requests that change something, such as `promote`, have no id. The client sends them again only if
no connection was made, or if the service refused them because of too many requests. This folder needs httpx (`pip
install onepass[client]`) and nothing else of onepass: it may be copied to a machine that only sends requests.
"""

from onepass.client.async_client import AsyncClient
from onepass.client.client import Client
from onepass.client.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    NoAnswer,
    NotFound,
    ServiceError,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)
from onepass.client.messages import DecideOptions, Decision, Outcome, OutcomeCounts, RankedArm, SettingsInfo

__all__ = [
    "AsyncClient",
    "BadRequest",
    "Client",
    "Conflict",
    "DecideOptions",
    "Decision",
    "Forbidden",
    "NoAnswer",
    "NotFound",
    "Outcome",
    "OutcomeCounts",
    "RankedArm",
    "ServiceError",
    "SettingsInfo",
    "TooManyRequests",
    "Unauthorized",
    "Unavailable",
]
