"""Compiled code gives the same bits wherever its arrays lie in memory.

Sums may be reassociated (foundation/generic.py), and a loop that stores as well is vectorized only where a check at run
time finds that its arrays do not overlap: beside a neighbour in memory it adds in another order. That was one update of
an arm in a million, the last bit of one coordinate, and a replay that was not the model.
"""

import ast
from pathlib import Path

import numpy as np
import pytest

import onepass as op
from onepass.foundation.compilation import NEVER_COMPILED

ROOT = Path(op.__file__).parent
WHOLE_NUMBERS = {("improve", "t"), ("improve", "p")}  # sums of integers are the same in any order
LOOPS = (ast.For, ast.While)


def names(node):
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def pairs(statement):
    """(target, value) of every assignment in a statement."""
    for target in statement.targets:
        if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
            yield from zip(target.elts, statement.value.elts, strict=True)
        elif isinstance(target, ast.Tuple):
            yield from ((one, statement.value) for one in target.elts)
        else:
            yield target, statement.value


def sums(inside, moving):
    """Names and places that a loop adds to again and again; `moving`: names that follow its variable."""
    for one in inside:
        if isinstance(one, ast.AugAssign) and not isinstance(one.value, ast.Constant | ast.Compare):
            fixed = isinstance(one.target, ast.Subscript) and not names(one.target.slice) & moving
            if fixed or isinstance(one.target, ast.Name):
                yield ast.unparse(one.target)
        elif isinstance(one, ast.Assign):
            for target, value in pairs(one):
                grows = isinstance(value, ast.BinOp) and not isinstance(value.right, ast.Constant)
                if grows and isinstance(target, ast.Name) and target.id in names(value):
                    yield target.id


def stores(inside):
    for one in inside:
        if isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Subscript):
            yield ast.unparse(one.target)
        elif isinstance(one, ast.Assign):
            yield from (ast.unparse(target) for target, _ in pairs(one) if isinstance(target, ast.Subscript))


def sums_beside_stores(function):
    """(line, sum) of every innermost loop that sums numbers and stores numbers too."""
    for loop in ast.walk(function):
        inside = (
            [one for part in getattr(loop, "body", []) for one in ast.walk(part)] if isinstance(loop, LOOPS) else []
        )
        if not inside or any(isinstance(one, LOOPS) for one in inside):
            continue
        moving = names(loop.target) if isinstance(loop, ast.For) else set()
        for one in inside:
            if isinstance(one, ast.Assign):  # what follows the variable, or what a while loop sets itself
                found = [(t.id, names(value)) for t, value in pairs(one) if isinstance(t, ast.Name)]
                moving |= {name for name, used in found if used & moving or isinstance(loop, ast.While)}
        for summed in sums(inside, moving):
            if any(stores(inside)) and (function.name, summed) not in WHOLE_NUMBERS:
                yield loop.lineno, summed


def compiled_functions(tree):
    for node in ast.walk(tree):
        said = [ast.unparse(one) for one in getattr(node, "decorator_list", [])]
        if isinstance(node, ast.FunctionDef) and any("compiled" in one or ".for_state" in one for one in said):
            yield node


def test_no_innermost_loop_of_compiled_code_sums_beside_a_store():
    looked, found = 0, []
    for path in sorted(ROOT.rglob("*.py")):
        if set(path.relative_to(ROOT).parts) & NEVER_COMPILED:
            continue
        for function in compiled_functions(ast.parse(path.read_text())):
            looked += 1
            found += [f"{path.name}:{line} {function.name}: {summed}" for line, summed in sums_beside_stores(function)]
    assert looked > 500
    assert found == []


@pytest.mark.parametrize(
    "loop",
    [
        "for j in range(n):\n  total += a[j]\n  b[j] = a[j]",
        "for j in range(n):\n  b[i] += a[i, j]",
        "for j in range(n):\n  b[j], total = a[j], total + a[j]",
    ],
)
def test_such_loops_are_found(loop):
    body = "\n ".join(loop.split("\n"))
    assert len([*sums_beside_stores(ast.parse(f"def f():\n {body}").body[0])]) >= 1


def test_an_arm_learns_the_same_bits_beside_any_neighbour_in_memory():
    rng = np.random.default_rng(0)
    rows, rewards, arms = rng.standard_normal((60, 8)), rng.standard_normal(60), rng.integers(0, 3, 60)
    seen = set()
    for _ in range(200):
        bandit = op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=8, reg=0.37))), op.UCB(0.5), seed=0)
        beside = [np.full(size, np.nan) for size in rng.integers(1, 100, 20)]  # what is free is not the same again
        for part in (slice(0, 1), slice(1, 20), slice(20, 60)):
            bandit.learn(rows[part], rewards[part], arms[part])
        seen.add(op.to_bytes(bandit))
        del beside
    assert len(seen) == 1
