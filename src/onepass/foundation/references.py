"""Objects of users, named as MODULE:NAME."""

import importlib
import sys
from pathlib import Path
from typing import Any


class NoSuchName(ValueError):
    """A reference that is not MODULE:NAME, or whose module has no such name."""


def import_reference(reference: str) -> Any:
    """Import the object MODULE:NAME; Python finds MODULE, the current folder included, and NAME may have dots.

    NoSuchName if there is no such name, ModuleNotFoundError if there is no such module, and whatever the module raises.
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
