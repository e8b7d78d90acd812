"""Kernel bandits: fixed arms whose mean reward is no linear function of them."""
