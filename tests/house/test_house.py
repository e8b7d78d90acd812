"""The house: imports run down a list, never in a circle, no module reads an underscore name of another one, and
no class has several base classes of ours.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import onepass

ROOT = Path(onepass.__file__).parent
# From the top: a room may import those below it. The root module is the list of public names.
ROOMS = (
    "__main__", "cli", "precompile", "lab", "cluster", "service", "", "public", "explain", "extend", "evaluation",
    "adapters", "testing", "log", "recipes", "tuning", "learner", "recommender", "bandit", "model", "arena",
    "dynamics", "estimator", "exploration", "design", "features", "client", "foundation",
)  # fmt: skip


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the package by its name below onepass, parsed."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(path.read_text())
    return found


def imported(tree: ast.Module) -> Iterator[str]:
    """Modules of the package that a module imports, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            whole = name.split(".")
            if whole[0] == "onepass":
                below = ".".join(whole[1:])
                yield below if below in modules() else ".".join(whole[1:-1])


@cache
def graph() -> dict[str, list[str]]:
    """What every module imports of the package."""
    return {name: sorted(set(imported(tree)) - {name}) for name, tree in modules().items()}


def room(module: str) -> int:
    return ROOMS.index(module.split(".")[0])


def test_every_module_stands_in_a_room_of_the_list():
    assert {name.split(".")[0] for name in modules()} == set(ROOMS)


def test_no_import_runs_up_the_list():
    assert [(a, b) for a, found in graph().items() for b in found if room(b) < room(a)] == []


def test_the_command_line_alone_imports_the_lab_and_only_when_it_is_asked():
    inside = [name for name, found in graph().items() if not name.startswith("lab") and any(map(is_lab, found))]
    assert {name.split(".")[0] for name in inside} == {"cli"}
    at_once = [
        (name, one)
        for name in inside
        for node in modules()[name].body
        for one in imported(ast.Module([node], []))
        if is_lab(one) and not isinstance(node, ast.FunctionDef | ast.ClassDef)
    ]
    assert at_once == []


def is_lab(module: str) -> bool:
    return module.split(".")[0] == "lab"


def test_modules_do_not_import_one_another_in_a_circle():
    """Modules that import nothing of ours are taken away, then those that import only such, and so on: none is left."""
    left = {name: set(found) for name, found in graph().items()}
    while free := {name for name, found in left.items() if not found & left.keys()}:
        left = {name: found for name, found in left.items() if name not in free}
    assert left == {}


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def is_abstract(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Name) and one.id == "abstractmethod" for one in getattr(node, "decorator_list", ()))


def defined(tree: ast.Module) -> set[str]:
    """Underscore names that a module sets: functions, classes, variables, attributes of its own objects.

    An abstract method and an annotation without a value set nothing: they ask another module for it.
    """
    names = set()
    bare = {node.target for node in ast.walk(tree) if isinstance(node, ast.AnnAssign) and node.value is None}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not is_abstract(node):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in bare:
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            names |= {node.attr} if node.value.id in ("self", "cls") and node not in bare else set()
    return {name for name in names if private(name)}


@cache
def own() -> dict[str, set[str]]:
    """Underscore names that every module sets."""
    return {name: defined(tree) for name, tree in modules().items()}


@cache
def ours() -> set[str]:
    return set().union(*own().values())


def foreign(name: str, tree: ast.Module) -> Iterator[str]:
    """Underscore names that a module takes from another one, by import or as an attribute of any object, `self` too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("onepass"):
            yield from (alias.name for alias in node.names if private(alias.name))
        if isinstance(node, ast.Attribute) and private(node.attr) and node.attr in ours() - own()[name]:
            yield node.attr


def test_no_module_uses_an_underscore_name_of_another_one():
    assert {name: names for name, tree in modules().items() if (names := sorted(set(foreign(name, tree))))} == {}


@cache
def classes() -> dict[str, ast.ClassDef]:
    """Every class of the package by module and name, as in "foundation.files.Owner"."""
    return {
        f"{name}.{node.name}": node
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }


def bases(name: str, node: ast.ClassDef) -> list[str]:
    """Base classes of ours of a class in a module, by module and name."""
    origins = {
        alias.asname or alias.name: f"{one.module}.{alias.name}".removeprefix("onepass.")
        for one in ast.walk(modules()[name])
        if isinstance(one, ast.ImportFrom)
        for alias in one.names
    }
    found = []
    for base in node.bases:
        first, *rest = ast.unparse(base.value if isinstance(base, ast.Subscript) else base).split(".")
        found.append(".".join([origins.get(first, f"{name}.{first}"), *rest]))
    return [one for one in found if one in classes()]


def is_contract(node: ast.ClassDef) -> bool:
    """Return whether a class is an ABC with abstract methods, whose other methods set no attribute of their own."""
    return (
        bool({"ABC", "Protocol"} & {ast.unparse(base) for base in node.bases})
        and any(map(is_abstract, node.body))
        and not any(isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store) for one in ast.walk(node))
    )


def test_no_class_has_more_than_one_base_class_of_ours_contracts_aside():
    found = {
        f"{name}.{node.name}": several
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and len(several := [base for base in bases(name, node) if not is_contract(classes()[base])]) > 1
    }
    assert found == {}


def test_no_function_stands_for_one_that_is_missing():
    """What a member must say is abstract."""
    raised = {
        name: node.lineno
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id == "NotImplementedError"
    }
    assert raised == {}


def quoting(tree: ast.Module) -> Iterator[int]:
    """Lines on which the message of an exception quotes a value by its bare repr, as long as it likes."""
    for node in ast.walk(tree):
        raised = node.exc if isinstance(node, ast.Raise) else node.value if isinstance(node, ast.Return) else None
        if isinstance(raised, ast.Call) and getattr(raised.func, "id", "").endswith("Error"):
            for part in ast.walk(raised):
                if isinstance(part, ast.FormattedValue) and part.conversion == ord("r"):
                    yield part.lineno


def test_messages_quote_values_in_one_line_and_cut_them():
    """By `check.quote`; `testing` and `lab` say more, and a missing attribute is a name."""
    apart = ("", "public", "testing", "lab")
    found = {
        name: lines
        for name, tree in modules().items()
        if name not in apart and name.split(".")[0] not in apart and (lines := list(quoting(tree)))
    }
    assert found == {}


# Classes that answer what `Bandit` answers, and why: each holds a bandit, and adds what no model can.
WRAPPERS = {
    "bandit.budgeted.Budgeted": "finds weights for a bandit's decisions, and charges what they spend",
    "bandit.list_bandit.ListBandit": "divides rewards by weights of positions, which it learns beside a bandit",
    "bandit.restart_on_change.RestartOnChange": "watches the residuals of a bandit, and begins it anew",
    "bandit.pending_rewards.PendingRewards": "keeps decisions until their deadline, then lets a bandit learn them",
    "bandit.snapshot.Snapshot": "is what a bandit knew at one moment: it never learns",
}


def test_what_a_bandit_does_is_written_once():
    for method in ("decide", "score", "learn", "recommend", "explain", "merge", "play"):
        found = {
            f"{name}.{node.name}"
            for name, tree in modules().items()
            if name.split(".")[0] in ("bandit", "model")
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
            for part in node.body
            if isinstance(part, ast.FunctionDef) and part.name == method
        }
        models = {one for one in found if method in ("merge", "play") and one.startswith("model.")}
        assert found - WRAPPERS.keys() - models == {"bandit.bandit.Bandit"}, method


def strings(tree: ast.Module) -> set[str]:
    """Names that a module gives to strings."""
    return {
        part.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        and all(
            isinstance(one, ast.Constant) and isinstance(one.value, str)
            for one in getattr(node.value, "elts", [node.value])
        )
        for target in node.targets
        for part in ast.walk(target)
        if isinstance(part, ast.Name)
    }


def compared(tree: ast.Module, names: set[str]) -> Iterator[str]:
    """Comparisons with strings, outside of what checks arguments: `check.choice`, and functions named `check_...`."""
    checks = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith(("check_", "checked_"))
    ]
    inside = {id(part) for node in checks for part in ast.walk(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare) or id(node) in inside or "check.choice" in ast.unparse(node):
            continue
        sides = [node.left, *node.comparators]
        parts = [part for side in sides for part in getattr(side, "elts", [side])]
        text = any(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in parts)
        if text or any(isinstance(part, ast.Name) and part.id in names for part in parts):
            yield f"{node.lineno}: {ast.unparse(node)}"


def test_models_and_bandits_are_not_told_apart_by_words():
    """No comparison with a string decides what is done; who is different is another class."""
    rooms = {name: tree for name, tree in modules().items() if name.split(".")[0] in ("bandit", "model")}
    names = set().union(*map(strings, rooms.values()))
    assert {name: found for name, tree in rooms.items() if (found := list(compared(tree, names)))} == {}
