"""Estimators for heavy tails refuse what is out of range, and then nothing has changed."""

import numpy as np
import pytest

import onepass as op
from heavy_games import DIM, ROW, ROWS, SIX, fingerprint, game

# ---- bad input ----

DESIGN = op.Exact(dim=2, reg=0.37)
REFUSED = {
    **{f"epsilon {e}": ("epsilon", lambda e=e: op.HvtUCB(dim=2, epsilon=e)) for e in (0, -1, 1.5, np.nan, "1")},
    **{f"epsilon {e} ({m.__name__})": ("epsilon", lambda e=e, m=m: m(dim=2, epsilon=e))
       for e in (0.0, 1.01) for m in (op.HeavyOFUL, op.CRTM, op.TOFU)},
    "epsilon 2 (MENU)": ("epsilon", lambda: op.MENU(dim=2, epsilon=2.0, repeats=3)),
    **{f"nu {nu}": ("nu", lambda nu=nu: op.HvtUCB(dim=2, nu=nu)) for nu in (0, -1.0, np.nan, np.inf)},
    "nu 0 (HeavyOFUL)": ("nu", lambda: op.HeavyOFUL(dim=2, nu=0.0)),
    "moment": ("moment", lambda: op.CRTM(dim=2, moment=0.0)),
    "moment (TOFU)": ("moment", lambda: op.TOFU(dim=2, moment=-1.0)),
    "moment (MENU)": ("moment", lambda: op.MENU(dim=2, moment=np.nan, repeats=3)),
    "horizon 0": ("horizon", lambda: op.HvtUCB(dim=2, horizon=0)),
    "horizon 1.5": ("horizon", lambda: op.TOFU(dim=2, horizon=1.5)),
    "no horizon, no repeats": ("horizon", lambda: op.CRMM(dim=2)),
    "no horizon, no repeats (MENU)": ("horizon", lambda: op.MENU(dim=2)),
    "repeats 0": ("repeats", lambda: op.CRMM(dim=2, repeats=0)),
    "repeats 2.5": ("repeats", lambda: op.MENU(dim=2, repeats=2.5)),
    "clip": ("clip", lambda: op.HvtUCB(dim=2, clip=0.0)),
    "clip (CRTM)": ("clip", lambda: op.CRTM(dim=2, clip=-1.0)),
    "floor": ("floor", lambda: op.HvtUCB(dim=2, floor=-0.1)),
    "radius": ("radius", lambda: op.OnePassHuber(DESIGN, radius=-1.0)),
    "step": ("step", lambda: op.HvtUCB(dim=2, step=0.0)),
    "parameter_bound": ("parameter_bound", lambda: op.HvtUCB(dim=2, parameter_bound=0.0)),
    "theory": ("theory", lambda: op.OnePassHuber(DESIGN, theory=0.3)),
    "exploration": ("exploration", lambda: op.HvtUCB(dim=2, exploration="bold")),
    "design of another width": ("design", lambda: op.HvtUCB(dim=3, design=DESIGN)),
    "design of no kind": ("design", lambda: op.HvtUCB(dim=2, design="Exact")),
    "sketch for the whole history": (
        "design",
        lambda: op.estimator.AdaptiveHuber(op.FrequentDirections(dim=2, size=1)),
    ),
    "sketch for TOFU": ("design", lambda: op.estimator.TruncatedRidge(op.FrequentDirections(dim=2, size=1))),
    "disjoint with a horizon": ("estimator", lambda: op.HvtUCB(dim=2, horizon=9, model="disjoint")),
    "disjoint CRMM": ("estimator", lambda: op.Disjoint(op.estimator.OnePassMedian(DESIGN, repeats=3))),
    "disjoint MENU": ("estimator", lambda: op.Disjoint(op.estimator.MedianOfMeans(DESIGN, repeats=3))),
    "hybrid Huber": ("model", lambda: op.HvtUCB(dim=2, model="hybrid")),
    "hybrid Huber arms": ("arms", lambda: op.Hybrid(shared=op.Ridge(DESIGN), arms=op.OnePassHuber(DESIGN))),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_constructors_refuse_what_is_out_of_range_by_name(name):
    argument, make = REFUSED[name]
    with pytest.raises(ValueError, match=rf"^{argument} must"):
        make()


UNLEARNED = {
    "NaN reward": ("rewards", lambda b: b.learn(ROW, np.nan)),
    "infinite reward": ("rewards", lambda b: b.learn(ROW, -np.inf)),
    "NaN in a batch": ("rewards", lambda b: b.learn(ROWS, [1.0, 2.0, np.nan, 0.0, 0.0])),
    "infinity in a game": ("rewards", lambda b: b.play(ROWS[None], [[1.0, np.inf, 0.0, 0.0, 0.0]])),
    "NaN context": ("contexts", lambda b: b.learn(ROW * np.nan, 1.0)),
    "nu 0": ("nu", lambda b: b.learn(ROW, 1.0, nu=0.0)),
    "nu -1": ("nu", lambda b: b.learn(ROW, 1.0, nu=-1.0)),
    "nu NaN": ("nu", lambda b: b.learn(ROW, 1.0, nu=np.nan)),
    "nu text": ("nu", lambda b: b.learn(ROW, 1.0, nu="big")),
    "nu of a batch for one row": ("nu", lambda b: b.learn(ROW, 1.0, nu=[0.3])),
    "too few nus": ("nu", lambda b: b.learn(ROWS, np.ones(5), nu=np.ones(4))),
    "a zero among nus": ("nu", lambda b: b.learn(ROWS, np.ones(5), nu=[1.0, 1.0, 0.0, 1.0, 1.0])),
    "nu of a game": ("nu", lambda b: b.play(ROWS[None], np.ones((1, 5)), nu=np.ones(5))),
    "infinite nu of a game": ("nu", lambda b: b.play(ROWS[None], np.ones((1, 5)), nu=[[1.0, 1.0, np.inf, 1.0, 1.0]])),
}


@pytest.mark.parametrize("name", UNLEARNED)
def test_bad_rows_rewards_and_noise_scales_change_nothing(name):
    argument, call = UNLEARNED[name]
    bandit = op.HvtUCB(dim=DIM, reg=0.37)
    bandit.learn(ROW, 1.0)
    before = fingerprint(bandit)
    with pytest.raises(ValueError, match=rf"^{argument} must"):
        call(bandit)
    assert fingerprint(bandit) == before


@pytest.mark.parametrize("make", [op.OFUL, op.CRTM, op.TOFU])
def test_a_noise_scale_is_refused_by_those_who_use_none(make):
    bandit = make(dim=DIM)
    before = fingerprint(bandit)
    for call in (lambda: bandit.learn(ROW, 1.0, nu=0.5), lambda: bandit.play(ROWS[None], np.ones((1, 5)), nu=[0.5])):
        with pytest.raises(ValueError, match=r"^nu must be None"):
            call()
    assert fingerprint(bandit) == before


def test_a_fixed_horizon_is_never_exceeded():
    contexts, rewards, _ = game(12)
    bandit = op.HvtUCB(dim=DIM, horizon=12, nu=0.5)
    bandit.play(contexts[:10], rewards[:10])
    before = fingerprint(bandit)
    for call in (
        lambda: bandit.learn(ROWS[:3], np.ones(3)),
        lambda: bandit.learn(ROWS[:3], np.ones(3), nu=np.ones(3)),
        lambda: bandit.play(contexts[:3], rewards[:3]),
    ):
        with pytest.raises(ValueError, match=r"^horizon was fixed at 12 rows.* 10 are learned, so 3 more"):
            call()
    assert fingerprint(bandit) == before
    bandit.learn(ROW, 1.0)
    bandit.learn(ROW, 1.0)
    before = fingerprint(bandit)
    with pytest.raises(ValueError, match=r"^horizon was fixed"):
        bandit.learn(ROW, 1.0)
    assert fingerprint(bandit) == before
    assert bandit.n_learned == 12


@pytest.mark.parametrize("make", [SIX["CRMM"], SIX["MENU"]])
def test_an_epoch_broken_off_is_refused(make):
    contexts, rewards, _ = game(20)
    bandit = make()
    bandit.play(contexts[:10], rewards[:10])
    rows = contexts[0]
    arm = bandit.decide(rows).arm
    others = np.delete(rows, arm, axis=0)
    before = fingerprint(bandit)
    for call in (
        lambda: bandit.learn(others[0], 1.0),
        lambda: bandit.learn(np.stack([rows[arm], others[0]]), np.ones(2)),
        lambda: bandit.learn(np.stack([rows[arm]] * 4 + [others[0], rows[arm]]), np.ones(6)),
    ):
        with pytest.raises(ValueError, match=r"^contexts must repeat the arm being played 7 times"):
            call()
        assert fingerprint(bandit) == before
    with pytest.raises(ValueError, match=r"^contexts must offer the arm being played"):
        bandit.decide(others)
    saved, learned_rows, _ = fingerprint(bandit)  # the generator has moved, as after every decision
    assert (saved, learned_rows) == before[:2]
    moved = np.concatenate([contexts[:2], contexts[:1] + 1.0])
    with pytest.raises(ValueError, match=r"^contexts must offer the arm being played"):
        bandit.play(moved, rewards[:3])
    assert bandit.n_learned == 12
    bandit.learn(np.stack([rows[arm]] * 2 + [others[0]] * 3), np.ones(5))  # in turn
    assert bandit.decide(rows).arm == int(np.flatnonzero((rows == others[0]).all(axis=1))[0])
