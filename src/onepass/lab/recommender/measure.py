"""Measurement of a call's seconds and memory."""

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any


def measure_call(model: Any, work: Callable[..., Any], *args: Any, **options: Any) -> tuple[Any, float, int]:
    """Call `work(*args, **options)`, and return the result, the seconds, and the peak bytes of memory.

    On Linux the peak is the memory of `model` before the call, plus the growth of the process's resident memory during
    the call up to its largest value. It is at least the memory of `model` after the call. On other systems it is the
    larger of the memories of `model` before and after. Memory that the process has freed, but still holds, does not
    make it grow when it is used again, so peaks are exact only if one policy runs alone.
    """
    held, counted = model.memory_usage(), True
    try:
        Path("/proc/self/clear_refs").write_text("5")
        before = _resident_bytes("VmRSS")
    except OSError:
        counted = False
    began = perf_counter()
    result = work(*args, **options)
    seconds = perf_counter() - began
    grown = max(0, _resident_bytes("VmHWM") - before) if counted else 0
    return result, seconds, max(held + grown, model.memory_usage())


def _resident_bytes(field: str) -> int:
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return 1024 * int(line.split()[1])
