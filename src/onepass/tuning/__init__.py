"""The next point to try on a unit cube: a kernel bandit's posterior and its expected improvement.

`onepass.adapters.optuna.BanditSampler` chooses settings by them; Optuna has the search spaces, studies and pictures.
"""
