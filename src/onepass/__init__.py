"""onepass: learn to decide online, in one pass, with second-order methods whose inverse is affordable."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onepass.public import *  # noqa: F403
    from onepass.public import __all__ as __all__

__version__ = "0.2.0"

if "numba" in sys.modules:  # another one is refused at once, where that costs nothing
    import_module("onepass.foundation")


def __getattr__(name: str) -> Any:
    """All names are imported when the first of them is asked for: `onepass.client` needs none of them."""
    if name.startswith("__") and name != "__all__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    public = import_module("onepass.public")
    globals().update({each: vars(public)[each] for each in ("__all__", *public.__all__) if each in vars(public)})
    return globals()[name] if name in globals() else getattr(public, name)


def __dir__() -> list[str]:
    return sorted({*__getattr__("__all__"), *(name for name in globals() if name.startswith("__"))})
