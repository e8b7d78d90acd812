"""Feature maps x -> z, which are applied before a design or a learner.

d is the width of x, D the width of z, and m the number of landmarks. The column "certificates" says if a design's error
bound still holds after the map, and "learns" if the map learns from the rows.

| map                  | z                                | a row         | certificates | learns |
| -------------------- | -------------------------------- | ------------- | ------------ | ------ |
| Identity, Intercept  | x, 1                             | nothing, O(1) | kept         | no     |
| Standardize          | (x - mean) / deviation           | O(d)          | lost         | yes    |
| GaussianProjection   | R x, random                      | O(d D)        | lost         | no     |
| Fourier              | cos and sin of W x, random       | O(d D)        | lost         | no     |
| Nystrom              | L^-1 k_S(x)                      | O(m (d + m))  | kept         | no     |
| OuterProduct         | vec(u v^T) of x = (u, v)         | O(D), or none | kept         | no     |
| Chain, Concatenate   | b(a(x)), (a(x), b(x))            | both          | if both keep | if one |
| landmarks, sketched  | Z^T k(x), for learners           | O(m (d + D))  |              |        |

Their contract is in contract.py, the base class in feature_map.py, and kernels are in kernels.py.
"""

from typing import TYPE_CHECKING

from onepass.foundation.lazy_names import make_lazy

if TYPE_CHECKING:
    from onepass.features.chain import Chain as Chain
    from onepass.features.concatenate import Concatenate as Concatenate
    from onepass.features.fourier import Fourier as Fourier
    from onepass.features.identity import Identity as Identity
    from onepass.features.intercept import Intercept as Intercept
    from onepass.features.nystrom import Nystrom as Nystrom
    from onepass.features.outer_product import OuterProduct as OuterProduct
    from onepass.features.projection import GaussianProjection as GaussianProjection
    from onepass.features.standardize import Standardize as Standardize
    from onepass.features.unit_length import UnitLength as UnitLength

__all__ = [
    "Chain",
    "Concatenate",
    "Fourier",
    "GaussianProjection",
    "Identity",
    "Intercept",
    "Nystrom",
    "OuterProduct",
    "Standardize",
    "UnitLength",
]

_MODULES = {
    "Chain": "onepass.features.chain",
    "Concatenate": "onepass.features.concatenate",
    "Fourier": "onepass.features.fourier",
    "GaussianProjection": "onepass.features.projection",
    "Identity": "onepass.features.identity",
    "Intercept": "onepass.features.intercept",
    "Nystrom": "onepass.features.nystrom",
    "OuterProduct": "onepass.features.outer_product",
    "Standardize": "onepass.features.standardize",
    "UnitLength": "onepass.features.unit_length",
}

__getattr__, __dir__ = make_lazy(__name__, _MODULES)
