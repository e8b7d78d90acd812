"""The bake-off of noisy worlds: every policy plays games in which rewards are mostly noise.

A seed stands for a world and an order of its rounds: of n worlds, seed s plays number s mod n in order s div n.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from onepass.lab.bakeoff.policies import scale_columns
from onepass.lab.definition import CHECKPOINTS, Trial, curve_rows, final_rows
from onepass.lab.figure import Figure
from onepass.lab.noisy.figures import NOISY
from onepass.lab.noisy.game import Game
from onepass.lab.noisy.names import CHOOSE, KIND_OF, REPORT
from onepass.lab.noisy.players import Player, Units, policies
from onepass.lab.noisy.worlds import make_game
from onepass.lab.policy import Policy

ROUNDS = 5_000  # no world has more
EARLY = 1_000  # rounds before the share of the best fixed arm is counted
WARM_UP_ROUNDS = 300
COUNTED = ("cumulative_reward", "seconds", "counted", "late", "hits")


@dataclass(frozen=True)
class NoisyBakeOff:
    """Study of bandit problems whose rewards are mostly noise.

    `worlds` are the names of the problems, and `rounds` is the largest number of rounds in each of them. `Study`
    describes the other fields.
    """

    name: str
    description: str
    policies: tuple[Policy, ...]
    seeds: int
    worlds: tuple[str, ...]
    rounds: int = ROUNDS
    figure: Figure = NOISY
    grid: Mapping[str, Sequence[float]] = field(default_factory=dict)
    timed: bool = False
    alone: bool = True

    def trial(self, policies: Sequence[Policy], seed: int) -> Trial:
        order, place = divmod(seed, len(self.worlds))
        return NoisyTrial(self.worlds[place], make_game(self.worlds[place], order), policies, seed, order)

    def warm_up(self, policy: Policy) -> None:
        rows = np.random.default_rng(0).standard_normal((WARM_UP_ROUNDS, 3))
        player = policy.build(dim=3, arms=3, seed=0, units=Units(0.0, 1.0, 0.5, 0.5))
        player.play(rows, np.eye(3)[np.arange(WARM_UP_ROUNDS) % 3])

    def step_size(self, rounds: int) -> int:
        return max(1, rounds // CHECKPOINTS)


def game_units(game: Game) -> Units:
    """Return the range, mean and standard deviation of a game's rewards.

    For mean and standard deviation, rewards are clipped to a range with the same middle as the range of the game, and
    three times as long.
    """
    span = game.high - game.low
    clipped = np.clip(game.rewards, game.low - span, game.high + span)
    return Units(game.low, game.high, float(clipped.mean()), float(clipped.std()))


class NoisyTrial:
    """Trial of all policies on one bandit problem in one random order of its rounds.

    Results are sums of expected rewards of the chosen arms, which a `Game` holds. If a game does not know them, it
    holds the rewards in their place.
    """

    def __init__(self, world: str, game: Game, policies: Sequence[Policy], seed: int, order: int) -> None:
        self.world, self.game, self.policies, self.seed, self.order = world, game, policies, seed, order
        where = {"dim": game.rows.shape[1], "arms": game.arms, "seed": order, "units": game_units(game)}
        self.players: list[Player] = [policy.build(**where) for policy in policies]
        self.scaled = scale_columns(game.rows)
        self.values = game.arm_values()
        self.points: list[list[dict[str, Any]]] = [[] for _ in policies]

    def step(self, start: int, rounds: int) -> None:
        part = slice(start, min(start + rounds, len(self.game.rows)))
        if part.stop <= start:
            return
        for player, points in zip(self.players, self.points, strict=True):
            rows = (self.scaled if player.hindsight else self.game.rows)[part]
            began = perf_counter()
            places, arms = self.play(player, rows, part)
            seconds = perf_counter() - began
            before = (
                points[-1] if points else {"cumulative_reward": 0.0, "seconds": 0.0, "counted": 0, "late": 0, "hits": 0}
            )
            late = np.arange(before["counted"], before["counted"] + len(arms)) >= EARLY
            points.append(
                {
                    "round": part.stop,
                    "counted": before["counted"] + len(arms),
                    "cumulative_reward": before["cumulative_reward"] + float(self.game.expected[places, arms].sum()),
                    "late": before["late"] + int(late.sum()),
                    "hits": before["hits"] + int((arms[late] == np.argmax(self.values)).sum()),
                    "seconds": before["seconds"] + seconds,
                }
            )

    def play(self, player: Player, rows: np.ndarray, part: slice) -> tuple[np.ndarray, np.ndarray]:
        """Let a player play the rounds `part` of the game with their contexts `rows`.

        The results are the indices (n,) of the rounds that count, and the chosen arms (n,) in them. All rounds count,
        except those in which a log has another arm.
        """
        rewards, logged = self.game.rewards[part], self.game.logged
        if logged is None:
            return np.arange(part.start, part.stop), player.play(rows, rewards)
        places = []
        for t, (x, arm) in enumerate(zip(rows, logged[part], strict=True)):
            if player.choose(x) == arm:
                player.learn(x, int(arm), float(rewards[t, arm]))
                places.append(part.start + t)
        kept = np.array(places, np.int64)
        return kept, logged[kept]

    def rows(self) -> list[dict[str, Any]]:
        game = self.game
        found = {
            "world": self.world, "kind": KIND_OF.get(self.world, ""), "order": self.order, "arms": game.arms,
            "dim": game.rows.shape[1], "low": game.low, "high": game.high, "uniform": float(self.values.mean()),
            "fixed": float(self.values.max()), "replayed": game.logged is not None,
        }  # fmt: skip
        rows = final_rows(self.policies, self.seed, self.points, _final_columns)
        return [{**row, **found} for row in rows]

    def curves(self) -> list[dict[str, Any]]:
        return [
            {**row, "world": self.world, "order": self.order}
            for row in curve_rows(self.policies, self.seed, self.points)
        ]


def _final_columns(points: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return three results by name, given the checkpoints `points` of a run.

    "counted" is the number of rounds that count, and "reward" their mean reward. "late_share" is the share, after the
    first 1,000 of these rounds, in which the best fixed arm was chosen.
    """
    last = points[-1]
    return {
        "counted": last["counted"],
        "reward": last["cumulative_reward"] / max(last["counted"], 1),
        "late_share": last["hits"] / last["late"] if last["late"] else None,
    }


ORDERS, FEW_ORDERS = 20, 3
PLAYERS = policies()
SUITES = (
    NoisyBakeOff(
        "bake-off-noise",
        f"{len(REPORT)} worlds of mostly noise, those to report; a seed is a world, and an order of its rounds",
        PLAYERS,
        seeds=ORDERS * len(REPORT),
        worlds=REPORT,
    ),
    NoisyBakeOff(
        "bake-off-noise-choose",
        f"{len(CHOOSE)} worlds of mostly noise, those to choose defaults on, in few orders",
        PLAYERS,
        seeds=FEW_ORDERS * len(CHOOSE),
        worlds=CHOOSE,
    ),
)
