"""Names of arms and eligible arms in a request; a name is any hashable that equals itself, and appears once."""

from collections.abc import Collection
from functools import lru_cache
from typing import Any

import numpy as np

from onepass.exploration.assignment import exclude_dead_ends, unfillable_slots
from onepass.foundation import check

PLAIN = frozenset({int, str})  # types whose values are hashable and equal themselves


def name_list(arms: Any, count: int | None = None, argument: str = "arms") -> list[Any]:
    """Return `arms` as a list of names; raise ValueError unless there are `count` of them, if a count is given.

    NumPy arrays and polars and pandas series are accepted too. `argument` is the name of the argument in the message.
    """
    try:
        names = arms.tolist() if hasattr(arms, "tolist") else list(arms)
    except TypeError:
        names = None
    if not isinstance(names, list) or isinstance(arms, str):
        raise ValueError(f"{argument} must be a sequence of names, one per row of contexts, got {check.quote(arms)}")
    if count is not None and len(names) != count:
        raise ValueError(f"{argument} must have one name per row of contexts ({count}), got {len(names)}")
    return names


def distinct_names(arms: Any, count: int | None = None) -> list[Any]:
    """Return the names of the arms on offer as a list; raise ValueError unless they are hashable and all different.

    If `count` is given, there must be as many names.
    """
    names = name_list(arms, count)
    check_hashable(names)
    if len(set(names)) != len(names):
        raise ValueError(f"arms must name every arm once, but {check.quote(first_duplicate(names))} is there twice")
    return names


def first_duplicate(names: list[Any]) -> Any:
    """Return the first name in `names` that appears a second time. Raises ValueError if there is none."""
    seen: set[Any] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    raise ValueError("every name is there once")


def check_hashable(names: list[Any]) -> None:
    """Raise ValueError unless every name is hashable and equals itself."""
    if PLAIN.issuperset(map(type, names)):
        return
    for name in names:
        try:
            hash(name)
        except TypeError:
            raise ValueError(
                f"arm must be hashable (a string, a number, a tuple of them), got {check.quote(name)}"
            ) from None
        if not _equals_itself(name):
            raise ValueError(f"arm must equal itself, got {check.quote(name)}")


def _equals_itself(name: Any) -> bool:
    """Return True if a name equals itself, which NaN and the missing value of pandas do not."""
    try:
        return bool(name == name)
    except TypeError:
        return False


@lru_cache(maxsize=16)
def full_mask(count: int) -> np.ndarray:
    """Return a read-only mask (1, K) in which all K = `count` arms are eligible."""
    return np.ones((1, count), np.bool_)


def eligible_arms(eligible: Any, names: list[Any] | None, count: int, k: int) -> np.ndarray:
    """Return the mask of eligible arms, (1, K), or (k, K) if every slot has its own.

    `eligible` is None (all arms), booleans (K,) or (k, K), or names (indices if arms have none), or k collections of
    names. K is `count`, k the number of slots, and `names` are the names of the K arms, None without names. Raises
    ValueError for names that are not on offer, for a wrong shape, if slots cannot all be filled, and for lists of
    booleans where booleans are names of arms.
    """
    if eligible is None:
        return full_mask(count)
    mask = _as_booleans(eligible, count, k)
    if mask is not None and names is not None and isinstance(eligible, list | tuple):
        _refuse_boolean_names(names)
    if mask is None:
        each = _collections(eligible, k)
        places = {name: place for place, name in enumerate(range(count) if names is None else names)}
        mask = np.zeros((len(each), count), np.bool_)
        for j, wanted in enumerate(each):
            check_hashable(wanted)
            unknown = [name for name in wanted if name not in places]
            if unknown:
                raise ValueError(f"eligible must name arms that are offered, but {check.quote(unknown[0])} is not")
            mask[j, [places[name] for name in wanted]] = True
    left = mask.sum(axis=1)
    if len(mask) == 1 and left[0] < k:
        raise ValueError(f"eligible must leave an arm for every slot ({k}), got {int(left[0])} arms")
    if len(mask) > 1 and (np.sort(left) <= np.arange(k)).any():  # else filled by taking those with fewest arms first
        _fillable(mask)
    return mask


def _refuse_boolean_names(names: list[Any]) -> None:
    """Raise ValueError if a name is a boolean: a list of booleans could be a mask or names then."""
    if any(isinstance(name, bool | np.bool_) for name in names):
        raise ValueError(
            "eligible must be a set of names or an array of bool where arms are named True or False: a list of "
            "booleans could be names or a mask"
        )


def _fillable(mask: np.ndarray) -> None:
    """Raise ValueError if slots with different eligible arms (k, K) cannot all be filled."""
    slots = np.flatnonzero(unfillable_slots(mask, np.ones(mask.shape[1], np.bool_)))
    if slots.size:
        raise ValueError(
            f"eligible must leave an arm for every slot, but slots {slots.tolist()} (from 0) have "
            f"{int(mask[slots].any(axis=0).sum())} arms between them: name more arms for them, or fill fewer slots"
        )


def eligible_places(eligible: Any, names: list[Any] | None, count: int, k: int) -> list[int]:
    """Return the indices of the arms that are eligible for the first of k slots.

    `eligible` is None (all arms), a mask, or names, as for `eligible_arms`; `count` is the number of arms. Raises
    ValueError for names that are not on offer, for a wrong shape, and if slots cannot all be filled.
    """
    mask = eligible_arms(eligible, names, count, k)
    left = mask[0].copy()
    if len(mask) > 1:
        exclude_dead_ends(mask, 0, left, np.ones(count, np.bool_))
    found: list[int] = np.flatnonzero(left).tolist()
    return found


def _as_booleans(eligible: Any, count: int, k: int) -> np.ndarray | None:
    """Return the mask (1 or k, K) of K = `count` arms if `eligible` was given as booleans, None if as names."""
    if isinstance(eligible, str) or not (hasattr(eligible, "dtype") or isinstance(eligible, list | tuple)):
        return None
    if not hasattr(eligible, "dtype"):
        flat = eligible[0] if eligible and isinstance(eligible[0], list | tuple) else eligible
        if not (flat and all(isinstance(part, bool | np.bool_) for part in flat)):
            return None
    mask = np.asarray(eligible)
    if mask.dtype != np.bool_:
        return None
    if mask.shape not in ((count,), (k, count)):
        raise ValueError(f"eligible must have shape ({count},), or ({k}, {count}) for each slot, got {mask.shape}")
    return np.ascontiguousarray(mask.reshape(-1, count))  # compiled code is called for arrays of one layout


def _collections(eligible: Any, k: int) -> list[list[Any]]:
    """Return the eligible names as one list for each slot, or as a single list for all slots."""
    names = name_list(eligible, None, "eligible")
    if not any(isinstance(part, list | set | frozenset | np.ndarray) for part in names):
        return [names]
    if len(names) != k or not all(isinstance(part, Collection) and not isinstance(part, str) for part in names):
        raise ValueError(f"eligible must be names, or one collection of names per slot ({k}), got {check.quote(names)}")
    return [list(part) for part in names]
