"""Hints: compiled code is specialised on the types it meets, so readers learn them from hints alone."""

import ast
from pathlib import Path

import onepass

ROOT = Path(onepass.__file__).parent
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def functions() -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Every function of the package, with the name of its file and its line."""
    return [
        (f"{path.relative_to(ROOT)}:{node.lineno}", node)
        for path in sorted(ROOT.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, FUNCTIONS)
    ]


def arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    """All arguments but self and cls."""
    given = function.args
    found = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return [one for one in found if one is not None and one.arg not in ("self", "cls")]


def test_every_argument_and_every_result_of_a_function_has_a_hint():
    bare = [f"{place} {one.arg}" for place, node in functions() for one in arguments(node) if one.annotation is None]
    bare += [f"{place} {node.name} returns" for place, node in functions() if node.returns is None]
    assert bare == []
