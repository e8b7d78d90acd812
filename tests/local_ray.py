"""A Ray of this machine for tests: its own, with a token; its workers find our helpers."""

import logging
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

TOKEN = secrets.token_hex(32)  # one a process, which remembers the first, whatever Ray it starts next


@contextmanager
def local_ray() -> Iterator[Any]:
    """The package, connected to a Ray that ends with this."""
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", TOKEN)
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        import ray

        ray.init(
            "local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR
        )  # never one that somebody else has started here
        try:
            yield ray
        finally:
            ray.shutdown()
