"""Adapters to packages that are not installed have no examples to run; tests/test_adapters.py says what is missing."""

from importlib.util import find_spec

# Modules of onepass.adapters, named as what they adapt.
TO_PEERS = ("coba", "gymnasium", "mab2rec", "mabwiser", "optuna", "river")


def pytest_ignore_collect(collection_path):
    adapts = collection_path.parent.name == "adapters" and collection_path.stem in TO_PEERS
    return True if adapts and find_spec(collection_path.stem) is None else None
