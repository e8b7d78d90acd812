"""help() alone suffices: every public name says what each argument is, in its own docstring."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import onepass
from onepass import recipes
from onepass.extend import Design, Estimator, FeatureMap, Model
from onepass.features import kernels
from onepass.learner import learner
from onepass.model import Budget, KernelModel


def callables(name: str, thing: Any) -> Iterator[tuple[str, Any, str]]:
    """(name, what is called, its docstring) of a function, or of a class and its public methods, inherited ones too."""
    if not inspect.isclass(thing):
        yield name, thing, inspect.getdoc(thing) or ""
        return
    fields = getattr(thing, "_fields", None)
    yield name, (lambda **kw: None) if fields else thing.__init__, inspect.getdoc(thing) or ""
    for attribute in dir(thing):
        member = inspect.getattr_static(thing, attribute)
        member = member.__func__ if isinstance(member, staticmethod | classmethod) else member
        ours = inspect.isfunction(member) and member.__module__.startswith("onepass")
        if ours and not attribute.startswith("_"):
            text = inspect.getdoc(getattr(thing, attribute)) or ""
            if issubclass(thing, Model):  # a member says what it adds to the contract, which says the rest
                text += "\n" + (inspect.getdoc(getattr(Model, attribute, None)) or "")
            yield f"{name}.{attribute}", member, text


def arguments(called: Any) -> list[str]:
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    found = inspect.signature(called).parameters.values()
    return [p.name for p in found if p.name not in ("self", "cls") and p.kind not in kinds]


NAMES = {
    name: getattr(module, name)
    for module in (onepass, *(getattr(onepass, place) for place in onepass.SUBMODULES))
    for name in module.__all__
}
PUBLIC = [entry for name, thing in NAMES.items() for entry in callables(name, thing)]


def test_every_argument_is_named_in_the_docstring() -> None:
    assert [name for name, _, text in PUBLIC if not text] == []
    unnamed = [
        f"{name}: {argument}" for name, called, text in PUBLIC for argument in arguments(called)
        if not re.search(rf"\b{argument}\b", text)
    ]  # fmt: skip
    assert unnamed == []


def test_the_field_of_every_record_is_explained() -> None:
    for name, thing in NAMES.items():
        for field in getattr(thing, "_fields", ()):
            assert re.search(rf"\b{field}s?\b", thing.__doc__), f"{name}.{field}"


@pytest.mark.parametrize("name", recipes.__all__)
def test_a_recipe_says_of_every_argument_what_it_is_its_default_and_what_comes_back(name: str) -> None:
    recipe, text = getattr(recipes, name), inspect.getdoc(getattr(recipes, name)) or ""
    for argument in inspect.signature(recipe).parameters.values():
        line = re.search(rf"^{argument.name} : .*(?:\n {{4}}.*)*", text, re.M)
        assert line, f"{name}: {argument.name}"
        if argument.default is not inspect.Parameter.empty:
            wanted = str(argument.default)
            assert wanted in line[0], f"{name}: {line[0]!r} does not say that the default is {wanted}"
    kind = inspect.signature(recipe).return_annotation
    first = getattr(kind, "__args__", (kind,))[0].__name__  # of a union
    assert re.search(rf"^Returns\n-+\n{first}\n", text, re.M)
    assert re.search(r"^Raises\n-+\nValueError\n", text, re.M)


def test_dir_shows_public_names_only() -> None:
    assert {name for name in dir(onepass) if not name.startswith("__")} == set(onepass.__all__)


FAMILIES = (
    Design, Estimator, FeatureMap, Budget,
    KernelModel, onepass.Disjoint, onepass.Hybrid, learner.Learner, kernels.Kernel,
)  # fmt: skip
CLASSES = [
    name for name, kind in NAMES.items()
    if inspect.isclass(kind) and issubclass(kind, FAMILIES) and not inspect.isabstract(kind)
]  # fmt: skip


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_says_of_every_argument_what_it_is_and_its_default(name: str) -> None:
    kind = NAMES[name]
    text = inspect.getdoc(kind) or ""
    entries = re.findall(r"^\*?((?:\w+, )*\w+) ?: (.*(?:\n {4}.*)*)", text, re.M)
    said = {argument: entry for names, entry in entries for argument in names.split(", ")}
    for argument in inspect.signature(kind).parameters.values():
        assert argument.name in said, f"{name}: {argument.name}"
        entry, default = said[argument.name], argument.default
        if default is None and ", optional" in entry.split("\n")[0]:  # numpydoc's way to say so
            continue
        if default is not inspect.Parameter.empty and not re.match(r"(of .*, )?as for `", entry):
            assert re.search(rf"\b{re.escape(str(default))}\b", entry), f"{name}: {argument.name} is {default!r}"
            assert "default" in entry, f"{name}: {argument.name}"
    assert "ValueError" in text


ARRAYS = {"rows", "contexts", "rewards", "X", "y", "x", "z", "b"}


def test_what_takes_arrays_says_their_shapes() -> None:
    taking = [(name, text) for name, called, text in PUBLIC if ARRAYS.intersection(arguments(called))]
    assert len(taking) > 100
    assert [name for name, text in taking if not re.search(r"\(\w+(, \w+)*,?\)|shapes as in the class", text)] == []
