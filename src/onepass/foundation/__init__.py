"""Code that every family of components uses: dispatch, compilation, linear algebra, argument checks, states, files."""

import numba

NUMBA = "0.68"  # as in pyproject.toml

if not numba.__version__.startswith(f"{NUMBA}."):
    raise ImportError(
        f"onepass needs numba {NUMBA}, whose internals it uses, and found {numba.__version__}: "
        f"pip install 'numba=={NUMBA}.*'"
    )
