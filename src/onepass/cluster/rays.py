"""Ray, where it is installed: `pip install onepass[ray]`. How to find it, and parts of a cluster as its actors."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from onepass.cluster.links import LOST
from onepass.foundation import check

LOCAL = "local"  # the address that starts Ray on this machine


def found() -> Any:
    """The package; ModuleNotFoundError, which names the extra, where it is not there."""
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise ModuleNotFoundError(
            "ray is missing, which more than one machine needs: pip install onepass[ray]", name="ray"
        ) from None


def connected(address: str) -> Any:
    """The package, connected: to the Ray that it has, else to the one at `address`, "local": a new one."""
    ray = found()
    if not isinstance(address, str) or not address:
        raise ValueError(f'ray must be an address such as "auto", or "local", got {check.quote(address)}')
    if not ray.is_initialized():
        ray.init(address=address, include_dashboard=False if address == LOCAL else None, log_to_driver=False)
    return ray


def own(value: Any) -> Any:
    """The same with arrays that may be written to: Ray's are not."""
    if isinstance(value, np.ndarray):
        return value if value.flags.writeable else value.copy()
    if isinstance(value, list):
        return [own(part) for part in value]
    if isinstance(value, tuple):
        parts = [own(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


class Actor:
    """A part of a cluster in a process of its own."""

    def __init__(self, part: Callable[[Any], Any], kept: Any):
        self.part = part(own(kept))

    def do(self, method: str, *given: Any) -> Any:
        """Let the part do something."""
        return getattr(self.part, method)(*own(given))


class Actors:
    """Parts as actors: each has a share of one core, so that any number fits; arrays go by Ray's store of objects."""

    def __init__(self, address: str):
        self.ray = connected(address)
        self._actor = self.ray.remote(num_cpus=0, max_restarts=0, max_task_retries=0)(Actor)

    def begun(self, part: Callable[[Any], Any], kept: Any) -> Any:
        return self._actor.remote(part, kept)

    def send(self, one: Any, method: str, *given: Any) -> Any:
        return one.do.remote(method, *given)

    def answers(self, calls: list[Any]) -> list[Any]:
        out = []
        for call in calls:
            try:
                out.append(own(self.ray.get(call)))
            except self.ray.exceptions.RayActorError:
                out.append(LOST)
            except self.ray.exceptions.RayTaskError as error:
                raise error.cause from None
        return out

    def end(self, one: Any) -> None:
        self.ray.kill(one)
