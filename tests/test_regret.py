"""Regret on real data: where fixed sketches fail and where a bounded error saves the day (MNIST, small reg)."""

from statistics import fmean

import pytest

from onepass.experiment import find, runner
from onepass.experiment.datasets import load
from onepass.experiment.errors import ExperimentError


@pytest.fixture(scope="module")
def regret_over_reg():
    """Mean regret over ten targets after 2,000 rounds, by (policy, reg), at reg 0.02 and 0.2."""
    try:
        load("mnist")
    except ExperimentError as missing:
        pytest.skip(f"MNIST is not here: {missing}")
    study = find("mnist-reg")
    wanted = ("OFUL", "SOFUL", "CBSCFD", "DBSLinUCB", "DBSLinUCB-RFD")
    policies = [p for p in study.policies if p.group in wanted and p.params["reg"] in (0.02, 0.2)]
    rows = runner.run(study, policies=policies, seeds=10, quiet=True).rows
    points = {(row["group"], row["params"]["reg"]) for row in rows}
    return {
        point: fmean(r["cumulative_regret"] for r in rows if (r["group"], r["params"]["reg"]) == point)
        for point in points
    }


@pytest.mark.slow
@pytest.mark.parametrize("reg", [0.02, 0.2])
def test_a_bounded_error_keeps_regret_below_that_of_a_small_fixed_sketch(regret_over_reg, reg):
    assert regret_over_reg["DBSLinUCB", reg] < 0.8 * regret_over_reg["SOFUL", reg]


@pytest.mark.slow
@pytest.mark.parametrize("reg", [0.02, 0.2])
def test_robust_blocks_stay_close_to_the_exact_design(regret_over_reg, reg):
    assert regret_over_reg["DBSLinUCB-RFD", reg] < 1.5 * regret_over_reg["OFUL", reg]


@pytest.mark.slow
@pytest.mark.parametrize("reg", [0.02, 0.2])
def test_the_robust_fixed_sketch_survives_where_the_plain_one_fails(regret_over_reg, reg):
    assert regret_over_reg["CBSCFD", reg] < 0.8 * regret_over_reg["SOFUL", reg]
