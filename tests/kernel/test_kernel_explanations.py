"""Explanations of kernel bandits: the points of the dictionary, weighed by the dense posterior."""

import json

import numpy as np
import pytest

import dense_kernel as dense
import onepass as op
from kernel_games import ARMS, BANDITS, REGS, SMOOTH, assert_close, history, learn, learn_rows, points

EXACT = {"GPUCB", "BKB with all"}


def played(kind, reg, normalize=False, fixed=True):
    """A bandit, its plays and rewards, and the arms."""
    arms = points()
    plays, rewards = history(arms, 120)
    bandit = BANDITS[kind](arms if fixed else None, SMOOTH, reg=reg, normalize=normalize)
    for play, reward in zip(plays, rewards, strict=True):
        learn(bandit, int(play) if fixed else arms[play], float(reward))
    return bandit, arms, plays, rewards


def assert_adds_up(found, tolerance=1e-8):
    mean, square = (np.array([term[-2:] for term in found.terms])).sum(axis=0)
    assert abs(mean - found.mean) <= tolerance * max(abs(term.contribution) for term in found.terms)
    assert abs(square - found.width**2) <= tolerance * max(abs(term.share) for term in found.terms)


def by_name(found):
    return {term.name: term for term in found.terms}


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("kind", BANDITS)
def test_terms_add_up_to_what_was_decided_by(kind, reg, normalize):
    bandit, arms, _, _ = played(kind, reg, normalize)
    changing, *_ = played(kind, reg, normalize, fixed=False)
    for one, rows in ((bandit, None), (changing, arms)):
        decision = one.decide(rows)
        for arm in (0, 3, ARMS - 1):
            found = one.explain(rows, arm)
            assert_adds_up(found)
            assert_adds_up(found.difference)
            assert_close(found.mean, decision.means[arm])
            assert_close(found.width, decision.widths[arm], 1e-6)
            np.testing.assert_allclose(found.score, decision.scores[arm], rtol=1e-12)
        assert one.explain(rows).arm == decision.arm


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("kind", sorted(EXACT))
def test_points_weigh_what_the_dense_posterior_gives_their_plays(kind, reg):
    """mean = sum over plays of k(x, x_t) ((K + reg I)^-1 y)_t, so a point has the sum of its plays' weights."""
    bandit, arms, plays, rewards = played(kind, reg)
    gram = SMOOTH(arms, arms)
    inverse = np.linalg.inv(gram[np.ix_(plays, plays)] + reg * np.eye(len(plays)))
    weights = inverse @ rewards
    for arm in (0, ARMS - 1):
        terms = by_name(bandit.explain(arm=arm))
        solved = inverse @ gram[plays, arm]
        assert {name for name in terms if name != "prior"} == {f"arm{place}" for place in set(plays.tolist())}
        assert terms["prior"].share == pytest.approx(gram[arm, arm] / reg)
        for place in set(plays.tolist()):
            term = terms[f"arm{place}"]
            assert_close(term.value, gram[place, arm])
            assert_close(term.contribution, gram[place, arm] * weights[plays == place].sum(), 1e-6)
            assert_close(term.share, -gram[place, arm] * solved[plays == place].sum() / reg, 1e-6)


@pytest.mark.parametrize("reg", REGS)
def test_the_width_of_a_difference_is_that_of_the_posterior_covariance(reg):
    bandit, arms, plays, rewards = played("GPUCB", reg)
    covariance = learn_rows(dense.GP(SMOOTH, reg), arms[plays], rewards).covariance(arms)
    for arm, other in ((0, 1), (5, 30), (39, 2)):
        found = bandit.explain(arm=arm, other=other).difference
        square = covariance[arm, arm] + covariance[other, other] - 2.0 * covariance[arm, other]
        assert_close(found.width, np.sqrt(square), 1e-7)


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("kind", ["BKB", "BKB with few"])
def test_a_budgeted_difference_is_that_of_the_dictionarys_posterior(kind, reg):
    """Covariance (k(x, y) - z_x^T z_y) / reg + z_x^T V^-1 z_y."""
    bandit, arms, plays, rewards = played(kind, reg)
    z = dense.embedding(SMOOTH, bandit.model.dictionary, arms)
    inverse = np.linalg.inv(z[plays].T @ z[plays] + reg * np.eye(z.shape[1]))
    theta = inverse @ (z[plays].T @ rewards)
    for arm, other in ((0, 1), (5, 30), (39, 2)):
        found, gap = bandit.explain(arm=arm, other=other).difference, z[arm] - z[other]
        rest = SMOOTH(arms[[arm]], arms[[arm]]) + SMOOTH(arms[[other]], arms[[other]])
        rest = rest[0, 0] - 2.0 * SMOOTH(arms[[arm]], arms[[other]])[0, 0]
        assert_close(found.mean, gap @ theta, 1e-6)
        assert_close(found.width, np.sqrt((rest - gap @ gap) / reg + gap @ inverse @ gap), 1e-6)


@pytest.mark.parametrize("kind", ["GPUCB", "BKB"])
def test_candidates_that_are_no_arms_are_explained_as_well(kind):
    bandit, arms, *_ = played(kind, 0.37)
    found, want = bandit.explain(arms[[4, 9]]), bandit.explain(arm=4, other=9)
    if found.arm == 1:
        want = bandit.explain(arm=9, other=4)
    assert found.terms == want.terms
    assert_close(found.width, want.width)


@pytest.mark.parametrize("kind", ["GPUCB", "BKB"])
def test_a_decision_is_explained_by_the_arms_that_it_chose(kind):
    bandit, *_ = played(kind, 0.37)
    best = bandit.explain().arm
    decision = bandit.decide(k=2, eligible=np.arange(ARMS) != best, rest="greedy")
    found = bandit.explain(decision)
    assert [found.arm, found.difference.other] == decision.arms
    want = bandit.explain(arm=decision.arms[0], other=decision.arms[1])
    assert_close(found.mean, want.mean)
    assert_close(found.difference.width, want.difference.width)
    with pytest.raises(ValueError, match="arm must be one of the 2 arms"):
        bandit.explain(decision, best)


@pytest.mark.parametrize("kind", ["GPUCB", "BKB"])
def test_before_the_first_play_there_is_the_prior_alone(kind):
    for fixed in (True, False):
        bandit = BANDITS[kind](points() if fixed else None, SMOOTH, reg=0.37)
        found = bandit.explain(None if fixed else points(), 1)
        assert [term.name for term in found.terms] == ["prior"]
        assert found.mean == 0.0
        assert found.width**2 == pytest.approx(1.0 / 0.37)


def test_points_are_named_by_their_place_in_the_dictionary_where_arms_change():
    bandit, arms, _, _ = played("BKB", 0.37, fixed=False)
    terms = by_name(bandit.explain(arms, 4, 9))
    near = SMOOTH(bandit.model.dictionary, arms[4:5])[:, 0]
    for i, value in enumerate(near):
        np.testing.assert_allclose(terms[f"point{i}"].value, value, rtol=1e-12)
    plain = json.loads(json.dumps(bandit.explain(arms, 4, 9).to_dict()))
    assert plain["difference"]["other"] == 9
    assert "4 against 9: score" in str(bandit.explain(arms, 4, 9))


def test_bad_questions_get_one_clear_sentence_and_change_nothing():
    bandit, *_ = played("BKB", 0.37)
    before = op.to_bytes(bandit)
    for call, says in (
        (lambda: bandit.explain(3), "contexts must"),
        (lambda: bandit.explain(arm=ARMS), f"arm must be one of the {ARMS} arms offered"),
        (lambda: bandit.explain(arm=2, other=2), "other must be another arm"),
    ):
        with pytest.raises(ValueError, match=says):
            call()
    bandit.explain()
    assert op.to_bytes(bandit) == before
