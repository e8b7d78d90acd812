"""Parts of a cluster as actors of Ray, which is optional: `pip install onepass[ray]`."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from onepass.cluster.transport import LOST
from onepass.foundation import check

LOCAL = "local"  # the address that starts Ray on this machine


def import_ray() -> Any:
    """Import and return Ray; a ModuleNotFoundError names the extra to install."""
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise ModuleNotFoundError(
            "ray is missing, which more than one machine needs: pip install onepass[ray]", name="ray"
        ) from None


def connect(address: str) -> Any:
    """Connect to Ray at `address`, or start a Ray of this machine if it is "local"; return the module `ray`.

    A process that is already connected keeps its connection.
    """
    ray = import_ray()
    if not isinstance(address, str) or not address:
        raise ValueError(f'ray must be an address such as "auto", or "local", got {check.quote(address)}')
    if not ray.is_initialized():
        ray.init(address=address, include_dashboard=False if address == LOCAL else None, log_to_driver=False)
    return ray


def make_writable(value: Any) -> Any:
    """Return the value with copies in place of its read-only arrays, which Ray hands out."""
    if isinstance(value, np.ndarray):
        return value if value.flags.writeable else value.copy()
    if isinstance(value, list):
        return [make_writable(part) for part in value]
    if isinstance(value, tuple):
        parts = [make_writable(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


class _ActorWorker:
    """Part of a cluster that runs as an actor in its own process; `part(saved)` makes it from its saved state."""

    def __init__(self, part: Callable[[Any], Any], saved: Any) -> None:
        self.part = part(make_writable(saved))

    def call(self, method: str, *args: Any) -> Any:
        """Return the result of the method named `method` of the part, called with writable copies of `args`."""
        return getattr(self.part, method)(*make_writable(args))


class RayTransport:
    """Connection to the workers of a cluster that are actors of Ray.

    `address` is the address of Ray, or "local". Actors reserve no core, so any number of them fits. Arrays travel
    through Ray's object store.
    """

    def __init__(self, address: str) -> None:
        self.ray = connect(address)
        self._actor = self.ray.remote(num_cpus=0, max_restarts=0, max_task_retries=0)(_ActorWorker)

    def start(self, part: Callable[[Any], Any], saved: Any) -> Any:
        return self._actor.remote(part, saved)

    def send(self, handle: Any, method: str, *args: Any) -> Any:
        return handle.call.remote(method, *args)

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

    def stop(self, handle: Any) -> None:
        self.ray.kill(handle)
