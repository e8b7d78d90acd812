"""Online kernel learners: f(x) = w^T phi(x), learned one example at a time, on a budget B.

| class | holds | an example | source |
| --- | --- | --- | --- |
| `KOGD` | all n examples that it learned from | O(n d) | Kivinen et al. 2004 |
| `RBP` | B examples | O(B d) | Cavallanti et al. 2007 |
| `BPAS` | B examples | O(B d) | Wang and Vucetic 2010 |
| `BOGD` | B examples | O(B d) | Zhao et al. 2012 |
| `Projectron`, `++` | B examples, a B x B root | O(B d + B^2) | Orabona et al. 2009 |
| `FORKS` | s_m landmarks and a k x k inverse | O(s_m (d + k) + k^2) | P4 |
"""
