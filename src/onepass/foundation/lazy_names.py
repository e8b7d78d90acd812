"""Names of a package that are imported when they are first used, so that importing the package is fast."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def make_lazy(package: str, modules: dict[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the functions `__getattr__` and `__dir__` of a package.

    Parameters
    ----------
    package : str
        Name of the package, its `__name__`.
    modules : dict of str
        Module that defines each public name.

    Returns
    -------
    get : callable
        Imports a name, keeps it in the package and returns it; AttributeError for any other name.
    list_names : callable
        Returns the public names and the special names of the package, sorted.
    """

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package} has no attribute {name}")
        value = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def list_names() -> list[str]:
        return sorted({*modules, *(name for name in vars(sys.modules[package]) if name.startswith("__"))})

    return get, list_names
