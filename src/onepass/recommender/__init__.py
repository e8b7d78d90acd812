"""Recommender: ranks items for users from a log of what was taken (recommender.py)."""
