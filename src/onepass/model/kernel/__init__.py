"""Kernel bandits: rewards f(x) + noise, with f a function of bounded norm in a kernel's space (or a draw of a GP).

| class | posterior | a round, A arms | memory | guarantee |
| --- | --- | --- | --- | --- |
| `GPUCB` | exact, u distinct arms played so far | O(A u) | O(A u) | exact |
| `BKB` | Nystrom features on a dictionary of m of them | O(A m) | O(A m) | `variance_factor()`, certified at any time |

If arms change every round, the u distinct points played take the place of the A arms, and a round costs O(u m) for BKB
and O(u^2) for GP-UCB. Variances are accurate for k(x, x) / reg up to about 1e10.
"""
