"""Estimators on a design, which learn a parameter from rows x and rewards r.

d is the dimension, t the number of rows so far, and r in the table the number of repeats.

| estimator         | in                        | reward noise           | a round, beside the design | memory  |
| ----------------- | ------------------------- | ---------------------- | -------------------------- | ------- |
| Ridge             | OFUL and most others      | sub-Gaussian           | O(d)                       | O(d)    |
| OnlineNewton      | any sketch, more robustly | sub-Gaussian           | one solve                  | O(d)    |
| OnePassHuber      | Hvt-UCB (Wang et al.)     | heavy tails            | one solve                  | O(d)    |
| AdaptiveHuber     | HEAVY-OFUL                | heavy tails            | O(t d), several passes     | O(t d)  |
| OnePassTruncation | CRTM                      | rewards of known moment | one solve                 | O(d)    |
| TruncatedRidge    | TOFU                      | rewards of known moment | O(t d^2 + d^3)            | O(t d)  |
| OnePassMedian     | CRMM, arms fixed          | symmetric heavy tails  | one solve every r rounds   | O(d)    |
| OnePassGLM        | GLB-OMD                   | clicks, counts         | one solve                  | O(d)    |
| RegressedGLM      | GLOC                      | clicks, counts         | one solve                  | O(d)    |
| OfflineGLM        | the reference of these    | clicks, counts         | O(t d^2 + d^3)             | O(t d)  |
| MedianOfMeans     | MENU, arms fixed          | heavy tails            | O(r^2 d) every r rounds    | O(r d)  |
"""

from typing import TYPE_CHECKING

from onepass.foundation.lazy_names import make_lazy

if TYPE_CHECKING:
    from onepass.estimator.adaptive_huber import AdaptiveHuber as AdaptiveHuber
    from onepass.estimator.gloc import RegressedGLM as RegressedGLM
    from onepass.estimator.median_of_means import MedianOfMeans as MedianOfMeans
    from onepass.estimator.offline_glm import OfflineGLM as OfflineGLM
    from onepass.estimator.one_pass_median import OnePassMedian as OnePassMedian
    from onepass.estimator.one_pass_truncation import OnePassTruncation as OnePassTruncation
    from onepass.estimator.truncated_ridge import TruncatedRidge as TruncatedRidge

__all__ = [
    "AdaptiveHuber",
    "MedianOfMeans",
    "OfflineGLM",
    "OnePassMedian",
    "OnePassTruncation",
    "RegressedGLM",
    "TruncatedRidge",
]

_MODULES = {
    "AdaptiveHuber": "onepass.estimator.adaptive_huber",
    "MedianOfMeans": "onepass.estimator.median_of_means",
    "OfflineGLM": "onepass.estimator.offline_glm",
    "OnePassMedian": "onepass.estimator.one_pass_median",
    "OnePassTruncation": "onepass.estimator.one_pass_truncation",
    "RegressedGLM": "onepass.estimator.gloc",
    "TruncatedRidge": "onepass.estimator.truncated_ridge",
}

__getattr__, __dir__ = make_lazy(__name__, _MODULES)
