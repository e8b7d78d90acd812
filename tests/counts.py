"""Numbers of repetitions: small in `make test`, large in `make test-long`."""

import os
from itertools import combinations, product

LONG = os.environ.get("ONEPASS_TEST_LONG", "") not in ("", "0")


def repetitions(short, long):
    """Return `short`, or `long` under `make test-long`."""
    return long if LONG else short


def pairs(*axes):
    """Return combinations of a value of each axis.

    Under `make test-long` these are all combinations. Otherwise they are few, and any two values of two axes still
    occur together.
    """
    every = list(product(*axes))
    if LONG or len(axes) < 3:
        return every
    meetings = [set(combinations(enumerate(indices), 2)) for indices in product(*(range(len(axis)) for axis in axes))]
    chosen, met = [], set()
    while len(met) < len(set().union(*meetings)):
        best = max(range(len(every)), key=lambda i: len(meetings[i] - met))
        chosen.append(best)
        met |= meetings[best]
    return [every[i] for i in sorted(chosen)]
