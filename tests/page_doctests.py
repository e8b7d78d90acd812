"""Doctests of pages whose examples print figures, which may differ a little between machines."""

import doctest
import re
import sys
from pathlib import Path
from types import ModuleType

NUMBER = re.compile(r"[-+]?\d[\d_,]*\.?\d*(?:e[-+]?\d+)?")
SESSION = "a_page"  # name of the module that holds the names of a page
SHARE = 0.25  # relative tolerance: one decision rounded otherwise by another processor changes all later ones
LAST = 1.5  # units of the last digit that is printed


def are_near(want: str, got: str) -> bool:
    """Return True if a printed number is near the number on the page."""
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
    """Run the examples of a page in one session, and print failures."""
    session = ModuleType(SESSION)  # a module, so that classes of a page can be pickled
    sys.modules[SESSION] = session
    try:
        test = doctest.DocTestParser().get_doctest(page.read_text(), {}, page.name, str(page), 0)
        test.globs = session.__dict__  # set afterwards, because a doctest copies its globals
        return doctest.DocTestRunner(checker=NumberTolerantChecker(), verbose=False).run(test, clear_globs=False)
    finally:
        del sys.modules[SESSION]
