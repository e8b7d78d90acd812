"""What pages show of feature maps runs; the one of docs/contributing, as somebody's module, is complete."""

import doctest
import importlib
import re
from pathlib import Path

import numpy as np
import pytest

import onepass as op
from onepass.testing import check_feature_map

ROOT = Path(__file__).parents[2]


def test_the_page_on_feature_maps_runs():
    assert doctest.testfile(str(ROOT / "docs" / "feature_maps.md"), module_relative=False).failed == 0


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """The example of the page, in a file of its own."""
    page = (ROOT / "docs" / "contributing/feature_map.md").read_text()
    folder = tmp_path_factory.mktemp("theirs")
    (folder / "their_feature_map.py").write_text(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield importlib.import_module("their_feature_map")


def test_the_skeleton_keeps_the_contract_alone_and_in_compositions(theirs):
    assert "keeps the contract: 6 kinds of 40 rows" in check_feature_map(lambda: theirs.SignedRoot(dim=5))
    check_feature_map(
        lambda: op.features.Concatenate(
            op.features.Intercept(dim=4), op.features.Chain(theirs.SignedRoot(dim=4), op.features.Standardize(dim=4))
        )
    )


@pytest.mark.parametrize("parameters", ["shared", "disjoint", "hybrid"])
def test_a_bandit_behind_the_skeleton_is_one_of_roots_and_is_saved(theirs, parameters, tmp_path):
    ridge = lambda: op.Ridge(op.Exact(dim=3, reg=0.37))  # noqa: E731
    model = {"shared": ridge, "disjoint": lambda: op.Disjoint(ridge())}.get(
        parameters, lambda: op.Hybrid(shared=ridge(), arms=ridge())
    )
    rows, rng = np.random.default_rng(0).standard_normal((30, 3)), np.random.default_rng(1)
    roots, names = np.sign(rows) * np.sqrt(np.abs(rows)), None if parameters == "shared" else ["a", "b"] * 15
    bandit, plain = op.Bandit(model(), features=theirs.SignedRoot(dim=3)), op.Bandit(model())
    rewards = rng.standard_normal(30)
    bandit.learn(rows, rewards, names)
    plain.learn(roots, rewards, names)
    bandit.save(tmp_path / "bandit")
    loaded = op.load(tmp_path / "bandit")
    offered = names and ["a", "b"]
    for one in (bandit, loaded):
        np.testing.assert_allclose(one.score(rows[:2], offered), plain.score(roots[:2], offered), rtol=0.0, atol=1e-9)
    assert bandit.error_bound() == plain.error_bound() == 0.0
    assert loaded.model.features.feature_names(["a", "b", "c"]) == ("root of a", "root of b", "root of c")
