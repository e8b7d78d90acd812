"""Policies to evaluate: probabilities over arms for blocks of a log.

A policy is one of: an array (K,), (n, K), or with slots (K, L) or (n, K, L) of probabilities; a function that gives
(n, K) for the contexts (n, ...) of a block; an object whose `on(block)` gives it for a block of the log
(plain_policies.py); or a bandit of ours, which is asked as it is and learns nothing.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from onepass.evaluation.log import NUMBER, Log
from onepass.foundation import check
from onepass.foundation.check import shown

SUM = 1e-6  # how far from 1 probabilities may add up
Policy = Callable[[Log, int], np.ndarray]  # a block and the place of its first row to probabilities (n, K)


def policy_of(given: Any, log: Log) -> Policy:
    """The policy as a function of blocks; ValueError for what is none, or arrays that do not fit the log."""
    if hasattr(given, "on"):
        return lambda block, start: checked(given.on(block), block)
    if hasattr(given, "decide"):
        return lambda block, start: asked(given, block)
    if callable(given):
        return lambda block, start: checked(given(contexts_of(block)), block)
    fixed = check.array("policy", given, NUMBER, (1, 2, 3))
    by_slot = log.slots is not None and fixed.ndim > 1 and fixed.shape[-1] != log.n_arms
    rows = fixed.ndim - by_slot == 2
    if fixed.shape[int(rows)] != log.n_arms or (rows and len(fixed) != len(log)):
        raise ValueError(f"policy must have {log.n_arms} arms, and {len(log)} rows or none, got shape {fixed.shape}")

    def of_block(block: Log, start: int) -> np.ndarray:
        part = fixed[start : start + len(block)] if rows else fixed[None]
        if by_slot:
            last = int(block.slots.max(initial=0))  # type: ignore[union-attr]
            if last >= part.shape[2]:
                raise ValueError(f"policy must have every slot of the log, and slot {last} is beyond {part.shape}")
            part = np.broadcast_to(part, (len(block), *part.shape[1:]))[np.arange(len(block)), :, block.slots]
        return checked(np.broadcast_to(part, (len(block), log.n_arms)), block)

    return of_block


def contexts_of(block: Log) -> np.ndarray:
    """Contexts of a block; ValueError where the log has none."""
    if block.contexts is None:
        raise ValueError("contexts must be in the log for a policy that looks at them; give probabilities instead")
    return block.contexts


def checked(probabilities: Any, block: Log) -> np.ndarray:
    """Probabilities (n, K) of a block; ValueError where they are none."""
    p = check.array("policy", probabilities, NUMBER, (2,), block.n_arms)
    if len(p) != len(block) or not p.min(initial=0.0) >= 0.0 or not (abs(p.sum(1) - 1.0) <= SUM).all():  # NaN too
        raise ValueError(f"policy must give probabilities of shape ({len(block)}, {block.n_arms}), got {shown(p)}")
    return p


def asked(bandit: Any, block: Log) -> np.ndarray:
    """What a bandit would choose: the probabilities of its decisions, for ids of its own, so that nothing changes."""
    contexts = contexts_of(block)
    ids = [f"row {i}" for i in range(len(block))]
    if contexts.ndim == 3:
        return np.stack([one.probabilities for one in bandit.decide(contexts, id=ids).each()])
    names = range(block.n_arms)
    return np.stack([bandit.decide(row, names, id=one).probabilities for row, one in zip(contexts, ids, strict=True)])
