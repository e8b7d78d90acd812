"""Studies of worlds with a state: every policy acts, and rows, table and curves say so."""

import numpy as np
import pytest

from onepass.lab.dynamics.sphere import optimistic_point
from onepass.lab.dynamics.suites import SUITES


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_every_policy_of_a_study_acts_under_every_noise(suite):
    trial = suite.trial(suite.policies, 0)
    for start in (0, 3):
        trial.step(start, 3)
    rows = trial.rows()
    assert len(rows) == len(suite.policies) * len(suite.noises) == len(suite.figure.lines(rows))
    assert {row["rounds"] for row in rows} == {6}
    assert len(trial.curves()) == 2 * len(rows)


@pytest.mark.parametrize("dim", [2, 4])
@pytest.mark.parametrize("length", [0.0, 0.1, 3.0])
def test_the_optimistic_point_of_a_sphere_has_the_largest_upper_bound(dim, length):
    rng = np.random.default_rng(0)
    for beta in (0.1, 5.0):
        rows = rng.standard_normal((3 * dim, dim))
        matrix, center = rows.T @ rows, length * rng.standard_normal(dim)
        point = optimistic_point(center, *np.linalg.eigh(matrix), beta)
        others = np.vstack([point, rng.standard_normal((4000, dim)), point + 1e-2 * rng.standard_normal((4000, dim))])
        others /= np.linalg.norm(others, axis=1, keepdims=True)
        bounds = others @ center + beta * np.sqrt(np.einsum("ij,jk,ik->i", others, np.linalg.inv(matrix), others))
        assert bounds[0] >= bounds.max() - 1e-6
