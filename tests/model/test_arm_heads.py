"""Arms that share one design: the oracle of ten lines, independent ridge models, forgetting, arms that come and go."""

import numpy as np
import pytest

import onepass as op
from onepass.log.memory import MemoryStore
from onepass.log.replay import Fold
from onepass.log.verification import verify
from onepass.model import ArmHeads
from onepass.service.loop import Loop
from onepass.service.messages import DecideRequest, OutcomeRequest
from onepass.service.settings import make_bandit, parse_settings
from onepass.testing import check_model
from patience import wait_until_learned

ARMS, DIM = ["a", "b", "c"], 4
REGS = [0.3, 1.0, 20.0]


def games(n=60, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, DIM)), rng.random(n), [ARMS[i] for i in rng.integers(3, size=n)]


def dense(rows, rewards, arms, reg, x, factors=None):
    """Ten dense lines: means of all arms and the width that they share."""
    factors = np.ones(len(rows)) if factors is None else factors
    matrix, moments = reg * np.eye(DIM), {arm: np.zeros(DIM) for arm in ARMS}
    for row, reward, arm, factor in zip(rows, rewards, arms, factors, strict=True):
        matrix += factor * np.outer(row, row)
        moments[arm] += factor * reward * row
    inverse = np.linalg.inv(matrix)
    return [x @ inverse @ moments[arm] for arm in ARMS], np.sqrt(x @ inverse @ x)


@pytest.mark.parametrize("reg", REGS)
def test_means_and_widths_are_those_of_ten_dense_lines(reg):
    rows, rewards, arms = games()
    bandit = op.Bandit(ArmHeads(op.Exact(dim=DIM, reg=reg)), op.UCB(0.5))
    bandit.learn(rows[:40], rewards[:40], arms[:40])
    for row, reward, arm in zip(rows[40:], rewards[40:], arms[40:], strict=True):
        bandit.learn(row, reward, arm)
    x = np.arange(1.0, 1.0 + DIM)
    means, width = dense(rows, rewards, arms, reg, x)
    np.testing.assert_allclose(bandit.decide(x, ARMS).means, means, rtol=1e-9)
    np.testing.assert_allclose(bandit.decide(x, ARMS).widths, [width] * 3, rtol=1e-9)


@pytest.mark.parametrize("reg", REGS)
def test_every_arm_is_an_independent_ridge_model_that_learns_zeros_of_the_others(reg):
    rows, rewards, arms = games()
    bandit = op.Bandit(ArmHeads(op.Exact(dim=DIM, reg=reg)))
    bandit.learn(rows, rewards, arms)
    for arm in ARMS:
        alone = op.Bandit(op.Ridge(op.Exact(dim=DIM, reg=reg)))
        alone.learn(rows, np.where(np.array(arms) == arm, rewards, 0.0))
        np.testing.assert_allclose(bandit.model.parameter_of(arm), alone.model.parameter, rtol=1e-9, atol=1e-12)


def test_a_half_life_weighs_rows_by_age_and_multiplies_no_head():
    rows, rewards, arms = games(640)
    bandit = op.Bandit(ArmHeads(op.Exact(dim=DIM, reg=2.0), half_life=64))  # a tick a row
    bandit.learn(rows, rewards, arms)
    factors = 2.0 ** (-(640 - np.arange(640)) / 64)
    means, width = dense(rows, rewards, arms, 2.0, np.ones(DIM), factors)
    found = bandit.decide(np.ones(DIM), ARMS)
    np.testing.assert_allclose(found.means, means, rtol=1e-8)
    np.testing.assert_allclose(found.widths, [width] * 3, rtol=1e-8)
    assert bandit.model.state.scale == pytest.approx(2.0**-10)


def test_arms_that_leave_give_their_head_to_arms_that_come():
    rows, rewards, arms = games()
    bandit = op.Bandit(ArmHeads(op.Exact(dim=DIM)))
    bandit.learn(rows, rewards, arms)
    before = bandit.model.parameter_of("c")
    bandit.remove_arm("b")
    bandit = op.from_bytes(op.to_bytes(bandit))
    bandit.add_arm("new")
    assert not bandit.model.parameter_of("new").any()
    bandit.learn(rows[0], 1.0, "new")
    assert bandit.arms == ("a", "c", "new")
    assert len(bandit.model.state.moment) == 3
    matrix, row = np.eye(DIM) + rows.T @ rows, rows[0]
    wanted = np.linalg.solve(matrix + np.outer(row, row), matrix @ before)
    np.testing.assert_allclose(bandit.model.parameter_of("c"), wanted, rtol=1e-9, atol=1e-12)


def test_merged_models_are_the_model_of_all_rows():
    rows, rewards, arms = games()
    make = lambda: op.Bandit(ArmHeads(op.Exact(dim=DIM)))  # noqa: E731
    whole, start = make(), make()
    whole.learn(rows, rewards, arms)
    start.learn(rows[:20], rewards[:20], arms[:20])
    one, other = start.copy(), start.copy()
    one.learn(rows[20:40], rewards[20:40], arms[20:40])
    other.learn(rows[40:], rewards[40:], arms[40:])
    one.merge(other, since=start)
    assert one.n_learned == 60
    for arm in ARMS:
        np.testing.assert_allclose(one.model.parameter_of(arm), whole.model.parameter_of(arm), rtol=1e-9, atol=1e-12)


def test_a_million_items_of_64_dimensions_take_their_heads_and_a_tenth_more_at_most():
    items, dim = 1_000_000, 64
    model = ArmHeads(op.Exact(dim=dim, dtype="float32"))
    for arm in range(items):
        model.add_arm(arm)
    assert model.memory_usage() < 1e5  # items that nobody has taken
    model._heads_for(list(range(items)))
    assert model.memory_usage() <= 1.1 * items * dim * 4


def test_it_keeps_the_contract():
    features = op.features.Concatenate(op.features.Intercept(dim=DIM), op.features.UnitLength(dim=DIM))
    make = lambda: ArmHeads(op.Exact(dim=features.output_dim, reg=3.0), features)  # noqa: E731
    assert "keeps the contract" in check_model(make, lambda rng: rng.standard_normal(DIM), ARMS)


def test_sketches_serve_wide_rows():
    rows, rewards, arms = np.random.default_rng(1).standard_normal((30, 200)), np.ones(30), ARMS * 10
    bandit = op.Bandit(ArmHeads(op.FrequentDirections(dim=200, size=40)))
    exact = op.Bandit(ArmHeads(op.Exact(dim=200)))
    for each in (bandit, exact):
        each.learn(rows, rewards, arms)
    np.testing.assert_allclose(bandit.decide(rows[0], ARMS).means, exact.decide(rows[0], ARMS).means, rtol=1e-6)


def test_missing_arms_times_and_rows_of_another_width_are_refused_and_nothing_changes():
    bandit = op.Bandit(ArmHeads(op.Exact(dim=DIM)))
    before = op.to_bytes(bandit)
    for given in [([1.0] * 3, 1.0, "a"), ([1.0] * DIM, 1.0, None), ([np.nan] * DIM, 1.0, "a"), ([1.0] * DIM, 1.0, [])]:
        with pytest.raises(ValueError, match=r"contexts|arm"):
            bandit.learn(*given)
    with pytest.raises(ValueError, match="time"):
        bandit.learn([1.0] * DIM, 1.0, "a", time=3.0)
    assert op.to_bytes(bandit) == before


def test_it_works_behind_the_service_and_replays_from_its_log(tmp_path):
    settings = parse_settings({
        "name": "shop", "features": {"context": 2}, "arms": ARMS, "reward": {"wait": 0.01, "range": [0.0, 1.0]},
        "model": {"recipe": "ItemHeads"}, "operation": {"publish": 0.01},
    })  # fmt: skip
    store = MemoryStore()
    loop = Loop(settings, store, tmp_path / "models")
    try:
        for t in range(20):
            found = loop.decide(DecideRequest(context=[1.0, 0.5], id=str(t))).result()
            loop.outcomes([OutcomeRequest(id=found.id, value=float(found.places[0] == 1), key="k")])[1].result()
        wait_until_learned(loop)
    finally:
        loop.stop()
    found = verify(Fold.resume(store, "shop", make_bandit(settings)))
    assert found.ok
    assert found.decisions == 20
