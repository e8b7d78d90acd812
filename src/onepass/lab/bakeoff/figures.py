"""Table and picture of the bake-off: mistakes of every set, also as shares of Vowpal Wabbit's best setting for it."""

from collections.abc import Sequence
from math import exp, log
from statistics import fmean

from onepass.lab.drawing import canvas, logarithmic
from onepass.lab.figure import Figure, Line, Picture, Row
from onepass.lab.looks import BLUE, GREY, ORANGE, SMALL
from onepass.lab.tables import by

OURS, ARGMAX, PEER = "ContextualBandit", "ContextualBandit argmax", "VW"
TUNED = ("LinUCB", "LinTS", "CBSCFD", "PSILinUCB")
OTHERS = ("mabwiser", "contextualbandits")


def set_of(row: Row) -> str:
    return row["set"]


def rates(rows: Sequence[Row], groups: Sequence[str]) -> dict[str, float]:
    """Mean mistake rates of the policies of these groups, by label."""
    wanted = [row for row in rows if row["group"] in groups]
    return {label: fmean(row["rate"] for row in own) for label, own in by(wanted, lambda row: row["policy"]).items()}


def best(found: dict[str, float]) -> tuple[str, float | None]:
    """The label with the fewest mistakes, and these; nothing where nobody played."""
    label = min(found, key=lambda name: found[name], default="")
    return label, found.get(label)


def shown(rate: float | None) -> str:
    return "" if rate is None else f"{100.0 * rate:.2f}"


def ratio(mine: float | None, theirs: float | None) -> str:
    return f"{mine / theirs:.2f}" if mine is not None and theirs else ""


def lines(rows: Sequence[Row]) -> list[Line]:
    """A line for every set."""
    out = []
    for name, own in sorted(by(rows, set_of).items()):
        ours, argmax = rates(own, [OURS]).get(OURS), rates(own, [ARGMAX]).get(ARGMAX)
        label, theirs = best(rates(own, [PEER]))
        linear, tuned = best(rates(own, TUNED))
        _, others = best(rates(own, OTHERS))
        spent = [row["microseconds_per_round"] for row in own if row["policy"] == OURS]
        out.append(
            {
                "set": name,
                "rounds": f"{own[0]['rounds']:,}",
                "arms": str(own[0]["arms"]),
                "dim": str(own[0]["dim"]),
                "ours, %": shown(ours),
                "argmax, %": shown(argmax),
                "best VW, %": shown(theirs),
                "which": label.removeprefix("VW "),
                "ours / VW": ratio(ours, theirs),
                "argmax / VW": ratio(argmax, theirs),
                "best linear of ours, %": shown(tuned),
                "which one": linear,
                "ours / it": ratio(ours, tuned),
                "best other, %": shown(others),
                "µs a round": f"{fmean(spent):,.0f}" if spent else "",
            }
        )
    return out


def shares(rows: Sequence[Row], label: str) -> dict[str, float]:
    """Mistakes as shares of Vowpal Wabbit's best, by set."""
    found = {}
    for name, own in by(rows, set_of).items():
        mine, (_, theirs) = rates(own, [label]).get(label), best(rates(own, [PEER]))
        if mine and theirs:
            found[name] = mine / theirs
    return found


def halves(found: dict[str, float]) -> tuple[list[float], list[float]]:
    """Of all sets in alphabetical order, those that settings were chosen on (1st, 3rd, ...), and the others."""
    from onepass.lab.bakeoff.sets import NAMES

    order = sorted(NAMES)
    return [found[n] for n in order[::2] if n in found], [found[n] for n in order[1::2] if n in found]


def mean(values: Sequence[float]) -> str:
    """The geometric mean."""
    return f"{exp(fmean(map(log, values))):.3f}" if values else "none"


def note(rows: Sequence[Row]) -> str:
    """Geometric means."""
    said = []
    for label in (OURS, ARGMAX):
        found = shares(rows, label)
        if found:
            one, other = halves(found)
            said.append(
                f"{label}: {mean(list(found.values()))} of the mistakes of Vowpal Wabbit's best of 18 settings for "
                f"each set, geometric mean of {len(found)} sets; {mean(one)} on the {len(one)} that it was chosen "
                f"on, {mean(other)} on the other {len(other)}."
            )
    return "\n".join(said)


def draw(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Mistakes as shares of Vowpal Wabbit's best, set by set."""
    figure = canvas(8.5, 1.4 + 0.19 * len(by(rows, set_of)))
    axes = figure.subplots()
    axes.set_label("mistakes")
    order = sorted(by(rows, set_of), key=lambda name: shares(rows, OURS).get(name, 1.0))
    linear = {name: best(rates(own, TUNED))[1] for name, own in by(rows, set_of).items()}
    peer = {name: best(rates(own, [PEER]))[1] for name, own in by(rows, set_of).items()}
    against = {name: one / other for name in order if (one := linear[name]) and (other := peer[name])}
    looks = ((OURS, shares(rows, OURS), BLUE, "o"), (ARGMAX, shares(rows, ARGMAX), ORANGE, "x"))
    for label, found, colour, marker in (*looks, ("best linear of ours", against, GREY, "|")):
        known = [(share, place) for place, name in enumerate(order) if (share := found.get(name)) is not None]
        if known:
            axes.plot(*zip(*known), marker, color=colour, label=label, linestyle="none")
    axes.axvline(1.0, color=GREY, linewidth=0.8)
    axes.set(xlabel="mistakes / those of Vowpal Wabbit's best of 18 settings for the set")
    logarithmic(axes, "x")
    axes.set_yticks(range(len(order)), order, fontsize=SMALL)
    axes.margins(y=0.01)
    handles, labels = axes.get_legend_handles_labels()
    if handles:  # points of three kinds: above them, in one line
        figure.legend(handles, labels, loc="outside upper left", ncols=len(handles), frameon=False)
    return figure


BAKE_OFF = Figure("bake-off", lines, draw, note)
