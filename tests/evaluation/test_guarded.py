"""A guarded bandit: the promise at every time, exact probabilities, guardrails, files, and bad input."""

import numpy as np
import pytest

import onepass as op
from counts import repetitions
from onepass.evaluation import AtLeast, AtMost, FieldArm, Guarded, baseline_promise
from onepass.evaluation.harm_test import HarmTest
from onepass.evaluation.reward_range import Range

ARMS = ["a", "b", "c"]


class RuleInTurn(FieldArm):
    """A rule that names the arm of each request in turn."""

    def __init__(self, places):
        super().__init__("rule")
        self.places = places

    def arm_of(self, context):
        return ARMS[next(self.places)]


def make_bandit(seed=0):
    return op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=3))), op.UCB(0.3), seed=seed)


def play(guarded, rewards, rows, delay=0):
    """Play a table of rewards (T, K); return the indices shown."""
    shown, waiting = [], []
    for t, row in enumerate(rows):
        decision = guarded.decide(row, ARMS, id=f"{t}")
        shown.append(decision.index)
        waiting.append((decision, float(rewards[t, decision.index])))
        if len(waiting) > delay:
            guarded.learn(*waiting.pop(0))
    return np.array(shown)


def make_world(seed, rounds, accuracy):
    """Contexts, 0/1 rewards of three arms that a row explains, and a baseline that is right with this accuracy."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((rounds, 3))
    best = rows.argmax(axis=1)
    rewards = (np.arange(3) == best[:, None]).astype(float)
    named = np.where(rng.random(rounds) < accuracy, best, rng.integers(3, size=rounds))
    return rows, rewards, named


def earned_and_promised(rewards, shown, named, loss=0.05):
    each = np.arange(len(shown))
    return np.cumsum(rewards[each, shown]), (1.0 - loss) * np.cumsum(rewards[each, named])


@pytest.mark.parametrize("delay", [0, 7])
def test_the_promise_holds_at_every_time_against_the_very_rewards_of_the_baseline(delay):
    broken = 0
    games = repetitions(6, 200)
    for seed in range(games):
        rows, rewards, named = make_world(seed, 500, 0.6)
        guarded = Guarded(make_bandit(seed), RuleInTurn(iter(named)))
        shown = play(guarded, rewards, rows, delay)
        earned, promised = earned_and_promised(rewards, shown, named)
        broken += bool((earned < promised - 1e-9).any())
    assert broken <= 0.05 * games + 2.0 * (0.05 * games) ** 0.5


@pytest.mark.parametrize("chance", [0.02, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("lost", [0.0, 0.4, 1.0])
def test_the_wealth_about_the_baselines_losses_is_a_martingale(chance, lost):
    mean = chance * np.exp(baseline_promise._log_factor(chance, lost)) + (1.0 - chance) * np.exp(
        -baseline_promise.BETS * lost
    )
    assert mean == pytest.approx(np.ones(baseline_promise.BETS.size))


def test_the_limit_of_the_baseline_is_never_below_its_rewards_though_it_is_looked_at_always():
    """Drawn from a mixture whose share moves, with rewards of the baseline from 0 to 1."""
    games, missed = repetitions(60, 1000), 0
    for seed in range(games):
        rng = np.random.default_rng(seed)
        promise = baseline_promise.BaselinePromise(0.05, 0.8, Range(0.0, 1.0), {}, 0.05)
        sums, wrong = 0.0, False
        for t in range(150):
            share, agreeing = rng.uniform(0.0, 0.98), rng.random()
            law, p = [1.0, 0.0], [agreeing, 1.0 - agreeing]
            index = int(rng.random() > 1.0 - share + share * agreeing)
            mixture = {"share": share, "place": 0, "baseline": law, "policy": p}
            promise.add_decision(f"{t}", mixture, index)
            reward = float(rng.random() < 0.3) if seed % 2 else rng.random()
            sums += reward
            promise.learn(f"{t}", reward if index == 0 else 0.0, {})
            wrong = wrong or promise.report().baseline < sums - 1e-9
        missed += wrong
    assert missed <= 0.2 * games + 2.0 * (0.2 * games) ** 0.5


def test_a_bandit_that_turns_wrong_cannot_break_the_promise():
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((900, 3))
    best = rows.argmax(axis=1)
    rewards = np.where(np.arange(3) == best[:, None], 1.0, 0.0)
    rewards[500:] = rewards[500:][:, [1, 2, 0]]  # names permuted
    rewards[:, 0] = np.maximum(rewards[:, 0], 0.6)
    guarded = Guarded(make_bandit(), "a")
    shown = play(guarded, rewards, rows)
    earned, promised = earned_and_promised(rewards, shown, np.zeros(900, int))
    assert (earned >= promised - 1e-9).all()
    assert (shown[:500] != 0).mean() > 0.05  # it did deviate before
    assert guarded.report().reward == pytest.approx(earned[-1])


def test_a_better_bandit_is_opened_until_the_baseline_has_its_least_share():
    rows, rewards, _ = make_world(1, 1500, 0.0)
    guarded = Guarded(make_bandit(), "a")
    shown = play(guarded, rewards, rows)
    last = rewards[np.arange(1500), shown][-300:].mean()
    free = make_bandit()
    got = []
    for t, row in enumerate(rows):
        decision = free.decide(row, ARMS, id=f"{t}")
        got.append(rewards[t, decision.index])
        free.learn(decision, float(rewards[t, decision.index]))
    assert last >= 0.93 * np.mean(got[-300:])
    assert guarded.report().share > 0.8


def make_linear_world(seed, rounds):
    """Contexts with a constant, and 0/1 rewards whose chances are linear; the baseline's arm earns .5 or so."""
    rng = np.random.default_rng(seed)
    rows = np.hstack([np.ones((rounds, 1)), rng.uniform(-1.0, 1.0, (rounds, 2))])
    chances = rows @ np.array([[0.5, 0.6, 0.6], [0.1, 0.3, -0.3], [0.1, 0.1, 0.1]])
    return rows, (rng.random((rounds, 3)) < chances).astype(float)


def test_the_model_opens_the_share_faster_and_the_promise_holds_where_it_is_right():
    broken, games = 0, repetitions(4, 100)
    deviations = {"evidence": 0, "model": 0}
    for seed in range(games):
        rows, rewards = make_linear_world(seed, 300)
        for by in deviations:
            guarded = Guarded(make_bandit(seed), "a", by=by)
            shown = play(guarded, rewards, rows)
            earned, promised = earned_and_promised(rewards, shown, np.zeros(300, int))
            broken += bool((earned < promised - 1e-9).any())
            deviations[by] += guarded.report().deviations
    assert not guarded.report().is_model_rejected
    assert deviations["model"] > 1.2 * deviations["evidence"]
    assert broken <= 0.05 * 2 * games + 2.0 * (0.05 * 2 * games) ** 0.5


def test_a_model_that_is_wrong_about_the_baseline_is_rejected_and_evidence_decides():
    rows = np.tile([1.0, 0.0, 0.0], (900, 1))
    rewards = np.tile([0.3, 0.9, 0.3], (900, 1))
    rewards[300:] = [0.9, 0.1, 0.1]  # the model has learned that the baseline's arm "a" earns .3
    bandit = op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=3))), op.UCB(1.0))
    guarded = Guarded(bandit, "a", by="model", loss=0.1)
    shown = play(guarded, rewards, rows)
    assert (shown[:300] == 1).mean() > 0.5
    assert guarded.report().is_model_rejected
    earned, promised = earned_and_promised(rewards, shown, np.zeros(900, int), 0.2)
    assert (earned >= promised - 1e-9).all()


def test_arms_are_drawn_from_the_recorded_mixture():
    rows, rewards, _ = make_world(2, 700, 0.2)
    guarded = Guarded(op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=3))), op.EpsilonGreedy(0.3)), "a")
    play(guarded, rewards, rows)
    assert guarded.report().share > 0.0
    counts, n = np.zeros(3), 400
    for i in range(n):
        decision = guarded.copy().decide(rows[0], ARMS, id=f"x{i}")
        assert decision.probabilities.sum() == pytest.approx(1.0)
        assert decision.propensity == decision.probabilities[decision.index]
        counts[decision.index] += 1
    p = decision.probabilities
    assert np.all(np.abs(counts / n - p) <= 4.0 * np.sqrt(p * (1.0 - p) / n) + 1e-12)


def test_a_baseline_may_be_a_bandit_and_a_field():
    baseline = make_bandit(7)
    baseline.learn(np.eye(3), [1.0, 0.0, 0.0], arm=ARMS)
    guarded = Guarded(make_bandit(), baseline)
    decision = guarded.decide([1.0, 0.0, 0.0], ARMS)
    assert decision.arm == "a"
    named = Guarded(op.ContextualBandit(), FieldArm("rule"))
    decision = named.decide({"rule": "b", "age": 3.0}, ARMS)
    assert (decision.arm, decision.propensity) == ("b", 1.0)
    with pytest.raises(ValueError, match="must be a dictionary with a field 'rule'"):
        named.decide({"age": 3.0}, ARMS)


@pytest.mark.parametrize("by", ["evidence", "model"])
def test_a_guarded_bandit_goes_on_where_its_file_ends(by):
    rows, rewards, _ = make_world(5, 400, 0.0)
    guarded = Guarded(make_bandit(), "a", loss=0.1, by=by)
    play(guarded, rewards[:200], rows[:200], delay=3)
    twin = op.from_bytes(op.to_bytes(guarded))
    for t in range(200, 400):
        one, other = guarded.decide(rows[t], ARMS, id=f"{t}"), twin.decide(rows[t], ARMS, id=f"{t}")
        assert one.arm == other.arm
        assert one.propensity == other.propensity
        guarded.learn(one, float(rewards[t, one.index]))
        twin.learn(other, float(rewards[t, other.index]))
    assert guarded.report() == twin.report()


def harm_stop(kind, ratio, share, decisions, seed, mean=0.3):
    """Return the decision after which harm is reported, or None, of 0/1 outcomes with `ratio` times the mean."""
    rng, test = np.random.default_rng(seed), HarmTest(kind(1.0), 0.05)
    policy = rng.random(decisions) < share
    values = rng.random(decisions) < np.where(policy, ratio * mean, mean)
    for t, (mine, value) in enumerate(zip(policy.tolist(), values.tolist(), strict=True)):
        test.add(mine / share, (not mine) / (1.0 - share), share, float(value), test.centre)
        if test.is_harmful:
            return t + 1
    return None


@pytest.mark.parametrize("kind", [AtMost, AtLeast])
def test_false_stops_of_a_guardrail_are_as_rare_as_stated_though_it_is_looked_at_always(kind):
    games = repetitions(100, 1000)
    stops = sum(harm_stop(kind, 1.0, 0.9, 400, seed) is not None for seed in range(games))
    assert stops <= 0.05 * games + 2.0 * (0.05 * games) ** 0.5


def test_harm_of_a_tenth_is_found_about_as_fast_as_by_a_test_of_fixed_size():
    """The fixed test compares two means, one-sided, with level .05 and power .9."""
    size, games = fixed_size(0.3, 1.1, 0.5), repetitions(5, 200)
    found = [harm_stop(AtMost, 1.1, 0.5, 3 * size, seed) for seed in range(games)]
    stops = np.array([3 * size if one is None else one for one in found]) / size
    assert np.median(stops) <= 1.5


def fixed_size(mean, ratio, share):
    """Return the number of decisions of a fixed-size test of `ratio` times the mean against the mean."""
    variance = ratio * mean * (1.0 - ratio * mean) / share + mean * (1.0 - mean) / (1.0 - share)
    return int(np.ceil((1.645 + 1.282) ** 2 * variance / ((ratio - 1.0) * mean) ** 2))


@pytest.mark.parametrize("kind", [AtMost, AtLeast])
@pytest.mark.parametrize("ratio", [0.8, 1.0, 1.3])
def test_a_fair_game_has_wealth_of_mean_one_and_no_bet_loses_more_than_half(kind, ratio):
    """All arms and outcomes are enumerated: E[1 + l D] is 1 where the claim is just true, for any centre."""
    share, mean = 0.3, 0.4
    for centre in (0.0, 0.25, 1.0):
        wealth = 0.0
        for mine, p in ((True, share), (False, 1.0 - share)):
            for value in (0.0, 1.0):
                chance = ratio * mean if mine else mean
                test = HarmTest(kind(ratio), 0.05)
                test.add(mine / share, (not mine) / (1.0 - share), share, value, centre)
                assert test.log_wealth[0] >= np.log(0.5) - 1e-12
                wealth += p * (chance if value else 1.0 - chance) * np.exp(test.log_wealth)
        assert wealth == pytest.approx(np.ones(8))


def test_a_broken_guardrail_sends_every_decision_to_the_baseline_until_it_is_resumed():
    bandit = op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=3))), op.EpsilonGreedy(0.3), outcomes=["refund"])
    guarded = Guarded(bandit, "a", guardrails={"refund": AtMost(1.02)})
    for t in range(600):
        decision = guarded.decide([1.0, 0.0, 0.0], ARMS, id=f"{t}")
        better = decision.arm == "b"
        guarded.learn(decision, 1.0 if better else 0.6, outcomes={"refund": float(better)})
    assert guarded.report().stopped == ("refund",)
    twin = op.from_bytes(op.to_bytes(guarded))
    for one in (guarded, twin):
        assert one.report().share == 0.0
        assert one.decide([1.0, 0.0, 0.0], ARMS).arm == "a"
    guarded.resume("refund")
    assert guarded.report().share > 0.0
    with pytest.raises(ValueError, match="must be from 0 to 1"):
        guarded.learn(guarded.decide([1.0, 0.0, 0.0], ARMS), 1.0, outcomes={"refund": 2.0})


def test_outcomes_of_guardrails_may_come_before_the_reward_or_after_it():
    """The order in which reward and outcome of a decision come makes no difference."""
    reports, tests = [], []
    for order in ("together", "outcome first", "reward first"):
        bandit = op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=3))), op.EpsilonGreedy(0.3), outcomes=["refund"])
        guarded = Guarded(bandit, "a", loss=0.3, guardrails={"refund": AtMost(1.0)})
        rng = np.random.default_rng(0)
        for t in range(120):
            decision = guarded.decide([1.0, 0.0, 0.0], ARMS, id=f"{t}")
            reward, refund = float(rng.random() < 0.7), {"refund": float(rng.random() < 0.4)}
            if order == "together":
                guarded.learn(decision, reward, outcomes=refund)
            elif order == "outcome first":
                guarded.learn(decision, outcomes=refund)
                guarded.learn(decision, reward)
            else:
                guarded.learn(decision, reward)
                guarded.learn(decision, outcomes=refund)
        reports.append(guarded.report())
        tests.append(guarded._promise.tests["refund"].log_wealth.tolist())
        assert guarded._promise._shown == {}
    assert reports[0] == reports[1] == reports[2]
    assert tests[0] == tests[1] == tests[2] != [0.0] * 8
    with pytest.raises(ValueError, match="reward must be"):
        guarded.learn(decision)


def test_a_decision_that_waits_keeps_its_share_when_it_is_asked_for_again():
    rows, rewards, _ = make_world(5, 300, 0.0)
    guarded = Guarded(make_bandit(), "a", loss=0.3)
    play(guarded, rewards[:100], rows[:100])
    first = guarded.decide(rows[100], ARMS, id="again")
    before = guarded.report()
    for t in range(101, 120):  # rewards of others that were decided elsewhere change nothing, those of ours do
        decision = guarded.decide(rows[t], ARMS, id=f"{t}")
        guarded.learn(decision, 1.0)
    assert guarded.report().share != before.share
    again = guarded.decide(rows[100], ARMS, id="again")
    assert again.mixture["share"] == first.mixture["share"]
    assert guarded.report().decisions == before.decisions + 19
    m = (1.0 - again.mixture["share"]) * again.mixture["baseline"] + again.mixture["share"] * again.mixture["policy"]
    assert np.array_equal(again.probabilities, m)


@pytest.mark.parametrize("by", ["evidence", "model"])
def test_the_decision_that_is_learned_counts_where_an_id_is_repeated(by):
    rows, rewards, _ = make_world(5, 100, 0.0)
    guarded = Guarded(make_bandit(), "a", loss=0.3, by=by)
    play(guarded, rewards, rows)
    context = np.array([0.0, 0.1, 0.11])
    first = guarded.decide(context, ARMS, id="again")
    for _ in range(200):  # the baseline's arm becomes the best one
        guarded.bandit.learn(context, 3.0, arm="a")
    second = guarded.decide(context, ARMS, id="again")
    assert (first.arm != "a", second.arm) == (True, "a")
    alone = op.from_bytes(op.to_bytes(guarded))
    before = guarded.report()
    guarded.learn(second, 1.0)
    alone.learn(first, 1.0)
    assert guarded.report().deviations == before.deviations - 1
    assert guarded.report().baseline == pytest.approx(
        before.baseline, abs=0.1
    )  # now 1 in a hit, and 1 in a miss before
    assert alone.report().deviations == before.deviations
    assert alone.report().baseline == before.baseline


def test_names_of_arms_that_are_tuples_come_back_from_a_file():
    arms = [("a", ("b", 1)), "c"]
    guarded = Guarded(make_bandit(), arms[0])
    twin = op.from_bytes(op.to_bytes(guarded))
    assert twin.decide([1.0, 0.0, 0.0], arms).arm == arms[0]


def test_the_largest_reward_of_a_range_is_learned_though_its_width_is_rounded():
    for least, largest in ((0.2, 0.9), (-0.1, 0.2), (0.1, 0.3)):
        guarded = Guarded(make_bandit(), "a", reward_range=(least, largest))
        for one in (guarded, op.from_bytes(op.to_bytes(guarded))):
            one.learn(one.decide([1.0, 0.0, 0.0], ARMS), largest)
            assert one.report().reward == largest - least
            with pytest.raises(ValueError, match="reward must be from"):
                one.learn(one.decide([1.0, 0.0, 0.0], ARMS), np.nextafter(largest, 2.0))


def test_arms_and_eligible_arms_may_be_iterators():
    guarded = Guarded(make_bandit(), "a")
    assert guarded.decide([1.0, 0.0, 0.0], iter(ARMS), eligible=iter(["a", "b"])).arm == "a"


BAD = {
    "bandit must be a Bandit": lambda: Guarded("a", "b"),
    "baseline must be an arm": lambda: Guarded(make_bandit(), ["a"]),
    "loss must be above 0 and below 1": lambda: Guarded(make_bandit(), "a", loss=1.0),
    "reward_range must be \\(least, largest\\)": lambda: Guarded(make_bandit(), "a", reward_range=5),
    "reward_range must be .*got \\(0,\\)": lambda: Guarded(make_bandit(), "a", reward_range=(0,)),
    "its least reward first, got \\(0, 0\\)": lambda: Guarded(make_bandit(), "a", reward_range=(0, 0)),
    "its least reward first, got \\(1, 0\\)": lambda: Guarded(make_bandit(), "a", reward_range=(1, 0)),
    "reward_range must be a finite number, got nan": lambda: Guarded(make_bandit(), "a", reward_range=(np.nan, 1)),
    "reward_range must be a finite number, got inf": lambda: Guarded(make_bandit(), "a", reward_range=(0, np.inf)),
    "reward_range must be a finite number, got 'a'": lambda: Guarded(make_bandit(), "a", reward_range=("a", "b")),
    "reward_range must have a finite width": lambda: Guarded(make_bandit(), "a", reward_range=(-1e308, 1e308)),
    "by must be one of": lambda: Guarded(make_bandit(), "a", by="luck"),
    "certainty must be": lambda: Guarded(make_bandit(), "a", certainty=float("nan")),
    "guardrails must be": lambda: Guarded(make_bandit(), "a", guardrails={"refund": AtMost()}),
    "must be among the arms on offer": lambda: Guarded(make_bandit(), "z").decide([1.0, 0.0, 0.0], ARMS),
    "must be eligible": lambda: Guarded(make_bandit(), "a").decide([1.0, 0.0, 0.0], ARMS, eligible=["b"]),
    "reward must be from 0 to 1": lambda: (lambda g: g.learn(g.decide([1.0, 0.0, 0.0], ARMS), 1.5))(
        Guarded(make_bandit(), "a")
    ),
    "ratio must be": lambda: AtMost(-1.0),
    "contexts must be those of one decision": lambda: Guarded(make_bandit(), "a").decide(
        np.ones((2, 1, 3)), ARMS, id=["x", "y"]
    ),
}


@pytest.mark.parametrize("sentence", BAD)
def test_bad_input_is_refused_with_a_reason(sentence):
    with pytest.raises(ValueError, match=sentence):
        BAD[sentence]()
