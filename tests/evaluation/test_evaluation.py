"""Evaluating policies on logs: columns, policies of all kinds, verdicts, comparisons, policies that learn."""

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeRegressor

import onepass as op
from onepass import evaluation as ev
from onepass.evaluation.reward_models import RegressorModel
from onepass.evaluation.reward_range import Range

MEAN = np.array([0.2, 0.5, 0.4])


def simulated(rows=4_000, seed=0, p=(0.5, 0.3, 0.2), known=True, contexts=False):
    """Clicks of three arms; with contexts (rows, 2) whose first number adds up to 0.3 to arm 2."""
    rng, p = np.random.default_rng(seed), np.array(p)
    arms, x = rng.choice(3, size=rows, p=p), rng.uniform(-1, 1, (rows, 2))
    chance = MEAN[arms] + contexts * 0.3 * x[:, 0] * (arms == 2)
    return ev.Log(
        arms=arms,
        rewards=(rng.random(rows) < chance) * 1.0,
        propensities=p[arms],
        n_arms=3,
        contexts=x if contexts else None,
        distributions=np.tile(p, (rows, 1)) if known else None,
    )


def test_all_estimates_and_limits_agree_with_a_known_value():
    log, policy = simulated(), np.array([0.1, 0.2, 0.7])
    found = ev.evaluate(log, policy, estimators=ev.ESTIMATORS)
    value = policy @ MEAN
    assert found.verdict == "ok"
    assert (found.bound, found.bound_known) == (pytest.approx(3.5), True)
    for name in ("ips", "snips", "dr", "sndr"):
        assert found.estimates[name].value == pytest.approx(value, abs=4 * found.estimates[name].deviation)
    for name, limits in found.intervals.items():
        assert limits.contains(value), name
    assert found.limits.upper - found.limits.lower < 0.15


def test_a_policy_may_be_an_array_a_function_or_a_bandit():
    log = simulated(500, contexts=True)
    fixed = np.array([0.1, 0.2, 0.7])
    once = ev.evaluate(log, fixed)
    assert ev.evaluate(log, np.tile(fixed, (500, 1))).to_dict() == once.to_dict()
    assert ev.evaluate(log, lambda x: np.tile(fixed, (len(x), 1))).to_dict() == once.to_dict()
    bandit = op.LinUCB(dim=2, model="disjoint", seed=3)
    bandit.exploration = op.EpsilonGreedy(0.3)
    bandit.learn(log.contexts[:50], log.rewards[:50], arm=log.arms[:50].tolist())
    before = op.to_bytes(bandit)
    found = ev.evaluate(log, bandit)
    assert op.to_bytes(bandit) == before
    chosen = [bandit.decide(x, range(3), id=str(i)).probabilities for i, x in enumerate(log.contexts)]
    assert np.mean(np.stack(chosen)[np.arange(500), log.arms] / log.propensities * log.rewards) == pytest.approx(
        found.estimates["ips"].value
    )


def test_a_stream_of_blocks_gives_the_numbers_of_the_whole():
    log, policy = simulated(2_500, known=True), np.array([0.1, 0.2, 0.7])
    whole = ev.evaluate(log, policy, estimators=("ips", "snips"))
    parts = ev.evaluate(log.blocks(700), policy, estimators=("ips", "snips"))
    assert parts.to_dict() == whole.to_dict()


def test_a_model_predicts_a_row_from_blocks_before_it_only():
    from onepass.evaluation.reward_models import ProgressivePredictor

    log = simulated(1_000, contexts=True)
    changed = ev.Log(
        arms=log.arms, rewards=np.where(np.arange(1_000) < 600, log.rewards, 1.0 - log.rewards),
        propensities=log.propensities, n_arms=3, contexts=log.contexts,
    )  # fmt: skip
    (one, known), (two, _) = (ProgressivePredictor(ev.RidgeModel(), 5).predict(each) for each in (log, changed))
    assert np.array_equal(one[:800], two[:800])
    assert not np.array_equal(one[800:], two[800:])
    assert not one[:200].any()
    assert known.tolist() == [False] * 200 + [True] * 800


@pytest.mark.parametrize("model", [None, DecisionTreeRegressor(max_depth=3, random_state=0)])
def test_a_model_makes_estimates_sharper(model):
    """Contexts that tell half of the variance: DR's deviation is below that of IPS."""
    log = simulated(4_000, contexts=True)
    found = ev.evaluate(log, lambda x: np.column_stack([x[:, 0] < 0, x[:, 0] * 0, x[:, 0] >= 0]) * 1.0, model=model)
    assert found.estimates["dr"].deviation < 0.97 * found.estimates["ips"].deviation


@pytest.mark.parametrize(
    ("policy", "p", "said"),
    [
        ((0.0, 0.0, 1.0), (0.5, 0.4999, 0.0001), "the log is worth"),
        ((0.0, 0.1, 0.9), (0.5, 0.5, 0.0), "are arms that the logger never chose there"),
    ],
)
def test_a_log_that_cannot_tell_is_refused_with_the_reason(policy, p, said):
    found = ev.evaluate(simulated(2_000, p=p, seed=4), np.array(policy))
    assert (found.verdict, found.value) == ("refused", None)
    assert any(said in why for why in found.diagnosis.reasons)
    assert str(found).startswith("refused: ")


def test_wrong_propensities_show_in_the_mean_weight():
    log = simulated(2_000)
    wrong = ev.Log(arms=log.arms, rewards=log.rewards, propensities=np.full(2_000, 0.9), n_arms=3)
    found = ev.evaluate(wrong, np.full(3, 1 / 3))
    assert found.verdict == "refused"
    assert "the mean weight is 0.370 and must be 1" in found.diagnosis.reasons[0]


def test_a_logger_that_changes_in_the_midst_is_noticed():
    one, two = simulated(2_000, p=(0.6, 0.2, 0.2)), simulated(2_000, p=(0.2, 0.2, 0.6), seed=1)
    log = ev.Log(
        arms=np.r_[one.arms, two.arms], rewards=np.r_[one.rewards, two.rewards], propensities=np.full(4_000, 1 / 3),
        n_arms=3,
    )  # fmt: skip
    assert any("logger has changed" in why for why in ev.evaluate(log, np.array([0.1, 0.1, 0.8])).diagnosis.reasons)


def test_honest_logs_are_refused_at_most_once_in_a_thousand():
    rng, refused, policy = np.random.default_rng(9), 0, np.array([0.1, 0.2, 0.7])
    for _ in range(2_000):
        arms = rng.integers(3, size=300)
        refused += ev.diagnose(3 * policy[arms]).verdict == "refused"
    assert refused <= 8  # 2 expected of 2,000; 9 or more once in 4,000


def test_a_better_policy_is_found_and_a_worse_one_is_not():
    log = simulated(20_000, p=(1 / 3, 1 / 3, 1 / 3))
    found = ev.compare(log, {"best": np.array([0.0, 1.0, 0.0]), "worst": np.array([1.0, 0.0, 0.0])})
    assert found.best == "best"
    best, worst = found.differences
    assert best.limits.contains(0.5 - MEAN.mean())
    assert worst.limits.contains(0.2 - MEAN.mean())
    assert best.limits.lower > 0.0 > worst.limits.upper
    again = ev.compare(log, {"worst": np.array([1.0, 0.0, 0.0])}, present=np.array([0.0, 1.0, 0.0]))
    assert again.differences[0].limits.contains(0.2 - 0.5)


def test_limits_hold_the_average_gain_over_a_logger_that_learned_on_the_way():
    """What it earns rises from .2 to .8, so there is no one value: bets on one miss the average in every other run."""
    rng, missed, bets, runs, n = np.random.default_rng(12), 0, 0, 60, 2_000
    shares = np.where(np.arange(n) < n // 2, 0.1, 0.9)
    true = float(np.mean(0.5 - (0.2 + 0.6 * shares)))
    for _ in range(runs):
        arms = (rng.random(n) < shares).astype(int)
        p = np.column_stack([1.0 - shares, shares])
        rewards = (rng.random(n) < np.array([0.2, 0.8])[arms]).astype(float)
        log = ev.Log(arms=arms, rewards=rewards, propensities=p[np.arange(n), arms], n_arms=2, distributions=p)
        found = ev.compare(log, {"uniform": ev.UniformPolicy()}).differences[0]
        missed += not found.limits.contains(true)
        gains = (0.5 / log.propensities - 1.0) * rewards
        sequence = ev.BettingSequence(Range(-1.0, 5.0), 1.0)
        sequence.add(np.ones(n), gains)
        bets += not sequence.interval(0.05).contains(true)
    assert missed <= 9  # 60 runs at 1 / 20 each give 10 or more once in 1,000
    assert bets > 9


def test_no_candidate_of_ten_equal_ones_is_called_better_in_more_than_one_run_of_twenty():
    rng, wrong, runs = np.random.default_rng(11), 0, 60
    for _ in range(runs):
        arms = rng.integers(3, size=300)
        log = ev.Log(arms=arms, rewards=(rng.random(300) < 0.3) * 1.0, propensities=np.full(300, 1 / 3), n_arms=3)
        wrong += ev.compare(log, {str(i): rng.dirichlet(np.ones(3)) for i in range(10)}).best is not None
    assert wrong <= 9  # 60 runs at 1 / 20 each give 10 or more once in 1,000


def test_a_policy_that_learns_is_weighed_before_it_learns():
    log = simulated(300, contexts=True)
    make = lambda: op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=2))), op.EpsilonGreedy(0.3), seed=1)  # noqa: E731
    sample, bandit = ev.progressive(log, make()), make()
    for t in range(300):
        p = bandit.decide(log.contexts[t], range(3), id="row 0").probabilities
        assert sample.weights[t] == p[log.arms[t]] / log.propensities[t]
        bandit.learn(log.contexts[t], log.rewards[t], arm=int(log.arms[t]))
    curve = ev.learning_curve(sample, 3)
    assert curve[:, 0].tolist() == [100, 200, 300]
    assert curve[:, 1].mean() == pytest.approx((sample.weights * sample.rewards).mean())


def test_decisions_of_ours_make_a_log():
    bandit = op.Bandit(op.Ridge(op.Exact(dim=2)), op.EpsilonGreedy(0.5), seed=0)
    rows = np.random.default_rng(0).normal(size=(40, 3, 2))
    bandit.learn(rows[0, 0], 1.0)
    decisions = [bandit.decide(row) for row in rows]
    log = ev.Log.from_decisions(decisions, np.ones(40))
    assert (len(log), log.n_arms) == (40, 3)
    assert log.propensities.tolist() == [one.propensity for one in decisions]
    assert ev.evaluate(log, np.full(3, 1 / 3)).bound == pytest.approx(2.0)


def test_obps_dictionary_comes_and_goes():
    feedback = simulated(50, contexts=True).to_obp()
    again = ev.Log.from_obp(feedback).to_obp()
    assert all(np.array_equal(feedback[name], again[name]) for name in feedback if feedback[name] is not None)
    with pytest.raises(ValueError, match="feedback must have pscore"):
        ev.Log.from_obp({**feedback, "pscore": None})


COLUMNS = {"arms": [0, 1], "rewards": [0.0, 1.0], "propensities": [0.5, 0.5]}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"propensities": [0.5, 0.0]}, "the first in row 1: 0.0"),
        ({"propensities": [0.5, np.nan]}, "the first in row 1"),
        ({"propensities": [0.5]}, "must have one entry a row"),
        ({"arms": [0, -1]}, "arms must be 2 integers of at least 0"),
        ({"arms": [0.0, 1.0]}, "arms must be 2 integers"),
        ({"n_arms": 1}, "n_arms must be an integer at least 2"),
        ({"rewards": [np.inf, 0.0]}, "rewards must be finite"),
        ({"contexts": [[1.0]]}, "contexts must have one entry a row"),
        ({"distributions": [[0.5, 0.5], [0.9, 0.1]]}, "distributions must have the propensities"),
        ({"distributions": [[0.5, 0.5], [7.0, 0.5]]}, "distributions must be probabilities that .* row 1"),
        ({"distributions": [[0.5, 0.5], [-3.0, 0.5]]}, "distributions must be probabilities"),
        ({"distributions": [[0.5, 0.9], [0.5, 0.5]]}, "distributions must be probabilities that .* row 0"),
        ({"distributions": [[0.5, np.nan], [0.5, 0.5]]}, "distributions must be probabilities"),
        ({"distributions": [[0.5, np.inf], [0.5, 0.5]]}, "distributions must be probabilities"),
        ({"slots": [0, -3]}, "slots must be 2 integers"),
    ],
)
def test_columns_that_do_not_fit_are_refused(changed, said):
    with pytest.raises(ValueError, match=said):
        ev.Log(**{**COLUMNS, **changed})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"policy": [0.5, 0.6]}, "policy must give probabilities"),
        ({"policy": [1.0]}, "policy must have 2 arms"),
        ({"policy": lambda x: x}, "contexts must be in the log"),
        ({"reward_range": (0.0, 0.5)}, "rewards must be within reward_range"),
        ({"reward_range": (1.0, 0.0)}, "must have its least reward first"),
        ({"reward_range": (-1e308, 1e308)}, "reward_range must have a finite width"),
        ({"level": 1.0}, "level must be above 0 and below 1"),
        ({"weight_bound": 0.5}, "weight_bound must be at least 1"),
        ({"estimators": ["best"]}, "estimators must be one of"),
        ({"folds": 1}, "folds must be an integer at least 2"),
    ],
)
def test_wrong_questions_are_refused(options, said):
    with pytest.raises(ValueError, match=said):
        ev.evaluate(ev.Log(**COLUMNS), **{"policy": [0.5, 0.5], **options})


@pytest.mark.parametrize("model", [ev.RidgeModel(), RegressorModel(DecisionTreeRegressor(max_depth=2))])
def test_a_reward_model_may_be_used_again(model):
    log = simulated(600, contexts=True)
    found = [ev.evaluate(log, [0.2, 0.2, 0.6], model=model).estimates["dr"].value for _ in range(2)]
    many = [ev.evaluate_many(log, {"a": [0.2, 0.2, 0.6]}, model=model)["a"].estimates["dr"].value for _ in range(2)]
    assert found[0] == found[1]
    assert many[0] == many[1]
    assert not model.is_fitted


@pytest.mark.parametrize("arms", [3, 5, 6, 7, 10])
@pytest.mark.parametrize("digits", [7, 8, "float32"])
def test_even_propensities_may_be_rounded_to_single_precision(arms, digits):
    rng = np.random.default_rng(arms)
    p = np.full(500, 1 / arms, np.float32) if digits == "float32" else np.full(500, round(1 / arms, digits))
    log = ev.Log(arms=rng.integers(arms, size=500), rewards=rng.integers(2, size=500), propensities=p, n_arms=arms)
    found = ev.evaluate(log, "uniform", estimators=["ips"])
    assert (found.verdict, found.bound_known) == ("ok", True)


@pytest.mark.parametrize("policy", ["always:7", "7", ev.ConstantPolicy(7)])
def test_a_policy_that_always_chooses_an_arm_that_the_log_does_not_have_is_refused(policy):
    log = simulated(60)
    for ask in (
        lambda log: ev.evaluate(log, policy, estimators=["ips"]),
        lambda log: ev.evaluate_many(log, {"a": "uniform", "b": policy}, estimators=["ips"]),
        lambda log: ev.compare(log, {"a": "uniform", "b": policy}),
        lambda log: ev.compare(log, {"a": "uniform"}, present=policy),
    ):
        for blocks in (log, log.blocks(20)):
            with pytest.raises(ValueError, match=r"policy must choose an arm of the log, got '?(always:)?7"):
                ask(blocks)
    with pytest.raises(ValueError, match="policy must choose an arm of the log"):
        ev.evaluate_slates(ev.Log(**COLUMNS, slots=[0, 1]), policy)


def test_an_arm_may_begin_in_a_later_block():
    first = ev.Log(arms=[0, 1], rewards=[0.0, 1.0], propensities=[0.5, 0.5])
    second = ev.Log(arms=[0, 1, 2], rewards=[0.0, 1.0, 1.0], propensities=[1 / 3] * 3)
    one = ev.evaluate([first, second], "always:2", estimators=["ips"]).diagnosis
    many = ev.evaluate_many([first, second], {"a": "always:2"}, estimators=["ips"])["a"].diagnosis
    assert one.mean_weight == many.mean_weight == 1.0


def test_an_arm_has_support_if_any_block_chose_it():
    rng = np.random.default_rng(0)
    arms = np.concatenate([np.zeros(10_000, int), rng.integers(300, size=10_000), np.arange(300)])
    log = ev.Log(arms=arms, rewards=np.zeros(20_300), propensities=np.full(20_300, 1 / 300))
    assert ev.evaluate(log, "uniform", estimators=["ips"]).diagnosis.unsupported == 0.0
    lists = ev.Log(**{"arms": arms, "rewards": log.rewards, "propensities": log.propensities, "slots": arms * 0})
    assert ev.evaluate_slates(lists, "uniform").slots[0].diagnosis.unsupported == 0.0
    never = np.arange(301) == 300
    wide = ev.Log(arms=arms, rewards=log.rewards, propensities=log.propensities, n_arms=301)
    assert ev.evaluate(wide, 0.5 * never + 0.5 / 301, estimators=["ips"]).diagnosis.unsupported > 0.5


def test_decisions_go_by_the_names_of_arms():
    bandit = op.ContextualBandit(seed=0)
    orders = [["bad", "good"], ["good", "bad"], ["new", "good"]]
    decisions = [bandit.decide([1.0], orders[row % 3]) for row in range(90)]
    log = ev.Log.from_decisions(decisions[:1] + decisions[1:2], [0.0, 0.0])
    assert (log.names, log.eligible) == (("bad", "good"), None)
    log = ev.Log.from_decisions(decisions, [float(one.arm == "good") for one in decisions])
    assert log.names == ("bad", "good", "new")
    assert [log.names[arm] for arm in log.arms] == [one.arm for one in decisions]
    assert log.eligible[:3].tolist() == [[True, True, False], [True, True, False], [False, True, True]]
    for row, one in enumerate(decisions):
        assert log.distributions[row, [log.names.index(name) for name in one.candidates]].tolist() == [
            *one.probabilities
        ]
    assert log.rewards[log.arms == 1].all()
    rows = [op.Bandit(op.Ridge(op.Exact(dim=2)), op.EpsilonGreedy(0.5)).decide(np.ones((n, 2))) for n in (2, 3)]
    assert ev.Log.from_decisions(rows, [0.0, 1.0]).eligible.tolist() == [[True, True, False], [True] * 3]


def test_integers_in_a_column_of_objects_are_indices():
    arms = np.arange(12).astype(object)
    log = ev.Log(arms=arms, rewards=np.arange(12.0), propensities=np.full(12, 1 / 12))
    assert log.names is None
    assert log.arms.tolist() == list(range(12))
    assert ev.Log(arms=arms, rewards=log.rewards, propensities=log.propensities, names=range(12)).names[2] == "2"


@pytest.mark.parametrize("missing", [None, np.nan])
@pytest.mark.parametrize("column", [list, lambda arms: np.array(arms, object), pd.Series])
def test_a_missing_arm_has_no_name(missing, column):
    with pytest.raises(ValueError, match=r"arms must be an index or a name in every row, got (None|nan) in row 1"):
        ev.Log(arms=column(["a", missing, "b"]), rewards=[0.0] * 3, propensities=[0.5] * 3)
