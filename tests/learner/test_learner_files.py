"""Files of online kernel learners: they continue bit for bit; nothing that harms compiled code comes out of one."""

import json

import numpy as np
import pytest
from safetensors.numpy import save

import onepass as op
from onepass.foundation import files, registry
from onepass.learner.learner import Learner

RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((200, 3))
F = np.sin(2.0 * ROWS[:, 0]) + ROWS[:, 1] * ROWS[:, 2]
SIGNS = np.where(F < 0.0, -1.0, 1.0)
SKETCH = {"budget": 12, "rank": 5, "sketch_size": 10, "sample_size": 9, "blocks": 2, "seed": 3, "width": 0.9}
MADE = {  # no parameter at its default
    "RBP": lambda: op.learner.RBP(budget=12, width=0.7, seed=5),
    "BPAS": lambda: op.learner.BPAS(budget=12, width=0.7, aggressiveness=0.5),
    "BOGD": lambda: op.learner.BOGD(
        budget=12, width=0.7, loss="huber", loss_width=0.3, step=0.4, reg=0.03, cap=0.8, seed=5
    ),
    "Projectron": lambda: op.learner.Projectron(budget=12, width=0.7, eta=0.3, margins=True),
    "KOGD": lambda: op.learner.KOGD(width=0.7, loss="epsilon_insensitive", loss_width=0.1, step=0.4, reg=0.1),
    "FOGD": lambda: op.learner.FOGD(
        budget=12, features=30, width=0.7, loss="logistic", loss_width=0.3, step=0.4, seed=5
    ),
    "NOGD": lambda: op.learner.NOGD(budget=12, rank=5, width=0.7, loss="squared", loss_width=0.3, step=0.4),
    "SkeGD": lambda: op.learner.SkeGD(**SKETCH, update_every=7, loss="squared", loss_width=0.3, step=0.4),
    "FORKS": lambda: op.learner.FORKS(
        **SKETCH, update_every=0.2, loss="squared_hinge", loss_width=0.3, step=0.4, alpha=0.1, curvature=0.3, bound=2.0
    ),
    "PROSNKONS": lambda: op.learner.PROSNKONS(
        budget=20, width=0.7, loss="logistic", loss_width=0.3, step=0.4, alpha=0.1, curvature=0.3, bound=2.0,
        oversampling=1.5, epsilon=0.3, reg=0.7, seed=5,
    ),
    "PROSNKONS without a cap": lambda: op.learner.PROSNKONS(width=0.4),
    "KernelNewton": lambda: op.KernelNewton(
        size=10, rank=7, reg=0.3, width=1.4, width_factor=0.8, standardize=False, recent=False, memory=7.0, warm_up=60,
        loss="huber", loss_width=0.3, seed=5,
    ),
    "KernelNewton, Fourier": lambda: op.KernelNewton(features="fourier", size=10, warm_up=60),
    "KernelNewton, sketched": lambda: op.KernelNewton(features="sketched", size=10, rank=4),
    "KernelNewton, Exact": lambda: op.KernelNewton(size=4, design=op.Exact(dim=6, reg=0.3).append(np.eye(6))),
    "KernelNewton, FD": lambda: op.KernelNewton(size=4, design=op.FrequentDirections(dim=6, size=2)),
    "KernelNewton, RFD": lambda: op.KernelNewton(size=4, design=op.RobustFrequentDirections(dim=6, size=2)),
    "KernelNewton, splitting": lambda: op.KernelNewton(size=4, design=op.ProjectorSplitting(dim=6, rank=2)),
}  # fmt: skip
every_learner = pytest.mark.parametrize("make", MADE.values(), ids=MADE)


def targets(learner):
    return SIGNS if learner.is_classifier else F


def altered_bytes(data, tensors=None, **header):
    """Return the bytes of a file, its digest right, with other arrays or other entries of the header."""
    known, found = files.read(data)
    found = {name: array for name, array in {**found, **(tensors or {})}.items() if array is not None}
    parts = {key: known[key] for key in ("version", "kind", "params", "extra")}
    for key, value in header.items():
        parts[key] = value(parts[key]) if callable(value) else value
    return save(found, {"onepass": json.dumps(parts), "digest": files._digest(found, parts)})


def altered(path, tensors=None, **header):
    """Write the file again with other arrays or other entries of the header."""
    path.write_bytes(altered_bytes(path.read_bytes(), tensors, **header))


def test_all_learners_are_known_to_load():
    assert {type(make()) for make in MADE.values()} == set(registry.list_classes(Learner))


@every_learner
@pytest.mark.parametrize("learned", [0, 1, 9, 63, 150])
def test_learners_come_back_with_all_their_parameters_and_continue_bit_for_bit(make, learned, tmp_path):
    learner = make()
    y = targets(learner)
    learner.partial_fit(ROWS[:learned], y[:learned]).save(tmp_path / "learner")
    loaded = op.load(tmp_path / "learner")
    assert type(loaded) is type(learner)
    assert repr(loaded) == repr(learner)
    assert loaded.get_params().keys() == learner.get_params().keys()
    assert [v is None for v in loaded.get_params().values()] == [v is None for v in learner.get_params().values()]
    assert loaded.dim == learner.dim
    assert loaded.memory_usage() == learner.memory_usage()
    assert np.array_equal(loaded.decision_function(ROWS), learner.decision_function(ROWS))
    want = op.progressive_validation(learner, ROWS[learned:], y[learned:]).decisions
    found = op.progressive_validation(loaded, ROWS[learned:], y[learned:]).decisions
    assert np.array_equal(found, want)
    assert np.array_equal(loaded.decision_function(ROWS), learner.decision_function(ROWS))


def test_a_design_that_knew_something_is_still_begun_from_after_loading(tmp_path):
    design = op.Exact(dim=6, reg=0.3).append(3.0 * np.eye(6))
    learner = op.KernelNewton(size=4, design=design).partial_fit(ROWS[:5], SIGNS[:5])
    learner.save(tmp_path / "learner")
    loaded = op.load(tmp_path / "learner")
    assert np.array_equal(loaded.design.matrix(), design.matrix())
    assert np.array_equal(loaded.set_params(seed=0).design.matrix(), design.matrix())
    altered(tmp_path / "learner", {"prior.0.root": np.eye(5)})
    with pytest.raises(ValueError, match="do not fit"):
        op.load(tmp_path / "learner")


# --- estimators


@pytest.mark.parametrize(
    "learner", [None, op.learner.FORKS(**SKETCH), op.KernelNewton(size=4, design=op.Exact(dim=6))], ids=repr
)
@pytest.mark.parametrize(
    "labels", [["no", "yes"], [3, -1, 7], [0.0, 2.0], [False, True], np.array(["b", "a", "ccc"], object)], ids=repr
)
def test_classifiers_come_back_and_continue(learner, labels, tmp_path):
    y = np.array(labels)[np.searchsorted(np.quantile(F, np.arange(1, len(labels)) / len(labels)), F)]
    classifier = op.OnlineKernelClassifier(learner)
    classifier.save(tmp_path / "classifier")
    assert not hasattr(op.load(tmp_path / "classifier"), "classes_")
    classifier.fit(ROWS[:90], y[:90]).save(tmp_path / "classifier")
    loaded = op.load(tmp_path / "classifier")
    assert repr(loaded) == repr(classifier)
    assert loaded.classes_.tolist() == classifier.classes_.tolist()
    assert loaded.classes_.dtype == classifier.classes_.dtype
    assert loaded.n_features_in_ == 3
    for one in (classifier, loaded):
        one.partial_fit(ROWS[90:], y[90:])
    assert np.array_equal(loaded.decision_function(ROWS), classifier.decision_function(ROWS))
    assert np.array_equal(loaded.predict(ROWS), classifier.predict(ROWS))
    assert np.array_equal(loaded.fit(ROWS, y).decision_function(ROWS), classifier.fit(ROWS, y).decision_function(ROWS))


def test_regressors_come_back_with_the_names_of_features(tmp_path):
    import pandas as pd

    table = pd.DataFrame(ROWS, columns=["x", "y", "z"])
    regressor = op.OnlineKernelRegressor(op.KernelNewton(size=8, loss="huber")).fit(table[:90], F[:90])
    regressor.save(tmp_path / "regressor")
    loaded = op.load(tmp_path / "regressor")
    assert loaded.feature_names_in_.tolist() == ["x", "y", "z"]
    with pytest.raises(ValueError, match="feature names"):
        loaded.partial_fit(table.rename(columns={"x": "a"}), F)
    for one in (regressor, loaded):
        one.partial_fit(table[90:], F[90:])
    assert np.array_equal(loaded.predict(table), regressor.predict(table))


def test_what_could_not_be_loaded_again_is_not_saved(tmp_path):
    class Own(op.learner.RBP):
        pass

    class OwnDesign(op.Exact):
        pass

    for owner in (Own(), op.KernelNewton(size=4, design=OwnDesign(dim=6)), op.OnlineKernelClassifier(Own())):
        with pytest.raises(
            ValueError, match=r"Own\w* is not known to onepass\.load; decorate .* onepass\.extend\.savable"
        ):
            owner.save(tmp_path / "own")
    labels = np.array([(1, 2), (3, 4), None], object)[:2]
    classifier = op.OnlineKernelClassifier(op.learner.RBP()).fit(ROWS, np.where(SIGNS > 0, "a", "b"))
    classifier.classes_ = labels
    with pytest.raises(ValueError, match="numbers or strings"):
        classifier.save(tmp_path / "own")
    assert not list(tmp_path.iterdir())


def test_a_learner_of_ones_own_is_loaded_once_it_is_savable(tmp_path):
    @op.extend.savable
    class OwnFOGD(op.learner.FOGD):
        pass

    learner = OwnFOGD(budget=5).partial_fit(ROWS, SIGNS)
    learner.save(tmp_path / "own")
    assert np.array_equal(op.load(tmp_path / "own").decision_function(ROWS), learner.decision_function(ROWS))


# --- damage


@pytest.fixture
def saved(tmp_path):
    op.learner.FORKS(**SKETCH).partial_fit(ROWS, SIGNS).save(tmp_path / "learner")
    return tmp_path / "learner"


def resized(change):
    """What makes an array of another shape out of one."""
    return lambda array: np.zeros(change(np.array(array.shape)), array.dtype)


LONGER, EMPTY = resized(lambda shape: shape + 1), resized(lambda shape: 0 * shape)


@every_learner
@pytest.mark.parametrize("learned", [5, 200])
def test_no_array_of_another_shape_or_kind_comes_out_of_a_file(make, learned):
    """Every array in turn: longer, empty, of integers, with a NaN, missing."""
    learner = make()
    whole = op.to_bytes(learner.partial_fit(ROWS[:learned], targets(learner)[:learned]))
    for name, array in files.read(whole)[1].items():
        with np.errstate(over="ignore"):
            changes = [array.astype(np.float32), None]
        if array.ndim:
            changes += [LONGER(array), LONGER(array)[None]] + ([EMPTY(array)] if array.size else [])
        if array.dtype == np.float64 and array.size and not name.startswith(("states.0.design", "prior")):
            changes.append(np.full_like(array, np.nan))
        for change in changes:
            damaged = altered_bytes(whole, {name: change})
            with pytest.raises(ValueError, match=r"do not fit|columns|not all of its numbers are finite"):
                op.from_bytes(damaged)


COUNTERS = [
    ("RBP", "budget.used", (-1, 13)),
    ("RBP", "turn", (-1,)),
    ("RBP", "seed", (4,)),
    ("BPAS", "budget.used", (13,)),
    ("BPAS", "aggressiveness", (0.6,)),
    ("BOGD", "budget.used", (13,)),
    ("BOGD", "loss.kind", (9, 0)),
    ("BOGD", "step", (0.5,)),
    ("Projectron", "budget.used", (13,)),
    ("Projectron", "margins", (False,)),
    ("KOGD", "budget.used", (-1, 10**6)),
    ("KOGD", "budget.precision", (9.0,)),
    ("FOGD", "step", (0.5,)),
    ("NOGD", "buffer.used", (0, 25)),
    ("NOGD", "mapped", (False,)),
    ("SkeGD", "sketching.mapped", (False,)),
    ("SkeGD", "sketching.buffer.used", (0, 23, 25)),
    ("FORKS", "sketching.sketch.used", (-1, 10**6)),
    ("FORKS", "sketching.sketch.blocks", (0, 100)),
    ("FORKS", "sketching.sketch.seed", (4,)),
    ("FORKS", "sketching.schedule.counts", (np.array([-1, 0]), np.array([0, -1]))),
    ("FORKS", "sketching.schedule.every", (1,)),
    ("FORKS", "sketching.landmark_indices", (np.array([10**6] * 9), np.array([-1] * 9))),
    ("FORKS", "newton.alpha", (0.2,)),
    ("PROSNKONS", "dictionary.used", (-1, 21, 10**6)),
    ("PROSNKONS", "most", (0, 10**6)),
    ("PROSNKONS", "turn", (-1,)),
    ("PROSNKONS without a cap", "dictionary.used", (10**6,)),
    ("KernelNewton", "n_seen", (-1, 3)),
    ("KernelNewton", "design.waiting", (-1, 64)),
    ("KernelNewton", "loss.width", (1.0,)),
    ("KernelNewton", "min_leverage", (0.5,)),
    ("KernelNewton, sketched", "map.used", (-1, 10**6)),
    ("KernelNewton, sketched", "map.blocks", (0, 100)),
    ("KernelNewton, FD", "design.space.used", (-1, 100)),
    ("KernelNewton, splitting", "design.used", (-1, 100)),
]


@pytest.mark.parametrize(("name", "place", "values"), COUNTERS, ids=lambda v: v if isinstance(v, str) else "")
def test_counters_and_places_outside_of_arrays_are_refused(name, place, values, tmp_path):
    learner = MADE[name]()
    learner.partial_fit(ROWS, targets(learner)).save(tmp_path / "learner")
    whole, before = (tmp_path / "learner").read_bytes(), files.read((tmp_path / "learner").read_bytes())[1]
    for value in values:
        (tmp_path / "learner").write_bytes(whole)
        array = np.asarray(value, before[f"states.0.{place}"].dtype)
        assert not np.array_equal(array, before[f"states.0.{place}"])
        altered(tmp_path / "learner", {f"states.0.{place}": array})
        with pytest.raises(ValueError, match="do not fit"):
            op.load(tmp_path / "learner")


def test_a_full_buffer_that_says_it_is_not_mapped_is_refused(tmp_path):
    """The next example would be written behind its end."""
    for name in ("NOGD", "SkeGD", "FORKS"):
        learner = MADE[name]()
        learner.partial_fit(ROWS[:10], targets(learner)[:10]).save(tmp_path / "learner")
        buffer = "buffer" if name == "NOGD" else "sketching.buffer"
        altered(tmp_path / "learner", {f"states.0.{buffer}.used": np.array(24)})
        with pytest.raises(ValueError, match="do not fit"):
            op.load(tmp_path / "learner")


def test_arrays_that_grow_may_not_be_empty(tmp_path):
    """An empty array doubles to an empty one, and the next example is written behind its end."""
    op.learner.KOGD(loss="squared").partial_fit(ROWS[:3], F[:3]).save(tmp_path / "learner")
    empty = {"points": np.zeros((0, 3)), "weights": np.zeros(0), "kernel_values": np.zeros(0), "used": np.array(0)}
    altered(tmp_path / "learner", {f"states.0.budget.{name}": array for name, array in empty.items()})
    with pytest.raises(ValueError, match=r"do not fit|columns|not all of its numbers are finite"):
        op.load(tmp_path / "learner")


HEADERS = [
    {"kind": "os.system"},
    {"kind": ["FORKS"]},
    {"kind": "RBP"},
    {"kind": "OnlineKernelClassifier"},
    {"params": {}},
    {"params": lambda p: {**p, "budget": -1}},
    {"params": lambda p: {**p, "budget": 13}},
    {"params": lambda p: {**p, "budget": 10**14}},
    {"params": lambda p: {**p, "own": 1}},
    {"params": lambda p: {**p, "seed": 4}},
    {"extra": {}},
    {"extra": {"dim": 4}},
    {"extra": {"dim": 0}},
    {"extra": {"dim": -3}},
    {"extra": {"dim": 10**15}},
    {"extra": {"dim": "3"}},
]


@pytest.mark.parametrize("header", HEADERS, ids=[str(n) for n in range(len(HEADERS))])
def test_headers_that_do_not_fit_are_refused(saved, header):
    altered(saved, **header)
    with pytest.raises(ValueError, match="is damaged: its"):
        op.load(saved)


EXTRAS = [
    {"fitted": 2},
    {"fitted": 0},
    {"fitted": -1},
    {"dim": 4},
    {"dim": 0},
    {"names": ["x"]},
    {"names": 3},
    {"classes": None},
    {"classes": {"dtype": "<U1", "labels": ["a"]}},
    {"classes": {"dtype": "<U1", "labels": ["b", "a"]}},
    {"classes": {"dtype": "<U1", "labels": ["a", "a"]}},
    {"classes": {"dtype": "<U1", "labels": ["a", "b", "c"]}},
    {"classes": {"dtype": "V8", "labels": ["a", "b"]}},
    {"classes": {"dtype": "<f8", "labels": ["a", "b"]}},
    {"classes": {"dtype": "O", "labels": [["a"], ["b"]]}},
    {"classes": {"labels": ["a", "b"]}},
]


@pytest.mark.parametrize("extra", EXTRAS, ids=[str(n) for n in range(len(EXTRAS))])
def test_estimators_whose_classes_do_not_fit_are_refused(tmp_path, extra):
    path = tmp_path / "classifier"
    op.OnlineKernelClassifier(op.learner.RBP(budget=3)).fit(ROWS, np.where(SIGNS > 0, "a", "b")).save(path)
    altered(path, extra=lambda known: {**known, **extra})
    with pytest.raises(ValueError, match="is damaged: its"):
        op.load(path)
    altered(path, extra=lambda known: known, params={"learner": {"kind": "Exact", "dim": 3}})
    with pytest.raises(ValueError, match="is damaged: its"):
        op.load(path)
