"""Files that nobody wrote are answered by one ValueError, or by an owner that works: at once, in little memory."""

import time
import tracemalloc
import warnings

import numpy as np
import pytest

import onepass as op
from bad_files import craft_file, damage_file
from counts import repetitions
from saved_objects import OBJECTS, use

FILES = repetitions(400, 2_000)  # of each sort
SLACK = 3_000_000  # bytes that a load may take beside twice its file: imports at first use, parsed parameters
SECONDS = 1.0  # of processor time
AGAIN = 4  # more loads of a file that took too much: the first may compile, or meet a collection of all garbage


@pytest.fixture(scope="module")
def whole():
    return {name: op.to_bytes(make()) for name, make in OBJECTS.items()}


def loaded(data):
    """What is loaded, or why not; the memory taken at most and the processor time."""
    tracemalloc.reset_peak()
    before, began = tracemalloc.get_traced_memory()[0], time.process_time()
    owner = reason = None
    try:
        owner = op.from_bytes(data)
    except ValueError as refusal:
        reason = str(refusal)
    return owner, reason, tracemalloc.get_traced_memory()[1] - before, time.process_time() - began


def answered(data):
    """Load and use it: nothing but a ValueError of one sentence, or a FloatingPointError while it is used."""
    most = 2 * len(data) + SLACK
    owner, reason, taken, seconds = loaded(data)
    for _ in range(AGAIN):
        if seconds < SECONDS and taken <= most:
            break
        owner, reason, taken, seconds = loaded(data)
    assert owner is not None or (reason and "\n" not in reason), f"not one sentence: {reason!r}"
    assert seconds < SECONDS, f"{seconds} s"
    assert taken <= most, f"{taken} bytes for a file of {len(data)}"
    if owner is not None:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                use(owner)
            except (ValueError, FloatingPointError):
                pass
            else:
                return "works"
    return "refused" if owner is None else "refuses"


def answers(make, whole, count):
    """How many files were answered in which way, and what went wrong with which."""
    names, tally, wrong = sorted(whole), {}, []
    tracemalloc.start()
    try:
        for seed in range(count):
            rng, name = np.random.default_rng([seed, count]), names[seed % len(names)]
            try:
                how = answered(make(rng, whole[name]))
                tally[how] = tally.get(how, 0) + 1
            except Exception as trouble:
                wrong.append((seed, name, f"{type(trouble).__name__}: {trouble}"[:200]))
    finally:
        tracemalloc.stop()
    return tally, wrong


def test_every_owner_comes_back_from_its_bytes_and_works(whole):
    for data in whole.values():
        assert answered_whole(data)


def answered_whole(data):
    owner = op.from_bytes(data)
    use(owner)
    return op.to_bytes(owner) != b""


def test_damaged_files_are_refused(whole):
    others = list(whole.values())
    tally, wrong = answers(lambda rng, data: damage_file(rng, data, others), whole, FILES)
    assert wrong == []
    assert tally.get("refused", 0) > 0.9 * FILES  # a piece of a file may be replaced by the same bytes


def test_crafted_files_are_refused_or_work(whole):
    tally, wrong = answers(craft_file, whole, FILES)
    assert wrong == []
    assert tally["refused"] > FILES / 2
