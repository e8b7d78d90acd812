"""A local Ray cluster for tests, with a token. Its workers find the helpers of the tests."""

import logging
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from patience import PATIENCE, until

TOKEN = secrets.token_hex(32)  # one per process, because Ray keeps the first token of a process
STARTS = 3  # Ray gives a node 30 seconds to start, on a busy machine, too
WAITS = ("worker_register_timeout_seconds", "raylet_start_wait_time_s", "gcs_server_request_timeout_seconds")


@contextmanager
def local_ray() -> Iterator[Any]:
    """Give the package `ray`, connected to a cluster that ends with the context."""
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", TOKEN)
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        for name in WAITS:
            patch.setenv(f"RAY_{name}", f"{PATIENCE:.0f}")
        import ray

        _start(ray)
        try:
            yield ray
        finally:
            ray.shutdown()


def _start(ray: Any) -> None:
    for left in reversed(range(STARTS)):
        try:
            ray.init(
                "local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR
            )  # never a cluster that is already running
        except Exception:  # Ray has no class of its own for it
            ray.shutdown()
            if not left:
                raise
        else:
            return


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
