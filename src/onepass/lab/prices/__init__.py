"""Experiments in which a bandit chooses a number from an interval, for example a price."""
