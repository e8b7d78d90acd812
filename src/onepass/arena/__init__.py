"""The models of very many arms in a few arrays: slots (arena.py), learning, scoring, and the stores bandits use."""
