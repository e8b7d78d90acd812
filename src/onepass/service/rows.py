"""From a request to what a bandit decides on.

row of arm a = (numbers of the context, numbers of a)           (K, dim), or (dim,) where arms have no numbers

Requests whose features are records stay records (crossed_features.py).
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.foundation.check import shown
from onepass.service.crossed_features import is_crossed, records
from onepass.service.messages import Arm, DecideRequest, Numbers, wrong
from onepass.service.settings import LoopSettings, Sizes, size


class Offer(NamedTuple):
    """contexts (K, dim) or (dim,), or records; names (K,); eligible: names that may be chosen, None: all."""

    contexts: Any
    names: list[str]
    eligible: list[str] | None


def offer(request: DecideRequest, settings: LoopSettings) -> Offer:
    """What a request offers; Refused, with what is wrong."""
    limits, given = settings.limits, request.arms
    arms: list[Any] = list(settings.arms if given is None else given)
    if not 1 <= len(arms) <= limits.arms:
        raise wrong(f"arms must be from 1 to {limits.arms}, got {len(arms)}")
    names = [arm if isinstance(arm, str) else arm.id for arm in arms]
    for name in (*names, request.id, request.subject):
        if name is not None and not 1 <= len(name) <= limits.id:
            raise wrong(f"names and identities must have from 1 to {limits.id} characters, got {shown(name)}")
    if len(set(names)) != len(names):
        raise wrong("arms must name every arm once")
    eligible = None
    if request.exclude:
        unknown = set(request.exclude).difference(names)
        if unknown:
            raise wrong(f"exclude must name arms that are offered, but {shown(min(unknown))} is not")
        eligible = [name for name in names if name not in request.exclude]
    most = min(limits.slots, len(names) if eligible is None else len(eligible))
    if not 1 <= request.slots <= most:
        raise wrong(f"slots must be from 1 to {most}, as many as limits.slots and the arms left allow, "
                    f"got {request.slots}")  # fmt: skip
    if is_crossed(settings.model.recipe):
        return Offer(records(request.context, arms), names, eligible)
    return Offer(rows(request.context, arms, settings), names, eligible)


def rows(context: Numbers | None, arms: list[str | Arm], settings: LoopSettings) -> np.ndarray:
    """The rows of arms."""
    features = settings.features
    left = numbers("context", context, features.context)
    width = size(features.arms)
    if width == 0:
        for arm in arms:
            if not isinstance(arm, str) and arm.features:
                raise wrong(f"arm {shown(arm.id)} must have no features, for the settings say features.arms = 0")
        return np.array(left)
    found = np.empty((len(arms), len(left) + width))
    found[:, : len(left)] = left
    for row, arm in zip(found, arms, strict=True):
        if isinstance(arm, str):
            raise wrong(f'arm {shown(arm)} must come with its features: {{"id": ..., "features": ...}}')
        given = arm.features
        if type(given) is list and len(given) == width:  # the common case, checked at once
            row[len(left) :] = given
        else:
            row[len(left) :] = numbers(f"features of arm {shown(arm.id)}", given, features.arms)
    return found


def numbers(what: str, given: Numbers | None, sizes: Sizes) -> list[float]:
    """Numbers in their order."""
    count = size(sizes)
    if given is None:
        if count:
            raise wrong(f"{what} must be given: {count} numbers")
        return []
    if isinstance(given, dict):
        if isinstance(sizes, int):
            raise wrong(f"{what} must be a list of {count} numbers, for the settings name none")
        if not given.keys() <= set(sizes):
            unknown = next(name for name in given if name not in sizes)
            raise wrong(f"{what} has {shown(unknown)}, which the settings do not name")
        return [given.get(name, 0.0) for name in sizes]
    if len(given) != count:
        raise wrong(f"{what} must be {count} numbers, got {len(given)}")
    return given
