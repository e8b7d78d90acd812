"""Kernel bandits: the arms are fixed, and mean rewards are nonlinear functions of their features."""
