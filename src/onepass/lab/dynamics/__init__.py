"""Worlds with a state: control of linear systems and linear Markov decision processes, under three kinds of noise."""
