"""Recipes: functions that compose a `Bandit` under the name that a paper gave it."""

from typing import TYPE_CHECKING

from onepass.foundation.lazy_names import make_lazy

if TYPE_CHECKING:
    from onepass.recipes.generalized import GLBOMD as GLBOMD
    from onepass.recipes.generalized import GLOC as GLOC
    from onepass.recipes.heavy_tailed import CRMM as CRMM
    from onepass.recipes.heavy_tailed import CRTM as CRTM
    from onepass.recipes.heavy_tailed import MENU as MENU
    from onepass.recipes.heavy_tailed import TOFU as TOFU
    from onepass.recipes.heavy_tailed import HeavyOFUL as HeavyOFUL
    from onepass.recipes.heavy_tailed import HvtUCB as HvtUCB
    from onepass.recipes.item_heads import ItemHeads as ItemHeads
    from onepass.recipes.item_models import ItemModels as ItemModels
    from onepass.recipes.kernel import BKB as BKB
    from onepass.recipes.kernel import GPUCB as GPUCB
    from onepass.recipes.linear import OFUL as OFUL
    from onepass.recipes.linear import LinTS as LinTS
    from onepass.recipes.linear import LinUCB as LinUCB
    from onepass.recipes.records import ContextualBandit as ContextualBandit
    from onepass.recipes.records import InteractionBandit as InteractionBandit
    from onepass.recipes.sketched import CBRAP as CBRAP
    from onepass.recipes.sketched import CBSCFD as CBSCFD
    from onepass.recipes.sketched import SOFUL as SOFUL
    from onepass.recipes.sketched import DBSLinUCB as DBSLinUCB
    from onepass.recipes.sketched import PSILinUCB as PSILinUCB
    from onepass.recipes.weight_ucb import WeightUCB as WeightUCB

__all__ = [
    "BKB",
    "CBRAP",
    "CBSCFD",
    "CRMM",
    "CRTM",
    "GLBOMD",
    "GLOC",
    "GPUCB",
    "MENU",
    "OFUL",
    "SOFUL",
    "TOFU",
    "ContextualBandit",
    "DBSLinUCB",
    "HeavyOFUL",
    "HvtUCB",
    "InteractionBandit",
    "ItemHeads",
    "ItemModels",
    "LinTS",
    "LinUCB",
    "PSILinUCB",
    "WeightUCB",
]

_MODULES = {
    "BKB": "onepass.recipes.kernel",
    "CBRAP": "onepass.recipes.sketched",
    "CBSCFD": "onepass.recipes.sketched",
    "CRMM": "onepass.recipes.heavy_tailed",
    "CRTM": "onepass.recipes.heavy_tailed",
    "GLBOMD": "onepass.recipes.generalized",
    "GLOC": "onepass.recipes.generalized",
    "GPUCB": "onepass.recipes.kernel",
    "MENU": "onepass.recipes.heavy_tailed",
    "OFUL": "onepass.recipes.linear",
    "SOFUL": "onepass.recipes.sketched",
    "TOFU": "onepass.recipes.heavy_tailed",
    "ContextualBandit": "onepass.recipes.records",
    "DBSLinUCB": "onepass.recipes.sketched",
    "HeavyOFUL": "onepass.recipes.heavy_tailed",
    "HvtUCB": "onepass.recipes.heavy_tailed",
    "InteractionBandit": "onepass.recipes.records",
    "ItemHeads": "onepass.recipes.item_heads",
    "ItemModels": "onepass.recipes.item_models",
    "LinTS": "onepass.recipes.linear",
    "LinUCB": "onepass.recipes.linear",
    "PSILinUCB": "onepass.recipes.sketched",
    "WeightUCB": "onepass.recipes.weight_ucb",
}

__getattr__, __dir__ = make_lazy(__name__, _MODULES)
