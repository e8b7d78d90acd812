"""Conformance suite of bandits with dictionaries for contexts and arms."""

from collections.abc import Callable
from typing import Any

import numpy as np

from onepass.foundation.files import to_bytes

ARMS: dict[str, dict[str, Any]] = {
    "a1": {"topic": "sport", "length": 3.0},
    "a2": {"topic": "news", "tags": ["x", "y"]},
    "a3": {"topic": "food", "length": None},
}
CONTEXT: dict[str, Any] = {"hour": 1}


def check_record_bandit(make: Callable[[int], Any], n_rounds: int = 30) -> str:
    """Check that bandits whose contexts and arms are dictionaries satisfy their contract.

    Parameters
    ----------
    make : function
        Maps a seed to a new bandit.
    n_rounds : int, default 30
        Number of rounds of a game with three arms, at least 1.

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

    - a reward without a decision, `learn(context, reward, arm={name: features})`, has the same effect as a decision for
      that arm;
    - rewards learned together have the same effect as one by one;
    - arms may be names alone, or [features] without a name;
    - a bad arm, context or reward raises one ValueError and changes nothing.
    """
    game = np.random.default_rng(0)
    contexts = [{"hour": int(game.integers(24)), "country": ("de", "fr")[t % 2]} for t in range(n_rounds)]
    names = [list(ARMS)[index] for index in game.integers(3, size=n_rounds)]
    rewards = game.integers(2, size=n_rounds).astype(float)
    with_decisions, single, together = make(3), make(3), make(3)
    for t, (context, name, reward) in enumerate(zip(contexts, names, rewards.tolist(), strict=True)):
        with_decisions.learn(with_decisions.decide(context, {name: ARMS[name]}, id=f"r{t}"), reward)
        single.learn(context, reward, {name: ARMS[name]})
    together.learn(contexts, rewards, [{name: ARMS[name]} for name in names])
    _check_equal(with_decisions, single, "a reward without a decision teaches something else than its decision")
    _check_equal(with_decisions, together, "rewards learned together teach something else than one by one")
    for arms, arm in ((["a4"], "a4"), ([ARMS["a1"]], [ARMS["a1"]])):
        with_decisions.learn(with_decisions.decide(CONTEXT, arms, id=f"{arms}"), 1.0)
        single.learn(CONTEXT, 1.0, arm)
        _check_equal(with_decisions, single, f"the arm {arm!r} teaches something else than a decision for it")
    _check_refusals(single)
    claims = "rewards without decisions, one by one and together", "names and features alone", "bad input is refused"
    return f"{single!r} keeps the contract: {'; '.join(claims)}."


def _check_equal(bandit: Any, other: Any, violation: str) -> None:
    for hour in range(24):
        same = np.array_equal(bandit.score({"hour": hour}, ARMS), other.score({"hour": hour}, ARMS))
        assert same, f"{bandit!r}: {violation}"
    assert bandit.n_learned == other.n_learned, f"{bandit!r}: {violation}"


def _check_refusals(bandit: Any) -> None:
    before = to_bytes(bandit)
    wrong: dict[str, tuple[Any, ...]] = {
        "a context without its arm": (CONTEXT, 1.0),
        "several arms for one context": (CONTEXT, 1.0, ARMS),
        "a NaN among features": (CONTEXT, 1.0, {"a1": {"length": float("nan")}}),
        "a NaN in a context": ({"hour": float("nan")}, 1.0, {"a1": ARMS["a1"]}),
        "a NaN as a reward": (CONTEXT, float("nan"), {"a1": ARMS["a1"]}),
        "a NaN after good rows": ([CONTEXT] * 2, [1.0, 1.0], [{"a1": {"x": 1.0}}, {"a1": {"x": float("nan")}}]),
        "another number of arms": ([CONTEXT] * 2, [1.0, 1.0], [{"a1": ARMS["a1"]}]),
    }
    for what, given in wrong.items():
        try:
            bandit.learn(*given)
        except ValueError:
            assert to_bytes(bandit) == before, f"{bandit!r}: {what} was refused, and something has changed"
            continue
        raise AssertionError(f"{bandit!r}: {what} was not refused with a ValueError")
