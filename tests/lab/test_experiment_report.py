from pathlib import Path

import numpy as np
import polars as pl
import pytest

from experiments import worst_and_best
from onepass.lab import Experiment, ExperimentError, Figure, find, report, run, select, suites, tune
from onepass.lab.bandits.figures import BOUND, PARETO, REG, REGRET, frontier
from onepass.lab.bandits.heavy_figure import HEAVY, bootstrap_interval
from onepass.lab.grid_best import TUNING
from onepass.lab.policy import REGS, policies_over_reg


def is_picture(path: Path) -> bool:
    return path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and path.stat().st_size > 10_000


def test_every_figure_of_a_suite_is_found_by_its_name_and_no_two_share_one() -> None:
    own = {id(figure): figure for figure in (TUNING, *(suite.figure for suite in suites.SUITES))}.values()
    assert report.figures() == {figure.name: figure for figure in own}
    assert len(report.figures()) == len(own)


@pytest.mark.parametrize(
    ("name", "labels", "figure"),
    [
        ("digits", ["OFUL", "SOFUL", "PSILinUCB"], REGRET),
        ("digits", ["OFUL", "SOFUL"], BOUND),
        ("digits-pareto", ["OFUL", "SOFUL", "DBSLinUCB"], PARETO),
    ],
)
def test_a_report_is_rebuilt_from_the_parquet_files_alone(
    tmp_path: Path, name: str, labels: list[str], figure: Figure
) -> None:
    base = find(name)
    experiment = Experiment(base.name, "", base.environment, select(base, labels), 150, 2, figure)
    table = report.keep(run(experiment, quiet=True), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "curves.parquet",
        "figure.png",
        "results.parquet",
        "table.md",
    ]
    (tmp_path / "figure.png").unlink()
    (tmp_path / "table.md").unlink()
    assert report.rebuild(tmp_path) == table
    assert (tmp_path / "table.md").read_text(encoding="utf-8") == table + "\n"
    assert is_picture(tmp_path / "figure.png")
    assert all(label in table for label in labels)


def test_a_report_beside_other_folders_has_their_other_policies_and_seeds(tmp_path: Path) -> None:
    base = find("digits")
    small = Experiment(base.name, "", base.environment, select(base, ["OFUL"]), 50, 2, REGRET)
    one, other = tmp_path / "one", tmp_path / "other"
    report.keep(run(small, seeds=[0], quiet=True), one)
    report.keep(run(small, quiet=True), other)
    joined, whole = (
        text.splitlines()[-1].split("|")[1:5] for text in (report.rebuild(one, beside=[other]), report.rebuild(other))
    )
    assert joined == whole
    assert joined != report.rebuild(one).splitlines()[-1].split("|")[1:5]


@pytest.mark.parametrize("name", ["matrix-approximation", "inverse-error-flat"])
def test_matrix_studies_are_reported_too(tmp_path: Path, name: str) -> None:
    study = find(name)
    results = run(study, policies=study.policies[:2], seeds=[0], rounds=60, quiet=True)
    table = report.keep(results, tmp_path)
    assert study.policies[0].label.split(" reg")[0] in table
    assert is_picture(tmp_path / "figure.png")


def test_a_study_over_reg_shows_one_line_per_policy_and_one_column_per_reg(tmp_path: Path) -> None:
    base = find("digits")
    policies = policies_over_reg(select(base, ["OFUL", "CBSCFD"]))
    results = run(Experiment("over-reg", "", base.environment, policies, 100, 1, REG), quiet=True)
    lines = report.keep(results, tmp_path).splitlines()
    assert [cell.strip() for cell in lines[0].strip("|").split("|")][1:] == [f"reg {reg:g}" for reg in REGS]
    assert len(lines) == 4
    assert is_picture(tmp_path / "figure.png")


def test_tuning_is_reported_with_its_best_parameters(tmp_path: Path) -> None:
    experiment = worst_and_best()
    table = report.keep_tuning(tune(experiment, seeds=1, rounds=50, quiet=True), tmp_path)
    assert "at the grid's edge" in table
    assert report.rebuild(tmp_path) == table
    assert is_picture(tmp_path / "figure.png")


def test_the_table_holds_mean_error_and_median_over_seeds(tmp_path: Path) -> None:
    results = run(worst_and_best(seeds=3), quiet=True)
    for row, regret in zip((row for row in results.rows if row["policy"] == "worst"), (1.0, 2.0, 6.0)):
        row["cumulative_regret"] = regret
    header, _, line, *_ = report.keep(results, tmp_path).splitlines()
    cells = dict(zip(*([cell.strip() for cell in text.strip("|").split("|")] for text in (header, line))))
    assert (cells["policy"], cells["mean regret"], cells["median"], cells["seeds"]) == ("worst", "3.0", "2.0", "3")
    assert cells["std. error"] == f"{np.std([1, 2, 6], ddof=1) / np.sqrt(3):.1f}"


def test_heavy_tailed_results_show_an_interval_of_the_mean_and_the_upper_tail(tmp_path: Path) -> None:
    results = run(worst_and_best(seeds=5, figure=HEAVY), quiet=True)
    regrets = (1.0, 2.0, 6.0, 7.0, 84.0)
    for row, regret in zip((row for row in results.rows if row["policy"] == "worst"), regrets):
        row["cumulative_regret"] = regret
    header, _, line, *_ = report.keep(results, tmp_path).splitlines()
    cells = dict(zip(*([cell.strip() for cell in text.strip("|").split("|")] for text in (header, line))))
    assert (cells["policy"], cells["mean regret"], cells["median"]) == ("worst", "20.0", "6.0")
    assert cells["90% quantile"] == f"{np.quantile(regrets, 0.9):.1f}"
    low, high = map(float, cells["95% interval"].split(" to "))
    assert 1.0 <= low < 20.0 < high <= 84.0
    assert "µs a round" in cells
    assert is_picture(tmp_path / "figure.png")


def test_the_bootstrap_agrees_with_the_normal_interval_where_that_holds() -> None:
    values = np.random.default_rng(0).standard_normal(400)
    low, high = bootstrap_interval(values.tolist())
    half = 1.96 * values.std(ddof=1) / np.sqrt(400)
    assert low == pytest.approx(values.mean() - half, abs=0.1 * half)  # an endpoint of 10,000 samples: within 3%
    assert high == pytest.approx(values.mean() + half, abs=0.1 * half)
    assert bootstrap_interval(values.tolist()) == (low, high)


def test_the_frontier_holds_what_no_cheaper_point_beats() -> None:
    assert frontier([(1.0, 9.0), (2.0, 10.0), (3.0, 4.0), (4.0, 4.0), (5.0, 1.0)]) == [
        (1.0, 9.0),
        (3.0, 4.0),
        (5.0, 1.0),
    ]


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=r"there is no results.parquet in .*'onepass run'"):
        report.rebuild(tmp_path)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"params": ["{"], "figure": ["bandits"]}, "damaged"),
        ({"params": [3], "figure": ["bandits"]}, "damaged"),
        ({"params": ["{}"]}, "--figure MODULE:NAME"),
    ],
)
def test_rows_that_onepass_did_not_write_are_refused(
    tmp_path: Path, rows: dict[str, list[object]], message: str
) -> None:
    for file in ("results.parquet", "curves.parquet"):
        pl.DataFrame(rows).write_parquet(tmp_path / file)
    with pytest.raises(ExperimentError, match=message):
        report.rebuild(tmp_path)
