"""Find the best point of a parameter grid, and show it as a table and a picture."""

from collections import defaultdict
from collections.abc import Sequence
from math import fsum
from typing import Any

from onepass.lab.drawing import draw_over_reg
from onepass.lab.figure import Figure, Line, Picture, Row

AXES = ("width", "reg")  # a picture is drawn over the first of these parameters that was searched


def mean_regrets(rows: Sequence[Row]) -> dict[str, list[tuple[float, dict[str, Any]]]]:
    """Return, for every policy, the points of its parameter grid as pairs (mean regret, parameters), best first.

    `rows` are the results of `tune`, as dictionaries. Of points with equal regrets, the one with fewer parameters at an
    edge of the grid comes first.
    """
    regrets: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    params: dict[str, dict[str, Any]] = {}
    for row in rows:
        key = repr(row["params"])
        params[key] = row["params"]
        regrets[row["policy"]][key].append(row["cumulative_regret"])
    found = {}
    for label, points in regrets.items():
        rated = [(fsum(values) / len(values), params[key]) for key, values in points.items()]
        grid = [point for _, point in rated]
        found[label] = sorted(rated, key=lambda point: (point[0], len(parameters_at_edge(point[1], grid))))
    return found


def edge_note(rows: Sequence[Row]) -> str:
    """Return a sentence on the policies whose best parameters lie at an edge of their grid, or an empty string.

    `rows` are the rows of results of `tune`.
    """
    found = {
        label: parameters_at_edge(points[0][1], [params for _, params in points])
        for label, points in mean_regrets(rows).items()
    }
    named = "; ".join(f"{label}: {', '.join(names)}" for label, names in found.items() if names)
    return f"The best lies at the edge of the grid, which is to be widened: {named}." if named else ""


def parameters_at_edge(params: dict[str, Any], grid: Sequence[dict[str, Any]]) -> list[str]:
    """Return the names of the parameters in `params` whose value is the smallest or the largest in the grid.

    `params` is one point of `grid`, which lists all points. Parameters with a single value in the grid do not count.
    """
    values = {name: [point[name] for point in grid] for name in params if isinstance(params[name], int | float)}
    return [name for name, own in values.items() if min(own) < max(own) and params[name] in (min(own), max(own))]


def _best_parameter_lines(rows: Sequence[Row]) -> list[Line]:
    """Return one line per policy: the best parameters of the grid, and those at its edge.

    `rows` are the results of `tune`, as dictionaries.
    """
    lines = []
    found = mean_regrets(rows)
    searched = {label: _varying_parameters([params for _, params in points]) for label, points in found.items()}
    names = list(dict.fromkeys(name for own in searched.values() for name in own))
    for label, points in found.items():
        regret, best = points[0]
        lines.append(
            {
                "policy": label,
                **{name: f"{best[name]:g}" if name in searched[label] else "" for name in names},
                "mean regret": f"{regret:,.1f}",
                "worst of the grid": f"{points[-1][0]:,.1f}",
                "at the grid's edge": ", ".join(parameters_at_edge(best, [params for _, params in points])),
            }
        )
    return lines


def _varying_parameters(grid: Sequence[dict[str, Any]]) -> list[str]:
    """Return the names of the parameters that differ between points of a grid."""
    return [name for name in grid[0] if len({params[name] for params in grid}) > 1]


def _draw_tuning(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Draw regret over reg, or over width if widths were searched.

    `rows` are the results of `tune`, as dictionaries. `curves`, the results over rounds, are not used. At each value,
    the other parameters are the best ones for it.
    """
    searched = dict.fromkeys(
        name for points in mean_regrets(rows).values() for name in _varying_parameters([params for _, params in points])
    )
    axis = next((name for name in AXES if name in searched), next(iter(searched), "reg"))
    best = set()
    for label, points in mean_regrets(rows).items():
        for value in {params.get(axis) for _, params in points}:
            best.add((label, repr(next(params for _, params in points if params.get(axis) == value))))
    kept = [row for row in rows if (row["policy"], repr(row["params"])) in best and axis in row["params"]]
    what = f"regret over {axis}, the rest at its best"
    return draw_over_reg(kept, "cumulative_regret", "cumulative regret", what, axis)


TUNING = Figure("tuning", _best_parameter_lines, _draw_tuning, edge_note)
