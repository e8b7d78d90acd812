"""The conformance suite of bandits whose requests and arms are records."""

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


def check_record_bandit(make: Callable[[int], Any], rounds: int = 30) -> str:
    """AssertionError unless `make(seed)` gives bandits that learn arms with features as `InteractionBandit` does.

    A reward of an arm that somebody else chose, `learn(context, reward, arm={name: features})`, teaches what a decision
    for it does; n at once teach what they do one by one; arms may be names alone, or [features] without a name; a bad
    arm, context or reward is one ValueError and changes nothing. rounds: of a game of three arms. Returns a sentence
    that says what was checked.
    """
    game = np.random.default_rng(0)
    contexts = [{"hour": int(game.integers(24)), "country": ("de", "fr")[t % 2]} for t in range(rounds)]
    names = [list(ARMS)[place] for place in game.integers(3, size=rounds)]
    rewards = game.integers(2, size=rounds).astype(float)
    decided, single, several = make(3), make(3), make(3)
    for t, (context, name, reward) in enumerate(zip(contexts, names, rewards.tolist(), strict=True)):
        decided.learn(decided.decide(context, {name: ARMS[name]}, id=f"r{t}"), reward)
        single.learn(context, reward, {name: ARMS[name]})
    several.learn(contexts, rewards, [{name: ARMS[name]} for name in names])
    _check_alike(decided, single, "a reward without a decision teaches something else than its decision")
    _check_alike(decided, several, "rewards learned together teach something else than one by one")
    for arms, arm in ((["a4"], "a4"), ([ARMS["a1"]], [ARMS["a1"]])):
        decided.learn(decided.decide(CONTEXT, arms, id=f"{arms}"), 1.0)
        single.learn(CONTEXT, 1.0, arm)
        _check_alike(decided, single, f"the arm {arm!r} teaches something else than a decision for it")
    _check_refusals(single)
    claims = "rewards without decisions, one by one and together", "names and features alone", "bad input is refused"
    return f"{single!r} keeps the contract: {'; '.join(claims)}."


def _check_alike(one: Any, other: Any, wrong: str) -> None:
    for hour in range(24):
        same = np.array_equal(one.score({"hour": hour}, ARMS), other.score({"hour": hour}, ARMS))
        assert same, f"{one!r}: {wrong}"
    assert one.n_learned == other.n_learned, f"{one!r}: {wrong}"


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
