"""`make types`: what pyright, strict about packages, does not know of the public names; as many as EXPECTED.

It is no test of `make test`: pyright brings node, 270 MB. Classes of scikit-learn have no types.
"""

import inspect
import json
import subprocess
import sys
from collections import Counter

import onepass

ASKED = ["--outputjson", "--ignoreexternal", "--verifytypes", "onepass"]
EXPECTED = 8  # classes of scikit-learn, which has no types


def public() -> dict[str, str]:
    """The public name by all names under which its symbol is reported."""
    found = {}
    for name in onepass.__all__:
        what = getattr(onepass, name)
        found |= {f"onepass.{name}": name, f"onepass.public.{name}": name}
        if inspect.isclass(what) or inspect.isroutine(what):
            found[f"{what.__module__}.{what.__qualname__}"] = name
    return found


def unknown() -> Counter[str]:
    """How many errors pyright reports, by public name."""
    told = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, *ASKED],
        capture_output=True,
        text=True,
    )
    names, errors = public(), Counter[str]()
    for symbol in json.loads(told.stdout)["typeCompleteness"]["symbols"]:
        path = symbol["name"]
        owner = next((name for whole, name in names.items() if path == whole or path.startswith(whole + ".")), None)
        if owner is not None:
            errors[owner] += sum(one["severity"] == "error" for one in symbol["diagnostics"])
    return +errors


if __name__ == "__main__":
    found = unknown()
    for name, count in found.most_common():
        print(f"{count:4d}  {name}")
    print(
        f"{found.total()} of {EXPECTED} known ones,",
        f"{len(onepass.__all__) - len(found)} of {len(onepass.__all__)} names clean",
    )
    sys.exit(found.total() > EXPECTED)
