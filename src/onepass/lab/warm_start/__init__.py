"""Bandits that start from a log or from a neighbour."""
