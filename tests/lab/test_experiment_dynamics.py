"""Studies of worlds with a state: every policy acts, and rows, table and curves say so."""

import pytest

from onepass.lab.dynamics.study import noises
from onepass.lab.dynamics.suites import SUITES


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_every_policy_of_a_study_acts_under_every_noise(suite):
    trial = suite.trial(suite.policies, 0)
    for start in (0, 3):
        trial.step(start, 3)
    rows = trial.rows()
    assert len(rows) == len(suite.policies) * len(noises(1.0)) == len(suite.figure.lines(rows))
    assert {row["rounds"] for row in rows} == {6}
    assert len(trial.curves()) == 2 * len(rows)
