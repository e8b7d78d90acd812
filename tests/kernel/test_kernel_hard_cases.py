"""Kernel bandits on hard cases and bad input: a sane posterior, or one sentence and no change."""

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as sk

import dense_kernel as dense
import onepass as op
from kernel_games import (
    ARMS,
    BANDITS,
    REGS,
    SETS,
    SMOOTH,
    are_equal,
    are_equal_runs,
    assert_close,
    assert_posterior_close,
    breaking,
    draw_arm_set,
    history,
    learn,
    points,
    run,
    value,
)

# ---- nothing breaks them ----


def sane(bandit, rows, sets):
    """Finite, no negative variance, and still able to decide."""
    for posterior in map(bandit.model.posterior, (rows, None) if sets == "fixed" else (rows,)):
        assert all(np.isfinite(part).all() for part in posterior)
        assert (posterior.variances >= 0).all()
        assert (posterior.deviations >= 0).all()
    assert bandit.model.dictionary_size > 0
    assert len(bandit.model.dictionary) > 0
    decision = bandit.decide(None if sets == "fixed" else rows)
    assert np.isfinite(decision.scores).all()


HARD = {
    "duplicated arms": (np.repeat(points(4), 10, axis=0), op.RBF(0.2)),
    "almost duplicated arms": (np.repeat(points(4), 10, axis=0) + 1e-9 * points(40, 1), op.RBF(0.2)),
    "a length scale of 1e3": (points(), op.RBF(1e3)),
    "a length scale of 1e-6": (points(), op.RBF(1e-6)),
    "one arm": (points(1), op.RBF(0.2)),
    "rank one": (points(), op.Linear(0.0) * op.Linear(1e-12)),
    "an arm of zeros": (np.vstack([np.zeros(2), points(10)]), op.Linear()),
    "a large variance": (points(), 1e8 * op.Matern(1.5, 0.3)),
    "a small variance": (points(), 1e-8 * op.Matern(1.5, 0.3)),
}


@pytest.mark.parametrize("reg", [*REGS, 1e-8])
@pytest.mark.parametrize("hard", HARD)
@pytest.mark.parametrize("make", [*BANDITS, "an empty draw"])
def test_hard_cases_leave_a_sane_posterior(make, hard, reg):
    arms, kernel = HARD[hard]
    make = {**BANDITS, "an empty draw": lambda *a, **k: op.BKB(*a, oversampling=1e-9, **k)}[make]
    for sets in ("fixed", "rows"):
        for constant in (True, False):
            bandit = make(arms if sets == "fixed" else None, kernel, reg=reg, normalize=constant)
            plays = history(arms, 60)[0]
            rewards = np.full(60, 3.0) if constant else value(arms)[plays]
            for t in range(20):
                learn(bandit, int(plays[t]) if sets == "fixed" else arms[plays[t]], float(rewards[t]))
                sane(bandit, arms, sets)
            learn(bandit, plays[20:] if sets == "fixed" else arms[plays[20:]], rewards[20:])
            sane(bandit, arms, sets)
            if constant and hard != "an arm of zeros":
                assert np.abs(bandit.model.posterior(arms).means - 3.0).max() < 1e-6  # centred rewards are all 0


@pytest.mark.parametrize("make", BANDITS)
def test_thompson_sampling_survives_duplicates_and_long_length_scales(make):
    for arms, kernel in HARD.values():
        for sets in ("fixed", "rows"):
            rows = () if sets == "fixed" else (arms,)
            bandit = BANDITS[make](
                arms if sets == "fixed" else None, kernel, reg=1e-8, exploration=op.Thompson(1.0), normalize=True
            )
            for arm in history(arms, 25)[0]:
                assert np.isfinite(bandit.decide(*rows).scores).all()
                learn(bandit, int(arm) if sets == "fixed" else arms[arm], 1.0)


def test_duplicated_arms_share_one_posterior():
    arms = np.vstack([points(10), points(10)])
    for make in BANDITS.values():
        bandit = make(arms, SMOOTH, reg=0.37)
        rng = np.random.default_rng(0)
        learn(bandit, rng.integers(0, 20, 100), rng.standard_normal(100))
        posterior = bandit.model.posterior()
        assert_close(posterior.means[:10], posterior.means[10:])
        assert_close(posterior.variances[:10], posterior.variances[10:])


@pytest.mark.parametrize("make", ["GPUCB", "BKB", "BKB with few"])
def test_thousands_of_plays_lose_no_digits(make):
    arms = points(15)
    plays, rewards = history(arms, 6000)
    bandit = BANDITS[make](arms, SMOOTH, reg=0.01)
    for t in range(0, 6000, 100):
        learn(bandit, plays[t : t + 100], rewards[t : t + 100])
    dictionary = bandit.model.dictionary if make != "GPUCB" else arms[np.unique(plays)]
    assert_posterior_close(bandit.model.posterior(), dense.dtc(SMOOTH, dictionary, arms[plays], rewards, arms, 0.01))


# ---- bad input ----


def untouched(bandit, action, match, sets):
    """One clear ValueError; posterior, counters, random stream, copies and all that follows are as if it never was."""
    twin, rows = bandit.copy(), points(7, 4)
    before, rounds, memory = bandit.model.posterior(rows), bandit.n_learned, bandit.memory_usage()
    with pytest.raises(ValueError, match=match) as caught:
        action(bandit)
    assert 20 < len(str(caught.value)) < 600
    assert "\n" not in str(caught.value).split("got ")[0]
    assert bandit.n_learned == rounds
    assert bandit.memory_usage() == memory
    assert are_equal(bandit.model.posterior(rows), before)
    assert are_equal_runs(run(bandit, 8, sets=SETS[sets]), run(twin, 8, sets=SETS[sets]))


BAD_PLAYS = {
    "NaN reward": (lambda b: learn(b, 0, np.nan), "reward"),
    "infinite reward": (lambda b: learn(b, 0, np.inf), "reward"),
    "a reward that is text": (lambda b: learn(b, 0, "good"), "reward"),
    "no reward": (lambda b: learn(b, 0, None), "reward"),
    "two rewards": (lambda b: learn(b, 0, [1.0, 2.0]), "reward"),
    "NaN at the end of a batch": (lambda b: learn(b, [0, 1, 2], [1.0, 2.0, np.nan]), "reward"),
    "a reward too few": (lambda b: learn(b, [0, 1, 2], [1.0, 2.0]), "reward|arm"),
    "arm -1": (lambda b: learn(b, -1, 1.0), "arm"),
    "arm A": (lambda b: learn(b, ARMS, 1.0), "arm"),
    "arm A at the end of a batch": (lambda b: learn(b, [0, 1, ARMS], [1.0, 2.0, 3.0]), "arm"),
    "arm 1.5": (lambda b: learn(b, 1.5, 1.0), "arm"),
    "arms 0.5": (lambda b: learn(b, [0.5, 1.0], [1.0, 1.0]), "arm"),
    "arm a": (lambda b: learn(b, "a", 1.0), "arm"),
    "arm None": (lambda b: learn(b, None, 1.0), "arm"),
    "arm True": (lambda b: learn(b, True, 1.0), "arm"),
    "arms in a matrix": (lambda b: learn(b, [[0, 1]], [1.0, 1.0]), "arm|reward"),
    "a row": (lambda b: b.learn(points(1)[0], 1.0), "contexts"),
    "a noise scale": (lambda b: b.learn(None, 1.0, 0, nu=1.0), "nu"),
    "a time": (lambda b: b.learn(None, 1.0, 0, time=1.0), "time"),
    "k 0": (lambda b: b.decide(k=0), "k"),
    "k A + 1": (lambda b: b.decide(k=ARMS + 1), "k"),
    "rows for fixed arms": (lambda b: b.decide(points(3)), "contexts"),
    "rows with NaN": (lambda b: b.model.posterior([[np.nan, 1.0]]), "row"),
    "rows of another width": (lambda b: b.model.posterior(np.ones((3, 5))), "row|shape"),
    "a maximizer for fixed arms": (lambda b: b.decide(maximizer=lambda f: np.zeros(2)), "maximizer|fixed"),
    "recorded rounds": (lambda b: b.play(points(3)[None], np.ones((1, 3))), "recorded rounds"),
}
BAD_ROWS = {
    "NaN reward": (lambda b: learn(b, [0.1, 0.2], np.nan), "reward"),
    "infinite reward": (lambda b: learn(b, [0.1, 0.2], -np.inf), "reward"),
    "NaN at the end of a batch": (lambda b: learn(b, np.ones((3, 2)), [1.0, 2.0, np.nan]), "reward"),
    "a reward too few": (lambda b: learn(b, np.ones((3, 2)), [1.0, 2.0]), "reward"),
    "row with NaN": (lambda b: learn(b, [0.1, np.nan], 1.0), "contexts"),
    "row with inf": (lambda b: learn(b, [0.1, np.inf], 1.0), "contexts"),
    "rows with NaN": (lambda b: learn(b, [[0.1, 0.2], [np.nan, 0.0]], [1.0, 1.0]), "contexts"),
    "another width": (lambda b: learn(b, np.ones(3), 1.0), "contexts"),
    "another width in a batch": (lambda b: learn(b, np.ones((2, 3)), [1.0, 1.0]), "contexts"),
    "an index": (lambda b: learn(b, 0, 1.0), "contexts"),
    "text": (lambda b: learn(b, "a", 1.0), "contexts"),
    "an arm beside a row": (lambda b: b.learn([0.1, 0.2], 1.0, 0), "arm"),
    "labels too few": (lambda b: b.decide(points(3), ["a", "b"]), "arms"),
    "no rows to decide on": (lambda b: b.decide(), "contexts"),
    "no rows to score": (lambda b: b.score(), "contexts"),
    "an empty set": (lambda b: b.decide(np.zeros((0, 2))), "contexts"),
    "a set with NaN": (lambda b: b.decide([[0.0, np.nan], [0.0, 1.0]]), "contexts"),
    "a set of another width": (lambda b: b.decide(np.ones((3, 5))), "contexts"),
    "recorded rounds": (lambda b: b.play(points(3)[None], np.ones((1, 3))), "recorded rounds"),
    "a maximizer that leaves": (lambda b: b.decide(maximizer=lambda f: [np.nan, 0.0]), "maximizer|contexts"),
    "a maximizer of another width": (lambda b: b.decide(maximizer=lambda f: np.zeros(3)), "maximizer|contexts"),
    "a maximizer that gives several": (lambda b: b.decide(maximizer=lambda f: np.zeros((2, 2))), "maximizer"),
    "both": (lambda b: b.decide(points(3), maximizer=lambda f: np.zeros(2)), "maximizer"),
}


@pytest.mark.parametrize("plays", [0, 12])
@pytest.mark.parametrize("bad", BAD_PLAYS)
@pytest.mark.parametrize("make", ["GPUCB", "BKB with few"])
def test_bad_input_is_refused_and_changes_nothing_on_fixed_arms(make, bad, plays):
    bandit = BANDITS[make](points(), SMOOTH, reg=0.37, seed=3)
    run(bandit, plays)
    untouched(bandit, *BAD_PLAYS[bad], "fixed")


@pytest.mark.parametrize("plays", [0, 1, 12])
@pytest.mark.parametrize("bad", BAD_ROWS)
@pytest.mark.parametrize("make", ["GPUCB", "BKB with few"])
def test_bad_input_is_refused_and_changes_nothing_on_changing_arm_sets(make, bad, plays):
    if plays == 0 and "width" in bad:
        return  # none is known yet
    bandit = BANDITS[make](None, SMOOTH, reg=0.37, seed=3)
    run(bandit, plays, sets=draw_arm_set)
    untouched(bandit, *BAD_ROWS[bad], "rows")


BAD_OPTIONS = [
    ({"arms": np.zeros((0, 2))}, "arms"),
    ({"arms": np.zeros(3)}, "arms"),
    ({"arms": [[0.0, np.nan]]}, "arms"),
    ({"arms": "abc"}, "arms"),
    ({"kernel": 3.0}, "kernel"),
    ({"kernel": op.RBF((1.0, 2.0, 3.0))}, "length_scale"),
    ({"kernel": lambda X, Y: -X @ Y.T}, "kernel"),
    ({"kernel": lambda X, Y: np.full((len(X), len(Y)), np.nan)}, "kernel"),
    ({"kernel": lambda X, Y: np.zeros((len(X), 2))}, "kernel"),
    ({"kernel": lambda X, Y: (X @ Y.T)[0]}, "kernel"),
    ({"kernel": lambda X, Y: "text"}, "kernel"),
    ({"kernel": lambda X, Y: np.zeros((len(X), len(Y)))}, "kernel"),
    ({"kernel": sk.RBF() + sk.WhiteKernel(0.1)}, "WhiteKernel"),
    ({"kernel": lambda X, Y: X[:, :1] + 0 * Y[:, 0]}, "kernel"),  # not symmetric
    ({"reg": 0.0}, "reg"),
    ({"reg": -1.0}, "reg"),
    ({"reg": np.nan}, "reg"),
    ({"reg": "small"}, "reg"),
    ({"exploration": np.nan}, "exploration"),
    ({"exploration": "ucb"}, "exploration"),
    ({"normalize": "yes"}, "normalize"),
    ({"fit_after": -1}, "fit_after"),
    ({"fit_after": 2.5}, "fit_after"),
    ({"fit_after": 10, "kernel": lambda X, Y: np.exp(-((X[:, None] - Y) ** 2).sum(2))}, "fit_after|kernel"),
    ({"seed": -1}, "seed"),
]
BAD_BUDGETS = [
    ({"oversampling": 0.0}, "oversampling"),
    ({"oversampling": -3.0}, "oversampling"),
    ({"oversampling": np.nan}, "oversampling"),
    ({"redundancy": -0.1}, "redundancy"),
    ({"redundancy": 1.1}, "redundancy"),
    ({"redundancy": np.nan}, "redundancy"),
    ({"staleness": 0.99}, "staleness"),
    ({"staleness": np.nan}, "staleness"),
    ({"staleness": "old"}, "staleness"),
]


@pytest.mark.parametrize("make", ["GPUCB", "BKB"])
@pytest.mark.parametrize(("options", "name"), BAD_OPTIONS, ids=lambda v: v if isinstance(v, str) else str(list(v)))
def test_bad_options_are_refused_by_name(make, options, name):
    with pytest.raises(ValueError, match=name) as caught:
        BANDITS[make](**{"arms": points(), "kernel": SMOOTH, **options})
    assert 20 < len(str(caught.value)) < 600


@pytest.mark.parametrize(("options", "name"), BAD_BUDGETS, ids=str)
def test_bad_budgets_are_refused_by_name(options, name):
    with pytest.raises(ValueError, match=name):
        op.BKB(points(), SMOOTH, **options)


def negative_beyond(X, Y):
    """x.y where the first number is below 1, of the wrong sign beyond."""
    return np.where(X[:, :1] < 1, 1.0, -1.0) * (X @ Y.T)


def nan_beyond(X, Y):
    return np.where((X[:, :1] < 1) & (Y[:, 0] < 1), X @ Y.T + 1.0, np.nan)


def growing(X, Y):
    """Of a wrong shape for points beyond 1."""
    return X @ Y.T + 1.0 if X[:, 0].max() < 1 and Y[:, 0].max() < 1 else np.ones((len(X) + 1, len(Y)))


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("kernel", [negative_beyond, nan_beyond, growing, breaking], ids=lambda k: k.__name__)
@pytest.mark.parametrize("make", ["GPUCB", "BKB with all"])
def test_a_kernel_that_breaks_later_is_refused_then_and_changes_nothing(make, kernel, batch):
    scale = 1.0 if kernel is breaking else 0.3
    good = scale * np.array([[0.0, 0.0], [1.0, 0.0]]) + (0.0 if kernel is breaking else 0.1)
    bad = [2.0, 0.0] if kernel is breaking else [1.5, 0.2]
    bandit = BANDITS[make](None, kernel, reg=0.01, seed=3)
    learn(bandit, good, [1.0, 2.0])
    twin, before, rounds = bandit.copy(), bandit.model.posterior(good), bandit.n_learned
    rows, rewards = (np.vstack([good, [bad]]), [1.0, 2.0, 3.0]) if batch else (bad, 3.0)
    with pytest.raises(ValueError, match="kernel"):
        learn(bandit, rows, rewards)
    assert bandit.n_learned == rounds
    assert are_equal(bandit.model.posterior(good), before)
    for one in (bandit, twin):
        learn(one, good, [3.0, 4.0])
    assert are_equal(bandit.model.posterior(good), twin.model.posterior(good))
    assert bandit.decide(good, id="next").to_dict() == twin.decide(good, id="next").to_dict()


@pytest.mark.parametrize("options", [{}, {"oversampling": 5.0}, {"oversampling": 2.0, "staleness": 1.0}], ids=str)
def test_a_kernel_that_breaks_once_coins_were_thrown_leaves_them_unthrown(options):
    broken = []

    def kernel(X, Y):
        return np.full((len(X), len(Y)), np.nan) if broken else SMOOTH(X, Y)

    bandit = op.BKB(points(), kernel, reg=4.0, seed=3, **options)
    run(bandit, 12)
    twin, before, failures = bandit.copy(), bandit.model.posterior(), 0
    broken.append(True)
    for arm in range(ARMS):
        copy = bandit.copy()  # whether this play needs the kernel
        try:
            learn(copy, arm, 1.0)
        except ValueError:
            failures += 1
            with pytest.raises(ValueError, match="kernel"):
                learn(bandit, arm, 1.0)
    broken.clear()
    assert failures > 0
    assert are_equal(bandit.model.posterior(), before)
    assert are_equal_runs(run(bandit, 25), run(twin, 25))
    assert np.array_equal(bandit.model.dictionary, twin.model.dictionary)


@pytest.mark.parametrize("make", ["GPUCB", "BKB with all"])
def test_a_kernel_that_breaks_on_fixed_arms_is_refused_at_once_or_when_it_does(make):
    arms = np.array([[0.0], [1.0], [2.0]])
    with pytest.raises(ValueError, match="kernel"):
        learn(BANDITS[make](arms, breaking), [0, 1, 2], np.ones(3))
