"""Budgets and shares: prices, hard stops, days, charges, files."""

from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

import onepass as op
from onepass.bandit.budget import local_day
from onepass.bandit.budget_prices import solve_prices
from onepass.bandit.budgeted import REPEATS
from onepass.exploration.rule import make_rule

DIM, ARMS = 2, ["cheap", "dear"]
COSTS = {"cheap": {"dollars": 1.0}, "dear": {"dollars": 10.0}}


def bandit() -> op.Bandit:
    return op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=DIM))), op.UCB(1.0), outcomes=["dollars"])


def play(router: op.Budgeted, rounds: int, costs=COSTS, seed: int = 0) -> tuple[np.ndarray, np.ndarray, float]:
    """Return arms, dollars and the sum of rewards; the dear arm is better by how large the first number is."""
    rng, arms, dollars, total = np.random.default_rng(seed), [], [], 0.0
    for _ in range(rounds):
        row = np.array([rng.uniform(), 1.0])
        decision = router.decide(row, ARMS, costs=costs, now=0.0)
        paid = (1.0, 10.0)[decision.index] * rng.uniform(0.8, 1.2)
        reward = 0.3 + row[0] * decision.index
        router.learn(decision, reward, outcomes={"dollars": paid}, now=0.0)
        arms.append(decision.index)
        dollars.append(paid)
        total += reward
    return np.array(arms), np.array(dollars), total


def test_a_price_is_the_least_one_that_keeps_recent_requests_within_the_budget():
    rng, rule = np.random.default_rng(0), make_rule(op.Greedy()).rule
    scores, costs = rng.uniform(size=(60, 3)), rng.uniform(0.1, 5.0, (60, 1, 3))
    offered = rng.uniform(size=(60, 3)) < 0.8
    offered[:, 0] = True

    def spent(price: float) -> float:
        net = np.where(offered, scores - price * costs[:, 0], -np.inf)
        return float(costs[np.arange(60), 0, net.argmax(axis=1)].mean())

    least = spent(1e6)
    for target in (least + 0.7 * (spent(0.0) - least), least + 0.2 * (spent(0.0) - least)):
        args = np.array([target]), np.array([1.0]), np.zeros(1), 1.0, 10
        (price,) = solve_prices(rule, scores, costs, offered, *args)
        assert spent(price) <= target < spent(0.98 * price)


def test_a_budget_is_kept_at_every_decision_and_spent_where_it_pays():
    router = op.Budgeted(bandit(), {"dollars": op.Budget(4.0)})
    arms, dollars, total = play(router, 600)
    over = np.cumsum(dollars) - 4.0 * np.arange(1, 601)
    assert over.max() <= 2.0  # what a dear decision may exceed its prediction by
    assert dollars[200:].mean() == pytest.approx(4.0, rel=0.1)
    share = (arms == 1).mean()
    assert total > 600 * 0.3 + 1.15 * 600 * share * 0.5  # a fixed mixture would earn .5 a dear decision
    assert router.budgets["dollars"].price > 0.0
    assert router.budgets["dollars"].spent == pytest.approx(dollars.sum())


@pytest.mark.parametrize("seed", range(3))
def test_windows_keep_their_part_though_some_costs_are_ten_times_the_usual(seed):
    router, rng, dollars = op.Budgeted(bandit(), {"dollars": op.Budget(1.0)}), np.random.default_rng(seed), []
    prices = {"cheap": {"dollars": 0.1}, "dear": {"dollars": 2.0}}
    for _ in range(700):
        decision = router.decide(np.array([rng.uniform(), 1.0]), ARMS, costs=prices, now=0.0)
        paid = (0.1, 2.0)[decision.index] * (6.4 if rng.random() < 0.03 else 0.64)
        router.learn(decision, float(decision.index), outcomes={"dollars": paid}, now=0.0)
        dollars.append(paid)
    windows = np.convolve(dollars[200:], np.ones(200), "valid") / 200.0
    assert windows.max() <= 1.05
    assert np.mean(dollars) > 0.65  # a reserve is held for costs that are larger than all before


def test_a_dear_arm_without_a_price_is_played_as_soon_as_its_predicted_cost_was_saved():
    router, rng, dollars = op.Budgeted(bandit(), {"dollars": op.Budget(1.0)}), np.random.default_rng(0), []
    for _ in range(300):
        decision = router.decide(np.array([rng.uniform(), 1.0]), ARMS, now=0.0)
        dollars.append((0.2, 12.0)[decision.index] * rng.uniform(0.5, 1.5))
        router.learn(decision, float(decision.index), outcomes={"dollars": dollars[-1]}, now=0.0)
    assert 0.75 < np.mean(dollars) <= 1.0


def play_without_prices(costs, rounds: int, seed: int) -> np.ndarray:
    """Return the arms played by a budget of 1 a decision, where dearer arms earn more and no price is given."""
    router, rng, arms = op.Budgeted(bandit(), {"dollars": op.Budget(1.0)}), np.random.default_rng(seed), []
    for _ in range(rounds):
        decision = router.decide(np.array([rng.uniform(), 1.0]), list(costs), now=0.0)
        arms.append(decision.arm)
        paid = costs[decision.arm] * rng.uniform(0.5, 1.5)
        router.learn(decision, costs[decision.arm] / 100.0, outcomes={"dollars": paid}, now=0.0)
    return np.array(arms)


@pytest.mark.parametrize("seed", range(3))
def test_after_a_surprise_arms_of_unknown_cost_are_tried_until_one_is_cheap(seed):
    arms = play_without_prices({"cheap": 0.2, "dear": 30.0, "dearest": 60.0}, 60, seed)
    begin = int((arms == "cheap").argmax())
    assert len({*arms[: begin + 1]}) == begin + 1  # each was played once before the cheap one
    assert (arms[begin:] == "cheap").sum() >= 50
    arms = play_without_prices({"dear": 30.0, "dearest": 60.0}, 30, seed)
    assert {*arms[:2]} == {"dear", "dearest"}
    assert (arms[10:] == "dear").all()


def test_a_budget_that_no_arm_fits_plays_the_cheapest_and_says_so():
    router = op.Budgeted(bandit(), {"dollars": op.Budget(0.1)})
    arms, _, _ = play(router, 60)
    assert (arms == 0).all()
    assert not router.budgets["dollars"].on_course


def test_a_horizon_is_spent_to_its_end_and_not_over():
    router = op.Budgeted(bandit(), {"dollars": op.Budget(1200.0, per="horizon", horizon=300)})
    _, dollars, _ = play(router, 300)
    assert 1000.0 < dollars.sum() <= 1202.0


def test_running_means_serve_where_no_price_is_given_and_correct_prices_that_are_wrong():
    for costs in (None, {"cheap": {"dollars": 0.1}, "dear": {"dollars": 0.5}}):
        router = op.Budgeted(bandit(), {"dollars": op.Budget(4.0)})
        _, dollars, _ = play(router, 400, costs)
        assert dollars[200:].mean() == pytest.approx(4.0, rel=0.15)


def test_a_generous_budget_does_not_hide_what_arms_cost():
    """The budget is the first guess of a cost without a price; here it is 10,000 times too large."""
    router = op.Budgeted(bandit(), {"dollars": op.Budget(1e5)})
    play(router, 60, None)
    predicted = router.decide([0.5, 1.0], ARMS, now=0.0).predicted["dollars"]
    assert predicted == pytest.approx([1.0, 10.0], rel=0.3)


@pytest.mark.parametrize("costs", [None, COSTS])
def test_logged_decisions_teach_what_arms_cost_and_are_not_charged(costs):
    router, rng = op.Budgeted(bandit(), {"dollars": op.Budget(4.0)}), np.random.default_rng(0)
    for place in rng.integers(0, 2, 80):
        row, paid = np.array([rng.uniform(), 1.0]), (1.0, 10.0)[place] * rng.uniform(0.8, 1.2)
        router.learn_logged(row, ARMS[place], 0.5, arms=ARMS, outcomes={"dollars": paid}, costs=costs, now=0.0)
    assert router.bandit.n_learned == 80
    state = router.budgets["dollars"]
    assert (state.spent, state.decisions) == (0.0, 0)
    predicted = router.copy().decide([0.5, 1.0], ARMS, costs=costs, now=0.0).predicted["dollars"]
    assert predicted == pytest.approx([1.0, 10.0], rel=0.1)
    _, dollars, _ = play(router, 250, costs)
    assert np.cumsum(dollars)[-1] <= 4.0 * 250.0
    assert np.convolve(dollars, np.ones(200), "valid").max() <= 200.0 * 4.0 * 1.05


def test_a_logged_arm_may_be_a_truth_value():
    router = op.Budgeted(op.ContextualBandit(outcomes=["dollars"]), {"dollars": op.Budget(1.0)})
    router.learn_logged([1.0, 0.0], True, 1.0, arms=[False, True], outcomes={"dollars": 0.5})
    assert (router.bandit.n_learned, router.bandit.arms) == (1, (True,))
    with pytest.raises(ValueError, match="hashable"):
        router.learn_logged([1.0, 0.0], [True], 1.0, arms=[False, True])


def test_a_logged_decision_that_makes_no_sense_is_refused_and_nothing_is_learned():
    router = op.Budgeted(bandit(), {"dollars": op.Budget(4.0)})
    for arm, paid, word in (("other", 1.0, "other"), ("dear", -1.0, "at least 0"), ("dear", np.nan, "dollars")):
        with pytest.raises(ValueError, match=word):
            router.learn_logged([0.5, 1.0], arm, 0.5, arms=ARMS, outcomes={"dollars": paid}, now=0.0)
    assert router.bandit.n_learned == 0


@pytest.mark.parametrize("budgeted", [bandit, lambda: op.ContextualBandit(outcomes=["dollars"], seed=0)])
def test_arms_of_unknown_cost_are_tried_also_after_dear_ones(budgeted):
    router, rng, arms = op.Budgeted(budgeted(), {"dollars": op.Budget(1.0)}), np.random.default_rng(0), []
    for _ in range(500):
        decision = router.decide([rng.uniform(), 1.0], ["dear", "fair", "cheapest", "other"], now=0.0)
        paid = (30.0, 0.8, 0.2, 5.0)[decision.index]
        router.learn(decision, 0.5 + 0.1 * rng.uniform(), outcomes={"dollars": paid}, now=0.0)
        arms.append(decision.arm)
    assert set(arms) == {"dear", "fair", "cheapest", "other"}


def test_shares_hold_the_one_arm_up_and_the_other_down():
    shares = {"cheap": op.Share(least=0.25)}
    arms, _, _ = play(op.Budgeted(bandit(), {"dollars": op.Budget(100.0)}, shares=shares), 400)
    assert 0.22 < (arms[100:] == 0).mean() < 0.35
    arms, _, _ = play(op.Budgeted(bandit(), shares={"dear": op.Share(most=0.1)}), 400)
    assert 0.05 < (arms[100:] == 1).mean() < 0.12


@pytest.mark.parametrize("shares", [{"dear": op.Share(most=0.1)}, {"dear": op.Share(most=0.037)}, op.Share(most=0.5)])
def test_no_arm_ever_has_more_than_one_decision_above_its_largest_share(shares):
    arms, _, _ = play(op.Budgeted(bandit(), shares=shares), 300)
    for arm, share in shares.items() if isinstance(shares, dict) else [("cheap", shares), ("dear", shares)]:
        counts = np.cumsum(arms == ARMS.index(arm))
        assert (counts <= share.most * np.arange(1, 301) + 1 + 1e-9).all()


def test_an_arm_above_its_largest_share_is_played_where_it_is_the_only_one():
    router = op.Budgeted(bandit(), shares={"dear": op.Share(most=0.1)})
    for _ in range(20):
        assert router.decide([0.5, 1.0], ["dear"], now=0.0).arm == "dear"
    assert router.decide([0.5, 1.0], ARMS, now=0.0).arm == "cheap"


def test_an_outcome_that_never_comes_stays_charged_as_predicted_and_one_that_comes_later_is_charged_then():
    router = op.Budgeted(bandit(), {"dollars": op.Budget(4.0)})
    play(router, 50)
    before = router.budgets["dollars"].spent
    decision = router.decide([0.5, 1.0], ARMS, costs=COSTS, now=0.0)
    predicted = decision.predicted["dollars"][decision.index]
    router.learn(decision, 1.0, now=0.0)
    assert router.budgets["dollars"].spent == pytest.approx(before + predicted)
    router.learn(decision, outcomes={"dollars": 3.0}, now=0.0)
    assert router.budgets["dollars"].spent == pytest.approx(before + 3.0)
    router.charge("dollars", 2.0, now=0.0)
    assert router.budgets["dollars"].spent == pytest.approx(before + 5.0)


def state_of(router: op.Budgeted) -> dict:
    """Return what was spent and what prices are computed from, without the decisions that repeated ids get."""
    return router._pacing.to_dict()


@pytest.mark.parametrize("between", ["nothing", "its own outcomes", "other decisions", "a new budget"])
def test_a_repeated_id_gets_its_decision_and_is_charged_once(between):
    router = op.Budgeted(bandit(), {"dollars": op.Budget(4.0)})
    play(router, 60)
    first = {id: router.decide([0.9, 1.0], ARMS, id=id, costs=COSTS, now=0.0) for id in map(str, range(20))}
    if between == "its own outcomes":
        for one in first.values():
            router.learn(one, 0.5 if one.index else 9.0, outcomes={"dollars": 3.0}, now=0.0)
    elif between == "other decisions":
        play(router, 60, seed=1)
    elif between == "a new budget":
        router.change("dollars", op.Budget(100.0 if first["19"].index == 0 else 1.0))
    before, twin = state_of(router), op.from_bytes(op.to_bytes(router))
    for each in (router, twin, router.copy()):
        for id, one in first.items():
            assert each.decide([0.9, 1.0], iter(ARMS), id=id, costs=COSTS, now=1.0).to_dict() == one.to_dict()
    assert state_of(router) == before == state_of(twin)


def test_a_repeated_id_with_other_arms_is_refused_and_one_of_long_ago_is_a_new_decision():
    router = op.Budgeted(bandit(), {"dollars": op.Budget(4.0)})
    router.learn(router.decide([0.5, 1.0], ARMS, id="a", costs=COSTS, now=0.0), 1.0, now=0.0)
    before = op.to_bytes(router)
    for context, arms, word in (
        ([0.5, 1.0], ["cheap", "new"], "another one.*was decided with other arms"),
        ([np.nan, 1.0], ARMS, "context"),
    ):
        with pytest.raises(ValueError, match=word):
            router.decide(context, arms, id="a", costs={"cheap": COSTS["cheap"]}, now=0.0)
    assert op.to_bytes(router) == before
    for i in range(REPEATS):
        router.decide([0.5, 1.0], ARMS, id=f"{i}", costs=COSTS, now=0.0)
    router.decide([0.5, 1.0], ARMS, id="a", costs=COSTS, now=0.0)
    assert router.budgets["dollars"].decisions == REPEATS + 2


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf"), "one"])
def test_a_cost_that_is_negative_or_not_finite_is_refused_and_nothing_is_charged(value):
    router = op.Budgeted(bandit(), {"dollars": op.Budget(4.0)})
    decision = router.decide([0.5, 1.0], ARMS, costs=COSTS, now=0.0)
    before = op.to_bytes(router)
    with pytest.raises(ValueError, match="dollars"):
        router.learn(decision, 1.0, outcomes={"dollars": value}, now=0.0)
    with pytest.raises(ValueError, match="amount"):
        router.charge("dollars", value, now=0.0)
    assert op.to_bytes(router) == before


@pytest.mark.parametrize(
    "options",
    [
        {"weights": {"dollars": float("nan")}},
        {"weights": {"dollars": "one"}},
        {"weights": {"reward": -1.0}},
        {"weights": {"euros": 1.0}},
        {"weights": {"arms": {"free": 1.0}}, "id": "refused"},
        {"weights": 5},
        {"context": np.ones((2, 1, 2)), "id": ["x", "y"]},
        {"now": 1.79e12},
        {"now": -1e15},
        {"costs": {arm: {"dollars": 1e17} for arm in ARMS}},
    ],
)
def test_a_refused_decision_changes_nothing(options):
    router = op.Budgeted(bandit(), {"dollars": op.Budget(4.0, per="day")})
    router.learn(router.decide([0.5, 1.0], ARMS, costs=COSTS, now=0.0), 1.0, outcomes={"dollars": 1.0}, now=0.0)
    before = op.to_bytes(router)
    for _ in range(9):  # prices are computed again in one of them
        with pytest.raises(ValueError, match="must be"):
            router.decide(**{"context": [0.5, 1.0], "arms": ARMS, "now": 0.0, "costs": COSTS, **options})
    assert op.to_bytes(router) == before


def test_a_time_in_milliseconds_is_refused_before_anything_is_learned():
    router = op.Budgeted(bandit(), {"dollars": op.Budget(4.0, per="day")})
    decision = router.decide([0.5, 1.0], ARMS, costs=COSTS, now=1.79e9)
    before = op.to_bytes(router)
    with pytest.raises(ValueError, match="now must be a time in Unix seconds"):
        router.learn(decision, 1.0, outcomes={"dollars": 3.0}, now=1.79e12)
    with pytest.raises(ValueError, match="now must be a time in Unix seconds"):
        router.charge("dollars", 1.0, now=1.79e12)
    assert op.to_bytes(router) == before
    router.learn(decision, 1.0, outcomes={"dollars": 3.0}, now=1.79e9)
    assert router.budgets["dollars"].spent == 3.0


def test_arms_may_be_an_iterator_or_a_frame():
    polars = pytest.importorskip("polars")
    router = op.Budgeted(bandit(), {"dollars": op.Budget(4.0)})
    assert router.decide([0.5, 1.0], iter(ARMS), costs=COSTS).candidates == ARMS
    router = op.Budgeted(op.InteractionBandit(outcomes=["dollars"]), {"dollars": op.Budget(4.0)})
    assert router.decide({"user": 1}, polars.DataFrame({"topic": ["a", "b"], "length": [1.0, 2.0]})).arm in (0, 1)


def test_days_of_23_24_and_25_hours_have_the_same_budget():
    berlin = ZoneInfo("Europe/Berlin")
    for date, hours in (((2026, 3, 29), 23), ((2026, 6, 1), 24), ((2026, 10, 25), 25)):
        midnight = datetime(*date, tzinfo=berlin).timestamp()
        assert local_day(midnight, "Europe/Berlin").over == 0.0
        assert local_day(midnight, "Europe/Berlin").left == hours * 3600.0
        assert local_day(midnight + hours * 1800.0, "Europe/Berlin").over == pytest.approx(0.5)
        assert local_day(midnight + hours * 3600.0, "Europe/Berlin").date != local_day(midnight, "Europe/Berlin").date


def test_a_day_begins_anew_at_local_midnight_and_its_line_is_kept():
    router = op.Budgeted(bandit(), {"dollars": op.Budget(240.0, per="day", zone="Europe/Berlin")})
    midnight = datetime(2026, 3, 29, tzinfo=ZoneInfo("Europe/Berlin")).timestamp()
    spent = 0.0
    for i in range(92):  # a decision every quarter of an hour, 23 hours
        now = midnight + 900.0 * i
        decision = router.decide([0.5, 1.0], ARMS, costs=COSTS, now=now)
        paid = (1.0, 10.0)[decision.index]
        router.learn(decision, float(decision.index), outcomes={"dollars": paid}, now=now)
        spent += paid
        assert router.budgets["dollars"].left >= -0.03 * 240.0 - 1.0
    assert spent <= 240.0
    router.decide([0.5, 1.0], ARMS, costs=COSTS, now=midnight + 23 * 3600.0)
    assert router.budgets["dollars"].spent < 15.0


@pytest.mark.parametrize("costs", [COSTS, None])
def test_a_file_and_a_copy_go_on_alike_to_the_last_cent(costs):
    router = op.Budgeted(bandit(), {"dollars": op.Budget(4.0)}, shares={"dear": op.Share(most=0.5)})
    play(router, 60, costs)
    for twin in (op.from_bytes(op.to_bytes(router)), router.copy()):
        assert twin.budgets == router.budgets
        one, two = (each.decide([0.5, 1.0], ARMS, id="a", costs=costs, now=1.0) for each in (twin, router.copy()))
        assert one.to_dict() == two.to_dict()


def test_a_budget_that_changes_begins_its_line_anew():
    router = op.Budgeted(bandit(), {"dollars": op.Budget(4.0)})
    play(router, 60)
    router.change("dollars", op.Budget(2.0))
    _, dollars, _ = play(router, 300, seed=1)
    assert dollars.sum() <= 300 * 2.0 + 12.0


def test_a_budget_per_decision_that_changes_shows_what_was_really_spent_and_allows_nothing_at_first():
    router = op.Budgeted(bandit(), {"dollars": op.Budget(4.0)})
    _, before, _ = play(router, 60)
    saved = router.budgets["dollars"].left
    assert saved == pytest.approx(60 * 4.0 - before.sum())
    router.change("dollars", op.Budget(4.0, window=300))  # allows as much as before
    assert router.budgets["dollars"].left == saved > 1.0
    router.change("dollars", op.Budget(0.5))
    state = router.budgets["dollars"]
    assert state[:2] == (pytest.approx(before.sum(), rel=1e-12), 0.0)
    assert (state.decisions, state.on_course) == (60, True)
    router = op.from_bytes(op.to_bytes(router))
    _, after, _ = play(router, 40, seed=1)
    state = router.budgets["dollars"]
    assert state.spent == pytest.approx(before.sum() + after.sum(), rel=1e-12)
    assert state.left == pytest.approx(40 * 0.5 - after.sum())
    assert (state.decisions, state.on_course) == (100, False)  # the cheapest arm costs 1


KINDS = {
    "decision": op.Budget(4.0),
    "day": op.Budget(40_000.0, per="day"),
    "horizon": op.Budget(400.0, per="horizon", horizon=100),
}


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", KINDS)
def test_a_budget_of_another_kind_begins_with_nothing_spent(first, second):
    router = op.Budgeted(bandit(), {"dollars": KINDS[first]})
    play(router, 12)
    before = router.budgets["dollars"]
    router.change("dollars", KINDS[second])
    state = router.budgets["dollars"]
    assert state[:2] == (before[:2] if first == second else (0.0, 0.0))
    assert state.decisions == (12 if first == second else 0)
    _, dollars, _ = play(router, 12, seed=1)
    assert router.budgets["dollars"].spent == pytest.approx(state.spent + dollars.sum(), rel=1e-12)
    assert router.budgets["dollars"].decisions == state.decisions + 12


def test_a_budget_for_a_horizon_that_changes_keeps_what_was_spent():
    router = op.Budgeted(bandit(), {"dollars": op.Budget(400.0, per="horizon", horizon=100)})
    play(router, 60)
    spent = router.budgets["dollars"].spent
    router.change("dollars", op.Budget(spent + 60.0, per="horizon", horizon=100))
    assert router.budgets["dollars"].spent == spent > 0.0
    play(router, 40, seed=1)
    assert router.budgets["dollars"].spent <= spent + 60.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: op.Budget(0.0),
        lambda: op.Budget(float("nan")),
        lambda: op.Budget(1.0, per="week"),
        lambda: op.Budget(1.0, per="horizon"),
        lambda: op.Budget(1.0, horizon=3),
        lambda: op.Budget(1.0, zone="Nowhere/Land"),
        lambda: op.Share(least=0.5, most=0.1),
        lambda: op.Budgeted(op.ContextualBandit(), {}),
        lambda: op.Budgeted(bandit(), {"euros": op.Budget(1.0)}),
        lambda: op.Budgeted(bandit(), {"dollars": 1.0}),
        lambda: op.Budgeted(bandit(), shares={"dear": 0.1}),
    ],
)
def test_settings_that_make_no_sense_are_refused(make):
    with pytest.raises(ValueError, match="must be"):
        make()
