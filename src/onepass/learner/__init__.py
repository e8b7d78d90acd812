"""Online kernel learners: f(x) = w^T phi(x), learned one example at a time, mostly within a budget of B examples.

The table lists each class, the data it stores, the cost of an example, and the source. d is the number of columns of a
row, D the number of Fourier features, s_m the number of landmarks, k the rank of a map, and m the size of a sampled
dictionary.

| class | holds | an example | source |
| --- | --- | --- | --- |
| `KOGD` | all n examples that it learned from | O(n d) | Kivinen et al. 2004 |
| `RBP` | B examples | O(B d) | Cavallanti et al. 2007 |
| `BPAS` | B examples | O(B d) | Wang and Vucetic 2010 |
| `BOGD` | B examples | O(B d) | Zhao et al. 2012 |
| `Projectron`, `++` | B examples, a B x B root | O(B d + B^2) | Orabona et al. 2009 |
| `FOGD` | D Fourier frequencies | O(D d) | Lu et al. 2016 |
| `NOGD` | 2 B examples | O(B (d + k)) | Lu et al. 2016 |
| `SkeGD` | s_m landmarks | O(s_m (d + k)) | Zhang and Liao 2019 |
| `PROSNKONS` | m sampled examples, three m x m roots | O(m d + m^2) | Calandriello et al. 2017 |
| `FORKS` | s_m landmarks and a k x k inverse | O(s_m (d + k) + k^2) | Wen, Zhang et al. |
| `KernelNewton` | a map, a design | O(size (d + rank) + rank^2) | ours |
"""

from typing import TYPE_CHECKING

from onepass.foundation.lazy_names import make_lazy

if TYPE_CHECKING:
    from onepass.learner.bogd import BOGD as BOGD
    from onepass.learner.bpas import BPAS as BPAS
    from onepass.learner.fogd import FOGD as FOGD
    from onepass.learner.forks import FORKS as FORKS
    from onepass.learner.kogd import KOGD as KOGD
    from onepass.learner.nogd import NOGD as NOGD
    from onepass.learner.projectron import Projectron as Projectron
    from onepass.learner.pros_n_kons import PROSNKONS as PROSNKONS
    from onepass.learner.rbp import RBP as RBP
    from onepass.learner.skegd import SkeGD as SkeGD
    from onepass.learner.tisvd import TISVD as TISVD

__all__ = [
    "BOGD",
    "BPAS",
    "FOGD",
    "FORKS",
    "KOGD",
    "NOGD",
    "PROSNKONS",
    "RBP",
    "TISVD",
    "Projectron",
    "SkeGD",
]

_MODULES = {
    "BOGD": "onepass.learner.bogd",
    "BPAS": "onepass.learner.bpas",
    "FOGD": "onepass.learner.fogd",
    "FORKS": "onepass.learner.forks",
    "KOGD": "onepass.learner.kogd",
    "NOGD": "onepass.learner.nogd",
    "PROSNKONS": "onepass.learner.pros_n_kons",
    "RBP": "onepass.learner.rbp",
    "Projectron": "onepass.learner.projectron",
    "SkeGD": "onepass.learner.skegd",
    "TISVD": "onepass.learner.tisvd",
}

__getattr__, __dir__ = make_lazy(__name__, _MODULES)
