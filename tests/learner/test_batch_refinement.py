"""Newton's method on all examples of `fit`: its minimum, what is decided left out, and what `fit` is better by."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import f1_score, log_loss

import onepass as op
from counts import repetitions
from onepass.learner import batch_refinement
from onepass.learner.batch_refinement import FACTOR, fit_at_penalty, search_penalty, transform_rows
from wide_rows import wide


def stream(count=500, seed=0, classes=2):
    """Rings, with noise; places of classes."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, 3))
    f = np.linalg.norm(rows[:, :2], axis=1) + 0.3 * rng.standard_normal(count)
    return rows * [1.0, 100.0, 0.01], np.searchsorted(np.quantile(f, np.arange(1, classes) / classes), f)


def objective(w, phi, signs, weights, reg):
    return weights @ np.logaddexp(0.0, -signs * (phi @ w)) + 0.5 * reg * w @ w


def minimum(phi, signs, weights, reg):
    return minimize(objective, np.zeros(phi.shape[1]), (phi, signs, weights, reg), tol=1e-10).x


def halves(phi):
    """Features in two blocks."""
    places = slice(0, len(phi) // 2), slice(len(phi) // 2, None)
    return lambda: ((place, phi[place]) for place in places)


@pytest.mark.parametrize("reg", [0.03, 2.0])
def test_steps_lead_to_the_minimum_and_left_out_is_what_the_others_say(reg):
    rng = np.random.default_rng(1)
    phi, weights = rng.standard_normal((80, 4)), rng.integers(1, 4, 80).astype(float)
    signs = np.where(phi[:, 0] + rng.standard_normal(80) > 0.0, 1.0, -1.0)
    found = fit_at_penalty(halves(phi), 30.0 * np.ones(4), signs, weights, reg, 30)
    np.testing.assert_allclose(found.w, minimum(phi, signs, weights, reg), atol=1e-4)
    others = [np.delete(np.arange(80), i) for i in range(0, 80, 8)]
    want = [float(phi[8 * k] @ minimum(phi[o], signs[o], weights[o], reg)) for k, o in enumerate(others)]
    np.testing.assert_allclose(found.left_out[::8], want, rtol=0.05, atol=0.02)
    assert np.isclose(found.loss, weights @ np.logaddexp(0.0, -signs * found.left_out))


def test_no_step_raises_the_objective_and_the_penalty_has_nearly_the_least_loss_left_out():
    rng = np.random.default_rng(2)
    phi, ones = 5.0 * rng.standard_normal((60, 20)), np.ones(60)
    signs = np.where(phi[:, 0] + 5.0 * rng.standard_normal(60) > 0.0, 1.0, -1.0)
    begun = 40.0 * rng.standard_normal(20)
    losses = [objective(begun, phi, signs, ones, 0.1)]
    for steps in range(1, 8):
        found = fit_at_penalty(halves(phi), begun, signs, ones, 0.1, steps)
        losses.append(objective(found.w, phi, signs, ones, 0.1))
    assert (np.diff(losses) <= 0.0).all()
    best = search_penalty(halves(phi), begun[None], signs[:, None], ones, 0.1, True, 20)[0]
    every = [fit_at_penalty(halves(phi), 0.0 * begun, signs, ones, 0.1 * FACTOR**k, 20).loss for k in range(-4, 12)]
    assert min(every) <= best.loss * (1 + 1e-9) <= batch_refinement.NEARLY * min(every) * (1 + 1e-6)
    assert search_penalty(halves(phi), begun[None], signs[:, None], ones, 0.1, False, 20)[0].loss > best.loss


@pytest.mark.parametrize("classes", [2, 3])
def test_fit_takes_the_steps_and_sparse_rows_and_blocks_made_again_are_the_same(classes, monkeypatch):
    rows, codes = stream(classes=classes)
    settings = {"loss": "logistic", "size": 10, "reg": 0.2, "recent": False}
    made = op.OnlineKernelClassifier(op.KernelNewton(**settings), refinements=20).fit(rows, codes)
    found = made.learners_[0].states()[0]
    one = found if classes == 2 else found.newton
    phi = transform_rows(one, rows)
    for c, w in enumerate(np.atleast_2d(one.w)):
        signs = np.where(codes == (1 if classes == 2 else c), 1.0, -1.0)
        np.testing.assert_allclose(w[:-1], minimum(phi, signs, np.ones(len(rows)), 0.2), atol=2e-3)
    told = made.predict_proba(rows)
    assert np.array_equal(
        op.OnlineKernelClassifier(made.learner, refinements=20).fit(rows, codes).predict_proba(rows), told
    )
    monkeypatch.setattr(batch_refinement, "HELD", 0)
    again = op.OnlineKernelClassifier(made.learner, refinements=20).fit(sparse.csr_array(rows), codes)
    np.testing.assert_allclose(again.predict_proba(rows), told, atol=1e-9)


def test_one_pass_is_what_no_refinements_other_losses_and_rows_that_drift_have():
    rows, codes = stream()
    for learner in (None, op.KernelNewton(), op.learner.FORKS(budget=10)):
        whole = op.OnlineKernelClassifier(learner, refinements=0).fit(rows, codes)
        pieces = op.OnlineKernelClassifier(learner).partial_fit(rows, codes, classes=[0, 1])
        assert np.array_equal(whole.predict_proba(rows), pieces.predict_proba(rows))
        other = op.OnlineKernelClassifier(learner).fit(rows, codes)
        assert np.array_equal(other.predict_proba(rows), whole.predict_proba(rows)) is (learner is not None)
    drifting = np.where(np.arange(len(codes)) < 250, codes, 1 - codes)
    learner = op.KernelNewton(loss="logistic", memory=3.0, warm_up=100, size=20)
    found = [op.OnlineKernelClassifier(learner, refinements=n).fit(rows, drifting).predict_proba(rows) for n in (0, 3)]
    assert np.array_equal(*found)


def test_refinements_are_kept_in_files_and_refused_below_zero(tmp_path):
    rows, codes = stream(100)
    made = op.OnlineKernelClassifier(op.KernelNewton(loss="logistic", size=8), refinements=1).fit(rows, codes)
    made.save(tmp_path / "classifier")
    twin = op.load(tmp_path / "classifier")
    assert twin.refinements == 1
    assert np.array_equal(twin.predict_proba(rows), made.predict_proba(rows))
    for wrong in (-1, 1.5):
        with pytest.raises(ValueError, match="refinements"):
            op.OnlineKernelClassifier(refinements=wrong).fit(rows, codes)


def test_wide_rare_classes_are_told_no_worse_than_by_gradient_descent_in_many_passes():
    gaps = []
    for seed in range(20, repetitions(21, 27)):
        rows, labels = wide(seed=seed)
        known, new = slice(0, 9_000), slice(9_000, None)
        ours = op.OnlineKernelClassifier().fit(rows[known], labels[known])
        theirs = SGDClassifier(loss="log_loss", random_state=0).fit(rows[known], labels[known])
        lost, found = (
            [log_loss(labels[new], one.predict_proba(rows[new])), f1_score(labels[new], one.predict(rows[new]))]
            for one in (ours, theirs)
        )
        gaps.append([lost[0] - found[0], lost[1] - found[1]])
    gaps = np.array(gaps)
    assert gaps[:, 0].mean() < repetitions(0.002, 0.0005)
    assert gaps[:, 1].mean() > repetitions(-0.05, -0.02)
