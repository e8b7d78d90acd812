"""Settings chosen on a log, learning curves, pictures."""

import numpy as np
import pytest
from scipy import stats

import onepass as op
from counts import repetitions
from onepass import evaluation as ev
from onepass.evaluation import plots


def recipe(epsilon=1.0, reg=1.0, seed=0):
    return op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=2, reg=reg))), op.EpsilonGreedy(epsilon), seed=seed)


def logged(rows, seed=0, gap=0.8):
    """An even logger, three arms, of which the best depends on the sign of the first number of the context."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.choice([-1.0, 1.0], rows), np.ones(rows)])
    arms = rng.integers(3, size=rows)
    chance = 0.1 + gap * ((arms == 1) & (x[:, 0] > 0) | (arms == 2) & (x[:, 0] < 0))
    return ev.Log(
        arms=arms, rewards=(rng.random(rows) < chance) * 1.0, propensities=np.full(rows, 1 / 3), n_arms=3, contexts=x
    )


def test_settings_that_earn_more_are_found_with_the_bandit_that_learned():
    log = logged(1_300, gap=0.89)
    found = ev.tune(recipe, {"epsilon": [0.05, 1.0]}, log, batch_size=50, points=5)
    assert found.settings["epsilon"] == 0.05
    assert set(found.curves) == {"present", *found.candidates}
    assert len(found.candidates) == 2
    assert found.curves["present"].shape == (5, 2)
    chosen = found.bandit.decide(log.contexts[0], range(3), id="a").probabilities
    assert chosen.argmax() == (1 if log.contexts[0, 0] > 0 else 2)
    best = next(one for one in found.comparison.differences if one.name == found.comparison.best)
    assert best.limits.lower > 0.0
    assert str(found).startswith("epsilon=0.05")


def test_a_difference_is_that_of_the_loop():
    log = logged(200)
    found = ev.tune(recipe, [{"epsilon": 0.2}], log, present={"reg": 3.0})
    assert found.candidates == {"epsilon=0.2": {"reg": 3.0, "epsilon": 0.2}}
    bandits, gain = [recipe(reg=3.0), recipe(reg=3.0, epsilon=0.2)], 0.0
    for x, arm, reward in zip(log.contexts, log.arms, log.rewards, strict=True):
        u, w = (one.decide(x, range(3), id="row 0").probabilities[arm] * 3 for one in bandits)
        gain += (w - u) * reward
        for one in bandits:
            one.learn(x, reward, arm=int(arm))
    assert found.comparison.differences[0].gain == pytest.approx(gain / 200, rel=1e-9)


def test_settings_that_are_no_better_are_called_so_in_at_most_one_run_of_twenty():
    runs, wrong = repetitions(12, 2_000), 0
    for run in range(runs):
        log = logged(120, seed=run, gap=0.0)  # every policy earns 0.1
        wrong += ev.tune(recipe, {"epsilon": [0.1, 0.3, 0.5]}, log, batch_size=60).comparison.best is not None
    assert wrong <= stats.binom.isf(1e-4, runs, 0.05), wrong


@pytest.mark.parametrize(
    ("grid", "log", "said"),
    [({}, 10, "grid must hold at least one"), ([], 10, "grid must hold"), ({"epsilon": []}, 10, "grid must hold"),
     ({"epsilon": [0.1]}, None, "contexts must be in the log")],
)  # fmt: skip
def test_wrong_searches_are_refused(grid, log, said):
    log = logged(log) if log else ev.Log(arms=[0, 1], rewards=[0.0, 1.0], propensities=[0.5, 0.5])
    with pytest.raises(ValueError, match=said):
        ev.tune(recipe, grid, log)


def test_pictures_are_drawn_of_everything(tmp_path):
    log = logged(120)
    tuned = ev.tune(recipe, {"epsilon": [0.1]}, log, batch_size=50)
    values = ev.evaluate_many(
        log, {"even": ev.UniformPolicy(), "first": ev.ConstantPolicy(0), "last": ev.ConstantPolicy(2)}
    )
    for path in (
        plots.plot_values(values, tmp_path / "values.png"),
        plots.plot_differences(tuned.comparison, tmp_path / "differences.png"),
        plots.plot_curves(tuned.curves, tmp_path / "curves.png"),
    ):
        assert path.read_bytes().startswith(b"\x89PNG")
