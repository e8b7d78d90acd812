"""Online kernel learners: f(x) = w^T phi(x), learned one example at a time, on a budget B.

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
