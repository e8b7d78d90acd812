"""Adapters to packages that are not installed have no examples to run; tests/adapters/test_adapters.py says what is
missing."""

from importlib.util import find_spec

# Modules of onepass.adapters, named as what they adapt.
TO_PEERS = ("coba", "gymnasium", "litellm", "mab2rec", "mabwiser", "optuna", "river")


def pytest_ignore_collect(collection_path):
    package = collection_path.stem.partition("_")[0]  # mabwiser_linear.py is a part of mabwiser.py
    adapts = collection_path.parent.name == "adapters" and package in TO_PEERS
    return True if adapts and find_spec(package) is None else None
