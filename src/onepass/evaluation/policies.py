"""Policies to evaluate: action probabilities for blocks of a log.

A policy is one of:

- text: the name of an arm, "uniform", "logged", "always:ARM", or the path of a saved bandit;
- an array of probabilities (K,) or (n, K), or with slots (K, L) or (n, K, L);
- a function that returns (n, K) for the contexts (n, ...) of a block, or for its requests (n,) if features are records;
- an object whose `action_probabilities(block)` returns (n, K) (baseline_policies.py);
- a bandit, which is asked as it is and learns nothing.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from onepass.evaluation.baseline_policies import ConstantPolicy, LoggingPolicy, UniformPolicy
from onepass.evaluation.log import NUMBER, Log
from onepass.foundation import check
from onepass.foundation.check import quote

SUM = 1e-6  # how far from 1 probabilities may add up
Policy = Callable[[Log, int], np.ndarray]  # a block and the place of its first row to probabilities (n, K)


def read_policy(given: Any) -> Any:
    """Return the policy that `given`, a text or a path, describes; any other `given` is returned as it is.

    Text is "uniform", "logged", "always:ARM", the path of a saved bandit, or else the name of an arm.
    """
    if not isinstance(given, str | Path):
        return given
    text = str(given)
    if text in ("uniform", "logged"):
        return UniformPolicy() if text == "uniform" else LoggingPolicy()
    name, _, rest = text.partition(":")
    if name == "always" and rest:
        return ConstantPolicy(rest)
    if isinstance(given, Path) or Path(text).is_file():
        from onepass.foundation.files import load

        return load(given)
    return ConstantPolicy(text)


def resolve_policy(given: Any, log: Log) -> Any:
    """Return the policy that `given` describes. Text is the name of an arm of the log, or read by `read_policy`."""
    return ConstantPolicy(given) if isinstance(given, str) and given in (log.names or ()) else read_policy(given)


def has_arm(given: Any, block: Log) -> bool:
    """Return True if a part of a log has the arm that a policy always chooses, or if the policy is of another kind."""
    policy = resolve_policy(given, block)
    return not isinstance(policy, ConstantPolicy) or policy.has_arm(block)


def refuse_missing_arm(given: Any) -> None:
    """Raise ValueError for a policy that always chooses an arm that no part of a log has."""
    arm = given.arm if isinstance(given, ConstantPolicy) else given
    raise ValueError(f"policy must choose an arm of the log, got {quote(arm)}, which it does not have")


def make_policy(given: Any, log: Log) -> Policy:
    """Return the policy `given` as a function that maps a part of a log to action probabilities (n, K).

    The function takes the part and the index of its first row in the log. `given` is a policy as in `evaluate`. Raises
    ValueError if the policy is invalid, or an array has the wrong shape.
    """
    given = resolve_policy(given, log)
    if hasattr(given, "action_probabilities"):
        return lambda block, start: _check_probabilities(given.action_probabilities(block), block)
    if hasattr(given, "decide"):
        return lambda block, start: bandit_probabilities(given, block)
    if callable(given):
        return lambda block, start: _check_probabilities(given(policy_input(block)), block)
    fixed = check.array("policy", given, NUMBER, (1, 2, 3))
    by_slot = log.slots is not None and fixed.ndim > 1 and fixed.shape[-1] != log.n_arms
    rows = fixed.ndim - by_slot == 2
    if fixed.shape[int(rows)] != log.n_arms or (rows and len(fixed) != len(log)):
        raise ValueError(f"policy must have {log.n_arms} arms, and {len(log)} rows or none, got shape {fixed.shape}")

    def block_probabilities(block: Log, start: int) -> np.ndarray:
        part = fixed[start : start + len(block)] if rows else fixed[None]
        if by_slot:
            last = int(block.slots.max(initial=0))  # type: ignore[union-attr]
            if last >= part.shape[2]:
                raise ValueError(f"policy must have every slot of the log, and slot {last} is beyond {part.shape}")
            part = np.broadcast_to(part, (len(block), *part.shape[1:]))[np.arange(len(block)), :, block.slots]
        return _check_probabilities(np.broadcast_to(part, (len(block), log.n_arms)), block)

    return block_probabilities


def policy_input(block: Log) -> np.ndarray:
    """Return the contexts of a log, as a policy takes them: arrays, or the requests if contexts are dictionaries.

    Raises ValueError if the log has neither.
    """
    if block.contexts is None and block.requests is not None:
        return block.requests
    if block.contexts is None:
        raise ValueError("contexts must be in the log for a policy that looks at them; give probabilities instead")
    return block.contexts


def _check_probabilities(probabilities: Any, block: Log) -> np.ndarray:
    """Return probabilities (n, K) of a block, or raise ValueError."""
    p = check.array("policy", probabilities, NUMBER, (2,), block.n_arms)
    if len(p) != len(block) or not p.min(initial=0.0) >= 0.0 or not (abs(p.sum(1) - 1.0) <= SUM).all():  # NaN too
        raise ValueError(f"policy must give probabilities of shape ({len(block)}, {block.n_arms}), got {quote(p)}")
    return p


def policy_changes(policy: Any) -> bool:
    """Return True if a policy changes from row to row, as one that learns does, and so has a value for each row."""
    return bool(getattr(read_policy(policy), "changes", False))


def bandit_probabilities(bandit: Any, block: Log) -> np.ndarray:
    """Return the action probabilities (n, K) of a bandit for the n rows of a log.

    Decisions are made under ids of their own, so the bandit's random generator does not advance. Rows that offer the
    same arms are decided together.
    """
    if block.requests is not None:
        return _request_probabilities(bandit, block)
    contexts = policy_input(block)
    names = None if contexts.ndim == 3 else arm_names(block, bandit)
    requests = contexts if contexts.ndim == 3 else contexts[:, None]
    found = np.empty((len(block), block.n_arms))
    for among, rows in _eligible_groups(block):
        ids = [f"row {i}" for i in rows.tolist()]
        found[rows] = bandit.decide(requests[rows], names, id=ids, eligible=among).probabilities
    return found


def arm_names(block: Log, bandit: Any) -> list[Any]:
    """Return the K arms of a log by their names, or by their indices if the bandit knows arms by index only."""
    places, known = list(range(block.n_arms)), set(getattr(bandit, "arms", ()))
    by_index = block.names is None or (known and not known & set(block.names) and known & set(places))
    return places if by_index else list(block.names or ())


def _request_probabilities(bandit: Any, block: Log) -> np.ndarray:
    """Return a bandit's action probabilities (n, K) for the requests of a log, each with its own arms."""
    found = np.zeros((len(block), block.n_arms))
    for place, (context, arms, eligible) in enumerate(block.requests):  # type: ignore[arg-type]
        p = bandit.decide(context, arms, id=f"row {place}", eligible=eligible).probabilities
        found[place, : len(p)] = p
    return found


def reads_contexts(policy: Any) -> bool:
    """Return True if a policy needs the contexts of a log, and not only the arms on offer."""
    policy = read_policy(policy)
    return (
        hasattr(policy, "bandit")
        or hasattr(policy, "decide")
        or hasattr(policy, "function")
        or (callable(policy) and not hasattr(policy, "action_probabilities"))
    )


def _eligible_groups(block: Log) -> Iterator[tuple[np.ndarray | None, np.ndarray]]:
    """Yield each set of eligible arms (K,), or None for all arms, with the rows that offer it."""
    if block.eligible is None:
        yield None, np.arange(len(block))
        return
    patterns, which = np.unique(block.eligible, axis=0, return_inverse=True)
    for place, among in enumerate(patterns):
        yield None if among.all() else among, np.flatnonzero(which == place)
