"""A local Ray cluster for tests, with a token. Its workers find the helpers of the tests."""

import logging
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from patience import until

TOKEN = secrets.token_hex(32)  # one per process, because Ray keeps the first token of a process


@contextmanager
def local_ray() -> Iterator[Any]:
    """Give the package `ray`, connected to a cluster that ends with the context."""
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", TOKEN)
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        import ray

        ray.init(
            "local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR
        )  # never a cluster that is already running
        try:
            yield ray
        finally:
            ray.shutdown()


def kill(ray: Any, actor: Any) -> None:
    """Kill an actor, and wait until it has ended: Ray only asks for it, and a busy machine may take its time."""
    ray.kill(actor)
    until(lambda: _has_ended(ray, actor))


def _has_ended(ray: Any, actor: Any) -> bool:
    try:
        ray.get(actor.__ray_ready__.remote())
    except ray.exceptions.RayActorError:
        return True
    return False
