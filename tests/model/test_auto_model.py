"""`ContextualBandit` takes rows, frames, records, and arms with or without features; what it is given first decides."""

import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

import onepass as op
from onepass.bandit.decision import Decision
from onepass.foundation.state import leaves
from onepass.model.averaged import mixture as m
from onepass.model.averaged.mixture import survey
from onepass.model.averaged.new_columns import widened
from onepass.model.averaged.regression import length
from onepass.model.averaged.view import embedded

SINGLE = 3e-5  # models are kept in float32
USER = {"hour": 9, "country": "de", "tags": ["x", "y"], "age": None}
TEA = ["tea", "soup"]
FEATURES = {"a1": {"topic": "sport", "length": 3.0}, "a2": {"topic": "news"}, "a3": [1.0, 2.0]}
SMALL = {"warm_up": 16, "n_landmarks": 5}
MANY = [f"a{k}" for k in range(21)]
KINDS = {
    "rows": ([0.5, 9.0], TEA, "rows"),
    "records": (USER, TEA, "records"),
    "many arms": (USER, MANY, "interaction"),
    "features": (USER, FEATURES, "interaction"),
    "rows, features": ([0.5, 9.0], FEATURES, "interaction"),
    "nameless": (USER, [{"topic": "sport"}, {"topic": "news"}], "interaction"),
}


def request(kind: str, k: int):
    """A context that differs from round to round, and in records brings new terms."""
    context = KINDS[kind][0]
    return {**context, "hour": k % 7, f"key {k % 12}": 1.5 * k} if isinstance(context, dict) else [float(k % 7), 9.0]


def taught(kind: str, rounds: int = 24, **options) -> op.Bandit:
    bandit = op.ContextualBandit(**SMALL, **options)
    for k in range(rounds):
        decision = bandit.decide(request(kind, k), KINDS[kind][1], id=f"r{k}")
        bandit.learn(decision, float(k % 3 == 0))
    return bandit


# ---- columns that come later ----


def mixture_of(rows: np.ndarray, rewards: np.ndarray) -> m.Mixture:
    bandit = op.ContextualBandit(warm_up=32, n_landmarks=6, alarm_threshold=None)
    bandit.learn(rows, rewards, [k % 2 for k in range(len(rows))])
    bandit.learn(rows[0], 0.0, "gone")
    bandit.remove_arm("gone")
    return bandit.model.state


@pytest.mark.parametrize("rounds", [1, 20, 32, 60])
def test_a_column_more_leaves_what_arms_say_of_rows_that_have_nothing_there(rounds):
    rng = np.random.default_rng(rounds)
    rows, slots = rng.standard_normal((rounds, 3)) ** 3, np.arange(3)
    state, fills = mixture_of(rows, rng.random(rounds)), np.array([0.0, 40.0])
    wider = widened(state, fills, np.array([0.0, 20.0]))
    for row in rng.standard_normal((5, 3)):
        before, after = survey(state, row[None], slots), survey(wider, np.append(row, fills)[None], slots)
        np.testing.assert_allclose(after[0], before[0], rtol=SINGLE, atol=SINGLE)
        assert (after[1] <= before[1] * (1.0 + SINGLE)).all()  # the constant's feature is smaller
        assert (after[1] > 0.8 * before[1]).all()
        assert after[2] == before[2]
        novel = survey(wider, np.append(row, [1.0, 90.0])[None], slots)
        assert (novel[1][:2] > after[1][:2]).all()


def test_a_model_with_a_column_more_is_what_it_had_been_from_the_start():
    """P^-1 = I / P_0 + sum of phi phi^T over all rows as the wider view sees them, in every model but those that drift;
    P_0: I / reg, of the constant times (d' + 1) / (d + 1) unless the model has a constant of its own."""
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((40, 3))
    bandit = op.ContextualBandit(warm_up=32, n_landmarks=6, alarm_threshold=None)
    bandit.learn(rows, rows[:, 0], ["a"] * 40)
    state = widened(bandit.model.state, np.zeros(1), np.zeros(1))
    later = np.hstack([rng.standard_normal((10, 3)), rng.integers(2, size=(10, 1))])
    for row in later:
        m.take(state, row, 0, float(row[0]), 0.0)
    every, t, p = np.vstack([np.hstack([rows, np.zeros((40, 1))]), later]), 0, 0
    for model, (sees, start, n) in enumerate(state.plan.tolist()):
        if n and state.settings[model, m.DRIFT] == 0.0:
            phi = np.array([embedded(state.views[sees], x)[start:] for x in every], np.float64)
            prior = np.full(n, state.settings[model, m.REG])
            if (constant := state.settings[model, m.CONSTANT]) > 0.0:
                phi[:, -1] = constant
            else:
                prior[-1] *= 4.0 / 5.0
            truth = np.linalg.inv(np.diag(prior) + phi.T @ phi)
            lower = np.zeros((n, n))
            lower[np.tril_indices(n)] = state.inverse[0, p : p + length(n)]
            found = lower + np.tril(lower, -1).T
            np.testing.assert_allclose(found, truth, rtol=2e-3, atol=2e-4)
        t, p = t + n, p + length(n)


def test_a_copy_that_has_learned_nothing_decides_by_the_code_of_the_original():
    bandit = op.ContextualBandit(dim=3)
    for twin in (bandit.copy(), bandit.snapshot().bandit(), op.from_bytes(op.to_bytes(bandit))):
        model, _ = twin.model.encode(np.ones(3), ["a"]).given
        assert all(array.flags.carray for _, array in leaves(model.state))


def test_missing_numbers_count_as_the_mean_and_names_as_columns():
    bandit = op.ContextualBandit(**SMALL)
    for k in range(20):
        bandit.learn({"age": 10.0 + k, "city": f"c{k % 3}"}, float(k % 2), "tea")
    means = [bandit.decide(one, ["tea"]).means[0] for one in ({"age": 19.5}, {"age": None}, {})]
    assert means[0] == means[1] == means[2]
    assert {term.name for term in bandit.explain({"age": 3.0}, arms=["tea"]).terms} >= {"age", "city=c0", "landmarks"}
    assert "records of 4 columns" in repr(bandit)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_explained_before_the_first_reward_is_what_is_decided_by(kind):
    context, arms, model = KINDS[kind]
    bandit = op.ContextualBandit(**SMALL)
    decision, found = bandit.decide(context, arms), bandit.explain(context, arms=arms)
    assert found.mean == 0.0
    assert found.width == pytest.approx(decision.widths[list(decision.candidates or range(len(arms))).index(found.arm)])
    assert (found.difference is None) == (model == "interaction")
    if model == "interaction":
        with pytest.raises(ValueError, match="other must be None"):
            bandit.explain(context, other=list(arms)[1] if isinstance(arms, dict) else 1, arms=arms)


def test_a_record_that_says_nothing_is_a_request_too():
    bandit = op.ContextualBandit(**SMALL)
    for record in ({}, {}, {"a": "x"}, {}):
        bandit.learn(bandit.decide(record, TEA), 1.0)
    assert bandit.decide({}, TEA).means.max() > 0.5


# ---- kinds ----


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_learned_first_decides_and_it_says_so(kind):
    context, arms, models = KINDS[kind]
    bandit = op.ContextualBandit()
    before = op.to_bytes(bandit)
    bandit.decide(context, arms, id="x")
    assert op.to_bytes(bandit) == before
    bandit.learn(bandit.decide(context, arms), 1.0)
    assert bandit.choices()["model"] == models
    assert bandit.n_learned == 1
    if models != "rows":
        assert "records" in repr(bandit)


@pytest.mark.parametrize("kind", KINDS)
def test_a_decision_is_learned_late_from_json_alone(kind):
    one, other = taught(kind), taught(kind)
    assert op.to_bytes(one) == op.to_bytes(other)
    context, arms, models = request(kind, 30), KINDS[kind][1], KINDS[kind][2]
    for k, reward in ((1, 0.5), (2, [1.0, None])):
        found = [bandit.decide(context, arms, k, id=f"late {k}") for bandit in (one, other)]
        record = json.loads(json.dumps(found[1].to_dict()))
        one.learn(found[0], reward)
        other.learn(Decision.from_dict(record), reward)
        assert op.to_bytes(one) == op.to_bytes(other)
        with pytest.raises(ValueError, match="has had its reward"):
            one.learn(found[0], reward)
    fresh = op.ContextualBandit(**SMALL)
    fresh.learn(Decision.from_dict(record), [1.0, None])
    assert fresh.choices()["model"] == models


@pytest.mark.parametrize("kind", ["records", "features", "rows, features", "nameless"])
@pytest.mark.parametrize("rounds", [0, 1, 15, 24])
def test_copies_files_and_what_waits_go_on_bit_for_bit(kind, rounds):
    bandit = taught(kind, rounds)
    if rounds == 0:
        bandit.decide(request(kind, 0), KINDS[kind][1])
    twins = [bandit.copy(), pickle.loads(pickle.dumps(bandit)), op.from_bytes(op.to_bytes(bandit))]
    twins += [bandit.snapshot().bandit(), op.from_bytes(op.to_bytes(op.PendingRewards(bandit))).bandit]
    for k in range(20, 28):
        decisions = [one.decide(request(kind, k), KINDS[kind][1]) for one in (bandit, *twins)]
        assert len({str(decision.arm) for decision in decisions}) == 1
        for one, decision in zip((bandit, *twins), decisions, strict=True):
            one.learn(decision._replace(id=f"late {k}"), float(k % 2))
    assert len({op.to_bytes(one) for one in (bandit, *twins)}) == 1


@pytest.mark.parametrize("kind", ["records", "features"])
def test_several_at_once_lists_and_frames_are_the_same_requests(kind):
    bandit, arms = taught(kind), KINDS[kind][1]
    rows = [{"hour": 3, "country": "de"}, {"hour": 5, "country": "fr"}]
    one_by_one = [bandit.decide(row, arms, id=f"q{k}") for k, row in enumerate(rows)]
    for given in (rows, pl.DataFrame(rows), pd.DataFrame(rows)):
        several = bandit.decide(given, arms, id=["q0", "q1"])
        assert several.arm == [one.arm for one in one_by_one]
        assert [one.context for one in several.split()] == [one.context for one in one_by_one]
        assert np.array_equal(bandit.score(given, arms), [one.scores for one in one_by_one])
        assert [len(names) for names in bandit.recommend(given, 2, arms).arms] == [2, 2]
    assert bandit.decide(pl.DataFrame(rows[:1]), arms, id="q0").arm == one_by_one[0].arm
    before = bandit.n_learned
    bandit.learn(several, [1.0, 0.0])
    if kind == "records":
        bandit.learn(pd.DataFrame(rows), [1.0, 0.0], TEA)
        bandit.learn(rows[0], 1.0, "tea")
    assert bandit.n_learned == before + (5 if kind == "records" else 2)


def test_the_user_may_fix_the_models_and_the_rule():
    own, crossed = (
        op.ContextualBandit(model="disjoint"),
        op.ContextualBandit(model="interaction", exploration=op.UCB(0.5)),
    )
    for bandit, arms in ((own, {"a": {"topic": "x"}, "b": {}}), (crossed, TEA)):
        bandit.learn(bandit.decide(USER, arms), 1.0)
    assert (own.choices()["model"], crossed.choices()["model"]) == ("records", "interaction")
    assert crossed.decide(USER, TEA).rule == repr(op.UCB(0.5))
    free = taught("features")
    other = free.with_exploration(op.UCB(0.25))
    assert other.decide(USER, FEATURES).rule == repr(op.UCB(0.25)) != repr(free.exploration)
    free.exploration = op.UCB(0.75)
    assert free.decide(USER, FEATURES).rule == repr(op.UCB(0.75))
    with pytest.raises(ValueError, match="model"):
        op.ContextualBandit(model="both")
    with pytest.raises(ValueError, match="context"):
        op.ContextualBandit(context=3)


@pytest.mark.parametrize(
    ("kind", "context", "arms", "said"),
    [
        ("rows", USER, TEA, "contexts must be rows"),
        ("rows", [1.0, 2.0], FEATURES, "model='disjoint'"),
        ("records", [1.0, 2.0], TEA, "contexts must be records"),
        ("records", {"x": np.nan}, TEA, "x must be"),
        ("records", [], TEA, "contexts must be"),
        ("records", USER, FEATURES, "model='disjoint'"),
        ("features", [[1.0], [2.0]], FEATURES, "one row a decision"),
        ("features", USER, {"a": {"x": np.inf}}, "x must be"),
        ("features", USER, None, "arms"),
    ],
)
def test_what_asks_for_other_models_is_refused_and_changes_nothing(kind, context, arms, said):
    bandit = taught(kind, 3)
    before = op.to_bytes(bandit)
    with pytest.raises(ValueError, match=said):
        bandit.decide(context, arms)
    decision, rewards = op.ContextualBandit().decide(*KINDS["rows" if kind == "records" else "records"][:2]), 1.0
    if kind != "features":
        with pytest.raises(ValueError, match=r"no context|contexts"):
            bandit.learn(decision, rewards)
    with pytest.raises(ValueError, match=r"contexts|arm"):
        bandit.learn(context, 1.0)
    with pytest.raises(ValueError, match="rewards"):
        bandit.learn(taught(kind, 1).decide(request(kind, 1), KINDS[kind][1]), np.nan)
    assert op.to_bytes(bandit) == before


def test_an_arm_with_features_that_is_removed_leaves_the_others_as_they_were():
    bandit = op.ContextualBandit()
    for k in range(12):
        bandit.learn(bandit.decide(USER, {f"a{k % 4}": {"topic": "x"}}), float(k))
    arms = {name: {"topic": "x"} for name in ("a0", "a1", "a3")}
    before = bandit.decide(USER, arms).means
    bandit.remove_arm("a2")
    assert np.array_equal(bandit.decide(USER, arms).means, before)
    assert bandit.arms == ("a0", "a1", "a3")
    with pytest.raises(ValueError, match="one row a decision"):
        bandit.recommend(np.zeros((2, 3, 4)), 1, arms)
    assert op.from_bytes(op.to_bytes(bandit)).arms == bandit.arms
    with pytest.raises(ValueError, match="is not known"):
        bandit.remove_arm("a2")
    with pytest.raises(ValueError, match="with its features"):
        bandit.add_arm("new")


def test_the_dictionary_grows_and_new_words_are_learned_after_the_warm_up():
    rng, bandit, wrong = np.random.default_rng(3), op.ContextualBandit(n_landmarks=20, warm_up=32), []
    for k in range(160):
        city = int(rng.integers(4)) + (4 if k >= 60 else 0)
        decision = bandit.decide({"city": f"c{city}", "n": float(rng.random())}, TEA)
        right = TEA[city % 2]
        wrong.append(decision.arm != right)
        bandit.learn(decision, float(decision.arm == right))
    assert sum(wrong[30:60]) <= 3
    assert sum(wrong[100:]) <= 6


def test_arms_that_were_added_are_offered_where_none_are_named():
    bandit = op.ContextualBandit()
    for name in MANY:
        bandit.add_arm(name)
    decision = bandit.decide(USER)
    bandit.learn(decision, 1.0)
    assert (bandit.choices()["model"], len(decision.candidates)) == ("interaction", len(MANY))
    assert bandit.explain(USER).arm in MANY
    assert len(bandit.score(USER)) == len(bandit.recommend([USER], 50).arms[0]) == len(MANY)
