"""The conformance suite of exploration rules."""

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

SUM = 1e-12  # how far probabilities may be from 1 in all
LEVEL = 1e-6  # of every chi-square test of frequencies
RARE = 5.0  # arms expected less often are counted together: below, counts are not near normal
SIZES = ((1, False), (2, False), (2, True), (7, False), (7, True), (60, True))  # arms; whether a third is not eligible
DIM, REG = 3, 0.4  # of bandits


def check_exploration(make: Callable[[], Exploration], count: int = 2_000) -> str:
    """AssertionError unless `make()` gives a rule that keeps the contract of exploration.

    Probabilities are finite, not negative, add up to 1 within 1e-12, are 0 for arms that are not eligible and at least
    uniform_share / K for those that are; one arm has probability 1; ties, and a model that knows nothing, are no
    exceptions; they do not depend on the lots of the draw, and what was seen is not written to. Arms are drawn from
    them: a chi-square test at the level 1e-6. Shared models and models per arm decide by it, again for the same
    id, play and, once the class is `onepass.extend.savable`, are saved with it.

    count: draws of every test of frequencies. Returns a sentence that says what was checked.
    """
    exploration = make()
    where, rule = repr(exploration), exploration.rule()
    assert isinstance(exploration, Exploration), f"{where} is no onepass.extend.Exploration"
    assert 0.0 <= rule.uniform_share <= 1.0, f"{where}: uniform_share is {rule.uniform_share}"
    assert repr(make()) == where, f"{where}: another one of the same arguments is {make()!r}"
    for seed, (arms, barred) in enumerate(SIZES):
        for ties in (False, True):
            seen, among = _seen(rule, arms, seed, ties), _some(arms, barred, seed)
            _check_probabilities(f"{where}, {arms} arms{', ties' * ties}", rule, seen, among, count)
        _check_probabilities(f"{where}, nothing learned", rule, _nothing(rule, arms), _some(arms, barred, seed), count)
    for model in (Ridge(Exact(dim=DIM, reg=REG)), Disjoint(Ridge(Exact(dim=DIM, reg=REG)))):
        _check_in_a_bandit(make, model)
    return summary(
        exploration, f"probabilities of 1 to {SIZES[-1][0]} arms, with ties, ineligible arms and nothing learned",
        f"{count} draws each agree with them", "shared models and models per arm decide, play and are copied with it",
    )  # fmt: skip


def _some(arms: int, barred: bool, seed: int) -> np.ndarray:
    among = np.ones(arms, np.bool_)
    if barred:
        among[np.random.default_rng(seed).permutation(arms)[: max(arms // 3, 1)]] = False
    return among


def _seen(rule: Any, arms: int, seed: int, ties: bool) -> ArmStatistics:
    """What a model might say of arms; ties: in whole numbers, several of which are best."""
    rng = np.random.default_rng(seed)
    means, widths = rng.standard_normal(arms), rng.random(arms)
    samples = means + widths * rng.standard_normal((int(draws(rule)), arms))
    if ties:
        means, widths, samples = np.round(means), np.ones(arms), np.round(samples)
    beta = np.full(arms, float(strength(rule).scale))
    return ArmStatistics(means=means, widths=widths, samples=samples, beta=beta, residual=0.8, rounds=50)


def _nothing(rule: Any, arms: int) -> ArmStatistics:
    samples, beta = np.zeros((int(draws(rule)), arms)), np.full(arms, float(strength(rule).scale))
    return ArmStatistics(means=np.zeros(arms), widths=np.ones(arms), samples=samples, beta=beta, residual=0.0, rounds=0)


def _check_probabilities(where: str, rule: Any, seen: ArmStatistics, among: np.ndarray, count: int) -> None:
    scores = score(rule, seen)
    given = (*seen[:4], scores)
    before = [part.copy() for part in given]
    assert scores.shape == among.shape, f"{where}: scores have shape {scores.shape}"
    assert np.isfinite(scores).all(), f"{where}: scores are {scores}"
    lots = np.random.default_rng(0).random((count, 2))
    _, p = sample_action(rule, seen, scores, among, lots[0])
    _check_distribution(where, p, among, rule.uniform_share)
    counts = np.zeros(among.size)
    for lot in lots:
        arm, own = sample_action(rule, seen, scores, among, lot)
        assert np.array_equal(own, p), f"{where}: probabilities depend on the lots"
        counts[arm] += 1
    same = all(np.array_equal(part, was) for part, was in zip(given, before, strict=True))
    assert same, f"{where}: what was seen, or its scores, have been written to"
    assert (counts[p == 0.0] == 0).all(), f"{where}: an arm of probability 0 was drawn"
    level = _chi_square(counts, p)
    assert level > LEVEL, f"{where}: arms are drawn {counts} times with probabilities {p}, chance {level:.1g}"


def _check_distribution(where: str, p: np.ndarray, among: np.ndarray, uniform_share: float) -> None:
    assert np.isfinite(p).all(), f"{where}: probabilities are {p}"
    assert (p >= 0.0).all(), f"{where}: probabilities are {p}"
    assert abs(p.sum() - 1.0) <= SUM, f"{where}: probabilities add up to 1 {p.sum() - 1.0:+.1e}"
    assert (p[~among] == 0.0).all(), f"{where}: arms that are not eligible have probabilities {p[~among]}"
    least = uniform_share / among.sum()
    assert (p[among] >= least * (1.0 - SUM)).all(), f"{where}: {p[among].min()} is below {least}"


def _chi_square(counts: np.ndarray, p: np.ndarray) -> float:
    """The chance of counts that are as far from p."""
    expected = p * counts.sum()
    rare = expected < RARE
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
    among = np.array([True, False, True, True])
    before = to_bytes(bandit)
    for t, rows in enumerate(contexts):
        found = bandit.decide(rows, names, eligible=["a", "c", "d"], id=f"request {t}")
        _check_distribution(where, found.probabilities, among, uniform_share)
        again = bandit.decide(rows, names, eligible=among, id=f"request {t}")
        assert again.to_dict() == found.to_dict(), f"{where}: the same id has another decision"
        slots = bandit.decide(rows, names, k=2, id=f"slots {t}")
        left = np.ones(len(names), np.bool_)
        assert slots.slots is not None, f"{where}: two slots have no distributions"
        for place, own in zip(slots.places, slots.slots, strict=True):
            _check_distribution(f"{where}, slots", own, left, uniform_share)
            left[place] = False
    assert to_bytes(bandit) == before, f"{where}: deciding under an id has changed something"
    if type(make()) in list_classes(Exploration):
        loaded = from_bytes(before)
        assert repr(loaded.exploration) == repr(make()), f"{where}: saved, its rule is {loaded.exploration!r}"
        record = json.loads(json.dumps(found.to_dict()))
        loaded.learn(Decision.from_dict(record), 1.0)
        bandit.learn(found, 1.0)
        assert to_bytes(loaded) == to_bytes(bandit), f"{where}: saved, it learns something else from a record"
