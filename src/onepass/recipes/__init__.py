"""Recipes: functions that compose a `Bandit` under the name that a paper gave it."""

from onepass.recipes.generalized import GLBOMD, GLOC
from onepass.recipes.heavy_tailed import CRMM, CRTM, MENU, TOFU, HeavyOFUL, HvtUCB
from onepass.recipes.item_heads import ItemHeads
from onepass.recipes.item_models import ItemModels
from onepass.recipes.kernel import BKB, GPUCB
from onepass.recipes.linear import OFUL, LinTS, LinUCB
from onepass.recipes.records import ContextualBandit, InteractionBandit
from onepass.recipes.sketched import CBRAP, CBSCFD, SOFUL, DBSLinUCB, PSILinUCB
from onepass.recipes.weight_ucb import WeightUCB

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
