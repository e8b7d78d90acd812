"""Conformance suite of bandits."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from onepass.bandit.bandit import Bandit
from onepass.bandit.decision import Decision
from onepass.foundation.files import from_bytes, load, to_bytes
from onepass.testing.shared import summary

ARMS = ("a", "b", "c", "d", "e")
SUM_TOLERANCE = 1e-12  # for the sum of probabilities


def check_bandit(make: Callable[[int], Bandit], n_rounds: int = 40) -> str:
    """Check that bandits of row contexts satisfy their contract.

    Parameters
    ----------
    make : function
        Maps a seed to a new bandit, whose parts are `onepass.extend.savable`. It takes one row for each arm, of
        `bandit.model.dim` numbers. Its model may be of any kind: one for all arms, one for each arm, or a hybrid.
    n_rounds : int, default 40
        Number of rounds of a game with five arms.

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

    - a decision names arms that were offered, ranks them without repetition, and has a score and a mean for each;
    - the probabilities of every slot are at least 0 and add up to 1 within 1e-12, and the propensity is the
      probability of the chosen arm;
    - an id repeats its decision and changes nothing;
    - a decision's record survives JSON and can be learned from like the decision, and a second reward is refused;
    - deciding, scoring and recommending do not change the model, and repeated scores are equal;
    - `play` equals deciding and learning round by round;
    - equal seeds decide alike;
    - bad input raises one ValueError and changes nothing;
    - copies, pickles, bytes and files are independent, and continue bit for bit;
    - `memory_usage` and `error_bound` return numbers.
    """
    game = np.random.default_rng(0)
    first = make(3)
    contexts = game.standard_normal((n_rounds, len(ARMS), first.model.dim))
    rewards = contexts[:, :, 0] + 0.1 * game.standard_normal((n_rounds, len(ARMS)))
    _check_decisions(first, contexts, rewards)
    _check_records(first, contexts[0])
    whole, single = make(5), make(5)
    chosen = whole.play(contexts, rewards)
    assert np.array_equal(chosen, _play_one_by_one(single, contexts, rewards)), (
        f"{whole!r}: `play` is not decide and learn"
    )
    assert np.array_equal(make(5).play(contexts, rewards), chosen), f"{whole!r}: the same seed plays differently"
    _check_refusals(whole, contexts)
    _check_copies(whole, contexts, rewards)
    assert whole.memory_usage() > 0
    assert whole.error_bound() >= 0.0
    return summary(
        first, f"decisions, records and probabilities of {n_rounds} rounds", "`play` is decide and learn",
        "bad input is refused and changes nothing", "copies, pickles, bytes and files go on bit for bit",
    )  # fmt: skip


def _learn(bandit: Bandit, row: np.ndarray, reward: float, arm: Any) -> None:
    bandit.learn(row, reward, arm if bandit.model.has_named_arms else None)


def _play_one_by_one(bandit: Bandit, contexts: np.ndarray, rewards: np.ndarray) -> list[int]:
    """Decide and learn round by round, with arms named by their indices. Return the chosen arms."""
    arms = []
    for rows, round_rewards in zip(contexts, rewards, strict=True):
        arm = bandit.decide(rows, range(len(rows))).arm
        _learn(bandit, rows[arm], float(round_rewards[arm]), arm)
        arms.append(arm)
    return arms


def _check_decisions(bandit: Bandit, contexts: np.ndarray, rewards: np.ndarray) -> None:
    for rows, round_rewards in zip(contexts, rewards, strict=True):
        scores = bandit.score(rows, ARMS)
        decision = bandit.decide(rows, ARMS, k=3)
        _check_decision(bandit, decision)
        assert np.array_equal(bandit.score(rows, ARMS), scores), f"{bandit!r}: deciding has changed the scores"
        several = bandit.decide(np.stack([rows, rows]), ARMS)
        assert several.scores.shape == (2, len(ARMS)), f"{bandit!r}: two decisions have scores {several.scores.shape}"
        ranked = bandit.recommend(rows[None], 2, ARMS)
        assert len(ranked.arms[0]) == 2, f"{bandit!r}: {ranked.arms[0]} are not 2 recommendations"
        assert np.array_equal(bandit.score(rows, ARMS), scores), f"{bandit!r}: recommending has changed the scores"
        index = ARMS.index(decision.arm)
        _learn(bandit, rows[index], float(round_rewards[index]), decision.arm)
    assert bandit.n_learned == len(contexts), f"{bandit!r}: {bandit.n_learned} rows are counted, not {len(contexts)}"


def _check_decision(bandit: Bandit, decision: Decision) -> None:
    assert decision.arm == decision.arms[0], (
        f"{bandit!r}: {decision.arm!r} is chosen and {decision.arms[0]!r} ranked first"
    )
    assert len(decision.arms) == len(set(decision.arms)) == 3, f"{bandit!r}: {decision.arms} are not 3 arms"
    assert set(decision.arms) <= set(ARMS), f"{bandit!r}: {decision.arms} were not offered"
    assert decision.scores.shape == decision.means.shape == (len(ARMS),), f"{bandit!r}: scores have another shape"
    assert np.isfinite(decision.scores).all(), f"{bandit!r}: scores are not finite"
    assert [ARMS[index] for index in decision.places] == decision.arms, (
        f"{bandit!r}: {decision.arms} are not at {decision.places}"
    )
    assert decision.slots is not None, f"{bandit!r}: three slots have no distributions"
    for index, p, chance in zip(decision.places, decision.slots, decision.propensities, strict=True):
        assert (p >= 0.0).all(), f"{bandit!r}: probabilities are {p}"
        assert abs(p.sum() - 1.0) <= SUM_TOLERANCE, f"{bandit!r}: probabilities add up to 1 {p.sum() - 1.0:+.1e}"
        assert p[index] == chance > 0.0, f"{bandit!r}: the propensity is {chance}, the probability {p[index]}"
    assert np.array_equal(decision.probabilities, decision.slots[0]), (
        f"{bandit!r}: probabilities are not those of a slot"
    )
    chance = decision.probabilities[decision.index]
    assert decision.propensity == chance, (
        f"{bandit!r}: the propensity is {decision.propensity}, the probability {chance}"
    )


def _check_records(bandit: Bandit, rows: np.ndarray) -> None:
    for k, rewards in ((1, 0.5), (3, [0.5, None, -1.0])):
        before, id = to_bytes(bandit), f"request of {k}"
        decision = bandit.decide(rows, ARMS, k, id=id)
        assert to_bytes(bandit) == before, f"{bandit!r}: deciding under an id has changed something"
        repeated, plain = bandit.decide(rows, ARMS, k, id=id), json.loads(json.dumps(decision.to_dict()))
        assert repeated.to_dict() == plain, f"{bandit!r}: the same id has another decision"
        record = Decision.from_dict(plain)
        assert record.to_dict() == plain, f"{bandit!r}: a record is another one after JSON"
        twin, other = bandit.copy(), bandit.copy()
        twin.learn(decision, rewards)
        other.learn(record, rewards)
        learned = to_bytes(twin)
        assert to_bytes(other) == learned, f"{bandit!r}: a record teaches something else than the decision"
        try:
            twin.learn(record, rewards)
        except ValueError:
            assert to_bytes(twin) == learned, f"{bandit!r}: a second reward was refused, and something has changed"
            continue
        raise AssertionError(f"{bandit!r}: a second reward of a decision was not refused with a ValueError")


def _check_refusals(bandit: Bandit, contexts: np.ndarray) -> None:
    before, rows = to_bytes(bandit), contexts[0]
    hurt = rows.copy()
    hurt[2, 0] = np.nan
    wrong: dict[str, Callable[[], Any]] = {
        "a NaN in a context": lambda: bandit.decide(hurt, ARMS),
        "a column too many": lambda: bandit.decide(np.hstack([rows, rows]), ARMS),
        "more arms ranked than offered": lambda: bandit.decide(rows, ARMS, k=len(ARMS) + 1),
        "no arm": lambda: bandit.decide(rows[:0], ()),
        "a NaN in a row to learn": lambda: _learn(bandit, hurt[2], 1.0, ARMS[2]),
        "a NaN as a reward": lambda: _learn(bandit, rows[0], float("nan"), ARMS[0]),
        "words as rewards": lambda: _learn(bandit, rows[0], "much", ARMS[0]),  # type: ignore[arg-type]
    }
    for what, call in wrong.items():
        try:
            call()
        except ValueError:
            assert to_bytes(bandit) == before, f"{bandit!r}: {what} was refused, and something has changed"
            continue
        raise AssertionError(f"{bandit!r}: {what} was not refused with a ValueError")


def _check_copies(bandit: Bandit, contexts: np.ndarray, rewards: np.ndarray) -> None:
    with TemporaryDirectory() as folder:
        bandit.save(Path(folder) / "bandit")
        copies = {"a file": load(Path(folder) / "bandit"), "bytes": from_bytes(to_bytes(bandit))}
    copies |= {"a copy": bandit.copy(), "a pickle": pickle.loads(pickle.dumps(bandit))}
    before = to_bytes(bandit)
    after = {what: twin.play(contexts, rewards) for what, twin in copies.items()}
    assert to_bytes(bandit) == before, f"{bandit!r}: what a copy learned has changed the original"
    chosen = bandit.play(contexts, rewards)
    for what, twin in copies.items():
        assert np.array_equal(after[what], chosen), f"{bandit!r}: {what} goes on differently"
        assert to_bytes(twin) == to_bytes(bandit), f"{bandit!r}: {what} has learned something else"
