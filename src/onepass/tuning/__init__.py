"""Proposals of the next point in a unit cube, from a kernel bandit's posterior and its expected improvement.

`onepass.adapters.optuna.BanditSampler` chooses settings with them. Optuna has the search spaces, studies and pictures.
"""
