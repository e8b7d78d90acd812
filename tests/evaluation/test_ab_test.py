"""Experiments that earn while they learn: exact contrasts although the level moves, right stops, saved and replayed."""

import json
from collections import Counter

import numpy as np
import pytest
from scipy import stats

import onepass as op
from counts import repetitions
from onepass.evaluation.contrasts import Contrasts, leader

RNG = np.random.default_rng(0)


def random_rows(rows, count, rng=RNG):
    """Probabilities, arms, rewards and predictions of random rounds."""
    p = rng.dirichlet(np.ones(count), rows)
    arms = np.array([rng.choice(count, p=one) for one in p])
    return p, arms, rng.random(rows), rng.random((rows, count))


def dense_sums(p, arms, rewards, means):
    """Sums of weights, terms and squares of every pair, row by row."""
    count = p.shape[1]
    out = np.zeros((3, count, count))
    for t, chosen in enumerate(arms):
        robust = [means[t, a] + (a == chosen) * (rewards[t] - means[t, a]) / p[t, a] for a in range(count)]
        for a in range(count):
            for b in range(count):
                h = min(p[t, a], p[t, b])
                y = h * (robust[a] - robust[b])
                out[:, a, b] += h, y, y * y
    return out


def test_sums_are_those_of_the_rows_one_by_one_and_in_any_blocks():
    rows = random_rows(40, 4)
    contrasts = Contrasts(4, 0.05)
    for part in (slice(0, 1), slice(1, 30), slice(30, 40)):
        contrasts.add(*(column[part] for column in rows))
    np.testing.assert_allclose(contrasts.sums, dense_sums(*rows), atol=1e-12)


def test_terms_are_unbiased_for_every_prediction_and_at_least_minus_one_for_every_probability():
    for _ in range(200):
        count = int(RNG.integers(2, 5))
        p = RNG.dirichlet(np.full(count, 0.2)) * (1.0 - 1e-9) + 1e-9 / count
        means, rewards = RNG.random((1, count)).round(RNG.integers(0, 3)), RNG.random(count).round(RNG.integers(0, 3))
        mean = np.zeros((count, count))
        for arm in range(count):
            terms = dense_sums(p[None], [arm], [rewards[arm]], means)[1]
            assert terms.min() >= -1.0 - 1e-9
            mean += p[arm] * terms
        weights = np.minimum(p[:, None], p[None])
        np.testing.assert_allclose(mean, weights * (rewards[:, None] - rewards[None]), atol=1e-9)


def test_all_limits_hold_at_all_times_although_level_and_probabilities_move_together():
    games, failed, misled = repetitions(40, 500), 0, 0
    for game in range(games):
        rng = np.random.default_rng(game)
        study, truth, weights = Contrasts(3, 0.2), np.zeros((3, 3)), np.zeros((3, 3))
        kept, totals = True, np.zeros((2, 3))
        for block in range(60):
            level = 0.3 if block % 2 else 0.05  # on days with a high level arm 2, the worst, is shown most
            p = np.array([0.1, 0.1, 0.8]) if block % 2 else np.array([0.45, 0.45, 0.1])
            rates = level + np.array([0.0, 0.03, -0.02])
            arms = rng.choice(3, 50, p=p)
            clicks = (rng.random(50) < rates[arms]) * 1.0
            study.add(np.tile(p, (50, 1)), arms, clicks, np.full((50, 3), 0.1))
            pair = 50 * np.minimum(p[:, None], p[None])
            truth, weights = truth + pair * (rates[:, None] - rates[None]), weights + pair
            kept = kept and bool((study.lower() <= truth / weights + 1e-12).all())
            totals += [np.bincount(arms, minlength=3), np.bincount(arms, clicks, 3)]
        failed += not kept
        misled += (totals[1] / totals[0]).argmax() == 2
    assert stats.binom.sf(failed - 1, games, 0.2) > 1e-4
    assert misled == games  # means of the arms' own rows call the worst arm the best


def play(study, rates, decisions, seed=0):
    """Play decisions one by one, up to a stop."""
    rng = np.random.default_rng(seed)
    for t in range(decisions):
        decision = study.decide(id=f"visit {t}")
        study.learn(decision, float(rng.random() < rates[decision.arm]))
        if study.stopped_at is not None:
            return


def test_an_experiment_stops_at_the_best_arm_and_says_so_in_a_sentence():
    study = op.ABTest(None, ["a", "b", "c"], seed=1)
    assert "no reward" in study.answer.sentence
    play(study, {"a": 0.2, "b": 0.6, "c": 0.3}, 3_000)
    answer = study.answer
    assert answer.leader == "b"
    assert answer.enough
    assert answer.sentence.startswith("b is better than every other arm by at least ")
    assert answer.sentence.endswith(" points; you may stop.")
    assert all(one.limits.lower > 0.0 for one in answer.contrasts)
    shown = {(one.arm, one.other): one for one in study.contrasts()}
    assert shown["b", "a"].limits.lower == -shown["a", "b"].limits.upper
    counts = Counter()
    for t in range(300):
        counts[study.decide(id=f"later {t}").arm] += 1
    assert counts["b"] > counts["a"]
    two = op.ABTest(None, ["old", "new"], seed=1)
    play(two, {"old": 0.2, "new": 0.6}, 3_000)
    assert two.answer.sentence.startswith("new is better than old by ")


def test_a_tolerance_stops_between_arms_that_hardly_differ_and_without_one_they_are_not_told_apart():
    rates = {"a": 0.3, "b": 0.3}
    study, exact = op.ABTest(None, ["a", "b"], 0.1, seed=2), op.ABTest(None, ["a", "b"], seed=2)
    play(study, rates, 4_000)
    play(exact, rates, study.n_learned)
    assert "is at most 10 points worse than any other arm; you may stop." in study.answer.sentence
    assert not exact.answer.enough
    assert "; go on" in exact.answer.sentence


def test_the_sentence_says_only_what_the_limits_prove_if_the_arms_change_after_the_stop():
    study, rng, rates = op.ABTest(None, ["a", "b"], seed=0), np.random.default_rng(0), np.array([0.2, 0.8])
    while study.stopped_at is None or study.answer.leader == "b":
        arms = rng.choice(2, 50, p=study.probabilities)
        study.learn_rows(arms, (rng.random(50) < rates[arms]) * 1.0, study.probabilities)
        rates = np.array([0.2, 0.8] if study.stopped_at is None else [0.8, 0.2])
    answer = study.answer
    lower = answer.contrasts[0].limits.lower
    assert lower < 0.0
    assert answer.enough
    said = (
        f"a is at most {-100.0 * lower:.3g} points worse than any other arm; you could stop at {study.stopped_at} rewa"
    )
    assert answer.sentence.startswith(said)


@pytest.mark.parametrize("seed", [0, 2])
def test_an_experiment_stops_with_the_first_reward_after_which_the_answer_is_enough(seed):
    study, rng = op.ABTest(None, ["a", "b"], seed=seed), np.random.default_rng(seed)
    while study.stopped_at is None:
        assert not study.answer.enough
        decision = study.decide()
        study.learn(decision, float(rng.random() < (0.55 if decision.arm == "b" else 0.3)))
    assert study.answer.enough
    assert study.stopped_at == study.n_learned


def test_wrong_stops_are_as_rare_as_promised_when_all_arms_are_equal():
    games = repetitions(30, 500)
    wrong = 0
    for game in range(games):
        rng, study = np.random.default_rng(game), op.ABTest(None, range(4), certainty=0.8, seed=game)
        while study.n_learned < 2_000 and study.stopped_at is None:
            p = study.probabilities
            arms = rng.choice(4, 20, p=p)
            study.learn_rows(arms, (rng.random(20) < 0.1) * 1.0, p)
        wrong += study.stopped_at is not None
    assert stats.binom.sf(wrong - 1, games, 0.2) > 1e-4


def test_every_arm_keeps_the_floor():
    study = op.ABTest(None, range(4), seed=0)
    rng = np.random.default_rng(0)
    for _ in range(100):
        p = study.probabilities
        assert p.min() >= 0.5 * max(study.n_learned, 1) ** -0.25 / 4 - 1e-12
        arms = rng.choice(4, 30, p=p)
        study.learn_rows(arms, (rng.random(30) < np.array([0.1, 0.2, 0.3, 0.8])[arms]) * 1.0, p)


def test_a_bandit_predicts_and_learns_and_predictions_narrow_the_limits():
    rng = np.random.default_rng(3)
    bandit = op.LinUCB(dim=3, model="disjoint")
    study, blind = op.ABTest(bandit, ["a", "b"], seed=0), op.ABTest(None, ["a", "b"], seed=0)
    for t in range(500):
        x = np.array([1.0, *rng.random(2)])
        decision = study.decide(x, id=str(t))
        again = op.Decision.from_dict(json.loads(json.dumps(decision.to_dict())))
        reward = float(np.clip(0.9 * x[1] + 0.05 * (decision.arm == "b"), 0.0, 1.0))
        study.learn(again, reward)
        blind.learn_rows(np.array([decision.index]), np.array([reward]), decision.probabilities)
    assert bandit.n_learned == 500
    width, other = (one.contrasts()[0].limits for one in (study, blind))
    assert width.upper - width.lower < 0.8 * (other.upper - other.lower)


@pytest.mark.parametrize("with_bandit", [False, True])
def test_a_saved_experiment_goes_on_bit_for_bit_and_replays(tmp_path, with_bandit):
    def make():
        return op.ABTest(op.LinUCB(dim=1, model="disjoint") if with_bandit else None, ["a", "b", "c"], 0.01, seed=5)

    def advance(study, first, last):
        found = []
        for t in range(first, last):
            decision = study.decide([1.0] if with_bandit else None, id=f"v{t}", subject=f"user {t % 70}")
            study.learn(decision, float(hash_free(t) < 0.2 + 0.2 * decision.index))
            found.append((decision.arm, decision.propensity, study.answer.sentence))
        return found

    def hash_free(t):
        return (t * 0.6180339887) % 1.0

    whole, parted = make(), make()
    expected = advance(whole, 0, 160)
    found = advance(parted, 0, 90)
    parted.save(tmp_path / "study.safetensors")
    found += advance(op.load(tmp_path / "study.safetensors"), 90, 160)
    assert found == expected
    assert advance(make(), 0, 160) == expected


@pytest.mark.parametrize("names", [[("de", 1), ("fr", 2)], [np.int64(3), np.str_("b")]])
def test_an_experiment_between_tuples_or_numpy_names_is_saved_and_copied(names):
    study = op.ABTest(None, names)
    decision = study.decide(id="1")
    for again in (op.from_bytes(op.to_bytes(study)), study.copy()):
        assert again.arms == tuple(names)
        again.learn(op.Decision.from_dict(json.loads(json.dumps(decision.to_dict()))), 1.0)


def test_later_decisions_of_a_subject_get_its_arm_and_do_not_count():
    study = op.ABTest(None, ["a", "b"], seed=0)
    first = study.decide(subject="user")
    study.learn(first, 1.0)
    sums = study.contrasts()
    for _ in range(20):
        later = study.decide(subject="user")
        assert later.arm == first.arm
        assert later.propensity == 1.0
        study.learn(later, 0.0)
    assert study.contrasts() == sums
    assert {study.decide(subject=f"user {i}").arm for i in range(30)} == {"a", "b"}


def test_a_bandit_may_serve_one_experiment_after_another():
    bandit = op.LinUCB(dim=1, model="disjoint")
    for _ in range(2):
        study = op.ABTest(bandit, ["a", "b"])
        study.learn(study.decide([1.0]), 1.0)
    assert bandit.n_learned == 2


def test_what_does_not_belong_to_an_experiment_is_refused():
    study = op.ABTest(None, ["a", "b"])
    decision = study.decide()
    study.learn(decision, 1.0)
    for call, words in [
        (lambda: study.learn(decision, 1.0), "has had its reward"),
        (lambda: study.learn(study.decide(), 1.5), "reward must be within"),
        (lambda: study.learn(op.ABTest(None, ["a", "c"]).decide(), 1.0), "none of this experiment"),
        (lambda: study.decide([1.0]), "without a bandit"),
        (lambda: op.ABTest(None, ["a"]), "number of arms"),
        (lambda: op.ABTest(None, ["a", "b"], -1.0), "tolerance"),
        (lambda: op.ABTest(None, ["a", "b"], certainty=1.0), "certainty"),
        (lambda: op.ABTest(op.OFUL(dim=2), ["a", "b"]), "named arms"),
        (lambda: study.learn_rows(np.array([2]), np.array([1.0]), [0.5, 0.5]), "places"),
        (lambda: study.learn_rows(np.array([1]), np.array([1.0]), [1.0, 0.0]), "probabilities"),
        (lambda: study.learn_rows(np.array([0]), np.array([0.0]), np.array([2.0, -1.0])), "must be at least 0, add up"),
    ]:
        with pytest.raises(ValueError, match=words):
            call()


def test_the_leader_has_the_best_worst_limit():
    assert leader([[0.0, 0.1, -0.3], [-0.5, 0.0, -0.1], [-0.2, -0.6, 0.0]]) == 0


def test_top_two_gives_the_leader_its_share_and_the_rest_to_the_closest_rival():
    bandit = op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=1, reg=0.3))), op.TopTwo(0.6, uniform_share=0.0))
    for arm, mean in (("a", 1.0), ("b", 0.8), ("c", 0.1)):
        bandit.learn(np.ones((400, 1)), np.full(400, mean), [arm] * 400)
    found = bandit.decide([1.0], ["a", "b", "c"], id="one").probabilities
    np.testing.assert_allclose(found, [0.6, 0.4, 0.0], atol=1e-12)
