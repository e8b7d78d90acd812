"""Studies of regret and its price, of sketches over their size, of tuners: what their tables say."""

import sys

import numpy as np
import pytest

from onepass.lab import ExperimentError, find, run
from onepass.lab.bandits.frontiers import block_lines, frontier_lines
from onepass.lab.matrices.suites import sketches_over_ranks
from onepass.lab.tables import lines_over_reg
from onepass.lab.tuners.problems import PROBLEMS
from onepass.lab.tuners.study import best_lines


def row(group: str, note: str, regret: float, memory: float, time: float, **params: float) -> dict:
    label = f"{group} {note}".strip()
    price = {"memory_bytes": memory, "microseconds_per_round": time}
    return {"policy": label, "group": group, "cumulative_regret": regret, "params": params, **price}


def test_a_frontier_takes_the_least_regret_that_a_price_allows_of_the_exact_model_at_its_best():
    rows = [
        row("OFUL", "reg=1", 30.0, 100.0, 10.0), row("OFUL", "reg=2", 20.0, 100.0, 20.0),
        row("SOFUL", "size=4", 50.0, 10.0, 4.0), row("SOFUL", "size=8", 25.0, 40.0, 8.0),
        row("SOFUL", "size=16", 22.0, 90.0, 30.0),
    ]  # fmt: skip
    exact, sketch = frontier_lines(rows)
    assert (exact["at any price"], exact["there"], exact["0.5 of its memory"]) == ("20.0", "reg=2", "")
    assert sketch["at any price"] == sketch["1 of its memory"] == "22.0"
    assert [sketch[f"{share} of its memory"] for share in (0.5, 0.25, 0.1)] == ["25.0", "50.0", "50.0"]
    assert [sketch[f"{share} of its time"] for share in (1, 0.5, 0.25, 0.1)] == ["25.0", "25.0", "50.0", ""]


def test_blocks_have_a_line_a_first_block_and_a_column_an_error():
    rows = [row("b", f"{b} {e}", b + e, 1.0, 2000.0, size=b, error=e) for b in (50, 100) for e in (2.0, 8.0)]
    assert block_lines(rows) == [
        {"first block": "50", "error 2": "52.0; 2.00 ms", "error 8": "58.0; 2.00 ms"},
        {"first block": "100", "error 2": "102.0; 2.00 ms", "error 8": "108.0; 2.00 ms"},
    ]


def test_sketches_of_equal_size_share_a_column_whatever_they_call_it():
    policies = sketches_over_ranks((4, 8), (2.0,))
    rows = [{**policy.columns(), "inverse_error": 0.5} for policy in policies]
    lines = lines_over_reg(rows, "inverse_error", ".2g", ("rank", "size"))
    assert [list(line) for line in lines] == [["", "rank 4", "rank 8"]] * 5
    assert len(policies) == 10


def test_tuners_meet_the_same_problem_and_the_best_only_falls():
    pytest.importorskip("optuna")
    found = run(find("tuning-hartmann6"), seeds=2, rounds=20, quiet=True)
    for label in ("onepass", "TPE", "uniform"):
        for seed in (0, 1):
            best = [one["best"] for one in found.curves if one["policy"] == label and one["seed"] == seed]
            assert len(best) == 20
            assert (np.diff(best) <= 0.0).all()
            assert best[-1] >= 0.0  # a regret
    assert [line[""] for line in best_lines(found.rows)] == ["onepass", "TPE", "uniform"]


def test_every_problem_of_tuners_has_a_value_at_the_middle_of_its_settings():
    pytest.importorskip("optuna")
    from onepass.adapters.optuna import values_from_shares

    for name in ("branin", "hartmann6", "svc", "ridge", "tree"):
        problem, middle = PROBLEMS[name](), np.array([0.5])
        settings = {
            key: distribution.to_external_repr(values_from_shares(distribution, middle).item())
            for key, distribution in problem.settings.items()
        }
        assert np.isfinite(problem.value(settings))


def test_a_study_of_tuners_without_optuna_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ExperimentError, match=r"onepass\[optuna\]"):
        PROBLEMS["branin"]()
