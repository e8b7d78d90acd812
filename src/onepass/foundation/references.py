"""Imports of user objects by a reference of the form MODULE:NAME."""

import importlib
import sys
from pathlib import Path
from typing import Any


class NoSuchName(ValueError):
    """Error for a reference that is not of the form MODULE:NAME, or whose module has no such name."""


def import_reference(reference: str) -> Any:
    """Import an object by its reference "MODULE:NAME"; NAME may contain dots.

    MODULE may be in the current folder. Raises NoSuchName if there is no such name, ModuleNotFoundError if there is no
    such module, and whatever the module raises while it is imported.
    """
    module, _, name = reference.partition(":")
    if not module or module.startswith("."):
        raise NoSuchName(f"'{reference}' is not MODULE:NAME, with a module as Python imports it")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        if not hasattr(found, part):
            raise NoSuchName(f"the module '{module}' has no '{name}', which {reference} names")
        found = getattr(found, part)
    return found
