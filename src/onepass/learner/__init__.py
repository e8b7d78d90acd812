"""Online kernel learners: f(x) = w^T phi(x), learned one example at a time, on a budget.

| class | holds | an example | source |
| --- | --- | --- | --- |
| `KOGD` | every example that it learned from, n | O(n d) | Kivinen et al. 2004 |
| `FORKS` | s_m landmarks and a k x k inverse | O(s_m (d + k) + k^2) | P4 |
"""
