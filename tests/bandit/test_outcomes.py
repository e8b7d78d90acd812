"""Outcomes beside the reward: learned on its design, whenever they come; prices and weights in decisions."""

import json

import numpy as np
import pytest

import onepass as op

DIM = 3
ARMS = ["x", "y"]
COSTS = {"x": {"dollars": 2.0}, "y": {"dollars": 5.0}}


def ridge_of(rows: np.ndarray, values: np.ndarray, reg: float) -> np.ndarray:
    return np.linalg.solve(reg * np.eye(rows.shape[1]) + rows.T @ rows, rows.T @ values)


def shared(reg: float) -> op.Bandit:
    return op.Bandit(op.Ridge(op.Exact(dim=DIM, reg=reg)), outcomes=["dollars", "latency"])


def disjoint(reg: float) -> op.Bandit:
    return op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=DIM, reg=reg))), outcomes=["dollars", "latency"])


def untuned(reg: float = 0.1) -> op.Bandit:
    return op.ContextualBandit(reg=reg, outcomes=["dollars", "latency"])


def learn_some(bandit: op.Bandit, rounds: int, order: str, costs=None, seed: int = 0) -> list[op.Decision]:
    """Let outcomes come with the reward, after it, or both, and return the decisions with their values."""
    rng, made = np.random.default_rng(seed), []
    for t in range(rounds):
        row = rng.standard_normal(DIM)
        context = row if bandit.model.has_named_arms else np.stack([row, -row])
        decision = bandit.decide(context, ARMS, costs=costs, id=f"{t}")
        found = {"dollars": (2.0 + 3.0 * decision.index) * (1.2 + 0.3 * row[0]), "latency": float(row[1])}
        reward = float(row[2]) * (1.0 - decision.index)
        if order == "with":
            bandit.learn(decision, reward, outcomes=found)
        elif order == "after":
            bandit.learn(decision, reward)
            bandit.learn(decision, outcomes=found)
        else:
            bandit.learn(decision, reward, outcomes={"latency": found["latency"]})
            bandit.learn(decision, outcomes={"dollars": found["dollars"]})
        made.append((decision, found))
    return made


@pytest.mark.parametrize("reg", [0.3, 2.0])
@pytest.mark.parametrize("order", ["with", "after", "both"])
@pytest.mark.parametrize("make", [shared, disjoint])
def test_outcomes_are_ridge_regression_on_the_rewards_design_whenever_they_come(make, order, reg):
    bandit = make(reg)
    made = learn_some(bandit, 40, order)
    asked = np.array([0.5, -1.0, 2.0])
    context = asked if bandit.model.has_named_arms else np.stack([asked, -asked])
    predicted = bandit.decide(context, ARMS).predicted
    for place, arm in enumerate(ARMS):
        own = [(d, v) for d, v in made if not bandit.model.has_named_arms or d.arm == arm]
        rows = np.stack([np.asarray(d.context) for d, _ in own])
        row = asked if bandit.model.has_named_arms else context[place]
        for name in bandit.outcomes:
            theta = ridge_of(rows, np.array([v[name] for _, v in own]), reg)
            assert predicted[name][place] == pytest.approx(row @ theta, abs=1e-8)


def test_the_untuned_bandit_learns_outcomes_relative_to_prices_that_change():
    bandit = untuned()
    learn_some(bandit, 200, "both", COSTS)
    row, other = np.array([1.0, 0.5, -1.0]), {"x": {"dollars": 4.0}, "y": {"dollars": 5.0}}
    before, after = (bandit.decide(row, ARMS, costs=costs).predicted for costs in (COSTS, other))
    assert before["dollars"] == pytest.approx([3.0, 7.5], rel=0.1)
    assert after["dollars"] == pytest.approx([2.0, 1.0] * before["dollars"])
    assert before["latency"] == pytest.approx([0.5, 0.5], abs=0.2)


def test_an_outcome_before_its_reward_is_learned_and_its_reward_takes_nothing_back():
    bandit = untuned()
    rng = np.random.default_rng(0)
    for t in range(150):
        decision = bandit.decide(rng.standard_normal(DIM), ["x"], id=f"{t}")
        bandit.learn(decision, outcomes={"dollars": 3.0})
        bandit.learn(decision, 1.0)
    assert bandit.decide(np.zeros(DIM), ["x"]).predicted["dollars"] == pytest.approx([3.0], abs=0.3)


@pytest.mark.parametrize("through", ["as it is", "a copy", "a file"])
@pytest.mark.parametrize("make", [disjoint, untuned])
def test_an_outcome_before_the_first_reward_of_its_arm_counts_as_if_it_came_with_it(make, through):
    early, joined = make(0.5), make(0.5)
    decisions = [joined.decide(np.ones(DIM), [arm], id=arm) for arm in ARMS]
    for decision, dollars in zip(decisions, (3.0, 7.0), strict=True):
        early.learn(decision, outcomes={"dollars": dollars})
        joined.learn(decision, 1.0, outcomes={"dollars": dollars})
    if through != "as it is":
        early = early.copy() if through == "a copy" else op.from_bytes(op.to_bytes(early))
    with pytest.raises(ValueError, match="has had"):
        early.learn(decisions[0], outcomes={"dollars": 5.0})
    early.learn(decisions[0], 1.0)
    early.learn(decisions[1], 1.0, outcomes={"latency": None})
    for name in ("dollars", "latency"):
        found, expected = (one.decide(np.ones(DIM), ARMS).predicted[name] for one in (early, joined))
        assert found.tolist() == expected.tolist()
    assert joined.decide(np.ones(DIM), ARMS).predicted["dollars"].max() > 1.0
    assert "early" not in early.contents().extra


@pytest.mark.parametrize("make", [shared, disjoint, untuned])
def test_copies_snapshots_and_files_predict_and_go_on_alike(make):
    bandit = make(0.5)
    learn_some(bandit, 40, "both", COSTS)
    row = np.array([0.5, -1.0, 2.0])
    context = row if bandit.model.has_named_arms else np.stack([row, -row])
    weights = {"dollars": -0.1, "reward": 2.0, "arms": {"y": 0.5}}
    asked = {"costs": COSTS, "weights": weights, "id": "one"}
    expected = bandit.decide(context, ARMS, **asked)
    for one in (bandit.copy(), bandit.snapshot(), op.from_bytes(op.to_bytes(bandit)), bandit.snapshot().bandit()):
        found = one.decide(context, ARMS, **asked)
        assert json.dumps(found.to_dict()) == json.dumps(expected.to_dict())
    twin = op.from_bytes(op.to_bytes(bandit))
    for one in (bandit, twin):
        one.learn(expected, 1.0, outcomes={"dollars": 9.0})
    assert op.to_bytes(twin) == op.to_bytes(bandit)


def test_weights_shift_scores_and_probabilities_are_those_of_the_draws():
    bandit = op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=DIM))), op.Softmax(temperature=0.5), outcomes=["dollars"])
    learn_some_dollars(bandit)
    row, weights = np.array([0.5, -1.0, 2.0]), {"reward": 0.5, "dollars": -0.1, "arms": {"x": 0.2}}
    decision = bandit.decide(row, ARMS, weights=weights, id="a")
    scores = 0.5 * decision.means - 0.1 * decision.predicted["dollars"] + [0.2, 0.0]
    assert decision.scores == pytest.approx(scores)
    law = 0.999 * np.exp(scores / 0.5) / np.exp(scores / 0.5).sum() + 0.0005
    assert decision.probabilities == pytest.approx(law)
    assert bandit.probabilities(row, ARMS, weights=weights) == pytest.approx(law)
    ids = [f"{i}" for i in range(2000)]
    drawn = bandit.decide(np.tile(row, (2000, 1, 1)), ARMS, weights=weights, id=ids)
    share = np.mean(np.array(drawn.index) == 0)
    assert abs(share - law[0]) < 4.5 * np.sqrt(law[0] * law[1] / 2000)
    assert drawn.split()[7].predicted["dollars"] == pytest.approx(decision.predicted["dollars"])


def learn_some_dollars(bandit: op.Bandit) -> None:
    rng = np.random.default_rng(1)
    for _ in range(30):
        decision = bandit.decide(rng.standard_normal(DIM), ARMS)
        bandit.learn(decision, float(decision.index), outcomes={"dollars": 1.0 + decision.index})


def test_asking_for_probabilities_changes_nothing():
    bandit = untuned()
    learn_some(bandit, 20, "with")
    before = op.to_bytes(bandit)
    bandit.probabilities(np.zeros(DIM), ARMS, weights={"dollars": -1.0})
    bandit.probabilities(np.zeros(DIM), ARMS)
    assert op.to_bytes(bandit) == before


def test_the_record_of_a_decision_has_predictions_prices_and_weights():
    bandit = untuned()
    learn_some(bandit, 20, "with", COSTS)
    decision = bandit.decide(np.ones(DIM), ARMS, costs=COSTS, weights={"dollars": -0.5, "latency": 0.1})
    found = op.Decision.from_dict(json.loads(json.dumps(decision.to_dict())))
    assert found.to_dict() == decision.to_dict()
    assert (found.prices, found.costs["dollars"]) == ({"dollars": 0.5}, {0: 2.0, 1: 5.0})
    assert (found.spreads["dollars"] > 0.0).all()


def test_a_bandit_without_outcomes_has_the_records_and_files_that_it_had():
    bandit = op.ContextualBandit()
    decision = bandit.decide(np.ones(DIM), ARMS)
    assert {"predicted", "weights"}.isdisjoint(decision.to_dict())
    with pytest.raises(ValueError, match="without outcomes"):
        bandit.decide(np.ones(DIM), ARMS, weights={"dollars": 1.0})
    with pytest.raises(ValueError, match="no names of outcomes"):
        bandit.learn(decision, 1.0, outcomes={"dollars": 1.0})


@pytest.mark.parametrize(
    "make",
    [
        lambda: op.Bandit(op.OnePassGLM(op.Exact(dim=2)), outcomes=["dollars"]),
        lambda: op.Bandit(op.Ridge(op.Exact(dim=2)), half_life=100, outcomes=["dollars"]),
        lambda: op.Bandit(op.Hybrid(shared=op.Ridge(op.Exact(dim=2)), arms=op.Ridge(op.Exact(dim=2))), outcomes=["d"]),
    ],
)
def test_models_that_learn_the_reward_alone_refuse_outcomes_in_one_sentence(make):
    with pytest.raises(ValueError, match="learns the reward alone"):
        make()


def test_outcomes_are_named_before_anything_is_learned():
    bandit = op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=DIM))))
    bandit.learn(bandit.decide(np.ones(DIM), ARMS), 1.0)
    with pytest.raises(ValueError, match="before anything is learned"):
        op.Bandit(bandit.model, outcomes=["dollars"])


@pytest.mark.parametrize("names", ["dollars", [], ["a", "a"], ["reward"], ["arms"], [1], [""]])
def test_names_of_outcomes_are_distinct_strings(names):
    with pytest.raises(ValueError, match="outcomes must be distinct names"):
        op.ContextualBandit(outcomes=names)


@pytest.mark.parametrize(
    ("costs", "weights", "said"),
    [
        ({"x": {"dollars": 0.0}}, None, "must be above 0"),
        ({"x": {"dollars": float("nan")}}, None, "must be a finite number"),
        ({"z": {"dollars": 1.0}}, None, "arms on offer"),
        ({"x": {"euros": 1.0}}, None, "outcomes of this bandit"),
        ({"x": 1.0}, None, "costs must be"),
        (None, {"dollars": float("inf")}, "must be a finite number"),
        (None, {"euros": 1.0}, "weights must be of"),
        (None, {"reward": -1.0}, "at least 0"),
        (None, {"arms": {"z": 1.0}}, "arm on offer"),
    ],
)
def test_prices_and_weights_that_make_no_sense_are_refused(costs, weights, said):
    with pytest.raises(ValueError, match=said):
        untuned().decide(np.ones(DIM), ARMS, costs=costs, weights=weights)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "one", [1.0]])
def test_an_outcome_that_is_no_finite_number_changes_nothing(value):
    bandit = untuned()
    decision = bandit.decide(np.ones(DIM), ARMS)
    before = op.to_bytes(bandit)
    for call in ({"reward": 1.0}, {}):
        with pytest.raises(ValueError, match="finite number"):
            bandit.learn(decision, outcomes={"dollars": value}, **call)
    with pytest.raises(ValueError, match="of this bandit"):
        bandit.learn(decision, 1.0, outcomes={"euros": 1.0})
    assert op.to_bytes(bandit) == before


def test_an_outcome_that_comes_twice_is_refused():
    bandit = untuned()
    decision = bandit.decide(np.ones(DIM), ARMS)
    bandit.learn(decision, 1.0, outcomes={"dollars": 1.0})
    with pytest.raises(ValueError, match="has had its reward"):
        bandit.learn(decision, outcomes={"dollars": 1.0})
    bandit.learn(decision, outcomes={"latency": 1.0})


@pytest.mark.parametrize("models", [op.Disjoint, lambda estimator: estimator])
def test_outcomes_are_learned_on_the_rows_that_the_reward_was_learned_on(models):
    """An outcome that equals the reward is predicted as the reward is, where rows of a call move the feature map."""
    estimator, features = op.Ridge(op.Exact(dim=DIM, reg=0.5)), op.features.Standardize(dim=DIM)
    bandit = op.Bandit(models(estimator), features=features, outcomes=["same"])
    rng = np.random.default_rng(0)
    rows, rewards = rng.uniform(0.0, 5.0, (12, DIM)), rng.standard_normal(12)
    names = ARMS * 6 if bandit.model.has_named_arms else None
    bandit.learn(rows, rewards, names, outcomes=[{"same": reward} for reward in rewards])
    found = bandit.decide(rows[0] if names else rows[:2], ARMS)
    assert found.predicted["same"] == pytest.approx(found.means)


def test_removed_arms_forget_their_outcomes():
    for make in (disjoint, untuned):
        bandit = make(0.5)
        learn_some(bandit, 30, "with")
        bandit.remove_arm("y")
        mean = bandit.decide(np.zeros(DIM), ["x", "y"]).predicted["dollars"]
        assert np.isfinite(mean).all()


def test_records_with_new_columns_keep_what_was_learned_about_outcomes():
    bandit = op.ContextualBandit(outcomes=["dollars"])
    rng = np.random.default_rng(0)
    for t in range(120):
        context = {"size": float(rng.uniform())} | ({"kind": "late"} if t > 60 else {})
        decision = bandit.decide(context, ["x"])
        bandit.learn(decision, 1.0, outcomes={"dollars": 1.0 + context["size"]})
    found = [bandit.decide({"size": size}, ["x"]).predicted["dollars"][0] for size in (0.2, 0.8)]
    assert found == pytest.approx([1.2, 1.8], abs=0.1)


ITEMS = {"a": {"topic": "sport", "length": 2.0}, "b": {"topic": "news", "length": 1.0}, "c": {"topic": "sport"}}


def crossed_game(bandit: op.Bandit, rounds: int, order: str = "with") -> None:
    """Learn dollars that depend on request and arm, with the reward or after it."""
    rng = np.random.default_rng(3)
    for t in range(rounds):
        request = {"country": ("de", "at")[int(rng.integers(2))], "hour": float(rng.uniform())}
        decision = bandit.decide(request, ITEMS, id=f"{t}", eligible=[str(rng.choice(["a", "b", "c"]))])
        found = {"dollars": dollars_of(request, decision.arm)}
        if order == "with":
            bandit.learn(decision, 1.0, outcomes=found)
        elif order == "before":
            bandit.learn(decision, outcomes=found)
            bandit.learn(decision, 1.0)
        else:
            bandit.learn(decision, 1.0)
            bandit.learn(decision, outcomes=found)


def dollars_of(request, arm: str) -> float:
    return (3.0 if arm == "b" else 1.0) * (2.0 if request["country"] == "de" else 1.0)


@pytest.mark.parametrize("order", ["with", "before", "after"])
@pytest.mark.parametrize("make", [op.InteractionBandit, op.ContextualBandit])
def test_arms_with_features_have_outcomes_whenever_they_come(make, order):
    bandit = make(outcomes=["dollars"])
    crossed_game(bandit, 300, order)
    for country in ("de", "at"):
        request = {"country": country, "hour": 0.5}
        found = bandit.decide(request, ITEMS, id="asked").predicted["dollars"]
        assert found == pytest.approx([dollars_of(request, arm) for arm in ITEMS], abs=0.5)


def test_outcomes_of_an_interaction_model_are_those_of_a_bandit_whose_reward_they_are():
    bandit, alone = op.InteractionBandit(outcomes=["dollars"], recent=2), op.InteractionBandit(recent=2)
    rng = np.random.default_rng(0)
    for t in range(60):
        request = {"hour": float(rng.normal(3.0 * t)), "country": "de"}  # standardized anew again and again
        decision = bandit.decide(request, ITEMS, id=f"{t}", eligible=[str(rng.choice(["a", "b", "c"]))])
        value = 2.0 * request["hour"] + len(decision.arm)
        bandit.learn(decision, float(rng.random()), outcomes={"dollars": value})
        alone.learn(decision, value)
    asked = {"hour": 2.0, "country": "at"}
    for one in (bandit, bandit.copy(), op.from_bytes(op.to_bytes(bandit))):
        predicted = one.decide(asked, ITEMS, id="x").predicted["dollars"]
        assert predicted == pytest.approx(alone.decide(asked, ITEMS, id="x").means)
    known = bandit.model.arms[0]
    bandit.remove_arm(known)
    alone.remove_arm(known)
    assert bandit.decide(asked, ITEMS, id="y").predicted["dollars"] == pytest.approx(
        alone.decide(asked, ITEMS, id="y").means
    )


def test_budgets_are_kept_where_arms_have_features():
    router = op.Budgeted(op.ContextualBandit(outcomes=["dollars"]), {"dollars": op.Budget(2.0)})
    rng, spent = np.random.default_rng(5), []
    for _ in range(250):
        request = {"country": ("de", "at")[int(rng.integers(2))]}
        decision = router.decide(request, ITEMS, now=0.0)
        spent.append(dollars_of(request, decision.arm))
        router.learn(decision, float(decision.arm == "b"), outcomes={"dollars": spent[-1]}, now=0.0)
    assert (np.cumsum(spent) <= 2.0 * np.arange(1, 251) + 6.0).all()
