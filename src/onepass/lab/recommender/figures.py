"""Tables and pictures of recommenders: hits over the steps, and quality and costs against one setting."""

from collections.abc import Sequence
from functools import partial
from statistics import fmean

from onepass.lab.drawing import (
    Curve,
    bar_chart_height,
    canvas,
    draw_bars,
    level_end,
    name_ends,
    set_log_scale,
    set_title,
)
from onepass.lab.figure import Figure, Line, Picture, Row
from onepass.lab.line_styles import assign_styles
from onepass.lab.tables import group_label, group_rows, mean_cell, policy_label

PUBLISHED = {  # Shustova et al. tables 4 and 5: Hit@10, NDCG@10, MRR@10, coverage; train s, evaluation s, train GB
    name: {
        "PSILinUCB": (".531 .430 .398 .038", "10.3 s, 0.145 s, 1.4 GB"),
        "CBSCFD": (".526 .449 .425 .031", "22.9 s, 0.163 s, 1.5 GB"),
        "CBRAP": (".528 .420 .386 .027", "134.9 s, 9.224 s, 1.5 GB"),
        "DBSLinUCB": (".523 .438 .411 .028", "24.6 s, 0.102 s, 1.5 GB"),
    }
    for name in ("magazine", "magazine-leaking")
}
LEAKAGE = (
    "Shustova et al.: Hit@10, NDCG@10, MRR@10, coverage, then seconds to train, seconds a user, memory, as published\n"
    "on the 2023 release. Out of reach without leakage: with features of the warm-up alone exact LinUCB comes to .13,\n"
    "tuned to .16; with the SVD of all data, the test included, to .51 (`magazine-leaking`)."
)


def _leakage_note(rows: Sequence[Row]) -> str:
    """Return a note on the published figures if the table has them, else an empty string.

    `rows` are the results of a run, as dictionaries. The note says that these figures are out of reach without
    *leakage*, features made from the data of the test.
    """
    return LEAKAGE if rows[0]["experiment"] in PUBLISHED else ""


def _recommender_lines(rows: Sequence[Row], beside: bool = False) -> list[Line]:
    """Return one line per policy with hit rates, coverage, times and memory, each as a mean over seeds.

    Hit@10, NDCG@10, MRR@10 and the Hit@10 of unseen items are means over the steps (months) of a run, with their
    standard errors. `rows` are the results of a run, as dictionaries. `beside=True` adds the published figures, if any.
    """
    published = PUBLISHED.get(rows[0]["experiment"]) if beside else None
    whole = [row for row in rows if row["month"] == "all"]
    cold = group_rows([row for row in whole if row["users"] == "cold"], policy_label)
    lines = []
    for label, own in group_rows([row for row in whole if row["users"] == "known"], policy_label).items():
        mean = {key: fmean(row[key] for row in own) for key, value in own[0].items() if isinstance(value, float)}
        paper = (published or {}).get(own[0]["group"], ("", ""))
        lines.append(
            {
                "policy": label,
                **{
                    name: f"{mean[key]:.3f} ± {mean[key + '_error']:.3f}"
                    for name, key in (("Hit@10", "hit_at_10"), ("NDCG@10", "ndcg_at_10"), ("MRR@10", "mrr_at_10"))
                },
                "pooled": f"{mean['hit_at_10_pooled']:.3f}",
                "coverage": f"{mean['coverage']:.3f}",
                "Hit@10 unseen": f"{mean['hit_at_10_unseen']:.3f} ± {mean['hit_at_10_unseen_error']:.3f}",
                "Hit@10 cold": mean_cell(cold.get(label, []), "hit_at_10", ".3f"),
                "train, s": f"{mean['train_seconds']:.2f}",
                "ms a user": f"{1e3 * mean['decide_seconds_per_user']:.2f}",
                "memory, MB": f"{fmean(row['memory_bytes'] for row in own) / 1e6:,.1f}",
                "peak, MB": f"{fmean(row['peak_memory_bytes'] for row in own) / 1e6:,.0f}",
                **({"Shustova et al.": paper[0], "Shustova et al.'s cost": paper[1]} if published else {}),
            }
        )
    return lines


def _draw_recommender(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Draw Hit@10 up to every step, as a share of LinUCB's (Shustova et al. figure 3), and time and memory as bars.

    `rows` are the results at the end of a run, and `curves` the results over rounds, as dictionaries.
    """
    heights = [4.2, bar_chart_height(rows)]
    figure = canvas(8.5, 0.4 + sum(heights))
    axes = figure.subplot_mosaic([["hits", "hits"], ["time", "memory"]], height_ratios=heights)
    styles = assign_styles(rows, "policy")
    known = [row for row in curves if row["users"] == "known"]
    totals = {label: _cumulative_hits(own) for label, own in group_rows(known, policy_label).items()}
    base = totals.get("LinUCB")
    shares: dict[str, Curve] = {}
    for label, own in totals.items():
        points = {step: hits / base[step] if base else hits / (i + 1) for i, (step, hits) in enumerate(own.items())
                  if not base or base.get(step)}  # fmt: skip
        if points:
            shares[label] = [float(step) for step in points], list(points.values())
            marker = "o" if len(points) == 1 else ""
            axes["hits"].plot(*shares[label], label=label, marker=marker, **styles[label])
    what = "Hit@10 up to the step, LinUCB = 1" if base else "Hit@10 up to the step"
    axes["hits"].set(title=what, xlabel="step")
    axes["hits"].set_ylim(bottom=0)
    axes["hits"].margins(x=0)
    name_ends(axes["hits"], shares, styles)
    whole = [row for row in rows if row["month"] == "all" and row["users"] == "known"]
    milliseconds = [{**row, "ms": 1e3 * row["decide_seconds_per_user"]} for row in whole]
    draw_bars(axes["time"], milliseconds, "ms", 1.0, "milliseconds a user", styles)
    draw_bars(axes["memory"], whole, "memory_bytes", 1e6, "memory, MB", styles)
    axes["memory"].tick_params(labelleft=False)
    set_title(figure, whole, f"{whole[0]['rounds']} steps")
    return figure


def _cumulative_hits(rows: Sequence[Row]) -> dict[int, float]:
    """Return the sum of Hit@10 up to each step, mean over seeds, as a dictionary by the number of the step.

    `rows` are the results of one policy in single steps, one dictionary for each step and seed.
    """
    total, found = 0.0, {}
    for step, own in sorted(group_rows(rows, lambda row: row["round"]).items()):
        total += fmean(row["hit_at_10"] for row in own)
        found[step] = total
    return found


def _draw_sweep(rows: Sequence[Row], curves: Sequence[Row], *, x: str, name: str, scale: str) -> Picture:
    """Draw quality and costs against the column `x` of the rows; policies without this column are horizontal lines.

    `rows` are the results of a run, as dictionaries. `curves`, the results over rounds, are not used. `name` labels the
    axis, and `scale` is that of matplotlib, "linear" or "log".
    """
    panels = (
        ("hit_at_10", 1.0, "Hit@10"),
        ("train_seconds", 1.0, "seconds to train"),
        ("decide_seconds_per_user", 1e-3, "milliseconds a user"),
        ("memory_bytes", 1e6, "memory, MB"),
    )
    figure = canvas(10, 7.6)
    styles = assign_styles(rows, "group")
    whole = [row for row in rows if row["month"] == "all" and row["users"] == "known"]
    for axes, (value, unit, label) in zip(figure.subplots(2, 2).ravel(), panels):
        axes.set_label(value)
        found, levels, off = {}, {}, {}
        for group, own in group_rows(whole, group_label).items():
            points = sorted(group_rows([row for row in own if row[x]], lambda row: row[x]).items())
            means = [fmean(row[value] for row in same) / unit for _, same in points]
            if not points:
                levels[group] = fmean(row[value] for row in own) / unit
                axes.axhline(levels[group], label=group, **styles[group])
            else:
                found[group] = [at for at, _ in points], means
                axes.plot(*found[group], marker="o", markersize=4, label=group, **styles[group])
                if value == "hit_at_10":
                    off[group] = means[-1], fmean(row["hit_at_10_error"] for row in points[-1][1])
        set_log_scale(axes, scale if value == "hit_at_10" else scale + "y")
        axes.set(title=label, xlabel=name)
        intervals = {group: (mean - error, mean + error) for group, (mean, error) in off.items()}
        ends = {**found, **{group: level_end(axes, at) for group, at in levels.items()}}
        name_ends(axes, ends, styles, intervals if value == "hit_at_10" else None)
    set_title(figure, whole, f"against {name}")
    return figure


RECOMMENDER = Figure("recommender", partial(_recommender_lines, beside=True), _draw_recommender, _leakage_note)
SIZE = Figure("size", _recommender_lines, partial(_draw_sweep, x="size", name="rank or size", scale="x"))
WIDTH = Figure(
    "width", _recommender_lines, partial(_draw_sweep, x="context_dim", name="dimension of contexts", scale="x")
)
ARMS = Figure("arms", _recommender_lines, partial(_draw_sweep, x="arms", name="number of arms", scale="x"))
BATCH = Figure(
    "batch", _recommender_lines, partial(_draw_sweep, x="batch", name="rows of an arm in a batch", scale="x")
)
