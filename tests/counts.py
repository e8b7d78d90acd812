"""How often: a test that repeats something takes the small number in `make test`, the large one in `make test-long`."""

import os
from itertools import combinations, product

LONG = os.environ.get("ONEPASS_TEST_LONG", "") not in ("", "0")


def repetitions(short, long):
    """`short`, or `long` under `make test-long`: kills, files, calls, seeds, examples."""
    return long if LONG else short


def pairs(*axes):
    """Combinations of a value of each axis: under `make test-long` all of them, else so few that any two values of two
    axes still meet in one.
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
