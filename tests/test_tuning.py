"""Ask and tell: what is asked lies in the space, what was told is known, and a loaded tuner goes on alike."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dense_kernel
import onepass as op
from counts import many
from onepass.foundation import files
from onepass.tuning import Category, Integer, Real, Space, Tuner, likelihood, proposing, surrogate

MIXED = {
    "model": Category(("svm", "tree", None)),
    "C": Real(1e-3, 1e3, log=True, when={"model": "svm"}),
    "depth": Integer(1, 20, log=True, when={"model": ("tree", None)}),
    "share": Real(-1.0, 2.0),
    "power": Integer(-3, 3),
}


def paid(found: dict) -> float:
    """A smooth function of the mixed space, largest at the tree of depth 7, share 0.4, power 0."""
    share = -((found["share"] - 0.4) ** 2) - 0.05 * abs(found["power"])
    if found["model"] == "svm":
        return share + 0.2 - (np.log10(found["C"]) / 3.0 - 0.3) ** 2
    return share + 0.4 - abs(np.log(found["depth"] / 7.0)) - 0.5 * (found["model"] is None)


def played(tuner: Tuner, rounds: int, at_once: int = 1) -> Tuner:
    for _ in range(rounds):
        for trial in tuner.ask(at_once):
            tuner.tell(trial, paid(trial.settings))
    return tuner


@given(st.lists(st.floats(0.0, 1.0), min_size=5, max_size=5))
@settings(max_examples=many(50, 2_000), deadline=None)
def test_settings_and_shares_are_inverse_but_for_rounding_and_lie_where_the_kernel_sees_them(shares):
    space = Space(MIXED)
    found = space.settings(np.array(shares))
    assert space.checked(found) == found
    again = space.settings(space.shares(found))
    assert again.keys() == found.keys()
    assert all(again[name] == pytest.approx(value) if type(value) is float else again[name] == value
               for name, value in found.items())  # fmt: skip
    rows = space.rows(np.array([shares, space.shares(found)]))
    np.testing.assert_allclose(rows[0], rows[1], atol=1e-12)


def test_settings_that_play_no_part_do_not_set_points_apart():
    space = Space(MIXED)
    one, other = (space.rows(np.array([[0.1, 0.5, depth, 0.3, 0.2]])) for depth in (0.1, 0.9))
    np.testing.assert_array_equal(one, other)


def test_a_finite_space_is_gone_through_once():
    space = Space({"a": Category(("x", "y")), "n": Integer(1, 3, when={"a": "x"}), "m": Integer(0, 1)})
    every = [tuple(one.items()) for one in space.all()]
    assert len(every) == len(set(every)) == 3 * 2 + 2


def test_the_gradient_of_the_likelihood_is_that_of_differences():
    rng = np.random.default_rng(0)
    rows, values, owners = rng.random((12, 3)), rng.standard_normal(12), np.array([0, 0, 1])
    apart, modes = likelihood.distances(rows, owners), np.zeros(4)
    logs, step = np.array([-0.5, 0.3, 0.2, -2.0]), 1e-6
    _, slopes = likelihood.negative(logs, apart, values, modes)
    for i, slope in enumerate(slopes):
        move = step * (np.arange(4) == i)
        above, below = (likelihood.negative(logs + s * move, apart, values, modes)[0] for s in (1.0, -1.0))
        assert slope == pytest.approx((above - below) / (2.0 * step), rel=1e-5, abs=1e-7)


def test_the_log_of_expected_improvement_is_that_of_quadrature_and_ranks_far_from_the_best():
    deviation, grid = 0.7, np.linspace(-12.0, 12.0, 400_001)
    density = np.exp(-0.5 * grid**2) / np.sqrt(2.0 * np.pi) * (grid[1] - grid[0])
    for mean in (-3.0, -0.8, -0.6, 0.0, 2.0):
        truth = np.log(np.sum(np.maximum(mean + deviation * grid, 0.0) * density))
        (found,) = proposing.log_improvement(np.array([mean]), np.array([deviation]), 0.0)
        assert found == pytest.approx(truth, abs=1e-5)
    far = proposing.log_improvement(np.array([-1e12, -1e8, -1e4, -100.0, -10.0]), np.ones(5), 0.0)
    assert np.isfinite(far).all()
    assert (np.diff(far) > 0.0).all()


def test_units_bend_the_bad_half_and_come_back():
    units = surrogate.units_of(np.array([-100.0, 0.0, 1.0, 3.0]))
    values = np.array([-1e6, -3.0, 0.5, 0.6, 3.0, 50.0])
    np.testing.assert_allclose(units.outside(units.inside(values)), values, rtol=1e-9)
    assert (np.diff(units.inside(values)) > 0.0).all()


def test_the_best_of_a_mixed_space_is_found_one_by_one_and_in_parallel():
    for at_once in (1, 4):
        tuner = played(Tuner(MIXED, seed=3), 48 // at_once, at_once)
        best = tuner.best.settings
        assert (best["model"], best["depth"]) == ("tree", 7)
        assert paid(best) > 0.3  # of 0.4


def test_many_at_once_are_spread_out_as_after_trials_that_paid_their_means():
    """Variances do not depend on rewards: with pending trials widths are those after them, whatever they will pay."""
    tuner = Tuner({"x": Real(0.0, 1.0), "y": Real(0.0, 1.0)}, kernel=op.RBF(0.3), noise=1e-3, start=4)
    for trial in tuner.ask(8):
        tuner.tell(trial, trial.settings["x"])
    several = tuner.ask(4)
    places = np.array([[one.settings["x"], one.settings["y"]] for one in several])
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)[np.triu_indices(4, 1)]
    assert apart.min() > 0.05
    told = np.array([[trial.settings["x"], trial.settings["y"]] for trial in tuner.trials if trial.value is not None])
    known = np.concatenate([told, places])
    truth = dense_kernel.GP(op.RBF(0.3), 1e-3)
    for place in known:
        truth.learn(place, 0.0)
    deviations = np.sqrt(1e-3 * truth.posterior(places)[1])
    for trial in several:
        tuner.tell(trial, 123.0)
    _, low, high = tuner.expected([one.settings for one in several], 1.0)
    np.testing.assert_allclose((high - low) / 2.0, deviations, rtol=1e-6)


def test_failures_are_known_and_avoided():
    tuner = Tuner({"x": Real(0.0, 1.0)}, seed=1)
    for value in (None, float("nan"), float("inf")):
        tuner.tell(tuner.ask(), value)
    assert [trial.status for trial in tuner.trials] == ["failed"] * 3
    for _ in range(25):  # what pays most crashes
        trial = tuner.ask()
        tuner.tell(trial, None if trial.settings["x"] > 0.7 else trial.settings["x"])
    assert 0.6 < tuner.best.settings["x"] <= 0.7


def test_constraints_hold_from_the_first_trial_on():
    tuner = Tuner({"x": Real(0.0, 1.0), "y": Real(0.0, 1.0)}, allowed=lambda one: one["x"] + one["y"] < 0.5)
    for _ in range(20):
        trial = tuner.ask()
        assert trial.settings["x"] + trial.settings["y"] < 0.5
        tuner.tell(trial, trial.settings["x"])
    assert tuner.best.settings["x"] > 0.45
    tuner.allowed = lambda one: False
    with pytest.raises(ValueError, match="allowed refuses"):
        tuner.ask()
    assert len(tuner.trials) == 20


@pytest.mark.parametrize("told", [3, 19, 40])
def test_a_saved_tuner_asks_what_it_would_have(tmp_path, told):
    tuner = played(Tuner(MIXED, seed=5), told)
    tuner.ask(2)  # pending ones are kept too
    tuner.tell({"model": "svm", "C": 2.0, "share": 0.5, "power": 1}, None)
    tuner.save(tmp_path / "tuner")
    again = op.load(tmp_path / "tuner")
    assert again.trials == tuner.trials
    for _ in range(4):
        trial, same = tuner.ask(), again.ask()
        assert trial == same
        tuner.tell(trial, paid(trial.settings))
        again.tell(same, paid(same.settings))
    assert again.best == tuner.best


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("drawn", 10**12),  # the sequence would be gone through for hours
        ("order", [0, 0]),
        ("trials", [[[["x", 2.0]], 1.0, "told"]]),
        ("model", [[[0.1, 0.1], 1.0, 1.0], [0.0, 1.0, True], [1]]),
    ],
)
def test_what_does_not_fit_is_refused(name, value):
    tuner = Tuner({"x": Real(0.0, 1.0)})
    tuner.tell(tuner.ask(), 1.0)
    contents = tuner.contents()
    with pytest.raises(ValueError, match=r"must|fit"):
        files.restored(Tuner, contents.params, contents.extra | {name: value}, contents.state)


def test_a_constraint_is_asked_for_after_loading():
    tuner = Tuner({"x": Real(0.0, 1.0)}, allowed=lambda one: one["x"] < 0.5)
    again = op.from_bytes(op.to_bytes(tuner))
    with pytest.raises(ValueError, match="set it again"):
        again.ask()
    again.allowed = tuner.allowed
    assert again.ask() == tuner.ask()


def test_nothing_more_is_left_than_the_bound_says_in_games_of_the_kernel():
    """f is a draw of the kernel on all settings of a finite space, noise normal: at most delta of the bounds fail."""
    kernel, noise, delta, games = op.RBF(0.15), 0.01, 0.2, many(20, 300)
    space = {"n": Integer(0, 40)}
    rows = Space(space).rows(Space(space).shares({"n": 0})[None] * 0.0 + np.arange(41)[:, None] / 41 + 0.5 / 41)
    failed = 0
    for game in range(games):
        rng = np.random.default_rng(game)
        f = np.linalg.cholesky(kernel(rows, rows) + 1e-9 * np.eye(41)) @ rng.standard_normal(41)
        tuner, wrong = Tuner(space, kernel=kernel, noise=noise, start=2, seed=game), False
        for _ in range(12):
            trial = tuner.ask()
            tuner.tell(trial, f[trial.settings["n"]] + noise**0.5 * rng.standard_normal())
            wrong |= bool(f.max() - f[tuner.best.settings["n"]] > tuner.left(delta))
        failed += wrong
    assert failed <= delta * games


def test_what_is_left_falls_until_one_may_stop():
    tuner = Tuner({"n": Integer(0, 30)}, kernel=op.RBF(0.3), noise=1e-4, start=3)
    assert tuner.left() == np.inf
    rounds = 0
    while tuner.left() > 0.05:
        trial = tuner.ask()
        tuner.tell(trial, np.sin(trial.settings["n"] / 6.0))
        rounds += 1
    assert rounds < 31
    assert tuner.best.settings["n"] == 9


def test_pictures_are_drawn(tmp_path):
    tuner = played(Tuner(MIXED, seed=3, maximize=False), 15)
    assert tuner.picture(tmp_path / "tuner.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Real(1.0, 1.0), "low must be below high"),
        (lambda: Real(0.0, 1.0, log=True), "low must be above 0"),
        (lambda: Integer(0, 5, log=True), "low must be an integer"),
        (lambda: Category(("a", "a")), "at least two different"),
        (lambda: Real(0.0, 1.0, when=3), "when must be a dictionary"),
        (lambda: Tuner({}), "settings must be a dictionary"),
        (lambda: Tuner({"x": Real(0.0, 1.0, when={"y": 1})}), "no setting before it"),
        (lambda: Tuner({"x": Real(0.0, 1.0)}, kernel=op.RBF()), "given together"),
        (lambda: Tuner({"x": Real(0.0, 1.0)}).tell({"x": 2.0}, 1.0), "x must be from"),
        (lambda: Tuner({"x": Real(0.0, 1.0)}).tell({}, 1.0), "settings must have x"),
        (lambda: Tuner({"x": Real(0.0, 1.0)}).tell({"x": 0.5, "y": 1}, 1.0), "plays no part"),
        (lambda: Tuner({"x": Real(0.0, 1.0)}).tell(0, 1.0), "trial must be"),
        (lambda: Tuner({"x": Real(0.0, 1.0)}).tell({"x": 0.5}, "much"), "value must be a number"),
        (lambda: Tuner({"x": Real(0.0, 1.0)}).best, "first value"),
        (lambda: Tuner({"x": Real(0.0, 1.0)}).left(1.0), "delta must be between"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused_in_a_sentence(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()


def test_what_was_told_is_told_once():
    tuner = Tuner({"x": Real(0.0, 1.0)})
    trial = tuner.ask()
    tuner.tell(trial, 1.0)
    with pytest.raises(ValueError, match="trial must be pending"):
        tuner.tell(trial, 1.0)
