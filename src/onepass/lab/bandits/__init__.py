"""Contextual bandits: problems from data or drawn at random, heavy-tailed noise, and the named experiments."""
