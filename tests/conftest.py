"""Order of the tests: the slow ones first, so that no worker is left with one when the others have finished."""


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
