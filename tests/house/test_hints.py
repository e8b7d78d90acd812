"""Hints: compiled code is specialised on the types it meets, so readers learn them from hints alone."""

import ast
from pathlib import Path

import pytest

import onepass

ROOT = Path(onepass.__file__).parent
SHARE = 0.95


def functions(folder: str) -> list[ast.FunctionDef]:
    """Every function below a folder, or of one module."""
    paths = sorted((ROOT / folder).rglob("*.py")) or [(ROOT / folder).with_suffix(".py")]
    nodes = (node for path in paths for node in ast.walk(ast.parse(path.read_text())))
    return [node for node in nodes if isinstance(node, ast.FunctionDef)]


def arguments(function: ast.FunctionDef) -> list[ast.arg]:
    """All arguments but self and cls."""
    given = function.args
    found = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return [one for one in found if one is not None and one.arg not in ("self", "cls")]


@pytest.mark.parametrize(
    "folder", ["arena", "model/shared_loop", "design", "dynamics", "estimator", "exploration", "features"]
)
def test_at_least_95_percent_of_the_arguments_and_results_of_compiled_folders_have_hints(folder):
    found = functions(folder)
    hints = [one.annotation is not None for function in found for one in arguments(function)]
    results = [function.returns is not None for function in found]
    assert hints
    assert sum(hints) >= SHARE * len(hints)
    assert sum(results) >= SHARE * len(results)
