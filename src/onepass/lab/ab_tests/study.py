"""Study of experiments that stop: each seed is a game that all players play in the same world."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import thread_time
from typing import Any

import numpy as np

from onepass.lab.ab_tests.players import Outcome, play_ab_test, play_bandit, play_track_and_stop
from onepass.lab.ab_tests.worlds import JumpingWorld, LoggedWorld, World
from onepass.lab.definition import Study, Trial
from onepass.lab.drawing import canvas, set_title
from onepass.lab.figure import Figure, Line, Picture, Row
from onepass.lab.policy import Policy
from onepass.lab.tables import group_rows, policy_label

RATES = (0.02, 0.025, 0.03, 0.035, 0.04)
TOLERANCE = 0.002
SHOCK = 0.3  # deviation of the level's log odds
HALF = 4.3  # slope at which contexts explain half of the variance of clicks at a rate of .03
PLAYERS: dict[str, Callable[..., Outcome]] = {
    "ABTest": play_ab_test,
    "track-and-stop": play_track_and_stop,
    "bandit": play_bandit,
}
WARM = 2_000  # decisions of a throw-away game


class Player:
    """Player of one A/B test with the given tolerance and seed.

    `player` is a name in `PLAYERS`, and `options` are further arguments of its function. The method `play(world,
    limit)` plays at most `limit` decisions in a `World` and returns an `Outcome`.
    """

    def __init__(self, player: str, tolerance: float, seed: int, **options: Any) -> None:
        self._play, self._options = PLAYERS[player], {"tolerance": tolerance, "seed": seed, **options}

    def play(self, world: World, limit: int) -> Outcome:
        return self._play(world, limit, **self._options)


class GameTrial:
    """Trial of one seed: the players that `policies` make each play a game of their own in the same simulated world."""

    def __init__(self, study: "ABTestStudy", policies: Sequence[Policy], seed: int) -> None:
        self._study, self._policies, self._seed = study, policies, seed
        self._rows: list[dict[str, Any]] = []

    def step(self, start: int, rounds: int) -> None:
        for policy in self._policies:
            player = policy.build(tolerance=self._study.tolerance, seed=self._seed)
            began = thread_time()
            found = player.play(self._study.world(self._seed), rounds)
            seconds = thread_time() - began
            self._rows.append(
                {
                    **policy.columns(),
                    "seed": self._seed,
                    "rounds": rounds,
                    "cumulative_regret": found.regret,
                    "cumulative_reward": None,
                    "microseconds_per_round": 1e6 * seconds / found.decisions,
                    **found._asdict(),
                }
            )

    def rows(self) -> list[dict[str, Any]]:
        return list(self._rows)

    def curves(self) -> list[dict[str, Any]]:
        return [{**row, "round": row["decisions"], "seconds": 0.0} for row in self._rows]


def lines(rows: Sequence[Row]) -> list[Line]:
    """Return the table as one line per player: decisions until it stopped at the best arm, wrong answers and losses.

    `rows` are the results of a run, as dictionaries.
    """
    found = []
    for label, own in group_rows(rows, policy_label).items():
        right = [row["decisions"] if row["stopped"] and row["right"] else np.inf for row in own]
        middle = float(np.median(right))
        found.append(
            {
                "player": label,
                "median decisions to the right stop": f"{middle:,.0f}" if np.isfinite(middle) else "-",
                "right": f"{np.mean(np.isfinite(right)):.3f}",
                "wrong": f"{np.mean([row['stopped'] and not row['right'] for row in own]):.3f}",
                "all limits held": f"{np.mean([row['covered'] for row in own]):.3f}",
                "width": f"{np.median([row['width'] for row in own]):.4f}",
                "best arm at the end": f"{np.mean([row['share'] for row in own]):.3f}",
                "clicks lost": f"{np.mean([row['cumulative_regret'] for row in own]):.0f}",
                "games": str(len(own)),
            }
        )
    return found


def draw(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Draw one curve per player: the fraction of games that have stopped at the best arm, over decisions.

    `rows` are the results of a run, as dictionaries. `curves`, the results over rounds, are not used.
    """
    figure = canvas(8.5, 4.8)
    axes = figure.subplots()
    for label, own in group_rows(rows, policy_label).items():
        right = np.sort([row["decisions"] for row in own if row["stopped"] and row["right"]])
        axes.step(right, np.arange(1, len(right) + 1) / len(own), where="post", label=label)
    axes.legend(frameon=False)
    axes.set(xlabel="decisions", ylabel="share of games", ylim=(0, 1))
    set_title(figure, rows, "stopped at the best arm")
    return figure


GAMES = Figure("ab-tests", lines, draw)


@dataclass(frozen=True)
class ABTestStudy:
    """Study of A/B tests: players look for the best of several arms in simulated worlds.

    - rates: click rates of the arms.
    - shock, slope: size of the random jumps of all click rates, and effect of the context, as for `JumpingWorld`.
    - logged: True if the world is a `LoggedWorld` with as many arms as `rates` has entries.
    - tolerance: loss of click rate that an answer may have.

    `Study` describes the other fields: name, description, policies, rounds, seeds, figure, grid and timed.
    """

    name: str
    description: str
    policies: tuple[Policy, ...]
    rates: tuple[float, ...] = RATES
    shock: float = 0.0
    slope: float = 0.0
    logged: bool = False
    tolerance: float = TOLERANCE
    rounds: int = 400_000
    seeds: int = 500
    figure: Figure = GAMES
    grid: Mapping[str, Sequence[float]] = field(default_factory=dict)
    timed: bool = False

    def world(self, seed: int) -> World:
        if self.logged:
            return LoggedWorld(len(self.rates), seed)
        return JumpingWorld(self.rates, self.shock, self.slope, seed)

    def trial(self, policies: Sequence[Policy], seed: int) -> Trial:
        return GameTrial(self, policies, seed)

    def warm_up(self, policy: Policy) -> None:
        policy.build(tolerance=self.tolerance, seed=0).play(self.world(0), WARM)

    def step_size(self, rounds: int) -> int:
        return rounds


OURS = Policy("ABTest", Player, {"player": "ABTest"})
PEERS = (
    Policy("track-and-stop, proven threshold", Player, {"player": "track-and-stop"}),
    Policy("track-and-stop, practical threshold", Player, {"player": "track-and-stop", "proven": False}),
)
FREE = Policy("ContextualBandit until ABTest stops", Player, {"player": "bandit"})
ENDLESS = Policy("ContextualBandit", Player, {"player": "bandit", "stops": False})
BLIND = Policy("ABTest without contexts", Player, {"player": "ABTest", "adjusts": False})
ON = Policy("ABTest, to the end", Player, {"player": "ABTest", "stops": False})
BLIND_ON = Policy("ABTest without contexts, to the end", Player, {"player": "ABTest", "adjusts": False, "stops": False})
SUITES: tuple[Study, ...] = (
    ABTestStudy("ab-tests", "which of five arms, clicks 2 to 4 %, the level jumps", (OURS, *PEERS), shock=SHOCK),
    ABTestStudy("ab-tests-still", "the same where nothing moves", (OURS, *PEERS)),
    ABTestStudy(
        "ab-tests-contexts", "the same with contexts that explain half of the variance", (OURS, BLIND, *PEERS),
        shock=SHOCK, slope=HALF,
    ),
    ABTestStudy(
        "ab-tests-null", "five equal arms, the level jumps: every stop is wrong", (OURS,), rates=(0.03,) * 5,
        shock=SHOCK, tolerance=0.0, rounds=50_000,
    ),
    ABTestStudy(
        "ab-tests-logged", "five equal arms with the clicks of Open Bandit's log with uniform choices", (OURS,),
        rates=(0.0,) * 5, logged=True, tolerance=0.0, rounds=30_000,
    ),
    ABTestStudy(
        "ab-tests-regret", "clicks lost until the stop, beside a bandit that gives no answer", (OURS, FREE),
        shock=SHOCK, seeds=100,
    ),
    ABTestStudy(
        "ab-tests-regret-contexts", "the same with contexts that explain half of the variance", (OURS, FREE),
        shock=SHOCK, slope=HALF, seeds=100,
    ),
    ABTestStudy(
        "ab-tests-level", "share of the best arm where the level jumps three times as far", (ON, ENDLESS),
        shock=3.0 * SHOCK, rounds=40_000, seeds=20,
    ),
    ABTestStudy(
        "ab-tests-level-still", "the same where nothing moves", (ON, ENDLESS), rounds=40_000, seeds=20,
    ),
    ABTestStudy(
        "ab-tests-widths", "widths of limits after 50,000 decisions, with contexts and without", (ON, BLIND_ON),
        shock=SHOCK, slope=HALF, rounds=50_000, seeds=20,
    ),
)  # fmt: skip
