"""Experiments that choose prices and other actions of an interval."""
