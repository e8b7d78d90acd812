"""One thread of linear algebra, however the tests are started, and no examples of packages that are not installed.

The matrices are small: where workers share the cores, more threads make the tests several times slower. As `make test`
does it, NumPy must find the numbers before it is imported, and so must the processes that tests start.
tests/adapters/test_adapters.py says which packages are missing.
"""

import os
from importlib.util import find_spec

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

# Modules of onepass.adapters, named as what they adapt.
TO_PEERS = ("coba", "gymnasium", "litellm", "mab2rec", "mabwiser", "optuna", "river")


def pytest_ignore_collect(collection_path):
    package = collection_path.stem.partition("_")[0]  # mabwiser_linear.py is a part of mabwiser.py
    adapts = collection_path.parent.name == "adapters" and package in TO_PEERS
    return True if adapts and find_spec(package) is None else None
