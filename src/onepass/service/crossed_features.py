"""Loops whose requests and arms are records with arbitrary keys; the bandit is `InteractionBandit`.

    [model]
    recipe = "InteractionBandit"
    arguments = {context = {kind = "Records", size = 512, standardize = true}}     # all may be left out

Records become features by `onepass.features`. The log holds the records as they came.
"""

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

from onepass.bandit.bandit import Bandit
from onepass.features.merge_records import merge_records
from onepass.foundation.check import quote
from onepass.foundation.registry import build
from onepass.recipes.records import InteractionBandit
from onepass.service.messages import Arm, bad_argument

CROSSED = "InteractionBandit"
DEEPEST = 32  # records within records: what reads them calls itself
FEW = 2  # features of what warms a bandit


def is_crossed(recipe: str) -> bool:
    """Return True if the bandit of a recipe always takes records (dictionaries) as contexts and arms."""
    return recipe == CROSSED


def make_bandit(arguments: dict[str, Any], seed: int, outcomes: Sequence[str] = ()) -> Bandit:
    """Make the bandit of a loop whose contexts and arms are records, untrained; ValueError for invalid arguments.

    `arguments` are keyword arguments without the seed and the names of `outcomes`; components are tables with their
    kind.
    """
    given: dict[str, Any] = {name: build(value) for name, value in arguments.items()}
    return InteractionBandit(seed=seed, outcomes=[*outcomes] or None, **given)


def argument_errors(arguments: dict[str, Any], seed: int) -> Iterator[str]:
    """Yield a sentence if a bandit for records cannot be made from these arguments."""
    unknown = arguments.keys() - (inspect.signature(InteractionBandit).parameters.keys() - {"seed", "outcomes"})
    if unknown:
        yield f"model.arguments has {quote(min(unknown))}, which {CROSSED} does not know"
        return
    try:
        make_bandit(arguments, seed)
    except (ValueError, TypeError) as error:
        yield f"model.arguments: {error}"


def make_records(context: Any, arms: Sequence[str | Arm], most: int) -> dict[str, Any]:
    """Return the records of a request and of its arms, for the log and the bandit.

    A record is a dictionary of features. The result is {"context": record of the request, "arms": list of the records
    of the arms}. An arm given by its name alone has the record {"arm": name}.

    Raises ApiError for a record that is nested too deeply, or has more than `most` features.
    """
    found = [{"arm": arm} if isinstance(arm, str) else arm.features or {} for arm in arms]
    for record in (context or {}, *found):
        count = count_values(record)
        if count > most:
            raise bad_argument(
                f"a context and an arm must have at most {most} features each (limits.features), got {count}"
            )
    return {"context": context or {}, "arms": found}


def merge_features(features: list[dict[str, Any]] | None) -> dict[str, Any]:
    """Merge a list of features, as Personalizer sends them, into one record.

    Raises ValueError if a key has conflicting values.
    """
    given = features or []
    count_values(given)  # none is too deep
    return merge_records(given)


def count_values(value: Any, depth: int = 0) -> int:
    """Count the values in a record, including nested ones; raise ApiError for nesting deeper than 32.

    `depth` is the depth of `value` in the whole record, 0 for the record itself.
    """
    if depth > DEEPEST:
        raise bad_argument(f"features must not be nested more than {DEEPEST} times")
    count = 0
    for part in value.values() if isinstance(value, dict) else value:
        count += count_values(part, depth + 1) if isinstance(part, dict | list) else 1
    return count


def warm_up_contexts(names: list[str]) -> dict[str, Any]:
    """Return example records of a request and of arms with these names, in the form of `make_records`.

    A bandit decides on them once so that its code is compiled.
    """
    return make_records({"text": "warm", "number": 1.0}, names, FEW)
