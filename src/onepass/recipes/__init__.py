"""The papers' names as short compositions: all arguments by keyword, all return a bandit.

`__init__.pyi` says to editors and type checkers which bandit comes back: a `SharedBandit` for parameters="shared", an
`ArmBandit` for "disjoint" and "hybrid".
"""

from onepass.recipes.drifting import WeightUCB
from onepass.recipes.generalized import GLBOMD, GLOC
from onepass.recipes.heavy_tailed import CRMM, CRTM, MENU, TOFU, HeavyOFUL, HvtUCB
from onepass.recipes.linear import OFUL, LinTS, LinUCB
from onepass.recipes.sketched import CBRAP, CBSCFD, SOFUL, DBSLinUCB, PSILinUCB
from onepass.recipes.taken import ItemModels

__all__ = [
    "CBRAP",
    "CBSCFD",
    "CRMM",
    "CRTM",
    "GLBOMD",
    "GLOC",
    "MENU",
    "OFUL",
    "SOFUL",
    "TOFU",
    "DBSLinUCB",
    "HeavyOFUL",
    "HvtUCB",
    "ItemModels",
    "LinTS",
    "LinUCB",
    "PSILinUCB",
    "WeightUCB",
]
