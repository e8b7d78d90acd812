"""Table, limits to keep and picture of the bake-off of noisy worlds: gains over a uniform choice, relative to rivals.

A gain is the mean reward of a policy minus that of uniform random choices.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import exp, log, sqrt
from statistics import fmean, stdev
from typing import NamedTuple

from scipy.special import stdtrit

from onepass.lab.drawing import canvas
from onepass.lab.figure import Figure, Line, Picture, Row
from onepass.lab.line_styles import BLUE, GREY, SMALL
from onepass.lab.noisy.players import (
    FOREST,
    GITTINS,
    GREEDY,
    GREEDY_OURS,
    LINEAR,
    OURS,
    THOMPSON_FREE,
    UCB_FREE,
    WABBIT,
)
from onepass.lab.tables import group_rows

CONTEXT_FREE = (UCB_FREE, THOMPSON_FREE)
RIVALS = (*CONTEXT_FREE, WABBIT, GREEDY)  # the bar is the best of them
NO_CONTEXT = ("no context", "one of many")  # kinds in which contexts do not matter, and JACKPOT
JACKPOT, ROUTING = "jackpot", "routing"
LEAST_GAIN = 0.02  # of the range of rewards: where the rival gains less, the ratio is noise
LEAST_RATIO = 0.05  # in geometric means a smaller ratio, or a negative one, counts as this
BAR, UPPER_BAR, WABBIT_BAR, FREE_BAR, JACKPOT_BAR, ROUTING_LOSS = 0.97, 0.95, 1.10, 0.97, 0.40, 0.005


class Ratio(NamedTuple):
    """Ratio of two means, with a 95% confidence interval from `low` to `high`, which are None for a single value."""

    value: float
    low: float | None
    high: float | None


def paired_ratio(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """Return the ratio of the mean of `ours` to the mean of `theirs`, two sequences of paired values, with 95% limits.

    The limits use the delta method and Student's t distribution: the residuals ours_i - ratio theirs_i have mean 0. The
    standard error of the ratio is their standard error divided by the mean of `theirs`.
    """
    n, scale = len(ours), fmean(theirs)
    ratio = fmean(ours) / scale
    if n < 2:
        return Ratio(ratio, None, None)
    error = stdev([a - ratio * b for a, b in zip(ours, theirs, strict=True)]) / sqrt(n) / abs(scale)
    reach = float(stdtrit(n - 1, 0.975)) * error
    return Ratio(ratio, ratio - reach, ratio + reach)


def common_orders(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of results for orders of rounds that `ContextualBandit` and all its main rivals have played.

    An interrupted run ends in the middle of an order, and policies are compared fairly only on the same orders. If
    there is no such order, all rows are returned.
    """
    bar = [row for row in rows if row["group"] in (OURS, *RIVALS)]
    played = [{row["order"] for row in own} for own in group_rows(bar, lambda row: row["policy"]).values()]
    common = set.intersection(*played) if played else set()
    return [row for row in rows if row["order"] in common] or list(rows)


class World:
    """Results of all policies on one bandit problem, called a world, over several random orders of its rounds.

    `rows` are the results of one problem. `gains` maps the name of a policy to a dictionary of its gain by order. The
    gain is the mean reward of the policy minus the mean reward of a uniform choice of arms.
    """

    def __init__(self, name: str, rows: Sequence[Row]) -> None:
        self.name, self.rows = name, (rows := common_orders(rows))
        self.range = fmean(row["high"] - row["low"] for row in rows)
        self.groups = {row["policy"]: row["group"] for row in rows}
        self.gains = {
            label: {row["order"]: row["reward"] - row["uniform"] for row in own}
            for label, own in group_rows(rows, lambda row: row["policy"]).items()
        }

    def reward(self, label: str) -> float | None:
        """Return the mean reward of the policy `label` over all orders, or None if it has not played."""
        own = [row["reward"] for row in self.rows if row["policy"] == label]
        return fmean(own) if own else None

    def best(self, groups: Iterable[str]) -> str | None:
        """Return the name of the policy in these groups with the largest mean gain, or None if none has played."""
        wanted = set(groups)
        labels = [label for label, group in self.groups.items() if group in wanted]
        return max(labels, key=lambda label: fmean(self.gains[label].values()), default=None)

    def ratio(self, label: str, groups: Iterable[str], least: float = LEAST_GAIN) -> Ratio | None:
        """Return the ratio of two gains: of the policy `label`, and of the best policy in these groups.

        Both are means over the orders that both have played. The result is None if one has not played, or if the
        rival's gain is at most the fraction `least` of the range of rewards.
        """
        rival = self.best(groups)
        ours, theirs = self.gains.get(label, {}), self.gains.get(rival or "", {})
        common = sorted(set(ours) & set(theirs))
        if not common or fmean(theirs[order] for order in common) <= least * self.range:
            return None
        return paired_ratio([ours[order] for order in common], [theirs[order] for order in common])


def worlds(rows: Sequence[Row]) -> list[World]:
    """Return the results as one `World` per bandit problem, sorted by kind and name.

    `rows` are the results of a run, as dictionaries.
    """
    groups = group_rows(rows, lambda row: row["world"])
    return [World(name, groups[name]) for name in sorted(groups, key=lambda name: (groups[name][0]["kind"], name))]


def _format(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _format_ratio(ratio: Ratio | None) -> str:
    if ratio is None:
        return ""
    return f"{ratio.value:.2f}" if ratio.low is None else f"{ratio.value:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"


def lines(rows: Sequence[Row]) -> list[Line]:
    """Return the table as one line per bandit problem: mean rewards, and the gain of `ContextualBandit` over rivals.

    `rows` are the results of a run, as dictionaries.
    """
    out = []
    for world in worlds(rows):
        row, rival = world.rows[0], world.best(RIVALS)

        def reward(*groups: str, world: World = world) -> str:
            label = world.best(groups)
            return _format(None if label is None else world.reward(label))

        out.append(
            {
                "world": world.name,
                "rounds": f"{round(fmean(row['counted'] for row in world.rows)):,}",
                "arms": str(row["arms"]),
                "dim": str(row["dim"]),
                "orders": str(len(world.gains.get(OURS, {}))),
                "uniform": _format(fmean(row["uniform"] for row in world.rows)),
                "best fixed": _format(fmean(row["fixed"] for row in world.rows)),
                "UCB": reward(UCB_FREE),
                "Thompson": reward(THOMPSON_FREE),
                "greedy linear": reward(GREEDY),
                "tuned linear": reward(LINEAR),
                "forest": reward(FOREST),
                "VW": reward(WABBIT),
                "gittins": reward(GITTINS),
                "ours": reward(OURS),
                "ours, greedy": reward(GREEDY_OURS),
                "best rival": rival or "",
                "gain / best rival": _format_ratio(world.ratio(OURS, RIVALS)),
                "gain / VW": _format_ratio(world.ratio(OURS, (WABBIT,))),
            }
        )
    return out


def geometric_mean(ratios: Mapping[str, Ratio]) -> float:
    """Return the geometric mean of the ratios; ratios below 0.05 count as 0.05."""
    return exp(fmean(log(max(ratio.value, LEAST_RATIO)) for ratio in ratios.values()))


def ratios(found: Sequence[World], label: str, groups: Iterable[str], least: float = LEAST_GAIN) -> dict[str, Ratio]:
    """Return the gain of the policy `label` relative to the best policy in these groups, by bandit problem.

    `found` are the problems. Those in which `World.ratio` is None are left out; `least` is an argument of
    `World.ratio`.
    """
    known = ((world.name, world.ratio(label, groups, least)) for world in found)
    return {name: ratio for name, ratio in known if ratio is not None}


def _verdict(holds: bool) -> str:
    return "holds" if holds else "does not hold"


def _mean_line(what: str, own: Mapping[str, Ratio], bar: float) -> list[str]:
    if not own:
        return []
    mean = geometric_mean(own)
    return [
        f"- Gain relative to {what}: geometric mean {mean:.3f} over {len(own)} worlds; at least {bar:.2f}: "
        f"{_verdict(mean >= bar)}."
    ]


def bars(rows: Sequence[Row]) -> list[str]:
    """Return lines of text, one for each limit that results of `ContextualBandit` must keep, with the measured value.

    `rows` are the results of a run, as dictionaries. Limits concern its gain relative to rivals, and single problems.
    """
    found = worlds(rows)
    against = ratios(found, OURS, RIVALS)
    out = _mean_line("the best of context-free UCB and Thompson, VW's best of 18 and greedy linear", against, BAR)
    limited = {name: ratio.high for name, ratio in against.items() if ratio.high is not None}
    if limited:
        low = [f"{name} {high:.2f}" for name, high in limited.items() if high < UPPER_BAR]
        out.append(
            f"- Upper 95% limit of this ratio in each of {len(limited)} worlds; at least {UPPER_BAR:.2f}: "
            f"{_verdict(not low)}{': ' + ', '.join(low) if low else ''}."
        )
    out += _mean_line("VW's best of 18", ratios(found, OURS, (WABBIT,)), WABBIT_BAR)
    free = [world for world in found if world.rows[0]["kind"] in NO_CONTEXT or world.name == JACKPOT]
    alone = ratios(free, OURS, CONTEXT_FREE, least=0.0)
    out += _mean_line("the best context-free bandit where no context matters", alone, FREE_BAR)
    for world in found:
        own = [row for row in world.rows if row["policy"] == OURS]
        late = [row["late_share"] for row in own if row["late_share"] is not None]
        if world.name == JACKPOT and late:
            share = fmean(late)
            out.append(
                f"- Share of the jackpot's arm after 1,000 rounds {share:.2f}; at least {JACKPOT_BAR:.2f}: "
                f"{_verdict(share >= JACKPOT_BAR)}."
            )
        if world.name == ROUTING and own:
            loss = fmean(row["fixed"] - row["reward"] for row in own)
            out.append(
                f"- Routing earns {loss:.4f} less than the best fixed model; at most {ROUTING_LOSS:g}: "
                f"{_verdict(loss <= ROUTING_LOSS)}."
            )
    return out


def note(rows: Sequence[Row]) -> str:
    """Return the text below the table: the lines of `bars`, and geometric means of gains relative to other rivals.

    `rows` are the results of a run, as dictionaries.
    """
    found = worlds(rows)
    orders = sorted({len(world.gains.get(OURS, {})) for world in found})
    counted = " to ".join(map(str, dict.fromkeys((orders[0], orders[-1])))) if orders else "no"
    said = [
        f"Rewards are means over {counted} orders. Must hold, over worlds where the rival gains over .02 of the range:"
    ]
    said += bars(rows)
    others = [
        f"{name} {geometric_mean(own):.2f} ({len(own)})"
        for name in (UCB_FREE, THOMPSON_FREE, GREEDY, LINEAR, FOREST, WABBIT, GITTINS, GREEDY_OURS)
        if (own := ratios(found, OURS, (name,)))
    ]
    if others:
        said.append(f"Geometric means of our gain relative to each rival at its best (worlds): {', '.join(others)}.")
    return "\n".join(said)


def draw(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Draw the gain of `ContextualBandit` relative to its best rival, with 95% limits, one line per bandit problem.

    `rows` are the results at the end of each run. `curves`, the results over the rounds, are not used.
    """
    found = {world.name: ratio for world in worlds(rows) if (ratio := world.ratio(OURS, RIVALS)) is not None}
    order = sorted(found, key=lambda name: found[name].value)
    figure = canvas(8.5, 1.4 + 0.25 * max(len(order), 1))
    axes = figure.subplots()
    axes.set_label("gain")
    for place, name in enumerate(order):
        ratio = found[name]
        if ratio.low is not None and ratio.high is not None:
            axes.plot([ratio.low, ratio.high], [place, place], color=GREY, linewidth=1.0)
        axes.plot(ratio.value, place, "o", color=BLUE)
    axes.axvline(1.0, color=GREY, linewidth=0.8)
    axes.set(xlabel="gain over a uniform choice / gain of the best rival in hindsight")
    axes.set_yticks(range(len(order)), order, fontsize=SMALL)
    axes.margins(y=0.02)
    return figure


NOISY = Figure("bake-off-noise", lines, draw, note)
