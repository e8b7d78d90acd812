"""Conversion of a request to the contexts of a decision.

The row of an arm holds the numbers of the context, and then the numbers of the arm. Contexts are (K, dim), or (dim,) if
arms have no numbers. Requests whose features are records stay records (crossed_features.py).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from onepass.foundation.check import quote
from onepass.service.arm_table_cache import ArmTable
from onepass.service.crossed_features import make_records
from onepass.service.messages import Arm, DecideRequest, Numbers, bad_argument, check_name
from onepass.service.settings import LoopSettings, Sizes, size, takes_records


class Offer(NamedTuple):
    """Arms on offer in a request, in the form that a bandit takes.

    `contexts` is (K, dim), (dim,), or records; names (K,) are the arms. `eligible` has the names of eligible arms, or
    is None for all. `text` is the contexts as JSON, or None.
    """

    contexts: Any
    names: list[str]
    eligible: list[str] | None
    text: msgspec.Raw | None = None


def make_offer(request: DecideRequest, settings: LoopSettings) -> Offer:
    """Return the arms and contexts of a request; raise ApiError for an invalid request."""
    limits, given = settings.limits, request.arms
    arms: Any = (
        given if isinstance(given, ArmTable) else make_table(settings.arms if given is None else given, settings)
    )
    if not 1 <= len(arms) <= limits.arms:
        raise bad_argument(f"arms must be from 1 to {limits.arms}, got {len(arms)}")
    names = arms.names
    if arms.longest > limits.id or arms.shortest < 1:
        raise bad_argument(f"names of arms must have from 1 to {limits.id} characters")
    check_name("id and subject", limits.id, request.id, request.subject)
    eligible = None
    if request.exclude:
        excluded = set(request.exclude)
        unknown = excluded.difference(names)
        if unknown:
            raise bad_argument(f"exclude must name arms that are offered, but {quote(min(unknown))} is not")
        if len(request.exclude) > limits.arms:
            raise bad_argument(f"exclude must be at most {limits.arms} names (limits.arms), got {len(request.exclude)}")
        eligible = [name for name in names if name not in excluded]
    most = min(limits.slots, len(names) if eligible is None else len(eligible))
    if not 1 <= request.slots <= most:
        raise bad_argument(f"slots must be from 1 to {most}, as many as limits.slots and the arms left allow, "
                    f"got {request.slots}")  # fmt: skip
    if takes_records(settings):
        found = make_records(request.context, settings.arms if given is None else given, limits.features)
        return Offer(found, names, eligible)
    left = [float(one) for one in ordered_numbers("context", request.context, settings.features.context)]
    return Offer(arms.contexts(left), names, eligible, arms.text(left))


def make_table(arms: Sequence[str | Arm], settings: LoopSettings) -> ArmTable:
    """Make the `ArmTable` of a request's arms; raise ApiError for invalid numbers, or an arm named twice."""
    names = [arm if isinstance(arm, str) else arm.id for arm in arms]
    if len(set(names)) != len(names):
        raise bad_argument("arms must name every arm once")
    return ArmTable(names, None if takes_records(settings) else make_rows(arms, settings.features.arms))


def make_rows(arms: Sequence[str | Arm], sizes: Sizes) -> np.ndarray | None:
    """Return the features of a request's arms as an array (K, width), or None if arms have no features in this loop.

    `sizes` are the numbers of features that the settings prescribe. Raises ApiError if the features do not fit them.
    """
    width = size(sizes)
    if width == 0:
        for arm in arms:
            if not isinstance(arm, str) and arm.features:
                raise bad_argument(f"arm {quote(arm.id)} must have no features, for the settings say features.arms = 0")
        return None
    found = []
    for arm in arms:
        if isinstance(arm, str):
            raise bad_argument(f'arm {quote(arm)} must come with its features: {{"id": ..., "features": ...}}')
        given = arm.features
        if not (type(given) is list and len(given) == width):  # the common case, checked at once
            given = ordered_numbers(f"features of arm {quote(arm.id)}", given, sizes)
        found.append(given)
    return np.array(found, np.float64).reshape(len(arms), width)


def ordered_numbers(what: str, given: Numbers | None, sizes: Sizes) -> list[float]:
    """Return numbers, given by name or in order, in the order of the settings; `what` names them in errors.

    `sizes` are the names of the numbers or their count, as in the settings. Raises ApiError for other numbers.
    """
    count = size(sizes)
    if given is None:
        if count:
            raise bad_argument(f"{what} must be given: {count} numbers")
        return []
    if isinstance(given, dict):
        if isinstance(sizes, int):
            raise bad_argument(f"{what} must be a list of {count} numbers, for the settings name none")
        if not given.keys() <= set(sizes):
            unknown = next(name for name in given if name not in sizes)
            raise bad_argument(f"{what} has {quote(unknown)}, which the settings do not name")
        return [given.get(name, 0.0) for name in sizes]
    if len(given) != count:
        raise bad_argument(f"{what} must be {count} numbers, got {len(given)}")
    return given
