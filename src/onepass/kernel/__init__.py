"""Kernel bandits: rewards f(x) + noise, f a function of bounded norm in a kernel's space (or a draw of a GP).

| class | posterior | a round, A arms | memory | guarantee |
| --- | --- | --- | --- | --- |
| `GPUCB` | exact, u distinct arms played so far | O(A u) | O(A u) | exact |
| `BKB` | Nystrom features on a dictionary of m of them | O(A m) | O(A m) | variances within a constant factor |
"""
