"""Models per arm decide: ranks, batches, ties, propensities, draws, radii, threads, recorded rounds."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dense
import onepass as op
from arm_games import (
    CUTTING,
    DIM,
    NAMES,
    assert_close,
    data,
    disjoint,
    fingerprint,
    hybrid,
    learn_in_batches,
    make_experienced_bandit,
)
from counts import LONG
from onepass.estimator.radii import confidence_radius


def test_decisions_rank_the_best_and_come_in_batches():
    bandit, queries = make_experienced_bandit(), np.random.default_rng(5).standard_normal((7, DIM))
    decision = bandit.decide(queries[0], NAMES, k=3)
    order = np.argsort(-bandit.score(queries[0], NAMES))
    assert decision.arms == [NAMES[i] for i in order[:3]]
    assert decision.arm == decision.arms[0]
    assert decision.propensity == 1.0
    np.testing.assert_allclose(decision.scores, decision.means + 0.5 * decision.widths, rtol=1e-14)
    for contexts in (queries[:, None], np.broadcast_to(queries[:, None], (7, 4, DIM))):
        many = bandit.decide(contexts, NAMES, k=2)
        each = [bandit.decide(x, NAMES, k=2) for x in queries]
        assert many.arm == [one.arm for one in each]
        assert many.arms == [one.arms for one in each]
        assert many.scores.shape == many.means.shape == many.widths.shape == (7, 4)
        assert_close(many.scores, np.stack([one.scores for one in each]))
        assert many.propensity.tolist() == [1.0] * 7
    default = bandit.decide(queries[0])
    assert bandit.arms == tuple(dict.fromkeys(data(120)[2]))
    assert_close(default.scores, bandit.score(queries[0], bandit.arms))


def test_all_names_are_scored_whatever_holds_them():
    bandit, x = make_experienced_bandit(), np.ones(DIM)
    words = ["a", "d", "new"]
    want = bandit.score(x, words)
    for arms in (tuple(words), np.array(words), dict.fromkeys(words), iter(words), np.array(words, object)):
        np.testing.assert_array_equal(bandit.score(x, arms), want)
    pl = pytest.importorskip("polars")
    np.testing.assert_array_equal(bandit.score(x, pl.Series(words)), want)


def test_offering_arms_does_not_make_them_known_and_adding_does():
    bandit = make_experienced_bandit()
    before = fingerprint(bandit)
    bandit.score(np.ones(DIM), ["a", "x"])
    bandit.recommend(np.ones((2, DIM)), 1, ["a", "y"])
    bandit.decide(np.ones(DIM), ["a", "x"], id="request")
    assert fingerprint(bandit) == before
    bandit.add_arm("x")
    assert bandit.arms == (*before[1], "x")
    assert bandit.score(np.ones(DIM)).shape == (5,)
    bandit.remove_arm("x")
    assert bandit.score(np.ones(DIM)).shape == (4,)
    with pytest.raises(ValueError, match="not known"):
        bandit.model.rows_of("x")


def test_a_request_that_is_kept_and_repeated_sees_what_was_learned_since():
    bandit, offered, x = make_experienced_bandit(), ("a", "late", "d"), np.ones(DIM)
    first = bandit.score(x, offered)
    bandit.learn(x, 5.0, "late")
    second = bandit.score(x, offered)
    assert second[1] > first[1] + 1.0
    bandit.remove_arm("late")
    np.testing.assert_array_equal(bandit.score(x, offered), first)
    everyone = bandit.score(x)
    bandit.add_arm("later")
    np.testing.assert_array_equal(bandit.score(x)[:-1], everyone)


def test_ties_are_broken_evenly_and_by_the_seed():
    make = lambda s: disjoint(op.Exact(dim=DIM), seed=s)  # noqa: E731
    offered = ("p", "q", "r", "s")
    first = [make(s).decide(np.ones(DIM), offered).arm for s in range(400)]
    assert first == [make(s).decide(np.ones(DIM), offered).arm for s in range(400)]
    counts = np.array([first.count(arm) for arm in offered])
    assert np.abs(counts - 100).max() < 4 * np.sqrt(400 * 0.25 * 0.75)  # four standard deviations
    assert make(0).decide(np.ones(DIM), offered).propensity == 0.25
    one, many = make(3), make(3)
    assert many.decide(np.ones((9, 1, DIM)), offered).arm == [one.decide(np.ones(DIM), offered).arm for _ in range(9)]


def test_greedy_and_epsilon_greedy_explore_with_their_propensities():
    x = np.random.default_rng(5).standard_normal(DIM)
    best = make_experienced_bandit(op.Greedy()).decide(x)
    assert best.widths is None
    assert best.propensity == 1.0
    np.testing.assert_array_equal(best.scores, best.means)
    drawn = make_experienced_bandit(op.EpsilonGreedy(0.4), 1).decide(np.tile(x, (2000, 1, 1)))
    expected = 0.6 + 0.4 / 4
    share = np.mean([arm == best.arm for arm in drawn.arm])
    assert abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / 2000)
    assert {round(p, 12) for p in drawn.propensity} == {round(expected, 12), round(0.4 / 4, 12)}


@pytest.mark.parametrize("kind", ["disjoint", "hybrid"])
def test_thompson_draws_have_the_posterior_mean_and_variance(kind):
    rows, rewards, names = data(120)
    rule = op.Thompson(0.7)
    if kind == "disjoint":
        bandit = learn_in_batches(disjoint(op.Exact(dim=DIM, reg=0.37), rule), rows, rewards, names)
        naive = dense.Disjoint(DIM, 0.37, 0.7)
    else:
        bandit = op.LinTS(dim=DIM, reg=0.37, exploration=0.7, model="hybrid")
        learn_in_batches(bandit, rows, rewards, names)
        naive = dense.Hybrid([*NAMES, "new"], DIM, DIM, 0.37, 0.7)
    for row, reward, name in zip(rows, rewards, names, strict=True):
        naive.learn(row, reward, name)
    offered, count = [*NAMES, "new"], 4000
    x = np.random.default_rng(5).standard_normal(DIM)
    upper = naive.scores(np.tile(x, (5, 1)), offered)
    decisions = bandit.decide(np.tile(x, (count, 1, 1)), offered)
    mean, spread = decisions.means[0], upper - decisions.means[0]
    assert np.abs(decisions.scores.mean(axis=0) - mean).max() < 4.5 * spread.max() / np.sqrt(count)
    np.testing.assert_allclose(decisions.scores.std(axis=0), spread, rtol=4.5 / np.sqrt(2 * count))
    assert ((decisions.propensity > 0.0) & (decisions.propensity <= 1.0)).all()
    if kind == "disjoint":  # arms share no data, nor noise
        assert np.abs(np.corrcoef(decisions.scores.T) - np.eye(5)).max() < 4.5 / np.sqrt(count)
    again = bandit.score(x, offered)
    np.testing.assert_array_equal(bandit.score(x, offered), again)


RADII = [op.Exact(dim=DIM, reg=0.37), op.ProjectorSplitting(dim=DIM, rank=DIM, reg=0.37), CUTTING[3], CUTTING[5]]


@pytest.mark.parametrize(
    ("design", "compact"),
    [(design, compact) for design in RADII for compact in (True, False) if LONG or design is RADII[0]],
)
def test_the_radius_of_an_arm_is_that_of_its_own_design(design, compact):
    rows, rewards, names = data(120)
    theory = op.Theory(noise=0.3, parameter_bound=2.0, row_bound=4.0, delta=0.05, scale=0.5)
    bandit = learn_in_batches(disjoint(design, op.UCB(theory), compact=compact), rows, rewards, names)
    decision = bandit.decide(rows[0], [*NAMES, "new"])
    for a, arm in enumerate([*NAMES, "new"]):
        own = design.copy()
        chosen = rows[[name == arm for name in names]]
        for row in chosen:
            own.append(row)
        radius = confidence_radius(own.state, len(chosen), 0.3, 2.0, 4.0, 0.05)
        assert radius > 0.0
        np.testing.assert_allclose(decision.scores[a] - decision.means[a], 0.5 * radius * decision.widths[a], rtol=1e-9)


def test_scores_are_the_same_from_several_threads():
    bandit, queries = make_experienced_bandit(op.Thompson(0.5)), np.random.default_rng(5).standard_normal((40, DIM))
    want = [bandit.score(x, NAMES) for x in queries]
    known = [bandit.score(x) for x in queries]
    before = fingerprint(bandit)
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            got = list(pool.map(lambda x: bandit.score(x, NAMES), queries))
            every = list(pool.map(bandit.score, queries))
            np.testing.assert_array_equal(got, want)
            np.testing.assert_array_equal(every, known)
    assert fingerprint(bandit) == before


def test_an_arm_that_appears_while_others_are_scored_is_seen_from_then_on(monkeypatch):
    bandit, x = make_experienced_bandit(), np.ones(DIM)
    fromiter = np.fromiter

    def interrupted(*args, **kwargs):  # another thread's decide comes in between
        monkeypatch.setattr(np, "fromiter", fromiter)
        bandit.decide(x, ["newcomer"])
        return fromiter(*args, **kwargs)

    monkeypatch.setattr(np, "fromiter", interrupted)
    bandit.score(x)
    assert len(bandit.score(x)) == len(bandit.arms)


@pytest.mark.parametrize("kind", ["disjoint", "hybrid", "thompson", "epsilon"])
@pytest.mark.parametrize("each", [True, False])
def test_play_equals_decide_and_learn(kind, each):
    rng = np.random.default_rng(6)
    contexts, rewards = rng.standard_normal((60, 5 if each else 1, DIM)), rng.standard_normal((60, 5))
    rules = {"thompson": op.Thompson(0.5), "epsilon": op.EpsilonGreedy(0.3)}
    make = lambda: hybrid() if kind == "hybrid" else disjoint(op.Exact(dim=DIM), rules.get(kind), seed=3)  # noqa: E731
    together, apart = make(), make()
    chosen = together.play(contexts, rewards)
    for t, arm in enumerate(chosen):
        request = contexts[t] if each else contexts[t, 0]
        assert apart.decide(request, range(5)).arm == arm
        apart.learn(contexts[t, arm if each else 0], rewards[t, arm], int(arm))
    assert fingerprint(together) == fingerprint(apart)
    assert together.n_learned == 60
    assert set(together.arms) == set(range(5))
