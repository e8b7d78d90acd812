"""Requests of a log in the form that `decide` takes: a context, and arms with their names and features.

    {"User": {...}, "_multi": [{"Action": {...}, "_tag": "a1"}, ...]}    JSON of Vowpal Wabbit and Personalizer
    {"context": {...}, "arms": [{...}, ...]}, names in `offered`         records of this package (replay_decide.py)

Tags are names of arms if every action has its own. Keys that begin with _ are no features (merge_records.py).
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from onepass.bandit.request import Request
from onepass.features.flatten import flatten_record
from onepass.features.merge_records import TEXT, merge_records
from onepass.log.records import Decision
from onepass.log.replay_decide import FACTORS, are_records

MULTI, SLOTS, TAG = "_multi", "_slots", "_tag"
ROW, PLACE = "x", "a"  # namespaces of the numbers of a row, and of an arm's place


def request_from_decision(decision: Decision) -> Request | None:
    """Return the request of a logged decision; None if contexts are rows of numbers, or do not describe the arms.

    Raises ValueError for features that contradict each other, or that cannot be flattened (`onepass.features.flatten`).
    """
    contexts, names = decision.contexts, decision.names
    if isinstance(contexts, msgspec.Raw):
        contexts = msgspec.json.decode(contexts)
    if are_records(contexts):
        context, arms = contexts["context"], contexts["arms"]
        return Request(context, arms if names is None else dict(zip(names, arms, strict=True)), decision.eligible)
    if not isinstance(contexts, dict) or contexts.keys() == FACTORS:
        return None
    actions = contexts.get(MULTI)
    if actions is None:
        count = next((len(one) for one in (decision.probabilities, names) if one is not None), 0)
        arms = list(range(count)) if names is None else names
        return Request(_check_features(contexts), arms) if arms else None
    names, features = _action_tags(actions) if names is None else names, [_check_features(action) for action in actions]
    if not any(features):
        arms = list(range(len(actions))) if names is None else names
    else:
        arms = features if names is None else dict(zip(names, features, strict=True))
    return Request(_check_features(contexts), arms)


def request_with_rows(decision: Decision) -> Request | None:
    """Return the request of a logged decision whose contexts are records or rows of numbers.

    Returns None if contexts are rows of numbers and arms have no names, or if contexts do not describe the arms.
    """
    contexts, names = decision.contexts, decision.names
    if isinstance(contexts, dict) and not are_records(contexts):
        actions = contexts.get(MULTI, [])
        rows = _numeric_rows(contexts, actions)
        if rows is None:
            return request_from_decision(decision)
        return Request(rows, (_action_tags(actions) if names is None else names) or list(range(len(actions))))
    if isinstance(contexts, list):
        plain = names is None or names == list(range(len(names)))
        return None if plain else Request(contexts, names, decision.eligible)
    return request_from_decision(decision)


def _check_features(features: dict[str, Any]) -> dict[str, Any]:
    """Return features as a record that can be flattened; raise ValueError if that is impossible."""
    record = merge_records([features])
    flatten_record(record)
    return record


def _action_tags(actions: Sequence[Any]) -> list[str] | None:
    """Return the tags of actions as names; None unless every action has its own."""
    tags = [action.get(TAG) for action in actions]
    known = all(isinstance(tag, str) and tag for tag in tags) and len(set(tags)) == len(tags)
    return tags if known else None


def adopt_decision(decision: Decision) -> Decision:
    """Convert a logged decision of another system to the form of onepass, so that models can learn and repeat it.

    Its features are plain data. Rows of numbers that `json_from_decision` wrote become rows again. Features of slots
    are kept in `extra`. Raises ValueError for features that contradict each other, or that cannot be flattened to
    numbers.
    """
    contexts = decision.contexts
    if not isinstance(contexts, dict) or are_records(contexts):
        return decision
    actions = contexts.get(MULTI, [])
    rows, tags = _numeric_rows(contexts, actions), _action_tags(actions)
    if rows is not None:
        offered: Any = tags if decision.offered is None else decision.offered
    else:
        request = request_from_decision(decision)
        if request is None:
            return decision
        named = isinstance(request.arms, dict)
        records = [{"arm": f"{one}"} if not isinstance(one, dict) else one for one in request.arms]
        rows = {"context": request.context, "arms": list(request.arms.values()) if named else records}
        offered = list(request.arms) if named or not isinstance(request.arms[0], dict) else decision.offered
    extra = {**(decision.extra or {}), **({SLOTS: contexts[SLOTS]} if any(contexts.get(SLOTS, ())) else {})}
    return msgspec.structs.replace(decision, contexts=rows, offered=offered, extra=extra or None)


def _numeric_rows(contexts: dict[str, Any], actions: Sequence[Any]) -> Any:
    """Return the rows of numbers that `json_from_decision` wrote: a list for every arm, or one list for the request.

    `contexts` are the features of the request and `actions` those of the arms. Returns None for other features.
    """
    shared, bare = contexts.keys() - {MULTI, SLOTS}, [action.keys() - {TAG} for action in actions]
    if not actions:
        return None
    if not shared and all(keys == {ROW} and _is_row(action[ROW]) for keys, action in zip(bare, actions, strict=True)):
        rows = [action[ROW] for action in actions]
        return rows if len({len(row) for row in rows}) == 1 else None
    places = all(
        keys == {PLACE} and action[PLACE] == {f"{at}": 1.0}
        for at, (keys, action) in enumerate(zip(bare, actions, strict=True))
    )
    return contexts[ROW] if shared == {ROW} and _is_row(contexts[ROW]) and places else None


def _is_row(value: Any) -> bool:
    """Return True for a list of numbers."""
    return isinstance(value, list) and len(value) > 0 and all(type(one) in (int, float) for one in value)


def json_from_decision(decision: Decision) -> Any:
    """Return the features of a logged decision as Vowpal Wabbit's JSON; features of other systems stay as they are.

    Rows of numbers become arrays of a namespace `x`. Arms without features get their index as a feature. Names that are
    strings become tags. Raises ValueError for features that JSON of this kind cannot hold.
    """
    contexts, names = decision.contexts, decision.offered
    count = next((len(one) for one in (decision.probabilities, names) if one is not None), None)
    slots = {SLOTS: (decision.extra or {}).get(SLOTS) or [{} for _ in decision.places]} if decision.slots else {}
    if are_records(contexts):
        shared, actions = _join_text(contexts["context"]), [_join_text(one) for one in contexts["arms"]]
    elif isinstance(contexts, dict | msgspec.Raw):
        return contexts
    elif contexts is None and count is not None:
        shared, actions = {}, [{} for _ in range(count)]
    elif isinstance(contexts, list) and contexts and isinstance(contexts[0], list) and len(contexts) == count:
        shared, actions = {}, [{ROW: row} for row in contexts]
    elif isinstance(contexts, list) and contexts and not isinstance(contexts[0], list) and count is not None:
        shared, actions = {ROW: contexts}, [{PLACE: {f"{place}": 1.0}} for place in range(count)]
    else:
        raise ValueError(f"decision {decision.id} has no features of its actions that JSON of this kind could hold")
    tags = [{TAG: name} if isinstance(name, str) else {} for name in names or [None for _ in actions]]
    return {**shared, MULTI: [{**one, **tag} for one, tag in zip(actions, tags, strict=True)], **slots}


def _join_text(record: dict[str, Any]) -> dict[str, Any]:
    """Join the words in `_text` into one string; raise ValueError for keys that have a meaning in this JSON."""
    if record.keys() & {MULTI, SLOTS, TAG}:
        raise ValueError(
            f"keys of features must not be {MULTI}, {SLOTS} or {TAG}, which are marks of this kind of JSON"
        )
    words = record.get(TEXT)
    return {**record, TEXT: " ".join(words)} if isinstance(words, list) else record
