"""The family of designs. A design is a matrix A = reg I + sum of x x^T over rows x, stored as its inverse.

d is the dimension, l the sketch size, r the rank, and n the number of directions held by all blocks. The cost is per
row, amortized; solving costs the same.

================== ============================== ============ ========================== ==================
member             stands for                     cost a row   memory (numbers)           guarantee
================== ============================== ============ ========================== ==================
Exact              reg I + X^T X                  O(d^2)       2 d^2 + 64 d               exact; drift repaired
FrequentDirections reg I + S^T S                  O(d l)       2 l d + 8 l^2              0 <= X^T X - S^T S <= shed I
  compensation > 0 (reg + c shed) I + S^T S       O(d l)       2 l d + 8 l^2              and monotone for c = 1
Dyadic             FD blocks of l, 2 l, 4 l, ...  O(d n)       O(d n), 2 d^2 once dense   error <= 2 error
DyadicSketches     blocks of any sketch           O(d n)       O(d n), 2 d^2 at most      error <= 2 error
RandomProjection   reg I + S^T S, S = R X         O(d l^2)     2 l d                      by a probability
ProjectorSplitting L L^T, L^-1 = (I - U V^T)/√reg O(d r)       4 r d                      exact while rank <= r
================== ============================== ============ ========================== ==================

Sources: exact.py, frequent_directions.py, dyadic.py, dyadic_sketches.py, random_projection.py, projector_splitting.py.
Their common contract is in contract.py. They share subspace.py (an inverse that is dense on a subspace) and design.py
(the public class).
"""

from onepass.design import decay, dyadic_decay, dyadic_merge  # noqa: F401  # register how designs decay and blocks merge
from onepass.design.dyadic_sketches import DyadicSketches
from onepass.design.random_projection import RandomProjection

__all__ = ["DyadicSketches", "RandomProjection"]
