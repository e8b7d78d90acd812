"""The examples of docs/contributing, from temporary modules of a third party: without a line changed in the package."""

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import onepass as op
from onepass.testing import check_design, check_estimator, check_exploration

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {
    "Leading": "contributing/design.md",
    "Sign": "contributing/estimator.md",
    "ByRank": "contributing/exploration_rule.md",
}
DIM = 8


def skeleton(name):
    """The block of code that defines a class, as a module that can be imported."""
    (block,) = re.findall(r"```python\n(.*?)```", (DOCS / PAGES[name]).read_text(), re.DOTALL)
    return block


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("theirs")
    for name in PAGES:
        (folder / f"their_{name.lower()}.py").write_text(skeleton(name))
    sys.path.insert(0, str(folder))
    yield [getattr(importlib.import_module(f"their_{name.lower()}"), name) for name in PAGES]
    sys.path.remove(str(folder))


def test_the_skeleton_of_a_design_keeps_the_contract(theirs):
    said = check_design(lambda dim, reg: theirs[0](dim=dim, rank=3, reg=reg))
    assert "keeps the contract: its certificate, solve" in said


def test_it_plays_shared_and_per_arm_in_one_arena_and_is_saved_and_loaded(theirs, tmp_path):
    rng = np.random.default_rng(0)
    rows, names = rng.standard_normal((90, DIM)) * 0.5 ** np.arange(DIM), [i % 3 for i in range(90)]
    estimator = op.Ridge(theirs[0](dim=DIM, rank=2, reg=0.37))
    shared, arms = op.Bandit(estimator, op.UCB(0.3)), op.Bandit(op.Disjoint(estimator), op.UCB(0.3))
    assert arms.model.estimator.compact
    separate = op.Bandit(op.Disjoint(estimator, compact=False), op.UCB(0.3))
    shared.play(rng.standard_normal((50, 4, DIM)), rng.random((50, 4)))
    for part in (slice(0, 50), *[slice(i, i + 1) for i in range(50, 90)]):
        for bandit in (arms, separate):
            bandit.learn(rows[part], rows[part, 0], names[part])
    for queries in (rows[:5, None], rows[0]):
        scores = separate.score(queries, range(4))
        np.testing.assert_allclose(arms.score(queries, range(4)), scores, atol=1e-9 * np.abs(scores).max())
    assert 0.0 < arms.error_bound() < np.inf
    for bandit in (shared, arms, separate):
        bandit.save(tmp_path / "model")
        loaded = op.load(tmp_path / "model")
        asked = (rows[:4],) if bandit is shared else (rows[0], range(4))
        np.testing.assert_array_equal(loaded.score(*asked), bandit.score(*asked))


def test_it_is_merged_within_its_certificate(theirs, tmp_path):
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((80, DIM)) * 0.4 ** np.arange(DIM)
    one, two = (theirs[0](dim=DIM, rank=2, reg=0.37).append(part) for part in (rows[:50], rows[50:]))
    one.save(tmp_path / "one")
    merged = op.load(tmp_path / "one").merge(two)
    gap = np.linalg.norm(0.37 * np.eye(DIM) + rows.T @ rows - merged.matrix(), 2)
    assert 0.0 < gap <= merged.error_bound() < np.inf


def test_the_skeleton_of_an_estimator_keeps_the_contract(theirs):
    assert "keeps the contract: games of 120 rounds" in check_estimator(lambda design: theirs[1](design))


def test_the_skeleton_of_an_exploration_rule_keeps_the_contract(theirs):
    assert "keeps the contract: probabilities of 1 to 60 arms" in check_exploration(lambda: theirs[2](0.2))


def test_it_has_the_probabilities_of_its_formula_whatever_the_model(theirs, tmp_path):
    rng, ridge = np.random.default_rng(2), op.Ridge(op.Exact(dim=3, reg=0.4))
    for model in (ridge, op.Disjoint(ridge), op.Hybrid(shared=ridge, arms=ridge)):
        bandit = op.Bandit(model, theirs[2](decay=0.5, uniform_share=0.1), seed=1)
        bandit.play(rng.standard_normal((40, 4, 3)), rng.standard_normal((40, 4)))
        decision = bandit.decide(rng.standard_normal((4, 3)), range(4), eligible=[0, 1, 3])
        means = decision.means[[0, 1, 3]]
        p = 0.5 ** np.array([(means > mean).sum() for mean in means])
        want = 0.9 * p / p.sum() + 0.1 / 3
        np.testing.assert_allclose(decision.probabilities[[0, 1, 3]], want, rtol=1e-12)
        assert decision.rule == "ByRank(decay=0.5, uniform_share=0.1)"
        bandit.save(tmp_path / "bandit")
        assert op.load(tmp_path / "bandit").exploration == bandit.exploration
