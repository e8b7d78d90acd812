"""What every family stands on: dispatch and compilation, linear algebra, argument checks, states as trees, files."""

import numba

NUMBA = "0.68"  # as in pyproject.toml

if not numba.__version__.startswith(f"{NUMBA}."):
    raise ImportError(
        f"onepass needs numba {NUMBA}, whose internals it uses, and found {numba.__version__}: "
        f"pip install 'numba=={NUMBA}.*'"
    )
