"""`make types`: public names whose types pyright does not know, at most EXPECTED.

This is no test of `make test`, because pyright brings node, 270 MB. Classes of scikit-learn have no types.
"""

import inspect
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import onepass

ASKED = ["--outputjson", "--ignoreexternal", "--verifytypes", "onepass"]
EXPECTED = 6  # two classes of scikit-learn, which has no types


def public_objects() -> dict[str, Any]:
    """Map every public name of `onepass` and its public submodules, as written after `onepass.`, to its object."""
    names = {name: getattr(onepass, name) for name in onepass.__all__}
    for place in onepass.SUBMODULES:
        module = getattr(onepass, place)
        names |= {f"{place}.{name}": getattr(module, name) for name in module.__all__}
    return names


def public(objects: dict[str, Any]) -> dict[str, str]:
    """Map every name under which pyright may report a symbol to its public name."""
    reported = {}
    for name, thing in objects.items():
        reported |= {f"onepass.{name}": name, f"onepass.public.{name}": name}
        if inspect.isclass(thing) or inspect.isroutine(thing):
            reported[f"{thing.__module__}.{thing.__qualname__}"] = name
    return reported


def unknown(objects: dict[str, Any]) -> Counter[str]:
    """Count the errors of pyright by public name."""
    source = str(Path(onepass.__file__).parents[1])  # pyright does not look where an editable installation points to
    report = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, *ASKED],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH"))))},
        capture_output=True,
        text=True,
    )
    names, errors = public(objects), Counter[str]()
    symbols = json.loads(report.stdout)["typeCompleteness"]["symbols"]
    if not symbols:
        sys.exit("pyright found no symbol of onepass")
    for symbol in symbols:
        path = symbol["name"]
        owner = next((name for whole, name in names.items() if path == whole or path.startswith(whole + ".")), None)
        if owner is not None:
            errors[owner] += sum(one["severity"] == "error" for one in symbol["diagnostics"])
    return +errors


if __name__ == "__main__":
    objects = public_objects()
    found = unknown(objects)
    for name, count in found.most_common():
        print(f"{count:4d}  {name}")
    print(
        f"{found.total()} of {EXPECTED} known ones,",
        f"{len(objects) - len(found)} of {len(objects)} names clean",
    )
    sys.exit(found.total() > EXPECTED)
