"""Conversion of times and durations in Personalizer's format: 2026-11-01T00:00:00Z, PT10M."""

import re
from datetime import UTC, datetime

from onepass.foundation.check import quote
from onepass.log.records import micros, moment

NUMBER = r"(\d+(?:[.,]\d+)?)"
PERIOD = re.compile(rf"P(?:{NUMBER}D)?(?:T(?:{NUMBER}H)?(?:{NUMBER}M)?(?:{NUMBER}S)?)?")
CLOCK = re.compile(r"(?:(\d+)[.])?(\d+):(\d+):(\d+(?:[.]\d+)?)")  # days.hours:minutes:seconds
UNITS = (86_400.0, 3_600.0, 60.0, 1.0)  # seconds of a day, an hour, a minute, a second


def parse_duration(text: str) -> float:
    """Return the seconds of a duration such as PT10M or 00:10:00. Raises ValueError for other text."""
    found = PERIOD.fullmatch(text) or CLOCK.fullmatch(text)
    if found is None or not any(found.groups()):
        raise ValueError(f"a duration must be like PT10M, got {quote(text)}")
    parts = [float((part or "0").replace(",", ".")) for part in found.groups()]
    return sum(part * unit for part, unit in zip(parts, UNITS, strict=True))


def format_duration(seconds: float) -> str:
    """Return a number of seconds as an ISO 8601 duration, such as PT10M."""
    minutes, rest = divmod(seconds, 60.0)
    hours, minutes = divmod(int(minutes), 60)
    parts = [f"{hours}H" if hours else "", f"{minutes}M" if minutes else ""]
    said = [*parts, f"{rest:.6f}".rstrip("0").rstrip(".") + "S" if rest else ""]
    return "PT" + ("".join(said) or "0S")


def parse_time(text: str) -> int:
    """Return the microseconds of an ISO 8601 time, in UTC if it has no zone. Raises ValueError for other text."""
    try:
        found = datetime.fromisoformat(text.strip())
        return micros(found.astimezone(UTC) if found.tzinfo is not None else found.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        raise ValueError(f"a time must be like 2026-11-01T00:00:00Z, got {quote(text)}") from None


def format_time(time: int) -> str:
    """Return a time in microseconds as ISO 8601 text."""
    return moment(time).isoformat().replace("+00:00", "Z")
