"""The conformance suite of bandits."""

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
SUM = 1e-12  # how far probabilities may be from 1 in all


def check_bandit(make: Callable[[int], Bandit], rounds: int = 40) -> str:
    """AssertionError unless `make(seed)` gives bandits of rows that keep the contract.

    A decision names arms that were offered, ranks them without repetition, and gives a score and a mean to each; the
    probabilities of every slot are not negative and add up to 1 within 1e-12, and the propensity is that of the arm;
    the same id gives the same decision and changes nothing; a record survives JSON and teaches what the decision does,
    once, for a second reward is refused;
    deciding, scoring and recommending change nothing that was learned, and scores repeat; recorded rounds are decisions
    and rewards one by one; the same seed decides alike; bad input is one ValueError and changes nothing; copies,
    pickles, bytes and files are independent and go on bit for bit; memory and the certificate are numbers.

    Its parts are `onepass.extend.savable`. rounds: of a game of five arms. Returns a sentence that says what was
    checked.
    """
    game = np.random.default_rng(0)
    first = make(3)
    contexts = game.standard_normal((rounds, len(ARMS), first.model.dim))
    rewards = contexts[:, :, 0] + 0.1 * game.standard_normal((rounds, len(ARMS)))
    _check_decisions(first, contexts, rewards)
    _check_records(first, contexts[0])
    whole, single = make(5), make(5)
    chosen = whole.play(contexts, rewards)
    assert np.array_equal(chosen, _by_hand(single, contexts, rewards)), f"{whole!r}: `play` is not decide and learn"
    assert np.array_equal(make(5).play(contexts, rewards), chosen), f"{whole!r}: the same seed plays differently"
    _check_refusals(whole, contexts)
    _check_copies(whole, contexts, rewards)
    assert whole.memory_usage() > 0
    assert whole.error_bound() >= 0.0
    return summary(
        first, f"decisions, records and probabilities of {rounds} rounds", "`play` is decide and learn",
        "bad input is refused and changes nothing", "copies, pickles, bytes and files go on bit for bit",
    )  # fmt: skip


def _learn(bandit: Bandit, row: np.ndarray, reward: float, arm: Any) -> None:
    bandit.learn(row, reward, arm if bandit.model.has_named_arms else None)


def _by_hand(bandit: Bandit, contexts: np.ndarray, rewards: np.ndarray) -> list[int]:
    """Rounds one by one, arms named by their places."""
    chosen = []
    for rows, paid in zip(contexts, rewards, strict=True):
        arm = bandit.decide(rows, range(len(rows))).arm
        _learn(bandit, rows[arm], float(paid[arm]), arm)
        chosen.append(arm)
    return chosen


def _check_decisions(bandit: Bandit, contexts: np.ndarray, rewards: np.ndarray) -> None:
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
    assert bandit.n_learned == len(contexts), f"{bandit!r}: {bandit.n_learned} rows are counted, not {len(contexts)}"


def _check_decision(bandit: Bandit, found: Decision) -> None:
    assert found.arm == found.arms[0], f"{bandit!r}: {found.arm!r} is chosen and {found.arms[0]!r} ranked first"
    assert len(found.arms) == len(set(found.arms)) == 3, f"{bandit!r}: {found.arms} are not 3 arms"
    assert set(found.arms) <= set(ARMS), f"{bandit!r}: {found.arms} were not offered"
    assert found.scores.shape == found.means.shape == (len(ARMS),), f"{bandit!r}: scores have another shape"
    assert np.isfinite(found.scores).all(), f"{bandit!r}: scores are not finite"
    assert [ARMS[place] for place in found.places] == found.arms, f"{bandit!r}: {found.arms} are not at {found.places}"
    assert found.slots is not None, f"{bandit!r}: three slots have no distributions"
    for place, p, chance in zip(found.places, found.slots, found.propensities, strict=True):
        assert (p >= 0.0).all(), f"{bandit!r}: probabilities are {p}"
        assert abs(p.sum() - 1.0) <= SUM, f"{bandit!r}: probabilities add up to 1 {p.sum() - 1.0:+.1e}"
        assert p[place] == chance > 0.0, f"{bandit!r}: the propensity is {chance}, the probability {p[place]}"
    assert np.array_equal(found.probabilities, found.slots[0]), f"{bandit!r}: probabilities are not those of a slot"
    chance = found.probabilities[found.index]
    assert found.propensity == chance, f"{bandit!r}: the propensity is {found.propensity}, the probability {chance}"


def _check_records(bandit: Bandit, rows: np.ndarray) -> None:
    for k, paid in ((1, 0.5), (3, [0.5, None, -1.0])):
        before, identity = to_bytes(bandit), f"request of {k}"
        found = bandit.decide(rows, ARMS, k, id=identity)
        assert to_bytes(bandit) == before, f"{bandit!r}: deciding under an id has changed something"
        again, written = bandit.decide(rows, ARMS, k, id=identity), json.loads(json.dumps(found.to_dict()))
        assert again.to_dict() == written, f"{bandit!r}: the same id has another decision"
        record = Decision.from_dict(written)
        assert record.to_dict() == written, f"{bandit!r}: a record is another one after JSON"
        twin, other = bandit.copy(), bandit.copy()
        twin.learn(found, paid)
        other.learn(record, paid)
        learned = to_bytes(twin)
        assert to_bytes(other) == learned, f"{bandit!r}: a record teaches something else than the decision"
        try:
            twin.learn(record, paid)
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
