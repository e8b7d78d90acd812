"""Bandits over any model: they decide, learn, recommend, explain and are saved.

| model    | reward of arm a with context x | state                                                        |
| -------- | ------------------------------ | ------------------------------------------------------------ |
| shared   | x^T theta                      | one design: `Bandit(Ridge(design))`                          |
| disjoint | x^T theta_a                    | one per arm that has learned: `Bandit(Disjoint(Ridge(...)))` |
| hybrid   | x^T (beta + theta_a)           | both: `Bandit(Hybrid(shared=Ridge(...), arms=Ridge(...)))`   |
"""
