"""Table and picture of the bake-off: mistakes on every data set, also relative to Vowpal Wabbit's best setting."""

from collections.abc import Sequence
from math import exp, log
from statistics import fmean

from onepass.lab.drawing import canvas, set_log_scale
from onepass.lab.figure import Figure, Line, Picture, Row
from onepass.lab.line_styles import BLUE, GREY, ORANGE, SMALL
from onepass.lab.tables import group_rows

OURS, ARGMAX, PEER = "ContextualBandit", "ContextualBandit argmax", "VW"
TUNED = ("LinUCB", "LinTS", "CBSCFD", "PSILinUCB")
FOREST = "forest"
OTHERS = ("mabwiser", "contextualbandits")


def _set_name(row: Row) -> str:
    return row["set"]


def rates(rows: Sequence[Row], groups: Sequence[str]) -> dict[str, float]:
    """Return the mean fraction of wrong choices of every policy in `groups`, as a dictionary by policy.

    `rows` are the results of a run, as dictionaries, one per policy, data set and seed.
    """
    wanted = [row for row in rows if row["group"] in groups]
    return {
        label: fmean(row["rate"] for row in own) for label, own in group_rows(wanted, lambda row: row["policy"]).items()
    }


def _fewest_mistakes(found: dict[str, float]) -> tuple[str, float | None]:
    """Return the label with the lowest mistake rate, and this rate, or ("", None) if `found` is empty.

    `found` maps labels of policies to mistake rates.
    """
    label = min(found, key=lambda name: found[name], default="")
    return label, found.get(label)


def _format_percent(rate: float | None) -> str:
    return "" if rate is None else f"{100.0 * rate:.2f}"


def _format_ratio(mine: float | None, theirs: float | None) -> str:
    return f"{mine / theirs:.2f}" if mine is not None and theirs else ""


def lines(rows: Sequence[Row]) -> list[Line]:
    """Return the table as one line per data set, with the shares of wrong choices of the policies.

    `rows` are the results of a run, as dictionaries.
    """
    out = []
    for name, own in sorted(group_rows(rows, _set_name).items()):
        ours, argmax = rates(own, [OURS]).get(OURS), rates(own, [ARGMAX]).get(ARGMAX)
        label, theirs = _fewest_mistakes(rates(own, [PEER]))
        linear, tuned = _fewest_mistakes(rates(own, TUNED))
        forest = rates(own, [FOREST]).get(FOREST)
        better = min((rate for rate in (theirs, forest) if rate is not None), default=None)
        _, others = _fewest_mistakes(rates(own, OTHERS))
        spent = [row["microseconds_per_round"] for row in own if row["policy"] == OURS]
        out.append(
            {
                "set": name,
                "rounds": f"{own[0]['rounds']:,}",
                "arms": str(own[0]["arms"]),
                "dim": str(own[0]["dim"]),
                "ours, %": _format_percent(ours),
                "argmax, %": _format_percent(argmax),
                "best VW, %": _format_percent(theirs),
                "which": label.removeprefix("VW "),
                "ours / VW": _format_ratio(ours, theirs),
                "argmax / VW": _format_ratio(argmax, theirs),
                "best linear of ours, %": _format_percent(tuned),
                "which one": linear,
                "ours / it": _format_ratio(ours, tuned),
                "forest, %": _format_percent(forest),
                "ours / better of forest and VW": _format_ratio(ours, better) if forest is not None else "",
                "best other, %": _format_percent(others),
                "µs a round": f"{fmean(spent):,.0f}" if spent else "",
            }
        )
    return out


def shares(rows: Sequence[Row], label: str) -> dict[str, float]:
    """Return the mistakes of the policy `label` relative to Vowpal Wabbit's best setting, as ratios by data set.

    The best setting is chosen for each data set. `rows` are the results of a run, as dictionaries.
    """
    found = {}
    for name, own in group_rows(rows, _set_name).items():
        mine, (_, theirs) = rates(own, [label]).get(label), _fewest_mistakes(rates(own, [PEER]))
        if mine and theirs:
            found[name] = mine / theirs
    return found


def forest_shares(rows: Sequence[Row], label: str) -> dict[str, float]:
    """Return the mistakes of the policy `label` divided by those of the better of two rivals, by data set.

    The rivals are the random forest and Vowpal Wabbit's best setting. `rows` are the results of a run, as dictionaries.
    """
    found = {}
    for name, own in group_rows(rows, _set_name).items():
        mine, (_, theirs) = rates(own, [label]).get(label), _fewest_mistakes(rates(own, [PEER]))
        forest = rates(own, [FOREST]).get(FOREST)
        if mine and theirs and forest:
            found[name] = mine / min(theirs, forest)
    return found


def halves(found: dict[str, float]) -> tuple[list[float], list[float]]:
    """Split values by data set into two lists: sets on which default parameters were chosen, and all other sets.

    `found` maps names of data sets to values. The defaults were chosen on the 1st, 3rd, ... set in alphabetical order.
    The set with shuffled rows is in neither list.
    """
    from onepass.lab.bakeoff.datasets import NAMES, SHUFFLED

    order = sorted(set(NAMES) - {SHUFFLED})
    return [found[n] for n in order[::2] if n in found], [found[n] for n in order[1::2] if n in found]


def _format_geometric_mean(values: Sequence[float]) -> str:
    """Return the geometric mean of the values as text, or "none" if there are no values."""
    return f"{exp(fmean(map(log, values))):.3f}" if values else "none"


def note(rows: Sequence[Row]) -> str:
    """Return the text below the table: the geometric mean, over data sets, of mistakes relative to two rivals.

    `rows` are the results of a run, as dictionaries. The rivals are Vowpal Wabbit's best setting, and the better of
    this setting and the random forest.
    """
    said = []
    for label in (OURS, ARGMAX):
        found = shares(rows, label)
        if found:
            chosen, others = halves(found)
            whole, on_chosen, on_others = (
                _format_geometric_mean(own) for own in (list(found.values()), chosen, others)
            )
            said.append(
                f"{label}: {whole} of the mistakes of Vowpal Wabbit's best of 18 settings for each set, geometric mean "
                f"of {len(found)} sets; {on_chosen} on the {len(chosen)} that it was chosen on, {on_others} on the "
                f"other {len(others)}."
            )
        against = forest_shares(rows, label)
        if against:
            said.append(
                f"{label}: {_format_geometric_mean(list(against.values()))} of the mistakes of the better of forest "
                f"and Vowpal Wabbit's best, geometric mean of {len(against)} sets."
            )
    return "\n".join(said)


def draw(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Draw the mistakes of the policies relative to Vowpal Wabbit's best setting, with one row for each data set.

    `rows` are the results of a run, as dictionaries. `curves`, the results over rounds, are not used.
    """
    figure = canvas(8.5, 1.4 + 0.19 * len(group_rows(rows, _set_name)))
    axes = figure.subplots()
    axes.set_label("mistakes")
    order = sorted(group_rows(rows, _set_name), key=lambda name: shares(rows, OURS).get(name, 1.0))
    linear = {name: _fewest_mistakes(rates(own, TUNED))[1] for name, own in group_rows(rows, _set_name).items()}
    peer = {name: _fewest_mistakes(rates(own, [PEER]))[1] for name, own in group_rows(rows, _set_name).items()}
    against = {name: one / other for name in order if (one := linear[name]) and (other := peer[name])}
    styles = ((OURS, shares(rows, OURS), BLUE, "o"), (ARGMAX, shares(rows, ARGMAX), ORANGE, "x"))
    for label, found, colour, marker in (*styles, ("best linear of ours", against, GREY, "|")):
        known = [(share, place) for place, name in enumerate(order) if (share := found.get(name)) is not None]
        if known:
            axes.plot(*zip(*known), marker, color=colour, label=label, linestyle="none")
    axes.axvline(1.0, color=GREY, linewidth=0.8)
    axes.set(xlabel="mistakes / those of Vowpal Wabbit's best of 18 settings for the set")
    set_log_scale(axes, "x")
    axes.set_yticks(range(len(order)), order, fontsize=SMALL)
    axes.margins(y=0.01)
    handles, labels = axes.get_legend_handles_labels()
    if handles:  # the legend stands above the points, in one line
        figure.legend(handles, labels, loc="outside upper left", ncols=len(handles), frameon=False)
    return figure


BAKE_OFF = Figure("bake-off", lines, draw, note)
