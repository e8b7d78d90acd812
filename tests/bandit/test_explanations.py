"""Explanations of a shared model: contributions are the mean, shares the square of the width, behind every map."""

import doctest
import json
from pathlib import Path

import numpy as np
import pytest

import dense_features as dense
import onepass as op
from counts import repetitions
from onepass.testing import REGS

POINTS = np.random.default_rng(5).standard_normal((4, 5))
NAMES = ("hour", "age", "price", "rank", "load")
WIDE = op.RBF(2.0)

# a map, its formula, and the names of what an explanation speaks of
MAPS = {
    "identity": (lambda: op.features.Identity(dim=5), dense.identity, NAMES),
    "standardize": (lambda: op.features.Standardize(dim=5), dense.standardize, NAMES),
    "projection": (lambda: op.features.GaussianProjection(dim=5, size=3, seed=2), dense.projection(5, 3, 2), NAMES),
    "fourier": (
        lambda: op.features.Fourier(dim=5, size=6, length_scale=1.5, seed=3),
        dense.fourier(5, 6, 1.5, 3),
        tuple(f"frequency{j}" for j in range(3)),
    ),
    "nystrom": (
        lambda: op.features.Nystrom(POINTS, WIDE, reduced=True),
        dense.nystrom(POINTS, WIDE),
        tuple(f"landmark{j}" for j in range(4)),
    ),
    "products": (
        lambda: op.features.OuterProduct(left=2, right=3),
        dense.outer(2),
        tuple(f"{u}*{v}" for u in NAMES[:2] for v in NAMES[2:]),
    ),
    "beside": (
        lambda: op.features.Concatenate(
            op.features.Intercept(dim=5), op.features.Identity(dim=5), op.features.Identity(dim=5)
        ),
        dense.concatenate(dense.intercept, dense.concatenate(dense.identity, dense.identity)),
        (*NAMES, "intercept"),
    ),
    "standardized, then projected": (
        lambda: op.features.Chain(
            op.features.Standardize(dim=5), op.features.GaussianProjection(dim=5, size=3, seed=2)
        ),
        dense.chain(dense.standardize, dense.projection(5, 3, 2)),
        NAMES,
    ),
    "projection, then standardized": (
        lambda: op.features.Chain(
            op.features.GaussianProjection(dim=5, size=3, seed=2), op.features.Standardize(dim=3)
        ),
        dense.chain(dense.projection(5, 3, 2), dense.standardize),
        (*NAMES, "intercept"),
    ),
    "nested": (
        lambda: op.features.Concatenate(
            op.features.Intercept(dim=5),
            op.features.Chain(
                op.features.Standardize(dim=5),
                op.features.Concatenate(op.features.Nystrom(POINTS, WIDE, reduced=True), op.features.Identity(dim=5)),
            ),
            op.features.Nystrom(POINTS, WIDE, reduced=True),
        ),
        dense.concatenate(
            dense.intercept,
            dense.concatenate(
                dense.chain(dense.standardize, dense.concatenate(dense.nystrom(POINTS, WIDE), dense.identity)),
                dense.nystrom(POINTS, WIDE),
            ),
        ),
        (*NAMES, "intercept", *(f"landmark{j}{prime}" for prime in ("", "'") for j in range(4))),
    ),
}


def stream(count, seed=0):
    """Rows of several units, one column constant, and rewards."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, 5)) * [1.0, 3.0, 0.1, 1.0, 2.0] + [0.0, 5.0, 0.0, 0.0, 0.0]
    rows[:, 3] = 0.7
    return rows, np.sin(rows[:, 0]) + 0.2 * rows[:, 1] + 0.1 * rng.standard_normal(count)


def shared(name, reg=0.37, count=60, exploration=0.5):
    features = MAPS[name][0]()
    design = op.Exact(dim=features.output_dim, reg=reg)
    bandit = op.Bandit(op.Ridge(design), op.UCB(exploration), features=features)
    rows, rewards = stream(count)
    bandit.learn(rows, rewards)
    return bandit


def totals(found):
    return sum(t.contribution for t in found.terms), sum(t.share for t in found.terms)


def assert_adds_up(found, tolerance=1e-9):
    """To rounding, relative to the largest part."""
    mean, square = totals(found)
    assert abs(mean - found.mean) <= tolerance * max(abs(t.contribution) for t in found.terms)
    assert abs(square - found.width**2) <= tolerance * max(abs(t.share) for t in found.terms)


def by_name(found):
    return {term.name: term for term in found.terms}


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("name", MAPS)
def test_contributions_and_shares_add_up_to_mean_and_width_of_dense_ridge_regression(name, reg):
    bandit, formula, (rows, rewards), asked = shared(name, reg), MAPS[name][1], stream(60), stream(6, 1)[0]
    z, seen = formula(asked, rows), dense.learned(formula, rows)
    inverse = np.linalg.inv(reg * np.eye(z.shape[1]) + seen.T @ seen)
    theta = inverse @ (seen.T @ rewards)
    for arm in range(6):
        found = bandit.explain(asked, arm, names=NAMES)
        assert_adds_up(found)
        np.testing.assert_allclose(found.mean, z[arm] @ theta, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(found.width, np.sqrt(z[arm] @ inverse @ z[arm]), rtol=1e-8, atol=1e-9)
        other = int(found.difference.other)
        gap = z[arm] - z[other]
        assert_adds_up(found.difference)
        np.testing.assert_allclose(found.difference.mean, gap @ theta, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(found.difference.width, np.sqrt(gap @ inverse @ gap), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", MAPS)
def test_what_is_explained_is_what_was_decided_by(name):
    bandit, asked = shared(name), stream(6, 1)[0]
    decision = bandit.decide(asked)
    order = np.argsort(-decision.scores)
    for arm in range(6):
        found = bandit.explain(asked, arm)
        assert found.score == decision.scores[arm]
        np.testing.assert_allclose(found.mean, decision.means[arm], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.width, decision.widths[arm], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.score, found.mean + 0.5 * found.width, rtol=1e-9)
        assert found.difference.other == (order[1] if arm == order[0] else order[0])
        assert found.difference.score == decision.scores[arm] - decision.scores[found.difference.other]
    assert bandit.explain(asked).arm == decision.arm == order[0]


@pytest.mark.parametrize("name", [name for name in MAPS if name != "fourier"])
def test_weights_say_what_any_other_context_is_worth(name):
    """A weight says what a unit counts, so one explanation predicts the mean of another context from its values."""
    bandit, asked = shared(name), stream(6, 1)[0]
    mine, theirs = (bandit.explain(asked, arm, names=NAMES) for arm in (0, 1))
    here, there = by_name(mine), by_name(theirs)
    assert here.keys() == there.keys() == set(MAPS[name][2])
    for term in mine.terms:
        assert there[term.name].weight == pytest.approx(term.weight, rel=1e-12)
    moved = sum(term.weight * (there[term.name].value - term.value) for term in mine.terms)
    scale = max(abs(term.contribution) for term in mine.terms)
    assert abs(mine.mean + moved - theirs.mean) <= 1e-9 * scale


def test_a_row_contributes_parameter_times_value():
    bandit, asked = shared("identity"), stream(3, 1)[0]
    terms = by_name(bandit.explain(asked, 1, names=NAMES))
    for j, name in enumerate(NAMES):
        value, weight = asked[1, j], bandit.model.parameter[j]
        assert terms[name][:4] == ("shared", name, value, weight)
        assert terms[name].contribution == value * weight


def test_a_standardized_column_contributes_its_distance_from_its_mean():
    bandit, asked, rows = shared("standardize"), stream(3, 1)[0], stream(60)[0]
    terms = by_name(bandit.explain(asked, 1, names=NAMES))
    for j, name in enumerate(NAMES):
        assert terms[name].value == asked[1, j]
        want = terms[name].weight * (asked[1, j] - rows[:, j].mean())
        np.testing.assert_allclose(terms[name].contribution, want, rtol=1e-9, atol=1e-12)
    assert terms["rank"].weight == 0.0  # constant so far


def test_landmarks_contribute_by_their_kernel_values():
    bandit, asked = shared("nystrom"), stream(3, 1)[0]
    terms, near = by_name(bandit.explain(asked, 1)), WIDE(POINTS, asked[1:2])[:, 0]
    weights = np.linalg.solve(np.linalg.cholesky(WIDE(POINTS, POINTS)).T, bandit.model.parameter)
    for j in range(4):
        np.testing.assert_allclose(terms[f"landmark{j}"].value, near[j], rtol=1e-12)
        np.testing.assert_allclose(terms[f"landmark{j}"].contribution, near[j] * weights[j], rtol=1e-9)


def test_a_frequency_is_a_wave_of_its_angle_and_amplitude():
    features = op.features.Fourier(dim=5, size=6, length_scale=1.5, seed=3)
    W = np.random.RandomState(3).standard_normal((3, 5)) / 1.5
    bandit, asked = shared("fourier"), stream(3, 1)[0]
    z, theta = features.transform(asked[1]), bandit.model.parameter
    for j in range(3):
        term = by_name(bandit.explain(asked, 1))[f"frequency{j}"]
        phase = np.arctan2(theta[3 + j], theta[j])
        np.testing.assert_allclose(term.value, W[j] @ asked[1], rtol=1e-12)
        np.testing.assert_allclose(term.contribution, theta[j] * z[j] + theta[3 + j] * z[3 + j], rtol=1e-12)
        np.testing.assert_allclose(term.contribution, term.weight * np.cos(term.value - phase), rtol=1e-9)


class Roots(op.extend.FeatureMap):
    """A map that says nothing of explanations."""

    def __init__(self, dim):
        self.input_dim = self.output_dim = dim
        self.inner = op.features.GaussianProjection(dim=dim, size=dim)

    def begin(self, dtype):
        return self.inner.begin(dtype)


def test_a_map_that_says_nothing_is_explained_by_its_features():
    bandit = op.Bandit(op.Ridge(op.Exact(dim=5)), features=op.features.Chain(op.features.Standardize(dim=5), Roots(5)))
    bandit.learn(*stream(30))
    found = bandit.explain(stream(3)[0], 1)
    assert_adds_up(found)
    assert {term.name for term in found.terms} == {f"roots{j}" for j in range(5)}


@pytest.mark.parametrize(
    "design",
    [
        op.FrequentDirections(dim=5, size=2, reg=0.37),
        op.RobustFrequentDirections(dim=5, size=2, reg=4.0),
        op.ProjectorSplitting(dim=5, rank=2, reg=0.37),
        *repetitions([], [op.Dyadic(dim=5, size=2, error=1.0, reg=0.37), op.Exact(dim=5, reg=0.37, dtype="float32")]),
    ],
    ids=lambda d: repr(d).partition("(")[0] + str(d.dtype),
)
def test_sketched_and_short_models_are_explained_as_they_are(design):
    bandit = op.Bandit(op.Ridge(design), op.UCB(0.5))
    rows, rewards = stream(200)
    bandit.learn(rows, rewards)
    tolerance = 1e-9 if design.dtype == np.float64 else 1e-4
    asked = stream(4, 1)[0].astype(design.dtype)
    decision = bandit.decide(asked)
    for arm in range(4):
        found = bandit.explain(asked, arm)
        assert_adds_up(found, tolerance)
        assert_adds_up(found.difference, tolerance)
        np.testing.assert_allclose(found.mean, decision.means[arm], rtol=tolerance)
        np.testing.assert_allclose(found.width, decision.widths[arm], rtol=tolerance)


def test_factors_are_explained_like_the_rows_they_stand_for():
    bandit, rng = shared("products"), np.random.default_rng(3)
    user, arms = rng.standard_normal(2), rng.standard_normal((7, 3))
    rows = np.hstack([np.tile(user, (7, 1)), arms])
    found, want = (bandit.explain(contexts, 3, 5, names=NAMES) for contexts in (op.Factors(user, arms), rows))
    assert (found.terms, found.difference.terms) == (want.terms, want.difference.terms)
    np.testing.assert_allclose([found.score, found.difference.score], [want.score, want.difference.score], rtol=1e-12)
    with pytest.raises(ValueError, match=r"contexts must be those of one decision"):
        bandit.explain(op.Factors(user[None], arms), 3)


def test_nothing_changes_and_the_arms_have_names():
    bandit, asked = shared("nested"), stream(3, 1)[0]
    before = op.to_bytes(bandit)
    found = bandit.explain(asked, "b", arms=np.array(["a", "b", "c"]), names=NAMES)
    assert op.to_bytes(bandit) == before
    assert found == bandit.copy().explain(asked, "b", found.difference.other, arms=["a", "b", "c"], names=NAMES)
    alone = bandit.explain(asked[:1])
    assert (alone.arm, alone.difference) == (0, None)


def test_an_explanation_is_plain_data_and_reads_well():
    bandit, asked = shared("nested"), stream(3, 1)[0]
    found = bandit.explain(asked, ("b", 1), arms=[np.int64(4), ("b", 1), Path()], names=NAMES)
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["arm"] == ["b", 1]
    assert plain["difference"]["other"] in (4, repr(Path()))
    assert [tuple(term.values()) for term in plain["terms"]] == list(found.terms)
    sizes = [abs(term.contribution) for term in found.terms]
    assert sizes == sorted(sizes, reverse=True)
    assert found.top(2) == found.terms[:2]
    text = str(found)
    assert len(text.splitlines()) == 2 * 7
    assert "('b', 1): score" in text
    assert "('b', 1) against" in text
    assert f"the other {len(found.terms) - 5} terms" in text


def test_what_cannot_be_explained_gets_one_clear_sentence():
    bandit, asked = shared("identity"), stream(3, 1)[0]
    for call, says in (
        (lambda: bandit.explain(asked, 3), "arm must be one of the 3 arms offered, got 3"),
        (lambda: bandit.explain(asked, 0, "a"), "other must be one of the 3 arms offered, got 'a'"),
        (lambda: bandit.explain(asked, 1, 1), "other must be another arm than 1"),
        (lambda: bandit.explain(asked, names=["hour"]), "names must be 5 different strings"),
        (lambda: bandit.explain(asked[None]), "contexts must be those of one decision"),
        (lambda: bandit.explain(asked, arms=["a"]), "arms must have one name per row of contexts"),
        (lambda: bandit.explain(asked * np.nan), "contexts must be finite"),
        (lambda: bandit.explain(asked).top(-1), "k must be an integer at least 0"),
    ):
        with pytest.raises(ValueError, match=says):
            call()


@pytest.mark.parametrize("name", ["explanations", "explanations_kernels"])
def test_the_pages_on_explanations_run(name):
    page = Path(__file__).parents[2] / "docs" / f"{name}.md"
    found = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted > 0
    assert found.failed == 0
