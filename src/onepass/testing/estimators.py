"""Conformance suite of estimators."""

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
from onepass.testing.shared import REGS, assert_close, summary


def _make_fixed_arms(dim: int, n_rounds: int, n_arms: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return contexts (n_rounds, n_arms, dim), equal in all rounds, and linear rewards without noise."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n_arms, dim))
    rewards = rows @ rng.standard_normal(dim)
    return np.tile(rows, (n_rounds, 1, 1)), np.tile(rewards / np.abs(rewards).max(), (n_rounds, 1))


def _fit_rewards_to_family(estimator: Estimator, rewards: np.ndarray) -> np.ndarray:
    """Map rewards monotonically into the range of the estimator's family, unless that is unbounded."""
    low, high = (-np.inf, np.inf) if estimator.family is None else reward_range(estimator.family)
    if np.isinf(low) and np.isinf(high):
        return rewards
    return low + (1.0 + np.tanh(rewards)) / 2.0 * (min(high, low + 2.0) - low)


def check_estimator(
    make: Callable[[Design], Estimator],
    designs: Callable[[int, float], Design] = lambda dim, reg: Exact(dim=dim, reg=reg),
    dim: int = 5,
    n_rounds: int = 120,
) -> str:
    """Check that an estimator satisfies its contract.

    Parameters
    ----------
    make : function
        Maps a design to a new estimator.
    designs : function, default onepass.extend.Exact
        Maps a dimension and `reg` to a new design.
    dim : int, default 5
        Number of columns of the contexts.
    n_rounds : int, default 120
        Number of rounds of a game. Its arms are the same in every round, as some estimators require.

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

    - the estimator copies its design and leaves the original as it is;
    - a recorded game played at once equals deciding and learning round by round;
    - the estimator learns which arms pay most;
    - copies are independent and continue alike;
    - bad input is refused and changes nothing;
    - parameters stay finite on degenerate rows;
    - its family is the link of its state;
    - it is rebuilt from its parameters;
    - arms of an arena equal arms with separate states;
    - a bandit of it is saved, loaded and continues bit for bit, if it is `onepass.extend.savable`.
    """
    contexts, linear = _make_fixed_arms(dim, n_rounds)
    for reg in REGS:
        design = designs(dim, reg)
        before, estimator = design.matrix(), make(design)
        where, rewards = repr(estimator), _fit_rewards_to_family(estimator, linear)
        family = estimator.family if estimator.family is not None else IdentityLink()
        assert link(estimator.begin()) == family, f"{where}: its family is not the link of its state"
        whole = Bandit(estimator, UCB(0.0))
        arms = whole.play(contexts, rewards)
        assert np.array_equal(design.matrix(), before), f"{where}: the design that was given has changed"
        assert np.isfinite(whole.model.parameter).all(), f"{where}: parameters are not finite"
        single = Bandit(make(designs(dim, reg)), UCB(0.0))
        singly = []
        for rows, round_rewards in zip(contexts, rewards, strict=True):
            singly.append(single.decide(rows).arm)
            single.learn(rows[singly[-1]], round_rewards[singly[-1]])
        assert np.array_equal(arms, singly), f"{where}: played one by one it chooses other arms"
        assert_close(f"{where}: parameters after one by one", single.model.parameter, whole.model.parameter, 1e-9)
        _check_learned(where, estimator, contexts, rewards, arms)
        _check_estimator_copies(whole, contexts, rewards)
    _check_estimator_refusals(whole, contexts[0, 0])
    _check_degenerate_rows(make, designs, dim, n_rounds)
    if not (estimator.horizon or estimator.repeats_arms):
        _check_arms(lambda: make(designs(dim, REGS[0])), dim)
    is_savable = type(estimator) in list_classes(Estimator)
    return summary(
        estimator, f"games of {n_rounds} rounds at each reg of {REGS} are learned alike at once and one by one",
        "bad input is refused", "copies and pickles go on alike" + ", and files bit for bit" * is_savable,
        "degenerate rows leave it finite", *([] if is_savable else ["not saved, as it is not onepass.extend.savable"]),
    )  # fmt: skip


def _check_learned(where: str, estimator: Estimator, contexts: np.ndarray, rewards: np.ndarray, arms: Any) -> None:
    """Check that the arm chosen last pays more than the mean arm, and that wrong states are not `consistent`.

    It also checks that the estimator can be rebuilt from its parameters, if its class is registered. `where` begins the
    messages, `arms` (n_rounds,) are the indices of the arms chosen, and `contexts` is not used.
    """
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


def _check_degenerate_rows(make: Callable, designs: Callable, dim: int, n_rounds: int) -> None:
    games = {"zero": np.zeros(dim), "constant": np.ones(dim), "huge": np.full(dim, 1e9), "tiny": np.full(dim, 1e-9)}
    for kind, row in games.items():
        bandit = Bandit(make(designs(dim, REGS[0])), UCB(0.1))
        rewards = _fit_rewards_to_family(bandit.model.estimator, np.array([1.0, -1.0]))
        bandit.play(np.tile(row, (n_rounds, 2, 1)), np.tile(rewards, (n_rounds, 1)))
        assert np.isfinite(bandit.model.parameter).all(), f"{bandit!r}: parameters on {kind} rows are not finite"


def _check_arms(make: Callable[[], Estimator], dim: int) -> None:
    """Check that arms kept in one array (`onepass.arena`) score as arms with separate states do, also after loading.

    An estimator that has no such arrays passes.
    """
    rng = np.random.default_rng(3)
    rows, names = rng.standard_normal((60, dim)), [i % 3 for i in range(60)]
    rewards, stores = _fit_rewards_to_family(make(), rows[:, 0] + 0.1 * rng.standard_normal(60)), [False]
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
    assert_close(f"{make()!r}: scores of an arena", scores[-1], scores[0], 1e-7)
