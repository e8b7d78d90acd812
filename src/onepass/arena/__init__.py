"""Storage of the models of very many arms in a few arrays, with learning, scoring and the stores that bandits use."""
