"""Pages whose examples print figures: they run as doctests do, and figures may differ a little between machines."""

import doctest
import re
import sys
from pathlib import Path
from types import ModuleType

NUMBER = re.compile(r"[-+]?\d[\d_,]*\.?\d*(?:e[-+]?\d+)?")
SESSION = "a_page"  # what the module of its names is called
SHARE = 0.25  # of a figure: one decision that another processor rounds otherwise changes all that come after it
LAST = 1.5  # units of the last digit that is printed


def are_near(want: str, got: str) -> bool:
    """Whether a number that was printed is near the one that the page shows."""
    digits = want.partition("e")[0].partition(".")[2]
    first, second = float(want.replace(",", "")), float(got.replace(",", ""))
    return abs(first - second) <= max(SHARE * abs(first), LAST * 10.0 ** -len(digits)) or first == second


class NumberTolerantChecker(doctest.OutputChecker):
    def check_output(self, want, got, optionflags):
        if super().check_output(want, got, optionflags):
            return True
        same = NUMBER.sub("#", want).split() == NUMBER.sub("#", got).split()
        return same and all(map(are_near, NUMBER.findall(want), NUMBER.findall(got)))


def run(page: Path) -> doctest.TestResults:
    """The examples of a page, one after the other, in one session; what failed is printed."""
    session = ModuleType(SESSION)  # a module, so that what a page defines can be pickled
    sys.modules[SESSION] = session
    try:
        test = doctest.DocTestParser().get_doctest(page.read_text(), {}, page.name, str(page), 0)
        test.globs = session.__dict__  # itself, for a doctest copies what it is given
        return doctest.DocTestRunner(checker=NumberTolerantChecker(), verbose=False).run(test, clear_globs=False)
    finally:
        del sys.modules[SESSION]
