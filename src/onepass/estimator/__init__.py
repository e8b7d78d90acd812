"""Estimators on a design, from rows x and rewards r. d: dimension, t: rows so far, r: repeats.

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
