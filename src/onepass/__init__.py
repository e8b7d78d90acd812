"""onepass: learn to decide online, in one pass, with second-order methods whose inverse is affordable."""

import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onepass import design as design
    from onepass import estimator as estimator
    from onepass import explain as explain
    from onepass import extend as extend
    from onepass import features as features
    from onepass import learner as learner
    from onepass import model as model
    from onepass.public import *  # noqa: F403
    from onepass.public import __all__ as __all__

__version__ = "0.3.0"
SUBMODULES = (
    "design",
    "dynamics",
    "estimator",
    "explain",
    "extend",
    "features",
    "learner",
    "model",
)  # public, imported when first used

if "numba" in sys.modules:  # another one is refused at once, where that costs nothing
    import_module("onepass.foundation")


@cache
def _modules() -> dict[str, str]:
    """Map every public name to the module that defines it, as the imports of `onepass.public` say."""
    import ast

    tree = ast.parse(Path(__file__).with_name("public.py").read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: f"{node.module}" for node in imports for alias in node.names}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for, with the modules that it needs; `__all__` imports every one."""
    if name.startswith("__") and name != "__all__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in SUBMODULES:
        return import_module(f"{__name__}.{name}")
    module = _modules().get(name, "")
    found = getattr(import_module(module if module.startswith(__name__) else "onepass.public"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*__getattr__("__all__"), *(name for name in globals() if name.startswith("__"))})
