"""Error sentences for plain data that does not have a given type, with the nearest known name for an unknown one."""

import difflib
from collections.abc import Iterable
from typing import Any

import msgspec

AT = " - at `$"  # before the path, in a sentence of msgspec


def suggest_name(name: str, names: Iterable[str]) -> str:
    """Return a question that suggests the known name most like `name`, to be appended to a sentence; "" for none."""
    known = {each.lower(): each for each in names}
    found = difflib.get_close_matches(name.lower(), known, n=1)
    return f": did you mean {known[found[0]]!r}?" if found else ""


def type_errors(given: Any, kind: type[msgspec.Struct], path: str = "") -> tuple[list[str], dict[str, Any]]:
    """Return a sentence for every value of the wrong type, and a dictionary of the valid values.

    `given` is plain data and `kind` the struct, whose fields may be structs. `path` is the path of the data, such as
    `.features` (default: the whole).
    """
    if not isinstance(given, dict):
        return [f"Expected `object`, got `{type(given).__name__}`{AT}{path}`"], {}
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    wrong, fitting = list[str](), dict[str, Any]()
    for name, value in given.items():
        place = f"{path}.{name}"
        if name not in fields:
            end = f"{AT}{path}`" if path else ""
            wrong.append(f"Object contains unknown field `{name}`{end}{suggest_name(name, fields)}")
            continue
        part = fields[name].type
        if isinstance(part, type) and issubclass(part, msgspec.Struct):
            sentences, fitting[name] = type_errors(value, part, place)
            wrong += sentences
            continue
        try:
            fitting[name] = msgspec.to_builtins(msgspec.convert(value, part))
        except msgspec.ValidationError as error:
            text, _, deeper = str(error).partition(AT)
            wrong.append(f"{text}{AT}{place}{deeper or '`'}")
    for name, field in fields.items():
        if field.required and name not in given:
            wrong.append(f"Object missing required field `{name}`" + (f"{AT}{path}`" if path else ""))
    return wrong, fitting
