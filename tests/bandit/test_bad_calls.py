"""Any argument of any public thing: one clear sentence, or a working result; what is refused has changed nothing."""

import time
import warnings
from operator import attrgetter

import numpy as np
import pytest

import onepass as op
from bad_calls import GOOD, OBJECTS, PUBLIC, arguments, methods, parameters
from counts import repetitions
from onepass.foundation import compile_notice as waiting

CALLS = repetitions(2_000, 20_000)
SECONDS = 2.0  # of processor time, compilation apart
ATTEMPTS = 3  # at a call that took longer: the first may import, load compiled code, or collect all garbage
DECIDES_FIRST = {"classifier.score", "regressor.score"}  # by scikit-learn, which looks at y later; scratch changes
LONGEST = 600  # characters of a message: what is wrong, two values of 120, and the way out
REFUSALS = (ValueError, TypeError, FloatingPointError, FileNotFoundError)


@pytest.fixture(scope="module")
def whole():
    return {name: op.to_bytes(make()) for name, make in OBJECTS.items()}


def worded(refusal):
    """Whether a message is one line of moderate length; what scikit-learn checks itself is worded by it."""
    message, trace = str(refusal).strip(), refusal.__traceback__
    while trace.tb_next:
        trace = trace.tb_next
    own = "onepass" in trace.tb_frame.f_globals.get("__name__", "")
    return bool(message) and (not own or ("\n" not in message and len(message) <= LONGEST))


def outcome(function, positional, named):
    """How a call ends: "works", "refused", or what is wrong with it."""
    began = time.process_time() - waiting.compile_seconds()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(*positional, **named)
            ended = "works"
        except REFUSALS as refusal:
            ended = "refused" if worded(refusal) else f"{type(refusal).__name__}: {refusal!r}"[:2000]
        except Exception as trouble:
            ended = f"{type(trouble).__name__}: {trouble}"[:200]
    seconds = time.process_time() - waiting.compile_seconds() - began
    return ended if seconds < SECONDS else f"{ended} after {seconds:.1f} s"


def constructed(rng, whole):
    name = PUBLIC[rng.integers(len(PUBLIC))]
    function = attrgetter(name)(op)
    positional, named = arguments(rng, function)
    return name, outcome(function, positional, named), named


def written(owner):
    try:
        return op.to_bytes(owner)
    except Exception as trouble:
        return f"{type(trouble).__name__}: {trouble}"


def called(rng, whole):
    """A method of an owner, whose bytes are the same afterwards if the call is refused."""
    names = sorted(whole)
    name = names[rng.integers(len(names))]
    owner = op.from_bytes(whole[name])
    before = op.to_bytes(owner)
    found = methods(owner)
    method = found[rng.integers(len(found))]
    function = getattr(owner, method)
    positional, named = arguments(rng, function)
    ended = outcome(function, positional, named)
    first = f"{name}.{method}" in DECIDES_FIRST
    if ended == "refused" and not first and written(owner) != before:
        ended = "refused, but it has changed"
    return f"{name}.{method}", ended, named


def wrong(make, whole, count):
    tally, found = {}, []
    for seed in range(count):
        for _ in range(ATTEMPTS):
            what, ended, named = make(np.random.default_rng([seed, 7]), whole)
            if " after " not in ended:
                break
        if ended in ("works", "refused"):
            tally[ended] = tally.get(ended, 0) + 1
        else:
            found.append((seed, what, ended, {key: repr(value)[:80] for key, value in named.items()}))
    return tally, found


def test_constructors_and_functions_refuse_or_work(whole):
    tally, found = wrong(constructed, whole, CALLS // 4)
    assert found == []
    assert min(tally.values()) > CALLS / 100


def test_methods_refuse_or_work_and_what_is_refused_has_changed_nothing(whole):
    tally, found = wrong(called, whole, CALLS - CALLS // 4)
    assert found == []
    assert min(tally.values()) > CALLS / 100


LONG = [np.full((60, 60), 1.0 / 3.0), "line\n" * 10_000, list(range(10_000)), {"key": np.zeros((40, 40))}, -(10**3_000)]


@pytest.mark.parametrize("name", PUBLIC)
def test_a_long_value_of_many_lines_is_quoted_in_one_short_line(name):
    """Any one argument of any public class or function; the others are good, or left out."""
    function = attrgetter(name)(op)
    known = parameters(function)
    for parameter in known:
        for value in () if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) else LONG:
            needed = [p for p in known if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
            named = {p.name: GOOD.get(p.name, [None])[0] for p in needed}
            ended = outcome(function, [], {**named, parameter.name: value})
            assert ended.split(" after ")[0] in ("works", "refused"), (name, parameter.name, ended[:300])
