"""Ray, where it is installed: `pip install onepass[ray]`. How to find it, and parts of a cluster as its actors."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from onepass.cluster.transport import LOST
from onepass.foundation import check

LOCAL = "local"  # the address that starts Ray on this machine


def import_ray() -> Any:
    """The package; ModuleNotFoundError, which names the extra, where it is not there."""
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise ModuleNotFoundError(
            "ray is missing, which more than one machine needs: pip install onepass[ray]", name="ray"
        ) from None


def connect(address: str) -> Any:
    """The package, connected: to the Ray that it has, else to the one at `address`, "local": a new one."""
    ray = import_ray()
    if not isinstance(address, str) or not address:
        raise ValueError(f'ray must be an address such as "auto", or "local", got {check.quote(address)}')
    if not ray.is_initialized():
        ray.init(address=address, include_dashboard=False if address == LOCAL else None, log_to_driver=False)
    return ray


def make_writable(value: Any) -> Any:
    """The same with arrays that may be written to: Ray's are not."""
    if isinstance(value, np.ndarray):
        return value if value.flags.writeable else value.copy()
    if isinstance(value, list):
        return [make_writable(part) for part in value]
    if isinstance(value, tuple):
        parts = [make_writable(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


class _ActorWorker:
    """A part of a cluster in a process of its own."""

    def __init__(self, part: Callable[[Any], Any], kept: Any):
        self.part = part(make_writable(kept))

    def call(self, method: str, *given: Any) -> Any:
        """Let the part do something."""
        return getattr(self.part, method)(*make_writable(given))


class RayTransport:
    """Parts as actors: each has a share of one core, so that any number fits; arrays go by Ray's store of objects."""

    def __init__(self, address: str):
        self.ray = connect(address)
        self._actor = self.ray.remote(num_cpus=0, max_restarts=0, max_task_retries=0)(_ActorWorker)

    def start(self, part: Callable[[Any], Any], kept: Any) -> Any:
        return self._actor.remote(part, kept)

    def send(self, one: Any, method: str, *given: Any) -> Any:
        return one.call.remote(method, *given)

    def gather(self, calls: list[Any]) -> list[Any]:
        out = []
        for call in calls:
            try:
                out.append(make_writable(self.ray.get(call)))
            except self.ray.exceptions.RayActorError:
                out.append(LOST)
            except self.ray.exceptions.RayTaskError as error:
                raise error.cause from None
        return out

    def stop(self, one: Any) -> None:
        self.ray.kill(one)
