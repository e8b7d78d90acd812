"""System identification: a step, relative to one solve and one rank-one update of the design that it shares."""

import time
from typing import Any

import numpy as np

import onepass as op
from onepass.design.solved_append import append_with_leverages
from onepass.dynamics import SystemIdentification
from onepass.lab.benchmark.shared_model import Line

STATES, INPUTS, ROWS, REPEATS = 20, 10, 2_000, 100


def step_microseconds(**options: Any) -> tuple[float, float]:
    """Return the microseconds of one step of system identification, and of one linear solve and row update alone.

    `options` are options of `SystemIdentification`. The system has 20 states and 10 inputs. Both times are the smallest
    of many runs. Runs of the two alternate, so that other work on the machine slows both.
    """
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((ROWS, STATES + INPUTS))
    after = rows @ rng.standard_normal((STATES + INPUTS, STATES)) + rng.standard_t(2.1, (ROWS, STATES))
    best = [np.inf, np.inf]
    for repeat in range(-1, REPEATS):  # the first compiles
        count = ROWS if repeat >= 0 else 2
        x, u, following = rows[:count, :STATES], rows[:count, STATES:], after[:count]
        system, design = SystemIdentification(STATES, INPUTS, **options), op.Exact(dim=STATES + INPUTS)
        began = time.perf_counter()
        system.learn(x, u, following)
        middle = time.perf_counter()
        append_with_leverages(design.initial_state(), rows[:count])
        if repeat >= 0:
            best = [min(best[0], middle - began), min(best[1], time.perf_counter() - middle)]
    return best[0] / ROWS * 1e6, best[1] / ROWS * 1e6


def speed_lines() -> list[Line]:
    """Measure system identification, and return lines of the table that `onepass bench` prints."""
    lines = []
    for name, options in (("noise estimated", {}), ("noise known", {"nu": 1.0})):
        step, floor = step_microseconds(**options)
        what = f"a step of identification, n=20 m=10, {name}"
        lines.append((what, step, "us", step / floor, "times a solve and an append (bar 1.5)"))
    return lines
