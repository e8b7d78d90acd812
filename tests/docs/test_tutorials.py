"""The eleven tutorials: each runs from its first line to its last, and prints what it says it prints.

Two of them in `make test`; all in `make docs` and `make test-long`.
"""

import time
from pathlib import Path

import pytest

import page_doctests
from counts import LONG, repetitions
from onepass.foundation import compile_notice

DOCS = Path(__file__).parents[2] / "docs"
ALL = sorted(path.stem for path in (DOCS / "tutorials").glob("*.md"))
A_MINUTE_OF_TWO_CORES = 120.0  # seconds of processor
CHEAP = ["heavy_tails", "recommending"]  # under half a second each, with code that other tests compile


def spent():
    """Seconds of processor; in long runs with what is compiled the first time, which other tests do in `make test`."""
    return time.process_time() - (0.0 if LONG else compile_notice.compile_seconds())


@pytest.mark.parametrize("tutorial", repetitions(CHEAP, ALL))
def test_a_tutorial_runs_and_prints_what_it_shows(tutorial):
    begun = spent()
    found = page_doctests.run(DOCS / "tutorials" / f"{tutorial}.md")
    assert spent() - begun < A_MINUTE_OF_TWO_CORES
    assert found.attempted > 5
    assert found.failed == 0


def test_there_are_eleven():
    assert len(ALL) == 11


@pytest.mark.parametrize(
    ("want", "got", "same"),
    [
        ("0.46\n", "0.43\n", True),
        ("0.46\n", "0.99\n", False),
        ("12 of 'a'\n", "13 of 'b'\n", False),
        ("True\n", "False\n", False),
    ],
)
def test_figures_may_differ_a_little_and_words_may_not(want, got, same):
    assert page_doctests.NumberTolerantChecker().check_output(want, got, 0) == same
