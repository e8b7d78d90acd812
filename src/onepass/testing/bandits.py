"""The conformance suite of bandits."""

import pickle
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from onepass.bandit.arms import ArmBandit
from onepass.bandit.bandit import BaseBandit
from onepass.bandit.decision import Decision
from onepass.foundation.files import from_bytes, load, to_bytes

ARMS = ("a", "b", "c", "d", "e")


def check_bandit(make: Callable[[int], BaseBandit], rounds: int = 40) -> None:
    """AssertionError unless `make(seed)` gives bandits of rows that keep the contract.

    A decision names arms that were offered, ranks them without repetition, and gives a score and a mean to each;
    deciding, scoring and recommending change nothing that was learned, and scores repeat; recorded rounds are decisions
    and rewards one by one; the same seed decides alike; bad input is one ValueError and changes nothing; copies,
    pickles, bytes and files are independent and go on bit for bit; memory and the certificate are numbers.

    Its parts are `onepass.savable`. rounds: of a game of five arms.
    """
    game = np.random.default_rng(0)
    first = make(3)
    contexts = game.standard_normal((rounds, len(ARMS), first.dim))
    rewards = contexts[:, :, 0] + 0.1 * game.standard_normal((rounds, len(ARMS)))
    _check_decisions(first, contexts, rewards)
    whole, single = make(5), make(5)
    chosen = whole.play(contexts, rewards)
    assert np.array_equal(chosen, _by_hand(single, contexts, rewards)), f"{whole!r}: `play` is not decide and learn"
    assert np.array_equal(make(5).play(contexts, rewards), chosen), f"{whole!r}: the same seed plays differently"
    _check_refusals(whole, contexts)
    _check_copies(whole, contexts, rewards)
    assert whole.memory_usage() > 0
    assert whole.error_bound() >= 0.0


def _learn(bandit: BaseBandit, row: np.ndarray, reward: float, arm: Any) -> None:
    bandit.learn(row, reward, arm) if isinstance(bandit, ArmBandit) else bandit.learn(row, reward)


def _by_hand(bandit: BaseBandit, contexts: np.ndarray, rewards: np.ndarray) -> list[int]:
    """Rounds one by one, arms named by their places."""
    chosen = []
    for rows, paid in zip(contexts, rewards, strict=True):
        arm = bandit.decide(rows, range(len(rows))).arm
        _learn(bandit, rows[arm], float(paid[arm]), arm)
        chosen.append(arm)
    return chosen


def _check_decisions(bandit: BaseBandit, contexts: np.ndarray, rewards: np.ndarray) -> None:
    for rows, paid in zip(contexts, rewards, strict=True):
        scores = bandit.score(rows, ARMS)
        found = bandit.decide(rows, ARMS, k=3)
        _check_decision(bandit, found)
        assert np.array_equal(bandit.score(rows, ARMS), scores), f"{bandit!r}: deciding has changed the scores"
        several = bandit.decide(np.stack([rows, rows]), ARMS)
        assert several.scores.shape == (2, len(ARMS)), f"{bandit!r}: two decisions have scores {several.scores.shape}"
        ranked = bandit.recommend(rows[None], 2, ARMS)
        assert len(ranked.arms[0]) == 2, f"{bandit!r}: {ranked.arms[0]} are not 2 recommendations"
        assert np.array_equal(bandit.score(rows, ARMS), scores), f"{bandit!r}: recommending has changed the scores"
        place = ARMS.index(found.arm)
        _learn(bandit, rows[place], float(paid[place]), found.arm)
    assert bandit.rounds == len(contexts), f"{bandit!r}: {bandit.rounds} rows are counted, not {len(contexts)}"


def _check_decision(bandit: BaseBandit, found: Decision) -> None:
    assert found.arm == found.arms[0], f"{bandit!r}: {found.arm!r} is chosen and {found.arms[0]!r} ranked first"
    assert len(found.arms) == len(set(found.arms)) == 3, f"{bandit!r}: {found.arms} are not 3 arms"
    assert set(found.arms) <= set(ARMS), f"{bandit!r}: {found.arms} were not offered"
    assert found.scores.shape == found.means.shape == (len(ARMS),), f"{bandit!r}: scores have another shape"
    assert np.isfinite(found.scores).all(), f"{bandit!r}: scores are not finite"
    assert not found.propensity < 0.0, f"{bandit!r}: the propensity is {found.propensity}"
    assert not found.propensity > 1.0, f"{bandit!r}: the propensity is {found.propensity}"


def _check_refusals(bandit: BaseBandit, contexts: np.ndarray) -> None:
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


def _check_copies(bandit: BaseBandit, contexts: np.ndarray, rewards: np.ndarray) -> None:
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
