"""Policies of known regret and small problems for the tests of experiments."""

import os
import signal
from functools import partial
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np

from onepass.lab import Chunk, Experiment, ExperimentError, Policy
from onepass.lab.bandits.environments import Blocks
from onepass.lab.seeds import stream


def press_ctrl_c() -> None:
    """Interrupt this process as a user would, also where it was started in the background, which ignores Ctrl-C."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.raise_signal(signal.SIGINT)


class Scripted:
    """Bandit that always plays one arm, and remembers the contexts."""

    def __init__(self, *, dim: int, seed: int, arm: int = 0, reg: float = 1.0, exploration: float = 0.1) -> None:
        self.arm, self.offered = arm, []

    def play(self, contexts: np.ndarray, rewards: np.ndarray) -> np.ndarray:
        self.offered.append(contexts)
        return np.full(len(contexts), self.arm)

    def memory_usage(self) -> int:
        return 100 + sum(len(contexts) for contexts in self.offered)

    def error_bound(self) -> float:
        return float("inf")


class Until(Scripted):
    """Bandit that cannot play seed 1 until a folder has a file `now`. It is here because workers import it by name."""

    def __init__(self, *, dim: int, seed: int, folder: str) -> None:
        super().__init__(dim=dim, seed=seed)
        if seed == 1 and not Path(folder, "now").exists():
            raise ExperimentError("not yet")


class Staircase(Blocks):
    """Problem of three arms that always pay 0, 1 and 2. `interrupt` is the (seed, round) of a Ctrl-C."""

    arms, dim = 3, 2

    def __init__(self, seed: int, interrupt: tuple[int, int] | None = None) -> None:
        self.seed, self.interrupt = seed, interrupt

    def chunk(self, start: int, rounds: int) -> Chunk:
        if self.interrupt == (self.seed, start):
            press_ctrl_c()
        return super().chunk(start, rounds)

    def block(self, number: int) -> Chunk:
        pays = np.tile([0.0, 1.0, 2.0], (50, 1))
        return Chunk(stream(self.seed, number).standard_normal((50, 3, 2)), pays, pays)


class Waiting(Staircase):
    """Staircase that writes the seed being played to a folder, and waits in seed 1 until there is a file `now`.

    It does so in its second block, because the first block is read before any seed is played.
    """

    def __init__(self, seed: int, folder: str) -> None:
        super().__init__(seed)
        self.folder = Path(folder)

    def block(self, number: int) -> Chunk:
        if number == 1:
            (self.folder / f"began-{self.seed}").touch()
        while (number, self.seed) == (1, 1) and not (self.folder / "now").exists():
            sleep(0.02)
        return super().block(number)


class Breaking(Staircase):
    """Staircase that cannot be made for one seed. It is here because worker processes import it by name."""

    def __init__(self, seed: int, at: int) -> None:
        super().__init__(seed)
        if seed == at:
            raise ExperimentError(f"seed {seed} is broken")


class Dying(Staircase):
    """Staircase whose second block kills any process but `parent`."""

    def __init__(self, seed: int, parent: int) -> None:
        super().__init__(seed)
        self.parent = parent

    def block(self, number: int) -> Chunk:
        if number == 1 and os.getpid() != self.parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().block(number)


class Telling(Staircase):
    """Slow staircase that writes the id of its process to a folder."""

    def __init__(self, seed: int, folder: str) -> None:
        super().__init__(seed)
        (Path(folder) / str(os.getpid())).touch()

    def block(self, number: int) -> Chunk:
        sleep(0.05)
        return super().block(number)


def worst_and_best(**changes: Any) -> Experiment:
    """Return the staircase with a policy that always loses 2 and one that never loses."""
    policies = (Policy("worst", Scripted, {"arm": 0}), Policy("best", Scripted, {"arm": 2}))
    return Experiment(
        **{
            **dict(name="staircase", description="", environment=Staircase, policies=policies, rounds=100, seeds=2),
            **changes,
        }
    )


def study(folder, **changes):
    """Return an experiment of three seeds, the second of which waits until the folder has a file `now`."""
    policies = (Policy("Up", Scripted, {"arm": 2}), Policy("Down", Scripted))
    return Experiment(
        "stairs", "", partial(Waiting, folder=str(folder)), policies, **{"rounds": 100, "seeds": 3, **changes}
    )
