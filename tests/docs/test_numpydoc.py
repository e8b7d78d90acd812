"""Every public object has a numpydoc docstring that agrees with its signature."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpydoc.validate

import onepass

# Checks of numpydoc that are not applied, with the reason.
DISABLED = {
    "GL01": "the summary stands beside the opening quotes, as ruff's formatter and the rest of the code have it",
    "GL02": "the closing quotes of a single sentence stand beside it",
    "GL08": "an override inherits the docstring of its contract; test_docstrings.py looks at the rest",
    "ES01": "a summary may say all there is to say",
    "SA01": "the reference pages link related objects",
    "EX01": "examples are on the pages, where each of them runs",
    "RT02": "a result may be named, as in 'beta : float'",
    "RT03": "a result whose summary says it all needs no second sentence",
    "YD01": "an iterator's summary says what it yields",
    "PR09": "a description may end with a formula or a list",
    "SS06": "ruff's D205 allows no summary of several lines",
}
# Packages whose docstrings are still written in another way: remove a line when it is done.
PENDING: tuple[str, ...] = ()
PACKAGES = [name for _, name, is_package in pkgutil.iter_modules(onepass.__path__) if is_package]


def is_ours(thing: Any) -> bool:
    return getattr(thing, "__module__", "").startswith("onepass")


def members(path: str, cls: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties that a class defines itself.

    Methods that another package adds to the class are left out, such as scikit-learn's `set_fit_request`.
    """
    for attribute, member in vars(cls).items():
        if attribute.startswith("_") or attribute in getattr(cls, "_fields", ()):
            continue
        found = getattr(cls, attribute)
        if isinstance(member, property) or (inspect.isfunction(found) and is_ours(found)):
            yield f"{path}.{attribute}", member


@cache
def public_objects() -> list[tuple[str, Any]]:
    """List (path, object) of what `onepass` and its packages export, and of the public members of classes."""
    things: dict[str, Any] = {}
    for package in ["onepass", *(f"onepass.{name}" for name in PACKAGES)]:
        module = importlib.import_module(package)
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            if is_ours(thing) and (inspect.isclass(thing) or inspect.isfunction(thing)):
                things.setdefault(f"{thing.__module__}.{thing.__qualname__}", thing)
    found = []
    for path, thing in sorted(things.items()):
        found.append((path, thing))
        if inspect.isclass(thing):
            found += members(path, thing)
    return found


def errors_of(path: str) -> list[tuple[str, str]]:
    found = numpydoc.validate.validate(path)["errors"]
    # `typing.Protocol` gives a protocol a constructor (*args, **kwargs), which nobody calls.
    is_protocol = getattr(dict(public_objects()).get(path), "_is_protocol", False)
    return [(code, text) for code, text in found if code not in DISABLED and not (is_protocol and code == "PR01")]


CHECKED = [path for path, _ in public_objects() if not path.startswith(PENDING)]


def test_public_docstrings_pass_numpydoc() -> None:
    assert len(CHECKED) > 1000
    assert {path: errors for path in CHECKED if (errors := errors_of(path))} == {}


def test_the_summary_of_a_property_has_no_colon() -> None:
    """The site would show what stands before the colon as the property's type."""
    summaries = {
        path: (inspect.getdoc(thing) or "").partition("\n\n")[0]
        for path, thing in public_objects()
        if isinstance(thing, property)
    }
    assert len(summaries) > 100
    assert [path for path, summary in summaries.items() if ":" in summary] == []
