"""Explanations of models per arm: of every arm's own part, of what they share, and of two arms against each other."""

import numpy as np
import pytest

import dense
import onepass as op
from arm_games import DIM, LEFT, NAMES, RIGHT, data, factor_data, hybrid, learn_in_batches
from counts import LONG, pairs
from onepass.design import contract
from onepass.testing import REGS

OFFERED = [*NAMES, "new"]
COLUMNS = tuple(f"x{j}" for j in range(DIM))


def joint(reg, rows, rewards, names, shared):
    """The joint ridge regression over what is shared, where anything is, and the arms."""
    naive = dense.Hybrid(OFFERED, DIM, DIM if shared else 0, reg, 0.5)
    for row, reward, name in zip(rows, rewards, names, strict=True):
        naive.learn(row, reward, name, None if shared else row[:0])
    return naive


def augmented(naive, row, arm):
    return naive.augmented(row, arm, row[: naive.shared])


def blocks(naive, arm):
    """Where the parts of the model stand among the joint coordinates."""
    own = naive.shared + OFFERED.index(arm) * DIM
    return {"shared": slice(0, naive.shared), "arm": slice(own, own + DIM)}


def of_part(found, part):
    """Contributions and shares of a part by column."""
    terms = {term.name: term for term in found.terms if term.part == part}
    assert set(terms) == set(COLUMNS)
    return np.array([(terms[name].contribution, terms[name].share) for name in COLUMNS]).T


def assert_adds_up(found, tolerance=1e-9):
    mean, square = (np.array([term[-2:] for term in found.terms])).sum(axis=0)
    assert abs(mean - found.mean) <= tolerance * max(abs(term.contribution) for term in found.terms)
    assert abs(square - found.width**2) <= tolerance * max(abs(term.share) for term in found.terms)


def close(got, want, tolerance=1e-9):
    np.testing.assert_allclose(got, want, rtol=0.0, atol=tolerance * max(np.abs(want).max(), 1e-300))


def model(kind, reg, compact):
    if kind == "hybrid":
        return hybrid(reg, compact=compact)
    return op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=DIM, reg=reg)), compact=compact), op.UCB(0.5))


@pytest.mark.parametrize("kind", ["disjoint", "hybrid"])
@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("reg", REGS)
def test_terms_are_those_of_the_joint_ridge_regression(kind, compact, reg):
    """contribution_j = v_j theta_j and share_j = v_j (A^-1 v)_j in the joint coordinates v of a context and its arm."""
    rows, rewards, names = data(150)
    bandit, naive = (
        learn_in_batches(model(kind, reg, compact), rows, rewards, names),
        joint(reg, rows, rewards, names, kind == "hybrid"),
    )
    inverse, context = np.linalg.inv(naive.joint.matrix), np.random.default_rng(9).standard_normal(DIM)
    theta, parts = inverse @ naive.joint.moment, ("shared", "arm") if kind == "hybrid" else ("arm",)
    for arm in OFFERED:
        found, v = bandit.explain(context, arm, arms=OFFERED), augmented(naive, context, arm)
        want = np.stack([v * theta, v * (inverse @ v)])
        assert {term.part for term in found.terms} == set(parts)
        for part in parts:
            close(of_part(found, part), want[:, blocks(naive, arm)[part]])
        assert_adds_up(found)
        close(found.mean, v @ theta)
        close(found.width, np.sqrt(v @ inverse @ v))


@pytest.mark.parametrize("kind", ["disjoint", "hybrid"])
@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("reg", REGS)
def test_differences_are_those_of_the_joint_ridge_regression(kind, compact, reg):
    rows, rewards, names = data(150)
    bandit, naive = (
        learn_in_batches(model(kind, reg, compact), rows, rewards, names),
        joint(reg, rows, rewards, names, kind == "hybrid"),
    )
    inverse, contexts = np.linalg.inv(naive.joint.matrix), np.random.default_rng(9).standard_normal((5, DIM))
    theta = inverse @ naive.joint.moment
    for arm, other in (("a", 7), ("d", "new"), ("new", "a")):
        places = OFFERED.index(arm), OFFERED.index(other)
        a, b = (augmented(naive, contexts[i], OFFERED[i]) for i in places)
        for rest, asked in (
            (a - b, contexts),
            (augmented(naive, contexts[0], arm) - augmented(naive, contexts[0], other), contexts[0]),
        ):
            found = bandit.explain(asked, arm, other, arms=OFFERED).difference
            assert (found.arm, found.other) == (arm, other)
            assert_adds_up(found)
            close(found.mean, rest @ theta)
            close(found.width, np.sqrt(rest @ inverse @ rest))
        found, solved = bandit.explain(contexts, arm, other, arms=OFFERED).difference, inverse @ (a - b)
        for part in {term.part for term in found.terms}:
            mine, theirs = blocks(naive, arm)[part], blocks(naive, other)[part]
            want = [a[mine] * w[mine] for w in (theta, solved)]
            less = [b[theirs] * w[theirs] for w in (theta, solved)]
            close(of_part(found, part), np.stack(want) - np.stack(less))


SKETCHED = {
    "FrequentDirections": op.FrequentDirections(dim=DIM, size=2, reg=0.37),
    "RobustFrequentDirections": op.RobustFrequentDirections(dim=DIM, size=3, reg=4.0),
    "ProjectorSplitting": op.ProjectorSplitting(dim=DIM, rank=2, reg=0.37),
    "Exact": op.Exact(dim=DIM, reg=0.01, dtype="float32"),
}


@pytest.mark.parametrize(
    ("name", "compact", "kind"), pairs(SKETCHED if LONG else list(SKETCHED)[:3], [True, False], ["disjoint", "hybrid"])
)
def test_sketched_arms_are_explained_as_they_decide(name, compact, kind):
    rows, rewards, names = data(200)
    design = SKETCHED[name]
    own = op.Ridge(design)
    parts = (
        op.Disjoint(own, compact=compact) if kind == "disjoint" else op.Hybrid(shared=own, arms=own, compact=compact)
    )
    bandit = learn_in_batches(op.Bandit(parts, op.UCB(0.5)), rows, rewards, names)
    tolerance = 1e-9 if design.dtype == np.float64 else 1e-3
    for context in np.random.default_rng(1).standard_normal((5, DIM)).astype(design.dtype):
        decision = bandit.decide(context, OFFERED)
        for place, arm in enumerate(OFFERED):
            found = bandit.explain(context, arm, arms=OFFERED)
            assert_adds_up(found, tolerance)
            assert_adds_up(found.difference, tolerance)
            close(found.mean, decision.means[place], tolerance)
            close(found.width, decision.widths[place], tolerance)


def test_an_arms_own_design_is_solved_without_its_inverse():
    """Of every store theta, A^-1 x and the parameter of an arm, against the dense matrix of its design."""
    rows, rewards, names = data(200)
    for design in (op.Exact(dim=DIM, reg=0.37), op.FrequentDirections(dim=DIM, size=2, reg=0.37)):
        bandit = op.Bandit(op.Disjoint(op.Ridge(design), compact=True), op.UCB(0.5))
        learn_in_batches(bandit, rows, rewards, names, (200,))
        store = bandit.model.state.store
        for arm in NAMES:
            ours = [i for i, name in enumerate(names) if name == arm]
            plain = op.Bandit(op.Ridge(design))
            plain.learn(rows[ours], rewards[ours])
            record, x = bandit.model.index.find(arm), rows[0]
            close(store.export_arm(record).parameter(), plain.model.parameter, 1e-8)
            close(
                store.export_arm(record).solve(x), np.linalg.solve(contract.matrix(plain.model.state.design), x), 1e-8
            )


@pytest.mark.parametrize("kind", ["disjoint", "hybrid"])
def test_factors_are_explained_by_products_whether_arms_are_reduced_or_not(kind):
    left, right, rewards, names, arms = factor_data(120)
    found, columns = [], (*(f"u{j}" for j in range(LEFT)), *(f"v{k}" for k in range(RIGHT)))
    for reduce in (True, False):
        own = op.Ridge(op.Exact(dim=LEFT if reduce else LEFT * RIGHT, reg=0.37))
        shared = op.Ridge(op.Exact(dim=LEFT * RIGHT, reg=0.37))
        parts = op.Disjoint(own) if kind == "disjoint" else op.Hybrid(shared=shared, arms=own)
        bandit = op.Bandit(parts, features=op.features.OuterProduct(left=LEFT, right=RIGHT, reduce=reduce))
        bandit.learn(op.Factors(left, right), rewards, names)
        offered, user = [*arms, "new"], np.random.default_rng(8).standard_normal(LEFT)
        sides = np.vstack([*arms.values(), np.ones(RIGHT)])
        decision = bandit.decide(op.Factors(user, sides), offered)
        for place, arm in enumerate(offered):
            one = bandit.explain(op.Factors(user, sides), arm, arms=offered, names=columns)
            rows = np.hstack([np.tile(user, (len(sides), 1)), sides])
            same = bandit.explain(rows, arm, one.difference.other, arms=offered, names=columns)
            assert (one.terms, one.difference.terms) == (same.terms, same.difference.terms)
            assert {term.name for term in one.terms} == {f"u{j}*v{k}" for j in range(LEFT) for k in range(RIGHT)}
            for part in (one, one.difference):
                if part.width > 0.0:
                    assert_adds_up(part)
            close(one.mean, decision.means[place])
            close(one.width, decision.widths[place])
            found.append(one)
    half = len(found) // 2
    for one, other in zip(found[:half], found[half:], strict=True):
        close(one.mean, other.mean, 1e-8)
        close(one.width, other.width, 1e-8)
        assert one.difference.other == other.difference.other
        close(one.difference.width, other.difference.width, 1e-8)


def test_explaining_makes_no_arm_known_and_changes_nothing():
    rows, rewards, names = data(50)
    bandit = learn_in_batches(hybrid(), rows, rewards, names)
    before = op.to_bytes(bandit)
    found = bandit.explain(rows[0], "new", arms=OFFERED)
    assert op.to_bytes(bandit) == before
    assert found.difference.other != "new"
    assert bandit.explain(rows[0]).arm in NAMES
    for call, says in (
        (lambda: bandit.explain(rows[0], "new"), "arm must be one of the 4 arms offered"),
        (lambda: bandit.explain(rows[:2], arms=OFFERED), "contexts must have one row, or one per arm"),
        (lambda: bandit.explain(rows[0], "a", "a"), "other must be another arm"),
    ):
        with pytest.raises(ValueError, match=says):
            call()


def test_a_standardized_context_is_explained_by_its_columns_for_every_arm():
    rows, rewards, names = data(100)
    features = op.features.Concatenate(op.features.Intercept(dim=DIM), op.features.Standardize(dim=DIM))
    bandit = op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=DIM + 1, reg=0.37))), op.UCB(0.5), features=features)
    learn_in_batches(bandit, rows, rewards, names)
    found, mean = bandit.explain(rows[0], "a", 7), rows.mean(axis=0)
    theta = bandit.model.parameter_of("a")
    for term in found.terms:
        if term.name != "intercept":
            j = COLUMNS.index(term.name)
            np.testing.assert_allclose(term.weight, theta[1 + j] / rows[:, j].std(), rtol=1e-9)
            np.testing.assert_allclose(term.contribution, term.weight * (rows[0, j] - mean[j]), rtol=1e-7)
    assert_adds_up(found)
    assert_adds_up(found.difference)
