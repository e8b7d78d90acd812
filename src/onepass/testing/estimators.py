"""The conformance suite of estimators."""

import pickle
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from onepass.bandit.bandit import Bandit
from onepass.design.design import Design
from onepass.design.exact import Exact
from onepass.estimator.contract import link
from onepass.estimator.estimator import Estimator
from onepass.estimator.families import IdentityLink, reward_range
from onepass.exploration.ucb import UCB
from onepass.foundation import state as states
from onepass.foundation.files import load
from onepass.foundation.registry import build, list_classes, to_plain
from onepass.model.arms.per_arm import Disjoint
from onepass.testing.shared import REGS, close, summary


def fixed_arms(dim: int, rounds: int, arms: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The same contexts (rounds, arms, dim) in every round, and their rewards without noise, linear in them."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((arms, dim))
    rewards = rows @ rng.standard_normal(dim)
    return np.tile(rows, (rounds, 1, 1)), np.tile(rewards / np.abs(rewards).max(), (rounds, 1))


def as_family_has(estimator: Estimator, rewards: np.ndarray) -> np.ndarray:
    """Rewards that the estimator's family has, in the same order as those given: themselves where it takes any."""
    low, high = (-np.inf, np.inf) if estimator.family is None else reward_range(estimator.family)
    if np.isinf(low) and np.isinf(high):
        return rewards
    return low + (1.0 + np.tanh(rewards)) / 2.0 * (min(high, low + 2.0) - low)


def check_estimator(
    make: Callable[[Design], Estimator],
    designs: Callable[[int, float], Design] = lambda dim, reg: Exact(dim=dim, reg=reg),
    dim: int = 5,
    rounds: int = 120,
) -> str:
    """AssertionError unless `make(design)` keeps the contract of an estimator.

    The design given is copied and stays as it is; a recorded game played at once equals decisions and rewards one by
    one; what the best arm pays is learned; copies are independent and continue alike; bad input is refused and changes
    nothing; parameters stay finite on degenerate rows; its family is its state's link; it is built again from what it
    was built of; arms of an arena equal arms with a state each; once it is `onepass.extend.savable`, a bandit of it is
    saved and loaded and continues bit for bit. Arms are the same in every round, as some estimators ask for.
    Returns a sentence that says what was checked.
    """
    contexts, linear = fixed_arms(dim, rounds)
    for reg in REGS:
        design = designs(dim, reg)
        before, estimator = design.matrix(), make(design)
        where, rewards = repr(estimator), as_family_has(estimator, linear)
        said = estimator.family if estimator.family is not None else IdentityLink()
        assert link(estimator.begin()) == said, f"{where}: its family is not the link of its state"
        whole = Bandit(estimator, UCB(0.0))
        arms = whole.play(contexts, rewards)
        assert np.array_equal(design.matrix(), before), f"{where}: the design that was given has changed"
        assert np.isfinite(whole.model.parameter).all(), f"{where}: parameters are not finite"
        single = Bandit(make(designs(dim, reg)), UCB(0.0))
        chosen = []
        for rows, paid in zip(contexts, rewards, strict=True):
            chosen.append(single.decide(rows).arm)
            single.learn(rows[chosen[-1]], paid[chosen[-1]])
        assert np.array_equal(arms, chosen), f"{where}: played one by one it chooses other arms"
        close(f"{where}: parameters after one by one", single.model.parameter, whole.model.parameter, 1e-9)
        _check_learned(where, estimator, contexts, rewards, arms)
        _check_estimator_copies(whole, contexts, rewards)
    _check_estimator_refusals(whole, contexts[0, 0])
    _check_degenerate_rows(make, designs, dim, rounds)
    if not (estimator.horizon or estimator.repeats_arms):
        _check_arms(lambda: make(designs(dim, REGS[0])), dim)
    saved = type(estimator) in list_classes(Estimator)
    return summary(
        estimator, f"games of {rounds} rounds at each reg of {REGS} are learned alike at once and one by one",
        "bad input is refused", "copies and pickles go on alike" + ", and files bit for bit" * saved,
        "degenerate rows leave it finite", *([] if saved else ["not saved: its class is not onepass.extend.savable"]),
    )  # fmt: skip


def _check_learned(where: str, estimator: Estimator, contexts: np.ndarray, rewards: np.ndarray, arms: Any) -> None:
    """The last arm played pays more than the mean arm; the state fits, and one of another width does not."""
    last = rewards[-1, arms[-1]]
    assert last > rewards[-1].mean(), f"{where}: it ends at an arm that pays {last}, less than the mean"
    state = estimator.begin()
    assert estimator.consistent(state), f"{where}: consistent() refuses a state that it began itself"
    another = states.rebuild(state, {k: np.append(v, v) if np.ndim(v) == 1 else v for k, v in states.leaves(state)})
    assert not estimator.consistent(another), f"{where}: consistent() takes arrays of another width"
    if type(estimator) in list_classes(Estimator):
        assert repr(build(to_plain(estimator))) == where, f"{where}: built again from params() it is another one"


def _check_estimator_copies(bandit: Bandit, contexts: np.ndarray, rewards: np.ndarray) -> None:
    before, copies = bandit.model.parameter, {"a copy": bandit.copy(), "a pickle": pickle.loads(pickle.dumps(bandit))}
    if type(bandit.model.estimator) in list_classes(Estimator) and type(bandit.model.estimator.design) in list_classes(
        Design
    ):
        with TemporaryDirectory() as folder:
            bandit.save(Path(folder) / "bandit")
            copies["a file"] = load(Path(folder) / "bandit")
    played = {what: (twin.play(contexts, rewards), twin.model.parameter) for what, twin in copies.items()}
    assert np.array_equal(bandit.model.parameter, before), f"{bandit!r}: its copies are not independent"
    arms = bandit.play(contexts, rewards)
    for what, (chosen, parameter) in played.items():
        same = np.array_equal(chosen, arms) and np.array_equal(parameter, bandit.model.parameter)
        assert same, f"{bandit!r}: {what} continues differently"


def _check_estimator_refusals(bandit: Bandit, row: np.ndarray) -> None:
    before = bandit.model.parameter
    for rows, paid in ((row * np.nan, 1.0), (row * np.inf, 1.0), (row[:-1], 1.0), (row, np.nan), (row, [1.0, 2.0])):
        try:
            bandit.learn(rows, paid)
        except ValueError:
            continue
        raise AssertionError(f"{bandit!r}: learn({rows!r}, {paid!r}) was not refused with a ValueError")
    assert np.array_equal(bandit.model.parameter, before), f"{bandit!r}: what was refused has changed its parameter"


def _check_degenerate_rows(make: Callable, designs: Callable, dim: int, rounds: int) -> None:
    games = {"zero": np.zeros(dim), "constant": np.ones(dim), "huge": np.full(dim, 1e9), "tiny": np.full(dim, 1e-9)}
    for kind, row in games.items():
        bandit = Bandit(make(designs(dim, REGS[0])), UCB(0.1))
        rewards = as_family_has(bandit.model.estimator, np.array([1.0, -1.0]))
        bandit.play(np.tile(row, (rounds, 2, 1)), np.tile(rewards, (rounds, 1)))
        assert np.isfinite(bandit.model.parameter).all(), f"{bandit!r}: parameters on {kind} rows are not finite"


def _check_arms(make: Callable[[], Estimator], dim: int) -> None:
    """Arms of an arena, where the estimator can have them, equal arms with a state each; both are saved and loaded."""
    rng = np.random.default_rng(3)
    rows, names = rng.standard_normal((60, dim)), [i % 3 for i in range(60)]
    rewards, stores = as_family_has(make(), rows[:, 0] + 0.1 * rng.standard_normal(60)), [False]
    if Disjoint(make()).compact:
        stores.append(True)
    scores = []
    for compact in stores:
        bandit = Bandit(Disjoint(make(), compact=compact), UCB(0.3))
        bandit.learn(rows[:40], rewards[:40], names[:40])
        for i in range(40, 60):
            bandit.learn(rows[i], rewards[i], names[i])
        scores.append(bandit.score(rows[0], [*range(4)]))
        if type(bandit.model.estimator.arms) in list_classes(Estimator) and type(
            bandit.model.estimator.arms.design
        ) in list_classes(Design):
            with TemporaryDirectory() as folder:
                bandit.save(Path(folder) / "bandit")
                loaded = load(Path(folder) / "bandit").score(rows[0], [*range(4)])
            assert np.array_equal(loaded, scores[-1]), f"{bandit!r}: loaded from a file it scores differently"
    close(f"{make()!r}: scores of an arena", scores[-1], scores[0], 1e-7)
