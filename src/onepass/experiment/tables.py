"""Tables of results as aligned Markdown: readable on a terminal and in a README alike."""

from collections.abc import Callable, Sequence
from statistics import fmean, median, stdev
from textwrap import fill
from typing import Any

import numpy as np
import polars as pl

from onepass.experiment.definition import Study
from onepass.experiment.results import Row
from onepass.experiment.tuning import at_edges, edges, mean_regrets

Line = dict[str, str]


def table(rows: Sequence[Row]) -> str:
    """The table that belongs to the rows' figure."""
    figure = rows[0]["figure"]
    text = markdown(LINES.get(figure, regret_lines)(rows))
    if figure == "tuning" and (warning := at_edges(rows)):
        return f"{text}\n\n{warning}"
    return f"{text}\n\n{LEAKAGE}" if figure == "recommender" and rows[0]["experiment"] in PUBLISHED else text


def markdown(lines: Sequence[Line]) -> str:
    """Lines of equal keys as an aligned Markdown table."""
    with pl.Config(
        tbl_formatting="MARKDOWN",
        tbl_hide_column_data_types=True,
        tbl_hide_dataframe_shape=True,
        tbl_cell_alignment="LEFT",
        tbl_rows=-1,
        tbl_cols=-1,
        tbl_width_chars=400,
        fmt_str_lengths=200,
    ):
        return str(pl.DataFrame(lines))


def by(rows: Sequence[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    """Rows grouped in order of first appearance."""
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def policy_of(row: Row) -> str:
    return row["policy"]


def standard_error(values: Sequence[float]) -> float:
    return stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")


def price(rows: Sequence[Row]) -> Line:
    return {
        "µs a round": f"{fmean(row['microseconds_per_round'] for row in rows):,.1f}",
        "memory, kB": f"{fmean(row['memory_bytes'] for row in rows) / 1000:,.1f}",
    }


def cost(rows: Sequence[Row]) -> Line:
    bound = max(row["error_bound"] for row in rows)
    return {**price(rows), "error bound": "none" if bound == float("inf") else f"{bound:.3g}"}


def regret_lines(rows: Sequence[Row]) -> list[Line]:
    """One line per policy: mean regret, its standard error, median, and what it cost."""
    lines = []
    for label, own in by(rows, policy_of).items():
        regrets = [row["cumulative_regret"] for row in own]
        lines.append(
            {
                "policy": label,
                "mean regret": f"{fmean(regrets):,.1f}",
                "std. error": f"{standard_error(regrets):,.1f}" if len(regrets) > 1 else "",
                "median": f"{median(regrets):,.1f}",
                **cost(own),
                "rounds": f"{own[0]['rounds']:,}",
                "seeds": str(len(own)),
            }
        )
    return lines


def heavy_lines(rows: Sequence[Row]) -> list[Line]:
    """One line per policy: means hang on the few seeds that fail, so median and 90% quantile stand beside them."""
    lines = []
    for label, own in by(rows, policy_of).items():
        regrets = [row["cumulative_regret"] for row in own]
        low, high = bootstrap(regrets)
        lines.append(
            {
                "policy": label,
                "mean regret": f"{fmean(regrets):,.1f}",
                "95% interval": f"{low:,.1f} to {high:,.1f}" if len(regrets) > 1 else "",
                "median": f"{median(regrets):,.1f}",
                "90% quantile": f"{np.quantile(regrets, 0.9):,.1f}",
                **cost(own),
                "rounds": f"{own[0]['rounds']:,}",
                "seeds": str(len(own)),
            }
        )
    return lines


def bootstrap(values: Sequence[float], samples: int = 10_000) -> tuple[float, float]:
    """The bootstrap's 95% interval of the mean (percentiles of the means of resamples), the same in every call."""
    drawn = np.random.default_rng(0).integers(len(values), size=(samples, len(values)))
    low, high = np.quantile(np.asarray(values)[drawn].mean(axis=1), (0.025, 0.975))
    return float(low), float(high)


def kernel_lines(rows: Sequence[Row]) -> list[Line]:
    """One line per policy; the ratio to exact GP-UCB is taken seed by seed, then averaged."""
    exact = {row["seed"]: row["cumulative_regret"] for row in rows if row["policy"] == "GPUCB"}
    lines = []
    for label, own in by(rows, policy_of).items():
        regrets = [row["cumulative_regret"] for row in own]
        ratios = [row["cumulative_regret"] / exact[row["seed"]] for row in own if exact.get(row["seed"])]
        lines.append(
            {
                "policy": label,
                "mean regret": f"{fmean(regrets):,.1f}",
                "std. error": f"{standard_error(regrets):,.1f}" if len(regrets) > 1 else "",
                "ratio to GPUCB": f"{fmean(ratios):.2f}" if ratios else "",
                "simple regret": mean_cell(own, "simple_regret", ".4f"),
                "dictionary": mean_cell(own, "dictionary_size", ",.1f"),
                "effective dimension": mean_cell(own, "effective_dimension", ",.1f"),
                **price(own),
                "rounds": f"{own[0]['rounds']:,}",
                "seeds": str(len(own)),
            }
        )
    return lines


def starvation_lines(rows: Sequence[Row]) -> list[Line]:
    """One line per policy and number of evaluations: f within 3 deviations, and these against the exact posterior's."""
    return [
        {
            "policy": label,
            "evaluations": f"{evaluations:,}",
            "f within 3 sd, unseen half": f"{fmean(row['coverage'] for row in own):.1%}",
            "sd / exact sd, unseen half": mean_cell(own, "unseen_deviation", ".3f"),
            "sd / exact sd, seen half": mean_cell(own, "seen_deviation", ".3f"),
            "dictionary": mean_cell(own, "dictionary_size", ",.1f"),
            "seeds": str(len(own)),
        }
        for (label, evaluations), own in by(rows, lambda row: (row["policy"], row["rounds"])).items()
    ]


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


def published_rate(experiment: str, policy: str) -> str:
    """Wen, Zhang et al.'s rate of a policy, or nothing; `experiment` as in `onepass list`."""
    name, known = experiment.removeprefix("learners-").removesuffix("-published"), RATES.get(policy, "").split()
    place = RATED.index(name) if name in RATED else len(RATED)
    return known[place] if place < len(known) else ""


def learner_lines(rows: Sequence[Row]) -> list[Line]:
    """One line per policy: mistakes in %, every example counted; Wen, Zhang et al.'s way of counting beside where rows
    have it.
    """
    lines = []
    for label, own in by(rows, policy_of).items():
        rates = [100.0 * row["mistake_rate"] for row in own]
        some = [{"rate": 100.0 * row["mistake_rate_after_buffering"]} for row in own if counted(row)]
        lines.append(
            {
                "policy": label,
                "mistakes, %": f"{fmean(rates):.2f}",
                "std. error": f"{standard_error(rates):.2f}" if len(rates) > 1 else "",
                **({"without buffering, %": mean_cell(some, "rate", ".2f")} if any(map(counted, rows)) else {}),
                "Wen, Zhang et al., %": published_rate(own[0]["experiment"], label),
                "width": f"{own[0]['params']['width']:.3g}" if "width" in own[0]["params"] else "",
                "µs an example": f"{fmean(row['microseconds_per_round'] for row in own):,.1f}",
                "seconds": f"{fmean(row['seconds'] for row in own):,.3g}",
                "memory, kB": f"{fmean(row['memory_bytes'] for row in own) / 1000:,.1f}",
                "examples": f"{own[0]['rounds']:,}",
                "seeds": str(len(own)),
            }
        )
    return lines


def counted(row: Row) -> bool:
    return row["mistake_rate_after_buffering"] is not None


def decomposition_lines(rows: Sequence[Row]) -> list[Line]:
    """One line per method: relative spectral error after the last update, the worst on the way, and the time."""
    return [
        {
            "method": label,
            "error at the end": mean_cell(own, "spectral_error", ".3g"),
            "worst error": f"{max(row['worst_error'] for row in own):.3g}",
            "µs an update": mean_cell(own, "microseconds_per_round", ",.1f"),
            "seconds": mean_cell(own, "seconds", ",.3g"),
            "updates": f"{own[0]['rounds']:,}",
            "seeds": str(len(own)),
        }
        for label, own in by(rows, policy_of).items()
    ]


def error_lines(rows: Sequence[Row]) -> list[Line]:
    """One line per design: its spectral error at the end of the stream, and what it cost."""
    return [
        {
            "design": label,
            "spectral error": f"{fmean(row['spectral_error'] for row in own):.3g}",
            **cost(own),
            "rows": f"{own[0]['rounds']:,}",
            "seeds": str(len(own)),
        }
        for label, own in by(rows, policy_of).items()
    ]


def over_reg(value: str, digits: str) -> Callable[[Sequence[Row]], list[Line]]:
    """One line per group, one column per reg, the mean of `value` in the cells."""

    def lines(rows: Sequence[Row]) -> list[Line]:
        regs = sorted({row["params"]["reg"] for row in rows})
        cells = by(rows, lambda row: (row["group"], row["params"]["reg"]))
        return [
            {"": group, **{f"reg {reg:g}": mean_cell(cells.get((group, reg), []), value, digits) for reg in regs}}
            for group in by(rows, lambda row: row["group"])
        ]

    return lines


def mean_cell(rows: Sequence[Row], value: str, digits: str) -> str:
    """The mean over the rows that have a value, or nothing."""
    known = [row[value] for row in rows if row[value] is not None]
    return format(fmean(known), digits) if known else ""


def tuned_lines(rows: Sequence[Row]) -> list[Line]:
    """One line per policy: the best parameters of the grid, and which of them lie at its edge."""
    lines = []
    found = mean_regrets(rows)
    searched = {label: varied([params for _, params in points]) for label, points in found.items()}
    names = list(dict.fromkeys(name for own in searched.values() for name in own))
    for label, points in found.items():
        regret, best = points[0]
        lines.append(
            {
                "policy": label,
                **{name: f"{best[name]:g}" if name in searched[label] else "" for name in names},
                "mean regret": f"{regret:,.1f}",
                "worst of the grid": f"{points[-1][0]:,.1f}",
                "at the grid's edge": ", ".join(edges(best, [params for _, params in points])),
            }
        )
    return lines


def varied(grid: Sequence[dict[str, Any]]) -> list[str]:
    """The parameters that differ between points of a grid."""
    return [name for name in grid[0] if len({params[name] for params in grid}) > 1]


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


def recommender_lines(rows: Sequence[Row]) -> list[Line]:
    """One line per policy: means over steps with their standard errors, means over seeds, and what it cost."""
    published = PUBLISHED.get(rows[0]["experiment"]) if rows[0]["figure"] == "recommender" else None
    whole = [row for row in rows if row["month"] == "all"]
    cold = by([row for row in whole if row["users"] == "cold"], policy_of)
    lines = []
    for label, own in by([row for row in whole if row["users"] == "known"], policy_of).items():
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


def experiment_list(experiments: Sequence[Study]) -> str:
    """All experiments with their policies, a paragraph each."""
    return "\n\n".join(
        f"{experiment.name}: {experiment.rounds:,} rounds, {experiment.seeds} seeds\n"
        f"    {experiment.description}\n"
        + fill(
            "policies: " + ", ".join(dict.fromkeys(policy.group or policy.label for policy in experiment.policies)),
            width=96,
            initial_indent=" " * 4,
            subsequent_indent=" " * 8,
            break_on_hyphens=False,
        )
        for experiment in experiments
    )


def policy_table(experiment: Study) -> str:
    """The policies of an experiment and their parameters, one a line."""
    return markdown(
        [
            {
                "policy": policy.label,
                "recipe": policy.name,
                "parameters": ", ".join(f"{name}={value}" for name, value in policy.params.items()),
            }
            for policy in experiment.policies
        ]
    )


LINES = {
    "regret": regret_lines,
    "bound": regret_lines,
    "pareto": regret_lines,
    "heavy": heavy_lines,
    "kernel": kernel_lines,
    "starvation": starvation_lines,
    **dict.fromkeys(("learner", "updates", "budget"), learner_lines),
    "decomposition": decomposition_lines,
    "reg": over_reg("cumulative_regret", ",.1f"),
    "error": error_lines,
    "inverse": over_reg("inverse_error", ".2g"),
    "tuning": tuned_lines,
    **dict.fromkeys(("recommender", "size", "width", "arms", "batch"), recommender_lines),
}
