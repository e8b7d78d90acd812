"""Bandits beside a baseline that they must not fall far below."""
