"""Log of decisions and their outcomes: records, stores, formats and replay.

Install it with `pip install onepass[log]`, or `onepass[postgres]` for PostgreSQL.
"""

from onepass.log.records import (
    Activation,
    Checkpoint,
    Decision,
    Event,
    Eviction,
    Forgotten,
    Join,
    Outcome,
    Record,
    Settings,
    decode,
    encode,
    micros,
    moment,
)

__all__ = [
    "Activation",
    "Checkpoint",
    "Decision",
    "Event",
    "Eviction",
    "Forgotten",
    "Join",
    "Outcome",
    "Record",
    "Settings",
    "decode",
    "encode",
    "micros",
    "moment",
]
