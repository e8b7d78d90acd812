"""Functions are named by imperative verbs or by nouns; docstrings begin with their subject."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src" / "onepass"
WORDS = set(
    (Path(__file__).parent / "participles.txt").read_text(encoding="utf-8").split()
)  # pronouns, adverbs and prepositions, too
SHARE = 0.016  # of functions that may begin with one: adjectives of the field stay, as in `squared_loss`
OPENINGS = re.compile(r"(What|Whether|How|Who|Where|Of|From|That|Those|The same|As)\b")
OPENING_SHARE = 0.01


def functions() -> Iterator[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield path, node


def test_few_functions_are_named_by_participles_pronouns_or_adverbs() -> None:
    names = [f"{path.name}: {node.name}" for path, node in functions() if not node.name.startswith("__")]
    odd = [name for name in names if name.split(": ")[1].strip("_").split("_")[0] in WORDS]
    assert len(odd) <= SHARE * len(names), odd


def test_docstrings_begin_with_their_subject_or_verb() -> None:
    texts = [(path, ast.get_docstring(node) or "") for path, node in functions()]
    odd = [f"{path.name}: {text[:60]}" for path, text in texts if OPENINGS.match(text)]
    assert len(odd) <= OPENING_SHARE * len(texts), odd
