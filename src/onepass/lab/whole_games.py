"""Studies in which a seed is a game, which every player plays from beginning to end in one step."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Protocol, TypeVar

from onepass.lab.definition import Trial, curve_rows, final_rows
from onepass.lab.figure import Figure
from onepass.lab.policy import Policy

USUAL = "round", "seconds", "cumulative_reward", "cumulative_regret"  # figures of every study
T = TypeVar("T")


class WholeGame(Protocol):
    """Bandit problem of one seed, which players play from beginning to end."""

    @property
    def columns(self) -> Mapping[str, Any]:
        """Columns that are added to the rows of results of all players, by name."""
        ...

    def play(self, player: Any) -> dict[str, Any]:
        """Let a player play, and return the results by name; "round" is the number of rounds that were played."""
        ...


@dataclass(frozen=True)
class GameStudy:
    """Study of games that every player plays from beginning to end.

    `game(seed, rounds)` returns the game of a seed, with at most this number of rounds. `Study` describes the other
    fields.
    """

    name: str
    description: str
    policies: tuple[Policy, ...]
    figure: Figure
    game: Callable[[int, int], WholeGame]
    rounds: int
    seeds: int
    grid: Mapping[str, Sequence[float]] = field(default_factory=dict)
    timed: bool = False

    def trial(self, policies: Sequence[Policy], seed: int) -> Trial:
        return GameTrial(self, policies, seed)

    def warm_up(self, policy: Policy) -> None:
        """Do nothing, because the study does not compare seconds."""

    def step_size(self, rounds: int) -> int:
        return rounds


class GameTrial:
    """Trial of one seed: every player plays the same game."""

    def __init__(self, study: GameStudy, policies: Sequence[Policy], seed: int) -> None:
        self._study, self._policies, self._seed = study, policies, seed
        self._points: list[list[dict[str, Any]]] = [[] for _ in policies]
        self._columns: Mapping[str, Any] = {}

    def step(self, start: int, rounds: int) -> None:
        game = self._study.game(self._seed, rounds)
        self._columns = game.columns
        for policy, points in zip(self._policies, self._points, strict=True):
            player = policy.build()
            began = perf_counter()
            found = game.play(player)
            points.append({**found, "seconds": perf_counter() - began})

    def rows(self) -> list[dict[str, Any]]:
        rows = final_rows(self._policies, self._seed, self._points, lambda points: _special(points[-1]))
        return [{**row, **self._columns} for row in rows]

    def curves(self) -> list[dict[str, Any]]:
        return curve_rows(self._policies, self._seed, self._points)


def split_seed(seed: int, choices: Sequence[T]) -> tuple[int, T]:
    """Return the order and the choice for which a seed s stands: s // n and choices[s % n], given n choices."""
    order, place = divmod(seed, len(choices))
    return order, choices[place]


def _special(point: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in point.items() if name not in USUAL}
