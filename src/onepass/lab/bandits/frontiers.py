"""Regret against costs: every sketch at every size and reg, and the dyadic sketch over its error and first block.

A frontier shows, for each cost, the smallest regret of a policy over all its settings. reg is one of them, so no policy
is judged at a reg that suits another. Source: Wen, Yin et al. figures 3 and 6.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from statistics import fmean

from onepass.lab.bandits.figures import draw_pareto
from onepass.lab.bandits.study import Experiment
from onepass.lab.bandits.suites import MNIST_BEST, classification_factory, policies_over_sizes, shared_policies
from onepass.lab.definition import Study
from onepass.lab.drawing import canvas, name_ends, set_log_scale, set_title
from onepass.lab.figure import Figure, Line, Picture, Row
from onepass.lab.line_styles import assign_styles
from onepass.lab.policy import Policy, policy_variant
from onepass.lab.tables import group_label, group_rows, policy_label, standard_error

REGS = (0.002, 0.02, 0.2, 2.0)
EXPLORATION = 0.01  # on MNIST the best values are from 1e-4 to 0.1
SHARES = (1.0, 0.5, 0.25, 0.1)  # shares of the exact model's memory or time
ERRORS, BLOCKS = (2.0, 4.0, 8.0, 15.0, 25.0), (50, 100, 200)


def _sketch_policies(sizes: Sequence[int], blocks: Sequence[int], errors: Sequence[float]) -> tuple[Policy, ...]:
    """Return exact ridge regression, sketches of a fixed size, and dyadic sketches, each at every penalty in `REGS`.

    `sizes` are the numbers of rows of fixed sketches. Dyadic sketches have a first block of each number of rows in
    `blocks`, with each error bound in `errors`.
    """
    every = {policy.label: policy.with_params(exploration=EXPLORATION) for policy in shared_policies(size=1, blocks=1)}
    found = [policy_variant(every["OFUL"], f"reg={reg:g}", reg=reg) for reg in REGS]
    for name, size, reg in product(("SOFUL", "CBSCFD"), sizes, REGS):
        found.append(policy_variant(every[name], f"size={size} reg={reg:g}", size=size, reg=reg))
    for name, size, error, reg in product(("DBSLinUCB", "DBSLinUCB-RFD"), blocks, errors, REGS):
        note = f"size={size} error={error:g} reg={reg:g}"
        found.append(policy_variant(every[name], note, size=size, error=error, reg=reg))
    return tuple(found)


def frontier_lines(rows: Sequence[Row]) -> list[Line]:
    """Return the table as one line per group of policies: the least mean regret within several limits of cost.

    `rows` are the results of a run, as dictionaries. The limits are fractions of the memory and of the time of exact
    ridge regression (OFUL) at its best penalty. The number after +- is the standard error over seeds.
    """
    groups = {
        group: list(group_rows(own, policy_label).values()) for group, own in group_rows(rows, group_label).items()
    }
    exact = min(groups.get("OFUL", [list(rows)]), key=_mean_regret)
    lines = []
    for group, points in groups.items():
        best = min(points, key=_mean_regret)
        line = {"": group, "at any price": _regret_cell(best), "there": best[0]["policy"].removeprefix(group).strip()}
        for price, name in (("memory_bytes", "memory"), ("microseconds_per_round", "time")):
            for share in SHARES:
                allowed = [own for own in points if _column_mean(own, price) <= share * _column_mean(exact, price)]
                line[f"{share:g} of its {name}"] = _regret_cell(min(allowed, key=_mean_regret)) if allowed else ""
        lines.append(line)
    return lines


def _column_mean(rows: Sequence[Row], column: str) -> float:
    return fmean(row[column] for row in rows)


def _mean_regret(rows: Sequence[Row]) -> float:
    return _column_mean(rows, "cumulative_regret")


def _regret_cell(rows: Sequence[Row]) -> str:
    values = [row["cumulative_regret"] for row in rows]
    return f"{fmean(values):,.1f} ± {standard_error(values):,.1f}" if len(values) > 1 else f"{values[0]:,.1f}"


def block_lines(rows: Sequence[Row]) -> list[Line]:
    """Return the table of the dyadic sketch: mean regret and milliseconds per round, one column per error bound.

    `rows` are the results of a run, as dictionaries. There is one line for every number of rows of the sketch's first
    block.
    """
    cells = group_rows(rows, lambda row: (row["params"]["size"], row["params"]["error"]))
    sizes, errors = (sorted({row["params"][name] for row in rows}) for name in ("size", "error"))
    return [
        {"first block": f"{size}", **{f"error {error:g}": _price_cell(cells[size, error]) for error in errors}}
        for size in sizes
    ]


def _price_cell(rows: Sequence[Row]) -> str:
    return f"{_regret_cell(rows)}; {_column_mean(rows, 'microseconds_per_round') / 1000:.2f} ms"


def _draw_blocks(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Draw mean regret and milliseconds a round against `error`, `DBSLinUCB`'s bound of the error of its sketch.

    There is one line for every number of rows of the sketch's first block. `rows` are the results of a run, as
    dictionaries. `curves`, the results over rounds, are not used. Source: Wen, Yin et al. figure 3 a, b.
    """
    figure = canvas(10, 4.2)
    styles = assign_styles(rows, "group")
    panels = figure.subplots(1, 2)
    scales = (("cumulative_regret", 1.0, "cumulative regret"), ("microseconds_per_round", 1e3, "milliseconds a round"))
    for axes, (value, unit, name) in zip(panels, scales):
        axes.set_label(value)
        curves_of = {}
        for group, own in group_rows(rows, group_label).items():
            errors = sorted(group_rows(own, lambda row: row["params"]["error"]).items())
            curves_of[group] = [error for error, _ in errors], [_column_mean(same, value) / unit for _, same in errors]
            axes.plot(*curves_of[group], marker="o", markersize=4, label=group, **styles[group])
        set_log_scale(axes, "x")
        axes.set(xlabel="error", ylabel=name)
        axes.margins(x=0.03)
        if value != "cumulative_regret":  # regrets differ by a few percent: an axis from 0 would hide that
            axes.set_ylim(bottom=0)
        name_ends(axes, curves_of, styles)
    set_title(figure, rows, f"the dyadic sketch after {rows[0]['rounds']:,} rounds")
    return figure


FRONTIER = Figure("frontier", frontier_lines, draw_pareto)
BLOCK = Figure("blocks", block_lines, _draw_blocks)


def _first_blocks() -> tuple[Policy, ...]:
    """Return bandits on dyadic sketches of Frequent Directions, with penalty and exploration tuned on MNIST.

    There is one for every error bound in `ERRORS` and every number of rows of the first block in `BLOCKS`.
    """
    return tuple(
        Policy(
            f"first block {size} error={error:g}",
            "DBSLinUCB",
            {"size": size, "error": error, "base": "fd", **MNIST_BEST["DBSLinUCB"]},
            f"first block {size}",
        )
        for size, error in product(BLOCKS, ERRORS)
    )


def _with_best_of_mnist(policies: Sequence[Policy]) -> tuple[Policy, ...]:
    """Return the policies with the ridge penalty and exploration that `onepass tune mnist` found for their group."""
    best = (MNIST_BEST[policy.group or policy.label] for policy in policies)
    return tuple(replace(policy, params={**policy.params, **own}) for policy, own in zip(policies, best))


def _sizes_of_table_2() -> tuple[Policy, ...]:
    """Return OFUL, SOFUL of three sizes and the dyadic sketch with the settings of Wen, Yin et al. table 2, tuned."""
    found = policies_over_sizes((20, 100, 150), [(50, 8.0)])
    return _with_best_of_mnist(
        [policy for policy in found if (policy.group or policy.label) in ("OFUL", "SOFUL", "DBSLinUCB")]
    )


def _pareto_experiment(name: str, what: str, policies: tuple[Policy, ...], rounds: int) -> Experiment:
    """Make the experiment of regret against time and memory on the data set `name`, which `what` names in words.

    `policies` play `rounds` rounds for each of 10 seeds.
    """
    description = f"the least regret for its time and memory, over sizes, errors and reg, on {what} (figure 6)"
    problem = classification_factory(name)
    return Experiment(f"{name}-pareto", description, problem, policies, rounds, seeds=10, figure=FRONTIER, timed=True)


SUITES: tuple[Study, ...] = (
    Experiment(
        "mnist-pareto",
        "the least regret for its time and memory, over sizes and errors, tuned, on MNIST (figure 3 c, d)",
        classification_factory("mnist"),
        _with_best_of_mnist(
            policies_over_sizes(
                (10, 20, 50, 100, 150, 200, 300, 400, 500, 600),
                [(50, 15.0), *product((50, 100, 200), (2.0, 8.0, 25.0))],
            )
        ),
        rounds=2000,
        seeds=5,
        figure=FRONTIER,
        timed=True,
    ),
    Experiment(
        "mnist-sizes",
        "OFUL, SOFUL of 20, 100 and 150 rows, and the dyadic sketch from 50 rows, tuned, on MNIST (figure 5, table 2)",
        classification_factory("mnist"),
        _sizes_of_table_2(),
        rounds=2000,
        seeds=5,
        timed=True,
    ),
    _pareto_experiment(
        "cnae-9", "856 word counts", _sketch_policies((10, 50, 100, 200), (25, 100), (2.0, 8.0, 25.0)), rounds=500
    ),
    _pareto_experiment(
        "mfeat-zernike", "47 features", _sketch_policies((4, 8, 16, 32), (4, 12), (1.0, 8.0, 64.0)), rounds=2000
    ),
    _pareto_experiment(
        "spambase", "57 features", _sketch_policies((4, 8, 16, 32), (4, 12), (1.0, 8.0, 64.0)), rounds=2000
    ),
    Experiment(
        "mnist-blocks",
        "regret and time of the dyadic sketch over its error and first block on MNIST (figure 3 a, b)",
        classification_factory("mnist"),
        _first_blocks(),
        rounds=2000,
        seeds=5,
        figure=BLOCK,
        timed=True,
    ),
)
