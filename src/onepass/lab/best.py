"""The best of a grid: found, as a table, and drawn."""

from collections import defaultdict
from collections.abc import Sequence
from math import fsum
from typing import Any

from onepass.lab.drawing import draw_over_reg
from onepass.lab.figure import Figure, Line, Picture, Row

AXES = ("width", "reg")  # what a picture is drawn over, if it was searched


def mean_regrets(rows: Sequence[Row]) -> dict[str, list[tuple[float, dict[str, Any]]]]:
    """For every policy label, its grid points as (mean regret, params), best first; ties go to the grid's inside."""
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
        found[label] = sorted(rated, key=lambda point: (point[0], len(edges(point[1], grid))))
    return found


def at_edges(rows: Sequence[Row]) -> str:
    """A sentence on the policies whose best point lies at an edge of the grid, or nothing."""
    found = {
        label: edges(points[0][1], [params for _, params in points]) for label, points in mean_regrets(rows).items()
    }
    named = "; ".join(f"{label}: {', '.join(names)}" for label, names in found.items() if names)
    return f"The best lies at the edge of the grid, which is to be widened: {named}." if named else ""


def edges(params: dict[str, Any], grid: Sequence[dict[str, Any]]) -> list[str]:
    """The searched parameters that lie at the smallest or largest value of the grid."""
    values = {name: [point[name] for point in grid] for name in params if isinstance(params[name], int | float)}
    return [name for name, own in values.items() if min(own) < max(own) and params[name] in (min(own), max(own))]


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


def draw_tuning(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Regret over reg (width where kernels are tuned), at every value with the others that are best there."""
    searched = dict.fromkeys(
        name for points in mean_regrets(rows).values() for name in varied([params for _, params in points])
    )
    axis = next((name for name in AXES if name in searched), next(iter(searched), "reg"))
    best = set()
    for label, points in mean_regrets(rows).items():
        for value in {params.get(axis) for _, params in points}:
            best.add((label, repr(next(params for _, params in points if params.get(axis) == value))))
    kept = [row for row in rows if (row["policy"], repr(row["params"])) in best and axis in row["params"]]
    what = f"regret over {axis}, the rest at its best"
    return draw_over_reg(kept, "cumulative_regret", "cumulative regret", what, axis)


TUNING = Figure("tuning", tuned_lines, draw_tuning, at_edges)
