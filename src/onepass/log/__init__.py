"""Log of decisions and their outcomes: records, stores, formats and replay.

`pip install onepass[log]`; PostgreSQL: `onepass[postgres]`.
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
