"""How often: a test that repeats something takes the small number in `make test`, the large one in `make test-long`."""

import os

LONG = os.environ.get("ONEPASS_TEST_LONG", "") not in ("", "0")


def many(short: int, long: int) -> int:
    """`short`, or `long` under `make test-long`: kills, files, calls, seeds, examples."""
    return long if LONG else short
