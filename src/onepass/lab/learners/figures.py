"""Tables and pictures of online learners: mistakes over examples, against seconds, and over one setting.

Source: Wen, Zhang et al. = the paper on FORKS.
"""

from collections.abc import Sequence
from functools import partial
from statistics import fmean
from typing import Any

from onepass.lab.drawing import canvas, level_end, name_ends, plot_curves, set_log_scale, set_title
from onepass.lab.figure import Figure, Line, Picture, Row
from onepass.lab.line_styles import assign_styles
from onepass.lab.tables import group_label, group_rows, mean_cell, policy_label, standard_error

RATES = {  # Wen, Zhang et al. table 1 (german, svmguide3, spambase, ijcnn1), 2 and 3: mistakes in %
    "RBP": "38.8 29.7 35.5 21.0",
    "BPA-S": "35.2 29.0 34.4 11.1",
    "Projectron": "36.9 25.1 32.7 9.5",
    "BOGD": "33.7 29.9 32.9 11.6 32.1 21.3",
    "FOGD": "30.9 30.0 25.7 9.7",
    "NOGD": "26.7 20.0 31.0 9.4 28.1 16.5",
    "SkeGD": "25.2 20.0 32.4 11.9 11.0 5.7",
    "PROS-N-KONS": "31.2 24.5 32.2 9.5 17.2 11.2",
    "FORKS": "26.4 19.7 30.7 9.4 5.1 3.0",
}
RATED = ("german", "svmguide3", "spambase", "ijcnn1", "german-1", "german-2")


def rate_in_paper(experiment: str, policy: str) -> str:
    """Return the mistake rate in % that Wen, Zhang et al. print for a policy, as text; empty if they print none.

    `experiment` is the name in `onepass list`.
    """
    name, known = experiment.removeprefix("learners-").removesuffix("-published"), RATES.get(policy, "").split()
    place = RATED.index(name) if name in RATED else len(RATED)
    return known[place] if place < len(known) else ""


def learner_lines(rows: Sequence[Row]) -> list[Line]:
    """Return the table of online learners as one line per policy, with mistakes in % of all examples, and costs.

    `rows` are the results of a run, as dictionaries. If the study counts mistakes as Wen, Zhang et al. do, without
    those made before a buffer is full, this rate is added.
    """
    lines = []
    for label, own in group_rows(rows, policy_label).items():
        rates = [100.0 * row["mistake_rate"] for row in own]
        some = [{"rate": 100.0 * row["mistake_rate_after_buffering"]} for row in own if _has_buffering_rate(row)]
        lines.append(
            {
                "policy": label,
                "mistakes, %": f"{fmean(rates):.2f}",
                "std. error": f"{standard_error(rates):.2f}" if len(rates) > 1 else "",
                **(
                    {"without buffering, %": mean_cell(some, "rate", ".2f")}
                    if any(map(_has_buffering_rate, rows))
                    else {}
                ),
                "Wen, Zhang et al., %": rate_in_paper(own[0]["experiment"], label),
                "width": f"{own[0]['params']['width']:.3g}" if "width" in own[0]["params"] else "",
                "µs an example": f"{fmean(row['microseconds_per_round'] for row in own):,.1f}",
                "seconds": f"{fmean(row['seconds'] for row in own):,.3g}",
                "memory, kB": f"{fmean(row['memory_bytes'] for row in own) / 1000:,.1f}",
                "examples": f"{own[0]['rounds']:,}",
                "seeds": str(len(own)),
            }
        )
    return lines


def _has_buffering_rate(row: Row) -> bool:
    return row["mistake_rate_after_buffering"] is not None


def _add_percent(rows: Sequence[Row]) -> list[Row]:
    return [{**row, "percent": 100.0 * row["mistake_rate"]} for row in rows]


def _draw_learner(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Draw the mistake rate over examples, and the final one against seconds.

    `rows` are the results at the end of a run, and `curves` the results over rounds, as dictionaries.
    """
    tall = max(3.4, 0.2 * len(group_rows(rows, policy_label)))
    figure = canvas(8.5, 1.0 + 2.2 * tall)
    axes = figure.subplot_mosaic([["mistakes"], ["seconds"]], sharey=True)
    styles = assign_styles(rows, "policy")
    plot_curves(axes["mistakes"], _add_percent(curves), "percent", styles)
    axes["mistakes"].set(xlabel="examples", ylabel="mistakes so far, %")
    axes["mistakes"].set_xlim(0, max(row["round"] for row in curves))
    _draw_rate_over_seconds(axes["seconds"], rows, "policy", styles)
    ends = [fmean(row["percent"] for row in own) for own in group_rows(_add_percent(rows), policy_label).values()]
    axes["mistakes"].set_ylim(0.8 * min(ends), 1.25 * max(ends))
    set_title(figure, rows, f"{rows[0]['rounds']:,} examples, every one counted")
    return figure


def _draw_rate_over_seconds(axes: Any, rows: Sequence[Row], key: str, styles: dict[str, dict[str, Any]]) -> None:
    """Draw mistakes in % against seconds into the panel `axes`, one point per policy.

    `rows` are the results of a run, as dictionaries. Points of policies with the same value in column `key` are joined
    by a line, with the style `styles` for this value.

    The baselines, which take hardly any time, are left out.
    """
    points = {}
    for name, own in group_rows(_add_percent(rows), lambda row: row[key]).items():
        if own[0]["recipe"] not in ("Constant", "RepeatLast"):
            several = list(group_rows(own, policy_label).values())
            points[name] = [[fmean(row[value] for row in same) for same in several] for value in ("seconds", "percent")]
            axes.plot(*points[name], marker="o", markersize=5, **styles[name])
    set_log_scale(axes, "x")
    axes.set(xlabel="seconds", ylabel="mistakes, %")
    name_ends(axes, {name: (xs, ys) for name, (xs, ys) in points.items()}, styles)


def _draw_settings(rows: Sequence[Row], curves: Sequence[Row], *, parameter: str, name: str, scale: str) -> Picture:
    """Draw mistakes and seconds against one parameter, and against each other.

    `rows` are the results of a run, as dictionaries. `curves`, the results over rounds, are not used. `parameter` is
    the name of the parameter in policies, and `name` labels its axis. `scale` is "x" for a logarithmic axis of the
    parameter, else "". Policies without the parameter are horizontal lines.
    """
    figure = canvas(10, 7.6)
    axes = figure.subplot_mosaic([["percent", "seconds"], ["both", "both"]])
    styles = assign_styles(rows, "group")
    for value in ("percent", "seconds"):
        found, levels = {}, {}
        for group, own in group_rows(_add_percent(rows), group_label).items():
            settings = sorted(group_rows(own, lambda row: row["params"].get(parameter)).items()) if len(own) > 1 else []
            if len(settings) > 1:
                found[group] = [at for at, _ in settings], [fmean(row[value] for row in same) for _, same in settings]
                axes[value].plot(*found[group], label=group, marker="o", markersize=4, **styles[group])
            elif value == "percent" or own[0]["recipe"] not in ("Constant", "RepeatLast"):
                levels[group] = fmean(row[value] for row in own)
                axes[value].axhline(levels[group], label=group, **styles[group])
        axes[value].set(xlabel=name, ylabel="mistakes, %" if value == "percent" else value)
        set_log_scale(axes[value], scale if value == "percent" else scale + "y")
        ends = {**found, **{group: level_end(axes[value], at) for group, at in levels.items()}}
        name_ends(axes[value], ends, styles)
    _draw_rate_over_seconds(axes["both"], rows, "group", styles)
    set_title(figure, rows, f"{rows[0]['rounds']:,} examples, every one counted")
    return figure


LEARNER = Figure("learner", learner_lines, _draw_learner)
UPDATES = Figure(
    "updates",
    learner_lines,
    partial(_draw_settings, parameter="update_every", name="losses between updates of the sketch", scale="x"),
)
BUDGET = Figure("budget", learner_lines, partial(_draw_settings, parameter="budget", name="budget", scale=""))
