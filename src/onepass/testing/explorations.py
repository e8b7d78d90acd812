"""Conformance suite of exploration rules."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from onepass.bandit.bandit import Bandit
from onepass.bandit.decision import Decision
from onepass.design.exact import Exact
from onepass.estimator.ridge import Ridge
from onepass.exploration.contract import ArmStatistics, draws, score, strength
from onepass.exploration.exploration import Exploration
from onepass.exploration.sampling import sample_action
from onepass.foundation.files import from_bytes, to_bytes
from onepass.foundation.registry import list_classes
from onepass.model.arms.per_arm import Disjoint
from onepass.testing.shared import summary

SUM_TOLERANCE = 1e-12  # for the sum of probabilities
LEVEL = 1e-6  # significance level of every chi-square test of frequencies
MIN_EXPECTED = 5.0  # arms expected less often are counted together, as their counts are not near normal
# Number of arms; True if a third is not eligible.
SIZES = ((1, False), (2, False), (2, True), (7, False), (7, True), (60, True))
DIM, REG = 3, 0.4  # of the bandits


def check_exploration(make: Callable[[], Exploration], n_draws: int = 2_000) -> str:
    """Check that an exploration rule satisfies its contract.

    Parameters
    ----------
    make : function
        Returns a new exploration rule.
    n_draws : int, default 2000
        Number of draws of every test of frequencies, at least 1.

    Returns
    -------
    str
        A sentence that lists what was checked.

    Raises
    ------
    AssertionError
        At the first violation.

    Notes
    -----
    The suite checks that

    - probabilities are finite, at least 0, and add up to 1 within 1e-12;
    - they are 0 for arms that are not eligible, and at least uniform_share / K for the K arms that are;
    - a single arm has probability 1, and ties and a model without data are no exceptions;
    - probabilities do not depend on the random numbers of the draw, and the statistics are not written to;
    - arms are drawn with these probabilities (a chi-square test at level 1e-6);
    - shared models and models per arm decide with the rule, repeat the decision of an id, and play;
    - bandits with the rule are saved and loaded, if its class is `onepass.extend.savable`.
    """
    exploration = make()
    where, rule = repr(exploration), exploration.rule()
    assert isinstance(exploration, Exploration), f"{where} is no onepass.extend.Exploration"
    assert 0.0 <= rule.uniform_share <= 1.0, f"{where}: uniform_share is {rule.uniform_share}"
    assert repr(make()) == where, f"{where}: another one of the same arguments is {make()!r}"
    for seed, (n_arms, has_ineligible) in enumerate(SIZES):
        for ties in (False, True):
            statistics = _random_statistics(rule, n_arms, seed, ties)
            eligible = _eligible_mask(n_arms, has_ineligible, seed)
            _check_probabilities(f"{where}, {n_arms} arms{', ties' * ties}", rule, statistics, eligible, n_draws)
        statistics, eligible = _initial_statistics(rule, n_arms), _eligible_mask(n_arms, has_ineligible, seed)
        _check_probabilities(f"{where}, nothing learned", rule, statistics, eligible, n_draws)
    for model in (Ridge(Exact(dim=DIM, reg=REG)), Disjoint(Ridge(Exact(dim=DIM, reg=REG)))):
        _check_in_a_bandit(make, model)
    return summary(
        exploration, f"probabilities of 1 to {SIZES[-1][0]} arms, with ties, ineligible arms and nothing learned",
        f"{n_draws} draws each agree with them", "shared models and models per arm decide, play and are copied with it",
    )  # fmt: skip


def _eligible_mask(n_arms: int, has_ineligible: bool, seed: int) -> np.ndarray:
    eligible = np.ones(n_arms, np.bool_)
    if has_ineligible:
        eligible[np.random.default_rng(seed).permutation(n_arms)[: max(n_arms // 3, 1)]] = False
    return eligible


def _random_statistics(rule: Any, n_arms: int, seed: int, ties: bool) -> ArmStatistics:
    """Return random statistics of arms; with ties they are whole numbers, so that several arms are best."""
    rng = np.random.default_rng(seed)
    means, widths = rng.standard_normal(n_arms), rng.random(n_arms)
    samples = means + widths * rng.standard_normal((int(draws(rule)), n_arms))
    if ties:
        means, widths, samples = np.round(means), np.ones(n_arms), np.round(samples)
    beta = np.full(n_arms, float(strength(rule).scale))
    return ArmStatistics(means=means, widths=widths, samples=samples, beta=beta, residual=0.8, rounds=50)


def _initial_statistics(rule: Any, n_arms: int) -> ArmStatistics:
    samples, beta = np.zeros((int(draws(rule)), n_arms)), np.full(n_arms, float(strength(rule).scale))
    return ArmStatistics(
        means=np.zeros(n_arms), widths=np.ones(n_arms), samples=samples, beta=beta, residual=0.0, rounds=0
    )


def _check_probabilities(where: str, rule: Any, statistics: ArmStatistics, eligible: np.ndarray, n_draws: int) -> None:
    scores = score(rule, statistics)
    given = (*statistics[:4], scores)
    before = [part.copy() for part in given]
    assert scores.shape == eligible.shape, f"{where}: scores have shape {scores.shape}"
    assert np.isfinite(scores).all(), f"{where}: scores are {scores}"
    uniforms = np.random.default_rng(0).random((n_draws, 2))
    _, p = sample_action(rule, statistics, scores, eligible, uniforms[0])
    _check_distribution(where, p, eligible, rule.uniform_share)
    counts = np.zeros(eligible.size)
    for uniform in uniforms:
        arm, own = sample_action(rule, statistics, scores, eligible, uniform)
        assert np.array_equal(own, p), f"{where}: probabilities depend on the random numbers of the draw"
        counts[arm] += 1
    same = all(np.array_equal(part, was) for part, was in zip(given, before, strict=True))
    assert same, f"{where}: the statistics or the scores have been written to"
    assert (counts[p == 0.0] == 0).all(), f"{where}: an arm of probability 0 was drawn"
    p_value = _chi_square_p_value(counts, p)
    assert p_value > LEVEL, f"{where}: arms are drawn {counts} times with probabilities {p}, p-value {p_value:.1g}"


def _check_distribution(where: str, p: np.ndarray, eligible: np.ndarray, uniform_share: float) -> None:
    assert np.isfinite(p).all(), f"{where}: probabilities are {p}"
    assert (p >= 0.0).all(), f"{where}: probabilities are {p}"
    assert abs(p.sum() - 1.0) <= SUM_TOLERANCE, f"{where}: probabilities add up to 1 {p.sum() - 1.0:+.1e}"
    assert (p[~eligible] == 0.0).all(), f"{where}: arms that are not eligible have probabilities {p[~eligible]}"
    least = uniform_share / eligible.sum()
    assert (p[eligible] >= least * (1.0 - SUM_TOLERANCE)).all(), f"{where}: {p[eligible].min()} is below {least}"


def _chi_square_p_value(counts: np.ndarray, p: np.ndarray) -> float:
    """Return the probability, under p (K,), of counts (K,) that deviate from p at least as much as `counts`."""
    expected = p * counts.sum()
    rare = expected < MIN_EXPECTED
    got, wanted = np.append(counts[~rare], counts[rare].sum()), np.append(expected[~rare], expected[rare].sum())
    got, wanted = got[wanted > 0.0], wanted[wanted > 0.0]
    return 1.0 if len(got) < 2 else float(stats.chisquare(got, wanted * (got.sum() / wanted.sum())).pvalue)


def _check_in_a_bandit(make: Callable[[], Exploration], model: Any) -> None:
    rng, names = np.random.default_rng(1), ["a", "b", "c", "d"]
    contexts, rewards = rng.standard_normal((30, len(names), DIM)), rng.standard_normal((30, len(names)))
    bandit, twin = Bandit(model, make(), seed=3), Bandit(model, seed=3)
    twin.exploration = make()
    where, uniform_share = repr(bandit), make().rule().uniform_share
    assert np.array_equal(bandit.play(contexts, rewards), twin.play(contexts, rewards)), f"{where}: another game"
    eligible = np.array([True, False, True, True])
    before = to_bytes(bandit)
    for t, rows in enumerate(contexts):
        decision = bandit.decide(rows, names, eligible=["a", "c", "d"], id=f"request {t}")
        _check_distribution(where, decision.probabilities, eligible, uniform_share)
        repeated = bandit.decide(rows, names, eligible=eligible, id=f"request {t}")
        assert repeated.to_dict() == decision.to_dict(), f"{where}: the same id has another decision"
        slots = bandit.decide(rows, names, k=2, id=f"slots {t}")
        left = np.ones(len(names), np.bool_)
        assert slots.slots is not None, f"{where}: two slots have no distributions"
        for index, probabilities in zip(slots.places, slots.slots, strict=True):
            _check_distribution(f"{where}, slots", probabilities, left, uniform_share)
            left[index] = False
    assert to_bytes(bandit) == before, f"{where}: deciding under an id has changed something"
    if type(make()) in list_classes(Exploration):
        loaded = from_bytes(before)
        assert repr(loaded.exploration) == repr(make()), f"{where}: saved, its rule is {loaded.exploration!r}"
        record = json.loads(json.dumps(decision.to_dict()))
        loaded.learn(Decision.from_dict(record), 1.0)
        bandit.learn(decision, 1.0)
        assert to_bytes(loaded) == to_bytes(bandit), f"{where}: saved, it learns something else from a record"
