"""Online kernel learners as scikit-learn estimators, on sparse rows, and under the conformance suite."""

import copy
import pickle
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import onepass as op
from onepass.learner import sparse_input
from onepass.testing import check_learner, make_targets

SMALL = {"budget": 20, "rank": 6, "sample_size": 12}
LEARNERS = {
    "RBP": lambda **p: op.learner.RBP(budget=20, **p),
    "BPAS": lambda **p: op.learner.BPAS(budget=20, **p),
    "BOGD": lambda **p: op.learner.BOGD(budget=20, **p),
    "Projectron": lambda **p: op.learner.Projectron(budget=20, **p),
    "Projectron++": lambda **p: op.learner.Projectron(budget=20, margins=True, **p),
    "KOGD": lambda **p: op.learner.KOGD(**p),
    "FOGD": lambda **p: op.learner.FOGD(budget=20, **p),
    "NOGD": lambda **p: op.learner.NOGD(budget=20, **p),
    "SkeGD": lambda **p: op.learner.SkeGD(**SMALL, **p),
    "FORKS": lambda **p: op.learner.FORKS(**SMALL, **p),
    "PROSNKONS": lambda **p: op.learner.PROSNKONS(budget=20, **p),
    "PROSNKONS without a cap": lambda **p: op.learner.PROSNKONS(**p),
    "KernelNewton": lambda **p: op.KernelNewton(size=20, **p),
    "KernelNewton, Fourier": lambda **p: op.KernelNewton(features="fourier", size=20, warm_up=50, **p),
    "KernelNewton, sketched": lambda **p: op.KernelNewton(features="sketched", size=20, **p),
    "KernelNewton, FD": lambda **p: op.KernelNewton(size=20, design=op.FrequentDirections(dim=22, size=5), **p),
}
every_learner = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)
CLASSIFIERS = [
    None,
    op.learner.FORKS(budget=10),
    op.learner.RBP(budget=2),
    LEARNERS["KernelNewton, Fourier"](loss="logistic"),
    op.learner.KOGD(),
]
REGRESSORS = [
    None,
    op.learner.FORKS(budget=10, loss="squared"),
    op.learner.KOGD(loss="epsilon_insensitive", loss_width=0.1),
]


def stream(count=300, dim=3, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, dim))
    return rows, np.sin(2.0 * rows[:, 0]) + rows[:, 1] * rows[:, 2] + 0.1 * rng.standard_normal(count)


def labelled(count=600, names=("a", "b", "c"), seed=0):
    """Rows of as many classes as there are names."""
    rows, f = stream(count, seed=seed)
    return rows, np.array(names)[np.searchsorted(np.quantile(f, np.arange(1, len(names)) / len(names)), f)]


# --- scikit-learn's own checks


@pytest.mark.parametrize("learner", CLASSIFIERS, ids=repr)
def test_the_classifier_passes_the_checks_of_scikit_learn(learner):
    check_estimator(op.OnlineKernelClassifier(learner), on_skip=None)


@pytest.mark.parametrize("learner", REGRESSORS, ids=repr)
def test_the_regressor_passes_the_checks_of_scikit_learn(learner):
    check_estimator(op.OnlineKernelRegressor(learner), on_skip=None)


def test_only_learners_of_any_budget_are_excused_from_scores():
    for learner in (None, op.KernelNewton(size=30)):
        assert not op.OnlineKernelClassifier(learner).__sklearn_tags__().classifier_tags.poor_score
        assert not op.OnlineKernelRegressor(learner).__sklearn_tags__().regressor_tags.poor_score
    assert op.OnlineKernelClassifier(op.learner.RBP(budget=2)).__sklearn_tags__().classifier_tags.poor_score


def test_searches_and_pipelines_take_the_estimators():
    rows, labels = labelled(200)
    grid = {"learner__width": [0.5, 2.0], "learner__size": [8, 16]}
    search = GridSearchCV(op.OnlineKernelClassifier(), grid, cv=2).fit(rows, labels)
    assert search.best_params_.keys() == grid.keys()
    assert search.best_estimator_.learner.params["size"] == search.best_params_["learner__size"]
    native = op.learner.FOGD(loss="squared")
    search = GridSearchCV(op.OnlineKernelRegressor(native), {"learner__step": [0.1, 1.0]}, cv=2)
    search.fit(*stream(200))
    assert search.best_params_ == {"learner__step": 1.0}
    assert native.params["step"] == 0.2
    pipeline = make_pipeline(StandardScaler(), op.OnlineKernelClassifier(op.learner.FORKS(budget=20)))
    assert cross_val_score(pipeline, rows, labels, cv=2).min() > 0.3
    assert "OnlineKernelClassifier" in op.OnlineKernelClassifier(op.learner.FORKS())._repr_html_()


# --- classes


def test_two_classes_are_one_native_learner():
    rows, labels = labelled(300, names=("no", "yes"))
    classifier = op.OnlineKernelClassifier(op.learner.FORKS(budget=20)).fit(rows, labels)
    native = op.learner.FORKS(budget=20).partial_fit(rows, np.where(labels == "yes", 1.0, -1.0))
    assert len(classifier.learners_) == 1
    assert np.array_equal(classifier.decision_function(rows), native.decision_function(rows))
    assert classifier.classes_.tolist() == ["no", "yes"]
    assert np.array_equal(classifier.predict(rows) == "yes", native.predict(rows) > 0.0)
    assert classifier.predict_one(rows[3]) == classifier.predict(rows)[3]
    assert classifier.score(rows, labels) == np.mean(classifier.predict(rows) == labels)
    assert classifier.memory_usage() == native.memory_usage()


@pytest.mark.parametrize("names", [("a", "b", "c"), (7, -3, 12, 9), (0.5, 1.5, 4.0)])
def test_several_classes_are_one_learner_each_against_the_rest(names):
    if isinstance(names[0], float):
        names = tuple(float(round(2 * name)) for name in names)  # scikit-learn takes no fractions for labels
    rows, labels = labelled(400, names)
    classifier = op.OnlineKernelClassifier(op.learner.BOGD(budget=20)).fit(rows, labels)
    assert classifier.classes_.tolist() == sorted(names)
    for k, name in enumerate(sorted(names)):
        native = op.learner.BOGD(budget=20).partial_fit(rows, np.where(labels == name, 1.0, -1.0))
        assert np.array_equal(classifier.decision_function(rows)[:, k], native.decision_function(rows))
    want = classifier.classes_[classifier.decision_function(rows).argmax(axis=1)]
    assert np.array_equal(classifier.predict(rows), want)
    assert classifier.predict(rows).dtype == labels.dtype


def test_the_default_learns_three_classes_and_a_function():
    rows, labels = labelled(3000)
    classifier = op.OnlineKernelClassifier().fit(rows[:2000], labels[:2000])
    assert classifier.score(rows[2000:], labels[2000:]) > 0.85
    rows, f = stream(3000)
    regressor = op.OnlineKernelRegressor().fit(rows[:2000], 100.0 + f[:2000])
    assert regressor.score(rows[2000:], 100.0 + f[2000:]) > 0.9
    assert not hasattr(regressor, "decision_function")


def test_pieces_and_single_examples_are_the_same_as_one_fit():
    rows, labels = labelled(300)
    whole = op.OnlineKernelClassifier(op.KernelNewton(size=20)).fit(rows, labels)
    pieces, single = clone(whole), clone(whole)
    pieces.partial_fit(rows[:2], labels[:2], classes=["c", "b", "a"]).partial_fit(rows[2:], labels[2:])
    single.learn_one(rows[0], labels[0], classes=["a", "b", "c"])
    for x, y in zip(rows[1:], labels[1:], strict=True):
        single.learn_one(x, y)
    for other in (pieces, single):
        assert np.array_equal(other.decision_function(rows), whole.decision_function(rows))
    rows, f = stream()
    whole, single = (op.OnlineKernelRegressor(op.KernelNewton(size=20, loss="huber")) for _ in range(2))
    whole.partial_fit(rows, f)
    for x, y in zip(rows, f, strict=True):
        single.learn_one(x, y)
    assert np.array_equal(whole.predict(rows), single.predict(rows))
    assert single.predict_one(rows[0]) == whole.predict(rows)[0]


def test_fit_starts_anew_and_the_given_learner_is_only_a_pattern():
    rows, labels = labelled(200)
    learned = op.learner.FORKS(budget=10).partial_fit(rows[:50], np.ones(50))
    before = learned.decision_function(rows)
    first = op.OnlineKernelClassifier(learned).fit(rows, labels)
    again = op.OnlineKernelClassifier(op.learner.FORKS(budget=10)).fit(rows[:9], labels[:9]).fit(rows, labels)
    assert np.array_equal(first.decision_function(rows), again.decision_function(rows))
    assert np.array_equal(learned.decision_function(rows), before)
    fewer = again.fit(rows[:, :2], np.where(labels == "a", 3, 4))
    assert fewer.classes_.tolist() == [3, 4]
    assert fewer.n_features_in_ == 2


def test_what_is_not_known_or_wrong_is_refused_in_a_sentence_and_changes_nothing():
    rows, labels = labelled(100)
    fresh = op.OnlineKernelClassifier(op.learner.RBP(budget=10))
    with pytest.raises(NotFittedError):
        fresh.predict(rows)
    for learns in (lambda: fresh.partial_fit(rows, labels), lambda: fresh.learn_one(rows[0], "a")):
        with pytest.raises(ValueError, match="classes must be given at the first call"):
            learns()
    with pytest.raises(ValueError, match="at least 2 classes, got 1 class"):
        fresh.fit(rows, ["a"] * 100)
    with pytest.raises(ValueError, match="at least 2 classes"):
        fresh.partial_fit(rows, labels, classes=["a"])
    with pytest.raises(ValueError, match="must hold labels among"):
        fresh.partial_fit(rows, labels, classes=["a", "b"])
    assert not hasattr(fresh, "n_features_in_")
    assert not hasattr(fresh, "classes_")
    assert fresh.memory_usage() == 0
    fresh.fit(rows, labels)
    before, held = fresh.decision_function(rows), dict(vars(fresh))
    bad = [
        (rows, ["d"] * 100, None, "labels among"),
        (rows, np.arange(100), None, "labels among"),
        (rows, labels[:9], None, "inconsistent numbers of samples"),
        (rows[:, :2], labels, None, "expecting 3 features"),
        (rows * np.nan, labels, None, "NaN"),
        (rows * 1e200, labels, None, "norms up to"),
        (rows, labels, ["a", "b"], "those of the first call"),
        (rows, None, None, "requires y"),
    ]
    for X, y, classes, said in bad:
        with pytest.raises(ValueError, match=said):
            fresh.partial_fit(X, y, classes)
        if said not in ("labels among", "expecting 3 features", "those of the first call"):
            with pytest.raises(ValueError, match=said):
                fresh.fit(X, y)
        if classes is None:
            with pytest.raises(ValueError, match=said):
                op.progressive_validation(fresh, X, y)
        assert vars(fresh) == held
    assert np.array_equal(fresh.decision_function(rows), before)
    fresh.partial_fit(rows, labels, classes=["c", "b", "a"])


@pytest.mark.parametrize(
    "wrong", [op.learner.FORKS(loss="squared"), op.KernelNewton(loss="huber"), 3, "FORKS", op.learner.FORKS], ids=repr
)
def test_a_learner_for_another_task_is_refused_when_it_fits(wrong):
    with pytest.raises(ValueError, match="learner must be an online kernel learner with the loss hinge"):
        op.OnlineKernelClassifier(wrong).fit(*labelled(50))
    with pytest.raises(ValueError, match="with the loss squared, huber or epsilon_insensitive"):
        op.OnlineKernelRegressor(op.learner.RBP(budget=3)).fit(*stream(50))


# --- parameters


@every_learner
def test_learners_are_cloned_and_built_again(make):
    learner = make(width=0.7)
    rows = stream(60)[0]
    learner.partial_fit(rows, make_targets(learner, rows))
    twin = clone(learner)
    assert repr(twin) == repr(learner)
    assert twin.memory_usage() == twin.dim == 0
    assert twin.get_params().keys() == learner.get_params().keys() == learner.params.keys()
    assert learner.copy().get_params() == learner.get_params()
    for bad, said in (
        ({"width": -1.0}, "width must"),
        ({"breadth": 1.0}, "must be one of"),
        ({"width": 2.0, "a": 1}, "must be one of"),
    ):
        with pytest.raises(ValueError, match=said):
            learner.set_params(**bad)
    assert learner.dim == 3
    assert learner.set_params() is learner
    assert learner.dim == 3
    assert learner.set_params(width=1.25).dim == 0
    assert learner.params["width"] == 1.25
    assert np.array_equal(learner.predict(rows), np.where(np.zeros(60) < 0.0, -1.0, 1.0))


def test_parameters_that_follow_others_still_follow_them():
    assert op.learner.FORKS(budget=100).set_params(budget=10).params["rank"] == 1
    assert op.KernelNewton(size=100).set_params(size=20).params["warm_up"] == 80
    assert op.learner.FORKS(budget=100).get_params()["rank"] is None
    assert op.learner.FOGD(features=6).set_params(budget=10).params["features"] == 6


# --- progressive validation


def test_progressive_validation_of_a_classifier_counts_its_mistakes():
    for names in (("no", "yes"), ("a", "b", "c")):
        rows, labels = labelled(120, names)
        classifier, single = (op.OnlineKernelClassifier(op.KernelNewton(size=10)) for _ in range(2))
        found = op.progressive_validation(classifier, rows, labels.tolist())
        single.partial_fit(rows[:1], labels[:1], classes=names)
        mistakes = []
        for x, y in zip(rows[1:], labels[1:], strict=True):
            mistakes.append(single.predict_one(x) != y)
            single.learn_one(x, y)
        assert np.array_equal(found.mistakes[1:], mistakes)
        undecided = names[1] if len(names) == 2 else names[0]  # nothing learned: 0 is the second of two, as 1 is
        assert found.mistakes[0] == (labels[0] != undecided)
        assert found.mistake_rate == found.mistakes.mean()
        assert found.decisions.shape == ((120,) if len(names) == 2 else (120, 3))
        assert np.array_equal(classifier.decision_function(rows), single.decision_function(rows))
        op.progressive_validation(classifier, rows[:5], [names[0]] * 5)  # its classes are known


def test_progressive_validation_of_a_regressor_takes_squared_errors():
    rows, f = stream(200)
    found = op.progressive_validation(op.OnlineKernelRegressor(op.KernelNewton(size=10, loss="squared")), rows, f)
    want = op.progressive_validation(op.KernelNewton(size=10, loss="squared"), rows, f)
    assert np.array_equal(found.mistakes, want.mistakes)
    assert found.mistake_rate == want.mistake_rate


# --- copies


@pytest.mark.parametrize("learner", [None, op.learner.FORKS(**SMALL)], ids=repr)
def test_copies_and_pickles_continue_alike_and_alone(learner, tmp_path):
    import joblib

    rows, labels = labelled(300)
    classifier = op.OnlineKernelClassifier(learner).fit(rows[:150], labels[:150])
    before = classifier.decision_function(rows)
    joblib.dump(classifier, tmp_path / "classifier")
    copies = [copy.deepcopy(classifier), pickle.loads(pickle.dumps(classifier)), classifier.copy()]
    copies.append(joblib.load(tmp_path / "classifier", mmap_mode="r"))  # arrays that cannot be written to
    for twin in copies:
        assert np.array_equal(twin.decision_function(rows), before)
        twin.partial_fit(rows[150:], labels[150:])
        assert np.array_equal(classifier.decision_function(rows), before)
    classifier.partial_fit(rows[150:], labels[150:])
    for twin in copies:
        assert np.array_equal(twin.decision_function(rows), classifier.decision_function(rows))
    assert op.OnlineKernelClassifier(op.learner.RBP(budget=2)).copy().memory_usage() == 0


# --- sparse rows


def scarce(count=150, dim=40, seed=0):
    rng = np.random.default_rng(seed)
    return np.where(rng.random((count, dim)) < 0.1, rng.standard_normal((count, dim)), 0.0)


@every_learner
def test_sparse_rows_are_the_dense_ones_however_small_the_blocks(make, monkeypatch):
    rows = scarce()
    targets = make_targets(make(), rows)
    dense = make(width=2.0)
    want = op.progressive_validation(dense, rows, targets).decisions
    for block in (1, 7 * 40 * 8, 1 << 20):
        monkeypatch.setattr(sparse_input, "BLOCK", block)
        learner = make(width=2.0)
        assert np.array_equal(op.progressive_validation(learner, sparse.csr_array(rows), targets).decisions, want)
        assert np.array_equal(learner.decision_function(sparse.csr_matrix(rows)), dense.decision_function(rows))
        assert np.array_equal(learner.predict(sparse.coo_array(rows)), dense.predict(rows))


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia", "dok", "lil"])
def test_all_forms_of_sparse_rows_are_taken(form):
    rows = scarce(30)
    targets = np.where(np.arange(30) % 2, 1.0, -1.0)
    want = op.learner.BOGD(budget=10).partial_fit(rows, targets).decision_function(rows)
    for made in (sparse.csr_array(rows).asformat(form), sparse.csr_matrix(rows).asformat(form)):
        assert np.array_equal(op.learner.BOGD(budget=10).partial_fit(made, targets).decision_function(made), want)
        classifier = op.OnlineKernelClassifier(op.learner.BOGD(budget=10)).fit(made, targets)
        assert np.array_equal(classifier.decision_function(made), want)
    whole = (10.0 * rows).astype(np.int8)
    want = op.learner.BOGD(budget=10).partial_fit(whole, targets).decision_function(whole)
    narrow = sparse.csr_array(whole)
    assert np.array_equal(op.learner.BOGD(budget=10).partial_fit(narrow, targets).decision_function(narrow), want)


def test_estimators_take_sparse_rows_in_blocks(monkeypatch):
    rows, labels = scarce(), labelled(150)[1]
    want = op.OnlineKernelClassifier(op.learner.FORKS(**SMALL)).fit(rows, labels).decision_function(rows)
    monkeypatch.setattr(sparse_input, "BLOCK", 7 * 40 * 8)
    classifier = op.OnlineKernelClassifier(op.learner.FORKS(**SMALL)).fit(sparse.csr_array(rows), labels)
    assert np.array_equal(classifier.decision_function(sparse.csr_array(rows)), want)
    found = op.progressive_validation(
        op.OnlineKernelClassifier(op.learner.FORKS(**SMALL)), sparse.csc_array(rows), labels
    )
    dense = op.progressive_validation(op.OnlineKernelClassifier(op.learner.FORKS(**SMALL)), rows, labels)
    assert np.array_equal(found.decisions, dense.decisions)


def test_sparse_rows_are_never_dense_all_at_once():
    rng = np.random.default_rng(0)
    rows = sparse.random(20_000, 2_000, density=1e-4, format="csr", random_state=0)  # 320 MB dense
    learner, targets = op.learner.FOGD(features=2), np.where(rng.random(20_000) < 0.5, 1.0, -1.0)
    learner.partial_fit(rows[:1], targets[:1]).predict(rows[:1])  # compiled before it is measured
    tracemalloc.start()
    try:
        learner.partial_fit(rows, targets).predict(rows)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8e6


def test_bad_sparse_rows_are_refused_whole_and_nothing_is_learned():
    rows, targets = scarce(), np.where(np.arange(150) % 2, 1.0, -1.0)
    learner = op.learner.RBP(budget=10).partial_fit(rows, targets)
    before = learner.decision_function(rows)

    def spoiled(value, kind=np.float64):
        made = sparse.csr_array(rows.astype(kind))
        made.data[-1] = value
        return made

    outside = sparse.csr_array(rows)
    outside.indices[-1] = 10**6
    bad = [
        (spoiled(np.nan), "row 1.. is not"),
        (spoiled(-np.inf), "row 1.. is not"),
        (spoiled(1e200), "norms up to"),
        (spoiled(1.0, np.complex128), "real numbers"),
        (sparse.csr_array(rows[:, :-1]), "rows of length 40"),
        (sparse.csr_array((150, 0)), "at least one feature|rows of length 40"),
        (outside, "valid CSR"),
    ]
    for X, said in bad:
        for call in (
            lambda X: learner.partial_fit(X, targets),
            lambda X: op.progressive_validation(learner, X, targets),
            learner.predict,
        ):
            with pytest.raises(ValueError, match=said):
                call(X)
    with pytest.raises(ValueError, match="at least one feature"):
        op.learner.RBP(budget=10).partial_fit(np.zeros((3, 0)), targets[:3])
    assert np.array_equal(learner.decision_function(rows), before)
    assert learner.decision_function(sparse.csr_array((0, 40))).shape == (0,)


def test_entries_given_twice_are_added_and_the_callers_matrix_stays_as_it_is():
    twice = sparse.csr_array((np.array([1.0, 2.0, -1.0]), np.array([1, 1, 0]), np.array([0, 3])), shape=(1, 3))
    huge = sparse.csr_array((np.array([1e154, -1e154]), np.array([1, 1]), np.array([0, 2])), shape=(1, 3))
    learner = op.learner.KOGD().partial_fit([[-1.0, 3.0, 0.0]], [1.0])
    assert learner.decision_function(twice)[0] == learner.decision_function(twice.toarray())[0] > 0.0
    assert twice.nnz == 3
    assert np.array_equal(learner.decision_function(huge), learner.decision_function(huge.toarray()))


# --- the conformance suite, and an import that stays light


@every_learner
def test_every_learner_passes_the_conformance_suite(make):
    assert "keeps the contract: 240 rows of 4 numbers" in check_learner(make)


@pytest.mark.parametrize("loss", ["squared", "huber", "epsilon_insensitive"])
def test_learners_of_functions_pass_the_conformance_suite(loss):
    for name in ("FOGD", "KernelNewton"):
        check_learner(lambda name=name: LEARNERS[name](loss=loss, loss_width=0.2))


class Attached(op.learner.RBP):
    def copy(self):
        return self


class Forgetful(op.learner.RBP):
    def partial_fit(self, X, y):
        self._state = None
        return op.learner.RBP.partial_fit(self, X, y)


class Trusting(op.learner.RBP):
    def check_targets(self, targets, count):
        return np.resize(np.asarray(targets, np.float64), count)


class Drifting(op.learner.RBP):
    def decision_function(self, X):
        self._state = self._state and self._state._replace(budget=self._state.budget._replace(precision=0.1))
        return op.learner.RBP.decision_function(self, X)


class Stubborn(op.learner.RBP):
    def set_params(self, **changed):
        return self


def test_the_conformance_suite_finds_what_is_broken():
    broken = {
        Attached: "independent|differently",
        Forgetful: "differently",
        Trusting: "refused",
        Stubborn: "differently",
    }
    for make, said in {**broken, Drifting: "differently"}.items():
        with pytest.raises(AssertionError, match=said):
            check_learner(lambda make=make: make(budget=10, width=0.5))


def test_without_scikit_learn_one_sentence_says_so():
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import onepass as op\n"
        "assert 'OnlineKernelClassifier' in dir(op) and not hasattr(op, 'nothing')\n"
        "op.learner.FORKS().partial_fit([[1.0]], [1.0])\n"
        "try: op.OnlineKernelClassifier\n"
        "except ImportError as error: print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "need scikit-learn 1.6 or newer: pip install scikit-learn" in said


def test_one_row_at_a_time_is_what_whole_arrays_are_and_takes_rows_of_any_form():
    rows, labels = labelled(200, ("no", "yes"))
    whole, single = (op.OnlineKernelClassifier(op.KernelNewton(size=10)) for _ in range(2))
    table = pandas.DataFrame(rows, columns=[f"f{j}" for j in range(rows.shape[1])])
    whole.fit(table, labels)
    single.partial_fit(table[:1], labels[:1], classes=["no", "yes"])
    for i in range(1, 200):
        x = (rows[i], table.iloc[i], rows[i : i + 1], rows[i].tolist(), sparse.csr_array(rows[i : i + 1]))[i % 5]
        single.learn_one(x, labels[i])
    assert np.array_equal(whole.decision_function(table), single.decision_function(table))
    assert [single.predict_one(table.iloc[i]) for i in range(20)] == whole.predict(table[:20]).tolist()
    before = single.decision_function(table)
    for x, y, said in (
        (table.iloc[0][::-1], "no", "in this order"),
        (rows[0, :1], "no", "length"),
        (rows[:2], "no", "length"),
        (rows[0] * np.nan, "no", "x"),
        (rows[0], None, "labels among"),
        (rows[0], 3, "labels among"),
    ):
        with pytest.raises(ValueError, match=said):
            single.learn_one(x, y)
    assert np.array_equal(before, single.decision_function(table))


def test_get_params_shows_what_can_be_searched_of_the_default_learner_too():
    found = op.OnlineKernelClassifier().get_params()
    known = {f"learner__{name}" for name in op.KernelNewton().get_params()}
    assert known | {"learner", "class_weight", "multiclass", "refinements"} == found.keys()
    for name, value in found.items():
        if name != "learner":
            assert op.OnlineKernelClassifier().set_params(**{name: value}).get_params()[name] == value
    assert op.OnlineKernelRegressor().get_params(deep=False) == {"learner": None}
