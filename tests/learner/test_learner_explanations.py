"""Why a learner decides as it does: terms that add up to f, whatever the learner."""

import json

import numpy as np
import pytest

import onepass as op
from onepass.learner.learner import Learner
from thread_games import ASKED, DIM, LEARNERS, REWARDS, ROWS

KINDS = sorted(LEARNERS.keys() - {"classifier"})
COLUMNS = tuple(f"column {j}" for j in range(DIM))


def taught(kind, count=100):
    """After so many examples, 20 at first: some are still in their buffers then."""
    return LEARNERS[kind].make().partial_fit(ROWS[:count], REWARDS[:count])


@pytest.mark.parametrize("kind", KINDS)
def test_terms_add_up_to_f_and_nothing_changes(kind):
    for count in (5, 100):
        learner = taught(kind, count)
        before = op.to_bytes(learner)
        for x, f in zip(ASKED, learner.decision_function(ASKED), strict=True):
            found = learner.explain(x, COLUMNS)
            assert found.decision == pytest.approx(f, abs=1e-12)
            parts = [term.contribution for term in found.terms]
            assert sum(parts) == pytest.approx(f, abs=1e-9 * max(map(abs, parts)))
            assert sorted(map(abs, parts), reverse=True) == list(map(abs, parts))
        assert op.to_bytes(learner) == before


def test_an_example_held_contributes_its_weight_times_the_kernel():
    learner = op.learner.KOGD(width=2.0, step=0.3)
    learner.partial_fit(ROWS[:3], REWARDS[:3])
    weights = []
    for x, y in zip(ROWS[:3], REWARDS[:3], strict=True):  # the hinge loss: a = step y where y f < 1
        near = np.exp(-((ROWS[: len(weights)] - x) ** 2).sum(axis=1) / 8.0)
        weights.append(0.3 * y if y * (near @ np.array(weights)) < 1.0 else 0.0)
    near = np.exp(-((ROWS[:3] - ASKED[0]) ** 2).sum(axis=1) / 8.0)
    found = {term.name: term for term in learner.explain(ASKED[0]).terms}
    assert set(found) == {"example0", "example1", "example2"}
    for i, name in enumerate(sorted(found)):
        assert found[name][1:] == pytest.approx((near[i], weights[i], near[i] * weights[i]), rel=1e-12)


def test_columns_of_the_linear_part_count_from_their_means_and_say_what_a_unit_is_worth():
    learner = taught("KernelNewton")
    x = ROWS[:100].mean(axis=0)
    found = {term.name: term for term in learner.explain(x, COLUMNS).terms}
    more = learner.explain(x + 0.01 * np.eye(DIM)[2], COLUMNS)
    there = next(term for term in more.terms if term.name == COLUMNS[2])
    assert there.contribution - found[COLUMNS[2]].contribution == pytest.approx(0.01 * there.weight, rel=1e-6)
    assert {"intercept", *COLUMNS} <= set(found)
    assert abs(found[COLUMNS[2]].contribution) < 0.2 * abs(found[COLUMNS[2]].weight)


def test_a_learner_that_says_nothing_is_explained_by_its_decision_and_bad_rows_are_refused():
    learner = op.learner.FOGD(features=20)
    assert learner.explain(ASKED[0]) == (0.0, ())
    learner = taught("FOGD")
    found = learner.explain(ASKED[0])
    assert json.loads(json.dumps(found.to_dict()))["terms"] == [term._asdict() for term in found.terms]
    assert len(str(found).splitlines()) == 7
    assert found.top(2) == found.terms[:2]
    assert Learner._terms(learner, ASKED[0], COLUMNS, 0.5)[0].contribution == 0.5
    for call, says in (
        (lambda: learner.explain(ASKED[0][:3]), "must have"),
        (lambda: learner.explain(ASKED[0] * np.nan), "must be finite"),
        (lambda: learner.explain(ASKED), "x must have 1 dimension"),
        (lambda: learner.explain(ASKED[0], ["a"]), f"names must be {DIM} different strings"),
        (lambda: found.top(-1), "k must be an integer at least 0"),
    ):
        with pytest.raises(ValueError, match=says):
            call()
