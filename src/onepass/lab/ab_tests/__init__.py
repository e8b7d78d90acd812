"""Experiments that look for the best of five arms while the level moves."""
