"""Learners on a budget: degenerate streams, pieces, copies, memory, arguments."""

import numpy as np
import pytest
import scipy.sparse

import onepass as op
from budget_streams import decisions, stream
from dense_learners import LOSSES
from onepass.foundation import state as states
from onepass.learner.contract import learn_examples

# --- all at once

LEARNERS = {
    "RBP": lambda **p: op.learner.RBP(**{"budget": 20, "seed": 3, **p}),
    "BOGD": lambda **p: op.learner.BOGD(**{"budget": 20, "seed": 3, **p}),
    "BPAS": lambda **p: op.learner.BPAS(**{"budget": 20, **p}),
    "Projectron": lambda **p: op.learner.Projectron(**{"budget": 20, **p}),
    "Projectron++": lambda **p: op.learner.Projectron(**{"budget": 20, "margins": True, **p}),
    "KOGD": lambda **p: op.learner.KOGD(**{"reg": 0.1, **p}),
    "FOGD": lambda **p: op.learner.FOGD(**{"budget": 20, "seed": 3, **p}),
    "NOGD": lambda **p: op.learner.NOGD(**{"budget": 20, **p}),
    "SkeGD": lambda **p: op.learner.SkeGD(**{"budget": 20, "rank": 4, "seed": 3, "update_every": 0.1, **p}),
    "FORKS": lambda **p: op.learner.FORKS(**{"budget": 20, "rank": 4, "seed": 3, "update_every": 0.1, **p}),
    "PROSNKONS": lambda **p: op.learner.PROSNKONS(**{"budget": 20, "seed": 3, **p}),
    "PROSNKONS without a cap": lambda **p: op.learner.PROSNKONS(**{"reg": 0.3, "seed": 3, **p}),
}
OF_ANY_LOSS = [name for name in LEARNERS if name not in ("RBP", "BPAS", "Projectron", "Projectron++")]
SEEDED = [n for n in LEARNERS if n not in ("BPAS", "Projectron", "Projectron++", "KOGD", "NOGD")]


every_learner = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)


def degenerate():
    count = 400
    alternating = np.where(np.arange(count) % 3 == 0, -1.0, 1.0)
    rows, targets = stream(count)
    return {
        "zeros": (np.zeros((count, 2)), alternating),
        "constant": (np.full((count, 4), 3.7), alternating),
        "huge": (1e9 * rows, targets),
        "largest": (1e149 * rows, targets),
        "tiny": (1e-170 * rows, alternating),
        "one class": (rows, np.ones(count)),
        "the other class": (rows, -np.ones(count)),
        "two points": (rows[[0, 1] * 200], alternating),
        "a line of nearly equal points": (1e-8 * np.arange(count)[:, None] * [[1.0, 0.0]], alternating),
        "one column": (rows[:, :1], targets),
        "more columns than examples": (np.random.default_rng(0).standard_normal((30, 200)), targets[:30]),
        "zeros, then not": (np.vstack([np.zeros((200, 3)), rows[:200]]), targets),
    }


@every_learner
@pytest.mark.parametrize("kind", degenerate())
def test_degenerate_streams_give_finite_decisions(make, kind):
    rows, targets = degenerate()[kind]
    for width in (0.05, 1.0, 300.0):
        learner = make(width=width)
        found = decisions(learner, rows, targets)
        assert np.isfinite(found).all()
        assert np.abs(found).max() < 1e4
        assert np.isfinite(learner.decision_function(rows)).all()


@pytest.mark.parametrize("name", OF_ANY_LOSS)
@pytest.mark.parametrize("loss", LOSSES)
def test_degenerate_streams_give_finite_decisions_for_every_loss(name, loss):
    for rows, targets in degenerate().values():
        assert np.isfinite(decisions(LEARNERS[name](loss=loss, loss_width=0.1), rows, targets)).all()


@pytest.mark.parametrize("name", [name for name in LEARNERS if name != "PROSNKONS without a cap"])  # resets go on
def test_targets_of_one_class_are_learned(name):
    rows, make = stream(300)[0], LEARNERS[name]
    for y in (-1.0, 1.0):
        found = op.progressive_validation(make(width=2.0), rows, np.full(300, y))
        assert (found.mistakes[-100:] == 0.0).all()
        assert found.mistake_rate < 0.1


@every_learner
def test_learning_in_pieces_or_one_by_one_is_bit_for_bit_the_same(make):
    rows, targets = stream(500)
    queries = stream(60, seed=1)[0]
    whole, pieces, single, watched = (make(width=1.1) for _ in range(4))
    found = decisions(watched, rows, targets)
    whole.partial_fit(rows, targets)
    for start, end in ((0, 1), (1, 1), (1, 138), (138, 500)):
        pieces.partial_fit(rows[start:end], targets[start:end])
        pieces.decision_function(queries)  # asking changes nothing
    one_by_one = np.empty(500)
    for t in range(500):
        one_by_one[t] = single.decision_function(rows[t : t + 1])[0]
        single.learn_one(rows[t], targets[t])
    np.testing.assert_array_equal(found, one_by_one)
    want = whole.decision_function(queries)
    for other in (pieces, single, watched, whole.copy()):
        np.testing.assert_array_equal(other.decision_function(queries), want)
    assert [whole.predict_one(x) for x in queries[:9]] == whole.predict(queries[:9]).tolist()
    np.testing.assert_array_equal(decisions(make(width=1.1), rows, targets), found)  # and again the same


def packed(state, gap):
    """The same state with its arrays in one piece of memory, so many numbers between them."""
    found, used = dict(states.leaves(states.copy(state))), gap
    arrays = {k: v for k, v in found.items() if isinstance(v, np.ndarray) and v.dtype == np.float64}
    memory = np.zeros(gap + sum(v.size + gap for v in arrays.values()))
    for name, array in arrays.items():
        found[name] = memory[used : used + array.size].reshape(array.shape)
        found[name][...] = array
        used += array.size + gap
    return states.rebuild(state, found)


@every_learner
def test_decisions_do_not_depend_on_where_arrays_lie(make):
    """Sums in memory may be vectorized where arrays are far enough from each other, and reassociated with that."""
    rows, targets = stream(500)
    state, found = make(width=1.1).begin(3), []
    for gap in (0, 1, 2, 8, 40, 500):
        now, first = learn_examples(packed(state, gap), rows[:120], targets[:120])
        found.append(np.append(first, learn_examples(packed(now, gap), rows[120:], targets[120:])[1]))
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


@pytest.mark.parametrize("name", SEEDED)
def test_another_seed_is_another_learner(name):
    rows, targets = stream()
    found = [decisions(LEARNERS[name](seed=seed), rows, targets) for seed in (3, 4, 2**32 - 1)]
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert np.abs(found[i] - found[j]).max() > 1e-3


@every_learner
def test_arrays_that_are_lists_of_another_type_or_order_are_the_same(make):
    rows, targets = stream(120)
    rows = np.round(rows, 1).astype(np.float32).astype(np.float64)
    want = decisions(make(), rows, targets)
    for X, y in (
        (rows.tolist(), targets.tolist()),
        (rows.astype(np.float32), targets.astype(np.int8)),
        (np.asfortranarray(rows), targets[::1]),
        (np.repeat(rows, 2, axis=0)[::2], np.repeat(targets, 2)[::2]),
    ):
        np.testing.assert_array_equal(decisions(make(), X, y), want)


@every_learner
def test_bad_examples_are_one_value_error_and_change_nothing(make):
    rows, targets = stream(150)
    learner = make(width=1.0).partial_fit(rows, targets)
    before, held = learner.decision_function(rows), learner.memory_usage()
    bad = [
        (np.vstack([rows[:3], [[0.0, np.nan, 0.0]]]), [1.0, -1.0, 1.0, 1.0], "X"),
        (np.vstack([rows[:3], [[0.0, np.inf, 0.0]]]), [1.0, -1.0, 1.0, 1.0], "X"),
        (np.full((1, 3), 1e200), [1.0], "X"),
        (rows[:2], [1.0, np.nan], "y"),
        (rows[:2], [1.0, -np.inf], "y"),
        (rows[:2], [1.0, 0.0], "-1 or 1"),
        (rows[:2], [1.0, 2.0], "-1 or 1"),
        (rows[:2], [1.0], "one entry"),
        (rows[:2], [1.0, 1.0, 1.0], "one entry"),
        (rows[:2], [[1.0], [1.0]], "y"),
        (rows[:2, :2], [1.0, 1.0], "X"),
        (np.zeros((2, 4)), [1.0, 1.0], "X"),
        (rows[0], [1.0], "X"),
        (rows[None], [1.0], "X"),
        ([["a", "b", "c"]], [1.0], "X"),
        (1j * rows[:1], [1.0], "X"),
        (rows[:1], ["1"], "y"),
    ]
    for X, y, said in bad:
        for learn in (learner.partial_fit, lambda X, y: op.progressive_validation(learner, X, y)):
            with pytest.raises(ValueError, match=said):
                learn(X, y)
    for x, y in ((rows[:1], 1.0), (rows[0, :2], 1.0), (rows[0], np.nan), (rows[0], 0.5), (0.3, 1.0)):
        with pytest.raises(ValueError, match=r"x|X|y"):
            learner.learn_one(x, y)
    for asked in (rows[:, :2], np.full((1, 3), np.nan), rows[0]):
        with pytest.raises(ValueError, match="X"):
            learner.decision_function(asked)
        with pytest.raises(ValueError, match="X"):
            learner.predict(asked)
    assert np.array_equal(learner.decision_function(rows), before)
    assert learner.memory_usage() == held
    fresh = make(width=1.0)
    for X, y, said in bad[:9]:
        with pytest.raises(ValueError, match=said):
            fresh.partial_fit(X, y)
    assert fresh.dim == 0
    assert fresh.predict(rows).tolist() == [1.0] * 150  # nothing learned yet
    assert np.array_equal(fresh.partial_fit(rows, targets).decision_function(rows), before)


@pytest.mark.parametrize("name", OF_ANY_LOSS)
def test_regression_takes_any_target_and_counts_squared_errors(name):
    rows, targets = stream(loss="squared")
    for loss in ("squared", "huber", "epsilon_insensitive"):
        learner = LEARNERS[name](loss=loss, loss_width=0.3)
        found = op.progressive_validation(learner, rows, targets)
        np.testing.assert_allclose(found.mistakes, (found.decisions - targets) ** 2)
        assert found.mistake_rate == found.mistakes.mean()
        assert np.array_equal(learner.predict(rows), learner.decision_function(rows))
        with pytest.raises(ValueError, match="y"):
            learner.partial_fit(rows[:1], [np.nan])


@every_learner
def test_a_copy_is_independent(make):
    rows, targets = stream(200)
    others = stream(200, seed=5)
    assert make().copy().dim == 0
    for learned in (0, 7, 45, 200):
        learner = make(width=0.8).partial_fit(rows[:learned], targets[:learned])
        before, twin = learner.decision_function(rows), learner.copy()
        assert repr(twin) == repr(learner)
        want = twin.partial_fit(*others).decision_function(rows)
        assert np.array_equal(learner.decision_function(rows), before)
        assert twin.params is not learner.params
        later = learner.copy()
        learner.partial_fit(*others)
        assert np.array_equal(later.decision_function(rows), before)
        assert np.array_equal(learner.decision_function(rows), want)


@pytest.mark.parametrize("name", [n for n in LEARNERS if n not in ("KOGD", "PROSNKONS without a cap")])
def test_memory_is_constant_once_the_budget_is_full(name):
    p = {"update_every": 10**6} if name in ("FORKS", "SkeGD") else {}
    learner = LEARNERS[name](width=0.5, **p)
    assert learner.memory_usage() == 0
    held = learner.partial_fit(*stream(400)).memory_usage()
    assert held > 0
    assert learner.partial_fit(*stream(3000, seed=1)).memory_usage() == held


def test_memory_follows_the_budget_and_the_width_of_a_row():
    for name in ("RBP", "BOGD", "BPAS"):
        learner = LEARNERS[name](budget=1000).partial_fit(*stream(10, dim=50))
        assert 1000 * 50 * 8 <= learner.memory_usage() <= 1000 * 53 * 8
    assert LEARNERS["KOGD"]().partial_fit(*stream(2000)).memory_usage() > 300 * 4 * 8


@every_learner
@pytest.mark.parametrize(
    "wrong",
    [
        {"width": 0.0},
        {"width": -1.0},
        {"width": np.nan},
        {"width": np.inf},
        {"width": "1"},
        {"width": True},
        {"width": None},
        {"budget": 1},
        {"budget": 0},
        {"budget": 2.0},
        {"budget": True},
        {"loss": "perceptron"},
        {"loss": None},
        {"step": 0.0},
        {"step": -0.1},
        {"step": np.inf},
        {"seed": -1},
        {"seed": 2**32},
        {"seed": 0.5},
    ],
    ids=repr,
)
def test_wrong_parameters_are_refused_by_name(make, wrong):
    name = next(iter(wrong))
    if name not in make().params:
        with pytest.raises(TypeError, match=name):
            make(**wrong)
        return
    with pytest.raises(ValueError, match=rf"\b{name} must"):
        make(**wrong)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("BOGD", {"reg": -0.1}),
        ("BOGD", {"step": 0.5, "reg": 2.0}),
        ("BOGD", {"reg": np.nan}),
        ("BOGD", {"cap": 0.0}),
        ("KOGD", {"step": 0.5, "reg": 2.0}),
        ("BPAS", {"aggressiveness": 0.0}),
        ("BPAS", {"aggressiveness": np.nan}),
        ("Projectron", {"eta": 0.0}),
        ("Projectron", {"eta": 1.0}),
        ("Projectron", {"margins": 2}),
        ("FOGD", {"features": 3}),
        ("FOGD", {"features": 0}),
        ("FOGD", {"features": 4.0}),
        ("NOGD", {"rank": 0}),
        ("NOGD", {"rank": 41}),
        ("SkeGD", {"sketch_size": 3, "rank": 4}),
        ("SkeGD", {"sample_size": 3, "rank": 4}),
        ("SkeGD", {"rank": 0}),
        ("SkeGD", {"sample_size": 41}),
        ("SkeGD", {"sample_size": 0}),
        ("SkeGD", {"sketch_size": 0}),
        ("SkeGD", {"blocks": 3}),
        ("SkeGD", {"blocks": 0}),
        ("SkeGD", {"update_every": 0}),
        ("SkeGD", {"update_every": 0.0}),
        ("SkeGD", {"update_every": -0.5}),
        ("SkeGD", {"update_every": np.nan}),
        ("SkeGD", {"update_every": "1"}),
        ("FORKS", {"curvature": -1e-9}),
        ("FORKS", {"curvature": np.nan}),
        ("FORKS", {"decaying_curvature": -0.1}),
        ("FORKS", {"decaying_curvature": np.inf}),
        ("FORKS", {"decaying_curvature": "1"}),
        ("PROSNKONS", {"alpha": 0.0}),
        ("PROSNKONS", {"curvature": -1.0}),
        ("PROSNKONS", {"bound": np.inf}),
        ("PROSNKONS", {"oversampling": 0.0}),
        ("PROSNKONS", {"epsilon": -0.5}),
        ("PROSNKONS", {"reg": 0.0}),
    ],
    ids=repr,
)
def test_wrong_parameters_of_some_learners_are_refused_by_name(name, wrong):
    with pytest.raises(ValueError, match=rf"\b{list(wrong)[-1]} must"):
        LEARNERS[name](**wrong)


@pytest.mark.parametrize("name", OF_ANY_LOSS)
@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, "1"])
def test_a_wrong_width_of_the_loss_is_refused_by_name(name, wrong):
    with pytest.raises(ValueError, match=r"^loss_width must"):
        LEARNERS[name](loss_width=wrong)


@pytest.mark.parametrize("make", [op.learner.FORKS, op.learner.SkeGD])
@pytest.mark.parametrize("share", [1.5, 40.0])
def test_shares_above_one_are_refused(make, share):
    with pytest.raises(ValueError, match="update_every must"):
        make(update_every=share)


@every_learner
@pytest.mark.parametrize("width", [1e-200, 1e-160, 1e200])
def test_widths_whose_squares_are_no_numbers_are_refused(make, width):
    with pytest.raises(ValueError, match=r"^width must"):
        make(width=width)


@every_learner
def test_rows_without_columns_are_refused(make):
    with pytest.raises(ValueError, match="X"):
        make().partial_fit(np.zeros((2, 0)), [1.0, -1.0])


@pytest.mark.parametrize(
    ("X", "y", "said"), [(5, [1.0], "X"), (np.ones((1, 2)), 1.0, "y"), ([[1.0], [1.0, 2.0]], [1.0, 1.0], "X must")]
)
def test_validation_refuses_bad_shapes_as_learning_does(X, y, said):
    with pytest.raises(ValueError, match=said):
        op.learner.RBP().partial_fit(X, y)
    with pytest.raises(ValueError, match=said):
        op.progressive_validation(op.learner.RBP(), X, y)


@every_learner
def test_sparse_rows_are_the_dense_ones(make):
    rows, targets = stream(100)
    sparse = scipy.sparse.csr_matrix(np.where(rows > 0.0, rows, 0.0))
    want = decisions(make(), sparse.toarray(), targets)
    found = make().partial_fit(sparse, targets).decision_function(sparse)
    np.testing.assert_array_equal(found, make().partial_fit(sparse.toarray(), targets).decision_function(sparse))
    np.testing.assert_array_equal(decisions(make(), sparse, targets), want)


@every_learner
def test_what_a_learner_is_made_of_can_be_read_and_made_again(make):
    learner = make(width=0.7)
    again = type(learner)(**learner.params)
    assert again.params == learner.params
    assert repr(again) == repr(learner) == repr(eval(repr(learner), {**vars(op), **vars(op.learner)}))
    rows, targets = stream(200)
    np.testing.assert_array_equal(decisions(again, rows, targets), decisions(learner, rows, targets))
    assert learner.dim == 3


def test_every_learner_of_this_kind_is_tested_here():
    named = {getattr(op.learner, name) for name in op.learner.__all__} - {op.learner.TISVD}  # a decomposition
    assert {type(make()) for make in LEARNERS.values()} == named
