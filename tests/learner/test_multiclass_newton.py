"""Several classes on one map and one design: equal to the naive version, no worse than learners of their own."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

import dense_newton as dense
import onepass as op
from onepass.learner.multiclass_newton import MulticlassNewton

MAP = {"size": 8, "width": None, "width_factor": 1.0, "standardize": True, "recent": True, "seed": 3}


def stream(count=150, seed=0, classes=3):
    """Rows of very different scales, classes in rings; every third example is near the one before and of its class."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, 3))
    rows[2::3] = rows[1:-1:3] + 0.01 * rng.standard_normal(rows[2::3].shape)
    codes = np.minimum((np.linalg.norm(rows[:, :2], axis=1) * classes / 2.5).astype(int), classes - 1)
    return rows * [1.0, 100.0, 0.01], codes


@pytest.mark.parametrize(("reg", "memory", "warm_up"), [(0.03, None, 45), (2.0, 2.0, 64)])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_decisions_equal_those_of_the_naive_version(loss, reg, memory, warm_up):
    rows, codes = stream()
    steps = {"loss": loss, "reg": reg, "memory": memory, "warm_up": warm_up, "gain": 1.7}
    learner = MulticlassNewton(classes=3, learner=op.KernelNewton(**steps, **MAP))
    want = dense.several_newton(rows, codes, 3, features="nystrom", rank=8, **steps, **MAP)
    np.testing.assert_allclose(learner.learn_checked(rows, codes.astype(float)), want, rtol=0, atol=1e-7)


@pytest.mark.parametrize("options", [{"features": "fourier"}, {"features": "sketched"}, {"recent": False}], ids=repr)
def test_maps_and_votes_are_those_of_the_naive_version(options):
    rows, codes = stream(classes=4)
    steps = {"loss": "logistic", "reg": 0.1, "memory": 20.0, "warm_up": 45, "gain": 0.6}
    learner = MulticlassNewton(classes=4, learner=op.KernelNewton(**steps, **{**MAP, **options}))
    rank = learner.rank
    want = dense.several_newton(rows, codes, 4, rank=rank, **steps, **{**MAP, "features": "nystrom", **options})
    np.testing.assert_allclose(learner.learn_checked(rows, codes.astype(float)), want, rtol=0, atol=1e-7)


def test_digits_are_told_apart_no_worse_than_by_learners_of_their_own_in_a_sixth_of_the_memory():
    rows, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(rows))[:1000]
    rows, labels = rows[order], labels[order]
    made = {multiclass: op.OnlineKernelClassifier(multiclass=multiclass) for multiclass in ("shared", "one_vs_rest")}
    found = {name: op.progressive_validation(one, rows, labels).mistake_rate for name, one in made.items()}
    assert found["shared"] <= found["one_vs_rest"] + 0.005
    assert 6 * made["shared"].memory_usage() < made["one_vs_rest"].memory_usage()


def test_probabilities_of_several_classes_are_calibrated():
    """P(class) ~ e^(2 x_c): the loss of what is told is within 0.05 of that of the truth."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((4_000, 3))
    truth = np.exp(2.0 * rows)
    truth /= truth.sum(axis=1, keepdims=True)
    codes = (rng.random(4_000)[:, None] > truth.cumsum(axis=1)).sum(axis=1)
    told = op.OnlineKernelClassifier().fit(rows[:3_000], codes[:3_000]).predict_proba(rows[3_000:])
    np.testing.assert_allclose(told.sum(axis=1), 1.0, rtol=1e-12)
    assert log_loss(codes[3_000:], told) < log_loss(codes[3_000:], truth[3_000:]) + 0.05


def test_weights_of_examples_multiply_their_losses_and_none_of_zero_is_learned():
    rows, codes = stream(300)
    weights = np.arange(300) % 3.0
    whole = op.OnlineKernelClassifier().fit(rows, codes, sample_weight=weights)
    part = op.OnlineKernelClassifier().fit(rows[weights > 0], codes[weights > 0], sample_weight=weights[weights > 0])
    assert np.array_equal(whole.predict_proba(rows), part.predict_proba(rows))
    plain = op.OnlineKernelClassifier().fit(rows[weights > 0], codes[weights > 0])
    assert not np.array_equal(whole.decision_function(rows), plain.decision_function(rows))


@pytest.mark.parametrize("multiclass", ["shared", "one_vs_rest"])
def test_copies_and_files_go_on_alike_and_older_files_have_a_learner_a_class(multiclass, tmp_path):
    rows, codes = stream(300)
    made = op.OnlineKernelClassifier(op.KernelNewton(size=10), multiclass=multiclass).fit(rows[:200], codes[:200])
    assert len(made.learners_) == (1 if multiclass == "shared" else 3)
    made.save(tmp_path / "classifier")
    twins = [op.load(tmp_path / "classifier"), made.copy()]
    if multiclass == "one_vs_rest":  # as files were before there was a choice
        contents = made.copy().contents()
        del contents.extra["multiclass"]
        contents.params["learner"] = op.KernelNewton(size=10)
        twins.append(op.OnlineKernelClassifier.from_contents(contents.params, contents.extra, op_kept(contents.state)))
    made.partial_fit(rows[200:], codes[200:])
    for twin in twins:
        twin.partial_fit(rows[200:], codes[200:])
        assert np.array_equal(twin.decision_function(rows), made.decision_function(rows))


def op_kept(state):
    from onepass.foundation.files import InMemory

    return InMemory(state)


def test_one_learner_is_explained_by_its_largest_class_and_repeated_examples_by_the_last():
    rows, codes = stream(300)
    learner = op.OnlineKernelClassifier(op.KernelNewton(size=10)).fit(rows, codes).learners_[0]
    found = learner.explain(rows[-1], ["a", "b", "c"])
    assert np.isclose(found.decision, learner.decision_function(rows[-1:]).max())
    assert np.isclose(sum(term.contribution for term in found.terms), found.decision)
    assert {"a", "last example"} <= {term.name for term in found.terms}


def test_what_is_no_class_and_no_way_is_refused():
    rows, codes = stream(50)
    with pytest.raises(ValueError, match="multiclass must"):
        op.OnlineKernelClassifier(multiclass="both").fit(rows, codes)
    with pytest.raises(ValueError, match="learner must be for classes"):
        MulticlassNewton(classes=2, learner=op.KernelNewton())
    with pytest.raises(ValueError, match="learner must be for classes"):
        MulticlassNewton(classes=3, learner=op.KernelNewton(loss="squared"))
    learner = MulticlassNewton(classes=3, learner=op.KernelNewton(size=10))
    with pytest.raises(ValueError, match="places of 3 classes"):
        learner.partial_fit(rows, codes + 1)
    assert learner.partial_fit(rows, codes).predict(rows).max() <= 2.0
    assert op.progressive_validation(learner, rows, codes).decisions.shape == (50, 3)
