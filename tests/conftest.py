"""Order of the tests: the slow ones first, so that no worker is left with one when the others have finished.

Examples of hypothesis are the same in every run, and may take as long as a loaded machine needs; `make test-long` draws
others each time.
"""

from hypothesis import settings

from counts import LONG
from onepass.foundation import cache, compilation
from onepass.foundation import compile_notice as waiting
from onepass.foundation.generic import verify_direct_calls

verify_direct_calls()

settings.register_profile("onepass", derandomize=not LONG, deadline=None, database=None)
settings.load_profile("onepass")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_sessionstart(session):
    waiting.set_quiet(True)  # tests compare what is said
    if hasattr(session.config, "workerinput"):
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if cache.count_entries(compilation.entry_suffix()) == 0:
        reporter.write_line(
            "Nothing is compiled yet: the first tests compile what they call, once for all workers (some minutes)"
        )
