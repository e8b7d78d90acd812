"""Features as Vowpal Wabbit sees them: namespaces of named numbers, from JSON and from text.

    an object is a namespace, "k": "v" the feature kv, a number k:value, true k, false and null nothing,
    an array of numbers is a namespace of its own whose features have no names, keys that begin with _ are no features

The rules are those of Vowpal Wabbit's JSON parser, in which blank, tab, | and : become _. So a decision has the same
features in JSON and in text. A key with a blank is the exception: the parser keeps it, but text cannot contain it, so
it is a different feature there.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from onepass.foundation.check import quote

DEFAULT = " "  # the namespace of what is in none
RESERVED = str.maketrans(dict.fromkeys(" \t|:\n\r", "_"))
Features = tuple[str, list[tuple[str, float]]]  # a namespace and its features, by name and value; no name: ""


def _escape(name: str) -> str:
    """Replace the characters that have a meaning in the text format by _."""
    return name.translate(RESERVED)


def namespaces(features: Any, name: str = DEFAULT) -> Iterator[Features]:
    """Yield the namespaces (named groups of features) of JSON features in their order, without empty ones.

    `name` is the namespace of features outside of any group.
    """
    own: list[tuple[str, float]] = []
    inner: list[Features] = []
    for key, value in features.items():
        if key.startswith("_"):
            if key == "_text" and isinstance(value, str):
                own += [(_escape(word), 1.0) for word in value.split(" ") if word]
        elif isinstance(value, dict):
            inner += namespaces(value, key)
        elif isinstance(value, list):
            inner += _list_namespaces(value, key)
        elif isinstance(value, bool):
            own += [(_escape(key), 1.0)] if value else []
        elif isinstance(value, str):
            own.append((_escape(key + value), 1.0))
        elif value:
            own.append((_escape(key), float(value)))
    if own:
        yield name, own
    yield from inner


def _list_namespaces(values: list[Any], name: str) -> Iterator[Features]:
    """Yield the namespaces in an array: its numbers as features without names, its objects and arrays as namespaces."""
    numbers = [("", float(value)) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    words = [(_escape(value), 1.0) for value in values if isinstance(value, str)]
    if numbers or words:
        yield name, numbers + words
    for value in values:
        if isinstance(value, dict):
            yield from namespaces(value, name)
        elif isinstance(value, list):
            yield from _list_namespaces(value, name)


def format_features(found: Iterable[Features]) -> str:
    """Format features, by namespace and name, as text of Vowpal Wabbit: `|namespace feature feature:value :value`."""
    parts = []
    for name, features in found:
        words = [each if value == 1.0 and each else f"{each}:{value!r}" for each, value in features]
        parts.append(f"|{'' if name == DEFAULT else _escape(name)} {' '.join(words)}")
    return " ".join(parts)


def parse_features(text: str) -> dict[str, Any]:
    """Parse text of Vowpal Wabbit from its first `|` on, and return {namespace: {feature: value}}.

    Features without names are an array. Raises ValueError for a number that cannot be read, and for a namespace with
    features of both kinds.
    """
    found: dict[str, Any] = {}
    for part in text.split("|")[1:]:
        head, *words = part.rstrip().split(" ") if part[:1].strip() else ["", *part.split()]
        name, _, scale = head.partition(":")
        times = parse_number(scale) if scale else 1.0
        for word in filter(None, words):
            feature, colon, value = word.partition(":")
            amount = times * (parse_number(value) if colon else 1.0)
            space = found.setdefault(name or DEFAULT, {} if feature else [])
            if isinstance(space, dict) != bool(feature):
                raise ValueError(f"namespace {quote(name)} has features with and without names")
            if feature:
                space[feature] = space.get(feature, 0.0) + amount
            else:
                space.append(amount)
    whole = found.pop(DEFAULT, {})
    return (
        {**found, **whole} if isinstance(whole, dict) and not found.keys() & whole.keys() else {**found, DEFAULT: whole}
    )


def parse_number(text: str) -> float:
    """Return the finite number that a text holds; raise ValueError for other text."""
    value = float(text)
    if value - value != 0.0:
        raise ValueError(f"{text} is not finite")
    return value
