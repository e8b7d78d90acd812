"""Conversion of a sharded bandit's arguments to changes of its journal, and back."""

import json
from typing import Any

import numpy as np

from onepass.bandit.decide import are_decisions
from onepass.cluster.journal import EMPTY, Change
from onepass.features.outer_product import Factors
from onepass.foundation.state import object_array


def encode_learn(contexts: Any, rewards: Any, arm: Any, again: bool) -> tuple[dict[str, Any], Change]:
    """Return a log entry, as options and arrays, that repeats a call of `ShardedBandit.learn`.

    `contexts`, `rewards` and `arm` are the arguments of that call, and `again` is its option `allow_repeat`.
    """
    if are_decisions(contexts):
        decisions = [
            part for batch in (contexts if isinstance(contexts, list) else [contexts]) for part in batch.split()
        ]
        paid = rewards if isinstance(contexts, list) or contexts.is_batch else [rewards]
        texts = [*(json.dumps(decision.to_dict()) for decision in decisions), json.dumps(_rewards_to_json(paid))]
        return {"again": again, "single": False}, EMPTY._replace(texts=object_array(texts))
    outer = isinstance(contexts, Factors)
    rows = np.asarray(contexts.left if outer else contexts)
    single = rows.ndim == 1
    right = np.atleast_2d(np.asarray(contexts.right, rows.dtype)) if outer else np.zeros((0, 0), rows.dtype)
    names = [arm] if single else arm.tolist() if hasattr(arm, "tolist") else list(arm)
    values = np.asarray(rewards, np.float64).reshape(-1)
    return {"again": again, "single": single}, EMPTY._replace(
        rows=np.atleast_2d(rows), right=right, rewards=values, names=object_array(names)
    )


def encode_arm(arm: Any) -> tuple[dict[str, Any], Change]:
    """Return the arm of `add_arm` or `remove_arm` as the options and the arrays of a log entry."""
    return {}, EMPTY._replace(names=object_array([arm]))


def _rewards_to_json(paid: Any) -> Any:
    """Return the rewards `paid`, a number or nested lists and arrays, as plain data that JSON can hold."""
    if hasattr(paid, "tolist"):
        return paid.tolist()
    return [_rewards_to_json(one) for one in paid] if isinstance(paid, list | tuple) else paid


def decode_contexts(change: Change, place: Any) -> Any:
    """Return contexts from the arrays `change` of a log entry: a row or rows, or `Factors` of outer products.

    `place` is the index of the row, or a slice of rows.
    """
    if change.right.shape[1]:
        return Factors(change.rows[place], change.right[place])
    return change.rows[place]
